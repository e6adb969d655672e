"""`carina export`: options, what it prints, and how it refuses."""

import json

import pytest
from tests.exports.chat import conversation
from tests.sources.chexpercept import percept_cases, published
from typer.testing import CliRunner

from carina.cli import app


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments), "--workers", "1"])


def test_built_cases_are_exported_and_imported(tmp_path):
    percept_cases.write(
        tmp_path / "bench", [percept_cases.case("RR", number=1), percept_cases.case("LF", number=2)]
    )
    result = run("export", tmp_path / "bench", "--to", "chexpercept", "-o", tmp_path / "bundle")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{tmp_path / 'bundle'}\n"
    assert result.stderr == "2 cases, 10 questions, 8 pictures\n"
    back = run("import", "chexpercept", tmp_path / "bundle", "-o", tmp_path / "again")
    assert back.exit_code == 0, back.output
    assert "2 cases with 10 questions of 2 records, 0 skipped" in back.stderr


def test_an_imported_bundle_is_exported_unchanged(tmp_path):
    bundle = published.write_bundle(tmp_path / "bundle")
    assert run("import", "chexpercept", bundle, "-o", tmp_path / "bench").exit_code == 0
    assert run("export", tmp_path / "bench", "--to", "chexpercept", "-o", tmp_path / "again").exit_code == 0
    texts = [(root / "chexpercept.json").read_text() for root in (bundle, tmp_path / "again")]
    assert json.loads(texts[0]) == json.loads(texts[1])
    result = run("export", tmp_path / "bench", "--to", "chexpercept", "-o", tmp_path / "n", "--neutral-names")
    assert result.exit_code == 0
    assert not list((tmp_path / "n").rglob("*answer*"))


def test_images_that_moved_are_found_where_they_are(tmp_path):
    bundle = published.write_bundle(tmp_path / "bundle")
    run("import", "chexpercept", bundle, "-o", tmp_path / "bench")
    bundle.rename(tmp_path / "moved")
    arguments = ("export", tmp_path / "bench", "--to", "chexpercept", "-o", tmp_path / "again")
    failed = run(*arguments)
    assert failed.exit_code == 2
    assert "cannot be read: No such file" in failed.stderr
    assert run(*arguments, "--images", tmp_path / "moved").exit_code == 0


def test_json_is_one_document(tmp_path):
    percept_cases.write(tmp_path / "bench", [percept_cases.case("RF")])
    arguments = ("--to", "chexpercept", "-o", tmp_path / "bundle", "--keys", "separate", "--json")
    result = run("export", tmp_path / "bench", *arguments)
    assert json.loads(result.stdout) == {
        "export": str(tmp_path / "bundle"),
        "counts": {"cases": 1, "questions": 6, "pictures": 2, "cells": {"effusion/RF": 1}},
    }
    assert "answer_index" not in (tmp_path / "bundle" / "chexpercept.json").read_text()
    assert "answer_index" in (tmp_path / "bundle" / "keys.json").read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--to", "word"), "unknown export 'word'. Known: chat, chexpercept, hf."),
        (("--to", "chexpercept", "--keys", "none"), "(--keys): expected inline or separate, found 'none'"),
        (("--to", "chexpercept"), "nowhere: no such directory"),
        (("--to", "chat"), "nowhere: no such directory"),
        (("--to", "hf"), "nowhere: no such directory"),
        (("--to", "chat", "--layout", "x"), "(--layout): expected openai, llava, swift or staged, found 'x'"),
        (("--to", "chat", "--answers", "no"), "(--answers): expected with or without, found 'no'"),
        (("--to", "hf", "--pictures", "all"), "(--pictures): expected none, copy or embed, found 'all'"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, arguments, sentence):
    result = run("export", tmp_path / "nowhere", "-o", tmp_path / "bundle", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("layout", ["openai", "llava", "swift", "staged"])
def test_conversations_are_exported_in_every_layout(tmp_path, layout):
    bench = conversation.write(tmp_path / "bench", [conversation.case(1), conversation.case(2, split="test")])
    result = run("export", bench, "--to", "chat", "--layout", layout, "-o", tmp_path / "chat")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{tmp_path / 'chat'}\n"
    pictures = 0 if layout == "staged" else 3
    assert result.stderr == f"2 cases (1 test, 1 train), 18 questions, {pictures} pictures\n"
    assert json.loads((tmp_path / "chat" / "train-00000.jsonl").read_text())["id"]


def test_a_folder_for_the_hub_has_no_picture_by_default(tmp_path):
    bench = conversation.write(tmp_path / "bench", [conversation.case(1), conversation.case(2, split="test")])
    result = run("export", bench, "--to", "hf", "-o", tmp_path / "folder", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {
        "export": str(tmp_path / "folder"),
        "counts": {"cases": 2, "questions": 18, "pictures": 0, "splits": {"test": 1, "train": 1}},
    }
    files = {path.name for path in (tmp_path / "folder").rglob("*") if path.is_file()}
    assert files == {
        "README.md",
        "carina.json",
        "croissant.json",
        "test-00000.parquet",
        "train-00000.parquet",
    }
    asked = run("export", bench, "--to", "hf", "-o", tmp_path / "copied", "--pictures", "copy")
    assert asked.stderr == "2 cases (1 test, 1 train), 18 questions, 3 pictures\n"


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("--to", "hf", "--layout", "llava"), "--layout"),
        (("--to", "chat", "--keys", "separate"), "--keys"),
        (("--to=chexpercept", "--answers", "without"), "--answers"),
    ],
)
def test_an_option_of_another_export_is_wrong_usage(tmp_path, arguments, option):
    result = run("export", tmp_path / "nowhere", "-o", tmp_path / "bundle", *arguments)
    assert result.exit_code == 2
    assert f"No such option: {option}" in result.stderr


def test_what_a_layout_cannot_hold_is_refused(tmp_path):
    bench = conversation.write(tmp_path / "bench", [conversation.case(1)])
    arguments = ("--to", "chat", "--layout", "llava", "--pictures", "embed", "-o", tmp_path / "chat")
    result = run("export", bench, *arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "pictures must be none or copy" in result.stderr


def test_help_lists_the_formats_and_has_examples():
    result = CliRunner().invoke(app, ["export", "--help"])
    assert "Examples:\n    carina export bench" in result.stdout
    for name in ("chat", "chexpercept", "hf"):
        assert f"    {name}  " in result.stdout
    assert "--layout" not in result.stdout.partition("Options:")[2]


def test_help_of_a_format_lists_its_options():
    result = CliRunner().invoke(app, ["export", "--to", "chat", "--help"])
    for option in ("--layout openai|llava|swift|staged", "--answers with|without", "--system"):
        assert option in result.stdout
    assert "--neutral-names" not in result.stdout

"""`carina export`: options, what it prints, and how it refuses."""

import importlib.util
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from carina.cli import app

_BUNDLE = Path(__file__).parents[1] / "percept" / "bundle"


def load(name):
    spec = importlib.util.spec_from_file_location(f"cli_{name}", _BUNDLE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


published, ours = load("published"), load("ours")
talk = load("../../cases/chat/talk")


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments), "--workers", "1"])


def test_ours_go_out_and_come_in(tmp_path):
    ours.write(tmp_path / "bench", [ours.case("RR", number=1), ours.case("LF", number=2)])
    result = run("export", tmp_path / "bench", "--to", "chexpercept", "-o", tmp_path / "bundle")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{tmp_path / 'bundle'}\n"
    assert result.stderr == "2 cases, 10 questions, 8 pictures\n"
    back = run("import", "chexpercept", tmp_path / "bundle", "-o", tmp_path / "again")
    assert back.exit_code == 0, back.output
    assert "2 cases of 2 records, 0 skipped" in back.stderr


def test_an_imported_bundle_comes_back(tmp_path):
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
    ours.write(tmp_path / "bench", [ours.case("RF")])
    arguments = ("--to", "chexpercept", "-o", tmp_path / "bundle", "--keys", "separate", "--json")
    result = run("export", tmp_path / "bench", *arguments)
    assert json.loads(result.stdout) == {
        "bundle": str(tmp_path / "bundle"),
        "counts": {"cases": 1, "questions": 6, "pictures": 2, "cells": {"effusion/RF": 1}},
    }
    assert "answer_index" not in (tmp_path / "bundle" / "chexpercept.json").read_text()
    assert "answer_index" in (tmp_path / "bundle" / "keys.json").read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--to", "word"), "--to 'word': no such format; known: chat, chexpercept, hf"),
        (("--to", "chexpercept", "--keys", "none"), "--keys 'none': expected inline or separate"),
        (("--to", "chexpercept"), "no such directory, so no benchmark there"),
        (("--to", "chat"), "no such directory, so no benchmark there"),
        (("--to", "hf"), "no such directory, so no benchmark there"),
        (("--to", "chat", "--layout", "x"), "--layout 'x': expected openai, llava, swift or staged"),
        (("--to", "chat", "--answers", "no"), "--answers 'no': expected with or without"),
        (("--to", "hf", "--pictures", "all"), "--pictures 'all': expected none, copy or embed"),
        (("--to", "hf", "--layout", "llava"), "--layout and --system are of chat, not of hf"),
        (("--to", "chat", "--keys", "separate"), "for chat there is --answers without"),
        (("--to", "chexpercept", "--answers", "without"), "for chexpercept there is --keys separate"),
        (("--to", "chat", "--layout", "llava", "--pictures", "embed"), "none or copy, not embed"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, arguments, sentence):
    result = run("export", tmp_path / "nowhere", "-o", tmp_path / "bundle", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("layout", ["openai", "llava", "swift", "staged"])
def test_conversations_go_out_in_every_layout(tmp_path, layout):
    bench = talk.write(tmp_path / "bench", [talk.case(1), talk.case(2, split="test")])
    result = run("export", bench, "--to", "chat", "--layout", layout, "-o", tmp_path / "chat")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{tmp_path / 'chat'}\n"
    pictures = 0 if layout == "staged" else 3
    assert result.stderr == f"2 cases (1 test, 1 train), 18 questions, {pictures} pictures\n"
    assert json.loads((tmp_path / "chat" / "train-00000.jsonl").read_text())["id"]


def test_a_folder_for_the_hub_goes_out_without_a_picture_unless_asked(tmp_path):
    bench = talk.write(tmp_path / "bench", [talk.case(1), talk.case(2, split="test")])
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


def test_help_has_examples():
    result = CliRunner().invoke(app, ["export", "--help"])
    assert "Examples:\n    carina export bench" in result.stdout

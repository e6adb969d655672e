"""`carina import`: options, what it prints, and how it refuses."""

import json
import os

import pytest
from tests.sources.chexpercept import published
from tests.sources.swift_chat import sample
from typer.testing import CliRunner

from carina.cases import open_benchmark
from carina.cli import app


@pytest.fixture
def bundle(tmp_path):
    return published.write_bundle(tmp_path / "bundle")


def run(*arguments):
    return CliRunner().invoke(app, ["import", *map(str, arguments), "--workers", "1"])


def test_the_counts_are_printed(bundle, tmp_path):
    result = run("chexpercept", bundle, "-o", tmp_path / "bench")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "target\tLF\tRF\tRR",
        "cardiomegaly\t0\t1\t1",
        "edema\t1\t0\t0",
        "effusion\t0\t0\t1",
        "ground glass\t1\t0\t0",
        "opacity\t0\t1\t0",
        str(tmp_path / "bench"),
    ]
    assert result.stderr.splitlines() == [
        "6 cases with 24 questions of 6 records, 0 skipped",
        "6 cases without a known patient: confidence intervals will be by case (--patients)",
    ]
    assert len(open_benchmark(tmp_path / "bench")) == 6


def test_a_record_that_cannot_be_used_is_skipped_printed_and_listed(bundle, tmp_path):
    gone = bundle / "chexpercept/edema_s3_negative_0/detection_qa/xray.png"
    gone.unlink()
    result = run("chexpercept", bundle, "-o", tmp_path / "bench")
    assert result.exit_code == 0
    first, second, *_ = result.stderr.splitlines()
    records = bundle / "chexpercept.json"
    assert first == f"Skipped: {records}: edema_s3_negative_0: detection_qa: {gone}: no such image file"
    assert second == "5 cases with 23 questions of 6 records, 1 skipped"
    assert "edema_s3_negative_0" in (tmp_path / "bench" / "skipped.csv").read_text()


def renamed(bundle, new, change=lambda _record: None):
    """The bundle with one record under another name."""
    path = bundle / "chexpercept.json"
    records = json.loads(path.read_text())
    found = records.pop("edema_s3_negative_0")
    change(found)
    path.write_text(json.dumps({new: found, **records}))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ev\x1b[31mil\nError: fake line", r"ev\x1b[31mil\nError: fake line: the key_id "),
        ("\u202egnp.\ud800", r"\u202egnp.\ud800: the key_id "),
        ("k" * 300, f"{'k' * 97}...: the key_id "),
    ],
    ids=("codes", "direction", "long"),
)
def test_a_hostile_name_is_printed_in_one_plain_line(bundle, tmp_path, name, told):
    renamed(bundle, name)
    result = run("chexpercept", bundle, "-o", tmp_path / "bench")
    assert result.exit_code == 0
    first, second, *_ = result.stderr.splitlines()
    assert first.startswith(f"Skipped: {bundle / 'chexpercept.json'}: {told}")
    assert second == "5 cases with 23 questions of 6 records, 1 skipped"
    assert first.isprintable()


@pytest.mark.parametrize(
    ("field", "value"),
    [("answer_index", int("9" * 200)), ("answer", "a" * 10_000), ("answer_options", ["\x1b" * 9000, "No"])],
)
def test_long_values_are_shortened_in_messages(bundle, tmp_path, field, value):
    renamed(bundle, "edema_s3_negative_0", lambda record: record["detection_qa"].update({field: value}))
    result = run("chexpercept", bundle, "-o", tmp_path / "bench")
    first, *_ = result.stderr.splitlines()
    assert f"edema_s3_negative_0: detection_qa.{field}: " in first
    assert "..." in first
    assert first.isprintable()
    assert len(first) < len(str(bundle)) + 250


@pytest.mark.parametrize("below", ["", "bench", "chexpercept/bench"])
def test_a_benchmark_is_not_written_into_its_bundle(bundle, below):
    before = sorted(bundle.rglob("*"))
    result = run("chexpercept", bundle, "-o", bundle / below)
    assert result.exit_code == 2
    assert result.stderr == (
        f"Error: {bundle / below}: lies within {bundle}, which is not changed: choose another directory\n"
    )
    assert sorted(bundle.rglob("*")) == before


def test_a_pipe_in_place_of_a_picture_is_skipped(bundle, tmp_path):
    pipe = bundle / "chexpercept/edema_s3_negative_0/detection_qa/xray.png"
    pipe.unlink()
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)  # something to read, lest a reader that opens it wait for ever
    os.write(writer, b"GIF89a" * 50)
    result = run("chexpercept", bundle, "-o", tmp_path / "bench")
    os.close(writer)
    assert "5 cases with 23 questions of 6 records, 1 skipped" in result.stderr
    assert "detection_qa/xray.png: is not a regular file" in result.stderr


def test_on_error_stop_is_bad_input(bundle, tmp_path):
    (bundle / "chexpercept/edema_s3_negative_0/detection_qa/xray.png").unlink()
    result = run("chexpercept", bundle, "-o", tmp_path / "bench", "--on-error", "stop")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {bundle / 'chexpercept.json'}: edema_s3_negative_0: ")
    assert result.stderr.count("\n") == 1


def test_an_import_without_a_usable_record_is_a_failure(bundle, tmp_path):
    for path in bundle.rglob("xray.png"):
        path.unlink()
    result = run("chexpercept", bundle, "-o", tmp_path / "bench")
    assert result.exit_code == 1
    assert "0 cases with 0 questions of 6 records, 6 skipped" in result.stderr
    assert not (tmp_path / "bench").exists()


def test_json_is_one_document(bundle, tmp_path):
    (bundle / "chexpercept/edema_s3_negative_0/detection_qa/xray.png").unlink()
    table = tmp_path / "patients.csv"
    table.write_text("key_id,patient\neffusion_s1_positive_0,p1\n")
    result = run(
        "chexpercept", bundle, "-o", tmp_path / "bench", "--json", "--patients", table, "--limit", "3"
    )
    told = json.loads(result.stdout)
    assert result.stderr == ""
    # Records that were read: the limit is reached with the fourth of six.
    assert (told["records"], told["cases"], told["without_patient"]) == (4, 3, 2)
    assert told["cells"] == {"cardiomegaly/RR": 1, "effusion/RR": 1, "opacity/RF": 1}
    (skipped,) = told["skipped"]
    assert skipped["place"] == f"{bundle / 'chexpercept.json'}: edema_s3_negative_0"
    assert skipped["reason"] == "image"


def test_copied_images_lie_in_the_benchmark(bundle, tmp_path):
    assert run("chexpercept", bundle, "-o", tmp_path / "bench", "--copy-images").exit_code == 0
    assert len(list((tmp_path / "bench" / "images").rglob("*.png"))) == len(list(bundle.rglob("*.png")))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("no-such-set", "x"), "unknown source 'no-such-set'. Known: "),
        (("phantom", "x"), "phantom: is not imported; make phantom studies with `carina phantom`"),
        (("chexpercept", "nowhere"), "chexpercept.json: missing, so nowhere is not a CheXpercept bundle"),
        (("swift-chat", "nowhere.json"), "nowhere.json: no such file"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, arguments, sentence):
    result = run(*arguments, "-o", tmp_path / "bench")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1


def conversations(tmp_path):
    """Three records: one as published, one with slots left open, one that cannot be used."""
    records = [sample.numbered(n) for n in range(3)]
    records[1]["content"][1]["question"] = "Is anything abnormal, in {words} words?"
    records[1]["messages"] = sample.chatted(records[1]["content"])
    records[2]["content"][4]["stage"] = 0
    path = tmp_path / "sample.json"
    path.write_text(json.dumps(records))
    return path


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--on-error", "ask"), "on_error: expected skip or stop, found 'ask'"),
        (("--copy-images",), "name the folder of the images to copy them (--images)"),
        (("--images", "nowhere"), "nowhere: no such directory of images"),
    ],
)
def test_a_wrong_option_is_one_sentence(tmp_path, arguments, sentence):
    result = run("swift-chat", conversations(tmp_path), "-o", tmp_path / "bench", *arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert sentence in result.stderr


def test_conversations_are_imported_with_their_defects_counted(tmp_path):
    path = conversations(tmp_path)
    result = run("swift-chat", path, "-o", tmp_path / "bench")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "defect\ttimes\trecords\tfirst record\twhat was done",
        "unfilled slot\t1\t1\t2\t`{name}` is written [name]",
        "multi-choice-N\t6\t2\t1\tformat and number of right options are taken from the content",
        "label of another stage\t2\t2\t1\tthe number of the stage counts",
        "absolute path\t4\t2\t1\tbecomes a relative key",
        "size unknown\t4\t2\t1\t0 x 0",
        str(tmp_path / "bench"),
    ]
    assert result.stderr.splitlines() == [
        f"Skipped: {path}: record 3: content[4].stage: is 0, expected 1 to 8",
        "2 cases with 24 questions of 3 records, 1 skipped",
    ]
    assert len(open_benchmark(tmp_path / "bench")) == 2


def test_counts_of_conversations_are_printed_as_json(tmp_path):
    result = run("swift-chat", conversations(tmp_path), "-o", tmp_path / "bench", "--json")
    told = json.loads(result.stdout)
    assert (told["records"], told["cases"], told["questions"]) == (3, 2, 24)
    assert told["stages"] == {"1": 2, "2": 6, "3": 6, "4": 2, "5": 2, "6": 2, "7": 2, "8": 2}
    assert told["defects"][0] == {
        "defect": "unfilled slot",
        "times": 1,
        "records": 1,
        "first_record": 2,
        "what_was_done": "`{name}` is written [name]",
    }
    (skipped,) = told["skipped"]
    assert skipped["place"].endswith("sample.json: record 3")
    assert skipped["field"] == "content[4].stage"


def test_on_error_stop_ends_at_the_first_record_that_cannot_be_used(tmp_path):
    result = run("swift-chat", conversations(tmp_path), "-o", tmp_path / "bench", "--on-error", "stop")
    assert result.exit_code == 2
    assert "sample.json: record 3: content[4].stage: is 0, expected 1 to 8\n" in result.stderr
    assert result.stderr.count("\n") == 1


def test_help_lists_the_sources_and_has_examples():
    result = CliRunner().invoke(app, ["import", "--help"])
    assert "Examples:\n    carina import chexpercept" in result.stdout
    assert "CheXpercept, a published bundle." in result.stdout
    assert "swift-chat" in result.stdout
    assert "phantom" not in result.stdout


def test_each_source_has_its_own_options():
    chexpercept = CliRunner().invoke(app, ["import", "chexpercept", "--help"]).stdout
    swift = CliRunner().invoke(app, ["import", "swift-chat", "--help"]).stdout
    assert ("--patients" in chexpercept, "--patients" in swift) == (True, False)
    assert ("--images" in chexpercept, "--images" in swift) == (False, True)
    for shared in ("--limit", "--on-error", "--copy-images", "--workers", "--json"):
        assert shared in chexpercept
        assert shared in swift


def test_an_option_of_another_source_is_wrong_usage(tmp_path):
    result = run("chexpercept", "x", "-o", tmp_path / "bench", "--images", "y")
    assert result.exit_code == 2
    assert "--images" in result.stderr

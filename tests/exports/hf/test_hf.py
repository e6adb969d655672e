"""Folders for the hub: opened by `datasets` and by `mlcroissant`, whose word counts here."""

import io
import json
import logging

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image
from tests.exports.chat import conversation
from tests.sources.chexpercept import percept_cases

from carina.cases import open_benchmark
from carina.cases.messages import answer
from carina.exports import export
from carina.exports.hf import format as hub_format
from carina.store.errors import CarinaError

datasets = pytest.importorskip("datasets")
mlcroissant = pytest.importorskip("mlcroissant")


@pytest.fixture
def bench(tmp_path):
    splits = ["train", "test", "train", "val", "train"]
    cases = [conversation.case(number, split=split) for number, split in enumerate(splits, start=1)]
    return conversation.write(tmp_path / "bench", cases)


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()


def exported(bench, out, *, workers=1, **options):
    return export(bench, out, to="hf", options=options, workers=workers)


def opened(folder, tmp_path):
    return datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))


def test_datasets_opens_it_by_split(bench, tmp_path):
    result = exported(bench, tmp_path / "folder")
    found = opened(tmp_path / "folder", tmp_path)
    assert {split: rows["id"][:] for split, rows in found.items()} == {
        "train": ["trek-s1", "trek-s3", "trek-s5"],
        "validation": ["trek-s4"],
        "test": ["trek-s2"],
    }
    row = found["train"][0]
    assert [step["question"] for step in row["steps"]] == [
        step.question for step in conversation.case().steps
    ]
    assert [step["key"]["text"] for step in row["steps"]] == [
        step.key.text for step in conversation.case().steps
    ]
    assert row["steps"][5]["key"]["boxes"][0]["xyxy"] == [31.25, 40.62, 80.36, 90.18]
    assert row["context"] == {"indication": "Cough.", "age": 61, "sex": "F"}
    assert "pictures" not in row
    assert not (tmp_path / "folder" / "images").exists()
    assert result.counts["splits"] == {"test": 1, "train": 3, "val": 1}


def test_pictures_in_the_rows_are_decoded(bench, tmp_path):
    exported(bench, tmp_path / "folder", pictures="embed")
    rows = opened(tmp_path / "folder", tmp_path)["train"]
    assert rows.features["pictures"] == datasets.List(datasets.Image())
    for picture, image in zip(rows[0]["pictures"], conversation.case().images, strict=True):
        assert (np.asarray(picture) == conversation.pixels(image.key)).all()


def test_pictures_beside_the_rows_are_where_they_say(bench, tmp_path):
    exported(bench, tmp_path / "folder", pictures="copy")
    row = opened(tmp_path / "folder", tmp_path)["train"][0]
    for path, image in zip(row["pictures"], conversation.case().images, strict=True):
        content = (tmp_path / "folder" / path).read_bytes()
        assert (np.asarray(Image.open(io.BytesIO(content))) == conversation.pixels(image.key)).all()


def test_percept_cases_are_exported_with_answers_in_words(tmp_path):
    case = percept_cases.case("RR")
    percept_cases.write(tmp_path / "bench", [case])
    exported(tmp_path / "bench", tmp_path / "folder", pictures="copy")
    row = opened(tmp_path / "folder", tmp_path)["unsplit"][0]
    assert [step["key"]["text"] for step in row["steps"]] == [answer(case, step) for step in case.steps]
    assert len(row["pictures"]) == len(case.views) == len(set(row["pictures"]))


def test_without_answers_no_key_is_written(bench, tmp_path):
    exported(bench, tmp_path / "folder", answers="without")
    for row in opened(tmp_path / "folder", tmp_path)["train"]:
        assert row["facts"] == []
        for step in row["steps"]:
            assert step["key"]["text"] is None
            assert step["key"]["label"] is None
            assert [step["key"][name] for name in ("options", "boxes", "sections")] == [[], [], []]
            assert step["facts"] == []
    text = (tmp_path / "folder" / "README.md").read_text()
    assert "without their answers" in text
    assert "steps[].key" not in text
    assert "answer" not in [
        field["name"]
        for field in json.loads((tmp_path / "folder" / "croissant.json").read_text())["recordSet"][0][
            "field"
        ][-1]["subField"]
    ]


@pytest.mark.parametrize("answers", [True, False])
def test_croissant_is_valid_and_reads_the_records(bench, tmp_path, caplog, answers):
    exported(bench, tmp_path / "folder", answers="with" if answers else "without")
    with caplog.at_level(logging.WARNING):
        described = mlcroissant.Dataset(jsonld=str(tmp_path / "folder" / "croissant.json"))
        records = list(described.records("cases"))
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert not described.metadata.ctx.issues.errors
    assert {record["cases/id"].decode() for record in records} == {f"trek-s{n}" for n in range(1, 6)}
    first = next(record for record in records if record["cases/id"] == b"trek-s1")
    steps = conversation.case().steps
    assert [step["cases/steps/question"].decode() for step in first["cases/steps"]] == [
        step.question for step in steps
    ]
    if answers:
        assert [step["cases/steps/answer"].decode() for step in first["cases/steps"]] == [
            step.key.text for step in steps
        ]


def test_the_card_states_counts_sources_use_and_limits(bench, tmp_path):
    exported(bench, tmp_path / "folder")
    text = (tmp_path / "folder" / "README.md").read_text()
    _, head, body = text.split("---\n", 2)
    described = yaml.safe_load(head)
    assert described["configs"] == [
        {
            "config_name": "default",
            "data_files": [
                {"split": "test", "path": "data/test-*.parquet"},
                {"split": "train", "path": "data/train-*.parquet"},
                {"split": "validation", "path": "data/val-*.parquet"},
            ],
        }
    ]
    assert described["size_categories"] == ["n<1K"]
    for part in (
        "5 cases with 45 questions",
        "| train | 3 |",
        "| trek | 5 |",
        "| by hand | CC0-1.0 | https://example.org/data |",
        "## Intended use",
        "## Limits",
        "carina export bench --to hf --pictures none\n",
    ):
        assert part in body


def test_no_path_of_this_machine_is_written(bench, tmp_path):
    exported(bench, tmp_path / "folder", pictures="copy")
    for path in (tmp_path / "folder").rglob("*"):
        if path.is_file():
            assert str(tmp_path).encode() not in path.read_bytes()
            assert path.suffix != ".parquet" or str(tmp_path) not in str(pq.read_table(path).to_pylist())


def test_large_parts_are_several_files(tmp_path, monkeypatch):
    monkeypatch.setattr(hub_format, "GROUP_BYTES", 1)
    monkeypatch.setattr(hub_format, "FILE_BYTES", 1)
    cases = [conversation.case(n) for n in range(1, 4)]
    conversation.write(tmp_path / "more", cases, part_size=3)
    result = exported(tmp_path / "more", tmp_path / "folder", pictures="embed")
    names = [f"data/train-00000{end}.parquet" for end in ("-000", "-001", "-002")]
    assert [name for name in result.files if name.startswith("data")] == names
    assert opened(tmp_path / "folder", tmp_path)["train"]["id"][:] == [case.id for case in cases]


def snapshot(root):
    return {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_the_same_bytes_for_any_number_of_workers(bench, tmp_path):
    exported(bench, tmp_path / "one", pictures="embed")
    exported(bench, tmp_path / "two", pictures="embed", workers=2)
    assert snapshot(tmp_path / "one") == snapshot(tmp_path / "two")


def test_a_failed_export_leaves_no_folder(bench, tmp_path):
    (tmp_path / "images" / conversation.PRIOR).unlink()
    with pytest.raises(CarinaError, match=r"image 'p1/s1/frontal.png'"):
        exported(bench, tmp_path / "folder", pictures="embed")
    assert not (tmp_path / "folder").exists()
    assert not list((tmp_path / ".folder.partial").rglob("*.parquet"))
    exported(bench, tmp_path / "folder")
    assert len(open_benchmark(bench)) == 5

"""The manifest: plain JSON that says what a set is, and refuses what this version cannot read."""

import json

import pytest

import carina
from carina.store.errors import StudySetError
from carina.store.manifest import read_manifest
from carina.studies import Image, Provenance, SourceInfo, Study, open_studies, write_studies
from carina.studies.store import STUDIES

MADE = Provenance(
    command="carina phantom -n 1",
    seed=7,
    options={"size": 512, "bits": 8},
    sources=(
        SourceInfo(name="phantom", licence="CC0-1.0"),
        SourceInfo(name="nih", licence="own", url="https://example.org"),
    ),
    image_root="images",
)


@pytest.fixture
def directory(tmp_path):
    image = Image(key="a.png", view="PA", width=8, height=4)
    write_studies(tmp_path, [Study(id="s1", patient="p1", source="t", order=0, images=(image,))], MADE)
    return tmp_path


def edit(directory, **changes):
    path = directory / "studies.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_the_manifest_is_indented_json(directory):
    text = (directory / "studies.json").read_text()
    written = json.loads(text)
    parts = written.pop("parts")
    assert written.pop("fingerprint") == MADE.fingerprint
    assert written == {
        "kind": "carina/studies",
        "schema": "1.6",
        "carina": carina.__version__,
        "command": "carina phantom -n 1",
        "seed": 7,
        "options": {"bits": 8, "size": 512},
        "sources": [
            {"name": "nih", "licence": "own", "url": "https://example.org"},
            {"name": "phantom", "licence": "CC0-1.0", "url": None},
        ],
        "image_root": "images",
        "counts": {"studies": 1, "patients": 1, "images": 1, "findings": {}},
    }
    assert [sorted(part) for part in parts] == [["bytes", "file", "rows", "sha256"]]
    assert '\n  "kind": "carina/studies",\n' in text
    assert str(directory) not in text


def test_a_set_may_be_named_by_its_manifest(directory):
    assert open_studies(directory / "studies.json").ids() == open_studies(str(directory)).ids() == ["s1"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not json", "not the manifest of a study set: JSON is malformed"),
        ("", "not the manifest of a study set"),
        ("[1]", "not the manifest of a study set: Expected `object`, got `array`"),
        ('{"kind": "carina/studies"}', "missing required field `schema`"),
        ('{"kind": "carina/bench", "schema": "1.0"}', "holds 'carina/bench', expected 'carina/studies'"),
        ('{"kind": "carina/studies", "schema": "one"}', "schema 'one' is not a version such as '1.6'"),
        ('{"kind": "carina/studies", "schema": "1.0"}', "missing required field `carina`"),
    ],
)
def test_a_file_that_is_no_manifest_is_refused(tmp_path, content, message):
    (tmp_path / "studies.json").write_text(content)
    with pytest.raises(StudySetError, match=r"studies\.json: ") as caught:
        open_studies(tmp_path)
    assert message in str(caught.value)


def test_a_newer_major_schema_is_refused_and_says_what_to_do(directory):
    edit(directory, schema="2.0")
    with pytest.raises(StudySetError, match=r"written with schema 2\.0; .* reads up to 1\.x: upgrade Carina"):
        open_studies(directory)


def test_a_newer_minor_schema_is_read(directory):
    edit(directory, schema="1.7", something_new={"a": 1})
    assert read_manifest(STUDIES, directory).version == (1, 7)
    assert open_studies(directory).ids() == ["s1"]


def test_missing_manifests_say_why(tmp_path):
    with pytest.raises(StudySetError, match="no such directory"):
        open_studies(tmp_path / "nowhere")
    with pytest.raises(StudySetError, match="is not a study set"):
        open_studies(tmp_path)
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies/part-00000.parquet").touch()
    with pytest.raises(StudySetError, match=r"studies\.json: missing.*unfinished"):
        open_studies(tmp_path)


def test_a_manifest_that_is_a_directory_is_refused(tmp_path):
    (tmp_path / "studies.json").mkdir()
    with pytest.raises(StudySetError, match=r"studies\.json: is a directory"):
        read_manifest(STUDIES, tmp_path)


@pytest.mark.parametrize(
    "file", ["../part-00000.parquet", "/etc/passwd", "studies/../../part-00000.parquet", "x"]
)
def test_a_part_outside_the_set_is_refused(directory, file):
    edit(directory, parts=[{"file": file, "rows": 1, "bytes": 1, "sha256": "0"}])
    with pytest.raises(StudySetError, match=r"is not named like 'studies/part-00000\.parquet'"):
        open_studies(directory)

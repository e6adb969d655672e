"""Members of zip files and of the folders that they were unpacked into."""

import zipfile

import pytest

from carina.sources import RecordError, SourceError
from carina.sources._archives import Archive


@pytest.fixture(params=["zip", "folder"])
def archive(request, tmp_path):
    for name, text in {"a/one.txt": "one", "two.txt": "twenty-two"}.items():
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / name).write_text(text)
    (tmp_path / "secret.txt").write_text("secret")
    if request.param == "folder":
        return Archive(tmp_path / "set")
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as written:
        for file in (tmp_path / "set").rglob("*"):
            written.write(file, file.relative_to(tmp_path / "set"))
    return Archive(tmp_path / "set.zip")


def test_names_and_contents(archive):
    assert archive.names() == ["a/one.txt", "two.txt"]
    assert archive.read("a/one.txt", max_bytes=3) == b"one"


@pytest.mark.parametrize(
    ("name", "kind"), [("three.txt", "not joined"), ("two.txt", "size"), ("../secret.txt", None), ("a", None)]
)
def test_what_cannot_be_read_is_one_record_less(archive, name, kind):
    with pytest.raises(RecordError) as error:
        archive.read(name, max_bytes=9)
    assert kind in (None, error.value.kind)


def test_a_file_that_changes_is_opened_again(tmp_path):
    archive = Archive(tmp_path / "set.zip")
    with pytest.raises(SourceError, match=r"set\.zip: cannot be read"):
        archive.names()
    for name in ("one.txt", "other.txt"):
        with zipfile.ZipFile(archive.path, "w") as written:
            written.writestr(name, name)
        assert archive.names() == [name]
    archive.path.write_bytes(b"PK no zip")
    with pytest.raises(SourceError, match="not a zip file"):
        archive.read("one.txt", max_bytes=9)


def test_a_damaged_member_is_one_record_less(tmp_path):
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as written:
        written.writestr("one.txt", "content of the first")
        written.writestr("two.txt", "content of the second")
    content = bytearray((tmp_path / "set.zip").read_bytes())
    content[content.index(b"first")] ^= 1
    (tmp_path / "set.zip").write_bytes(content)
    archive = Archive(tmp_path / "set.zip")
    with pytest.raises(RecordError, match=r"one\.txt cannot be read"):
        archive.read("one.txt", max_bytes=100)
    assert archive.read("two.txt", max_bytes=100) == b"content of the second"

"""The patients of images, from a table of the user."""

import gzip

import pytest

from carina.sources import SourceError
from carina.sources.chexpercept.reader import read_patients


def table(tmp_path, text, name="patients.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_patients_are_found_by_image_or_by_record(tmp_path):
    by_image = read_patients(table(tmp_path, "x,dicom_id,patient\n1,d-1,p9\n\n2,d-2,p9\n"))
    assert by_image.find(key_id="k", dicom_id="d-2") == "p9"
    assert by_image.find(key_id="d-2", dicom_id="k") is None
    by_record = read_patients(table(tmp_path, "\ufeffkey_id, patient\nk-1,p3\n"))
    assert by_record.find(key_id="k-1", dicom_id="d-2") == "p3"


def test_the_metadata_table_of_the_source_serves_compressed_as_it_comes(tmp_path):
    path = tmp_path / "metadata.csv.gz"
    path.write_bytes(gzip.compress(b"dicom_id,subject_id,study_id\nd-1,100,5\nd-1,100,5\n"))
    assert read_patients(path).find(key_id="", dicom_id="d-1") == "100"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has no column key_id or dicom_id"),
        ("image,patient\n", "has no column key_id or dicom_id; its first row is 'image, patient'"),
        ("dicom_id,name\n", "has no column patient or subject_id"),
        ("dicom_id,patient\nd-1,\n", "row 2: expected a name and a patient"),
        ("dicom_id,patient\nd-1\n", "row 2: expected a name and a patient"),
        ("dicom_id,patient\nd-1,p1\nd-1,p2\n", "dicom_id 'd-1' has two patients, 'p1' and 'p2'"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(tmp_path, text, sentence):
    path = table(tmp_path, text)
    with pytest.raises(SourceError) as told:
        read_patients(path)
    assert str(told.value).startswith(f"{path}: ")
    assert sentence in str(told.value)


def test_a_missing_or_damaged_table_is_refused(tmp_path):
    with pytest.raises(SourceError, match=r"nowhere\.csv: "):
        read_patients(tmp_path / "nowhere.csv")
    with pytest.raises(SourceError, match=r"x\.csv\.gz: "):
        read_patients(table(tmp_path, "not gzip", "x.csv.gz"))
    (tmp_path / "latin.csv").write_bytes(b"dicom_id,patient\n\xe9,p\n")
    with pytest.raises(SourceError, match=r"latin\.csv: "):
        read_patients(tmp_path / "latin.csv")

"""Keys, names, dates, and what the manifest says about them."""

import datetime
import json
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sources.dicom.objects import encode, radiograph, save

from carina import CarinaError
from carina.sources import import_source
from carina.sources.dicom import privacy, reader, study_content
from carina.sources.dicom.privacy import LONGEST_SHIFT, Pseudonyms, load_key

KEY = Pseudonyms(b"k" * 32)


def test_names_are_the_hmac_of_the_id():
    import hashlib
    import hmac

    expected = hmac.new(b"k" * 32, b"patient\x004711", hashlib.sha256).hexdigest()[:20]
    assert KEY.name("patient", b"4711") == expected
    assert KEY.name("study", b"4711") != expected
    assert Pseudonyms(b"j" * 32).name("patient", b"4711") != expected


@given(st.binary(max_size=40), st.dates(datetime.date(1950, 1, 1)), st.integers(0, 20_000))
def test_dates_of_a_patient_keep_their_distance(patient, date, days):
    later = date + datetime.timedelta(days=min(days, (datetime.date.max - date).days))
    shifted = KEY.shift(patient, date)
    assert 1 <= (date - shifted).days <= LONGEST_SHIFT
    assert KEY.shift(patient, later) - shifted == later - date


def test_a_date_at_the_beginning_of_the_calendar_has_no_shifted_one():
    assert KEY.shift(b"p", datetime.date.min) is None


def test_a_key_is_created_once_for_its_owner_alone(tmp_path):
    path = tmp_path / "new/dicom.key"
    made = load_key(path, tmp_path / "out")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert len(made.key) == 32
    assert load_key(path, tmp_path / "out") == made
    assert load_key(tmp_path / "other.key", tmp_path / "out") != made


@pytest.mark.parametrize("text", ["", "secret", "5a" * 31, "zz" * 32])
def test_what_is_no_key_is_refused(text, tmp_path):
    path = tmp_path / "key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(CarinaError, match="not a key"):
        load_key(path, tmp_path / "out")


def test_a_key_that_others_may_read_is_refused(tmp_path):
    path = tmp_path / "key"
    path.write_text("5a" * 32)
    path.chmod(0o640)
    with pytest.raises(CarinaError, match="chmod 600"):
        load_key(path, tmp_path / "out")


@pytest.mark.parametrize("option", ["key_file", "file_table"])
def test_nothing_secret_may_lie_in_the_output(option, tmp_path, key_file):
    save(tmp_path / "in/a.dcm", radiograph())
    options = {"key_file": key_file, option: tmp_path / "out/secret"}
    with pytest.raises(CarinaError, match="may be shared"):
        import_source("dicom", tmp_path / "in", tmp_path / "out", options=options)
    assert not (tmp_path / "out").exists()


def test_the_default_key_lies_in_the_folder_of_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setenv("HOME", str(tmp_path))
    save(tmp_path / "in/a.dcm", radiograph())
    assert import_source("dicom", tmp_path / "in", tmp_path / "out", workers=1).counts.kept == 1
    assert privacy.default_key_file().is_relative_to(tmp_path)
    assert privacy.default_key_file().is_file()


def manifest(path):
    return json.loads((path / "studies.json").read_text())["options"]


def test_the_manifest_says_what_was_done(import_objects, tmp_path):
    options = manifest(import_objects([encode(radiograph())], look_for_text="never").path)
    codes = [text.split()[0] for text in options["deidentification_methods"]]
    assert codes == ["113100", "113103", "113104", "113105", "113107", "113108"]
    assert options["patient_identity_removed"] == "FROM HEADERS ONLY"
    assert options["key"] == Pseudonyms(bytes.fromhex("5a" * 32)).key_id
    assert str(tmp_path) not in json.dumps(options)


@pytest.mark.parametrize("looking", ["never", "always"])
def test_kept_report_text_is_not_called_free_of_identifiers(looking, import_objects, monkeypatch):
    """A search for names and dates is no proof that there are none."""
    monkeypatch.setattr(reader, "choose_looking", lambda *_: looking)
    monkeypatch.setattr(study_content, "find_text", lambda _: [])
    made = {
        text: manifest(import_objects([encode(radiograph())], out=f"text-{text}", report_text=text).path)
        for text in (False, True)
    }
    says = {text: options["patient_identity_removed"] for text, options in made.items()}
    codes = [{text.split()[0] for text in made[kept]["deidentification_methods"]} for kept in (False, True)]
    if looking == "always":
        assert says == {False: "YES", True: "NOT VERIFIED IN REPORT TEXT"}
    else:
        assert says == {False: "FROM HEADERS ONLY", True: "FROM HEADERS ONLY"}
    assert codes[0] - codes[1] == {"113100", "113104", "113105"}


def test_kept_identifiers_are_recorded(import_objects):
    imported = import_objects([encode(radiograph())], keep_identifiers=True, look_for_text="never")
    (found,) = imported.opened()
    assert (found.id, found.patient, found.date) == ("1.2.3", "4711", datetime.date(2020, 3, 10))
    assert found.images[0].key == "1.2.3/1.2.3.1.png"
    options = manifest(imported.path)
    codes = [text.split()[0] for text in options["deidentification_methods"]]
    assert codes == ["113103", "113104", "113105", "113106", "113108", "113110"]
    assert (options["identifiers"], options["patient_identity_removed"]) == ("kept", "NO")


def test_kept_identifiers_need_no_key_and_are_warned_of(import_objects, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setenv("HOME", str(tmp_path))
    imported = import_objects([encode(radiograph())], keep_identifiers=True, key_file=None)
    assert manifest(imported.path)["key"] == "none"
    assert not privacy.default_key_file().exists()
    assert "names patients" in imported.plan.lines[-1]
    assert "names patients" not in import_objects([encode(radiograph())], out="other").plan.lines[-1]


def test_report_text_without_any_report_is_said(import_objects):
    def defects(**options):
        return import_objects([encode(radiograph())], out=f"o{len(options)}", **options).defects

    assert "no structured report" in {name for name, *_ in defects(report_text=True)}
    assert "no structured report" not in {name for name, *_ in defects()}


def test_kept_identifiers_that_are_no_names_of_files_are_not_used_as_such(import_objects):
    elements = radiograph(
        STUDY_INSTANCE=("UI", "../../x"), SOP_INSTANCE=("UI", "/etc/passwd"), PATIENT_ID=("LO", "../p")
    )
    imported = import_objects([encode(elements)], keep_identifiers=True)
    (found,) = imported.opened()
    assert found.patient == "../p"
    assert found.images[0].key.replace("/", "").replace(".png", "").isalnum()


def test_another_key_gives_other_names(tmp_path, key_file):
    save(tmp_path / "in/a.dcm", radiograph())
    other = tmp_path / "secret/other.key"
    found = [
        next(
            iter(
                import_source(
                    "dicom", tmp_path / "in", tmp_path / f"o{n}", options={"key_file": key}
                ).opened()
            )
        )
        for n, key in enumerate((key_file, other, key_file))
    ]
    assert found[0] == found[2]
    assert found[0].patient != found[1].patient
    assert found[0].date != found[1].date


@pytest.mark.parametrize("kind", ["key", "text", "link", "folder"])
def test_the_table_of_files_replaces_nothing_else(kind, tmp_path, key_file):
    """Neither the key, without which no later import joins, nor any other file of the user."""
    save(tmp_path / "in/a.dcm", radiograph())
    target = tmp_path / "secret/target"
    match kind:
        case "key":
            target = key_file
        case "text":
            target.write_text("object,file\n")
        case "link":
            target.symlink_to(key_file)
        case "folder":
            target.mkdir()
    before = key_file.read_text()
    options = {"key_file": key_file, "file_table": target}
    with pytest.raises(CarinaError, match="file-table"):
        import_source("dicom", tmp_path / "in", tmp_path / "out", options=options, workers=1)
    assert key_file.read_text() == before
    assert kind != "text" or target.read_text() == "object,file\n"


def test_the_table_of_an_earlier_import_is_replaced(tmp_path, key_file):
    save(tmp_path / "in/a.dcm", radiograph())
    listed = tmp_path / "secret/files.csv"
    options = {"key_file": key_file, "file_table": listed}
    for name in ("b.dcm", "c.dcm"):
        (tmp_path / "in" / name).write_text("x")
        import_source("dicom", tmp_path / "in", tmp_path / f"out-{name}", options=options, workers=1)
    assert [line.split(",")[1] for line in listed.read_text().splitlines()] == [
        "file",
        "a.dcm",
        "b.dcm",
        "c.dcm",
    ]
    assert [path.name for path in listed.parent.iterdir() if path.name.startswith(".")] == []


def test_the_list_of_files_tells_which_object_is_which(tmp_path, key_file):
    save(tmp_path / "in/Erika/a.dcm", radiograph())
    (tmp_path / "in/notes.txt").write_text("x")
    listed = tmp_path / "secret/files.csv"
    imported = import_source(
        "dicom",
        tmp_path / "in",
        tmp_path / "out",
        options={"key_file": key_file, "file_table": listed},
        workers=1,
    )
    (found,) = imported.opened()
    assert listed.read_text().splitlines() == [
        "object,file,study,reason",
        f"1,Erika/a.dcm,{found.id},",
        "2,notes.txt,,the file is not a DICOM object in the format of PS3.10",
    ]
    assert stat.S_IMODE(listed.stat().st_mode) == 0o600

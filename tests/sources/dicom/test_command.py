"""`carina import dicom` from files that pydicom writes to studies: lists of files, display, orientation, series."""

import shutil

import numpy as np
import pytest
from pydicom.dataset import Dataset
from pydicom.fileset import FileSet
from pydicom.pixels import apply_modality_lut, apply_voi_lut
from pydicom.sequence import Sequence
from tests.sources.dicom import syntaxes
from typer.testing import CliRunner

from carina import check, open_studies
from carina.cli import app
from carina.sources.dicom.privacy import Pseudonyms
from carina.studies.pixels import display_image

NAMES = Pseudonyms(bytes.fromhex("5a" * 32))
"""Those of the key of the tests."""
VALUES = (np.arange(48 * 40, dtype=np.uint16).reshape(48, 40) * 2 + 100).astype(np.uint16)
"""12 bits, different in every pixel."""
UNWRITTEN = "DOE^JANE"


def make(number=1, *, study=1, patient="4711", values=VALUES, bits=12, **attributes):
    """An image that pydicom writes; numbered, in a study of a patient."""
    given = {
        "SOPInstanceUID": f"1.2.{study}.{number}",
        "StudyInstanceUID": f"1.2.{study}",
        "SeriesInstanceUID": f"1.2.{study}.77",
        "SeriesNumber": "1",
        "InstanceNumber": str(number),
        "PatientID": patient,
        "PatientName": UNWRITTEN,
        "StudyDate": f"2020010{study}",
        "StudyTime": "101500",
        "StudyID": "1",
        "AccessionNumber": "",
        "StudyDescription": "",
        "SeriesDescription": "",
    }
    return syntaxes.dataset(values, bits, **{**given, **attributes})


def window(centre="2048", width="4096", **attributes):
    return {"WindowCenter": centre, "WindowWidth": width, **attributes}


def save(folder, objects):
    folder.mkdir(parents=True, exist_ok=True)
    for number, made in enumerate(objects, start=1):
        (folder / f"{number:04d}.dcm").write_bytes(syntaxes.save(made))
    return folder


@pytest.fixture
def run(tmp_path, key_file):
    """Runs the command on a path; gives the study set and what was printed."""

    def run_(path, *options, exit_code=0):
        out = tmp_path / f"out {path.name}"
        fixed = (
            "--key-file",
            key_file,
            "--workers",
            "1",
            "--look-for-text",
            "never",
            "--implausible",
            "ignore",
        )
        result = CliRunner().invoke(app, ["import", "dicom", *map(str, (path, "-o", out, *fixed, *options))])
        assert result.exit_code == exit_code, result.output
        assert UNWRITTEN not in result.output
        if exit_code == 0:
            assert check(out).is_sound
        return open_studies(out) if exit_code == 0 else None, result.output

    return run_


def show(studies, image):
    """An imported image as it is displayed."""
    return display_image(np.asarray(studies.pixels(image)), image)


# ---- lists of files --------------------------------------------------------------------------------------------------


@pytest.fixture
def medium(tmp_path):
    """A DICOMDIR as pydicom writes it: two patients, three studies, four images in five series."""
    files = FileSet()
    for made in (
        make(1, study=1, **window()),
        make(2, study=1, SeriesInstanceUID="1.2.1.78", SeriesNumber="2", ViewPosition="LL", **window()),
        make(1, study=2, **window()),
        make(1, study=3, patient="4712", **window()),
    ):
        made.file_meta.MediaStorageSOPClassUID = made.SOPClassUID
        made.file_meta.MediaStorageSOPInstanceUID = made.SOPInstanceUID
        files.add(made)
    files.write(tmp_path / "cd")
    files._stage["t"].cleanup()
    return tmp_path / "cd"


def test_a_dicomdir_of_pydicom_is_followed(medium, run):
    (medium / "not listed.dcm").write_bytes(syntaxes.save(make(1, study=9, patient="4713", **window())))
    studies, printed = run(medium / "DICOMDIR")
    assert "3 studies of 3 records, 0 skipped" in printed
    found = {study.id: study for study in studies}
    first, second, third = (found[NAMES.name("study", f"1.2.{number}".encode())] for number in (1, 2, 3))
    assert [image.view for image in first.images] == ["PA", "lateral"]
    assert (first.later, second.prior) == (second.id, first.id)
    assert first.patient == second.patient != third.patient


def test_a_dicomdir_and_its_folder_and_an_archive_of_it_give_the_same_studies(medium, run, tmp_path):
    archive = shutil.make_archive(str(tmp_path / "archive"), "zip", medium)
    sets = [
        sorted((study.id, study.patient, study.date, len(study.images)) for study in run(path)[0])
        for path in (medium / "DICOMDIR", medium, tmp_path / archive)
    ]
    assert len(sets[0]) == 3
    assert sets[0] == sets[1] == sets[2]


def test_a_dicomdir_whose_files_are_in_lower_case_is_followed(medium, run, tmp_path):
    """Names in a DICOMDIR are in upper case; many systems show the files of a CD in lower case."""
    lower = tmp_path / "lower"
    for path in medium.rglob("*"):
        if path.is_file():
            name = path.relative_to(medium).as_posix().lower()
            (lower / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, lower / name)
    studies, printed = run(lower / "dicomdir")
    assert "3 studies of 3 records, 0 skipped" in printed
    assert len(list(studies)) == 3


# ---- display ---------------------------------------------------------------------------------------------------------


def table(first, bits, entries):
    item = Dataset()
    item.LUTDescriptor, item.LUTData = [len(entries), first, bits], entries
    for element in (item["LUTDescriptor"], item["LUTData"]):
        element.VR = "US"
    return item


STEEP = [0] * 1000 + np.linspace(0, 4095, 2000).astype(int).tolist() + [4095] * 1096
FALLING = STEEP[::-1]

DISPLAYS = {
    "several windows": window(["1500", "3000"], ["1200", "100"]),
    "several windows, the second without numbers": window(["1500", ""], ["1200", ""]),
    "more centres than widths": window(["1500", "3000"], "1200"),
    "table and window": window("10", "5", VOILUTSequence=Sequence([table(0, 12, STEEP)])),
    "several tables": {"VOILUTSequence": Sequence([table(0, 12, STEEP), table(0, 12, FALLING)])},
    "falling table": {"VOILUTSequence": Sequence([table(0, 12, FALLING)])},
    "no table in the sequence": window("1500", "1200", VOILUTSequence=Sequence([])),
    "sigmoid": window("1500", "1200", VOILUTFunction="SIGMOID"),
    "sigmoid, several windows": window(["1500", "3000"], ["1200", "100"], VOILUTFunction="SIGMOID"),
    "rescaled table": {
        "RescaleSlope": "0.5", "RescaleIntercept": "20", "RescaleType": "US",
        "VOILUTSequence": Sequence([table(0, 12, STEEP)]),
    },
    "rescaled sigmoid": window(
        "1000", "900", VOILUTFunction="SIGMOID", RescaleSlope="0.5", RescaleIntercept="20", RescaleType="US"
    ),
}  # fmt: skip


def display_by_pydicom(made):
    """Of the first table, else of the first window; from 0 to 255."""
    values = apply_modality_lut(made.pixel_array, made)
    if not made.get("VOILUTSequence"):
        made.WindowCenter, made.WindowWidth = (
            next(iter(value)) if not isinstance(value, (str, float)) else value
            for value in (made.WindowCenter, made.WindowWidth)
        )
    low, high = 0.0, 4095.0
    if not made.get("VOILUTSequence"):
        slope, intercept = float(made.get("RescaleSlope", 1)), float(made.get("RescaleIntercept", 0))
        low, high = intercept, slope * 4095 + intercept
    else:
        values = values.astype(np.int64)
    grey = (apply_voi_lut(values, made) - low) * 255 / (high - low)
    return 255 - grey if made.PhotometricInterpretation == "MONOCHROME1" else grey


@pytest.mark.parametrize("photometric", ["MONOCHROME1", "MONOCHROME2"])
@pytest.mark.parametrize("display", DISPLAYS)
def test_the_study_set_displays_what_pydicom_displays(display, photometric, run, tmp_path):
    made = make(PhotometricInterpretation=photometric, **DISPLAYS[display])
    studies, printed = run(save(tmp_path / "in", [made]))
    assert "unusable window" not in printed
    (study,) = studies
    ours, theirs = show(studies, study.images[0]), display_by_pydicom(made)
    assert np.abs(ours - theirs).max() <= 0.5 + 255 / 4096
    assert ours.max() - ours.min() > 100


def test_padding_does_not_widen_the_range_of_an_image_without_window(run, tmp_path):
    """Values of 100 to 3938, and some of 4095, which the header calls padding."""
    values = VALUES.copy()
    values[5:9, :3] = 4095
    plain, padded = make(), make(values=values, PixelPaddingValue=4095)
    padded["PixelPaddingValue"].VR = "US"
    windows = []
    for name, made in (("plain", plain), ("padded", padded)):
        studies, printed = run(save(tmp_path / name, [made]))
        assert "no window" in printed
        windows.append(next(iter(studies)).images[0].window)
    assert windows[0] == windows[1]


# ---- orientation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("view", "orientation", "turn"),
    [
        ("PA", ["L", "F"], lambda shown: shown),
        ("PA", ["R", "F"], lambda shown: shown[:, ::-1]),
        ("AP", ["R", "F"], lambda shown: shown[:, ::-1]),
        ("AP", ["L", "H"], lambda shown: shown[::-1]),
        ("PA", ["R", "H"], lambda shown: shown[::-1, ::-1]),
        ("PA", ["LP", "FA"], lambda shown: shown),
        ("LL", ["A", "F"], lambda shown: shown),
        ("LL", ["P", "F"], lambda shown: shown),
        ("RL", ["P", "H"], lambda shown: shown[::-1]),
        ("PA", None, lambda shown: shown),
        ("PA", ["", ""], lambda shown: shown),
    ],
)
def test_images_are_displayed_with_the_right_side_on_the_left(view, orientation, turn, run, tmp_path):
    for photometric in ("MONOCHROME1", "MONOCHROME2"):
        made = make(
            ViewPosition=view,
            PatientOrientation=orientation,
            PhotometricInterpretation=photometric,
            **window(),
        )
        studies, _ = run(save(tmp_path / photometric, [made]))
        (study,) = studies
        assert np.abs(show(studies, study.images[0]) - turn(display_by_pydicom(made))).max() <= 0.51


@pytest.mark.parametrize("orientation", [["F", "L"], ["H", "R"], ["F", "A"]])
def test_an_image_on_its_side_is_skipped_and_counted(orientation, run, tmp_path):
    folder = save(tmp_path / "in", [make(PatientOrientation=orientation, **window())])
    _, printed = run(folder, exit_code=1)
    assert "object 1: the patient lies on the side in the image" in printed


@pytest.mark.parametrize("laterality", ["L", "R", "U", "B", None])
def test_the_laterality_of_the_image_turns_nothing(laterality, run, tmp_path):
    made = make(ImageLaterality=laterality, **window())
    studies, _ = run(save(tmp_path / "in", [made]))
    assert np.abs(show(studies, next(iter(studies)).images[0]) - display_by_pydicom(made)).max() <= 0.51


# ---- series ----------------------------------------------------------------------------------------------------------


def test_images_of_several_series_are_one_study_in_the_order_of_their_numbers(run, tmp_path):
    """Files in the reverse order; the numbers of one image are missing, so that it comes first."""
    numbers = [(2, 1, "AP"), (1, 10, "PA"), (1, 2, "LL"), (None, None, "RL")]
    objects = [
        make(
            100 - place,
            ViewPosition=view,
            SeriesInstanceUID=f"1.2.1.{900 + (series or 0)}",
            SeriesNumber=None if series is None else str(series),
            InstanceNumber=None if instance is None else str(instance),
            **window(),
        )
        for place, (series, instance, view) in enumerate(numbers)
    ]
    studies, printed = run(save(tmp_path / "in", objects))
    assert "1 study of 1 record, 0 skipped" in printed
    (study,) = studies
    assert [image.view for image in study.images] == ["lateral", "lateral", "PA", "AP"]
    assert len({image.key for image in study.images}) == 4


def test_one_damaged_image_of_a_series_leaves_the_others(run, tmp_path):
    folder = save(tmp_path / "in", [make(number, **window()) for number in (1, 2, 3)])
    damaged = folder / "0002.dcm"
    damaged.write_bytes(damaged.read_bytes()[:-600])
    studies, printed = run(folder)
    assert "object 2: " in printed
    assert len(next(iter(studies)).images) == 2

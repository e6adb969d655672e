"""Medical-Diff-VQA: single studies and pairs, and which of a pair is the later one."""

import gzip

import pytest
from tests.sources.question_sets import OTHER, PATIENT, STUDY, read_cases, run_through, write_mimic_image

from carina.sources import SOURCES
from carina.sources._record import SourceError

THIRD, NEIGHBOUR = "50000003", "50000009"
IMAGES = {STUDY: "aa-1", OTHER: "bb-2", THIRD: "cc-3"}
CHANGED = "the main image has an additional finding of pleural effusion than the reference image."
ROWS = [
    f"{STUDY},{PATIENT},{OTHER},presence,is there pleural effusion?,yes,test",
    f"{STUDY},{PATIENT},{OTHER},abnormality,what abnormalities are seen?,\"edema, pleural effusion\",test",
    f"{STUDY},{PATIENT},{OTHER},view,which view is this image taken?,PA view,test",
    f"{STUDY},{PATIENT},{OTHER},difference,what has changed?,{CHANGED},test",
    f"{STUDY},{PATIENT},{THIRD},difference,what has changed?,nothing has changed.,test",
    f"{STUDY},{PATIENT},{OTHER},level,what level is the edema?,,test",
    f"{NEIGHBOUR},{PATIENT},{OTHER},presence,is there edema?,no,test",
    f"{STUDY},10000002,{OTHER},presence,is there edema?,no,test",
    f"{STUDY},{PATIENT},{OTHER},presence,is there edema?,no,whatever",
    f"{THIRD},{PATIENT},{OTHER},presence,is there edema?,no,train",
    f"{OTHER},{PATIENT},{STUDY},presence,is there edema?,no,val",
]  # fmt: skip


def make_folder(tmp_path):
    root = tmp_path / "diff"
    root.mkdir()
    header = "study_id,subject_id,ref_id,question_type,question,answer,split"
    numbered = [f"{number},{row}" for number, row in enumerate(ROWS)]
    (root / "mimic_pair_questions.csv").write_text("\n".join([f",{header}", *numbered, ""]))
    studies = [
        f"{PATIENT},{STUDY},1.0,,aa-1,postero-anterior,test,21800506,1",
        f"{PATIENT},{OTHER},,0.0,bb-2,antero-posterior,test,21800506,2",
        f"{PATIENT},{THIRD},,,cc-3,antero-posterior,test,21800101,3",
    ]
    columns = "subject_id,study_id,Atelectasis,Edema,dicom_id,view,split,study_date,study_order"
    (root / "mimic_all.csv").write_text("\n".join([columns, *studies, ""]))
    for study, image in IMAGES.items():
        write_mimic_image(tmp_path / "mimic", study, image)
    return root


folder = pytest.fixture(make_folder, name="folder")


def make_metadata(tmp_path):
    """Times have lost their leading zeros: 80556.875 is eight in the morning, before 213000."""
    rows = [
        "dicom_id,subject_id,study_id,ViewPosition,StudyDate,StudyTime",
        f"aa-1,{PATIENT},{STUDY},PA,21800506,80556.875",
        f"aa-2,{PATIENT},{STUDY},LATERAL,21800506,80601.5",
        f"bb-2,{PATIENT},{OTHER},AP,21800506,213000",
        f"cc-3,{PATIENT},{THIRD},AP,21800101,120000.0",
    ]
    path = tmp_path / "mimic-cxr-2.0.0-metadata.csv.gz"
    path.write_bytes(gzip.compress("\n".join(rows).encode()))
    return path


metadata = pytest.fixture(make_metadata, name="metadata")


def test_rows_become_cases(folder, metadata, tmp_path):
    cases, _ = read_cases(
        "medical-diff-vqa",
        folder,
        tmp_path / "bench",
        images=tmp_path / "mimic",
        options={"metadata": metadata},
    )
    asked = {
        name: (
            case.target,
            case.steps[0].format,
            case.steps[0].key.label or case.steps[0].key.text,
            case.path,
        )
        for name, case in cases.items()
    }
    assert asked == {
        "medical-diff-vqa-1": ("presence", "yes_no", "yes", None),
        "medical-diff-vqa-2": ("abnormality", "open", "edema, pleural effusion", None),
        "medical-diff-vqa-3": ("view", "open", "PA view", None),
        "medical-diff-vqa-4": ("difference", "open", CHANGED, "reference later"),
        "medical-diff-vqa-5": ("difference", "open", "nothing has changed.", "reference earlier"),
    }
    single, pair = cases["medical-diff-vqa-1"], cases["medical-diff-vqa-4"]
    assert (single.patient, single.study, single.reference_study, single.split) == (
        PATIENT,
        STUDY,
        None,
        "test",
    )
    assert [(image.key, image.role, image.view) for image in single.images] == [
        (f"files/p10/p{PATIENT}/s{STUDY}/aa-1.jpg", "current", "PA")
    ]
    assert (pair.study, pair.reference_study) == (STUDY, OTHER)
    assert [(image.key.rpartition("/")[2], image.role, image.view) for image in pair.images] == [
        ("aa-1.jpg", "current", "PA"),
        ("bb-2.jpg", "reference", "AP"),
    ]


def test_without_times_two_studies_of_one_day_have_no_order(folder, tmp_path):
    cases, _ = read_cases("medical-diff-vqa", folder, tmp_path / "bench", images=tmp_path / "mimic")
    assert cases["medical-diff-vqa-4"].path == "order unknown"
    assert cases["medical-diff-vqa-5"].path == "reference earlier"


def test_what_is_wrong_is_counted_with_its_reason(folder, metadata, tmp_path):
    options = {"metadata": metadata, "later_reference": "skip"}
    _, imported = read_cases(
        "medical-diff-vqa", folder, tmp_path / "bench", images=tmp_path / "mimic", options=options
    )
    assert [(item.place.rpartition(": ")[2], item.field, item.kind) for item in imported.skipped] == [
        ("row 5", "ref_id", "later reference"),
        ("row 7", "answer", "blank answer"),
        ("row 8", "study_id", "not joined"),
        ("row 9", "study_id", "not joined"),
        ("row 10", "split", "split"),
    ]


def test_a_date_of_another_form_is_refused(folder, tmp_path):
    table = folder / "mimic_all.csv"
    table.write_text(table.read_text().replace("21800101", "May 2180"))
    with pytest.raises(SourceError, match=r"row 4: study_date: is 'May 2180', expected yyyymmdd"):
        list(SOURCES["medical-diff-vqa"].read(folder, images=tmp_path / "mimic"))


def test_splits_can_be_chosen(folder, tmp_path):
    cases, _ = read_cases(
        "medical-diff-vqa", folder, tmp_path / "b", images=tmp_path / "mimic", options={"split": "val"}
    )
    assert {name: (case.study, case.split) for name, case in cases.items()} == {
        "medical-diff-vqa-11": (OTHER, "val")
    }


def test_the_oracle_is_right_through_the_command_line(folder, metadata, tmp_path):
    rows = run_through(
        "medical-diff-vqa", folder, tmp_path, "--images", tmp_path / "mimic", "--metadata", metadata
    )
    assert rows["oracle"]["score"].to_list() == [1.0] * 5

"""MS-CXR-T in its published layout, with invented ids."""

import pytest
from tests.sources.files import defects, read_studies, skips, write_image, write_text

from carina.sources import SourceError, import_source, import_studies
from carina.trek import build_trek

FILE = "MS_CXR_T_temporal_image_classification_v1.0.0.csv"
FINDINGS = ("consolidation", "edema", "pleural_effusion", "pneumonia", "pneumothorax")
HEADER = ",".join(
    ["dicom_id", "previous_dicom_id", "subject_id", "study_id", "previous_study_id",
     *(f"{name}_{what}" for name in FINDINGS for what in ("progression", "label_quality"))]
)  # fmt: skip


def row(now, before, *, patient="19000001", **labels):
    """A row; images are named as "study/image", labels as finding="trend quality"."""
    (study, image), (previous, old) = now.split("/"), before.split("/")
    folder = f"p19/p{patient}"
    cells = [cell for name in FINDINGS for cell in labels.get(name, " ").split(" ")]
    return ",".join(
        [f"{folder}/s{study}/{image}", f"{folder}/s{previous}/{old}", patient, study, previous, *cells]
    )


def make_folder(tmp_path):
    path = tmp_path / "ms-cxr-t"
    write_text(
        path / FILE,
        HEADER,
        row(
            "59000002/bbbb-1", "59000001/aaaa-1", edema="worsening one_expert",
            pleural_effusion="stable multiple_experts", pneumothorax="improving multiple_experts",
        ),
        row("59000003/cccc-1", "59000002/bbbb-1", pneumothorax="stable one_expert", edema="improving disagreement"),
        row("59000012/dddd-2", "59000011/dddd-1", patient="19000002", pneumonia="worsening one_expert"),
    )  # fmt: skip
    write_text(path / "MS_CXR_T_temporal_sentence_similarity_v1.0.0.csv", "not,read")
    return path


folder = pytest.fixture(make_folder, name="folder")


def test_every_field_of_the_studies(folder, tmp_path):
    studies, imported = read_studies("ms-cxr-t", folder, tmp_path / "out", missing_images="keep")
    assert [(one.id, one.patient, one.order, one.prior, one.later) for one in studies.values()] == [
        ("s59000001", "p19000001", 0, None, "s59000002"),
        ("s59000002", "p19000001", 1, "s59000001", "s59000003"),
        ("s59000003", "p19000001", 2, "s59000002", None),
        ("s59000011", "p19000002", 0, None, "s59000012"),
        ("s59000012", "p19000002", 1, "s59000011", None),
    ]
    first, second, third, other, last = studies.values()
    # What is stable or improving was present before; what is worsening may be new.
    assert {finding.label or finding.name: finding.certainty for finding in first.findings} == {
        "pleural_effusion": "present",
        "pneumothorax": "present",
    }
    found = {finding.name: (finding.label, finding.certainty, finding.trend) for finding in second.findings}
    assert found == {
        "edema": (None, "present", "worse"),
        "pleural effusion": ("pleural_effusion", "present", "unchanged"),
        # Improving alone would leave open whether it has resolved; the next row says that it has not.
        "pneumothorax": (None, "present", "improved"),
    }
    # Experts disagreed about the edema.
    assert [(one.name, one.certainty, one.trend) for one in third.findings] == [
        ("pneumothorax", "present", "unchanged")
    ]
    assert (other.findings, [one.trend for one in last.findings]) == ((), ["worse"])
    (image,) = second.images
    assert (image.key, image.view, image.width) == (
        "files/p19/p19000001/s59000002/bbbb-1.jpg", "unknown", 0,
    )  # fmt: skip
    # A blank label is not absent.
    assert {(one.assessed.findings, one.assessed.text, one.split) for one in studies.values()} == {
        ("unknown", False, None)
    }
    assert defects(imported) == {"quality": 1}
    assert [
        (info.name, info.licence[:9], info.citation[:8]) for info in imported.opened().manifest.sources
    ] == [("ms-cxr-t", "PhysioNet", "Bannur S")]


@pytest.mark.parametrize(
    ("quality", "trends"),
    [
        ("any", {"pneumothorax": "unchanged", "edema": "improved"}),
        ("agreed", {"pneumothorax": "unchanged"}),
        ("several-experts", {}),
    ],
)
def test_label_quality(folder, tmp_path, quality, trends):
    studies, _ = read_studies(
        "ms-cxr-t", folder / FILE, tmp_path / "out", missing_images="keep", label_quality=quality
    )
    found = studies["s59000003"].findings
    assert {one.name: one.trend for one in found} == trends
    # Whether an improving finding is still there is not known.
    assert [one.certainty for one in found if one.trend == "improved"] == ["uncertain"] * (quality == "any")


def test_image_files_give_the_sizes(folder, tmp_path):
    for study, image in (("s59000011", "dddd-1"), ("s59000012", "dddd-2")):
        write_image(tmp_path / f"mimic/files/p19/p19000002/{study}/{image}.jpg", 60, 50)
    studies, imported = read_studies("ms-cxr-t", folder, tmp_path / "out", images=tmp_path / "mimic")
    assert [(one.id, one.images[0].width, one.images[0].height) for one in studies.values()] == [
        ("s59000011", 60, 50),
        ("s59000012", 60, 50),
    ]
    assert [kind for _, kind, _ in skips(imported)] == ["image missing"] * 3


def test_rows_that_cannot_be_used(folder, tmp_path):
    write_text(
        folder / FILE,
        HEADER,
        row("59000002/bbbb-1", "59000001/aaaa-1", edema="perhaps one_expert"),
        row("59000002/bbbb-1", "59000001/aaaa-1", edema="stable nobody"),
        row("59000002/bbbb-1", "59000002/aaaa-1"),
        row("59000002/bbbb-1", "59000001/aaaa-1").replace("s59000002", "s59000009"),
        row("59000002/bbbb-1", "59000001/aaaa-1", edema="stable one_expert"),
        row(
            "59000002/bbbb-2", "59000001/aaaa-1", edema="worsening one_expert", pneumonia="stable one_expert"
        ),
        row("59000002/bbbb-1", "59000003/cccc-1", pneumothorax="stable one_expert"),
        row("59000002/bbbb-1", "59000004/cccc-1", patient="19000003"),
    )
    studies, imported = read_studies("ms-cxr-t", folder, tmp_path / "out", missing_images="keep")
    assert [(kind, message.removeprefix(f"{FILE}: ")) for _, kind, message in skips(imported)] == [
        (
            "value",
            "row 2: edema_progression: is 'perhaps', expected one of '', 'improving', 'stable', 'worsening'",
        ),
        (
            "value",
            "row 3: edema_label_quality: is 'nobody', expected one of '', 'one_expert', 'multiple_experts', "
            "'disagreement'",
        ),
        ("id", "row 4: previous_study_id: is s59000002, the study itself"),
        ("id", "bbbb-1', but the row names p19000001 and s59000002"),
        ("id", "row 9: subject_id: is p19000003, but s59000002 is of p19000001"),
    ]
    # Two rows give different trends of the edema, and a third compares with another study.
    assert [(one.name, one.trend) for one in studies["s59000002"].findings] == [("pneumonia", "unchanged")]
    assert defects(imported) == {"second prior": 1, "second trend": 1}
    # Two studies are called its prior: no order of the three is known.
    assert {one.order for one in studies.values()} == {None}
    with pytest.raises(SourceError, match=f"{FILE}: missing; put {FILE} of MS-CXR-T there"):
        import_studies("ms-cxr-t", tmp_path / "empty", tmp_path / "none", workers=1)


def test_trends_join_the_studies_of_mimic(folder, tmp_path):
    mimic = tmp_path / "mimic"
    write_text(
        mimic / "mimic-cxr-2.0.0-metadata.csv",
        "dicom_id,subject_id,study_id,ViewPosition,Rows,Columns,StudyDate,StudyTime",
        "aaaa-1,19000001,59000001,PA,50,60,21800101,90000",
        "bbbb-1,19000001,59000002,PA,50,60,21800102,90000",
        "eeee-1,19000001,59000005,PA,50,60,21800103,90000",
        "cccc-1,19000001,59000003,PA,50,60,21800104,90000",
    )
    write_text(
        mimic / "mimic-cxr-2.0.0-chexpert.csv",
        "subject_id,study_id,Pleural Effusion,Edema,Pneumothorax",
        "19000001,59000002,1.0,0.0,0.0",
        "19000001,59000003,,1.0,1.0",
    )
    imported = import_source("mimic-cxr-jpg", mimic, tmp_path / "out", joins={"ms-cxr-t": folder}, workers=1)
    studies = {study.id: study for study in imported.opened()}
    assert {one.name: (one.certainty, one.trend) for one in studies["s59000002"].findings} == {
        "pleural effusion": ("present", "unchanged"),
        # An expert counts more than a label that was mined from the text.
        "edema": ("present", "worse"),
        # The mined label says that it is absent, which fits an improvement, but then it has no trend.
        "pneumothorax": ("absent", None),
    }
    # MS-CXR-T compares with s59000002, but s59000005 is the prior of this study: the trend is left out.
    assert studies["s59000003"].prior == "s59000005"
    assert {one.name: (one.certainty, one.trend) for one in studies["s59000003"].findings} == {
        "edema": ("present", None),
        "pneumothorax": ("present", None),
    }
    assert imported.counts.joins["ms-cxr-t"].joined == 2
    assert defects(imported) == {
        "no label": 2, "ms-cxr-t: quality": 1, "ms-cxr-t: conflict": 1, "ms-cxr-t: trend": 2,
    }  # fmt: skip


def test_trek_asks_for_the_progression(folder, tmp_path):
    for study, image in (("s59000001", "aaaa-1"), ("s59000002", "bbbb-1"), ("s59000003", "cccc-1")):
        write_image(folder / f"files/p19/p19000001/{study}/{image}.jpg", 60, 50)
    with pytest.warns(UserWarning, match="2 records skipped"):
        studies = import_studies("ms-cxr-t", folder, tmp_path / "out", workers=1)
    bench = build_trek(studies, tmp_path / "bench", workers=1)
    case = next(case for case in bench if case.study == "s59000002")
    assert 5 in {step.stage for step in case.steps}, "stage 5 is the comparison"

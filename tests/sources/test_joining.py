"""Sets that are joined while another is imported: MS-CXR and CheXmask to MIMIC-CXR-JPG, with invented ids."""

import json
import zipfile

import numpy as np
import pytest
from tests.sources.files import boxes, defect_rows, defects, write_image, write_text
from typer.testing import CliRunner

from carina.cli import app
from carina.sources import _writing, import_source, import_studies
from carina.store.errors import CarinaError
from carina.studies import certainty_of, open_studies, write_png

METADATA = "dicom_id,subject_id,study_id,ViewPosition,Rows,Columns,StudyDate,StudyTime"
PHRASES = "dicom_id,category_name,label_text,path,x,y,w,h,image_width,image_height,split"
WHO = "radiologists of MS-CXR"


def make_mimic(tmp_path):
    path = tmp_path / "mimic"
    write_text(
        path / "mimic-cxr-2.0.0-metadata.csv",
        METADATA,
        "aaaa-1,19000001,59000001,PA,50,60,21800101,90000",
        "bbbb-1,19000002,59000002,PA,50,60,21800101,90000",
    )
    write_text(
        path / "mimic-cxr-2.0.0-split.csv",
        "dicom_id,study_id,subject_id,split",
        "aaaa-1,59000001,19000001,train",
        "bbbb-1,59000002,19000002,test",
    )
    write_text(
        path / "mimic-cxr-2.0.0-chexpert.csv",
        "subject_id,study_id,Pleural Effusion,Pneumothorax",
        "19000001,59000001,1.0,0.0",
        "19000002,59000002,,",
    )
    with zipfile.ZipFile(path / "mimic-cxr-reports.zip", "w") as archive:
        text = "FINDINGS: There is a Small\n left effusion. Another opacity.\n"
        archive.writestr("files/p19/p19000001/s59000001.txt", text)
    return path


mimic = pytest.fixture(make_mimic, name="mimic")


def make_phrases(tmp_path):
    path = "files/p19/p19000001/s59000001/aaaa-1.jpg"
    return write_text(
        tmp_path / "MS_CXR_Local_Alignment_v1.1.0.csv",
        PHRASES,
        f"aaaa-1,Pleural Effusion,small left effusion,{path},1,2,3,4,60,50,test",
        f"aaaa-1,Pneumothorax,a pneumothorax,{path},5,6,7,8,60,50,test",
        f"aaaa-1,Edema,another opacity,{path},5,6,7,8,61,50,test",
        "zzzz-1,Edema,edema,,5,6,7,8,60,50,val",
        "zzzz-2,Edema,edema,,x,6,7,8,60,50,val",
    )


phrases = pytest.fixture(make_phrases, name="phrases")


def test_phrases_and_boxes_join_labels_and_report(mimic, phrases, tmp_path):
    imported = import_source("mimic-cxr-jpg", mimic, tmp_path / "out", joins={"ms-cxr": phrases}, workers=1)
    study, other = imported.opened()
    # The split of MS-CXR counts for its patients, else that of MIMIC-CXR-JPG, by which the first is of "train".
    assert (study.split, other.split) == ("test", "test")
    found = {finding.name: (finding.id, finding.certainty, boxes(finding)) for finding in study.findings}
    assert found == {
        # The box joins the label of its name.
        "pleural effusion": ("f2", "present", [(WHO, "box", (1, 2, 3, 4))]),
        # What was drawn counts more than what was mined from the text.
        "pneumothorax": ("f1", "present", [(WHO, "box", (5, 6, 7, 8))]),
        # Drawn on an image of another size.
        "edema": ("f3", "present", []),
    }
    # The phrase is found in the report, whatever its capitals and line breaks; one is not there.
    assert [
        (study.report.quote(one), [state.about for state in one.states]) for one in study.report.sentences
    ] == [
        ("Small\n left effusion", ["f2"]),
        ("Another opacity", ["f3"]),
    ]
    assert other.findings == ()
    assert defects(imported) == {
        "no report": 1,
        "ms-cxr: conflict": 1,
        "ms-cxr: split": 1,
        "ms-cxr: phrase": 1,
        "ms-cxr: size": 1,
    }


@pytest.mark.parametrize("is_folder", [True, False])
def test_defects_name_the_row_of_the_joined_table(mimic, phrases, tmp_path, is_folder):
    joins = {"ms-cxr": phrases.parent if is_folder else phrases}
    imported = import_source("mimic-cxr-jpg", mimic, tmp_path / "out", joins=joins, workers=1)
    joined = {row[0]: row[2:] for row in defect_rows(imported) if row[0].startswith("ms-cxr: ")}
    assert joined == {
        "ms-cxr: split": (str(joins["ms-cxr"]), "2"),
        "ms-cxr: conflict": (str(phrases), "3"),
        "ms-cxr: phrase": (str(phrases), "3"),
        "ms-cxr: size": (str(phrases), "4"),
    }


def test_a_patient_is_in_one_split_after_a_join(mimic, phrases, tmp_path):
    write_text(
        mimic / "mimic-cxr-2.0.0-metadata.csv",
        METADATA,
        "aaaa-1,19000001,59000001,PA,50,60,21800101,90000",
        "aaaa-2,19000001,59000003,PA,50,60,21800102,90000",
        "bbbb-1,19000002,59000002,PA,50,60,21800101,90000",
    )
    write_text(
        mimic / "mimic-cxr-2.0.0-split.csv",
        "dicom_id,study_id,subject_id,split",
        "aaaa-1,59000001,19000001,train",
        "aaaa-2,59000003,19000001,train",
        "bbbb-1,59000002,19000002,val",
    )
    imported = import_source("mimic-cxr-jpg", mimic, tmp_path / "out", joins={"ms-cxr": phrases}, workers=1)
    splits = {study.id: study.split for study in imported.opened()}
    # MS-CXR has phrases of s59000001 alone; s59000003 is of the same patient.
    assert splits == {"s59000001": "test", "s59000003": "test", "s59000002": "val"}
    assert defects(imported)["ms-cxr: split"] == 2


def test_a_patient_in_two_splits_of_the_joined_set_keeps_the_split_of_the_other(mimic, tmp_path):
    path = "files/p19/p19000001/s59000001/aaaa-1.jpg"
    rows = [f"aaaa-1,Edema,edema,{path},1,2,3,4,60,50,{split}" for split in ("test", "val")]
    torn = write_text(tmp_path / "MS_CXR_Local_Alignment_v1.1.0.csv", PHRASES, *rows)
    imported = import_source("mimic-cxr-jpg", mimic, tmp_path / "out", joins={"ms-cxr": torn}, workers=1)
    assert {study.id: study.split for study in imported.opened()}["s59000001"] == "train"


def test_what_did_not_join_is_counted(mimic, phrases, tmp_path):
    imported = import_source("mimic-cxr-jpg", mimic, tmp_path / "out", joins={"ms-cxr": phrases}, workers=1)
    count = imported.counts.joins["ms-cxr"]
    assert (count.rows, count.joined, count.left_out) == (4, 3, {"number": 1})
    assert (count.images, count.images_without) == (1, 1)


def test_both_licences_and_checksums_are_recorded(mimic, phrases, tmp_path):
    studies = import_studies("mimic-cxr-jpg", mimic, tmp_path / "out", joins={"ms-cxr": phrases}, workers=1)
    infos = {info.name: info for info in studies.manifest.sources}
    assert infos.keys() == {"mimic-cxr-jpg", "ms-cxr"}
    assert "Boecking" in infos["ms-cxr"].citation
    assert len(studies.manifest.options["with"]["ms-cxr"]["file"]) == 64


def test_workers_give_the_same_studies(mimic, phrases, tmp_path):
    one = import_studies("mimic-cxr-jpg", mimic, tmp_path / "one", joins={"ms-cxr": phrases}, workers=1)
    two = import_studies("mimic-cxr-jpg", mimic, tmp_path / "two", joins={"ms-cxr": phrases}, workers=2)
    assert list(one) == list(two)


def test_an_interrupted_import_counts_the_same(mimic, phrases, tmp_path, monkeypatch):
    monkeypatch.setattr(_writing, "PART_SIZE", 1)
    arguments = {"joins": {"ms-cxr": phrases}, "workers": 1}
    whole = import_source("mimic-cxr-jpg", mimic, tmp_path / "whole", **arguments)
    write_note = _writing._write_note

    def stop(out, index, note):
        write_note(out, index, note)
        raise KeyboardInterrupt

    monkeypatch.setattr(_writing, "_write_note", stop)
    with pytest.raises(KeyboardInterrupt):
        import_source("mimic-cxr-jpg", mimic, tmp_path / "out", **arguments)
    monkeypatch.setattr(_writing, "_write_note", write_note)
    resumed = import_source("mimic-cxr-jpg", mimic, tmp_path / "out", **arguments)
    assert resumed.counts == whole.counts
    assert list(resumed.opened()) == list(whole.opened())


def test_sources_that_cannot_be_joined_are_refused(mimic, tmp_path):
    with pytest.raises(CarinaError, match="source nih cannot be joined"):
        import_studies("mimic-cxr-jpg", mimic, tmp_path / "out", joins={"nih": mimic}, workers=1)
    with pytest.raises(CarinaError, match="swift-chat carries questions: nothing can be joined"):
        import_source("swift-chat", mimic, tmp_path / "out", joins={"ms-cxr": mimic}, workers=1)


def test_on_the_command_line(mimic, phrases, tmp_path):
    command = ["import", "mimic-cxr-jpg", str(mimic), "-o", str(tmp_path / "out"), "--workers", "1"]
    result = CliRunner().invoke(app, [*command, "--with", f"ms-cxr={phrases}"])
    assert result.exit_code == 0, result.output
    assert "ms-cxr: 3 rows of 4 joined to 1 image, 1 image without, 1 left out (number)" in result.output
    assert len(list(open_studies(tmp_path / "out"))) == 2
    printed = CliRunner().invoke(app, [*command, "--with", f"ms-cxr={phrases}", "--json"])
    assert json.loads(printed.stdout)["joins"]["ms-cxr"]["joined"] == 3
    wrong = CliRunner().invoke(app, [*command, "--with", "ms-cxr"])
    assert wrong.exit_code != 0


def test_images_of_chexpert_are_joined_by_their_path(tmp_path):
    """Every image is called view1_frontal: only the path tells them apart. A row without a height is counted."""
    labels = ["Path,Sex,Age,Frontal/Lateral,AP/PA,Edema"]
    masks = ["Path,Dice RCA (Mean),Dice RCA (Max),Landmarks,Left Lung,Right Lung,Heart,Height,Width"]
    for number, height in ((1, 20), (2, "x")):
        name = f"train/patient9000{number}/study1/view1_frontal.jpg"
        write_image(tmp_path / "chexpert" / name, 30, 20)
        labels.append(f"CheXpert-v1.0-small/{name},Female,50,Frontal,AP,1.0")
        masks.append(f'CheXpert-v1.0/{name},0.9,0.9,"1,2",{20 + number} 2,{number} 2,41 3,{height},30')
    write_text(tmp_path / "chexpert/train.csv", *labels)
    table = write_text(tmp_path / "CheXpert.csv", *masks)
    joins = {"chexmask": table}
    imported = import_source("chexpert", tmp_path / "chexpert", tmp_path / "out", joins=joins, workers=1)
    first, second = imported.opened()
    assert {one.name: one.region.bbox for one in first.anatomy} == {
        "right lung": (0, 0, 2, 1),
        "left lung": (20, 0, 2, 1),
        "heart": (10, 1, 3, 1),
    }
    assert second.anatomy == ()
    assert defects(imported) == {"chexmask: row": 1}


def test_a_file_that_joins_nothing_shows_the_keys_of_both_sides(mimic, tmp_path):
    path = "files/p19/p19000001/s59000001/zzzz-1.jpg"
    row = f"zzzz-1,Edema,edema,{path},1,2,3,4,60,50,test"
    other = write_text(tmp_path / "MS_CXR_Local_Alignment_v1.1.0.csv", PHRASES, row)
    command = ["import", "mimic-cxr-jpg", str(mimic), "-o", str(tmp_path / "out"), "--workers", "1"]
    result = CliRunner().invoke(app, [*command, "--with", f"ms-cxr={other}"])
    (line,) = (line for line in result.stderr.splitlines() if "nothing of ms-cxr was joined" in line)
    assert "zzzz-1" in line
    assert "aaaa-1" in line


def _join(path, out, joins):
    imported = import_source("mimic-cxr-jpg", path, out, joins=joins, workers=1)
    return {study.id: study for study in open_studies(out)}, imported


def test_masks_and_labels_of_mimic_ils_join(mimic, tmp_path):
    """Labels that another program mined, and what it calls absent, count more than those of MIMIC-ILS."""
    write_image(mimic / "files/p19/p19000001/s59000001/aaaa-1.jpg", 60, 50)
    ils = tmp_path / "ils"
    mask = np.zeros((50, 60), np.uint8)
    mask[10:30, 5:25] = 255
    (ils / "lesion_mask").mkdir(parents=True)
    write_png(ils / "lesion_mask/opacity.png", mask)
    opacity = {
        "instruction": "Segment the opacity.", "type": "global", "target": "opacity", "location": [],
        "seg_mask_path": "opacity.png",
    }  # fmt: skip
    pairs = {
        "positive_pairs": [opacity, {**opacity, "target": "effusion", "seg_mask_path": None}],
        "negative_pairs": [{**opacity, "target": "edema", "seg_mask_path": None}],
    }
    record = {"subject_id": "19000001", "dicom_id": "aaaa-1", "instruction_answer_pairs": pairs}
    other = {**record, "dicom_id": "zzzz-1", "subject_id": "19000009"}
    content = json.dumps({"test": {"59000009": other, "59000001": record, "59000002": {}}})
    (ils / "mimic_ils_instruction_answer.json").write_bytes(b"\xef\xbb\xbf" + content.encode())
    studies, imported = _join(mimic, tmp_path / "out", {"mimic-ils": ils})
    study = studies["s59000001"]
    found = {one.name: (one.certainty, len(one.annotations)) for one in study.findings}
    assert found == {
        "pleural effusion": ("present", 0),
        "pneumothorax": ("absent", 0),
        "lung opacity": ("present", 1),
        "edema": ("absent", 0),
    }
    (drawn,) = next(one for one in study.findings if one.name == "lung opacity").annotations
    assert (drawn.region.bbox, drawn.automatic, drawn.instruction) == (
        (5, 10, 20, 20),
        True,
        "Segment the opacity.",
    )
    assert set(study.assessed.by_program) == found.keys()
    assert study.split == "test"
    join = imported.counts.joins["mimic-ils"]
    assert (join.rows, join.joined, join.left_out) == (2, 1, {"json": 1})
    assert defects(imported)["mimic-ils: no mask"] == 1


@pytest.mark.parametrize("trusted", ["drawn by radiologists", "nothing is joined"])
def test_a_box_contradicts_no_finding_of_a_program(trusted, mimic, phrases, tmp_path):
    write_text(
        mimic / "mimic-cxr-2.0.0-chexpert.csv",
        "subject_id,study_id,No Finding,Pleural Effusion,Pneumothorax",
        "19000001,59000001,1.0,,",
        "19000002,59000002,1.0,,",
    )
    is_joined = trusted == "drawn by radiologists"
    joins = {"ms-cxr": phrases} if is_joined else {}
    studies, imported = _join(mimic, tmp_path / "out", joins)
    known = [certainty_of(study, "fracture") for study in studies.values()]
    assert known == [None if is_joined else "absent", "absent"]
    assert defects(imported).get("ms-cxr: conflict", 0) == is_joined

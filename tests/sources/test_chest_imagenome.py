"""Chest ImaGenome in its published layout, with invented ids: graphs of the silver set, tables of the gold set."""

import datetime
import json
import zipfile

import pytest
from tests.sources.files import defects, read_studies, skips, write_image, write_text

from carina.cases import NoCasesError
from carina.percept import build_percept
from carina.sources import SourceError, import_source, import_studies
from carina.sources.chest_imagenome.graph import Comparison, Graph, describe_image
from carina.studies.model import Image

NOW, BEFORE, ALONE = "aaaa-2", "aaaa-1", "bbbb-1"
PROGRAM = "Chest ImaGenome, by program"


def make_object(image, name, box):
    x1, y1, x2, y2 = box
    return {
        "object_id": f"{image}_{name}", "bbox_name": name, "name": name.title(), "synsets": ["C0024109"],
        "x1": 1, "y1": 2, "x2": 100, "y2": 110, "width": 99, "height": 108,
        "original_x1": x1, "original_y1": y1, "original_x2": x2, "original_y2": y2,
        "original_width": x2 - x1, "original_height": y2 - y1,
    }  # fmt: skip


def make_attribute(image, name, *sentences):
    """Attributes of a structure; a sentence is its attributes and its severity cues."""
    return {
        name: True, "bbox_name": name, "object_id": f"{image}_{name}", "name": name.title(), "synsets": ["C0024109"],
        "attributes": [attributes for attributes, _ in sentences],
        "attributes_ids": [["CL1"] for _ in sentences],
        "phrases": ["A sentence." for _ in sentences],
        "phrase_IDs": [f"59000002|{n}" for n, _ in enumerate(sentences)],
        "sections": ["finalreport" for _ in sentences],
        "comparison_cues": [[] for _ in sentences], "temporal_cues": [[] for _ in sentences],
        "severity_cues": [cues for _, cues in sentences], "texture_cues": [[] for _ in sentences],
    }  # fmt: skip


def make_relationship(name, trend, *attributes, before=BEFORE):
    return {
        "relationship_id": f"59000002|7_{name}", "predicate": "['No status change']", "synsets": ["C0442739"],
        "relationship_names": [f"comparison|yes|{trend}"], "relationship_contexts": [1.0], "phrase": "A sentence.",
        "attributes": list(attributes), "bbox_name": name,
        "subject_id": f"{NOW}_{name}", "object_id": f"{before}_{name}",
    }  # fmt: skip


def make_graph(image, study, patient=19000001, **fields):
    return {
        "image_id": image, "viewpoint": "AP", "patient_id": patient, "study_id": study, "gender": "F",
        "age_decile": "60-70", "reason_for_exam": "___ with cough", "StudyOrder": study % 10,
        "StudyDateTime": f"2180-05-0{study % 10} 21:30:14 UTC",
        "objects": [], "attributes": [], "relationships": [], **fields,
    }  # fmt: skip


def graph_of_now():
    return make_graph(
        NOW,
        59000002,
        objects=[
            make_object(NOW, "right lung", (5, 4, 25, 44)),
            make_object(NOW, "right lower lung zone", (5, 24, 25, 44)),
            make_object(NOW, "cardiac silhouette", (20, 20, 45, 44)),
            make_object(NOW, "left lung", (90, 4, 95, 44)),
        ],
        attributes=[
            make_attribute(
                NOW,
                "right lung",
                (["anatomicalfinding|yes|lung opacity", "nlp|yes|abnormal"], ["severity|yes|moderate"]),
                (["anatomicalfinding|no|pneumothorax"], []),
                (["disease|yes|pneumonia", "anatomicalfinding|yes|pleural effusion"], ["severity|yes|mild"]),
            ),
            make_attribute(NOW, "left lung", (["anatomicalfinding|no|pneumothorax"], [])),
            make_attribute(
                NOW,
                "right lower lung zone",
                (["anatomicalfinding|yes|lung opacity", "texture|yes|hazy"], ["severity|yes|moderate"]),
            ),
            make_attribute(
                NOW, "cardiac silhouette", (["anatomicalfinding|yes|enlarged cardiac silhouette"], [])
            ),
            make_attribute(
                NOW, "trachea", (["tubesandlines|yes|endotracheal tube", "anatomicalfinding|perhaps|x"], [])
            ),
        ],
        relationships=[
            make_relationship("right lung", "worsened", "anatomicalfinding|yes|lung opacity"),
            make_relationship("right lower lung zone", "worsened", "anatomicalfinding|yes|lung opacity"),
            make_relationship("right lung", "improved", "disease|yes|pneumonia"),
            make_relationship("right lower lung zone", "no change", "disease|yes|pneumonia"),
            make_relationship(
                "right lung", "improved", "anatomicalfinding|yes|pleural effusion", before="zzzz-1"
            ),
        ],
    )


def make_folder(tmp_path):
    path = tmp_path / "imagenome"
    splits = path / "silver_dataset/splits"
    header = ",dicom_id,subject_id,study_id,ViewPosition,path"
    write_text(
        splits / "train.csv",
        header,
        f"0,{BEFORE},19000001,59000001,PA,files/p19/p19000001/s59000001/{BEFORE}.dcm",
        f"1,{NOW},19000001,59000002,AP,files/p19/p19000001/s59000002/{NOW}.dcm",
    )
    write_text(splits / "valid.csv", header, "0,cccc-1,19000003,59000031,PA,")
    write_text(splits / "test.csv", header)
    write_text(splits / "images_to_avoid.csv", header, f"0,{ALONE},19000002,59000021,PA,")
    graphs = {
        NOW: graph_of_now(),
        BEFORE: make_graph(BEFORE, 59000001),
        ALONE: make_graph(ALONE, 59000021, 19000002),
        "zzzz-9": make_graph("zzzz-9", 59000099),
    }
    with zipfile.ZipFile(path / "silver_dataset/scene_graph.zip", "w") as archive:
        for image, graph in graphs.items():
            # Written with a byte order mark.
            archive.writestr(f"scene_graph/{image}_SceneGraph.json", json.dumps(graph).encode("utf-8-sig"))
    return path


folder = pytest.fixture(make_folder, name="folder")


def make_images(tmp_path):
    root = tmp_path / "mimic"
    for patient, study, name in (
        ("19000001", "59000001", BEFORE),
        ("19000001", "59000002", NOW),
        ("19000002", "59000021", ALONE),
    ):
        write_image(root / f"files/p19/p{patient}/s{study}/{name}.jpg", 60, 50)
    return root


images = pytest.fixture(make_images, name="images")


def structures(study):
    return [(one.name, one.region.bbox, one.annotator, one.automatic, one.drawn) for one in study.anatomy]


def test_every_field_of_the_silver_set(folder, images, tmp_path):
    studies, imported = read_studies("chest-imagenome", folder, tmp_path / "out", images=images)
    assert [(one.id, one.patient, one.split, one.order, one.prior) for one in studies.values()] == [
        ("s59000001", "p19000001", "train", 0, None),
        ("s59000002", "p19000001", "train", 1, "s59000001"),
        ("s59000021", "p19000002", None, 0, None),
    ]
    study = studies["s59000002"]
    (image,) = study.images
    assert (image.key, image.view, image.width, image.height) == (
        f"files/p19/p19000001/s59000002/{NOW}.jpg", "AP", 60, 50,
    )  # fmt: skip
    assert (study.date, study.sex, study.age, study.indication, study.source) == (
        datetime.date(2180, 5, 2), "F", None, "___ with cough", "chest-imagenome",
    )  # fmt: skip
    # Boxes in pixels of the original, by a program; the left lung is outside of the image.
    assert structures(study) == [
        ("right lung", (5, 4, 20, 40), PROGRAM, True, "box"),
        ("right lower zone", (5, 24, 20, 20), PROGRAM, True, "box"),
        ("heart", (20, 20, 25, 24), PROGRAM, True, "box"),
    ]
    found = {one.name: (one.label, one.certainty, one.severity, one.trend) for one in study.findings}
    assert found == {
        "lung opacity": (None, "present", "moderate", "worse"),
        "pneumothorax": (None, "absent", None, None),
        # Two structures give different trends; which of two findings is mild is not known.
        "pneumonia": (None, "present", None, None),
        "pleural effusion": (None, "present", None, None),
        "cardiomegaly": ("enlarged cardiac silhouette", "present", None, None),
    }
    places = {one.name: one.location for one in study.findings}
    opacity = places["lung opacity"]
    assert (opacity.side, opacity.zones, opacity.site) == ("right", ("right lower zone",), None)
    assert places["pneumothorax"] is None
    # A finding has no region of its own: the box of its structure is anatomy.
    assert not any(one.annotations for one in study.findings)
    assert [(one.name, one.certainty) for one in study.devices] == [("endotracheal tube", "present")]
    assert (study.assessed.findings, study.assessed.devices, study.assessed.text) == (
        "unknown",
        "unknown",
        True,
    )
    stated = {one.name for one in (*study.findings, *study.devices)}
    assert set(study.assessed.by_program) == stated
    assert defects(imported) == {"region": 1, "attribute": 1, "no prior": 1, "second trend": 1}
    assert [(kind, message.split(": ", 1)[1]) for _, kind, message in skips(imported)] == [
        ("not joined", "image_id: 1 of 4 images are in no table of images: their studies are unknown"),
        ("no graph", "image_id: there is no cccc-1_SceneGraph.json"),
    ]
    (manifest,) = imported.opened().manifest.sources
    assert (manifest.name, manifest.licence[:9], manifest.citation[:5]) == (
        "chest-imagenome",
        "PhysioNet",
        "Wu JT",
    )


def test_an_unpacked_archive_gives_the_same_studies(folder, images, tmp_path):
    zipped, _ = read_studies("chest-imagenome", folder, tmp_path / "zipped", images=images)
    with zipfile.ZipFile(folder / "silver_dataset/scene_graph.zip") as archive:
        archive.extractall(folder / "silver_dataset")
    (folder / "silver_dataset/scene_graph.zip").unlink()
    unpacked, _ = read_studies("chest-imagenome", folder, tmp_path / "unpacked", images=images)
    assert unpacked == zipped


def test_without_images_boxes_are_left_out_and_counted(folder, tmp_path):
    studies, imported = read_studies("chest-imagenome", folder, tmp_path / "out", missing_images="keep")
    assert studies["s59000002"].anatomy == ()
    assert {one.name for one in studies["s59000002"].findings} >= {"lung opacity", "pneumonia"}
    assert defects(imported)["size"] == 4


def test_boxes_of_lungs_are_no_lungs_for_percept(folder, images, tmp_path):
    with pytest.warns(UserWarning, match="1 region "):
        studies = import_studies("chest-imagenome", folder, tmp_path / "out", images=images, workers=1)
    assert all(study.anatomy_on(study.images[0].key) == {} for study in studies)
    with pytest.raises(NoCasesError):
        build_percept(studies, tmp_path / "bench", per_cell=1, workers=1)


def test_graphs_join_the_studies_of_mimic(folder, tmp_path):
    mimic = tmp_path / "mimic"
    write_text(
        mimic / "mimic-cxr-2.0.0-metadata.csv",
        "dicom_id,subject_id,study_id,ViewPosition,Rows,Columns,StudyDate,StudyTime",
        f"{BEFORE},19000001,59000001,PA,50,60,21800101,90000",
        f"{NOW},19000001,59000002,PA,50,60,21800102,90000",
    )
    write_text(
        mimic / "mimic-cxr-2.0.0-chexpert.csv",
        "subject_id,study_id,Lung Opacity,Pneumonia",
        "19000001,59000001,1.0,",
        "19000001,59000002,1.0,-1.0",
    )
    imported = import_source(
        "mimic-cxr-jpg", mimic, tmp_path / "out", joins={"chest-imagenome": folder}, workers=1
    )
    _, study = imported.opened()
    found = {one.name: (one.certainty, one.trend) for one in study.findings}
    assert found["lung opacity"] == ("present", "worse")
    # What a program says does not count more than what the study says already.
    assert found["pneumonia"] == ("uncertain", None)
    assert found["pneumothorax"] == ("absent", None)
    assert [name for name, *_ in structures(study)] == ["right lung", "right lower zone", "heart"]
    count = imported.counts.joins["chest-imagenome"]
    assert (count.rows, count.joined, count.images_without) == (4, 2, 0)
    own = {name: times for name, times in defects(imported).items() if name.startswith("chest-imagenome")}
    assert own == {
        "chest-imagenome: region": 1, "chest-imagenome: attribute": 1, "chest-imagenome: no prior": 1,
        "chest-imagenome: second trend": 1, "chest-imagenome: conflict": 1,
    }  # fmt: skip


def test_gold_is_by_readers(folder, images, tmp_path):
    gold = folder / "gold_dataset"
    corners = "x1,y1,x2,y2,width,height,original_x1,original_y1,original_x2,original_y2,original_width,original_height"
    write_text(
        gold / "gold_bbox_coordinate_annotations_1000images.csv",
        f"image_id,bbox_name,{corners}",
        f"{NOW}.dcm,right lung,1,2,3,4,5,6,5,4,25,44,20,40",
        "unknown.dcm,right lung,1,2,3,4,5,6,5,4,25,44,20,40",
    )
    write_text(
        gold / "gold_object_attribute_with_coordinates.txt",
        "patient_id\trow_id\timage_id\tobject_id\tbbox\tattribute\tcontext\tcategoryID\tlabel_name\tsentence\tsection"
        "\tcoord_224\tcoord_original",
        f"19000001\t1\t{NOW}.dcm\t{NOW}_right lung\tright lung\tlung opacity\tyes\tanatomicalfinding\tlung opacity"
        '\tAn "opacity".\tfindings\t[]\t[]',
        f"19000001\t2\t{NOW}.dcm\t{NOW}_right lung\tright lung\tpneumothorax\tno\tanatomicalfinding\tpneumothorax"
        "\tNone.\tfindings\t[]\t[]",
        f"19000001\t4\t{NOW}.dcm\t{NOW}_left lung\tleft lung\tpneumothorax\tno\tanatomicalfinding\tpneumothorax"
        "\tNone.\tfindings\t[]\t[]",
        f"19000001\t3\t{NOW}.dcm\t{NOW}_right lung\tright lung\tedema\tperhaps\tanatomicalfinding\tedema\t\t\t[]\t[]",
    )
    write_text(
        gold / "gold_object_comparison_with_coordinates.txt",
        "patient_id\trelationship_id\tsubject_id\tobject_id\tbbox\tcomparison\tattribute\tsentence\ta\tb\tc\td"
        "\tlabel_name\tcurrent_image_id\tprevious_image_id",
        f"19000001\t1\ts\to\tright lung\timproved\tlung opacity\tBetter.\t\t\t\t\tlung opacity\t{NOW}\t{BEFORE}",
        f"19000001\t2\ts\to\tright lung\timproved;;worsened\tpneumonia\tX.\t\t\t\t\tpneumonia\t{NOW}\t{BEFORE}",
    )
    studies, imported = read_studies(
        "chest-imagenome", folder, tmp_path / "out", images=images, dataset="gold"
    )
    (study,) = studies.values()
    assert (study.id, study.prior, study.images[0].view) == ("s59000002", "s59000001", "AP")
    assert structures(study) == [("right lung", (5, 4, 20, 40), "readers of Chest ImaGenome", False, "box")]
    assert [(one.name, one.certainty, one.trend) for one in study.findings] == [
        ("lung opacity", "present", "improved"),
        ("pneumothorax", "absent", None),
    ]
    assert defects(imported) == {"second trend": 1}
    assert [kind for _, kind, _ in skips(imported)] == ["value", "not joined"]


def describe(attributes, trends=()):
    """Name and certainty by label of what a graph adds, and its defects."""
    graph = Graph(comparisons=[Comparison((label,), trend, BEFORE) for label, trend in trends])
    for structure, text in attributes:
        graph.add_attribute(structure, f"anatomicalfinding|{text}")
    image = Image(key="a.jpg", view="PA", width=60, height=50)
    added = describe_image(graph, image, {BEFORE: "s1"}, annotator="x", automatic=True)
    found = {one.label: one.certainty for one in added.findings}
    return found, {defect: times for defect, times in added.defects.items() if times}


def test_what_is_denied_on_one_side_or_in_some_zones_is_not_absent():
    angles = ["left costophrenic angle", "right costophrenic angle"]
    denied = "no|pleural effusion"
    assert describe([(angles[0], denied)]) == ({}, {"one side": 1})
    assert describe([(angle, denied) for angle in angles]) == ({"pleural effusion": "absent"}, {})
    assert describe([("cardiac silhouette", "no|cardiomegaly")]) == ({"cardiomegaly": "absent"}, {})
    bases = [("left lower lung zone", "no|consolidation"), ("right lower lung zone", "no|consolidation")]
    assert describe(bases) == ({}, {"one side": 1})
    lungs = [("left lung", "no|consolidation"), ("right lung", "no|consolidation")]
    assert describe([*bases, *lungs]) == ({"consolidation": "absent"}, {})
    # Where it would not be, a denial says nothing of the lungs.
    hila = ["left hilar structures", "right hilar structures"]
    for elsewhere, label in (
        (["mediastinum"], "mass/nodule (not otherwise specified)"),
        (hila, "mass/nodule (not otherwise specified)"),
        (["upper mediastinum"], "lung opacity"),
        (["trachea"], "pneumonia"),
        (["carina"], "lung lesion"),
        (angles, "atelectasis"),
    ):
        assert describe([(structure, f"no|{label}") for structure in elsewhere]) == ({}, {"one side": 1})
    assert describe([(hilum, "no|enlarged hilum") for hilum in hila]) == ({"enlarged hilum": "absent"}, {})
    assert describe([(hila[0], "no|enlarged hilum")]) == ({}, {"one side": 1})
    assert describe([("spine", "no|scoliosis")]) == ({"scoliosis": "absent"}, {})
    # What is present on one side is present, whatever the other side is.
    assert describe([lungs[0], ("right lung", "yes|consolidation")]) == ({"consolidation": "present"}, {})


@pytest.mark.parametrize(
    ("denied", "stated"),
    [
        ("lung opacity", "airspace opacity"),
        ("lobar/segmental collapse", "atelectasis"),
        ("edema", "edema"),
    ],
)
def test_two_labels_of_one_name_never_contradict_each_other(denied, stated):
    both = [("left lung", f"no|{denied}"), ("left lung", f"yes|{stated}")]
    assert describe(both) == ({}, {"stated and denied": 1})
    assert describe([*both, ("right lung", f"yes|{stated}")]) == ({stated: "present"}, {})


def test_what_has_improved_may_have_resolved_as_in_ms_cxr_t():
    trends = [("edema", "improved"), ("pneumonia", "worse"), ("consolidation", "unchanged")]
    assert describe([], trends) == (
        {"edema": None, "pneumonia": "present", "consolidation": "present"},
        {},
    )
    assert describe([("right lung", "yes|edema")], trends[:1]) == ({"edema": "present"}, {})


def test_what_is_missing_is_said(folder, tmp_path):
    with pytest.raises(SourceError, match=r"gold_bbox_coordinate_annotations_1000images\.csv: missing; put"):
        import_source("chest-imagenome", folder, tmp_path / "a", options={"dataset": "gold"}, workers=1)
    (folder / "silver_dataset/scene_graph.zip").write_bytes(b"PK no archive")
    with pytest.raises(SourceError, match="cannot be read: not a zip file"):
        import_studies("chest-imagenome", folder, tmp_path / "b", workers=1)
    (folder / "silver_dataset/scene_graph.zip").unlink()
    with pytest.raises(SourceError, match=r"scene_graph\.zip: missing; put scene_graph\.zip"):
        import_studies("chest-imagenome", folder, tmp_path / "c", workers=1)
    with pytest.raises(SourceError, match=r"train\.csv: missing; put the tables of splits"):
        import_studies("chest-imagenome", tmp_path / "empty", tmp_path / "d", workers=1)


def test_a_graph_that_cannot_be_used_is_skipped(folder, images, tmp_path):
    graph = graph_of_now() | {"study_id": 59000009}
    with zipfile.ZipFile(folder / "silver_dataset/scene_graph.zip", "w") as archive:
        archive.writestr(f"scene_graph/{NOW}_SceneGraph.json", json.dumps(graph))
        archive.writestr(f"scene_graph/{BEFORE}_SceneGraph.json", '{"image_id": 7}')
        archive.writestr(f"scene_graph/{ALONE}_SceneGraph.json", b"\xef\xbb\xbf{")
    _, imported = read_studies("chest-imagenome", folder, tmp_path / "out", images=images)
    assert {study: kind for study, kind, _ in skips(imported)} == {
        "s59000031": "no graph", "s59000001": "json", "s59000002": "id", "s59000021": "json",
    }  # fmt: skip

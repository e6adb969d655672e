"""Objects become studies, field by field; everything else is skipped and counted."""

import datetime
import os
import zipfile

import numpy as np
import pytest
from tests.sources.dicom.encoding import BIG_ENDIAN, IMPLICIT, Items
from tests.sources.dicom.objects import CR, RAMP, code, compressed, encode, radiograph, save, segmentation

from carina import CarinaError, check, open_studies
from carina.sources import import_source
from carina.sources.dicom.attributes import Tag
from carina.sources.dicom.privacy import Pseudonyms
from carina.studies import read_pixels

NAMES = Pseudonyms(bytes.fromhex("5a" * 32))
"""Those of the key of the tests."""


def another(number, **changes):
    """Another image of the same study."""
    return radiograph(SOP_INSTANCE=("UI", f"1.2.3.{number}"), INSTANCE_NUMBER=("IS", str(number)), **changes)


def study(number, date, time="101500", **changes):
    """An image of another study of the same patient."""
    return radiograph(
        SOP_INSTANCE=("UI", f"1.2.{number}.1"),
        STUDY_INSTANCE=("UI", f"1.2.{number}"),
        STUDY_DATE=("DA", date),
        STUDY_TIME=("TM", time),
        **changes,
    )


def reasons(imported):
    return [(item.place, item.kind) for item in imported.skipped]


def only(imported):
    (found,) = imported.opened()
    return found


def test_an_object_becomes_a_study(import_objects):
    found = only(import_objects([encode(radiograph())]))
    name = NAMES.name
    assert found.id == name("study", b"1.2.3")
    assert found.patient == name("patient", b"4711")
    assert (found.source, found.order, found.prior, found.later) == ("dicom", 0, None, None)
    assert (found.age, found.sex, found.report, found.indication) == (61, "F", None, None)
    assert found.assessed.findings == "unknown"
    (image,) = found.images
    assert image.key == f"{found.id}/{name('image', b'1.2.3.1')}.png"
    assert (image.view, image.width, image.height, image.bits) == ("PA", 4, 3, 12)
    assert (image.monochrome1, image.rescale, image.window) == (False, None, (2048, 4096))
    assert image.spacing_mm == (0.2, 0.2)


def test_what_was_looked_for_is_unknown_unless_the_user_says_so(import_objects):
    assert only(import_objects([encode(radiograph())])).assessed.findings == "unknown"
    stated = import_objects([encode(radiograph())], out="stated", looked_for="every")
    assert only(stated).assessed.findings == "every"
    assert only(stated).assessed.devices == "unknown"
    assert stated.opened().manifest.options["looked_for"] == "every"


def test_the_image_is_written_into_the_study_set(import_objects):
    imported = import_objects([encode(radiograph())])
    studies = open_studies(imported.path)
    image = next(iter(studies)).images[0]
    assert read_pixels(studies.image_path(image)).tolist() == RAMP.tolist()
    assert studies.image_path(image).is_relative_to(imported.path.resolve() / "images")
    assert check(imported.path).is_sound


def test_images_of_a_study_are_in_the_order_of_series_and_number(import_objects):
    objects = [
        another(3, VIEW_POSITION=("CS", "LL")),
        another(2, SERIES_NUMBER=("IS", "2"), VIEW_POSITION=("CS", "AP")),
        another(1),
    ]
    found = only(import_objects(map(encode, objects)))
    assert [image.view for image in found.images] == ["PA", "lateral", "AP"]


def test_studies_are_in_the_order_of_date_and_time(import_objects):
    objects = [study(7, "20200402"), study(8, "20200310", "090000"), study(9, "20200310", "083000.5")]
    found = list(import_objects(map(encode, objects)).opened())
    ids = [NAMES.name("study", f"1.2.{number}".encode()) for number in (9, 8, 7)]
    assert [(s.id, s.order, s.prior, s.later) for s in found] == [
        (ids[0], 0, None, ids[1]),
        (ids[1], 1, ids[0], ids[2]),
        (ids[2], 2, ids[1], None),
    ]
    assert found[0].date == found[1].date
    assert found[2].date - found[0].date == datetime.timedelta(days=23)


def test_the_order_of_studies_of_the_same_moment_is_unknown(import_objects):
    imported = import_objects(map(encode, [study(7, "20200310"), study(8, "20200310"), study(9, "20210101")]))
    assert [(s.order, s.prior, s.later) for s in imported.opened()] == [(None, None, None)] * 3
    assert imported.counts.defects["unknown order"].records == 3


def test_a_study_without_date_has_no_place(import_objects):
    imported = import_objects(map(encode, [study(7, ""), study(8, "20200310")]))
    assert sorted((s.order is None, s.date is None) for s in imported.opened()) == [
        (False, False),
        (True, True),
    ]
    assert imported.counts.defects["no date"].times == 1


def test_a_study_without_patient_id_is_a_patient_of_its_own(import_objects):
    objects = [study(7, "20200310", PATIENT_ID=("LO", "")), study(8, "20200311", PATIENT_ID=None)]
    imported = import_objects(map(encode, objects))
    assert len({s.patient for s in imported.opened()}) == 2
    assert imported.counts.defects["no patient id"].times == 2


@pytest.mark.parametrize(
    ("changes", "view"),
    [
        ({"VIEW_POSITION": ("CS", "AP")}, "AP"),
        ({"VIEW_POSITION": ("CS", "RL")}, "lateral"),
        ({"VIEW_POSITION": ("CS", "LLD")}, "unknown"),
        ({"VIEW_POSITION": None, "VIEW_CODE": code("R-10206")}, "AP"),
        ({"VIEW_POSITION": ("CS", ""), "VIEW_CODE": code("272479007")}, "PA"),
        ({"VIEW_POSITION": None, "VIEW_CODE": code("399173006")}, "lateral"),
        ({"VIEW_POSITION": None, "VIEW_CODE": code("1")}, "unknown"),
        ({"VIEW_POSITION": None, "PATIENT_ORIENTATION": ("CS", "A\\F")}, "lateral"),
        ({"VIEW_POSITION": None}, "unknown"),
    ],
)
def test_views(changes, view, import_objects):
    imported = import_objects([encode(radiograph(**changes))])
    assert only(imported).images[0].view == view
    assert ("unknown view" in imported.counts.defects) == (view == "unknown")


@pytest.mark.parametrize(
    ("orientation", "expected"),
    [("R\\F", RAMP[:, ::-1]), ("L\\H", RAMP[::-1]), ("R\\H", RAMP[::-1, ::-1])],
)
def test_an_image_is_turned_with_its_masks(orientation, expected, import_objects):
    drawn = RAMP == 300
    objects = [
        radiograph(PATIENT_ORIENTATION=("CS", orientation)),
        segmentation([(1, "1.2.3.1", drawn)], [(1, "nodule", "", "MANUAL")]),
    ]
    imported = import_objects(map(encode, objects))
    studies = open_studies(imported.path)
    found = next(iter(studies))
    assert read_pixels(studies.image_path(found.images[0])).tolist() == expected.tolist()
    assert np.array_equal(found.findings[0].annotations[0].region.to_mask(), expected == 300)
    assert imported.counts.defects["mirrored or upside-down"].times == 1


@pytest.mark.parametrize(
    ("age", "birth", "recorded"),
    [("089Y", "", 89), ("090Y", "", 90), ("104Y", "", 90), ("018M", "", 1), ("", "19590311", 60), ("", "19590310", 61),
     ("", "19200101", 90), ("", "", None), ("old", "x", None), ("", "20300101", None)],
)  # fmt: skip
def test_ages_of_90_and_over_are_one_class(age, birth, recorded, import_objects):
    elements = radiograph(AGE=("AS", age), BIRTH_DATE=("DA", birth))
    imported = import_objects([encode(elements)])
    assert only(imported).age == recorded
    assert ("age of 90 or over" in imported.counts.defects) == (recorded == 90)


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        # (date, stated age, date of birth) of each study
        ([("20200301", "089Y", ""), ("20260301", "095Y", "")], [None, None]),
        ([("20200301", "091Y", ""), ("20260301", "097Y", "")], [90, 90]),
        ([("20200301", "", "19310101"), ("20260301", "", "19310101")], [None, None]),
        ([("20200301", "089Y", ""), ("20260301", "", "")], [None, None]),
        ([("20200301", "089Y", ""), ("20260301", "", "19310101")], [None, None]),
        ([("20100301", "061Y", ""), ("20100302", "061Y", ""), ("20450301", "096Y", "")], [None, None, None]),
        ([("20200301", "089Y", "19290101"), ("20200302", "", "")], [90, None]),  # the two do not agree
        ([("20200301", "089Y", ""), ("20200401", "089Y", "")], [89, 89]),
        ([("20200301", "060Y", ""), ("20260301", "", "")], [60, None]),
        ([("20260301", "089Y", ""), ("20200301", "", "")], [89, None]),
    ],
)
def test_no_age_of_a_patient_tells_that_they_were_over_90_in_another_study(given, recorded, import_objects):
    """Studies keep their distance in time, so that 89 and six years later is 95."""
    objects = [
        study(number, date, AGE=("AS", age), BIRTH_DATE=("DA", birth))
        for number, (date, age, birth) in enumerate(given, start=1)
    ]
    imported = import_objects(map(encode, objects))
    found = {s.id: s.age for s in imported.opened()}
    ids = [NAMES.name("study", f"1.2.{number}".encode()) for number in range(1, len(given) + 1)]
    assert [found[name] for name in ids] == recorded
    # Which of the studies the counts are of does not tell it, either.
    stated = sum(bool(age or birth) for _, age, birth in given)
    counts = imported.counts.defects
    is_old = set(recorded) & {*range(1, 90)} == set()
    assert (counts["age of 90 or over"].records if "age of 90 or over" in counts else 0) == stated * is_old


def test_ages_of_other_patients_are_kept(import_objects):
    objects = [
        study(1, "20200301", AGE=("AS", "089Y")),
        study(2, "20260301", AGE=("AS", "095Y"), PATIENT_ID=("LO", "1")),
    ]
    assert sorted(s.age for s in import_objects(map(encode, objects)).opened()) == [89, 90]


def test_spacing_falls_back_to_that_of_the_pixels(import_objects):
    changes = {"IMAGER_PIXEL_SPACING": ("DS", "0\\0"), "PIXEL_SPACING": ("DS", "0.1\\0.15")}
    assert only(import_objects([encode(radiograph(**changes))])).images[0].spacing_mm == (0.1, 0.15)


def test_computed_radiography_is_read(import_objects):
    elements = radiograph(SOP_CLASS=("UI", CR), MODALITY=("CS", "CR"))
    assert only(import_objects([encode(elements, IMPLICIT)])).images[0].width == 4


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"MODALITY": ("CS", "CT"), "SOP_CLASS": ("UI", "1.2.840.10008.5.1.4.1.1.2")}, "modality CT"),
        ({"MODALITY": ("CS", "SECRET")}, "other modality"),
        ({"SOP_CLASS": ("UI", "1.2.840.10008.5.1.4.1.1.1.1.1")}, "for processing"),
        ({"PRESENTATION_INTENT": ("CS", "FOR PROCESSING")}, "for processing"),
        ({"BODY_PART": ("CS", "HAND")}, "body part"),
        ({"BODY_PART": None}, "unknown body part"),
        ({"BODY_PART": None, "ANATOMIC_REGION": code("8205005")}, "body part"),
        ({"BURNED_IN": ("CS", "YES")}, "burned-in text"),
        ({"STUDY_INSTANCE": None}, "no id"),
        ({"PATIENT_ORIENTATION": ("CS", "F\\L")}, "rotated"),
        ({"PIXEL_DATA": None}, "pixels"),
    ],
)
def test_what_is_no_chest_radiograph_is_skipped_and_counted(changes, kind, import_objects):
    imported = import_objects([encode(another(5)), encode(radiograph(**changes))])
    assert reasons(imported) == [("object 2", kind)]
    assert imported.counts.kept == 1


def test_chest_by_its_code(import_objects):
    elements = radiograph(BODY_PART=None, ANATOMIC_REGION=code("51185008"))
    assert import_objects([encode(elements)]).counts.kept == 1


def test_an_unknown_body_part_can_be_kept(import_objects):
    imported = import_objects([encode(radiograph(BODY_PART=None))], unknown_body_part="keep")
    assert imported.counts.defects["unknown body part"].times == 1


def test_copies_and_studies_of_two_patients_are_skipped(import_objects):
    objects = [another(1), another(1), another(2, PATIENT_ID=("LO", "4712"))]
    assert reasons(import_objects(map(encode, objects))) == [
        ("object 2", "copy"),
        ("object 3", "two patients"),
    ]


def test_a_sound_copy_is_used_where_the_first_object_of_an_image_is_damaged(import_objects):
    sound = encode(another(1))
    imported = import_objects([sound[: len(sound) - 200], sound, sound])
    assert sorted(reasons(imported)) == [("object 1", "damaged"), ("object 3", "copy")]
    assert imported.counts.kept == 1


def issued(number, issuer):
    """A study of the patient 4711, with an id of an issuer or of nobody knows whom; a day apart for each number."""
    return study(number, f"202001{number:02d}", PATIENT_ID_ISSUER=("LO", issuer or ""))


@pytest.mark.parametrize(
    ("issuers", "use", "patients", "counted"),
    [
        (("A", None), "stated", (0, 0), (0, 1)),
        (("A", "A"), "stated", (0, 0), (0, 0)),
        (("A", "A", None), "stated", (0, 0, 0), (0, 1)),
        (("A", "B"), "stated", (0, 1), (2, 0)),
        (("A", "B", None), "stated", (0, 1, 2), (3, 0)),
        ((None, None), "stated", (0, 0), (0, 0)),
        (("A", None), "always", (0, 1), (2, 0)),
        (("A", "A"), "always", (0, 0), (0, 0)),
        (("A", "B", None), "always", (0, 1, 2), (3, 0)),
        (("A", "B", None), "never", (0, 0, 0), (3, 0)),
    ],
)
def test_issuers_of_an_id(issuers, use, patients, counted, import_objects):
    """Whatever the order of the files is, and however many workers there are."""
    objects = [issued(number, issuer) for number, issuer in enumerate(issuers, start=1)]
    made = []
    for out, given, workers in (("forth", objects, 1), ("back", objects[::-1], 2)):
        imported = import_objects(map(encode, given), out=out, use_issuer=use, workers=workers)
        ids = [NAMES.name("study", f"1.2.{number}".encode()) for number in range(1, len(issuers) + 1)]
        found = {s.id: s for s in imported.opened()}
        named = [found[name].patient for name in ids]
        assert tuple(list(dict.fromkeys(named)).index(name) for name in named) == patients
        counts = {name: count.records for name, count in imported.counts.defects.items()}
        said = ("patient id of several issuers", "issuer of the patient id assumed")
        assert tuple(counts.get(name, 0) for name in said) == counted
        if len(set(patients)) == 1:
            days = [(found[name].date - found[ids[0]].date).days for name in ids]
            assert days == list(range(len(ids)))
        made.append({name: (s.patient, s.date, s.order, s.prior) for name, s in found.items()})
    assert made[0] == made[1]


def name_and_date(imported, number):
    study_id = NAMES.name("study", f"1.2.{number}".encode())
    return next((s.patient, s.date) for s in imported.opened() if s.id == study_id)


@pytest.mark.parametrize("use", ["stated", "always"])
@pytest.mark.parametrize("others", [(), ("A",), ("B",), (None,), ("A", "B", None)], ids=str)
def test_a_name_depends_on_id_issuer_and_key_alone(others, use, import_objects):
    """So that a later import joins an earlier one, whatever else lies in either."""
    objects = [issued(1, "A"), *(issued(number, other) for number, other in enumerate(others, start=2))]
    imported = import_objects(map(encode, objects), use_issuer=use)
    day = datetime.date(2020, 1, 1)
    assert name_and_date(imported, 1) == (
        NAMES.name("patient", b"4711^^^A"),
        NAMES.shift(b"4711^^^A", day),
    )


def test_archives_of_two_issuers_that_are_imported_one_by_one_stay_apart(import_objects):
    names = {
        name_and_date(import_objects([encode(issued(1, issuer))], out=f"of-{issuer}"), 1)[0]
        for issuer in ("A", "B", None)
    }
    assert len(names) == 3


def test_an_id_that_looks_like_one_with_issuer_is_another_patient(import_objects):
    objects = [issued(1, "A"), {**issued(2, None), Tag.PATIENT_ID: ("LO", "4711^^^A")}]
    for keep in (False, True):
        imported = import_objects(map(encode, objects), out=f"keep-{keep}", keep_identifiers=keep)
        assert len({s.patient for s in imported.opened()}) == 2


def test_a_study_whose_objects_state_the_issuer_or_not_is_one(import_objects):
    stated = another(1, PATIENT_ID_ISSUER=("LO", "A"))
    objects = [stated, another(2), another(3, PATIENT_ID_ISSUER=("LO", "B"))]
    imported = import_objects(map(encode, objects))
    assert reasons(imported) == [("object 3", "two patients")]
    assert len(only(imported).images) == 2
    assert import_objects(map(encode, objects), out="never", use_issuer="never").skipped == []


# ---- segmentations ---------------------------------------------------------------------------------------------------


def test_masks_join_by_the_image_that_they_refer_to(import_objects):
    masks = [
        (1, "1.2.3.1", RAMP > 2000),
        (1, "1.2.3.2", RAMP < 500),
        (2, "1.2.3.1", RAMP > 100),
        (3, "1.2.3.1", RAMP > 3000),
        (4, "1.2.3.1", RAMP > 3000),
    ]
    segments = [
        (1, "Pleural_Effusion", "", "MANUAL"),
        (2, "x", "44029006", "AUTOMATIC"),
        (3, "Chest tube", "", "SEMIAUTOMATIC"),
        (4, "Erika's shadow", "", "MANUAL"),
    ]
    objects = [another(1), another(2), segmentation(masks, segments)]
    imported = import_objects(map(encode, objects))
    found = only(imported)
    effusion, tube, lung = found.findings[0], found.devices[0], found.anatomy[0]
    assert (effusion.id, effusion.name, effusion.certainty, effusion.label) == (
        "f1",
        "pleural effusion",
        "present",
        None,
    )
    assert [a.image for a in effusion.annotations] == [image.key for image in found.images]
    assert np.array_equal(effusion.annotations[1].region.to_mask(), RAMP < 500)
    assert (effusion.annotations[0].annotator, effusion.annotations[0].automatic) == (
        "dicom-seg manual",
        False,
    )
    assert (tube.name, tube.annotations[0].automatic) == ("chest tube", False)
    assert (lung.name, lung.automatic, lung.image) == ("left lung", True, found.images[0].key)
    assert imported.counts.defects["unknown segment"].times == 1
    assert len(found.findings) == len(found.devices) == len(found.anatomy) == 1


@pytest.mark.parametrize("algorithm", ["", "BY HAND"])
def test_a_segment_of_unknown_origin_is_never_the_truth_of_a_person(algorithm, import_objects):
    mask = segmentation([(1, "1.2.3.1", RAMP > 0)], [(1, "nodule", "", algorithm)])
    lung = segmentation(
        [(1, "1.2.3.1", RAMP > 0)], [(1, "left lung", "", algorithm)], SOP_INSTANCE=("UI", "1.9")
    )
    imported = import_objects(map(encode, [radiograph(), mask, lung]))
    found = only(imported)
    (drawn,) = found.findings[0].annotations
    assert (drawn.automatic, drawn.annotator) == (True, "dicom-seg unknown")
    assert found.anatomy[0].automatic
    assert imported.counts.defects["segment of unknown origin"].times == 2


def test_the_mask_of_an_image_that_cannot_be_decoded_is_counted(import_objects):
    masks = [(1, "1.2.3.1", RAMP > 0), (1, "1.2.3.2", RAMP > 300)]
    objects = [another(1), another(2, PIXEL_DATA=None), segmentation(masks, [(1, "nodule", "", "MANUAL")])]
    imported = import_objects(map(encode, objects))
    assert len(only(imported).findings[0].annotations) == 1
    assert imported.counts.defects["mask of an image that was skipped"].times == 1


def test_fractions_of_half_and_more_are_the_mask(import_objects):
    fractions = np.array([[0, 127, 128, 255]] * 3, np.uint8)
    mask = segmentation(
        [(1, "1.2.3.1", RAMP > 0)],
        [(1, "nodule", "", "MANUAL")],
        SEGMENTATION_TYPE=("CS", "FRACTIONAL"),
        MAXIMUM_FRACTION=("US", 255),
        BITS_ALLOCATED=("US", 8),
        PIXEL_DATA=("OB", fractions.tobytes()),
    )
    found = only(import_objects(map(encode, [radiograph(), mask])))
    assert np.array_equal(found.findings[0].annotations[0].region.to_mask(), fractions >= 128)


def test_masks_that_do_not_fit_are_skipped_and_counted(import_objects):
    one = [(1, "nodule", "", "MANUAL")]
    objects = [
        radiograph(),
        segmentation([(1, "9.9", RAMP > 0)], one),
        segmentation([(1, "1.2.3.1", np.ones((2, 2), bool))], one),
        segmentation([(1, "1.2.3.1", RAMP > 0)], one, FRAMES=("IS", "2")),
        segmentation([(1, "1.2.3.1", RAMP > 0)], one, FRAME_GROUPS=("SQ", Items(()))),
    ]
    imported = import_objects(map(encode, objects))
    assert sorted(reasons(imported)) == [
        ("object 2", "segmentation"),
        ("object 4", "damaged"),
        ("object 5", "segmentation"),
    ]
    assert imported.counts.defects["mask of another size"].times == 1
    assert only(imported).findings == ()


# ---- folders, lists and archives -------------------------------------------------------------------------------------


def run(path, tmp_path, key_file, **options):
    return import_source(
        "dicom", path, tmp_path / "out", options={"key_file": key_file, **options}, workers=1
    )


def test_a_folder_is_read_with_its_folders_and_never_left(tmp_path, key_file):
    folder = tmp_path / "in"
    save(folder / "a/b/c", another(1))
    save(tmp_path / "outside.dcm", another(2))
    (folder / "link.dcm").symlink_to(tmp_path / "outside.dcm")
    (folder / "more").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    (folder / "note.txt").write_text("nothing")
    imported = run(folder, tmp_path, key_file)
    assert [kind for _, kind in reasons(imported)] == ["outside", "not DICOM", "not DICOM"]
    assert imported.counts.images == 1


def test_a_list_of_files_is_followed(tmp_path, key_file):
    root = tmp_path / "cd"
    save(root / "IMAGES/IM1", another(1))
    save(root / "IMAGES/NOTLISTED", another(2))
    files = ["IMAGES\\IM1", "..\\..\\etc\\passwd", "IMAGES\\IM9", ""]
    records = tuple({Tag.REFERENCED_FILE: ("CS", name)} for name in files)
    directory = {
        Tag.SOP_CLASS: ("UI", "1.2.840.10008.1.3.10"),
        Tag.SOP_INSTANCE: ("UI", "1.5"),
        Tag.DIRECTORY_RECORDS: ("SQ", Items(records)),
    }
    save(root / "DICOMDIR", directory)
    imported = run(root / "DICOMDIR", tmp_path, key_file)
    assert sorted(kind for _, kind in reasons(imported)) == ["missing", "outside"]
    assert imported.counts.images == 1
    whole = import_source("dicom", root, tmp_path / "all", options={"key_file": key_file}, workers=1)
    assert (whole.counts.images, whole.skipped) == (2, [])


@pytest.mark.parametrize("workers", [1, 2])
def test_an_archive_is_read_without_unpacking_it(tmp_path, key_file, workers):
    archive = tmp_path / "in.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for number in range(1, 4):
            file.writestr(f"s/{number}.dcm", encode(study(number, f"2020010{number}")))
        file.writestr("../../up.dcm", encode(another(8)))
        file.writestr("/absolute.dcm", encode(another(9)))
        file.writestr("bomb.dcm", bytes(30_000_000))
    given = {"key_file": key_file}
    imported = import_source("dicom", archive, tmp_path / "out", options=given, workers=workers)
    assert imported.counts.kept == 3
    assert sorted(kind for _, kind in reasons(imported)) == ["outside", "outside", "too large"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.zip", "out", "secret"]


def test_a_single_object_and_what_is_none(tmp_path, key_file):
    assert run(save(tmp_path / "one.dcm", radiograph()), tmp_path, key_file).counts.kept == 1
    (tmp_path / "text").write_text("x")
    for name in ("text", "nowhere"):
        with pytest.raises(CarinaError, match=rf"{name}: .*expected a folder"):
            import_source("dicom", tmp_path / name, tmp_path / "o", options={"key_file": key_file})


def test_images_are_written_in_any_case(tmp_path, key_file):
    save(tmp_path / "in/a.dcm", radiograph())
    with pytest.raises(CarinaError, match="copy-images"):
        import_source(
            "dicom", tmp_path / "in", tmp_path / "out", options={"key_file": key_file}, copy_images=True
        )


def test_the_output_may_not_lie_in_the_folder(tmp_path, key_file):
    save(tmp_path / "in/a.dcm", radiograph())
    with pytest.raises(CarinaError, match="lies within"):
        import_source("dicom", tmp_path / "in", tmp_path / "in/out", options={"key_file": key_file})


def test_workers_write_the_same_bytes(import_objects):
    def objects():
        return [
            encode(study(n, f"2020{n % 12 + 1:02d}11", VIEW_POSITION=None), BIG_ENDIAN) for n in range(1, 9)
        ]

    one, two = (
        import_objects(objects(), workers=1, out="one"),
        import_objects(objects(), workers=2, out="two"),
    )

    def files(path):
        return {
            p.relative_to(path): p.read_bytes()
            for p in path.rglob("*")
            if p.is_file() and p.name != "studies.json"
        }

    # The digest of the list of files is the same, so the parts are, too.
    assert files(one.path) == files(two.path)


def test_an_interrupted_import_resumes(tmp_path, key_file, monkeypatch):
    from carina.sources import _writing

    monkeypatch.setattr(_writing, "PART_SIZE", 2)
    for number in range(1, 6):
        save(tmp_path / f"in/{number}.dcm", study(number, f"2020010{number}"))
    written = _writing.write_bytes

    def fail(path, content):
        if path.suffix == ".png" and len(list((tmp_path / "out/images").rglob("*.png"))) == 3:
            raise KeyboardInterrupt
        written(path, content)

    monkeypatch.setattr(_writing, "write_bytes", fail)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "in", tmp_path, key_file)
    monkeypatch.setattr(_writing, "write_bytes", written)
    assert run(tmp_path / "in", tmp_path, key_file).counts.kept == 5
    assert len(list((tmp_path / "out/images").rglob("*.png"))) == 5


def test_an_image_that_cannot_be_decoded_leaves_the_others(import_objects):
    objects = [another(1), another(2, PIXEL_DATA=compressed(b"x")), study(9, "20210101", PIXEL_DATA=None)]
    imported = import_objects(map(encode, objects))
    assert (imported.counts.kept, imported.counts.images) == (1, 1)
    assert sorted(reasons(imported)) == [("object 2", "damaged"), ("object 3", "pixels")]

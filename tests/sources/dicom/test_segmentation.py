"""Segmentations that highdicom writes come back as they were drawn: masks, fractions, label maps, compressed or not."""

import highdicom as hd
import numpy as np
import pytest
from pydicom import uid
from pydicom.sr.coding import Code
from tests.sources.dicom import syntaxes

SHAPE = (40, 36)
IMAGE = (np.add.outer(np.arange(40), np.arange(36)) * 50).astype(np.uint16)
NODULE = np.hypot(*np.meshgrid(np.arange(36) - 10, np.arange(40) - 12)) < 5
EFFUSION = np.zeros(SHAPE, bool)
EFFUSION[25:38, 2:30] = True
DISTINCT = EFFUSION & ~NODULE


def image(number=1):
    made = syntaxes.dataset(IMAGE, 12, SOPInstanceUID=f"1.2.3.{number}", InstanceNumber=number)
    for keyword in (
        "PatientName",
        "PatientBirthDate",
        "StudyID",
        "StudyDate",
        "StudyTime",
        "AccessionNumber",
        "ReferringPhysicianName",
    ):
        setattr(made, keyword, "")
    made.PatientSex, made.StudyDate = "F", "20200310"
    made.WindowCenter, made.WindowWidth = 2048, 4096
    return made


def describe(number, label, code="60046008", *, algorithm="MANUAL", tracking=None):
    automatic = {}
    if algorithm != "MANUAL":
        family = Code("123109", "DCM", "Manual Processing")
        automatic["algorithm_identification"] = hd.AlgorithmIdentificationSequence("a", family, "1")
    return hd.seg.SegmentDescription(
        number,
        label,
        Code("49755003", "SCT", "Morphologically Abnormal Structure"),
        Code(code, "SCT", label),
        hd.seg.SegmentAlgorithmTypeValues(algorithm),
        tracking_uid=tracking,
        tracking_id="finding" if tracking else None,
        **automatic,
    )


def segmentation(
    masks, segments, kind="BINARY", *, syntax=uid.ExplicitVRLittleEndian, source=None, number=1, **more
):
    """A SEG object by highdicom over one image; masks of shape (rows, columns, segments)."""
    made = hd.seg.Segmentation(
        [source or image()],
        masks[np.newaxis],
        kind,
        segments,
        series_instance_uid=f"1.2.9.{number}",
        series_number=900,
        sop_instance_uid=f"1.2.9.{number}.1",
        instance_number=number,
        manufacturer="m",
        manufacturer_model_name="m",
        software_versions="1",
        device_serial_number="1",
        transfer_syntax_uid=syntax,
        **more,
    )
    return syntaxes.save(made)


def read_back(import_objects, *segmentations, images=1):
    objects = [syntaxes.save(image(number)) for number in range(1, images + 1)]
    imported = import_objects([*objects, *segmentations])
    (found,) = imported.opened()
    assert imported.skipped == []
    return found, imported


BOTH = np.stack([NODULE, EFFUSION], axis=-1)
SEGMENTS = [describe(1, "nodule", "427359005"), describe(2, "pleural effusion")]


@pytest.mark.parametrize(
    "syntax", [uid.ExplicitVRLittleEndian, uid.ImplicitVRLittleEndian], ids=["explicit", "implicit"]
)
def test_masks_of_several_segments(syntax, import_objects):
    found, _ = read_back(import_objects, segmentation(BOTH.astype(np.uint8), SEGMENTS, syntax=syntax))
    assert [finding.name for finding in found.findings] == ["nodule", "pleural effusion"]
    for finding, mask in zip(found.findings, (NODULE, EFFUSION), strict=True):
        (drawn,) = finding.annotations
        assert np.array_equal(drawn.region.to_mask(), mask)
        assert (drawn.drawn, drawn.annotator, drawn.automatic) == ("mask", "dicom-seg manual", False)


COMPRESSED = {
    "native": uid.ExplicitVRLittleEndian,
    "rle": uid.RLELossless,
    "jpeg-2000": uid.JPEG2000Lossless,
    "jpeg-ls": uid.JPEGLSLossless,
}


@pytest.mark.parametrize("syntax", COMPRESSED.values(), ids=COMPRESSED)
def test_fractions_of_at_least_half_are_the_mask(syntax, import_objects):
    fractions = np.where(BOTH, 0.5, 0.49)
    fractions[0, 0] = 1.0
    expected = BOTH.copy()
    expected[0, 0] = True
    content = segmentation(fractions, SEGMENTS, "FRACTIONAL", syntax=syntax, max_fractional_value=200)
    found, _ = read_back(import_objects, content)
    for at, finding in enumerate(found.findings):
        assert np.array_equal(finding.annotations[0].region.to_mask(), expected[:, :, at])


@pytest.mark.parametrize("syntax", COMPRESSED.values(), ids=COMPRESSED)
def test_label_maps(syntax, import_objects):
    masks = np.stack([NODULE, DISTINCT], axis=-1).astype(np.uint8)
    found, _ = read_back(import_objects, segmentation(masks, SEGMENTS, "LABELMAP", syntax=syntax))
    assert [finding.name for finding in found.findings] == ["nodule", "pleural effusion"]
    for finding, mask in zip(found.findings, (NODULE, DISTINCT), strict=True):
        assert np.array_equal(finding.annotations[0].region.to_mask(), mask)


def test_automatic_masks_are_marked(import_objects):
    segments = [describe(1, "nodule", "427359005", algorithm="AUTOMATIC")]
    found, _ = read_back(import_objects, segmentation(NODULE[:, :, np.newaxis].astype(np.uint8), segments))
    assert found.findings[0].annotations[0].automatic


def test_a_finding_that_is_tracked_over_images_is_one(import_objects):
    one = NODULE[:, :, np.newaxis].astype(np.uint8)
    parts = [
        segmentation(one, [describe(1, "nodule", tracking="1.2.77")], source=image(number), number=number)
        for number in (1, 2)
    ]
    found, _ = read_back(import_objects, *parts, images=2)
    (finding,) = found.findings
    assert [drawn.image for drawn in finding.annotations] == [shown.key for shown in found.images]


@pytest.mark.parametrize(
    ("label", "code", "name"),
    [
        ("Seg 1", "60046008", "pleural effusion"),
        ("PLEURAL_EFFUSIONS", "0", "pleural effusion"),
        ("Miller's shadow", "1", None),
    ],
)
def test_names_come_from_the_vocabulary_alone(label, code, name, import_objects):
    content = segmentation(NODULE[:, :, np.newaxis].astype(np.uint8), [describe(1, label, code)])
    found, imported = read_back(import_objects, content)
    assert [finding.name for finding in found.findings] == ([name] if name else [])
    assert ("unknown segment" in imported.counts.defects) == (name is None)

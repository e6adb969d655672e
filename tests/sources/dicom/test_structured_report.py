"""Coded findings of structured reports are read; their text is not, unless it was checked."""

import highdicom as hd
import numpy as np
import pytest
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.sr.codedict import codes
from pydicom.sr.coding import Code
from pydicom.uid import ExplicitVRLittleEndian
from tests.sources.dicom import syntaxes
from tests.sources.dicom.encoding import Items
from tests.sources.dicom.objects import encode, radiograph
from tests.sources.dicom.test_segmentation import BOTH, NODULE, SEGMENTS, describe, image, segmentation

from carina.reports import combine_with_report
from carina.sources.dicom.attributes import parse_object
from carina.sources.dicom.structured_report import read_findings
from carina.sources.dicom.text_check import IdentifyingWords, is_identifying
from carina.studies import Location, certainty_of

EFFUSION = Code("60046008", "SCT", "Pleural effusion")
ABSENT = Code("2667000", "SCT", "Absent")
SQUARE = np.array([[4, 6], [14, 6], [14, 20], [4, 20], [4, 6]], float)
COMPREHENSIVE = "1.2.840.10008.5.1.4.1.1.88.33"


def measurement_report(
    finding=EFFUSION, *, presence=None, tracking="1.2.88", region=True, observer="person", sites=None
):
    """TID 1500, as highdicom writes it: one group with a finding, and its outline on the image."""
    source = image()
    person = hd.sr.ObserverContext(codes.DCM.Person, hd.sr.PersonObserverIdentifyingAttributes("Reader^Rita"))
    device = hd.sr.ObserverContext(codes.DCM.Device, hd.sr.DeviceObserverIdentifyingAttributes("1.2.5"))
    context = hd.sr.ObservationContext(
        observer_person_context=person if observer == "person" else None,
        observer_device_context=device if observer == "device" else None,
    )
    evaluations = (
        [hd.sr.QualitativeEvaluation(Code("705057003", "SCT", "Presence"), presence)] if presence else None
    )
    shape = SQUARE if region else SQUARE[[0]]
    kind = hd.sr.GraphicTypeValues.POLYLINE if region else hd.sr.GraphicTypeValues.POINT
    group = hd.sr.PlanarROIMeasurementsAndQualitativeEvaluations(
        tracking_identifier=hd.sr.TrackingIdentifier(uid=tracking, identifier="Miller lesion"),
        referenced_region=hd.sr.ImageRegion(
            kind, shape, hd.sr.SourceImageForRegion(source.SOPClassUID, source.SOPInstanceUID)
        ),
        finding_type=finding,
        finding_sites=sites,
        qualitative_evaluations=evaluations,
    )
    report = hd.sr.MeasurementReport(
        observation_context=context,
        procedure_reported=codes.LN.CTUnspecifiedBodyRegion,
        imaging_measurements=[group],
    )
    made = hd.sr.ComprehensiveSR(
        evidence=[source],
        content=report,
        series_instance_uid="1.2.10",
        series_number=1,
        sop_instance_uid="1.2.10.1",
        instance_number=1,
    )
    return syntaxes.save(made)


def item(kind, name, **values):
    made = Dataset()
    made.ValueType, made.RelationshipType = kind, "CONTAINS"
    concept = Dataset()
    concept.CodeValue, concept.CodingSchemeDesignator, concept.CodeMeaning = name, "DCM", "x"
    made.ConceptNameCodeSequence = [concept]
    for keyword, value in values.items():
        setattr(made, keyword, value)
    return made


def coded(value, meaning="x"):
    concept = Dataset()
    concept.CodeValue, concept.CodingSchemeDesignator, concept.CodeMeaning = value, "SCT", meaning
    return concept


def plain_report(*content, number=1, **values):
    """A report of items."""
    made = Dataset()
    made.SOPClassUID, made.SOPInstanceUID, made.Modality = COMPREHENSIVE, f"1.2.11.{number}", "SR"
    made.StudyInstanceUID, made.PatientID, made.PatientName = "1.2.3", "4711", "Miller^Anna"
    made.SpecificCharacterSet = "ISO_IR 192"
    for keyword, value in values.items():
        setattr(made, keyword, value)
    made.ValueType, made.ContentSequence = "CONTAINER", list(content)
    made.file_meta = FileMetaDataset()
    made.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    return syntaxes.save(made)


def finding(name="60046008", *content, scheme="SCT"):
    """An item of a coded finding, with items below it."""
    concept = coded(name)
    concept.CodingSchemeDesignator = scheme
    return item("CODE", "121071", ConceptCodeSequence=[concept], ContentSequence=list(content))


def qualifier(value, *, name=("SCT", "705057003", "Presence"), scheme="SCT"):
    """An item beside or below a finding: by default one that says whether the finding is present."""
    made = item("CODE", name[1], ConceptCodeSequence=[coded(value)])
    made.ConceptCodeSequence[0].CodingSchemeDesignator = scheme
    made.ConceptNameCodeSequence[0].CodingSchemeDesignator, made.ConceptNameCodeSequence[0].CodeMeaning = (
        name[0],
        name[2],
    )
    return made


def texts(*sections, number=1, **values):
    """A report of headings and texts: (code of the heading, text)."""
    return plain_report(
        *(item("CONTAINER", heading, ContentSequence=[item("TEXT", "121071", TextValue=text)]) if heading == "121070"
          else item("CONTAINER", heading, ContentSequence=[item("TEXT", "99", TextValue=text)])
          for heading, text in sections),
        number=number, **values,
    )  # fmt: skip


def read(import_objects, *reports, **options):
    imported = import_objects([syntaxes.save(image()), *reports], **options)
    (found,) = imported.opened()
    return found, imported


def test_a_measurement_group_becomes_a_finding_with_its_outline(import_objects):
    found, _ = read(import_objects, measurement_report())
    (effusion,) = found.findings
    assert (effusion.name, effusion.certainty, effusion.label) == ("pleural effusion", "present", None)
    (drawn,) = effusion.annotations
    assert (drawn.drawn, drawn.annotator, drawn.automatic) == ("polygon", "dicom-sr", False)
    expected = np.zeros((40, 36), bool)
    expected[6:20, 4:14] = True
    assert np.array_equal(drawn.region.to_mask(), expected)
    assert drawn.image == found.images[0].key


def test_what_a_program_observed_is_marked(import_objects):
    found, _ = read(import_objects, measurement_report(observer="device"))
    assert found.findings[0].annotations[0].automatic


@pytest.mark.parametrize(
    ("code", "certainty"),
    [
        (Code("52101004", "SCT", "Present"), "present"),
        (ABSENT, "absent"),
        (Code("42425007", "SCT", "Equivocal"), "uncertain"),
    ],
    ids=["present", "absent", "equivocal"],
)
def test_presence_is_read(code, certainty, import_objects):
    found, imported = read(import_objects, measurement_report(presence=code, region=False))
    assert [(f.name, f.certainty, f.annotations) for f in found.findings] == [
        ("pleural effusion", certainty, ())
    ]
    assert imported.counts.defects["unknown kind of outline"].times == 1


PRESENCE_NAMES = {
    "presence": ("SCT", "705057003", "Presence"),
    "finding context": ("SCT", "408729009", "Finding context"),
    "presence of property": ("DCM", "121052", "Presence of property"),
}


@pytest.mark.parametrize("name", PRESENCE_NAMES.values(), ids=PRESENCE_NAMES)
@pytest.mark.parametrize("is_beside", [True, False], ids=["beside", "below"])
@pytest.mark.parametrize(
    ("value", "scheme", "certainty"),
    [
        ("52101004", "SCT", "present"),
        ("410515003", "SCT", "present"),
        ("410591008", "SCT", "present"),
        ("G-A203", "SRT", "present"),
        ("G-A203", "SNM3", "present"),
        ("121053", "DCM", "present"),
        ("2667000", "SCT", "absent"),
        ("272519000", "SCT", "absent"),
        ("410516002", "SCT", "absent"),
        ("410594000", "SCT", "absent"),
        ("260385009", "SCT", "absent"),
        ("R-4089B", "SRT", "absent"),
        ("121054", "DCM", "absent"),
        ("415684004", "SCT", "uncertain"),
        ("410592001", "SCT", "uncertain"),
        ("410593006", "SCT", "uncertain"),
        ("410590009", "SCT", "uncertain"),
        ("G-A47B", "SRT", "uncertain"),
        ("121059", "DCM", "uncertain"),
    ],
)
def test_presence_and_finding_contexts(value, scheme, certainty, is_beside, name):
    stated = qualifier(value, name=name, scheme=scheme)
    content = [finding(), stated] if is_beside else [finding("60046008", stated)]
    assert [found.certainty for found in parse_findings(*content)] == [certainty]


def parse_findings(*content):
    read = parse_object(plain_report(*content), is_whole=True, with_pixels=False, max_bytes=1_000_000)
    return [found for found in read_findings(read.attributes) if not isinstance(found, str)]


@pytest.mark.parametrize(
    "stated",
    [
        [qualifier("261665006")],  # unknown
        [qualifier("1", scheme="99LOC")],
        [qualifier("2667000", scheme="99LOC")],  # the value of another scheme
        [qualifier("2667000", name=("99LOC", "7", "Presence"))],
        [qualifier("52101004"), qualifier("2667000")],
        [item("NUM", "111012")],  # a certainty in per cent
    ],
    ids=["unknown", "other code", "other scheme", "other name", "two that differ", "number"],
)
def test_a_presence_that_is_not_understood_states_nothing(stated, import_objects):
    report = plain_report(
        finding("60046008", *stated), item("CONTAINER", "1", ContentSequence=[finding("46621007")])
    )
    found, imported = read(import_objects, report, looked_for="every")
    assert [(f.name, f.certainty) for f in found.findings] == [("atelectasis", "present")]
    assert certainty_of(found, "pleural effusion") is None
    assert certainty_of(found, "mass") == "absent"
    assert imported.counts.defects["finding of unknown presence"].times == 1


@pytest.mark.parametrize(
    "name",
    [("99LOC", "1234", "Loculation"), ("99LOC", "705057003", "Loculation"), ("SCT", "121052", "Loculation")],
    ids=["another name", "another scheme", "a code of another scheme"],
)
@pytest.mark.parametrize("is_beside", [True, False], ids=["beside", "below"])
def test_an_absent_property_does_not_deny_the_finding(is_beside, name):
    stated = qualifier("2667000", name=name)
    content = [finding(), stated] if is_beside else [finding("60046008", stated)]
    assert [found.certainty for found in parse_findings(*content)] == ["present"]


LATERALITY = ("SCT", "272741003", "Laterality")
SITE = ("SCT", "363698007", "Finding Site")


def laterality(value, scheme="SCT", name=LATERALITY):
    return qualifier(value, name=name, scheme=scheme)


def site(value, *content, scheme="SCT", meaning="x", name=SITE):
    made = qualifier(value, name=name, scheme=scheme)
    made.ConceptCodeSequence[0].CodeMeaning = meaning
    made.ContentSequence = list(content)
    return made


PLACES = {
    "a side": ([laterality("24028007")], Location(side="right")),
    "a side of SNOMED RT": ([laterality("G-A101", "SRT", ("SRT", "G-C171", "x"))], Location(side="left")),
    "both sides": ([laterality("51440002")], Location(side="bilateral")),
    "the middle": ([laterality("261129000")], Location(side="midline")),
    "a lung": ([site("44029006")], Location(side="left")),
    "a lung with the side of the site": ([site("39607008", laterality("24028007"))], Location(side="right")),
    "a lung with the side of the finding": (
        [site("39607008"), laterality("24028007")],
        Location(side="right"),
    ),
    "a lung, and no more": ([site("39607008")], None),
    "a lobe": ([site("41224006")], Location(side="left", site="left lower lobe")),
    "a lobe with a side": (
        [site("90572001", laterality("7771000"))],
        Location(side="left", site="left lower lobe"),
    ),
    "a zone with a side": (
        [site("281392002"), laterality("24028007")],
        Location(side="right", zones=("right upper zone",)),
    ),
    "zones of both sides": (
        [site("281394001"), laterality("51440002")],
        Location(side="bilateral", zones=("right lower zone", "left lower zone")),
    ),
    "two lobes": (
        [site("42400003"), site("44714003")],
        Location(side="bilateral", site="right upper lobe, left upper lobe"),
    ),
    "of SNOMED RT": ([site("T-28300", scheme="SRT", name=("SRT", "G-C0E3", "x"))],
                     Location(side="right", site="right middle lobe")),
    "by the meaning of a code": (
        [site("7", scheme="99LOC", meaning="Left costophrenic sulcus")],
        Location(side="left", parts=("left costophrenic angle",)),
    ),
    "the pleura": ([site("44788007")], Location(side="right")),
    "without a side": ([site("72410000")], Location(site="mediastinum")),
    "a side that the structure has no name for": (
        [site("57034009"), laterality("7771000")],
        Location(side="left", site="aortic arch"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("is_beside", [True, False], ids=["beside", "below"])
@pytest.mark.parametrize(("stated", "location"), PLACES.values(), ids=PLACES)
def test_where_a_finding_lies_is_read_from_codes(stated, location, is_beside):
    content = [finding(), *stated] if is_beside else [finding("60046008", *stated)]
    (found,) = parse_findings(*content)
    assert found.location == location


UNKNOWN_PLACES = {
    "unknown side": ([laterality("66459002")], None),
    "side of a hospital": ([laterality("24028007", name=("99LOC", "7", "Laterality"))], None),
    "side in words": ([item("TEXT", "1", TextValue="right", ConceptNameCodeSequence=[coded("272741003")])], None),
    "unknown site": ([site("7", scheme="99LOC", meaning="Miller's spot")], None),
    "value of another scheme": ([site("3341006", scheme="99LOC")], None),
    "unknown site on a side": ([site("7", laterality("7771000")), laterality("24028007")], Location(side="right")),
    "lobe of no side": ([site("90572001")], None),
    "two sides": ([laterality("24028007"), laterality("7771000")], None),
    "the side of another lung": ([laterality("24028007"), site("44029006")], None),
    "a site with another side": ([site("3341006", laterality("7771000"))], None),
    "a part of a site": (
        [site("3341006", qualifier("1", name=("SCT", "106233006", "Topographical modifier")))],
        Location(side="right"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("stated", "location"), UNKNOWN_PLACES.values(), ids=UNKNOWN_PLACES)
def test_a_place_that_is_not_understood_is_left_out_and_no_denial(stated, location, import_objects):
    """Nothing is concluded from an effusion that is absent at a place that nobody knows."""
    report = plain_report(
        finding("60046008", *stated),
        item("CONTAINER", "1", ContentSequence=[finding("46621007", *stated, qualifier("2667000"))]),
    )
    found, imported = read(import_objects, report, looked_for="every")
    assert [(f.name, f.certainty, f.location) for f in found.findings] == [
        ("pleural effusion", "present", location)
    ]
    assert certainty_of(found, "atelectasis") is None
    assert imported.counts.defects["unknown place of a finding"].times == 2


def test_a_place_beside_several_findings_belongs_to_none(import_objects):
    report = plain_report(finding(), finding("46621007", qualifier("2667000")), laterality("24028007"))
    found, _ = read(import_objects, report, looked_for="every")
    assert [(f.name, f.location) for f in found.findings] == [("pleural effusion", None)]
    assert certainty_of(found, "atelectasis") is None


@pytest.mark.parametrize(
    "heading",
    [[site("3341006")], [laterality("24028007")], "Right lung", "Mediastinum"],
    ids=["site", "side", "named after a lung", "named after a structure"],
)
def test_a_denial_in_a_part_of_the_report_about_one_place_denies_nothing_elsewhere(heading):
    group = item("CONTAINER", "2", ContentSequence=[finding("427359005", qualifier("2667000"))])
    inner = [group] if isinstance(heading, str) else [*heading, group]
    part = item("CONTAINER", "1", ContentSequence=inner)
    if isinstance(heading, str):
        part.ConceptNameCodeSequence[0].CodeMeaning = heading
    (found,) = parse_findings(part)
    assert (found.certainty, found.location) == (None, None)


@pytest.mark.parametrize("heading", ["Lungs", "Findings", "Imaging Measurements"])
def test_a_denial_under_another_heading_is_one(heading):
    part = item("CONTAINER", "1", ContentSequence=[finding("427359005", qualifier("2667000"))])
    part.ConceptNameCodeSequence[0].CodeMeaning = heading
    assert [found.certainty for found in parse_findings(part)] == ["absent"]


@pytest.mark.parametrize(
    "name",
    [
        ("SCT", "106233006", "Topographical modifier"),
        ("DCM", "112005", "Radiographic anatomy"),
        ("DCM", "112008", "Site involvement"),
        ("99LOC", "9", "Finding site (attribute)"),
        ("99LOC", "9", "Anatomic region"),
        ("SCT", "246112005", "Severity"),
        ("99LOC", "9", "Severity"),
    ],
    ids=lambda name: name[2],
)
@pytest.mark.parametrize("is_beside", [True, False], ids=["beside", "below"])
def test_a_denial_at_a_part_or_in_a_degree_states_nothing(name, is_beside):
    """No severe effusion may be a small one, and no nodule at the hilum one elsewhere."""
    denial, limit = qualifier("2667000"), qualifier("24484000", name=name)
    content = [finding(), denial, limit] if is_beside else [finding("60046008", denial, limit)]
    assert [found.certainty for found in parse_findings(*content)] == [None]
    assert [found.certainty for found in parse_findings(finding("60046008", limit))] == ["present"]


def test_a_modifier_of_another_kind_limits_a_denial_unless_it_is_about_the_report(import_objects):
    denial, modifier = qualifier("2667000"), qualifier("1", name=("99LOC", "9", "Calibre"))
    for name, certainty in (("121058", "absent"), ("9", None)):
        modifier.RelationshipType = "HAS CONCEPT MOD"
        modifier.ConceptNameCodeSequence[0].CodeValue = name
        modifier.ConceptNameCodeSequence[0].CodingSchemeDesignator = "DCM"
        assert [found.certainty for found in parse_findings(finding(), denial, modifier)] == [certainty]
    found, imported = read(import_objects, plain_report(finding(), denial, modifier), looked_for="every")
    assert certainty_of(found, "pleural effusion") is None
    assert imported.counts.defects["denial of a part of a finding"].times == 1


def test_the_site_of_highdicom_is_read(import_objects):
    lobe = hd.sr.FindingSite(
        Code("90572001", "SCT", "Lower lobe of lung"), laterality=Code("24028007", "SCT", "Right")
    )
    found, imported = read(import_objects, measurement_report(sites=[lobe]))
    assert found.findings[0].location == Location(side="right", site="right lower lobe")
    assert len(found.findings[0].annotations) == 1
    assert set(imported.counts.defects) == {"report text dropped"}


@pytest.mark.parametrize("step", [1, -1], ids=["forth", "back"])
def test_an_effusion_on_the_left_does_not_contradict_none_on_the_right(step, import_objects):
    reports = [
        plain_report(finding("60046008", laterality("7771000")), number=1),
        plain_report(finding("60046008", qualifier("2667000"), laterality("24028007")), number=2),
    ]
    found, imported = read(import_objects, *reports[::step])
    assert found.assessed.disputed == ()
    stated = {(f.certainty, f.location.side) for f in found.findings}
    assert stated == {("present", "left"), ("absent", "right")}
    assert certainty_of(found, "pleural effusion") == "present"
    assert imported.counts.defects == {}


@pytest.mark.parametrize("step", [1, -1], ids=["forth", "back"])
@pytest.mark.parametrize("denied", [[laterality("7771000")], [laterality("51440002")], []])
def test_an_effusion_that_is_denied_on_its_side_is_disputed(denied, step, import_objects):
    reports = [
        plain_report(finding("60046008", site("41224006")), number=1),
        plain_report(finding("60046008", qualifier("2667000"), *denied), number=2),
    ]
    found, _ = read(import_objects, *reports[::step])
    assert found.assessed.disputed == ("pleural effusion",)
    assert [f.certainty for f in found.findings] == ["present"]


@pytest.mark.parametrize("step", [1, -1], ids=["forth", "back"])
def test_a_report_without_a_place_repeats_one_with_it(step, import_objects):
    reports = [
        plain_report(finding("60046008", laterality("7771000")), number=1),
        plain_report(finding("60046008"), number=2),
    ]
    found, _ = read(import_objects, *reports[::step])
    assert [f.location for f in found.findings] == [Location(side="left")]


@pytest.mark.parametrize("step", [1, -1], ids=["forth", "back"])
def test_a_denial_of_both_sides_is_kept_beside_that_of_one(step, import_objects):
    denial = qualifier("2667000")
    reports = [
        plain_report(finding("60046008", denial, laterality("7771000")), number=1),
        plain_report(finding("60046008", denial), number=2),
    ]
    found, _ = read(import_objects, *reports[::step])
    assert certainty_of(found, "pleural effusion") == "absent"


def test_a_denial_on_the_other_side_of_a_mask_does_not_dispute_it(import_objects):
    """The nodule of the segmentation lies on the left of the image, so on the right of the patient."""
    source = image()
    source.ViewPosition, source.PatientOrientation = "PA", ["L", "F"]
    mask = segmentation(NODULE[..., np.newaxis].astype(np.uint8), SEGMENTS[:1], source=source)
    for name, side, disputed in (("left", "7771000", ()), ("right", "24028007", ("nodule",))):
        denial = plain_report(finding("427359005", qualifier("2667000"), laterality(side)))
        (found,) = import_objects([syntaxes.save(source), mask, denial], out=name).opened()
        assert found.assessed.disputed == disputed


def test_a_tracked_mask_gets_the_place_that_the_report_states(import_objects):
    nodule = describe(1, "nodule", "427359005", tracking="1.2.88")
    mask = segmentation(NODULE[..., np.newaxis].astype(np.uint8), [nodule])
    lobe = hd.sr.FindingSite(Code("42400003", "SCT", "Upper lobe of right lung"))
    report = measurement_report(Code("427359005", "SCT", "Nodule"), region=False, sites=[lobe])
    found, _ = read(import_objects, mask, report)
    (shown,) = found.findings
    assert shown.location == Location(side="right", site="right upper lobe")
    assert [one.drawn for one in shown.annotations] == ["mask"]


@pytest.mark.parametrize("step", [1, -1], ids=["forth", "back"])
def test_two_places_of_one_tracked_mask_are_none(step, import_objects):
    nodule = describe(1, "nodule", "427359005", tracking="1.2.88")
    mask = segmentation(NODULE[..., np.newaxis].astype(np.uint8), [nodule])
    reports = []
    for number, side in enumerate(("24028007", "7771000"), start=1):
        tracking = item("UIDREF", "112040", UID="1.2.88")
        reports.append(plain_report(finding("427359005", tracking, laterality(side)), number=number))
    found, imported = read(import_objects, mask, *reports[::step])
    (shown,) = found.findings
    assert shown.location is None
    assert found.assessed.disputed == ("nodule",)  # one of the two is not where the mask lies
    assert {name: one.times for name, one in imported.counts.defects.items()} == {
        "unknown place of a finding": 1,
        "contradiction": 1,
    }


def test_a_tracked_mask_on_the_other_side_than_the_report_states_is_disputed(import_objects):
    """The mask lies on the left of the image, so on the right of the patient."""
    source = image()
    source.ViewPosition, source.PatientOrientation = "PA", ["L", "F"]
    nodule = describe(1, "nodule", "427359005", tracking="1.2.88")
    mask = segmentation(NODULE[..., np.newaxis].astype(np.uint8), [nodule], source=source)
    tracking = item("UIDREF", "112040", UID="1.2.88")
    for name, side, disputed in (("right", "24028007", ()), ("left", "7771000", ("nodule",))):
        report = plain_report(finding("427359005", tracking, laterality(side)))
        (found,) = import_objects([syntaxes.save(source), mask, report], out=name).opened()
        assert found.assessed.disputed == disputed
        assert len(found.findings) == 1


def test_a_device_has_the_side_that_the_report_states(import_objects):
    """That it is absent at one site says nothing about others, and a device has no place for a site."""
    report = plain_report(
        named("Chest tube", laterality("24028007")),
        item("CONTAINER", "1", ContentSequence=[named("Pacemaker", qualifier("2667000"), site("41224006"))]),
    )
    found, _ = read(import_objects, report)
    assert [(device.name, device.side) for device in found.devices] == [("chest tube", "right")]
    assert found.assessed.disputed == ("pacemaker",)


def named(meaning, *content):
    """A finding by the meaning of its code."""
    made = finding("7", *content, scheme="99LOC")
    made.ConceptCodeSequence[0].CodeMeaning = meaning
    return made


def cad_report(*content):
    return plain_report(
        item("CODE", "111017", ConceptCodeSequence=[coded("111242")], ContentSequence=list(content)),
        SOPClassUID="1.2.840.10008.5.1.4.1.1.88.65",
    )


def mark(name, *content):
    return item("CODE", "111059", ConceptCodeSequence=[coded(name)], ContentSequence=list(content))


def test_what_a_chest_cad_program_found_is_marked_as_drawn_by_a_program(import_objects):
    reference = Dataset()
    reference.ReferencedSOPInstanceUID = image().SOPInstanceUID
    outline = item(
        "SCOORD", "111041", GraphicType="POLYLINE", GraphicData=SQUARE.ravel().tolist(),
        ContentSequence=[item("IMAGE", "260753009", ReferencedSOPSequence=[reference])],
    )  # fmt: skip
    intent = ("DCM", "111056", "Rendering Intent")
    report = cad_report(
        mark("427359005", qualifier("111150", name=intent, scheme="DCM"), site("44029006"), outline),
        mark("309529002", qualifier("111152", name=intent, scheme="DCM")),
    )
    found, imported = read(import_objects, report)
    (nodule,) = found.findings
    assert (nodule.name, nodule.location) == ("nodule", Location(side="left"))
    assert [one.automatic for one in nodule.annotations] == [True]
    assert found.assessed.by_program == ("nodule",)
    assert imported.counts.defects["finding that is not to be presented"].times == 1


def test_a_code_of_another_scheme_is_no_finding(import_objects):
    found, imported = read(import_objects, plain_report(finding(scheme="99LOC")))
    assert found.findings == ()
    assert imported.counts.defects["unknown coded finding"].times == 1


@pytest.mark.parametrize("step", [1, -1], ids=["forth", "back"])
def test_reports_that_contradict_each_other_dispute_the_finding(step, import_objects):
    """Whatever the order of the files is: nothing is known of the finding, and builds do not ask about it."""
    reports = [
        plain_report(finding(), number=1),
        plain_report(finding("60046008", qualifier("2667000")), number=2),
    ]
    found, imported = read(import_objects, *reports[::step], looked_for="every")
    assert found.assessed.disputed == ("pleural effusion",)
    assert [f.certainty for f in found.findings] == ["present"]
    assert certainty_of(found, "pleural effusion") is None
    assert imported.counts.defects["contradiction"].times == 1
    assert combine_with_report(found).study.findings == ()
    assert len(combine_with_report(found, on_conflict="ask").study.findings) == 1


def test_a_report_that_denies_what_is_drawn_disputes_it(import_objects):
    mask = segmentation(BOTH.astype(np.uint8), SEGMENTS)
    found, _ = read(import_objects, mask, plain_report(finding("60046008", qualifier("2667000"))))
    assert found.assessed.disputed == ("pleural effusion",)
    assert [f.name for f in found.findings] == ["nodule", "pleural effusion"]
    assert [f.name for f in combine_with_report(found).study.findings] == ["nodule"]


def test_a_drawn_finding_stands_where_a_report_is_not_understood(import_objects):
    mask = segmentation(BOTH.astype(np.uint8), SEGMENTS)
    found, _ = read(import_objects, mask, plain_report(finding("60046008", qualifier("261665006"))))
    assert found.assessed.disputed == ()


def test_an_unknown_finding_is_left_out_and_counted(import_objects):
    found, imported = read(import_objects, measurement_report(Code("1", "99X", "Miller shadow")))
    assert found.findings == ()
    assert imported.counts.defects["unknown coded finding"].times == 1


def test_a_finding_that_a_mask_shows_is_not_repeated(import_objects):
    mask = segmentation(BOTH.astype(np.uint8), SEGMENTS)
    found, imported = read(
        import_objects,
        mask,
        plain_report(item("CODE", "121071", ConceptCodeSequence=[coded("60046008")])),
        measurement_report(presence=ABSENT, region=False),
    )
    assert [f.name for f in found.findings] == ["nodule", "pleural effusion"]
    assert imported.counts.defects["contradiction"].times == 1


def test_text_is_dropped_and_counted(import_objects):
    found, imported = read(import_objects, texts(("121070", "There is a small effusion.")))
    assert found.report is None
    assert imported.counts.defects["report text dropped"].times == 1


def test_text_without_names_and_dates_is_kept_on_demand(import_objects):
    report = texts(
        ("121072", "Small effusion, größer als zuvor."),
        ("121070", "Blunted angle."),
        ("121060", "Cough."),
        ("55", "Lost."),
    )
    found, imported = read(import_objects, report, report_text=True)
    assert [(s.name, s.text) for s in found.report.sections] == [
        ("indication", "Cough."),
        ("findings", "Blunted angle."),
        ("impression", "Small effusion, größer als zuvor."),
    ]
    assert found.indication == "Cough."
    assert imported.counts.defects == {}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Miller has an effusion.", {}),
        ("anna, no effusion", {}),
        ("Seen with 4711.", {}),
        ("Discussed with Rossi.", {"ReferringPhysicianName": "Rossi^Paolo"}),
        ("Müllers Befund: Müller.", {"OperatorsName": "Müller"}),
        ("Compared with 10.3.2020.", {}),
        ("Compared with March 10.", {}),
        ("Called Dr. Unknown.", {}),
        ("Seen in 2019.", {}),
        ("Tel 030 1234567", {}),
        ("MILLER_ANNA was seen.", {}),
        ("Miller's effusion.", {}),
        ("Mil\u200bler has an effusion.", {}),
        ("Anna\tsays so.", {}),
        ("Seen by Muller.", {"OperatorsName": "Müller"}),
        ("Patient Wu has an effusion.", {"PatientName": "Wu^Li"}),
        ("wu has an effusion.", {"PatientName": "Wu^Li"}),
        ("Effusion, see LI.", {"PatientName": "Wu^Li"}),
        ("Told Ng_Xu.", {"PatientName": "Ng^Xu"}),
        ("As An said.", {"PatientName": "An^Thi"}),
        ("As J. said.", {"PatientName": "Zimmer^J"}),
        ("患者王小东。", {"PatientName": "王^小东"}),
        ("As A4711-7 shows.", {"PatientID": "004711"}),
        ("A 93-year-old woman.", {}),
        ("Aged ninety-four.", {}),
        ("93F with cough.", {}),
        ("In her 90s.", {}),
        ("Age: 102", {}),
        ("One hundred and two years old.", {}),
        ("MRN 47", {}),
        ("ID A-4711", {}),
        ("Acc# 7", {}),
        ("No. 12 of the list.", {}),
        ("Folder 4711b", {}),
        ("Compared with Oct. 3rd.", {}),
        ("Compared with October the third.", {}),
        ("On the 3rd of may.", {}),
        ("Seen 3-Oct.", {}),
        ("Unchanged since October.", {}),
        ("Seen by Doctor Smith.", {}),
        ("In room 12.", {}),
    ],
)
def test_text_with_names_or_dates_is_dropped_as_a_whole(text, values, import_objects):
    report = texts(("121070", "No effusion."), ("121072", text), **values)
    found, imported = read(import_objects, report, report_text=True)
    assert found.report is None
    assert imported.counts.defects["names or dates in report text"].times == 1


def test_names_in_the_content_of_the_report_are_looked_for(import_objects):
    name = item("PNAME", "121008", PersonName="Rossi^Paolo")
    text = item("TEXT", "121071", TextValue="As rossi said.")
    _, imported = read(import_objects, plain_report(name, text), report_text=True)
    assert "names or dates in report text" in imported.counts.defects


def test_a_name_that_is_a_sequence_without_end_is_not_spelled_out(import_objects):
    inner = {0x00100010: ("PN", "x")}
    for _ in range(60):
        inner = {0x00101001: ("SQ", Items((inner, inner) if _ < 12 else (inner,)))}
    found = import_objects(
        [encode(radiograph(PATIENT_NAME=("SQ", Items((inner,))))), texts(("121070", "An effusion."))],
        report_text=True,
    )
    (study,) = found.opened()
    assert study.report.text("findings") == "An effusion."


def test_a_report_without_image_or_with_broken_content_is_skipped(import_objects):
    deep = item("CONTAINER", "1")
    for _ in range(30):
        deep = item("CONTAINER", "1", ContentSequence=[deep])
    other = plain_report(deep, number=2, StudyInstanceUID="9.9")
    imported = import_objects([syntaxes.save(image()), plain_report(deep), other])
    assert sorted((s.place, s.kind) for s in imported.skipped) == [
        ("object 2", "damaged"),
        ("object 3", "structured report"),
    ]
    assert imported.counts.kept == 1


@pytest.mark.parametrize(
    "text",
    [
        "Effusion of 3 cm, 2 x 4 cm.",
        "ET tube 4.1 cm above the carina.",
        "No change.",
        "T8 level",
        "1500 ml were drained.",
        "A 62-year-old man, aged 62.",
        "No T8 fracture. An angle of 95 degrees, 96 % saturation.",
        "Of two nodules, the first may be a granuloma.",
        "The left 9th rib.",
    ],
)
def test_ordinary_findings_pass_the_check(text):
    words = IdentifyingWords(names=frozenset(("miller", "an", "no", "a", "t", "of", "cm")))
    assert not is_identifying(text, words)

"""Wordings that were once misread: denied grades, alternatives, short places, what has not quite gone, and tips."""

import pytest

from carina.reports import read_report
from carina.studies.model import Device, Finding

MARKS = {"present": "+", "uncertain": "?", "absent": "-"}


def read(text: str) -> set[str]:
    """Findings and devices with their certainty: "+edema"."""
    reading = read_report(text)
    things: list[Finding | Device] = [*reading.findings, *reading.devices]
    return {MARKS[each.certainty] + each.name for each in things}


def only(text: str) -> Finding:
    (found,) = read_report(text).findings
    return found


def device(text: str) -> Device:
    (found,) = read_report(text).devices
    return found


def facts(text: str) -> list[tuple[str, set[str]]]:
    rows = [line.split("|") for line in text.strip().splitlines()]
    return [
        (sentence.strip(), {name.strip() for name in names.split(",") if name.strip()})
        for sentence, names in rows
    ]


# --- a denied grade denies the grade alone -----------------------------------------------------------------

GRADE_WORDS = (
    "large moderate sizeable sizable significant substantial gross frank overt severe massive marked"
)


@pytest.mark.parametrize("word", GRADE_WORDS.split())
@pytest.mark.parametrize(
    "form",
    [
        "No {} pleural effusion.",
        "There is no {} left effusion.",
        "No evidence of {} effusion.",
        "Lungs without {} effusion.",
    ],
)
def test_a_denied_grade_states_nothing(word: str, form: str) -> None:
    reading = read_report(form.format(word))
    assert reading.findings == ()
    assert all(not sentence.states for sentence in reading.report.sentences)


@pytest.mark.parametrize("word", ["focal", "acute", "definite", "evidence of", "obvious", "discrete", "new"])
def test_a_denied_mild_finding_is_absent(word: str) -> None:
    found = only(f"No {word} consolidation.")
    assert (found.certainty, found.severity, found.distribution, found.appearance) == (
        "absent",
        None,
        None,
        (),
    )


GRADED = """
No moderate or large pneumothorax. |
No pleural effusion of significant size. |
Large pleural effusion is not seen. |
The heart is not significantly enlarged. |
The heart is not grossly enlarged. |
No tension pneumothorax. |
No loculated effusion. |
No significant cardiopulmonary abnormality. |
Free of pneumothorax and large effusion. | -pneumothorax
No pneumothorax or large effusion. | -pneumothorax
No pneumothorax, large effusion or focal consolidation. | -pneumothorax, -consolidation
No significant pleural effusion, and no pneumothorax. | -pneumothorax
No large effusion or pneumothorax. |
No sizeable effusion, pneumothorax, or focal consolidation. | -consolidation
No large pneumothorax, small left effusion is present. | +pleural effusion
Moderate cardiomegaly with no significant effusion. | +cardiomegaly
No large consolidation; mild bibasilar atelectasis is present. | +atelectasis
No significant change in the moderate left effusion. | +pleural effusion
The effusion is large, no pneumothorax. | +pleural effusion, -pneumothorax
Heart size normal, without overt failure. | -cardiomegaly
No large effusion. The costophrenic angles are sharp. | -pleural effusion
Small effusion. No large effusion. | +pleural effusion
"""


@pytest.mark.parametrize(("text", "expected"), facts(GRADED))
def test_severity_is_read_in_other_words(text: str, expected: set[str]) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "The large left effusion has resolved.",
        "No small effusion.",
        "No trace effusion.",
        "FINDINGS: Possible small effusion. IMPRESSION: No left basal effusion.",
        "Resolution of the diffuse severe edema.",
    ],
)
def test_what_is_absent_has_no_grade(text: str) -> None:
    reading = read_report(text)
    assert [each.certainty for each in reading.findings] == ["absent"]
    assert {(each.severity, each.distribution, each.appearance) for each in reading.findings} == {
        (None, None, ())
    }


def test_not_large_is_no_grade() -> None:
    found = only("The effusion is not large.")
    assert (found.certainty, found.severity) == ("present", None)


# --- alternatives and hedges -------------------------------------------------------------------------------

HEDGES = """
Right basilar opacity, pneumonia versus aspiration. | +lung opacity, ?pneumonia
Aspiration versus pneumonia at the right base. | ?pneumonia
Atelectasis vs. pneumonia. | ?atelectasis, ?pneumonia
Pneumonia or aspiration at the right base. | ?pneumonia
Atelectasis in the left lower lobe versus mucus plugging. | ?atelectasis
A focus at the apex, artifact or nodule. | ?nodule
Pneumonia/aspiration. | ?pneumonia
Right basal nodule or nipple shadow. | ?nodule
RLL collapse or consolidation. | ?atelectasis, ?consolidation
Possible pneumothorax versus skin fold at the right apex. | ?pneumothorax
The opacity may represent pneumonia. | +lung opacity, ?pneumonia
The opacity may reflect aspiration or early pneumonia. | +lung opacity, ?pneumonia
The differential diagnosis would include pneumonia, edema and hemorrhage. | ?pneumonia, ?edema
Differential considerations include infarct and pneumonia. | ?pneumonia
Pneumonia is also in the differential. | ?pneumonia
This is more likely atelectasis than pneumonia. | ?atelectasis, ?pneumonia
Low suspicion for pneumonia. | ?pneumonia
Minimal if any pleural effusion. | ?pleural effusion
Trace, if any, left effusion. | ?pleural effusion
Effusion, if any, is small. | ?pleural effusion
If pneumonia is suspected, a repeat radiograph is recommended. |
No effusion or aspiration. | -pleural effusion
No pneumonia versus the prior study. | -pneumonia
Unchanged left effusion versus the prior study. | +pleural effusion
The effusion is larger versus the earlier film. | +pleural effusion
The effusion, versus that of 3 May, is smaller. | +pleural effusion
"""


@pytest.mark.parametrize(("text", "expected"), facts(HEDGES))
def test_hedges_make_findings_uncertain(text: str, expected: set[str]) -> None:
    assert read(text) == expected


# --- places ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "side", "zones"),
    [
        ("RUL", "right", ["right upper"]),
        ("RML", "right", ["right mid"]),
        ("RLL", "right", ["right lower"]),
        ("LUL", "left", ["left upper"]),
        ("LLL", "left", ["left lower"]),
        ("RUZ", "right", ["right upper"]),
        ("RMZ", "right", ["right mid"]),
        ("RLZ", "right", ["right lower"]),
        ("LUZ", "left", ["left upper"]),
        ("LMZ", "left", ["left mid"]),
        ("LLZ", "left", ["left lower"]),
        ("right base", "right", ["right lower"]),
        ("R base", "right", ["right lower"]),
        ("L lung base", "left", ["left lower"]),
        ("L lower lobe", "left", ["left lower"]),
        ("R apex", "right", ["right upper"]),
        ("left basilar", "left", ["left lower"]),
        ("bibasilar", "bilateral", ["right lower", "left lower"]),
        ("biapical", "bilateral", ["right upper", "left upper"]),
        ("retrocardiac", "left", ["left lower"]),
        ("RML and RLL", "right", ["right mid", "right lower"]),
        ("RUL and LLL", "bilateral", ["right upper", "left lower"]),
    ],
)
@pytest.mark.parametrize("form", ["Patchy {} consolidation.", "Consolidation in the {} region is new."])
def test_short_places_are_read(place: str, side: str, zones: list[str], form: str) -> None:
    found = only(form.format(place)).location
    assert found is not None
    assert (found.side, found.zones) == (side, tuple(f"{zone} zone" for zone in zones))


def test_each_short_place_has_its_finding() -> None:
    opacity, nodule = read_report("LUZ opacity and RLZ nodule.").findings
    assert opacity.location is not None
    assert nodule.location is not None
    assert (opacity.location.zones, nodule.location.zones) == (("left upper zone",), ("right lower zone",))


@pytest.mark.parametrize("text", ["Effusions, R>L.", "Effusions, left > right.", "Effusions L > R."])
def test_comparisons_of_both_sides_are_read(text: str) -> None:
    found = only(text).location
    assert found is not None
    assert found.side == "bilateral"


def test_a_side_goes_with_its_organ() -> None:
    text = "The lungs are clear without consolidation, and the right costophrenic angle is sharp."
    sides = {each.name: each.location and each.location.side for each in read_report(text).findings}
    assert (sides["consolidation"], sides["pleural effusion"]) == (None, "right")


@pytest.mark.parametrize("state", ["shows consolidation", "is consolidated", "has a consolidation"])
def test_a_side_goes_with_what_it_shows(state: str) -> None:
    found = read_report(f"The right lung is clear, and the left lung {state}.").findings
    sides = {each.name: each.location and each.location.side for each in found}
    assert (sides["nodule"], sides["consolidation"]) == ("right", "left")


def test_a_vague_word_gives_its_place_to_what_explains_it() -> None:
    found = only("The retrocardiac density may represent pneumonia.")
    assert found.name == "pneumonia"
    assert found.location is not None
    assert found.location.zones == ("left lower zone",)


# --- reach of denials, change ------------------------------------------------------------------------------

REACH = """
Linear opacity favors scar rather than nodule. | +lung opacity, ?scarring, -nodule
Findings reflect edema rather than infection. | +edema, -pneumonia
Lungs are free of edema but hyperinflated. | -edema, +hyperinflation
No pneumothorax following chest tube placement. | -pneumothorax, +chest tube
No pneumothorax after placement of a right PICC. | -pneumothorax, +peripherally inserted central catheter
No residual pneumothorax after chest tube placement. | -pneumothorax, +chest tube
Right chest tube has been removed without pneumothorax. | -chest tube, -pneumothorax
Small left apical pneumothorax after chest tube removal. | +pneumothorax, -chest tube
Pneumothorax has not recurred. | -pneumothorax
An effusion has not developed. | -pleural effusion
No recurrent pneumothorax. | -pneumothorax
No kinking of the chest tube. | +chest tube
There is no increase in the small left effusion. | +pleural effusion
No worsening of the edema. | +edema
No focal opacity to suggest pneumonia. | -lung opacity, -pneumonia
Findings do not suggest edema. | -edema
No evidence for acute pneumonia; mild atelectasis at the bases. | -pneumonia, +atelectasis
Left pigtail catheter has been withdrawn 3 cm. | +chest tube
The endotracheal tube has been pulled back slightly. | +endotracheal tube
The chest tube has been withdrawn. | -chest tube
"""


@pytest.mark.parametrize(("text", "expected"), facts(REACH))
def test_denials_and_hedges_reach_to_the_end_of_their_scope(text: str, expected: set[str]) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "certainty", "trend"),
    [
        ("Near complete resolution of the left effusion.", "present", "improved"),
        ("The effusion has nearly completely resolved.", "present", "improved"),
        ("The effusion has largely resolved.", "present", "improved"),
        ("Incompletely resolved effusion.", "present", "improved"),
        ("The right effusion is no longer large.", "present", "improved"),
        ("The effusion has improved but not resolved.", "present", "improved"),
        ("The right effusion has not resolved.", "present", None),
        ("The effusion has not increased.", "present", None),
        ("The effusion has not yet cleared.", "present", None),
        ("The effusion has completely resolved.", "absent", "resolved"),
        ("The effusion is no longer seen.", "absent", "resolved"),
        ("Resolved effusion.", "absent", "resolved"),
        ("Complete resolution of the effusion.", "absent", "resolved"),
    ],
)
def test_partial_resolution_is_improvement(text: str, certainty: str, trend: str | None) -> None:
    found = only(text)
    assert (found.certainty, found.trend) == (certainty, trend)


# --- tips --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "side", "site", "position"),
    [
        ("Right IJ line ends in the mid SVC without pneumothorax.", "right", "in the mid SVC", None),
        (
            "ETT tip is 2 cm above the carina and could be withdrawn slightly.",
            None,
            "2 cm above the carina",
            None,
        ),
        (
            "Enteric tube courses below the diaphragm with its tip in the stomach.",
            None,
            "in the stomach",
            None,
        ),
        (
            "Enteric tube courses below the diaphragm with its tip out of view.",
            None,
            "below the diaphragm",
            None,
        ),
        (
            "The nasogastric tube is coiled in the esophagus and should be repositioned.",
            None,
            "coiled in the esophagus",
            "malpositioned",
        ),
        ("Pacemaker with leads ending in the right atrium.", None, "in the right atrium", None),
        ("Swan-Ganz tip in the right pulmonary artery.", None, "in the right pulmonary artery", None),
        ("Left PICC tip at the cavoatrial junction.", "left", "at the cavoatrial junction", None),
    ],
)
def test_sites_of_device_tips_are_read(text: str, side: str | None, site: str, position: str | None) -> None:
    found = device(text)
    assert (found.side, found.site, found.position) == (side, site, position)

"""Whole reports: sections, sentences, places, change, devices, relations, advice, and facts stated several times."""

import pytest

from carina.reports import read_report, with_report_truth
from carina.reports.lexicon import lexicon
from carina.reports.phrases import spell_out
from carina.studies.assessment import certainty_of
from carina.studies.faults import faults
from carina.studies.model import Assessed, Device, Finding, Image, Location, Report, ReportSection, Study
from carina.studies.vocabulary import DEVICES, FINDINGS


def sections(text: str) -> dict[str, str]:
    return {section.name: section.text for section in read_report(text).report.sections}


def sentences(text: str) -> list[str]:
    report = read_report(text).report
    return [report.quote(sentence) for sentence in report.sentences]


def finding(text: str, name: str) -> Finding:
    found = [each for each in read_report(text).findings if each.name == name]
    assert len(found) == 1, found
    return found[0]


def device(text: str, name: str) -> Device:
    found = [each for each in read_report(text).devices if each.name == name]
    assert len(found) == 1, found
    return found[0]


def side_of(found: Finding) -> str | None:
    return found.location.side if found.location else None


def place_of(found: Finding) -> Location:
    assert found.location is not None
    return found.location


# --- sections and sentences --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FINDINGS: Clear. IMPRESSION: Normal.", {"findings": "Clear.", "impression": "Normal."}),
        ("Findings :\nClear.\n\nImpression:\nNormal.", {"findings": "Clear.", "impression": "Normal."}),
        ("FINDINGS\nClear.\nIMPRESSION\nNormal.", {"findings": "Clear.", "impression": "Normal."}),
        ("**Findings:** Clear.", {"findings": "Clear."}),
        ("Clear lungs.", {"findings": "Clear lungs."}),
        ("The findings: clear lungs.", {"findings": "The findings: clear lungs."}),
        ("CHEST\nFINDINGS: Clear.", {"technique": "CHEST", "findings": "Clear."}),
        ("Clear lungs.\nIMPRESSION: Normal.", {"findings": "Clear lungs.", "impression": "Normal."}),
        ("CLINICAL HISTORY: Cough.\nCONCLUSION: Normal.", {"indication": "Cough.", "impression": "Normal."}),
        ("IMPRESSION: A.\nFINDINGS: B.\nIMPRESSION: C.", {"impression": "A.\nC.", "findings": "B."}),
        ("", {}),
    ],
)
def test_text_is_split_into_sections(text: str, expected: dict[str, str]) -> None:
    assert sections(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A 2.1 cm nodule. No effusion.", ["A 2.1 cm nodule.", "No effusion."]),
        ("Seen by Dr. Hill. No effusion.", ["Seen by Dr. Hill.", "No effusion."]),
        ("Fracture at T. 4 level.", ["Fracture at T. 4 level."]),
        ("1. Effusion. 2. Nodule.", ["Effusion.", "Nodule."]),
        ("1) Effusion\n2) XXXX nodule", ["Effusion", "XXXX nodule"]),
        ("- Effusion\n- Nodule", ["Effusion", "Nodule"]),
        ("Lungs: Both are clear.\nHeart: Normal in size.", ["Both are clear.", "Normal in size."]),
        ("No effusion.No nodule.", ["No effusion.", "No nodule."]),
        ("Small effusion\nin the left base.", ["Small effusion\nin the left base."]),
        ("Small effusion\nNo nodule", ["Small effusion", "No nodule"]),
        ("Atelectasis vs. infiltrate.", ["Atelectasis vs. infiltrate."]),
        (". . .", []),
    ],
)
def test_sections_are_split_into_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_a_sentence_without_a_name_speaks_of_its_heading() -> None:
    assert finding("Heart: Normal in size.", "cardiomegaly").certainty == "absent"
    assert finding("Lungs: Clear.", "nodule").certainty == "absent"


@pytest.mark.parametrize("heading", ["INDICATION", "HISTORY", "TECHNIQUE", "COMPARISON"])
def test_only_findings_and_impression_state_findings(heading: str) -> None:
    reading = read_report(f"{heading}: Pneumonia and effusion, chest tube.\nFINDINGS: No nodule.")
    assert [(each.name, each.certainty) for each in reading.findings] == [("nodule", "absent")]
    assert reading.devices == ()


def test_given_sentences_are_kept() -> None:
    first = read_report("FINDINGS: Small effusion. No nodule.").report
    again = read_report(first)
    assert again.report == first


# --- places, grades, looks, change -------------------------------------------------------------------------

R, L = "right", "left"


@pytest.mark.parametrize(
    ("place", "side", "zones"),
    [
        ("in the right upper zone", R, ["right upper"]),
        ("in the left lung base", L, ["left lower"]),
        ("at both bases", "bilateral", ["right lower", "left lower"]),
        ("in the mid and lower zones of the left lung", L, ["left mid", "left lower"]),
        (
            "in the right mid zone and the lower zones of the left lung",
            "bilateral",
            ["right mid", "left lower"],
        ),
        ("throughout the right lung", R, ["right upper", "right mid", "right lower"]),
        ("in the entire left lung", L, ["left upper", "left mid", "left lower"]),
        ("on the left", L, []),
        ("bilaterally", "bilateral", []),
        ("in the lingula", L, ["left mid"]),
        ("in the right middle lobe", R, ["right mid"]),
        ("in the retrocardiac region", L, ["left lower"]),
        ("at the left apex", L, ["left upper"]),
    ],
)
def test_places_are_read_as_side_zones_and_site(place: str, side: str, zones: list[str]) -> None:
    found = place_of(finding(f"There is consolidation {place}.", "consolidation"))
    assert (found.side, found.zones) == (side, tuple(f"{zone} zone" for zone in zones))


def test_each_finding_has_its_own_place() -> None:
    text = (
        "Left basilar atelectasis and a small effusion on the right, with a nodule in the right upper lobe."
    )
    assert place_of(finding(text, "atelectasis")).zones == ("left lower zone",)
    assert place_of(finding(text, "pleural effusion")).side == "right"
    assert place_of(finding(text, "nodule")).site == "right upper lobe"
    assert place_of(finding("Fracture of the right 6th rib.", "fracture")).site == "right 6th rib"


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("Small left effusion.", "mild"),
        ("Left effusion, moderate.", "moderate"),
        ("A large amount of fluid: massive effusion.", "severe"),
        ("Effusion of moderate size.", "moderate"),
        ("Effusion in a patient with a large heart.", None),
        ("Trace effusion and severe atelectasis.", "mild"),
    ],
)
def test_severity_is_read(text: str, severity: str | None) -> None:
    assert finding(text, "pleural effusion").severity == severity


@pytest.mark.parametrize(
    ("text", "trend"),
    [
        ("New left effusion.", "new"),
        ("Interval development of an effusion.", "new"),
        ("The effusion has increased since the prior study.", "worse"),
        ("Worsening effusion.", "worse"),
        ("Interval increase in the effusion.", "worse"),
        ("The effusion has decreased.", "improved"),
        ("Resolving effusion.", "improved"),
        ("Effusion, unchanged.", "unchanged"),
        ("No significant change in the effusion.", "unchanged"),
        ("Persistent effusion.", "unchanged"),
        ("The nodule is stable and the effusion is larger.", "worse"),
        ("The effusion has resolved.", "resolved"),
        ("Small effusion. Stable appearance of the chest.", "unchanged"),
        ("Small effusion.", None),
    ],
)
def test_trends_are_read(text: str, trend: str | None) -> None:
    assert finding(text, "pleural effusion").trend == trend


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Left effusion resolved, right effusion unchanged.",
            {("left", "absent", "resolved"), ("right", "present", "unchanged")},
        ),
        (
            "Right effusion increased, left effusion decreased.",
            {("right", "present", "worse"), ("left", "present", "improved")},
        ),
        ("Stable, small right effusion.", {("right", "present", "unchanged")}),
    ],
)
def test_a_change_belongs_to_the_side_that_it_closes(text: str, expected: set[tuple[str, ...]]) -> None:
    found = read_report(text).findings
    assert {(side_of(each), each.certainty, each.trend) for each in found} == expected


@pytest.mark.parametrize(
    "text",
    [
        "Bilateral opacities with relative sparing of the lung apices.",
        "Bilateral opacities sparing the right apex.",
        "Bilateral opacities, the right upper lobe is relatively spared.",
    ],
)
def test_a_place_that_is_spared_is_no_place_of_the_finding(text: str) -> None:
    location = finding(text, "lung opacity").location
    assert location is not None
    assert (location.side, location.zones, location.site) == ("bilateral", (), None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Left opacity noted, not visualized on prior.", ["present"]),
        ("This opacity was not seen on the previous CT.", ["present"]),
        ("An opacity is seen on the PA view, not seen on the lateral view.", ["present"]),
        ("The opacity is not seen on the lateral view.", []),
        ("The opacity is not seen on the current study.", ["absent"]),
        ("The opacity is not seen in the lateral costophrenic angle.", ["absent"]),
        ("The opacity seen on the prior study is not seen.", ["absent"]),
    ],
)
def test_what_another_study_or_view_does_not_show_is_not_denied(text: str, expected: list[str]) -> None:
    found = [each.certainty for each in read_report(text).findings if each.name == "lung opacity"]
    assert found == expected


def test_appearance_and_distribution_are_read() -> None:
    found = finding("Multifocal patchy consolidation with air bronchograms.", "consolidation")
    assert (found.distribution, set(found.appearance)) == ("multifocal", {"patchy", "air bronchograms"})


# --- devices -----------------------------------------------------------------------------------------------


def test_a_device_has_side_site_and_position() -> None:
    tube = device(
        "The ET tube tip lies 4.1 cm above the carina, in satisfactory position.", "endotracheal tube"
    )
    assert (tube.certainty, tube.site, tube.position) == ("present", "4.1 cm above the carina", "adequate")
    line = device(
        "Right central venous line, malpositioned, with its tip in the right atrium.", "central venous line"
    )
    assert (line.side, line.site, line.position) == ("right", "in the right atrium", "malpositioned")


@pytest.mark.parametrize(
    ("text", "name", "certainty", "trend"),
    [
        ("Interval placement of a left chest tube.", "chest tube", "present", "new"),
        ("The NG tube is unchanged in position.", "nasogastric tube", "present", "unchanged"),
        ("Interval removal of the chest tube.", "chest tube", "absent", "resolved"),
        ("A right PICC is present.", "peripherally inserted central catheter", "present", None),
        ("No chest tube is seen.", "chest tube", "absent", None),
    ],
)
def test_devices_are_read(text: str, name: str, certainty: str, trend: str | None) -> None:
    found = device(text, name)
    assert (found.certainty, found.trend) == (certainty, trend)


# --- relations, advice, comparison -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Effusion due to pneumonia.", ("pneumonia", "causes", "pleural effusion")),
        ("The effusion is due to the pneumonia.", ("pneumonia", "causes", "pleural effusion")),
        ("Pneumonia with resulting effusion.", ("pneumonia", "causes", "pleural effusion")),
        ("Effusion with atelectasis.", ("pleural effusion", "accompanies", "atelectasis")),
        ("Consolidation consistent with pneumonia.", ("consolidation", "suggests", "pneumonia")),
        ("Consolidation, possibly pneumonia.", ("consolidation", "suggests", "pneumonia")),
    ],
)
def test_relations_are_read(text: str, expected: tuple[str, str, str]) -> None:
    reading = read_report(text)
    names = {each.id: each.name for each in reading.findings}
    assert [(names[r.subject], r.kind, names[r.object]) for r in reading.relations] == [expected]


def test_a_sign_may_suggest_several_things() -> None:
    reading = read_report("Opacity may represent atelectasis or pneumonia.")
    names = {each.id: each.name for each in reading.findings}
    assert [names[each.object] for each in reading.relations] == ["atelectasis", "pneumonia"]


@pytest.mark.parametrize(
    "text",
    [
        "Effusion without pneumonia.",
        "Effusion and pneumonia.",
        "Effusion, together with pneumonia.",
        "No effusion due to pneumonia.",
    ],
)
def test_nothing_is_related_to_what_is_denied_or_only_listed(text: str) -> None:
    assert read_report(text).relations == ()


@pytest.mark.parametrize(
    ("text", "action", "about"),
    [
        ("Nodule. Recommend chest CT to evaluate the nodule.", "chest CT", ["nodule"]),
        ("There is a nodule, for which CT is recommended.", "chest CT", ["nodule"]),
        ("Consolidation. A follow-up radiograph is advised.", "follow-up radiograph", ["consolidation"]),
        ("ET tube in place. The ET tube should be repositioned.", "reposition device", ["endotracheal tube"]),
        ("Possible effusion. A lateral view is suggested.", "lateral view", ["pleural effusion"]),
        ("Opacity. Correlate clinically.", "clinical correlation", ["lung opacity"]),
        ("Pneumothorax. Urgent attention is needed.", "urgent clinical attention", ["pneumothorax"]),
    ],
)
def test_recommended_actions_are_read(text: str, action: str, about: list[str]) -> None:
    reading = read_report(text)
    things: list[Finding | Device] = [*reading.findings, *reading.devices]
    names = {each.id: each.name for each in things}
    assert [(r.action, [names[a] for a in r.about]) for r in reading.recommendations] == [(action, about)]


def test_a_recommendation_does_not_state_what_it_looks_for() -> None:
    reading = read_report(
        "Opacity. Recommend follow-up to exclude pneumonia. CT is recommended to assess for mass."
    )
    assert [each.name for each in reading.findings] == ["lung opacity"]


def test_the_recommendation_section_makes_no_finding() -> None:
    reading = read_report("FINDINGS: Opacity.\nRECOMMENDATION: The nodule needs CT.")
    assert [each.name for each in reading.findings] == ["lung opacity"]


def test_a_recommendation_does_not_state_resolution() -> None:
    text = "Pneumonia. Recommend follow-up radiograph to document resolution of the pneumonia."
    found = finding(text, "pneumonia")
    assert (found.certainty, found.trend, found.evidence) == ("present", None, (0, 1))


@pytest.mark.parametrize(
    ("text", "prior"),
    [
        ("COMPARISON: None.\nFINDINGS: Clear.", "none"),
        ("COMPARISON: No prior studies are available.\nFINDINGS: Clear.", "none"),
        ("COMPARISON: Chest radiograph of 03/04/2015.\nFINDINGS: Clear.", "named"),
        ("FINDINGS: The effusion has increased since the prior study.", "named"),
        ("FINDINGS: Sequela of prior granulomatous disease.", None),
    ],
)
def test_comparison_with_a_prior_study_is_read(text: str, prior: str | None) -> None:
    found = read_report(text).comparison
    assert (found.prior if found else None) == prior


# --- one record for what is said several times -------------------------------------------------------------


def test_a_finding_stated_twice_is_one_with_both_as_evidence() -> None:
    found = finding("FINDINGS: Small left effusion. IMPRESSION: Left effusion.", "pleural effusion")
    assert (found.evidence, side_of(found), found.severity) == ((0, 1), "left", "mild")


def test_two_sides_are_two_findings() -> None:
    found = read_report("Small right effusion. Large left effusion. The left effusion is new.").findings
    assert [(side_of(each), each.severity, each.trend) for each in found] == [
        ("right", "mild", None),
        ("left", "severe", "new"),
    ]


@pytest.mark.parametrize(
    ("text", "certainty"),
    [
        ("FINDINGS: Possible effusion. IMPRESSION: Small effusion.", "present"),
        ("FINDINGS: Small left effusion. IMPRESSION: No effusion.", "present"),
        ("FINDINGS: Possible left effusion. IMPRESSION: No effusion.", "uncertain"),
        ("FINDINGS: Possible effusion. IMPRESSION: No effusion.", "absent"),
        ("FINDINGS: Effusion. IMPRESSION: Possible small left effusion.", "uncertain"),
        ("FINDINGS: Small effusion. No acute cardiopulmonary abnormality.", "present"),
        ("FINDINGS: No effusion. IMPRESSION: Possible effusion.", "uncertain"),
    ],
)
def test_contradicting_sentences_are_merged_by_rank(text: str, certainty: str) -> None:
    assert finding(text, "pleural effusion").certainty == certainty


def test_a_denial_of_one_side_stands_beside_the_other() -> None:
    found = read_report("Right pneumothorax. No left pneumothorax.").findings
    assert [(each.certainty, side_of(each)) for each in found] == [
        ("present", "right"),
        ("absent", "left"),
    ]


def test_a_resolved_finding_stands_beside_a_present_one() -> None:
    found = read_report("Right nodule. Another nodule seen previously has resolved.").findings
    assert [(each.certainty, each.trend) for each in found] == [("present", None), ("absent", "resolved")]


def test_an_overruled_denial_is_no_evidence() -> None:
    reading = read_report("Small left effusion. No effusion.")
    assert reading.findings[0].evidence == (0,)
    assert reading.report.sentences[1].states == ()


# --- studies -----------------------------------------------------------------------------------------------


def study(text: str, prior: str | None = None) -> Study:
    report = Report(sections=(ReportSection(name="findings", text=text),))
    image = Image(key="a.png", view="PA", width=8, height=8)
    return Study(id="s", patient="p", source="x", order=0, images=(image,), prior=prior, report=report)


def test_a_study_with_only_a_report_gets_its_truth_from_it() -> None:
    bare = study(
        "Small left effusion with atelectasis since the prior study. ET tube in place. CT is advised."
    )
    full = with_report_truth(bare)
    assert [each.name for each in full.findings] == ["pleural effusion", "atelectasis"]
    assert [each.name for each in full.devices] == ["endotracheal tube"]
    assert [each.kind for each in full.relations] == ["accompanies"]
    assert [each.action for each in full.recommendations] == ["chest CT"]
    assert not list(faults(full))
    assert with_report_truth(full) is full


def test_a_report_that_was_read_does_not_say_what_else_was_looked_for() -> None:
    full = with_report_truth(study("Small left effusion. No pneumothorax."))
    assert full.assessed == Assessed(findings="unknown", devices="unknown", text=True)
    known = {name: certainty_of(full, name) for name in ("pleural effusion", "pneumothorax", "mass")}
    assert known == {"pleural effusion": "present", "pneumothorax": "absent", "mass": None}


def test_a_comparison_is_about_the_prior() -> None:
    full = with_report_truth(study("Unchanged since the prior study.", prior="s0"))
    assert full.report is not None
    states = [state for sentence in full.report.sentences for state in sentence.states]
    assert [(state.kind, state.about) for state in states] == [("comparison", "s0")]


def test_structured_truth_is_left_alone() -> None:
    known = with_report_truth(study("Small effusion."))
    other = Study(
        id="s",
        patient="p",
        source="x",
        order=0,
        images=(),
        findings=known.findings,
        report=study("Nodule.").report,
    )
    assert with_report_truth(other) is other


# --- the lexicon -------------------------------------------------------------------------------------------


def test_phrases_are_spelled_out() -> None:
    assert set(spell_out("(a) b/c d(s)")) == {
        (*first, second, third) for first in ((), ("a",)) for second in "bc" for third in ("d", "ds")
    }
    assert set(spell_out("cannot/can_not x-ray")) == {("cannot", "x", "ray"), ("can", "not", "x", "ray")}


def test_every_name_of_the_vocabulary_is_understood() -> None:
    for name in FINDINGS:
        assert finding(f"There is {name}.", name).certainty == "present"
    for name in DEVICES:
        assert device(f"A {name} is in place.", name).certainty == "present"


@pytest.mark.parametrize(
    "word", ["the", "of", "in", "is", "are", "was", "a", "chest", "right", "small", "and"]
)
def test_plain_words_name_no_finding(word: str) -> None:
    kinds = {role.kind for role in lexicon().phrases.roles(word)}
    assert not kinds & {"finding", "device", "weak", "denial", "doubt"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("No left pleural effusion.", {"pleural effusion": "left"}),
        ("No pleural effusion. No left pleural effusion.", {"pleural effusion": None}),
        ("No left pleural effusion. No pleural effusion.", {"pleural effusion": None}),
        # The side may be said of the whole list.
        ("No left effusion or pneumothorax.", {"pleural effusion": "left", "pneumothorax": "left"}),
        ("No effusion or pneumothorax on the left.", {"pleural effusion": "left", "pneumothorax": "left"}),
        ("No pneumothorax or left effusion.", {"pneumothorax": None, "pleural effusion": "left"}),
    ],
)
def test_the_side_of_a_denial_is_kept(text, expected):
    found = {one.name: side_of(one) for one in read_report(text).findings if one.certainty == "absent"}
    assert found == expected


def test_the_left_lung_alone_says_nothing_of_both():
    report = Report(sections=(ReportSection(name="findings", text="The left lung is clear."),))
    study = with_report_truth(Study(id="s", patient="p", source="x", images=(), report=report))
    assert certainty_of(study, "consolidation") is None


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        ("Focal subsegmental atelectasis suggested on lateral view, probably in the right middle lobe.", []),
        ("Leads account for mild increased density on AP view, with correlate on lateral view.", []),
        ("Lucency may represent free air. Left lateral decubitus film may be helpful.", ["decubitus view"]),
        (
            "Right lower lobe infiltrate. Consider followup PA and lateral chest x-ray in 4-6 weeks.",
            ["follow-up radiograph"],
        ),
        ("Opacity on AP view, not well-seen on the lateral view, a dedicated scan is recommended.", []),
        ("Small nodules on the prior chest CT, recommend clinical correlation.", ["clinical correlation"]),
        ("Findings on CT suggest pneumonia.", []),
        ("An effusion is seen on CT; consider a lateral view.", ["lateral view"]),
        ("Opacity. An additional lateral view is advised.", ["lateral view"]),
        ("Opacity. Suggest PA and lateral views.", ["lateral view"]),
    ],
)
def test_an_action_is_recommended_by_a_word_of_its_clause(text: str, actions: list[str]) -> None:
    assert [advice.action for advice in read_report(text).recommendations] == actions


def test_only_repositioning_is_recommended_for_a_device() -> None:
    reading = read_report("Multiple overlying leads and a nodule, recommend chest CT.")
    names = {thing.id: thing.name for thing in reading.things}
    assert [names[thing] for thing in reading.recommendations[0].about] == ["nodule"]
    tube = read_report("The endotracheal tube is too low and should be repositioned.")
    assert tube.recommendations[0].about == (tube.devices[0].id,)

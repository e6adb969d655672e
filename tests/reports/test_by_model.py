"""Reports read by a model: what it may state, what is dropped, and when the rules take over."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from carina.cases import Origin
from carina.models.served import AnswerCache
from carina.reports import read_report
from carina.reports.by_model import (
    ExtractionCounts,
    read_reports_by_model,
    with_report_truth_by_model,
)
from carina.reports.by_model.evidence import find_key, find_name
from carina.reports.by_model.prompt import instructions
from carina.store.errors import CarinaError
from carina.studies import Image, Study
from carina.studies.faults import faults
from carina.studies.model import Location, Report, ReportSection, Statement
from carina.studies.vocabulary import DEVICES, FINDINGS

pytest.importorskip("inspect_ai", reason="the extra served is not installed")

_path = Path(__file__).parents[1] / "models" / "loopback.py"
_spec = importlib.util.spec_from_file_location("loopback_service_of_reports", _path)
loopback = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = loopback
_spec.loader.exec_module(loopback)

REPORT = Report(
    sections=(
        ReportSection(name="indication", text="Cough, rule out pneumonia."),
        ReportSection(
            name="findings",
            text="The heart is enlarged. There is a small left pleural effusion with adjacent atelectasis. "
            "The endotracheal tube tip lies 4.1 cm above the carina. No pneumothorax.",
        ),
        ReportSection(
            name="impression",
            text="Small left pleural effusion, possibly worse. Chest CT is recommended.",
        ),
    )
)
# Sentences: 0 indication; 1 heart, 2 effusion, 3 tube, 4 pneumothorax; 5 effusion, 6 CT.


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("LOOPBACK_API_KEY", loopback.KEY)


def reply_json(findings=(), devices=(), relations=(), recommendations=()):
    lists = {
        "findings": list(findings),
        "devices": list(devices),
        "relations": list(relations),
        "recommendations": list(recommendations),
    }
    return json.dumps(lists)


def fact(name, *sentences, **fields):
    return {"id": "f1", "name": name, "certainty": "present", "sentences": list(sentences)} | fields


def read(answer, *reports, **settings):
    """Readings of reports that are all answered alike, what was counted, and the service."""
    counts = ExtractionCounts()
    script = answer if callable(answer) else lambda _: answer
    with loopback.serving(script) as service:
        readings = list(
            read_reports_by_model(
                loopback.MODEL, reports or [REPORT], counts=counts, base_url=service.url, **settings
            )
        )
    return readings, counts, service


GOOD = reply_json(
    [
        fact("cardiomegaly", 1, id="a"),
        fact("Pleural effusions", 2, 5, id="b", side="left", severity="mild", trend="worse"),
        fact("atelectasis", 2, id="c", side="left"),
        fact("pneumothorax", 4, id="d", certainty="absent"),
    ],
    [fact("ET tube", 3, id="t", site="4.1 cm above the carina")],
    [{"subject": "b", "kind": "accompanies", "object": "c", "sentences": [2]}],
    [{"action": "CT", "about": ["b"], "sentences": [6]}],
)


def test_a_good_reply_becomes_records_with_evidence_and_origin():
    (reading,), counts, _ = read(GOOD)
    heart, effusion, atelectasis, pneumothorax = reading.findings
    assert [f.id for f in reading.findings] == ["f1", "f2", "f3", "f4"]
    assert (heart.name, heart.certainty, heart.evidence) == ("cardiomegaly", "present", (1,))
    assert (effusion.name, effusion.severity, effusion.trend, effusion.evidence) == (
        "pleural effusion",
        "mild",
        "worse",
        (2, 5),
    )
    assert effusion.location == Location(side="left")
    assert atelectasis.location == Location(side="left")
    assert (pneumothorax.certainty, pneumothorax.evidence) == ("absent", (4,))
    (tube,) = reading.devices
    assert (tube.id, tube.name, tube.site, tube.evidence) == (
        "d1",
        "endotracheal tube",
        "4.1 cm above the carina",
        (3,),
    )
    (relation,) = reading.relations
    assert (relation.subject, relation.kind, relation.object, relation.evidence) == (
        "f2",
        "accompanies",
        "f3",
        (2,),
    )
    (advice,) = reading.recommendations
    assert (advice.action, advice.about, advice.evidence) == ("chest CT", ("f2",), (6,))
    assert reading.origin == Origin(method="llm", model=loopback.MODEL, review="none")
    assert (counts.by_model, dict(counts.by_rules), dict(counts.dropped)) == (1, {}, {})


def test_sentences_state_only_attributes_that_they_have_words_for():
    (reading,), _, _ = read(GOOD)
    states = [sentence.states for sentence in reading.report.sentences]
    assert states[0] == ()
    assert states[2] == (
        Statement(kind="finding", about="f2", certainty="present", side="left", severity="mild"),
        Statement(kind="finding", about="f3", certainty="present", side="left"),
        Statement(kind="relation", about="x1"),
    )
    assert states[5] == (
        Statement(
            kind="finding", about="f2", certainty="present", side="left", severity="mild", trend="worse"
        ),
    )
    assert states[6] == (Statement(kind="recommendation", about="r1"),)


def test_facts_have_the_same_form_as_those_of_the_rules():
    (reading,), _, _ = read(GOOD)
    rules = read_report(REPORT)
    assert {f.name: f.certainty for f in reading.findings} == {f.name: f.certainty for f in rules.findings}
    assert reading.report.sections == rules.report.sections
    assert [(s.section, s.start, s.end) for s in reading.report.sentences] == [
        (s.section, s.start, s.end) for s in rules.report.sentences
    ]
    assert reading.comparison == rules.comparison


def test_the_model_is_shown_numbered_sentences_and_the_vocabulary():
    _, _, service = read(GOOD)
    (asked,) = service.asked
    assert asked.user.splitlines()[0] == "[1] (findings) The heart is enlarged."
    assert asked.user.splitlines()[-1] == "[6] (impression) Chest CT is recommended."
    assert "pneumonia" not in asked.user
    assert asked.system == instructions()
    for name in (*FINDINGS, *DEVICES, "chest CT", "accompanies", "uncertain", "spiculated"):
        assert name in asked.system


@pytest.mark.parametrize(
    ("reason", "answer"),
    [
        ("unknown name", reply_json([fact("unicorn", 1)])),
        ("unknown name", reply_json([fact("endotracheal tube", 3)])),
        ("unknown name", reply_json([fact("effusion and pneumothorax", 2)])),
        ("unknown name", reply_json([], [fact("pleural effusion", 2)])),
        ("unknown name", reply_json([], [], [], [{"action": "pray", "about": [], "sentences": [6]}])),
        ("no such sentence", reply_json([fact("cardiomegaly", 7)])),
        ("no such sentence", reply_json([fact("cardiomegaly", 1, -1)])),
        ("no such sentence", reply_json([fact("cardiomegaly")])),
        ("no such sentence", reply_json([fact("pneumonia", 0)])),
        ("no such sentence", reply_json([], [], [], [{"action": "chest CT", "about": [], "sentences": [9]}])),
        ("unsupported", reply_json([fact("cardiomegaly", 2)])),
        ("unsupported", reply_json([fact("nodule", 1, 2, 3)])),
        ("unsupported", reply_json([], [fact("chest tube", 3)])),
        ("unsupported", reply_json([], [], [], [{"action": "chest CT", "about": [], "sentences": [5]}])),
        ("malformed", reply_json([fact("cardiomegaly", 1, certainty="perhaps")])),
        ("malformed", reply_json([fact("cardiomegaly", 1, severity="terrible")])),
        ("malformed", reply_json([fact("cardiomegaly", "1")])),
        ("malformed", reply_json([fact("cardiomegaly", 1, thoughts="large")])),
        ("malformed", reply_json(["cardiomegaly"])),
    ],
)
def test_a_malformed_or_unsupported_fact_is_dropped_and_counted(reason, answer):
    (reading,), counts, _ = read(answer)
    assert reading.findings == reading.devices == reading.recommendations == ()
    assert dict(counts.dropped) == {reason: 1}
    assert (counts.by_model, dict(counts.by_rules)) == (1, {})
    assert reading.origin.note == f"dropped: {reason} 1"


@pytest.mark.parametrize(
    ("reason", "relation"),
    [
        ("unknown id", {"subject": "a", "kind": "causes", "object": "z", "sentences": [2]}),
        ("unknown id", {"subject": "a", "kind": "causes", "object": "a", "sentences": [2]}),
        ("no such sentence", {"subject": "b", "kind": "causes", "object": "c", "sentences": []}),
        ("unsupported", {"subject": "a", "kind": "causes", "object": "b", "sentences": [2]}),
        ("malformed", {"subject": "b", "kind": "loves", "object": "c", "sentences": [2]}),
    ],
)
def test_a_relation_needs_both_its_ends_in_its_sentences(reason, relation):
    facts = [fact("cardiomegaly", 1, id="a"), fact("effusion", 2, id="b"), fact("atelectasis", 2, id="c")]
    (reading,), counts, _ = read(reply_json(facts, relations=[relation]))
    assert len(reading.findings) == 3
    assert reading.relations == ()
    assert dict(counts.dropped) == {reason: 1}


@pytest.mark.parametrize(
    "attribute",
    [
        {"side": "right"},
        {"severity": "severe"},
        {"distribution": "diffuse"},
        {"trend": "improved"},
        {"trend": "resolved"},
        {"zones": ["left upper zone"]},
        {"appearance": ["spiculated"]},
        {"appearance": ["lovely"]},
        {"site": "in the moon"},
    ],
)
def test_an_unsupported_attribute_is_dropped_alone(attribute):
    (reading,), counts, _ = read(reply_json([fact("pleural effusion", 2, **attribute)]))
    (effusion,) = reading.findings
    assert (effusion.location, effusion.severity, effusion.distribution, effusion.trend) == (None,) * 4
    assert effusion.appearance == ()
    assert dict(counts.dropped) == {"attribute": 1}


def test_attributes_are_supported_by_words_of_the_report():
    report = Report(
        sections=(
            ReportSection(
                name="findings",
                text="Diffuse patchy opacities in the right upper and lower lobes have increased. "
                "The chest tube has been removed. Malpositioned nasogastric tube, coiled in the esophagus.",
            ),
        )
    )
    opacity = fact(
        "lung opacity",
        0,
        side="right",
        zones=["right lower zone", "right upper zone", "left upper zone"],
        distribution="diffuse",
        trend="worse",
        appearance=["patchy"],
    )
    devices = [
        fact("chest tube", 1, certainty="absent", trend="resolved", id="d1"),
        fact("NG tube", 2, id="d2", position="malpositioned", site="coiled in the esophagus"),
    ]
    (reading,), counts, _ = read(reply_json([opacity], devices), report)
    (finding,) = reading.findings
    assert finding.location == Location(side="right", zones=("right upper zone", "right lower zone"))
    assert (finding.distribution, finding.trend, finding.appearance) == ("diffuse", "worse", ("patchy",))
    tube, feeding = reading.devices
    assert (tube.name, tube.trend) == ("chest tube", "resolved")
    assert (feeding.name, feeding.position, feeding.site) == (
        "nasogastric tube",
        "malpositioned",
        "coiled in the esophagus",
    )
    assert dict(counts.dropped) == {"attribute": 1}


def test_a_fact_stated_twice_becomes_one_with_both_ids():
    twice = [fact("effusion", 5, id="a"), fact("pleural effusion", 2, id="b"), fact("atelectasis", 2, id="c")]
    relation = {"subject": "a", "kind": "accompanies", "object": "c", "sentences": [2]}
    (reading,), counts, _ = read(reply_json(twice, relations=[relation]))
    effusion, atelectasis = reading.findings
    assert (effusion.name, effusion.evidence, atelectasis.name) == ("pleural effusion", (2, 5), "atelectasis")
    assert (reading.relations[0].subject, reading.relations[0].object) == ("f1", "f2")
    assert not counts.dropped


def test_a_denial_gives_way_to_a_present_finding_on_the_same_side():
    here, denied = fact("effusion", 2, side="left"), fact("effusion", 5, id="x", certainty="absent")
    (reading,), counts, _ = read(reply_json([here, denied]))
    assert [(f.certainty, f.evidence) for f in reading.findings] == [("present", (2,))]
    assert dict(counts.dropped) == {"contradicted": 1}
    text = "Left pleural effusion. No right pleural effusion."
    report = Report(sections=(ReportSection(name="findings", text=text),))
    sided = fact("effusion", 1, id="x", certainty="absent", side="right")
    (reading,), counts, _ = read(reply_json([fact("effusion", 0, side="left"), sided]), report)
    assert [f.certainty for f in reading.findings] == ["present", "absent"]
    assert not counts.dropped


def test_evidence_that_does_not_name_the_finding_is_left_out():
    (reading,), counts, _ = read(reply_json([fact("cardiomegaly", 1, 2, 6)]))
    assert reading.findings[0].evidence == (1,)
    assert not counts.dropped


def test_an_uncertain_finding_stays_uncertain():
    (reading,), _, _ = read(reply_json([fact("pleural effusion", 5, certainty="uncertain")]))
    assert reading.findings[0].certainty == "uncertain"


@pytest.mark.parametrize(
    ("reason", "answer"),
    [
        ("not the JSON asked for", "The heart is enlarged."),
        ("not the JSON asked for", ""),
        ("not the JSON asked for", "[]"),
        ("not the JSON asked for", '{"findings": []}'),
        ("not the JSON asked for", reply_json()[:-1] + ', "notes": "none"}'),
        ("not the JSON asked for", "Here you are: " + GOOD),
        ("cut off", loopback.Answer(GOOD, stop="length")),
        ("no reply", loopback.failing(400, "no")),
    ],
)
def test_a_report_with_an_unusable_reply_is_read_by_the_rules(reason, answer):
    (reading,), counts, _ = read(answer)
    rules = read_report(REPORT)
    assert (reading.findings, reading.devices, reading.relations) == (
        rules.findings,
        rules.devices,
        rules.relations,
    )
    assert (reading.recommendations, reading.report, reading.comparison) == (
        rules.recommendations,
        rules.report,
        rules.comparison,
    )
    assert reading.findings
    assert reading.origin == Origin(method="rule", note=reason)
    assert (counts.by_model, dict(counts.by_rules)) == (0, {reason: 1})


def test_a_code_fence_around_the_json_is_allowed():
    (reading,), counts, _ = read(f"```json\n{GOOD}\n```")
    assert (len(reading.findings), counts.by_model) == (4, 1)


def test_a_normal_report_may_state_nothing():
    (reading,), counts, _ = read(reply_json())
    assert (reading.findings, reading.origin.method, counts.by_model) == ((), "llm", 1)


def test_reports_keep_their_order_and_empty_ones_are_not_sent():
    texts = ["There is a nodule.", "", "There is a mass.", "INDICATION: cough.", "There is a fracture."]

    def script(asked):
        name = asked.user.split()[-1].rstrip(".")
        return loopback.Answer(reply_json([fact(name, 0)]), wait=0.05 if name == "nodule" else 0)

    readings, counts, service = read(script, *texts, connections=3)
    assert [[f.name for f in r.findings] for r in readings] == [["nodule"], [], ["mass"], [], ["fracture"]]
    assert len(service.asked) == 3
    assert (counts.by_model, dict(counts.by_rules)) == (3, {"nothing to read": 2})


def test_a_report_in_the_cache_is_not_sent_again(tmp_path):
    with AnswerCache(tmp_path / "answers.jsonl") as cache:
        first, _, _ = read(GOOD, cache=cache)
        second, counts, service = read("nonsense", cache=cache)
    assert first == second
    assert (counts.by_model, service.asked) == (1, [])


def test_a_model_that_never_answers_raises_an_error():
    with pytest.raises(CarinaError, match="prompts in a row failed"):
        read(loopback.failing(400, "no"), *(f"There is a nodule of {n} mm." for n in range(40)))


# ---- studies -------------------------------------------------------------------------------------------------------


def study(name, report=None, **fields):
    image = Image(key=f"{name}.png", view="PA", width=8, height=8)
    return Study(id=name, patient="p", source="test", order=0, images=(image,), report=report, **fields)


def test_studies_that_carry_only_a_report_get_their_truth_from_it():
    known = read_report(REPORT)
    studies = [
        study("s1"),
        study("s2", REPORT),
        study("s3", REPORT, findings=known.findings),
        study("s4", REPORT),
        study("s5"),
    ]
    counts = ExtractionCounts()
    with loopback.serving(lambda _: GOOD) as service:
        out = list(with_report_truth_by_model(loopback.MODEL, studies, counts=counts, base_url=service.url))
    assert [s.id for s in out] == ["s1", "s2", "s3", "s4", "s5"]
    assert (out[0], out[2], out[4]) == (studies[0], studies[2], studies[4])
    for number in (1, 3):
        assert [f.name for f in out[number].findings][:2] == ["cardiomegaly", "pleural effusion"]
        assert not list(faults(out[number]))
    assert [s.assessed.text for s in out] == [False, True, False, True, False]
    assert counts.by_model == 2


# ---- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "word", "name"),
    [
        ("finding", "Pleural Effusion", "pleural effusion"),
        ("finding", "enlarged heart", "cardiomegaly"),
        ("finding", "", None),
        ("finding", "pacemaker", None),
        ("device", "ETT", "endotracheal tube"),
    ],
)
def test_names_are_those_of_the_lexicon(kind, word, name):
    assert find_name(kind, word) == name


def test_every_name_in_the_prompt_is_understood_in_a_reply():
    for name in FINDINGS:
        assert find_name("finding", name) == name
    for name in DEVICES:
        assert find_name("device", name) == name
    assert find_key("action", "follow-up radiograph") == "follow-up radiograph"
    assert find_key("look", "ground-glass") == "ground-glass"

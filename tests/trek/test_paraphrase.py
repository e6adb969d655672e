"""Questions in other words: what a model may change, and that every change which could move a key is refused."""

import json

import msgspec
import pytest
from tests.models import loopback

from carina.cases import (
    Case,
    CaseImage,
    Constraints,
    Fact,
    Key,
    Option,
    Origin,
    Slot,
    Step,
)
from carina.models.served import AnswerCache
from carina.store.errors import CarinaError
from carina.trek.paraphrase import ParaphraseCounts, core_by_template, paraphrase
from carina.trek.paraphrase.families import Families, family_of, load_families, mask_slots
from carina.trek.paraphrase.same_key import find_rejection
from carina.trek.wording import load_wording

pytest.importorskip("inspect_ai", reason="the extra served is not installed")


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("LOOPBACK_API_KEY", loopback.KEY)


# ---- what may be said instead --------------------------------------------------------------------------------------


def step(core, *, task="presence", variant="yes_no", slots=None, **fields):
    """A step whose template is of a family; its question is the core alone."""
    filled = tuple(Slot(name=name, value=value) for name, value in (slots or {}).items())
    settings = {"id": "t1", "stage": 2, "format": variant, "question": core, "slots": filled} | fields
    stage = settings["stage"]
    template = f"s{stage}.{task.replace(' ', '-')}.{variant}.001"
    return Step(task=task, template=template, **settings)


PRESENCE = "Is there a pleural effusion on this radiograph?"
EFFUSION = step(
    PRESENCE,
    slots={"a_finding": "a pleural effusion", "images": "this radiograph"},
    key=Key(label="no", text="No, the costophrenic angles are sharp and no pleural effusion is seen."),
    facts=(Fact(name="target", about="finding", text="pleural effusion"), Fact(name="truth", text="absent")),
)


@pytest.mark.parametrize(
    "new",
    [
        "Do you see a pleural effusion on this radiograph?",
        "On this radiograph, is there a pleural effusion?",
        "When you look at this radiograph, do you find a pleural effusion?",
        "Does this radiograph show a pleural effusion?",
    ],
)
def test_a_rewording_with_the_same_meaning_is_accepted(new):
    assert find_rejection(EFFUSION, PRESENCE, new) is None


@pytest.mark.parametrize(
    ("reason", "new"),
    [
        ("unchanged", "Is there a pleural effusion on this radiograph?"),
        ("unchanged", "is there a PLEURAL effusion on this radiograph?"),
        ("form", "Is there a pleural effusion on this radiograph"),
        ("form", "Is there a pleural effusion\non this radiograph?"),
        ("form", "Is there {a_finding}, a pleural effusion on this radiograph?"),
        ("form", "Is there there a pleural effusion on this radiograph?"),
        ("form", "**Is there a pleural effusion on this radiograph?**"),
        ("form", "Reworded question: is there a pleural effusion on this radiograph?"),
        ("form", "A. Do you see a pleural effusion on this radiograph?"),
        ("length", "A pleural effusion?"),
        (
            "length",
            "When you look at this radiograph and take all the time that you need for it, would you say that there "
            "is a pleural effusion?",
        ),
        ("slot lost", "Is there a pleural effusion on the picture?"),
        ("slot lost", "Is there an effusion on this radiograph?"),
        ("slot lost", "Is there a pleural effusions on this radiograph?"),
        ("number", "Do you see a pleural effusion on this radiograph, at 100%?"),
        ("number", "Do you see a pleural effusion on this radiograph, two of them?"),
        ("number", "On this radiograph, do you see a pleural effusion ____?"),
        ("negation", "Is there no pleural effusion, or a pleural effusion, on this radiograph?"),
        ("negation", "Isn't there a pleural effusion on this radiograph?"),
        ("negation", "Is this radiograph without a pleural effusion?"),
        ("negation", "Is a pleural effusion absent on this radiograph?"),
        ("negation", "Can a pleural effusion be ruled out on this radiograph?"),
        ("term", "Do you see a pleural effusion on the left of this radiograph?"),
        ("term", "Do you see a pleural effusion or atelectasis on this radiograph?"),
        ("term", "Do you see a pleural effusion, even a small one, on this radiograph?"),
        ("term", "Do you see a pleural effusion on this radiograph of the heart?"),
        ("term", "Is a new finding, a pleural effusion, on this radiograph?"),
        ("sense", "Is there possibly a pleural effusion on this radiograph?"),
        ("sense", "Apart from the skin, is there a pleural effusion on this radiograph?"),
        ("sense", "Is there a pleural effusion on this radiograph, as on the previous one?"),
        ("sense", "Is there a pleural effusion on this radiograph, or is it normal?"),
        ("constraint", "In a word, is there a pleural effusion on this radiograph?"),
        ("constraint", "Is there a pleural effusion on this radiograph? Explain."),
        ("constraint", "Is there a pleural effusion on this radiograph, yes?"),
        ("leading", "Is there obviously a pleural effusion on this radiograph?"),
        ("leading", "Can you confirm a pleural effusion on this radiograph?"),
        ("key revealed", "With sharp angles, is there a pleural effusion on this radiograph?"),
        ("another question", "Where is a pleural effusion on this radiograph?"),
        ("another question", "What does a pleural effusion look like on this radiograph?"),
        ("another question", "Describe a pleural effusion on this radiograph."),
    ],
)
def test_a_rewording_that_may_change_the_key_is_refused(reason, new):
    assert find_rejection(EFFUSION, PRESENCE, new) == reason


def test_a_negation_may_not_be_dropped():
    old = "Which of these is not seen on this radiograph?"
    asked = step(old, variant="choice", slots={"images": "this radiograph"})
    assert find_rejection(asked, old, "Which of these is seen on this radiograph?") == "negation"
    assert find_rejection(asked, old, "On this radiograph, which of these is not seen?") is None


def test_a_number_may_not_be_dropped_or_changed():
    old = "What lies at (10, 20, 30, 40) on this radiograph?"
    asked = step(old, task="box content", variant="open", stage=3, slots={"images": "this radiograph"})
    assert find_rejection(asked, old, "On this radiograph, what lies at (10, 20, 30)?") == "number"
    assert find_rejection(asked, old, "On this radiograph, what lies at (10, 20, 30, 41)?") == "number"


def test_an_option_may_be_neither_named_nor_dropped():
    options = (Option(id="A", text="Kerley lines"), Option(id="B", text="a wide hilum"))
    old = "Which of these is seen on this radiograph?"
    asked = step(old, variant="choice", options=options, key=Key(options=("B",)))
    assert (
        find_rejection(asked, old, "Which of these, such as Kerley lines, is seen on this radiograph?")
        == "option"
    )
    named = "Is it Kerley lines that this radiograph shows, or which of these?"
    assert find_rejection(step(named, variant="choice", options=options), named, old) == "option"


def test_words_of_the_right_option_may_not_enter():
    options = (Option(id="A", text="thickened septa"), Option(id="B", text="tram tracks"))
    old = "Which of these is seen on this radiograph?"
    asked = step(old, variant="choice", options=options, key=Key(options=("B",)))
    assert find_rejection(asked, old, "Which of these tracks is seen on this radiograph?") == "key revealed"


def test_structured_truth_may_not_enter():
    old = "How does the mass look on this radiograph?"
    slots = {"the_finding": "the mass", "images": "this radiograph"}
    fact = Fact(name="appearance", about="f1", text="spiculated")
    asked = step(old, task="appearance", variant="open", stage=3, slots=slots, facts=(fact,))
    assert (
        find_rejection(asked, old, "How spiculated does the mass look on this radiograph?") == "key revealed"
    )


def test_a_question_of_no_known_family_is_left_alone():
    unknown = msgspec.structs.replace(EFFUSION, template="s9.weather.open.001")
    assert (
        find_rejection(unknown, PRESENCE, "Do you see a pleural effusion on this radiograph?")
        == "another question"
    )


def test_questions_are_assigned_to_their_family():
    """Every template, with its own left out of the count, against what its family is; by chance about 1 in 30."""
    questions = [(t.id, t.text) for pool in load_wording().pools.values() for t in pool.questions]
    sample = questions[:: max(1, len(questions) // 16)]
    right = 0
    for template, text in sample:
        others = Families((t, x) for t, x in questions if t != template)
        right += others.nearest(text) == family_of(template)
    assert right / len(sample) > 0.5
    known = sum(load_families().nearest(text) == family_of(template) for template, text in sample)
    assert known / len(sample) > 0.9


def test_values_are_masked_by_the_longest_first():
    slots = {"finding": "effusion", "a_finding": "a pleural effusion"}
    assert (
        mask_slots("Is A pleural effusion an effusion or effusions?", slots)
        == "Is {a_finding} an {finding} or effusions?"
    )


# ---- through a model -----------------------------------------------------------------------------------------------

LEAD = "Here is the current chest radiograph. "
TAIL = " Answer in at most 20 words."


def case(name, *steps):
    return Case(
        id=f"trek-{name}",
        protocol="trek",
        study=name,
        patient=None,
        source="test",
        images=(CaseImage(key=f"{name}.png", width=8, height=8),),
        steps=steps,
    )


def presence(number, finding, **fields):
    """A step as the builder makes it: lead-in, core, instruction."""
    template = next(
        t
        for t in load_wording().pools[2, "presence", "yes_no"].questions
        if set(t.slots) == {"a_finding", "images"}
    )
    slots = {"a_finding": f"a {finding}", "images": "this radiograph"}
    core = template.text.format_map(slots)
    settings = {
        "slots": tuple(Slot(name=name, value=value) for name, value in slots.items()),
        "template": template.id,
        "constraints": Constraints(max_words=20),
        "key": Key(label="yes", text=f"Yes, there is a {finding}."),
    }
    return Step(
        id=f"t{number}",
        stage=2,
        task="presence",
        format="yes_no",
        question=LEAD + core + TAIL,
        **(settings | fields),
    )


def reworded(script, cases, **settings):
    """Cases as they come out, what was counted, and the service."""
    counts = ParaphraseCounts()
    with loopback.serving(script) as service:
        out = list(
            paraphrase(
                loopback.MODEL, cases, counts=counts, base_url=service.url, **({"connections": 3} | settings)
            )
        )
    return out, counts, service


def asked_core(asked):
    return json.loads(asked.user)["question"]


def politely(asked):
    """A good answer: the finding that must be kept, in another question."""
    finding, images = json.loads(asked.user)["keep"]
    return f"When you look at {images}, do you find {finding}?"


def test_only_the_question_proper_is_reworded():
    before = case("s1", presence(1, "pneumothorax"))
    (after,), counts, service = reworded(politely, [before])
    (step_after,) = after.steps
    assert (
        step_after.question == LEAD + "When you look at this radiograph, do you find a pneumothorax?" + TAIL
    )
    assert step_after.origin == Origin(method="llm", model=loopback.MODEL, review="none")
    untouched = msgspec.structs.replace(step_after, question=before.steps[0].question, origin=Origin())
    assert msgspec.structs.replace(after, steps=(untouched,)) == before
    assert (counts.reworded, counts.left, dict(counts.refused)) == (1, 0, {})
    assert asked_core(service.asked[0]) == core_by_template(before.steps[0])
    assert "at most 20 words" not in service.asked[0].user


def test_cases_come_out_in_their_order_with_each_its_own_words():
    findings = ["mass", "nodule", "fracture", "pneumothorax"]
    cases = [case(f"s{n}", *(presence(m, f) for m, f in enumerate(findings[: n % 5]))) for n in range(11)]
    out, counts, _ = reworded(politely, cases)
    assert [c.id for c in out] == [c.id for c in cases]
    for before, after in zip(cases, out, strict=True):
        for one, two in zip(before.steps, after.steps, strict=True):
            assert f"do you find {one.slots[0].value}?" in two.question
    assert counts.reworded == sum(len(c.steps) for c in cases)


def test_a_bad_proposal_leaves_the_question_and_is_counted_by_reason():
    answers = {
        "mass": "Is there not a mass on this radiograph?",
        "nodule": "Do you see a nodule?",
        "fracture": "",
        "pneumothorax": loopback.Answer("Do you see a pneumothorax on this", stop="length"),
        "bulla": loopback.failing(400, "no"),
        "hernia": '"On this radiograph, do you see a hernia?"',
    }

    def script(asked):
        return next(answer for finding, answer in answers.items() if finding in asked_core(asked))

    before = case("s1", *(presence(n, finding) for n, finding in enumerate(answers)))
    (after,), counts, _ = reworded(script, [before])
    assert after.steps[:5] == before.steps[:5]
    assert after.steps[5].question == LEAD + "On this radiograph, do you see a hernia?" + TAIL
    assert counts.reworded == 1
    assert counts.refused == {"negation": 1, "slot lost": 1, "empty": 1, "cut off": 1, "no reply": 1}


def test_two_questions_of_a_case_do_not_become_one():
    one, two = presence(1, "mass"), presence(2, "mass")
    two = msgspec.structs.replace(two, question=two.question.replace(LEAD, ""))
    one = msgspec.structs.replace(one, question=one.question.replace(LEAD, ""))
    (after,), counts, _ = reworded(politely, [case("s1", one, two)])
    assert after.steps[0].question != after.steps[1].question
    assert (counts.reworded, counts.refused) == (1, {"asked twice": 1})


@pytest.mark.parametrize(
    "change",
    [
        {"origin": Origin(method="human")},
        {"origin": Origin(method="import")},
        {"template": None},
        {"template": "s2.presence.yes_no.999"},
        {"slots": ()},
    ],
)
def test_questions_without_a_template_or_a_core_are_not_sent(change):
    before = case("s1", presence(1, "mass", **change))
    (after,), counts, service = reworded(politely, [before])
    assert after == before
    assert (counts.left, service.asked) == (1, [])


def test_a_core_that_occurs_twice_is_not_reworded():
    twice = presence(1, "mass")
    core = core_by_template(twice)
    twice = msgspec.structs.replace(twice, question=f"{core} {core}")
    (after,), counts, service = reworded(politely, [case("s1", twice)], core_of=lambda _: core)
    assert (after.steps[0], counts.left, service.asked) == (twice, 1, [])


def test_the_reworded_share_depends_on_the_seed():
    cases = [case(f"s{n}", presence(1, "mass"), presence(2, "nodule")) for n in range(30)]
    out, counts, _ = reworded(politely, cases, share=0.3, seed=5)
    assert 8 <= counts.reworded <= 28
    assert counts.reworded + counts.left == 60
    again, _, _ = reworded(politely, reversed(cases), share=0.3, seed=5)
    assert out == list(reversed(again))
    other, _, _ = reworded(politely, cases, share=0.3, seed=6)
    assert other != out


def test_the_cache_gives_the_same_cases_without_the_model(tmp_path):
    cases = [case(f"s{n}", presence(1, "mass"), presence(2, "nodule")) for n in range(6)]
    number = iter(range(1000))

    def moody(asked):
        finding, images = json.loads(asked.user)["keep"]
        verb = ("see", "find", "notice")[next(number) % 3]
        return f"When you look at {images}, do you {verb} {finding}?"

    with AnswerCache(tmp_path / "answers.jsonl") as cache:
        first, _, service = reworded(moody, cases, cache=cache)
        second, counts, again = reworded(moody, cases, cache=cache, connections=1)
    assert service.asked
    assert not again.asked
    assert first == second
    assert counts.reworded == 12


def test_a_model_that_never_answers_ends_the_build():
    cases = [case(f"s{n}", presence(1, "mass")) for n in range(100)]
    with pytest.raises(CarinaError, match="prompts in a row failed"):
        reworded(lambda _: loopback.failing(400, "no"), cases)

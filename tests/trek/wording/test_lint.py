"""The shipped wording has no fault, and each kind of fault is told where it is."""

from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carina.studies.vocabulary import DEVICES, FINDINGS
from carina.trek.wording import lint, load_wording, slots_of
from carina.trek.wording.lint import find_problems
from carina.trek.wording.shape import PHRASES, POOLS, SAMPLES, TextShape

NAMES = ("common", "grammar", *(f"stage-{stage}" for stage in range(1, 9)))
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
Change = Callable[[Any], object]
ENGLISH = resources.files("carina.trek.wording") / "en"


@pytest.fixture(scope="module")
def shipped() -> dict[str, str]:
    return {name: (ENGLISH / f"{name}.yaml").read_text("utf-8") for name in NAMES}


@pytest.fixture
def folder(tmp_path: Path, shipped: dict[str, str]) -> Path:
    """A copy of the shipped files, to be spoilt."""
    for name, text in shipped.items():
        (tmp_path / f"{name}.yaml").write_text(text, "utf-8")
    return tmp_path


def spoil(folder: Path, name: str, change: Change) -> list[str]:
    file = folder / f"{name}.yaml"
    content = yaml.load(file.read_text("utf-8"), Loader=LOADER)  # noqa: S506 - a safe loader
    change(content)
    text = yaml.dump(content, Dumper=DUMPER, sort_keys=False, allow_unicode=True, width=10_000)
    file.write_text(text, "utf-8")
    return list(find_problems(folder, [name]))


def test_the_shipped_files_have_no_problem() -> None:
    assert list(find_problems(ENGLISH)) == []


# ---- what must be there ---------------------------------------------------------------------------------------------


def test_a_missing_file_is_reported(folder: Path) -> None:
    (folder / "stage-6.yaml").unlink()
    (folder / "grammar.yaml").unlink()
    assert list(find_problems(folder)) == [
        "stage-6.yaml: there is no such file",
        "grammar.yaml: there is no such file",
    ]


@pytest.mark.parametrize(
    ("name", "change", "fault"),
    [
        ("stage-2", lambda c: c.pop("others"), "stage-2.yaml: 'others' is missing"),
        ("stage-2", lambda c: c["presence"].pop("choice"), "stage-2.yaml: presence: 'choice' is missing"),
        (
            "stage-2",
            lambda c: c["presence"]["yes_no"]["answers"].pop("uncertain"),
            "stage-2.yaml: presence / yes_no / answers: 'uncertain' is missing",
        ),
        (
            "stage-2",
            lambda c: c["presence"]["yes_no"].pop("answers"),
            "stage-2.yaml: presence / yes_no: 'answers' is missing",
        ),
        (
            "stage-3",
            lambda c: c["phrases"]["statement"].pop("severity"),
            "stage-3.yaml: phrases / statement / severity: is missing",
        ),
        ("stage-1", lambda c: c.pop("phrases"), "stage-1.yaml: 'phrases' is missing"),
        (
            "common",
            lambda c: c["instruction"].pop("history"),
            "common.yaml: instruction / history: is missing",
        ),
        ("common", lambda c: c["names"].pop("chest tube"), "common.yaml: names: 'chest tube' is missing"),
        (
            "common",
            lambda c: c["names"]["chest tube"].pop("tip"),
            'common.yaml: names / chest tube: a device needs "tip"',
        ),
        (
            "common",
            lambda c: c["names"]["mass"].pop("the"),
            'common.yaml: names / mass: needs "a" and "the", and may have "tip"',
        ),
        ("common", lambda c: c["image"].pop("lateral"), "common.yaml: image: 'lateral' is missing"),
        ("common", lambda c: c["place"].pop("midline"), "common.yaml: place: 'midline' is missing"),
    ],
)
def test_a_missing_entry_is_reported(folder: Path, name: str, change: Change, fault: str) -> None:
    assert spoil(folder, name, change) == [fault]


@pytest.mark.parametrize(
    ("name", "change", "fault"),
    [
        ("stage-2", lambda c: c.update(presents={}), "stage-2.yaml: 'presents' is not known here"),
        (
            "stage-2",
            lambda c: c["presence"].update({"yes-no": {}}),
            "stage-2.yaml: presence: 'yes-no' is not known here",
        ),
        (
            "stage-2",
            # What plain YAML makes of an unquoted `no`.
            lambda c: c["presence"]["yes_no"]["answers"].update({False: ["No."]}),
            "stage-2.yaml: presence / yes_no / answers: False is not known here",
        ),
        (
            "stage-3",
            lambda c: c["location"]["choice"].update(answers={}),
            "stage-3.yaml: location / choice: 'answers' is not known here",
        ),
        (
            "stage-1",
            lambda c: c["phrases"]["rotation"].update(both=["the patient is turned"]),
            "stage-1.yaml: phrases / rotation / both: is not known here",
        ),
        ("common", lambda c: c.update(greeting=["Hello."]), "common.yaml: 'greeting' is not known here"),
    ],
)
def test_an_unexpected_entry_is_reported(folder: Path, name: str, change: Change, fault: str) -> None:
    assert spoil(folder, name, change) == [fault]


def test_a_list_that_is_too_short_is_reported(folder: Path) -> None:
    def shorten(content: Any) -> None:
        del content["presence"]["yes_no"]["questions"][89:]

    assert spoil(folder, "stage-2", shorten) == [
        "stage-2.yaml: presence / yes_no / questions: has 89 texts, needs 90"
    ]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda c: c.update(view=[]), "stage-1.yaml: view: must be a mapping"),
        (lambda c: c["view"].update(choice=[]), "stage-1.yaml: view / choice: must be a mapping"),
        (
            lambda c: c["view"]["choice"].update(questions="What?"),
            "stage-1.yaml: view / choice / questions: must be a list",
        ),
        (
            lambda c: c["view"]["open"].update(answers=[]),
            "stage-1.yaml: view / open / answers: must be a mapping",
        ),
    ],
)
def test_a_wrong_type_is_reported(folder: Path, change: Change, fault: str) -> None:
    assert spoil(folder, "stage-1", change) == [fault]


def test_a_file_that_is_no_yaml_or_no_mapping_is_reported(folder: Path) -> None:
    (folder / "stage-1.yaml").write_text("view: [", "utf-8")
    (folder / "stage-2.yaml").write_text("- view\n", "utf-8")
    found = list(find_problems(folder))
    assert len(found) == 2
    assert found[0].startswith("stage-1.yaml: not YAML: ")
    assert found[1] == "stage-2.yaml: must be a mapping"


def test_a_duplicate_key_is_reported(folder: Path) -> None:
    with (folder / "stage-1.yaml").open("a", encoding="utf-8") as file:
        file.write("\nview:\n  open: {}\n")
    found = list(find_problems(folder))
    assert len(found) == 1
    assert found[0].startswith("stage-1.yaml: not YAML: the key 'view' comes twice")


def test_a_line_that_ends_in_a_space_is_reported(folder: Path, shipped: dict[str, str]) -> None:
    lines = shipped["stage-3"].splitlines()
    lines[6] += " "
    (folder / "stage-3.yaml").write_text("\n".join(lines), "utf-8")
    assert list(find_problems(folder)) == ["stage-3.yaml: line 7: ends in a space"]


# ---- single texts ---------------------------------------------------------------------------------------------------

PLACE = "stage-2.yaml: presence / yes_no / questions / 1: "


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "Does {thefinding} ever occur with {a_finding}?",
            "uses the slot 'thefinding', which is not given here",
        ),
        ("Zebra stripes {at}, or is it {a_finding}?", "uses the slot 'at', which is not given here"),
        ("Shall we speak of {a_finding} with regard to {images?", "has braces that do not pair"),
        ("Shall we speak of {} in this context?", "uses the slot '', which is not given here"),
        ("Shall we speak of the the lungs and {a_finding}?", "has the doubled word 'the the'"),
        ("Shall we speak of a {a_finding} with no doubt?", "has the doubled word 'a a'"),
        ("Shall we speak of an {finding} without doubt?", "has the wrong article in 'an pleural'"),
        ("Shall we speak of a effusion without doubt?", "has the wrong article in 'a effusion'"),
        ("Shall we speak about {a_finding} without explaination?", "has the typo 'explaination'"),
        ("Shall we speak about {a_finding} without doubt", "does not end as a sentence should"),
        ("shall we speak about {a_finding} without doubt?", "does not begin with a capital"),
        ("Shall we speak  about {a_finding} without doubt?", "has spaces at an end or doubled"),
        ("Shall we speak about {a_finding} without doubt? ", "has spaces at an end or doubled"),
        ("", "is empty"),
        (
            "Does {images} by any chance contain {a_finding}?",
            "hangs a verb on a slot that may be one or several ('Does {images}')",
        ),
        (
            "Doubtless, {images} shows {a_finding}, or so it seems?",
            "hangs a verb on a slot that may be one or several (', {images} shows')",
        ),
    ],
)
def test_a_text_with_a_mistake_is_reported(folder: Path, text: str, fault: str) -> None:
    def replace(content: Any) -> None:
        content["presence"]["yes_no"]["questions"][0] = text

    found = spoil(folder, "stage-2", replace)
    assert f"{PLACE}{fault}: {text!r}" in found
    assert all(line.startswith(PLACE) for line in found)


def test_a_value_that_yaml_does_not_read_as_text_is_reported(folder: Path) -> None:
    def replace(content: Any) -> None:
        content["presence"]["yes_no"]["questions"][0] = {"Question": "is it there?"}

    assert spoil(folder, "stage-2", replace) == [
        f"{PLACE}is {{'Question': 'is it there?'}} and not a text; put it in quotes"
    ]


def test_a_text_without_a_required_slot_is_reported(folder: Path) -> None:
    def replace(content: Any) -> None:
        content["location"]["yes_no"]["answers"]["no"][0] = "No, {the_finding} lies elsewhere."

    assert spoil(folder, "stage-3", replace) == [
        "stage-3.yaml: location / yes_no / answers / no / 1: does not use the slot 'right_at': "
        "'No, {the_finding} lies elsewhere.'"
    ]


def test_a_clause_that_ends_as_a_sentence_is_reported(folder: Path) -> None:
    def replace(content: Any) -> None:
        content["phrases"]["rotation"]["none"][0] += "."

    found = spoil(folder, "stage-1", replace)
    assert len(found) == 1
    assert found[0].startswith(
        "stage-1.yaml: phrases / rotation / none / 1: ends as a sentence, but is part of one"
    )


@pytest.mark.parametrize("text", ["The blank is ____", 'It says: "{phrase}"', "Here it is: {boxes}", "Done."])
def test_texts_may_end_with_a_blank_or_a_quotation(text: str) -> None:
    assert list(lint._check_form(text, whole=True)) == []


def test_a_blank_without_fitting_answers_is_reported(folder: Path) -> None:
    def change(content: Any) -> None:
        content["position"]["open"]["questions"].append("Fill in the blank: {the_finding} lies ____.")
        content["severity"]["open"]["questions"].append("Both {the_finding} and ____ are ____.")

    told = [
        fault.partition(": 'Fill")[0].partition(": 'Both")[0] for fault in spoil(folder, "stage-3", change)
    ]
    pools = load_wording().pools
    counts = [len(pools[3, family, "open"].questions) + 1 for family in ("severity", "position")]
    assert told == [
        f"stage-3.yaml: severity / open / questions / {counts[0]}: has 2 blanks",
        f"stage-3.yaml: position / open / questions / {counts[1]}: has a blank, and no answer here fits into one",
    ]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Wrong exposure can hide a nodule. Is it right on {images}?", "nodule"),
        ("Is the film of {images} good enough to look for Pneumothoraces?", None),
        ("Would you see edema on {images}, with this exposure?", "edema"),
        ("Are the pacemakers on {images} seen?", "pacemaker"),
    ],
)
def test_a_wording_that_names_a_finding_is_reported(folder: Path, text: str, named: str | None) -> None:
    found = spoil(folder, "stage-1", lambda c: c["quality"]["open"]["questions"].append(text))
    told = [fault for fault in found if "by itself" in fault]
    number = len(load_wording().pools[1, "quality", "open"].questions) + 1
    expected = f"stage-1.yaml: quality / open / questions / {number}: names {named!r} by itself: {text!r}"
    assert told == ([] if named is None else [expected])


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("yes", "There is {a_finding}."),
        ("yes", "Yesterday, there was {a_finding}."),
        ("no", "Not certain, but {a_finding} is unlikely."),
        ("no", "Yes, we have no {finding} today."),
        ("uncertain", "No, {a_finding} is doubtful."),
        ("uncertain", "It is hard to tell {a_finding} from the rest."),
    ],
)
def test_an_answer_that_does_not_begin_with_its_label_is_reported(
    folder: Path, label: str, text: str
) -> None:
    def replace(content: Any) -> None:
        content["presence"]["yes_no"]["answers"][label][0] = text

    assert spoil(folder, "stage-2", replace) == [
        f"stage-2.yaml: presence / yes_no / answers / {label} / 1: "
        f"does not begin as an answer {label!r} should: {text!r}"
    ]


# ---- pools ----------------------------------------------------------------------------------------------------------


def test_repeated_texts_are_reported() -> None:
    texts = [
        "Is there {a_finding} on {images}?",
        "Please look for {a_finding} in both lungs and at the pleura on {images}.",
        "is there  {a_finding} on {images}!",
        "Please search for {a_finding} in both lungs and at the pleura on {images}.",
        "Would you report {a_finding} from {images}?",
    ]
    assert list(lint._find_repeats("here", texts)) == [
        f"here / 3: is the same as 1: {texts[2]!r}",
        f"here / 4: is nearly the same as 2: {texts[3]!r}",
    ]


def test_one_other_word_in_a_short_text_is_no_repeat() -> None:
    assert list(lint._find_repeats("here", ["No, there is no {finding}.", "No, I see no {finding}."])) == []


@given(st.lists(st.sampled_from(("heart", "lung", "rib", "tube", "line", "mass", "left")), min_size=1))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_texts_that_differ_in_case_or_punctuation_are_repeats(words: list[str]) -> None:
    text = " ".join(words)
    assert list(lint._find_repeats("here", [text, f"  {text.upper()}?"])) != []


def test_frequent_openings_are_reported() -> None:
    alike = [f"What do you make of number {n}?" for n in range(6)]
    others = [f"Remark {n} is made here." for n in range(20)]
    assert list(lint._find_openings("here", [*alike, *others])) == [
        "here: 6 of 26 texts begin with 'what do you'"
    ]
    assert list(lint._find_openings("here", [*alike[1:], *others])) == []


def test_a_repeated_text_is_reported_with_its_place(folder: Path) -> None:
    def repeat(content: Any) -> None:
        pool = content["any device"]["yes_no"]["questions"]
        pool[44:] = [pool[0]]

    assert spoil(folder, "stage-2", repeat) == [
        "stage-2.yaml: any device / yes_no / questions / 45: is the same as 1: "
        "'Is there any device or foreign body on {images}?'"
    ]


# ---- the tables -----------------------------------------------------------------------------------------------------


def texts_of_the_table() -> list[TextShape]:
    asked = [pool for families in POOLS.values() for pools in families.values() for pool in pools.values()]
    return [
        *(pool.questions for pool in asked),
        *(texts for pool in asked for texts in pool.answers.values()),
        *(texts for phrases in PHRASES.values() for texts in phrases.values()),
    ]


def test_every_slot_of_the_table_has_a_sample_and_what_is_needed_is_allowed() -> None:
    for texts in texts_of_the_table():
        assert texts.slots <= SAMPLES.keys()
        assert texts.needs <= texts.slots


def test_the_loader_finds_what_the_table_promises() -> None:
    wording = load_wording("en")
    promised = {
        (stage, family, variant): pool
        for stage, families in POOLS.items()
        for family, variants in families.items()
        for variant, pool in variants.items()
    }
    assert wording.pools.keys() == promised.keys()
    for key, pool in wording.pools.items():
        assert len(pool.questions) >= promised[key].questions.least
        assert pool.answers.keys() == promised[key].answers.keys()
        for question in pool.questions:
            assert set(slots_of(question.text)) <= promised[key].questions.slots


def test_names_cover_the_vocabulary_and_read_as_noun_phrases() -> None:
    names = load_wording("en").common["names"]
    assert {*FINDINGS, *DEVICES} <= names.keys()
    assert all(name in forms["the"] for name, forms in names.items())

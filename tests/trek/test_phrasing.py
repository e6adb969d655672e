"""From a turn to the words that are sent: every style, and a key that can be found in them and obeys."""

import re
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carina.cases import Box
from carina.studies import ReportSection
from carina.trek.phrasing import count_words, phrase_turn
from carina.trek.sampling import Sampler
from carina.trek.turn import Choice, Turn
from carina.trek.wording import Template, load_wording

CORE = "What is it?"


def turn(format_, **more):
    return Turn(
        stage=3,
        task="location",
        format=format_,
        pool=load_wording().pools[3, "location", "open"],
        template=Template(id="s3.location.open.001", text=CORE, slots=()),
        slots={},
        core=CORE,
        facts=[],
        **more,
    )


@pytest.fixture(scope="module")
def said(made):
    def phrased(asked, *, seed=0, frame="percent"):
        return phrase_turn(asked, Sampler(seed), made.words.wording.common, frame)

    return phrased


@pytest.fixture(scope="module")
def instruction(made):
    return made.words.wording.common["instruction"]


def numbers(text):
    return [int(number) for number in re.findall(r"\d+", text)]


# ---- open ------------------------------------------------------------------------------------------------------------


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 160), st.integers(0, 10**6))
def test_the_key_obeys_what_an_open_question_demands(said, words, seed):
    made = said(turn("open", answer=" ".join(["word"] * words)), seed=seed)
    limits = made.constraints
    assert made.key.text.split() == ["word"] * words
    assert made.text.startswith(CORE)
    assert not limits.answer_only
    if limits.max_words is not None:
        assert words <= limits.max_words
        assert limits.max_words >= 20
        assert numbers(made.text) == [limits.max_words]
    elif limits.min_words is not None:
        assert words - 10 < limits.min_words <= words
        assert limits.min_words >= 30
        assert numbers(made.text) == [limits.min_words]
    else:
        assert numbers(made.text) == []


def test_every_demand_on_length_is_made_and_only_where_it_fits(said, instruction):
    def kinds(words, *, history=False):
        counted = Counter()
        for seed in range(800):
            text = said(turn("open", answer=" ".join(["w"] * words), history=history), seed=seed).text
            rest = re.sub(r"\d+", "{words}", text.removeprefix(CORE).strip())
            counted[
                next((k for k, texts in instruction.items() if k != "answer_only" and rest in texts), rest)
            ] += 1
        return counted

    assert set(kinds(8)) == {"", "at_most", "short"}
    assert set(kinds(25)) == {"", "at_most"}
    assert set(kinds(60)) == {"", "at_most", "at_least", "long"}
    few = kinds(8)
    assert 20 < few["at_most"] < 80
    assert 150 < few["short"] < 300


def test_history_is_asked_for_only_where_it_is_needed(said, instruction):
    texts = [said(turn("open", answer="one", history=True), seed=seed).text for seed in range(300)]
    asking = sum(any(hint in text for hint in instruction["history"]) for text in texts)
    assert 140 < asking < 220
    texts = [said(turn("open", answer="one"), seed=seed).text for seed in range(300)]
    assert not any(hint in text for text in texts for hint in instruction["history"])


# ---- yes or no -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", ["yes", "no", "uncertain"])
def test_yes_and_no_are_asked_for_bare_or_with_a_sentence(said, instruction, label):
    counted = Counter()
    for seed in range(300):
        made = said(turn("yes_no", label=label, answer=f"{label.capitalize()}, so it is."), seed=seed)
        assert made.key.label == label
        rest = made.text.removeprefix(CORE).strip()
        if made.constraints.answer_only:
            assert made.key.text == label.capitalize()
            assert rest in instruction["yes_no_only"]
        else:
            assert made.key.text == f"{label.capitalize()}, so it is."
            assert rest == "" or rest in instruction["yes_no_free"]
        counted[made.constraints.answer_only, bool(rest)] += 1
    assert set(counted) == {(True, True), (False, True), (False, False)}


# ---- choice ----------------------------------------------------------------------------------------------------------

TEXTS = ("a mass", "two words", "fracture", "left lung, lower zone", "4.1 cm above", "here; there", "no")


def choices(right, wrong, *, none=None):
    made = [Choice(text, right=True) for text in right] + [Choice(text) for text in wrong]
    return made if none is None else [*made, Choice("none of these", none=True, right=none)]


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from(TEXTS), min_size=2, max_size=7, unique=True),
    st.integers(1, 3),
    st.sampled_from([None, True, False]),
    st.integers(0, 10**6),
)
def test_the_right_options_can_be_found_in_what_is_sent(said, texts, right, none, seed):
    right = min(right, len(texts) - 1)
    given_choices = choices(texts[:right], texts[right:])
    if none is True:
        given_choices = choices([], texts, none=True)
    elif none is False:
        given_choices = choices(texts[:right], texts[right:], none=False)
    multiple = right > 1 and none is not True
    made = said(turn("choice", choices=given_choices, multiple=multiple), seed=seed)
    wanted = {choice.text for choice in given_choices if choice.right}
    # Ids are letters in order, whatever the labels that are shown.
    assert [option.id for option in made.options] == list("ABCDEFGH")[: len(given_choices)]
    assert {option.text for option in made.options if option.id in made.key.options} == wanted
    assert {option.text for option in made.options} == {choice.text for choice in given_choices}
    assert made.key.kinds == tuple(
        "key" if option.text in wanted else "none" if option.text == "none of these" else "distractor"
        for option in made.options
    )
    # All options stand in the question, each once, in order, with the label that the key's text has too.
    places = []
    after = made.text.index(CORE) + len(CORE)
    for option in made.options:
        at = made.text.index(option.text, after)
        places.append(at)
        after = at + len(option.text)
    shown = []
    for number, (option, at) in enumerate(zip(made.options, places, strict=True)):
        before = made.text[:at]
        label = next(
            (
                style
                for style in (f"{number + 1}). ", f"{number + 1}. ", f"{'ABCDEFGH'[number]}. ")
                if before.endswith(style)
            ),
            "",
        )
        shown.append((label, option))
    assert len({bool(label) for label, _ in shown}) == 1
    labelled = [f"{label}{option.text}" for label, option in shown if option.id in made.key.options]
    assert made.key.text in {joint.join(labelled) for joint in (" and ", ", ", "\n")}
    if none is not None:
        assert made.options[-1].text == "none of these"
    # What separates two options is within none of them.
    gaps = {
        made.text[end:start].removesuffix(label)
        for end, start, (label, _) in zip(
            [at + len(option.text) for option, at in zip(made.options, places, strict=True)],
            places[1:],
            shown[1:],
            strict=False,
        )
    }
    marks = {gap.replace(" or ", " ").strip(" ") for gap in gaps} - {""}
    assert not any(mark in option.text for mark in marks for option in made.options), (made.text, gaps)


def test_every_style_of_options_occurs(said):
    labels, separators, box_in_frame = Counter(), Counter(), Counter()
    for seed in range(1200):
        text = said(turn("choice", choices=choices(["mass"], ["nodule", "edema"])), seed=seed).text
        listed = text[text.index(CORE) + len(CORE) :]
        label = re.match(r"\s*\[?([A1]?(?:\.|\)\.)?)", listed).group(1)
        labels[label] += 1
        box_in_frame["["] += "[" in listed
        separators[
            "\n" if listed.startswith("\n") else ";" if ";" in listed else "," if "," in listed else "."
        ] += 1
        box_in_frame["or"] += bool(re.search(r"\bor (?:[C3]\S* )?\w+\W", listed.split("\n")[0]))
    assert set(labels) == {"A.", "1.", "1).", ""}
    assert labels["A."] > 800
    assert min(labels.values()) >= 3
    assert set(separators) == {"\n", ";", ",", "."}
    assert 200 < box_in_frame["["] < 600
    assert box_in_frame["or"] > 0


def test_positions_of_the_right_option_are_even(said):
    counted = Counter()
    for seed in range(1200):
        made = said(turn("choice", choices=choices(["mass"], ["nodule", "edema"], none=False)), seed=seed)
        counted[made.key.options[0]] += 1
    assert set(counted) == {"A", "B", "C"}
    assert all(330 < number < 470 for number in counted.values())


def test_of_two_options_with_the_same_text_the_right_one_is_kept(said):
    made = said(turn("choice", choices=choices(["A mass"], ["a  mass", "edema"])))
    assert sorted(option.text for option in made.options) == ["A mass", "edema"]
    assert [option.text for option in made.options if option.id in made.key.options] == ["A mass"]


def test_the_question_says_whether_one_or_several_options_are_right(said, instruction):
    for seed in range(200):
        several = said(
            turn("choice", choices=choices(["mass", "edema"], ["nodule"]), multiple=True), seed=seed
        )
        assert any(hint in several.text for hint in instruction["several"])
        assert len(several.key.options) == 2
        one = said(turn("choice", choices=choices(["mass"], ["nodule"])), seed=seed)
        assert not any(hint in one.text for hint in instruction["several"])


def test_the_question_says_answer_only_where_it_is_a_constraint(said, instruction):
    counted = Counter()
    for seed in range(400):
        made = said(turn("choice", choices=choices(["mass"], ["nodule"])), seed=seed)
        before = any(made.text.startswith(hint) for hint in instruction["answer_only"]["before"])
        after = any(made.text.endswith(hint) for hint in instruction["answer_only"]["after"])
        assert made.constraints.answer_only == (before or after)
        counted[before, after] += 1
    assert set(counted) == {(False, False), (True, False), (False, True)}


# ---- boxes and reports -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", ["pixel", "percent", "thousand"])
def test_boxes_come_with_their_frame(made, said, frame):
    box = Box(image="s.png", xyxy=(1, 2, 3, 4), frame=frame)
    asked = turn("boxes", boxes=(box,), answer="there")
    texts = {said(asked, seed=seed, frame=frame).text for seed in range(60)}
    assert texts == {f"{CORE} {told}" for told in made.words.wording.common["frame"][frame]}
    phrased = said(asked, frame=frame)
    assert phrased.key.boxes == (box,)
    assert phrased.key.text == "there"


def test_report_questions_get_no_instruction(said):
    sections = (ReportSection(name="impression", text="Normal."),)
    phrased = said(turn("report", sections=sections, answer="Normal."))
    assert (phrased.text, phrased.key.sections, phrased.key.text) == (CORE, sections, "Normal.")
    assert phrased.constraints.max_words is phrased.constraints.min_words is None


def test_words_are_counted_between_spaces():
    assert count_words("") == 0
    assert count_words("  a-b  c,\nd ") == 3

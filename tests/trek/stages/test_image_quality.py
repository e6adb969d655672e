"""Stage 1: projections and technical adequacy, as the images' records say."""

from collections import Counter

import pytest

from carina.studies import Quality
from carina.trek.stages.image_quality import ask_image_quality

SPOKEN = {
    "PA": ("PA", "posteroanterior", "postero-anterior"),
    "AP": ("AP", "anteroposterior", "antero-posterior"),
    "lateral": ("lateral", "side"),
}


def shown(study):
    """The frontal image and the lateral one."""
    frontal = [image for image in study.images if image.view in ("PA", "AP")]
    lateral = [image for image in study.images if image.view == "lateral"]
    return [*frontal[:1], *lateral[:1]]


def projections(text):
    """The views that a text names, by any of their names."""
    words = text.replace(",", " ").replace(".", " ").split()
    return {view for view, names in SPOKEN.items() if any(name in words for name in names)}


@pytest.fixture(scope="module")
def asked(conversations):
    return [(talk.study, step) for talk in conversations for step in talk.case.steps if step.stage == 1]


def test_every_family_is_asked_in_every_format(asked):
    assert {(step.task, step.format) for _, step in asked} == {
        (task, form) for task in ("view", "quality") for form in ("open", "choice")
    }


def test_views_are_those_of_the_images(made, asked):
    checked = Counter()
    for study, step in asked:
        if step.task != "view":
            continue
        views = [image.view for image in shown(study)]
        assert made.facts(step, "view")[0].text == ", ".join(views)
        if step.format == "open":
            assert projections(step.key.text) == set(views), step.key.text
        else:
            (right,) = made.right(step)
            assert projections(right) == set(views)
            assert all(projections(text) != set(views) for text in made.wrong(step))
            # The number of images is to be seen, so no option is told by it.
            assert {len(projections(option.text)) for option in step.options} == {len(set(views))}
        checked[step.format, len(views)] += 1
    assert set(checked) == {(form, number) for form in ("open", "choice") for number in (1, 2)}


def test_quality_is_that_of_the_first_image(made, asked):
    words = made.words.wording.phrases[1]
    states = Counter()
    for study, step in asked:
        if step.task != "quality":
            continue
        quality = shown(study)[0].quality
        expected = {
            "rotation": quality.rotation,
            "inspiration": quality.inspiration,
            "exposure": quality.exposure,
            "coverage": None if quality.cut_off is None else "cut_off" if quality.cut_off else "complete",
        }
        expected = {name: state for name, state in expected.items() if state is not None}
        assert {fact.about: fact.text for fact in made.facts(step, "quality")} == expected
        assert step.uses == ("v1",)
        said = step.key.text if step.format == "open" else made.right(step)[0]
        clauses = {
            (name, state): [text.partition("{")[0].strip() for text in words[name][state]]
            for name in expected
            for state in words[name]
        }
        told = {
            (name, state)
            for (name, state), texts in clauses.items()
            if any(text and text.lower() in said.lower() for text in texts)
        }
        assert {pair for pair in told if pair[1] != "cut_off"} <= set(expected.items()), said
        if step.format == "open" and "cut_off" not in expected.values():
            assert told == set(expected.items()), said
        else:
            assert len(step.options) >= 2 or step.format == "open"
        if quality.cut_off and step.format == "open":
            assert all(part in said for part in quality.cut_off)
        states.update(expected.items())
    assert ("inspiration", "adequate") in states
    assert len(states) > 6


def test_an_unknown_view_is_not_asked_for(made):
    study = made.study(made.finding("mass"), views=("unknown", "unknown"), quality=made.good)
    tasks = Counter(s.task for case in made.talks(20, study) for s in case.steps if s.stage == 1)
    assert set(tasks) == {"quality"}


def test_nothing_is_asked_where_nothing_is_known(made):
    study = made.study(made.finding("mass"), views=("unknown",))
    assert not any(s.stage == 1 for case in made.talks(10, study) for s in case.steps)
    vague = made.study(made.finding("mass"), views=("unknown",), quality=Quality())
    assert not any(s.stage == 1 for case in made.talks(10, vague) for s in case.steps)


@pytest.mark.parametrize("view", ["PA", "lateral", "unknown"])
@pytest.mark.parametrize("quality", [True, False])
def test_stage_one_is_asked_wherever_view_or_quality_is_known(made, view, quality):
    study = made.study(made.finding("mass"), views=(view,), quality=made.good if quality else None)
    known = (view != "unknown") + quality
    numbers = {sum(step.stage == 1 for step in case.steps) for case in made.talks(40, study)}
    assert numbers == {0: {0}, 1: {1}, 2: {1, 2}}[known]


def test_one_known_criterion_is_enough_for_a_question(made):
    study = made.study(made.finding("mass"), views=("unknown",), quality=Quality(exposure="over"))
    steps = [s for case in made.talks(12, study) for s in case.steps if s.stage == 1]
    assert {step.format for step in steps} == {"open"}
    clauses = [text.lower() for text in made.words.wording.phrases[1]["exposure"]["over"]]
    assert all(any(clause in step.key.text.lower() for clause in clauses) for step in steps)


def test_several_images_of_a_projection_are_one_that_can_be_named(made):
    study = made.study(made.finding("mass"), views=("PA", "PA", "lateral", "lateral"))
    texts = set()
    for seed in range(40):
        draft = made.draft(study, seed=seed, most_images=9)
        ask_image_quality(draft)
        for turn in draft.turns:
            if turn.format == "open":
                texts.add(turn.answer)
            else:
                assert sum(choice.right for choice in turn.choices) == 1
                assert len({choice.text for choice in turn.choices}) >= 2
    assert texts
    for text in texts:
        words = text.replace(",", " ").replace(".", " ").split()
        for view in ("PA", "lateral"):
            assert sum(name in words for name in SPOKEN[view]) == 1, text
        assert {"one", "two", "three", "four"} & set(words) <= {"two"}, text

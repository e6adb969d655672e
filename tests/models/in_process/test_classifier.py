"""What probabilities say of a question: worked out by hand."""

import json

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carina.cases import Option, Step
from carina.models.onnx import Description, GridSpec, InputSpec, Prediction, read_description
from carina.runs.classifier import FindingAnswers
from carina.store.errors import CarinaError

FINDINGS = ("pleural effusion", "lung opacity", "mass", "cardiomegaly")
DESCRIPTION = Description(
    kind="carina/classifier",
    schema="1.0",
    input=InputSpec(size=(8, 8)),
    output="p",
    findings=FINDINGS,
    thresholds={"mass": 0.2, "cardiomegaly": 0.9},
    synonyms={"pleural effusion": ("effusion",), "lung opacity": ("opacity",), "cardiomegaly": ("enlarged heart",)},
    grid=GridSpec(output="g", threshold=0.5),
)  # fmt: skip
ANSWERS = FindingAnswers(DESCRIPTION)


def prediction(*probabilities, grid=None, filled=(1.0, 1.0)):
    return Prediction(np.array(probabilities, np.float32), grid, filled)


def step(question, *options, task="presence", kind=None, multiple=False):
    return Step(
        id="1",
        stage=1,
        task=task,
        format=kind or ("choice" if options else "yes_no"),
        question=question,
        multiple=multiple,
        options=tuple(Option(id=f"o{n}", text=text) for n, text in enumerate(options)),
    )


SEEN = prediction(0.7, 0.1, 0.2, 0.8)
"""An effusion and, at its threshold, a mass; the heart is below its threshold."""


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Is a pleural effusion visible on this chest X-ray?", "Yes."),
        ("Are there effusions?", "Yes."),
        ("Is there a PLEURAL\nEFFUSION?", "Yes."),
        ("Is there a mass?", "Yes."),
        ("Are there any lung opacities?", "No."),
        ("Is there an enlarged heart?", "No."),
        ("Is there cardiomegaly or a mass?", "Yes."),
        ("Is there a fracture?", "Uncertain."),
        ("Is there a massive bleeding?", "Uncertain."),
    ],
)
def test_presence_is_above_the_threshold(question, answer):
    assert ANSWERS.answer(step(question), SEEN) == answer


def test_any_abnormality_is_decided_by_the_likeliest_finding():
    asked = step("Is there any abnormality?", task="any abnormality")
    assert ANSWERS.answer(asked, SEEN) == "Yes."
    assert ANSWERS.answer(asked, prediction(0.1, 0.1, 0.1, 0.1)) == "No."


def test_a_finding_that_is_only_mentioned_is_no_answer():
    asked = "The coloured area is a proposed contour of the effusion. Does it need a major revision?"
    assert ANSWERS.answer(step(asked, task="contour evaluation"), SEEN) == "Uncertain."
    assert ANSWERS.answer(step(asked, "Yes", "No", task="contour evaluation"), SEEN) == "Answer: 2"
    assert ANSWERS.answer(step("Which?", "None", "mass", task="location"), SEEN) == "Answer: 1"


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        (("Yes", "No"), "Answer: 1"),
        (("No.", "Yes."), "Answer: 2"),
    ],
)
def test_yes_and_no_may_be_options(options, answer):
    assert ANSWERS.answer(step("Is there an effusion?", *options, task="detection"), SEEN) == answer


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        # Log-odds above the threshold: effusion 0.85, opacity -2.20, mass 0, heart -0.81.
        (("mass", "pleural effusion", "cardiomegaly"), "Answer: 2"),
        (("lung opacity", "cardiomegaly"), "Answer: 2"),
        (("lung opacity", "cardiomegaly", "none of these"), "Answer: 3"),
        (("none of these", "mass"), "Answer: 2"),
        (("lung opacity", "fracture"), "Answer: 1"),
        (("fracture", "tube"), "Answer: 1"),
        (("effusion and cardiomegaly", "effusion and a mass", "effusion and opacity"), "Answer: 2"),
        # 0.85 - 0.81 is more than nothing.
        (("No abnormality.", "effusion and cardiomegaly"), "Answer: 2"),
        (("No effusion", "no opacity"), "Answer: 2"),
    ],
)
def test_the_likeliest_option_is_chosen(options, answer):
    assert ANSWERS.answer(step("Which is there?", *options), SEEN) == answer


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        (("mass", "lung opacity", "effusion"), "Answer: 1, 3"),
        (("cardiomegaly", "lung opacity", "None"), "Answer: 3"),
        (("cardiomegaly", "lung opacity"), "Answer: 1"),
    ],
)
def test_all_options_above_their_thresholds_are_chosen(options, answer):
    assert ANSWERS.answer(step("Which are there?", *options, multiple=True), SEEN) == answer


def test_a_name_within_a_longer_one_does_not_count():
    names = msgspec.structs.replace(
        DESCRIPTION, findings=("opacity", "lung opacity"), thresholds={}, synonyms={}
    )
    asked = step("Is there a lung opacity?")
    assert FindingAnswers(names).answer(asked, prediction(0.9, 0.1)) == "No."
    assert FindingAnswers(names).answer(step("An opacity?"), prediction(0.9, 0.1)) == "Yes."


def test_boxes_enclose_the_cells_above_the_threshold():
    grid = np.zeros((4, 4, 8), np.float32)
    grid[0, 1:3, 2:4] = 0.6
    grid[0, 3, 7] = 0.5
    grid[2, 0, 0] = 0.4
    where = step("Where is the effusion?", kind="boxes", task="finding box")
    assert ANSWERS.answer(where, prediction(0.9, 0, 0, 0, grid=grid)) == (
        "pleural effusion: [25%, 25%, 50%, 75%]\npleural effusion: [87.5%, 75%, 100%, 100%]"
    )
    # Nothing is above: the likeliest patch.
    where = step("Where is the mass?", kind="boxes", task="finding box")
    assert ANSWERS.answer(where, prediction(0.9, 0, 0, 0, grid=grid)) == "mass: [0%, 0%, 12.5%, 25%]"


def test_boxes_are_in_percent_of_the_image_not_of_the_padded_input():
    grid = np.zeros((4, 4, 4), np.float32)
    grid[0, 1, 1] = 1.0
    where = step("Where is the effusion?", kind="boxes")
    # The picture takes the left half: 2 of 4 columns; the second column is its right half.
    assert ANSWERS.answer(where, prediction(1, 0, 0, 0, grid=grid, filled=(1.0, 0.5))) == (
        "pleural effusion: [50%, 25%, 100%, 50%]"
    )
    # Beyond its edge there is nothing to show.
    grid[0] = 0
    grid[0, 1, 3] = 1.0
    assert ANSWERS.answer(where, prediction(1, 0, 0, 0, grid=grid, filled=(1.0, 0.5))) == (
        "pleural effusion: [0%, 0%, 100%, 100%]"
    )


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (step("Where is the heart?", kind="boxes"), "[0%, 0%, 100%, 100%]"),
        (step("Where is the effusion?", kind="boxes"), "[0%, 0%, 100%, 100%]"),
        (step("Where is the effusion?", kind="map"), "[0%, 0%, 100%, 100%]"),
        (step("What do you see?", kind="open"), "Pleural effusion, mass."),
        (step("Write a report.", kind="report"), "Pleural effusion, mass."),
        (step("Which mask?", "1st mask", "2nd mask", task="revision"), "Answer: 1"),
        (step("Which points?", "red point", "None", task="expansion", multiple=True), "Answer: 2"),
    ],
)
def test_other_questions_get_a_valid_answer(asked, answer):
    assert ANSWERS.answer(asked, SEEN) == answer


def test_without_an_image_answers_are_neutral():
    assert ANSWERS.answer(step("Is there an effusion?"), None) == "Uncertain."
    assert ANSWERS.answer(step("Effusion?", "Yes", "No"), None) == "Answer: 2"
    assert ANSWERS.answer(step("Which?", "mass", "None of these"), None) == "Answer: 2"
    assert ANSWERS.answer(step("Where is the mass?", kind="boxes"), None) == "[0%, 0%, 100%, 100%]"
    assert ANSWERS.answer(step("Report?", kind="report"), None) == "No acute cardiopulmonary abnormality."


@given(
    st.lists(st.floats(0, 1, width=32), min_size=4, max_size=4),
    st.lists(
        st.sampled_from([*FINDINGS, "None", "fracture", "no mass"]), min_size=1, max_size=6, unique=True
    ),
    st.booleans(),
)
def test_every_choice_is_one_that_is_offered(probabilities, options, multiple):
    said = ANSWERS.answer(step("Which?", *options, multiple=multiple), prediction(*probabilities))
    numbers = [int(number) for number in said.removeprefix("Answer: ").split(", ")]
    assert numbers == sorted(set(numbers))
    assert 1 <= numbers[0] <= numbers[-1] <= len(options)
    assert multiple or len(numbers) == 1


# ---- carina.json ----------------------------------------------------------------------------------------------------

WHOLE = {
    "kind": "carina/classifier",
    "schema": "1.0",
    "input": {"size": [224, 224], "channels": 3, "mean": [0.5, 0.4, 0.3], "std": [0.2], "fit": "pad"},
    "output": "probabilities",
    "findings": ["pleural effusion", "cardiomegaly"],
    "activation": "sigmoid",
    "threshold": 0.4,
    "thresholds": {"cardiomegaly": 0.35},
    "synonyms": {"cardiomegaly": ["enlarged heart"]},
    "grid": {"output": "patches", "threshold": 0.4, "activation": "sigmoid"},
}


def test_a_description_is_read(tmp_path):
    path = tmp_path / "carina.json"
    path.write_text(json.dumps(WHOLE))
    assert msgspec.json.decode(msgspec.json.encode(read_description(path))) == WHOLE


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": "2.0"}, "schema '2.0': this Carina reads 1.x"),
        ({"kind": "other"}, "Invalid enum value 'other'"),
        ({"findings": []}, "`findings` must name at least one finding, each once"),
        ({"findings": ["mass", "mass"]}, "`findings` must name at least one finding, each once"),
        ({"thresholds": {"mass": 0.5}}, "`thresholds` names 'mass', which is not among `findings`"),
        ({"synonyms": {"mass": ["lump"]}}, "`synonyms` names 'mass', which is not among `findings`"),
        ({"threshold": 1.0}, "a threshold must lie between 0 and 1"),
        ({"input": {"size": [0, 8]}}, "`size` must be height and width"),
        (
            {"input": {"size": [8, 8], "mean": [1, 2]}},
            "`mean` must hold one number, or one for each of 1 channels",
        ),
        ({"input": {"size": [8, 8], "std": [0]}}, "`std` must be above 0"),
        ({"input": {"size": [8, 8], "chanels": 1}}, "unknown field `chanels`"),
    ],
)
def test_a_wrong_description_is_refused_with_its_field(tmp_path, change, words):
    path = tmp_path / "carina.json"
    path.write_text(json.dumps(WHOLE | change))
    with pytest.raises(CarinaError) as caught:
        read_description(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value)


def test_a_missing_or_broken_description_is_refused(tmp_path):
    path = tmp_path / "carina.json"
    with pytest.raises(CarinaError, match=r"carina\.json: missing"):
        read_description(path)
    path.write_text("{")
    with pytest.raises(CarinaError, match=r"carina\.json: Input data was truncated"):
        read_description(path)

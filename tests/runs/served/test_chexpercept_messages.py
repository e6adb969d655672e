"""The profile chexpercept: every message of a case as a server receives it, against tables written by hand."""

import msgspec
import numpy as np
import pytest
from PIL import Image as Pil
from tests.models.loopback import MODEL, Answer, serving
from tests.runs.conftest import MASKS, PLACES, POINTS, SIZE, YES_NO, ZONES, choice
from tests.runs.served.scripted_model import pictures, pixels

from carina.cases import Case, CaseImage, CaseView, Panel, Provenance, write_benchmark
from carina.runs import run
from carina.runs.prompts import AFTER_CHEXPERCEPT

VIEWS = ("xray", "mask", "points", "m1", "m2", "m3", "m4")
CONTEXT = "The coloured points are candidates."
STEPS = {
    "1": choice("1", 1, "detection", YES_NO, ("yes",), shows=("xray",), uses=("xray",)),
    "2": choice("2", 2, "contour evaluation", YES_NO, ("yes",), shows=("mask",), uses=("mask",),
                after=("1", "yes"), depends=("1",)),
    "3a": choice("3a", 3, "expansion", POINTS, ("p1", "p3"), multiple=True, shows=("points",), uses=("points",),
                 after=("2", "yes"), depends=("2",)),
    "3b": choice("3b", 3, "contraction", POINTS, ("none",), multiple=True, uses=("points",), after=("2", "yes")),
    "3c": choice("3c", 3, "revision", MASKS, ("m2",), shows=("m1", "m2", "m3", "m4"), uses=("m1", "m2", "m3", "m4"),
                 after=("2", "yes"), depends=("3a", "3b")),
    "4a": choice("4a", 4, "distribution", ZONES, ("2",), uses=("xray",), after=("2", "yes"), depends=("3c",)),
    "4b": choice("4b", 4, "location", PLACES, ("a", "b"), multiple=True, uses=("xray",), after=("2", "yes")),
    "4c": choice("4c", 4, "severity", ZONES, ("3",), uses=("xray",), after=("2", "yes")),
    "4d": choice("4d", 4, "comparison", ZONES, ("1",), uses=("xray",), after=("2", "yes")),
}  # fmt: skip
RF_4A = choice("4a", 4, "distribution", ZONES, ("2",), uses=("xray",), after=("2", "no"), depends=("2",))
RF_2 = choice("2", 2, "contour evaluation", YES_NO, ("no",), shows=("mask",), uses=("mask",),
              after=("1", "yes"), depends=("1",))  # fmt: skip

Y_N = "Options:\n(1) Yes\n(2) No"
DOTS = "Options:\n(1) red point\n(2) blue point\n(3) green point\n(4) None"
FOUR = "Options:\n(1) 1st mask\n(2) 2nd mask\n(3) 3rd mask\n(4) 4th mask"
COUNT = "Options:\n(1) 1 zone\n(2) 2 zones\n(3) 3 zones\n(4) 4 zones or more"
AREAS = "Options:\n(1) right base\n(2) left base\n(3) left apex\n(4) None of the above (options 1-3)"
END = "Your earlier answer does not count; answer what follows by what is stated here."

# One row a question: text and images in the order in which they are sent, what the model says.
ASKED = [
    (f"Question 1?\n{Y_N}", ["xray"], "<think>Nothing.</think>\nAnswer: 2"),
    (f"Question 2?\n{Y_N}", ["mask"], "I say:\nAnswer: 2"),
    (f"{CONTEXT}\n\nQuestion 3a?\n{DOTS}", ["points"], "Answer: 2"),
    (f"Question 3b?\n{DOTS}", [], "Answer: 4"),
    (f"Question 3c?\n{FOUR}", ["m1", "m2", "m3", "m4"], "Answer: 1"),
    (f"Question 4a?\n{COUNT}", [], "Answer: 1"),
    (f"Question 4b?\n{AREAS}", [], "Answer: 1,2"),
    (f"Question 4c?\n{COUNT}", [], "Answer: 3"),
    (f"Question 4d?\n{COUNT}", [], "Answer: 1"),
]
# Place of a question: what the last request shows in the place of the answer; 3b is right, and stage 4 stays.
REPLACED = {0: "Answer: 1", 1: "Answer: 1", 2: "Answer: 1,3", 4: "Answer: 2"}
# Place of a question: what stands before it.
STATED = {
    1: f"Established fact: the lesion is visible on this X-ray.\n{END}",
    2: f"Established fact: the mask needs a major revision.\n{END}",
    4: "Established fact: the mask has to be expanded towards the red point and the green point.\n"
    f"Established fact: the mask does not have to be contracted.\n{END}",
    5: f"Established fact: after the right changes, it is the 2nd mask that fits.\n{END}",
}


def write(folder, steps, path):
    images = tuple(CaseImage(key=f"{view}.png", width=SIZE, height=SIZE, finished=True) for view in VIEWS)
    case = Case(
        id="c",
        protocol="percept",
        study="s",
        patient="p",
        source="x",
        target="edema",
        path=path,
        images=images,
        views=tuple(CaseView(id=view, panels=(Panel(image=f"{view}.png"),)) for view in VIEWS),
        steps=steps,
    )
    write_benchmark(folder / "bench", [case], Provenance(command="made by hand"))
    for number, view in enumerate(VIEWS):
        Pil.fromarray(np.full((SIZE, SIZE), 10 * number, np.uint8)).save(folder / "bench" / f"{view}.png")
    return folder / "bench"


def received(tmp_path, bench, history, answers, **options):
    """The requests of a run, in order."""
    waiting = list(answers)
    with serving(lambda _: Answer(waiting.pop(0))) as service:
        run(
            bench,
            MODEL,
            tmp_path / "run",
            base_url=service.url,
            profile="chexpercept",
            history=history,
            first_request=False,
            **options,
        )
    assert not waiting
    return [asked.body for asked in service.asked]


def described(message):
    """Role, text and the names of the images, if they come after the text."""
    content = message["content"]
    if isinstance(content, str):
        return message["role"], content, []
    assert [part["type"] for part in content] == ["text", *["image_url"] * (len(content) - 1)]
    shown = [VIEWS[int(pixels(uri)[0, 0]) // 10] for uri in pictures([message])]
    return message["role"], content[0]["text"], shown


def with_context(steps):
    return tuple(
        msgspec.structs.replace(step, context=CONTEXT) if step.id == "3a" else step for step in steps
    )


@pytest.mark.parametrize("history", ["none", "implicit", "explicit"])
def test_every_message_of_a_case_is_as_in_the_published_runner(tmp_path, history):
    bench = write(tmp_path, with_context(STEPS.values()), "RR")
    requests = received(tmp_path, bench, history, [answer for _, _, answer in ASKED])
    expected = [("system", AFTER_CHEXPERCEPT, [])]
    for place, (text, images, answer) in enumerate(ASKED):
        stated = f"{STATED[place]}\n\n{text}" if history == "explicit" and place in STATED else text
        expected.append(("user", stated, images))
        shown = REPLACED.get(place, answer) if history == "implicit" else answer
        expected.append(("assistant", shown, []))
        # The last message of each request is the question; the answer before it may have been replaced since.
        assert described(requests[place]["messages"][-1]) == ("user", stated, images)
    assert [described(one) for one in requests[-1]["messages"]] == expected[:-1]
    assert {(body["max_tokens"], body["temperature"]) for body in requests} == {(8192, 0.0)}


def test_answers_are_replaced_at_the_published_places_only(tmp_path):
    bench = write(tmp_path, with_context(STEPS.values()), "RR")
    requests = received(tmp_path, bench, "implicit", [answer for _, _, answer in ASKED])
    own = [answer for _, _, answer in ASKED]
    shown = [[one["content"] for one in body["messages"] if one["role"] == "assistant"] for body in requests]
    assert shown[3] == ["Answer: 1", "Answer: 1", "Answer: 2"], "nothing is corrected between 3a and 3b"
    assert shown[4] == ["Answer: 1", "Answer: 1", "Answer: 1,3", "Answer: 4"]
    assert shown[5] == ["Answer: 1", "Answer: 1", "Answer: 1,3", "Answer: 4", "Answer: 2"]
    assert shown[6][-1] == own[5], "nothing is corrected inside stage 4"


def test_without_a_revision_stage_2_is_corrected_before_4a(tmp_path):
    bench = write(tmp_path, (STEPS["1"], RF_2, RF_4A), "RF")
    (*_, last) = received(tmp_path, bench, "explicit", ["Answer: 1", "Answer: 1", "Answer: 2"])
    stated = f"Established fact: the mask needs no major revision.\n{END}"
    assert described(last["messages"][-1]) == ("user", f"{stated}\n\nQuestion 4a?\n{COUNT}", [])


def test_temperature_and_longest_answer_can_be_set(tmp_path):
    bench = write(tmp_path, (STEPS["1"],), "LF")
    (body,) = received(tmp_path, bench, "none", ["Answer: 1"], temperature=1.0, max_tokens=100)
    assert (body["max_tokens"], body["temperature"]) == (100, 1.0)

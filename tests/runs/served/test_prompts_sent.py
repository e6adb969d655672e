"""The prompts of a user as a server receives them: system prompt, examples, order and detail of images."""

import pickle

import numpy as np
import pytest
from PIL import Image as Pil
from tests.models.loopback import MODEL, serving
from tests.runs.conftest import CASES, SIZE, revision_required, talk
from tests.runs.served.scripted_model import pictures, pixels

from carina.cases import Provenance, write_benchmark
from carina.models import parse_model_name
from carina.runs import open_run, run, show_prompt
from carina.runs.examples import example_id, prepare_prompts
from carina.runs.options import ExampleRequest, RunOptions
from carina.runs.prompts import style_text
from carina.runs.shown_prompt import ANSWER
from carina.store.errors import CarinaError
from carina.studies import SourceInfo

OPEN = SourceInfo(name="made", licence="CC0-1.0")


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """Cases of other patients, whose images are white."""
    return write(tmp_path_factory.mktemp("others") / "bench", OPEN)


def write(folder, source):
    cases = [revision_required("other-rr", patient="z1"), talk("other-talk", patient="z2")]
    write_benchmark(folder, cases, Provenance(command="made by hand", sources=(source,)))
    for case in cases:
        Pil.fromarray(np.full((SIZE, SIZE), 255, np.uint8)).save(folder / f"{case.id}.png")
    return folder


def received(bench, out, *, says=ANSWER, **options):
    with serving(lambda _: says) as service:
        run(bench, MODEL, out, base_url=service.url, retries=0, first_request=False, **options)
    return [asked.body["messages"] for asked in service.asked]


def flat(message):
    """Role, text, number of images, and whether they come first."""
    content = message["content"]
    if isinstance(content, str):
        return message["role"], content, 0
    (text,) = [part["text"] for part in content if part["type"] == "text"]
    return message["role"], text, len(content) - 1


@pytest.mark.parametrize("history", ["own", "gold", "hint"])
@pytest.mark.parametrize("profile", ["carina", "chexpercept"])
def test_what_is_shown_is_what_is_sent(bench, tmp_path, others, history, profile):
    ask = {
        "history": history,
        "profile": profile,
        "prompt_style": "reasoning",
        "examples": others,
        "examples_per_protocol": 1,
    }
    requests = received(bench, tmp_path / "run", limit=2, connections=1, **ask)
    shown = show_prompt(bench, MODEL, case="rr", **ask)
    assert [flat(one) for one in requests[-1]] == [
        (one.role, one.text, len(one.images)) for one in shown.messages
    ]


@pytest.mark.parametrize("detail", ["auto", "low", "high"])
@pytest.mark.parametrize("order", ["before", "after"])
def test_images_have_the_order_and_the_detail_that_was_asked_for(bench, tmp_path, others, order, detail):
    ask = {"image_order": order, "image_detail": detail, "examples": others, "examples_per_protocol": 1}
    (request,) = received(bench, tmp_path / "run", limit=1, **ask)
    with_images = [one["content"] for one in request if isinstance(one["content"], list)]
    kinds = ["image_url", "text"] if order == "before" else ["text", "image_url"]
    # Three of the example and one of the case.
    assert [[part["type"] for part in one] for one in with_images] == [kinds] * 4
    sent = [part["image_url"]["detail"] for one in with_images for part in one if part["type"] == "image_url"]
    assert sent == [detail] * 4


def test_without_a_system_prompt_none_is_sent(bench, tmp_path):
    (request,) = received(bench, tmp_path / "none", limit=1, system_prompt="")
    assert [one["role"] for one in request] == ["user"]
    (request,) = received(bench, tmp_path / "mine", limit=1, system_prompt="Mine.", prompt_style="answer")
    assert request[0] == {"role": "system", "content": f"Mine. {style_text('percept', 'answer')}"}


def test_examples_come_first_in_every_request_and_are_the_same_for_all_cases(bench, tmp_path, others):
    requests = received(bench, tmp_path / "run", examples=others, examples_per_protocol=1)
    rows = open_run(tmp_path / "run").rows()
    assert len(requests) == len(rows) == sum(len(case.steps) for case in CASES)
    heads = {"percept": set(), "trek": set()}
    for request in requests:
        protocol = "percept" if "numbered options" in request[0]["content"] else "trek"
        length = 14 if protocol == "percept" else 10
        heads[protocol].add(str(request[1 : 1 + length]))
        assert [one["role"] for one in request[1 : 1 + length]] == ["user", "assistant"] * (length // 2)
        images = [int(pixels(uri)[0, 0]) for uri in pictures(request)]
        number = 3 if protocol == "percept" else 1
        assert set(images[:number]) == {255}
        assert 255 not in images[number:]
    assert {name: len(found) for name, found in heads.items()} == {"percept": 1, "trek": 1}
    assert sum(row.images for row in rows) == sum(len(pictures(request)) for request in requests)


def test_images_of_examples_are_grey_in_a_blind_run(bench, tmp_path, others):
    ask = {"examples": others, "examples_per_protocol": 1, "blind": True, "limit": 2}
    for request in received(bench, tmp_path / "run", **ask):
        assert {int(pixels(uri)[0, 0]) for uri in pictures(request)} == {128}


def test_other_processes_get_the_same_examples(bench, others):
    request = ExampleRequest(benchmark=others, per_protocol=1)
    options = prepare_prompts(bench, parse_model_name(MODEL), RunOptions(examples=request))
    copied = pickle.loads(pickle.dumps(options))  # noqa: S301 - of this test
    assert (copied, hash(copied)) == (options, hash(options))
    assert [example_id(one) for one in copied.prompts.examples] == ["other-rr", "other-talk"]


def test_restricted_examples_are_not_sent_to_another_machine(bench, tmp_path):
    restricted = write(tmp_path / "restricted", SourceInfo(name="hospital", licence="Credentialed 1.5.0"))
    with pytest.raises(CarinaError, match=r"source hospital: .*--accept-terms"):
        run(bench, MODEL, tmp_path / "run", base_url="https://somewhere.invalid/v1", examples=restricted,
            examples_per_protocol=1)  # fmt: skip

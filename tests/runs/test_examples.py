"""Few-shot examples: never of a patient who is asked about, the same for one seed, recorded, and refused in words."""

import io
from contextlib import contextmanager

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pil
from tests.runs.conftest import SIZE, lesion_free, revision_required, talk

from carina.cases import Provenance, write_benchmark
from carina.models import Reply, model_kind
from carina.models.registry import MODELS
from carina.runs import Policy, estimate, read_info, run, show_prompt
from carina.runs.examples import make_example
from carina.runs.options import rank_by_stratum
from carina.runs.prompts import introduce_case, introduce_example
from carina.runs.records import Prompts
from carina.runs.walk import Walk, count_example_images
from carina.store.errors import CarinaError

SERVED = "openai/gpt-5"
PRICES = """
date: 2030-01
answers: {choice: 10}
pictures: {"": {rule: patches, tile: 8}}
prices: {}
own: []
reasoning: {}
"""


def write(folder, cases, **source):
    folder.mkdir(parents=True, exist_ok=True)
    write_benchmark(folder, cases, Provenance(command="made by hand", **source))
    for case in cases:
        Pil.fromarray(np.full((SIZE, SIZE), 200, np.uint8)).save(folder / f"{case.id}.png")
    return folder


def placed(case, patient, split=None):
    return msgspec.structs.replace(case, patient=patient, split=split)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Percept cases of three splits; patient p1 is in two of them."""
    cases = [
        placed(lesion_free("a"), "p1", "test"),
        placed(lesion_free("b"), "p2", "test"),
        placed(revision_required("c"), "p1", "train"),
        placed(lesion_free("d"), "p3", "train"),
        placed(revision_required("e"), "p4", "train"),
        placed(lesion_free("f"), "p5", "val"),
        placed(lesion_free("g"), None, "train"),
    ]
    return write(tmp_path_factory.mktemp("mixed") / "bench", cases)


def test_examples_are_of_no_patient_who_is_asked_about(mixed, tmp_path):
    with reciting():
        done = run(mixed, "recites:x", tmp_path / "run", split="test", examples=mixed, examples_split="train")
    info = read_info(done.path)
    # c is of p1, who is in the split that is asked, and of g the patient is not known.
    assert set(info.prompts.examples.ids["percept"]) == {"d", "e"}
    assert (info.prompts.examples.split, info.prompts.examples.per_protocol) == ("train", 2)
    assert info.prompts.examples.fingerprint == info.fingerprint
    assert info.cases == ("a", "b")
    assert info.selection["split"] == "test"


@given(
    st.lists(st.integers(0, 5), min_size=4, max_size=8),
    st.lists(st.integers(0, 5), min_size=1, max_size=4),
    st.integers(0, 3),
)
@settings(max_examples=12)
def test_whoever_the_patients_are_none_is_on_both_sides(tmp_path_factory, pool, asked, seed):
    folder = tmp_path_factory.mktemp("any")
    bench = write(folder / "asked", [placed(lesion_free(f"a{n}"), f"p{p}") for n, p in enumerate(asked)])
    source = write(folder / "pool", [placed(lesion_free(f"b{n}"), f"p{p}") for n, p in enumerate(pool)])
    possible = {f"b{n}" for n, p in enumerate(pool) if p not in asked}
    ask = {"examples": source, "examples_per_protocol": 1, "seed": seed}
    if not possible:
        with pytest.raises(CarinaError, match="0 of them of a patient who is known and not asked about"):
            show_prompt(bench, SERVED, **ask)
        return
    with reciting() as seen:
        ids = read_info(run(bench, "recites:x", folder / "run", **ask).path).prompts.examples.ids["percept"]
    assert set(ids) <= possible
    assert {name.removeprefix("example:") for name in seen} == set(ids)


def test_examples_follow_the_seed_and_one_of_every_stratum_comes_first(mixed):
    rows = [(f"{path}{n}", "percept", "edema", path) for path in ("LF", "RR") for n in range(20)]
    first, again, other = rank_by_stratum(rows, 1), rank_by_stratum(rows, 1), rank_by_stratum(rows, 2)
    assert first == again != other
    assert sorted(first) == sorted(row[0] for row in rows)
    assert all({first[n][:2], first[n + 1][:2]} == {"LF", "RR"} for n in range(0, 40, 2))
    ask = {"split": "test", "examples": mixed}
    assert show_prompt(mixed, SERVED, **ask) == show_prompt(mixed, SERVED, **ask)


def test_an_example_is_the_conversation_of_its_case_with_right_answers():
    case = revision_required("x")
    example = make_example(case, Policy(), Prompts(), number=2)
    assert [one.role for one in example.messages] == ["user", "assistant"] * 7
    assert [one.text for one in example.messages[1::2]] == [
        "Answer: 1", "Answer: 2", "Answer: 1, 3", "Answer: 4", "Answer: 2", "Answer: 2", "Answer: 1, 2",
    ]  # fmt: skip
    assert example.messages[0].text == f"{introduce_example(2)}\n{case.steps[0].question}"
    assert [one.text for one in example.messages[2::2]] == [step.question for step in case.steps[1:]]
    assert count_example_images([example]) == 3
    after = make_example(case, Policy(profile="chexpercept"), Prompts(), number=1)
    assert after.messages[5].text == "Answer: 1,3"


def test_a_line_separates_the_case_from_the_examples():
    example = make_example(lesion_free("x"), Policy(), Prompts(), number=1)
    prompts = Prompts(examples=(example, make_example(talk("y"), Policy(), Prompts(), number=1)))
    walk = Walk(revision_required("rr"), Policy(), prompts)
    turn = walk.turn
    assert turn.examples == (example,), "those of its own protocol"
    assert turn.messages[0].text.startswith(f"{introduce_case()}\nQuestion 1?")
    row = walk.take(Reply(text="Answer: 1", stop="stop"))
    assert row.images == 2
    assert not walk.turn.messages[-1].text.startswith(introduce_case())
    alone = Walk(revision_required("rr"), Policy(history="none"), prompts)
    alone.take(Reply(text="Answer: 1", stop="stop"))
    assert alone.turn.messages[0].text.startswith(introduce_case())
    assert (
        row.seen_sha256 != Walk(revision_required("rr"), Policy()).take(Reply(text="Answer: 1")).seen_sha256
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "1 case without a patient id"),
        (
            {"split": "test", "examples_split": "test"},
            "split test: 2 cases .*, 0 of them .*expected 2 or more.*--split, --examples-split",
        ),
        ({"split": "test", "examples_per_protocol": 4}, "3 of them .*expected 4 or more"),
        (
            {"split": "test", "examples_split": "train", "max_example_images": 2},
            "only 1 example with 2 images or fewer",
        ),
    ],
)
def test_too_few_examples_are_refused_with_the_reason(mixed, options, message):
    for call in (show_prompt, estimate):
        with pytest.raises(CarinaError, match=message):
            call(mixed, SERVED, examples=mixed, **options)


def test_examples_need_patients_and_a_benchmark_of_the_protocol(mixed, tmp_path):
    unknown = write(tmp_path / "unknown", [placed(lesion_free("u"), None)])
    with pytest.raises(CarinaError, match="unknown: 1 case without a patient id"):
        show_prompt(unknown, SERVED, examples=mixed)
    trek = write(tmp_path / "trek", [placed(talk("t"), "p9")])
    with pytest.raises(CarinaError, match="trek: has no cases of the protocol percept"):
        show_prompt(mixed, SERVED, split="test", examples=trek)
    with pytest.raises(CarinaError, match="examples_split 'train': expected a benchmark"):
        show_prompt(mixed, SERVED, examples_split="train")
    with pytest.raises(CarinaError, match="no cases of the split 'val'"):
        show_prompt(trek, SERVED, split="val")


@pytest.mark.parametrize("model", ["builtin/oracle", "builtin/reader", "onnx:weights.onnx"])
def test_models_that_read_no_examples_refuse_them(mixed, tmp_path, model):
    with pytest.raises(CarinaError, match=f"{model}.*does not read examples; models that do: .*hf:PATH"):
        run(mixed, model, tmp_path / "run", split="test", examples=mixed)
    assert not (tmp_path / "run").exists()


def test_a_run_keeps_its_examples_when_it_is_extended(mixed, tmp_path):
    out = tmp_path / "run"
    ask = {"split": "test", "examples": mixed, "examples_split": "train"}
    with reciting():
        run(mixed, "recites:x", out, limit=1, **ask)
        before = read_info(out).prompts
        assert run(mixed, "recites:x", out, **ask).counts.cases == 2
        assert read_info(out).prompts == before
        for other, message in [
            ({"examples_per_protocol": 1}, "per_protocol 2, not 1"),
            ({"examples": None, "examples_split": None}, "with examples, not without them"),
            ({"split": "val"}, "split test, not val"),
        ]:
            with pytest.raises(CarinaError, match=message):
                run(mixed, "recites:x", out, **(ask | other))


def test_images_of_examples_are_blind_and_small_where_those_of_the_case_are(mixed, tmp_path):
    ask = {"split": "test", "examples": mixed, "examples_split": "train"}
    with reciting() as plain:
        run(mixed, "recites:x", tmp_path / "plain", **ask)
    with reciting() as blind:
        run(mixed, "recites:x", tmp_path / "blind", blind=True, max_side=16, **ask)
    assert {(int(image[0, 0]), image.shape) for images in plain.values() for image in images} == {
        (200, (32, 32))
    }
    assert {(int(image[0, 0]), image.shape) for images in blind.values() for image in images} == {
        (128, (16, 16))
    }


def test_an_example_with_the_id_of_a_case_has_its_own_images(tmp_path):
    bench = write(tmp_path / "one", [placed(lesion_free("same"), "p1")])
    other = write(tmp_path / "two", [placed(lesion_free("same"), "p2")])
    Pil.fromarray(np.full((SIZE, SIZE), 50, np.uint8)).save(other / "same.png")
    with reciting() as seen:
        run(bench, "recites:x", tmp_path / "run", examples=other, examples_per_protocol=1)
    assert {int(image[0, 0]) for image in seen["example:same"]} == {50}


def test_an_estimate_counts_examples_in_every_call(mixed, tmp_path):
    (tmp_path / "prices.yaml").write_text(PRICES)
    ask = {"split": "test", "prices": tmp_path / "prices.yaml"}
    without = estimate(mixed, SERVED, **ask)
    found = estimate(mixed, SERVED, examples=mixed, examples_split="train", **ask)
    # d has one image and e three, each of 32 x 32 pixels: 4 x 4 patches. Two cases of one question.
    assert found.example_images == {"percept": 4}
    assert (found.calls, without.image_sends, found.image_sends) == (2, 2, 2 + 2 * 4)
    assert found.image_tokens == without.image_tokens + 2 * 4 * 16
    assert found.text_tokens > without.text_tokens
    assert ("images of examples, percept", "4 in every call") in found.rows()
    assert without.example_images == {}
    # A system prompt of 4,000 characters takes 1,000 tokens in each of two calls.
    none = estimate(mixed, SERVED, system_prompt="", **ask)
    assert estimate(mixed, SERVED, system_prompt="a" * 4000, **ask).text_tokens == none.text_tokens + 2000


# ---- a model that reads examples ------------------------------------------------------------------------------------


@contextmanager
def reciting():
    """A kind of model that says the last answer of the examples; gives the images of the examples by name."""
    seen = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MODELS, "_entries", dict(MODELS.entries()))
        # Opened models are kept for the next call, which has another test's images.
        patch.setattr("carina.runs.shards._open_once", lambda *_: _Reciter(seen))

        @model_kind("recites", capabilities=["chat"], form="recites:ANY", takes_examples=True)
        def open_reciter(_name, _options):
            """Says the last answer of the examples."""

        yield seen


class _Reciter:
    name = "recites"
    batch = 4

    def __init__(self, seen):
        self._seen = seen

    def answer(self, turns, images):
        for turn in turns:
            for one in turn.examples:
                pngs = [images(one.case, view) for message in one.messages for view in message.shows]
                self._seen[one.case] = [_decode(png) for png in pngs]
        return [Reply(text=turn.examples[-1].messages[-1].text, stop="stop") for turn in turns]


def _decode(png):
    with Pil.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("L"))

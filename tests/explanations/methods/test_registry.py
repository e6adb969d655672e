"""Names, needs, options and costs; and what holds of every method alike."""

import dataclasses
import subprocess
import sys
from collections import Counter

import msgspec
import numpy as np
import pytest

from carina.explanations.methods import METHODS, Cost
from carina.store.errors import CarinaError

KINDS = ("class", "mean", "attention", "resnet", "resnet3")
QUICK = {"rise": {"masks": 30}, "gscorecam": {"channels": 5}}
IN_ANY = {"similarity", "word-attention", "grad-cam", "gscorecam", "rise", "occlusion"}
SERVES = {
    kind: IN_ANY if kind.startswith("resnet") else set(METHODS.names()) - {"cross-attention"}
    for kind in KINDS
}
COMBINED = [(kind, name) for kind in KINDS for name in METHODS if name in SERVES[kind]]
POOLED = "its score is not computed from the token that its image tower pools"


def quick(name):
    return METHODS[name].options(**QUICK.get(name, {}))


def test_importing_the_registry_imports_no_torch():
    code = (
        "import sys\n"
        "from carina.explanations.methods import METHODS\n"
        "import carina.explanations.sanity, carina.explanations.faithfulness\n"
        "print('torch' in sys.modules)\n"
        "print(METHODS['gem'].parse_options({'depth': '3'}).depth, 'carina.explanations.methods.rise' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "3", "False"]


def test_every_method_has_frozen_options_that_survive_json():
    assert len(METHODS.names()) == 12
    for name, method in METHODS.entries().items():
        assert method.name == name
        assert dataclasses.is_dataclass(method.options)
        with pytest.raises(dataclasses.FrozenInstanceError):
            method.options().contrast = "none"
        # As a run writes them, and reads them again.
        written = msgspec.json.encode(method.options())
        assert msgspec.json.decode(written, type=method.options) == method.options()


def test_options_are_parsed_from_text():
    options = METHODS["rise"].parse_options({"masks": "20", "share": "0.25", "centred": "true"}, seed=5)
    assert (options.masks, options.share, options.centred, options.seed) == (20, 0.25, True, 5)
    assert METHODS["rise"].parse_options({"seed": 1}, seed=5).seed == 1
    assert METHODS["gem"].parse_options({"temperature": "null"}).temperature is None


@pytest.mark.parametrize(
    ("name", "given", "complaint"),
    [
        (
            "gem",
            {"dept": 3},
            r"method gem: unknown option 'dept'.*contrast, depth, iterations, temperature",
        ),
        ("gem", {"depth": "much"}, r"method gem, options: .*int.* at `\$\.depth`"),
        ("gem", {"depth": 1}, "option depth: expected at least 2, found 1"),
        (
            "similarity",
            {"contrast": "probability"},
            r"method similarity, options: Invalid enum value 'probability'",
        ),
        ("similarity", {"sigma": -1}, "option sigma: expected at least 0, found -1"),
        ("similarity", {"sigma": float("nan")}, "option sigma: expected at least 0, found nan"),
        ("rise", {"share": 1}, "option share: expected a share between 0 and 1, found 1"),
        ("occlusion", {"stride": 2}, "option stride: expected at most the window, 1 cells, found 2"),
    ],
)
def test_wrong_options_are_named(name, given, complaint):
    with pytest.raises(CarinaError, match=complaint):
        METHODS[name].parse_options(given)


@pytest.mark.parametrize("kind", KINDS)
def test_methods_find_what_a_model_lacks(tiny, kind):
    model = tiny.random_model(kind, dtype=tiny.torch.float32)
    reasons = {name: method.find_missing_need(model) for name, method in METHODS.entries().items()}
    assert {name for name, reason in reasons.items() if reason is None} == SERVES[kind]
    assert reasons["cross-attention"] == "it has no decoder that attends from the text to the patches"
    if kind == "resnet":
        assert reasons["gem"] == "its image tower is not a vision transformer"


def test_each_missing_need_has_a_reason(tiny):
    model = tiny.random_model("class", dtype=tiny.torch.float32)
    decoding = model.but(decodes=True)
    assert METHODS["cross-attention"].find_missing_need(decoding) is None
    assert METHODS["relevance"].find_missing_need(decoding) == POOLED
    other = model.but(image=lambda pixels: tiny.Images(model.image(pixels).pooled * 2, None))
    assert METHODS["legrad"].find_missing_need(other) == POOLED
    assert (
        METHODS["similarity"].find_missing_need(other) == "it does not embed image patches in the joint space"
    )
    assert (
        METHODS["grad-cam"].find_missing_need(other.but(tower=None))
        == "the layers of its image tower cannot be read"
    )
    wordless = model.but(worded=False)
    assert (
        METHODS["word-attention"].find_missing_need(wordless)
        == "it does not embed single words in the joint space"
    )
    assert METHODS["occlusion"].find_missing_need(tiny.reading(1, 1)) is None


@pytest.mark.parametrize(("kind", "name"), COMBINED)
def test_the_map_of_an_image_does_not_depend_on_its_batch(tiny, kind, name):
    torch = tiny.torch
    model = tiny.random_model(kind, dtype=torch.float32)
    pixels, method = tiny.pictures(model, 3), METHODS[name]
    combine_prompts = method.maps(model, pixels, tiny.PAIR, quick(name))
    assert combine_prompts.dtype == torch.float32
    assert combine_prompts.shape == (3, *model.grid)
    assert not combine_prompts.requires_grad
    assert torch.isfinite(combine_prompts).all()
    alone = torch.cat([method.maps(model, one[None], tiny.PAIR, quick(name)) for one in pixels])
    np.testing.assert_allclose(
        combine_prompts, alone, rtol=0, atol=1e-6 * max(1.0, combine_prompts.abs().max())
    )
    again = method.maps(model, pixels, tiny.PAIR, quick(name))
    assert torch.equal(combine_prompts, again)
    with torch.inference_mode():
        asked_there = tiny.pictures(model, 3)
        assert asked_there.is_inference()
        assert torch.equal(method.maps(model, asked_there, tiny.PAIR, quick(name)), combine_prompts)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_leaves_the_model_and_torch_unchanged(tiny, name):
    """Neither hooks nor slopes nor another number of threads."""
    torch = tiny.torch
    model = tiny.random_model("class", decodes=True)
    pixels = tiny.pictures(model)
    before = model.encode_image(pixels)
    torch.set_num_threads(2)
    METHODS[name].maps(model, pixels, tiny.PAIR, quick(name))
    assert torch.get_num_threads() == 2
    assert torch.equal(model.encode_image(pixels).pooled, before.pooled)
    assert all(not module._forward_hooks for module in model.tower.modules())
    assert all(weights.grad is None and not weights.requires_grad for weights in model.tower.parameters())


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("similarity", {}, Cost(1)),
        ("grad-cam", {}, Cost(1, 1)),
        ("legrad", {"layers": 3}, Cost(1, 3)),
        ("gscorecam", {"channels": 5}, Cost(6, 1)),
        ("rise", {"masks": 30}, Cost(30)),
        ("occlusion", {}, Cost(10)),
        ("occlusion", {"window": 2}, Cost(5)),
        ("occlusion", {"window": 2, "stride": 2}, Cost(5)),
    ],
)
def test_declared_costs_equal_counted_passes(tiny, name, options, expected):
    counted = Counter()
    model = tiny.random_model("class")
    embed = model.tower.embed

    def counting(pixels):
        counted["forwards"] += len(pixels)
        return embed(pixels)

    model.tower.embed = counting
    method = METHODS[name]
    assert method.cost(method.options(**options), model.grid) == expected
    method.maps(model, tiny.pictures(model, 1), tiny.PAIR, method.options(**options))
    assert counted["forwards"] == expected.forwards

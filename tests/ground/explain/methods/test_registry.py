"""Names, needs, options and costs; and what holds of every method alike."""

import dataclasses
import subprocess
import sys
from collections import Counter

import msgspec
import numpy as np
import pytest

from carina.errors import CarinaError
from carina.ground.explain.methods import METHODS, Cost

KINDS = ("class", "mean", "attention", "resnet", "resnet3")
QUICK = {"rise": {"masks": 30}, "gscorecam": {"channels": 5}}
IN_ANY = {"similarity", "word-attention", "grad-cam", "gscorecam", "rise", "occlusion"}
SERVES = {kind: IN_ANY if kind.startswith("resnet") else set(METHODS) - {"cross-attention"} for kind in KINDS}
COMBINED = [(kind, name) for kind in KINDS for name in METHODS if name in SERVES[kind]]


def quick(name):
    return METHODS[name].options(**QUICK.get(name, {}))


def test_names_and_options_need_no_torch():
    code = (
        "import sys\n"
        "from carina.ground.explain.methods import METHODS\n"
        "import carina.ground.explain.sanity, carina.ground.explain.faithfulness\n"
        "print(len(METHODS), METHODS['gem'].configured({'depth': '3'}).depth, 'torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["12", "3", "False"]


def test_every_method_tells_what_it_is():
    assert list(METHODS) == [method.name for method in METHODS.values()]
    for method in METHODS.values():
        assert dataclasses.is_dataclass(method.options)
        with pytest.raises(dataclasses.FrozenInstanceError):
            method.options().contrast = "none"
        # As a run writes them, and reads them again.
        written = msgspec.json.encode(method.options())
        assert msgspec.json.decode(written, type=method.options) == method.options()


def test_options_from_text():
    options = METHODS["rise"].configured({"masks": "20", "share": "0.25", "centred": "true"}, seed=5)
    assert (options.masks, options.share, options.centred, options.seed) == (20, 0.25, True, 5)
    assert METHODS["rise"].configured({"seed": 1}, seed=5).seed == 1
    assert METHODS["gem"].configured({"temperature": "null"}).temperature is None


@pytest.mark.parametrize(
    ("name", "given", "complaint"),
    [
        (
            "gem",
            {"dept": 3},
            r"method gem: no option 'dept'; known are contrast, depth, iterations, temperature",
        ),
        ("gem", {"depth": "much"}, r"method gem, options: .*int.* at `\$\.depth`"),
        ("gem", {"depth": 1}, "option depth: expected at least 2, not 1"),
        (
            "similarity",
            {"contrast": "probability"},
            r"method similarity, options: Invalid enum value 'probability'",
        ),
        ("similarity", {"sigma": -1}, "option sigma: expected at least 0, not -1"),
        ("similarity", {"sigma": float("nan")}, "option sigma: expected at least 0, not nan"),
        ("rise", {"share": 1}, "option share: expected a share between 0 and 1, not 1"),
        ("occlusion", {"stride": 2}, "option stride: windows of 1 cells that are 2 apart leave cells out"),
    ],
)
def test_wrong_options_are_named(name, given, complaint):
    with pytest.raises(CarinaError, match=complaint):
        METHODS[name].configured(given)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_tells_what_serves_it(tiny, kind):
    model = tiny.random_model(kind, dtype=tiny.torch.float32)
    reasons = {name: method.available(model) for name, method in METHODS.items()}
    assert {name for name, reason in reasons.items() if reason is None} == SERVES[kind]
    assert reasons["cross-attention"] == "it has no decoder that attends from texts to patches"
    if kind == "resnet":
        assert reasons["gem"] == "its image tower is not a vision transformer"


def test_what_a_model_lacks_is_told(tiny):
    model = tiny.random_model("class", dtype=tiny.torch.float32)
    decoding = model.but(decodes=True)
    assert METHODS["cross-attention"].available(decoding) is None
    assert METHODS["relevance"].available(decoding) == "what it scores is not what its image tower pools"
    other = model.but(image=lambda pixels: tiny.Images(model.image(pixels).pooled * 2, None))
    assert METHODS["legrad"].available(other) == "what it scores is not what its image tower pools"
    assert METHODS["similarity"].available(other) == "it has no patches in the space of its texts"
    assert (
        METHODS["grad-cam"].available(other.but(tower=None))
        == "it does not show the inside of its image tower"
    )
    wordless = model.but(worded=False)
    assert METHODS["word-attention"].available(wordless) == "it has no words in the space of its pictures"
    assert METHODS["occlusion"].available(tiny.reading(1, 1)) is None


@pytest.mark.parametrize(("kind", "name"), COMBINED)
def test_a_picture_has_its_map_whatever_it_is_asked_with(tiny, kind, name):
    torch = tiny.torch
    model = tiny.random_model(kind, dtype=torch.float32)
    pixels, method = tiny.pictures(model, 3), METHODS[name]
    together = method.maps(model, pixels, tiny.PAIR, quick(name))
    assert together.dtype == torch.float32
    assert together.shape == (3, *model.grid)
    assert not together.requires_grad
    assert torch.isfinite(together).all()
    alone = torch.cat([method.maps(model, one[None], tiny.PAIR, quick(name)) for one in pixels])
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-6 * max(1.0, together.abs().max()))
    again = method.maps(model, pixels, tiny.PAIR, quick(name))
    assert torch.equal(together, again)
    with torch.inference_mode():
        asked_there = tiny.pictures(model, 3)
        assert asked_there.is_inference()
        assert torch.equal(method.maps(model, asked_there, tiny.PAIR, quick(name)), together)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_leaves_nothing_behind(tiny, name):
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
def test_costs_are_what_a_map_costs(tiny, name, options, expected):
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

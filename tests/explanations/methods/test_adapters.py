"""Every adapter with every method that serves it, on tiny weights under their published names."""

import numpy as np
import pytest

from carina.explanations.methods import METHODS

ANY = {"rise", "occlusion"}
INSIDE = ANY | {"grad-cam", "gscorecam"}
PATCHES = {"similarity", "word-attention"}
VIT = INSIDE | PATCHES | {"maskclip", "gem", "legrad", "relevance", "rollout"}
SERVES = {
    "clip": VIT,
    "siglip": VIT,
    "openai": VIT,
    "open_clip": VIT,
    "biomedclip": VIT,
    "chexzero": VIT,
    "chexzero-320": VIT,
    "medclip-resnet": INSIDE | PATCHES,
    # Its Swin transformer is not one of our towers.
    "medclip-swin": ANY | PATCHES,
    "biovil": INSIDE | PATCHES,
    "biovil-t": INSIDE | PATCHES,
    "gloria": INSIDE | PATCHES,
    "afloc": INSIDE | PATCHES,
    # Only their decoders bring patches and texts together.
    "medklip": INSIDE | {"cross-attention"},
    "mavl": INSIDE | {"cross-attention"},
    "carzero": INSIDE | {"cross-attention"},
    "kad": INSIDE | {"cross-attention", "similarity"},
    "kad-224": INSIDE | {"cross-attention", "similarity"},
}
QUICK = {
    "rise": {"masks": 2},
    "gscorecam": {"channels": 2},
    "occlusion": {"window": 8, "stride": 8},
}


def test_every_kind_is_in_the_table(weights):
    assert set(weights.MAKERS) == set(SERVES)


@pytest.mark.parametrize("kind", SERVES)
def test_each_method_makes_a_finite_map_of_the_models_grid(tiny, weights, kind, tmp_path):
    from carina.models.clip.kinds import open_clip_model

    model = open_clip_model(f"{weights.NAMES[kind]}:{weights.save(kind, tmp_path / kind)}")
    image = np.random.default_rng(0).integers(0, 256, (90, 70), dtype=np.uint8)
    pixels = tiny.torch.from_numpy(model.prepare(image))[None]
    prompts = model.prompts("pneumonia")
    serving = set()
    for name, method in METHODS.entries().items():
        if method.find_missing_need(model) is not None:
            continue
        serving.add(name)
        made = method.maps(model, pixels, prompts, method.options(**QUICK.get(name, {})))
        assert made.shape[0] == 1
        # Features of the last stage may be coarser than the patches that the model shows.
        assert made.shape[1:] == model.grid or (kind in {"gloria", "afloc"} and made.shape[1:] == (10, 10))
        assert tiny.torch.isfinite(made).all()
    assert serving == SERVES[kind]
    assert model.native in serving

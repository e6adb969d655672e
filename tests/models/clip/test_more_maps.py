"""Weights that read brightness must point at a bright square: patches against texts, and queries of decoders."""

import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
pytest.importorskip("transformers", reason="the extra torch is not installed")

from safetensors.torch import load_file  # noqa: E402

from carina.models.clip.kinds import open_clip_model  # noqa: E402

SHAPES = ((1.37, 1.19), (1.1, 1.9))
"""Heights and widths of images, by the model's own side: larger, so that whole pixels are fine enough."""
LATE = ("biovil", "biovil-t", "gloria", "afloc")
DECODERS = ("medklip", "mavl", "kad", "kad-224", "carzero")
MOST = 6
"""Squares that are tried."""
RESNETS = {
    # Prefix of the network, and what its first convolution is called.
    "biovil": ("encoder.encoder.", "conv1"), "biovil-t": ("encoder.encoder.", "conv1"),
    "gloria": ("gloria.img_encoder.model.", "conv1"), "afloc": ("afloc.img_encoder.model.", "conv1"),
    "medklip": ("res_features.", "0"), "mavl": ("backbone.", "0"), "kad": ("image_encoder.res_features.", "0"),
    "kad-224": ("image_encoder.res_features.", "0"),
}  # fmt: skip


def blank(state):
    """Nothing but norms that pass on what they get."""
    for key, value in state.items():
        if value.dtype.is_floating_point:
            value.fill_(float(key.endswith("weight") and value.dim() == 1))
        if key.endswith("running_var"):
            value.fill_(1.0)


def brightness(state, prefix, first):
    """The first channel is how bright it is; dark is cut off by the first rectifier, and blocks add nothing."""
    state[f"{prefix}{first}.weight"][0] = 1 / 147
    for key, value in state.items():
        if key.startswith(prefix) and key.endswith("downsample.0.weight"):
            value[0, 0] = 1
        if key.startswith(prefix) and key.endswith("bn3.weight"):
            value.fill_(0.0)


def attends(state, prefix, gain=20.0):
    """Every head of every layer looks for what the first axis of the memory holds, whatever is asked."""
    for key, value in state.items():
        if key.startswith(prefix) and key.endswith("multihead_attn.in_proj_weight"):
            width = value.shape[1]
            starts = range(0, width, width // 4)
            for start in starts:
                value[width + start, 0] = gain
                state[key.replace("weight", "bias")][start] = 1.0


def both(state, name):
    """Brightness up along the first axis, down along the second; others keep norms from hiding how much."""
    matrix = state[f"{name}.weight"]
    matrix[0, 0], matrix[1, 0] = 1, -1
    state[f"{name}.bias"][2], state[f"{name}.bias"][3] = 1, -1


def asks(state, norm):
    """Every text comes out as the one direction."""
    state[f"{norm}.weight"].fill_(0.0)
    state[f"{norm}.bias"].zero_()
    state[f"{norm}.bias"][0], state[f"{norm}.bias"][1] = 1, -1


def _biovil(state):
    state["projector.model.0.weight"][0, 0] = state["projector.model.3.weight"][0, 0] = 1
    if "encoder.backbone_to_vit.weight" in state:
        state["encoder.backbone_to_vit.weight"][0, 0] = 1


def _late(state, kind):
    state[f"{kind}.img_encoder.local_embedder.weight"][0, 0] = 1
    asks(state, f"{kind}.text_encoder.model.encoder.layer.4.output.LayerNorm")


def _medklip(state):
    state["res_l1.weight"][0, 0] = 1
    both(state, "res_l2")
    attends(state, "decoder.")


def _mavl(state):
    state["res_l1.0.weight"][0, 0] = 1
    both(state, "res_l2")
    attends(state, "decoder.")


def _kad(state):
    state["image_encoder.res_l1.weight"][0, 0] = 1
    both(state, "image_encoder.res_l2")
    attends(state, "model.decoder.")


def _carzero(state):
    patches = state["CARZero.img_encoder.model.patch_embed.proj.weight"]
    patches[0], patches[1] = 1, -1
    attends(state, "CARZero.fusion_module.decoder.")


def reading(kind, state):
    state = {key: value.clone() for key, value in state.items()}
    blank(state)
    if kind in RESNETS:
        brightness(state, *RESNETS[kind])
    path = {"medklip": _medklip, "mavl": _mavl, "carzero": _carzero}.get(kind)
    if kind.startswith("biovil"):
        _biovil(state)
    elif kind.startswith("kad"):
        _kad(state)
    elif path is not None:
        path(state)
    else:
        _late(state, kind)
    return state


@pytest.fixture(scope="module")
def bright(tiny_clip, published, tmp_path_factory):
    """A model of a kind that looks for brightness."""
    there = {}

    def of(kind):
        if kind not in there:
            path = shutil.copytree(published(kind), tmp_path_factory.mktemp("bright") / kind)
            tiny_clip.put(path, reading(kind, load_file(path / "model.safetensors")))
            if kind.startswith("biovil"):
                text = load_file(path / "text.safetensors")
                text = {key: value.clone() for key, value in text.items()}
                blank(text)
                text["cls_projection_head.dense_to_output.bias"][0] = 1
                tiny_clip.put(path, text, "text.safetensors")
            there[kind] = open_clip_model(f"{tiny_clip.NAMES[kind]}:{path}")
        return there[kind]

    return of


def size_of(model, shape):
    return tuple(int(model.side * part) for part in shape)


def squares(model, size, *, noisy=False):
    """Some cells of the map that lie wholly on the image, each with an image that is bright there alone.

    Elsewhere it is black, or of all values where they are equalised, which would make black bright.
    """
    elsewhere = np.random.default_rng(0).integers(0, 200, size) if noisy else 0
    frame, (rows, columns) = model.frame(*size), model.grid
    cells = np.argwhere(frame.cover(np.ones(size, bool), rows) > 1 - 1e-6)
    y, x = np.mgrid[: size[0], : size[1]] + 0.5
    laid = frame.to_input(np.stack([x, y], axis=-1)) * (columns / frame.side, rows / frame.side)
    for row, column in cells[:: max(1, len(cells) // MOST)]:
        inside = (np.floor(laid[..., 0]) == column) & (np.floor(laid[..., 1]) == row)
        yield (row, column), np.where(inside, 255, elsewhere).astype(np.uint8)


def maps_of(model, kind, pixels):
    with torch.no_grad():
        if kind in DECODERS:
            return model.cross_attention(
                pixels, ["pneumonia" if kind != "carzero" else "there is mass"]
            ).weights.mean((1, 2, 3))
        return model.encode_image(pixels).patches @ model.encode_text(["there is mass"]).pooled[0]


@pytest.mark.parametrize("kind", [*LATE, *DECODERS])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_bright_square_moved_in_the_image_moves_the_peak(bright, kind, shape):
    model = bright(kind)
    size = size_of(model, shape)
    cells, images = zip(*squares(model, size, noisy=kind == "medklip"), strict=True)
    assert len(cells) >= 5
    assert len({row for row, _ in cells}) > 2
    maps = maps_of(
        model, kind, torch.from_numpy(np.stack([model.prepare(image) for image in images]))
    ).numpy()
    frame = model.frame(*size)
    for cell, image, grid in zip(cells, images, maps, strict=True):
        assert np.unravel_index(grid.argmax(), grid.shape) == tuple(cell)
        assert (grid == grid.max()).sum() == 1
        # And on the image the peak lies on the square, of which rounding to whole pixels takes a rim.
        laid = frame.to_image(grid, "nearest")
        assert image[(laid == laid.max()) & frame.seen()].mean() > 255 * 0.9


def test_the_native_method_of_afloc_points_at_the_square_too(bright):
    from carina.explanations.methods._method import METHODS
    from carina.models.clip.kinds import native_options

    model = bright("afloc")
    method = METHODS[model.native]
    options = method.parse_options(native_options("afloc:x"))
    (cell, image), *_ = list(squares(model, size_of(model, SHAPES[0])))[3:]
    pixels = torch.from_numpy(model.prepare(image))[None]
    (grid,) = method.maps(model, pixels, model.prompts("pneumonia"), options).numpy()
    assert np.unravel_index(grid.argmax(), grid.shape) == tuple(cell)
    # Not a cosine: twice as bright is twice as high.
    (twice,) = method.maps(model, 2 * pixels + 1, model.prompts("pneumonia"), options).numpy()
    assert twice.max() > 1.5 * grid.max()


def test_the_native_method_of_gloria_is_its_attention(opened):
    from carina.explanations.methods._method import METHODS

    model = opened("gloria")
    image = np.random.default_rng(5).integers(0, 256, (130, 100), dtype=np.uint8)
    pixels, prompts = torch.from_numpy(model.prepare(image))[None], model.prompts("mass")
    (grid,) = METHODS[model.native].maps(model, pixels, prompts).numpy()
    patches = model.encode_image(pixels).patches.detach().double().numpy().reshape(361, 128)
    words = model.encode_text(prompts.positive).words[0].detach().double().numpy()
    # Between the special tokens: "a chest x ray showing mass".
    products = patches @ words[1:7].T
    shares = np.exp(products - products.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    seen = np.exp(4 * shares) / np.exp(4 * shares).sum(0)
    np.testing.assert_allclose(grid, seen.mean(1).reshape(19, 19), rtol=1e-3)


@pytest.mark.parametrize("kind", DECODERS)
def test_the_native_method_of_a_decoder_is_made_of_its_attention(bright, kind):
    from carina.explanations.methods._method import METHODS
    from carina.models.clip.kinds import native_options

    model = bright(kind)
    method = METHODS[model.native]
    assert method.find_missing_need(model) is None
    (cell, image), *_ = list(squares(model, size_of(model, SHAPES[0]), noisy=kind == "medklip"))[3:]
    pixels = torch.from_numpy(model.prepare(image))[None]
    options = method.parse_options(native_options(f"{kind.partition('-')[0]}:x"))
    prompts = model.prompts("pneumonia")
    (grid,) = method.maps(model, pixels, prompts, options).numpy()
    weights = model.cross_attention(pixels, prompts.positive).weights[0, 0].detach()
    chosen = weights[-1:] if kind.startswith("kad") else weights
    np.testing.assert_allclose(grid, chosen.mean((0, 1)).numpy(), rtol=1e-5)
    assert np.unravel_index(grid.argmax(), grid.shape) == tuple(cell)

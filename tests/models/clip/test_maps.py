"""Where a map peaks: weights that read brightness must point at a bright square, wherever it lies in the image."""

import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
pytest.importorskip("transformers", reason="the extra torch is not installed")

from safetensors.torch import load_file  # noqa: E402

from carina.models.clip.kinds import open_clip_model  # noqa: E402

SIZES = ((201, 177), (177, 201), (310, 155))
KINDS = ("clip", "siglip", "openai", "open_clip", "biomedclip", "chexzero", "medclip-resnet", "medclip-swin")


def towards_first(width):
    """A vector that a norm keeps: up along the first axis, down along the second."""
    made = torch.zeros(width)
    made[0], made[1] = 1, -1
    return made


def reading(kind, state):
    """Weights that do nothing but say how bright a patch is, and texts that ask for bright."""
    state = {key: value.clone() for key, value in state.items()}
    for key, value in state.items():
        if value.dtype.is_floating_point and key != "logit_scale":
            # Norms pass on what they get; everything else is nothing, but for what is set below.
            passes = key.endswith("weight") and value.dim() == 1
            value.fill_(float(passes))
        if key.endswith("running_var"):
            value.fill_(1.0)
    PATHS[kind.partition("-")[0] if kind != "medclip-swin" else kind](state)
    return state


def patches_read(state, embedding, *, projection, transposed=False):
    """The patch embedding writes brightness into two axes, the projection takes them on."""
    width = state[embedding].shape[0]
    state[embedding][:] = towards_first(width)[:, None, None, None].expand_as(state[embedding])
    for name in projection:
        matrix = state[name].T if transposed else state[name]
        matrix[0, 0] = matrix[1, 1] = 1


def _clip(state):
    patches_read(
        state, "vision_model.embeddings.patch_embedding.weight",
        projection=["visual_projection.weight", "text_projection.weight"],
    )  # fmt: skip
    asks(state, "text_model.final_layer_norm")


def _siglip(state):
    values = "vision_model.head.attention.in_proj_weight"
    patches_read(
        state, "vision_model.embeddings.patch_embedding.weight",
        projection=["vision_model.head.attention.out_proj.weight", "text_model.head.weight"],
    )  # fmt: skip
    width = state[values].shape[1]
    state[values][2 * width, 0] = state[values][2 * width + 1, 1] = 1
    asks(state, "text_model.final_layer_norm")


def _openai(state):
    patches_read(state, "visual.conv1.weight", projection=["visual.proj", "text_projection"], transposed=True)
    asks(state, "ln_final")


def _biomedclip(state):
    patches_read(
        state, "visual.trunk.patch_embed.proj.weight",
        projection=["visual.head.proj.weight", "text.proj.0.weight", "text.proj.2.weight"],
    )  # fmt: skip
    asks(state, "text.transformer.encoder.layer.1.output.LayerNorm")


def _medclip(state):
    """Dark is cut off by the first rectifier; blocks hand on what their shortcut brings."""
    state["vision_model.model.conv1.weight"][0] = 1 / 147
    for key, value in state.items():
        if key.endswith("downsample.0.weight"):
            value[0, 0] = 1
        # What a block adds to its shortcut is nothing.
        if key.endswith("bn3.weight"):
            value.fill_(0.0)
    for name in ("vision_model.model.fc.weight", "text_model.projection_head.weight"):
        state[name][0, 0] = 1
    asks(state, "text_model.model.encoder.layer.1.output.LayerNorm")


def _medclip_swin(state):
    patches_read(
        state, "vision_model.model.embeddings.patch_embeddings.projection.weight",
        projection=["vision_model.projection_head.weight", "text_model.projection_head.weight"],
    )  # fmt: skip
    merge = state["vision_model.model.encoder.layers.0.downsample.reduction.weight"]
    for quarter in range(4):
        merge[0, quarter * 8] = merge[1, quarter * 8 + 1] = 1
    asks(state, "text_model.model.encoder.layer.1.output.LayerNorm")


def asks(state, norm):
    """Every text comes out as the one direction."""
    state[f"{norm}.weight"].fill_(0.0)
    state[f"{norm}.bias"].copy_(towards_first(len(state[f"{norm}.bias"])))


PATHS = {
    "clip": _clip, "siglip": _siglip, "openai": _openai, "open_clip": _openai, "chexzero": _openai,
    "biomedclip": _biomedclip, "medclip": _medclip, "medclip-swin": _medclip_swin,
}  # fmt: skip


@pytest.fixture(scope="module")
def bright(tiny_clip, published, tmp_path_factory):
    """A model of a kind that looks for brightness."""
    there = {}

    def of(kind):
        if kind not in there:
            path = shutil.copytree(published(kind), tmp_path_factory.mktemp("bright") / kind)
            file = next(path.glob("*.safetensors"))
            tiny_clip.put(path, reading(kind, load_file(file)), file.name)
            there[kind] = open_clip_model(f"{tiny_clip.NAMES[kind]}:{path}")
        return there[kind]

    return of


def squares(model, size):
    """An image for every cell of the map that lies wholly on it: bright there and black elsewhere."""
    frame, (rows, columns) = model.frame(*size), model.grid
    seen = frame.cover(np.ones(size, bool), rows) > 1 - 1e-6
    y, x = np.mgrid[: size[0], : size[1]] + 0.5
    laid = frame.to_input(np.stack([x, y], axis=-1)) * (columns / frame.side, rows / frame.side)
    for row, column in np.argwhere(seen):
        inside = (np.floor(laid[..., 0]) == column) & (np.floor(laid[..., 1]) == row)
        yield (row, column), np.where(inside, 255, 0).astype(np.uint8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_a_bright_square_moved_in_the_image_moves_the_peak(bright, kind, size):
    model = bright(kind)
    cells, images = zip(*squares(model, size), strict=True)
    assert len(cells) >= 6
    pixels = torch.from_numpy(np.stack([model.prepare(image) for image in images]))
    patches, text = model.encode_image(pixels).patches, model.encode_text(["bright"]).pooled[0]
    maps = (patches @ text).detach().numpy()
    frame = model.frame(*size)
    for cell, image, grid in zip(cells, images, maps, strict=True):
        assert np.unravel_index(grid.argmax(), grid.shape) == tuple(cell)
        # And on the image the peak lies on the square, of which rounding to whole pixels takes a rim.
        laid = frame.to_image(grid, "nearest")
        assert image[(laid == laid.max()) & frame.seen()].mean() > 255 * 0.9

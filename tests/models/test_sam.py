"""The SAM family on tiny random weights: loading, geometry, prompts, determinism."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from carina import models
from carina.models import Box, Point, Prompts
from carina.models.sam import CLASSES, Preparation, SamSegmenter
from carina.store.errors import CarinaError

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
transformers = pytest.importorskip("transformers", reason="the extra torch is not installed")

KINDS = ("sam", "sam_hq", "sam2", "sam2_video", "sam3_tracker", "sam3_video")
SIZES = ((64, 64), (101, 77), (77, 101), (33, 130), (200, 64))


def noise(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width), dtype=np.uint8)


@pytest.fixture(scope="session")
def opened(weights):
    """The segmenter of a kind, opened once."""
    there = {}

    def of(kind):
        if kind not in there:
            there[kind] = models.open(f"sam:{weights(kind)}", needs="segments")
        return there[kind]

    return of


@pytest.fixture
def copied(weights, tmp_path):
    """A folder of weights to spoil."""

    def of(kind):
        return shutil.copytree(weights(kind), tmp_path / "weights")

    return of


# ---- loading ----


@pytest.mark.parametrize("kind", KINDS)
def test_every_generation_opens_and_answers(opened, kind):
    segmenter = opened(kind)
    assert segmenter.name == f"sam:tiny-{kind}"
    assert len(segmenter.weights) == 64
    image = noise(101, 77)
    pointed = segmenter.propose(image, Prompts(box=Box(5, 6, 50, 60), points=(Point(20.5, 30.5, True),)))
    assert len(pointed) == 3
    assert [p.score for p in pointed] == sorted((p.score for p in pointed), reverse=True)
    refined = segmenter.propose(image, Prompts(points=(Point(3, 4, False),), mask=image > 128))
    assert len(refined) == 1
    for proposal in (*pointed, *refined):
        assert proposal.logits.shape == (101, 77)
        assert proposal.logits.dtype == np.float32
        np.testing.assert_array_equal(proposal.region.to_mask(), proposal.logits > 0)


def test_every_class_exists_in_transformers():
    assert all(hasattr(transformers, name) for name in CLASSES.values())


def test_a_missing_weight_is_refused(copied):
    from safetensors.torch import load_file, save_file

    path = copied("sam")
    tensors = load_file(path / "model.safetensors")
    del tensors["mask_decoder.iou_token.weight"]
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        CarinaError, match=r"1 weights of SamModel are missing .*mask_decoder\.iou_token\.weight"
    ):
        models.open(f"sam:{path}", needs="segments")


def test_a_weight_of_another_shape_is_an_error(copied):
    path = copied("sam")
    config = json.loads((path / "config.json").read_text())
    config["mask_decoder_config"]["mlp_dim"] = 48
    (path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CarinaError, match="weights: "):
        models.open(f"sam:{path}", needs="segments")


def test_damaged_weights_are_an_error(copied):
    path = copied("sam")
    content = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(content[: len(content) // 2])
    with pytest.raises(CarinaError, match="weights: cannot be loaded as SamModel"):
        models.open(f"sam:{path}", needs="segments")


def test_code_beside_the_weights_is_not_run(copied):
    path = copied("sam")
    config = json.loads((path / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}
    (path / "config.json").write_text(json.dumps(config))
    (path / "evil.py").write_text("raise SystemExit('run')")
    models.open(f"sam:{path}", needs="segments")


def test_preparation_that_does_not_fit_the_model_is_an_error(copied):
    path = copied("sam2")
    said = json.loads((path / "preprocessor_config.json").read_text())
    (path / "preprocessor_config.json").write_text(json.dumps(said | {"size": {"height": 32, "width": 32}}))
    with pytest.raises(CarinaError, match=r"prepared as 32 x 32, the model in config\.json takes 64 x 64"):
        models.open(f"sam:{path}", needs="segments")
    (path / "preprocessor_config.json").write_text(json.dumps({"size": {"height": 64, "width": 64}}))
    with pytest.raises(CarinaError, match="how images are prepared is not understood"):
        models.open(f"sam:{path}", needs="segments")
    (path / "preprocessor_config.json").unlink()
    with pytest.raises(CarinaError, match=r"preprocessor_config\.json: missing"):
        models.open(f"sam:{path}", needs="segments")
    (path / "processor_config.json").write_text(json.dumps({"image_processor": said}))
    models.open(f"sam:{path}", needs="segments")


# ---- geometry ----


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_an_image_is_prepared_as_transformers_prepares_it(opened, height, width):
    from transformers.models.sam.image_processing_pil_sam import SamImageProcessorPil

    reference = SamImageProcessorPil(size={"longest_edge": 64}, pad_size={"height": 64, "width": 64})
    image = noise(height, width)
    expected = reference(Image.fromarray(image).convert("RGB"), return_tensors="np")["pixel_values"][0]
    np.testing.assert_allclose(opened("sam").preparation(image), expected, atol=1e-5)


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_an_image_is_stretched_for_later_generations(opened, height, width):
    image = noise(height, width)
    resized = np.asarray(Image.fromarray(image).resize((64, 64), Image.Resampling.BILINEAR))
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    expected = (resized / 255 - mean[:, None, None]) / std[:, None, None]
    np.testing.assert_allclose(opened("sam2").preparation(image), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["sam", "sam2", "sam3_tracker"])
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_prompts_reach_the_model_where_they_are(opened, kind, height, width):
    """Relative to the content of the input, as its own encoder of places sees them."""
    segmenter = opened(kind)
    seen = []
    encoder = segmenter._model.prompt_encoder.shared_embedding
    hook = encoder.register_forward_pre_hook(lambda _module, args: seen.append(args[0].numpy().copy()))
    try:
        segmenter.propose(noise(height, width), Prompts(points=(Point(width / 4, height / 2, True),)))
        segmenter.propose(noise(height, width), Prompts(box=Box(0, height / 4, width / 2, height)))
    finally:
        hook.remove()
    frame = segmenter.preparation.frame(height, width)
    point, box = seen[0][0, 0, 0], seen[-1][0, 0, :2]
    np.testing.assert_allclose(point, [frame.columns / 4, frame.rows / 2], atol=1e-4)
    np.testing.assert_allclose(box, [[0, frame.rows / 4], [frame.columns / 2, frame.rows]], atol=1e-4)


@pytest.mark.parametrize("size", [(64, 64), (64, 48), (40, 64)])
def test_logits_come_back_as_transformers_brings_them_back(opened, size):
    """Where the image is as large as the input; elsewhere transformers interpolates twice."""
    from transformers.models.sam.image_processing_pil_sam import SamImageProcessorPil

    segmenter = opened("sam")
    image = noise(*size)
    with torch.no_grad():
        answer = segmenter._model(
            pixel_values=torch.from_numpy(segmenter.preparation(image))[None],
            input_boxes=torch.tensor([[[4.0, 5.0, 30.0, 33.0]]]) - 0.5,
        )
    reference = SamImageProcessorPil(pad_size={"height": 64, "width": 64})
    expected = reference.post_process_masks(answer.pred_masks, [size], [size], binarize=False)[0][0]
    best = int(answer.iou_scores[0, 0].argmax())
    got = segmenter.propose(image, Prompts(box=Box(4, 5, 30, 33)))[0]
    np.testing.assert_allclose(got.logits, expected[best].numpy(), atol=1e-5)


class Bump:
    """Stands for a model that marks the cell it is pointed at."""

    def __init__(self):
        self.seen = []

    def get_image_embeddings(self, pixels):
        return pixels

    def __call__(self, *, input_points, **more):
        self.seen.append(more)
        column, row = ((input_points[0, 0, 0] + 0.5) * 16 / 64).numpy()
        y, x = np.mgrid[:16, :16] + 0.5
        low = 4 - (x - column) ** 2 - (y - row) ** 2
        masks = torch.from_numpy(np.stack([low, low - 9])[None, None].astype(np.float32))
        return SimpleNamespace(pred_masks=masks, iou_scores=torch.tensor([[[0.2, 0.9]]]))


def bump(*, padded):
    preparation = Preparation(
        longest=64 if padded else None, side=64, mean=(0.5,) * 3, std=(0.2,) * 3, rescale=1 / 255,
        resample=Image.Resampling.BILINEAR,
    )  # fmt: skip
    return SamSegmenter("sam:bump", "0" * 64, preparation, 16, Bump(), torch)


@given(
    padded=st.booleans(), height=st.integers(20, 150), width=st.integers(20, 150),
    x=st.floats(0.2, 0.8), y=st.floats(0.2, 0.8),
)  # fmt: skip
def test_a_point_prompt_gives_a_mask_at_the_point(padded, height, width, x, y):
    segmenter = bump(padded=padded)
    frame = segmenter.preparation.frame(height, width)
    x, y = x * width, y * height
    worse = segmenter.propose(noise(height, width), Prompts(points=(Point(x, y, True),)))[-1]
    assert worse.region.contains(x, y)
    # A disc of two cells' radius: its centre is the point, unless the image's border cuts it off.
    wide, high = 8 * frame.width / frame.columns, 8 * frame.height / frame.rows
    if wide < x < width - wide and high < y < height - high:
        centre = worse.region.centroid
        assert centre[0] == pytest.approx(x, abs=0.5 + 0.05 * wide)
        assert centre[1] == pytest.approx(y, abs=0.5 + 0.05 * high)


def test_the_best_proposal_comes_first():
    first, second = bump(padded=True).propose(noise(64, 64), Prompts(points=(Point(32, 32, True),)))
    assert (first.score, second.score) == (pytest.approx(0.9), pytest.approx(0.2))
    assert (first.region.is_empty, second.region.is_empty) == (True, False)


def test_a_mask_prompt_has_log_odds_of_the_mask_and_is_empty_in_the_padding():
    segmenter = bump(padded=True)
    mask = np.zeros((64, 32), bool)
    mask[:32] = True
    segmenter.propose(noise(64, 32), Prompts(points=(Point(1, 1, True),), mask=mask))
    given_ = segmenter._model.seen[0]["input_masks"][0, 0].numpy()
    assert given_.shape == (16, 16)
    # ln(1e8) = 18.42, and the right half of the input is beside the image.
    np.testing.assert_allclose(given_[:8, :8], 18.42, atol=0.01)
    np.testing.assert_allclose(given_[8:], -18.42, atol=0.01)
    np.testing.assert_allclose(given_[:, 8:], -18.42, atol=0.01)


# ---- use ----


def test_the_same_question_gives_the_same_bits(weights, opened):
    image, prompts = noise(90, 70), Prompts(box=Box(10, 10, 60, 60), points=(Point(30, 30, True),))
    again = models.open(f"sam:{weights('sam2')}", needs="segments")
    threads = torch.get_num_threads()
    for one, other in zip(again.propose(image, prompts), opened("sam2").propose(image, prompts), strict=True):
        assert one.score == other.score
        np.testing.assert_array_equal(one.logits, other.logits)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("kind", ["sam", "sam_hq", "sam2"])
def test_an_image_is_embedded_once_for_all_its_prompts(weights, kind):
    segmenter = models.open(f"sam:{weights(kind)}", needs="segments")
    calls = []
    segmenter._model.vision_encoder.register_forward_hook(lambda *_: calls.append(1))
    prompts = Prompts(points=(Point(5, 5, True),))
    first = segmenter.propose(noise(64, 64), prompts)[0].logits
    segmenter.propose(noise(64, 64), Prompts(box=Box(1, 2, 30, 40)))
    assert len(calls) == 1
    segmenter.propose(noise(64, 64, seed=1), prompts)
    segmenter.propose(noise(64, 64, seed=2), prompts)
    assert len(calls) == 3
    # Forgotten by now, and made anew with the same result.
    np.testing.assert_array_equal(segmenter.propose(noise(64, 64), prompts)[0].logits, first)
    assert len(calls) == 4


def test_other_images_and_empty_prompts_are_refused(opened):
    with pytest.raises(ValueError, match="grey image"):
        opened("sam").propose(np.zeros((4, 4, 3), np.uint8), Prompts(box=Box(0, 0, 1, 1)))
    with pytest.raises(ValueError, match="mask prompt"):
        opened("sam").propose(noise(64, 64), Prompts(mask=np.ones((3, 3), bool)))
    with pytest.raises(ValueError, match="a box, a point or a mask"):
        Prompts()

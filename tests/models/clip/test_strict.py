"""Every kind of model: what is wrong with a checkpoint is told with the weight that it is wrong with."""

import json
import re
import shutil

import pytest

from carina.models.clip.kinds import KINDS, open_clip_model
from carina.store.errors import CarinaError

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
pytest.importorskip("transformers", reason="the extra torch is not installed")

from carina.models.clip.state_dict import COUNTERS, Weights, use_one_thread  # noqa: E402

MADE = (
    "clip", "siglip", "openai", "biomedclip", "chexzero", "medclip-resnet", "medclip-swin", "biovil", "biovil-t",
    "gloria", "afloc", "medklip", "mavl", "kad", "carzero",
)  # fmt: skip
REPEATED = re.compile(r"\b(layers?|blocks|resblocks|layer[1-4]|[4-7])\.\d+\.((bn|conv|norm)\d)?")
"""Blocks of transformers and stages of residual networks: of each of their weights one is tried, the last."""


class Strict:
    """A kind of model, opened from tensors in memory."""

    def __init__(self, name, monkeypatch):
        self.name, self.monkeypatch = name, monkeypatch
        self.sizes, self.unused = set(), None
        real = {way: getattr(Weights, way) for way in ("shape", "number", "close")}

        def noted(way):
            def call(weights, key, *more):
                self.sizes.add(key)
                return real[way](weights, key, *more)

            return call

        def close(weights, ignored=COUNTERS):
            self.unused, self.tensors = ignored, weights.tensors
            real["close"](weights, ignored)

        with monkeypatch.context() as patched:
            for way in ("shape", "number"):
                patched.setattr(Weights, way, noted(way))
            patched.setattr(Weights, "close", close)
            open_clip_model(name)

    def used(self):
        found = {
            REPEATED.sub(r"#.\3", key): key for key in self.tensors if not re.fullmatch(self.unused, key)
        }
        return sorted(found.values())

    def complaint(self, key, value=None):
        """Of a checkpoint with one weight replaced, or left out."""
        tensors = self.tensors | {key: value}
        if value is None:
            del tensors[key]
        with self.monkeypatch.context() as patched:
            patched.setattr(Weights, "read", lambda files, _device: Weights(files[0], tensors))
            with pytest.raises(CarinaError) as caught:
                open_clip_model(self.name)
        return str(caught.value)


@pytest.fixture
def strict(tiny_clip, published, monkeypatch):
    # Layers are so small that threads only wait for each other.
    with use_one_thread():
        yield lambda kind: Strict(f"{tiny_clip.NAMES[kind]}:{published(kind)}", monkeypatch)


def test_every_kind_of_model_is_tested(tiny_clip):
    assert {tiny_clip.NAMES[kind] for kind in MADE} == set(KINDS)


@pytest.mark.parametrize("kind", MADE)
def test_no_weight_can_be_left_out(strict, kind):
    model = strict(kind)
    assert len(model.used()) > 30
    for key in model.used():
        assert f"weight {key} is missing" in model.complaint(key)


@pytest.mark.parametrize("kind", MADE)
def test_a_weight_that_gives_a_size_has_as_many_axes_as_expected(strict, kind):
    model = strict(kind)
    for key in model.sizes:
        found = model.tensors[key]
        single = found.numel() == 1
        wrong = torch.zeros(2) if single else found[None]
        expected = "a single number" if single else rf"{found.ndim} axes, none of them empty"
        shape = re.escape(str(tuple(wrong.shape)))
        said = model.complaint(key, wrong)
        assert re.search(rf"weight {re.escape(key)} has the shape {shape}; expected {expected}", said), said


@pytest.mark.parametrize(
    ("kind", "key", "shape", "expected"),
    [
        ("medklip", "classifier.weight", (2, 88), r"expected \(2, 16\)"),
        ("medklip", "disease_embedding_layer.weight", (16, 200), r"expected \(16, 128\)"),
        ("kad", "text_encoder.mlp_embed.0.weight", (128, 200), r"expected \(128, 128\)"),
        ("mavl", "res_l1.1.weight", (2,), r"expected \(1,\)"),
        ("biovil-t", "encoder.missing_previous_emb", (2, 16, 1, 1), r"expected \(1, 16, 1, 1\)"),
        ("biovil", "bert.embeddings.word_embeddings.weight", (80, 200), "expected a width of whole heads of 64"),
        ("openai", "token_embedding.weight", (77, 200), "expected a width of whole heads of 64"),
        ("openai", "visual.conv1.weight", (131, 3, 8, 8), "expected a width of whole heads of 64"),
        ("openai", "visual.proj", (2, 3, 4), "expected 2 axes"),
        ("openai", "visual.transformer.resblocks.0.attn.in_proj_weight", (), r"expected \(128, 128\)"),
    ],
)  # fmt: skip
def test_a_weight_of_the_wrong_shape_is_named_with_the_expected_shape(strict, kind, key, shape, expected):
    said = strict(kind).complaint(key, torch.zeros(shape))
    assert re.search(
        rf"weight {re.escape(key)} has the shape {re.escape(str(shape))}[;,] {expected}", said
    ), said


def test_a_position_embedding_without_patches_is_refused(strict):
    said = strict("openai").complaint("visual.positional_embedding", torch.zeros(1, 128))
    assert "weight visual.positional_embedding has 1 places; expected a square number and one" in said


@pytest.mark.parametrize(("kind", "key"), [("kad", "model.mlp_head.0.bias"), ("clip", "logit_scale")])
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_weight_with_nan_or_infinity_is_named(strict, kind, key, value):
    model = strict(kind)
    found = model.tensors[key].clone()
    found.view(-1)[-1] = value
    assert f"weight {key} holds NaN or infinity; expected finite numbers" in model.complaint(key, found)


def test_a_bias_of_the_score_is_there_where_the_settings_say_so(published, tiny_clip, tmp_path):
    from safetensors.torch import load_file

    path = shutil.copytree(published("open_clip"), tmp_path / "weights")
    said = json.loads((path / "open_clip_config.json").read_text())
    said["model_cfg"]["init_logit_bias"] = -10
    (path / "open_clip_config.json").write_text(json.dumps(said))
    with pytest.raises(CarinaError, match="weight logit_bias is missing"):
        open_clip_model(f"clip:{path}")
    name = "open_clip_model.safetensors"
    tiny_clip.put(path, load_file(path / name) | {"logit_bias": torch.tensor(-2.5)}, name)
    assert open_clip_model(f"clip:{path}").shift == -2.5

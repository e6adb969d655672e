"""Adapters on tiny random weights under their published names: loading, strictness, what they say of themselves."""

import json
import shutil

import numpy as np
import pytest

from carina.models.clip.kinds import open_clip_model
from carina.store.errors import CarinaError

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
pytest.importorskip("transformers", reason="the extra torch is not installed")

from safetensors.torch import load_file, save_file  # noqa: E402

KINDS = {
    # kind: grid, side, width of the joint space, pretraining, exact
    "clip": ((4, 4), 32, 12, "unknown", False),
    "siglip": ((4, 4), 32, 16, "unknown", False),
    "openai": ((4, 4), 32, 12, "unknown", False),
    "open_clip": ((4, 4), 32, 12, "unknown", False),
    "biomedclip": ((4, 4), 32, 12, "biomedical", False),
    "chexzero": ((4, 4), 32, 12, "chest x-ray", False),
    "chexzero-320": ((4, 4), 320, 12, "chest x-ray", False),
    "medclip-resnet": ((7, 7), 224, 12, "chest x-ray", True),
    "medclip-swin": ((7, 7), 224, 12, "chest x-ray", True),
}
CHANGED = {
    # kind: a weight that is left out, and one whose shape is changed
    "clip": ("visual_projection.weight", "vision_model.encoder.layers.1.mlp.fc2.bias"),
    "siglip": ("vision_model.head.probe", "text_model.head.weight"),
    "openai": ("visual.ln_post.bias", "visual.transformer.resblocks.1.attn.in_proj_weight"),
    "biomedclip": ("text.proj.2.weight", "visual.trunk.blocks.0.attn.qkv.bias"),
    "chexzero": ("logit_scale", "text_projection"),
    "medclip-resnet": ("vision_model.model.fc.weight", "vision_model.model.layer2.1.bn2.running_var"),
    "medclip-swin": (
        "vision_model.projection_head.weight",
        "vision_model.model.encoder.layers.1.blocks.1.attention.self.query.weight",
    ),
}


def noise(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width), dtype=np.uint8)


@pytest.fixture
def copied(tiny_clip, published, tmp_path):
    """A folder of weights to spoil, and the name that opens it."""

    def of(kind):
        path = shutil.copytree(published(kind), tmp_path / "weights")
        return path, f"{tiny_clip.NAMES[kind]}:{path}"

    return of


def change(path, changes):
    """Weights of a folder with some replaced, or left out where None."""
    file = next(path.glob("*.safetensors"))
    state = load_file(file) | changes
    save_file({key: value for key, value in state.items() if value is not None}, file)


# ---- what a model is ----


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_opens_and_answers(tiny_clip, opened, kind):
    model, (grid, side, width, pretraining, exact) = opened(kind), KINDS[kind]
    assert (model.grid, model.side, model.pretraining, model.exact) == (grid, side, pretraining, exact)
    assert model.native == "similarity"
    assert model.identity.name == f"{tiny_clip.NAMES[kind]}:tiny-{kind}"
    assert len(model.identity.weights) == len(model.identity.settings) == 64
    assert (model.tower is None) == (kind == "medclip-swin")
    pixels = torch.from_numpy(np.stack([model.prepare(noise(*size)) for size in ((101, 77), (64, 131))]))
    assert pixels.shape == (2, 3, side, side)
    images, texts = model.encode_image(pixels), model.encode_text(["mass", "no mass", "a mass"])
    assert images.pooled.shape == (2, width)
    assert images.patches.shape == (2, *grid, width)
    assert texts.pooled.shape == (3, width)
    assert texts.words.shape == (*texts.kept.shape, width)
    assert texts.kept.dtype == torch.bool
    assert texts.kept.sum(1).tolist()[0] == 4  # a letter a token, and nothing that only frames or fills
    scores = model.score(images, texts)
    assert scores.shape == (2, 3)
    assert torch.isfinite(scores).all()
    assert len(set(scores.flatten().tolist())) == 6
    assert model.cross_attention(pixels, ["mass"]) is None


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_image_gives_the_same_bits(tiny_clip, published, opened, kind):
    again = open_clip_model(f"{tiny_clip.NAMES[kind]}:{published(kind)}")
    threads = torch.get_num_threads()
    results = []
    for model in (again, opened(kind)):
        pixels = torch.from_numpy(model.prepare(noise(90, 70)))[None]
        images, texts = model.encode_image(pixels), model.encode_text(["mass", "no mass"])
        results.append((images.pooled, images.patches, texts.pooled, model.score(images, texts)))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("kind", KINDS)
def test_a_score_can_be_traced_to_its_pixels(opened, kind):
    model = opened(kind)
    pixels = torch.from_numpy(model.prepare(noise(64, 64)))[None].requires_grad_()
    images = model.encode_image(pixels)
    (gradient,) = torch.autograd.grad(model.score(images, model.encode_text(["mass"])).sum(), pixels)
    assert gradient.abs().max() > 0
    (gradient,) = torch.autograd.grad(model.encode_image(pixels).patches[0, 1, 2].sum(), pixels)
    assert gradient.abs().max() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_no_more_than_its_images(opened, kind):
    model = opened(kind)
    pixels = torch.from_numpy(np.stack([model.prepare(noise(64, 64, seed)) for seed in range(3)]))
    together = model.encode_image(pixels)
    for index in range(3):
        alone = model.encode_image(pixels[index : index + 1])
        torch.testing.assert_close(together.patches[index], alone.patches[0], atol=1e-5, rtol=1e-5)


# ---- strictness ----


@pytest.mark.parametrize("kind", CHANGED)
def test_a_weight_too_few_is_named(copied, kind):
    path, name = copied(kind)
    key = CHANGED[kind][0]
    change(path, {key: None})
    with pytest.raises(CarinaError, match=rf"weight {key.replace('.', '[.]')} is missing"):
        open_clip_model(name)


@pytest.mark.parametrize("kind", CHANGED)
def test_a_weight_too_many_is_named(copied, kind):
    path, name = copied(kind)
    change(path, {"visual.surprise": torch.zeros(1)})
    with pytest.raises(CarinaError, match=r"1 weights .*first visual\.surprise"):
        open_clip_model(name)


@pytest.mark.parametrize("kind", CHANGED)
def test_a_weight_of_another_shape_is_named(copied, kind):
    path, name = copied(kind)
    key = CHANGED[kind][1]
    found = load_file(path / "model.safetensors")[key]
    change(path, {key: torch.zeros((found.shape[0] + 3, *found.shape[1:]))})
    with pytest.raises(CarinaError, match=rf"weight {key.replace('.', '[.]')} has the shape"):
        open_clip_model(name)


def test_numbers_beside_the_weights_are_let_be(copied):
    """OpenAI's archives hold sizes; half precision is what they are saved in."""
    path, name = copied("openai")
    state = load_file(path / "model.safetensors")
    whole = open_clip_model(name).encode_text(["mass"]).pooled
    sizes = {key: torch.tensor(1) for key in ("input_resolution", "context_length", "vocab_size")}
    change(path, {key: value.half() for key, value in state.items()} | sizes)
    halved = open_clip_model(name).encode_text(["mass"]).pooled
    assert halved.dtype == torch.float32
    torch.testing.assert_close(halved, whole, atol=0.02, rtol=0.02)
    assert not torch.equal(halved, whole)


def test_damaged_weights_are_an_error(copied):
    path, name = copied("chexzero")
    content = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(content[: len(content) // 2])
    with pytest.raises(CarinaError, match=r"model\.safetensors: not readable as safetensors"):
        open_clip_model(name)


def test_places_that_are_no_square_are_an_error(copied):
    path, name = copied("openai")
    change(path, {"visual.positional_embedding": torch.zeros((16, 128))})
    with pytest.raises(CarinaError, match="has 16 places; expected a square number and one"):
        open_clip_model(name)


# ---- settings ----


@pytest.mark.parametrize(
    ("part", "option", "value", "expected"),
    [
        ("vision_cfg", "image_size", 64, "image_size is 64; expected 32, for which the weights have places"),
        ("vision_cfg", "pool_type", "none", "pool_type is 'none'; expected tok or avg"),
        ("vision_cfg", "attentional_pool", True, "vision_cfg.attentional_pool is True"),
        ("text_cfg", "no_causal_mask", True, "text_cfg.no_causal_mask is True"),
        ("text_cfg", "pool_type", "last", "pool_type is 'last'; expected argmax or eos"),
    ],
)
def test_options_of_open_clip_that_change_the_model_are_refused(copied, part, option, value, expected):
    path, name = copied("open_clip")
    said = json.loads((path / "open_clip_config.json").read_text())
    said["model_cfg"][part][option] = value
    (path / "open_clip_config.json").write_text(json.dumps(said))
    with pytest.raises(CarinaError, match=expected.replace(".", "[.]")):
        open_clip_model(name)


def test_a_model_that_averages_its_patches_adds_up(copied):
    path, name = copied("open_clip")
    said = json.loads((path / "open_clip_config.json").read_text())
    said["model_cfg"]["vision_cfg"]["pool_type"] = "avg"
    (path / "open_clip_config.json").write_text(json.dumps(said))
    model = open_clip_model(name)
    assert model.exact
    images = model.encode_image(torch.from_numpy(model.prepare(noise(50, 40)))[None])
    torch.testing.assert_close(images.patches.mean((1, 2)), images.pooled)


def test_biomedclip_pools_its_text_in_one_way(copied):
    path, name = copied("biomedclip")
    said = json.loads((path / "open_clip_config.json").read_text())
    said["model_cfg"]["text_cfg"]["hf_pooler_type"] = "mean_pooler"
    (path / "open_clip_config.json").write_text(json.dumps(said))
    with pytest.raises(
        CarinaError, match="hf_pooler_type is 'mean_pooler'; expected cls_last_hidden_state_pooler"
    ):
        open_clip_model(name)


@pytest.mark.parametrize(("kind", "other"), [("clip", "siglip"), ("siglip", "clip")])
def test_a_config_of_another_family_is_an_error(copied, published, kind, other):
    path, name = copied(kind)
    shutil.copyfile(published(other) / "config.json", path / "config.json")
    with pytest.raises(CarinaError, match=rf"config\.json: model_type '{other}'; expected '{kind}'"):
        open_clip_model(name)
    (path / "config.json").unlink()
    with pytest.raises(CarinaError, match=rf"config\.json: model_type None; expected '{kind}'"):
        open_clip_model(name)


def test_settings_that_are_no_settings_are_an_error(copied):
    path, name = copied("clip")
    said = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(said | {"vision_config": {"hidden_size": "wide"}}))
    with pytest.raises(CarinaError, match=r"config\.json: not understood by transformers: "):
        open_clip_model(name)
    (path / "config.json").write_text("[1]")
    with pytest.raises(CarinaError, match=r"config\.json: not a JSON object"):
        open_clip_model(name)


def test_a_checkpoint_of_another_kind_is_refused_with_the_right_name(published):
    with pytest.raises(CarinaError, match="has timm's vision transformer; name it biomedclip:PATH"):
        open_clip_model(f"clip:{published('biomedclip')}")


@pytest.mark.parametrize("kind", ["clip", "siglip", "biomedclip"])
def test_code_beside_the_weights_is_not_run(copied, kind):
    path, name = copied(kind)
    classes = {
        "AutoConfig": "evil.Config",
        "AutoModel": "evil.Model",
        "AutoTokenizer": ["evil.Slow", "evil.Fast"],
    }
    for file in ("config.json", "tokenizer_config.json"):
        said = json.loads((path / file).read_text()) if (path / file).exists() else {}
        (path / file).write_text(json.dumps(said | {"auto_map": classes}))
    (path / "evil.py").write_text("raise SystemExit('run')")
    open_clip_model(name).encode_text(["mass"])


def test_an_unknown_activation_is_an_error(copied):
    path, name = copied("clip")
    said = json.loads((path / "config.json").read_text())
    said["vision_config"]["hidden_act"] = "relu"
    (path / "config.json").write_text(json.dumps(said))
    with pytest.raises(CarinaError, match="vision_config has the activation 'relu'; known are quick_gelu"):
        open_clip_model(name)


@pytest.mark.parametrize(
    ("kind", "files", "expected"),
    [
        ("clip", ["vocab.json"], "put vocab.json and merges.txt of openai/clip-vit-base-patch32 here"),
        (
            "chexzero",
            ["tokenizer.json"],
            "put vocab.json and merges.txt of openai/clip-vit-base-patch32 here",
        ),
        ("siglip", ["tokenizer.json"], "tokenizer.json: missing; it is published with the weights"),
        ("biomedclip", ["vocab.txt"], "put the vocab.txt of microsoft/BiomedNLP-BiomedBERT"),
        ("medclip-resnet", ["vocab.txt"], "put the vocab.txt of emilyalsentzer/Bio_ClinicalBERT here"),
    ],
)
def test_a_missing_tokenizer_is_named_with_its_source(copied, kind, files, expected):
    path, name = copied(kind)
    for file in files:
        (path / file).unlink()
    with pytest.raises(CarinaError, match=expected.replace(".", "[.]")):
        open_clip_model(name)


def test_a_token_number_beyond_the_weights_is_an_error(copied):
    path, name = copied("chexzero")
    settings = json.loads((path / "tokenizer.json").read_text())
    vocabulary = settings["model"]["vocab"]
    vocabulary[min(vocabulary)] = 65536
    (path / "tokenizer.json").write_text(json.dumps(settings))
    with pytest.raises(CarinaError, match="its tokenizer knows 65537 tokens, its weights"):
        open_clip_model(name)


def test_a_tokenizer_of_another_model_is_an_error(copied):
    path, name = copied("biomedclip")
    with (path / "vocab.txt").open("a") as file:
        file.write("one\nmore\n")
    with pytest.raises(CarinaError, match="its tokenizer knows 82 tokens, its weights 80"):
        open_clip_model(name)
    (path / "vocab.txt").unlink()
    (path / "tokenizer.json").write_text("{}")
    with pytest.raises(CarinaError, match="its tokenizer cannot be loaded"):
        open_clip_model(name)


# ---- prompts ----


def test_prompts_are_the_published_or_the_declared_ones(copied, opened):
    assert opened("chexzero").prompts("edema").positive == ("edema",)
    assert opened("chexzero").prompts("edema").negative == ("no edema",)
    assert opened("clip").prompts("edema").positive == ("a chest x-ray showing edema",)
    assert opened("clip").prompts("edema").negative == ("a chest x-ray showing no edema",)
    path, name = copied("clip")
    before = open_clip_model(name).identity
    said = {"pretraining": "chest x-ray", "positive": ["there is {}", "{}"], "negative": ["no {}"]}
    (path / "carina.json").write_text(json.dumps(said))
    model = open_clip_model(name)
    assert model.pretraining == "chest x-ray"
    assert model.prompts("{edema}").positive == ("there is {edema}", "{edema}")
    assert model.prompts("edema").negative == ("no edema",)
    assert model.identity.weights == before.weights
    assert model.identity.settings != before.settings


@pytest.mark.parametrize(
    "said", ['{"pretraining": "x-ray"}', '{"prompt": "{}"}', "[]", '{"positive": ["a mass"]}']
)
def test_a_declaration_that_is_not_understood_is_an_error(copied, said):
    path, name = copied("clip")
    (path / "carina.json").write_text(said)
    with pytest.raises(CarinaError, match=r"carina\.json: "):
        open_clip_model(name).prompts("edema")


def test_a_long_prompt_is_truncated(opened):
    for kind in ("clip", "siglip", "biomedclip", "medclip-resnet"):
        texts = opened(kind).encode_text(["effusion " * 40])
        assert torch.isfinite(texts.pooled).all()
        assert (
            texts.words.shape[1] == {"clip": 40, "siglip": 20, "biomedclip": 30, "medclip-resnet": 48}[kind]
        )

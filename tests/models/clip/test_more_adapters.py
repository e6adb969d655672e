"""Models with decoders, projections and merged words: loading, strictness, what they say of themselves."""

import json
import shutil

import numpy as np
import pytest

from carina.models import identify_model
from carina.models.clip.kinds import KINDS as NAMED
from carina.models.clip.kinds import native_options, open_clip_model, open_ensemble
from carina.store.errors import CarinaError

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
pytest.importorskip("transformers", reason="the extra torch is not installed")

from safetensors.torch import load_file, save_file  # noqa: E402

DECODERS = ("medklip", "mavl", "kad", "kad-224", "carzero")
KINDS = {
    # kind: grid, side, width of the texts, exact, native, patches in the joint space, words in it
    "biovil": ((15, 15), 480, 12, True, "similarity", True, True),
    "biovil-t": ((14, 14), 448, 12, True, "similarity", True, True),
    "gloria": ((19, 19), 224, 128, False, "word-attention", True, True),
    "afloc": ((19, 19), 224, 128, False, "similarity", True, True),
    "medklip": ((14, 14), 224, 16, False, "cross-attention", False, False),
    "mavl": ((14, 14), 224, 16, False, "cross-attention", False, False),
    "kad": ((16, 16), 512, 16, False, "cross-attention", True, False),
    "kad-224": ((14, 14), 224, 16, False, "cross-attention", True, False),
    "carzero": ((7, 7), 224, 128, False, "cross-attention", False, True),
}
FUSION = "CARZero.fusion_module"
CHANGED = {
    # kind: a weight that is left out, and one whose shape is changed
    "biovil": ("projector.model.3.bias", "cls_projection_head.LayerNorm.bias"),
    "biovil-t": ("encoder.missing_previous_emb", "encoder.encoder.layer2.1.bn2.running_var"),
    "gloria": ("gloria.img_encoder.local_embedder.weight", "gloria.img_encoder.model.layer4.0.conv3.weight"),
    "afloc": ("afloc.img_encoder.global_embedder.weight", "afloc.text_encoder.model.encoder.layer.4.output.dense.bias"),
    "medklip": ("disease_embedding_layer.weight", "decoder.layers.2.multihead_attn.in_proj_weight"),
    "mavl": ("res_l1.1.weight", "backbone.6.0.bn3.bias"),
    "kad": ("model.decoder_norm.bias", "model.decoder.layers.3.self_attn.out_proj.weight"),
    "carzero": (f"{FUSION}.mlp_head.6.weight", "CARZero.img_encoder.model.blocks.1.attn.qkv.bias"),
}  # fmt: skip
PROMPTS = ["Findings suggesting pneumonia", "no pneumonia", "a thicken pleura"]
OBSERVED = ["pneumonia", "pleural effusion", "device"]


def noise(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width), dtype=np.uint8)


def asked(kind):
    return OBSERVED if kind in {"medklip", "mavl"} else PROMPTS


def pixels(model, number=2):
    sizes = ((101, 77), (64, 131), (90, 90))[:number]
    return torch.from_numpy(np.stack([model.prepare(noise(*size)) for size in sizes]))


@pytest.fixture
def copied(tiny_clip, published, tmp_path):
    """A folder of weights to spoil, and the name that opens it."""

    def of(kind):
        path = shutil.copytree(published(kind), tmp_path / "weights")
        return path, f"{tiny_clip.NAMES[kind]}:{path}"

    return of


def change(path, key, value):
    """One weight replaced, or left out where None, in the file that has it."""
    files = [file for file in path.glob("*.safetensors") if key in load_file(file)]
    file = files[0] if files else path / "model.safetensors"
    state = load_file(file) | {key: value}
    save_file({name: found for name, found in state.items() if found is not None}, file)


# ---- what a model is ----


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_opens_and_answers(tiny_clip, opened, kind):
    model, (grid, side, width, exact, native, patches, words) = opened(kind), KINDS[kind]
    assert (model.grid, model.side, model.exact, model.native) == (grid, side, exact, native)
    assert model.pretraining == "chest x-ray"
    assert model.identity.name == f"{tiny_clip.NAMES[kind]}:tiny-{kind}"
    given = pixels(model)
    assert given.shape == (2, 3, side, side)
    images, texts = model.encode_image(given), model.encode_text(asked(kind))
    assert images.pooled.shape == (2, width)
    assert (None if images.patches is None else images.patches.shape) == (
        (2, *grid, width) if patches else None
    )
    assert texts.pooled.shape == (3, width)
    assert (texts.words is not None) == words
    if words:
        assert texts.words.shape == (*texts.kept.shape, width)
    scores = model.score(images, texts)
    assert scores.shape == (2, 3)
    assert torch.isfinite(scores).all()
    assert len(set(scores.flatten().tolist())) == 6
    assert (model.cross_attention(given, asked(kind)) is not None) == (kind in DECODERS)


@pytest.mark.parametrize("kind", DECODERS)
def test_a_decoder_shows_where_each_prompt_looks(opened, kind):
    model = opened(kind)
    found = model.cross_attention(pixels(model), asked(kind))
    assert found.weights.shape == (2, 3, 4, 4, *model.grid)
    assert found.dropped.shape == (2, 3, 4, 4)
    assert (found.weights >= 0).all()
    # What fell on patches and on other keys is all there is.
    torch.testing.assert_close(found.weights.sum((-2, -1)) + found.dropped, torch.ones(2, 3, 4, 4))
    assert (found.dropped > 0).all() == (kind == "carzero")
    assert (found.dropped == 0).all() == (kind != "carzero")


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_image_gives_the_same_bits(tiny_clip, published, opened, kind):
    results = []
    for model in (open_clip_model(f"{tiny_clip.NAMES[kind]}:{published(kind)}"), opened(kind)):
        images, texts = model.encode_image(pixels(model, 1)), model.encode_text(asked(kind))
        results.append((images.pooled, texts.pooled, model.score(images, texts)))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_score_can_be_traced_to_its_pixels(opened, kind):
    model = opened(kind)
    given = pixels(model, 1).requires_grad_()
    texts = model.encode_text(asked(kind))
    (gradient,) = torch.autograd.grad(model.score(model.encode_image(given), texts).sum(), given)
    assert gradient.abs().max() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_depends_on_no_other_image_or_prompt(opened, kind):
    model, prompts = opened(kind), asked(kind)
    given = pixels(model, 3)
    together = model.score(model.encode_image(given), model.encode_text(prompts))
    for index, prompt in enumerate(prompts):
        alone = model.score(model.encode_image(given[index : index + 1]), model.encode_text([prompt]))
        torch.testing.assert_close(alone[0, 0], together[index, index], atol=2e-5, rtol=1e-4)
    if kind in DECODERS:
        whole = model.cross_attention(given, prompts).weights
        alone = model.cross_attention(given[1:2], prompts[2:]).weights
        torch.testing.assert_close(alone[0, 0], whole[1, 2], atol=1e-6, rtol=1e-4)


# ---- strictness ----


@pytest.mark.parametrize("kind", CHANGED)
def test_a_weight_too_few_is_named(copied, kind):
    path, name = copied(kind)
    key = CHANGED[kind][0]
    change(path, key, None)
    with pytest.raises(CarinaError, match=rf"weight {key.replace('.', '[.]')} is missing"):
        open_clip_model(name)


@pytest.mark.parametrize("kind", CHANGED)
def test_a_weight_too_many_is_named(copied, kind):
    path, name = copied(kind)
    change(path, "encoder.surprise", torch.zeros(1))
    with pytest.raises(CarinaError, match=r"1 weights .*first encoder\.surprise"):
        open_clip_model(name)


@pytest.mark.parametrize("kind", CHANGED)
def test_a_weight_of_another_shape_is_named(copied, kind):
    path, name = copied(kind)
    key = CHANGED[kind][1]
    found = next(load_file(file)[key] for file in path.glob("*.safetensors") if key in load_file(file))
    change(path, key, torch.zeros((found.shape[0] + 3, *found.shape[1:])))
    with pytest.raises(CarinaError, match=rf"weight {key.replace('.', '[.]')} has the shape"):
        open_clip_model(name)


# ---- folders ----


@pytest.mark.parametrize("kind", ["biovil", "biovil-t", "medklip", "mavl"])
def test_a_text_tower_that_is_published_apart_is_part_of_the_model(copied, kind):
    path, name = copied(kind)
    before = identify_model(name)
    assert open_clip_model(name).identity == before
    (model,) = open_ensemble(name)
    assert model.identity == before
    change(path, "bert.embeddings.LayerNorm.bias", torch.zeros(128))
    after = identify_model(name)
    assert (before.name, before.settings) == (after.name, after.settings)
    assert before.weights != after.weights
    (path / "text.safetensors").unlink()
    with pytest.raises(CarinaError, match=r"text\.safetensors: missing; download .* to text\.safetensors"):
        open_clip_model(name)


@pytest.mark.parametrize("kind", ["medklip", "mavl"])
def test_a_bert_without_heads_is_the_same(copied, opened, kind):
    path, name = copied(kind)
    state = load_file(path / "text.safetensors")
    plain = {key.removeprefix("bert."): value for key, value in state.items() if key.startswith("bert.")}
    save_file(plain, path / "text.safetensors")
    texts = open_clip_model(name).encode_text(OBSERVED)
    torch.testing.assert_close(texts.pooled, opened(kind).encode_text(OBSERVED).pooled, rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_vocabulary_is_named_with_its_source(copied, kind):
    path, name = copied(kind)
    (path / "vocab.txt").unlink()
    with pytest.raises(CarinaError, match=r"vocab\.txt: missing; put the vocab\.txt of \w+/[\w-]+ here"):
        open_clip_model(name)


def test_changed_descriptions_change_the_settings_of_the_identity(copied):
    path, name = copied("mavl")
    before = identify_model(name)
    (path / "gpt4_mimic.json").write_text((path / "gpt4_mimic.json").read_text().replace("it is", "it was"))
    assert identify_model(name).settings != before.settings


def test_native_options_are_those_of_the_native_method(opened):
    from carina.explanations.methods._method import METHODS

    said = {
        kind: METHODS[opened(kind).native].parse_options(native_options(f"{kind}:x"))
        for kind in NAMED
        if kind in KINDS
    }
    assert said["kad"].layers == "last"
    assert said["carzero"].layers == said["medklip"].layers == said["mavl"].layers == "mean"
    assert (said["afloc"].measure, said["afloc"].sigma) == ("dot", 1.5)
    assert (said["biovil"].measure, said["biovil"].sigma) == ("cosine", 1.5)
    assert said["gloria"].temperature == 4


# ---- what may be asked ----


def test_prompts_are_the_published_ones(opened):
    def said(kind, finding="edema"):
        pair = opened(kind).prompts(finding)
        return pair.positive, pair.negative

    assert said("carzero") == (("There is edema",), ())
    assert said("kad") == (("edema",), ())
    assert said("biovil") == said("biovil-t") == (("Findings suggesting edema",), ("No evidence of edema",))
    assert said("afloc") == (("Findings suggesting edema",), ("no edema",))
    assert said("gloria") == (("a chest x-ray showing edema",), ("a chest x-ray showing no edema",))
    assert said("medklip", "Pleural_Effusion") == (("effusion",), ())


@pytest.mark.parametrize("kind", ["medklip", "mavl"])
def test_a_finding_is_asked_for_by_the_observation_that_it_is(opened, kind):
    model = opened(kind)
    for finding, name in {
        "pneumonia": "pneumonia", "Lung Opacity": "opacity", "pleural thickening": "thicken",
        "Fibrosis": "tail_abnorm_obs", "No Finding": "normal", "Support Devices": "device",
    }.items():  # fmt: skip
        assert model.prompts(finding).positive == (name,)
        torch.testing.assert_close(
            model.encode_text([finding]).pooled, model.encode_text([name]).pooled, rtol=0, atol=0
        )
    for ask in (model.prompts, lambda finding: model.encode_text([finding])):
        with pytest.raises(
            CarinaError,
            match=r"finding 'gout': .*it knows normal, effusion, opacity, pneumonia, device",
        ):
            ask("gout")


@pytest.mark.parametrize(
    ("kind", "file", "said", "expected"),
    [
        ("medklip", "observation explanation.json", None, "missing"),
        ("mavl", "observation explanation.json", '{"normal": 3}', "'normal' is 3; expected its description"),
        ("mavl", "gpt4_mimic.json", None, "missing; it is published in Pretrain/concept_gen"),
        (
            "mavl",
            "gpt4_mimic.json",
            '{"normal": ["border: a"]}',
            "'normal': expected a sentence each that starts",
        ),
    ],
)
def test_a_missing_or_wrong_list_of_observations_is_named(copied, kind, file, said, expected):
    path, name = copied(kind)
    (path / file).unlink()
    if said:
        (path / file).write_text(said)
    with pytest.raises(CarinaError, match=rf"{file}: {expected}"):
        open_clip_model(name)


@pytest.mark.parametrize("kind", ["carzero", "gloria", "afloc"])
def test_a_prompt_of_one_word_is_refused(opened, kind):
    for prompt in ("pneumonia", "Pneumonia. Effusion.", "1. mass"):
        with pytest.raises(CarinaError, match=rf"prompt '{prompt}': no words are left"):
            opened(kind).encode_text(["there is pneumonia", prompt])


def test_the_resolution_of_kad_may_be_said(copied):
    path, name = copied("kad")
    (path / "config.json").write_text(json.dumps({"img_res": 1024}))
    model = open_clip_model(name)
    assert (model.side, model.grid) == (1024, (32, 32))
    for wrong, said in (("large", "'large'"), (100_000, "100000"), (8, "8"), (True, "True")):
        (path / "config.json").write_text(json.dumps({"img_res": wrong}))
        with pytest.raises(
            CarinaError, match=rf"config\.json: img_res is {said}; expected the side .* from 32 to 2048"
        ):
            open_clip_model(name)


# ---- exactness ----


@pytest.mark.parametrize("kind", ["biovil", "biovil-t"])
def test_the_map_of_biovil_adds_up_to_its_score(opened, kind):
    model = opened(kind)
    images, texts = model.encode_image(pixels(model)), model.encode_text(PROMPTS)
    maps = torch.einsum("nrcd,md->nmrc", images.patches, texts.pooled)
    product = images.pooled @ texts.pooled.T
    torch.testing.assert_close(maps.mean((2, 3)), product, atol=1e-5, rtol=1e-4)
    norms = images.pooled.norm(dim=1)[:, None] * texts.pooled.norm(dim=1)
    torch.testing.assert_close(model.score(images, texts), product / norms, atol=1e-5, rtol=1e-4)


def test_biovil_t_has_nothing_to_compare_with(published, opened):
    """Its first half sees the picture, its second is the learned vector everywhere."""
    model, state = opened("biovil-t"), load_file(published("biovil-t") / "model.safetensors")
    given = pixels(model)
    features = torch.nn.functional.conv2d(model.tower(given).layer4, state["encoder.backbone_to_vit.weight"])
    none = state["encoder.missing_previous_emb"].repeat(2, 1, 14, 14)
    inner = torch.nn.functional.conv2d(torch.cat([features, none], 1), state["projector.model.0.weight"])
    names = ("running_mean", "running_var", "weight", "bias")
    inner = torch.nn.functional.batch_norm(
        inner, *(state[f"projector.model.1.{name}"] for name in names)
    ).relu()
    expected = torch.nn.functional.conv2d(
        inner, state["projector.model.3.weight"], state["projector.model.3.bias"]
    )
    torch.testing.assert_close(
        model.encode_image(given).patches, expected.permute(0, 2, 3, 1), atol=1e-5, rtol=1e-4
    )


def test_the_text_of_biovil_is_the_projected_first_token(published, opened):
    model, state = opened("biovil"), load_file(published("biovil") / "text.safetensors")
    text = model.text
    ids = text.tokenizer(["mass"], return_tensors="pt")["input_ids"]
    first = text.model(input_ids=ids).last_hidden_state[:, 0]
    linear, head = torch.nn.functional.linear, "cls_projection_head"
    hidden = linear(first, *(state[f"{head}.dense_to_hidden.{part}"] for part in ("weight", "bias")))
    hidden = torch.nn.functional.layer_norm(
        torch.nn.functional.gelu(hidden),
        (12,),
        *(state[f"{head}.LayerNorm.{part}"] for part in ("weight", "bias")),
        1e-12,
    )
    expected = linear(hidden, *(state[f"{head}.dense_to_output.{part}"] for part in ("weight", "bias")))
    torch.testing.assert_close(model.encode_text(["mass"]).pooled, expected)


def test_afloc_scores_by_a_product(opened):
    model = opened("afloc")
    images, texts = model.encode_image(pixels(model)), model.encode_text(PROMPTS)
    for n in range(2):
        for m in range(3):
            expected = sum(
                float(a) * float(b) for a, b in zip(images.pooled[n], texts.pooled[m], strict=True)
            )
            assert float(model.score(images, texts)[n, m]) == pytest.approx(expected, rel=1e-4, abs=1e-3)


@pytest.mark.parametrize("kind", ["gloria", "afloc"])
def test_the_network_sees_an_enlarged_picture(published, opened, kind):
    model, state = opened(kind), load_file(published(kind) / "model.safetensors")
    given = pixels(model)
    enlarged = torch.nn.Upsample(size=(299, 299), mode="bilinear", align_corners=True)(given)
    taps = model.tower(enlarged)
    local = torch.nn.functional.conv2d(taps.layer3, state[f"{kind}.img_encoder.local_embedder.weight"])
    whole = torch.nn.functional.linear(
        torch.nn.functional.adaptive_avg_pool2d(taps.layer4, 1).flatten(1),
        *(state[f"{kind}.img_encoder.global_embedder.{part}"] for part in ("weight", "bias")),
    )
    images = model.encode_image(given)
    torch.testing.assert_close(images.patches, local.permute(0, 2, 3, 1))
    torch.testing.assert_close(images.pooled, whole, atol=1e-5, rtol=1e-4)

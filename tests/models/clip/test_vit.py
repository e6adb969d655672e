"""Our vision transformer against those of transformers, on the same tiny random weights."""

import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
transformers = pytest.importorskip("transformers", reason="the extra torch is not installed")

from carina.models.clip.key_maps import (  # noqa: E402
    openai_text,
    openai_vision,
    timm_vision,
    transformers_clip_vision,
    transformers_siglip_vision,
)
from carina.models.clip.state_dict import Weights, freeze  # noqa: E402
from carina.models.clip.vit import VitShape, VitTower  # noqa: E402

SIZES = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 3, "num_attention_heads": 2,
         "image_size": 32, "patch_size": 8}  # fmt: skip
OURS = {"side": 32, "patch": 8, "width": 16, "depth": 3, "heads": 2, "hidden": 24}


def shaken(model, seed=0):
    """Every weight random, norms and biases too, so that none can be confused with another."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
    return model.eval()


def pictures(number=2, side=32, seed=1):
    return torch.randn((number, 3, side, side), generator=torch.Generator().manual_seed(seed))


def filled(shape, keys, state):
    tower = VitTower(shape)
    weights = Weights("tiny.safetensors", state)
    weights.fill(tower, keys)
    weights.close()
    return freeze(tower)


@pytest.fixture(scope="module", params=["quick_gelu", "gelu"])
def clip(request):
    """The reference and ours."""
    config = transformers.CLIPVisionConfig(**SIZES, hidden_act=request.param, projection_dim=8)
    config._attn_implementation = "eager"
    theirs = shaken(transformers.CLIPVisionModelWithProjection(config))
    shape = VitShape(**OURS, out=8, patch_bias=False, first_norm=True, activation=request.param, epsilon=1e-5)
    return theirs, filled(shape, transformers_clip_vision(shape), theirs.state_dict())


@pytest.fixture(scope="module")
def siglip():
    config = transformers.SiglipVisionConfig(**SIZES)
    config._attn_implementation = "eager"
    theirs = shaken(transformers.SiglipVisionModel(config))
    shape = VitShape(**OURS, pool="attention", class_token=False, activation="gelu_tanh")
    state = {f"vision_model.{key}": value for key, value in theirs.state_dict().items()}
    return theirs, filled(shape, transformers_siglip_vision(shape), state)


def test_clip_equals_transformers_in_every_layer(clip):
    theirs, ours = clip
    pixels = pictures()
    expected = theirs(pixels, output_hidden_states=True, output_attentions=True)
    trace = ours.trace(ours.embed(pixels))
    torch.testing.assert_close(ours.embed(pixels), expected.hidden_states[0], atol=1e-5, rtol=1e-5)
    for got, wanted in zip(trace.tokens, expected.hidden_states[1:], strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)
    for got, wanted in zip(trace.weights, expected.attentions, strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours.pool(ours(pixels)), expected.image_embeds, atol=1e-5, rtol=1e-5)


def test_patches_of_clip_take_the_same_way_as_the_class_token(clip):
    theirs, ours = clip
    tokens = ours(pictures())
    finished = ours.finish(tokens)
    last = theirs.vision_model.post_layernorm(tokens) @ theirs.visual_projection.weight.T
    torch.testing.assert_close(finished, last, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(finished[:, 0], ours.pool(tokens))
    assert ours.lay_out(finished).shape == (2, 4, 4, 8)
    torch.testing.assert_close(ours.lay_out(finished)[:, 1, 2], finished[:, 1 + 4 + 2])


def test_siglip_equals_transformers(siglip):
    theirs, ours = siglip
    pixels = pictures()
    expected = theirs(pixels, output_hidden_states=True, output_attentions=True)
    tokens = ours(pixels)
    torch.testing.assert_close(ours.norm(tokens), expected.last_hidden_state, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours.pool(tokens), expected.pooler_output, atol=1e-5, rtol=1e-5)
    for got, wanted in zip(ours.trace(ours.embed(pixels)).weights, expected.attentions, strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)


def test_a_patch_of_siglip_lies_where_a_picture_of_that_patch_alone_would(siglip):
    theirs, ours = siglip
    tokens = ours(pictures(1))
    finished = ours.finish(tokens)
    for index in (0, 7, 15):
        alone = theirs.head(theirs.post_layernorm(tokens[:, index : index + 1]))
        torch.testing.assert_close(finished[:, index], alone, atol=1e-5, rtol=1e-5)


def test_the_attention_of_the_siglip_pool_equals_transformers(siglip):
    theirs, ours = siglip
    tokens = ours.norm(ours(pictures()))
    _, weights = ours.head(tokens)
    probe = theirs.head.probe.expand(2, -1, -1)
    _, expected = theirs.head.attention(probe, tokens, tokens, need_weights=True, average_attn_weights=False)
    torch.testing.assert_close(weights, expected[:, :, 0], atol=1e-5, rtol=1e-5)


def test_the_mean_of_patches_adds_up():
    shape = VitShape(**OURS, out=8, pool="mean")
    tower = freeze(shaken(VitTower(shape)))
    tokens = tower(pictures())
    torch.testing.assert_close(tower.pool(tokens), tower.lay_out(tower.finish(tokens)).mean((1, 2)))


def test_the_towers_of_published_models_are_as_large_as_those():
    """CLIP's notebook prints 151,277,313 for ViT-B/32; timm lists 86,567,656 for ViT-B/16 with 769,000 in its head."""
    b32 = VitShape(
        side=224,
        patch=32,
        width=768,
        depth=12,
        heads=12,
        hidden=3072,
        out=512,
        patch_bias=False,
        first_norm=True,
    )
    b16 = VitShape(side=224, patch=16, width=768, depth=12, heads=12, hidden=3072)
    config = transformers.CLIPTextConfig(projection_dim=512)
    with torch.device("meta"):
        clip, timm = VitTower(b32), VitTower(b16)
        text = transformers.CLIPTextModelWithProjection(config)

    def size(module):
        return sum(parameter.numel() for parameter in module.parameters())

    assert size(clip) + size(text) + 1 == 151_277_313
    assert size(timm) == 86_567_656 - 769_000
    assert (clip.grid, clip.heads, clip.prefix) == ((7, 7), 12, 1)
    assert set(openai_vision(b32)) == set(clip.state_dict())
    assert set(openai_text(12)) == set(text.state_dict())
    assert set(timm_vision(b16, projection=None)) == set(timm.state_dict())


def test_timm_has_towers_without_a_class_token():
    shape = VitShape(**OURS, pool="mean", class_token=False, out=8)
    keys = timm_vision(shape, "trunk.", "head.weight")
    assert set(keys) == set(VitTower(shape).state_dict())
    assert "trunk.cls_token" not in {source.key for source in keys.values()}


def test_attention_stays_in_the_graph(clip):
    _, ours = clip
    pixels = pictures(1).requires_grad_()
    trace = ours.trace(ours.embed(pixels))
    score = ours.pool(trace.tokens[-1]).sum()
    gradients = torch.autograd.grad(score, [*trace.weights, pixels])
    assert all(gradient.abs().max() > 0 for gradient in gradients)
    assert all(not parameter.requires_grad for parameter in ours.parameters())

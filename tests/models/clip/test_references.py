"""Adapters against the models they stand for, computed by transformers or by hand on the same tiny weights."""

import re

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
transformers = pytest.importorskip("transformers", reason="the extra torch is not installed")

from safetensors.torch import load_file  # noqa: E402

PROMPTS = ["pneumothorax", "no pneumothorax", "a chest x-ray showing a mass"]


def pictures(model, number=2):
    generator = torch.Generator().manual_seed(5)
    return torch.randn((number, 3, model.side, model.side), generator=generator)


def close(got, wanted):
    torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)


def normal(vectors):
    return vectors / vectors.norm(dim=-1, keepdim=True)


def gelu(values):
    return values * 0.5 * (1 + torch.erf(values / 2**0.5))


# ---- transformers' own layout ----


@pytest.fixture(scope="module")
def hub_clip(published):
    return transformers.CLIPModel.from_pretrained(published("clip"))


@pytest.fixture(scope="module")
def hub_siglip(published):
    return transformers.SiglipModel.from_pretrained(published("siglip"))


def test_clip_scores_as_transformers_does(hub_clip, published, opened):
    ours = opened("clip")
    tokenizer = transformers.CLIPTokenizer.from_pretrained(published("clip"))
    asked = tokenizer(PROMPTS, padding=True, return_tensors="pt")
    pixels = pictures(ours)
    with torch.no_grad():
        said = hub_clip(**asked, pixel_values=pixels)
    images, texts = ours.encode_image(pixels), ours.encode_text(PROMPTS)
    close(ours.score(images, texts), said.logits_per_image)
    close(normal(images.pooled), said.image_embeds)
    close(normal(texts.pooled), said.text_embeds)


def test_siglip_scores_as_transformers_does(hub_siglip, published, opened):
    ours = opened("siglip")
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(published("siglip"))
    asked = tokenizer(
        ["pneumothorax", "no pneumothorax", "a chest xray showing a mass"], padding="max_length", truncation=True,
        max_length=20, return_tensors="pt",
    )  # fmt: skip
    pixels = pictures(ours)
    with torch.no_grad():
        said = hub_siglip(input_ids=asked["input_ids"], pixel_values=pixels)
    images, texts = ours.encode_image(pixels), ours.encode_text(["Pneumothorax.", *PROMPTS[1:]])
    close(ours.score(images, texts), said.logits_per_image)
    close(images.pooled, said.vision_model_output.pooler_output)


@pytest.mark.parametrize("kind", ["clip", "siglip"])
@pytest.mark.parametrize("size", [(101, 77), (64, 64), (41, 130), (33, 32)])
def test_images_are_prepared_as_transformers_prepares_them(published, opened, kind, size):
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

    processor = {"clip": CLIPImageProcessorPil, "siglip": SiglipImageProcessorPil}[kind]
    image = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)
    reference = processor.from_pretrained(published(kind))
    expected = reference(Image.fromarray(image).convert("RGB"), return_tensors="np")["pixel_values"][0]
    np.testing.assert_allclose(opened(kind).prepare(image), expected, atol=1e-5)


# ---- OpenAI's layout ----


def as_transformers(state, *, heads, activation):
    """A `CLIPModel` from OpenAI's weights, by the names that both publish."""
    width, depth = state["visual.class_embedding"].shape[0], 2
    vocabulary = len(state["token_embedding.weight"])
    common = {
        "hidden_size": width, "intermediate_size": 32, "num_hidden_layers": depth, "num_attention_heads": heads,
        "hidden_act": activation,
    }  # fmt: skip
    config = transformers.CLIPConfig(
        vision_config=common | {"image_size": 32, "patch_size": 8},
        text_config=common
        | {"vocab_size": vocabulary, "max_position_embeddings": 40, "eos_token_id": 2, "bos_token_id": 0},
        projection_dim=12,
    )
    renamed = {
        "logit_scale": state["logit_scale"],
        "visual_projection.weight": state["visual.proj"].T,
        "text_projection.weight": state["text_projection"].T,
        "vision_model.embeddings.class_embedding": state["visual.class_embedding"],
        "vision_model.embeddings.patch_embedding.weight": state["visual.conv1.weight"],
        "vision_model.embeddings.position_embedding.weight": state["visual.positional_embedding"],
        "text_model.embeddings.token_embedding.weight": state["token_embedding.weight"],
        "text_model.embeddings.position_embedding.weight": state["positional_embedding"],
    }
    for theirs, ours in {
        "visual.ln_pre": "vision_model.pre_layrnorm", "visual.ln_post": "vision_model.post_layernorm",
        "ln_final": "text_model.final_layer_norm",
    }.items():  # fmt: skip
        renamed |= {f"{ours}.{kind}": state[f"{theirs}.{kind}"] for kind in ("weight", "bias")}
    for tower, model in (("visual.transformer", "vision_model"), ("transformer", "text_model")):
        for index in range(depth):
            block, layer = f"{tower}.resblocks.{index}", f"{model}.encoder.layers.{index}"
            for kind in ("weight", "bias"):
                packed = state[f"{block}.attn.in_proj_{kind}"]
                for part, name in enumerate("qkv"):
                    renamed[f"{layer}.self_attn.{name}_proj.{kind}"] = packed[
                        part * width : (part + 1) * width
                    ]
                for old, new in {
                    "attn.out_proj": "self_attn.out_proj", "ln_1": "layer_norm1", "ln_2": "layer_norm2",
                    "mlp.c_fc": "mlp.fc1", "mlp.c_proj": "mlp.fc2",
                }.items():  # fmt: skip
                    renamed[f"{layer}.{new}.{kind}"] = state[f"{block}.{old}.{kind}"]
    model = transformers.CLIPModel(config)
    model.load_state_dict(renamed)
    return model.eval()


@pytest.mark.parametrize(
    ("kind", "heads", "activation"),
    [("openai", 2, "quick_gelu"), ("chexzero", 2, "quick_gelu"), ("open_clip", 4, "gelu")],
)
def test_openai_layout_equals_transformers(published, opened, kind, heads, activation):
    state = load_file(next(published(kind).glob("*.safetensors")))
    theirs = as_transformers(state, heads=heads, activation=activation)
    ours = opened(kind)
    asked = ours.text.tokenizer(PROMPTS, padding=True, return_tensors="pt")
    pixels = pictures(ours)
    with torch.no_grad():
        said = theirs(input_ids=asked["input_ids"], pixel_values=pixels)
    images, texts = ours.encode_image(pixels), ours.encode_text(PROMPTS)
    close(normal(images.pooled), said.image_embeds)
    close(normal(texts.pooled), said.text_embeds)
    cosines = said.image_embeds @ said.text_embeds.T
    # CheXzero compares cosines as they are; the others scale them as trained.
    scale = 1 if kind == "chexzero" else state["logit_scale"].exp()
    close(ours.score(images, texts), cosines * scale)


def test_chexzero_is_the_softmax_of_two_cosines(opened):
    from carina.models.clip.recognition import compute_presence, list_prompts

    model = opened("chexzero")
    pair = model.prompts("Pleural Effusion")
    assert list_prompts(pair) == ("Pleural Effusion", "no Pleural Effusion")
    images, texts = model.encode_image(pictures(model)), model.encode_text(list_prompts(pair))
    cosines = (normal(images.pooled) @ normal(texts.pooled).T).numpy()
    expected = np.exp(cosines[:, 0]) / (np.exp(cosines[:, 0]) + np.exp(cosines[:, 1]))
    np.testing.assert_allclose(compute_presence(model.score(images, texts), pair), expected, rtol=1e-6)


# ---- BiomedCLIP ----


def test_biomedclip_equals_transformers(published, opened):
    """timm's vision transformer is transformers' ViT under other names; open_clip's BERT is transformers' own."""
    state = load_file(published("biomedclip") / "model.safetensors")
    ours, width = opened("biomedclip"), 128
    sizes = {
        "hidden_size": width, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    }  # fmt: skip
    vit = transformers.ViTModel(
        transformers.ViTConfig(**sizes, image_size=32, patch_size=8, layer_norm_eps=1e-6),
        add_pooling_layer=False,
    )
    trunk = {key.removeprefix("visual.trunk."): value for key, value in state.items()}
    renamed = {name: timm_weight(trunk, name, width) for name in vit.state_dict()}
    vit.load_state_dict(renamed)
    bert = transformers.BertModel(
        transformers.BertConfig(**sizes, vocab_size=len(state["text.transformer.embeddings.word_embeddings.weight"]),
                                max_position_embeddings=48),
        add_pooling_layer=False,
    )  # fmt: skip
    prefix = "text.transformer."
    bert.load_state_dict({name: state[prefix + name] for name in bert.state_dict()})
    pixels = pictures(ours)
    tokenizer = transformers.BertTokenizer.from_pretrained(published("biomedclip"))
    asked = tokenizer(PROMPTS, padding="max_length", truncation=True, max_length=30, return_tensors="pt")
    with torch.no_grad():
        seen = vit.eval()(pixels).last_hidden_state @ state["visual.head.proj.weight"].T
        said = bert.eval()(**asked).last_hidden_state[:, 0]
    said = gelu(said @ state["text.proj.0.weight"].T) @ state["text.proj.2.weight"].T
    images, texts = ours.encode_image(pixels), ours.encode_text(PROMPTS)
    close(images.pooled, seen[:, 0])
    close(images.patches.flatten(1, 2), seen[:, 1:])
    close(texts.pooled, said)
    close(ours.score(images, texts), normal(seen[:, 0]) @ normal(said).T * state["logit_scale"].exp())


def timm_weight(trunk, name, width):
    """timm's weight for one of transformers' ViT."""
    kind = name.rpartition(".")[2]
    outside = {
        "embeddings.cls_token": "cls_token",
        "embeddings.position_embeddings": "pos_embed",
        f"embeddings.patch_embeddings.projection.{kind}": f"patch_embed.proj.{kind}",
        f"layernorm.{kind}": f"norm.{kind}",
    }
    if name in outside:
        return trunk[outside[name]]
    block = "blocks." + re.search(r"\.(\d+)\.", name)[1]
    for part, word in enumerate(("query", "key", "value")):
        if f".{word}." in name or f".{word[0]}_proj." in name:
            return trunk[f"{block}.attn.qkv.{kind}"][part * width : (part + 1) * width]
    table = {
        "layernorm_before": "norm1", "layernorm_after": "norm2", "attention.output": "attn.proj", "o_proj": "attn.proj",
        "intermediate": "mlp.fc1", "fc1": "mlp.fc1", "output.dense": "mlp.fc2", "fc2": "mlp.fc2",
    }  # fmt: skip
    return next(trunk[f"{block}.{theirs}.{kind}"] for ours, theirs in table.items() if ours in name)


# ---- MedCLIP ----


@pytest.mark.parametrize("kind", ["medclip-resnet", "medclip-swin"])
def test_medclip_equals_transformers(tiny_clip, published, opened, tmp_path, kind):
    state, ours = load_file(published(kind) / "model.safetensors"), opened(kind)
    # The same draws as when the folder was made, so the same model.
    generator = torch.Generator().manual_seed(0)
    pixels = pictures(ours)
    if kind == "medclip-resnet":
        _, theirs = tiny_clip.resnet_state(generator)
        head = state["vision_model.model.fc.weight"]
    else:
        _, theirs = tiny_clip.swin_state(generator, tmp_path)
        head = state["vision_model.projection_head.weight"]
    with torch.no_grad():
        seen = theirs(pixels).pooler_output.flatten(1) @ head.T
    images = ours.encode_image(pixels)
    close(images.pooled, seen)
    close(images.patches.mean((1, 2)), images.pooled)

    bert = transformers.BertModel(
        transformers.BertConfig(
            hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
            vocab_size=len(state["text_model.model.embeddings.word_embeddings.weight"]), max_position_embeddings=48,
        )
    ).eval()  # fmt: skip
    bert.load_state_dict({name: state[f"text_model.model.{name}"] for name in bert.state_dict()})
    tokenizer = transformers.BertTokenizer.from_pretrained(published(kind))
    texts = ours.encode_text(PROMPTS)
    for index, prompt in enumerate(PROMPTS):
        with torch.no_grad():
            layers = bert(**tokenizer(prompt, return_tensors="pt"), output_hidden_states=True).hidden_states
        mean = torch.stack([layers[1], layers[2], layers[-1]]).mean((0, 1, 2))
        close(texts.pooled[index], mean @ state["text_model.projection_head.weight"].T)
    scale = state["logit_scale"].clamp(0, 4.6052).exp()
    close(ours.score(images, texts), normal(images.pooled) @ normal(texts.pooled).T * scale)


def test_a_prompt_of_medclip_does_not_depend_on_its_neighbours(opened):
    model = opened("medclip-resnet")
    alone = model.encode_text(["mass"])
    beside = model.encode_text(["mass", "a chest x-ray showing a pleural effusion"])
    torch.testing.assert_close(alone.pooled[0], beside.pooled[0], rtol=0, atol=0)
    assert beside.kept[0].sum() == 4
    assert not beside.kept[0][alone.words.shape[1] :].any()


@pytest.mark.parametrize("kind", ["medclip-resnet", "medclip-swin"])
def test_similarity_of_medclip_adds_up(opened, kind):
    """The unnormalised score is the mean of the patches' products with the text: each has its exact share."""
    model = opened(kind)
    assert model.exact
    images, texts = model.encode_image(pictures(model)), model.encode_text(PROMPTS)
    shares = images.patches @ texts.pooled.T
    torch.testing.assert_close(shares.mean((1, 2)), images.pooled @ texts.pooled.T, atol=1e-5, rtol=1e-5)

"""Tiny random weights of CLIP-style models, with every file and key named as it is published."""

import json
import re
import string
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file

NAMES = {
    "clip": "clip", "siglip": "siglip", "openai": "clip", "open_clip": "clip", "biomedclip": "biomedclip",
    "chexzero": "chexzero", "chexzero-320": "chexzero", "medclip-resnet": "medclip", "medclip-swin": "medclip",
}  # fmt: skip
"""What we make, and by which name it is opened."""
MEAN, STD = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
WIDTH, OUT, DEPTH = 128, 12, 2
"""Of towers whose heads are 64 wide."""


def noise(shape, generator):
    return torch.randn(shape, generator=generator) * 0.2


def shake(model, generator):
    """Every weight random, norms and biases too, so that none can be confused with another."""
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if value.dtype.is_floating_point:
                value.copy_(noise(value.shape, generator) + 0.3 * ("norm" in name.lower()))
                if name.endswith("running_var"):
                    value.abs_().add_(0.5)
    return model.eval()


# ---- tokenizers ----


def clip_tokenizer(path: Path, *, files=("vocab.json", "merges.txt")):
    """Letters, digits and a hyphen, as CLIP's byte pairs."""
    letters = [*string.ascii_lowercase, *string.digits, "-"]
    vocabulary = [
        *letters,
        *(f"{letter}</w>" for letter in letters),
        "no</w>",
        "<|startoftext|>",
        "<|endoftext|>",
    ]
    (path / "vocab.json").write_text(json.dumps({token: index for index, token in enumerate(vocabulary)}))
    (path / "merges.txt").write_text("#version: 0.2\nn o</w>\n")
    if "tokenizer.json" in files:
        transformers.CLIPTokenizer.from_pretrained(str(path)).save_pretrained(path)
        (path / "vocab.json").unlink()
        (path / "merges.txt").unlink()
    return len(vocabulary)


def bert_vocabulary(path: Path):
    letters = [*string.ascii_lowercase, *string.digits, "-"]
    vocabulary = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "no",
        *letters,
        *(f"##{letter}" for letter in letters),
    ]
    (path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    return len(vocabulary)


def siglip_tokenizer(path: Path):
    """Letters, with one token that ends and fills, as SigLIP's."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    vocabulary = {token: index for index, token in enumerate(["<unk>", "</s>", *string.ascii_lowercase])}
    special = {"unk_token": "<unk>"}
    made = Tokenizer(models.WordLevel(vocabulary, **special))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split("", behavior="isolated")]
    )
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    special |= dict.fromkeys(("eos_token", "pad_token"), "</s>")
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, **special).save_pretrained(path)
    return len(vocabulary)


# ---- models ----


def clip_model(rows, generator):
    text = {
        "vocab_size": rows, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
        "num_attention_heads": 2, "max_position_embeddings": 40, "bos_token_id": rows - 2, "eos_token_id": rows - 1,
        "pad_token_id": rows - 1,
    }  # fmt: skip
    vision = {
        "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
        "image_size": 32, "patch_size": 8,
    }  # fmt: skip
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=OUT)
    return shake(transformers.CLIPModel(config), generator)


def siglip_model(rows, generator):
    text = {
        "vocab_size": rows, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
        "num_attention_heads": 2, "max_position_embeddings": 20, "bos_token_id": None, "eos_token_id": 1,
        "pad_token_id": 1,
    }  # fmt: skip
    vision = {
        "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
        "image_size": 32, "patch_size": 8,
    }  # fmt: skip
    return shake(
        transformers.SiglipModel(transformers.SiglipConfig(text_config=text, vision_config=vision)), generator
    )


def openai_state(rows, generator, *, patch=8, side=32, width=WIDTH):
    """As OpenAI's CLIP and open_clip name their weights."""
    shapes = {
        "visual.class_embedding": (width,),
        "visual.positional_embedding": ((side // patch) ** 2 + 1, width),
        "visual.proj": (width, OUT),
        "visual.conv1.weight": (width, 3, patch, patch),
        **norm("visual.ln_pre", width),
        **norm("visual.ln_post", width),
        "positional_embedding": (40, width),
        "text_projection": (width, OUT),
        "token_embedding.weight": (rows, width),
        **norm("ln_final", width),
        "logit_scale": (),
    }
    for tower in ("visual.transformer", "transformer"):
        for index in range(DEPTH):
            block = f"{tower}.resblocks.{index}"
            shapes |= {
                **norm(f"{block}.ln_1", width), **norm(f"{block}.ln_2", width),
                f"{block}.attn.in_proj_weight": (3 * width, width), f"{block}.attn.in_proj_bias": (3 * width,),
                **linear(f"{block}.attn.out_proj", width, width),
                **linear(f"{block}.mlp.c_fc", width, 32), **linear(f"{block}.mlp.c_proj", 32, width),
            }  # fmt: skip
    return filled(shapes, generator)


def biomedclip_state(rows, generator):
    shapes = {
        "visual.trunk.cls_token": (1, 1, WIDTH),
        "visual.trunk.pos_embed": (1, 17, WIDTH),
        "visual.trunk.patch_embed.proj.weight": (WIDTH, 3, 8, 8),
        "visual.trunk.patch_embed.proj.bias": (WIDTH,),
        **norm("visual.trunk.norm", WIDTH),
        "visual.head.proj.weight": (OUT, WIDTH),
        "text.proj.0.weight": (20, WIDTH),
        "text.proj.2.weight": (OUT, 20),
        "logit_scale": (),
        **bert_shapes("text.transformer.", rows),
    }
    for index in range(DEPTH):
        block = f"visual.trunk.blocks.{index}"
        shapes |= {
            **norm(f"{block}.norm1", WIDTH), **norm(f"{block}.norm2", WIDTH),
            **linear(f"{block}.attn.qkv", WIDTH, 3 * WIDTH), **linear(f"{block}.attn.proj", WIDTH, WIDTH),
            **linear(f"{block}.mlp.fc1", WIDTH, 32), **linear(f"{block}.mlp.fc2", 32, WIDTH),
        }  # fmt: skip
    state = filled(shapes, generator)
    # Saved by transformers before 4.31.
    state["text.transformer.embeddings.position_ids"] = torch.arange(48)[None]
    return state


def medclip_state(rows, generator, vision):
    state = filled(
        {
            "text_model.projection_head.weight": (OUT, WIDTH),
            "logit_scale": (),
            **bert_shapes("text_model.model.", rows),
            **linear("text_model.model.pooler.dense", WIDTH, WIDTH),
        },
        generator,
    )
    state["text_model.model.embeddings.position_ids"] = torch.arange(48)[None]
    return state | {f"vision_model.{key}": value for key, value in vision.items()}


def resnet_state(generator):
    """A small ResNet with torchvision's names, which transformers' are turned into."""
    config = transformers.ResNetConfig(
        embedding_size=4, hidden_sizes=[16, 32, 64, 128], depths=[1, 2, 1, 1], layer_type="bottleneck",
    )  # fmt: skip
    model = shake(transformers.ResNetModel(config), generator)
    state = {f"model.{torchvision_name(key)}": value for key, value in model.state_dict().items()}
    return state | {"model.fc.weight": noise((OUT, 128), generator)}, model


def swin_state(generator, folder):
    """As transformers publishes a Swin, with an index that it used to save."""
    config = transformers.SwinConfig(
        image_size=224,
        patch_size=16,
        embed_dim=8,
        depths=[1, 2],
        num_heads=[1, 2],
        window_size=7,
        mlp_ratio=2.0,
    )
    model = shake(transformers.SwinModel(config), generator)
    model.save_pretrained(folder)
    state = {f"model.{key}": value for key, value in load_file(folder / "model.safetensors").items()}
    state["model.encoder.layers.0.blocks.0.attention.self.relative_position_index"] = torch.zeros(
        (49, 49), dtype=torch.int64
    )
    return state | {"projection_head.weight": noise((OUT, 16), generator)}, model


def torchvision_name(name):
    """What transformers calls a weight of a ResNet, in torchvision's layout."""
    inner = {"convolution": "conv", "normalization": "bn"}
    stem = re.fullmatch(r"embedder\.embedder\.(\w+)\.(\w+)", name)
    if stem:
        return f"{inner[stem[1]]}1.{stem[2]}"
    block = re.fullmatch(r"encoder\.stages\.(\d)\.layers\.(\d)\.(.*)", name)
    layer = f"layer{int(block[1]) + 1}.{block[2]}"
    short = re.fullmatch(r"shortcut\.(\w+)\.(\w+)", block[3])
    if short:
        return f"{layer}.downsample.{'01'[short[1] == 'normalization']}.{short[2]}"
    deep = re.fullmatch(r"layer\.(\d)\.(\w+)\.(\w+)", block[3])
    return f"{layer}.{inner[deep[2]]}{int(deep[1]) + 1}.{deep[3]}"


def bert_shapes(prefix, rows):
    shapes = {
        f"{prefix}embeddings.word_embeddings.weight": (rows, WIDTH),
        f"{prefix}embeddings.position_embeddings.weight": (48, WIDTH),
        f"{prefix}embeddings.token_type_embeddings.weight": (2, WIDTH),
        **norm(f"{prefix}embeddings.LayerNorm", WIDTH),
    }
    for index in range(DEPTH):
        layer = f"{prefix}encoder.layer.{index}"
        shapes |= {
            **linear(f"{layer}.attention.self.query", WIDTH, WIDTH),
            **linear(f"{layer}.attention.self.key", WIDTH, WIDTH),
            **linear(f"{layer}.attention.self.value", WIDTH, WIDTH),
            **linear(f"{layer}.attention.output.dense", WIDTH, WIDTH),
            **norm(f"{layer}.attention.output.LayerNorm", WIDTH),
            **linear(f"{layer}.intermediate.dense", WIDTH, 32),
            **linear(f"{layer}.output.dense", 32, WIDTH),
            **norm(f"{layer}.output.LayerNorm", WIDTH),
        }
    return shapes


def norm(name, width):
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def linear(name, width, out):
    return {f"{name}.weight": (out, width), f"{name}.bias": (out,)}


def filled(shapes, generator):
    state = {key: noise(shape, generator) + 0.3 * ("norm" in key.lower()) for key, shape in shapes.items()}
    state["logit_scale"] = state["logit_scale"] + 2
    return state


# ---- folders ----


def save(kind: str, path: Path, *, seed: int = 0) -> Path:
    """Random weights of one kind in a folder."""
    generator = torch.Generator().manual_seed(seed)
    transformers.utils.logging.disable_progress_bar()
    path.mkdir(parents=True, exist_ok=True)
    MAKERS[kind](path, generator)
    return path


def _clip(path, generator):
    clip_model(clip_tokenizer(path), generator).save_pretrained(path)
    size = {"height": 32, "width": 32}
    write(path / "preprocessor_config.json", {
        "do_resize": True, "size": {"shortest_edge": 36}, "resample": 3, "do_center_crop": True, "crop_size": size,
        "do_normalize": True, "image_mean": MEAN, "image_std": STD,
    })  # fmt: skip


def _siglip(path, generator):
    siglip_model(siglip_tokenizer(path), generator).save_pretrained(path)
    write(path / "preprocessor_config.json", {
        "do_resize": True, "size": {"height": 32, "width": 32}, "resample": 2, "do_rescale": True,
        "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
    })  # fmt: skip


def _openai(path, generator):
    put(path, openai_state(clip_tokenizer(path, files=["tokenizer.json"]), generator))


def _open_clip(path, generator):
    put(path, openai_state(clip_tokenizer(path), generator), "open_clip_model.safetensors")
    model = {
        "embed_dim": OUT,
        "vision_cfg": {"image_size": 32, "layers": DEPTH, "width": WIDTH, "patch_size": 8, "head_width": 32},
        "text_cfg": {"context_length": 40, "width": WIDTH, "heads": 4, "layers": DEPTH},
    }
    write(
        path / "open_clip_config.json",
        {"model_cfg": model, "preprocess_cfg": {"mean": MEAN, "std": STD, "resize_mode": "squash"}},
    )


def _biomedclip(path, generator):
    put(path, biomedclip_state(bert_vocabulary(path), generator))
    vision = {
        "timm_model_name": "vit_base_patch16_224",
        "timm_pool": "",
        "timm_proj": "linear",
        "image_size": 32,
    }
    text = {"hf_pooler_type": "cls_last_hidden_state_pooler", "hf_proj_type": "mlp", "context_length": 30}
    write(
        path / "open_clip_config.json",
        {
            "model_cfg": {"embed_dim": OUT, "vision_cfg": vision, "text_cfg": text},
            "preprocess_cfg": {"mean": MEAN, "std": STD},
        },
    )


def _chexzero_320(path, generator):
    put(path, openai_state(clip_tokenizer(path), generator, patch=80, side=320, width=64))


def _medclip_resnet(path, generator):
    put(path, medclip_state(bert_vocabulary(path), generator, resnet_state(generator)[0]))


def _medclip_swin(path, generator):
    state = medclip_state(bert_vocabulary(path), generator, swin_state(generator, path)[0])
    (path / "config.json").unlink()
    put(path, state)


def put(path, state, name="model.safetensors"):
    save_file(
        {key: value.contiguous() for key, value in state.items()}, path / name, metadata={"format": "pt"}
    )


def write(path, said):
    path.write_text(json.dumps(said))


MAKERS = {
    "clip": _clip, "siglip": _siglip, "openai": _openai, "open_clip": _open_clip, "biomedclip": _biomedclip,
    "chexzero": _openai, "chexzero-320": _chexzero_320, "medclip-resnet": _medclip_resnet,
    "medclip-swin": _medclip_swin,
}  # fmt: skip

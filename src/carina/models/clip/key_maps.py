"""How published checkpoints name the weights of a vision transformer, and those of CLIP's text transformer.

Maps from our names to theirs, and nothing else.
"""

from collections.abc import Iterable
from typing import Final

from carina.models.clip.state_dict import Source
from carina.models.clip.vit import VitShape

_BOTH: Final = ("weight", "bias")
_QKV: Final = ("query", "key", "value")


def openai_vision(shape: VitShape, prefix: str = "visual.") -> dict[str, Source]:
    """OpenAI's CLIP, and open_clip's own vision transformer."""
    keys = {
        "patches.weight": Source(f"{prefix}conv1.weight"),
        "first": Source(f"{prefix}class_embedding"),
        "places": Source(f"{prefix}positional_embedding"),
        "projection.weight": Source(f"{prefix}proj", transposed=True),
        **_layer_keys("first_norm", f"{prefix}ln_pre"),
        **_layer_keys("norm", f"{prefix}ln_post"),
    }
    for index in range(shape.depth):
        ours, theirs = f"blocks.{index}", f"{prefix}transformer.resblocks.{index}"
        keys |= _layer_keys(f"{ours}.norm1", f"{theirs}.ln_1") | _layer_keys(
            f"{ours}.norm2", f"{theirs}.ln_2"
        )
        keys |= _attention_keys(f"{ours}.attention", f"{theirs}.attn")
        keys |= _layer_keys(f"{ours}.mlp.first", f"{theirs}.mlp.c_fc")
        keys |= _layer_keys(f"{ours}.mlp.second", f"{theirs}.mlp.c_proj")
    return keys


def timm_vision(
    shape: VitShape, prefix: str = "visual.trunk.", projection: str | None = "visual.head.proj.weight"
) -> dict[str, Source]:
    """timm's vision transformer, with the projection that open_clip puts behind it."""
    keys = {
        "places": Source(f"{prefix}pos_embed", lead=1),
        **_layer_keys("patches", f"{prefix}patch_embed.proj"),
    }
    keys |= _layer_keys("norm", f"{prefix}norm")
    if shape.class_token:
        keys["first"] = Source(f"{prefix}cls_token", lead=2)
    if projection is not None:
        keys["projection.weight"] = Source(projection)
    for index in range(shape.depth):
        ours, theirs = f"blocks.{index}", f"{prefix}blocks.{index}"
        keys |= _layer_keys(f"{ours}.norm1", f"{theirs}.norm1") | _layer_keys(
            f"{ours}.norm2", f"{theirs}.norm2"
        )
        for part, name in enumerate(_QKV):
            for kind in _BOTH:
                keys[f"{ours}.attention.{name}.{kind}"] = Source(f"{theirs}.attn.qkv.{kind}", part)
        keys |= _layer_keys(f"{ours}.attention.out", f"{theirs}.attn.proj")
        keys |= _layer_keys(f"{ours}.mlp.first", f"{theirs}.mlp.fc1")
        keys |= _layer_keys(f"{ours}.mlp.second", f"{theirs}.mlp.fc2")
    return keys


def transformers_clip_vision(shape: VitShape, prefix: str = "vision_model.") -> dict[str, Source]:
    """`CLIPModel` of transformers."""
    keys = {
        "patches.weight": Source(f"{prefix}embeddings.patch_embedding.weight"),
        "first": Source(f"{prefix}embeddings.class_embedding"),
        "places": Source(f"{prefix}embeddings.position_embedding.weight"),
        "projection.weight": Source("visual_projection.weight"),
        # Published under this misspelt name.
        **_layer_keys("first_norm", f"{prefix}pre_layrnorm"),
        **_layer_keys("norm", f"{prefix}post_layernorm"),
    }
    return keys | _transformers_blocks(range(shape.depth), prefix)


def transformers_siglip_vision(shape: VitShape, prefix: str = "vision_model.") -> dict[str, Source]:
    """`SiglipModel` of transformers, with the head that pools by attention."""
    keys = {
        "places": Source(f"{prefix}embeddings.position_embedding.weight"),
        "head.probe": Source(f"{prefix}head.probe"),
        **_layer_keys("patches", f"{prefix}embeddings.patch_embedding"),
        **_layer_keys("norm", f"{prefix}post_layernorm"),
        **_attention_keys("head.attention", f"{prefix}head.attention"),
        **_layer_keys("head.norm", f"{prefix}head.layernorm"),
        **_layer_keys("head.mlp.first", f"{prefix}head.mlp.fc1"),
        **_layer_keys("head.mlp.second", f"{prefix}head.mlp.fc2"),
    }
    return keys | _transformers_blocks(range(shape.depth), prefix)


def openai_text(depth: int, prefix: str = "") -> dict[str, Source]:
    """`CLIPTextModelWithProjection` of transformers from the weights of OpenAI's CLIP or open_clip."""
    keys = {
        "text_model.embeddings.token_embedding.weight": Source(f"{prefix}token_embedding.weight"),
        "text_model.embeddings.position_embedding.weight": Source(f"{prefix}positional_embedding"),
        "text_projection.weight": Source(f"{prefix}text_projection", transposed=True),
        **_layer_keys("text_model.final_layer_norm", f"{prefix}ln_final"),
    }
    for index in range(depth):
        ours = f"text_model.encoder.layers.{index}"
        theirs = f"{prefix}transformer.resblocks.{index}"
        keys |= _layer_keys(f"{ours}.layer_norm1", f"{theirs}.ln_1")
        keys |= _layer_keys(f"{ours}.layer_norm2", f"{theirs}.ln_2")
        for part, name in enumerate(("q_proj", "k_proj", "v_proj")):
            for kind in _BOTH:
                keys[f"{ours}.self_attn.{name}.{kind}"] = Source(f"{theirs}.attn.in_proj_{kind}", part)
        keys |= _layer_keys(f"{ours}.self_attn.out_proj", f"{theirs}.attn.out_proj")
        keys |= _layer_keys(f"{ours}.mlp.fc1", f"{theirs}.mlp.c_fc")
        keys |= _layer_keys(f"{ours}.mlp.fc2", f"{theirs}.mlp.c_proj")
    return keys


def _layer_keys(ours: str, theirs: str) -> dict[str, Source]:
    """Keys of the weight and the bias of a layer."""
    return {f"{ours}.{kind}": Source(f"{theirs}.{kind}") for kind in _BOTH}


def _attention_keys(ours: str, theirs: str) -> dict[str, Source]:
    """Keys of an attention in the form of torch's `MultiheadAttention`: query, key and value in one matrix."""
    keys = _layer_keys(f"{ours}.out", f"{theirs}.out_proj")
    for part, name in enumerate(_QKV):
        for kind in _BOTH:
            keys[f"{ours}.{name}.{kind}"] = Source(f"{theirs}.in_proj_{kind}", part)
    return keys


def _transformers_blocks(blocks: Iterable[int], prefix: str) -> dict[str, Source]:
    """Keys of the blocks that CLIP and SigLIP share in transformers."""
    keys: dict[str, Source] = {}
    for index in blocks:
        ours, theirs = f"blocks.{index}", f"{prefix}encoder.layers.{index}"
        keys |= _layer_keys(f"{ours}.norm1", f"{theirs}.layer_norm1")
        keys |= _layer_keys(f"{ours}.norm2", f"{theirs}.layer_norm2")
        for name, initial in zip(_QKV, "qkv", strict=True):
            keys |= _layer_keys(f"{ours}.attention.{name}", f"{theirs}.self_attn.{initial}_proj")
        keys |= _layer_keys(f"{ours}.attention.out", f"{theirs}.self_attn.out_proj")
        keys |= _layer_keys(f"{ours}.mlp.first", f"{theirs}.mlp.fc1")
        keys |= _layer_keys(f"{ours}.mlp.second", f"{theirs}.mlp.fc2")
    return keys

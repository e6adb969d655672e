"""CLIP in OpenAI's layout of weights, which open_clip shares, and BiomedCLIP in open_clip's.

What an open_clip_config.json does not say is read off the weights; without one a model is OpenAI's own, whose rules
are known. Imported only where torch and transformers are.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import transformers
from torch import nn

from carina.models.clip.dual_encoder import DualEncoder, vit_images
from carina.models.clip.interface import ClipModel
from carina.models.clip.key_maps import openai_text, openai_vision, timm_vision
from carina.models.clip.model_folder import OPEN_CLIP_CONFIG, ModelFolder
from carina.models.clip.preprocessing import preparation_from_open_clip
from carina.models.clip.state_dict import COUNTERS, Weights, freeze, map_same_names
from carina.models.clip.text import (
    HEAD,
    BertText,
    ClipText,
    bert_tokenizer,
    check_vocabulary,
    clip_tokenizer,
    count_heads,
    read_bert,
)
from carina.models.clip.vit import Pool, VitShape, VitTower
from carina.store.errors import CarinaError

ARCHIVED: Final = rf"({COUNTERS}|input_resolution|context_length|vocab_size)"
"""Numbers that OpenAI's archives hold in addition to the weights."""
_POOLS: Final[dict[str, Pool]] = {"tok": "class", "avg": "mean"}
_REFUSED: Final = {
    "vision_cfg": ("attentional_pool", "final_ln_after_pool", "no_ln_pre", "block_type"),
    "text_cfg": ("no_causal_mask", "embed_cls", "proj_bias", "final_ln_after_pool"),
}
"""Options of open_clip that change the computation and that no model here uses."""
BIOMED_BERT: Final = "microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract"


@dataclass(frozen=True)
class Settings:
    """Settings of open_clip_config.json."""

    folder: ModelFolder
    vision: dict[str, Any]
    text: dict[str, Any]
    preprocess: dict[str, Any]
    quick_gelu: bool
    shifted: bool
    """Whether scores were trained with a bias, as SigLIP's are."""

    @classmethod
    def of(cls, folder: ModelFolder) -> "Settings":
        said = folder.read(OPEN_CLIP_CONFIG)
        model = said.get("model_cfg", {})
        made = cls(
            folder,
            model.get("vision_cfg", {}),
            model.get("text_cfg", {}),
            said.get("preprocess_cfg", {}),
            # open_clip's own models use the exact GELU unless they say otherwise; OpenAI's never do.
            bool(model.get("quick_gelu", not said)),
            model.get("init_logit_bias") is not None,
        )
        for part, options in _REFUSED.items():
            for option in options:
                if model.get(part, {}).get(option):
                    raise made.config_error(
                        f"model_cfg.{part}.{option}", model[part][option], "an option that is known"
                    )
        return made

    def config_error(self, field: str, value: object, expected: str) -> CarinaError:
        """The error about a value in the configuration file."""
        return CarinaError(
            f"{self.folder.path / OPEN_CLIP_CONFIG}: {field} is {value!r}; expected {expected}"
        )


def open_openai_layout(folder: ModelFolder, weights: Weights) -> ClipModel:
    """Open a ViT of OpenAI's CLIP or of open_clip."""
    settings = Settings.of(folder)
    tower = openai_tower(settings, weights)
    text = openai_text_tower(settings, weights)
    scale = weights.number("logit_scale").exp().item()
    shifted = settings.shifted or weights.has("logit_bias")
    shift = weights.number("logit_bias").item() if shifted else 0.0
    weights.close(ARCHIVED)
    return DualEncoder(
        folder=folder,
        preparation=preparation_from_open_clip(
            folder.path / OPEN_CLIP_CONFIG, settings.preprocess, tower.shape.side
        ),
        image=vit_images(tower),
        text=text,
        tower=tower,
        grid=tower.grid,
        scale=scale,
        shift=shift,
        exact=tower.shape.pool == "mean",
    )


def open_biomedclip(folder: ModelFolder, weights: Weights) -> ClipModel:
    """Open BiomedCLIP: timm's vision transformer and a BERT."""
    settings = Settings.of(folder)
    tower = timm_tower(settings, weights)
    said = settings.text
    if said.get("hf_pooler_type", "cls_last_hidden_state_pooler") != "cls_last_hidden_state_pooler":
        raise settings.config_error(
            "model_cfg.text_cfg.hf_pooler_type", said["hf_pooler_type"], "cls_last_hidden_state_pooler"
        )
    model = read_bert(weights, "text.transformer.")
    inner, _ = weights.shape("text.proj.0.weight", 2)
    out, _ = weights.shape("text.proj.2.weight", 2)
    projection = nn.Sequential(
        nn.Linear(model.config.hidden_size, inner, bias=False), nn.GELU(), nn.Linear(inner, out, bias=False)
    )
    weights.fill(projection, map_same_names(projection, "text.proj."))
    scale = weights.number("logit_scale").exp().item()
    weights.close()
    tokenizer = bert_tokenizer(folder, BIOMED_BERT)
    check_vocabulary(folder, tokenizer, model.config.vocab_size)
    # Published for 256 tokens, of the 512 that its BERT has places for.
    longest = min(int(said.get("context_length", 256)), model.config.max_position_embeddings)
    return DualEncoder(
        folder=folder,
        preparation=preparation_from_open_clip(
            folder.path / OPEN_CLIP_CONFIG, settings.preprocess, tower.shape.side
        ),
        image=vit_images(tower),
        text=BertText(tokenizer, model, freeze(projection), longest),
        tower=tower,
        grid=tower.grid,
        trained_on="biomedical",
        scale=scale,
    )


def openai_tower(settings: Settings, weights: Weights) -> VitTower:
    """The vision transformer under `visual.`."""
    said = settings.vision
    patches = "visual.conv1.weight"
    width, _, patch, _ = weights.shape(patches, 4)
    pool = said.get("pool_type", "tok")
    if pool not in _POOLS:
        raise settings.config_error("model_cfg.vision_cfg.pool_type", pool, " or ".join(_POOLS))
    shape = VitShape(
        side=_side(settings, weights, "visual.positional_embedding", patch, axis=0),
        patch=patch,
        width=width,
        depth=weights.count(r"visual\.transformer\.resblocks\.(\d+)\..*"),
        heads=count_heads(weights, patches, width, said.get("head_width", HEAD)),
        hidden=weights.shape("visual.transformer.resblocks.0.mlp.c_fc.weight", 2)[0],
        out=weights.shape("visual.proj", 2)[1],
        pool=_POOLS[pool],
        patch_bias=False,
        first_norm=True,
        activation="quick_gelu" if settings.quick_gelu else "gelu",
        epsilon=1e-5,
    )
    tower = VitTower(shape)
    weights.fill(tower, openai_vision(shape))
    return freeze(tower)


def openai_text_tower(settings: Settings, weights: Weights) -> ClipText:
    """The text transformer, at the top or under `text.`."""
    said = settings.text
    if said.get("pool_type", "argmax") not in {"argmax", "eos"}:
        raise settings.config_error("model_cfg.text_cfg.pool_type", said["pool_type"], "argmax or eos")
    prefix = "text." if weights.has("text.") else ""
    words = f"{prefix}token_embedding.weight"
    rows, width = weights.shape(words, 2)
    depth = weights.count(rf"{prefix}transformer\.resblocks\.(\d+)\..*")
    tokenizer = clip_tokenizer(settings.folder)
    check_vocabulary(settings.folder, tokenizer, rows)
    model = transformers.CLIPTextModelWithProjection(
        transformers.CLIPTextConfig(
            vocab_size=rows,
            hidden_size=width,
            intermediate_size=weights.shape(f"{prefix}transformer.resblocks.0.mlp.c_fc.weight", 2)[0],
            projection_dim=weights.shape(f"{prefix}text_projection", 2)[1],
            num_hidden_layers=depth,
            num_attention_heads=int(said.get("heads") or count_heads(weights, words, width)),
            max_position_embeddings=weights.shape(f"{prefix}positional_embedding", 2)[0],
            hidden_act="quick_gelu" if settings.quick_gelu else "gelu",
            layer_norm_eps=1e-5,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    weights.fill(model, openai_text(depth, prefix))
    return ClipText(tokenizer, freeze(model))


def timm_tower(settings: Settings, weights: Weights) -> VitTower:
    """The vision transformer under `visual.trunk.`."""
    patches = "visual.trunk.patch_embed.proj.weight"
    width, _, patch, _ = weights.shape(patches, 4)
    shape = VitShape(
        side=_side(settings, weights, "visual.trunk.pos_embed", patch, axis=1),
        patch=patch,
        width=width,
        depth=weights.count(r"visual\.trunk\.blocks\.(\d+)\..*"),
        heads=count_heads(weights, patches, width),
        hidden=weights.shape("visual.trunk.blocks.0.mlp.fc1.weight", 2)[0],
        out=weights.shape("visual.head.proj.weight", 2)[0],
    )
    tower = VitTower(shape)
    weights.fill(tower, timm_vision(shape))
    return freeze(tower)


def _side(settings: Settings, weights: Weights, key: str, patch: int, *, axis: int) -> int:
    """Side of the input, from the number of positions: a class token and a square of patches."""
    places = weights.shape(key, axis + 2)[axis] - 1
    side = math.isqrt(places) * patch
    if not places or math.isqrt(places) ** 2 != places:
        raise CarinaError(
            f"{weights.where}: weight {key} has {places + 1} places; expected a square number and one"
        )
    said = settings.vision.get("image_size", side)
    if said not in (side, [side, side]):
        raise settings.config_error(
            "model_cfg.vision_cfg.image_size", said, f"{side}, for which the weights have places"
        )
    return side

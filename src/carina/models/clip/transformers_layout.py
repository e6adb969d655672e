"""CLIP and SigLIP in the layout in which transformers publishes them: XrayCLIP, XraySigLIP, MedSigLIP are such.

Imported only where torch and transformers are.
"""

from typing import Any, Final

import transformers

from carina.models.clip.dual_encoder import DualEncoder, vit_images
from carina.models.clip.interface import ClipModel
from carina.models.clip.key_maps import transformers_clip_vision, transformers_siglip_vision
from carina.models.clip.model_folder import ModelFolder
from carina.models.clip.openclip import open_openai_layout
from carina.models.clip.preprocessing import preparation_from_transformers
from carina.models.clip.state_dict import Weights, freeze, map_same_names
from carina.models.clip.text import ClipText, SiglipText, check_vocabulary, clip_tokenizer, siglip_tokenizer
from carina.models.clip.vit import Activation, Pool, VitShape, VitTower
from carina.models.weights import CONFIG
from carina.store.errors import CarinaError

_ACTIVATIONS: Final[dict[str, Activation]] = {
    "quick_gelu": "quick_gelu",
    "gelu": "gelu",
    "gelu_pytorch_tanh": "gelu_tanh",
}


def open_clip(folder: ModelFolder, weights: Weights) -> ClipModel:
    """Open a CLIP in either layout, recognised by its weights."""
    if weights.has("visual.trunk."):
        raise CarinaError(
            f"{weights.where}: has timm's vision transformer; name it biomedclip:PATH, whose layout that is"
        )
    if weights.has("visual.") and not weights.has("vision_model."):
        return open_openai_layout(folder, weights)
    config = _config(folder, "clip", transformers.CLIPConfig)
    shape = _shape(folder, config.vision_config, pool="class", out=config.projection_dim)
    tower = weights.make(lambda: VitTower(shape))
    weights.fill(tower, transformers_clip_vision(shape))
    config.text_config.projection_dim = config.projection_dim
    text = weights.make(lambda: transformers.CLIPTextModelWithProjection(config.text_config))
    weights.fill(text, map_same_names(text))
    scale = weights.number("logit_scale").exp().item()
    weights.close()
    tokenizer = clip_tokenizer(folder)
    check_vocabulary(folder, tokenizer, config.text_config.vocab_size)
    return _dual(folder, freeze(tower), ClipText(tokenizer, freeze(text)), scale, 0.0)


def open_siglip(folder: ModelFolder, weights: Weights) -> ClipModel:
    """Open a `SiglipModel` of the first version."""
    config = _config(folder, "siglip", transformers.SiglipConfig)
    shape = _shape(folder, config.vision_config, pool="attention", out=None)
    tower = weights.make(lambda: VitTower(shape))
    weights.fill(tower, transformers_siglip_vision(shape))
    text = weights.make(lambda: transformers.SiglipTextModel(config.text_config))
    weights.fill(text, map_same_names(text, "text_model."))
    scale, shift = weights.number("logit_scale").exp().item(), weights.number("logit_bias").item()
    weights.close()
    tokenizer = siglip_tokenizer(folder)
    check_vocabulary(folder, tokenizer, config.text_config.vocab_size)
    return _dual(folder, freeze(tower), SiglipText(tokenizer, freeze(text)), scale, shift)


def _dual(
    folder: ModelFolder, tower: VitTower, text: ClipText | SiglipText, scale: float, shift: float
) -> DualEncoder:
    return DualEncoder(
        folder=folder,
        preparation=preparation_from_transformers(
            folder.path, folder.checkpoint.preparation, tower.shape.side
        ),
        image=vit_images(tower),
        text=text,
        tower=tower,
        grid=tower.grid,
        scale=scale,
        shift=shift,
    )


def _config(folder: ModelFolder, kind: str, made: Any) -> Any:  # noqa: ANN401 - transformers is not there for everybody
    said = folder.read(CONFIG)
    if said.get("model_type") != kind:
        raise CarinaError(
            f"{folder.path / CONFIG}: model_type {said.get('model_type')!r}; expected {kind!r}, "
            "the config.json that is published with the weights"
        )
    try:
        return made.from_dict(said)
    except Exception as error:
        # Whatever transformers raises on foreign settings, the place to look is this file.
        what = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise CarinaError(f"{folder.path / CONFIG}: not understood by transformers: {what}") from error


def _shape(folder: ModelFolder, vision: Any, *, pool: Pool, out: int | None) -> VitShape:  # noqa: ANN401
    if vision.hidden_act not in _ACTIVATIONS:
        raise CarinaError(
            f"{folder.path / CONFIG}: vision_config has the activation {vision.hidden_act!r}; "
            f"known are {', '.join(_ACTIVATIONS)}"
        )
    clip = pool == "class"
    return VitShape(
        side=vision.image_size,
        patch=vision.patch_size,
        width=vision.hidden_size,
        depth=vision.num_hidden_layers,
        heads=vision.num_attention_heads,
        hidden=vision.intermediate_size,
        out=out,
        pool=pool,
        class_token=clip,
        patch_bias=not clip,
        first_norm=clip,
        activation=_ACTIVATIONS[vision.hidden_act],
        epsilon=vision.layer_norm_eps,
    )

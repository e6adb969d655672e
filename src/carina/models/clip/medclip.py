"""MedCLIP: a ResNet-50 or a Swin transformer, and Bio_ClinicalBERT.

Both image towers end in a mean over places and a matrix without bias, so each place's share of the unnormalised score
is known exactly. Imported only where torch and transformers are.
"""

import math
import re
from functools import partial
from typing import Any, Final

import transformers
from torch import Tensor, nn

from carina.models.clip.dual_encoder import DualEncoder, ImageTower
from carina.models.clip.interface import ClipModel, Images
from carina.models.clip.model_folder import ModelFolder
from carina.models.clip.preprocessing import Preparation, square_first
from carina.models.clip.resnet import ResNetShape, ResNetTower, to_patches
from carina.models.clip.state_dict import COUNTERS, Source, Weights, freeze, map_same_names
from carina.models.clip.text import MeanBertText, bert_tokenizer, check_vocabulary, read_bert

SIDE: Final = 224
MEAN: Final = 0.5862785803043838
STD: Final = 0.27950088968644304
LONGEST: Final = 77
"""Tokens of a prompt."""
HOTTEST: Final = 4.6052
"""Upper limit of the logarithm of the trained scale; the lower limit is 0."""
CLINICAL_BERT: Final = "emilyalsentzer/Bio_ClinicalBERT"
_IGNORED: Final = rf"({COUNTERS}|.*\.relative_position_index)"
_SWIN: Final = "vision_model.model."
_RENAMED: Final = {
    ".attention.q_proj.": ".attention.self.query.",
    ".attention.k_proj.": ".attention.self.key.",
    ".attention.v_proj.": ".attention.self.value.",
    ".attention.o_proj.": ".attention.output.dense.",
    ".attention.relative_position_bias.": ".attention.self.",
    ".mlp.fc1.": ".intermediate.dense.",
    ".mlp.fc2.": ".output.dense.",
}
"""Names of the parts of a Swin in current transformers, and in published checkpoints."""


def open_model(folder: ModelFolder, weights: Weights) -> ClipModel:
    """Open MedCLIP with a Swin or a ResNet, recognised by the weights."""
    image, grid, tower = (
        _read_swin_tower(weights) if weights.has(f"{_SWIN}encoder.") else _read_resnet_tower(weights)
    )
    model = read_bert(weights, "text_model.model.", pooler=True)
    projection = _read_matrix(weights, "text_model.projection_head.weight")
    scale = weights.number("logit_scale").clamp(0, HOTTEST).exp().item()
    weights.close(_IGNORED)
    tokenizer = bert_tokenizer(folder, CLINICAL_BERT)
    check_vocabulary(folder, tokenizer, model.config.vocab_size)
    return DualEncoder(
        folder=folder,
        preparation=Preparation(
            fit=partial(square_first, least=SIDE),
            side=SIDE,
            resample="pil bicubic",
            again="pil bicubic",
            mean=(MEAN,) * 3,
            std=(STD,) * 3,
        ),
        image=image,
        text=MeanBertText(tokenizer, model, projection, min(LONGEST, model.config.max_position_embeddings)),
        tower=tower,
        grid=grid,
        trained_on="chest x-ray",
        scale=scale,
        exact=True,
    )


def _read_resnet_tower(weights: Weights) -> tuple[ImageTower, tuple[int, int], ResNetTower]:
    stages = tuple(weights.count(rf"vision_model\.model\.layer{stage}\.(\d+)\..*") for stage in (1, 2, 3, 4))
    tower = ResNetTower(ResNetShape(blocks=stages, width=weights.shape(f"{_SWIN}conv1.weight", 4)[0]))
    weights.fill(tower, map_same_names(tower, _SWIN))
    head = _read_matrix(weights, f"{_SWIN}fc.weight")
    freeze(tower)

    def encode(pixels: Tensor) -> Images:
        return _average_patches(head(to_patches(tower(pixels).last)))

    return encode, tower.grid(SIDE, 4), tower


def _read_swin_tower(weights: Weights) -> tuple[ImageTower, tuple[int, int], None]:
    width, _, patch, _ = weights.shape(f"{_SWIN}embeddings.patch_embeddings.projection.weight", 4)
    stages = weights.count(rf"{re.escape(_SWIN)}encoder\.layers\.(\d+)\..*")
    first = f"{_SWIN}encoder.layers.{{}}.blocks.0"
    tables = [
        weights.shape(f"{first.format(stage)}.attention.self.relative_position_bias_table", 2)
        for stage in range(stages)
    ]
    config = transformers.SwinConfig(
        image_size=SIDE,
        patch_size=patch,
        embed_dim=width,
        depths=[
            weights.count(rf"{re.escape(_SWIN)}encoder\.layers\.{stage}\.blocks\.(\d+)\..*")
            for stage in range(stages)
        ],
        num_heads=[heads for _, heads in tables],
        # A window of w places has 2w - 1 distances along each axis.
        window_size=(math.isqrt(tables[0][0]) + 1) // 2,
        mlp_ratio=weights.shape(f"{first.format(0)}.intermediate.dense.weight", 2)[0] / width,
    )
    model = transformers.SwinModel(config, add_pooling_layer=False)
    weights.fill(model, {name: Source(_SWIN + _published_name(name)) for name in map_same_names(model)})
    head = _read_matrix(weights, "vision_model.projection_head.weight")
    freeze(model)
    length = SIDE // patch >> (stages - 1)

    def encode(pixels: Tensor) -> Images:
        return _average_patches(head(model(pixels).last_hidden_state).unflatten(1, (length, length)))

    return encode, (length, length), None


def _published_name(name: str) -> str:
    for ours, theirs in _RENAMED.items():
        name = name.replace(ours, theirs)
    return name


def _average_patches(patches: Tensor) -> Images:
    return Images(patches.mean((1, 2)), patches)


def _read_matrix(weights: Weights, key: str) -> Any:  # noqa: ANN401 - torch is not there for everybody
    """Read a projection without bias."""
    out, width = weights.shape(key, 2)
    made = nn.Linear(width, out, bias=False)
    weights.fill(made, {"weight": Source(key)})
    return freeze(made)

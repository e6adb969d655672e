"""BioViL and BioViL-T of hi-ml-multimodal: a ResNet-50 with a projection of every place, and CXR-BERT.

An image is the mean of its projected patches, so a map adds up to the score before its norms. BioViL-T compares with
a prior image; for one image alone, it puts a learned vector in the place of the comparison. Weights are
named as in hi-ml's code, which loads them without exceptions; CXR-BERT's as its model class names them. Neither file
was at hand. No code of the hub is run. Imported only where torch and transformers are.
"""

from functools import partial
from typing import Final

import torch
from torch import Tensor, nn

from carina.models.clip.dual_encoder import DualEncoder, ImageTower
from carina.models.clip.grey_levels import stretch_grey_levels
from carina.models.clip.interface import ClipModel, Images
from carina.models.clip.model_folder import ModelFolder
from carina.models.clip.preprocessing import Preparation, crop_to_even
from carina.models.clip.resnet import ResNetTower, read_resnet, to_patches
from carina.models.clip.state_dict import COUNTERS, Source, Weights, freeze, map_same_names, read_pointwise
from carina.models.clip.text import BertText, bert_tokenizer, check_vocabulary, read_bert

SHORTEST: Final = 512
SIDE: Final = 480
SIDE_T: Final = 448
PAIR: Final = ("Findings suggesting {}", "No evidence of {}")
"""The prompts that the publication uses for pneumonia."""
CXR_BERT: Final = "microsoft/BiomedVLP-CXR-BERT-specialized"
CXR_BERT_T: Final = "microsoft/BiomedVLP-BioViL-T"
_NO_PRIOR: Final = "encoder.missing_previous_emb"
_UNUSED: Final = rf"({COUNTERS}|encoder\.encoder\.fc\..*|encoder\.vit_pooler\..*|bert\.pooler\..*|cls\..*)"
"""Unused weights: ImageNet's classes, the comparison of two images, and the masked language model."""


def open_model(folder: ModelFolder, weights: Weights) -> ClipModel:
    """BioViL."""
    tower, project = read_resnet(weights, "encoder.encoder."), _read_projector(weights)

    def encode(pixels: Tensor) -> Images:
        return _average_patches(project(tower(pixels).last))

    return _make_model(folder, weights, tower, encode, side=SIDE, published=CXR_BERT)


def open_temporal(folder: ModelFolder, weights: Weights) -> ClipModel:
    """BioViL-T, for an image without a prior image."""
    tower, project = read_resnet(weights, "encoder.encoder."), _read_projector(weights)
    narrow = read_pointwise(weights, "encoder.backbone_to_vit.", tower.shape.channels(4), bias=False)
    expected = (1, narrow.out_channels, 1, 1)
    if weights.shape(_NO_PRIOR, 4) != expected:
        raise weights.shape_error(_NO_PRIOR, str(expected))
    nothing_before = weights.take(_NO_PRIOR)

    def encode(pixels: Tensor) -> Images:
        static = narrow(tower(pixels).last)
        return _average_patches(project(torch.cat([static, nothing_before.expand_as(static)], dim=1)))

    return _make_model(folder, weights, tower, encode, side=SIDE_T, published=CXR_BERT_T)


def _make_model(
    folder: ModelFolder, weights: Weights, tower: ResNetTower, image: ImageTower, *, side: int, published: str
) -> ClipModel:
    model = read_bert(weights, "bert.")
    projection = _read_text_projection(weights, model.config.hidden_size)
    weights.close(_UNUSED)
    tokenizer = bert_tokenizer(folder, published)
    check_vocabulary(folder, tokenizer, model.config.vocab_size)
    return DualEncoder(
        folder=folder,
        preparation=Preparation(
            fit=partial(crop_to_even, shortest=SHORTEST, side=side),
            side=side,
            resample="pil bilinear",
            mean=(0.0, 0.0, 0.0),
            std=(1.0, 1.0, 1.0),
            tone=stretch_grey_levels,
        ),
        image=image,
        text=BertText(tokenizer, model, projection, model.config.max_position_embeddings),
        tower=tower,
        grid=tower.grid(side, 4),
        trained_on="chest x-ray",
        pair=PAIR,
        exact=True,
    )


def _average_patches(features: Tensor) -> Images:
    patches = to_patches(features)
    return Images(patches.mean((1, 2)), patches)


def _read_projector(weights: Weights) -> nn.Module:
    """Read the projection: two pointwise layers, the first without bias and with batch norm."""
    prefix = "projector.model."
    (inner, width, _, _), (out, _, _, _) = (weights.shape(f"{prefix}{layer}.weight", 4) for layer in (0, 3))
    made = nn.Sequential(
        nn.Conv2d(width, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(), nn.Conv2d(inner, out, 1)
    )
    weights.fill(made, map_same_names(made, prefix))
    return freeze(made)


def _read_text_projection(weights: Weights, width: int) -> nn.Module:
    names = ("dense_to_hidden", None, "LayerNorm", "dense_to_output")
    inner, _ = weights.shape("cls_projection_head.dense_to_hidden.weight", 2)
    out, _ = weights.shape("cls_projection_head.dense_to_output.weight", 2)
    made = nn.Sequential(
        nn.Linear(width, inner), nn.GELU(), nn.LayerNorm(inner, eps=1e-12), nn.Linear(inner, out)
    )
    keys = {
        f"{index}.{part}": Source(f"cls_projection_head.{name}.{part}")
        for index, name in enumerate(names)
        if name is not None
        for part in ("weight", "bias")
    }
    weights.fill(made, keys)
    return freeze(made)

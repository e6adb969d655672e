"""CARZero: a vision transformer and a BERT, joined by one decoder that is used in both directions.

A prompt attends to the image, and the image to the prompt; the score is the mean of both. The map is that of the
first way, whose first key is the whole image and no patch. Weights are named as in its code, where the norm before
the decoder and the one behind it are one and are saved twice; the file itself was not at hand. Imported only where
torch and transformers are.
"""

import math
from functools import partial
from typing import Final

import torch
from torch import Tensor, nn

from carina.models.clip.dual_encoder import DualEncoder
from carina.models.clip.gloria_text import MergedBertText
from carina.models.clip.interface import Attention, ClipModel, Images, Texts
from carina.models.clip.key_maps import timm_vision
from carina.models.clip.model_folder import ModelFolder
from carina.models.clip.preprocessing import Preparation
from carina.models.clip.query_decoder import (
    DecoderImages,
    QueryDecoder,
    attention_on_grid,
    memory_of,
    read_decoder,
)
from carina.models.clip.state_dict import COUNTERS, Source, Weights, freeze
from carina.models.clip.text import bert_tokenizer, check_vocabulary, count_heads, read_bert
from carina.models.clip.vit import VitShape, VitTower
from carina.models.frame import Frame
from carina.store.errors import CarinaError

LONGEST: Final = 256
MEAN: Final = 0.4978
STD: Final = 0.2449
PAIR: Final = ("There is {}",)
"""The positive prompt; there is no negative prompt."""
MPBERT: Final = "Laihaoran/BioClinicalMPBERT"
_IMAGE: Final = "CARZero.img_encoder.model."
_FUSION: Final = "CARZero.fusion_module."
_UNUSED: Final = (
    rf"({COUNTERS}|CARZero\.fusion_module\.(logit_scale|decoder\.layers\.\d+\.(self_attn|norm1)\..*))"
)
"""Weights that are saved but not used."""


def open_model(folder: ModelFolder, weights: Weights) -> ClipModel:
    tower = _read_tower(weights)
    model = read_bert(weights, "CARZero.text_encoder.model.", pooler=True)
    decoder = read_decoder(
        weights, f"{_FUSION}decoder.", self_attention=False, input_norm=f"{_FUSION}decoder_norm"
    )
    head = _read_head(weights)
    weights.close(_UNUSED)
    tokenizer = bert_tokenizer(folder, MPBERT)
    check_vocabulary(folder, tokenizer, model.config.vocab_size)

    def encode(pixels: Tensor) -> Images:
        tokens = tower.finish(tower(pixels))
        # There are no patches in the space of texts: only the decoder combines image and text.
        return DecoderImages(tokens[:, 0], None, tokens)

    def attend(images: Images, texts: Texts) -> Attention:
        _, weights = _decode_queries(decoder, texts.pooled, memory_of(images))
        return attention_on_grid(weights, tower.grid, before=1)

    def score(images: Images, texts: Texts) -> Tensor:
        to_images, _ = _decode_queries(decoder, texts.pooled, memory_of(images))
        to_texts, _ = _decode_queries(
            decoder, images.pooled, torch.cat([texts.pooled[:, None], _words_of(texts)], dim=1)
        )
        return (head(to_images)[..., 0] + head(to_texts)[..., 0].T) / 2

    return DualEncoder(
        folder=folder,
        preparation=Preparation(
            fit=partial(Frame.letterboxed, longest=LONGEST, side=tower.shape.side),
            side=tower.shape.side,
            resample="cv2 area",
            mean=(MEAN,) * 3,
            std=(STD,) * 3,
        ),
        image=encode,
        text=MergedBertText(tokenizer, model),
        tower=tower,
        grid=tower.grid,
        trained_on="chest x-ray",
        pair=PAIR,
        native="cross-attention",
        scoring=score,
        attending=attend,
    )


def _decode_queries(decoder: QueryDecoder, queries: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
    """Decode every query (q, d) with each of n memories (n, k, d); output and attention weights."""
    decoded, weights = decoder(queries.expand(len(memory), -1, -1), memory)
    return decoded, weights


def _words_of(texts: Texts) -> Tensor:
    if texts.words is None:
        raise TypeError("expected texts of `encode_text` of this model")
    return texts.words


def _read_tower(weights: Weights) -> VitTower:
    patches = f"{_IMAGE}patch_embed.proj.weight"
    width, _, patch, _ = weights.shape(patches, 4)
    places = weights.shape(f"{_IMAGE}pos_embed", 3)[1] - 1
    if not places or math.isqrt(places) ** 2 != places:
        raise CarinaError(
            f"{weights.where}: weight {_IMAGE}pos_embed has {places + 1} places; expected a square number and one"
        )
    shape = VitShape(
        side=math.isqrt(places) * patch,
        patch=patch,
        width=width,
        depth=weights.count(r"CARZero\.img_encoder\.model\.blocks\.(\d+)\..*"),
        heads=count_heads(weights, patches, width),
        hidden=weights.shape(f"{_IMAGE}blocks.0.mlp.fc1.weight", 2)[0],
    )
    tower = VitTower(shape)
    weights.fill(tower, timm_vision(shape, _IMAGE, projection=None))
    return freeze(tower)


def _read_head(weights: Weights) -> nn.Module:
    """Four layers with one output; the published indices also count the rectifiers and dropout between them."""
    names = [f"{_FUSION}mlp_head.{index}" for index in (0, 3, 6, 9)]
    layers: list[nn.Module] = []
    keys: dict[str, Source] = {}
    for name in names:
        out, width = weights.shape(f"{name}.weight", 2)
        keys |= {f"{len(layers)}.{part}": Source(f"{name}.{part}") for part in ("weight", "bias")}
        layers += [nn.Linear(width, out), nn.ReLU()]
    head = nn.Sequential(*layers[:-1])
    weights.fill(head, keys)
    return freeze(head)

"""MedKLIP: a ResNet-50 cut after its third stage, and a decoder with a fixed list of observations as queries.

A query is the description of an observation, read by a frozen Bio_ClinicalBERT whose weights are not in the
checkpoint. All are always decoded together, for they attend to each other; a finding is one of them. Weights are named
as in its code, by which its checkpoint is loaded without exceptions; the file itself was not at hand. Imported only
where torch and transformers are.
"""

from functools import partial
from typing import Final

from torch import Tensor

from carina.models.clip.dual_encoder import DualEncoder
from carina.models.clip.fixed_queries import BERT_UNUSED, make_fixed_texts, read_texts
from carina.models.clip.grey_levels import equalise_grey_levels
from carina.models.clip.interface import ClipModel, Images, Texts
from carina.models.clip.model_folder import ModelFolder
from carina.models.clip.observations import find_observation, read_descriptions
from carina.models.clip.preprocessing import IMAGENET_MEAN, IMAGENET_STD, Preparation
from carina.models.clip.query_decoder import (
    DecoderImages,
    DecoderOutput,
    decoder_functions,
    memory_of,
    places_of,
    presence_logits,
    read_decoder,
)
from carina.models.clip.resnet import read_resnet, to_patches
from carina.models.clip.state_dict import Weights, read_linear
from carina.models.frame import Frame

SIDE: Final = 224
PAIR: Final = ("{}",)
"""The positive prompt is the observation; there is no negative prompt."""
_UNUSED: Final = rf"({BERT_UNUSED}|cl_fc\..*)"
"""Weights that are not used; the last pattern is for training."""


def open_model(folder: ModelFolder, weights: Weights) -> ClipModel:
    known = read_descriptions(folder)
    tower = read_resnet(weights, "res_features.", numbered=True)
    first = read_linear(weights, "res_l1.", tower.shape.channels(3))
    second = read_linear(weights, "res_l2.", first.out_features)
    decoder = read_decoder(weights, "decoder.")
    head = read_linear(weights, "classifier.", decoder.shape.width)
    texts = read_texts(folder, weights, list(known.values()))
    queries = read_linear(weights, "disease_embedding_layer.", texts.shape[-1])(texts)
    weights.close(_UNUSED)

    def encode(pixels: Tensor) -> Images:
        patches = second(first(to_patches(tower(pixels).layer3)).relu()).flatten(1, 2)
        # No patches in the space of texts: only the decoder brings the two together.
        return DecoderImages(patches.mean(1), None, patches)

    def decode(images: Images, texts: Texts) -> DecoderOutput:
        memory, own = memory_of(images), list(places_of(texts))
        found, seen = decoder(queries.expand(len(memory), -1, -1), memory)
        return DecoderOutput(presence_logits(head(found[:, own])), seen[:, own])

    grid = tower.grid(SIDE, 3)
    score, attend = decoder_functions(decode, grid)
    return DualEncoder(
        folder=folder,
        preparation=Preparation(
            fit=partial(Frame.stretched, side=SIDE),
            side=SIDE,
            resample="pil bilinear",
            mean=IMAGENET_MEAN,
            std=IMAGENET_STD,
            tone=equalise_grey_levels,
        ),
        image=encode,
        text=make_fixed_texts(known, queries),
        tower=tower,
        grid=grid,
        trained_on="chest x-ray",
        pair=PAIR,
        native="cross-attention",
        scoring=score,
        attending=attend,
        called=partial(find_observation, known=known),
    )

"""MAVL: as MedKLIP, but every observation is asked for by its description and by eight sentences on its looks.

A finding's map is the mean over four of these nine queries, its score comes from all. Of its image towers the
ResNet-50 is read, which its published settings name. Images are taken as they are, as it takes PNG files; DICOM files
it equalises as MedKLIP does. Weights are named as in its code; the file itself was not at hand. Imported only where
torch and transformers are.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from torch import Tensor, nn

from carina.models.clip.dual_encoder import DualEncoder
from carina.models.clip.fixed_queries import BERT_UNUSED, make_fixed_texts, read_texts
from carina.models.clip.interface import ClipModel, Images, Texts
from carina.models.clip.model_folder import CONCEPTS, ModelFolder
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
from carina.models.clip.state_dict import Source, Weights, freeze, read_linear, read_pointwise
from carina.models.frame import Frame
from carina.store.errors import CarinaError

SIDE: Final = 224
PAIR: Final = ("{}",)
"""The positive prompt is the observation; there is no negative prompt."""
ASPECTS: Final = ("border", "fluid", "location", "opacity", "other", "patterns", "shape", "texture")
"""Aspects in the order of their sentences, after the description."""
MAP_QUERIES: Final = (0, 6, 7, 8)
"""Queries whose attention is averaged for a map: the description, patterns, shape and texture."""
_UNUSED: Final = rf"({BERT_UNUSED}|temp|location_emb\..*|pool\..*)"
"""Weights that only training uses: temperatures, locations of findings, and the pooled image."""


def open_model(folder: ModelFolder, weights: Weights) -> ClipModel:
    known = read_descriptions(folder)
    sentences = _read_sentences(folder, known)
    tower = read_resnet(weights, "backbone.", numbered=True)
    first = read_pointwise(weights, "res_l1.0.", tower.shape.channels(3), bias=True)
    slope = _read_prelu(weights, "res_l1.1.weight")
    second = read_pointwise(weights, "res_l2.", first.out_channels, bias=True)
    decoder = read_decoder(weights, "decoder.", self_attention=weights.has("decoder.layers.0.self_attn."))
    each = 1 + len(ASPECTS)
    head = read_linear(weights, "classifier.", each * decoder.shape.width)
    texts = read_texts(folder, weights, sentences)
    queries = read_linear(weights, "disease_embedding_layer.", texts.shape[-1])(texts)
    weights.close(_UNUSED)

    def encode(pixels: Tensor) -> Images:
        patches = to_patches(second(slope(first(tower(pixels).layer3)))).flatten(1, 2)
        # There are no patches in the space of texts: only the decoder combines image and text.
        return DecoderImages(patches.mean(1), None, patches)

    def decode(images: Images, texts: Texts) -> DecoderOutput:
        memory, own = memory_of(images), list(places_of(texts))
        found, seen = decoder(queries.expand(len(memory), -1, -1), memory)
        found, seen = (part.unflatten(1, (-1, each))[:, own] for part in (found, seen))
        return DecoderOutput(presence_logits(head(found.flatten(2))), seen[:, :, MAP_QUERIES].mean(2))

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
        ),
        image=encode,
        text=make_fixed_texts(known, queries.unflatten(0, (-1, each))[:, 0]),
        tower=tower,
        grid=grid,
        trained_on="chest x-ray",
        pair=PAIR,
        native="cross-attention",
        scoring=score,
        attending=attend,
        called=partial(find_observation, known=known),
    )


def _read_sentences(folder: ModelFolder, known: Mapping[str, str]) -> Sequence[str]:
    """Read the description of each observation, followed by the sentences about its aspects."""
    found = folder.read(CONCEPTS)
    if not found:
        raise CarinaError(
            f"{folder.path / CONCEPTS}: missing; it is published in Pretrain/concept_gen of MAVL's code"
        )
    return [
        text for name, own in known.items() for text in (own, *_read_aspects(folder, name, found.get(name)))
    ]


def _read_aspects(folder: ModelFolder, name: str, sentences: Any) -> Sequence[str]:  # noqa: ANN401 - whatever the file holds
    starts = [str(text).partition(":")[0] for text in sentences] if isinstance(sentences, list) else None
    if starts != list(ASPECTS):
        raise CarinaError(
            f"{folder.path / CONCEPTS}: {name!r}: expected a sentence each that starts with {', '.join(ASPECTS)}"
        )
    return list(map(str, sentences))


def _read_prelu(weights: Weights, key: str) -> nn.Module:
    made = nn.PReLU()
    weights.fill(made, {"weight": Source(key)})
    return freeze(made)

"""One query decoder for MedKLIP, KAD, MAVL and CARZero: texts attend to an image, and a head scores their presence.

The attention of every layer and head stays in the graph. Weights have the names of torch's own `TransformerDecoder`,
under which all four models are published. Imported only where torch is.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

from carina.models.clip.dual_encoder import Attending, Scoring
from carina.models.clip.interface import Attention, Images, Texts
from carina.models.clip.state_dict import Source, Weights, freeze, map_same_names

HEADS: Final = 4
"""Heads of every published decoder; they cannot be read from the weights."""


@dataclass(frozen=True, kw_only=True)
class DecoderShape:
    """Sizes and options of a query decoder."""

    width: int
    layers: int
    hidden: int
    """Width inside the layers' perceptrons."""
    heads: int = HEADS
    self_attention: bool = True
    """Whether queries attend to each other, so that the other queries change the answer to one."""
    input_norm: bool = False
    """Whether queries and memory are normalised once before the first layer."""


class PackedAttention(nn.Module):  # type: ignore[misc]
    """Attention of queries to keys; query, key and value are one matrix, as in torch's `MultiheadAttention`."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.in_proj_weight = nn.Parameter(torch.zeros(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = nn.Linear(width, width)

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Attend from queries (n, q, c) to keys (n, k, c); output and attention weights (n, heads, q, k)."""
        parts = zip(self.in_proj_weight.chunk(3), self.in_proj_bias.chunk(3), strict=True)
        query, key, value = (
            nn.functional.linear(given, weight, bias).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for given, (weight, bias) in zip((queries, keys, keys), parts, strict=True)
        )
        weights = (query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5).softmax(-1)
        return self.out_proj((weights @ value).transpose(1, 2).flatten(-2)), weights


class DecoderLayer(nn.Module):  # type: ignore[misc]
    """Self-attention of the queries, attention to the image, and a perceptron, each with norm and residual."""

    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.self_attn = None
        if shape.self_attention:
            self.self_attn = PackedAttention(shape.width, shape.heads)
            self.norm1 = nn.LayerNorm(shape.width)
        self.multihead_attn = PackedAttention(shape.width, shape.heads)
        self.linear1, self.linear2 = (
            nn.Linear(shape.width, shape.hidden),
            nn.Linear(shape.hidden, shape.width),
        )
        self.norm2, self.norm3 = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)

    def forward(self, queries: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Queries (n, q, c), and their weights (n, heads, q, k) over the memory (n, k, c)."""
        if self.self_attn is not None:
            plain = self.norm1(queries)
            queries = queries + self.self_attn(plain, plain)[0]
        added, weights = self.multihead_attn(self.norm2(queries), memory)
        queries = queries + added
        return queries + self.linear2(self.linear1(self.norm3(queries)).relu()), weights


class QueryDecoder(nn.Module):  # type: ignore[misc]
    """Several layers, followed by a norm."""

    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.shape = shape
        self.layers = nn.ModuleList(DecoderLayer(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)
        if shape.input_norm:
            self.input_norm = nn.LayerNorm(shape.width)

    def forward(self, queries: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Queries (n, q, c) after the last layer, and the weights (n, q, layers, heads, k) of all layers."""
        if self.shape.input_norm:
            queries, memory = self.input_norm(queries), self.input_norm(memory)
        seen = []
        for layer in self.layers:
            queries, weights = layer(queries, memory)
            seen.append(weights)
        return self.norm(queries), torch.stack(seen).permute(1, 3, 0, 2, 4)


@dataclass(frozen=True)
class DecoderImages(Images):
    """Embeddings of images for a decoder."""

    memory: Tensor
    """(n, k, d): keys of the attention, patches row by row, after any other keys."""


@dataclass(frozen=True)
class DecoderTexts(Texts):
    """Embeddings of prompts for a decoder, some of which may be among its fixed queries."""

    places: tuple[int | None, ...]
    """Index of each prompt among the fixed queries; None where it is none of them."""


@dataclass(frozen=True)
class DecoderOutput:
    """Output of a decoder for n images and m prompts."""

    logits: Tensor
    """(n, m)"""
    weights: Tensor
    """(n, m, layers, heads, k)"""


Decode = Callable[[Images, Texts], DecoderOutput]


def read_decoder(
    weights: Weights, prefix: str, *, self_attention: bool = True, input_norm: str | None = None
) -> QueryDecoder:
    """Read the decoder whose weights have a prefix; `input_norm` is the published name of that norm."""
    (width,) = weights.shape(f"{prefix}norm.weight", 1)
    shape = DecoderShape(
        width=width,
        layers=weights.count(rf"{re.escape(prefix)}layers\.(\d+)\..*"),
        hidden=weights.shape(f"{prefix}layers.0.linear1.weight", 2)[0],
        self_attention=self_attention,
        input_norm=input_norm is not None,
    )
    decoder = QueryDecoder(shape)
    keys = map_same_names(decoder, prefix)
    if input_norm is not None:
        keys |= {f"input_norm.{part}": Source(f"{input_norm}.{part}") for part in ("weight", "bias")}
    weights.fill(decoder, keys)
    return freeze(decoder)


def memory_of(images: Images) -> Tensor:
    """The keys of the attention."""
    if not isinstance(images, DecoderImages):
        raise TypeError("expected images of `encode_image` of this model")
    return images.memory


def places_of(texts: Texts) -> tuple[int | None, ...]:
    """Indices of the prompts among a decoder's fixed queries."""
    if not isinstance(texts, DecoderTexts):
        raise TypeError("expected texts of `encode_text` of this model")
    return texts.places


def presence_logits(two: Tensor) -> Tensor:
    """Logit of presence from scores (..., 2) of absence and presence."""
    return two[..., 1] - two[..., 0]


def decoder_functions(decode: Decode, grid: tuple[int, int]) -> tuple[Scoring, Attending]:
    """Score and attention functions of a model whose decoder attends to patches alone."""

    def score(images: Images, texts: Texts) -> Tensor:
        return decode(images, texts).logits

    def attend(images: Images, texts: Texts) -> Attention:
        return attention_on_grid(decode(images, texts).weights, grid)

    return score, attend


def attention_on_grid(weights: Tensor, grid: tuple[int, int], *, before: int = 0) -> Attention:
    """Weights (n, m, layers, heads, k) on the grid, without those of the keys before the patches."""
    return Attention(weights[..., before:].unflatten(-1, grid), weights[..., :before].sum(-1))

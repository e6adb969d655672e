"""One vision transformer for all checkpoints of this kind: CLIP, SigLIP, timm.

Written out so that an explanation can reach any of its parts: each block's attention weights stay in the graph. How
checkpoints name its weights stands in `key_maps`; imported only where torch is.
"""

from dataclasses import dataclass
from typing import Final, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

Activation = Literal["gelu", "gelu_tanh", "quick_gelu"]
Pool = Literal["class", "mean", "attention"]
_QUICK: Final = 1.702
"""Factor in OpenAI's approximation of the GELU."""


@dataclass(frozen=True, kw_only=True)
class VitShape:
    """Sizes and options of a vision transformer."""

    side: int
    """Side of the square input in pixels."""
    patch: int
    width: int
    depth: int
    heads: int
    hidden: int
    """Width inside the blocks' perceptrons."""
    out: int | None = None
    """Width of the joint space; None if there is no projection and it has the width of the tokens."""
    pool: Pool = "class"
    class_token: bool = True
    patch_bias: bool = True
    first_norm: bool = False
    """Whether tokens are normalised before the first block, as in CLIP."""
    activation: Activation = "gelu"
    epsilon: float = 1e-6

    @property
    def grid(self) -> tuple[int, int]:
        return self.side // self.patch, self.side // self.patch


class SelfAttention(nn.Module):  # type: ignore[misc]
    """Attention of all tokens to all tokens."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def split(self, tokens: Tensor) -> Tensor:
        """(n, t, c) as heads: (n, heads, t, c / heads)."""
        return tokens.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def join(self, heads: Tensor) -> Tensor:
        """(n, heads, t, c / heads) as tokens, before the projection `out`."""
        return heads.transpose(1, 2).flatten(-2)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens, and their attention weights (n, heads, t, t)."""
        query, key, value = (self.split(part(tokens)) for part in (self.query, self.key, self.value))
        weights = (query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5).softmax(-1)
        return self.out(self.join(weights @ value)), weights


class Perceptron(nn.Module):  # type: ignore[misc]
    """Two layers on every token."""

    def __init__(self, width: int, hidden: int, activation: Activation) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.activation = activation

    def forward(self, tokens: Tensor) -> Tensor:
        inner = self.first(tokens)
        if self.activation == "quick_gelu":
            return self.second(inner * (_QUICK * inner).sigmoid())
        return self.second(
            functional.gelu(inner, approximate="tanh" if self.activation == "gelu_tanh" else "none")
        )


class Block(nn.Module):  # type: ignore[misc]
    """Attention, then a perceptron, each on normalised tokens and added to them."""

    def __init__(self, shape: VitShape) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(shape.width, eps=shape.epsilon)
        self.attention = SelfAttention(shape.width, shape.heads)
        self.norm2 = nn.LayerNorm(shape.width, eps=shape.epsilon)
        self.mlp = Perceptron(shape.width, shape.hidden, shape.activation)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens (n, t, c), and the attention's weights (n, heads, t, t)."""
        added, weights = self.attention(self.norm1(tokens))
        tokens = tokens + added
        return tokens + self.mlp(self.norm2(tokens)), weights


class AttentionPool(nn.Module):  # type: ignore[misc]
    """Pooling of SigLIP: one learned query attends to all tokens."""

    def __init__(self, shape: VitShape) -> None:
        super().__init__()
        self.probe = nn.Parameter(torch.zeros(1, 1, shape.width))
        self.attention = SelfAttention(shape.width, shape.heads)
        self.norm = nn.LayerNorm(shape.width, eps=shape.epsilon)
        self.mlp = Perceptron(shape.width, shape.hidden, shape.activation)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The pooled image (n, c), and its attention weights (n, heads, t)."""
        part = self.attention
        query = part.split(part.query(self.probe.expand(len(tokens), -1, -1)))
        key, value = part.split(part.key(tokens)), part.split(part.value(tokens))
        weights = (query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5).softmax(-1)
        return self._after(part.out(part.join(weights @ value)))[:, 0], weights[:, :, 0]

    def alone(self, tokens: Tensor) -> Tensor:
        """Pool each token on its own, which gives patches in the space of the pooled image."""
        return self._after(self.attention.out(self.attention.value(tokens)))

    def _after(self, attended: Tensor) -> Tensor:
        return attended + self.mlp(self.norm(attended))


@dataclass(frozen=True)
class Trace:
    """Intermediate results, one entry per block."""

    tokens: tuple[Tensor, ...]
    """(n, prefix + N, c) after each block."""
    weights: tuple[Tensor, ...]
    """(n, heads, prefix + N, prefix + N) in the graph, so that gradients can be computed."""


class VitTower(nn.Module):  # type: ignore[misc]
    """Pixels to tokens, and tokens to the joint space."""

    def __init__(self, shape: VitShape) -> None:
        super().__init__()
        self.shape = shape
        self.patches = nn.Conv2d(3, shape.width, shape.patch, stride=shape.patch, bias=shape.patch_bias)
        if shape.class_token:
            self.first = nn.Parameter(torch.zeros(shape.width))
        self.places = nn.Parameter(torch.zeros(self.prefix + self.grid[0] * self.grid[1], shape.width))
        if shape.first_norm:
            self.first_norm = nn.LayerNorm(shape.width, eps=shape.epsilon)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.depth))
        self.norm = nn.LayerNorm(shape.width, eps=shape.epsilon)
        if shape.out is not None:
            self.projection = nn.Linear(shape.width, shape.out, bias=False)
        if shape.pool == "attention":
            self.head = AttentionPool(shape)

    @property
    def grid(self) -> tuple[int, int]:
        return self.shape.grid

    @property
    def heads(self) -> int:
        return self.shape.heads

    @property
    def prefix(self) -> int:
        """Number of tokens before the patches: the class token, if any."""
        return int(self.shape.class_token)

    def embed(self, pixels: Tensor) -> Tensor:
        """Tokens (n, prefix + N, c) before the first block; patches row by row."""
        tokens = self.patches(pixels).flatten(2).transpose(1, 2)
        if self.shape.class_token:
            tokens = torch.cat([self.first.expand(len(tokens), 1, -1), tokens], dim=1)
        tokens = tokens + self.places
        return self.first_norm(tokens) if self.shape.first_norm else tokens

    def forward(self, pixels: Tensor) -> Tensor:
        """Tokens (n, prefix + N, c) after the last block."""
        tokens = self.embed(pixels)
        for block in self.blocks:
            tokens, _ = block(tokens)
        return tokens

    def trace(self, tokens: Tensor) -> Trace:
        """Run the blocks on embedded tokens, and keep all intermediate results."""
        after, weights = [], []
        for block in self.blocks:
            tokens, seen = block(tokens)
            after.append(tokens)
            weights.append(seen)
        return Trace(tuple(after), tuple(weights))

    def finish(self, tokens: Tensor) -> Tensor:
        """Every token on its own in the joint space: the final norm, then the projection or the pool's value path."""
        tokens = self.norm(tokens)
        if self.shape.pool == "attention":
            tokens = self.head.alone(tokens)
        return self.projection(tokens) if self.shape.out is not None else tokens

    def pool(self, tokens: Tensor) -> Tensor:
        """The image (n, d) in the joint space."""
        if self.shape.pool == "class":
            return self.finish(tokens[:, :1])[:, 0]
        if self.shape.pool == "mean":
            return self.finish(tokens[:, self.prefix :]).mean(1)
        pooled, _ = self.head(self.norm(tokens))
        return self.projection(pooled) if self.shape.out is not None else pooled

    def lay_out(self, tokens: Tensor) -> Tensor:
        """The patches' tokens on their grid: (n, rows, columns, c)."""
        return cast(Tensor, tokens[:, self.prefix :].unflatten(1, self.grid))

"""Tiny CLIP-style models around our towers, with random weights or with such that one patch decides."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor, nn

from carina.models.clip.dual_encoder import cosines, vit_images
from carina.models.clip.interface import Attention, Images, PromptPair, Texts
from carina.models.clip.resnet import ResNetShape, ResNetTower, to_patches
from carina.models.clip.state_dict import freeze
from carina.models.clip.vit import VitShape, VitTower
from carina.models.frame import Frame
from carina.models.registry import ModelIdentity

WIDTH = 8
OUT = 6
PAIR = PromptPair(("sign of nodule", "a nodule"), ("no nodule",))
POOLS = ("class", "mean", "attention")
RESNETS = ("resnet", "resnet3")
KINDS = (*POOLS, *RESNETS)


@dataclass(frozen=True)
class TinyModel:
    """A `ClipModel`. Texts are random directions, each by its own words, unless they are given."""

    image: Callable[[Tensor], Images]
    grid: tuple[int, int]
    side: int
    tower: VitTower | ResNetTower | None = None
    head: nn.Linear | None = None
    """From features of a residual network to the joint space."""
    scale: float = 5.0
    given: dict[str, Sequence[float]] = field(default_factory=dict)
    worded: bool = True
    decodes: bool = False
    dtype: torch.dtype = torch.float64
    exact: bool = False
    native: str = "similarity"
    pretraining: str = "unknown"
    identity: ModelIdentity = field(
        default_factory=lambda: ModelIdentity(name="tiny", weights="0" * 64, settings="0" * 64)
    )

    def frame(self, height: int, width: int) -> Frame:
        return Frame.stretched(height, width, side=self.side)

    def prepare(self, image: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def prompts(self, finding: str) -> PromptPair:
        return PromptPair((f"sign of {finding}",), (f"no {finding}",))

    def encode_image(self, pixels: Tensor) -> Images:
        return self.image(pixels.to(self.dtype))

    def encode_text(self, prompts: Sequence[str]) -> Texts:
        pooled = torch.stack([self._vector(prompt) for prompt in prompts])
        if not self.worded:
            return Texts(pooled, None, None)
        most = max(len(prompt.split()) for prompt in prompts)
        words = torch.zeros(len(prompts), most + 2, pooled.shape[1], dtype=self.dtype)
        kept = torch.zeros(len(prompts), most + 2, dtype=torch.bool)
        for row, prompt in enumerate(prompts):
            for place, word in enumerate(["[CLS]", *prompt.split(), "[SEP]"]):
                words[row, place] = self._vector(word)
                kept[row, place] = not word.startswith("[")
        return Texts(pooled, words, kept)

    def score(self, images: Images, texts: Texts) -> Tensor:
        return cosines(images.pooled, texts.pooled) * self.scale

    def cross_attention(self, pixels: Tensor, prompts: Sequence[str]) -> Attention | None:
        """Two layers of three heads that attend to patches and to one more key."""
        if not self.decodes:
            return None
        patches = self.encode_image(pixels).patches.flatten(1, 2)
        texts = self.encode_text(prompts).pooled
        products = torch.einsum("npd,md->nmp", patches, texts)
        heat = torch.arange(1, 7, dtype=self.dtype).reshape(2, 3, 1)
        keys = nn.functional.pad(products, (1, 0))[:, :, None, None] * heat
        weights = keys.softmax(-1)
        return Attention(weights[..., 1:].unflatten(-1, self.grid), weights[..., 0])

    def _vector(self, words: str) -> Tensor:
        if words in self.given:
            return torch.tensor(self.given[words], dtype=self.dtype)
        width = len(next(iter(self.given.values()), range(OUT)))
        drawn = np.random.default_rng(zlib.crc32(words.encode())).standard_normal(width)
        return torch.from_numpy(drawn).to(self.dtype)

    def but(self, **changes) -> "TinyModel":
        return replace(self, **changes)


def random_model(
    kind: str, *, cells: int = 3, dtype: torch.dtype = torch.float64, seed: int = 0, **changes
) -> TinyModel:
    """Every weight random, norms and biases too; a transformer's grid has so many rows and columns of cells."""
    if kind in POOLS:
        shape = VitShape(
            side=4 * cells, patch=4, width=WIDTH, depth=3, heads=2, hidden=12, out=OUT, pool=kind,
            class_token=kind == "class", first_norm=True, activation="quick_gelu",
        )  # fmt: skip
        tower = freeze(shaken(VitTower(shape), seed).to(dtype))
        return TinyModel(
            vit_images(tower), tower.grid, shape.side, tower, dtype=dtype, exact=kind == "mean"
        ).but(**changes)
    tower = freeze(
        shaken(ResNetTower(ResNetShape(blocks=(1,) * (4 if kind == "resnet" else 3), width=2)), seed)
    )
    tower.to(dtype)
    side, stage = 40, 4 if kind == "resnet" else 3
    head = freeze(shaken(nn.Linear(tower.shape.channels(stage), OUT, bias=False), seed)).to(dtype)

    def image(pixels: Tensor) -> Images:
        patches = head(to_patches(tower(pixels).last))
        return Images(patches.mean((1, 2)), patches)

    return TinyModel(image, tower.grid(side, stage), side, tower, head, dtype=dtype, exact=True).but(
        **changes
    )


def shaken(module: nn.Module, seed: int) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weights in module.state_dict().items():
            if weights.is_floating_point():
                drawn = torch.randn(weights.shape, generator=generator) * 0.5
                weights.copy_(drawn.abs() + 0.5 if name.endswith("running_var") else drawn)
    return module


def pictures(model: TinyModel, number: int = 2, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(number, 3, model.side, model.side, generator=generator, dtype=model.dtype)


def bright(model: TinyModel, row: int, column: int) -> Tensor:
    """A dark picture, but for one cell of the model's grid."""
    pixels = torch.zeros(1, 3, model.side, model.side, dtype=model.dtype)
    down, right = (model.side // number for number in model.grid)
    pixels[:, :, row * down : (row + 1) * down, column * right : (column + 1) * right] = 1
    return pixels


BRIGHT = PromptPair(("bright patch",), ("dark patch",))
_TEXTS = {
    "bright": (1, 0, 0), "dark": (-1, 0, 1), "patch": (0, 0, 1), "bright patch": (1, 0, 0), "dark patch": (-1, 0, 0),
}  # fmt: skip


def seeing(pool: str) -> TinyModel:
    """A transformer that attends to bright patches and tells of them: worked out channel by channel.

    Channels 0 and 1 tell whether a patch is bright, 2 and 3 that it is a patch, 4 and 5 that it is the class token, 6
    what attention brought. Texts look at channels 0 and 6.
    """
    shape = VitShape(
        side=16,
        patch=4,
        width=WIDTH,
        depth=2,
        heads=1,
        hidden=4,
        out=3,
        pool=pool,
        class_token=pool == "class",
    )
    tower = VitTower(shape)
    with torch.no_grad():
        for name, weights in tower.state_dict().items():
            weights.fill_(1.0 if "norm" in name and name.endswith("weight") else 0.0)
        tower.patches.weight[0], tower.patches.weight[1] = 1 / 48, -1 / 48
        tower.patches.bias[2], tower.patches.bias[3] = 1, -1
        if pool == "class":
            tower.first[4], tower.first[5] = 1, -1
        heads = [block.attention for block in tower.blocks]
        if pool == "attention":
            heads.append(tower.head.attention)
            tower.head.probe[..., 4] = 1
        for attention in heads:
            attention.key.weight[0, 0] = 1
            attention.query.weight[0, 2] = attention.query.weight[0, 4] = 3
            attention.value.weight[6, 0] = 1
            attention.out.weight.copy_(torch.eye(WIDTH))
        tower.projection.weight[0, 0] = tower.projection.weight[0, 6] = 1
        tower.projection.weight[1, 4] = tower.projection.weight[2, 2] = 1
        if pool == "attention":
            tower.projection.weight[2, 7] = 1
            tower.head.attention.out.bias[7] = 1
            tower.head.attention.value.weight[6, 6] = 1
    freeze(tower).double()
    return TinyModel(vit_images(tower), tower.grid, 16, tower, given=_TEXTS, decodes=True)


def seeing_resnet() -> TinyModel:
    """A residual network of means, which is brighter where the picture is."""
    tower = ResNetTower(ResNetShape(blocks=(1, 1, 1), width=2))
    with torch.no_grad():
        for module in tower.modules():
            if isinstance(module, nn.Conv2d):
                module.weight.fill_(1 / module.weight[0].numel())
    freeze(tower).double()
    side = 64

    def image(pixels: Tensor) -> Images:
        features = to_patches(tower(pixels).last).mean(-1)
        patches = torch.stack([features, torch.zeros_like(features), torch.full_like(features, 0.1)], -1)
        return Images(patches.mean((1, 2)), patches)

    return TinyModel(image, tower.grid(side, 3), side, tower, given=_TEXTS)


def reading(row: int, column: int) -> TinyModel:
    """No tower and no patches: the score is how bright one cell of 4 x 4 is, and nothing else."""

    def image(pixels: Tensor) -> Images:
        level = pixels[:, :, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4].mean((1, 2, 3))
        return Images(torch.stack([level, torch.zeros_like(level), torch.ones_like(level)], -1), None)

    return TinyModel(image, (4, 4), 16, given=_TEXTS, worded=False)

"""Every method by its name: what it shows, what it needs of a model, what it costs and what it leaves open.

Needs no torch: the function behind a method is imported when a map is asked for.
"""

import importlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from carina.ground.explain.methods import options as of
from carina.models.clip.interface import ClipModel, PromptPair

if TYPE_CHECKING:
    from torch import Tensor

Need = Literal["patches", "words", "decoder", "tower", "vit", "pooled", "gradients"]
"""Patches or words in the joint space; a decoder's attention; a tower of ours to look into, or one that is a vision
transformer, and one whose pooled token is what the model scores; slopes of the score."""


class Cost(NamedTuple):
    """Of one picture and finding."""

    forwards: int
    backwards: int = 0


_ONCE: Final = Cost(1)


@dataclass(frozen=True, kw_only=True)
class Method:
    """A way of showing where a model sees a finding."""

    name: str
    definition: str
    publication: str
    needs: tuple[Need, ...]
    options: type[Any]
    """A frozen dataclass; its defaults are the publication's."""
    function: str
    """Module of this package and function in it: `(model, pixels, prompts, options) -> maps`."""
    costs: Callable[[Any, tuple[int, int]], Cost] = lambda _options, _grid: _ONCE

    def configured(self, given: Mapping[str, Any], *, seed: int = 0) -> Any:  # noqa: ANN401 - each has its own
        """Options from names and values, which may be text; the seed is for methods that draw by chance."""
        return of.configured(self.options, given, f"method {self.name}", seed=seed)

    def cost(self, options: Any, grid: tuple[int, int]) -> Cost:  # noqa: ANN401
        """Of a map by a model with a grid of rows and columns."""
        return self.costs(options, grid)

    def available(self, model: ClipModel) -> str | None:
        """Why a model does not serve; None where it does. Asks the model, so this costs a picture or two."""
        with _quiet():
            lacking = importlib.import_module(f"{__package__}.needs").lacking
            reason: str | None = lacking(model, self.needs)
        return reason

    def maps(
        self,
        model: ClipModel,
        pixels: "Tensor",
        prompts: PromptPair,
        options: Any | None = None,  # noqa: ANN401
    ) -> "Tensor":
        """Maps (n, rows, columns), float32, of prepared pictures (n, 3, side, side) for one finding.

        Over the model's square, higher where it sees the finding, on no common scale: slopes may be tiny. Each
        picture's is its own, whatever it is asked with.
        """
        module, _, function = self.function.partition(":")
        make = getattr(importlib.import_module(f"{__package__}.{module}"), function)
        with _quiet():
            # A picture from inference mode cannot be part of a graph.
            given = pixels.clone() if pixels.is_inference() else pixels
            made = make(model, given, prompts, self.options() if options is None else options)
            return made.detach().float().contiguous()


def _quiet() -> AbstractContextManager[None]:
    """One thread, and no graph but where a method asks for it."""
    quiet: AbstractContextManager[None] = importlib.import_module(f"{__package__}.quiet").quiet()
    return quiet


def _rise(options: of.RiseOptions, _grid: tuple[int, int]) -> Cost:
    return Cost(options.masks)


def _occlusion(options: of.OcclusionOptions, grid: tuple[int, int]) -> Cost:
    along = [1 + -(-max(number - options.window, 0) // options.stride) for number in grid]
    return Cost(1 + along[0] * along[1])


_METHODS: Final = (
    Method(
        name="similarity",
        definition="cosine or product of each patch with the text, smoothed",
        publication="BioViL (Boecking et al. 2022), AFLoc",
        needs=("patches",),
        options=of.SimilarityOptions,
        function="similarity:similarity",
    ),
    Method(
        name="word-attention",
        definition="attention of each word to the patches, over words",
        publication="GLoRIA (Huang et al. 2021)",
        needs=("patches", "words"),
        options=of.WordAttentionOptions,
        function="word_attention:word_attention",
    ),
    Method(
        name="cross-attention",
        definition="attention of a decoder's query to the patches, over layers and heads",
        publication="MedKLIP, KAD, MAVL, CARZero (2023-2024)",
        needs=("decoder",),
        options=of.CrossAttentionOptions,
        function="cross_attention:cross_attention",
    ),
    Method(
        name="maskclip",
        definition="cosine of the text with what the last attention takes from each patch",
        publication="MaskCLIP (Zhou et al. 2022)",
        needs=("vit", "patches"),
        options=of.MaskClipOptions,
        function="maskclip:maskclip",
    ),
    Method(
        name="gem",
        definition="cosine of the text with patches gathered by self-self attention",
        publication="GEM (Bousselham et al. 2024)",
        needs=("vit", "patches"),
        options=of.GemOptions,
        function="gem:gem",
    ),
    Method(
        name="grad-cam",
        definition="last features, channels weighted by the mean slope of the score",
        publication="Grad-CAM (Selvaraju et al. 2017)",
        needs=("tower", "gradients"),
        options=of.GradCamOptions,
        function="grad_cam:grad_cam",
        costs=lambda _options, _grid: Cost(1, 1),
    ),
    Method(
        name="legrad",
        definition="positive slopes on attention of blocks scored one by one",
        publication="LeGrad (Bousselham et al. 2024)",
        needs=("vit", "pooled", "gradients"),
        options=of.LeGradOptions,
        function="legrad:legrad",
        costs=lambda options, _grid: Cost(1, options.layers),
    ),
    Method(
        name="relevance",
        definition="attention times its slope, taken through blocks to the pooled token",
        publication="Chefer et al. 2021",
        needs=("vit", "pooled", "gradients"),
        options=of.RelevanceOptions,
        function="relevance:relevance",
        costs=lambda _options, _grid: Cost(1, 1),
    ),
    Method(
        name="rollout",
        definition="attention multiplied through blocks to the pooled token; the text plays no part",
        publication="Abnar and Zuidema 2020",
        needs=("vit", "pooled"),
        options=of.RolloutOptions,
        function="rollout:rollout",
    ),
    Method(
        name="gscorecam",
        definition="last features, channels weighted by the score of what they let through",
        publication="gScoreCAM (Chen et al. 2022)",
        needs=("tower", "gradients"),
        options=of.GScoreCamOptions,
        function="gscorecam:gscorecam",
        costs=lambda options, _grid: Cost(1 + options.channels, 1),
    ),
    Method(
        name="rise",
        definition="random masks weighted by the score of what they let through",
        publication="RISE (Petsiuk et al. 2018)",
        needs=(),
        options=of.RiseOptions,
        function="rise:rise",
        costs=_rise,
    ),
    Method(
        name="occlusion",
        definition="how far the score falls when cells are hidden",
        publication="Zeiler and Fergus 2014",
        needs=(),
        options=of.OcclusionOptions,
        function="occlusion:occlusion",
        costs=_occlusion,
    ),
)
METHODS: Final[Mapping[str, Method]] = {method.name: method for method in _METHODS}

"""The registry of explanation methods for CLIP-style models, and what a method declares about itself.

Importing this module needs no torch; importing a method does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from carina.explanations.methods._options import parse_options
from carina.models.clip.interface import ClipModel, PromptPair
from carina.store.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor

Need = Literal["patches", "words", "decoder", "tower", "vit", "pooled", "gradients"]
"""What a method needs of a model:

- `patches`, `words`: image patches, or words, embedded in the joint space
- `decoder`: a decoder that attends from the text to the patches
- `tower`: an image tower whose layers can be read; `vit`: one that is a vision transformer
- `pooled`: the score is computed from the token that the image tower pools
- `gradients`: gradients of the score
"""
MapFunction: TypeAlias = "Callable[[ClipModel, Tensor, PromptPair, Any], Tensor]"
"""From a model, prepared images (n, 3, side, side), prompts and options to maps (n, rows, columns)."""
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Cost(NamedTuple):
    """Passes through the model that one map takes."""

    forwards: int
    backwards: int = 0


@dataclass(frozen=True, kw_only=True)
class Method:
    """An explanation method, which makes localisation maps from a model, images and prompts."""

    name: str
    definition: str
    """What a value of the map is, in one line."""
    publication: str
    """Where the method was published."""
    needs: tuple[Need, ...]
    """What the method needs of a model."""
    options: type[Any]
    """Frozen dataclass whose defaults are those of the publication."""
    function: MapFunction
    costs: Callable[[Any, tuple[int, int]], Cost]

    def parse_options(self, values: Mapping[str, Any], *, seed: int = 0) -> Any:  # noqa: ANN401 - each has its own
        """Parse options; values may be text.

        Args:
            values: Options by name.
            seed: Seed for methods that sample at random; ignored by the others.

        Returns:
            An instance of `self.options`.

        Raises:
            CarinaError: An option is unknown, or its value is not of its type or range.
        """
        return parse_options(self.options, values, f"method {self.name}", seed=seed)

    def cost(self, options: Any, grid: tuple[int, int]) -> Cost:  # noqa: ANN401
        """Passes that one map takes on a model whose grid has the given rows and columns."""
        return self.costs(options, grid)

    def find_missing_need(self, model: ClipModel) -> str | None:
        """Why this model cannot be explained by this method, or None where it can.

        Runs the model on an empty image.
        """
        from carina.explanations.methods._inference import deterministic_inference  # noqa: PLC0415 - torch
        from carina.explanations.methods._requirements import find_missing_need  # noqa: PLC0415 - needs torch

        with deterministic_inference():
            return find_missing_need(model, self.needs)

    def maps(
        self,
        model: ClipModel,
        pixels: "Tensor",
        prompts: PromptPair,
        options: Any | None = None,  # noqa: ANN401
    ) -> "Tensor":
        """Compute localisation maps of several images for one finding.

        Args:
            model: The model to explain.
            pixels: Prepared images, (n, 3, side, side).
            prompts: Prompts for and against the finding.
            options: An instance of `self.options`; None for its defaults.

        Returns:
            Maps (n, rows, columns), float32, over the model's input square; higher where the model sees the finding.
            Methods have no common scale. The map of an image does not depend on the other images.
        """
        from carina.explanations.methods._inference import deterministic_inference  # noqa: PLC0415 - torch

        with deterministic_inference():
            # A tensor from inference mode cannot be part of a graph.
            usable = pixels.clone() if pixels.is_inference() else pixels
            maps = self.function(model, usable, prompts, self.options() if options is None else options)
            return maps.detach().float().contiguous()


METHODS: Final[Registry[Method]] = Registry(
    "explanation method",
    group="carina.methods",
    package="carina.explanations.methods",
    entry_type=Method,
)


def method(
    *,
    name: str,
    definition: str,
    publication: str,
    needs: tuple[Need, ...],
    options: type[Any],
    costs: Callable[[Any, tuple[int, int]], Cost] = lambda _options, _grid: Cost(1),
) -> Callable[[_Function], _Function]:
    """Register a function as an explanation method for CLIP-style models.

    Args:
        name: Name on the command line, such as "grad-cam".
        definition: What a value of the map is, in one line.
        publication: Where the method was published.
        needs: What the method needs of a model.
        options: Frozen dataclass of options; its defaults are those of the publication.
        costs: Passes that a map takes, from the options and the model's grid; one forward pass by default.

    Returns:
        A decorator that registers a function from a model, prepared images, prompts and options to maps, and returns it
        unchanged.

    Raises:
        ValueError: The name is taken.

    Example:
        >>> from dataclasses import make_dataclass
        >>> Options = make_dataclass("Options", [], frozen=True)
        >>> @method(name="zeros", definition="Zero everywhere.", publication="none", needs=(), options=Options)
        ... def zeros(model, pixels, prompts, options):
        ...     return pixels.new_zeros((len(pixels), *model.grid))
    """

    def register(function: _Function) -> _Function:
        METHODS.register(
            name,
            Method(
                name=name,
                definition=definition,
                publication=publication,
                needs=needs,
                options=options,
                function=function,
                costs=costs,
            ),
        )
        return function

    return register

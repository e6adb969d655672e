"""Explainers by the names that the command line knows them by."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from carina.cases import Benchmark
from carina.errors import CarinaError
from carina.ground.explain.builtin import Asymmetry, Untrained
from carina.ground.explain.chat import HF, open_chat_explainer
from carina.ground.explain.controls import CONTROLS, Control, ControlOptions, priors
from carina.ground.explain.explainer import Explainer
from carina.ground.explain.methods.options import configured
from carina.ground.explain.probe import asked_of
from carina.models.clip.named import KINDS
from carina.studies import Region

CONTROL: Final = "control/"
BUILTIN: Final = "builtin/"
_UNTRAINED: Final = ("similarity", "occlusion")


def open_explainer(
    model: str, method: str | None, options: Mapping[str, Any], *, bench: Benchmark, seed: int
) -> Explainer:
    """A model with a method of explaining it; None takes the model's own.

    `control/NAME` and `builtin/NAME` need no weights; `hf:PATH` is a chat model and any other `KIND:PATH` a CLIP-style
    model (`carina.models.clip`) in a folder of this machine, or several checkpoints of one, which need the extra
    `torch`.
    """
    if model.startswith(CONTROL):
        name = model.removeprefix(CONTROL)
        if name not in CONTROLS:
            raise CarinaError(f"control {name!r}: unknown; known are {', '.join(CONTROLS)}")
        _one_method(model, method, name)
        known = priors(_drawn(bench) if name == "mean-region" else ())
        chosen = configured(ControlOptions, options, "controls", seed=seed)
        return Control(name, known, grid=chosen.grid, seed=seed)
    match model:
        case "builtin/untrained":
            if (method or "similarity") not in _UNTRAINED:
                raise CarinaError(f"{model}: method {method!r} is not one of {', '.join(_UNTRAINED)}")
            _none(model, options)
            return Untrained("occlusion" if method == "occlusion" else "similarity", seed=seed)
        case "builtin/asymmetry":
            _one_method(model, method, "asymmetry")
            _none(model, options)
            return Asymmetry()
    if model.startswith(BUILTIN):
        raise CarinaError(f"{model}: unknown; known are builtin/untrained and builtin/asymmetry")
    if model.startswith(HF):
        return open_chat_explainer(model, method, options)
    if model.partition(":")[0] not in KINDS:
        kinds = ", ".join(f"{kind}:PATH" for kind in (*KINDS, HF.removesuffix(":")))
        raise CarinaError(
            f"model {model!r}: unknown; known are {kinds}, builtin/untrained, builtin/asymmetry and "
            f"{', '.join(f'{CONTROL}{name}' for name in CONTROLS)}"
        )
    from carina.ground.explain.ensemble import open_member_or_all  # noqa: PLC0415 - needs torch

    return open_member_or_all(model, method, options, seed=seed)


def _drawn(bench: Benchmark) -> Iterator[tuple[str, str, Region]]:
    for case in bench.where(protocol="ground", path="present"):
        asked = asked_of(case)
        if asked.truth is not None:
            yield asked.target, case.patient or case.id, asked.truth


def _one_method(model: str, given: str | None, own: str) -> None:
    if given not in (None, own):
        raise CarinaError(f"{model}: shows {own} alone, not {given!r}")


def _none(model: str, options: Mapping[str, Any]) -> None:
    if options:
        raise CarinaError(f"{model}: has no option {next(iter(options))!r}")

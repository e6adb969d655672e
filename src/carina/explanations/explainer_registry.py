"""Open explainers by model name: CLIP-style models, chat models, controls, and built-in models without weights."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from carina.cases import Benchmark
from carina.explanations.builtin import Asymmetry, Untrained
from carina.explanations.chat import open_chat_explainer
from carina.explanations.clip import open_clip_or_ensemble
from carina.explanations.controls import CONTROLS, Control, ControlOptions, collect_mean_regions
from carina.explanations.explainer import Explainer
from carina.explanations.function import FunctionExplainer
from carina.explanations.given_maps import KIND as FILES
from carina.explanations.given_maps import METHOD, GivenMaps, MapFileOptions, open_given_maps
from carina.explanations.methods._options import parse_options
from carina.explanations.probe import read_probe_case
from carina.models import ModelName, ModelOptions, model_kind, parse_model_name
from carina.models.clip.kinds import KINDS
from carina.models.function import FUNCTION, find_function
from carina.models.registry import open_model
from carina.store.errors import CarinaError
from carina.studies import Region

CONTROL: Final = "control/"

_UNTRAINED_METHODS: Final = ("similarity", "occlusion")


def open_explainer(
    model: str | ModelName,
    method: str | None,
    options: Mapping[str, Any],
    *,
    bench: Benchmark,
    seed: int,
    device: str | None = None,
) -> Explainer:
    """Open a model with a method that explains it.

    Args:
        model: Name of a model that makes localisation maps: `control/NAME`, `builtin/untrained`, `builtin/asymmetry`,
            `hf:PATH`, `files:DIR` for maps that others made, or a CLIP-style model such as `biovil:PATH`; or the parsed
            name of a Python function.
        method: Name of the method; None for the model's own.
        options: Options of the method.
        bench: Benchmark with the probes, from which `control/mean-region` learns.
        seed: Seed for methods and models that sample at random.
        device: Device of torch for CLIP-style and chat models: cpu, cuda, cuda:1, mps; None for the CPU.

    Raises:
        CarinaError: The model, the method or an option is unknown, or the device is not on this machine.
    """
    name = model if isinstance(model, ModelName) else parse_model_name(model, needs="maps")
    model = name.text
    if name.kind in KINDS:
        return open_clip_or_ensemble(model, method, options, seed=seed, device=device)
    if name.kind == "hf":
        return open_chat_explainer(
            model, method, {**({} if device is None else {"device": device}), **options}
        )
    if device not in (None, "cpu"):
        raise CarinaError(f"{model}: runs on the CPU; leave the device {device!r} out")
    return _open_without_weights(name, method, options, bench=bench, seed=seed)


def _open_without_weights(
    name: ModelName, method: str | None, options: Mapping[str, Any], *, bench: Benchmark, seed: int
) -> Explainer:
    """Open what needs no weights: a control, maps from files, a Python function, a built-in or registered model."""
    model = name.text
    if name.kind.startswith(CONTROL):
        _check_method(model, method, name.kind.removeprefix(CONTROL))
        return _open_control(
            name, bench, parse_options(ControlOptions, options, "controls", seed=seed), seed=seed
        )
    if name.kind == FILES:
        _check_method(model, method, METHOD)
        return open_given_maps(
            name, parse_options(MapFileOptions, options, "maps from files", seed=seed), bench
        )
    _refuse_options(model, options)
    if name.kind == FUNCTION:
        _check_method(model, method, FUNCTION)
        return FunctionExplainer(find_function(name), name.name)
    if name.kind == "builtin/untrained":
        if (method or "similarity") not in _UNTRAINED_METHODS:
            raise CarinaError(f"{model}: unknown method {method!r}. Known: {', '.join(_UNTRAINED_METHODS)}.")
        return Untrained("occlusion" if method == "occlusion" else "similarity", seed=seed)
    explainer: Explainer = open_model(name, needs="maps", benchmark=bench, seed=seed)
    _check_method(model, method, explainer.method)
    return explainer


def _open_control(name: ModelName, bench: Benchmark, options: ControlOptions, *, seed: int) -> Control:
    control = name.kind.removeprefix(CONTROL)
    mean_regions = collect_mean_regions(_true_regions(bench) if control == "mean-region" else ())
    return Control(control, mean_regions, grid=options.grid, seed=seed)


def _true_regions(bench: Benchmark) -> Iterator[tuple[str, str, Region]]:
    """Finding, patient and region of every positive probe."""
    for case in bench.where(protocol="ground", path="present"):
        probe = read_probe_case(case)
        if probe.truth is not None:
            yield probe.target, case.patient or case.id, probe.truth


def _check_method(model: str, method: str | None, own: str) -> None:
    if method not in (None, own):
        raise CarinaError(f"{model}: expected the method {own}, its only one, found {method!r}")


def _refuse_options(model: str, options: Mapping[str, Any]) -> None:
    if options:
        raise CarinaError(f"{model}: has no options, found {next(iter(options))!r}")


# ---- registration ---------------------------------------------------------------------------------------------------


def _open_control_by_name(name: ModelName, options: ModelOptions) -> Control:
    """Control without a model, which a method must beat."""
    return _open_control(name, options.benchmark, ControlOptions(), seed=options.seed)


for _control in CONTROLS:
    model_kind(f"{CONTROL}{_control}", capabilities=["maps"])(_open_control_by_name)


@model_kind(FILES, capabilities=["maps"], form="files:DIR")
def open_files(name: ModelName, options: ModelOptions) -> GivenMaps:
    """Maps that others made, in files that are named after image and finding, or listed in an index."""
    return open_given_maps(name, MapFileOptions(), options.benchmark)


@model_kind("builtin/untrained", capabilities=["maps"])
def open_untrained(_name: ModelName, options: ModelOptions) -> Untrained:
    """CLIP-style model with random weights."""
    return Untrained("similarity", seed=options.seed)


@model_kind("builtin/asymmetry", capabilities=["maps"])
def open_asymmetry(_name: ModelName, _options: ModelOptions) -> Asymmetry:
    """Classical image processing: differences between the left and the right side."""
    return Asymmetry()

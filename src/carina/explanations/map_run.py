"""`explain`: make the localisation maps of a model, score them against expert regions, and check them."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import polars as pl

from carina.cases import Benchmark, open_benchmark
from carina.explanations.checks import CHECKS, Checks, check_maps, read_checks, require_weights, write_checks
from carina.explanations.clip import ClipExplainer
from carina.explanations.controls import CONTROLS
from carina.explanations.explainer import Explainer
from carina.explanations.explainer_registry import CONTROL, open_explainer
from carina.explanations.faithfulness import FaithfulnessOptions
from carina.explanations.function import MapFunction
from carina.explanations.map_parts import (
    BATCH,
    MapOptions,
    OnError,
    make_maps,
    require_present,
    select_probes,
)
from carina.explanations.maps import Maps, open_maps
from carina.explanations.methods._options import parse_options
from carina.explanations.scoring import (
    SCORES,
    SUMMARY,
    Scoring,
    check_tuning,
    read_map_table,
    read_scoring,
    score_map_run,
)
from carina.maps.profiles import find_profile
from carina.models.function import name_function
from carina.models.registry import count_processes, parse_model_name
from carina.store.arguments import PositiveInt, check_arguments
from carina.store.errors import CarinaError, MapsError
from carina.store.progress import Progress, no_progress
from carina.store.results import Location, Result, as_path, image_directory
from carina.store.workers import Engine

HEADLINE: Final[Mapping[str, str]] = {
    "pointing game": "hit.bilinear_full.full_image.expected.positives.per_image",
    "IoU, tuned": "iou.bilinear_full.full_image.tuned_iou_minmax256.positives.per_image",
    "IoU, Otsu": "iou.bilinear_full.full_image.otsu.positives.per_image",
    "pixel AUROC": "auroc.bilinear_full.full_image.per_image",
    "mass": "mass.bilinear_full.full_image.per_image",
}
"""Metric variants of the profile "carina" that a short table shows, by their titles."""


@dataclass(frozen=True, eq=False, repr=False)
class MapRun(Result):
    """The localisation maps of one model and method, with their scores. Opened by `open_map_run`.

    Example:
        >>> run = open_map_run("maps/asymmetry")
        >>> run.to_frame().get_column("finding").to_list()[:2]
        ['atelectasis', 'cardiomegaly']
    """

    directory: Path
    skipped: tuple[tuple[str, str], ...] = ()
    """Probes without a map, with the reason; as in `skipped.csv`."""
    _home: Path = field(init=False, repr=False)
    """The directory, wherever the working directory is later."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_home", self.directory.absolute())

    @property
    def path(self) -> Path:
        """The directory of the run."""
        return self.directory

    @cached_property
    def maps(self) -> Maps:
        """The maps themselves."""
        return open_maps(self._home)

    @cached_property
    def scoring(self) -> Scoring:
        """Settings of the scoring (profile, definitions, thresholds), and recognition by finding."""
        return read_scoring(self._home)

    @cached_property
    def checks(self) -> Checks | None:
        """Faithfulness and sanity checks; None where none were run."""
        return read_checks(self._home) if (self._home / CHECKS).is_file() else None

    def to_frame(self) -> pl.DataFrame:
        """One row a map and source (the model, and each control), one column a metric variant."""
        return read_map_table(self._home, SCORES, self.scoring)

    def summary(self) -> pl.DataFrame:
        """Means with intervals: one row a source, metric variant and group of maps."""
        return read_map_table(self._home, SUMMARY, self.scoring)

    def _summary(self) -> Mapping[str, object]:
        scoring = self.scoring
        return {"model": scoring.model, "method": scoring.method, "scored_maps": scoring.scored}


@check_arguments
def open_map_run(location: Location) -> MapRun:
    """Open the maps and scores that `explain` wrote.

    Args:
        location: Directory of the run, or an object that has it as its path.

    Returns:
        The run, with `.maps`, `.scoring`, `.checks`, `.summary()` and `.to_frame()`.

    Raises:
        MapsError: There are no maps, or they are damaged.
        CarinaError: The scores are missing or damaged.

    Example:
        >>> open_map_run("maps/asymmetry")
        MapRun('maps/asymmetry', model='builtin/asymmetry', method='asymmetry', scored_maps=8)
    """
    run = MapRun(as_path(location))
    _ = run.maps, run.scoring
    return run


@check_arguments
def explain(
    bench: Location,
    model: str | MapFunction,
    out: Location,
    *,
    label: str | None = None,
    method: str | None = None,
    options: Mapping[str, Any] | None = None,
    profile: str = "carina",
    tune_on: str | None = None,
    controls: bool = True,
    checks: PositiveInt | None = None,
    check_options: Mapping[str, Any] | None = None,
    seed: int = 0,
    limit: PositiveInt | None = None,
    images: Location | None = None,
    verify_images: bool = True,
    on_error: OnError = "skip",
    device: str | None = None,
    batch_size: PositiveInt = BATCH,
    workers: PositiveInt | None = None,
    engine: Engine = "local",
    address: str | None = None,
    progress: Progress = no_progress,
) -> MapRun:
    """Make a localisation map for every probe of a benchmark, and score the maps against the expert regions.

    Maps of controls, which need no model, are scored beside those of the model. An interrupted call resumes: maps and
    scores that are complete are not computed again. The model is opened once in each process.

    Args:
        bench: Benchmark made by `build_ground`.
        model: Model to explain: a CLIP-style model such as "biomedclip:PATH", a chat model "hf:PATH",
            "builtin/asymmetry", "builtin/untrained", "files:DIR" for maps that others made, or "control/NAME". Or a
            function that takes an image, an array of 8-bit grey values (height, width), and a phrase, and returns a map
            of the whole image as a 2-D array of any size; or the map and a score, higher where the finding is more
            likely present.
        out: Directory to write the maps and scores to.
        label: Name of a function in the run and in reports; None for its qualified name.
        method: Explanation method; None for the one that the model was published with.
        options: Options of the method by name.
        profile: Scoring profile: "carina", "chexlocalize", "medklip", "mavl", "radzero", "afloc", "torchray" or
            "quantus".
        tune_on: Split on which thresholds are tuned; its maps are not scored.
        controls: Whether to score the controls too.
        checks: Number of maps to test: do they depend on the image, on the text and on the weights? None for no tests.
        check_options: Options of the deletion and insertion checks by name.
        seed: Seed for all random choices.
        limit: Largest number of maps, for probes of each finding in turn; None for all.
        images: Directory of the images, if they have moved.
        verify_images: Whether to compare every image file with the SHA-256 that its case states, when it is first
            opened. False saves reading each file once more, for very large sets; the maps record it.
        on_error: "skip" or "stop" at a probe whose image cannot be read, or for which the model has no prompt.
        device: Device of torch for CLIP-style and chat models: cpu, cuda, cuda:1 or mps; None for the CPU.
        batch_size: Number of probes that a CLIP-style model gets at a time. The maps do not depend on it, up to
            rounding.
        workers: Number of processes; None for one per core, and for one on another device than the CPU.
        engine: Where the processes run: "local" (on this machine) or "ray" (on a Ray cluster).
        address: Address of a running Ray cluster, HOST:PORT, with engine "ray".
        progress: Progress display, such as `carina.progress_bar`; none by default.

    Returns:
        The run, with `.maps`, `.scoring`, `.checks`, `.skipped`, `.summary()` and `.to_frame()`.

    Raises:
        CarinaError: The benchmark has no probes, none of those selected is positive, or model, method, option, profile
            or split is unknown.

    Example:
        >>> maps = explain("probes", "builtin/asymmetry", "maps/few", limit=8, controls=False, workers=1)
        >>> len(maps.maps)
        8
    """
    if address is not None and engine != "ray":
        raise CarinaError("address: needs engine 'ray', found another engine; set both or none")
    if check_options and checks is None:
        raise CarinaError("check_options: need checks; set the number of maps to check too")
    if checks is not None and device not in (None, "cpu"):
        raise CarinaError(f"device {device!r}: the checks run on the CPU; leave out the device or the checks")
    find_profile(profile)
    name = name_function(model, label, needs="maps") or parse_model_name(str(model), needs="maps")
    if checks is not None:
        require_weights(name)
    checking = parse_options(FaithfulnessOptions, check_options or {}, "checks", seed=seed)
    folder = image_directory(bench, images)
    opened = open_benchmark(as_path(bench), folder, verify_images=verify_images)
    if tune_on is not None:
        check_tuning(opened, tune_on)
    if workers is None and device not in (None, "cpu"):
        workers = 1  # as many copies of the model as cores would not fit on it
    directory, processes = as_path(out), count_processes(name, workers, engine)
    map_options = MapOptions(
        method=method,
        method_options=dict(options or {}),
        seed=seed,
        limit=limit,
        verify_images=verify_images,
        device=device,
        batch_size=batch_size,
    )
    explainer = open_explainer(
        name, method, map_options.method_options, bench=opened, seed=seed, device=device
    )
    probes = select_probes(opened, limit)
    opened.require_sound(probes)
    require_present(opened, probes)
    names = CONTROLS if controls and not name.kind.startswith(CONTROL) else ()

    def score() -> None:
        bar.close()
        maps = open_maps(directory)
        with progress("Scores", 1 + len(names)) as advance:
            score_map_run(
                opened,
                maps,
                profile_name=profile,
                tune_on=tune_on,
                controls=names,
                seed=seed,
                workers=processes,
                progress=advance,
            )
        if checks is not None:
            _check(opened, maps, explainer, checks, checking, seed, progress)

    with ExitStack() as bar:
        advance = bar.enter_context(progress("Maps", len(probes)))
        written = make_maps(
            opened,
            name,
            directory,
            map_options,
            explainer=explainer,
            images=folder,
            workers=processes,
            engine=engine,
            address=address,
            on_error=on_error,
            progress=advance,
            score=score,
        )
    return MapRun(directory, written.skipped)


def _check(  # noqa: PLR0917 - the arguments of `explain`
    bench: Benchmark,
    maps: Maps,
    explainer: Explainer,
    number: int,
    options: FaithfulnessOptions,
    seed: int,
    progress: Progress,
) -> None:
    if not isinstance(explainer, ClipExplainer):
        raise MapsError(f"{explainer.name}: checks need one CLIP-style model with weights")
    with progress("Checks", min(number, len(maps))) as advance:
        result = check_maps(bench, maps, explainer, number, options=options, seed=seed, progress=advance)
    write_checks(maps.directory, result)

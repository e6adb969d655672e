"""Score localisation maps that are files: `score_maps` and `compare_profiles`.

Map files are matched with regions by name; files and regions that do not match are listed, never dropped silently.
"""

import csv
import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from carina.maps.index_files import INDEX, read_index
from carina.maps.map_files import SUFFIXES, MapFile, frame_of_image, frame_of_map, read_map
from carina.maps.profiles import find_variants
from carina.maps.protocols import Protocol, compare_protocols
from carina.maps.region_files import Regions, Truth, find_patients, read_regions, unify_finding
from carina.maps.score import Scorer, Variants
from carina.maps.summary import Cell, Row
from carina.maps.tuning import Thresholds, read_thresholds, write_thresholds
from carina.models.frame import Frame
from carina.store.arguments import check_arguments
from carina.store.errors import CarinaError
from carina.store.files import replacing, write_bytes
from carina.store.frames import read_frame
from carina.store.layout import lock_output
from carina.store.loose_files import check_files, claim_files, is_plain_file
from carina.store.progress import Progress, no_progress
from carina.store.results import Location, Result, as_path

if TYPE_CHECKING:
    import polars as pl

_Advance = Callable[[int], object]
_NAME_END: Final = "_map"
_FILES: Final = ("scores.csv", "scores.parquet", "summary.csv", "scores.json")
"""Files of the scores, in the order in which they are written."""
_UNMATCHED: Final = "maps without an image"
"""A field of every `scores.json`, by which it is recognised."""
"""Last part of the name of a map file that names its finding."""


@dataclass(frozen=True)
class Match:
    """A map file, and the image and finding that its name stands for."""

    path: Path
    image: str
    finding: str


@dataclass(frozen=True)
class Matches:
    """Map files matched with regions by name."""

    matched: list[Match]
    without_image: list[str] = field(default_factory=list)
    """Map files whose image is not among the regions."""
    without_finding: list[str] = field(default_factory=list)
    """Map files whose image has several findings, none of which they name."""
    without_region: list[Match] = field(default_factory=list)
    """Files among the two lists above that name a finding of the regions; their image has no region of it."""
    missing: list[str] = field(default_factory=list)
    """Images and findings that have a region but no map."""
    without_map: list[tuple[str, str]] = field(default_factory=list)
    """Images and findings without a map, including those with an empty region."""


OnError = Literal["skip", "stop"]


class FileScores(msgspec.Struct, frozen=True):
    """Scores of map files, and the files and regions that did not match."""

    rows: list[Row]
    """Scores of each map."""
    cells: list[Cell]
    """Summary of the scores."""
    variants: dict[str, str]
    """Definition of each metric variant."""
    thresholds: dict[str, float]
    """Thresholds that were selected on the scored images, by variant."""
    scored: int
    """Number of maps with a region, empty or not."""
    maps_without_image: list[str]
    """Map files whose image is not among the regions."""
    maps_without_finding: list[str]
    """Map files whose image has several findings, none of which they name."""
    regions_without_map: list[str]
    """Images and findings that have a region but no map."""
    counted_without_region: int
    """Number of maps without a region that count as false positives, in variants with any_mask and gated."""
    counted_without_map: int
    """Number of regions without a map that count as empty predictions, in any_mask, gated and pooled variants."""
    unreadable_maps: list[str] = []
    """Errors of map files that could not be read."""


@dataclass(frozen=True, eq=False, repr=False)
class MapScores(Result):
    """Result of `score_maps`: the scores and the files that hold them."""

    directory: Path
    scores: FileScores
    """Scores, summary, and what did not match."""
    files: tuple[Path, ...]
    """Every file that was written, thresholds and cut-offs included."""

    @property
    def path(self) -> Path:
        """The directory of the scores."""
        return self.directory

    def to_frame(self) -> "pl.DataFrame":
        """One row a map, one column a metric variant."""
        return read_frame(self.directory / "scores.parquet", "score the maps again with carina score-maps")

    def _summary(self) -> Mapping[str, object]:
        return {"scored_maps": self.scores.scored, "metric_variants": len(self.scores.variants)}


@check_arguments
def score_maps(
    maps: Location,
    regions: Location,
    out: Location,
    *,
    profile: str = "carina",
    variants: Sequence[str] | None = None,
    geometry: str | None = None,
    patients: Location | None = None,
    split: str = "",
    thresholds: Location | None = None,
    tune: Location | None = None,
    cutoffs: Location | None = None,
    tune_cutoffs: Location | None = None,
    replicates: int = 10_000,
    seed: int = 0,
    on_error: OnError = "skip",
    progress: Progress = no_progress,
) -> MapScores:
    """Score localisation maps from files against regions from a file.

    Writes scores.csv and scores.parquet (one row per map, one column per metric variant), summary.csv (means with
    intervals by finding and lesion size) and scores.json (definitions, and everything that did not match).

    Args:
        maps: Directory of maps, .npy, .npz, .png or .tif, named `<image>_<finding>_map` or `<image>`; or listed in its
            `index.csv` with the columns image, finding and map.
        regions: CheXlocalize's segmentations or annotations, or COCO's JSON; or a directory of masks,
            `FINDING/IMAGE.png`, or listed in its `index.csv` with the columns image, finding and mask.
        out: Directory to write the scores to.
        profile: Scoring profile; `list_metrics` lists them.
        variants: Metric variants in place of a profile, such as "iou.otsu.tp_only".
        geometry: How a map lies on its image: "whole", "letterbox:LONGEST", "letterbox:LONGEST:SIDE" or
            "crop:SHORTEST:SIDE"; None where maps have the size of their image.
        patients: CSV with columns id and patient. Without it, patients are read from CheXpert's image names, and any
            other image counts as a patient of its own.
        split: Name of the split that these images belong to; needed by thresholds and cut-offs.
        thresholds: File of thresholds that `tune` wrote on another split, or `tuning_results.csv` of cheXlocalize.
        tune: File to write the thresholds to that are best on these images, for `thresholds` on another split.
        cutoffs: File of probability cut-offs that `tune_cutoffs` wrote on another split.
        tune_cutoffs: File to write the probability cut-offs to that are best on these images, for `cutoffs` on another
            split.
        replicates: Number of bootstrap replicates of the patients, for intervals.
        seed: Seed for all random choices.
        on_error: "skip" or "stop" at a map that cannot be read.
        progress: Progress display, such as `carina.progress_bar`; none by default.

    Returns:
        The scores, with `.scores`, `.files` and `.to_frame()`.

    Raises:
        CarinaError: No map matches a region, or a file or option is not what is expected.

    Example:
        >>> scored = score_maps("map-files", "regions.json", "scores", geometry="whole", variants=["iou.minmax_0.5"])
        >>> scored.to_frame().height
        4
    """
    directory, source = as_path(out), as_path(maps)
    truths = read_regions(as_path(regions))
    tuned = None if thresholds is None else read_thresholds(thresholds)
    tuned_cutoffs = None if cutoffs is None else read_thresholds(cutoffs)
    output = (directory, "the scores", _FILES, lambda _name: _has_scores(directory))
    with lock_output(directory, "the scores"):
        check_files(*output)
        with progress("Maps", _count_files(source)) as advance:
            scored, scorer = score_map_files(
                source,
                truths,
                list(variants) if variants else profile,
                geometry=geometry,
                patients=None if patients is None else as_path(patients),
                split=split,
                tuned=tuned,
                cutoffs=tuned_cutoffs,
                replicates=replicates,
                seed=seed,
                on_error=on_error,
                advance=advance,
            )
        about = {
            "maps": source,
            "regions": as_path(regions),
            "profile": None if variants else profile,
            "geometry": geometry,
            "split": split,
            "thresholds": tuned,
            "cutoffs": tuned_cutoffs,
            "replicates": replicates,
            "seed": seed,
        }
        with claim_files(*output):
            files = write_scores(scored, directory, about)
        for target, select in ((tune, scorer.tune), (tune_cutoffs, scorer.tune_cutoffs)):
            if target is not None:
                write_thresholds(target, select())
                files.append(as_path(target))
        return MapScores(directory, scored, tuple(files))


@dataclass(frozen=True, repr=False)
class ProfileComparison(Result):
    """The same maps scored by the rules of several projects. Made by `compare_profiles`."""

    directory: Path
    rules: tuple[Protocol, ...]
    """Mean score by each scoring rule."""

    @property
    def path(self) -> Path:
        """The directory of the maps."""
        return self.directory

    def to_frame(self) -> "pl.DataFrame":
        """One row a scoring rule: its title and metric variant, the mean over all maps, and the mean by lesion size."""
        import polars as pl  # noqa: PLC0415 - slow to import

        return pl.DataFrame(
            [
                {"rule": rule.protocol, "variant": rule.variant, "all": rule.all, **rule.by_size}
                for rule in self.rules
            ]
        )

    def _summary(self) -> Mapping[str, object]:
        return {"rules": len(self.rules), "maps": self.rules[0].n["all"]}


@check_arguments
def compare_profiles(
    maps: Location, regions: Location, *, geometry: str | None = None, progress: Progress = no_progress
) -> ProfileComparison:
    """Score the same maps by the scoring rules of several projects, to show how much of a score is due to the rule.

    Args:
        maps: Directory of maps, as for `score_maps`.
        regions: File of regions or directory of masks, as for `score_maps`.
        geometry: How a map lies on its image, as for `score_maps`.
        progress: Progress display, such as `carina.progress_bar`; none by default.

    Returns:
        One row for each scoring rule: its mean score for all maps and by lesion size.

    Raises:
        CarinaError: No map matches a region, or a file cannot be read.

    Example:
        >>> compared = compare_profiles("map-files", "regions.json", geometry="whole")
        >>> compared.rules[0].protocol, compared.rules[0].all
        ('hit, bilinear, first argmax (cheXlocalize)', 0.5)
    """
    truths = read_regions(as_path(regions))
    directory = as_path(maps)
    with progress("Maps", _count_files(directory)) as advance:
        rules = compare_map_files(directory, truths, geometry=geometry, advance=advance)
    return ProfileComparison(directory, tuple(rules))


def _count_files(directory: Path) -> int:
    return sum(1 for _ in directory.iterdir()) if directory.is_dir() else 0


def match_maps(directory: Path, regions: Regions) -> Matches:
    """Match files named `<image>_<finding>_map` or `<image>`, or listed in `index.csv`, with regions.

    A file that names no finding belongs to the only finding of its image whose region is not empty. A region that is
    empty, as CheXlocalize has them for absent findings, does not miss its map.

    Raises:
        CarinaError: The directory holds no maps, or two of the same image and finding.
    """
    findings = {finding for truths in regions.values() for finding in truths}
    if not directory.is_dir():
        raise CarinaError(f"{directory}: expected a directory of maps")
    if (directory / INDEX).is_file():
        return _match_index(read_index(directory, "map"), regions)
    files = sorted(path for path in directory.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())
    if not files:
        raise CarinaError(f"{directory}: expected maps ({', '.join(SUFFIXES)}), found none")
    matches = Matches([])
    paths: dict[tuple[str, str], Path] = {}
    for path in files:
        key = _match_region(path.stem, regions)
        has_region = key is not None
        if key is None:
            has_image = _match_image(path.stem, regions) is not None
            (matches.without_finding if has_image else matches.without_image).append(path.name)
            key = _parse_name(path.stem, findings)
            if key is None:
                continue
        if key in paths:
            raise CarinaError(
                f"{path}: is of the same image and finding as {paths[key].name}; keep one of the two"
            )
        paths[key] = path
        (matches.matched if has_region else matches.without_region).append(Match(path, *key))
    _add_missing(matches, paths, regions)
    return matches


def _match_index(files: Mapping[tuple[str, str], Path], regions: Regions) -> Matches:
    """Match the maps that an index lists by image and finding."""
    matches = Matches([])
    paths: dict[tuple[str, str], Path] = {}
    for (image, name), path in files.items():
        finding = unify_finding(name)
        paths[image, finding] = path
        if finding in regions.get(image, {}):
            matches.matched.append(Match(path, image, finding))
            continue
        (matches.without_finding if image in regions else matches.without_image).append(path.name)
        if any(finding in truths for truths in regions.values()):
            matches.without_region.append(Match(path, image, finding))
    _add_missing(matches, paths, regions)
    return matches


def _add_missing(matches: Matches, paths: Collection[tuple[str, str]], regions: Regions) -> None:
    """Add the regions that have no map."""
    for image, truths in regions.items():
        for finding, truth in truths.items():
            if (image, finding) not in paths:
                matches.without_map.append((image, finding))
                if not truth.region.is_empty:
                    matches.missing.append(f"{image}, {finding}")


def _require_match(directory: Path, regions: Regions) -> Matches:
    """The matches; an error where no map matches a region."""
    matches = match_maps(directory, regions)
    if not matches.matched:
        unmatched = matches.without_image + matches.without_finding
        raise CarinaError(
            f"{directory}: none of {len(unmatched)} maps matches an image of the regions; maps have names such as "
            f"{unmatched[0]!r}, images such as {next(iter(regions), '')!r}"
        )
    return matches


def _match_image(stem: str, regions: Regions) -> str | None:
    """The longest name of an image with which a file name starts, up to an underscore."""
    parts = stem.removesuffix(_NAME_END).split("_")
    names = ("_".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((name for name in names if name in regions), None)


def _match_region(stem: str, regions: Regions) -> tuple[str, str] | None:
    """Image and finding of the region that a file name stands for."""
    parts = stem.removesuffix(_NAME_END).split("_")
    if stem.endswith(_NAME_END):
        for end in range(len(parts) - 1, 0, -1):
            image, finding = "_".join(parts[:end]), unify_finding("_".join(parts[end:]))
            if finding in regions.get(image, {}):
                return image, finding
    truths = regions.get(stem, regions.get(stem.removesuffix(_NAME_END)))
    image = stem if stem in regions else stem.removesuffix(_NAME_END)
    if truths is None:
        return None
    present = [finding for finding, truth in truths.items() if not truth.region.is_empty]
    return (image, present[0]) if len(present) == 1 else None


def _parse_name(stem: str, findings: Collection[str]) -> tuple[str, str] | None:
    """Image and finding of a file name without a region; the longest finding that any image has."""
    parts = stem.removesuffix(_NAME_END).split("_")
    if stem.endswith(_NAME_END):
        for end in range(1, len(parts)):
            finding = unify_finding("_".join(parts[end:]))
            if finding in findings:
                return "_".join(parts[:end]), finding
    return None


def score_map_files(
    directory: Path,
    regions: Regions,
    variants: Variants,
    *,
    geometry: str | None = None,
    patients: Path | None = None,
    split: str = "",
    tuned: Thresholds | None = None,
    cutoffs: Thresholds | None = None,
    replicates: int = 10_000,
    seed: int = 0,
    on_error: OnError = "stop",
    advance: _Advance = lambda _: None,
) -> tuple[FileScores, Scorer]:
    """Score all maps that match a region; the scorer can then tune thresholds and cut-offs for another split.

    Maps without a region and regions without a map are added where a variant counts them. A map that cannot be read
    raises an error ("stop") or is listed ("skip").
    """
    scorer = Scorer(variants, split=split, tuned=tuned, cutoffs=cutoffs)
    every = find_variants(variants)
    matches = _require_match(directory, regions)
    without_region = matches.without_region if any(variant.counts_without_truth for variant in every) else []
    without_map = matches.without_map if any(variant.counts_without_map for variant in every) else []
    patient_of = find_patients([*regions, *(match.image for match in without_region)], patients)
    errors: list[str] = []
    maps = _read_maps(
        [*matches.matched, *without_region],
        regions,
        geometry,
        errors if on_error == "skip" else None,
        advance,
    )
    for match, file, truth, frame in maps:
        scorer.add(
            match.image,
            match.finding,
            file.values,
            None if truth is None else truth.region,
            frame,
            patient=patient_of[match.image],
            boxes=(truth and truth.boxes) or None,
            probability=file.probability,
        )
    for image, finding in without_map:
        region = regions[image][finding].region
        size = (region.height, region.width)
        scorer.add(
            image,
            finding,
            None,
            region,
            frame_of_image(geometry, size, map_side=max(size)),
            patient=patient_of[image],
        )
    rows = scorer.rows()
    scored = FileScores(
        rows,
        scorer.summary(replicates=replicates, seed=seed),
        {variant.name: variant.definition for variant in scorer.variants},
        {variant.name: threshold for variant, (_, threshold) in scorer.best_thresholds().items()},
        sum(row.available == "both" for row in rows),
        matches.without_image,
        matches.without_finding,
        matches.missing,
        sum(row.available == "map" for row in rows),
        len(without_map),
        errors,
    )
    return scored, scorer


def compare_map_files(
    directory: Path, regions: Regions, *, geometry: str | None = None, advance: _Advance = lambda _: None
) -> list[Protocol]:
    """Score all maps that match a region by the rules of several projects; see `compare_protocols`."""
    matches = _require_match(directory, regions)
    maps = _read_maps(matches.matched, regions, geometry, None, advance)
    return compare_protocols((file.values, truth.region, frame) for _, file, truth, frame in maps if truth)


def _read_maps(
    matches: Sequence[Match],
    regions: Regions,
    geometry: str | None,
    errors: list[str] | None,
    advance: _Advance,
) -> Iterator[tuple[Match, MapFile, Truth | None, Frame]]:
    """Read maps with their truth, None where they have no region, and their frame.

    Errors of maps that cannot be read are added to `errors`; without such a list, or where no map can be read, the
    first error is raised.
    """
    first_error, n_read = None, 0
    for match in matches:
        truths = regions.get(match.image, {})
        truth = truths.get(match.finding)
        try:
            file = read_map(match.path)
            frame = _find_frame(match.path, file, truth or next(iter(truths.values()), None), geometry)
        except CarinaError as error:
            if errors is None:
                raise
            first_error = first_error or error
            errors.append(str(error))
        else:
            n_read += 1
            yield match, file, truth, frame
        advance(1)
    if first_error is not None and not n_read:
        raise first_error


def _find_frame(path: Path, file: MapFile, truth: Truth | None, geometry: str | None) -> Frame:
    """The frame of a map. An image of unknown size is taken to have the size of its map."""
    shape = (file.values.shape[0], file.values.shape[1])
    size = file.size if truth is None else (truth.region.height, truth.region.width)
    if size is None:
        return Frame.stretched(*shape, side=max(shape))
    if file.size is not None and file.size != size:
        raise CarinaError(
            f"{path}: dims: expected the size of the regions, {size[0]} x {size[1]} (height x width), found "
            f"{file.size[0]} x {file.size[1]}"
        )
    return frame_of_map(geometry, size, shape, path)


# ---- writing --------------------------------------------------------------------------------------------------------


def write_scores(scored: FileScores, out: Path, about: Mapping[str, object]) -> list[Path]:
    """Write `scores.csv` and `scores.parquet` (one row a map), `summary.csv`, and `scores.json` with all settings."""
    names = list(scored.variants)
    columns: dict[str, list[Any]] = {
        "id": [row.id for row in scored.rows],
        "finding": [row.finding for row in scored.rows],
        "patient": [row.patient for row in scored.rows],
        "share": [row.share for row in scored.rows],
    }
    for name in names if scored.rows else ():
        if name in scored.rows[0].values:
            columns[name] = [row.values[name] for row in scored.rows]
    paths = [out / name for name in _FILES]
    _write_csv(paths[0], list(columns), zip(*columns.values(), strict=True))
    with replacing(paths[1]) as temporary:
        pq.write_table(pa.table(columns), temporary, compression="zstd")
    _write_csv(paths[2], Cell.__struct_fields__, map(msgspec.structs.astuple, scored.cells))
    content = {
        **about,
        "scored": scored.scored,
        "variants": scored.variants,
        "chosen on the scored images": scored.thresholds,
        _UNMATCHED: scored.maps_without_image,
        "maps without a finding": scored.maps_without_finding,
        "regions without a map": scored.regions_without_map,
        "counted without a region": scored.counted_without_region,
        "counted without a map": scored.counted_without_map,
        "maps that cannot be read": scored.unreadable_maps,
    }
    write_bytes(paths[3], msgspec.json.format(msgspec.json.encode(content, enc_hook=str), indent=2) + b"\n")
    return paths


def _has_scores(directory: Path) -> bool:
    """Whether a directory holds the file that is written last, as an earlier call wrote it."""
    path = directory / _FILES[-1]
    return is_plain_file(path) and f'"{_UNMATCHED}":'.encode() in path.read_bytes()


def _write_csv(path: Path, headings: Sequence[str], rows: Any) -> None:  # noqa: ANN401 - tuples of anything
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows([_format_value(value) for value in row] for row in rows)
    write_bytes(path, text.getvalue().encode())


def _format_value(value: object) -> object:
    """A value of a CSV file, with every digit; empty for None and NaN."""
    return "" if value is None or value != value else value  # noqa: PLR0124 - only NaN differs from itself

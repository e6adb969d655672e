"""Maps and regions that others made, scored: files are matched by name, and what does not match is told."""

import csv
import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from carina.errors import CarinaError
from carina.files import replacing, write_bytes
from carina.ground.score.map_files import SUFFIXES, MapFile, declared, geometry, read_map
from carina.ground.score.profiles import variants_of
from carina.ground.score.protocols import Protocol, compare_protocols
from carina.ground.score.region_files import Regions, Truth, finding_name, patients_of
from carina.ground.score.score import Scorer, Variants
from carina.ground.score.summary import Cell, Row
from carina.ground.score.tuning import Thresholds
from carina.models.frame import Frame

Progress = Callable[[int], None]
_MARK: Final = "_map"


@dataclass(frozen=True)
class Match:
    """A map file and the image and finding it is of."""

    path: Path
    image: str
    finding: str


@dataclass(frozen=True)
class Matches:
    """Which files go with which regions."""

    found: list[Match]
    unknown: list[str] = field(default_factory=list)
    """Map files whose image is not among the regions."""
    unclear: list[str] = field(default_factory=list)
    """Map files whose image has several findings, none of which they name."""
    missing: list[str] = field(default_factory=list)
    """Images and findings with a region and no map."""
    strays: list[Match] = field(default_factory=list)
    """Of the unknown and unclear files those that name a finding of the regions, which their image has not."""
    unmapped: list[tuple[str, str]] = field(default_factory=list)
    """Images and findings without a map, those with an empty region too."""


OnError = Literal["skip", "stop"]


class Scored(msgspec.Struct, frozen=True):
    """The result of scoring others' maps."""

    rows: list[Row]
    cells: list[Cell]
    variants: dict[str, str]
    """Definition of each variant."""
    thresholds: dict[str, float]
    """Those that were chosen on the scored images, by variant."""
    scored: int
    """Maps that have a region, empty or not."""
    unknown: list[str]
    unclear: list[str]
    missing: list[str]
    strays: int
    """Of the maps without a region those that count as false all the same, by variants with any_mask and gated."""
    unmapped: int
    """Regions without a map, empty ones too, that count as predictions of nothing, by those and by pooled counts."""
    bad: list[str] = []
    """What is wrong with maps that were left out."""


def match_maps(directory: Path, regions: Regions) -> Matches:
    """Files named `<image>_<finding>_map` or `<image>`, with the regions that they are scored against.

    A map that names no finding is of its image's only one that is not empty. CheXlocalize has empty regions of findings
    that are absent; without a map these are not missed.
    """
    known = {finding for own in regions.values() for finding in own}
    if not directory.is_dir():
        raise CarinaError(f"{directory}: expected a directory of maps")
    files = sorted(path for path in directory.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())
    if not files:
        raise CarinaError(f"{directory}: holds no maps; they are {', '.join(SUFFIXES)}")
    matches = Matches([])
    owners: dict[tuple[str, str], Path] = {}
    for path in files:
        place = _place(path.stem, regions)
        belongs = place is not None
        if place is None:
            (matches.unclear if _image_of(path.stem, regions) else matches.unknown).append(path.name)
            place = _stray(path.stem, known)
            if place is None:
                continue
        if place in owners:
            raise CarinaError(f"{path}: of the same image and finding as {owners[place].name}")
        owners[place] = path
        (matches.found if belongs else matches.strays).append(Match(path, *place))
    for image, own in regions.items():
        for finding, truth in own.items():
            if (image, finding) not in owners:
                matches.unmapped.append((image, finding))
                if not truth.region.is_empty:
                    matches.missing.append(f"{image}, {finding}")
    return matches


def _matched(directory: Path, regions: Regions) -> Matches:
    """The matches, of which there must be one."""
    matches = match_maps(directory, regions)
    if not matches.found:
        raise CarinaError(
            f"{directory}: none of {len(matches.unknown) + len(matches.unclear)} maps matches an image of the regions; "
            f"they are named such as {(matches.unknown or matches.unclear)[0]!r}, and images such as "
            f"{next(iter(regions), '')!r}"
        )
    return matches


def _image_of(stem: str, regions: Regions) -> str | None:
    """The image that a file's name starts with, by its parts between underscores."""
    parts = stem.removesuffix(_MARK).split("_")
    names = ("_".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((name for name in names if name in regions), None)


def _place(stem: str, regions: Regions) -> tuple[str, str] | None:
    parts = stem.removesuffix(_MARK).split("_")
    if stem.endswith(_MARK):
        for end in range(len(parts) - 1, 0, -1):
            image, finding = "_".join(parts[:end]), finding_name("_".join(parts[end:]))
            if finding in regions.get(image, {}):
                return image, finding
    own = regions.get(stem, regions.get(stem.removesuffix(_MARK)))
    image = stem if stem in regions else stem.removesuffix(_MARK)
    if own is None:
        return None
    positive = [finding for finding, truth in own.items() if not truth.region.is_empty]
    return (image, positive[0]) if len(positive) == 1 else None


def _stray(stem: str, known: Collection[str]) -> tuple[str, str] | None:
    """Image and finding, the longest that is known, of a name that has both."""
    parts = stem.removesuffix(_MARK).split("_")
    if stem.endswith(_MARK):
        for end in range(1, len(parts)):
            finding = finding_name("_".join(parts[end:]))
            if finding in known:
                return "_".join(parts[:end]), finding
    return None


def score_maps(
    directory: Path,
    regions: Regions,
    variants: Variants,
    *,
    frame: str | None = None,
    patients: Path | None = None,
    split: str = "",
    tuned: Thresholds | None = None,
    cutoffs: Thresholds | None = None,
    replicates: int = 10_000,
    seed: int = 0,
    on_error: OnError = "stop",
    progress: Progress = lambda _: None,
) -> tuple[Scored, Scorer]:
    """Scores of all maps that match; the scorer can tune thresholds and cut-offs for another split.

    Maps without a region and regions without a map are added too where a variant counts them. A map that can't be read
    ends the call, or is left out and told.
    """
    scorer = Scorer(variants, split=split, tuned=tuned, cutoffs=cutoffs)
    every = variants_of(variants)
    matches = _matched(directory, regions)
    strays = matches.strays if any(variant.counts_without_truth for variant in every) else []
    unmapped = matches.unmapped if any(variant.counts_without_map for variant in every) else []
    owners = patients_of([*regions, *(match.image for match in strays)], patients)
    bad: list[str] = []
    given = _read([*matches.found, *strays], regions, frame, bad if on_error == "skip" else None, progress)
    for match, file, truth, laid in given:
        scorer.add(
            match.image,
            match.finding,
            file.values,
            None if truth is None else truth.region,
            laid,
            patient=owners[match.image],
            boxes=(truth and truth.boxes) or None,
            probability=file.probability,
        )
    for image, finding in unmapped:
        region = regions[image][finding].region
        laid = declared(frame, (region.height, region.width), longer=max(region.height, region.width))
        scorer.add(image, finding, None, region, laid, patient=owners[image])
    scored = Scored(
        scorer.rows(),
        scorer.summary(replicates=replicates, seed=seed),
        {variant.name: variant.definition for variant in scorer.variants},
        {variant.name: threshold for variant, (_, threshold) in scorer.best_thresholds().items()},
        sum(row.given == "both" for row in scorer.rows()),
        matches.unknown,
        matches.unclear,
        matches.missing,
        sum(row.given == "map" for row in scorer.rows()),
        len(unmapped),
        bad,
    )
    return scored, scorer


def compare_maps(
    directory: Path, regions: Regions, *, frame: str | None = None, progress: Progress = lambda _: None
) -> list[Protocol]:
    """All maps that match under the rules of several projects; see `compare_protocols`."""
    matches = _matched(directory, regions)
    read = _read(matches.found, regions, frame, None, progress)
    return compare_protocols((file.values, truth.region, laid) for _, file, truth, laid in read if truth)


def _read(
    found: Sequence[Match], regions: Regions, frame: str | None, bad: list[str] | None, progress: Progress
) -> Iterator[tuple[Match, MapFile, Truth | None, Frame]]:
    """Maps with the truth that they are of, None for strays; what is wrong with others goes to `bad`, if it is there.

    Where no map can be read, the first one's fault is raised all the same.
    """
    first, read = None, 0
    for match in found:
        own = regions.get(match.image, {})
        truth = own.get(match.finding)
        try:
            file = read_map(match.path)
            laid = _laid(match.path, file, truth or next(iter(own.values()), None), frame)
        except CarinaError as error:
            if bad is None:
                raise
            first = first or error
            bad.append(str(error))
        else:
            read += 1
            yield match, file, truth, laid
        progress(1)
    if first is not None and not read:
        raise first


def _laid(path: Path, file: MapFile, truth: Truth | None, frame: str | None) -> Frame:
    """The frame of a map; where nothing tells how large its image is, that of an image of the map's own pixels."""
    shape = (file.values.shape[0], file.values.shape[1])
    drawn = file.size if truth is None else (truth.region.height, truth.region.width)
    if drawn is None:
        return Frame.stretched(*shape, side=max(shape))
    if file.size is not None and file.size != drawn:
        raise CarinaError(
            f"{path}: of an image of {file.size[0]} x {file.size[1]}, where the regions have {drawn[0]} x {drawn[1]} "
            "(height x width)"
        )
    return geometry(frame, drawn, shape, path)


# ---- written ----


def write_scored(scored: Scored, out: Path, about: Mapping[str, object]) -> list[Path]:
    """`scores.csv` and `scores.parquet` with a row a map, `summary.csv`, and `scores.json` with what led to them."""
    names = list(scored.variants)
    columns: dict[str, list[Any]] = {
        "id": [row.id for row in scored.rows],
        "finding": [row.finding for row in scored.rows],
        "patient": [row.patient for row in scored.rows],
        "share": [row.share for row in scored.rows],
    }
    kept = [name for name in names if name in scored.rows[0].values] if scored.rows else []
    for name in kept:
        columns[name] = [row.values[name] for row in scored.rows]
    paths = [out / name for name in ("scores.csv", "scores.parquet", "summary.csv", "scores.json")]
    _write_csv(paths[0], list(columns), zip(*columns.values(), strict=True))
    with replacing(paths[1]) as temporary:
        pq.write_table(pa.table(columns), temporary, compression="zstd")
    _write_csv(paths[2], Cell.__struct_fields__, map(msgspec.structs.astuple, scored.cells))
    told = {
        **about,
        "scored": scored.scored,
        "variants": scored.variants,
        "chosen on the scored images": scored.thresholds,
        "maps without an image": scored.unknown,
        "maps without a finding": scored.unclear,
        "regions without a map": scored.missing,
        "counted without a region": scored.strays,
        "counted without a map": scored.unmapped,
        "maps that cannot be read": scored.bad,
    }
    write_bytes(paths[3], msgspec.json.format(msgspec.json.encode(told, enc_hook=str), indent=2) + b"\n")
    return paths


def _write_csv(path: Path, headings: Sequence[str], rows: Any) -> None:  # noqa: ANN401 - tuples of anything
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows([_plain(value) for value in row] for row in rows)
    write_bytes(path, text.getvalue().encode())


def _plain(value: object) -> object:
    """Blank where there is nothing."""
    if value is None or value != value:  # noqa: PLR0124 - only NaN differs from itself
        return ""
    return f"{value:.12g}" if isinstance(value, float) else value

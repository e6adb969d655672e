"""Make phantom studies from a seed, in memory or on disk, with any number of workers."""

import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from carina.phantom import truth
from carina.phantom.course import plan_patient, plan_studies
from carina.phantom.options import Mix, PhantomOptions, Wording
from carina.phantom.plan import PatientPlan, StudyPlan
from carina.phantom.radiograph import take_radiograph
from carina.phantom.reports import write_report
from carina.sources import SOURCES, Source
from carina.store import SetBuild
from carina.store.arguments import PositiveInt, check_arguments
from carina.store.columns import explain
from carina.store.errors import CarinaError, StudySetError
from carina.store.files import remove_temporary_files
from carina.store.progress import Progress, no_progress
from carina.store.results import Location, as_path
from carina.store.seeding import rng
from carina.store.workers import in_order
from carina.studies import (
    Assessed,
    Image,
    Manifest,
    PartInfo,
    Provenance,
    Studies,
    Study,
    create_studies,
    open_studies,
    write_png,
)
from carina.studies.vocabulary import Split

SOURCE: Final = Source(
    name="phantom",
    title="Synthetic chest radiographs with exact truth",
    needs="nothing (made by `carina phantom`)",
    licence="CC0-1.0",
    truth=("masks", "anatomy", "attributes", "devices", "relations", "priors", "quality", "reports"),
)
SOURCES.register(SOURCE.name, SOURCE)

PART_SIZE: Final = 32
"""Studies in a part; an interrupted command makes unfinished parts again."""
IMAGES: Final = "images"
"""Folder of the image files in the study set."""
WORTH_A_POOL: Final = 8
"""Number of studies below which starting processes takes longer than making the studies."""
ASSESSED: Final = Assessed(findings="every", devices="every", text=True)
"""Everything that is in a phantom is known, and its report is written from that."""
SPLITS: Final[tuple[tuple[Split, float], ...]] = (("train", 0.7), ("val", 0.1), ("test", 0.2))

Pixels = NDArray[np.uint8] | NDArray[np.uint16]


def make_study(
    patient: PatientPlan, plan: StudyPlan, options: PhantomOptions, seed: int
) -> tuple[Study, dict[str, Pixels]]:
    """Make one study with all its truth.

    Args:
        patient: Plan of the patient.
        plan: Plan of the study.
        options: Size and bits of the images, and wording of the report.
        seed: Seed of everything that is random.

    Returns:
        The study, and the pixels of its images by key.

    Example:
        >>> options = PhantomOptions(size=64)
        >>> patient, plan = next(iter(plan_studies(2, 1, options)))
        >>> make_study(patient, plan, options, 2)[0].id
        'p000000-s1'
    """
    images = {
        _make_image_key(patient, plan, t.view): take_radiograph(patient, plan, t, options, seed)
        for t in plan.techniques
    }
    findings, finding_ids = truth.make_findings(plan, images)
    devices, device_ids = truth.make_devices(plan, images)
    order = plan.order
    study = Study(
        id=plan.id,
        patient=patient.id,
        source=SOURCE.name,
        order=order,
        date=plan.date,
        prior=patient.studies[order - 1].id if order > 0 else None,
        later=patient.studies[order + 1].id if order + 1 < len(patient.studies) else None,
        split=_assign_split(patient.id, seed),
        age=plan.age,
        sex=patient.sex,
        images=tuple(
            Image(
                key=key,
                view=radiograph.technique.view,
                width=radiograph.pixels.shape[1],
                height=radiograph.pixels.shape[0],
                bits=options.bits,
                monochrome1=options.monochrome1,
                spacing_mm=(round(radiograph.pixel_mm, 4), round(radiograph.pixel_mm, 4)),
                quality=truth.make_quality(radiograph),
            )
            for key, radiograph in images.items()
        ),
        assessed=ASSESSED,
        findings=tuple(findings),
        devices=tuple(devices),
        anatomy=tuple(
            part for key, radiograph in images.items() for part in truth.make_anatomy(key, radiograph)
        ),
        relations=tuple(truth.make_relations(plan, finding_ids | device_ids)),
    )
    written = write_report(
        study, prior=_make_prior(patient, plan), rng=rng(seed, plan.id, "report"), wording=options.wording
    )
    return written, {key: radiograph.pixels for key, radiograph in images.items()}


def _make_image_key(patient: PatientPlan, plan: StudyPlan, view: str) -> str:
    return f"{IMAGES}/{patient.id}/{plan.id}-{view.lower()}.png"


def _make_prior(patient: PatientPlan, plan: StudyPlan) -> Study | None:
    """The fields of the prior study that a report refers to."""
    if plan.order == 0:
        return None
    before = patient.studies[plan.order - 1]
    return Study(
        id=before.id, patient=patient.id, source=SOURCE.name, order=before.order, date=before.date, images=()
    )


def _assign_split(patient: str, seed: int) -> Split:
    """Assign a split by patient, so that no patient is in two splits."""
    remaining = rng(seed, patient, "split").random()
    for split, share in SPLITS:
        if remaining < share:
            return split
        remaining -= share
    return SPLITS[-1][0]


def make_studies(
    n: int, seed: int, options: PhantomOptions | None = None
) -> Iterator[tuple[Study, dict[str, Pixels]]]:
    """Make the first studies of a seed, in memory, one at a time.

    Args:
        n: Number of studies.
        seed: Seed of everything that is random.
        options: Size, bits and mix of the studies; None for the defaults.

    Returns:
        An iterator over studies, each with the pixels of its images by key.

    Example:
        >>> study, pixels = next(make_studies(1, seed=2, options=PhantomOptions(size=64)))
        >>> study.id, [array.shape for array in pixels.values()]
        ('p000000-s1', [(64, 64)])
    """
    chosen = options or PhantomOptions()
    for patient, plan in plan_studies(seed, n, chosen):
        yield make_study(patient, plan, chosen, seed)


@check_arguments
def make_phantoms(
    out: Location,
    *,
    n: PositiveInt,
    seed: int = 0,
    size: int = 512,
    bits: int = 8,
    monochrome1: bool = False,
    conspicuity: float = 1.0,
    wording: Wording = "build",
    normal: float = 0.35,
    findings: Mapping[str, float] | None = None,
    devices: Mapping[str, float] | None = None,
    pa_with_lateral: float = 0.45,
    pa_alone: float = 0.15,
    with_prior: float = 0.65,
    quality_defect: float = 0.18,
    hedged: float = 0.13,
    malpositioned: float = 0.15,
    workers: PositiveInt | None = None,
    progress: Progress = no_progress,
) -> Studies:
    """Make a study set of synthetic chest radiographs with exact truth.

    The files depend only on the seed and the options, not on the number of workers. A larger set begins with the
    studies of a smaller one. An interrupted call resumes when it is repeated.

    Args:
        out: Directory to write the study set to.
        n: Number of studies to make.
        seed: Seed for all random choices.
        size: Side of the square images, in pixels: 32 to 4096.
        bits: Bits of a grey value: 8, or 12 stored in 16-bit PNG.
        monochrome1: Whether to store inverted grey values, high for dark, as DICOM's MONOCHROME1 does.
        conspicuity: Contrast of lesions, above 0 and at most 2; 1 is usual, 0.5 is subtle.
        wording: Wording of the reports: "build", or "held-out", which shares no sentence with it, to test report
            parsers.
        normal: Share of studies without a finding.
        findings: Weight of each finding among abnormal studies; a finding that is not named never occurs. None for the
            usual weights.
        devices: How often each device occurs; a device that is not named never does. Tubes and central venous line:
            share of AP studies. Pacemaker: share of patients of 60 and older. Chest tube: share of pneumothoraces in AP
            studies that are drained. None for the usual shares.
        pa_with_lateral: Share of studies with a PA and a lateral image.
        pa_alone: Share of studies with only a PA image; all others are AP.
        with_prior: Share of patients with more than one study.
        quality_defect: Share of images with a technical defect.
        hedged: Share of findings that the report calls uncertain.
        malpositioned: Share of devices with a misplaced tip.
        workers: Number of processes; None for one per core.
        progress: Progress display, such as `carina.progress_bar`; none by default.

    Returns:
        The study set, opened.

    Raises:
        CarinaError: An option is out of its range, or `out` holds something else.

    Example:
        >>> make_phantoms("phantoms", n=4, seed=7, size=64, workers=1)
        Studies('phantoms', studies=4, patients=2, images=5)
    """
    mix: dict[str, Any] = {
        "normal": normal,
        "pa_with_lateral": pa_with_lateral,
        "pa_alone": pa_alone,
        "with_prior": with_prior,
        "quality_defect": quality_defect,
        "hedged": hedged,
        "malpositioned": malpositioned,
    }
    for name, weights in (("findings", findings), ("devices", devices)):
        if weights is not None:
            mix[name] = dict(weights)
    options = _check_options(
        {
            "size": size,
            "bits": bits,
            "monochrome1": monochrome1,
            "conspicuity": conspicuity,
            "wording": wording,
            "mix": mix,
        }
    )
    directory = as_path(out)
    with progress("Studies", n) as advance:
        write_phantom(
            directory,
            n=n,
            seed=seed,
            options=options,
            workers=workers or os.cpu_count() or 1,
            progress=advance,
        )
    return open_studies(directory, verify=False)


def _check_options(given: Mapping[str, Any]) -> PhantomOptions:
    """Convert plain values to options; raise for a wrong type or a value out of range."""
    try:
        return msgspec.convert(given, PhantomOptions)
    except msgspec.ValidationError as error:
        message, _, rest = explain(error, PhantomOptions).partition(" - at `$.")
        place, _, expected = rest.partition("`")
        raise CarinaError(f"{place.removeprefix('mix.')}: {message.lower()}{expected}") from None


def write_phantom(
    directory: Path,
    *,
    n: int,
    seed: int,
    options: PhantomOptions | None = None,
    workers: int = 1,
    progress: Callable[[int], object] = lambda _done: None,
) -> Manifest:
    """Make a study set as `make_phantoms` does, with all options in one record, and return the manifest."""
    chosen = options or PhantomOptions()
    provenance = Provenance(
        command=_format_command(n, seed, chosen),
        seed=seed,
        options=msgspec.to_builtins(chosen),
        sources=(SOURCE.info(),),
    )
    with create_studies(directory, provenance, beside=(IMAGES,)) as build:
        return _write_parts(build, n=n, seed=seed, options=chosen, workers=workers, progress=progress)


def _write_parts(
    build: SetBuild[Study, Manifest],
    *,
    n: int,
    seed: int,
    options: PhantomOptions,
    workers: int,
    progress: Callable[[int], object],
) -> Manifest:
    directory, manifest = build.directory, build.manifest()
    if manifest and manifest.counts.studies > n:
        raise StudySetError(
            f"{directory}: already holds {manifest.counts.studies} studies, of which these {n} are the first: "
            "choose another directory, or remove this one"
        )
    parts: dict[int, PartInfo] = {}
    missing: list[int] = []
    for index, start in enumerate(range(0, n, PART_SIZE)):
        part = build.finished_part(index)
        if (
            part
            and part.rows == min(PART_SIZE, n - start)
            and _has_images(directory, seed, start, part.rows, options)
        ):
            parts[index] = part
            progress(part.rows)
        else:
            missing.append(index)
    new_studies = _make_and_write_images(
        directory, [(i * PART_SIZE, min(n, (i + 1) * PART_SIZE)) for i in missing], seed, options, workers
    )
    for index in missing:
        studies: list[Study] = []
        for study in islice(new_studies, min(PART_SIZE, n - index * PART_SIZE)):
            studies.append(study)
            progress(1)
        parts[index] = build.write_part(index, studies)
    listed = tuple(parts[index] for index in sorted(parts))
    if manifest and not missing and manifest.parts == listed:
        return manifest
    remove_temporary_files(directory / IMAGES)
    return build.close(listed)


def _format_command(n: int, seed: int, options: PhantomOptions) -> str:
    """Format the command that makes the same set, without options that do not change its bytes."""
    words = [f"carina phantom -n {n} --seed {seed}"]
    usual = PhantomOptions()
    for name, value in _flatten_options(options).items():
        if value != _flatten_options(usual)[name]:
            words.append(f"--{name.replace('_', '-')}" + ("" if value is True else f" {value}"))
    for option, given, default in (
        ("--finding", options.mix.findings, usual.mix.findings),
        ("--device", options.mix.devices, usual.mix.devices),
    ):
        if given != default:
            words += [f"{option} {shlex.quote(f'{name}={number:g}')}" for name, number in given.items()]
    return " ".join(words)


def _flatten_options(options: PhantomOptions) -> dict[str, object]:
    """Single-valued options and shares of the mix, by name."""
    flat = msgspec.structs.asdict(options) | msgspec.structs.asdict(options.mix)
    return {name: value for name, value in flat.items() if not isinstance(value, dict | Mix)}


def _has_images(directory: Path, seed: int, start: int, rows: int, options: PhantomOptions) -> bool:
    """Whether all images of a part exist; they were written before it, but may have been removed since."""
    return all(
        (directory / _make_image_key(patient, plan, technique.view)).exists()
        for patient, plan in plan_studies(seed, start + rows, options, start=start)
        for technique in plan.techniques
    )


def _make_and_write_images(
    directory: Path, ranges: list[tuple[int, int]], seed: int, options: PhantomOptions, workers: int
) -> Iterator[Study]:
    """Make the studies of these ranges in several processes, write their images, and yield the studies in order."""
    wanted = (
        (patient.index, plan.order)
        for start, stop in ranges
        for patient, plan in plan_studies(seed, stop, options, start=start)
    )
    few = sum(stop - start for start, stop in ranges) < WORTH_A_POOL
    return in_order(partial(_write_one, directory, seed, options), wanted, workers=1 if few else workers)


def _write_one(directory: Path, seed: int, options: PhantomOptions, wanted: tuple[int, int]) -> Study:
    index, order = wanted
    patient = plan_patient(seed, index, options)
    study, pixels = make_study(patient, patient.studies[order], options, seed)
    hashes = {key: write_png(directory / key, values) for key, values in pixels.items()}
    return msgspec.structs.replace(
        study,
        images=tuple(msgspec.structs.replace(image, sha256=hashes[image.key]) for image in study.images),
    )


__all__ = ["PART_SIZE", "SOURCE", "make_phantoms", "make_studies", "make_study", "write_phantom"]

"""Every image of the documentation, made from phantom data: `make pictures`, or `python docs/pictures.py`.

The same phantom gives the same images. Give names to make only those: `python docs/pictures.py views course`.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np
from PIL import Image as Photo

from carina.cases import Benchmark, Case, Views, open_benchmark
from carina.cases.draw import (
    HUES,
    WHITE,
    Gray,
    Layer,
    Panel,
    Rgb,
    Size,
    colour_of,
    montage,
    overlay,
    put_label,
    scale,
    size_of,
    stack,
)
from carina.cases.facts import LesionFacts
from carina.pages import write_case_page, write_study_page, write_study_pages
from carina.percept import LESIONS, PerceptCaseFacts, Rules, build_percept
from carina.percept.anatomy import make_geometry, read_anatomy
from carina.percept.deform import OPERATIONS, Operation, apply_changes, make_change, warp
from carina.percept.outline import Outline, draw_outline
from carina.phantom import Mix, PhantomOptions, make_studies, make_study
from carina.phantom.course import plan_patient
from carina.phantom.make import write_phantom
from carina.phantom.plan import PatientPlan, StudyPlan, Technique
from carina.store.seeding import rng
from carina.studies import Finding, Region, Study, open_studies
from carina.studies.vocabulary import FINDINGS

ASSETS = Path(__file__).parent / "assets"
QUALITY = 88
SEED = 7
CELL = Size(width=300, height=300)

PLAIN = Mix(
    normal=0,
    pa_with_lateral=0,
    pa_alone=1,
    with_prior=0,
    quality_defect=0,
    hedged=0,
    devices={},
    malpositioned=0,
)
"""One PA view of each patient, nothing in it but findings."""


def with_findings(mix: Mix, **changed: object) -> PhantomOptions:
    """Options with some shares of a mix changed."""
    fields = {name: getattr(mix, name) for name in mix.__struct_fields__}
    return PhantomOptions(mix=Mix(**(fields | changed)))  # type: ignore[arg-type]


def outlined(pixels: Gray, regions: Sequence[tuple[str, Region]], *, fill: float = 0.0, line: int = 2) -> Rgb:
    """An image with regions in the colours of their names."""
    layers = [
        Layer(region=region, colour=colour_of(name), outline=line, fill=fill) for name, region in regions
    ]
    return overlay(pixels, layers)


def marked(study: Study, key: str, pixels: Gray) -> Rgb:
    """An image with every finding that is on it outlined."""
    found = [
        (finding.name, annotation.region)
        for finding in study.findings
        for annotation in finding.annotations
        if annotation.image == key
    ]
    return outlined(pixels, found)


def frontal(study: Study, pixels: dict[str, Gray]) -> tuple[str, Gray]:
    """Key and pixels of the first image, which is the frontal one."""
    key = study.images[0].key
    return key, pixels[key]


def patients(options: PhantomOptions) -> Iterator[PatientPlan]:
    """Plans of patients, one after the other; planning costs nothing beside imaging."""
    return (plan_patient(SEED, index, options) for index in range(1000))


def contact() -> Rgb:
    """The contact sheet that `carina show` writes for a study set, here for eight studies with a finding."""
    with TemporaryDirectory() as place:
        write_phantom(Path(place) / "studies", n=24, seed=SEED, workers=2)
        abnormal = open_studies(Path(place) / "studies").where(certainty=("present", "uncertain"))
        sheet = write_study_pages(abnormal, Path(place) / "pages", limit=8)
        return narrowed(read(sheet.png), 1300)


def page() -> Rgb:
    """The summary image that `carina show` writes for one study: two views, a prior study, findings and a report."""
    with TemporaryDirectory() as place:
        write_phantom(Path(place) / "studies", n=60, seed=SEED, workers=2)
        studies = open_studies(Path(place) / "studies")
        chosen = max(studies.where(view="lateral"), key=lambda study: _richness(study, studies.prior(study)))
        return narrowed(read(write_study_page(studies, chosen, Path(place) / "pages").png), 1300)


def _richness(study: Study, prior: Study | None) -> float:
    """How much a study has to show without crowding: a prior, two or three findings, a relation, a device."""
    present = {finding.name for finding in study.findings if finding.certainty != "absent"}
    before = {finding.name for finding in prior.findings if finding.certainty != "absent"} if prior else set()
    spread = min(len(present), 3) - 2 * max(len(present) - 3, 0)
    return 3 * bool(before) + spread + bool(study.relations) + 0.5 * bool(study.devices)


def read(path: Path) -> Rgb:
    """The pixels of a picture that a page holds."""
    with Photo.open(path) as photo:
        return np.asarray(photo.convert("RGB"))


def findings() -> Rgb:
    """All findings, each as the clearest of a few, with the outline of its mask; and a normal chest."""
    panels = []
    for number, name in enumerate(FINDINGS):
        options = with_findings(PLAIN, findings={name: 1.0})
        made = [_first(study, pixels) for study, pixels in make_studies(8, SEED + number, options)]
        _, study, key, pixels = max(made, key=lambda item: item[0])
        finding = study.findings[0]
        panels.append(Panel(image=marked(study, key, pixels), caption=_caption(finding)))
    study, pixels = next(make_studies(1, SEED, with_findings(PLAIN, normal=1)))
    panels.append(Panel(image=frontal(study, pixels)[1], caption="no finding"))
    return montage(panels, columns=4, cell=CELL, text_size=15)


def _first(study: Study, pixels: dict[str, Gray]) -> tuple[float, Study, str, Gray]:
    """A study with how well its first finding shows: clear and large before faint or small, alone before not."""
    key, image = frontal(study, pixels)
    alone = sum(finding.certainty != "absent" for finding in study.findings) == 1
    seen = sum(
        (annotation.conspicuity or 0.0) * (annotation.region.area / image.size) ** 0.5
        for annotation in study.findings[0].annotations
    )
    return seen * alone, study, key, image


def _caption(finding: Finding) -> str:
    location = finding.location
    side = location.side if location and location.side != "midline" else None
    return ", ".join(word for word in (finding.name, side, finding.severity) if word)


def views() -> Rgb:
    """One patient with a mass, from the back, from the front lying down, and from the side."""
    options = with_findings(PLAIN, findings={"mass": 1.0}, pa_alone=0, pa_with_lateral=1)
    patient = next(p for p in patients(options) if _lone(p, extent=(0.35, 1.0), level="mid"))
    upright = patient.studies[0]
    portable = Technique(view="AP", rotation_degrees=0.5, inspiration=0.5, exposure=0.0)
    lying = replace(upright, techniques=(portable,), supine=True)
    panels = []
    for plan in (upright, lying):
        study, pixels = make_study(replace(patient, studies=(plan,)), plan, options, SEED)
        for image in study.images:
            name = "AP, supine" if image.view == "AP" else image.view
            panels.append(Panel(image=marked(study, image.key, pixels[image.key]), caption=name))
    panels = [panels[0], panels[2], panels[1]]
    return montage(panels, columns=3, cell=Size(width=400, height=400), text_size=16)


def conspicuity() -> Rgb:
    """One consolidation at five contrasts, nothing else changed; below, where it is."""
    options = with_findings(PLAIN, findings={"consolidation": 1.0})
    patient = next(p for p in patients(options) if _lone(p, extent=(0.3, 0.6), side="right"))
    raw, shown = [], []
    for contrast in (0.25, 0.45, 0.7, 1.0, 1.4):
        changed = msgspec.structs.replace(options, conspicuity=contrast)
        study, pixels = make_study(patient, patient.studies[0], changed, SEED)
        key, image = frontal(study, pixels)
        height, width = image.shape
        crop = slice(height // 8, height * 7 // 8), slice(width // 16, width * 9 // 16)
        measured = study.findings[0].annotations[0].conspicuity
        raw.append(Panel(image=image[crop], caption=f"--conspicuity {contrast}: {measured:.2f}"))
        shown.append(Panel(image=marked(study, key, image)[crop]))
    cell = Size(width=230, height=345)
    return stack([montage(raw, columns=5, cell=cell), montage(shown, columns=5, cell=cell)])


def _lone(
    patient: PatientPlan, *, extent: tuple[float, float], side: str | None = None, level: str | None = None
) -> bool:
    """Whether the first study has a single lesion of some size, on a side and at a level where these are given."""
    first, *others = patient.studies[0].lesions
    placed = (side is None or first.side == side) and (level is None or first.level == level)
    return not others and placed and extent[0] < first.extent < extent[1]


def course() -> Rgb:
    """One patient over four studies."""
    options = with_findings(PLAIN, findings={"pleural effusion": 1.0, "atelectasis": 0.01}, with_prior=1)
    patient = max(islice(patients(options), 300), key=lambda p: _movement(p.studies))
    panels = []
    for plan in patient.studies:
        study, pixels = make_study(patient, plan, options, SEED)
        key, image = frontal(study, pixels)
        words = [
            f"{finding.trend or 'first seen'}: {finding.name}"
            + (f", {finding.severity}" if finding.severity else "")
            for finding in study.findings
            if finding.name == "pleural effusion" and (finding.certainty != "absent" or finding.trend)
        ]
        panels.append(
            Panel(
                image=marked(study, key, image), caption=f"{plan.date}  {' / '.join(words) or 'no finding'}"
            )
        )
    return montage(panels, columns=4, cell=Size(width=330, height=330), text_size=14)


def _movement(studies: Sequence[StudyPlan]) -> float:
    """How much happens: four studies of one side, with extents that rise and fall."""
    extents = [max((lesion.extent for lesion in plan.lesions), default=0.0) for plan in studies]
    lone = all(len(plan.lesions) <= 1 for plan in studies)
    turns = len({np.sign(late - early) for early, late in pairwise(extents)})
    return (len(studies) == 4) * lone * (turns + max(extents))


ORGANS = ("lung", "heart", "mediastinum", "trachea", "hilum")
BONES = ("ribs", "clavicle", "spine", "hemidiaphragm")
ZONES = ("upper zone", "mid zone", "lower zone")
PARTS = ("medial lung", "lateral lung", "peripheral lung", "costophrenic angle")
LATERAL = ("trachea", "lung", "heart", "spine")
LATERAL_PARTS = ("anterior lung", "posterior lung", "posterior costophrenic angle")


def anatomy() -> Rgb:
    """What every image carries beside its findings."""
    options = with_findings(PLAIN, normal=1, pa_alone=0, pa_with_lateral=1)
    study, pixels = next(make_studies(1, SEED, options))
    front, side = (image.key for image in study.images)
    sheets = [
        (front, ORGANS, "organs"),
        (front, ZONES, "six zones"),
        (front, PARTS, "parts of the lungs"),
        (front, BONES, "bones and diaphragm"),
        (side, LATERAL, "organs, lateral view"),
        (side, LATERAL_PARTS, "parts of the lungs, lateral view"),
    ]
    panels = [
        Panel(image=labelled(pixels[key], study.anatomy_on(key), names), caption=caption)
        for key, names, caption in sheets
    ]
    return montage(panels, columns=3, cell=Size(width=420, height=420), text_size=16)


def labelled(pixels: Gray, there: Mapping[str, Region], names: Sequence[str]) -> Rgb:
    """An image with structures of both sides in one colour each, and the name of each written beside it."""
    colours = dict(zip(names, HUES.values(), strict=False))
    shown = [(plain, region) for name, region in there.items() if (plain := _plain(name)) in colours]
    picture = overlay(
        pixels, [Layer(region=r, colour=colours[name], fill=0.25, outline=2) for name, r in shown]
    )
    for place, name in enumerate(names):
        region = next(region for plain, region in shown if plain == name)
        # At different heights, so that names of structures side by side do not cover each other.
        rows = np.flatnonzero(region.to_mask().any(axis=1))
        row = int(rows[int(len(rows) * (place + 1) / (len(names) + 1))])
        columns = np.flatnonzero(region.to_mask()[row])
        put_label(picture, name, x=int(columns.mean()) - 30, y=row - 9, size=17, colour=colours[name])
    return picture


def _plain(name: str) -> str:
    return name.removeprefix("right ").removeprefix("left ")


def difference() -> Rgb:
    """One patient with a finding, the same without it, and every pixel that differs."""
    options = with_findings(PLAIN, findings={"pneumonia": 1.0})
    patient = next(p for p in patients(options) if _lone(p, extent=(0.4, 0.7)))
    plan = patient.studies[0]
    healthy = replace(plan, lesions=(), relations=())
    study, pixels = make_study(patient, plan, options, SEED)
    _, without = make_study(replace(patient, studies=(healthy,)), healthy, options, SEED)
    key, image = frontal(study, pixels)
    changed = np.where(image != without[key], 255, 0).astype(np.uint8)
    panels = [
        Panel(image=image, caption="with pneumonia"),
        Panel(image=without[key], caption="the same patient without"),
        Panel(image=marked(study, key, changed), caption="pixels that differ, and the mask"),
        Panel(image=marked(study, key, image), caption="stored mask"),
    ]
    return montage(panels, columns=4, cell=CELL, text_size=15)


LESION = "consolidation"


@cache
def _percept() -> tuple[Benchmark, TemporaryDirectory[str]]:
    """A small benchmark of one lesion; its directory lives as long as this program."""
    place = TemporaryDirectory()
    mix = with_findings(PLAIN, findings={LESION: 1.0}, normal=0.2)
    write_phantom(Path(place.name) / "studies", n=60, seed=SEED, options=mix, workers=2)
    root = Path(place.name)
    build_percept(root / "studies", root / "bench", seed=SEED, per_cell=8, targets=(LESION,), workers=2)
    return open_benchmark(Path(place.name) / "bench"), place


def percept_case() -> Rgb:
    """The summary image that `carina show` writes for a case whose contour must be expanded and contracted."""
    bench, place = _percept()
    chosen = max(bench.where(path="RR"), key=_instructive)
    return narrowed(read(write_case_page(bench, chosen, Path(place.name) / "pages").png), 1400)


def _instructive(case: Case) -> tuple[bool, int, float]:
    """Both operations, then many points, then a large lesion."""
    operations = {edit.operation for edit in PerceptCaseFacts.of(case).edits.values()}
    return len(operations) == 2, min(len(case.step("3a").options), 7), _area(case)


def _area(case: Case) -> float:
    return LesionFacts.of(case).area or 0.0


def percept_paths() -> Rgb:
    """One case a path: what is drawn for its questions; the zones, which no question shows, are for the reader."""
    bench, place = _percept()
    views = Views(bench)
    free = next(iter(bench.where(path="LF")))
    good = max(bench.where(path="RF"), key=_area)
    wrong = max(bench.where(path="RR"), key=_instructive)
    there = open_studies(Path(place.name) / "studies")[good.study].anatomy_on(good.images[0].key)
    zoned = labelled(bench.pixels(good.images[0]), there, ZONES)
    panels = [
        Panel(image=views.array(free, "v1"), caption="LF  |  1: is it there? no"),
        Panel(image=views.array(good, "v1"), caption="RF  |  1: is it there? yes"),
        Panel(image=views.array(good, "v2"), caption="RF  |  2: a major revision? no"),
        Panel(image=zoned, caption="RF  |  4: how many of six zones?"),
        Panel(image=views.array(wrong, "v1"), caption="RR  |  1: is it there? yes"),
        Panel(image=views.array(wrong, "v2"), caption="RR  |  2: a major revision? yes"),
        Panel(image=views.array(wrong, "v3"), caption="RR  |  3: at which points?"),
        Panel(image=views.array(wrong, "v4"), caption="RR  |  3: is this the revised mask?"),
    ]
    return montage(panels, columns=4, cell=CELL, text_size=15)


def percept_warp() -> Rgb:
    """The reader's contour over the truth, and changes of growing area at one place of it, both ways."""
    study, pixels = _clear_study()
    image = study.images[0]
    lesion, rules = LESIONS[LESION], Rules()
    truth = study.findings[0].annotations[0].region.to_mask()
    geometry = make_geometry(lesion, truth, read_anatomy(study, image, rules), rules)
    outline = draw_outline(geometry, rules, rng(SEED, "outline"))
    x, y, width, height = Region.from_mask(truth).bbox or (0, 0, 1, 1)
    edge = max(width, height) // 3
    crop = slice(max(0, y - edge), y + height + edge), slice(max(0, x - edge), x + width + edge)

    def drawn(*layers: Layer) -> Rgb:
        return overlay(pixels, list(layers))[crop]

    redrawn = Layer(
        region=Region.from_mask(outline.on_image(outline.mask)), colour=HUES["sky blue"], outline=1
    )
    true = Layer(region=Region.from_mask(truth), colour=WHITE, outline=1)
    panels = [
        Panel(image=pixels[crop], caption="the X-ray"),
        Panel(image=drawn(true, redrawn), caption="truth (white), redrawn (blue)"),
    ]
    for operation in OPERATIONS:
        changes = [
            Layer(region=region, colour=HUES["vermillion"], outline=1)
            for region in _grown(outline, operation)
        ]
        panels.append(
            Panel(image=drawn(*changes, redrawn), caption=f"{operation} by 5, 10, 20, 30% of the area")
        )
    return montage(panels, columns=4, cell=CELL, text_size=15)


def _clear_study() -> tuple[Study, Gray]:
    options = with_findings(PLAIN, findings={LESION: 1.0})
    made = [_first(study, pixels) for study, pixels in make_studies(8, SEED, options)]
    _, study, _, image = max(made, key=lambda item: item[0])
    return study, image


def _grown(outline: Outline, operation: Operation) -> Iterator[Region]:
    """The contour after the same change at four areas: pushed out on the image's left, in on its right."""
    rows, columns = np.nonzero(outline.mask)
    place = int(rows[columns.argmin()]), int(columns.min())
    if operation == "contraction":
        place = int(rows[columns.argmax()]), int(columns.max())
    width = 0.5 * float(np.sqrt(outline.area))
    window, effort = warp(outline, place, operation, width=width, chance=rng(SEED, "warp"))
    for share in (0.05, 0.1, 0.2, 0.3):
        change = make_change(outline, window, effort, operation, share * outline.area)
        if change is not None:
            yield Region.from_mask(outline.on_image(apply_changes(outline.mask, [change])))


def narrowed(picture: Rgb, width: int) -> Rgb:
    """Shrunk to a width."""
    size = size_of(picture)
    return scale(picture, Size(width=width, height=round(size.height * width / size.width)))


PICTURES: dict[str, Callable[[], Rgb]] = {
    "contact-sheet": contact,
    "study-page": page,
    "findings": findings,
    "views": views,
    "conspicuity": conspicuity,
    "course": course,
    "anatomy": anatomy,
    "difference": difference,
    "percept-case": percept_case,
    "percept-paths": percept_paths,
    "percept-warp": percept_warp,
}


def main(names: Sequence[str]) -> None:
    ASSETS.mkdir(exist_ok=True)
    for name in names or PICTURES:
        picture = PICTURES[name]()
        path = ASSETS / f"{name}.jpg"
        Photo.fromarray(np.ascontiguousarray(picture)).save(
            path, quality=QUALITY, optimize=True, progressive=True
        )
        print(f"{path.name}: {picture.shape[1]} x {picture.shape[0]}, {path.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main(sys.argv[1:])

"""One probe as a case: is the finding present, and if it is, where?

The same case is put to a chat model in words (`carina run`) and to a CLIP-style model as a phrase whose localisation
map is compared with the region (`carina explain`).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from carina.cases import Box, Branch, Case, CaseRegion, CaseView, Key, Option, Panel, Step, case_image
from carina.cases.facts import BY_PROGRAM
from carina.cases.reader_scores import ReaderFacts
from carina.ground.facts import GroundCaseFacts
from carina.ground.options import GroundOptions
from carina.ground.truth import Truth
from carina.store.seeding import rng
from carina.studies import Image, Region, Study
from carina.studies.assessment import is_stated_by_program

PRESENT: Final = "present"
ABSENT: Final = "absent"
_QUESTION_NAMES: Final = {
    "atelectasis": "atelectasis",
    "cardiomegaly": "cardiomegaly",
    "consolidation": "a consolidation",
    "edema": "pulmonary edema",
    "fracture": "a fracture",
    "lung opacity": "a lung opacity",
    "mass": "a mass",
    "nodule": "a nodule",
    "pleural effusion": "a pleural effusion",
    "pneumonia": "pneumonia",
    "pneumothorax": "a pneumothorax",
}
"""Names of findings in questions; other findings keep the name that their source gives them."""
_WHERE: Final = (
    "Mark every area of it by a box as tight as you can. Give each box as [x1, y1, x2, y2] in thousandths of the "
    "image's width and height (0 to 1000); the origin is the top left corner. Reply with nothing but the boxes."
)
_THOUSAND: Final = 1000.0


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One question about a finding on one image."""

    study: Study
    image: Image
    target: str
    truth: Truth | None
    """None for a negative probe."""
    phrase: str
    reader: str | None = None
    """The reader whose region is the truth, where each reader has a probe."""
    readers: Mapping[str, ReaderFacts] = field(default_factory=dict)
    """By reader, how the reader does against the others."""
    alike: tuple[str, ...] = ()
    """Other findings of the same study that look the same."""
    yes_first: bool = True


def make_case(probe: Probe, options: GroundOptions) -> Case:
    """The case of a probe."""
    study, image, truth = probe.study, probe.image, probe.truth
    name = case_id(options.seed, study.id, image.key, probe.target, probe.phrase, reader=probe.reader)
    regions, roles = _name_regions(probe, rng(options.seed, name, "regions"))
    return Case(
        id=name,
        protocol="ground",
        study=study.id,
        patient=study.patient,
        source=study.source,
        split=study.split,
        target=probe.target,
        path=ABSENT if truth is None else PRESENT,
        images=(case_image(image),),
        regions=regions,
        views=(CaseView(id="v1", panels=(Panel(image=image.key),)),),
        steps=(
            _make_presence_step(probe),
            *(() if truth is None else (_make_localisation_step(probe, truth, roles["truth"]),)),
        ),
        facts=_make_facts(probe, roles).rows(),
    )


def case_id(seed: int, study: str, image: str, target: str, phrase: str, *, reader: str | None = None) -> str:
    """An id that depends on the question, the image and the reader, and does not reveal the answer."""
    named = (study, image, target, phrase, *(() if reader is None else (reader,)))
    parts = "".join(f"{len(part)}:{part}" for part in named)
    return f"g-{hashlib.sha256(f'{seed}/{parts}'.encode()).hexdigest()[:16]}"


def _name_regions(probe: Probe, chance: np.random.Generator) -> tuple[tuple[CaseRegion, ...], dict[str, str]]:
    """Truth and lungs, with names and in an order that do not reveal their roles; and the names by role."""
    there: dict[str, Region] = {}
    if probe.truth is not None:
        there["truth"] = probe.truth.region
    on_image = probe.study.anatomy_on(probe.image.key)
    lungs = [on_image[name] for name in ("right lung", "left lung") if name in on_image]
    if lungs:
        there["lungs"] = lungs[0].union(*lungs[1:])
    order = [list(there)[n] for n in chance.permutation(len(there))]
    names = {role: f"r{number}" for number, role in enumerate(order, start=1)}
    regions = tuple(
        CaseRegion(name=name, image=probe.image.key, region=there[role]) for role, name in names.items()
    )
    return regions, names


def presence_question(target: str, phrase: str) -> str:
    """Write the question whether a finding, or what a sentence of a report says, is present.

    Args:
        target: Name of the finding.
        phrase: The name again, or a sentence of a report.

    Returns:
        The question.

    Example:
        >>> presence_question("nodule", "nodule")
        'Is there a nodule on this chest X-ray?'
        >>> presence_question("nodule", "Small nodule in the left apex.")
        'A report says: “Small nodule in the left apex.” Is that so on this chest X-ray?'
    """
    if phrase != target:
        return f"A report says: “{phrase}” Is that so on this chest X-ray?"
    return f"Is there {_QUESTION_NAMES.get(target, target)} on this chest X-ray?"


def _make_presence_step(probe: Probe) -> Step:
    options = [Option(id="yes", text="Yes"), Option(id="no", text="No")]
    if not probe.yes_first:
        options.reverse()
    lines = [f"({number}) {option.text}" for number, option in enumerate(options, start=1)]
    question = presence_question(probe.target, probe.phrase)
    return Step(
        id="1",
        stage=1,
        task="recognition",
        format="choice",
        question="\n".join([question, "Options:", *lines]),
        options=tuple(options),
        shows=("v1",),
        uses=("v1",),
        key=Key(options=("no" if probe.truth is None else "yes",)),
    )


def _make_localisation_step(probe: Probe, truth: Truth, region: str) -> Step:
    question = f"Where is the {probe.target}?"
    if probe.phrase != probe.target:
        question = f"Where is what the report describes as “{probe.phrase}”?"
    sides = (probe.image.width, probe.image.height) * 2
    boxes = tuple(
        Box(
            image=probe.image.key,
            xyxy=_box_corners(piece, sides),
            frame="thousand",
            name=probe.target,
        )
        for piece in truth.pieces
    )
    return Step(
        id="2",
        stage=2,
        task="localisation",
        format="boxes",
        score="boxes",
        question=f"{question} {_WHERE}",
        uses=("v1",),
        reached_by=(Branch(step="1", options=("yes",)),),
        depends_on=("1",),
        restates=True,
        key=Key(boxes=boxes, regions=(region,)),
    )


def _box_corners(piece: Region, sides: tuple[int, ...]) -> tuple[float, float, float, float]:
    x, y, width, height = piece.bbox or (0, 0, 0, 0)
    x1, y1, x2, y2 = (
        round(_THOUSAND * value / side, 1)
        for value, side in zip((x, y, x + width, y + height), sides, strict=True)
    )
    return x1, y1, x2, y2


def _make_facts(probe: Probe, roles: dict[str, str]) -> GroundCaseFacts:
    names = {name: role for role, name in sorted(roles.items())}
    truth = probe.truth
    stated_by = BY_PROGRAM if is_stated_by_program(probe.study, probe.target) else None
    if truth is None:
        return GroundCaseFacts(phrase=probe.phrase, roles=names, stated_by=stated_by, readers=probe.readers)
    region = truth.region
    return GroundCaseFacts(
        phrase=probe.phrase,
        roles=names,
        area=float(region.area),
        share_of_image=region.area / (region.height * region.width),
        pieces=float(len(truth.pieces)),
        drawn=truth.drawn,
        drawn_by=BY_PROGRAM if truth.is_automatic else None,
        stated_by=stated_by,
        annotators=float(truth.annotators),
        fusion=truth.fusion,
        reader=probe.reader,
        side=truth.side,
        agreement=truth.agreement,
        conspicuity=truth.conspicuity,
        looks_like=probe.alike,
        readers=probe.readers,
    )

"""Studies put together by hand, conversations about them, and one set of phantoms without pixels for all tests."""

import datetime
import re
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from carina.cases import Case, Step
from carina.phantom import PhantomOptions, make_studies
from carina.studies import (
    Anatomy,
    Annotation,
    Assessed,
    Device,
    Finding,
    Image,
    Location,
    Provenance,
    Quality,
    Recommendation,
    Region,
    Relation,
    Report,
    ReportSection,
    Sentence,
    Study,
    write_studies,
)
from carina.trek.conversation import make_conversation
from carina.trek.language import load_language
from carina.trek.options import Quotas, TrekOptions
from carina.trek.sampling import Sampler
from carina.trek.subject import subject_of
from carina.trek.survey import survey_studies
from carina.trek.turn import ConversationDraft

WORDS = load_language()
EVERYTHING = Quotas(
    view=1.0,
    quality=1.0,
    choices=0.25,
    lists=2.0,
    others=1.0,
    vignette=0.25,
    attributes=1.0,
    described=1.0,
    zones=0.5,
    regions=2.0,
    relations=2.0,
    comparison=2.0,
    outlook=1.0,
    two_report_turns=0.5,
)
"""As much of everything as there is."""


# ---- records --------------------------------------------------------------------------------------------------------


def rectangle(top, left, height, width, *, size=(100, 200)):
    """A region of an image of this height and width."""
    mask = np.zeros(size, bool)
    mask[top : top + height, left : left + width] = True
    return Region.from_mask(mask)


def finding(name, certainty="present", *, number=None, zones=(), side=None, site=None, boxed=None, **more):
    """A finding; `zones` in short ("right lower"), `boxed` a region on the first image."""
    location = None
    if zones or side or site:
        location = Location(side=side, zones=tuple(f"{zone} zone" for zone in zones), site=site)
    if boxed is not None:
        more["annotations"] = (Annotation(image="s.png", region=boxed, drawn="mask", annotator="reader"),)
    return Finding(id=number or f"f-{name}", name=name, certainty=certainty, location=location, **more)


def device(name, certainty="present", *, number=None, **more):
    return Device(id=number or f"d-{name}", name=name, certainty=certainty, **more)


def report(findings=None, impression=None, **more):
    """A report, one sentence a full stop."""
    named = {"findings": findings, "impression": impression, **more}
    sections = tuple(ReportSection(name=name, text=text) for name, text in named.items() if text)
    sentences = tuple(
        Sentence(section=section.name, start=match.start(), end=match.end())
        for section in sections
        for match in re.finditer(r"\S[^.]*\.", section.text)
    )
    return Report(sections=sections, sentences=sentences)


def study(*things, name="s", patient="p", order=0, views=("PA",), date=None, split="train", **more):
    """A study in which everything was looked for and these were found; its images are 200 wide and 100 high."""
    keys = [f"{name}.png", *(f"{name}-{number}.png" for number in range(2, len(views) + 1))]
    quality = more.pop("quality", None)
    images = tuple(
        Image(key=key, view=view, width=200, height=100, quality=quality)
        for key, view in zip(keys, views, strict=True)
    )
    findings = tuple(_on(thing, keys[0]) for thing in things if isinstance(thing, Finding))
    return Study(
        **{
            "id": name,
            "patient": patient,
            "source": "made",
            "order": order,
            "date": None if date is None else datetime.date.fromisoformat(date),
            "split": split,
            "images": images,
            "assessed": Assessed(findings="every", devices="every"),
            "findings": findings,
            "devices": tuple(thing for thing in things if isinstance(thing, Device)),
        }
        | more
    )


def _on(thing, key):
    marks = tuple(msgspec.structs.replace(mark, image=key) for mark in thing.annotations)
    return msgspec.structs.replace(thing, annotations=marks)


def anatomy(key="s.png", **regions):
    """Structures of one image, by name with underscores."""
    return tuple(
        Anatomy(name=name.replace("_", " "), image=key, region=region, annotator="reader")
        for name, region in regions.items()
    )


GOOD = Quality(rotation="none", inspiration="adequate", exposure="adequate", cut_off=())
ALL_ZONES = tuple(f"{side} {level}" for side in ("right", "left") for level in ("upper", "mid", "lower"))


def crowd(number=120, *, names=("pneumonia", "pleural effusion", "cardiomegaly", "fracture", "mass")):
    """Studies for a survey: every finding there and not there, at every place and grade."""
    made = []
    for n in range(number):
        there = names[n % len(names)]
        zone = ALL_ZONES[n % 6]
        things = [
            finding(
                name,
                zones=(zone,) if name != "cardiomegaly" else (),
                side="midline" if name == "cardiomegaly" else zone.split()[0],
                severity=("mild", "moderate", "severe")[n % 3],
                appearance=(("patchy", "lobar", "calcified")[n % 3],),
                distribution=("focal", "multifocal", "diffuse")[n // 3 % 3],
            )
            if name == there and n % 4
            else finding(name, "absent")
            for name in names
        ]
        tube = device(
            "chest tube",
            site=("in the left pleural space", "in the right pleural space")[n % 2],
            position=("adequate", "malpositioned")[n // 2 % 2],
        )
        line = device("central venous line", site=("in the right atrium", "in the azygos vein")[n % 2])
        made.append(
            study(
                *things,
                *([tube] if n % 5 == 0 else []),
                *([line] if n % 7 == 0 else []),
                name=f"c{n}",
                patient=f"q{n}",
            )
        )
    return made


HEDGES = re.compile(
    r"possib|\bmay\b|might|could|perhaps|uncertain|certainty|doubt|suspic|suspect|question|equivocal|not sure|\bif\b"
    r"|excluded|ruled out|not certain|less certain|unclear|open whether|hint",
    re.IGNORECASE,
)
"""How a teacher says that something only may be there."""


# ---- conversations --------------------------------------------------------------------------------------------------


def surveyed(studies, **more):
    return survey_studies(studies, WORDS, **more)


def subject(of, *, known=(), most_images=2):
    return subject_of(of, WORDS, known=known, most_images=most_images)


def draft(of, reference=None, later=None, *, among=None, seed=0, quotas=EVERYTHING, **options):
    """A draft without questions."""
    among = among or surveyed([one for one in (of, reference, later) if one is not None])
    chosen = TrekOptions(seed=seed, quotas=quotas, **options)
    read = [
        None if one is None else subject_of(one, WORDS, known=among.known, most_images=chosen.most_images)
        for one in (of, reference, later)
    ]
    return ConversationDraft(
        subject=read[0],
        reference=read[1],
        later=read[2],
        sampler=Sampler(seed, "test", of.id),
        words=WORDS,
        survey=among,
        options=chosen,
    )


def talk(of, reference=None, later=None, *, among=None, seed=0, quotas=None, **options) -> Case:
    """A whole conversation."""
    among = among or surveyed([one for one in (of, reference, later) if one is not None])
    chosen = TrekOptions(seed=seed, quotas=quotas or Quotas(), **options)
    read = [
        None if one is None else subject_of(one, WORDS, known=among.known, most_images=chosen.most_images)
        for one in (of, reference, later)
    ]
    return make_conversation(*read, survey=among, words=WORDS, options=chosen)


def talks(number, of, reference=None, later=None, *, among=None, **more):
    """Conversations about the same with seed after seed."""
    among = among or surveyed([*crowd(), *(one for one in (of, reference, later) if one is not None)])
    return [talk(of, reference, later, among=among, seed=seed, **more) for seed in range(number)]


def facts(step: Step, name: str):
    return [fact for fact in step.facts if fact.name == name]


def targets(step: Step) -> list[str]:
    return [str(fact.text) for fact in facts(step, "target")]


def right_texts(step: Step) -> list[str]:
    return [option.text for option in step.options if option.id in step.key.options]


def wrong_texts(step: Step) -> list[str]:
    return [option.text for option in step.options if option.id not in step.key.options]


def is_closed(step: Step) -> bool:
    return step.format in ("yes_no", "choice")


def label_of(step: Step) -> str | None:
    """Yes or no, also where it is dressed as options."""
    if step.format == "choice" and {option.text for option in step.options} == {"Yes", "No"}:
        return right_texts(step)[0].lower()
    return step.key.label


def neighbours_of(one, studies):
    """The study before and the one after, by order."""
    same = sorted((s for s in studies if s.patient == one.patient), key=lambda s: s.order)
    place = same.index(one)
    return (
        same[place - 1] if place else None,
        same[place + 1] if place + 1 < len(same) else None,
    )


@pytest.fixture(scope="session")
def made():
    """Makers of studies and of conversations about them."""
    return SimpleNamespace(
        words=WORDS,
        hedges=HEDGES,
        everything=EVERYTHING,
        good=GOOD,
        zones=ALL_ZONES,
        rectangle=rectangle,
        finding=finding,
        device=device,
        report=report,
        study=study,
        anatomy=anatomy,
        relation=Relation,
        recommendation=Recommendation,
        crowd=crowd,
        survey=surveyed,
        subject=subject,
        draft=draft,
        talk=talk,
        talks=talks,
        facts=facts,
        targets=targets,
        right=right_texts,
        wrong=wrong_texts,
        closed=is_closed,
        label=label_of,
        neighbours=neighbours_of,
        write=lambda directory, studies: (
            write_studies(directory, studies, Provenance(command="made")),
            directory,
        )[1],
        replace=msgspec.structs.replace,
        with_quotas=lambda **more: replace(EVERYTHING, **more),
    )


@pytest.fixture(scope="session")
def phantoms():
    """Phantom studies of about fifty patients, without their pixels."""
    return [made for made, _ in make_studies(90, 11, PhantomOptions(size=96))]


@pytest.fixture(scope="session")
def conversations(phantoms):
    """Study, reference, later and conversation of every phantom, for several seeds and all conventions of boxes."""
    among = surveyed(phantoms, choices=Quotas().choices, uncertain=Quotas().uncertain)
    done = []
    for seed in range(9):
        for one in phantoms:
            before, after = neighbours_of(one, phantoms)
            case = talk(
                one,
                before,
                after,
                among=among,
                seed=seed,
                frame=("percent", "pixel", "thousand")[seed % 3],
                quotas=EVERYTHING if seed % 2 else None,
            )
            done.append(SimpleNamespace(study=one, before=before, after=after, case=case))
    return done

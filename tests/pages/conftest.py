"""A small set of studies in memory, and a reader of the pages made from them."""

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from carina.studies import (
    Anatomy,
    Annotation,
    Device,
    Finding,
    Image,
    Location,
    Measure,
    Quality,
    Recommendation,
    Region,
    Relation,
    Report,
    ReportSection,
    Sentence,
    Statement,
    Study,
    Tip,
)

SIDE = 160


@dataclass(frozen=True)
class InMemory:
    """Reads like `carina.studies.Studies`."""

    studies: dict[str, Study]

    def __len__(self) -> int:
        return len(self.studies)

    def __iter__(self) -> Iterator[Study]:
        return iter(self.studies.values())

    def prior(self, study: Study) -> Study | None:
        return self.studies.get(study.prior) if study.prior else None

    def pixels(self, image: Image) -> np.ndarray:
        ramp = np.linspace(0, 2**image.bits - 1, image.width)
        return np.tile(ramp, (image.height, 1)).astype(np.uint16 if image.bits > 8 else np.uint8)

    def image_path(self, _image: Image) -> Path:
        return Path(__file__)  # a file that is there


@dataclass
class Page(HTMLParser):
    """What the tests want to know of an HTML page."""

    path: Path
    source: str = ""
    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self.source = self.path.read_text(encoding="utf-8")
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.tags.append((tag, named))
        if named.get("id"):
            self.ids.append(named["id"])
        href = named.get("href")
        if tag == "a" and href:
            self.links.append(href)
        self.resources += [value for value in (named.get("src"), href if tag != "a" else None) if value]

    def handle_data(self, data: str) -> None:
        if self.lasttag not in ("style", "script"):
            self.text += data

    def with_class(self, name: str) -> list[dict[str, str | None]]:
        return [attrs for _, attrs in self.tags if name in (attrs.get("class") or "").split()]

    def assert_sound(self) -> None:
        """Ids are unique, links lead somewhere, nothing is loaded from elsewhere, images have words."""
        assert len(self.ids) == len(set(self.ids))
        for link in [*self.links, *(item for item in self.resources if not item.startswith("data:image/"))]:
            if link.startswith("#"):
                assert link[1:] in self.ids, link
            else:
                assert (self.path.parent / link).is_file(), link
        assert not re.search(r"https?://|@import|url\(", re.sub(r"data:image/[^\"]*", "", self.source))
        assert all(attrs.get("alt") for tag, attrs in self.tags if tag == "img")
        assert all(attrs.get("aria-label") for _, attrs in self.tags if attrs.get("role") == "img")
        assert all(attrs.get("scope") in ("col", "row") for tag, attrs in self.tags if tag == "th")


def region(top: int, left: int, height: int, width: int) -> Region:
    mask = np.zeros((SIDE, SIDE), bool)
    mask[top : top + height, left : left + width] = True
    return Region.from_mask(mask)


def annotated(where: Region, key: str, *, conspicuity: float | None = None) -> Annotation:
    return Annotation(image=key, region=where, drawn="mask", annotator="reader A", conspicuity=conspicuity)


def image(key: str, view: str = "PA", **more: object) -> Image:
    return Image(key=key, view=view, width=SIDE, height=SIDE, **more)


def report(*sections: tuple[str, list[tuple[str, list[Statement]]]]) -> Report:
    """Sections from sentences and what each states."""
    made, sentences = [], []
    for name, parts in sections:
        text = ""
        for words, states in parts:
            text += " " if text else ""
            sentences.append(
                Sentence(section=name, start=len(text), end=len(text) + len(words), states=tuple(states))
            )
            text += words
        made.append(ReportSection(name=name, text=text))
    return Report(sections=tuple(made), sentences=tuple(sentences))


@pytest.fixture
def study() -> Study:
    """Two views, findings of all certainties, a device with its tip, relations, and a hostile report."""
    pa, lateral = "s1/pa.png", "s1/lateral.png"
    return Study(
        id="p1-s1",
        patient="p1",
        source="test",
        order=1,
        date=datetime.date(2024, 5, 2),
        prior="p1-s0",
        later="p1-s2",
        split="test",
        age=63,
        sex="F",
        indication="cough",
        images=(
            image(lateral, "lateral"),
            image(pa, quality=Quality(rotation="left", rotation_degrees=3.2, exposure="over", cut_off=())),
        ),
        findings=(
            Finding(
                id="f1",
                name="pleural effusion",
                certainty="present",
                location=Location(side="left", zones=("left lower zone",)),
                severity="moderate",
                distribution="focal",
                trend="worse",
                measures=(Measure(name="depth", value=6.234, unit="cm"),),
                annotations=(annotated(region(100, 90, 30, 50), pa, conspicuity=3.417),),
                evidence=(1,),
            ),
            Finding(id="f2", name="pneumothorax", certainty="absent", evidence=(2,)),
            Finding(
                id="f3",
                name="nodule",
                certainty="uncertain",
                location=Location(side="right"),
                annotations=(
                    annotated(region(30, 30, 8, 8), pa),
                    annotated(region(40, 60, 8, 8), lateral),
                ),
                evidence=(3,),
            ),
        ),
        devices=(
            Device(
                id="d1",
                name="endotracheal tube",
                certainty="present",
                position="adequate",
                site="4 cm above the carina",
                tips=(Tip(image=pa, x=80.5, y=60.5),),
                annotations=(annotated(region(0, 79, 61, 3), pa),),
                evidence=(2,),
            ),
        ),
        anatomy=(Anatomy(name="left lung", image=pa, region=region(20, 85, 110, 60), annotator="reader A"),),
        relations=(Relation(id="r1", subject="f1", kind="accompanies", object="f3", evidence=(3,)),),
        recommendations=(Recommendation(id="c1", action="chest CT", about=("f3",), evidence=(4,)),),
        report=report(
            ("indication", [("Cough & <script>alert('x')</script>.", [])]),
            (
                "findings",
                [
                    (
                        "A moderate left effusion has grown.",
                        [Statement(kind="finding", about="f1", certainty="present")],
                    ),
                    (
                        "The tube is well placed without pneumothorax.",
                        [
                            Statement(kind="finding", about="f2", certainty="absent"),
                            Statement(kind="device", about="d1", certainty="present"),
                        ],
                    ),
                    (
                        "A nodule may accompany it.",
                        [
                            Statement(kind="finding", about="f3", certainty="uncertain"),
                            Statement(kind="relation", about="r1"),
                        ],
                    ),
                ],
            ),
            ("recommendation", [("CT is advised.", [Statement(kind="recommendation", about="c1")])]),
        ),
    )


@pytest.fixture
def studies(study: Study) -> InMemory:
    """The study, its prior, and one of another patient without any finding or report."""
    prior = Study(
        id="p1-s0",
        patient="p1",
        source="test",
        order=0,
        later="p1-s1",
        images=(image("s0/ap.png", "AP", bits=12),),
        findings=(
            Finding(
                id="f1",
                name="pleural effusion",
                certainty="present",
                annotations=(annotated(region(110, 90, 20, 50), "s0/ap.png"),),
            ),
        ),
    )
    other = Study(id="p2/s0 <b>", patient="p2", source="test", order=0, images=(image("t.png"),))
    return InMemory({item.id: item for item in (study, prior, other)})


@pytest.fixture
def read_page() -> type[Page]:
    return Page

"""Cases like those of percept, with ellipses as masks, and a benchmark in memory that holds them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from carina.cases.model import (
    Branch,
    Case,
    CaseImage,
    CaseRegion,
    CaseView,
    Fact,
    Key,
    Mark,
    Option,
    Overlay,
    Panel,
    Step,
)
from carina.studies import Region, SourceInfo

KEY = "images/a.png"
COLOURS = ("orange", "blue", "green", "yellow")


@dataclass(frozen=True)
class Terms:
    sources: tuple[SourceInfo, ...] = (SourceInfo(name="phantom", licence="CC0-1.0"),)


@dataclass(frozen=True)
class InMemoryBench:
    """Reads like `carina.cases.Benchmark`."""

    cases: tuple[Case, ...]
    image: np.ndarray
    manifest: Terms = field(default_factory=Terms)

    def __len__(self) -> int:
        return len(self.cases)

    def __iter__(self) -> Iterator[Case]:
        return iter(self.cases)

    def pixels(self, image: CaseImage) -> np.ndarray:
        assert (image.width, image.height) == self.image.shape[1::-1]
        return self.image

    def image_path(self, image: CaseImage) -> Path:
        return Path(image.key)

    def check_image(self, image: CaseImage) -> None:
        """Take every file as it is."""

    def table(self, columns: Sequence[str]) -> pl.LazyFrame:
        return pl.LazyFrame([{name: getattr(case, name) for name in columns} for case in self.cases])


def ellipse(side: int, centre: tuple[float, float], axes: tuple[float, float]) -> np.ndarray:
    """A mask; centre and half axes as shares of the side."""
    y, x = (np.mgrid[:side, :side] + 0.5) / side
    return ((x - centre[0]) / axes[0]) ** 2 + ((y - centre[1]) / axes[1]) ** 2 <= 1


def asked(text: str, *options: str) -> str:
    return "\n".join([text, "Options:", *(f"({place}) {option}" for place, option in enumerate(options, 1))])


def choice(step: str, task: str, question: str, options: dict[str, str], right: str, **more: object) -> Step:
    """A step with options by id, keyed to the ids in `right`; kinds follow from it where none are given."""
    return Step(
        id=step,
        stage=int(step[0]),
        task=task,
        format="choice",
        question=asked(question, *options.values()),
        options=more.pop("made", tuple(Option(id=key, text=text) for key, text in options.items())),
        key=Key(options=tuple(right.split()), kinds=more.pop("kinds", ())),
        **more,
    )


def attributes(first: tuple[str, ...], reached: tuple[Branch, ...]) -> tuple[Step, ...]:
    """Stage 4."""
    views = {"uses": first, "reached_by": reached}
    zones = {"1": "1 zone", "2": "2 zones", "3": "3 zones", "4+": "4 zones or more"}
    places = {
        "a": "right lateral lung & right mid zone lung",
        "b": "left medial lung & left upper zone lung",
        "c": "right costophrenic angle",
        "none": "None of the above (options 1-3)",
    }
    shares = {"high": "2/3 or more", "mid": "1/3 to less than 2/3", "low": "less than 1/3"}
    sizes = {
        "similar": "about the same size",
        "left": "larger in the left lung",
        "right": "larger in the right lung",
        "one": "only in one lung",
    }
    return (
        choice(
            "4a", "distribution", "In how many of the six lung zones is the consolidation?", zones, "2",
            facts=(
                Fact(name="zone ratio", about="right mid zone", value=0.41, low=0.25),
                Fact(name="zone ratio", about="right upper zone", value=0.02, high=0.15),
            ),
            **views,
        ),
        choice(
            "4b", "location", "Which of these regions hold consolidation? Choose all that do.", places, "a c",
            multiple=True, score="set",
            facts=(
                Fact(name="region ratio", about="a", value=0.61, low=0.25),
                Fact(name="overlap", about="a b", value=0.0, high=0.3),
            ),
            **views,
        ),
        choice(
            "4c", "severity", "What share of the right lung is consolidated?", shares, "low",
            facts=(Fact(name="share", value=0.214, high=0.303),), **views,
        ),
        choice(
            "4d", "comparison", "How does it compare between the lungs?", sizes, "one",
            facts=(Fact(name="left share", value=0.0, high=0.005), Fact(name="right share", value=0.214)), **views,
        ),
    )  # fmt: skip


def rr_case(side: int = 160, **changes: object) -> Case:
    """Two edits: too much at the base (to be contracted at 2), too little at the top (to be expanded at 3)."""
    truth = ellipse(side, (0.30, 0.55), (0.10, 0.16))
    bulge, bite = ellipse(side, (0.30, 0.72), (0.09, 0.07)), ellipse(side, (0.28, 0.40), (0.09, 0.06))
    shown = (truth | bulge) & ~bite
    masks = {
        "r1": shown,
        "r2": truth | bulge,
        "r3": truth,
        "r4": truth & ~bite,
        "r5": shown | ellipse(side, (0.40, 0.55), (0.06, 0.09)),
        "r6": truth,
    }
    regions = tuple(
        CaseRegion(name=name, image=KEY, region=Region.from_mask(mask)) for name, mask in masks.items()
    )
    spots = ((0.42, 0.42), (0.30, 0.75), (0.28, 0.40), (0.16, 0.62))
    marks = tuple(
        Mark(x=x * side, y=y * side, colour=colour, text=str(place))
        for place, ((x, y), colour) in enumerate(zip(spots, COLOURS, strict=True), start=1)
    )
    over = Overlay(region="r1")
    views = [
        CaseView(id="v1", panels=(Panel(image=KEY),)),
        CaseView(id="v2", panels=(Panel(image=KEY, overlays=(over,)),)),
        CaseView(id="v3", panels=(Panel(image=KEY, overlays=(over,), marks=marks),)),
        *(
            CaseView(id=f"v{place}", panels=(Panel(image=KEY, overlays=(Overlay(region=name),)),))
            for place, name in enumerate(("r2", "r3", "r4", "r5"), start=4)
        ),
    ]
    points = {f"p{place}": f"{colour} point" for place, colour in enumerate(COLOURS, start=1)}
    pointed = (
        *(Option(id=key, text=text, mark=key[1:]) for key, text in points.items()),
        Option(id="none", text="None"),
    )
    ordinals = {"o1": "1st mask", "o2": "2nd mask", "o3": "3rd mask", "o4": "4th mask"}
    revised = (Branch(step="1", options=("yes",)), Branch(step="2", options=("yes",)))
    apart = tuple(
        Fact(name="nearest change", about=key, value=value, low=40.0)
        for key, value in (("p1", 96.0), ("p4", 43.5))
    )
    steps = (
        choice("1", "detection", "Is consolidation visible on this X-ray?", {"yes": "Yes", "no": "No"}, "yes",
               shows=("v1",), uses=("v1",)),
        choice("2", "contour evaluation", "Does the cyan mask of the consolidation need a major revision?",
               {"no": "No", "yes": "Yes"}, "yes", shows=("v2",), uses=("v2",), reached_by=revised[:1],
               facts=(Fact(name="iou with truth", about="r1", value=0.713, low=0.55, high=0.85),)),
        choice("3a", "expansion", "Towards which points should the mask be expanded? Choose all that apply.",
               {**points, "none": "None"}, "p3", made=pointed, multiple=True, score="set", shows=("v3",), uses=("v3",),
               context="Eight coloured points are drawn on the X-ray.",
               kinds=("outside", "contraction", "expansion", "inside", "none"), reached_by=revised, facts=apart),
        choice("3b", "contraction", "At which points should the mask be contracted? Choose all that apply.",
               {**points, "none": "None"}, "p2", made=pointed, multiple=True, score="set", uses=("v3",),
               kinds=("outside", "contraction", "expansion", "inside", "none"), reached_by=revised),
        choice("3c", "revision", "Which mask is the result of the right revision?", ordinals, "o2",
               made=tuple(Option(id=f"o{n}", text=ordinals[f"o{n}"], view=f"v{n + 3}") for n in range(1, 5)),
               kinds=("partial", "key", "wrong_operation+partial", "wrong_place"),
               shows=("v4", "v5", "v6", "v7"), uses=("v3", "v4", "v5", "v6", "v7"), reached_by=revised,
               depends_on=("3a", "3b"),
               facts=(Fact(name="iou with key", about="o1", value=0.83, high=0.93),
                      Fact(name="iou between", about="o1 o3", value=0.655, high=0.95))),
        *attributes(("v1",), revised[:1]),
    )  # fmt: skip
    facts = (
        *(
            Fact(name="role", about=name, text=role)
            for name, role in zip(masks, ("shown", "option", "revised", "option", "option", "truth"), strict=True)
        ),
        Fact(name="iou with truth", about="r1", value=0.713, low=0.55, high=0.85),
        Fact(name="lesion area", value=float(truth.sum())),
        Fact(name="provenance", about="r6", text="mask by reader A"),
        Fact(name="operation", about="edit 1", text="expansion"),
        Fact(name="place", about="edit 1", text="right lateral lung & right lower zone lung"),
        Fact(name="mark", about="edit 1", text="2"),
        Fact(name="changed share", about="edit 1", value=0.152, low=0.08),
        Fact(name="changed area", about="edit 1", value=2210.0, low=600.0),
        Fact(name="operation", about="edit 2", text="contraction"),
        Fact(name="place", about="edit 2", text="right lateral lung & right mid zone lung"),
        Fact(name="mark", about="edit 2", text="3"),
        Fact(name="changed share", about="edit 2", value=0.11, low=0.08),
    )  # fmt: skip
    made: dict[str, object] = {
        "id": "c-0123456789abcdef",
        "protocol": "percept",
        "study": "p000001-s1",
        "patient": "p000001",
        "source": "phantom",
        "target": "consolidation",
        "path": "RR",
        "images": (CaseImage(key=KEY, width=side, height=side, view="PA"),),
        "regions": regions,
        "views": tuple(views),
        "steps": steps,
        "facts": facts,
    }
    return Case(**(made | changes))


def lf_case(side: int = 160, **changes: object) -> Case:
    """One step."""
    whole = rr_case(side)
    step = choice("1", "detection", "Is edema visible on this X-ray?", {"yes": "Yes", "no": "No"}, "no",
                  shows=("v1",), uses=("v1",))  # fmt: skip
    made: dict[str, object] = {
        "id": "c-fedcba9876543210",
        "protocol": "percept",
        "study": "p000002-s1",
        "patient": None,
        "source": "phantom",
        "target": "edema",
        "path": "LF",
        "images": whole.images,
        "views": whole.views[:1],
        "steps": (step,),
    }
    return Case(**(made | changes))


def bench_of(*cases: Case, image: np.ndarray | None = None) -> InMemoryBench:
    """Cases over one image: a ramp unless one is given."""
    side = cases[0].images[0].width
    ramp = np.tile(np.linspace(0, 255, side), (side, 1)).astype(np.uint8)
    return InMemoryBench(cases, ramp if image is None else image)

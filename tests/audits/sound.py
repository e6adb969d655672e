"""A small sound benchmark of percept's kind, made in code: all gates pass on it, and tests break one thing at a time.

Contours are discs with bumps, turned by quarters, so that the four masks of a question are alike in size, length and
overlap, and what needs revision looks like what needs none.
"""

import hashlib
from functools import cache
from itertools import combinations, cycle

import numpy as np

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
from carina.store.seeding import rng
from carina.studies.region import Region

SIDE = 512
UNIT = SIDE / 1024
RADIUS, BUMP, EDIT = 220, 66, 100
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown")
ORDINALS = ("1st", "2nd", "3rd", "4th")
REGIONS = tuple(
    f"{side} {part} {zone}"
    for side in ("right", "left")
    for part in ("medial", "lateral")
    for zone in ("upper", "mid", "lower")
)
LOCATIONS = [set(chosen) for size in range(4) for chosen in combinations(range(3), size)]
EDITS = (("expansion", "expansion"), ("contraction", "contraction"), ("expansion", "contraction"))


@cache
def disc(angle, radius, reach=RADIUS):
    """Of the frame's pixels, around a place on the large disc."""
    x, y = place(angle, reach)
    rows, columns = np.mgrid[:SIDE, :SIDE] + 0.5
    return (columns - x * UNIT) ** 2 + (rows - y * UNIT) ** 2 < (radius * UNIT) ** 2


def place(angle, reach):
    radians = np.deg2rad(angle)
    return 512 + reach * np.cos(radians), 512 + reach * np.sin(radians)


@cache
def bumped(quarter):
    """The large disc with a bump towards one side."""
    return np.rot90(disc(0, RADIUS, 0) | disc(0, BUMP), -quarter)


def edited(mask, edits):
    """Pushed out or in at (operation, angle)."""
    for operation, angle in edits:
        mask = mask | disc(angle, EDIT) if operation == "expansion" else mask & ~disc(angle, EDIT)
    return mask


class Deck:
    """Deals values in shuffled blocks, so that each comes equally often."""

    def __init__(self, chance):
        self.chance, self.decks = chance, {}

    def deal(self, name, values):
        deck = self.decks.setdefault((name, len(values)), [])
        if not deck:
            deck.extend(self.chance.permutation(len(values)).tolist())
        return values[deck.pop()]


def benchmark(n=48, seed=1, target="edema"):
    """Cases of all paths in equal numbers, in the order of their ids."""
    deck = Deck(rng(seed, "sound"))
    paths = cycle(("LF", "RF", "RR"))
    cases = [
        make(f"{seed}-{target}-{at}", path, target, deck) for at, path in zip(range(n), paths, strict=False)
    ]
    return sorted(cases, key=lambda case: case.id)


def make(name, path, target, deck):
    code = hashlib.sha256(name.encode()).hexdigest()
    maker = Maker(code, path, deck)
    maker.detection()
    if path != "LF":
        maker.contour()
    if path == "RR":
        maker.revision()
    if path != "LF":
        maker.attributes()
    return Case(
        id=f"c-{code[:16]}",
        protocol="percept",
        study=f"s{code[16:24]}",
        patient=f"p{code[16:24]}",
        source="made",
        split="test",
        target=target,
        path=path,
        images=(maker.image,),
        regions=tuple(maker.regions),
        views=tuple(maker.views),
        steps=tuple(maker.steps),
        facts=tuple(maker.facts),
    )


def share(name, about, *, inside):
    """Of a region, clearly above or below the cut."""
    low, high = (0.25, None) if inside else (None, 0.15)
    return Fact(name=name, about=about, value=0.5 if inside else 0.05, low=low, high=high)


class Maker:
    """One case, step by step."""

    def __init__(self, code, path, deck):
        self.path, self.deck = path, deck
        self.image = CaseImage(key=f"{code[24:32]}.png", width=SIDE, height=SIDE, sha256=None)
        self.regions, self.facts, self.steps = [], [], []
        self.views = [CaseView(id="v1", panels=(Panel(image=self.image.key),))]
        self.spare = [
            f"r{n}" for n in (deck.deal("regions", [(1, 2), (2, 1)]) if path == "RF" else self.shuffled(6))
        ]
        self.turn = int(code[:4], 16) % 4

    def shuffled(self, n):
        return [int(at) + 1 for at in self.deck.chance.permutation(n)]

    def region(self, mask, role):
        name = self.spare.pop()
        self.regions.append(
            CaseRegion(name=name, image=self.image.key, region=Region.from_mask(np.ascontiguousarray(mask)))
        )
        self.regions.sort(key=lambda region: region.name)
        self.facts.append(Fact(name="role", about=name, text=role))
        return name

    def view(self, region, marks=()):
        name = f"v{len(self.views) + 1}"
        self.views.append(
            CaseView(
                id=name,
                panels=(Panel(image=self.image.key, overlays=(Overlay(region=region),), marks=marks),),
            )
        )
        return name

    def ask(self, number, task, options, right, **more):
        listed = "\n".join(f"({n}) {option.text}" for n, option in enumerate(options, start=1))
        words = more.pop("words", "What do you see?")
        self.steps.append(
            Step(
                id=number,
                stage=int(number[0]),
                task=task,
                format="choice",
                question=f"{words}\nOptions:\n{listed}",
                options=tuple(options),
                key=Key(options=tuple(right), kinds=more.pop("kinds", ())),
                score="set" if more.get("multiple") else "exact",
                **more,
            )
        )

    def ordered(self, task, values, right):
        """Options with the right one at a place that is dealt."""
        place = self.deck.deal(task, range(len(values)))
        others = [value for value in values if value[0] != right]
        others = [others[at] for at in self.deck.chance.permutation(len(others))]
        chosen = next(value for value in values if value[0] == right)
        return [Option(id=name, text=text) for name, text in [*others[:place], chosen, *others[place:]]]

    def detection(self):
        right = "no" if self.path == "LF" else "yes"
        options = self.ordered(f"1 {right}", [("yes", "Yes"), ("no", "No")], right)
        self.ask("1", "detection", options, [right], shows=("v1",), uses=("v1",))

    def contour(self):
        kind = self.deck.deal(f"edits {self.path}", EDITS)
        quarter = self.deck.deal("quarter", range(4))
        # Two of the four diagonals.
        angles = [45 + 90 * at for at in self.shuffled(4)]
        self.edits = list(zip(kind, angles, strict=False))
        self.free = angles[2:]
        self.quarter, self.best = quarter, bumped(quarter)
        shape = edited(self.best, self.edits)
        self.region(self.best if self.path == "RR" else shape, "truth")
        self.shown = self.region(shape, "shown")
        right = "yes" if self.path == "RR" else "no"
        options = self.ordered(f"2 {right}", [("yes", "Yes"), ("no", "No")], right)
        view = self.view(self.shown)
        low, high = (0.55, 0.85) if self.path == "RR" else (0.97, None)
        truth = self.best if self.path == "RR" else shape
        overlap = np.count_nonzero(truth & shape) / np.count_nonzero(truth | shape)
        self.facts.append(
            Fact(name="iou with truth", about=self.shown, value=float(overlap), low=low, high=high)
        )
        self.ask(
            "2",
            "contour evaluation",
            options,
            [right],
            shows=(view,),
            uses=(view,),
            reached_by=(Branch(step="1", options=("yes",)),),
        )

    def revision(self):
        deeper = self.deck.deal("depth", (40, 50))
        points = []
        for operation, angle in self.edits:
            sign = 1 if operation == "expansion" else -1
            needed = "contraction" if operation == "expansion" else "expansion"
            points.append((*place(angle, RADIUS + sign * deeper), needed))
        for angle in self.free:
            points += [(*place(angle, RADIUS + 55), "outside"), (*place(angle, RADIUS - 55), "inside")]
        # With fewer points now and then, "None" has no number of its own.
        points = points[: self.deck.deal("points", (4, 5, 6))]
        points = [points[at] for at in self.deck.chance.permutation(len(points))]
        colours = [COLOURS[at] for at in self.deck.chance.permutation(8)]
        marks = tuple(
            Mark(x=float(x * UNIT), y=float(y * UNIT), colour=colour, text=str(n))
            for n, ((x, y, _), colour) in enumerate(zip(points, colours, strict=False), start=1)
        )
        options = [Option(id=f"p{m.text}", text=f"{m.colour} point", mark=m.text) for m in marks]
        options.append(Option(id="none", text="None"))
        view = self.view(self.shown, marks)
        kinds = (*(kind for *_, kind in points), "none")
        for number, task in (("3a", "expansion"), ("3b", "contraction")):
            right = [f"p{n}" for n, (*_, kind) in enumerate(points, start=1) if kind == task] or ["none"]
            self.ask(
                number,
                task,
                options,
                right,
                multiple=True,
                kinds=kinds,
                shows=(view,) if number == "3a" else (),
                uses=(view,),
            )
        turned = [at for at in range(4) if at != self.quarter]
        key = self.deck.deal("3c", range(4))
        order = [*turned[:key], self.quarter, *turned[key:]]
        # One of the wrong ones keeps an edit, so that it is as near to what is shown as the right one.
        partial = turned[self.deck.deal("partial", range(3))]
        kept = self.edits[self.deck.deal("kept", range(2))]
        options = []
        for n, quarter in enumerate(order, start=1):
            mask = edited(bumped(quarter), [kept] if quarter == partial else [])
            region = self.region(mask, "revised" if quarter == self.quarter else "option")
            options.append(Option(id=f"o{n}", text=f"{ORDINALS[n - 1]} mask", view=self.view(region)))
        shows = tuple(option.view for option in options)
        self.ask("3c", "revision", options, [f"o{key + 1}"], shows=shows, uses=shows)

    def attributes(self):
        zones = self.deck.deal("4a key", ("1", "2", "3", "4+"))
        count = 5 if zones == "4+" else int(zones)
        options = self.ordered(
            "4a", [("1", "1 zone"), ("2", "2 zones"), ("3", "3 zones"), ("4+", "4 zones or more")], zones
        )
        facts = tuple(
            Fact(
                name="zone ratio",
                about=f"z{n}",
                value=0.4 if n < count else 0.05,
                low=0.25 if n < count else None,
                high=None if n < count else 0.15,
            )
            for n in range(6)
        )
        self.ask("4a", "distribution", options, [zones], facts=facts)
        self.location()
        severity, part = self.deck.deal("4c key", (("low", 0.2), ("mid", 0.5), ("high", 0.8)))
        options = self.ordered(
            "4c", [("low", "less than 1/3"), ("mid", "1/3 to 2/3"), ("high", "2/3 or more")], severity
        )
        side = self.deck.deal("side", ("left", "right"))
        self.ask(
            "4c",
            "severity",
            options,
            [severity],
            words=f"How much of the {side} lung?",
            facts=(Fact(name="share", value=part),),
        )
        key = self.deck.deal("4d key", ("similar", "left", "right", "one"))
        right, left = {"similar": (0.3, 0.3), "left": (0.2, 0.4), "right": (0.4, 0.2), "one": (0.3, 0.0)}[key]
        values = [
            ("similar", "similar"),
            ("left", "left larger"),
            ("right", "right larger"),
            ("one", "only one lung"),
        ]
        facts = (
            Fact(name="right share", value=right),
            Fact(name="left share", value=left),
            Fact(name="size ratio", value=max(right, left) / min(right, left) if left else None),
        )
        self.ask("4d", "comparison", self.ordered("4d", values, key), [key], facts=facts)

    def location(self):
        chosen = [REGIONS[at] for at in self.deck.chance.permutation(len(REGIONS))[:3]]
        inside = self.deck.deal("4b", LOCATIONS)
        options = [
            *(Option(id=name, text=f"the {name}") for name in chosen),
            Option(id="none", text="None of the above"),
        ]
        facts = [
            Fact(
                name="region ratio",
                about=name,
                value=0.5 if at in inside else 0.05,
                low=0.25 if at in inside else None,
                high=None if at in inside else 0.15,
            )
            for at, name in enumerate(chosen)
        ]
        facts += [
            Fact(name="overlap", about=f"{one} {other}", value=0.0, high=0.1)
            for one, other in combinations(chosen, 2)
        ]
        right = [name for at, name in enumerate(chosen) if at in inside] or ["none"]
        self.ask("4b", "location", options, right, multiple=True, facts=tuple(facts))

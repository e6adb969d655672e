"""What is drawn for a case: regions under names that tell nothing, points, views, and the facts behind them."""

from dataclasses import dataclass

from carina.cases import CaseImage, CaseRegion, CaseView, Fact, Mark, Overlay, Panel
from carina.draw import MARKS
from carina.percept import wording
from carina.percept.deform import OPPOSITE
from carina.percept.examined import Examined
from carina.percept.options import KEY, OPTIONS
from carina.percept.steps import Assembly, with_key_at


def raw_view(image: CaseImage) -> CaseView:
    return CaseView(id="v1", panels=(Panel(image=image.key),))


@dataclass(frozen=True)
class Placed:
    """A point of the case."""

    kind: str
    """The revision that is needed here, or on which side of the contour nothing is."""
    point: tuple[float, float]
    contour_distance: float
    nearest_change: float | None
    edit: int | None


class Drawing:
    """Regions, points and views of a lesion's case, in the order in which they are named."""

    def __init__(self, examined: Examined, assembly: Assembly) -> None:
        self.examined, self.assembly = examined, assembly
        self.options = examined.mask_sets[0].options
        revised = assembly.path == "RR"
        self._shown = examined.shown if revised else examined.revised
        self.order = with_key_at(assembly.due("3c", OPTIONS), OPTIONS, assembly.chance) if revised else []
        self.points = self._order_points() if revised else []
        names = list(MARKS)
        self.colours = [names[n] for n in assembly.chance.permutation(len(names))[: len(self.points)]]
        named = [("truth", examined.truth), ("shown", self._shown)]
        named += [
            ("revised" if self.options[n].kind == KEY else "option", self.options[n].region)
            for n in self.order
        ]
        numbers = assembly.chance.permutation(len(named))
        self._roles = [(f"r{n + 1}", role) for n, role in zip(numbers, named, strict=True)]

    @property
    def key(self) -> str:
        return self.examined.subject.image.key

    @property
    def regions(self) -> tuple[CaseRegion, ...]:
        made = [CaseRegion(name=name, image=self.key, region=region) for name, (_, region) in self._roles]
        return tuple(sorted(made, key=lambda region: region.name))

    def name(self, role: str) -> str:
        return next(name for name, (there, _) in self._roles if there == role)

    @property
    def option_names(self) -> list[str]:
        """Names of the regions of the mask options, in their order."""
        return [name for name, (role, _) in self._roles if role in ("revised", "option")]

    @property
    def views(self) -> tuple[CaseView, ...]:
        shown = (Overlay(region=self.name("shown")),)
        made = [raw_view(self.examined.subject.image), self._view("v2", shown)]
        if self.assembly.path == "RR":
            made.append(self._view("v3", shown, self.marks))
            made += [
                self._view(f"v{n}", (Overlay(region=name),))
                for n, name in enumerate(self.option_names, start=4)
            ]
        return tuple(made)

    def _view(self, name: str, overlays: tuple[Overlay, ...], marks: tuple[Mark, ...] = ()) -> CaseView:
        return CaseView(id=name, panels=(Panel(image=self.key, overlays=overlays, marks=marks),))

    # Points

    def _order_points(self) -> list[Placed]:
        """Edits' points and distractors in one random order, each with a colour of its own."""
        examined, chance = self.examined, self.assembly.chance
        placed = [
            Placed(OPPOSITE[edit.operation], edit.point, edit.contour_distance, None, n)
            for n, edit in enumerate(examined.edits)
        ]
        placed += [
            Placed("inside" if p.inside else "outside", p.point, p.contour_distance, p.nearest_change, None)
            for p in examined.points
        ]
        return [placed[n] for n in chance.permutation(len(placed))]

    @property
    def marks(self) -> tuple[Mark, ...]:
        return tuple(
            Mark(x=placed.point[0], y=placed.point[1], colour=colour, text=str(n))
            for n, (placed, colour) in enumerate(zip(self.points, self.colours, strict=True), start=1)
        )

    # Facts

    @property
    def facts(self) -> tuple[Fact, ...]:
        examined, rules = self.examined, self.assembly.rules
        facts = [Fact(name="role", about=name, text=role) for name, (role, _) in self._roles]
        facts.append(Fact(name="provenance", about=self.name("truth"), text=examined.provenance))
        # A mask that nobody has looked at is a reference, and must not pass for more.
        facts.append(
            Fact(name="reviewed", about=self.name("truth"), text="yes" if examined.reviewed else "no")
        )
        deformed = f"deformed from the redrawn truth by {examined.deformer}"
        facts.append(
            Fact(
                name="provenance",
                about=self.name("shown"),
                text=deformed if self.assembly.path == "RR" else "truth, redrawn",
            )
        )
        shown = self.name("shown")
        if self.assembly.path == "RR":
            facts.append(Fact(name="provenance", about=self.name("revised"), text="truth, redrawn"))
            facts.append(
                Fact(
                    name="iou with truth",
                    about=self.name("revised"),
                    value=examined.agreement,
                    low=rules.good_iou,
                    high=1.0,
                )
            )
            facts.append(
                Fact(
                    name="iou with truth",
                    about=shown,
                    value=examined.overlap,
                    low=rules.revise_low,
                    high=rules.revise_high,
                )
            )
            facts += self._edit_facts()
        else:
            facts.append(
                Fact(
                    name="iou with truth", about=shown, value=examined.agreement, low=rules.good_iou, high=1.0
                )
            )
        facts.append(Fact(name="lesion area", value=float(examined.area)))
        facts.append(Fact(name="lesion share of image", value=examined.share))
        if examined.conspicuity is not None:
            facts.append(Fact(name="conspicuity", value=examined.conspicuity))
        if examined.described is not None:
            facts.append(Fact(name="share outside the lungs", value=examined.described.outside_share))
        return tuple(facts)

    def _edit_facts(self) -> list[Fact]:
        rules, scale = self.assembly.rules, self.examined.scale
        facts: list[Fact] = []
        for n, edit in enumerate(self.examined.edits):
            about = f"edit {n + 1}"
            number = 1 + next(k for k, placed in enumerate(self.points) if placed.edit == n)
            facts += [
                Fact(name="operation", about=about, text=edit.operation),
                Fact(name="place", about=about, text=wording.region(edit.place)),
                Fact(name="mark", about=about, text=str(number)),
                Fact(name="changed share", about=about, value=edit.share, low=rules.edit_share),
                Fact(
                    name="changed area", about=about, value=float(edit.area), low=rules.edit_area * scale**2
                ),
                Fact(name="thickness", about=about, value=edit.thickness, low=rules.edit_thickness * scale),
                Fact(name="displacement", about=about, value=edit.displacement),
            ]
        return facts

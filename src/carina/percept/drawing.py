"""Regions, points, views and facts of a case; the names of regions do not reveal their roles."""

from dataclasses import dataclass
from typing import Final

from carina.cases import CaseImage, CaseRegion, CaseView, Mark, Overlay, Panel
from carina.cases.draw import MARKS
from carina.cases.facts import Margin
from carina.percept import wording
from carina.percept.deform import OPPOSITE
from carina.percept.facts import EditFacts, PerceptCaseFacts, RegionSource
from carina.percept.mask_options import KEY, OPTIONS
from carina.percept.records import LesionAnalysis
from carina.percept.steps import Assembly, shuffle_with_first_at

_REDRAWN: Final = "truth, redrawn"
"""Provenance of the truth as a careful reader might have drawn it."""


def make_raw_view(image: CaseImage) -> CaseView:
    return CaseView(id="v1", panels=(Panel(image=image.key),))


@dataclass(frozen=True)
class MarkedPoint:
    """A point that the revision steps show."""

    kind: str
    """The revision that is needed at the point, or the side of the contour ("inside", "outside") of a distractor."""
    point: tuple[float, float]
    contour_distance: float
    nearest_change: float | None
    edit: int | None


class Drawing:
    """Regions, points and views of a lesion's case, in the order in which they are named."""

    def __init__(self, analysis: LesionAnalysis, assembly: Assembly) -> None:
        self.analysis, self.assembly = analysis, assembly
        self.options = analysis.masks[:OPTIONS]
        revised = assembly.path == "RR"
        self._shown = analysis.shown if revised else analysis.revised
        self.order = (
            shuffle_with_first_at(assembly.key_position("3c", OPTIONS), OPTIONS, assembly.chance)
            if revised
            else []
        )
        self.points = self._order_points() if revised else []
        names = list(MARKS)
        self.colours = [names[n] for n in assembly.chance.permutation(len(names))[: len(self.points)]]
        named = [("truth", analysis.truth), ("shown", self._shown)]
        named += [
            ("revised" if self.options[n].kind == KEY else "option", self.options[n].region)
            for n in self.order
        ]
        numbers = assembly.chance.permutation(len(named))
        self._roles = [(f"r{n + 1}", role) for n, role in zip(numbers, named, strict=True)]

    @property
    def key(self) -> str:
        return self.analysis.subject.image.key

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
        made = [make_raw_view(self.analysis.subject.image), self._make_view("v2", shown)]
        if self.assembly.path == "RR":
            made.append(self._make_view("v3", shown, self.marks))
            made += [
                self._make_view(f"v{n}", (Overlay(region=name),))
                for n, name in enumerate(self.option_names, start=4)
            ]
        return tuple(made)

    def _make_view(self, name: str, overlays: tuple[Overlay, ...], marks: tuple[Mark, ...] = ()) -> CaseView:
        return CaseView(id=name, panels=(Panel(image=self.key, overlays=overlays, marks=marks),))

    # Points

    def _order_points(self) -> list[MarkedPoint]:
        """Points of the edits and distractors in random order."""
        analysis, chance = self.analysis, self.assembly.chance
        placed = [
            MarkedPoint(OPPOSITE[edit.operation], edit.point, edit.contour_distance, None, n)
            for n, edit in enumerate(analysis.edits)
        ]
        placed += [
            MarkedPoint(
                "inside" if p.inside else "outside", p.point, p.contour_distance, p.nearest_change, None
            )
            for p in analysis.points
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
    def facts(self) -> PerceptCaseFacts:
        """What is known of the case as a whole."""
        analysis, rules = self.analysis, self.assembly.rules
        is_revised = self.assembly.path == "RR"
        deformed = f"deformed from the redrawn truth by {analysis.deformer}"
        # A mask that no person has reviewed must be recognisable as such.
        reviewed = "yes" if analysis.reviewed else "no"
        sources = {
            self.name("truth"): RegionSource(provenance=analysis.provenance, reviewed=reviewed),
            self.name("shown"): RegionSource(provenance=deformed if is_revised else _REDRAWN),
        }
        redrawn = Margin(analysis.agreement, rules.good_iou, 1.0)
        overlaps = {self.name("shown"): redrawn}
        if is_revised:
            sources[self.name("revised")] = RegionSource(provenance=_REDRAWN)
            overlaps = {
                self.name("revised"): redrawn,
                self.name("shown"): Margin(analysis.overlap, rules.revise_low, rules.revise_high),
            }
        attributes = analysis.attributes
        return PerceptCaseFacts(
            roles={name: role for name, (role, _) in self._roles},
            sources=sources,
            iou_with_truth=overlaps,
            edits=self._edit_facts() if is_revised else {},
            area=float(analysis.area),
            share_of_image=analysis.share,
            conspicuity=analysis.conspicuity,
            share_outside_lungs=None if attributes is None else attributes.outside_share,
            not_asked={} if attributes is None else attributes.not_asked,
        )

    def _edit_facts(self) -> dict[str, EditFacts]:
        rules, scale = self.assembly.rules, self.analysis.scale
        numbers = {placed.edit: number for number, placed in enumerate(self.points, start=1)}
        return {
            f"edit {n + 1}": EditFacts(
                operation=edit.operation,
                place=wording.region(edit.place),
                mark=str(numbers[n]),
                changed_share=Margin(edit.share, rules.edit_share),
                changed_area=Margin(float(edit.area), rules.edit_area * scale**2),
                thickness=Margin(edit.thickness, rules.edit_thickness * scale),
                displacement=edit.displacement,
            )
            for n, edit in enumerate(self.analysis.edits)
        }

"""The numbers that a percept case must keep to, and why a study cannot be used.

Defaults are those of the protocol's specification except where a comment says otherwise. Lengths are pixels of an
image whose longer side is 1024, areas are such pixels squared; both scale with the image. The rules stand in the
manifest of every benchmark, and each case carries the values it reached.
"""

import msgspec


class Ineligible(Exception):  # noqa: N818 - not an error: most studies are not fit for most questions
    """A study that cannot be asked about a lesion: a reason to count by, and what was found."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """A range in which nothing is decided: up to `low` is clearly not, from `high` on clearly is."""

    low: float
    high: float


class Rules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Acceptance rules of the protocol."""

    frame: int = 1024
    """Longer side of the image that lengths are meant for."""

    # Masks
    min_area: float = 2000.0
    """Smaller lesions leave no room for an edit that is major by the rules below."""
    overlap: float = 0.25
    """Of the lesion, at most, under the mask of another finding that hides it: there its contour cannot be seen."""
    good_iou: float = 0.97
    """A contour that needs no revision agrees with the truth at least so well: within reader variability."""
    revise_low: float = 0.55
    revise_high: float = 0.85
    """A contour that needs a major revision overlaps the truth so much."""

    # Edits
    max_edits: int = 3
    edit_share: float = 0.08
    """Least change of one edit, as a share of the lesion."""
    edit_area: float = 600.0
    edit_thickness: float = 24.0

    # Points
    min_points: int = 4
    max_points: int = 8
    min_outside: int = 2
    """Distractor points outside the shown contour."""
    max_inside: int = 2
    """As many inside are sought; a small mask has no room for them."""
    point_gap: float = 80.0
    """Five times the radius of a drawn point. The specification's 100 leaves lesions of less than a tenth of a lung no
    room for four points: of phantom atelectases it would admit a third fewer."""
    change_gap: float = 40.0
    """Around a distractor point nothing was changed so far away."""

    # Mask options
    option_iou_key: float = 0.93
    option_iou: float = 0.95
    """Also against the shown contour, which is never an option."""

    # Attributes
    region: Band = Band(low=0.15, high=0.25)
    """Share of a zone or region that the lesion covers."""
    presence: Band = Band(low=0.002, high=0.02)
    """Share of a lung that the lesion covers."""
    severity_margin: float = 0.04
    ratio: Band = Band(low=1.3, high=1.7)
    """Larger over smaller side."""
    option_overlap: float = 0.10
    """Two regions to choose from share at most so much of the smaller."""
    stable: float = 3.0
    """Keys do not change when the lesion grows or shrinks so far."""

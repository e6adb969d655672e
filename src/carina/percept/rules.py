"""The limits that a percept case must keep, and the reason why a study cannot be used.

Defaults are those of the protocol's specification except where a comment says otherwise. Lengths are pixels of an
image whose longer side is 1024, areas are such pixels squared; both scale with the image. The rules are stored in the
manifest of every benchmark, and each case stores the values that were measured.
"""

import msgspec


class Ineligible(Exception):  # noqa: N818 - not an error: most studies are not fit for most questions
    """A study cannot be asked about a lesion: a fixed reason, to count by, and the detail of this study."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """An undecided range: values up to `low` clearly mean no, values from `high` on clearly mean yes."""

    low: float
    high: float


class Rules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Acceptance rules of the protocol."""

    frame: int = 1024
    """Longer side, in pixels, of the image to which all lengths refer."""

    # Masks
    min_area: float = 2000.0
    """Smaller lesions leave no room for an edit that is major by the rules below."""
    lung_quality: float = 0.7
    """Least quality of lungs that a program drew, where their source estimates it; CheXmask's authors advise 0.7."""
    overlap: float = 0.25
    """Largest share of the lesion that may lie under another finding that hides its contour."""
    good_iou: float = 0.97
    """Least IoU with the truth of a contour that needs no revision; within the variability of readers."""
    revise_low: float = 0.55
    revise_high: float = 0.85
    """Largest IoU with the truth of a contour that needs a major revision."""

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
    """Fewest distractor points outside the shown contour."""
    max_inside: int = 2
    """Distractor points inside the contour, where there is room; a small mask has none."""
    point_gap: float = 80.0
    """Five times the radius of a drawn point. The specification's 100 leaves lesions of less than a tenth of a lung no
    room for four points: of phantom atelectases it would admit a third fewer."""
    change_gap: float = 40.0
    """Least distance of a distractor point from any change."""

    # Mask options
    option_iou_key: float = 0.93
    option_iou: float = 0.95
    """Largest IoU of two wrong masks, and of an option with the shown contour, which is never an option."""

    # Attributes
    region: Band = Band(low=0.15, high=0.25)
    """Share of a zone or region that the lesion covers."""
    presence: Band = Band(low=0.002, high=0.02)
    """Share of a lung that the lesion covers."""
    severity_margin: float = 0.04
    ratio: Band = Band(low=1.3, high=1.7)
    """Size of the lesion on the larger side over that on the smaller side."""
    option_overlap: float = 0.10
    """Largest share of the smaller of two location options that may lie in the other."""
    stable: float = 3.0
    """Keys must stay the same when the lesion grows or shrinks by this many pixels."""

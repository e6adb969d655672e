"""The masks to choose from after a revision: the right one, and wrong ones that a wrong revision would give.

Every mask is the truth with a state at each site: revised correctly, left as shown, half revised, made worse, revised
too far, or changed where nothing was wrong. All are drawn by the same operation. The four masks of a question are a
square: two sites, each right or wrong, in all combinations. At each site two masks look like one state and two like the
other, so no mask is more typical of the four than another. More wrong states are drawn than a case needs, so that a
benchmark can use those among which the right mask does not stand out (`carina.percept.select`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.percept.contour_features import measure_features
from carina.percept.deform import Change, apply_changes, find_largest_piece
from carina.percept.layout import Layout
from carina.percept.outline import Outline
from carina.percept.rules import Ineligible, Rules
from carina.percept.square_plan import Mistake
from carina.studies.region import Mask

OPTIONS: Final = 4
KEY: Final = "key"
NEAREST: Final = 4.0
"""Least distance between two changes of one mask, in pixels of the frame."""

_Counts = NDArray[np.int64]


@dataclass(frozen=True)
class MaskOption:
    """The truth with at most one wrong state, in the outline's window."""

    mask: Mask
    kind: str
    """`KEY`, or what went wrong: partial, wrong_operation, overshoot or wrong_place."""
    features: tuple[float, ...]
    """`FEATURES` of the contour."""
    area: int
    change: int
    """Pixels that differ from the right mask."""
    as_shown: int
    """Of these, pixels that are as in the shown contour."""


@dataclass(frozen=True)
class MaskPool:
    """Masks to make options from."""

    masks: tuple[MaskOption, ...]
    """The right mask, then wrong ones with one wrong state each."""
    squares: tuple[tuple[int, int], ...]
    """Every two wrong masks that make a set of four with the right one and with both wrong states at once."""


@dataclass(frozen=True)
class _State:
    """A wrong state of a site."""

    site: int
    mistake: Mistake
    change: Change

    @property
    def kind(self) -> str:
        """The kind that is stored: an edit that is left is one that is partially revised."""
        return "partial" if self.mistake == "left" else self.mistake


def make_mask_pool(outline: Outline, layout: Layout, rules: Rules) -> MaskPool:
    """The right mask, and wrong masks of which some make sets of four that differ as much as the rules demand.

    `Ineligible` where no two of them do.
    """
    edits = _find_drawn_edits(layout.shown ^ outline.revised, layout)
    right = outline.revised
    found = [(state, _draw_state(state, outline, edits[state.site])) for state in _list_states(layout)]
    states = [state for state, mask in found if mask is not None]
    drawn = [mask for _, mask in found if mask is not None]
    changes, both = _count_changes([mask ^ right for mask in (layout.shown, *drawn)])
    is_near = _find_neighbours([mask ^ right for mask in drawn], outline.scale)
    areas = np.array([np.count_nonzero(mask) for mask in (right, *drawn)])
    sizes = Sizes(areas=areas, changes=np.array([0, *changes[1:]]), as_shown=np.array([0, *both[0, 1:]]))
    pieces = [_count_pieces(mask) for mask in (right, *drawn)]
    pairs = [
        (one, other)
        for one, other in combinations(range(1, len(areas)), 2)
        if states[one - 1].site != states[other - 1].site
        and not is_near[one - 1, other - 1]
        and max(pieces[one], pieces[other]) <= pieces[0]
    ]
    shown = int(np.count_nonzero(layout.shown))
    squares = _select_squares(np.array(pairs, np.int64).reshape(-1, 2), sizes, shown, int(changes[0]), rules)
    if not len(squares):
        raise Ineligible(
            "no mask options", f"of {len(pairs)} sets of four masks, none differ enough from each other"
        )
    return _as_pool(
        [(right, KEY), *((mask, state.kind) for mask, state in zip(drawn, states, strict=True))],
        sizes,
        squares,
        outline.scale,
    )


def _as_pool(made: list[tuple[Mask, str]], sizes: "Sizes", squares: _Counts, scale: float) -> MaskPool:
    """The masks that are in a square, numbered anew."""
    kept = [0, *np.unique(squares).tolist()]
    number = {old: new for new, old in enumerate(kept)}
    masks = tuple(
        MaskOption(
            mask=made[n][0],
            kind=made[n][1],
            features=tuple(measure_features(made[n][0], scale).tolist()),
            area=int(sizes.areas[n]),
            change=int(sizes.changes[n]),
            as_shown=int(sizes.as_shown[n]),
        )
        for n in kept
    )
    return MaskPool(
        masks=masks, squares=tuple((number[one], number[other]) for one, other in squares.tolist())
    )


# ---- squares ----


@dataclass(frozen=True)
class Sizes:
    """Numbers of pixels of masks that differ from the first one in places of their own."""

    areas: _Counts
    changes: _Counts
    """Pixels that differ from the first mask."""
    as_shown: _Counts
    """Of these, pixels that are as in the shown contour."""


@dataclass(frozen=True)
class SquareOverlaps:
    """IoU of the four masks of every square: the right one, both wrong ones, and the one with both wrong states."""

    between: NDArray[np.float64]
    """(squares, 4, 4)"""
    shown: NDArray[np.float64]
    """With the shown contour, (squares, 4)."""
    added: _Counts
    """Pixels of each mask that are not in the shown contour, (squares, 4)."""
    removed: _Counts
    """Pixels of the shown contour that are not in the mask, (squares, 4)."""


def measure_squares(squares: _Counts, sizes: Sizes, *, shown: int, shown_change: int) -> SquareOverlaps:
    """The overlaps in squares, which follow from sizes: the changes of the two masks of a square do not touch.

    Args:
        squares: Numbers of the two masks of each square, (squares, 2).
        sizes: Sizes of masks, the right one first.
        shown: Pixels of the shown contour.
        shown_change: Pixels in which it differs from the right mask.
    """
    has = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    gains = (sizes.areas - sizes.areas[0])[squares]
    areas = sizes.areas[0] + gains @ has.T
    is_different = (has[:, None] != has[None]).astype(np.int64)
    between = np.einsum("sk,abk->sab", sizes.changes[squares], is_different)
    to_shown = shown_change + (sizes.changes - 2 * sizes.as_shown)[squares] @ has.T
    return SquareOverlaps(
        between=_as_iou(areas[:, :, None] + areas[:, None, :], between),
        shown=_as_iou(areas + shown, to_shown),
        added=(to_shown + areas - shown) // 2,
        removed=(to_shown - areas + shown) // 2,
    )


def _as_iou(areas: _Counts, different: _Counts) -> NDArray[np.float64]:
    """IoU of two masks from the sum of their areas and the number of pixels in which they differ."""
    return np.asarray((areas - different) / (areas + different), np.float64)


def _select_squares(pairs: _Counts, sizes: Sizes, shown: int, shown_change: int, rules: Rules) -> _Counts:
    """Squares that keep the rules. The same is demanded of all four masks, so that none of them stands out."""
    overlaps = measure_squares(pairs, sizes, shown=shown, shown_change=shown_change)
    two = ~np.eye(OPTIONS, dtype=bool)
    is_apart = (overlaps.between[:, two] <= min(rules.option_iou_key, rules.option_iou)).all(axis=1)
    is_revision = (overlaps.shown >= rules.revise_low) & (overlaps.shown <= rules.revise_high)
    return pairs[is_apart & is_revision.all(axis=1)]


def combine_kinds(one: str, other: str) -> str:
    """What went wrong in a mask with both wrong states."""
    return "+".join(sorted({one, other}))


# ---- states ----


def _draw_state(state: _State, outline: Outline, edit: Mask) -> Mask | None:
    """The drawn mask, which differs from the right one in one piece, as the shown contour does at each edit.

    Drawing smooths the ends of a change to the other side. Such specks would tell the masks that have them. Nor is
    anything left of an edit, or added to it, that would tell the masks in which it is not quite revised.
    """
    if state.mistake == "left":
        return outline.revised ^ edit
    drawn = outline.draw_changed(apply_changes(outline.mask, [state.change]), [state.change.window])
    piece = find_largest_piece(drawn ^ outline.revised)
    if state.mistake == "partial":
        piece = find_largest_piece(piece & edit)
    elif state.mistake == "wrong_operation":
        piece = find_largest_piece(piece | edit)
        if (edit & ~piece).any():
            return None
    return outline.revised ^ piece if piece.any() else None


def _find_drawn_edits(changed: Mask, layout: Layout) -> list[Mask]:
    """The pixels of the edit at each site."""
    _, labels = cv2.connectedComponents(np.ascontiguousarray(changed).view(np.uint8), connectivity=4)
    return [
        np.asarray(labels == labels[site.point]) if site.is_edited else np.zeros_like(changed)
        for site in layout.sites
    ]


def _count_changes(changes: Sequence[Mask]) -> tuple[_Counts, _Counts]:
    """Pixels of every change, and of what every two have in common."""
    anywhere = np.logical_or.reduce(changes)
    values = np.array([change[anywhere] for change in changes], np.float32)
    # Counts of pixels are exact in single precision up to 16 million.
    both = np.rint(values @ values.T).astype(np.int64)
    return np.diagonal(both), both


def _find_neighbours(changes: Sequence[Mask], scale: float) -> Mask:
    """Which two changes come too near to each other to be drawn independently."""
    reach = max(1, round(NEAREST * scale))
    kernel = np.ones((2 * reach + 1, 2 * reach + 1), np.uint8)
    anywhere = np.logical_or.reduce(changes)
    wide = [cv2.dilate(change.view(np.uint8), kernel)[anywhere] for change in changes]
    narrow = np.array([change[anywhere] for change in changes], np.float32)
    return np.asarray(np.array(wide, np.float32) @ narrow.T > 0)


def _count_pieces(mask: Mask) -> int:
    return len(cv2.findContours(mask.view(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)[0])


def _list_states(layout: Layout) -> list[_State]:
    """The wrong states of the two sites of the square."""
    return [
        _State(number, site.mistake, change)
        for number, site in enumerate(layout.sites)
        if site.mistake is not None
        for change in site.wrong
    ]

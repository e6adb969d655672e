"""Run-length encodings of a mask: COCO (plain and compressed), SIIM and CheXmask, each read and written.

Everything here speaks `Counts`, COCO's alternating run lengths, and refuses text that cannot describe a mask
of the stated size. What a region is and what can be done with it is in `region`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.store.errors import RegionError

Mask = NDArray[np.bool_]

Counts = NDArray[np.int64]
"""Lengths of alternating runs of unset and set pixels in column-major order, the first one of unset pixels.

Only the first may be zero, and they sum to height x width, so that one mask has exactly one form.
"""

ColumnRuns = tuple[Counts, Counts, Counts]
"""Set runs that stay within a column, in column-major order: column, first row, row after the last."""

MAX_SIDE: Final = 65_535
"""Longest side of an image, that of DICOM and JPEG. A region takes memory for every column: of an image that is one
pixel high and as wide as `MAX_PIXELS` allows, a box would take gigabytes."""
MAX_PIXELS: Final = 2**29 - 1
"""Largest image: pycocotools writes a run with at most six characters of five bits, one of them the sign."""

_SIIM_EMPTY: Final = "-1"
_ZERO: Final = 48  # COCO's compressed alphabet is the 64 characters from "0" to "o"
_MAX_DIGITS: Final = 6
_BOX_TEXT: Final = re.compile(
    r"([P-o]{0,5}[0-O])([P-o]{0,5}[0-O])(?:([P-o]{0,5}[0-O])(0*)([P-o]{0,5}[0-O])?)?"
)
"""Start, height, gap between columns, differences of 0, the rest: the numbers of a box."""
_MAX_TOKEN: Final = 10  # decimal digits, one more than MAX_PIXELS has


def check_size(height: int, width: int) -> None:
    """Refuse sizes that no image has."""
    if height < 1 or width < 1:
        raise RegionError(
            f"expected an image of 1 x 1 pixel or more, got {height} x {width} (height x width)"
        )
    if max(height, width) > MAX_SIDE:
        raise RegionError(
            f"an image of {height} x {width} is too large, the limit is a side of {MAX_SIDE} pixels"
        )
    if height * width > MAX_PIXELS:
        raise RegionError(f"an image of {height} x {width} is too large, the limit is {MAX_PIXELS} pixels")


# ---- masks ----


def mask_to_counts(mask: Mask) -> Counts:
    """Runs of a boolean array of shape (height, width)."""
    height, width = mask.shape
    columns = np.flatnonzero(mask.any(axis=0))
    if not columns.size:
        return np.array([height * width], dtype=np.int64)
    # Only the band of columns that holds anything is transposed, by OpenCV: numpy's transposing copy takes
    # most of the time of the usual asfortranarray + pycocotools.encode.
    first, last = int(columns[0]), int(columns[-1]) + 1
    band = cv2.transpose(mask[:, first:last].view(np.uint8)).view(np.bool_)
    return _flat_to_counts(band.ravel(), skipped=first * height, pixels=height * width)


def counts_to_mask(counts: Counts, height: int, width: int) -> Mask:
    """The boolean array of shape (height, width), in row-major memory, that has these runs."""
    columns = _alternate(counts).reshape(width, height)
    return cv2.transpose(columns.view(np.uint8)).reshape(height, width).view(np.bool_)


def _flat_to_counts(flat: Mask, *, skipped: int, pixels: int) -> Counts:
    """Runs of a vector of `pixels`, of which `flat` holds all from `skipped` on that may be set."""
    changes = np.flatnonzero(flat[1:] != flat[:-1]) + (skipped + 1)
    start = [0, skipped] if flat[0] else [0]
    stop = [skipped + flat.size, pixels] if flat[-1] and skipped + flat.size < pixels else [pixels]
    return np.diff(np.concatenate([start, changes, stop]))


def _alternate(counts: Counts) -> Mask:
    return np.repeat(np.arange(counts.size) % 2 == 1, counts)


# ---- runs ----


def complement(counts: Counts) -> Counts:
    """Runs of the pixels that are not set."""
    return counts[1:] if counts[0] == 0 else np.concatenate([[0], counts])


def column_runs(counts: Counts, height: int) -> ColumnRuns:
    """The set runs, cut where they pass from one column to the next."""
    bounds = np.cumsum(counts)
    runs = counts.size // 2
    starts, stops = bounds[0::2][:runs], bounds[1::2][:runs]
    column = starts // height
    spans = (stops - 1) // height - column + 1
    if (spans > 1).any():
        starts, stops = np.repeat(starts, spans), np.repeat(stops, spans)
        nth = np.arange(starts.size) - np.repeat(np.cumsum(spans) - spans, spans)
        column = np.repeat(column, spans) + nth
    offset = column * height
    return column, np.maximum(starts - offset, 0), np.minimum(stops - offset, height)


def join_column_runs(runs: ColumnRuns, height: int, width: int) -> Counts:
    """The inverse of `column_runs`: runs that meet, also across columns, become one."""
    column, top, bottom = runs
    starts, stops = column * height + top, column * height + bottom
    apart = stops[:-1] != starts[1:]
    bounds = np.empty((int(apart.sum()) + 1 if starts.size else 0, 2), dtype=np.int64)
    if starts.size:
        bounds[0, 0], bounds[-1, 1] = starts[0], stops[-1]
        bounds[1:, 0], bounds[:-1, 1] = starts[1:][apart], stops[:-1][apart]
    counts = np.diff(np.concatenate([[0], bounds.ravel(), [height * width]]))
    return counts[:-1] if counts[-1] == 0 and counts.size > 1 else counts


# ---- COCO ----


def encode_coco(counts: Counts) -> str:
    """COCO's compressed string, byte for byte as pycocotools writes it.

    From the fourth on, each run is stored as its difference from the run two before, in groups of five bits,
    low groups first; bit 6 says that more follow, and the top bit of the last group is the sign.
    """
    numbers = counts.copy()
    numbers[3:] -= counts[1:-2]
    # A number fits n digits when it lies in [-2^(5n-1), 2^(5n-1)); ~x maps negatives onto the same bound.
    size = np.where(numbers < 0, ~numbers, numbers)
    digits = 1 + np.searchsorted(2 ** (5 * np.arange(1, _MAX_DIGITS) - 1), size, side="right")
    nth = np.arange(int(digits.max()))
    characters = ((numbers[:, None] >> (5 * nth)) & 31) + _ZERO
    characters += np.where(nth < digits[:, None] - 1, 32, 0)
    return characters[nth < digits[:, None]].astype(np.uint8).tobytes().decode("ascii")


def encode_box(columns: range, rows: range, height: int, width: int) -> str:
    """COCO's compressed string of a box of whole pixels, which is not empty; as `encode_coco`, many times faster.

    All its runs but the first and the last repeat, and are stored as differences of 0. The last texts are kept for
    `is_encoded_box`: whoever makes a box validates it soon after.
    """
    text = _encode_box(columns, rows, height, width)
    if len(_encoded_boxes) >= _MOST_ENCODED:
        _encoded_boxes.clear()
    _encoded_boxes[text] = (height, width)
    return text


def is_encoded_box(text: str, height: int, width: int) -> bool:
    """Whether a text is one of the last that `encode_box` has written; False for others says nothing about them."""
    return _encoded_boxes.get(text) == (height, width)


_encoded_boxes: Final[dict[str, tuple[int, int]]] = {}
"""Height and width by text."""
_MOST_ENCODED: Final = 1024


def _encode_box(columns: range, rows: range, height: int, width: int) -> str:
    left, right, top, bottom = columns.start, columns.stop, rows.start, rows.stop
    across, down = right - left, bottom - top
    gap, rest = height - down, height * (width - right + 1) - bottom
    start = _encode_number(left * height + top)
    if gap == 0 or across == 1:
        numbers, before = start + _encode_number(down * across), 0
    else:
        zeros = "0" * (2 * across - 3)
        numbers, before = start + _encode_number(down) + _encode_number(gap) + zeros, gap
    return numbers + _encode_number(rest - before) if rest else numbers


def encode_empty(height: int, width: int) -> str:
    """COCO's compressed string of no pixel."""
    return _encode_number(height * width)


def _encode_number(number: int) -> str:
    if -512 <= number < 512:
        return _LAST_DIGITS[number]
    return _TWO_DIGITS[number & 1023] + _encode_number(number >> 10)


def _encode_small_number(number: int) -> str:
    """One or two digits, the last of a number."""
    if -16 <= number < 16:
        return chr(_ZERO + (number & 31))
    return chr(_ZERO + (number & 31) + 32) + chr(_ZERO + (number >> 5 & 31))


_TWO_DIGITS: Final = tuple(
    chr(_ZERO + low + 32) + chr(_ZERO + high + 32) for high in range(32) for low in range(32)
)
"""Digits that others follow, by ten bits of a number."""
_LAST_DIGITS: Final = {number: _encode_small_number(number) for number in range(-512, 512)}


def is_box(text: str, height: int, width: int) -> bool:
    """Whether a text is what `encode_box` writes for a box of an image of this size; far faster than decoding it."""
    match = _BOX_TEXT.fullmatch(text)
    if (
        match is None
        or min(height, width) < 1
        or max(height, width) > MAX_SIDE
        or height * width > MAX_PIXELS
    ):
        return False
    start, length = _decode_number(match[1]), _decode_number(match[2])
    column, row = divmod(start, height)
    columns = 1 + (len(match[4]) + 1) // 2 if match[3] else 1
    if start < 0 or not 0 < length <= height or row + length > height or column + columns > width:
        return False
    rows = range(row, row + length)
    return _encode_box(range(column, column + columns), rows, height, width) == text


def _decode_number(characters: str) -> int:
    number = 0
    for place, character in enumerate(characters):
        number |= (ord(character) - _ZERO & 31) << (5 * place)
    return number - (1 << (5 * len(characters))) if ord(characters[-1]) - _ZERO & 16 else number


def decode_coco(counts: str | bytes | Sequence[object], height: int, width: int) -> Counts:
    """Runs from COCO's compressed string or plain list, which may have empty runs within."""
    raw = _uncompress(counts) if isinstance(counts, str | bytes) else _plain(counts)
    check_counts(raw, height, width)
    if raw[1:].all():
        return raw
    value = (np.arange(raw.size) % 2)[raw > 0]
    lengths = raw[raw > 0]
    groups = np.flatnonzero(np.concatenate([[True], value[1:] != value[:-1]]))
    joined = np.add.reduceat(lengths, groups)
    return np.concatenate([[0], joined]) if value[0] else joined


def decode_own(text: str, height: int, width: int) -> Counts:
    """Runs from a string of `encode_coco`; an empty run within could end pycocotools' merge too soon."""
    counts = _uncompress(text)
    check_counts(counts, height, width)
    if not counts[1:].all():
        at = int(np.flatnonzero(counts[1:] == 0)[0]) + 1
        raise RegionError(f"COCO run {at} is empty; encodings of others are read with Region.from_coco")
    return counts


def check_counts(counts: Counts, height: int, width: int) -> None:
    """Refuse runs that are negative or do not fill an image of this size."""
    check_size(height, width)
    pixels = height * width
    wrong = np.flatnonzero((counts < 0) | (counts > pixels))
    if wrong.size:
        at = int(wrong[0])
        raise RegionError(f"COCO run {at} is {counts[at]} pixels long, expected 0 to {pixels}")
    total = int(counts.sum())
    if total != pixels:
        raise RegionError(f"COCO runs cover {total} pixels, expected {height} x {width} = {pixels}")


def _uncompress(text: str | bytes) -> Counts:
    """Runs of a compressed string. pycocotools' own decoder reads beyond the end of a truncated one."""
    try:
        data = text.encode("ascii") if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        raise RegionError(
            f"COCO counts have {error.object[error.start]!r} at position {error.start}, expected '0' to 'o'"
        ) from None
    codes = np.frombuffer(data, dtype=np.uint8).astype(np.int64) - _ZERO
    if not codes.size:
        raise RegionError("COCO counts are an empty string, expected at least one run")
    wrong = np.flatnonzero((codes < 0) | (codes > 63))
    if wrong.size:
        at = int(wrong[0])
        raise RegionError(f"COCO counts have {chr(data[at])!r} at position {at}, expected '0' to 'o'")
    last = np.flatnonzero(codes < 32)
    if not last.size or last[-1] != codes.size - 1:
        raise RegionError(f"COCO counts stop within a number, at position {codes.size}")
    first = np.concatenate([[0], last[:-1] + 1])
    digits = last - first + 1
    if int(digits.max()) > _MAX_DIGITS:
        at = int(first[np.argmax(digits)])
        raise RegionError(f"COCO counts have a number of more than {_MAX_DIGITS} characters at position {at}")
    nth = np.arange(codes.size) - np.repeat(first, digits)
    numbers = np.add.reduceat((codes & 31) << (5 * nth), first)
    numbers -= np.where(codes[last] & 16, np.int64(1) << (5 * digits), 0)
    numbers[1::2] = np.cumsum(numbers[1::2])
    numbers[2::2] = np.cumsum(numbers[2::2])
    return numbers


def _plain(counts: Sequence[object]) -> Counts:
    if not counts:
        raise RegionError("COCO counts are an empty list, expected at least one run")
    numbers = []
    for at, count in enumerate(counts):
        if not isinstance(count, int) or abs(count) > MAX_PIXELS:
            raise RegionError(f"COCO run {at} is {count!r}, expected a whole number of pixels")
        numbers.append(count)
    return np.array(numbers, dtype=np.int64)


# ---- SIIM ----


def encode_siim(counts: Counts) -> str:
    """SIIM-ACR's text: pairs (pixels since the end of the last run, length), column-major; "-1" if empty."""
    if counts.size == 1:
        return _SIIM_EMPTY
    pairs = counts[: counts.size // 2 * 2]
    return " ".join(map(str, pairs.tolist()))


def decode_siim(text: str, height: int, width: int) -> Counts:
    """Runs from SIIM-ACR's text; " -1" is an empty mask, as in the published table."""
    check_size(height, width)
    _check_text(text, "SIIM")
    if text.strip() == _SIIM_EMPTY:
        return np.array([height * width], dtype=np.int64)
    skips, lengths = _pairs(text, "SIIM")
    if not skips.size:
        raise RegionError('SIIM text is empty, expected pairs of numbers, or "-1" for an empty mask')
    wrong = np.flatnonzero(skips < 0)
    if wrong.size:
        at = int(wrong[0])
        raise RegionError(
            f"SIIM run {at + 1} goes back by {-int(skips[at])} pixels; a relative start is at least 0"
        )
    starts = np.cumsum(skips + lengths) - lengths
    return _join_runs(starts, lengths, height=height, width=width, dialect="SIIM", first=0)


# ---- CheXmask ----


def encode_chexmask(counts: Counts, height: int, width: int) -> str:
    """CheXmask's text: pairs of (first pixel counted from 1, length), row-major; empty if the mask is."""
    mask = counts_to_mask(counts, height, width)
    rows = _flat_to_counts(mask.ravel(), skipped=0, pixels=height * width)
    bounds = np.cumsum(rows)
    runs = rows.size // 2
    pairs = np.stack([bounds[0::2][:runs] + 1, rows[1::2]], axis=1)
    return " ".join(map(str, pairs.ravel().tolist()))


def decode_chexmask(text: str, height: int, width: int) -> Counts:
    """Runs from CheXmask's text."""
    check_size(height, width)
    _check_text(text, "CheXmask")
    starts, lengths = _pairs(text, "CheXmask")
    rows = _join_runs(starts - 1, lengths, height=height, width=width, dialect="CheXmask", first=1)
    return mask_to_counts(_alternate(rows).reshape(height, width))


# ---- what SIIM and CheXmask share ----


def _check_text(text: object, dialect: str) -> None:
    """A table's empty cell arrives as NaN or None, not as text."""
    if not isinstance(text, str):
        raise RegionError(f"{dialect} runs are {text!r}, expected text")


def _pairs(text: str, dialect: str) -> tuple[Counts, Counts]:
    tokens = text.split()
    numbers = [_number(token) for token in tokens]
    for at, number in enumerate(numbers):
        if number is None:
            raise RegionError(f"{dialect} token {at + 1} is {tokens[at]!r}, expected a whole number")
    if len(tokens) % 2:
        raise RegionError(f"{dialect} text has {len(tokens)} numbers, expected pairs of start and length")
    pairs = np.array(numbers, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _number(token: str) -> int | None:
    digits = token.removeprefix("-")
    # Bounded, so that sums cannot wrap around; isdecimal alone would take digits of other scripts.
    if not (digits.isdecimal() and digits.isascii() and len(digits) <= _MAX_TOKEN):
        return None
    return int(token)


def _join_runs(
    starts: Counts, lengths: Counts, *, height: int, width: int, dialect: str, first: int
) -> Counts:
    """Counts in the dialect's own order from absolute 0-based starts; `first` is how it numbers pixel 0."""
    pixels = height * width

    def name(at: int) -> str:
        return f"{dialect} run {at + 1} (start {starts[at] + first}, length {lengths[at]})"

    for at in np.flatnonzero(lengths < 1)[:1].tolist():
        raise RegionError(f"{name(at)} is empty; a length is at least 1")
    for at in np.flatnonzero(starts < 0)[:1].tolist():
        raise RegionError(f"{name(at)} starts before the image, whose first pixel is {first}")
    for at in np.flatnonzero((starts >= pixels) | (lengths > pixels - starts))[:1].tolist():
        raise RegionError(f"{name(at)} leaves the image of {height} x {width} = {pixels} pixels")
    stops = starts + lengths
    for at in np.flatnonzero(starts[1:] < stops[:-1])[:1].tolist():
        how = "goes back before" if starts[at + 1] < starts[at] else "overlaps"
        raise RegionError(f"{name(at + 1)} {how} {name(at)}")
    one_column = (np.zeros_like(starts), starts, stops)
    return join_column_runs(one_column, pixels, 1)

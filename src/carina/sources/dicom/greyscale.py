"""From stored values to what a study set keeps: unsigned values, and the rescaling and window that display them.

What `Image` can say is kept as it is: slope, intercept, and a window of the functions LINEAR and LINEAR_EXACT. Look-up
tables and the function SIGMOID cannot be said by two numbers, so they are applied to the values.

pydicom applies all of it to the pixels, so that its functions serve the tests, which compare what is displayed. Its
tables are not used: it refuses those of 10 and 12 bits in a modality LUT, and of a VOI LUT with 8 bits it takes the
wrong entries beyond the first 256.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.sources.dicom.attributes import Attributes, ObjectError, Tag, damaged
from carina.sources.dicom.stored_values import Integers, PixelForm
from carina.studies.pixels import Pixels

NO_WINDOW: Final = "no window"
BAD_WINDOW: Final = "unusable window"
CONTRADICTION: Final = "contradictory greyscale"

LARGEST: Final = 1_000_000
"""Largest number of a rescaling or a window, fifteen times the largest stored value. Beyond it a number is not one of
grey values, and might be anything else, such as a date."""

Table = NDArray[np.float64]
"""One value for every value that the stored bits can hold."""


@dataclass
class GreyImage:
    """Pixels, and what `Image` says about them."""

    pixels: Pixels
    bits: int
    monochrome1: bool
    rescale: tuple[float, float] | None = None
    window: tuple[float, float] | None = None
    defects: list[str] = field(default_factory=list)


def make_grey_image(stored: Integers, form: PixelForm, attributes: Attributes) -> GreyImage:
    """Prepare the stored values of an object for a study set.

    Raises:
        ObjectError: The object is not a grey image, or its look-up tables are damaged.
    """
    defects: list[str] = []
    is_inverted = _is_inverted(attributes, defects)
    offset = 1 << (form.stored - 1) if form.is_signed else 0
    unsigned = stored.astype(np.int32) + offset if offset else stored
    pixels: Pixels = unsigned.astype(np.uint8) if form.stored <= 8 else unsigned.astype(np.uint16)
    image = GreyImage(pixels, form.stored, is_inverted, defects=defects)
    padding = _read_padding(attributes, offset)
    slope, intercept = _read_rescale(attributes)
    codes = np.arange(1 << form.stored, dtype=np.float64) - offset
    modality = attributes.first(Tag.MODALITY_LUT)
    if not modality.is_empty:
        values, bits = _look_up(_read_lut(modality, is_signed=form.is_signed), codes)
        _apply(image, values, bits)
        padding = None  # the table may give other pixels the same value
        codes = np.arange(1 << bits, dtype=np.float64)
    else:
        codes = slope * codes + intercept
        image.rescale = (slope, intercept - slope * offset)
        if image.rescale == (1.0, 0.0):
            image.rescale = None
    is_signed = intercept < 0 or form.is_signed
    _set_window(image, attributes, codes, padding, is_signed=is_signed)
    return image


def _read_padding(attributes: Attributes, offset: int) -> int | None:
    """The value of pixels that are no part of the image, as `GreyImage` has it; `offset` is added to signed values."""
    value = attributes.word(Tag.PIXEL_PADDING)
    if value is None:
        return None
    return value - (1 << 16) + offset if offset and value >= 1 << 15 else value + offset


def _apply(image: GreyImage, values: Table, bits: int) -> None:
    """Replace the pixels by what a table says of them."""
    kind = np.uint8 if bits <= 8 else np.uint16
    image.pixels = np.take(values.astype(kind), image.pixels)
    image.bits = bits
    image.rescale = None


def _is_inverted(attributes: Attributes, defects: list[str]) -> bool:
    """Whether a high value is dark. The presentation LUT shape decides where it is given."""
    photometric = attributes.text(Tag.PHOTOMETRIC)
    if photometric not in ("MONOCHROME1", "MONOCHROME2"):
        raise ObjectError("colour", "the photometric interpretation is not MONOCHROME1 or MONOCHROME2")
    stated = photometric == "MONOCHROME1"
    shape = attributes.text(Tag.PRESENTATION_LUT_SHAPE)
    if shape not in ("IDENTITY", "INVERSE"):
        return stated
    if (shape == "INVERSE") != stated:
        defects.append(CONTRADICTION)
    return shape == "INVERSE"


def _read_rescale(attributes: Attributes) -> tuple[float, float]:
    found = []
    for tag, usual in ((Tag.RESCALE_SLOPE, 1.0), (Tag.RESCALE_INTERCEPT, 0.0)):
        numbers = attributes.numbers(tag) if attributes.raw(tag) else [usual]
        if not numbers:
            raise damaged("its rescaling is not two numbers")
        found.append(numbers[0])
    if found[0] == 0 or max(map(abs, found)) > LARGEST:
        raise damaged("its rescale slope is 0, or its rescaling is beyond all grey values")
    return found[0], found[1]


# ---- window and VOI LUT ----------------------------------------------------------------------------------------------


def _set_window(
    image: GreyImage, attributes: Attributes, values: Table, padding: int | None, *, is_signed: bool
) -> None:
    """Set the window, or apply the VOI LUT; without either, the range of the values that occur is displayed."""
    voi = attributes.first(Tag.VOI_LUT)
    if not voi.is_empty:
        shown, bits = _look_up(_read_lut(voi, is_signed=is_signed), values)
        _apply(image, shown, bits)
        return
    function = attributes.text(Tag.VOI_FUNCTION) or "LINEAR"
    window = _read_window(attributes)
    if window is None or function not in _WINDOWS:
        has_one = attributes.raw(Tag.WINDOW_CENTRE) or attributes.raw(Tag.WINDOW_WIDTH)
        image.defects.append(BAD_WINDOW if has_one else NO_WINDOW)
        image.window = _find_range(image, values, padding)
    elif function == "SIGMOID":
        _apply(image, _sigmoid(values, *window), 16)
    else:
        image.window = _WINDOWS[function](*window)


def _read_window(attributes: Attributes) -> tuple[float, float] | None:
    """Centre and width of the first window; None where there is none that can be used."""
    centre, width = attributes.number(Tag.WINDOW_CENTRE), attributes.number(Tag.WINDOW_WIDTH)
    if centre is None or width is None:
        return None
    lowest = 1 if (attributes.text(Tag.VOI_FUNCTION) or "LINEAR") == "LINEAR" else 1e-6
    is_usable = lowest <= width <= LARGEST and abs(centre) <= LARGEST
    return (centre, width) if is_usable else None


_WINDOWS: Final[dict[str, Callable[[float, float], tuple[float, float]]]] = {
    "LINEAR": lambda centre, width: (centre, width),
    # LINEAR subtracts half from the centre and one from the width, LINEAR_EXACT does not (PS3.3, C.11.2.1).
    "LINEAR_EXACT": lambda centre, width: (centre + 0.5, width + 1),
    "SIGMOID": lambda centre, width: (centre, width),
}


def _sigmoid(values: Table, centre: float, width: float) -> Table:
    """The function SIGMOID of PS3.3, C.11.2.1.3.1, over 16 bits."""
    exponent = np.clip(-4 * (values - centre) / width, -700, 700)
    return np.rint(65535 / (1 + np.exp(exponent)))


def _find_range(image: GreyImage, values: Table, padding: int | None) -> tuple[float, float] | None:
    """The window over the values that occur, without padding; None for 8 bits, which are displayed as they are."""
    if image.bits <= 8:
        return None
    inside = image.pixels if padding is None else image.pixels[image.pixels != padding]
    if not inside.size:
        inside = image.pixels
    ends = values[[int(inside.min()), int(inside.max())]]
    low, high = float(ends.min()), float(ends.max())
    return (low + 0.5 + (high - low) / 2, high - low + 1) if high > low else None


# ---- look-up tables --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Lut:
    first: int
    bits: int
    entries: NDArray[np.uint16]


def _read_lut(item: Attributes, *, is_signed: bool) -> _Lut:
    """A look-up table of PS3.3, C.11.1.1."""
    descriptor = item.words(Tag.LUT_DESCRIPTOR)
    data = item.stored(Tag.LUT_DATA)
    if len(descriptor) != 3 or not 8 <= descriptor[2] <= 16:
        raise damaged("a look-up table is not as the standard describes it")
    number, first, bits = descriptor[0] or 65536, descriptor[1], descriptor[2]
    if is_signed and first >= 1 << 15:
        first -= 1 << 16
    if len(data) >= 2 * number:
        entries = np.frombuffer(data, f"{item.order}u2", number).astype(np.uint16)
    elif bits == 8 and len(data) >= number:
        entries = np.frombuffer(data, np.uint8, number).astype(np.uint16)
    else:
        raise damaged("a look-up table is cut short")
    return _Lut(first, bits, np.minimum(entries, (1 << bits) - 1).astype(np.uint16))


def _look_up(lut: _Lut, values: Table) -> tuple[Table, int]:
    """What a table says of values, and the bits of it; values beyond its ends get what the ends get."""
    places = np.clip(np.floor(values) - lut.first, 0, len(lut.entries) - 1).astype(np.int64)
    return lut.entries[places].astype(np.float64), lut.bits

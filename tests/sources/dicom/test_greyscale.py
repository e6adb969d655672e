"""What is kept of rescaling, windows and look-up tables displays the values that the standard asks for."""

import numpy as np
import pytest
from tests.sources.dicom.objects import encode, lut, radiograph

from carina.sources.dicom.attributes import ObjectError, parse_object
from carina.sources.dicom.greyscale import BAD_WINDOW, CONTRADICTION, NO_WINDOW, make_grey_image
from carina.sources.dicom.stored_values import decode_stored_values
from carina.studies.pixels import display_image

VALUES = np.array([[0, 1000, 2000, 4095]], np.uint16)
WITHOUT = {"WINDOW_CENTRE": None, "WINDOW_WIDTH": None}


def make(values=VALUES, bits=12, **changes):
    content = encode(radiograph(values, bits=bits, **changes))
    found = parse_object(content, is_whole=True, with_pixels=True, max_bytes=1_000_000)
    return make_grey_image(*decode_stored_values(found), found.attributes)


def shown(image):
    return display_image(image.pixels, image).tolist()


def linear(values, centre, width):
    """PS3.3, C.11.2.1.2.1, written down once more."""
    return [
        0 if x <= centre - 0.5 - (width - 1) / 2
        else 255 if x > centre - 0.5 + (width - 1) / 2
        else round(((x - (centre - 0.5)) / (width - 1) + 0.5) * 255)
        for x in values
    ]  # fmt: skip


def test_a_window_is_kept_and_not_applied():
    image = make(WINDOW_CENTRE=("DS", "1500\\9"), WINDOW_WIDTH=("DS", "2000\\9"))
    assert image.pixels.tolist() == VALUES.tolist()
    assert (image.bits, image.window, image.rescale, image.defects) == (12, (1500, 2000), None, [])
    assert shown(image) == [linear([0, 1000, 2000, 4095], 1500, 2000)]


def test_rescaling_comes_before_the_window():
    rescale = {"RESCALE_SLOPE": ("DS", "2"), "RESCALE_INTERCEPT": ("DS", "-100")}
    image = make(**rescale, WINDOW_CENTRE=("DS", "3000"), WINDOW_WIDTH=("DS", "4000"))
    assert image.rescale == (2, -100)
    assert shown(image) == [linear([-100, 1900, 3900, 8090], 3000, 4000)]


def test_signed_values_are_moved_and_displayed_alike():
    values = np.array([[-2048, -1, 0, 2047]], np.int16)
    image = make(values, WINDOW_CENTRE=("DS", "0"), WINDOW_WIDTH=("DS", "2000"))
    assert image.pixels.tolist() == [[0, 2047, 2048, 4095]]
    assert image.rescale == (1, -2048)
    assert shown(image) == [linear([-2048, -1, 0, 2047], 0, 2000)]


def test_linear_exact_becomes_linear():
    window = {"WINDOW_CENTRE": ("DS", "2000"), "WINDOW_WIDTH": ("DS", "2000")}
    image = make(VOI_FUNCTION=("CS", "LINEAR_EXACT"), **window)
    # (x - 2000) / 2000 + 0.5 of 255: 0 for 1000, 127.5 for 2000
    assert shown(image) == [[0, 0, 128, 255]]


def test_sigmoid_is_applied():
    window = {"WINDOW_CENTRE": ("DS", "2000"), "WINDOW_WIDTH": ("DS", "1000")}
    image = make(VOI_FUNCTION=("CS", "SIGMOID"), **window)
    expected = [65535 / (1 + np.exp(-4 * (x - 2000) / 1000)) for x in (0, 1000, 2000, 4095)]
    assert (image.bits, image.window) == (16, None)
    assert image.pixels.tolist() == [np.rint(expected).tolist()]


def test_a_modality_table_is_applied():
    values = np.array([[0, 1, 2, 3]], np.uint16)
    image = make(values, MODALITY_LUT=lut(1, 10, [5, 600, 1023]))
    # below the first value: the first entry
    assert (image.pixels.tolist(), image.bits, image.window) == ([[5, 5, 600, 1023]], 10, (2048, 4096))


def test_a_voi_table_is_preferred_to_a_window():
    values = np.array([[9, 10, 11, 12]], np.uint16)
    image = make(values, VOI_LUT=lut(10, 8, [0, 100, 255]))
    assert (image.pixels.tolist(), image.bits, image.window) == ([[0, 0, 100, 255]], 8, None)
    assert image.pixels.dtype == np.uint8


def test_both_tables_follow_each_other():
    values = np.array([[0, 1, 2]], np.uint16)
    image = make(values, MODALITY_LUT=lut(0, 12, [30, 20, 10]), VOI_LUT=lut(10, 16, list(range(0, 42, 2))))
    assert image.pixels.tolist() == [[40, 20, 0]]


def test_without_a_window_the_range_of_the_values_is_displayed():
    image = make(np.array([[500, 1000, 1500]], np.uint16), **WITHOUT)
    assert image.window == (1000.5, 1001)
    assert shown(image) == [[0, 128, 255]]
    assert image.defects == [NO_WINDOW]


def test_without_a_window_8_bits_are_displayed_as_they_are():
    image = make(np.array([[3, 200]], np.uint8), bits=8, **WITHOUT)
    assert (image.window, shown(image)) == (None, [[3, 200]])


@pytest.mark.parametrize("width", ["0", "-5", "nan", "wide", "0.5", "20200310"])
def test_an_unusable_window_is_told(width):
    image = make(WINDOW_WIDTH=("DS", width))
    assert (image.window, image.defects) == ((2048, 4096), [BAD_WINDOW])


@pytest.mark.parametrize(
    ("photometric", "shape", "inverted", "defects"),
    [
        ("MONOCHROME2", None, False, []),
        ("MONOCHROME1", None, True, []),
        ("MONOCHROME2", "IDENTITY", False, []),
        ("MONOCHROME1", "INVERSE", True, []),
        ("MONOCHROME2", "INVERSE", True, [CONTRADICTION]),
        ("MONOCHROME1", "IDENTITY", False, [CONTRADICTION]),
    ],
)
def test_the_presentation_shape_decides(photometric, shape, inverted, defects):
    changes = {"PRESENTATION_LUT_SHAPE": ("CS", shape)} if shape else {}
    image = make(PHOTOMETRIC=("CS", photometric), **changes)
    assert (image.monochrome1, image.defects) == (inverted, defects)


@pytest.mark.parametrize(
    "changes",
    [
        {"PHOTOMETRIC": ("CS", "RGB")},
        {"RESCALE_SLOPE": ("DS", "0")},
        {"RESCALE_INTERCEPT": ("DS", "x")},
        {"RESCALE_INTERCEPT": ("DS", "-20200310")},
        {"VOI_LUT": lut(0, 20, [1])},
        {"MODALITY_LUT": lut(0, 12, [])},
    ],
)
def test_what_has_no_meaning_is_refused(changes):
    with pytest.raises(ObjectError):
        make(**changes)

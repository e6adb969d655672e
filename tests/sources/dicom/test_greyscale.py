"""What is kept of rescaling, windows and look-up tables displays the values that the standard asks for."""

import numpy as np
import pytest
from pydicom.dataset import Dataset
from pydicom.pixels import apply_modality_lut, apply_voi, apply_windowing
from tests.sources.dicom import syntaxes
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


# ---- what pydicom displays -------------------------------------------------------------------------------------------


def display_by_pydicom(made):
    """Modality LUT, VOI LUT and presentation LUT by pydicom, as values from 0 to 255, not rounded."""
    values = apply_modality_lut(made.pixel_array, made)
    if "VOILUTSequence" in made:
        shown = apply_voi(values.astype(np.int64), made).astype(float)
        low, high = 0, 2 ** made.VOILUTSequence[0].LUTDescriptor[2] - 1
    else:
        shown = apply_windowing(values, made)
        signed = made.PixelRepresentation * 2 ** (made.BitsStored - 1)
        slope, intercept = made.get("RescaleSlope", 1), made.get("RescaleIntercept", 0)
        low, high = (slope * end + intercept for end in (-signed, 2**made.BitsStored - 1 - signed))
        if "ModalityLUTSequence" in made:
            low, high = 0, 2 ** made.ModalityLUTSequence[0].LUTDescriptor[2] - 1
    grey = (shown - low) * 255 / (high - low)
    return 255 - grey if made.PhotometricInterpretation == "MONOCHROME1" else grey


def table(first, bits, entries):
    item = Dataset()
    item.LUTDescriptor, item.LUTData = [len(entries) % 65536, first, bits], entries
    for element in (item["LUTDescriptor"], item["LUTData"]):
        element.VR = "US"
    return [item]


WINDOWS = {
    "linear": {},
    "linear-exact": {"VOILUTFunction": "LINEAR_EXACT"},
    "sigmoid": {"VOILUTFunction": "SIGMOID"},
    "rescale": {"RescaleSlope": "2.5", "RescaleIntercept": "-7", "RescaleType": "US"},
    "negative slope": {"RescaleSlope": "-1", "RescaleIntercept": "40", "RescaleType": "US"},
}


@pytest.mark.parametrize("photometric", ["MONOCHROME1", "MONOCHROME2"])
@pytest.mark.parametrize("signed", [False, True], ids=["unsigned", "signed"])
@pytest.mark.parametrize("bits", [8, 10, 12, 14, 16])
@pytest.mark.parametrize("window", WINDOWS)
def test_windows_display_what_pydicom_displays(window, bits, signed, photometric):
    low = -(2 ** (bits - 1)) if signed else 0
    values = np.linspace(low, low + 2**bits - 1, 600).astype(
        f"{'i' if signed else 'u'}{1 if bits == 8 else 2}"
    )
    changes = WINDOWS[window]
    slope, intercept = float(changes.get("RescaleSlope", 1)), float(changes.get("RescaleIntercept", 0))
    centre = slope * (low + 0.55 * 2**bits) + intercept
    made = syntaxes.dataset(
        values.reshape(20, 30),
        bits,
        PhotometricInterpretation=photometric,
        PresentationLUTShape="INVERSE" if photometric == "MONOCHROME1" else "IDENTITY",
        WindowCenter=f"{centre:.2f}",
        WindowWidth=f"{0.6 * 2**bits * abs(slope):.2f}",
        **changes,
    )
    compare(made)


def compare(made):
    found = parse_object(syntaxes.save(made), is_whole=True, with_pixels=True, max_bytes=10_000_000)
    image = make_grey_image(*decode_stored_values(found), found.attributes)
    ours, theirs = display_image(image.pixels, image), display_by_pydicom(made)
    # Rounded alike, but for values in the middle between two, and one more rounding where a curve is applied.
    assert np.abs(ours - theirs).max() <= (0.5 + 255 / 2**image.bits if image.window is None else 0.5 + 1e-6)
    assert ours.min() < 20
    assert ours.max() > 235


@pytest.mark.parametrize("photometric", ["MONOCHROME1", "MONOCHROME2"])
@pytest.mark.parametrize("bits", [8, 10, 12, 16])
def test_voi_tables_display_what_pydicom_displays(bits, photometric):
    values = np.arange(400, dtype=np.uint16).reshape(20, 20)
    entries = (np.linspace(0, 1, 200) ** 2 * (2**bits - 1)).astype(int).tolist()
    made = syntaxes.dataset(
        values, 12, PhotometricInterpretation=photometric, VOILUTSequence=table(30, bits, entries)
    )
    if bits == 8:  # pydicom takes wrong entries beyond the first 256
        made = syntaxes.dataset(
            np.minimum(values, 255),
            12,
            PhotometricInterpretation=photometric,
            VOILUTSequence=table(30, 8, entries),
        )
    compare(made)


@pytest.mark.parametrize("bits", [8, 16])
def test_modality_tables_display_what_pydicom_displays(bits):
    values = np.arange(400, dtype=np.uint16).reshape(20, 20)
    entries = (np.linspace(1, 0, 300) ** 0.5 * (2**bits - 1)).astype(int).tolist()
    made = syntaxes.dataset(values, 12, ModalityLUTSequence=table(50, bits, entries))
    made.WindowCenter, made.WindowWidth = 2 ** (bits - 1), 2**bits
    compare(made)

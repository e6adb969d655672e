"""Text in the pixels never passes silently: it is skipped, covered, or counted as not looked for."""

import json

import cv2
import numpy as np
import pytest
from tests.sources.dicom.objects import encode, radiograph

from carina import CarinaError, make_phantoms, open_studies
from carina.sources.dicom import burned_in, reader
from carina.sources.dicom.burned_in import find_text, is_marker

SIZE = 384
NAME = (slice(8, 40), slice(10, 250))
"""Rows and columns in which the name is drawn."""


@pytest.fixture(scope="module")
def phantom(tmp_path_factory):
    """A radiograph of 12 bits."""
    studies = make_phantoms(tmp_path_factory.mktemp("p") / "s", n=1, seed=3, size=SIZE, bits=12, workers=1)
    return np.asarray(studies.pixels(next(iter(studies)).images[0])).copy()


def write(pixels, text, place, *, scale=0.8):
    stencil = np.zeros(pixels.shape, np.uint8)
    cv2.putText(stencil, text, place, cv2.FONT_HERSHEY_SIMPLEX, scale, 255, 2)
    return np.where(stencil > 127, 4000, pixels).astype(np.uint16)


@pytest.fixture(scope="module")
def named(phantom):
    """With a name, the marker of a side, and a word of the technician."""
    return write(
        write(write(phantom, "MILLER ANNA", (14, 32)), "R", (20, 110), scale=1.5), "PORTABLE", (230, 370)
    )


def dx(pixels, flag, **changes):
    return encode(radiograph(pixels, BURNED_IN=("CS", flag) if flag else None, **changes))


def outcome(imported):
    return imported.counts.kept, [s.kind for s in imported.skipped], list(imported.counts.defects)


@pytest.mark.parametrize(
    ("flag", "options", "expected"),
    [
        ("YES", {}, (0, ["burned-in text"], [])),
        (None, {}, (0, ["burned-in text"], [])),
        ("NO", {}, (0, ["burned-in text"], [])),
        ("NO", {"look_for_text": "always"}, (0, ["burned-in text"], [])),
        (None, {"look_for_text": "unknown"}, (0, ["burned-in text"], [])),
        ("NO", {"look_for_text": "unknown"}, (1, [], ["no text, by the header alone"])),
        (None, {"look_for_text": "never"}, (1, [], ["text not looked for"])),
        ("NO", {"look_for_text": "never"}, (1, [], ["no text, by the header alone"])),
        ("NO", {"burned_in": "keep"}, (1, [], ["no text, by the header alone"])),
        ("YES", {"burned_in": "keep"}, (1, [], ["burned-in text"])),
        (None, {"burned_in": "keep"}, (1, [], ["text not looked for"])),
        (None, {"burned_in": "mask"}, (1, [], ["text masked"])),
        ("YES", {"burned_in": "mask"}, (1, [], ["text masked"])),
        ("NO", {"burned_in": "mask"}, (1, [], ["text masked"])),
        (
            "NO",
            {"burned_in": "mask", "look_for_text": "unknown"},
            (1, [], ["no text, by the header alone"]),
        ),
    ],
)
def test_an_image_with_a_name(flag, options, expected, named, import_objects):
    assert outcome(import_objects([dx(named, flag)], **options)) == expected


@pytest.mark.parametrize(
    ("flag", "options", "expected"),
    [
        (None, {}, (1, [], [])),
        (None, {"burned_in": "mask"}, (1, [], [])),
        ("YES", {"burned_in": "mask"}, (0, ["burned-in text"], [])),
        ("NO", {}, (1, [], [])),
    ],
)
def test_an_image_with_markers_alone(flag, options, expected, phantom, import_objects):
    marked = write(write(phantom, "L", (330, 110), scale=1.5), "AP PORTABLE", (180, 370))
    assert outcome(import_objects([dx(marked, flag)], **options)) == expected


@pytest.mark.parametrize("photometric", ["MONOCHROME1", "MONOCHROME2"])
def test_covered_text_is_black_and_the_rest_is_untouched(photometric, named, phantom, import_objects):
    values = 4095 - named if photometric == "MONOCHROME1" else named
    content = dx(values, None, PHOTOMETRIC=("CS", photometric))
    imported = import_objects([content], burned_in="mask")
    studies = open_studies(imported.path)
    image = next(iter(studies)).images[0]
    kept = np.asarray(studies.pixels(image))
    black = 4095 if photometric == "MONOCHROME1" else 0
    text = (named != phantom)[NAME]
    assert text.any()
    assert (kept[NAME][text] == black).all()
    changed = kept != values
    assert np.flatnonzero(changed.any(axis=1)).max() < 60
    assert (kept[60:] == values[60:]).all()


@pytest.mark.parametrize("orientation", ["R\\F", "L\\H", "R\\H"])
def test_text_is_found_in_an_image_that_is_turned(orientation, named, phantom, import_objects):
    """Whether it can be read as the image is stored, or only as it is displayed."""
    turned = named[:: -1 if "H" in orientation else 1, :: -1 if "R" in orientation else 1]
    for number, values in enumerate((named, np.ascontiguousarray(turned))):
        content = dx(values, None, PATIENT_ORIENTATION=("CS", orientation))
        assert import_objects([content], out=f"skip{number}").counts.kept == 0
    covered = import_objects([content], out="mask", burned_in="mask")
    studies = open_studies(covered.path)
    kept = np.asarray(studies.pixels(next(iter(studies)).images[0]))
    assert (kept[NAME][(named != phantom)[NAME]] == 0).all()
    assert (kept[60:300] == named[60:300]).all()


def test_text_is_found_where_it_stands(named, phantom):
    def shown(pixels):
        return (pixels >> 4).astype(np.uint8)

    assert find_text(shown(phantom)) == []
    (box,) = find_text(shown(named))
    rows, columns = np.nonzero((named != phantom)[NAME])
    assert box.left <= columns.min() + NAME[1].start
    assert box.right > columns.max() + NAME[1].start
    assert box.top <= rows.min() + NAME[0].start
    assert box.bottom > rows.max() + NAME[0].start


def test_narrow_and_tiny_images_are_looked_at_in_bounded_memory():
    """rapidocr enlarges the shorter side to 736 pixels: 2,000 x 6 pixels would become 245,000 x 736."""
    for shape in ((2000, 6), (6, 2000), (1, 2000), (3, 4), (1, 1)):
        assert find_text(np.zeros(shape, np.uint8)) == []


def test_text_in_a_narrow_image_is_found():
    strip = np.zeros((60, 900), np.uint16)
    assert len(find_text((write(strip, "MILLER ANNA", (600, 40)) > 0).astype(np.uint8) * 255)) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [("R", True), ("l", True), ("Portable AP", True), ("SEMI-ERECT", True), ("3", True), ("JS", False),
     ("1234", False), ("Miller", False), ("R Miller", False), ("10:15", False), ("", True)],
)  # fmt: skip
def test_markers(text, expected):
    assert is_marker(text) is expected


def manifest(imported):
    return json.loads((imported.path / "studies.json").read_text())["options"]


def test_the_manifest_says_who_looked_at_what(phantom, import_objects):
    looked = manifest(import_objects([dx(phantom, "NO")], look_for_text="always"))
    assert (looked["burned_in"], looked["look_for_text"]) == ("skip", "always")
    assert looked["text_detector"].startswith("rapidocr ")
    assert "113101 Clean Pixel Data Option" in looked["deidentification_methods"]
    assert looked["patient_identity_removed"] == "YES"
    assert "every image, by rapidocr " in looked["burned_in_decision"]
    kept = manifest(import_objects([dx(phantom, "NO")], out="kept", burned_in="keep"))
    assert (kept["look_for_text"], kept["text_detector"]) == ("never", "none")
    assert not any(text.startswith("113101") for text in kept["deidentification_methods"])
    assert kept["patient_identity_removed"] == "NO"
    by_header = manifest(import_objects([dx(phantom, "NO")], out="by_header", look_for_text="unknown"))
    assert by_header["patient_identity_removed"] == "FROM HEADERS ONLY"
    assert "on the word of their header" in by_header["burned_in_decision"]


def test_without_the_extra_nothing_passes_silently(phantom, import_objects, monkeypatch):
    for module in (burned_in, reader):
        monkeypatch.setattr(module, "has_text_detector", lambda: False)
    images = [
        dx(phantom, flag, SOP_INSTANCE=("UI", f"1.2.3.{number}"))
        for number, flag in enumerate((None, "NO", "NO"), 1)
    ]
    imported = import_objects(images)
    assert {name: count.times for name, count in imported.counts.defects.items()} == {
        "text not looked for": 1,
        "no text, by the header alone": 2,
    }
    (sentence,) = imported.plan.lines
    assert "looked for in no image" in sentence
    assert "carina[ocr]" in sentence
    stated = manifest(imported)
    assert (stated["look_for_text"], stated["text_detector"]) == ("never", "none")
    assert stated["patient_identity_removed"] == "FROM HEADERS ONLY"
    refused = ({"burned_in": "mask"}, {"look_for_text": "always"}, {"look_for_text": "unknown"})
    for number, options in enumerate(refused):
        with pytest.raises(CarinaError, match=r"pip install 'carina\[ocr\]'"):
            import_objects([dx(phantom, None)], out=f"o{number}", **options)


def test_masking_needs_looking(phantom, import_objects):
    with pytest.raises(CarinaError, match="--look-for-text never"):
        import_objects([dx(phantom, None)], burned_in="mask", look_for_text="never")

"""Each run-length dialect against worked examples, pycocotools, and malformed text."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pycocotools import mask as coco

from carina.store.errors import RegionError
from carina.studies import Region, rle

masks = hnp.arrays(np.bool_, st.tuples(st.integers(1, 12), st.integers(1, 9)))

# 0 1 0 0     set pixels, column-major from 0: 3, 4, 8
# 0 1 0 0     set pixels, row-major from 1:    2, 6, 11
# 0 0 1 0
EXAMPLE = np.array([[0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], dtype=bool)


def pycoco(mask):
    return coco.encode(np.asfortranarray(mask, dtype=np.uint8))["counts"].decode("ascii")


def test_a_worked_example_is_encoded_in_every_dialect():
    counts = rle.mask_to_counts(EXAMPLE)
    assert counts.tolist() == [3, 2, 3, 1, 3]
    # One character a run, from the fourth on its difference from the run two before: 3 2 3 (1-2) (3-3).
    assert rle.encode_coco(counts) == "323O0"
    # Skip 3, take 2, skip 3, take 1.
    assert rle.encode_siim(counts) == "3 2 3 1"
    assert rle.encode_chexmask(counts, 3, 4) == "2 1 6 1 11 1"
    for decoded in (
        rle.decode_coco("323O0", 3, 4),
        rle.decode_coco(b"323O0", 3, 4),
        rle.decode_coco([3, 2, 3, 1, 3], 3, 4),
        rle.decode_siim("3 2 3 1", 3, 4),
        rle.decode_chexmask("2 1 6 1 11 1", 3, 4),
    ):
        assert np.array_equal(rle.counts_to_mask(decoded, 3, 4), EXAMPLE)


def test_siim_as_its_published_decoder_reads_it():
    text, flat, position = "5 3 0 2 7 1", np.zeros(48, dtype=bool), 0
    numbers = [int(token) for token in text.split()]
    for skip, length in zip(numbers[::2], numbers[1::2], strict=True):
        position += skip
        flat[position : position + length] = True
        position += length
    assert np.array_equal(rle.counts_to_mask(rle.decode_siim(text, 8, 6), 8, 6), flat.reshape(6, 8).T)


@pytest.mark.parametrize("text", ["-1", " -1", " -1 \n"])
def test_an_empty_siim_mask_is_minus_one(text):
    assert rle.decode_siim(text, 2, 3).tolist() == [6]
    assert rle.encode_siim(np.array([6])) == "-1"


def test_empty_and_full_chexmask_masks_are_encoded():
    assert rle.decode_chexmask("", 2, 3).tolist() == [6]
    assert rle.encode_chexmask(np.array([6]), 2, 3) == ""
    assert rle.decode_chexmask("1 6", 2, 3).tolist() == [0, 6]
    assert rle.encode_chexmask(np.array([0, 6]), 2, 3) == "1 6"


def test_chexmask_runs_that_meet_are_joined():
    assert rle.decode_chexmask("1 2 3 4", 2, 3).tolist() == [0, 6]


@given(masks)
@settings(max_examples=150)
def test_every_dialect_decodes_what_it_encodes(mask):
    height, width = mask.shape
    counts = rle.mask_to_counts(mask)
    assert rle.encode_coco(counts) == pycoco(mask)
    assert np.array_equal(rle.counts_to_mask(counts, height, width), mask)
    for again in (
        rle.decode_coco(rle.encode_coco(counts), height, width),
        rle.decode_coco(counts.tolist(), height, width),
        rle.decode_siim(rle.encode_siim(counts), height, width),
        rle.decode_chexmask(rle.encode_chexmask(counts, height, width), height, width),
        rle.join_column_runs(rle.column_runs(counts, height), height, width),
        rle.complement(rle.complement(counts)),
    ):
        assert np.array_equal(again, counts)
        assert again.dtype == np.int64


@pytest.mark.parametrize("size", [(1024, 1024), (700, 1300), (1, 5000), (5000, 1)])
@pytest.mark.parametrize("share", [0.0001, 0.5, 0.9999])
def test_long_runs_equal_pycocotools(size, share):
    mask = np.random.default_rng(7).random(size) < share
    text = rle.encode_coco(rle.mask_to_counts(mask))
    assert text == pycoco(mask)
    assert np.array_equal(rle.counts_to_mask(rle.decode_coco(text, *size), *size), mask)


@given(st.lists(st.integers(0, 2**28), min_size=1, max_size=6))
@settings(max_examples=60)
def test_coco_numbers_of_every_length(lengths):
    lengths = [length + 1 for length in lengths]
    columns = -(-sum(lengths) // rle.MAX_SIDE)
    lengths[-1] += columns * rle.MAX_SIDE - sum(lengths)
    if sum(lengths) <= rle.MAX_PIXELS:
        text = rle.encode_coco(np.array(lengths))
        assert rle.decode_coco(text, rle.MAX_SIDE, columns).tolist() == lengths


@pytest.mark.parametrize("size", [(1, rle.MAX_SIDE + 1), (rle.MAX_SIDE + 1, 1)])
def test_an_image_with_a_longer_side_than_any_has_no_regions(size):
    with pytest.raises(
        RegionError, match=f"{size[0]} x {size[1]} is too large, the limit is a side of 65535"
    ):
        Region.from_box(0, 0, 1, 1, height=size[0], width=size[1])
    assert not rle.is_box("0", *size)


def test_masks_of_any_memory_layout():
    base = np.random.default_rng(1).random((20, 30)) < 0.3
    for mask in (base.T, base[:, ::-1], base[::-1, ::2], np.asfortranarray(base), base[3:9, 4:5]):
        assert rle.encode_coco(rle.mask_to_counts(mask)) == pycoco(mask)


@pytest.mark.parametrize(
    ("given_counts", "canonical"),
    [
        ([2, 0, 4], [6]),
        ([0, 0, 6], [6]),
        ([0, 2, 0, 4], [0, 6]),
        ([1, 2, 3, 0], [1, 2, 3]),
        ([0, 0, 0, 6], [0, 6]),
        ([0, 6, 0], [0, 6]),
    ],
)
def test_empty_coco_runs_are_dropped_from_the_encodings_of_others(given_counts, canonical):
    assert rle.decode_coco(given_counts, 2, 3).tolist() == canonical


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ("", "empty string"),
        ([], "empty list"),
        ("323O", "cover 9 pixels, expected 3 x 4 = 12"),
        ("323O01", "cover 14 pixels"),
        ("32 O0", "' ' at position 2"),
        ("32~O0", "'~' at position 2"),
        ("32é", "'é' at position 2"),
        (b"3\xff", "at position 1"),
        ("32P", "stop within a number, at position 3"),
        ("PPPPPPPPPPPPP0", "more than 6 characters at position 0"),
        ("<O", "COCO run 1 is -1 pixels"),
        ("4OM", "COCO run 1 is -1 pixels"),
        ([13, -1], "COCO run 0 is 13 pixels"),
        ([3, 2, 3, 1, 4], "cover 13 pixels"),
        ([3, 2.5, 6], "COCO run 1 is 2.5"),
        ([3, "9"], "COCO run 1 is '9'"),
        ([10**30], "COCO run 0 is 1000"),
    ],
)
def test_malformed_coco_runs_are_refused(counts, message):
    with pytest.raises(RegionError, match=message):
        rle.decode_coco(counts, 3, 4)


@given(st.binary(max_size=40), st.integers(1, 20), st.integers(1, 20))
@settings(max_examples=150)
def test_any_bytes_decode_or_are_refused(data, height, width):
    try:
        counts = rle.decode_coco(data, height, width)
    except RegionError:
        return
    assert counts.sum() == height * width


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "SIIM text is empty"),
        ("3 2 3", "SIIM text has 3 numbers, expected pairs"),
        ("3 2 x 1", "SIIM token 3 is 'x'"),
        ("3 2.0", "SIIM token 2 is '2.0'"),
        ("1_0 1", "SIIM token 1 is '1_0'"),
        ("٣ 1", "SIIM token 1"),
        ("9" * 40 + " 1", "SIIM token 1"),
        ("3 2 -1 1", "SIIM run 2 goes back by 1 pixels"),
        ("3 0", r"SIIM run 1 \(start 3, length 0\) is empty"),
        ("3 -2", r"SIIM run 1 \(start 3, length -2\) is empty"),
        ("3 2 6 2", r"SIIM run 2 \(start 11, length 2\) leaves the image of 3 x 4 = 12"),
        ("12 1", "leaves the image"),
        ("0 9999999999", "leaves the image"),
        ("9999999999 9999999999 " * 1000, "leaves the image"),
    ],
)
def test_malformed_siim_runs_are_refused(text, message):
    with pytest.raises(RegionError, match=message):
        rle.decode_siim(text, 3, 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5", "CheXmask text has 1 numbers, expected pairs"),
        ("a 2", "CheXmask token 1 is 'a'"),
        ("nan", "CheXmask token 1 is 'nan'"),
        ("0 2", r"CheXmask run 1 \(start 0, length 2\) starts before the image, whose first pixel is 1"),
        ("-4 2", "starts before the image"),
        ("2 0", "is empty"),
        ("12 2", r"CheXmask run 1 \(start 12, length 2\) leaves the image of 3 x 4 = 12"),
        ("2 3 4 2", r"run 2 \(start 4, length 2\) overlaps CheXmask run 1 \(start 2, length 3\)"),
        ("6 2 2 1", r"run 2 \(start 2, length 1\) goes back before CheXmask run 1"),
        ("2 9999999999", "leaves the image"),
    ],
)
def test_malformed_chexmask_runs_are_refused(text, message):
    with pytest.raises(RegionError, match=message):
        rle.decode_chexmask(text, 3, 4)


@pytest.mark.parametrize("size", [(0, 4), (4, 0), (-1, 4), (2**15, 2**15)])
def test_impossible_sizes_are_refused(size):
    for decode in (rle.decode_siim, rle.decode_chexmask, rle.decode_coco):
        with pytest.raises(RegionError, match=f"{size[0]} x {size[1]}"):
            decode("0", *size)


@pytest.mark.parametrize("cell", [float("nan"), None])
def test_an_empty_cell_of_a_table_is_a_clear_error(cell):
    for decode in (rle.decode_siim, rle.decode_chexmask):
        with pytest.raises(RegionError, match="expected text"):
            decode(cell, 4, 5)


@given(st.data(), st.integers(1, 70), st.integers(1, 70))
def test_a_box_is_encoded_as_its_mask_is(data, height, width):
    left, top = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    columns = range(left, data.draw(st.integers(left + 1, width)))
    rows = range(top, data.draw(st.integers(top + 1, height)))
    mask = np.zeros((height, width), dtype=bool)
    mask[rows.start : rows.stop, columns.start : columns.stop] = True
    assert rle.encode_box(columns, rows, height, width) == pycoco(mask)


@given(data=st.data(), height=st.integers(1, 40), width=st.integers(1, 40))
def test_boxes_are_told_by_their_text(data, height, width):
    columns = sorted(data.draw(st.lists(st.integers(0, width), min_size=2, max_size=2, unique=True)))
    rows = sorted(data.draw(st.lists(st.integers(0, height), min_size=2, max_size=2, unique=True)))
    text = rle.encode_box(range(*columns), range(*rows), height, width)
    # Boxes of the full height of an image are one run, and are decoded as any other region.
    assert rle.is_box(text, height, width) == (rows != [0, height] or columns[1] - columns[0] == 1)
    for size in ((height + 1, width), (height, width + 1)):
        assert not rle.is_box(text, *size)


@given(text=st.text("0123NOPQno_", max_size=12), height=st.integers(-1, 9), width=st.integers(-1, 9))
def test_a_text_that_passes_for_a_box_is_one(text, height, width):
    if rle.is_box(text, height, width):
        assert rle.encode_coco(rle.decode_own(text, height, width)) == text


def test_no_pixel_is_one_run():
    assert rle.encode_empty(3, 50) == rle.encode_coco(np.array([150]))
    assert not rle.is_box(rle.encode_empty(3, 50), 3, 50)

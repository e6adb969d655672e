"""Others' files: maps, regions, and which belong together."""

import contextlib
import io
import json
import math
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st

from carina.maps.file_scores import compare_map_files, match_maps, score_map_files, write_scores
from carina.maps.map_files import frame_of_map, read_map
from carina.maps.region_files import find_patients, read_regions
from carina.models.frame import Frame
from carina.store.errors import CarinaError
from carina.studies import Region, write_png

VALUES = np.arange(12, dtype=np.float32).reshape(3, 4) / 16


# ---- maps ----


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4"])
@pytest.mark.parametrize("fortran", [False, True])
def test_arrays_are_read_whatever_their_layout(tmp_path: Path, dtype: str, fortran: bool) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.asarray(VALUES, dtype, order="F" if fortran else "C")[None, None])
    values, size, probability = read_map(path)
    np.testing.assert_array_equal(values, VALUES)
    assert (values.dtype, size, probability) == (np.float32, None, None)


def test_archives_have_one_array_or_one_named_map(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "one.npz", anything=VALUES)
    np.savez(tmp_path / "two.npz", map=VALUES, dims=np.array([40, 30]), prob=np.array(0.5))
    np.testing.assert_array_equal(read_map(tmp_path / "one.npz")[0], VALUES)
    values, size, probability = read_map(tmp_path / "two.npz")
    np.testing.assert_array_equal(values, VALUES)
    assert (size, probability) == ((30, 40), 0.5)


def test_png_and_tiff_values_are_scaled_to_0_to_1(tmp_path: Path) -> None:
    write_png(tmp_path / "a.png", np.array([[0, 51], [255, 102]], np.uint8))
    write_png(tmp_path / "b.png", np.array([[0, 65535]], np.uint16))
    tifffile.imwrite(tmp_path / "c.tif", VALUES)
    tifffile.imwrite(tmp_path / "d.tiff", np.array([[0, 255]], np.uint8))
    np.testing.assert_allclose(read_map(tmp_path / "a.png")[0], [[0, 0.2], [1, 0.4]], rtol=1e-6)
    np.testing.assert_allclose(read_map(tmp_path / "b.png")[0], [[0, 1]])
    np.testing.assert_array_equal(read_map(tmp_path / "c.tif")[0], VALUES)
    np.testing.assert_allclose(read_map(tmp_path / "d.tiff")[0], [[0, 1]])


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def headed(header: str) -> bytes:
    """A .npy file with any header, and enough behind it for 600 numbers."""
    text = header.encode("latin1").ljust(64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + b"\0" * 4800


def shaped(shape: str) -> bytes:
    return headed(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}")


def damaged(compression: int) -> bytes:
    """A .npz whose directory is whole and whose compressed numbers are not."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        archive.writestr("map.npy", npy(np.random.default_rng(0).random((60, 60))))
    content = bytearray(stream.getvalue())
    for at in range(60, 400):
        content[at] ^= 0x5A
    return bytes(content)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npy", shaped("(-20, -30)"), r"not an array in numpy's format: its shape is \(-20, -30\)"),
        ("a.npy", shaped("(True, 600)"), r"its shape is \(True, 600\)"),
        ("a.npy", shaped(f"({'-' * 3900}1,)"), "not an array in numpy's format"),
        ("a.npy", shaped("(" * 1900 + "1" + ")" * 1900), "not an array in numpy's format"),
        ("a.npz", damaged(zipfile.ZIP_DEFLATED), "not a .npz file, or damaged"),
        ("a.npz", damaged(zipfile.ZIP_LZMA), "not a .npz file, or damaged"),
        ("a.npz", damaged(zipfile.ZIP_BZIP2), "not a .npz file, or damaged"),
        ("a.npy", npy(np.array([{}], object)), "found object; see `carina convert-pickles"),
        ("a.npy", npy(VALUES)[:-5], "43 of 48 bytes"),
        ("a.npy", npy(VALUES).replace(b"(3, 4)", b"(3, 4"), "not an array in numpy's format"),
        ("a.npy", npy(np.zeros(5)), r"shape \(5,\)"),
        ("a.npy", npy(np.zeros((2, 3, 4))), r"shape \(2, 3, 4\)"),
        ("a.npy", npy(np.array([[np.inf]])), "found infinity"),
        ("a.npy", npy(np.array([[1e300]])), "found infinity"),
        ("a.npy", npy(np.array([["a"]])), "found <U1"),
        ("a.npy", b"", "not an array in numpy's format"),
        ("a.npz", b"PK nothing", "not a .npz file"),
        ("a.tif", b"II*\0nothing", "not a TIFF file, or damaged"),
        ("a.txt", b"1 2", "unknown type of file"),
    ],
)  # fmt: skip
def test_bad_map_files_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CarinaError, match=f"{name}: .*{message}"):
        read_map(tmp_path / name)


@given(
    st.text(st.characters(max_codepoint=255), max_size=60)
    | st.from_regex(r"\([-+~(), 0-9TrueL]{0,30}\)", fullmatch=True)
)
@settings(max_examples=150)
def test_any_header_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, header: str) -> None:
    path = tmp_path_factory.mktemp("header") / "a.npy"
    for content in (headed(header), shaped(header)):
        path.write_bytes(content)
        with contextlib.suppress(CarinaError):
            assert read_map(path).values.size <= 4800


@given(st.data(), st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA]))
@settings(max_examples=150)
def test_any_damage_to_an_archive_is_found_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, compression: int
) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, array in (("map", VALUES), ("dims", np.array([4, 3])), ("prob", np.array(0.5))):
            archive.writestr(f"{name}.npy", npy(array))
    content = bytearray(stream.getvalue())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("zip") / "a.npz"
    path.write_bytes(content[: data.draw(st.integers(len(content) // 2, len(content)))])
    told = str(path)
    try:
        read_map(path)
    except CarinaError as error:
        told = str(error)
    assert str(path) in told


def test_an_unreadable_map_is_named(tmp_path: Path) -> None:
    with pytest.raises(CarinaError, match=r"none\.npy: cannot be read: No such file"):
        read_map(tmp_path / "none.npy")


def test_a_stated_size_beyond_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": "<f4", "fortran_order": False, "shape": (99999, 99999)}
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("map.npy", stream.getvalue() + b"\0" * 1000)
    with pytest.raises(CarinaError, match="9,999,800,001 numbers, more than the limit of 100,000,000"):
        read_map(path)


def test_a_map_with_a_side_that_no_image_has_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((1, 20_001), np.float32))
    with pytest.raises(
        CarinaError, match=r"a[.]npy: 1 rows and 20,001 columns, more than the limit of 20,000"
    ):
        read_map(tmp_path / "a.npy")


def test_several_arrays_need_a_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", one=VALUES, two=VALUES)
    with pytest.raises(CarinaError, match=r"one named 'map', found \['one', 'two'\]"):
        read_map(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", map=VALUES, dims=np.array([1.5]))
    with pytest.raises(CarinaError, match="'dims' should be"):
        read_map(tmp_path / "b.npz")
    for wrong in (np.array(1.5), np.array([0.5, 0.5]), np.array(np.nan)):
        np.savez(tmp_path / "c.npz", map=VALUES, prob=wrong)
        with pytest.raises(CarinaError, match="'prob' should be"):
            read_map(tmp_path / "c.npz")


def test_frames_follow_the_geometry() -> None:
    path = Path("a.npy")
    assert frame_of_map(None, (30, 40), (30, 40), path) == Frame.stretched(30, 40, side=40)
    assert frame_of_map("whole", (30, 40), (14, 14), path) == Frame.stretched(30, 40, side=14)
    assert frame_of_map("letterbox:256:224", (30, 40), (14, 14), path) == Frame.letterboxed(
        30, 40, longest=256, side=224
    )
    assert frame_of_map("letterbox:256", (30, 40), (14, 14), path) == Frame.letterboxed(30, 40, longest=256)
    assert frame_of_map("crop:512:480", (30, 40), (15, 15), path) == Frame.cropped(
        30, 40, shortest=512, side=480
    )
    with pytest.raises(CarinaError, match=r"a.npy: .* 30 x 40 .* found 14 x 14; .*--geometry"):
        frame_of_map(None, (30, 40), (14, 14), path)
    for declared in ("letterbox:256:224", "letterbox:224", "crop:512:480"):
        with pytest.raises(CarinaError, match=r"a\.npy: .* geometry .* found 20 x 30"):
            frame_of_map(declared, (30, 40), (20, 30), path)
    for bad in ("squash", "crop:1", "letterbox:-3", "crop:a:b", "letterbox:99999999"):
        with pytest.raises(CarinaError, match="geometry"):
            frame_of_map(bad, (30, 40), (14, 14), path)


# ---- regions ----


def region(*box: float) -> Region:
    return Region.from_box(*box, height=30, width=40)


def written(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


SEGMENTATIONS = {
    "patient7_study1_view1_frontal": {
        "Edema": region(0, 0, 20, 15).to_coco(),
        "Airspace Opacity": region(20, 15, 10, 10).to_coco(),
        "Cardiomegaly": Region.empty(30, 40).to_coco(),
    },
    "patient9_study2_view1_frontal": {"Edema": region(5, 5, 4, 4).to_coco()},
}


def test_chexlocalize_segmentations_are_read_by_image_and_finding(tmp_path: Path) -> None:
    found = read_regions(written(tmp_path / "gt.json", SEGMENTATIONS))
    own = found["patient7_study1_view1_frontal"]
    assert list(own) == ["Edema", "Lung Opacity", "Cardiomegaly"]
    assert own["Edema"].region == region(0, 0, 20, 15)
    assert own["Cardiomegaly"].region.is_empty
    assert find_patients(found, None) == {
        "patient7_study1_view1_frontal": "patient7",
        "patient9_study2_view1_frontal": "patient9",
    }


def test_chexlocalize_annotations_are_drawn_with_their_outline(tmp_path: Path) -> None:
    contours = [[[2, 3], [10, 3], [10, 8], [2, 8]], [[20.4, 20.4], [21.4, 20.4], [21.4, 21.4]], [[1, 1]]]
    path = written(tmp_path / "a.json", {"p": {"img_size": [30, 40], "Edema": contours}})
    mask = read_regions(path)["p"]["Edema"].region.to_mask()
    expected = np.zeros((30, 40), bool)
    expected[3:9, 2:11] = True
    np.testing.assert_array_equal(mask[:15], expected[:15])
    assert 1 <= mask[15:].sum() <= 4


def test_findings_missing_from_annotations_are_absent(tmp_path: Path) -> None:
    square = [[[2, 3], [10, 3], [10, 8]]]
    content = {
        "p": {"img_size": [30, 40], "Edema": square},
        "q": {"img_size": [20, 25], "Airspace Opacity": square},
        "r": {"img_size": [10, 10]},
    }
    found = read_regions(written(tmp_path / "a.json", content))
    assert {
        name: {f: not truth.region.is_empty for f, truth in own.items()} for name, own in found.items()
    } == {
        "p": {"Edema": True, "Lung Opacity": False},
        "q": {"Lung Opacity": True, "Edema": False},
        "r": {"Edema": False, "Lung Opacity": False},
    }
    assert found["q"]["Edema"].region == Region.empty(20, 25)
    assert (
        "Lung Opacity"
        not in read_regions(written(tmp_path / "s.json", SEGMENTATIONS))["patient9_study2_view1_frontal"]
    )


def test_coco_boxes_polygons_and_runs_of_one_finding_are_united(tmp_path: Path) -> None:
    """Boxes of MS-CXR's kind, which tell the size with the annotation, polygons and runs; one finding's are united."""
    square = [[2, 2, 12, 2, 12, 12, 2, 12]]
    mask = Region.from_polygons([np.array(square).reshape(-1, 2)], height=30, width=40)
    content = {
        "images": [
            {"id": 1, "path": "files/p10/s1/abc.jpg"},
            {"id": 2, "file_name": "x/def.png", "height": 30, "width": 40},
        ],
        "categories": [{"id": 5, "name": "Edema"}, {"id": 6, "name": "Airspace Opacity"}],
        "annotations": [
            {"image_id": 1, "category_id": 5, "bbox": [0, 0, 10, 10], "height": 30, "width": 40},
            {"image_id": 1, "category_id": 5, "bbox": [20.5, 3, 5, 5], "height": 30, "width": 40},
            {"image_id": 2, "category_id": 5, "segmentation": square, "bbox": [2, 2, 10, 10]},
            {"image_id": 2, "category_id": 6, "segmentation": mask.to_coco()},
        ],
    }
    found = read_regions(written(tmp_path / "c.json", content))
    assert list(found) == ["abc", "def"]
    assert found["abc"]["Edema"].region == region(0, 0, 10, 10).union(region(20.5, 3, 5, 5))
    assert found["abc"]["Edema"].boxes == [(0, 0, 10, 10), (20.5, 3, 5, 5)]
    assert found["def"]["Edema"].region == found["def"]["Lung Opacity"].region == mask
    assert found["def"]["Edema"].boxes == []


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_masks_beside_boxes_have_boxes_too(tmp_path: Path, order: tuple[int, ...]) -> None:
    """Two masks that touch have a box each, in whatever order they were drawn."""
    drawn = [
        {"bbox": [2, 2, 6, 6]},
        {"segmentation": [[30, 10, 36, 10, 36, 16, 30, 16]], "bbox": [30, 10, 6, 6]},
        {"segmentation": region(30, 16, 2, 4).to_coco()},
    ]
    content = {
        "images": [{"id": 1, "path": "abc.png", "height": 30, "width": 40}],
        "categories": [{"id": 5, "name": "Edema"}],
        "annotations": [{"image_id": 1, "category_id": 5, **drawn[at]} for at in order],
    }
    truth = read_regions(written(tmp_path / "c.json", content))["abc"]["Edema"]
    # Of masks with their edges on the outermost pixels: columns 30 to 35 and rows 10 to 15, columns 30 to 31 and so on.
    assert truth.boxes == [((2, 2, 6, 6), (30, 10, 5, 5), (30, 16, 1, 3))[at] for at in order]
    peak = np.zeros((30, 40), np.float32)
    peak[12, 33] = 1
    maps = tmp_path / "maps"
    maps.mkdir()
    np.save(maps / "abc.npy", peak)
    scored, _ = score_map_files(maps, {"abc": {"Edema": truth}}, ["hit_box.first_argmax"], replicates=20)
    assert list(scored.rows[0].values.values()) == [1.0]


def test_annotations_of_one_finding_on_images_of_two_sizes_are_refused_by_name(tmp_path: Path) -> None:
    content = {
        "images": [{"id": 1, "path": "abc.png"}],
        "categories": [{"id": 5, "name": "Edema"}],
        "annotations": [
            {"image_id": 1, "category_id": 5, "bbox": [2, 2, 6, 6], "height": height, "width": 40}
            for height in (30, 31)
        ],
    }
    with pytest.raises(CarinaError, match=r"c\.json: abc, Edema: "):
        read_regions(written(tmp_path / "c.json", content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "expected a JSON object"),
        ("{", "not JSON"),
        ('{"a": 3}', "a: expected an object of findings"),
        ('{"a": {"Edema": 3}}', "a, Edema: expected COCO's"),
        ('{"a": {"img_size": [3], "Edema": []}}', "a, Edema"),
        ('{"a": {"img_size": [3]}, "b": {"img_size": [3, 3], "Edema": []}}', "a, img_size"),
        (
            '{"a": {"img_size": [1000000, 1000000], "Edema": []}}',
            "a, Edema: an image of 1000000 x 1000000 is too",
        ),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "not JSON: nested too deeply"),
        ('{"images": [{"id": 1}], "annotations": []}', "not COCO's layout: no 'path'"),
        (
            '{"images": [{"id": 1, "path": "a.png"}, {"id": 2, "path": "b/a.png"}], "annotations": []}',
            "images: two have the same name",
        ),
        ('{"images": [], "annotations": [{"image_id": 1}]}', "annotation 0: no 1"),
        (
            '{"images": [{"id": 1, "path": "a", "height": 9, "width": 9}], "categories": [{"id": 1, "name": "x"}], '
            '"annotations": [{"image_id": 1, "category_id": 1, "bbox": [99, 0, 1, 1]}]}',
            "annotation 0: box .* lies outside",
        ),
    ],
)
def test_bad_region_files_are_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "r.json").write_text(content)
    with pytest.raises(CarinaError, match=f"r.json: .*{message}"):
        read_regions(tmp_path / "r.json")


def test_patients_are_read_from_a_table(tmp_path: Path) -> None:
    table = tmp_path / "p.csv"
    table.write_text("id,patient\na,one\nb,one\n")
    assert find_patients({"a": 0, "b": 0}, table) == {"a": "one", "b": "one"}
    with pytest.raises(CarinaError, match="1 images have no patient, such as 'c'"):
        find_patients({"a": 0, "c": 0}, table)
    table.write_text("name\na\n")
    with pytest.raises(CarinaError, match="expected columns id and patient"):
        find_patients({"a": 0}, table)


# ---- together ----


def folder(tmp_path: Path, *names: str) -> Path:
    maps = tmp_path / "maps"
    maps.mkdir()
    for at, name in enumerate(names):
        np.save(maps / f"{name}.npy", np.roll(VALUES, at, axis=1))
    return maps


def test_map_files_are_matched_by_name_and_others_are_listed(tmp_path: Path) -> None:
    regions = read_regions(written(tmp_path / "gt.json", SEGMENTATIONS))
    first, second = SEGMENTATIONS
    maps = folder(
        tmp_path, f"{first}_Airspace Opacity_map", second, f"{first}_map", "patient3_study1_Edema_map"
    )
    (maps / "notes.txt").write_text("not a map")
    found = match_maps(maps, regions)
    assert [(match.image, match.finding) for match in found.matched] == [
        (first, "Lung Opacity"),
        (second, "Edema"),
    ]
    assert found.without_image == ["patient3_study1_Edema_map.npy"]
    assert found.without_finding == [f"{first}_map.npy"]  # which of two?
    assert found.missing == [f"{first}, Edema"]
    assert found.without_map == [(first, "Edema"), (first, "Cardiomegaly")]
    assert [(match.image, match.finding) for match in found.without_region] == [("patient3_study1", "Edema")]
    np.save(maps / f"{second}_Edema_map.npy", VALUES)
    with pytest.raises(CarinaError, match="of the same image and finding as"):
        match_maps(maps, regions)


def test_scores_of_files_are_those_of_arrays(tmp_path: Path) -> None:
    regions = read_regions(written(tmp_path / "gt.json", SEGMENTATIONS))
    first, second = SEGMENTATIONS
    maps = folder(tmp_path, f"{first}_Edema_map", second)
    scored, scorer = score_map_files(
        maps,
        regions,
        ["auroc", "iou.oracle_set_iou_minmax256", "auroc.pooled"],
        geometry="whole",
        replicates=50,
    )
    assert [(row.id, row.finding, row.patient) for row in scored.rows] == [
        (first, "Edema", "patient7"),
        (second, "Edema", "patient9"),
    ]
    values = Frame.stretched(30, 40, side=4).to_image(VALUES)
    truth = region(0, 0, 20, 15).to_mask()
    inside, outside = values[truth], values[~truth]
    wins = (inside[:, None] > outside).mean() + (inside[:, None] == outside).mean() / 2
    assert scored.rows[0].values["auroc.bilinear_full.full_image.per_image"] == pytest.approx(wins)
    assert len(scorer) == scored.scored == 2
    paths = write_scores(scored, tmp_path / "out", {"profile": None})
    assert [path.name for path in paths] == ["scores.csv", "scores.parquet", "summary.csv", "scores.json"]
    lines = paths[0].read_text().splitlines()
    assert lines[0].startswith("id,finding,patient,share,auroc.bilinear_full.full_image.per_image,iou.")
    assert len(lines) == 3
    told = json.loads(paths[3].read_text())
    assert set(told["variants"]) == {variant.name for variant in scorer.variants}
    assert list(told["chosen on the scored images"]) == [
        "iou.bilinear_full.full_image.oracle_set_iou_minmax256.positives.per_image"
    ]
    assert told["regions without a map"] == [f"{first}, Lung Opacity"]
    import polars as pl

    table = pl.read_parquet(paths[1])
    assert table.shape == (2, 6)
    # Text has every digit of the numbers.
    assert pl.read_csv(paths[0], schema=table.schema).equals(table)
    rows = compare_map_files(maps, regions, geometry="whole")
    assert rows[0].n["all"] == 2
    assert not math.isnan(rows[0].all)


def test_a_map_of_another_image_size_is_refused(tmp_path: Path) -> None:
    regions = read_regions(written(tmp_path / "gt.json", SEGMENTATIONS))
    maps = tmp_path / "maps"
    maps.mkdir()
    np.savez(maps / "patient9_study2_view1_frontal.npz", map=VALUES, dims=np.array([41, 30]))
    with pytest.raises(CarinaError, match=r"dims: .* 30 x 40 .* found 30 x 41"):
        score_map_files(maps, regions, ["auroc"], geometry="whole")


def test_no_match_is_an_error_that_names_a_map_and_an_image(tmp_path: Path) -> None:
    regions = read_regions(written(tmp_path / "gt.json", SEGMENTATIONS))
    with pytest.raises(
        CarinaError, match=r"none of 1 maps matches .* such as 'x.npy', images such as 'patient7_"
    ):
        score_map_files(folder(tmp_path, "x"), regions, ["auroc"])
    with pytest.raises(CarinaError, match="none of 1 maps matches"):
        compare_map_files(tmp_path / "maps", regions)
    with pytest.raises(CarinaError, match=r"expected maps .* found none"):
        match_maps(tmp_path, regions)
    with pytest.raises(CarinaError, match="expected a directory of maps"):
        match_maps(tmp_path / "none", regions)


def test_chexlocalize_counts_regions_without_a_map_and_maps_without_a_region(tmp_path: Path) -> None:
    """Truth of patients 1, 2 and 4, empty in the last; maps of 1 and 3, and one that names no finding."""
    truth = region(5, 5, 10, 10)
    absent = Region.empty(30, 40)
    drawn = {"patient1_a": truth, "patient2_a": truth, "patient4_a": absent}
    path = written(tmp_path / "gt.json", {name: {"Edema": one.to_coco()} for name, one in drawn.items()})
    maps = tmp_path / "maps"
    maps.mkdir()
    for name in ("patient1_a_Edema_map", "patient3_a_Edema_map", "patient5_a"):
        np.save(maps / f"{name}.npy", truth.to_mask().astype(np.float32))
    scored, _ = score_map_files(maps, read_regions(path), "chexlocalize")
    assert (scored.scored, scored.counted_without_region, scored.counted_without_map) == (1, 1, 2)
    assert scored.maps_without_image == ["patient3_a_Edema_map.npy", "patient5_a.npy"]
    assert scored.regions_without_map == ["patient2_a, Edema"]
    otsu = "torch_full.full_image.otsu_filled"
    by_image = {row.id: row.values[f"iou.{otsu}.any_mask.per_image"] for row in scored.rows}
    assert by_image == pytest.approx(
        {"patient1_a": 1, "patient3_a": 0, "patient2_a": 0, "patient4_a": math.nan}, nan_ok=True
    )
    cells = {cell.variant: cell for cell in scored.cells}
    assert (cells[f"iou.{otsu}.any_mask.per_image"].n, cells[f"iou.{otsu}.tp_only.per_image"].n) == (3, 1)
    pooled = [cells[f"{metric}.{otsu}.pooled"] for metric in ("precision", "recall", "specificity")]
    assert [(cell.value, cell.n) for cell in pooled] == [(1.0, 3), (0.5, 3), (1.0, 3)]
    told = json.loads(write_scores(scored, tmp_path / "out", {})[3].read_text())
    assert (told["counted without a region"], told["counted without a map"]) == (1, 2)

    plain, scorer = score_map_files(maps, read_regions(path), ["iou.otsu"], replicates=20)
    assert (plain.scored, plain.counted_without_region, plain.counted_without_map, len(scorer)) == (
        1,
        0,
        0,
        1,
    )


def test_a_map_without_region_uses_the_image_size_of_its_file(tmp_path: Path) -> None:
    """With the image's size by the geometry, without it in its own pixels; of an image with other findings in that."""
    regions = read_regions(written(tmp_path / "gt.json", SEGMENTATIONS))
    second = list(SEGMENTATIONS)[1]
    maps = tmp_path / "maps"
    maps.mkdir()
    np.save(maps / f"{second}_Edema_map.npy", VALUES)
    np.savez(maps / "nobody_Edema_map.npz", map=VALUES, dims=np.array([50, 60]))
    np.save(maps / "somebody_Edema_map.npy", VALUES)
    np.save(maps / f"{second}_Airspace Opacity_map.npy", VALUES)
    np.save(maps / "quiet_Edema_map.npy", VALUES * 0)
    matches = match_maps(maps, regions)
    assert len(matches.without_region) == 4
    assert matches.without_finding == [f"{second}_Airspace Opacity_map.npy"]
    scored, _ = score_map_files(
        maps, regions, ["iou.minmax_0.5.any_mask", "accuracy.minmax_0.5.any_mask"], geometry="whole"
    )
    by_image = {(row.id, row.finding): list(row.values.values()) for row in scored.rows}
    above = Frame.stretched(60, 50, side=4).to_image(VALUES) > 5.5 / 16
    assert by_image["nobody", "Edema"] == [0, pytest.approx(1 - above.mean())]
    assert by_image["somebody", "Edema"] == [0, pytest.approx(0.5)]
    above = Frame.stretched(30, 40, side=4).to_image(VALUES) > 5.5 / 16
    assert by_image[second, "Lung Opacity"] == [0, pytest.approx(1 - above.mean())]
    assert by_image["quiet", "Edema"] == [pytest.approx(math.nan, nan_ok=True)] * 2
    np.save(maps / "nobody_Edema_map.npy", VALUES)
    with pytest.raises(CarinaError, match="of the same image and finding as"):
        match_maps(maps, regions)

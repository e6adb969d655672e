import io
import threading
from pathlib import Path

import cv2
import msgspec
import numpy as np
import pytest
from PIL import Image

from carina.cases.draw import encode_png
from carina.cases.model import Case, CaseImage, CaseRegion, CaseView, Mark, Overlay, Panel, Step
from carina.cases.render import Views, plan, render
from carina.store.errors import BenchmarkError, CarinaError
from carina.store.files import sha256
from carina.studies.region import Region

KEY = "images/a.png"


class Folder:
    """A benchmark with one image, which counts how often it is read."""

    def __init__(self, root: Path, seed: int = 1) -> None:
        self.root = root
        self.read = 0
        path = root / KEY
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode_png(np.random.default_rng(seed).integers(0, 256, (60, 80), dtype=np.uint8)))

    def image_path(self, image: CaseImage) -> Path:
        return self.root / image.key

    def check_image(self, image: CaseImage) -> None:
        """Take every file as it is."""

    def pixels(self, image: CaseImage) -> np.ndarray:
        self.read += 1
        return np.asarray(Image.open(self.image_path(image)))


def case_of(*views: CaseView, **image: object) -> Case:
    mask = np.zeros((60, 80), bool)
    mask[20:40, 30:60] = True
    shown = CaseView(id="mask", panels=(Panel(image=KEY, overlays=(Overlay(region="r1"),)),))
    marks = (Mark(x=20, y=20, colour="red", text="1"),)
    points = CaseView(id="points", panels=(Panel(image=KEY, marks=marks),))
    return Case(
        id="c-1", protocol="percept", study="s", patient=None, source="test",
        images=(CaseImage(key=KEY, width=80, height=60, **image),),
        regions=(CaseRegion(name="r1", image=KEY, region=Region.from_mask(mask)),),
        views=(CaseView(id="raw", panels=(Panel(image=KEY),)), shown, points, *views),
        steps=(Step(id="1", stage=1, task="detection", format="open", question="?"),),
    )  # fmt: skip


def decoded(content: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


def kept(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if path.is_file())


@pytest.mark.parametrize("view", ["raw", "mask", "points"])
def test_png_and_array_are_the_rendered_view(tmp_path: Path, view: str) -> None:
    folder, case = Folder(tmp_path), case_of()
    views = Views(folder)
    expected = render(case, case.view(view), folder.pixels)
    np.testing.assert_array_equal(views.array(case, view), expected)
    np.testing.assert_array_equal(decoded(views.png(case, view)), expected)
    assert views.png(case, view) == encode_png(expected)


def test_a_raw_view_is_stored_grey(tmp_path: Path) -> None:
    views = Views(Folder(tmp_path))
    assert Image.open(io.BytesIO(views.png(case_of(), "raw"))).mode == "L"
    assert Image.open(io.BytesIO(views.png(case_of(), "mask"))).mode == "RGB"


def test_an_image_is_decoded_once_for_all_views(tmp_path: Path) -> None:
    folder, case = Folder(tmp_path), case_of()
    views = Views(folder)
    for view in ("raw", "mask", "points", "raw"):
        views.png(case, view)
        views.array(case, view)
    assert folder.read == 1


def test_array_may_be_changed_by_the_caller(tmp_path: Path) -> None:
    views, case = Views(Folder(tmp_path)), case_of()
    before = views.array(case, "raw").copy()
    views.array(case, "raw")[:] = 0
    np.testing.assert_array_equal(views.array(case, "raw"), before)


def test_an_unknown_view_is_named(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"case 'c-1' has no view 'v9'; it has raw, mask, points"):
        Views(Folder(tmp_path)).png(case_of(), "v9")


# ---- finished pictures ----


@pytest.mark.parametrize("kind", ["png", "jpg"])
def test_a_finished_png_is_its_file(tmp_path: Path, kind: str) -> None:
    folder = Folder(tmp_path)
    key = f"images/finished.{kind}"
    rgb = np.random.default_rng(2).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    Image.fromarray(rgb).save(tmp_path / key)
    case = case_of()
    finished = CaseImage(key=key, width=80, height=60, finished=True)
    views = (
        CaseView(id="raw", panels=(Panel(image=key),)),
        CaseView(id="small", panels=(Panel(image=key),), side=40),
    )
    case = msgspec.structs.replace(case, images=(*case.images, finished), views=views)
    content = Views(folder, tmp_path / "cache").png(case, "raw")
    file = (tmp_path / key).read_bytes()
    assert (content == file) == (kind == "png")
    assert (len(kept(tmp_path / "cache")) == 0) == (kind == "png")
    np.testing.assert_array_equal(decoded(content), np.asarray(Image.open(tmp_path / key)))
    assert decoded(Views(folder).png(case, "small")).shape == (30, 40, 3)


def test_unfinished_image_is_never_returned_as_its_file(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    inverted = folder.pixels
    folder.pixels = lambda image: 255 - inverted(image)
    content = Views(folder).png(case_of(monochrome1=True), "raw")
    np.testing.assert_array_equal(decoded(content)[..., 0], 255 - inverted(case_of().images[0]))


# ---- the cache ----


def test_cached_image_is_not_drawn_again(tmp_path: Path) -> None:
    case, cache = case_of(), tmp_path / "cache"
    first = Views(Folder(tmp_path), cache).png(case, "mask")
    (path,) = kept(cache)
    assert path.read_bytes() == first
    assert path.parent.name == path.name[:2]
    assert len(path.stem) == 64
    folder = Folder(tmp_path)
    assert Views(folder, cache).png(case, "mask") == first
    assert folder.read == 0


@pytest.mark.parametrize(
    "damage", [lambda b: b[: len(b) // 2], lambda _: b"", lambda b: b[:-30] + b"\1" + b[-29:]]
)
def test_damaged_cached_image_is_drawn_again(tmp_path: Path, damage) -> None:
    case, cache = case_of(), tmp_path / "cache"
    first = Views(Folder(tmp_path), cache).png(case, "points")
    (path,) = kept(cache)
    path.write_bytes(damage(first))
    assert path.read_bytes() != first
    assert Views(Folder(tmp_path), cache).png(case, "points") == first
    assert path.read_bytes() == first


def other(**fields: object) -> CaseView:
    """The view "other": the mask with a mark, but for what is said."""
    overlay = Overlay(region=fields.pop("region", "r1"), **fields.pop("overlay", {}))
    mark = Mark(**{"x": 20, "y": 20, "colour": "red", "text": "1", **fields.pop("mark", {})})
    shown = Panel(image=KEY, overlays=(overlay,), marks=(mark,), **fields.pop("panel", {}))
    return CaseView(id=fields.pop("id", "other"), panels=(shown,) * fields.pop("n", 1), **fields)


CHANGES = [
    {"overlay": {"colour": "green"}}, {"overlay": {"fill": 0.4}}, {"overlay": {"outline": 1}}, {"mark": {"x": 21}},
    {"mark": {"y": 21}}, {"mark": {"colour": "blue"}}, {"mark": {"text": "2"}}, {"panel": {"crop": (0, 0, 70, 60)}},
    {"panel": {"caption": "b"}}, {"side": 90}, {"n": 2},
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_change_of_the_image_changes_its_cache_key(tmp_path: Path, change: dict) -> None:
    cache = tmp_path / "cache"
    first = Views(Folder(tmp_path), cache).png(case_of(other()), "other")
    second = Views(Folder(tmp_path), cache).png(case_of(other(**change)), "other")
    assert len(kept(cache)) == 2
    assert first != second


@pytest.mark.parametrize("image", [{"rescale": (1.0, 2.0)}, {"window": (1.0, 2.0)}], ids=str)
def test_rescaling_and_window_change_the_cache_key(tmp_path: Path, image: dict) -> None:
    cache = tmp_path / "cache"
    for given in ({}, {"rescale": (3.0, 2.0)}, image):
        Views(Folder(tmp_path), cache).png(case_of(**given), "mask")
    assert len(kept(cache)) == 3


def test_region_file_and_version_change_the_cache_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, case = tmp_path / "cache", case_of()
    Views(Folder(tmp_path), cache).png(case, "mask")
    larger = CaseRegion(name="r1", image=KEY, region=Region.full(60, 80))
    Views(Folder(tmp_path), cache).png(msgspec.structs.replace(case, regions=(larger,)), "mask")
    assert len(kept(cache)) == 2
    Views(Folder(tmp_path, seed=2), cache).png(case, "mask")
    assert len(kept(cache)) == 3
    Views(Folder(tmp_path, seed=2), cache).png(case_of(monochrome1=True), "mask")
    assert len(kept(cache)) == 4
    monkeypatch.setattr(plan, "RENDER_VERSION", plan.RENDER_VERSION + 1)
    Views(Folder(tmp_path, seed=2), cache).png(case, "mask")
    assert len(kept(cache)) == 5


def test_names_do_not_change_the_cache_key(tmp_path: Path) -> None:
    cache, case = tmp_path / "cache", case_of()
    views = Views(Folder(tmp_path), cache)
    first = views.png(case, "mask")
    renamed = CaseRegion(name="zz", image=KEY, region=case.regions[0].region)
    shown = CaseView(id="again", panels=(Panel(image=KEY, overlays=(Overlay(region="zz"),)),))
    elsewhere = msgspec.structs.replace(case, id="c-2", regions=(renamed,), views=(shown,))
    assert views.png(elsewhere, "again") == first
    assert len(kept(cache)) == 1


def test_cached_image_needs_no_file_where_its_checksum_is_stated(tmp_path: Path) -> None:
    folder, cache = Folder(tmp_path), tmp_path / "cache"
    case = case_of(sha256=sha256(tmp_path / KEY))
    first = Views(folder, cache).png(case, "mask")
    (tmp_path / KEY).unlink()
    assert Views(folder, cache).png(case, "mask") == first
    with pytest.raises(BenchmarkError, match=r"a\.png: cannot be read: No such file"):
        Views(folder, cache).png(case_of(), "mask")


def test_threads_may_render_the_same_views(tmp_path: Path) -> None:
    case, cache = case_of(), tmp_path / "cache"
    folder = Folder(tmp_path)
    expected = {view.id: Views(folder).png(case, view.id) for view in case.views}
    shared, failures = Views(folder, cache), []

    def ask() -> None:
        for _ in range(5):
            for view, content in expected.items():
                if shared.png(case, view) != content or Views(folder, cache).png(case, view) != content:
                    failures.append(view)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(kept(cache)) == 3


def test_unwritable_cache_is_reported(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(CarinaError, match=r"cache.*\.png"):
        Views(Folder(tmp_path), tmp_path / "cache").png(case_of(), "mask")


def test_opencv_reads_what_is_written(tmp_path: Path) -> None:
    content = Views(Folder(tmp_path)).png(case_of(), "mask")
    read = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR_RGB)
    np.testing.assert_array_equal(read, Views(Folder(tmp_path)).array(case_of(), "mask"))

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carina.cases.draw import GAP, MARKS, PANEL, Size, outline, scale
from carina.cases.model import Case, CaseImage, CaseRegion, CaseView, Mark, Overlay, Panel, Step
from carina.cases.render import render
from carina.store.errors import BenchmarkError
from carina.studies.region import Region

CYAN = np.array([0, 255, 255])
IMAGE = CaseImage(key="images/a.png", width=80, height=60)
GREY = np.random.default_rng(1).integers(0, 256, (60, 80), dtype=np.uint8)


def lesion(height: int = 60, width: int = 80) -> np.ndarray:
    rows, columns = np.mgrid[:height, :width]
    return ((columns - 0.4 * width) / (0.2 * width)) ** 2 + ((rows - 0.5 * height) / (0.3 * height)) ** 2 < 1


def case_with(*panels: Panel, side: int | None = None, image: CaseImage = IMAGE) -> Case:
    region = Region.from_mask(lesion(image.height, image.width))
    return Case(
        id="c-1", protocol="percept", study="s", patient=None, source="test", images=(image,),
        regions=(CaseRegion(name="r1", image=image.key, region=region),),
        views=(CaseView(id="v1", panels=panels, side=side),),
        steps=(Step(id="1", stage=1, task="detection", format="open", question="?"),),
    )  # fmt: skip


def picture(case: Case, pixels: np.ndarray = GREY) -> np.ndarray:
    return render(case, case.view("v1"), lambda _: pixels)


def panel(**fields: object) -> Panel:
    return Panel(image=IMAGE.key, **fields)


def centre_of(drawn: np.ndarray, colour: str) -> tuple[float, float]:
    """Mean x, y of the pixels of this colour, the centre of the first pixel being 0.5, 0.5."""
    rows, columns = np.nonzero((drawn == MARKS[colour]).all(axis=2))
    return columns.mean() + 0.5, rows.mean() + 0.5


# ---- overlays ----


def test_a_plain_view_is_the_image() -> None:
    drawn = picture(case_with(panel()))
    assert drawn.shape == (60, 80, 3)
    assert drawn.dtype == np.uint8
    assert (drawn == GREY[:, :, None]).all()


def test_a_tint_mixes_half_and_half_and_leaves_the_rest() -> None:
    mask = lesion()
    drawn = picture(case_with(panel(overlays=(Overlay(region="r1"),))))
    assert (drawn[~mask] == GREY[~mask][:, None]).all()
    np.testing.assert_array_equal(drawn[mask], np.rint(GREY[mask][:, None] * 0.5 + CYAN * 0.5))


def test_a_tint_worked_out_by_hand() -> None:
    overlays = (Overlay(region="r1"),)
    at = (30, 32)
    for grey, expected in (
        (0, [0, 128, 128]),
        (100, [50, 178, 178]),
        (101, [50, 178, 178]),
        (255, [128, 255, 255]),
    ):
        # Halves go to even: 127.5 -> 128, 177.5 -> 178, 50.5 -> 50.
        drawn = picture(case_with(panel(overlays=overlays)), np.full_like(GREY, grey))
        assert drawn[at].tolist() == expected
        assert drawn[0, 0].tolist() == [grey] * 3


@pytest.mark.parametrize(("fill", "width"), [(0.0, 1), (0.0, 3), (0.25, 2), (1.0, 0)])
def test_outlines_lie_within_the_region(fill: float, width: int) -> None:
    mask = lesion()
    edge = outline(mask, width=width) if width else np.zeros_like(mask)
    overlays = (Overlay(region="r1", colour="orange", fill=fill, outline=width),)
    drawn = picture(case_with(panel(overlays=overlays)))
    orange = np.array(MARKS["orange"])
    assert (drawn[~mask] == GREY[~mask][:, None]).all()
    assert (drawn[edge] == orange).all()
    inside = mask & ~edge
    np.testing.assert_array_equal(drawn[inside], np.rint(GREY[inside][:, None] * (1 - fill) + orange * fill))


def test_colour_images_are_drawn_on_as_well() -> None:
    rgb = np.random.default_rng(2).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    before, mask = rgb.copy(), lesion()
    drawn = picture(case_with(panel(overlays=(Overlay(region="r1"),))), rgb)
    np.testing.assert_array_equal(drawn[mask], np.rint(rgb[mask] * 0.5 + CYAN * 0.5))
    assert (drawn[~mask] == rgb[~mask]).all()
    np.testing.assert_array_equal(rgb, before)


# ---- marks ----


def test_a_mark_is_a_disc_of_15_in_a_frame_of_1024() -> None:
    image = CaseImage(key="images/a.png", width=1024, height=1024)
    marks = (Mark(x=300.5, y=700.5, colour="blue"),)
    grey = np.full((1024, 1024), 90, np.uint8)
    drawn = picture(case_with(panel(marks=marks), image=image), grey)
    rows, columns = np.mgrid[:1024, :1024]
    distance = np.hypot(columns - 300, rows - 700)
    assert (drawn[distance <= 14] == MARKS["blue"]).all()
    assert (drawn[(distance > 16.8) & (distance < 17.5)] > 200).all()  # the white ring: 16 to 18
    assert (drawn[distance > 20] == 90).all()
    assert not (drawn[distance > 16] == MARKS["blue"]).all(axis=1).any()
    # The disc is 31 pixels wide: its radius on both sides and the pixel of its centre.
    assert (drawn[700] == MARKS["blue"]).all(axis=1).sum() == pytest.approx(31, abs=2)


@pytest.mark.parametrize(("side", "radius"), [(512, 8), (1024, 15), (2048, 30)])
def test_mark_scales_with_the_image(side: int, radius: int) -> None:
    image = CaseImage(key="images/a.png", width=640, height=480)
    grey = np.full((480, 640), 90, np.uint8)
    marks = (Mark(x=400.25, y=100.75, colour="green"),)
    drawn = picture(case_with(panel(marks=marks), image=image, side=side), grey)
    assert drawn.shape == (side * 3 // 4, side, 3)
    x, y = centre_of(drawn, "green")
    assert x == pytest.approx(400.25 * side / 640, abs=0.6)
    assert y == pytest.approx(100.75 * side / 640, abs=0.6)
    area = (drawn == MARKS["green"]).all(axis=2).sum()
    assert np.sqrt(area / np.pi) == pytest.approx(radius, abs=0.7)


@settings(max_examples=40)
@given(
    x=st.floats(420, 580), y=st.floats(320, 480), left=st.integers(0, 380), top=st.integers(0, 280),
    side=st.sampled_from([None, 300, 800]),
)  # fmt: skip
def test_a_mark_stays_on_its_place_when_the_image_is_cut_and_scaled(
    x: float, y: float, left: int, top: int, side: int | None
) -> None:
    image = CaseImage(key="images/a.png", width=1000, height=800)
    crop = (left, top, 620 - left, 520 - top)
    shown = panel(marks=(Mark(x=x, y=y, colour="red"),), crop=crop)
    drawn = picture(case_with(shown, image=image, side=side), np.zeros((800, 1000), np.uint8))
    scale_x, scale_y = drawn.shape[1] / crop[2], drawn.shape[0] / crop[3]
    there_x, there_y = centre_of(drawn, "red")
    assert there_x == pytest.approx((x - left) * scale_x, abs=0.75)
    assert there_y == pytest.approx((y - top) * scale_y, abs=0.75)


def test_the_number_is_written_in_the_disc_and_nowhere_else() -> None:
    image = CaseImage(key="images/a.png", width=1024, height=1024)
    grey = np.zeros((1024, 1024), np.uint8)
    plain, numbered = (
        picture(case_with(panel(marks=(Mark(x=500, y=500, colour="yellow", text=text),)), image=image), grey)
        for text in ("", "7")
    )
    rows, columns = np.nonzero((plain != numbered).any(axis=2))
    assert rows.size > 40
    assert np.hypot(rows + 0.5 - 500, columns + 0.5 - 500).max() < 15
    assert abs(rows.mean() + 0.5 - 500) < 3
    assert abs(columns.mean() + 0.5 - 500) < 3


def test_marks_lie_above_overlays() -> None:
    shown = panel(overlays=(Overlay(region="r1", fill=1.0),), marks=(Mark(x=32.5, y=30.5, colour="pink"),))
    drawn = picture(case_with(shown))
    assert drawn[30, 32].tolist() == list(MARKS["pink"])
    assert drawn[15, 32].tolist() == CYAN.tolist()


# ---- crop and side ----


@settings(max_examples=40)
@given(st.integers(0, 79), st.integers(0, 59), st.data())
def test_crop_is_a_part_of_the_whole_image(x: int, y: int, data: st.DataObject) -> None:
    w, h = data.draw(st.integers(1, 80 - x)), data.draw(st.integers(1, 60 - y))
    overlays = (Overlay(region="r1"),)
    whole = picture(case_with(panel(overlays=overlays)))
    part = picture(case_with(panel(overlays=overlays, crop=(x, y, w, h))))
    np.testing.assert_array_equal(part, whole[y : y + h, x : x + w])


def test_no_line_is_drawn_where_the_image_was_cut() -> None:
    overlays = (Overlay(region="r1", fill=0, outline=2),)
    whole = picture(case_with(panel(overlays=overlays)))
    # Through the middle of the lesion, where its border runs straight across the cut.
    part = picture(case_with(panel(overlays=overlays, crop=(0, 30, 80, 30))))
    assert part[0, 32].tolist() == [GREY[30, 32]] * 3
    np.testing.assert_array_equal(part[2:], whole[32:])


def test_side_is_the_longest_side_and_scales_the_image_alone() -> None:
    for side, shape in ((40, (30, 40)), (80, (60, 80)), (160, (120, 160))):
        drawn = picture(case_with(panel(), side=side))
        assert drawn.shape[:2] == shape
        np.testing.assert_array_equal(drawn[..., 0], scale(GREY, Size(shape[1], shape[0])))
    tall = picture(case_with(panel(crop=(0, 0, 20, 60)), side=30))
    assert tall.shape[:2] == (30, 10)


def test_a_scaled_tint_covers_the_scaled_region() -> None:
    drawn = picture(case_with(panel(overlays=(Overlay(region="r1"),)), side=160), np.zeros_like(GREY))
    mask = drawn[..., 1] == 128
    assert (drawn[~mask] == 0).all()
    # Every pixel of the region has become four, up to its border.
    four = np.kron(lesion(), np.ones((2, 2), bool))
    assert (mask & four).sum() / (mask | four).sum() > 0.98


# ---- panels ----


def test_panels_stand_side_by_side_in_their_order() -> None:
    drawn = picture(case_with(panel(), panel(overlays=(Overlay(region="r1"),)), panel(crop=(10, 5, 30, 20))))
    alone = picture(case_with(panel(overlays=(Overlay(region="r1"),))))
    assert drawn.shape == (60 + 2 * GAP, 80 + 80 + 30 + 4 * GAP, 3)
    assert (drawn[GAP : GAP + 60, GAP : GAP + 80] == GREY[:, :, None]).all()
    assert (drawn[GAP : GAP + 60, 2 * GAP + 80 : 2 * GAP + 160] == alone).all()
    assert (drawn[GAP : GAP + 20, 3 * GAP + 160 : -GAP] == GREY[5:25, 10:40, None]).all()
    assert (drawn[:GAP] == PANEL).all()


def test_a_caption_is_below_its_panel_and_not_on_it() -> None:
    drawn = picture(case_with(panel(caption="Prior"), panel(caption="Current"), side=400))
    assert (drawn[GAP : GAP + 300, GAP : GAP + 400, 0] == scale(GREY, Size(400, 300))).all()
    below = (drawn[GAP + 300 :] != PANEL).any(axis=2)
    assert below[:, : GAP + 400].any()
    assert below[:, 2 * GAP + 400 :].any()
    other = picture(case_with(panel(caption="Current"), panel(caption="Prior"), side=400))
    assert drawn.shape == other.shape
    assert (drawn != other).any()


# ---- as they stand, and the same every time ----


def test_finished_image_is_returned_unchanged() -> None:
    rgb = np.random.default_rng(3).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    finished = msgspec.structs.replace(IMAGE, finished=True)
    assert (
        render(case_with(panel(), image=finished), CaseView(id="v", panels=(panel(),)), lambda _: rgb) is rgb
    )


def test_drawing_is_the_same_every_time_and_leaves_the_image_alone() -> None:
    before = GREY.copy()
    shown = panel(
        overlays=(Overlay(region="r1", outline=2),), marks=(Mark(x=12.3, y=40, colour="brown", text="3"),)
    )
    case = case_with(shown, panel(caption="b"), side=200)
    assert picture(case).tobytes() == picture(case).tobytes()
    np.testing.assert_array_equal(GREY, before)


# ---- what cannot be drawn ----

ON_ANOTHER = CaseRegion(name="r2", image="images/b.png", region=Region.empty(60, 80))
OF_ANOTHER_SIZE = CaseRegion(name="r3", image=IMAGE.key, region=Region.empty(50, 80))


@pytest.mark.parametrize(
    ("panels", "said"),
    [
        ((), "has no panel"),
        ((Panel(image="images/z.png"),), r"shows image 'images/z\.png', which the case does not have"),
        ((panel(overlays=(Overlay(region="r9"),)),), "draws region 'r9', which the case does not have"),
        ((panel(overlays=(Overlay(region="r2"),)),), r"region 'r2' does not lie on image 'images/a\.png'"),
        ((panel(overlays=(Overlay(region="r3"),)),), "'r3' is of an image of 80 x 50, but .* is 80 x 60"),
        (
            (panel(overlays=(Overlay(region="r1", colour="teal"),)),),
            "region 'r1' has colour 'teal', .* red, orange",
        ),
        ((panel(overlays=(Overlay(region="r1", fill=1.5),)),), r"fill 1\.5, expected 0 to 1"),
        ((panel(overlays=(Overlay(region="r1", outline=-1),)),), "outline -1"),
        ((panel(marks=(Mark(x=1, y=1, colour="Red", text="4"),)),), "mark '4' has colour 'Red'"),
        ((panel(marks=(Mark(x=float("nan"), y=1, colour="red"),)),), "expected finite numbers"),
        ((panel(crop=(70, 0, 20, 10)),), r"crop \(70, 0, 20, 10\) leaves the image of 80 x 60"),
    ],
)
def test_faulty_view_is_reported(panels: tuple[Panel, ...], said: str) -> None:
    case = case_with(*panels)
    case = msgspec.structs.replace(case, regions=(*case.regions, ON_ANOTHER, OF_ANOTHER_SIZE))
    with pytest.raises(BenchmarkError, match=rf"^case 'c-1': view 'v1': .*{said}"):
        picture(case)


def test_pixels_of_another_size_or_type_are_refused() -> None:
    with pytest.raises(BenchmarkError, match=r"side is 0"):
        picture(case_with(panel(), side=0))
    with pytest.raises(
        BenchmarkError, match=r"images/a\.png': is 60 x 80, but the case was made for 80 x 60"
    ):
        picture(case_with(panel()), GREY.T)
    with pytest.raises(BenchmarkError, match="uint16"):
        picture(case_with(panel()), GREY.astype(np.uint16))

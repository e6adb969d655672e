import numpy as np

from carina.cases.draw import HUES, INK, WHITE, Point, put_points

BLUE = HUES["blue"]


def test_point_is_a_disc_with_two_rings() -> None:
    picture = np.full((61, 61, 3), 100, np.uint8)
    put_points(picture, [Point(x=30.5, y=30.5, colour=BLUE)], radius=9)
    assert picture[30, 30].tolist() == list(BLUE)
    assert (picture[30, 23:38] == BLUE).all()
    assert picture[30, 30 + 11].min() > 180  # the white ring
    # OpenCV's soft edges are a tenth of a pixel off; a wrong convention would be half a pixel off.
    blue_rows, blue_columns = np.nonzero((picture == BLUE).all(axis=2))
    assert abs(blue_rows.mean() - 30) < 0.1
    assert abs(blue_columns.mean() - 30) < 0.1
    rows, columns = np.mgrid[:61, :61]
    far = np.hypot(rows - 30, columns - 30) > 14
    assert (picture[far] == 100).all()


def test_number_is_written_in_the_disc() -> None:
    plain, numbered = np.zeros((2, 60, 60, 3), np.uint8)
    put_points(plain, [Point(x=30, y=30, colour=BLUE)], radius=14)
    put_points(numbered, [Point(x=30, y=30, colour=BLUE, text="12")], radius=14)
    rows, columns = np.nonzero((plain != numbered).any(axis=2))
    assert np.hypot(rows - 29.5, columns - 29.5).max() < 14
    assert (numbered == WHITE).all(axis=2).sum() > (plain == WHITE).all(axis=2).sum()


def test_points_are_cut_at_the_edge_and_later_ones_are_on_top() -> None:
    picture = np.zeros((40, 40, 3), np.uint8)
    corner = Point(x=0.5, y=0.5, colour=BLUE, text="1")
    put_points(picture, [corner, Point(x=3, y=3, colour=HUES["yellow"])], radius=8)
    assert picture[3, 3].tolist() == list(HUES["yellow"])
    assert not picture[30:, 30:].any()


def test_dark_ring_is_inside_the_white_ring() -> None:
    picture = np.full((101, 101, 3), 100, np.uint8)
    put_points(picture, [Point(x=50.5, y=50.5, colour=BLUE)], radius=30, ring=6)
    row = picture[50, 50:].tolist()
    # OpenCV paints every pixel whose centre lies within the radius; the soft edge is the pixel beyond.
    assert row[29] == list(BLUE)
    assert row[32] == list(INK)
    assert all(pixel == list(WHITE) for pixel in row[35:39])
    assert all(pixel == [100] * 3 for pixel in row[41:])

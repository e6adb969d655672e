import pytest

from carina.pages import words
from carina.studies import Location, Measure, Quality


def test_numbers_have_three_significant_digits() -> None:
    assert [words.format_number(value) for value in (0.5712, 4.1, 11.23, 123.4, 3.0)] == [
        "0.571",
        "4.1",
        "11.2",
        "123",
        "3",
    ]
    assert words.format_measure(Measure(name="cardiothoracic ratio", value=0.5712, unit="1")) == (
        "cardiothoracic ratio 0.571"
    )


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (None, ""),
        (Location(side="left"), "left"),
        (Location(side="left", zones=("left lower zone",)), "left lower zone"),
        (
            Location(side="bilateral", zones=("right mid zone", "left mid zone")),
            "bilateral, right mid zone, left mid zone",
        ),
        (Location(side="right", site="6th rib"), "right, 6th rib"),
    ],
)
def test_location_names_its_side_once(place: Location | None, text: str) -> None:
    assert words.describe_location(place) == text


def test_unknown_quality_is_an_empty_text() -> None:
    assert words.describe_rotation(Quality()) == ""
    assert words.describe_cut_off(Quality()) == ""
    assert words.describe_inspiration(Quality()) == ""
    assert words.describe_cut_off(Quality(cut_off=())) == "nothing"
    assert words.describe_rotation(Quality(rotation="left", rotation_degrees=3.21)) == "to the left (3.21°)"


@pytest.mark.parametrize("study_id", ["../x", "a/b", "index", "contact-sheet", "", ".hidden", "ü", "x" * 200])
def test_unsafe_ids_become_safe_file_names(study_id: str) -> None:
    name = words.page_name(study_id)
    assert name not in ("index", "contact-sheet")
    assert all(letter.isascii() and (letter.isalnum() or letter in "_-") for letter in name)
    assert 0 < len(name) < 100
    assert name != words.page_name(study_id + "x")


def test_safe_ids_are_unchanged() -> None:
    assert words.page_name("p000003-s1") == "p000003-s1"
    assert words.page_name("00000032_037.v2") == "00000032_037.v2"

import pytest

from carina.pages import words
from carina.studies import Assessed, Location, Measure, Quality


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


@pytest.mark.parametrize(
    ("assessed", "sentence"),
    [
        (Assessed(), "It is not known which findings and devices were looked for."),
        (Assessed(findings="every", devices="every"), "Every finding and every device was looked for."),
        (
            Assessed(findings="every", devices="every", text=True),
            "Every finding and every device was looked for; what the report states is recorded.",
        ),
        (
            Assessed(text=True),
            "It is not known which findings and devices were looked for; what the report states is recorded.",
        ),
        (
            Assessed(findings="listed", listed=("mass", "nodule", "edema")),
            "Only findings of a closed list were looked for (mass, nodule and edema); it is not known which devices "
            "were looked for.",
        ),
        (
            Assessed(findings="listed", devices="listed", listed=("mass", "pacemaker")),
            "Only findings and devices of a closed list were looked for (mass and pacemaker).",
        ),
        (
            Assessed(findings="unknown", devices="listed"),
            "It is not known which findings were looked for; only devices of a closed list were looked for (an empty "
            "list).",
        ),
    ],
    ids=["unknown", "every", "every and text", "text", "listed", "both listed", "empty list"],
)
def test_what_was_looked_for_is_one_sentence(assessed: Assessed, sentence: str) -> None:
    assert words.describe_assessed(assessed) == sentence


def test_a_long_list_is_shortened() -> None:
    said = words.describe_assessed(Assessed(findings="listed", listed=tuple(f"n{n}" for n in range(174))))
    assert "n28, n29 and 144 others)" in said


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

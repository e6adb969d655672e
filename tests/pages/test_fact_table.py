"""Places of values and ranges on bars, and rows for facts without a range."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pages import percept_cases as like

from carina.cases import Fact
from carina.pages.case_facts import contour_edits
from carina.pages.fact_table import FactTable, Margin, subject_title, tabulate_facts


def margin(value: float, low: float | None = None, high: float | None = None) -> Margin:
    (made,) = tabulate_facts([Fact(name="x", value=value, low=low, high=high)], {}).margins
    return made


def test_a_share_without_an_upper_end_ends_at_one() -> None:
    # From 0.25 - 0.18 * 0.75 = 0.115 to 1: the band starts at 0.135 / 0.885, the value 0.7 lies at 0.585 / 0.885.
    made = margin(0.7, low=0.25)
    assert made.band == (15.25, 84.75)
    assert made.tick == 66.1
    assert not made.is_open
    assert made.range == "at least 0.25"


def test_a_share_without_a_lower_end_starts_at_zero() -> None:
    # From 0 to 0.15 * 1.18.
    made = margin(0.059, high=0.15)
    assert made.band == (0.0, 84.75)
    assert made.tick == 33.33
    assert made.range == "at most 0.15"


def test_zero_and_one_are_no_ends_of_a_share() -> None:
    assert margin(0.7, low=0.25, high=1.0) == margin(0.7, low=0.25)
    # A share of zero has the largest slack.
    assert margin(0.0, low=0.0, high=0.15).slack == 1.0
    assert not margin(1.1, low=0.25, high=1.0).holds
    assert margin(0.5, low=0.0, high=2.0).range == "0 to 2"


def test_length_without_an_upper_end_is_open() -> None:
    # From 40 to the larger of 80 and 40 + 1.25 * 60 = 115: the bar starts at 40 - 0.18 * 75 = 26.5 and is 88.5 wide.
    made = margin(100, low=40)
    assert made.is_open
    assert made.band == (15.25, 84.75)
    assert made.tick == 83.05


@pytest.mark.parametrize(
    ("value", "holds", "tick"),
    [(0.55, True, 13.24), (0.85, True, 86.76), (0.2, False, 0.0), (0.9, False, 99.02)],
)
def test_ends_belong_to_the_range_and_values_beyond_do_not_hold(
    value: float, holds: bool, tick: float
) -> None:
    made = margin(value, 0.55, 0.85)
    assert made.holds is holds
    assert made.tick == tick


def test_tightest_margin_is_nearest_to_its_end_by_share() -> None:
    facts = tabulate_facts(
        [
            Fact(name="a", value=60.0, low=40.0),
            Fact(name="b", value=0.9, high=0.93),
            Fact(name="c", value=0.5, low=0.2, high=0.9),
        ],
        {},
    )
    assert facts.tightest is facts.margins[1]
    assert FactTable(margins=(), rows=()).tightest is None


numbers = st.floats(-1e6, 1e6, allow_subnormal=False)


@given(
    value=numbers,
    ends=st.tuples(st.none() | numbers, st.none() | numbers).filter(lambda ends: ends != (None, None)),
)
def test_bar_stays_in_its_box_and_a_value_that_holds_is_on_the_band(value, ends) -> None:
    low, high = ends if None in ends else sorted(ends)
    made = margin(value, low, high)
    left, width = made.band
    assert 0 <= left <= left + width <= 100.01
    assert 0 <= made.tick <= 100
    if made.holds:
        assert left - 0.02 <= made.tick <= left + width + 0.02


def test_facts_without_a_range_become_rows() -> None:
    facts = tabulate_facts([Fact(name="place", text="left base"), Fact(name="area", value=1234.5)], {})
    assert [(row.name, row.value) for row in facts.rows] == [("place", "left base"), ("area", "1234")]
    assert facts.margins == ()


def test_regions_and_options_are_named_by_roles_and_numbers() -> None:
    names = {"o1": "(1)", "o2": "(2)", "r1": "shown mask"}
    assert subject_title("o1 o2", names) == "(1) and (2)"
    assert subject_title("r1", names) == "shown mask"
    assert subject_title("left o1", names) == "left o1"
    assert subject_title("", names) == ""


def test_edits_are_in_order_of_first_mention() -> None:
    told = (("operation", "edit 2"), ("operation", "edit 1"), ("place", "edit 2"), ("width", "edit 2"))
    facts = tuple(Fact(name=name, about=about, text=f"{name} of {about}") for name, about in told)
    case = msgspec.structs.replace(like.rr_case(), facts=facts)
    edits = [(edit.name, edit.operation, edit.place) for edit in contour_edits(case)]
    assert edits == [
        ("edit 2", "operation of edit 2", "place of edit 2"),
        ("edit 1", "operation of edit 1", ""),
    ]
    assert [fact.name for fact in contour_edits(case)[0].details] == ["width"]

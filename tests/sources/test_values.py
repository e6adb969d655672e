"""Values as data sets write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carina.sources._record import RecordError
from carina.sources._series import UNKNOWN, order_studies
from carina.sources._values import read_age, read_certainty, read_sex, read_split, read_view


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("train", "train"), ("Training", "train"), ("validate", "val"), ("valid", "val"), (" val ", "val"),
        ("validation", "val"), ("dev", "val"), ("TEST", "test"), ("", None),
    ],
)  # fmt: skip
def test_splits(text, split):
    assert read_split(text) == split


def test_a_word_that_is_no_split_is_refused():
    with pytest.raises(RecordError, match="split: is 'gold', expected train, val or test"):
        read_split("gold")


@pytest.mark.parametrize(
    ("text", "view"),
    [
        ("PA", "PA"), ("postero-anterior", "PA"), ("POSTERO_ANTERIOR", "PA"), ("AP Supine", "AP"), ("ap", "AP"),
        ("AP_horizontal", "AP"), ("LL", "lateral"), ("Lateral", "lateral"), ("L", "lateral"), ("LAO", "unknown"),
        ("Frontal", "unknown"), ("", "unknown"),
    ],
)  # fmt: skip
def test_views(text, view):
    assert read_view(text) == view


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("58", 58), ("058Y", 58), ("58.0", 58), ("18M", 1), ("002D", 0), ("60W", 1), ("0", 0), ("120", 120),
        ("414", None), ("", None), ("-3", None), ("old", None), ("1e3", None), ("nan", None),
    ],
)  # fmt: skip
def test_ages(text, age):
    assert read_age(text) == age


@pytest.mark.parametrize(
    ("text", "sex"), [("M", "M"), ("female", "F"), (" f ", "F"), ("O", "O"), ("", None), ("X", None)]
)
def test_sexes(text, sex):
    assert read_sex(text) == sex


def test_certainties():
    assert [read_certainty(value, "Edema") for value in (1.0, 0.0, -1.0, None)] == [
        "present",
        "absent",
        "uncertain",
        None,
    ]
    with pytest.raises(RecordError, match="Edema: is 2, expected 1, 0, -1 or nothing"):
        read_certainty(2.0, "Edema")


def test_studies_of_a_patient_are_ordered_by_time_not_by_id():
    places = order_studies([("a", "p", 30), ("b", "p", 7), ("c", "p", 12), ("d", "q", 1)])
    assert places == {"b": (0, None, "c"), "c": (1, "b", "a"), "a": (2, "c", None), "d": (0, None, None)}


def test_an_unknown_or_equal_time_leaves_the_order_of_that_patient_unknown():
    places = order_studies([("a", "p", 1), ("b", "p", None), ("c", "q", 5), ("d", "q", 5), ("e", "r", 0)])
    assert [places[name] for name in "abcd"] == [UNKNOWN] * 4
    assert places["e"] == (0, None, None)


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.tuples(st.integers(0, 2), st.integers(0, 9))))
def test_neighbours_agree(studies):
    places = order_studies([(name, patient, time) for name, (patient, time) in studies.items()])
    assert set(places) == set(studies)
    for name, place in places.items():
        if place.prior is not None:
            assert places[place.prior].later == name
            assert places[place.prior].order == place.order - 1
            assert studies[place.prior][1] < studies[name][1]

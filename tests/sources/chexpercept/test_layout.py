"""Keys apart from questions, and together again."""

import json
from copy import deepcopy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sources.chexpercept import published

from carina.sources import RecordError
from carina.sources.chexpercept.layout import is_key_field, merge_keys, split_keys

NAMES = st.sampled_from(
    ["answer", "type", "true_masks", "question", "answer_options", "notes", "fake_x", "é"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=15,
)


def names(value):
    if isinstance(value, dict):
        yield from value
        for inner in value.values():
            yield from names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from names(inner)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(record=st.dictionaries(NAMES, JSON, max_size=5))
def test_split_records_have_no_key_and_merge_to_the_original(record):
    before = deepcopy(record)
    asked, keys = split_keys(record)
    assert record == before
    assert not any(is_key_field(name) for name in names(asked))
    assert merge_keys(asked, keys) == record


def test_fields_that_hold_the_answer_key_are_recognised():
    asked, keys = split_keys(published.record("RR", pair_id="x"))
    assert set(names(keys)) - set(names(asked)) == {
        "answer", "answer_index", "answer_zones", "type", "masks", "true_masks", "true_combination", "fake_masks",
        "fake_combinations", "revision_before_masks", "revision_after_masks", "no_deformation", "overlap_ratio",
        "selected_lung", "left_size", "right_size", "left_has_overlap", "right_has_overlap", "0",
    }  # fmt: skip
    assert asked["contour_qa"]["contour_revision_qa_revision_result"]["answer_options"][1] == {
        "relative_path": "option_2_mask_answer.png"
    }
    assert keys["detection_qa"] == {"answer": "Yes", "answer_index": 1}
    assert "point" in json.dumps(asked)


@pytest.mark.parametrize(
    ("asked", "keys", "sentence"),
    [
        ({"a": {}}, {"b": {"answer": 1}}, "b: is in keys.json but not in chexpercept.json"),
        (
            {"a": {"answer": 1}},
            {"a": {"answer": 2}},
            "a.answer: differs between chexpercept.json and keys.json",
        ),
        ({"a": [1]}, {"a": [None, {"type": 1}]}, "a: has another form in keys.json"),
        ({"a": 1}, {"a": {"answer": 1}}, "a: has another form in keys.json"),
    ],
)
def test_keys_that_do_not_fit_are_reported_with_their_field(asked, keys, sentence):
    with pytest.raises(RecordError) as told:
        merge_keys(asked, keys)
    assert sentence in str(told.value)

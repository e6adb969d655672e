"""Arguments of public functions are checked by their declared types before anything is done."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from carina.store.arguments import PositiveInt, Share, check_arguments
from carina.store.errors import CarinaError
from carina.store.results import as_path


@check_arguments
def sample(
    n: PositiveInt,
    *,
    split: Literal["train", "test"] | None = None,
    share: Share = 0.5,
    targets: Sequence[str] | None = None,
    weights: Mapping[str, float] | None = None,
    is_blind: bool = False,
    rules: object = None,
):
    """Return what was passed."""
    return n, split, share, targets, weights, is_blind, rules


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"n": 0}, "n: expected a whole number of at least 1, found 0"),
        ({"n": 1, "share": float("nan")}, "share: expected a finite number, found nan"),
        ({"n": 1, "weights": {"a": float("inf")}}, "weights: a: expected a finite number, found inf"),
        ({"n": "5"}, "n: expected a whole number of at least 1, found '5'"),
        ({"n": 2.5}, "n: expected a whole number of at least 1, found 2.5"),
        ({"n": True}, "n: expected a whole number of at least 1, found True"),
        ({"split": "dev"}, "split: expected 'train', 'test' or None, found 'dev'"),
        ({"share": 1.5}, "share: expected a number of at least 0 and at most 1, found 1.5"),
        ({"targets": "edema"}, "targets: expected a list (of text) or None, found 'edema'; write ['edema']"),
        ({"targets": [1]}, "targets: expected a list (of text) or None, found [1]"),
        ({"weights": ["a"]}, "weights: expected a dictionary (of text to a number) or None, found ['a']"),
        ({"is_blind": "no"}, "is_blind: expected True or False, found 'no'"),
    ],
)
def test_a_wrong_argument_is_named_with_what_is_expected(wrong, expected):
    with pytest.raises(CarinaError) as raised:
        sample(**{"n": 1} | wrong)
    assert str(raised.value) == expected


def test_right_arguments_reach_the_function_unchanged():
    rules = object()
    targets, weights = ("a", "b"), {"a": 1}
    assert sample(3, split="test", targets=targets, weights=weights, rules=rules) == (
        3, "test", 0.5, targets, weights, False, rules,
    )  # fmt: skip


def test_scalars_of_numpy_become_those_of_python():
    n, _, share, *_ = sample(np.int64(3), share=np.float32(0.25))
    assert (type(n), type(share)) == (int, float)


def test_an_unknown_keyword_is_an_error_of_python():
    with pytest.raises(TypeError, match="sample_size"):
        sample(1, sample_size=3)


def test_an_argument_that_the_function_does_not_have_is_refused_with_the_name_of_the_function():
    with pytest.raises(TypeError, match=r"^sample\(\): got an unexpected keyword argument 'layout'"):
        sample(1, layout="x")
    with pytest.raises(TypeError, match=r"^sample\(\): too many positional arguments"):
        sample(1, 2)


def test_what_is_no_path_is_shown_in_the_error():
    assert as_path(Path("runs")) == as_path("runs") == Path("runs")
    for wrong, shown in ((None, r"None \(NoneType\)"), (3, r"3 \(int\)"), (["a"], r"\['a'\] \(list\)")):
        with pytest.raises(CarinaError, match=f"found {shown}"):
            as_path(wrong)
    with pytest.raises(CarinaError, match=r"'a\\x00b': a path cannot hold a NUL character"):
        as_path("a\0b")


def test_a_path_at_which_no_file_can_be_is_refused(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(CarinaError, match=r"loop: its links lead in a circle"):
        as_path(tmp_path / "loop")
    with pytest.raises(CarinaError, match=r"not UTF-8 text"):
        as_path(tmp_path / "\udcff")

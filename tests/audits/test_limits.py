"""Limits are declared by each gate, validated, and documented with their defaults, as are all gates."""

import re
from pathlib import Path

import pytest

from carina.audits import list_gates
from carina.audits.benchmark import load_limits
from carina.audits.gate import GATES
from carina.store.errors import CarinaError

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "audit.md").read_text(encoding="utf-8")
OWN = [info for info in list_gates() if info.make.__module__.startswith("carina.audits.")]


def written(default):
    return ", ".join(default) if isinstance(default, tuple) else str(default)


def test_every_limit_is_documented_with_its_default():
    listed = {
        (gate, limit): default.strip()
        for gate, limit, default in re.findall(r"^\| `([a-z-]+)` \| `(\w+)` \| ([^|]+) \|", PAGE, flags=re.M)
    }
    declared = {}
    for info in OWN:
        for limit in info.list_limits():
            others = "".join(f" ({protocol}: {value})" for protocol, value in limit.by_protocol.items())
            declared[info.name, limit.name] = written(limit.default) + others
            assert limit.meaning.endswith(".")
    assert listed == declared


def test_every_gate_is_documented_and_described():
    rows = set(re.findall(r"^\| `([a-z-]+)` \|", PAGE, flags=re.M))
    assert {info.name for info in OWN} <= rows
    for info in OWN:
        assert info.title
        assert info.meaning.endswith(".")
        assert info.make.__module__.rpartition(".")[2] == info.name.replace("-", "_")


def test_there_are_ten_gates_for_all_protocols_six_for_percept_and_twenty_for_trek():
    counts = [sum(info.protocols == group for info in OWN) for group in ((), ("percept",), ("trek",))]
    assert counts == [10, 6, 20]


def test_defaults_of_a_protocol_apply_to_benchmarks_of_this_protocol_only():
    info = GATES["text-only-baseline"]
    alone = info.read_limits({}, {"trek": 9}, where="limits")
    mixed = info.read_limits({}, {"trek": 9, "percept": 1}, where="limits")
    assert (alone.margin, alone.max_questions) == (0.05, 1500)
    assert (mixed.margin, mixed.max_questions) == (0.0, 4000)
    assert info.read_limits({"margin": 0}, {"trek": 9}, where="limits").margin == 0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.1, 1.1, "much", True, None])
def test_values_that_are_not_shares_are_refused_with_gate_and_limit(value):
    with pytest.raises(CarinaError, match=r"^limits\.yaml: answer-position.*margin"):
        GATES["answer-position"].read_limits({"margin": value}, ["trek"], where="limits.yaml")


@pytest.mark.parametrize("number", [".nan", ".inf", "-.inf"])
def test_a_file_with_a_limit_that_is_not_finite_is_refused_with_file_and_key(tmp_path, number):
    path = tmp_path / "limits.yaml"
    path.write_text(f"answer-position: {{margin: {number}}}\n")
    with pytest.raises(CarinaError, match=r"limits\.yaml: answer-position\.margin: expected a finite number"):
        load_limits(path)

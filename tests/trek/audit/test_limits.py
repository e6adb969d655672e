"""The page that explains the limits names every one of them, with its default."""

import re
from pathlib import Path

from carina.trek.audit import Limits, trek_gates
from carina.trek.audit.statistics import NAME

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "audit.md").read_text(encoding="utf-8")


def test_every_limit_is_documented_with_its_default():
    listed = {}
    for names, defaults in re.findall(r"^\| (`[a-z_`, ]+`) \| ([^|]+) \|", PAGE, flags=re.M):
        if names == "`prevalence`":
            listed["prevalence"] = tuple(defaults.strip().split(", "))
            continue
        for name, default in zip(re.findall(r"`(\w+)`", names), defaults.split(","), strict=True):
            listed[name] = float(default)
    assert listed == {name: getattr(Limits(), name) for name in Limits.__struct_fields__ if name != "common"}


def test_every_gate_is_documented():
    rows = set(re.findall(r"^\| ([a-z ]+) \|", PAGE, flags=re.M))
    names = {gate.result().name for gate in trek_gates()}
    assert NAME in names
    assert names <= rows

"""docs/reference/ground.md has every name with the meaning that the code gives it."""

from pathlib import Path

import pytest

from carina.maps import PROFILES
from carina.maps.boxes import DEFINITIONS
from carina.maps.metrics import METRICS
from carina.maps.rules import SELECTED_THRESHOLDS, TIE_RULES, PeakPixel, define_rule, rule_name
from carina.maps.variants import AGGREGATIONS, EMPTIES, MARGINS, RESAMPLINGS, STANDARD_THRESHOLDS

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "ground.md").read_text(encoding="utf-8")
MEANINGS = {
    **{name: metric.definition for name, metric in METRICS.entries().items()},
    **RESAMPLINGS,
    **MARGINS,
    **EMPTIES,
    **AGGREGATIONS,
    **DEFINITIONS,
    **{
        rule_name(rule): define_rule(rule)
        for rule in (*map(PeakPixel, TIE_RULES), *SELECTED_THRESHOLDS)
        if rule
    },
    **{rule_name(rule): define_rule(rule) for rule in STANDARD_THRESHOLDS if rule_name(rule) != "minmax_0.3"},
}


@pytest.mark.parametrize("name", MEANINGS)
def test_every_part_of_a_name_is_explained(name: str) -> None:
    assert f"| `{name}` | {MEANINGS[name]} |" in PAGE


def test_every_profile_is_described() -> None:
    for profile in PROFILES.values():
        assert f"| `{profile.name}` | {profile.description} |" in PAGE
        if profile.name != "carina":
            assert all(f"`{variant.name}`" in PAGE for variant in profile.variants)

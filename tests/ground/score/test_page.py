"""docs/reference/ground.md has every name with the meaning that the code gives it."""

from pathlib import Path

import pytest

from carina.ground.score import PROFILES
from carina.ground.score.boxes import DEFINITIONS
from carina.ground.score.rules import CHOSEN, TIES, Ties, define, token
from carina.ground.score.variants import _KINDS, AGGREGATIONS, EMPTIES, MARGINS, PLACES, STANDARD_THRESHOLDS

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "ground.md").read_text(encoding="utf-8")
MEANINGS = {
    **{metric: kind.about for metric, kind in _KINDS.items()},
    **PLACES,
    **MARGINS,
    **EMPTIES,
    **AGGREGATIONS,
    **DEFINITIONS,
    **{token(rule): define(rule) for rule in (*map(Ties, TIES), *CHOSEN) if rule},
    **{token(rule): define(rule) for rule in STANDARD_THRESHOLDS if token(rule) != "minmax_0.3"},
}


@pytest.mark.parametrize("name", MEANINGS)
def test_every_part_of_a_name_is_explained(name: str) -> None:
    assert f"| `{name}` | {MEANINGS[name]} |" in PAGE


def test_every_profile_is_described() -> None:
    for profile in PROFILES.values():
        assert f"| `{profile.name}` | {profile.about} |" in PAGE
        if profile.name != "carina":
            assert all(f"`{variant.name}`" in PAGE for variant in profile.variants)

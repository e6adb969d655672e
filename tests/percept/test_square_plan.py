"""Plans of revision questions: sizes keep the rules whatever is right, and do not tell what is right."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from carina.percept.rules import Rules
from carina.percept.square_plan import CORNERS, SitePlan, SquarePlan, draw_plan
from carina.store.seeding import rng

RULES = Rules()


def some_plans(area=20_000, *, extra=False, count=200):
    chance = rng(1, "plans")
    plans = [draw_plan(area, RULES, 1.0, chance, extra=extra) for _ in range(count)]
    return [plan for plan in plans if plan is not None]


@pytest.mark.parametrize(
    ("versions", "mistakes"),
    [
        ((0.2, 0.3), ("overshoot", "partial")),
        ((-0.2, -0.3), ("overshoot", "partial")),
        ((0.0, 0.1), ("wrong_place", "left")),
        ((0.1, -0.1), ("wrong_operation", "wrong_operation")),
        ((0.1, 0.1), (None, None)),
    ],
)
def test_what_is_wrong_follows_from_which_version_is_right(versions, mistakes):
    assert tuple(SitePlan(versions, right).mistake for right in (0, 1)) == mistakes


def test_the_mistake_leads_from_the_right_version_to_the_other():
    site = SitePlan((0.2, 0.3), right=1)
    assert site.revision == 0.3
    assert site.mistake_size == pytest.approx(-0.1)


def test_the_revision_kind_follows_from_the_right_versions():
    plan = SquarePlan((SitePlan((0.2, 0.3)), SitePlan((0.0, -0.1))))
    assert [plan.decide(corner).kind for corner in CORNERS] == ["expansion", "both", "expansion", "both"]
    assert plan.decide((1, 1)).growth == pytest.approx(1.2)


@pytest.mark.parametrize("extra", [False, True])
@pytest.mark.parametrize("area", [5_000, 20_000])
def test_every_mask_may_be_the_right_one(area, extra):
    """Worked out on areas: the shown contour has area 1, changes at different sites do not overlap."""
    plans = some_plans(area, extra=extra)
    assert plans
    for plan in plans:
        areas, revisions = [], []
        for corner in CORNERS:
            truth = plan.decide(corner)
            sizes = np.array([site.revision for site in truth.sites])
            added, removed = sizes[sizes > 0].sum(), -sizes[sizes < 0].sum()
            assert RULES.revise_low <= (1 - removed) / (1 + added) <= RULES.revise_high
            pixels = area / truth.growth
            for site in truth.sites:
                changed = abs(site.revision or site.mistake_size) * pixels
                assert changed >= max(RULES.edit_area, RULES.edit_share * area)
            areas.append(truth.growth)
            revisions.append(sizes)
        for one, other in combinations(range(4), 2):
            away = np.abs(revisions[one] - revisions[other]).sum()
            both = areas[one] + areas[other]
            assert (both - away) / (both + away) <= RULES.option_iou_key


def test_revisions_in_one_direction_and_in_both_are_about_equally_frequent():
    kinds = Counter(plan.decide(corner).kind for plan in some_plans(count=400) for corner in CORNERS)
    assert all(0.25 <= count / kinds.total() <= 0.42 for count in kinds.values())
    assert len(kinds) == 3


def test_a_lesion_that_is_too_small_has_no_plan():
    assert draw_plan(2_000, RULES, 1.0, rng(1), extra=False) is None

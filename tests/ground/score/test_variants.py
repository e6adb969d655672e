import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carina.errors import CarinaError
from carina.ground.score import PROFILES, all_variants, parse, profile
from carina.ground.score.rules import Fixed, grid_thresholds
from carina.ground.score.variants import Variant

EVERY = all_variants()


def test_every_name_stands_for_its_variant_alone() -> None:
    names = [variant.name for variant in EVERY]
    assert len(set(names)) == len(names)
    assert all(parse(name) == variant for name, variant in zip(names, EVERY, strict=True))


def test_every_variant_has_a_definition_of_its_own_in_one_line() -> None:
    definitions = [variant.definition for variant in EVERY]
    assert len(set(definitions)) == len(definitions)
    assert not any("\n" in definition for definition in definitions)


def test_oracles_say_so_in_name_and_definition() -> None:
    for variant in EVERY:
        assert variant.is_oracle == ("oracle" in variant.name) == ("(oracle)" in variant.definition)


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("hit.first_argmax.bilinear_full", "hit.bilinear_full.full_image.first_argmax.positives.per_image"),
        ("hit.any_max.nearest_224", "hit.nearest_224.any_max.positives.per_image"),
        ("iou.otsu_filled.tp_only", "iou.bilinear_full.full_image.otsu_filled.tp_only.per_image"),
        ("iou.raw_0.008.nearest_224", "iou.nearest_224.raw_0.008.positives.per_image"),
        ("cnr", "cnr.bilinear_full.visible_only.per_image"),
        ("auroc.pooled", "auroc.bilinear_full.full_image.pooled"),
        ("recall.otsu.pooled", "recall.bilinear_full.full_image.otsu.pooled"),
        ("iou.raw_-1e-05+2", "iou.bilinear_full.full_image.raw_-1e-05+2.positives.per_image"),
        ("iou.raw_1e+20", "iou.bilinear_full.full_image.raw_1e+20.positives.per_image"),
    ],
)
def test_short_names_are_filled_in(short: str, full: str) -> None:
    assert parse(short).name == full


@given(st.sampled_from(EVERY), st.randoms(use_true_random=False))
def test_parts_may_stand_in_any_order(variant: Variant, random: object) -> None:
    metric, *parts = re.split(r"\.(?=[a-z])", variant.name)
    random.shuffle(parts)
    assert parse(".".join([metric, *parts])) == variant


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=4))
def test_any_threshold_can_be_named(at: list[float]) -> None:
    variant = Variant("iou", "nearest_full", "full_image", Fixed("raw", tuple(at)), "positives", "per_image")
    assert parse(variant.name) == variant


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("overlap.otsu", "'overlap' is none of hit, hit_weighted"),
        ("iou.osu", "'osu' is no place, margin, rule"),
        ("hit", "expected a rule such as expected or within_15"),
        ("iou", "expected a rule such as minmax_0.5 or otsu"),
        ("iou.expected", "not expected"),
        ("auroc.otsu", "auroc takes no rule, not otsu"),
        ("cnr.full_image", "cnr is scored with visible_only"),
        ("hit.expected.nearest_224.full_image", "no margin"),
        ("hit_box.expected.nearest_224", "hit_box is scored in bilinear_full or nearest_full"),
        ("iou.oracle_grid", "oracle_grid is scored in nearest_full"),
        ("hit.expected.pooled", "cannot be pooled"),
        ("iou.otsu.pooled.tp_only", "pooled counts know no tp_only"),
        ("iou.raw_1+2.pooled", "pooled counts are of one threshold"),
        ("hit.expected.tp_only", "expected positives or empty_is_hit, not tp_only"),
        ("rank.positives", "has no choice of positives"),
        ("iou.otsu.minmax_0.5", "two parts for its rule"),
        ("iou.minmax_.", "expected numbers joined by"),
        ("iou.raw_1e999", "expected finite numbers"),
        ("iou.tuned_iou_minmax7.gated", "for thresholds that are not chosen themselves"),
    ],
)
def test_names_that_stand_for_nothing_are_refused(name: str, message: str) -> None:
    with pytest.raises(CarinaError, match=re.escape(message)):
        parse(name)


def test_grids_have_as_many_thresholds_as_their_projects_use() -> None:
    assert [len(grid_thresholds(name)) for name in ("minmax256", "minmax7", "raw9990", "sigmoid101")] == [
        256,
        7,
        9990,
        101,
    ]
    assert grid_thresholds("minmax7")[[0, -1]].tolist() == pytest.approx([0.2, 0.8])


def test_profiles_hold_each_variant_once() -> None:
    for one in PROFILES.values():
        assert len(set(one.variants)) == len(one.variants) > 0
    with pytest.raises(CarinaError, match="none of carina, chexlocalize"):
        profile("xbench")

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carina.maps import PROFILES, all_variants, find_profile, parse_variant
from carina.maps.rules import FixedThreshold, grid_thresholds
from carina.maps.variants import Variant
from carina.store.errors import CarinaError

EVERY = all_variants()


def test_every_variant_has_a_unique_name_that_parses_to_it() -> None:
    names = [variant.name for variant in EVERY]
    assert len(set(names)) == len(names)
    assert all(parse_variant(name) == variant for name, variant in zip(names, EVERY, strict=True))


def test_every_variant_has_a_unique_definition_in_one_line() -> None:
    definitions = [variant.definition for variant in EVERY]
    assert len(set(definitions)) == len(definitions)
    assert not any("\n" in definition for definition in definitions)


def test_oracles_have_the_word_in_name_and_definition() -> None:
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
def test_missing_parts_of_a_name_get_defaults(short: str, full: str) -> None:
    assert parse_variant(short).name == full


@given(st.sampled_from(EVERY), st.randoms(use_true_random=False))
def test_parts_of_a_name_are_parsed_in_any_order(variant: Variant, random: object) -> None:
    metric, *parts = re.split(r"\.(?=[a-z])", variant.name)
    random.shuffle(parts)
    assert parse_variant(".".join([metric, *parts])) == variant


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=4))
def test_any_threshold_can_be_named(at: list[float]) -> None:
    variant = Variant(
        "iou", "nearest_full", "full_image", FixedThreshold("raw", tuple(at)), "positives", "per_image"
    )
    assert parse_variant(variant.name) == variant


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("overlap.otsu", "unknown metric 'overlap'"),
        ("iou.osu", "unknown part 'osu'"),
        ("hit", "expected a rule such as expected or within_15"),
        ("iou", "expected a rule such as minmax_0.5 or otsu"),
        ("iou.expected", "found expected"),
        ("auroc.otsu", "auroc takes no rule, found otsu"),
        ("cnr.full_image", "cnr is scored only with visible_only"),
        ("hit.expected.nearest_224.full_image", "no margin"),
        (
            "hit_box.expected.nearest_224",
            "hit_box is scored only with bilinear_full, torch_full or nearest_full",
        ),
        ("iou.oracle_grid", "oracle_grid is scored only with nearest_full"),
        ("hit.expected.pooled", "cannot be pooled"),
        ("iou.otsu.pooled.tp_only", "found tp_only"),
        ("iou.raw_1+2.pooled", "one threshold, found several"),
        (
            "hit.expected.tp_only",
            "expected positives or empty_is_hit as treatment of empty masks, found tp_only",
        ),
        ("rank.positives", "found positives"),
        ("iou.otsu.minmax_0.5", "two parts for rule"),
        ("iou.minmax_.", "expected numbers joined by"),
        ("iou.raw_1e999", "expected finite numbers"),
        ("iou.tuned_iou_minmax7.gated", "gated cannot be combined"),
    ],
)
def test_invalid_names_are_refused(name: str, message: str) -> None:
    with pytest.raises(CarinaError, match=re.escape(message)):
        parse_variant(name)


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
    with pytest.raises(CarinaError, match=r"profile .xbench.*carina, chexlocalize"):
        find_profile("xbench")

"""Who gets into a benchmark: even classes, alike in size, every place equally often."""

from collections import Counter
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carina.percept.balance import RandomTrees, choose_sets
from carina.percept.contour_features import measure_features
from carina.percept.select import (
    analyses_needed,
    assign_key_positions,
    assign_paths,
    assign_region_counts,
    choose_lesions,
    choose_masks,
)

replace = msgspec.structs.replace


@pytest.fixture(scope="session")
def many(analyses):
    """LesionAnalysis lesions of one target, made from one by changing what selection looks at."""
    pattern = next(one for one in analyses if one.attributes is not None)
    chance = np.random.default_rng(1)

    def make(n, *, possible=(0, 1, 2, 3)):
        choice = next(iter(pattern.attributes.locations.values()))
        return [
            replace(
                pattern,
                subject=replace(pattern.subject, study=f"s{k:03}", patient=f"p{k:03}"),
                share=float(chance.uniform(0.01, 0.2)),
                attributes=replace(
                    pattern.attributes,
                    distribution=str(chance.choice(["1", "1", "1", "2", "2", "3", "4+"])),
                    severity={"right": str(chance.choice(["low", "low", "mid", "high"]))},
                    comparison=str(chance.choice(["one", "one", "one", "similar", "left", "right"])),
                    locations=dict.fromkeys(possible, choice),
                ),
            )
            for k in range(n)
        ]

    return make


def studies_of(lesions):
    return [one.subject.study for one in lesions]


def test_more_lesions_are_analysed_than_two_cells_need():
    assert [analyses_needed(n) for n in (1, 2, 10, 100)] == [3, 6, 30, 300]


def test_as_many_lesions_are_chosen_as_two_cells_need_with_even_classes(many):
    lesions = many(90)
    chosen = choose_lesions(lesions, 30)
    assert len(chosen) == len(set(studies_of(chosen))) == 60
    assert choose_lesions(lesions, 30) == chosen
    assert len(choose_lesions(lesions, 100)) == 90

    def spread(some):
        counts = Counter(one.attributes.distribution for one in some)
        return max(counts.values()) / len(some)

    assert spread(chosen) < spread(lesions)


def test_the_two_paths_are_alike_in_size_and_share_no_study(many):
    lesions = choose_lesions(many(80), 40)
    paths = assign_paths(lesions, seed=1)
    assert {path: len(cell) for path, cell in paths.items()} == {"RF": 40, "RR": 40}
    assert not set(studies_of(paths["RF"])) & set(studies_of(paths["RR"]))
    # Of every two neighbours in size, each path has one.
    ordered = sorted(lesions, key=lambda one: one.share)
    on = {one.subject.study: path for path, cell in paths.items() for one in cell}
    for first, second in zip(ordered[::2], ordered[1::2], strict=True):
        assert {on[first.subject.study], on[second.subject.study]} == {"RF", "RR"}
    larger = sum(on[first.subject.study] == "RR" for first in ordered[::2])
    assert 8 <= larger <= 32
    assert assign_paths(lesions[::-1], seed=1) == paths
    assert assign_paths(lesions, seed=2) != paths


def test_an_odd_number_of_lesions_gives_one_path_one_more(many):
    paths = assign_paths(many(5), seed=1)
    assert sorted(len(cell) for cell in paths.values()) == [2, 3]


def test_numbers_of_right_regions_are_as_frequent_as_answers_with_that_number(many):
    given = Counter(assign_region_counts(many(96), seed=1))
    assert given == {0: 12, 1: 36, 2: 36, 3: 12}


@given(st.integers(1, 60))
@settings(max_examples=10)
def test_numbers_of_right_regions_are_in_proportion_for_any_number_of_cases(many, n):
    counts = Counter(assign_region_counts(many(n), seed=3))
    for right, share in enumerate((1 / 8, 3 / 8, 3 / 8, 1 / 8)):
        assert abs(counts[right] - share * n) < 1.5


def test_only_possible_numbers_of_right_regions_are_assigned(many):
    lesions = many(10, possible=(2,)) + many(30)
    lesions = [replace(one, subject=replace(one.subject, study=f"u{n}")) for n, one in enumerate(lesions)]
    given = assign_region_counts(lesions, seed=1)
    assert given[:10] == [2] * 10
    # The others make up for them: 40 in all should have 5, 15, 15, 5.
    assert Counter(given) == {0: 5, 1: 15, 2: 15, 3: 5}


def test_lesions_without_attributes_have_no_right_regions(analyses):
    hearts = [one for one in analyses if one.attributes is None]
    assert hearts
    assert assign_region_counts(hearts, seed=1) == [0] * len(hearts)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_every_key_position_occurs_once_in_every_block(count):
    due = [assign_key_positions("edema", "RR", index, seed=1)("1", count) for index in range(12 * count)]
    for block in range(12):
        assert sorted(due[block * count : (block + 1) * count]) == list(range(count))
    assert len({tuple(due[n * count : (n + 1) * count]) for n in range(12)}) > 1


def test_key_positions_differ_between_cells_steps_and_seeds():
    def row(target="edema", path="RR", step="1", seed=1):
        return [assign_key_positions(target, path, index, seed=seed)(step, 4) for index in range(24)]

    rows = [row(), row(target="effusion"), row(path="RF"), row(step="2"), row(seed=2)]
    assert len({tuple(one) for one in rows}) == 5
    assert row() == rows[0]


def test_key_positions_do_not_depend_on_the_order_of_calls():
    due = assign_key_positions("edema", "RR", 7, seed=1)
    first = due("3c", 4), due("1", 2)
    assert (due("1", 2), due("3c", 4)) == first[::-1]


def option_sets(cases, alternatives, chance, *, width):
    """Features of four options for each alternative of each case."""
    return [chance.normal(0, 1, (alternatives, 4, width)) for _ in range(cases)]


def find_largest(sets, chosen, at):
    """How often the first option of the chosen sets is the largest by a feature."""
    return np.mean([one[n, :, at].argmax() == 0 for one, n in zip(sets, chosen, strict=True)])


def test_chosen_sets_do_not_reveal_the_right_option_by_a_feature():
    sets = option_sets(200, 30, np.random.default_rng(5), width=6)
    for one in sets:
        one[:, 0] += 0.7
    first = [0] * len(sets)
    assert all(find_largest(sets, first, at) > 0.38 for at in range(6))
    differences = [one[:, 0] - one.mean(axis=1) for one in sets]
    chosen = choose_sets(differences, RandomTrees.draw([1.0] * 6).find_leaves(sets))
    bias = np.mean([one[n] for one, n in zip(differences, chosen, strict=True)], axis=0)
    assert np.abs(bias).max() < 0.05
    # 0.25 by chance; of 200 sets, the standard error is 0.03.
    assert all(0.18 < find_largest(sets, chosen, at) < 0.32 for at in range(6))


def test_chosen_sets_reveal_less_by_an_interaction():
    """The product of two features is positive for the right option in most sets: no feature alone shows it."""
    chance = np.random.default_rng(6)
    sets = option_sets(200, 30, chance, width=4)
    for one in sets:
        is_revealed = chance.random(30) < 0.6
        one[is_revealed, 0, 1] *= np.sign(one[is_revealed, 0, 0] * one[is_revealed, 0, 1])
    differences = [one[:, 0] - one.mean(axis=1) for one in sets]

    def mean_sign(chosen):
        return np.mean([np.sign(one[n, 0, 0] * one[n, 0, 1]) for one, n in zip(sets, chosen, strict=True)])

    # One leaf that holds everything balances nothing.
    without = choose_sets(differences, [np.zeros((30, 4, 1), np.uint8)] * len(sets))
    chosen = choose_sets(differences, RandomTrees.draw([1.0] * 4).find_leaves(sets))
    assert mean_sign(without) > 0.5
    assert mean_sign(chosen) < 0.75 * mean_sign(without)


def test_the_features_of_chosen_masks_are_those_of_their_contours(analyses):
    chosen = choose_masks(analyses, seed=1)
    assert studies_of(chosen) == studies_of(analyses)
    assert choose_masks(analyses, seed=1) == chosen
    for one, of in zip(chosen, analyses, strict=True):
        assert len(one.masks) == 4
        assert one.masks[0] == of.masks[0]
        assert set(one.masks[1:3]) <= set(of.masks[1:])
        for mask in one.masks:
            assert mask.features == pytest.approx(measure_features(mask.region.to_mask(), one.scale))


def test_the_fourth_mask_has_both_wrong_states(analyses):
    (one,) = choose_masks(analyses[:1], seed=1)
    right, first, second, both = (choice.region.to_mask() for choice in one.masks)
    np.testing.assert_array_equal(both, right ^ (first ^ right) ^ (second ^ right))
    assert not ((first ^ right) & (second ^ right)).any()
    assert one.masks[3].area == both.sum()
    assert one.masks[3].kind == "+".join(sorted({one.masks[1].kind, one.masks[2].kind}))


def test_no_lesions_need_no_masks():
    assert choose_masks([], seed=1) == []


def test_sizes_of_chosen_lesions_are_sorted_within_a_path(many):
    for cell in assign_paths(many(20), seed=1).values():
        assert all(one.share <= other.share for one, other in pairwise(cell))


def test_steps_that_some_cases_lack_are_balanced_among_those_that_have_them():
    """Every second case asks with one right region: their places are balanced although half the numbers are missing."""
    due = [
        assign_key_positions("edema", "RR", 2 * turn, seed=1, turns={"4b with 1 right": turn})(
            "4b with 1 right", 3
        )
        for turn in range(12)
    ]
    assert Counter(due) == {0: 4, 1: 4, 2: 4}


def test_the_number_of_right_regions_of_a_single_case_is_random(analyses):
    """Cells of one case would else all be keyed "none of the above" or all to one region."""
    one = next(e for e in analyses if e.attributes is not None and len(e.attributes.locations) >= 2)
    assert len({assign_region_counts([one], seed=seed)[0] for seed in range(40)}) >= 2

"""Chance for one conversation: the same for the same purpose, even, and never out of bounds."""

import itertools
from collections import Counter

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from carina.trek.sampling import Sampler

quick = settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
seeds = st.integers(0, 2**31)
items = st.lists(st.integers(), max_size=12)


def fixed(share):
    """Draws the same number for ever."""
    made = Sampler(0)
    made.share = lambda: share
    return made


@pytest.fixture
def sampler():
    return Sampler(7, "test")


def stream(*purpose, number=1000):
    made = Sampler(*purpose)
    return [made.share() for _ in range(number)]


def test_the_same_purpose_gives_the_same_numbers_and_any_other_gives_others():
    assert stream(1, "trek", "s1") == stream(1, "trek", "s1")
    others = [(2, "trek", "s1"), (1, "trek", "s2"), (1, "other", "s1"), (1, "treks", "1"), (1, "trek")]
    streams = [stream(1, "trek", "s1"), *(stream(*other) for other in others)]
    assert len({tuple(numbers) for numbers in streams}) == len(streams)


def test_numbers_are_even_and_below_one():
    numbers = stream(3, "even", number=20_000)
    assert min(numbers) >= 0
    assert max(numbers) < 1
    counted = Counter(int(number * 50) for number in numbers)
    assert stats.chisquare([counted[bin_] for bin_ in range(50)]).pvalue > 0.001
    # Neighbours in the stream, across the borders of what is made at once, have nothing to do with each other.
    pairs = Counter((a < 0.5, b < 0.5) for a, b in itertools.pairwise(numbers))
    assert stats.chisquare(list(pairs.values())).pvalue > 0.001


@pytest.mark.parametrize("way", ["below", "pick", "sample", "shuffle", "pick_weighted"])
def test_every_way_to_choose_is_even(sampler, way):
    ways = {
        "below": lambda: sampler.below(5),
        "pick": lambda: sampler.pick(range(5)),
        "sample": lambda: sampler.sample(range(5), 1)[0],
        "shuffle": lambda: sampler.shuffle(range(5))[-1],
        "pick_weighted": lambda: sampler.pick_weighted(range(5), [2.0] * 5),
    }
    counted = Counter(ways[way]() for _ in range(5000))
    assert set(counted) == set(range(5))
    assert stats.chisquare(list(counted.values())).pvalue > 0.001


def test_all_orders_are_as_likely(sampler):
    counted = Counter(tuple(sampler.shuffle("abc")) for _ in range(6000))
    assert len(counted) == 6
    assert stats.chisquare(list(counted.values())).pvalue > 0.001


def test_pairs_of_a_sample_are_as_likely(sampler):
    counted = Counter(tuple(sampler.sample(range(4), 2)) for _ in range(6000))
    assert len(counted) == 12
    assert stats.chisquare(list(counted.values())).pvalue > 0.001


def test_weights_are_shares(sampler):
    weights = [1.0, 0.0, 3.0, 6.0]
    counted = Counter(sampler.pick_weighted("abcd", weights) for _ in range(10_000))
    assert counted["b"] == 0
    assert stats.chisquare([counted[c] for c in "acd"], [1000, 3000, 6000]).pvalue > 0.001
    # All zero count as equal.
    assert {sampler.pick_weighted("ab", [0.0, 0.0]) for _ in range(50)} == {"a", "b"}


def test_chance_and_rounded_are_right_on_average(sampler):
    assert not any(sampler.chance(0.0) for _ in range(1000))
    assert all(sampler.chance(1.0) for _ in range(1000))
    assert 2850 < sum(sampler.chance(0.3) for _ in range(10_000)) < 3150
    counted = Counter(sampler.round_randomly(1.3) for _ in range(10_000))
    assert set(counted) == {1, 2}
    assert 2850 < counted[2] < 3150
    assert {sampler.round_randomly(2.0) for _ in range(100)} == {2}
    assert {sampler.round_randomly(0.0) for _ in range(100)} == {0}


@quick
@given(seeds, items, st.integers(0, 15))
def test_a_sample_holds_different_places_and_as_many_as_there_are(seed, given_items, number):
    numbered = list(enumerate(given_items))
    before = list(numbered)
    drawn = Sampler(seed).sample(numbered, number)
    assert numbered == before
    assert len(drawn) == min(number, len(numbered)) == len(set(drawn))
    assert set(drawn) <= set(numbered)


@quick
@given(seeds, items)
def test_shuffled_is_a_permutation(seed, given_items):
    assert sorted(Sampler(seed).shuffle(given_items)) == sorted(given_items)
    assert Sampler(seed).shuffle(given_items) == Sampler(seed).shuffle(tuple(given_items))


@quick
@given(seeds, st.floats(0, 50))
def test_rounded_is_next_to_the_mean(seed, mean):
    assert int(mean) <= Sampler(seed).round_randomly(mean) <= int(mean) + 1


@quick
@example([0.17, 0.26, 0.0], 1 - 2**-53)  # what rounding leaves over
@given(
    st.lists(st.floats(0, 100) | st.just(0.0), min_size=1, max_size=9),
    st.sampled_from([0.0, 1e-300, 0.5, 1 - 2**-53]) | st.floats(0, 1, exclude_max=True),
)
def test_what_has_no_weight_is_never_drawn(weights, share):
    drawn = fixed(share).pick_weighted(range(len(weights)), weights)
    assert weights[drawn] > 0 or sum(weights) == 0


@pytest.mark.parametrize("share", [0.0, 1 - 2**-53])
def test_extreme_random_numbers_give_valid_choices(share):
    extreme = fixed(share)
    assert extreme.below(6) == (5 if share else 0)
    assert extreme.pick("abc") == ("c" if share else "a")
    assert sorted(extreme.shuffle("abcd")) == list("abcd")

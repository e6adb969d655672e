import math

import numpy as np
import pytest

from carina.stats import (
    design_effect,
    intraclass_correlation,
    mean_interval,
    minimum_detectable_difference,
    paired_difference,
)
from carina.store.errors import CarinaError

NAN = float("nan")


def test_the_design_effect_equals_a_value_worked_out_by_hand() -> None:
    # Residuals are ±1/2, their sums 1 and -1: (2 * 2 / 16) / (1 / 3 / 4) = 3.
    assert design_effect([1, 1, 0, 0], ["a", "a", "b", "b"]) == pytest.approx(3.0)
    # The opposite: patients that are all alike. Sums of residuals are 0.
    assert design_effect([1, 0, 1, 0], ["a", "a", "b", "b"]) == 0.0


def test_independent_rows_have_a_design_effect_of_one() -> None:
    values = np.random.default_rng(0).random(37)

    assert design_effect(values, None) == pytest.approx(1.0, rel=1e-12)
    assert design_effect(np.r_[values, NAN], None) == pytest.approx(1.0, rel=1e-12)


def test_the_design_effect_is_the_growth_of_the_squared_interval() -> None:
    draw = np.random.default_rng(1)
    patients = np.repeat(np.arange(200), 5)
    values = (draw.random(1000) < draw.beta(1, 1, 200)[patients]).astype(float)

    wide, narrow = mean_interval(values, patients), mean_interval(values)

    growth = ((wide.high - wide.low) / (narrow.high - narrow.low)) ** 2
    assert design_effect(values, patients) == pytest.approx(growth, rel=0.06)
    # Uniform chances correlate rows by 1/3: 1 + 4/3.
    assert design_effect(values, patients) == pytest.approx(1 + 4 / 3, rel=0.2)


def test_the_intraclass_correlation_equals_a_value_worked_out_by_hand() -> None:
    # Means 1.5 and 4.5 about 3: between 2 * 2 * 2.25 / 1 = 9, within 4 * 0.25 / 2 = 0.5; (9 - 0.5) / (9 + 0.5).
    assert intraclass_correlation([1, 2, 4, 5], ["a", "a", "b", "b"]) == pytest.approx(8.5 / 9.5)
    # Sizes 3 and 1: m0 = 4 - 10 / 4 = 1.5. Means 1 and 5 about 2: between 3 + 9 = 12, within 2 / 2 = 1.
    assert intraclass_correlation([0, 1, 2, 5], ["a", "a", "a", "b"]) == pytest.approx(11 / 12.5)
    assert intraclass_correlation([1, 0, 1, 0], ["a", "a", "b", "b"]) == pytest.approx(-1.0)


@pytest.mark.parametrize(
    ("values", "clusters"),
    [([], []), ([1, 0], ["a", "a"]), ([0.1, 0.1, 0.1], [1, 1, 2]), ([NAN, 1.0], [1, 2])],
    ids=["empty", "one patient", "constant", "missing"],
)
def test_effects_without_variation_are_undefined(values, clusters) -> None:
    assert design_effect(values, clusters) is None
    assert intraclass_correlation(values, clusters) is None


def test_one_row_per_patient_has_no_intraclass_correlation() -> None:
    assert intraclass_correlation([1, 2, 3], None) is None


def test_unpaired_agrees_with_the_textbook() -> None:
    # Fleiss: 0.5 against 0.6 at 5% with 80% takes (1.95996 * sqrt(0.495) + 0.84162 * sqrt(0.49))² / 0.01 = 387.3 each.
    assert minimum_detectable_difference(388, 388, 0.5, paired=False) == pytest.approx(0.1, abs=2e-4)
    # 0.9 against 0.8 takes (1.95996 * sqrt(0.255) + 0.84162 * sqrt(0.25))² / 0.01 = 198.96.
    assert minimum_detectable_difference(199, 199, 0.9, paired=False) == pytest.approx(0.1, abs=2e-4)
    # From 0 on: 1.95996 * sqrt(2r(1-r)) + 0.84162 * sqrt(s(1-s)) = s * sqrt(m) with s = 0.1, r = 0.05: m = 73.37.
    assert minimum_detectable_difference(73, 73, 0.0, paired=False) == pytest.approx(0.1, abs=6e-4)
    assert minimum_detectable_difference(2, 2, 0.5, paired=False) is None


def test_paired_agrees_with_the_textbook() -> None:
    # Connor: discordance 0.3 and difference 0.1 take (1.95996 * sqrt(0.3) + 0.84162 * sqrt(0.29))² / 0.01 = 233.09.
    exact = (1.959964 * math.sqrt(0.3) + 0.8416212 * math.sqrt(0.29)) ** 2 / 0.01
    assert exact == pytest.approx(233.09, abs=0.01)
    found = minimum_detectable_difference(233, 233, 0.7, discordance=0.3)
    assert found == pytest.approx(0.1, abs=1e-4)
    # Models that err independently: 2 * 0.7 * 0.3.
    independent = minimum_detectable_difference(233, 233, 0.7, discordance=0.42)
    assert minimum_detectable_difference(233, 233, 0.7) == pytest.approx(independent, rel=1e-12)


@pytest.mark.parametrize(("n", "share", "power"), [(50, 0.4, 0.8), (300, 0.1, 0.9), (2000, 0.02, 0.5)])
def test_the_solution_for_the_difference_solves_the_formula_for_the_number(n, share, power) -> None:
    from scipy.stats import norm

    d = minimum_detectable_difference(n, n, 0.5, discordance=share, power=power)

    z_a, z_b = norm.isf(0.025), norm.ppf(power)
    assert (z_a * math.sqrt(share) + z_b * math.sqrt(share - d * d)) ** 2 / d**2 == pytest.approx(n)


def test_clustering_raises_the_detectable_difference() -> None:
    # 1,000 rows of 250 patients, icc 1/3: design effect 1 + 3/3 = 2, as 500 rows.
    for paired in (True, False):
        alone = minimum_detectable_difference(500, 500, 0.6, paired=paired)
        assert minimum_detectable_difference(1000, 250, 0.6, icc=1 / 3, paired=paired) == pytest.approx(alone)
        assert minimum_detectable_difference(1000, 250, 0.6, effect=2.0, paired=paired) == pytest.approx(
            alone
        )


@pytest.mark.parametrize(("n", "patients", "share", "icc"), [(400, 400, 0.3, 0.0), (600, 150, 0.3, 0.36)])
def test_a_difference_of_that_size_is_found_as_often_as_stated(n, patients, share, icc) -> None:
    d = minimum_detectable_difference(n, patients, 0.5, icc=icc, discordance=share)
    draw = np.random.default_rng(5)
    owner = np.repeat(np.arange(patients), n // patients)
    chances = [(share - d) / 2, 1 - share, (share + d) / 2]
    found = 0
    for repetition in range(400):
        # A row is its patient's common draw with probability sqrt(icc), else its own: rows correlate by icc.
        common = draw.choice([-1, 0, 1], patients, p=chances)[owner]
        own = draw.choice([-1, 0, 1], n, p=chances)
        gap = np.where(draw.random(n) < math.sqrt(icc), common, own)
        a, b = (gap > 0).astype(float), (gap < 0).astype(float)
        found += paired_difference(a, b, owner, replicates=300, seed=repetition).p <= 0.05
    assert found / 400 == pytest.approx(0.8, abs=0.06)  # three standard errors


def test_no_difference_is_detectable_with_too_few_rows() -> None:
    assert minimum_detectable_difference(3, 3, 0.5) is None
    assert minimum_detectable_difference(100, 100, 1.0) is None  # perfect models do not disagree
    assert minimum_detectable_difference(1, 1, 0.5) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"clusters": 0}, "clusters"),
        ({"clusters": 101}, "clusters"),
        ({"p": 1.1}, "accuracy"),
        ({"alpha": 0.0}, "alpha"),
        ({"power": 0.4}, "power"),
        ({"discordance": 2.0}, "discordance"),
        ({"icc": -0.5, "clusters": 10}, "design effect"),
    ],
)
def test_errors_name_the_argument(change, words) -> None:
    with pytest.raises(CarinaError, match=words):
        minimum_detectable_difference(**{"n": 100, "clusters": 100, "p": 0.5, **change})


def test_each_row_has_one_value() -> None:
    with pytest.raises(CarinaError, match=r"values: .* found 2"):
        design_effect([[1, 2], [3, 4]], None)

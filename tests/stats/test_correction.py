import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from carina.stats import benjamini_hochberg, holm
from carina.store.errors import CarinaError

NAN = float("nan")


def test_holm_equals_values_worked_out_by_hand() -> None:
    # In order 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, 0.04, and the last may not be below 0.06.
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([0.6, 0.5]), [1.0, 1.0])
    np.testing.assert_allclose(holm([0.02, 0.02, 0.02]), [0.06, 0.06, 0.06])


def test_benjamini_hochberg_equals_values_worked_out_by_hand() -> None:
    # In order 0.005, 0.01, 0.03, 0.04 times 4/1, 4/2, 4/3, 4/4: 0.02, 0.02, 0.04, 0.04.
    np.testing.assert_allclose(benjamini_hochberg([0.01, 0.04, 0.03, 0.005]), [0.02, 0.04, 0.04, 0.02])
    # 0.01 * 3, 0.012 * 3/2 = 0.018, 0.9: the first may not be above the second.
    np.testing.assert_allclose(benjamini_hochberg([0.01, 0.012, 0.9]), [0.018, 0.018, 0.9])


shares = st.lists(st.floats(0, 1), max_size=20)


@given(shares)
def test_benjamini_hochberg_is_that_of_scipy(p) -> None:
    np.testing.assert_allclose(benjamini_hochberg(p), false_discovery_control(p) if p else [], rtol=1e-12)


@given(shares, st.floats(0.001, 0.999))
def test_holm_rejects_the_hypotheses_that_stepping_down_rejects(p, alpha) -> None:
    rejected = [False] * len(p)
    for step, place in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        if (len(p) - step) * p[place] > alpha:
            break
        rejected[place] = True

    assert (holm(p) <= alpha).tolist() == rejected


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_undefined_p_values_stay_and_do_not_count(adjust) -> None:
    with_holes = adjust([0.01, None, 0.04, NAN])

    np.testing.assert_array_equal(np.isnan(with_holes), [False, True, False, True])
    np.testing.assert_array_equal(with_holes[[0, 2]], adjust([0.01, 0.04]))
    assert adjust([]).shape == (0,)


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_the_input_is_not_changed_and_invalid_p_values_are_refused(adjust) -> None:
    given_values = np.array([0.5, 0.01])
    adjust(given_values)
    np.testing.assert_array_equal(given_values, [0.5, 0.01])
    with pytest.raises(CarinaError, match=r"p: .* from 0 to 1"):
        adjust([0.1, 1.2])
    with pytest.raises(CarinaError, match=r"p: .* 2 dimensions"):
        adjust([[0.1]])

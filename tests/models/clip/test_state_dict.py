"""Weights put into modules, key by key."""

from pathlib import Path

import pytest

from carina.store.errors import CarinaError

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from carina.models.clip.state_dict import Source, Weights, freeze, map_same_names, use_one_thread  # noqa: E402

FILE = Path("some.safetensors")


def linear():
    return torch.nn.Linear(2, 3, bias=False)


def test_a_source_takes_its_part():
    packed = torch.arange(12.0).reshape(6, 2)
    assert Source("x", part=1).take(packed).tolist() == [[4, 5], [6, 7]]
    assert Source("x", part=1, parts=2).take(packed).tolist() == [[6, 7], [8, 9], [10, 11]]
    assert Source("x", part=2, transposed=True).take(packed).tolist() == [[8, 10], [9, 11]]
    assert Source("x", lead=2).take(packed[None, None]).tolist() == packed.tolist()


def test_weights_that_no_module_uses_are_refused():
    matrix = torch.arange(6.0).reshape(3, 2)
    weights = Weights(FILE, {"head.weight": matrix, "extra": matrix, "a.position_ids": torch.zeros(1)})
    module = linear()
    weights.fill(module, map_same_names(module, "head."))
    assert torch.equal(module.weight, matrix)
    with pytest.raises(CarinaError, match=r"some\.safetensors: 1 weights .*first extra"):
        weights.close()
    weights.take("extra")
    weights.close()


def test_an_error_about_a_shape_names_both_shapes():
    weights = Weights(FILE, {"head.weight": torch.zeros(2, 3), "places": torch.zeros(2, 5)})
    with pytest.raises(
        CarinaError,
        match=r"weight head\.weight has the shape \(2, 3\); expected \(3, 2\) for weight",
    ):
        weights.fill(linear(), {"weight": Source("head.weight")})
    with pytest.raises(CarinaError, match=r"weight places has the shape \(2, 5\)"):
        weights.fill(linear(), {"weight": Source("places", lead=1)})
    with pytest.raises(CarinaError, match=r"weight places has the shape \(2, 5\)"):
        weights.fill(linear(), {"weight": Source("places", part=2)})
    deep = Weights(FILE, {"deep": torch.zeros(1, 2, 3)})
    with pytest.raises(CarinaError, match=r"weight deep has the shape \(1, 2, 3\)"):
        deep.fill(linear(), {"weight": Source("deep", transposed=True)})


def test_a_shape_is_asked_for_with_its_axes():
    weights = Weights(FILE, {"conv": torch.zeros(4, 3, 2, 2), "none": torch.zeros(0, 3)})
    assert weights.shape("conv", 4) == (4, 3, 2, 2)
    for key, axes, shape in (("conv", 2, r"\(4, 3, 2, 2\)"), ("none", 2, r"\(0, 3\)")):
        with pytest.raises(
            CarinaError,
            match=rf"weight {key} has the shape {shape}; expected {axes} axes, none of them empty",
        ):
            weights.shape(key, axes)
    with pytest.raises(CarinaError, match="weight other is missing"):
        weights.shape("other", 1)


def test_a_number_may_have_axes_around_it_but_no_other_beside_it():
    weights = Weights(
        FILE, {"plain": torch.tensor(1.5), "packed": torch.full((1, 1), 1.5), "two": torch.zeros(2)}
    )
    for key in ("plain", "packed"):
        assert weights.number(key).shape == ()
        assert weights.number(key).item() == 1.5
    with pytest.raises(CarinaError, match=r"weight two has the shape \(2,\); expected a single number"):
        weights.number("two")


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_weights_with_nan_or_infinity_are_refused(value):
    odd = torch.tensor([[1.0, 2.0], [-value, value]], dtype=torch.float16)
    weights = Weights(FILE, {"odd": odd, "whole": torch.tensor([1, 2]), "empty": torch.zeros(0)})
    with pytest.raises(
        CarinaError, match=r"some\.safetensors: weight odd holds NaN or infinity; expected finite"
    ):
        weights.take("odd")
    assert weights.take("whole").tolist() == [1, 2]
    assert weights.take("empty").tolist() == []
    # What nothing is computed with may be anything.
    weights.close("odd")


def test_a_prefix_is_there_where_anything_is_behind_it():
    weights = Weights(FILE, {"text.proj.weight": torch.zeros(1)})
    assert weights.has("text.")
    assert not weights.has("visual.")


def test_a_map_that_is_not_of_the_module_is_a_fault_of_ours():
    weights = Weights(FILE, {"x": torch.zeros(3, 2)})
    with pytest.raises(ValueError, match="Linear: weight weight is not in both"):
        weights.fill(linear(), {})
    with pytest.raises(ValueError, match="Linear: weight more is not in both"):
        weights.fill(linear(), {"weight": Source("x"), "more": Source("x")})


def test_counters_of_norms_are_left_as_they_are():
    norm = torch.nn.BatchNorm1d(2)
    keys = map_same_names(norm, "bn.")
    assert sorted(keys) == ["bias", "running_mean", "running_var", "weight"]
    weights = Weights(FILE, {source.key: torch.full((2,), 7.0) for source in keys.values()})
    weights.fill(norm, keys)
    assert norm.running_var.tolist() == [7, 7]
    weights.close()


def test_blocks_are_counted_by_their_numbers():
    keys = ["t.0.a", "t.0.b", "t.1.a", "t.10.a", "other.3.a"]
    weights = Weights(FILE, dict.fromkeys(keys, torch.zeros(1)))
    assert weights.count(r"t\.(\d+)\..*") == 3
    assert weights.count(r"u\.(\d+)\..*") == 0


def test_a_frozen_module_neither_learns_nor_drops():
    module = freeze(torch.nn.Sequential(linear(), torch.nn.Dropout(0.5)))
    assert not module.training
    assert not any(parameter.requires_grad for parameter in module.parameters())


def test_one_thread_is_for_the_while():
    before, inside = torch.get_num_threads(), []

    def fail():
        with use_one_thread():
            inside.append(torch.get_num_threads())
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert inside == [1]
    assert torch.get_num_threads() == before

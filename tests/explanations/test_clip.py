"""Models with weights through the whole command: tiny ones, in the published layouts."""

import msgspec
import numpy as np
import pytest
from tests.explanations.test_map_parts import asked, bench  # noqa: F401 - a fixture
from typer.testing import CliRunner

from carina.cases import Provenance, open_benchmark, write_benchmark
from carina.cli import app
from carina.explanations.clip import open_clip_or_ensemble
from carina.explanations.map_parts import MapOptions, make_maps
from carina.explanations.maps import open_maps
from carina.store.errors import CarinaError


@pytest.fixture
def folder(weights, tmp_path):
    def saved(kind, name="weights"):
        return f"{weights.NAMES[kind]}:{weights.save(kind, tmp_path / name)}"

    return saved


@pytest.fixture
def pneumonia(bench, tmp_path):  # noqa: F811
    """Probes of a finding that every model knows."""
    cases = [msgspec.structs.replace(case, target="pneumonia") for case in bench][:6]
    write_benchmark(tmp_path / "bench", cases, Provenance(command="test", image_root=str(bench.directory)))
    return open_benchmark(tmp_path / "bench")


@pytest.mark.parametrize("kind", ["biomedclip", "carzero"])
def test_a_model_is_explained_by_its_own_method_whatever_the_batch(pneumonia, folder, tmp_path, kind):
    model = folder(kind)
    make_maps(pneumonia, model, tmp_path / "run", MapOptions())
    maps = list(open_maps(tmp_path / "run"))
    assert [one.id for one in maps] == [f"g{n:02}" for n in range(6)]
    explainer = open_clip_or_ensemble(model, None, {}, seed=0)
    assert explainer.method == {"biomedclip": "similarity", "carzero": "cross-attention"}[kind]
    for case, one in zip(pneumonia, maps, strict=True):
        image = pneumonia.pixels(case.images[0])
        (alone,) = explainer.explain([asked(image=image, target="pneumonia")])
        np.testing.assert_allclose(one.values, alone.values, atol=1e-3 * np.ptp(alone.values) + 1e-6)
        assert one.score == pytest.approx(alone.score, abs=1e-5)
        assert one.frame == alone.frame == explainer.model.frame(*image.shape)
        prompts = explainer.model.prompts("pneumonia")
        assert (one.positive, one.negative) == (prompts.positive, prompts.negative)


def test_results_are_in_the_order_of_the_probes(folder):
    explainer = open_clip_or_ensemble(folder("clip"), "similarity", {}, seed=0)
    chance = np.random.default_rng(0)
    image = chance.integers(0, 255, (40, 60), np.uint8)
    questions = [asked(image=image, target=target) for target in ("mass", "nodule", "mass")]
    first, second, third = explainer.explain(questions)
    np.testing.assert_allclose(first.values, third.values, atol=1e-6)
    assert np.abs(first.values - second.values).max() > 1e-4
    # A sentence of a report stands for itself.
    (said,) = explainer.explain([asked(image=image, target="mass").__class__(
        case="c", patient=None, target="mass", phrase="a large mass", image=image, truth=None, lungs=None
    )])  # fmt: skip
    assert (said.positive, said.negative) == (("a large mass",), ())


def test_settings_hold_everything_that_decides_the_maps(pneumonia, folder, tmp_path):
    model = folder("biomedclip")
    make_maps(pneumonia, model, tmp_path / "run", MapOptions(method="gem", method_options={"depth": "3"}))
    said = open_maps(tmp_path / "run").manifest.options
    assert (said["model"], said["method"]) == ("biomedclip:weights", "gem")
    assert said["settings"]["options"]["depth"] == 3
    assert len(said["settings"]["weights"]) == 64
    with pytest.raises(CarinaError, match="made in another way"):
        make_maps(pneumonia, model, tmp_path / "run", MapOptions(method="gem"))


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("clip", {"method": "saliency"}, "Known: .*similarity"),
        ("clip", {"method": "cross-attention"}, "cannot be explained by cross-attention"),
        ("clip", {"method": "similarity", "method_options": {"depth": 1}}, "unknown option 'depth'"),
    ],
)
def test_an_unsuitable_method_is_refused_before_anything_is_written(  # noqa: PLR0917
    pneumonia, folder, tmp_path, kind, options, said
):
    with pytest.raises(CarinaError, match=said):
        make_maps(pneumonia, folder(kind), tmp_path / "run", MapOptions(**options))
    assert not (tmp_path / "run").exists()


def test_two_workers_and_the_command_line(pneumonia, folder, tmp_path):
    model = folder("medclip-resnet")
    make_maps(pneumonia, model, tmp_path / "one", MapOptions(method="grad-cam"))
    result = CliRunner().invoke(
        app,
        ["explain", str(pneumonia.directory), "--model", model, "--method", "grad-cam", "-o",
         str(tmp_path / "two"), "--workers", "2", "--no-controls"],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    for path in sorted((tmp_path / "one" / "maps").iterdir()):
        assert path.read_bytes() == (tmp_path / "two" / "maps" / path.name).read_bytes()


def test_several_checkpoints_of_one_model_are_explained_together(pneumonia, weights, tmp_path):
    """The mean of their maps, and the logit of the mean of their probabilities, as CheXzero is published."""
    members = []
    for seed in (0, 1):
        weights.save("chexzero", tmp_path / "several", seed=seed)
        members.append(tmp_path / "several" / f"best_{seed}.safetensors")
        (tmp_path / "several" / "model.safetensors").rename(members[-1])
    model = f"chexzero:{tmp_path / 'several'}"
    make_maps(pneumonia, model, tmp_path / "run", MapOptions())
    apart = [open_clip_or_ensemble(f"chexzero:{file}", None, {}, seed=0) for file in members]
    said = open_maps(tmp_path / "run").manifest.options
    assert said["model"] == "chexzero:several"
    assert [one["name"] for one in said["settings"]["members"]] == [
        "chexzero:several/best_0",
        "chexzero:several/best_1",
    ]
    for case, one in zip(pneumonia, open_maps(tmp_path / "run"), strict=True):
        image = pneumonia.pixels(case.images[0])
        first, second = (each.explain([asked(image=image, target="pneumonia")])[0] for each in apart)
        mean = (first.values + second.values) / 2
        np.testing.assert_allclose(one.values, mean, atol=1e-3 * np.ptp(mean) + 1e-6)
        chances = [1 / (1 + np.exp(each.against - each.score)) for each in (first, second)]
        assert chances[0] != pytest.approx(chances[1], abs=1e-6)
        assert 1 / (1 + np.exp(-one.recognised)) == pytest.approx(np.mean(chances), abs=1e-5)
    out = tmp_path / "other"
    result = CliRunner().invoke(
        app, ["explain", str(pneumonia.directory), "-m", model, "-o", str(out), "--check", "1"]
    )
    assert result.exit_code == 2
    assert "expected one checkpoint" in " ".join(result.output.split())
    assert not out.exists()


def test_checkpoints_with_different_grids_are_refused(weights, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = weights.save("chexzero", tmp_path / "mixed")
    state = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    places = "visual.positional_embedding"
    side = round((len(state[places]) - 1) ** 0.5) + 1
    state[places] = state[places][:1].repeat(1 + side**2, 1)
    save_file(state, folder / "b.safetensors")
    with pytest.raises(
        CarinaError, match=r"mixed/b: expected checkpoints of one model, .*found \(5, 5\) on 40"
    ):
        open_clip_or_ensemble(f"chexzero:{folder}", None, {}, seed=0)

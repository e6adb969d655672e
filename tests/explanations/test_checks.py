"""Checks of a run's maps: which are chosen, that figures are those of the library, and what the command writes."""

import json
from dataclasses import asdict, dataclass, replace

import cv2
import msgspec
import numpy as np
import polars as pl
import pytest
from tests.explanations.test_map_parts import asked, bench  # noqa: F401 - a fixture
from typer.testing import CliRunner

from carina.cases import Provenance, open_benchmark, write_benchmark
from carina.cli import app
from carina.explanations import checks as checking
from carina.explanations.checks import check_maps, require_weights, select_maps_to_check, write_checks
from carina.explanations.clip import ClipExplainer, open_clip_or_ensemble
from carina.explanations.controls import collect_mean_regions, control_map
from carina.explanations.faithfulness import FaithfulnessOptions, faithfulness
from carina.explanations.map_parts import MapOptions, make_maps
from carina.explanations.maps import LocalisationMap, open_maps, pack_grid, store_frame
from carina.explanations.methods import METHODS
from carina.explanations.sanity import compare_maps, randomise_weights, weights_by_stage
from carina.ground.facts import GroundCaseFacts
from carina.models.frame import Frame
from carina.stats import mean_interval
from carina.store.errors import CarinaError

ALIKE = ("pearson", "spearman", "ssim")
FEW = FaithfulnessOptions(steps=3)


def some(bench, path, names):  # noqa: F811
    """A benchmark of some of the probes."""
    write_benchmark(
        path, list(bench.pick(names)), Provenance(command="test", image_root=str(bench.directory))
    )
    return open_benchmark(path)


@pytest.fixture
def run(bench, weights, tmp_path):  # noqa: F811
    """Six probes of masses and nodules, their maps and the model that made them.

    Even probes are of masses, odd ones of nodules; the findings of 0, 1, 4 and 5 are there.
    """
    probes = some(bench, tmp_path / "bench", [f"g{n:02}" for n in range(6)])
    model = f"clip:{weights.save('clip', tmp_path / 'weights')}"
    make_maps(probes, model, tmp_path / "run", MapOptions())
    return probes, open_maps(tmp_path / "run"), open_clip_or_ensemble(model, None, {}, seed=0)


def a_map(name, target, *, present):
    return LocalisationMap(
        id=name, study=name, patient=None, split=None, target=target, present=present, positive=(target,),
        placed=store_frame(Frame.stretched(8, 8, side=8)), rows=2, columns=2,
        **pack_grid(np.eye(2, dtype=np.float32))._asdict(),
    )  # fmt: skip


def test_maps_to_check_alternate_findings_with_present_ones_first():
    maps = [
        a_map(name, target, present=there)
        for name, target, there in (
            ("f", "nodule", True), ("a", "mass", False), ("c", "mass", True), ("b", "mass", True),
            ("d", "mass", True), ("e", "nodule", False),
        )
    ]  # fmt: skip
    for given in (maps, maps[::-1]):
        assert [one.id for one in select_maps_to_check(given, 99)] == ["b", "f", "c", "d", "a", "e"]
        assert [one.id for one in select_maps_to_check(given, 3)] == ["b", "f", "c"]


def test_check_values_equal_those_of_the_functions(run, tiny):
    bench, maps, explainer = run  # noqa: F811
    found = check_maps(bench, maps, explainer, 5, options=FEW, seed=3)
    rows = {row["case"]: row for row in found.rows.to_dicts()}
    # The fifth is of a finding that is not there.
    assert list(rows) == ["g00", "g01", "g04", "g05", "g02"]
    assert [row["present"] for row in rows.values()] == [True] * 4 + [False]
    assert [row["other"] for row in rows.values()] == ["nodule", "mass", "nodule", "mass", "nodule"]
    assert [row["absent"] for row in rows.values()] == ["g02", "g03", None, None, None]
    kept = {one.id: one for one in maps}
    model, by = explainer.model, explainer.explanation_method
    for name, row in rows.items():
        (case,) = bench.pick([name])
        pixels = tiny.torch.from_numpy(model.prepare(bench.pixels(case.images[0])))[None]
        own, other = model.prompts(row["finding"]), model.prompts(row["other"])

        def explained(prompts, pixels=pixels):
            return by.maps(model, pixels, prompts, explainer.options)

        values = kept[name].values
        random = control_map(
            "random",
            asked(case=name),
            kept[name].frame,
            values.shape,
            mean_regions=collect_mean_regions([]),
            seed=3,
        )
        for ending, shown in (("", values), (".random", random)):
            areas = faithfulness(model, pixels, own, shown[None], FEW)
            assert row[f"deletion{ending}"] == pytest.approx(areas.deletion_area[0], abs=1e-6)
            assert row[f"insertion{ending}"] == pytest.approx(areas.insertion_area[0], abs=1e-6)
        swap = compare_maps(values[None], explained(other))
        cascade = randomise_weights(model, lambda own=own, explained=explained: explained(own), seed=3)
        for part in ALIKE:
            assert row[f"swap.{part}"] == pytest.approx(getattr(swap, part)[0], abs=1e-4)
            *steps, whole = [getattr(step.agreement, part)[0] for step in cascade]
            assert row[f"weights.whole.{part}"] == pytest.approx(whole, abs=1e-4)
            names = list(weights_by_stage(model.tower))[:-1]
            assert [row[f"weights.{stage}.{part}"] for stage in names] == pytest.approx(steps, abs=1e-4)
    # Maps of findings that are not there are compared one to one with those of findings that are.
    for name, absent in (("g00", "g02"), ("g01", "g03")):
        assert rows[name]["peak.present"] == pytest.approx(kept[name].values.max())
        assert rows[name]["peak.absent"] == pytest.approx(kept[absent].values.max())
        assert rows[name]["spread.present"] == pytest.approx(kept[name].values.std(), rel=1e-5)
        assert rows[name]["spread.absent"] == pytest.approx(kept[absent].values.std(), rel=1e-5)
    assert found.rows["peak.present"].null_count() == found.rows["spread.absent"].null_count() == 3


def test_means_are_by_patient(run):
    bench, maps, explainer = run  # noqa: F811
    found = check_maps(bench, maps, explainer, 4, options=FEW)
    assert (found.checks.probes, found.checks.present, found.checks.shuffled) == (4, 4, "cascading")
    assert found.checks.maps == maps.manifest.fingerprint
    assert found.checks.options == asdict(FEW)
    figures = {figure.name: figure.mean for figure in found.checks.figures}
    # g00 and g01 are of p0, g04 and g05 of p2; the absent g02 and g03 are both of p1.
    expected = mean_interval(found.rows["insertion"].to_numpy(), ["p0", "p0", "p2", "p2"])
    assert figures["insertion"] == expected
    assert (expected.n, expected.clusters) == (4, 2)
    assert (figures["peak.absent"].n, figures["peak.absent"].clusters) == (2, 1)
    assert figures["peak.absent"].value == pytest.approx(
        np.mean([kept.values.max() for kept in maps.pick(["g02", "g03"])])
    )


def test_costly_methods_shuffle_all_weights_at_once_and_one_finding_has_no_swap(
    bench,  # noqa: F811
    run,
    monkeypatch,
    tmp_path,
):
    *_, explainer = run
    monkeypatch.setattr(checking, "MAX_CASCADE_PASSES", 0)
    masses = some(bench, tmp_path / "masses", ["g00", "g02"])
    make_maps(masses, f"clip:{tmp_path / 'weights'}", tmp_path / "mass maps", MapOptions())
    found = check_maps(masses, open_maps(tmp_path / "mass maps"), explainer, 9, options=FEW)
    figures = {figure.name: figure.mean for figure in found.checks.figures}
    assert [name for name in figures if name.startswith("weights.")] == [f"weights.whole.{a}" for a in ALIKE]
    assert found.checks.shuffled == "whole"
    assert figures["swap.pearson"].value is None
    assert found.rows["other"].to_list() == [None, None]
    assert figures["insertion"].n == 2


def test_a_sentence_is_swapped_for_one_of_another_finding(bench, run, tmp_path):  # noqa: F811
    *_, explainer = run
    said = {"g00": "a large mass", "g01": "a small nodule"}
    cases = [
        msgspec.structs.replace(case, facts=(*case.facts, *GroundCaseFacts(phrase=said[case.id]).rows()))
        for case in bench.pick(said)
    ]
    write_benchmark(tmp_path / "said", cases, Provenance(command="test", image_root=str(bench.directory)))
    probes = open_benchmark(tmp_path / "said")
    make_maps(probes, f"clip:{tmp_path / 'weights'}", tmp_path / "maps", MapOptions())
    maps = open_maps(tmp_path / "maps")
    found = check_maps(probes, maps, explainer, 1, options=FEW)
    (kept,) = maps.pick(["g00"])
    image = bench.pixels(cases[0].images[0])
    (other,) = explainer.explain([replace(asked(image=image), phrase="a small nodule")])
    assert kept.positive == ("a large mass",)
    expected = compare_maps(kept.values[None], other.values[None]).pearson[0]
    assert expected < 0.999
    assert found.rows["swap.pearson"].to_list() == pytest.approx([expected], abs=1e-4)


@pytest.fixture
def bright(tiny):
    """A model that looks for brightness, whatever is asked for."""

    @dataclass(frozen=True)
    class Bright(tiny.TinyModel):
        def prepare(self, image):
            small = cv2.resize(image, (self.side, self.side), interpolation=cv2.INTER_AREA)
            return np.stack([small / np.float32(255)] * 3).astype(np.float32)

        def prompts(self, finding):
            del finding
            return tiny.BRIGHT

    made = tiny.seeing("mean")
    model = Bright(**{name: getattr(made, name) for name in made.__dataclass_fields__})
    return ClipExplainer(model, METHODS["similarity"], METHODS["similarity"].options(sigma=0))


def test_a_map_of_brightness_is_faithful_to_a_model_of_brightness(bench, bright, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr("carina.explanations.map_parts.open_explainer", lambda *_args, **_named: bright)
    probes = some(bench, tmp_path / "bench", [f"g{n:02}" for n in range(8)])
    make_maps(probes, "bright", tmp_path / "run", MapOptions())
    found = check_maps(probes, open_maps(tmp_path / "run"), bright, 4)
    rows = found.rows
    assert (rows["insertion"] > rows["insertion.random"]).all()
    assert (rows["deletion"] < rows["deletion.random"]).all()
    # It is deaf: the text does not matter. And its map is flat where there is nothing.
    assert rows["swap.pearson"].to_list() == pytest.approx([1.0] * 4, abs=1e-4)
    assert (rows["spread.present"] > 10 * rows["spread.absent"]).all()


def test_weights_without_a_readable_tower_are_not_shuffled(bench, bright, tmp_path, monkeypatch):  # noqa: F811
    hidden = ClipExplainer(bright.model.but(tower=None), bright.explanation_method, bright.options)
    monkeypatch.setattr("carina.explanations.map_parts.open_explainer", lambda *_args, **_named: hidden)
    probes = some(bench, tmp_path / "bench", ["g00", "g01"])
    make_maps(probes, "bright", tmp_path / "run", MapOptions())
    found = check_maps(probes, open_maps(tmp_path / "run"), hidden, 1, options=FEW)
    assert found.checks.shuffled is None
    assert not [name for name in found.rows.columns if name.startswith("weights.")]
    write_checks(tmp_path / "run", found)
    assert pl.read_parquet(tmp_path / "run" / "checks.parquet").equals(found.rows)


def test_the_command_writes_and_prints_checks(bench, weights, tmp_path):  # noqa: F811
    probes = some(bench, tmp_path / "bench", [f"g{n:02}" for n in range(4)])
    command = [
        "explain", str(probes.directory), "--model", f"clip:{weights.save('clip', tmp_path / 'weights')}",
        "--method", "grad-cam", "-o", str(tmp_path / "run"), "--workers", "1", "--no-controls", "--check", "3",
    ]  # fmt: skip
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    table = lines[lines.index(["check", "mean", "n"]) + 1 :]
    said = json.loads((tmp_path / "run" / "checks.json").read_bytes())
    written = {figure["name"]: figure["mean"] for figure in said["figures"]}
    assert [name for name, *_ in table] == [
        "deletion", "deletion.random", "insertion", "insertion.random", *(f"swap.{a}" for a in ALIKE),
        "peak.present", "peak.absent", "spread.present", "spread.absent", *(f"weights.whole.{a}" for a in ALIKE),
    ]  # fmt: skip
    assert {name: n for name, _, n in table} == {name: str(written[name]["n"]) for name, _, _ in table}
    shown = next(mean for name, mean, _ in table if name == "insertion")
    assert shown.startswith(f"{written['insertion']['value']:.3f} (")
    assert said["options"] == asdict(FaithfulnessOptions())
    assert pl.read_parquet(tmp_path / "run" / "checks.parquet")["case"].to_list() == ["g00", "g01", "g02"]
    # Again, for machines: the same figures.
    again = CliRunner().invoke(app, [*command, "--json"])
    assert json.loads(again.stdout)["checks"] == said
    other = ["--check-option", "imputation=noisy-linear", "--check-option", "steps=4"]
    fewer = json.loads(CliRunner().invoke(app, [*command, *other, "--json"]).stdout)["checks"]
    assert fewer["options"] == asdict(FaithfulnessOptions(imputation="noisy-linear", steps=4))
    assert {one["name"]: one["mean"] for one in fewer["figures"]}["deletion"] != written["deletion"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ["--check", "2", "--check-option", "colour=1"],
            "checks: unknown option 'colour'",
        ),
        (["--check", "2", "--check-option", "kernel=4"], "expected an odd number of pixels, found 4"),
        (
            ["--check", "2", "--check-option", "imputation=black"],
            "checks, options: Invalid enum value 'black'",
        ),
        (["--check-option", "steps=4"], "check_options"),
    ],
)
def test_options_of_checks_are_checked_before_anything_is_made(bench, tmp_path, given, said):  # noqa: F811
    out = tmp_path / "run"
    result = CliRunner().invoke(
        app, ["explain", str(bench.directory), "-m", "clip:weights", "-o", str(out), *given]
    )
    assert result.exit_code != 0
    assert said in " ".join(result.output.split()) + str(result.exception)
    assert not out.exists()


@pytest.mark.parametrize("model", ["builtin/untrained", "builtin/asymmetry", "control/centre", "hf:weights"])
def test_checks_need_a_model_with_weights(bench, tmp_path, model):  # noqa: F811
    with pytest.raises(CarinaError, match="checks need a CLIP-style model with weights"):
        require_weights(model)
    out = tmp_path / "run"
    result = CliRunner().invoke(
        app, ["explain", str(bench.directory), "-m", model, "-o", str(out), "--check", "2"]
    )
    assert result.exit_code != 0
    assert not out.exists()

"""`carina audit` on a sound benchmark on disk, and on broken ones."""

import json

import msgspec
import numpy as np
import pytest
from tests.audits.sound import benchmark
from tests.sources.chexpercept import published
from typer.testing import CliRunner

from carina.cases import Provenance, open_benchmark, write_benchmark
from carina.cli import app
from carina.studies import write_png

change = msgspec.structs.replace


@pytest.fixture(scope="module")
def sound():
    return benchmark(48)


def written(directory, cases, **options):
    """On disk, with an image for every case."""
    with_images = []
    for at, case in enumerate(cases):
        image = case.images[0]
        digest = write_png(directory / image.key, np.full((512, 512), at, np.uint8))
        with_images.append(change(case, images=(change(image, sha256=digest),)))
    write_benchmark(directory, with_images, Provenance(command="test", options=options))
    return directory


@pytest.fixture
def bench(tmp_path, sound):
    return written(tmp_path / "bench", sound, per_cell=16)


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


def test_a_sound_benchmark_passes(bench):
    result = run(bench)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split("\t") == ["status", "gate", "objections", "rate", "meaning"]
    assert {line.split("\t")[0] for line in lines[1:]} == {"✓ pass"}
    assert result.stderr.splitlines() == ["16 of 16 gates passed", str(bench / "audit" / "audit.html")]
    stored = json.loads((bench / "audit" / "audit.json").read_text())
    assert (stored["kind"], stored["status"], stored["cases"]) == ("carina/audit", "pass", 48)
    assert [gate["name"] for gate in stored["gates"]][:2] == ["case-integrity", "key-margins"]
    assert (
        "160 of 160 views"
        in next(gate for gate in stored["gates"] if gate["name"] == "image-files")["meaning"]
    )


def test_the_same_benchmark_gives_the_same_bytes(bench, tmp_path):
    for name in ("a", "b"):
        assert run(bench, "-o", tmp_path / name).exit_code == 0
    for name in ("audit.html", "audit.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_missing_and_a_changed_image_fail(bench):
    one, other, third = sorted(bench.glob("*.png"))[:3]
    one.unlink()
    other.write_bytes(third.read_bytes())
    result = run(bench)
    assert result.exit_code == 1
    assert f"image '{one.name}' is missing" in result.stdout
    assert f"image '{other.name}' has another checksum" in result.stdout
    assert "15 of 16 gates passed; 1 failed: image-files" in result.stderr
    assert run(bench, "--no-files").exit_code == 0


def test_an_image_key_too_long_for_a_path_fails_its_case_only(tmp_path, sound):
    directory = written(tmp_path / "bench", sound[:6])
    keys = ["k" * 300 + ".png", "deep/" * 1000 + "x.png"]
    cases = list(open_benchmark(directory))
    moved = [
        change(case, images=(change(case.images[0], key=key),), views=(), regions=(), steps=())
        for case, key in zip(cases, keys, strict=False)
    ]
    write_benchmark(directory, [*moved, *cases[2:]], Provenance(command="other"), replace=True)
    result = run(directory, "--json")
    files = next(
        gate for gate in json.loads(result.stdout)["audit"]["gates"] if gate["name"] == "image-files"
    )
    assert (files["count"], files["n"]) == (2, 6)
    assert [found["id"] for found in files["worst"]] == [case.id for case in moved]
    assert "a name of 304 bytes" in files["worst"][0]["what"]
    assert "File name too long" in files["worst"][1]["what"]


def test_images_in_another_directory_are_found_by_the_option(bench, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for image in bench.glob("*.png"):
        image.rename(elsewhere / image.name)
    result = run(bench, "--render", "5")
    assert result.exit_code == 1
    assert "No image was found" in result.stdout
    assert run(bench, "--images", elsewhere, "--render", "5").exit_code == 0


def test_a_view_that_cannot_be_rendered_fails(tmp_path, sound):
    view = sound[0].views[0]
    panel = change(
        view.panels[0], marks=(msgspec.convert({"x": 9, "y": 9, "colour": "mauve"}, type_of_mark()),)
    )
    cases = [change(sound[0], views=(change(view, panels=(panel,)), *sound[0].views[1:])), *sound[1:]]
    result = run(written(tmp_path / "bench", cases))
    assert result.exit_code == 1
    assert f"image-files: {sound[0].id}: view 'v1' cannot be rendered" in result.stdout


def type_of_mark():
    from carina.cases.model import Mark

    return Mark


def test_a_warning_fails_only_when_strict(tmp_path, sound):
    bench = written(tmp_path / "bench", sound, per_cell=20)
    (bench / "skipped.csv").write_text("study,target,stage,reason,detail\ns1,edema,4,zone on a cut,0.2\n")
    result = run(bench, "--no-files")
    assert result.exit_code == 0
    assert (
        "stratum-quotas: edema/LF: 16 of 20 cases; studies were skipped for: zone on a cut (1)"
        in result.stdout
    )
    assert run(bench, "--no-files", "--strict").exit_code == 1


def test_the_reasons_of_a_cell_come_from_the_report_of_its_build(tmp_path, sound):
    bench = written(tmp_path / "bench", sound, per_cell=20)
    (bench / "skipped.csv").write_text("study,target,reason,detail\ns1,edema,no room for edits,\n")
    cell = {"target": "edema", "wanted": 20, "built": 16, "candidates": 30}
    cells = [
        {**cell, "path": "LF", "reasons": {"looks like another finding": 3}},
        {**cell, "path": "RF", "reasons": {}},
        {**cell, "path": "RR", "reasons": {"no room for edits": 1}},
    ]
    (bench / "build.json").write_text(json.dumps({"studies": 60, "cells": cells}))
    printed = run(bench, "--no-files").stdout
    assert "edema/LF: 16 of 20 cases; studies were skipped for: looks like another finding (3)\n" in printed
    assert "edema/RF: 16 of 20 cases\n" in printed
    assert "edema/RR: 16 of 20 cases; studies were skipped for: no room for edits (1)\n" in printed
    (bench / "build.json").write_text('{"cells": 1}')
    result = run(bench, "--no-files")
    assert result.exit_code == 2
    assert "build.json: not the report of a build: " in result.stderr


def test_a_benchmark_without_a_case_fails(tmp_path):
    result = run(written(tmp_path / "bench", ()))
    assert result.exit_code == 1
    assert "1 failed: case-integrity" in result.stderr
    assert "The benchmark has no case" in result.stdout


def test_the_rules_in_the_manifest_are_applied(tmp_path, sound):
    strict = written(tmp_path / "strict", sound, rules={"revise_high": 0.6, "of another version": 1})
    result = run(strict, "--no-files")
    assert result.exit_code == 1
    assert "expected 0.55 to 0.6" in result.stdout
    wrong = written(tmp_path / "wrong", sound, rules={"revise_high": "x"})
    result = run(wrong, "--no-files")
    assert result.exit_code == 2
    assert "options.rules" in result.stderr


def test_json_is_one_document(bench, tmp_path):
    result = run(bench, "--json", "--no-files", "-o", tmp_path / "out")
    printed = json.loads(result.stdout)
    assert printed["json"] == str(tmp_path / "out" / "audit.json")
    assert printed["audit"] == json.loads((tmp_path / "out" / "audit.json").read_text())


def test_bad_input_exits_with_2(tmp_path, bench):
    assert run(tmp_path).exit_code == 2
    (tmp_path / "file").write_text("")
    result = run(bench, "-o", tmp_path / "file")
    assert result.exit_code == 2
    assert "file: is a file, expected a directory" in result.stderr


def test_the_page_holds_everything_and_escapes_what_comes_from_outside(tmp_path, sound):
    cases = [change(sound[0], id="<script>x</script>", study=sound[1].study), *sound[1:]]
    bench = written(tmp_path / "bench", cases)
    assert run(bench, "--no-files").exit_code == 1
    page = (bench / "audit" / "audit.html").read_text()
    assert page.count("<script") == 1  # the frame's own
    assert "&lt;script&gt;x" in page
    assert "http" not in page.replace("http-equiv", "")
    assert "✕" in page
    assert 'aria-label="1.000' in page or "<svg" in page


def test_the_leaks_of_a_published_bundle_are_reported(tmp_path):
    """Yes always first, file names that say "answer" and "fake", the path in every id."""
    records = {}
    for n in range(10):
        records[f"effusion_s{n}_positive_0"] = published.record(
            "RR", pair_id=f"s{n}_positive_0", dicom_id=f"d-{n}"
        )
        records[f"effusion_t{n}_negative_0"] = published.record(
            "LF", pair_id=f"t{n}_negative_0", dicom_id=f"e-{n}"
        )
    published.write_bundle(tmp_path / "bundle", records)
    runner = CliRunner()
    assert (
        runner.invoke(
            app, ["import", "chexpercept", str(tmp_path / "bundle"), "-o", str(tmp_path / "bench")]
        ).exit_code
        == 0
    )
    result = run(tmp_path / "bench", "--json")
    assert result.exit_code == 1
    gates = {gate["name"]: gate for gate in json.loads(result.stdout)["audit"]["gates"]}
    assert {name for name, gate in gates.items() if gate["status"] == "fail"} >= {
        "revealing-names",
        "constant-answers",
        "answer-position",
    }
    whats = " ".join(found["what"] for found in gates["revealing-names"]["worst"])
    assert "'negative'" in whats or "'positive'" in whats
    not_drawn = ("contour-overlap", "revision-points", "option-separation")
    assert {gates[name]["status"] for name in not_drawn} == {"not applicable"}
    assert gates["image-files"]["status"] == gates["path-steps"]["status"] == "pass"


def test_only_the_chosen_gates_run(bench):
    result = run(bench, "--gate", "answer-position", "--gate", "patient-overlap", "--json")
    names = [gate["name"] for gate in json.loads(result.stdout)["audit"]["gates"]]
    assert names == ["answer-position", "patient-overlap"]
    unknown = run(bench, "--gate", "answer-positions")
    assert unknown.exit_code == 2
    assert "answer-position" in " ".join(unknown.stderr.split())


def test_the_command_and_the_function_give_the_same_result(bench, tmp_path):
    from carina import audit

    result = audit(
        bench, tmp_path / "function", files=False, limits={"duplicate-cases": {"mask_overlap": 0.9}}
    )
    (tmp_path / "limits.yaml").write_text("duplicate-cases: {mask_overlap: 0.9}\n")
    printed = run(
        bench, "-o", tmp_path / "command", "--no-files", "--limits", tmp_path / "limits.yaml", "--json"
    )
    assert json.loads(printed.stdout)["audit"] == json.loads((result.path / "audit.json").read_text())
    assert result.passed
    assert result.page.read_bytes() == (tmp_path / "command" / "audit.html").read_bytes()
    frame = result.to_frame()
    assert frame["name"].to_list() == [gate.name for gate in result.gates]
    assert frame.filter(frame["name"] == "image-files")["status"].to_list() == ["not applicable"]
    assert "status='pass'" in repr(result)


def test_levels_of_the_wrong_order_are_refused(bench):
    result = run(bench, "--warn-level", "0.01", "--fail-level", "0.05")
    assert result.exit_code == 2
    assert "fail_level" in result.stderr

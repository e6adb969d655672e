"""Maps that others made, `files:DIR`: scored beside controls and compared in reports as those of models are."""

import csv
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from carina import build_ground, explain, make_phantoms, open_benchmark, open_map_run, report
from carina.cli import app
from carina.explanations.scoring import read_scoring
from carina.store.errors import CarinaError


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Probes, the maps of a model, and the same maps as files."""
    root = tmp_path_factory.mktemp("given")
    studies = make_phantoms(root / "studies", n=8, seed=2, size=64, workers=1)
    bench = build_ground(studies, root / "probes", workers=1)
    explain(bench, "builtin/asymmetry", root / "model", workers=1)
    maps = open_map_run(root / "model").maps
    (root / "files").mkdir()
    for case in bench:
        one = maps[case.id]
        np.savez(
            root / "files" / f"{Path(case.images[0].key).stem}_{case.target.replace(' ', '_')}_map.npz",
            map=one.values,
            prob=min(max(one.score, 0.0), 1.0),
        )
    return root


def summary(run):
    """Means by source, variant and group."""
    frame = pl.read_parquet(run / "summary.parquet")
    return {
        row[:5]: row[5]
        for row in frame.select("source", "variant", "level", "group", "average", "value").iter_rows()
    }


def test_the_same_maps_from_files_have_the_same_scores_and_controls(made, tmp_path):
    explain(
        made / "probes",
        f"files:{made / 'files'}",
        tmp_path / "run",
        options={"geometry": "whole"},
        workers=1,
    )
    of_files, of_model = summary(tmp_path / "run"), summary(made / "model")
    assert of_files.keys() == of_model.keys()
    assert {key[0] for key in of_files} >= {"control/uniform", "control/centre", "control/mean-region"}
    for key, value in of_files.items():
        # Maps are stored with 16 bits, so that few values change a little.
        assert (value is None) == (of_model[key] is None)
        assert value is None or value == pytest.approx(of_model[key], abs=0.02), key
    scoring = read_scoring(tmp_path / "run")
    assert (scoring.model, scoring.method) == ("files:files", "given")
    written = report([made / "model", tmp_path / "run"], tmp_path / "report", labels=["The model", "Others"])
    assert set(written.to_frame()["label"]) == {"The model", "Others"}
    assert "Others" in written.map_page.read_text()


def test_probes_without_a_file_are_listed_with_the_reason(made, tmp_path):
    (tmp_path / "some").mkdir()
    first, *_ = kept = sorted((made / "files").iterdir())
    for path in kept[1:]:
        (tmp_path / "some" / path.name).write_bytes(path.read_bytes())
    explain(
        made / "probes",
        f"files:{tmp_path / 'some'}",
        tmp_path / "run",
        options={"geometry": "whole"},
        workers=1,
    )
    with (tmp_path / "run" / "skipped.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    finding = first.stem.partition("_")[2].removesuffix("_map").replace("_", " ")
    assert row["reason"].startswith("no map file of image ")
    assert row["reason"].endswith(f" and finding {finding!r}")


def test_an_index_names_maps_whose_files_have_other_names(made, tmp_path):
    (tmp_path / "numbered").mkdir()
    rows = ["image,finding,map"]
    for number, case in enumerate(open_benchmark(made / "probes")):
        name = f"{Path(case.images[0].key).stem}_{case.target.replace(' ', '_')}_map.npz"
        (tmp_path / "numbered" / f"{number}.npz").write_bytes((made / "files" / name).read_bytes())
        rows.append(f"{case.images[0].key},{case.target},{number}.npz")
    index = tmp_path / "numbered" / "index.csv"
    index.write_text("\n".join(rows))
    options = {"geometry": "whole"}
    run = explain(
        made / "probes", f"files:{tmp_path / 'numbered'}", tmp_path / "run", options=options, workers=1
    )
    assert len(run.maps) == len(rows) - 1
    for text, message in (
        ("image,finding\na,b\n", "columns image, finding, map"),
        ("image,finding,map\na,b,nothing.npy\n", "line 2: 'nothing.npy' is not in"),
        ("image,finding,map\na,b,0.npz\na,b,1.npz\n", "line 3: .* have two maps"),
    ):
        index.write_text(text)
        with pytest.raises(CarinaError, match=message):
            explain(
                made / "probes",
                f"files:{tmp_path / 'numbered'}",
                tmp_path / "no",
                options=options,
                workers=1,
            )


def test_listed_maps_may_lie_in_folders_and_a_changed_one_is_another_set(made, tmp_path):
    """Findings are named as people write them: "Pleural Effusion" is "pleural effusion"."""
    folder = tmp_path / "listed"
    (folder / "sub").mkdir(parents=True)
    rows = ["image,finding,map"]
    for number, case in enumerate(open_benchmark(made / "probes")):
        name = f"{Path(case.images[0].key).stem}_{case.target.replace(' ', '_')}_map.npz"
        (folder / "sub" / f"{number}.npz").write_bytes((made / "files" / name).read_bytes())
        rows.append(f"{case.images[0].key},{case.target.title()},sub/{number}.npz")
    (folder / "index.csv").write_text("\n".join(rows))
    options = {"geometry": "whole"}
    line = (made / "probes", f"files:{folder}", tmp_path / "run")
    assert len(explain(*line, options=options, workers=1).maps) == len(rows) - 1
    (folder / "sub" / "0.npz").write_bytes((folder / "sub" / "1.npz").read_bytes())
    with pytest.raises(CarinaError):
        explain(*line, options=options, workers=1)


def test_files_that_cannot_be_told_apart_are_refused(made, tmp_path):
    (tmp_path / "twice").mkdir()
    path = next((made / "files").iterdir())
    (tmp_path / "twice" / path.name).write_bytes(path.read_bytes())
    (tmp_path / "twice" / path.name.replace("_map", "")).write_bytes(path.read_bytes())
    with pytest.raises(CarinaError, match="are of the same image and finding"):
        explain(made / "probes", f"files:{tmp_path / 'twice'}", tmp_path / "run", workers=1)
    (tmp_path / "none").mkdir()
    with pytest.raises(CarinaError, match="expected maps"):
        explain(made / "probes", f"files:{tmp_path / 'none'}", tmp_path / "run", workers=1)


def test_the_command_line_takes_the_options(made, tmp_path):
    line = [
        "explain",
        made / "probes",
        "--model",
        f"files:{made / 'files'}",
        "--option",
        "geometry=whole",
        "--no-controls",
    ]
    done = CliRunner().invoke(app, [*map(str, line), "-o", str(tmp_path / "run"), "--workers", "1"])
    assert done.exit_code == 0, done.output
    assert "files:files" in done.stdout

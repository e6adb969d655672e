"""`carina score-maps` and its neighbours on a folder of maps and a file of regions."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from carina.cli import app
from carina.studies import Region


def run(*arguments: object) -> object:
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Four images of two patients; maps that are right, half right, wrong, and of no image."""
    regions, maps = {}, tmp_path / "maps"
    maps.mkdir()
    for at in range(4):
        name = f"patient{at // 2}_study1_view{at}_frontal"
        regions[name] = {"Edema": Region.from_box(4, 4, 8, 8, height=32, width=32).to_coco()}
        values = np.zeros((8, 8), np.float32)
        values[1 + at : 3 + at, 1:3] = 1
        np.save(maps / f"{name}_Edema_map.npy", values)
    np.save(maps / "nobody_Edema_map.npy", np.zeros((8, 8), np.float32))
    (tmp_path / "gt.json").write_text(json.dumps(regions))
    return tmp_path


def given(files: Path) -> tuple[object, ...]:
    maps, regions = files / "maps", files / "gt.json"
    return "--maps", maps, "--regions", regions, "--geometry", "whole", "--replicates", 50


def test_score_maps_writes_tables_and_lists_what_did_not_match(files: Path) -> None:
    options = given(files)
    result = run("score-maps", *options, "-o", files / "out", "--variant", "iou.nearest_full.minmax_0.5")
    assert result.exit_code == 0, result.output
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert lines[0] == ["variant", "finding", "value", "95% interval", "n", "patients"]
    # Boxes of 8 x 8 that lie 0, 4, 8 and 12 pixels lower: 1, 1/3, 0 and 0.
    assert lines[1][1:3] + lines[1][4:] == ["all (micro)", "0.333", "4", "2"]
    assert "4 maps scored" in result.stderr
    assert "1 maps have no image among the regions: nobody_Edema_map.npy" in result.stderr
    assert {path.name for path in (files / "out").iterdir()} == {
        ".carina.files", "scores.csv", "scores.parquet", "summary.csv", "scores.json",
    }  # fmt: skip


def test_thresholds_of_one_split_are_applied_to_another(files: Path) -> None:
    options = given(files)
    chosen = files / "val.json"
    result = run(
        "score-maps",
        *options,
        "-o",
        files / "a",
        "--profile",
        "chexlocalize",
        "--split",
        "val",
        "--tune",
        chosen,
    )
    assert result.exit_code == 0, result.output
    again = ("--profile", "chexlocalize", "--thresholds", chosen, "--json")
    for split, message in (
        (("--split", "val"), "the split that is scored"),
        ((), "name the split that is scored too (--split)"),
        (
            ("--split", "test"),
            "image 'patient0_study1_view0_frontal': thresholds or cut-offs were tuned on this image",
        ),
    ):
        result = run("score-maps", *options, "-o", files / "b", *split, *again)
        assert result.exit_code == 2
        assert message in result.stderr
        assert not (files / "b").exists()
    renamed(files)
    result = run("score-maps", *options, "-o", files / "b", "--split", "test", *again)
    assert result.exit_code == 0, result.output
    cells = json.loads(result.stdout)["summary"]
    assert any("tuned_iou_minmax7" in cell["variant"] for cell in cells)


def renamed(files: Path) -> None:
    """The same as of another patient."""
    regions = json.loads((files / "gt.json").read_text())
    (files / "gt.json").write_text(json.dumps({f"patient9_{name}": own for name, own in regions.items()}))
    for path in list((files / "maps").iterdir()):
        path.rename(path.with_name(f"patient9_{path.name}"))


def test_cutoffs_of_one_split_are_applied_to_another(files: Path) -> None:
    """IoU of the maps, as they lie on 32 x 32 by cells of 4: 1, 1/3, 0 and 0, by their probability."""
    for at, path in enumerate(sorted((files / "maps").glob("*.npy"))):
        np.savez(path.with_suffix(".npz"), map=np.load(path), prob=0.2 * at)
        path.unlink()
    options = given(files)
    gated = ("--variant", "iou.nearest_full.minmax_0.5.gated")
    chosen = files / "val.json"
    tuning = run(
        "score-maps", *options, *gated, "-o", files / "a", "--split", "val", "--tune-cutoffs", chosen
    )
    assert tuning.exit_code == 0, tuning.output
    name = "iou.nearest_full.full_image.minmax_0.5.gated.per_image"
    # `nobody` is the first by name, its map predicts nothing; the others have 0.2, 0.4, 0.6 and 0.8.
    assert json.loads(chosen.read_text())["chosen"] == {name: {"": 0.0, "Edema": 0.0}}
    told = json.loads(chosen.read_text())
    told["chosen"][name] = {"": 0.3}
    chosen.write_text(json.dumps(told))
    refused = run("score-maps", *options, *gated, "-o", files / "b", "--split", "val", "--cutoffs", chosen)
    assert refused.exit_code == 2
    assert "split 'val': cut-offs were tuned on" in refused.stderr
    (files / "maps" / "nobody_Edema_map.npz").unlink()
    renamed(files)
    result = run(
        "score-maps", *options, *gated, "-o", files / "b", "--split", "test", "--cutoffs", chosen, "--json"
    )
    assert result.exit_code == 0, result.output
    micro = next(cell for cell in json.loads(result.stdout)["summary"] if cell["level"] == "all")
    assert (micro["variant"], micro["value"], micro["n"]) == (name, pytest.approx(1 / 12), 4)
    assert json.loads((files / "b" / "scores.json").read_text())["cutoffs"]["split"] == "val"


def test_unmatched_files_are_listed_even_where_they_count(files: Path) -> None:
    (files / "maps" / "patient1_study1_view3_frontal_Edema_map.npy").unlink()
    np.save(files / "maps" / "nobody_Edema_map.npy", np.eye(8, dtype=np.float32))
    options = ("--maps", files / "maps", "--regions", files / "gt.json", "--geometry", "whole")
    result = run(
        "score-maps", *options, "-o", files / "out", "--profile", "chexlocalize", "--replicates", 50, "--all"
    )
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines()[-5:] == [
        "3 maps scored",
        "1 maps have no image among the regions: nobody_Edema_map.npy",
        "1 regions have no map: patient1_study1_view3_frontal, Edema",
        "1 maps without a region count as false positives in any_mask and gated",
        "1 regions without a map (empty regions included) count as empty predictions in any_mask, gated and pooled",
    ]
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    n = {line[0]: line[4] for line in lines if "otsu_filled" in line[0]}
    assert n["iou.torch_full.full_image.otsu_filled.any_mask.per_image"] == "5"
    assert n["iou.torch_full.full_image.otsu_filled.tp_only.per_image"] == "3"
    assert n["recall.torch_full.full_image.otsu_filled.pooled"] == "4"


def test_a_damaged_map_is_listed_or_stops_the_command(files: Path) -> None:
    np.savez_compressed(files / "maps" / "a.npz", map=np.random.default_rng(0).random((32, 32)))
    content = bytearray((files / "maps" / "a.npz").read_bytes())
    content[60:90] = bytes(30)
    bad = files / "maps" / "patient0_study1_view0_frontal_Edema_map.npz"
    bad.write_bytes(content)
    (files / "maps" / "a.npz").unlink()
    bad.with_suffix(".npy").unlink()
    options = ("--maps", files / "maps", "--regions", files / "gt.json", "--geometry", "whole")
    for command in (
        ("score-maps", *options, "-o", files / "out", "--on-error", "stop"),
        ("compare-profiles", *options),
    ):
        result = run(*command)
        assert result.exit_code == 2
        assert f"{bad}: not a .npz file, or damaged" in result.stderr.replace("\n", "")
    assert not (files / "out").exists()
    result = run("score-maps", *options, "-o", files / "out", "--replicates", 50)
    assert result.exit_code == 0, result.output
    assert "3 maps scored" in result.stderr
    assert f"1 maps cannot be read and are not scored: {bad}: not a .npz file" in result.stderr.replace(
        "\n", ""
    )
    (told,) = json.loads((files / "out" / "scores.json").read_bytes())["maps that cannot be read"]
    assert told.startswith(f"{bad}: not a .npz file")


def test_a_map_of_another_size_than_its_image_needs_a_geometry(files: Path) -> None:
    result = run("score-maps", "--maps", files / "maps", "--regions", files / "gt.json", "-o", files / "out")
    assert result.exit_code == 2
    assert "32 x 32 (height x width), found 8 x 8" in result.stderr


def test_compare_profiles_prints_one_row_per_scoring_rule(files: Path) -> None:
    result = run(
        "compare-profiles", "--maps", files / "maps", "--regions", files / "gt.json", "--geometry", "whole"
    )
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split("\t") == ["scoring rule", "all", "< 1% (n=0)", "1-5% (n=0)", "> 5% (n=4)"]
    assert lines[1].startswith("hit, bilinear, first argmax (cheXlocalize)\t")
    (files / "none").mkdir()
    np.save(files / "none" / "x.npy", np.zeros((8, 8), np.float32))
    refused = run(
        "compare-profiles", "--maps", files / "none", "--regions", files / "gt.json", "--geometry", "whole"
    )
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "none of 1 maps matches an image of the regions" in refused.stderr
    as_json = run(
        "compare-profiles",
        "--maps",
        files / "maps",
        "--regions",
        files / "gt.json",
        "--geometry",
        "whole",
        "--json",
    )
    assert len(json.loads(as_json.stdout)) == len(lines) - 1


def test_pickles_are_converted_and_scored(files: Path) -> None:
    pickles = files / "pickles"
    pickles.mkdir()
    for path in (files / "maps").glob("patient*.npy"):
        held = {"map": np.load(path)[None, None], "prob": 0.5, "cxr_dims": (32, 32)}
        (pickles / f"{path.stem}.pkl").write_bytes(pickle.dumps(held))
    result = run("convert-pickles", pickles, "-o", files / "converted")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("4 maps written to")
    options = (
        "--regions",
        files / "gt.json",
        "--geometry",
        "whole",
        "--variant",
        "auroc",
        "--json",
        "--replicates",
        50,
    )
    one, other = (
        json.loads(run("score-maps", "--maps", files / maps, *options, "-o", files / "out").stdout)["summary"]
        for maps in ("maps", "converted")
    )
    assert one == other
    (pickles / "bad_map.pkl").write_bytes(b"no pickle")
    refused = run("convert-pickles", pickles, "-o", files / "converted", "--json")
    assert refused.exit_code == 1
    assert list(json.loads(refused.stdout)["refused"]) == [str(pickles / "bad_map.pkl")]


def test_variants_are_listed() -> None:
    profiles = run("list-metrics").stdout.splitlines()
    assert [line.split("\t")[0] for line in profiles] == [
        "profile", "carina", "chexlocalize", "medklip", "mavl", "radzero", "afloc", "torchray", "quantus",
    ]  # fmt: skip
    assert "hit.nearest_224.any_max.positives.per_image" in json.loads(
        run("list-metrics", "--profile", "medklip", "--json").stdout
    )
    wrong = run("list-metrics", "--profile", "xbench")
    assert wrong.exit_code == 2


def test_a_pickled_checkpoint_is_converted_to_safetensors(tmp_path):
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file

    state = {"logit_scale": torch.tensor(1.5), "visual.proj": torch.eye(3)}
    torch.save(state, tmp_path / "best.pt")
    command = ["convert-checkpoint", str(tmp_path / "best.pt"), "--kind", "chexzero"]
    result = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "model")])
    assert result.exit_code == 0, result.output
    assert result.stdout.strip().endswith("model.safetensors")
    assert {
        key: value.tolist() for key, value in load_file(tmp_path / "model" / "model.safetensors").items()
    } == {key: value.tolist() for key, value in state.items()}
    result = CliRunner().invoke(app, ["convert-checkpoint", "none.pt", "--kind", "clip", "-o", "x"])
    assert result.exit_code == 2
    assert "none.pt: no such file" in result.output


# ---- masks, and indexes for names that cannot be those of files ----


@pytest.mark.parametrize("suffix", [".png", ".tif", ".npy"])
def test_masks_in_a_directory_are_regions(files: Path, suffix: str) -> None:
    """The same boxes as in the file: the same scores."""
    for name, own in json.loads((files / "gt.json").read_text()).items():
        mask = Region.from_coco(own["Edema"]).to_mask()
        path = files / "masks" / "Edema" / f"{name}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if suffix == ".npy":
            np.save(path, mask)
        else:
            Image.fromarray((mask * 255).astype(np.uint8)).save(path)
    tables = []
    for regions in (files / "gt.json", files / "masks"):
        out = files / f"scores of {regions.name}"
        options = ("--maps", files / "maps", "--regions", regions, "--geometry", "whole", "--replicates", 50)
        result = run("score-maps", *options, "-o", out)
        assert result.exit_code == 0, result.output
        tables.append((out / "summary.csv").read_text())
    assert tables[0] == tables[1]


def test_an_index_names_images_and_findings_that_cannot_be_names_of_files(files: Path) -> None:
    regions = json.loads((files / "gt.json").read_text())
    masks = ["image,finding,mask"]
    maps = ["image,finding,map", "p9/none.png,edema: mild/severe,nobody_Edema_map.npy"]
    (files / "masks").mkdir()
    for number, (name, own) in enumerate(regions.items()):
        np.save(files / "masks" / f"{number}.npy", Region.from_coco(own["Edema"]).to_mask())
        masks.append(f"p{number // 2}/{number}.png,edema: mild/severe,{number}.npy")
        maps.append(f"p{number // 2}/{number}.png,edema: mild/severe,{name}_Edema_map.npy")
    (files / "masks" / "index.csv").write_text("\n".join(masks))
    (files / "maps" / "index.csv").write_text("\n".join(maps))
    options = (
        "--maps",
        files / "maps",
        "--regions",
        files / "masks",
        "--geometry",
        "whole",
        "--replicates",
        50,
    )
    result = run("score-maps", *options, "-o", files / "out", "--variant", "iou.nearest_full.minmax_0.5")
    assert result.exit_code == 0, result.output
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert lines[1][1:3] + lines[1][4:5] == ["all (micro)", "0.333", "4"]
    assert "edema: mild/severe" in [line[1] for line in lines]
    assert "1 maps have no image among the regions: nobody_Edema_map.npy" in result.stderr


def test_masks_that_cannot_be_used_are_refused(files: Path) -> None:
    masks = files / "masks"
    (masks / "Edema").mkdir(parents=True)
    (masks / "Mass").mkdir()
    options = ("--maps", files / "maps", "--regions", masks, "--geometry", "whole", "-o", files / "out")
    for content, message in (
        ({}, "expected masks FINDING/IMAGE.png"),
        ({"Edema/a.npy": np.full((4, 4), np.nan)}, "found NaN"),
        (
            {"Edema/a.npy": np.ones((4, 4)), "Mass/a.npy": np.ones((4, 5))},
            "have different sizes, 4 x 4 and 4 x 5",
        ),
    ):
        for name, values in content.items():
            np.save(masks / name, values)
        result = run("score-maps", *options)
        assert result.exit_code == 2
        assert message in result.stderr
    (masks / "index.csv").write_text("image,finding,mask\na,Mass,../maps/index.csv\n")
    result = run("score-maps", *options)
    assert "line 2: '../maps/index.csv' is not in" in result.stderr


def test_the_headline_is_printed_first_and_everything_on_request(files: Path) -> None:
    short, long = (
        run("score-maps", *given(files), "-o", files / f"out{len(more)}", *more) for more in ((), ("--all",))
    )
    heads = [[line.split("\t")[:2] for line in one.stdout.splitlines()] for one in (short, long)]
    assert heads[0] == [
        ["measure", "finding"],
        ["Pointing game", "all"],
        ["IoU, Otsu", "all"],
        ["Dice, Otsu", "all"],
        ["Pixel AUROC", "all"],
        ["Mass", "all"],
    ]
    assert heads[1][0] == ["variant", "finding"]
    assert len(heads[1]) > 20
    assert f"{len(heads[1]) - len(heads[0])} more lines: --all, or summary.csv" in short.stderr

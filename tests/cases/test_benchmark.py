"""Benchmarks on disk: views, look-ups, pictures, resuming, and a sentence for everything that can be wrong."""

import json
import pickle

import cv2
import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from carina.cases import (
    Case,
    CaseImage,
    Key,
    Option,
    Provenance,
    Step,
    create_benchmark,
    open_benchmark,
    write_benchmark,
    write_part,
)
from carina.store.errors import BenchmarkError, ImageError
from carina.store.files import sha256
from carina.studies import SourceInfo, write_png
from carina.version import __version__

MADE = Provenance(
    command="carina build test",
    seed=7,
    options={"protocol": "test"},
    sources=(SourceInfo(name="phantom", licence="CC0-1.0"),),
    image_root="../images",
)
PRINT = MADE.fingerprint
PART = "cases/part-00000.parquet"
GREY = np.arange(32, dtype=np.uint8).reshape(4, 8)


def claim(directory, provenance):
    """Begin a benchmark, as a process does that is killed before it writes anything."""
    with create_benchmark(directory, provenance):
        pass


def step(step_id: str, stage: int, task: str) -> Step:
    return Step(
        id=step_id,
        stage=stage,
        task=task,
        format="choice",
        question="Is it there?",
        options=(Option(id="yes", text="Yes"), Option(id="no", text="No")),
        key=Key(options=("yes",)),
    )


def case(number: int, *, key: str = "a.png", **more) -> Case:
    fields = {
        "patient": f"p{number // 2}",
        "images": (CaseImage(key=key, width=8, height=4),),
        "steps": (step("1", 1, "detection"),),
        **more,
    }
    return Case(id=f"c{number}", protocol="test", study=f"s{number}", source="phantom", **fields)


TWO = (step("1", 1, "detection"), step("2", 2, "evaluation"))
CASES = [
    case(0, split="train", target="edema", path="LF"),
    case(1, split="train", target="edema", path="RR", steps=TWO),
    case(2, split="val", target="effusion", path="RR", steps=TWO, key="b.png"),
    case(3, split="test", target="edema", path="RR", steps=TWO, patient=None),
    case(4),
]


@pytest.fixture
def directory(tmp_path):
    """Five cases in three parts; the images lie beside the benchmark."""
    for name in ("a", "b"):
        write_png(tmp_path / f"images/{name}.png", GREY)
    write_benchmark(tmp_path / "bench", CASES, MADE, part_size=2)
    return tmp_path / "bench"


def edit(directory, **changes):
    path = directory / "bench.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def rewrite(directory, change, file=PART):
    """Change a part and make the manifest agree with its bytes."""
    path = directory / file
    pq.write_table(change(pq.read_table(path)), path)
    parts = json.loads((directory / "bench.json").read_text())["parts"]
    for part in parts:
        if part["file"] == file:
            part.update(bytes=path.stat().st_size, sha256=sha256(path))
    edit(directory, parts=parts)


# Manifest ---------------------------------------------------------------------------------------------------


def test_the_manifest_counts_what_there_is(directory):
    written = json.loads((directory / "bench.json").read_text())
    parts = written.pop("parts")
    assert [(part["file"], part["rows"]) for part in parts] == [
        ("cases/part-00000.parquet", 2),
        ("cases/part-00001.parquet", 2),
        ("cases/part-00002.parquet", 1),
    ]
    assert written.pop("carina")
    assert written == {
        "kind": "carina/benchmark",
        "schema": "1.1",
        "command": "carina build test",
        "seed": 7,
        "options": {"protocol": "test"},
        "sources": [{"name": "phantom", "licence": "CC0-1.0", "url": None}],
        "image_root": "../images",
        "fingerprint": PRINT,
        "counts": {
            "cases": 5,
            "steps": 8,
            "patients": 3,
            "images": 2,
            "protocols": {"test": 5},
            "cells": {"edema/LF": 1, "edema/RR": 2, "effusion/RR": 1, "test": 1},
            "stages": {"1": 5, "2": 3},
            "tasks": {"detection": 5, "evaluation": 3},
        },
    }
    with create_benchmark(directory, MADE) as build:
        assert open_benchmark(directory).manifest == build.manifest() == build.finished()


def test_a_newer_major_schema_is_refused(directory):
    edit(directory, schema="2.0")
    with pytest.raises(BenchmarkError, match=r"bench\.json: written with schema 2\.0; .*up to 1\.x: upgrade"):
        open_benchmark(directory)


def test_a_newer_minor_schema_may_have_more_columns(directory):
    rewrite(directory, lambda table: table.append_column("mood", pa.array(["good"] * 2)))
    with pytest.raises(BenchmarkError, match="not the columns of a case: unknown column mood"):
        list(open_benchmark(directory))
    edit(directory, schema="1.3")
    assert list(open_benchmark(directory)) == CASES


def test_a_directory_without_a_benchmark_is_refused(tmp_path):
    with pytest.raises(BenchmarkError, match="is not a benchmark"):
        open_benchmark(tmp_path)
    with pytest.raises(BenchmarkError, match="nowhere: no such directory"):
        open_benchmark(tmp_path / "nowhere")


# Reading ----------------------------------------------------------------------------------------------------


def test_cases_come_back_in_order(directory):
    bench = open_benchmark(directory)
    assert list(bench) == CASES
    assert bench.ids() == ["c0", "c1", "c2", "c3", "c4"]
    assert len(bench) == 5
    assert bench.directory == directory
    assert open_benchmark(directory / "bench.json").ids() == bench.ids()


def test_a_case_is_looked_up_by_id(directory):
    bench = open_benchmark(directory)
    assert bench["c3"] == CASES[3]
    assert "c3" in bench
    assert "c9" not in bench
    with pytest.raises(BenchmarkError, match="no case 'c9'"):
        bench["c9"]
    with pytest.raises(BenchmarkError, match="no case 'c3' that matches"):
        bench.where(path="LF")["c3"]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"target": "edema"}, ["c0", "c1", "c3"]),
        ({"target": "edema", "path": "RR"}, ["c1", "c3"]),
        ({"path": ["LF", "RR"], "split": {"train", "val"}}, ["c0", "c1", "c2"]),
        ({"patient": "p1"}, ["c2"]),
        ({"study": "s4"}, ["c4"]),
        ({"protocol": "other"}, []),
        ({}, ["c0", "c1", "c2", "c3", "c4"]),
    ],
)
def test_where_selects_matching_cases(directory, conditions, expected):
    chosen = open_benchmark(directory).where(**conditions)
    assert [found.id for found in chosen] == chosen.ids() == expected
    assert len(chosen) == len(expected)
    assert chosen.table(["id"]).collect()["id"].to_list() == expected
    assert chosen.sql("SELECT id FROM cases ORDER BY id").fetchall() == [(found,) for found in expected]


def test_a_condition_that_can_never_hold_is_refused(directory):
    with pytest.raises(BenchmarkError, match=r"split: .*'dev'.* train"):
        open_benchmark(directory).where(split="dev")


def test_steps_are_rows_of_a_query(directory):
    query = "SELECT s.task, count(*) FROM (SELECT unnest(steps) AS s FROM cases) GROUP BY ALL ORDER BY 1"
    assert open_benchmark(directory).sql(query).fetchall() == [("detection", 5), ("evaluation", 3)]


def test_work_can_be_shared_by_part(directory):
    views = open_benchmark(directory).where(path="RR").by_part()
    assert [view.ids() for view in views] == [["c1"], ["c2", "c3"], []]
    assert pickle.loads(pickle.dumps(views[1])).ids() == ["c2", "c3"]  # noqa: S301


def test_columns_can_be_excluded(directory):
    light = open_benchmark(directory).without("views", "regions")
    assert light.ids() == ["c0", "c1", "c2", "c3", "c4"]
    with pytest.raises(BenchmarkError, match="cannot leave out 'steps', only: context, extra"):
        light.without("steps")


# Writing ----------------------------------------------------------------------------------------------------


def test_a_wrong_value_is_caught_by_the_writer(tmp_path):
    wrong = case(1, steps=(msgspec.structs.replace(step("1", 1, "x"), format="essay"),))
    with pytest.raises(BenchmarkError) as caught:
        write_part(tmp_path, 3, [case(0), wrong], fingerprint=PRINT)
    assert "cases/part-00003.parquet: row 1, case 'c1': " in str(caught.value)
    assert "`$.steps[0].format`; expected one of boxes, choice, map" in str(caught.value)
    assert not list(tmp_path.rglob("*.parquet"))


def test_two_cases_with_one_id_are_refused(tmp_path):
    with pytest.raises(
        BenchmarkError, match=r"part-00001\.parquet: row 0, case 'c0': .*row 0 of cases/part-00000"
    ):
        write_benchmark(tmp_path, [case(0), case(1), case(0)], MADE, part_size=2)
    with pytest.raises(BenchmarkError, match="unfinished"):
        open_benchmark(tmp_path)


def test_an_interrupted_build_is_resumed_to_the_same_bytes(directory, tmp_path):
    broken = tmp_path / "broken"
    claim(broken, MADE)
    first = write_part(broken, 0, CASES[:2], fingerprint=PRINT)
    write_part(broken, 1, CASES[2:4], fingerprint=PRINT)
    damaged = broken / "cases/part-00001.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-7])
    (broken / "cases/.part-00002.parquet.99.tmp").write_bytes(b"left by a killed process")

    with create_benchmark(broken, MADE) as build:
        assert build.finished() is None
        assert build.finished_part(0) == first
        assert build.finished_part(1) is None
        assert build.complete_part(0, lambda: pytest.fail("the part is finished")) == first
        rest = [build.complete_part(n, lambda n=n: CASES[2 * n : 2 * n + 2]) for n in (1, 2)]
        build.close([first, *rest])
    names = sorted(path.relative_to(directory) for path in directory.rglob("*"))
    assert names == sorted(path.relative_to(broken) for path in broken.rglob("*"))
    for name in names:
        if (directory / name).is_file():
            assert (directory / name).read_bytes() == (broken / name).read_bytes()


def test_another_benchmark_is_not_overwritten(directory):
    other = msgspec.structs.replace(MADE, seed=8)
    with pytest.raises(
        BenchmarkError,
        match=r"already holds 5 cases made in another way \(`carina build test`; seed 7, not 8\)",
    ):
        claim(directory, other)
    with pytest.raises(BenchmarkError, match="already holds 5 cases: choose another directory"):
        write_benchmark(directory, [], MADE)
    write_benchmark(directory, [case(9)], other, replace=True)
    assert open_benchmark(directory).ids() == ["c9"]


@pytest.mark.parametrize(
    ("changed", "difference"),
    [({"schema": "1.0"}, "schema 1.0, not "), ({"carina": "0.0.9"}, f"Carina 0.0.9, not {__version__}")],
)
def test_a_benchmark_of_an_earlier_version_is_refused_with_the_version_as_reason(
    tmp_path, changed, difference
):
    made = msgspec.structs.replace(MADE, options={"targets": ()})
    write_benchmark(tmp_path, [case(1)], made)
    manifest = json.loads((tmp_path / "bench.json").read_bytes()) | changed | {"fingerprint": "of then"}
    (tmp_path / "bench.json").write_text(json.dumps(manifest))
    with pytest.raises(BenchmarkError) as refused:
        claim(tmp_path, made)
    message = str(refused.value)
    assert f"(`carina build test`; {difference}" in message, "a list equals a tuple"
    assert message.endswith(": choose another directory or remove this one"), "no command can replace it"


# Images -----------------------------------------------------------------------------------------------------


def test_pixels_are_for_display(directory):
    bench = open_benchmark(directory)
    root = directory.parent / "images"
    image = CASES[0].images[0]
    assert bench.image_path(image) == root / "a.png"
    np.testing.assert_array_equal(bench.pixels(image), GREY)
    turned = CaseImage(key="a.png", width=8, height=4, monochrome1=True)
    np.testing.assert_array_equal(bench.pixels(turned), 255 - GREY)
    windowed = CaseImage(key="a.png", width=8, height=4, rescale=(2.0, 0.0), window=(20.0, 1.0))
    np.testing.assert_array_equal(bench.pixels(windowed), np.where(2 * GREY > 19.5, 255, 0))
    write_png(root / "deep.png", np.full((4, 8), 4095, np.uint16))
    deep = bench.pixels(CaseImage(key="deep.png", width=8, height=4, bits=12))
    assert deep.dtype == np.uint8
    assert (deep == 255).all()


def test_a_finished_image_keeps_its_colours(directory):
    root = directory.parent / "images"
    blue_green_red = np.zeros((4, 8, 3), np.uint8)
    blue_green_red[..., :] = (10, 20, 200)
    cv2.imwrite(str(root / "drawn.png"), blue_green_red)
    bench = open_benchmark(directory)
    drawn = bench.pixels(CaseImage(key="drawn.png", width=8, height=4, finished=True))
    assert drawn.shape == (4, 8, 3)
    assert drawn[0, 0].tolist() == [200, 20, 10]
    grey = bench.pixels(CaseImage(key="a.png", width=8, height=4, finished=True))
    np.testing.assert_array_equal(grey, np.stack([GREY] * 3, axis=2))


def test_images_may_lie_elsewhere_on_this_machine(directory, tmp_path):
    write_png(tmp_path / "mine/a.png", GREY[::-1].copy())
    write_png(tmp_path / "mine/b.png", GREY)
    bench = open_benchmark(directory, images=tmp_path / "mine")
    np.testing.assert_array_equal(bench.pixels(CASES[0].images[0]), GREY[::-1])
    assert bench.where(path="RR").image_path(CASES[0].images[0]) == tmp_path / "mine/a.png"


@pytest.mark.parametrize("key", ["../bench/bench.json", "/etc/passwd", "a/../../x.png", ""])
def test_a_key_never_leads_out_of_the_root(directory, key):
    with pytest.raises(BenchmarkError, match="is not a plain relative path"):
        open_benchmark(directory).pixels(CaseImage(key=key, width=8, height=4))


def test_a_link_never_leads_out_of_the_root(directory, tmp_path_factory):
    secret = tmp_path_factory.mktemp("secret")
    write_png(secret / "x.png", GREY)
    (directory.parent / "images/link").symlink_to(secret)
    with pytest.raises(BenchmarkError, match=r"image 'link/x\.png' leads out of the image root"):
        open_benchmark(directory).pixels(CaseImage(key="link/x.png", width=8, height=4, finished=True))


def test_a_problem_with_an_image_names_its_case(directory):
    bench = open_benchmark(directory)
    write_png(directory.parent / "images/b.png", np.zeros((5, 8), np.uint8))
    with pytest.raises(
        BenchmarkError,
        match=r"part-00001\.parquet: row 0, case 'c2', image 'b\.png' has 8 x 5 pixels, the case states 8 x 4",
    ):
        bench.pixels(CASES[2].images[0])
    (directory.parent / "images/b.png").write_bytes(b"\x89PNG\r\n\x1a\n1234")
    with pytest.raises(ImageError, match=r"b\.png: damaged"):
        bench.pixels(CASES[2].images[0])
    (directory.parent / "images/b.png").unlink()
    with pytest.raises(BenchmarkError, match=r"case 'c2', image 'b\.png' is missing"):
        bench.pixels(CASES[2].images[0])


# Damage and checking ----------------------------------------------------------------------------------------


def test_a_sound_benchmark_has_no_problems(directory):
    assert list(open_benchmark(directory).check(images=True)) == []


def test_a_changed_part_is_refused(directory):
    changed = bytearray((directory / PART).read_bytes())
    changed[60] ^= 0x10
    (directory / PART).write_bytes(changed)
    with pytest.raises(BenchmarkError, match=r"part-00000\.parquet: its SHA-256"):
        list(open_benchmark(directory))
    with pytest.raises(BenchmarkError, match=r"part-00000\.parquet: cannot be read as Parquet"):
        list(open_benchmark(directory, verify=False))


def test_an_id_that_is_used_twice_is_reported(directory):
    rewrite(directory, lambda table: table.set_column(0, "id", pa.array(["c0", "c4"])))
    for use in (list, lambda bench: bench["c0"]):
        with pytest.raises(BenchmarkError, match=r"part-00002\.parquet: row 0, case 'c4': the id is taken"):
            use(open_benchmark(directory))


def test_all_problems_are_found_at_once(tmp_path):
    write_png(tmp_path / "a.png", GREY)
    unasked = msgspec.structs.replace(step("1", 1, "detection"), key=Key())
    digest = msgspec.structs.replace(case(0).images[0], sha256="0" * 64)
    cases = [case(0, images=(digest,)), case(1, steps=(unasked,)), case(2, key="gone.png")]
    write_benchmark(tmp_path, cases, Provenance(command="test"))
    bench = open_benchmark(tmp_path)
    found = [(problem.record, str(problem).split(": row ")[1]) for problem in bench.check(images=True)]
    assert found == [
        ("c0", "0, case 'c0', image 'a.png' has another SHA-256 than the case states: the file was changed"),
        ("c1", "1, case 'c1': step '1': has options and no key"),
        ("c2", f"2, case 'c2', image 'gone.png' is missing: no file {tmp_path / 'gone.png'}"),
    ]
    assert [problem.record for problem in bench.check(images=False)] == ["c1"]


def test_a_manifest_that_miscounts_is_refused(directory):
    counts = json.loads((directory / "bench.json").read_text())["counts"] | {"cases": 6}
    edit(directory, counts=counts)
    with pytest.raises(BenchmarkError, match=r"bench\.json: states 6 cases, the parts that it lists hold 5"):
        open_benchmark(directory)


# Frames -----------------------------------------------------------------------------------------------------


def test_a_frame_has_one_row_a_case(directory):
    bench = open_benchmark(directory)
    frame = bench.to_frame()
    assert frame["id"].to_list() == [found.id for found in CASES]
    assert frame["steps"].to_list() == [len(found.steps) for found in CASES]
    assert frame["images"].to_list() == [len(found.images) for found in CASES]
    for name in ("protocol", "study", "patient", "source", "split", "target", "path", "order"):
        assert frame[name].to_list() == [getattr(found, name) for found in CASES]
    target = CASES[0].target
    narrowed = bench.where(target=target).to_frame()
    assert narrowed["id"].to_list() == [found.id for found in CASES if found.target == target]


def test_a_benchmark_describes_itself_and_is_a_location(directory):
    bench = open_benchmark(str(directory))
    counts = bench.manifest.counts
    described = f"cases={counts.cases}, steps={counts.steps}, patients={counts.patients}"
    assert repr(bench) == f"Benchmark('{directory}', {described})"
    assert open_benchmark(bench) is bench
    assert len(open_benchmark(bench, directory)) == len(CASES)

"""Reading study sets: views, look-ups, tables, and a plain sentence for everything that can be wrong."""

import json
import os
import pickle
import tracemalloc

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from carina.cases import check
from carina.store.columns import to_row
from carina.store.errors import CarinaError, ImageError, StudySetError
from carina.store.files import sha256
from carina.studies import (
    Anatomy,
    Device,
    Finding,
    Image,
    Provenance,
    Region,
    Study,
    open_studies,
    write_png,
    write_studies,
)

MADE = Provenance(command="carina test", image_root="images")
PART = "studies/part-00000.parquet"


def finding(name: str, certainty: str = "present") -> Finding:
    return Finding(id=f"{name}-{certainty}", name=name, certainty=certainty)


def study(number: int, **more) -> Study:
    image = Image(key=f"{number}.png", view="PA" if number % 2 else "AP", width=8, height=4)
    fields = {"patient": f"p{number // 2}", "source": "test", "order": number % 2, "images": (image,), **more}
    return Study(id=f"s{number}", **fields)


STUDIES = [
    study(0, split="train", later="s1", findings=(finding("nodule"),)),
    study(
        1, split="train", prior="s0", later="gone", findings=(finding("nodule", "absent"), finding("edema"))
    ),
    study(2, split="val", findings=(finding("nodule", "uncertain"),)),
    study(3, split="test"),
    study(4, findings=(finding("edema"), finding("mass"))),
]


@pytest.fixture
def directory(tmp_path):
    """Five studies in three parts, with their images."""
    pictures = []
    for number, record in enumerate(STUDIES):
        image = record.images[0]
        digest = write_png(tmp_path / "images" / image.key, np.full((4, 8), number, np.uint8))
        assert digest == sha256(tmp_path / "images" / image.key)
        pictures.append(Image(key=image.key, view=image.view, width=8, height=4, sha256=digest))
    records = [
        Study(**{name: getattr(record, name) for name in Study.__struct_fields__} | {"images": (picture,)})
        for record, picture in zip(STUDIES, pictures, strict=True)
    ]
    write_studies(tmp_path, records, MADE, part_size=2)
    return tmp_path


def ids(studies) -> list[str]:
    assert [found.id for found in studies] == studies.ids()
    assert len(studies) == len(studies.ids())
    return studies.ids()


def tamper(directory, change, file=PART):
    """Rewrite a part with its table changed, and make the manifest agree with its bytes."""
    path = directory / file
    pq.write_table(change(pq.read_table(path)), path)
    relist(directory, file)


def relist(directory, file=PART):
    manifest = json.loads((directory / "studies.json").read_text())
    for part in manifest["parts"]:
        if part["file"] == file:
            path = directory / file
            rows = pq.read_metadata(path).num_rows
            part.update(bytes=path.stat().st_size, sha256=sha256(path), rows=rows)
    (directory / "studies.json").write_text(json.dumps(manifest))


# Frames ----------------------------------------------------------------------------------------------------


def test_a_frame_has_one_row_a_study(directory):
    frame = open_studies(directory).to_frame()
    assert frame["id"].to_list() == ["s0", "s1", "s2", "s3", "s4"]
    assert frame.row(1, named=True) == {
        "id": "s1",
        "patient": "p0",
        "source": "test",
        "order": 1,
        "date": None,
        "split": "train",
        "age": None,
        "sex": None,
        "images": 1,
        "views": ["PA"],
        "present": ["edema"],
        "absent": ["nodule"],
        "uncertain": [],
        "devices": [],
    }
    assert frame["present"].to_list() == [["nodule"], ["edema"], [], [], ["edema", "mass"]]
    assert frame["uncertain"].to_list() == [[], [], ["nodule"], [], []]


def test_a_finding_that_a_study_has_twice_is_listed_once(tmp_path):
    twice = study(0, findings=(finding("nodule"), finding("mass"), finding("nodule")))
    device = Device(id="d", name="chest tube", certainty="present")
    write_studies(tmp_path, [twice, study(1, devices=(device,))], MADE)
    frame = open_studies(tmp_path).to_frame()
    assert frame["present"].to_list() == [["nodule", "mass"], []]
    assert frame["devices"].to_list() == [[], ["chest tube"]]


def test_a_frame_of_a_narrowed_view_holds_its_studies_only(directory):
    studies = open_studies(directory)
    assert studies.where(finding="edema").to_frame()["id"].to_list() == ["s1", "s4"]
    assert studies.where(patient="nobody").to_frame().shape == (0, 14)
    assert studies.by_part()[1].to_frame()["id"].to_list() == ["s2", "s3"]


def test_a_frame_of_an_empty_set_has_the_same_columns(directory, tmp_path):
    write_studies(tmp_path / "empty", [], MADE)
    empty, full = open_studies(tmp_path / "empty").to_frame(), open_studies(directory).to_frame()
    assert empty.schema == full.schema
    assert empty.is_empty()


def test_studies_describe_themselves_in_a_line_and_in_a_notebook(directory):
    studies = open_studies(directory)
    assert studies.path == directory
    assert repr(studies) == f"Studies('{directory}', studies=5, patients=3, images=5)"
    assert "<td style='text-align:left'>5</td>" in studies._repr_html_()


def test_opened_studies_are_a_location(directory):
    studies = open_studies(directory, directory / "images").where(split="train")
    assert open_studies(studies) is studies
    with pytest.raises(CarinaError, match=r"where=.*split"):
        open_studies(studies, directory / "images")  # would lose the selection
    with pytest.raises(CarinaError, match="expected a path or an object that Carina returned, found "):
        open_studies(5)


# Views ------------------------------------------------------------------------------------------------------


def test_studies_come_in_order(directory):
    assert ids(open_studies(directory)) == ["s0", "s1", "s2", "s3", "s4"]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"patient": "p1"}, ["s2", "s3"]),
        ({"patient": ["p0", "p2"]}, ["s0", "s1", "s4"]),
        ({"split": {"val", "test"}}, ["s2", "s3"]),
        ({"finding": "nodule"}, ["s0"]),
        ({"finding": "nodule", "certainty": "absent"}, ["s1"]),
        ({"finding": "nodule", "certainty": ("absent", "uncertain")}, ["s1", "s2"]),
        ({"finding": ["edema", "mass"]}, ["s1", "s4"]),
        ({"certainty": "uncertain"}, ["s2"]),
        ({"view": "PA"}, ["s1", "s3"]),
        ({"patient": "p0", "view": "PA", "finding": "edema"}, ["s1"]),
        ({"patient": "nobody"}, []),
        ({"patient": []}, []),
        ({}, ["s0", "s1", "s2", "s3", "s4"]),
    ],
)
def test_where_selects_matching_studies(directory, conditions, expected):
    chosen = open_studies(directory).where(**conditions)
    assert ids(chosen) == expected
    assert chosen.table(["id"]).collect()["id"].to_list() == expected
    assert chosen.sql("SELECT id FROM studies ORDER BY id").fetchall() == [(found,) for found in expected]


def test_conditions_add_up_and_leave_the_set_as_it_was(directory):
    studies = open_studies(directory)
    narrowed = studies.where(patient="p0").where(view="PA")
    assert (ids(narrowed), len(studies)) == (["s1"], 5)
    assert f"Studies('{directory}', studies=5, " in repr(narrowed)
    assert """where="patient=['p0']; view=['PA']")""" in repr(narrowed)


@pytest.mark.parametrize("condition", [{"view": "frontal"}, {"split": "dev"}, {"certainty": "maybe"}])
def test_a_condition_that_can_never_hold_is_refused(directory, condition):
    (name, value), *_ = condition.items()
    with pytest.raises(StudySetError, match=rf"{name}: .*'{value}', expected one of "):
        open_studies(directory).where(**condition)


def test_a_study_is_looked_up_by_id(directory):
    studies = open_studies(directory)
    assert studies["s3"].id == "s3"
    assert "s3" in studies
    assert "s9" not in studies
    assert 3 not in studies
    with pytest.raises(StudySetError, match="no study 's9'"):
        studies["s9"]
    narrowed = studies.where(patient="p0")
    assert narrowed["s1"].id == "s1"
    with pytest.raises(StudySetError, match="no study 's3' that matches"):
        narrowed["s3"]


def test_a_study_has_its_prior_and_follow_up_study(directory):
    studies = open_studies(directory)
    first, second = studies["s0"], studies["s1"]
    assert studies.prior(first) is None
    assert studies.later(first) == second
    assert studies.prior(second) == first
    assert studies.later(second) is None  # names a study that this set does not hold
    assert studies.where(view="PA").prior(second) == first  # which is AP


def test_columns_can_be_excluded(tmp_path):
    region = Region.from_mask(np.ones((2, 2), bool))
    structure = Anatomy(name="heart", image="0.png", region=region, annotator="t")
    write_studies(tmp_path, [study(0, anatomy=(structure,), findings=(finding("mass"),))], MADE)
    studies = open_studies(tmp_path)
    light = studies.without("anatomy")
    assert [found.anatomy for found in light] == [()]
    assert light["s0"].findings == studies["s0"].findings
    assert studies["s0"].anatomy == (structure,)
    assert "anatomy" not in light.table().collect_schema()
    assert ids(studies.without("findings").where(finding="mass")) == ["s0"]
    with pytest.raises(StudySetError, match="cannot leave out 'images', only: age, anatomy"):
        studies.without("images")


def test_work_can_be_shared_by_part(directory):
    views = open_studies(directory).where(view="PA").by_part()
    assert [ids(view) for view in views] == [["s1"], ["s3"], []]
    assert "s3" not in views[0]
    assert ids(pickle.loads(pickle.dumps(views[1]))) == ["s3"]  # noqa: S301


def test_tables_are_nested_columns(directory):
    studies = open_studies(directory)
    names = studies.table().select(pl.col("findings").explode().struct.field("name")).collect()
    assert names["name"].drop_nulls().sort().to_list() == [
        "edema",
        "edema",
        "mass",
        "nodule",
        "nodule",
        "nodule",
    ]
    counts = (
        "SELECT f.name, count(*) FROM (SELECT unnest(findings) AS f FROM studies) GROUP BY ALL ORDER BY 1"
    )
    assert studies.sql(counts).fetchall() == [("edema", 2), ("mass", 1), ("nodule", 3)]
    with pytest.raises(StudySetError, match=r'DuckDB .*"idd" not found'):
        studies.sql("SELECT idd FROM studies")


def test_a_directory_with_pattern_signs_in_its_name(tmp_path):
    for name in ("set[1]", "set1"):
        write_studies(tmp_path / name, [study(0 if name == "set1" else 1)], MADE)
    studies = open_studies(tmp_path / "set[1]")
    assert studies.table(["id"]).collect()["id"].to_list() == ["s1"]
    assert studies.sql("SELECT id FROM studies").fetchall() == [("s1",)]


def test_memory_does_not_grow_with_the_set(tmp_path):
    region = Region(height=2, width=2, counts="x" * 20_000)

    def heavy(number):
        return study(number, anatomy=(Anatomy(name="a", image="a.png", region=region, annotator="t"),) * 5)

    def peak(count):
        write_studies(tmp_path / str(count), (heavy(n) for n in range(count)), MADE, part_size=64)
        pa.default_memory_pool().release_unused()
        tracemalloc.start()
        arrow = max(pa.total_allocated_bytes() for _ in open_studies(tmp_path / str(count)))
        python = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return arrow + python

    # 100 KB a study: 64 take one part, 512 take eight and would add 45 MB.
    assert peak(512) < peak(64) + 5_000_000


def test_parts_are_touched_only_when_needed(directory):
    (directory / "studies/part-00002.parquet").write_bytes(b"damaged")
    stream = iter(open_studies(directory))
    assert [next(stream).id for _ in range(4)] == ["s0", "s1", "s2", "s3"]
    with pytest.raises(StudySetError, match="part-00002"):
        next(stream)


# Damage -----------------------------------------------------------------------------------------------------


def test_a_missing_part_is_named(directory):
    (directory / PART).unlink()
    for verify in (True, False):
        with pytest.raises(
            StudySetError, match=r"part-00000\.parquet: missing; the manifest lists it with 2 rows"
        ):
            list(open_studies(directory, verify=verify))


def test_a_part_that_vanishes_while_it_is_read(directory):
    studies = open_studies(directory)
    studies.ids()
    (directory / PART).unlink()
    with pytest.raises(StudySetError, match=r"part-00000\.parquet: missing"):
        list(studies)


def test_a_truncated_part_is_refused(directory):
    (directory / PART).write_bytes((directory / PART).read_bytes()[:-9])
    with pytest.raises(StudySetError, match=r"part-00000\.parquet: has \d+ bytes, the manifest says \d+"):
        list(open_studies(directory))
    with pytest.raises(StudySetError, match=r"part-00000\.parquet: cannot be read as Parquet"):
        list(open_studies(directory, verify=False))


def test_every_changed_byte_is_noticed(directory):
    content = (directory / PART).read_bytes()
    for place in range(0, len(content), 997):
        changed = bytearray(content)
        changed[place] ^= 0x10
        (directory / PART).write_bytes(changed)
        with pytest.raises(StudySetError, match=r"part-00000\.parquet: its SHA-256 differs"):
            open_studies(directory).table()


def test_a_changed_page_is_noticed_even_without_verifying(directory):
    changed = bytearray((directory / PART).read_bytes())
    changed[60] ^= 0x10
    (directory / PART).write_bytes(changed)
    with pytest.raises(StudySetError, match=r"part-00000\.parquet: cannot be read as Parquet: "):
        list(open_studies(directory, verify=False))


def test_an_unknown_column_is_refused(directory):
    tamper(directory, lambda table: table.append_column("mood", pa.array(["good"] * 2)))
    with pytest.raises(
        StudySetError, match=r"part-00000\.parquet: not the columns of a study: unknown column mood"
    ):
        list(open_studies(directory))


def with_colour(table):
    """Findings with one more field."""
    column = table.column("findings").combine_chunks()
    inner = column.flatten()
    fields = [inner.field(i) for i in range(inner.type.num_fields)]
    names = [inner.type.field(i).name for i in range(inner.type.num_fields)]
    colours = pa.array(["red"] * len(inner))
    wider = pa.StructArray.from_arrays([*fields, colours], [*names, "colour"])
    index = table.schema.get_field_index("findings")
    return table.set_column(index, "findings", pa.ListArray.from_arrays(column.offsets, wider))


def test_an_unknown_nested_field_is_refused(directory):
    tamper(directory, with_colour)
    with pytest.raises(StudySetError, match=r"unknown column findings\[\]\.colour"):
        list(open_studies(directory))


def test_a_newer_minor_schema_may_have_more_fields(directory):
    before = list(open_studies(directory))
    tamper(directory, lambda table: with_colour(table.append_column("mood", pa.array(["good"] * 2))))
    manifest = json.loads((directory / "studies.json").read_text()) | {"schema": "1.7"}
    (directory / "studies.json").write_text(json.dumps(manifest))
    assert list(open_studies(directory)) == before


def without_greyscale(table):
    """The images as sets of schema 1.0 have them, and an order that is never null."""
    index = table.schema.get_field_index("images")
    column = table.column("images").combine_chunks()
    inner = column.flatten()
    names = [field.name for field in inner.type if field.name not in ("rescale", "window")]
    older = pa.StructArray.from_arrays([inner.field(name) for name in names], names)
    table = table.set_column(index, "images", pa.ListArray.from_arrays(column.offsets, older))
    order = table.schema.get_field_index("order")
    return table.set_column(order, pa.field("order", pa.int64(), nullable=False), table.column("order"))


def test_a_set_of_schema_1_0_is_read(directory):
    before = list(open_studies(directory))
    assert all(image.window is None and image.rescale is None for study in before for image in study.images)
    tamper(directory, without_greyscale)
    with pytest.raises(StudySetError, match=r"missing column images\[\]\.rescale"):
        list(open_studies(directory))
    manifest = json.loads((directory / "studies.json").read_text()) | {"schema": "1.0"}
    (directory / "studies.json").write_text(json.dumps(manifest))
    older = open_studies(directory)
    assert list(older) == before
    assert older.columns("order", "images").to_pylist() == [
        {"order": study.order, "images": [to_row(image) for image in study.images]} for study in before
    ]
    assert list(older.check(images=False)) == []


def test_unknown_names_of_a_set_from_before_schema_1_2(directory):
    known = open_studies(directory).unknown_names()
    tamper(directory, lambda table: table.drop_columns(["assessed"]))
    manifest = json.loads((directory / "studies.json").read_text()) | {"schema": "1.1"}
    (directory / "studies.json").write_text(json.dumps(manifest))
    assert open_studies(directory).unknown_names() == known


def test_a_name_that_is_null_is_a_problem_and_no_unknown_name(directory):
    def change(table):
        index = table.schema.get_field_index("findings")
        rows = [
            [{**finding, "name": None} for finding in row] for row in table.column("findings").to_pylist()
        ]
        kind = table.schema.field("findings").type.value_type
        fields = [field.with_nullable(True) for field in kind]
        return table.set_column(index, "findings", pa.array(rows, pa.list_(pa.struct(fields))))

    tamper(directory, change)
    checked = check(directory, files=False)
    assert any("name" in problem.message for problem in checked.problems)
    assert all(unknown.kind != "finding" for unknown in checked.unknown_names)


def test_a_missing_column_is_refused(directory):
    tamper(directory, lambda table: table.drop_columns(["split", "age"]))
    with pytest.raises(StudySetError, match="missing column split; missing column age"):
        list(open_studies(directory))


def test_a_column_of_another_type_is_refused(directory):
    tamper(directory, lambda table: table.set_column(3, "order", pc.cast(table.column("order"), pa.string())))
    with pytest.raises(StudySetError, match="column order holds string, expected int64"):
        list(open_studies(directory))


def test_a_value_that_the_records_do_not_know(directory):
    def change(table):
        return table.set_column(table.schema.get_field_index("split"), "split", pa.array(["train", "dev"]))

    tamper(directory, change)
    with pytest.raises(StudySetError) as caught:
        list(open_studies(directory))
    assert "part-00000.parquet: row 1, study 's1': " in str(caught.value)
    assert "'dev' - at `$.split`; expected one of test, train, val" in str(caught.value)


def test_a_nested_value_that_the_records_do_not_know(directory):
    rows = pq.read_table(directory / PART).to_pylist()
    rows[0]["images"][0]["spacing_mm"] = [0.1]
    tamper(directory, lambda table: pa.Table.from_pylist(rows, schema=table.schema))
    with pytest.raises(
        StudySetError, match=r"row 0, study 's0': Expected `array` of length 2.*images\[0\]\.spacing_mm"
    ):
        list(open_studies(directory))


def test_no_value_where_there_must_be_one(directory):
    tamper(directory, lambda table: table.set_column(1, "patient", pa.array(["p0", None])))
    with pytest.raises(
        StudySetError, match=r"row 1, study 's1': Expected `str`, got `null` - at `\$.patient`"
    ):
        list(open_studies(directory))


def test_an_id_that_is_used_twice_is_reported(directory):
    tamper(directory, lambda table: table.set_column(0, "id", pa.array(["s0", "s4"])))
    for use in (list, lambda studies: studies["s0"]):
        with pytest.raises(StudySetError, match=r"part-00002\.parquet: row 0, study 's4': the id is taken"):
            use(open_studies(directory))


def test_a_part_with_fewer_rows_than_listed_is_refused(directory):
    tamper(directory, lambda table: table.slice(1))
    manifest = json.loads((directory / "studies.json").read_text())
    manifest["parts"][0]["rows"] = 2
    (directory / "studies.json").write_text(json.dumps(manifest))
    with pytest.raises(StudySetError, match="holds 1 rows, the manifest says 2"):
        list(open_studies(directory))


def test_a_part_written_by_polars_is_read(directory):
    before = list(open_studies(directory))
    pl.read_parquet(directory / PART).write_parquet(directory / PART)
    relist(directory)
    assert list(open_studies(directory)) == before


# Images -----------------------------------------------------------------------------------------------------


def test_pixels_are_read_for_display(directory):
    studies = open_studies(directory)
    image = studies["s3"].images[0]
    assert studies.image_path(image) == (directory / "images/3.png").resolve()
    assert (studies.pixels(image) == 3).all()


@pytest.mark.parametrize("absolute", [True, False])
def test_images_may_lie_elsewhere(tmp_path, absolute):
    write_png(tmp_path / "pacs/a/b.png", np.zeros((4, 8), np.uint8))
    image = Image(key="a/b.png", view="PA", width=8, height=4)
    made = Provenance(command="c", image_root=str(tmp_path / "pacs") if absolute else "../pacs")
    write_studies(tmp_path / "set", [study(0, images=(image,))], made)
    assert open_studies(tmp_path / "set").pixels(image).shape == (4, 8)


@pytest.mark.parametrize(
    "key", ["../secret.png", "/etc/passwd", "a/../../x.png", "", ".", "a\\..\\x.png", "a\0.png"]
)
def test_a_key_never_leads_out_of_the_root(directory, key):
    image = Image(key=key, view="PA", width=8, height=4)
    with pytest.raises(StudySetError, match="is not a plain relative path"):
        open_studies(directory).image_path(image)


def test_a_link_never_leads_out_of_the_root(directory, tmp_path_factory):
    secret = tmp_path_factory.mktemp("secret")
    write_png(secret / "x.png", np.zeros((4, 8), np.uint8))
    (directory / "images/link").symlink_to(secret)
    (directory / "images/loop").symlink_to(directory / "images/loop")
    studies = open_studies(directory)
    with pytest.raises(StudySetError, match=r"image 'link/x\.png' leads out of the image root"):
        studies.pixels(Image(key="link/x.png", view="PA", width=8, height=4))
    with pytest.raises(StudySetError, match="image 'loop' is "):
        studies.pixels(Image(key="loop", view="PA", width=8, height=4))


def test_a_missing_image_is_named_with_its_place(directory):
    (directory / "images/3.png").unlink()
    studies = open_studies(directory)
    with pytest.raises(
        StudySetError, match=r"part-00001\.parquet: row 1, study 's3', image '3\.png' is missing"
    ):
        studies.pixels(studies["s3"].images[0])


def test_an_image_of_another_size_is_refused(directory):
    write_png(directory / "images/3.png", np.zeros((5, 8), np.uint8))
    studies = open_studies(directory)
    with pytest.raises(StudySetError, match=r"image '3\.png' has 8 x 5 pixels, the study states 8 x 4"):
        studies.pixels(studies["s3"].images[0])


def test_a_damaged_image_is_refused(directory):
    (directory / "images/3.png").write_bytes(b"\x89PNG\r\n\x1a\n1234")
    studies = open_studies(directory)
    with pytest.raises(ImageError, match=r"3\.png: damaged"):
        studies.pixels(studies["s3"].images[0])


# Checking ---------------------------------------------------------------------------------------------------


def test_a_sound_set_has_no_problems(directory):
    assert list(open_studies(directory).check(images=True)) == []


def test_all_problems_are_found_at_once(directory):
    tamper(directory, lambda table: table.set_column(0, "id", pa.array(["s0", "s4"])))
    changed = bytearray((directory / "studies/part-00001.parquet").read_bytes())
    changed[70] ^= 1
    (directory / "studies/part-00001.parquet").write_bytes(changed)
    (directory / "images/0.png").unlink()
    write_png(directory / "images/1.png", np.zeros((9, 9), np.uint8))
    write_png(directory / "images/4.png", np.full((4, 8), 99, np.uint8))
    studies = open_studies(directory)
    found = [str(problem).replace(f"{directory}/", "") for problem in studies.check(images=True)]
    assert found == [
        f"{PART}: row 0, study 's0', image '0.png' is missing: no file images/0.png",
        f"{PART}: row 1, study 's4', image '1.png' has 9 x 9 pixels, the study states 8 x 4",
        "studies/part-00001.parquet: its SHA-256 differs from the manifest: changed since it was written",
        "studies/part-00002.parquet: row 0, study 's4': the id is taken by an earlier study of the set",
        "studies/part-00002.parquet: row 0, study 's4', image '4.png' has another SHA-256 than the study states: the "
        "file was changed",
    ]
    assert len(list(studies.check(images=False))) == 2


def test_rows_and_images_that_cannot_be_read_are_problems(directory):
    tamper(directory, lambda table: table.set_column(1, "patient", pa.array([None, "p0"], pa.string())))
    (directory / "images/1.png").write_bytes(b"BM")
    (directory / "images/2.png").unlink()
    (directory / "images/2.png").symlink_to("/dev/null")
    problems = list(open_studies(directory).check(images=True))
    assert [problem.record for problem in problems] == ["s0", "s1", "s2"]
    assert "Expected `str`, got `null`" in problems[0].message
    assert "unknown image format" in problems[1].message
    assert "leads out of the image root" in problems[2].message


LONG = "k" * 300 + ".png"


def test_a_key_that_is_no_path_is_found_without_looking_at_files(tmp_path):
    keys = ["../x.png", "/etc/passwd", LONG, "deep/" * 1000 + "x.png", "gone.png"]
    studies = [
        study(at, images=(Image(key=key, view="PA", width=8, height=4),)) for at, key in enumerate(keys)
    ]
    write_studies(tmp_path / "set", studies, Provenance(command="c"))
    opened = open_studies(tmp_path / "set")
    found = {problem.record: problem.message for problem in opened.check(images=False)}
    assert list(found) == ["s0", "s1", "s2"]
    assert found["s0"].endswith("image '../x.png' is not a plain relative path")
    assert found["s1"].endswith("image '/etc/passwd' is not a plain relative path")
    assert found["s2"].endswith("is not a path: a name of 304 bytes, of which file systems take 255")
    found = {problem.record: problem.message for problem in opened.check(images=True)}
    assert list(found) == ["s0", "s1", "s2", "s3", "s4"]
    assert found["s3"].endswith("cannot be looked up: File name too long")
    with pytest.raises(StudySetError, match=r"row 3, study 's3', image 'deep/.*File name too long"):
        opened.pixels(opened["s3"].images[0])


def test_a_pipe_is_no_image(directory):
    (directory / "images/3.png").unlink()
    os.mkfifo(directory / "images/3.png")
    studies = open_studies(directory)
    (problem,) = studies.check(images=True)
    assert problem.message.endswith("study 's3', image '3.png' is not a regular file")
    with pytest.raises(StudySetError, match=r"image '3\.png' is not a regular file"):
        studies.pixels(studies["s3"].images[0])

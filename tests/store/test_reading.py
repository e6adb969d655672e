"""Reading no more than is asked for: fields left out inside of records, and records by place and id."""

import dataclasses
import json
import shutil

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from carina.store import Writer
from carina.store.errors import StudySetError
from carina.studies import (
    Annotation,
    Finding,
    Image,
    Location,
    Measure,
    Provenance,
    Region,
    Report,
    ReportSection,
    Sentence,
    Statement,
    Study,
    open_studies,
)
from carina.studies.store import STUDIES as KIND

SQUARE = Region.from_box(0, 0, 2, 2, height=4, width=4)


def study(number: int) -> Study:
    return Study(
        id=f"s{number}",
        patient=f"p{number // 2}",
        source="phantom",
        order=number,
        images=(Image(key=f"{number}.png", view="PA", width=4, height=4),),
        findings=(
            Finding(
                id="f1",
                name="nodule" if number % 2 else "mass",
                certainty="present",
                location=Location(side="left", zones=("left lower zone",)),
                measures=(Measure(name="width", value=2.0, unit="cm"),),
                annotations=(
                    Annotation(image=f"{number}.png", region=SQUARE, drawn="polygon", annotator="phantom"),
                ),
            ),
        ),
        report=Report(
            sections=(ReportSection(name="findings", text="There is a nodule."),),
            sentences=(
                Sentence(
                    section="findings", start=0, end=18, states=(Statement(kind="finding", about="f1"),)
                ),
            ),
        )
        if number % 3
        else None,
    )


STUDIES = [study(number) for number in range(150)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("sets") / "studies"
    in_small_groups = Writer(dataclasses.replace(KIND, row_group=32, row_group_bytes=0))
    in_small_groups.write(path, STUDIES, Provenance(command="test"), part_size=70)
    return path


@pytest.fixture
def opened(directory):
    return open_studies(directory)


@pytest.fixture
def groups_read(monkeypatch):
    """Row groups and columns, as they are read."""
    read: list[tuple[int, tuple[str, ...]]] = []
    original = pq.ParquetFile.iter_batches

    def watched(self, *arguments, **options):
        read.extend((group, tuple(options["columns"])) for group in options["row_groups"])
        return original(self, *arguments, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", watched)
    return read


# Fields left out --------------------------------------------------------------------------------------------


def test_nested_fields_are_left_at_their_defaults(opened):
    light = opened.without("report.sentences.states", "findings.measures").without("findings.annotations")
    for found, whole in zip(light, STUDIES, strict=True):
        finding = msgspec.structs.replace(whole.findings[0], measures=(), annotations=())
        report = whole.report and msgspec.structs.replace(
            whole.report, sentences=(msgspec.structs.replace(whole.report.sentences[0], states=()),)
        )
        assert found == msgspec.structs.replace(whole, findings=(finding,), report=report)


def test_excluded_fields_are_not_read(opened, groups_read):
    next(iter(opened.without("anatomy", "findings.measures", "report.sentences")))
    columns = groups_read[0][1]
    assert "findings.list.element.name" in columns
    assert "report.sections.list.element.text" in columns
    assert not [
        name
        for name in columns
        if "findings.list.element.measures" in name or "sentences" in name or "anatomy" in name
    ]


def test_only_the_named_field_is_left_out(opened, groups_read):
    next(iter(opened.without("findings.measures")))
    columns = groups_read[0][1]
    assert "devices.list.element.measures.list.element.name" in columns
    assert "report.sentences.list.element.states.list.element.measure.name" in columns


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            ["images.key"],
            "cannot leave out 'images.key', only of images: bits, monochrome1, quality, rescale, sha256, sp",
        ),
        (
            ["report.sections"],
            "cannot leave out 'report.sections', only of report: is_excerpt, language, sentences",
        ),
        (
            ["report.nothing"],
            "cannot leave out 'report.nothing', only of report: is_excerpt, language, sentences",
        ),
        (
            ["report.sections.text"],
            "cannot leave out 'report.sections.text', no field of report.sections is optional",
        ),
        (
            ["id"],
            "cannot leave out 'id', only: age, anatomy, assessed, date, devices, findings, indication, later, order, "
            "prior",
        ),
        (["nowhere.at.all"], r"'nowhere\.at\.all', no field of nowhere\.at is optional"),
        (
            [f"findings.location.{name}" for name in ("side", "zones", "parts", "site")],
            r"cannot leave out every field of findings\.location",
        ),
    ],
)
def test_a_field_without_a_default_cannot_be_excluded(opened, fields, told):
    with pytest.raises(StudySetError, match=told):
        opened.without(*fields)


def test_every_field_of_a_record_may_go_with_the_record(opened):
    fields = [f"findings.location.{name}" for name in ("side", "zones", "parts", "site")]
    assert {study.findings[0].location for study in opened.without("findings.location", *fields)} == {None}
    assert {study.findings for study in opened.without("findings", *fields)} == {()}


def test_conditions_may_use_excluded_fields(opened):
    found = list(opened.without("findings").where(finding="mass"))
    assert [study.id for study in found] == [f"s{number}" for number in range(0, 150, 2)]
    assert found[0].findings == ()


def test_tables_keep_columns_of_which_a_part_is_left_out(opened):
    frame = opened.without("anatomy", "findings.measures").table().collect()
    assert "anatomy" not in frame.columns
    assert frame["findings"][0][0]["measures"][0]["unit"] == "cm"


# Records by place and id ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "stop"), [(0, 150), (0, 0), (5, 6), (30, 40), (65, 75), (69, 141), (150, 150)]
)
def test_rows_are_a_slice_of_the_set(opened, start, stop):
    assert list(opened.rows(start, stop)) == STUDIES[start:stop]


def test_rows_read_the_row_groups_they_lie_in(opened, groups_read):
    assert [study.id for study in opened.rows(60, 75)] == [f"s{number}" for number in range(60, 75)]
    # Parts of 70, 70 and 10 studies in groups of 32: places 60 to 69 lie in the groups 1 and 2 of the first.
    assert [group for group, _ in groups_read] == [1, 2, 0]


def test_columns_are_those_of_the_records_at_the_same_places(opened, groups_read):
    table = pa.Table.from_batches(opened.batches_at([149, 3, 40, 3], "findings", "id"))
    records = [STUDIES[3], STUDIES[40], STUDIES[149]]
    assert table.column_names == ["findings", "id"]
    assert table.column("id").to_pylist() == [record.id for record in records]
    assert msgspec.convert(table.column("findings").to_pylist(), list[tuple[Finding, ...]]) == [
        record.findings for record in records
    ]
    assert {leaf.partition(".")[0] for _, leaves in groups_read for leaf in leaves} == {"findings", "id"}
    assert list(opened.batches_at([], "id")) == []


def test_whole_columns_are_those_of_all_records(opened, groups_read):
    table = opened.columns("patient", "findings")
    assert table.column_names == ["patient", "findings"]
    assert table.column("patient").to_pylist() == [one.patient for one in STUDIES]
    assert [found[0]["name"] for found in table.column("findings").to_pylist()] == [
        one.findings[0].name for one in STUDIES
    ]
    assert not any(name.startswith(("report", "images")) for _, names in groups_read for name in names)


def test_whole_columns_hold_the_records_that_meet_the_conditions(opened):
    wanted = [one.id for one in STUDIES if one.findings[0].name == "mass"]
    assert opened.where(finding="mass").columns("id").column(0).to_pylist() == wanted
    assert opened.where(finding="edema").columns("id").num_rows == 0


def test_a_null_in_a_required_column_is_refused_with_its_row(directory, tmp_path):
    shutil.copytree(directory, tmp_path / "set")
    path = tmp_path / "set/studies/part-00001.parquet"
    table = pq.read_table(path)
    patients = table.column("patient").to_pylist()
    patients[40] = None
    at = table.schema.get_field_index("patient")
    pq.write_table(
        table.set_column(at, pa.field("patient", pa.string()), pa.array(patients)), path, row_group_size=32
    )
    damaged = open_studies(tmp_path / "set", verify=False)
    with pytest.raises(StudySetError, match=r"part-00001.parquet: row 40, patient: .*null"):
        damaged.columns("id", "patient")
    with pytest.raises(StudySetError, match=r"part-00001.parquet: row 40, patient: .*null"):
        list(damaged.batches_at([3, 70 + 40, 70 + 41], "patient"))
    assert damaged.columns("id").num_rows == 150


def test_a_column_that_there_is_not(opened):
    with pytest.raises(StudySetError, match="no column 'nosuch' in a study, only: id, patient, "):
        opened.columns("nosuch")


def test_columns_are_read_as_they_are_asked_for(opened, groups_read):
    # Rows side by side, and in the next part rows with another in between.
    batches = opened.batches_at([*range(20, 45), 75, 77], "id")
    assert groups_read == []
    assert next(batches).column("id").to_pylist() == [f"s{number}" for number in range(20, 45)]
    assert [group for group, _ in groups_read] == [0, 1]
    assert next(batches).column("id").to_pylist() == ["s75", "s77"]
    assert next(batches, None) is None


def test_places_are_taken_once_and_in_order(opened, groups_read):
    assert list(opened.at([149, 3, 40, 3])) == [STUDIES[3], STUDIES[40], STUDIES[149]]
    assert [group for group, _ in groups_read] == [0, 1, 0]
    assert list(opened.at([])) == []


@pytest.mark.parametrize("places", [[-1], [3, 150], [150]])
def test_a_place_that_is_none_is_refused_at_once(opened, places):
    with pytest.raises(StudySetError, match=rf"no place {places[-1]}, there are 150 studies"):
        opened.at(places)


def test_places_of_one_part_are_counted_in_it(opened):
    second = opened.by_part()[1]
    assert list(second.rows(0, 2)) == STUDIES[70:72]
    with pytest.raises(StudySetError, match="no place 70, there are 70 studies"):
        second.rows(0, 71)


def test_places_are_of_the_whole_set(opened):
    with pytest.raises(StudySetError, match=r"where=.*finding=.*without conditions"):
        opened.where(finding="mass").rows(0, 1)


def test_records_are_picked_by_id_in_the_order_of_the_set(opened, groups_read):
    opened.ids()
    assert list(opened.without("anatomy").pick(["s149", "s33", "s1", "s34", "s33"])) == [
        STUDIES[1],
        STUDIES[33],
        STUDIES[34],
        STUDIES[149],
    ]
    assert [group for group, columns in groups_read if columns != ("id",)] == [0, 1, 0]


def test_an_id_that_is_not_there_is_refused_at_once(opened):
    with pytest.raises(StudySetError, match="no study 'none'"):
        opened.pick(["s1", "none"])
    with pytest.raises(StudySetError, match="no study 's1'"):
        opened.by_part()[1].pick(["s1"])


def test_picked_records_meet_the_conditions(opened):
    masses = opened.where(finding="mass")
    assert list(masses.pick(["s100", "s2"])) == [STUDIES[2], STUDIES[100]]
    with pytest.raises(StudySetError, match="no study 's3' that matches"):
        masses.pick(["s2", "s3"])


def test_an_image_root_with_a_nul_character_is_refused_with_its_manifest(directory, tmp_path):
    shutil.copytree(directory, tmp_path / "set")
    manifest = tmp_path / "set/studies.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"image_root": "a\0b"}))
    with pytest.raises(StudySetError, match=r"studies\.json: image_root: .*NUL"):
        open_studies(tmp_path / "set")


# Memory ----------------------------------------------------------------------------------------------------------


def test_memory_is_given_back_after_each_part_that_is_read_as_a_whole(opened, monkeypatch):
    released = []

    class Pool:
        def release_unused(self):
            released.append(True)

    monkeypatch.setattr(pa, "default_memory_pool", Pool)
    assert len(list(opened)) == 150
    assert len(released) == 3

"""Facts: records that protocols declare, and the rows in which cases and steps store them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Annotated, ClassVar

import pytest

from carina.cases import Fact
from carina.cases.facts import (
    FactGroup,
    FactRecord,
    LesionFacts,
    Margin,
    Stored,
    stored_name,
)
from carina.cases.protocol import PROTOCOLS
from carina.store.errors import BenchmarkError


@dataclass(frozen=True, kw_only=True)
class EditFacts(FactGroup):
    operation: Annotated[str | None, Stored("operation")] = None
    share: Annotated[Margin | None, Stored("changed share")] = None
    between: Annotated[Mapping[str, float], Stored("distance")] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Declared(LesionFacts):
    side: Annotated[str | None, Stored("side")] = None
    margin: Annotated[Margin | None, Stored("share")] = None
    alike: Annotated[tuple[str, ...], Stored("looks like")] = ()
    ratios: Annotated[Mapping[str, Margin], Stored("ratio")] = field(default_factory=dict)
    overlaps: Annotated[Mapping[tuple[str, str], float], Stored("overlap")] = field(default_factory=dict)
    edits: Mapping[str, EditFacts] = field(default_factory=dict)

    stored_order: ClassVar = (
        "side", "roles", "margin", "alike", "ratios", "overlaps", "edits", "area", "share_of_image", "conspicuity",
    )  # fmt: skip


RECORD = Declared(
    roles={"r2": "truth", "r1": "shown"},
    area=120.0,
    side="left",
    margin=Margin(0.4, 0.3, None),
    alike=("nodule", "mass"),
    ratios={"a": Margin(0.2, high=0.5), "b": Margin(0.9, 0.5, 1.0)},
    overlaps={("a", "b"): 0.1},
    edits={
        "edit-1": EditFacts(operation="expansion", share=Margin(0.1, low=0.05), between={"edit-2": 40.0}),
        "edit-2": EditFacts(operation="contraction"),
    },
)
ROWS = (
    Fact(name="side", text="left"),
    Fact(name="role", about="r2", text="truth"),
    Fact(name="role", about="r1", text="shown"),
    Fact(name="share", value=0.4, low=0.3),
    Fact(name="looks like", text="nodule"),
    Fact(name="looks like", text="mass"),
    Fact(name="ratio", about="a", value=0.2, high=0.5),
    Fact(name="ratio", about="b", value=0.9, low=0.5, high=1.0),
    Fact(name="overlap", about="a b", value=0.1),
    Fact(name="operation", about="edit-1", text="expansion"),
    Fact(name="changed share", about="edit-1", value=0.1, low=0.05),
    Fact(name="distance", about="edit-1 edit-2", value=40.0),
    Fact(name="operation", about="edit-2", text="contraction"),
    Fact(name="lesion area", value=120.0),
)


def holder(*rows: Fact) -> SimpleNamespace:
    return SimpleNamespace(facts=rows)


def test_a_record_is_written_in_the_declared_order() -> None:
    assert RECORD.rows() == ROWS


def test_rows_give_back_the_record() -> None:
    assert Declared.of(holder(*ROWS)) == RECORD


def test_the_order_of_rows_does_not_matter_to_a_reader() -> None:
    read = Declared.of(holder(*reversed(ROWS)))
    assert read.ratios == RECORD.ratios
    assert read.edits == RECORD.edits


def test_a_shared_record_reads_its_fields_from_any_protocol() -> None:
    read = LesionFacts.of(holder(*ROWS))
    assert (read.area, read.region("truth"), read.region("lungs")) == (120.0, "r2", None)
    assert {row.name for row in read.other} == {row.name for row in ROWS} - {"role", "lesion area"}


@pytest.mark.parametrize(
    "row",
    [
        Fact(name="judge", text="Not in the report."),
        Fact(name="side", about="r1", text="left"),
        Fact(name="side", value=1.0),
        Fact(name="lesion area", value=1.0, low=0.5),
        Fact(name="share", text="half"),
        Fact(name="overlap", about="a", value=0.5),
        Fact(name="operation", text="expansion"),
    ],
    ids=lambda row: row.name,
)
def test_rows_that_no_field_can_hold_are_kept_as_other(row: Fact) -> None:
    read = Declared.of(holder(row))
    assert read == Declared(other=(row,))


def test_the_first_of_two_rows_for_one_value_counts() -> None:
    first, second = Fact(name="side", text="left"), Fact(name="side", text="right")
    assert Declared.of(holder(first, second)) == Declared(side="left", other=(second,))


def test_a_record_with_undeclared_facts_is_not_written() -> None:
    with pytest.raises(BenchmarkError, match=r"Declared.*'judge'"):
        Declared(other=(Fact(name="judge", text="no"),)).rows()


def test_an_undeclared_field_is_refused_when_a_record_is_made() -> None:
    with pytest.raises(TypeError, match="judge"):
        Declared(judge="no")  # type: ignore[call-arg]


def test_a_type_that_rows_cannot_hold_is_refused() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Wrong(FactRecord):
        counts: Annotated[list[int], Stored("counts")] = field(default_factory=list)

    with pytest.raises(TypeError, match=r"Wrong\.counts"):
        Wrong.of(holder())


def test_stored_order_must_name_every_field() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Wrong(LesionFacts):
        stored_order: ClassVar = ("area",)

    with pytest.raises(TypeError, match="stored_order"):
        Wrong.of(holder())


def test_a_stored_name_comes_from_the_declaration() -> None:
    assert stored_name(Declared, "alike") == "looks like"


def test_two_fields_cannot_share_a_stored_name() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Wrong(LesionFacts):
        size: Annotated[float | None, Stored("lesion area")] = None

    with pytest.raises(TypeError, match="size"):
        Wrong.of(holder())


@pytest.mark.parametrize("protocol", ["ground", "percept", "trek"])
def test_every_protocol_that_builds_cases_declares_its_facts(protocol: str) -> None:
    info = PROTOCOLS[protocol]
    assert info.case_facts is not FactRecord
    assert info.step_facts is not FactRecord

"""Which study came before: by order and date, whatever ids and rows say."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from carina.store.errors import StudySetError
from carina.studies import open_studies
from carina.trek.neighbours import find_neighbours


@pytest.fixture
def linked(made, tmp_path):
    """Before and after by id, for studies given as (id, patient, order, date, split) in any order of rows."""

    def read(rows, split=None):
        studies = [
            made.study(name=name, patient=patient, order=order, date=date, split=part)
            for name, patient, order, date, part in rows
        ]
        directory = made.write(tmp_path / f"set{len(list(tmp_path.iterdir()))}", studies)
        opened = open_studies(directory)
        found = find_neighbours(opened, split)
        ids = [row[0] for row in rows]
        assert [study.id for study in opened] == ids
        name = lambda place: None if place < 0 else ids[place]  # noqa: E731
        table = {ids[n]: (name(found.before[n]), name(found.after[n])) for n in range(len(ids))}
        return table, [ids[place] for place in found.chosen]

    return read


def row(name, patient="p", order=0, date=None, split="train"):
    return (name, patient, order, date, split)


def test_the_order_of_studies_decides_and_not_their_names(linked):
    table, chosen = linked([row("z9", order=0), row("a1", order=2), row("m5", order=1)])
    assert table == {"z9": (None, "m5"), "m5": ("z9", "a1"), "a1": ("m5", None)}
    assert chosen == ["z9", "a1", "m5"]


def test_an_id_that_two_studies_have_is_named(made, tmp_path):
    directory = made.write(tmp_path / "set", [made.study(name=name, patient="p") for name in ("a", "b", "c")])
    path = directory / "studies/part-00000.parquet"
    table = pq.read_table(path)
    pq.write_table(table.set_column(0, table.schema.field(0), pa.array(["a", "b", "a"])), path)
    with pytest.raises(StudySetError, match=r"set: .*\bid 'a'.* 0, 2\b"):
        find_neighbours(open_studies(directory, verify=False), None)


def test_rows_in_any_order_give_the_same_neighbours(linked):
    rows = [
        row(f"s{patient}{order}", f"p{patient}", order, f"2100-0{order + 1}-0{patient + 1}")
        for patient in range(5)
        for order in range(1 + patient % 4)
    ]
    expected, _ = linked(rows)
    assert expected["s31"] == ("s30", "s32")
    assert sum(before is not None for before, _ in expected.values()) == len(rows) - 5
    for seed in range(4):
        mixed = random.Random(seed).sample(rows, len(rows))  # noqa: S311
        assert linked(mixed)[0] == expected


def test_orders_may_have_gaps_and_dates_may_be_missing(linked):
    table, _ = linked([row("a", order=3), row("b", order=40, date="2100-01-01"), row("c", order=41)])
    assert table == {"a": (None, "b"), "b": ("a", "c"), "c": ("b", None)}


def test_dates_that_contradict_the_order_break_the_link(linked):
    table, _ = linked(
        [
            row("a", order=0, date="2100-05-01"),
            row("b", order=1, date="2100-04-30"),
            row("c", order=2, date="2100-04-30"),
        ]
    )
    assert table == {"a": (None, None), "b": (None, "c"), "c": ("b", None)}


def test_studies_of_the_same_order_are_not_neighbours(linked):
    table, _ = linked([row("a"), row("b"), row("c", patient="q")])
    assert table == {"a": (None, None), "b": (None, None), "c": (None, None)}


def test_the_order_of_rows_does_not_choose_a_neighbour(linked):
    rows = [row("a", date="2100-01-01"), row("b", date="2100-01-05"), row("c", order=1, date="2100-02-01")]
    first, _ = linked(rows)
    again, _ = linked([rows[1], rows[0], rows[2]])
    assert first == again
    assert first["c"][0] in ("b", None)


def test_studies_of_other_patients_and_splits_are_not_linked(linked):
    rows = [
        row("a", order=0, split="train"),
        row("b", order=1, split="test"),
        row("c", order=2, split="test"),
        row("d", order=3, split=None),
        row("e", order=4, split=None),
        row("f", patient="q", order=5, split=None),
    ]
    table, chosen = linked(rows)
    assert table == {
        "a": (None, None),
        "b": (None, "c"),
        "c": ("b", None),
        "d": (None, "e"),
        "e": ("d", None),
        "f": (None, None),
    }
    assert chosen == list("abcdef")
    assert linked(rows, "test")[1] == ["b", "c"]
    assert linked(rows, "val")[1] == []


def test_links_are_mutual(linked):
    chance = random.Random(4)  # noqa: S311
    rows = [
        row(
            f"s{n}",
            f"p{chance.randrange(8)}",
            chance.randrange(6),
            chance.choice([None, f"2100-01-{chance.randrange(1, 29):02d}"]),
            chance.choice(["train", "test"]),
        )
        for n in range(80)
    ]
    table, _ = linked(rows)
    by_id = {r[0]: r for r in rows}
    linked_ones = 0
    for name, (before, after) in table.items():
        if after is not None:
            assert table[after][0] == name
        if before is None:
            continue
        linked_ones += 1
        assert table[before][1] == name
        one, other = by_id[before], by_id[name]
        assert (one[1], one[4]) == (other[1], other[4])
        assert one[2] < other[2]
        assert one[3] is None or other[3] is None or one[3] <= other[3]
        assert not any(r[1] == one[1] and one[2] < r[2] < other[2] for r in rows)
    assert linked_ones > 10


def test_an_empty_set_has_no_neighbours(linked):
    assert linked([]) == ({}, [])


# ---- unknown order --------------------------------------------------------------------------------------------------


def test_without_order_and_date_nothing_is_prior_or_later(linked):
    table, chosen = linked([row("a", order=None), row("b", order=None), row("c", order=None)])
    assert table == {"a": (None, None), "b": (None, None), "c": (None, None)}
    assert chosen == ["a", "b", "c"]


def test_without_order_dates_decide(linked):
    table, _ = linked(
        [
            row("a", order=None, date="2100-03-01"),
            row("b", order=None, date="2100-01-01"),
            row("c", order=None, date="2100-02-01"),
            row("d", order=None),
        ]
    )
    assert table == {"b": (None, "c"), "c": ("b", "a"), "a": ("c", None), "d": (None, None)}


def test_studies_of_one_day_without_order_are_not_put_in_order(linked):
    table, _ = linked([row("a", order=None, date="2100-01-01"), row("b", order=None, date="2100-01-01")])
    assert table == {"a": (None, None), "b": (None, None)}


def test_a_study_without_order_and_date_does_not_separate_the_others(linked):
    table, _ = linked([row("a", order=0), row("x", order=None), row("b", order=1)])
    assert table == {"a": (None, "b"), "b": ("a", None), "x": (None, None)}


def test_orders_and_dates_are_not_compared_with_each_other(linked):
    rows = [row("a", order=0), row("b", order=None, date="2100-01-01"), row("c", order=1, date="2100-02-01")]
    table, _ = linked([*rows, row("q", "other", order=0), row("r", "other", order=1)])
    # "a" has an order alone, so nobody knows where it stands to the dated ones; the other patient is not affected.
    assert table == {
        "a": (None, None),
        "b": (None, "c"),
        "c": ("b", None),
        "q": (None, "r"),
        "r": ("q", None),
    }


def test_dates_that_contradict_a_known_order_break_the_link_between_those_two(linked):
    table, _ = linked(
        [
            row("a", order=1, date="2100-01-01"),
            row("b", order=0, date="2100-02-01"),
            row("c", order=None, date="2100-03-01"),
        ]
    )
    assert table == {"a": (None, None), "b": (None, "c"), "c": ("b", None)}


def test_priors_in_another_split_are_counted(made, tmp_path):
    rows = [("a", 0, "train"), ("b", 1, "test"), ("c", 2, "test"), ("d", 3, "train")]
    studies = [made.study(name=name, patient="p", order=order, split=part) for name, order, part in rows]
    opened = open_studies(made.write(tmp_path / "set", studies))
    # "b" follows "a", and "d" follows "c", in another split.
    assert find_neighbours(opened, None).priors_in_other_splits == 2
    assert find_neighbours(opened, "test").priors_in_other_splits == 1

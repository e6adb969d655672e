"""Different texts are counted as a set counts them, and ids that share a digest are told apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carina.store import Distinct, Writer
from carina.store.errors import StudySetError
from carina.studies import Image, Provenance, Study
from carina.studies.store import STUDIES

TEXTS = st.lists(st.lists(st.text(max_size=2), max_size=8), max_size=12)
WRITER = Writer(STUDIES)


@given(TEXTS)
def test_as_a_set_counts_and_remembers(batches):
    counted, before = Distinct(), set()
    for batch in batches:
        again = {hash(text) for text in batch if text in before or batch.count(text) > 1}
        assert counted.add(batch) == again
        before.update(batch)
        assert len(counted) == len(before)


def test_no_ids_have_no_suspects():
    assert len(Distinct()) == 0
    assert Distinct().add([]) == frozenset()


def test_eight_bytes_are_kept_of_each_and_few_runs():
    counted = Distinct()
    for start in range(0, 300_000, 1000):
        again = counted.add(
            [f"a long id that nobody could keep by the million {n}" for n in range(start, start + 1000)]
        )
        assert not again
    assert (len(counted), sum(run.nbytes for run in counted._runs)) == (300_000, 8 * 300_000)
    assert len(counted._runs) <= 9
    assert counted.add(["a long id that nobody could keep by the million 0", "new"]) == {
        hash("a long id that nobody could keep by the million 0")
    }


# ---- ids of a set ---------------------------------------------------------------------------------------------------


def study(name: str) -> Study:
    image = Image(key="a.png", view="PA", width=4, height=4)
    return Study(id=name, patient="p", source="test", order=0, images=(image,))


def written(directory, parts: list[list[str]]):
    provenance = Provenance(command="test")
    with WRITER.create(directory, provenance) as build:
        return build.close(
            [build.write_part(index, [study(name) for name in ids]) for index, ids in enumerate(parts)]
        )


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([["a", "b", "b"]], "part-00000.parquet: row 2, study 'b': the id is already taken by row 1 of "),
        (
            [["a", "b"], ["c", "a"]],
            "part-00001.parquet: row 1, study 'a': the id is already taken by row 0 of ",
        ),
    ],
)
def test_an_id_that_comes_twice_is_refused_with_both_places(tmp_path, parts, told):
    with pytest.raises(StudySetError) as caught:
        written(tmp_path, parts)
    assert f"{told}studies/part-00000.parquet" in str(caught.value)
    assert not (tmp_path / "studies.json").exists()


def test_ids_that_only_share_a_digest_are_let_pass(tmp_path, monkeypatch):
    monkeypatch.setattr(Distinct, "add", lambda _self, texts: frozenset(map(hash, texts)))
    assert written(tmp_path, [["a", "b"], ["c"]]).counts.studies == 3


def test_no_part_is_made_after_an_id_came_twice(tmp_path):
    provenance, made = Provenance(command="test"), []

    def parts(build):
        for index in range(20):
            made.append(index)
            yield build.write_part(index, [study("twice" if index in (1, 3) else f"s{index}")])

    with (
        pytest.raises(StudySetError, match="row 0, study 'twice': the id is already taken by row 0 of"),
        WRITER.create(tmp_path, provenance) as build,
    ):
        build.close(parts(build))
    assert made == [0, 1, 2, 3]

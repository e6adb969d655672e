"""Different texts are counted as a set counts them, and ids that share a digest are told apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carina.errors import StudySetError
from carina.store import Distinct, Writer, distinct, writing
from carina.store.distinct import digests, repeated
from carina.studies import Image, Provenance, Study
from carina.studies.store import STUDIES

TEXTS = st.lists(st.lists(st.text(max_size=3), max_size=8), max_size=8)
WRITER = Writer(STUDIES)


@given(TEXTS, st.integers(0, 6))
def test_as_many_as_in_a_set(batches, few):
    # Put in order after every few texts, or never before the end.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct, "_FEW", few)
        counted = Distinct()
        for number, batch in enumerate(batches, start=1):
            counted.add(batch)
            if number == len(batches) // 2:
                assert len(counted) == len({text for some in batches[:number] for text in some})
        assert len(counted) == len({text for batch in batches for text in batch})


@given(TEXTS)
def test_what_comes_twice(batches):
    texts = [text for batch in batches for text in batch]
    twice = {hash(text) for text in texts if texts.count(text) > 1}
    assert repeated([digests(batch) for batch in batches]) == twice


def test_of_nothing():
    assert len(Distinct()) == 0
    assert repeated([]) == frozenset()


def test_eight_bytes_are_kept_of_each():
    counted = Distinct()
    for start in range(0, 300_000, 1000):
        counted.add(
            [f"a long id that nobody could keep by the million {n}" for n in range(start, start + 1000)]
        )
    held = counted._known.nbytes + sum(new.nbytes for new in counted._new)
    assert (len(counted), held) == (300_000, 8 * 300_000)


# ---- ids of a set ---------------------------------------------------------------------------------------------------


def written(directory, parts: list[list[str]]):
    provenance = Provenance(command="test")
    WRITER.claim(directory, provenance)
    made = []
    for index, ids in enumerate(parts):
        image = Image(key="a.png", view="PA", width=4, height=4)
        studies = [Study(id=name, patient="p", source="test", order=0, images=(image,)) for name in ids]
        made.append(WRITER.write_part(directory, index, studies, fingerprint=provenance.fingerprint))
    return WRITER.write_manifest(directory, provenance, made)


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
    monkeypatch.setattr(writing, "digests", lambda texts: np.array([hash("a")] * len(texts)))
    assert written(tmp_path, [["a", "b"], ["c"]]).counts.studies == 3

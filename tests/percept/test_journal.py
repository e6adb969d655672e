"""The journal of a build: outcomes are kept, read again, and never trusted where they are damaged."""

import pytest

from carina.percept.journal import FILE, Journal
from carina.percept.records import Skipped

STAMP = "a fingerprint"


def skipped(n):
    return Skipped(study=f"s{n}", target="edema", reason="no lungs", detail="x" * n)


def written(directory, outcomes, stamp=STAMP):
    """The journal's bytes, and where each record ends."""
    ends = []
    with Journal(directory, stamp) as journal:
        ends.append((directory / FILE).stat().st_size)
        for outcome in outcomes:
            journal.add(outcome)
            ends.append((directory / FILE).stat().st_size)
    return (directory / FILE).read_bytes(), ends


def known(directory, outcomes, stamp=STAMP):
    """Which of the outcomes a new journal of the same directory has."""
    with Journal(directory, stamp) as journal:
        found = [journal.get(outcome.study, outcome.target) for outcome in outcomes]
    assert all(one is None or one == outcome for one, outcome in zip(found, outcomes, strict=True))
    return [one is not None for one in found]


def test_outcomes_are_read_back_unchanged(tmp_path, analyses):
    outcomes = [skipped(1), analyses[0], skipped(2), analyses[-1]]
    written(tmp_path, outcomes)
    with Journal(tmp_path, STAMP) as journal:
        assert journal.get("s1", "edema") == skipped(1)
        for one in (analyses[0], analyses[-1]):
            assert journal.get(one.subject.study, one.target) == one
        assert journal.get("s1", "effusion") is None
        assert journal.get("s9", "edema") is None
        journal.add(skipped(3))
    assert known(tmp_path, [skipped(1), skipped(2), skipped(3)]) == [True] * 3


def test_each_record_is_on_disk_as_soon_as_it_is_added(tmp_path):
    _, ends = written(tmp_path, [skipped(1), skipped(2)])
    assert ends == sorted(set(ends))
    assert ends[0] > len(STAMP)


def test_a_file_truncated_at_any_byte_loses_the_last_record_alone(tmp_path):
    outcomes = [skipped(1), skipped(2), skipped(3)]
    content, ends = written(tmp_path, outcomes)
    for cut in range(ends[2], ends[3]):
        (tmp_path / FILE).write_bytes(content[:cut])
        assert known(tmp_path, outcomes) == [True, True, False]
        # What is left is whole again, and can be added to.
        assert (tmp_path / FILE).read_bytes() == content[: ends[2]]
    with Journal(tmp_path, STAMP) as journal:
        journal.add(outcomes[2])
    assert (tmp_path / FILE).read_bytes() == content


def test_a_flipped_byte_loses_its_record_and_what_follows(tmp_path):
    outcomes = [skipped(1), skipped(2), skipped(3)]
    content, ends = written(tmp_path, outcomes)
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 0x41
        (tmp_path / FILE).write_bytes(bytes(damaged))
        whole = sum(end <= at for end in ends) - 1
        assert known(tmp_path, outcomes) == [n < whole for n in range(3)], at


def test_records_after_an_unknown_record_are_not_used(tmp_path):
    content, ends = written(tmp_path, [skipped(1)])
    with Journal(tmp_path, STAMP) as journal:
        journal._append(b'{"type": "other"}')
        journal.add(skipped(2))
    assert known(tmp_path, [skipped(1), skipped(2)]) == [True, False]
    assert (tmp_path / FILE).read_bytes() == content[: ends[1]]


def test_a_journal_of_another_build_is_not_read(tmp_path):
    written(tmp_path, [skipped(1)])
    assert known(tmp_path, [skipped(1)], stamp="another fingerprint") == [False]
    # It was begun anew: of the first build nothing is left.
    assert known(tmp_path, [skipped(1)]) == [False]


@pytest.mark.parametrize("content", [b"", b"\x00", b"\xff" * 64, b"text"])
def test_a_file_that_is_no_journal_is_replaced(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    assert known(tmp_path, [skipped(1)]) == [False]
    written(tmp_path, [skipped(1)])
    assert known(tmp_path, [skipped(1)]) == [True]

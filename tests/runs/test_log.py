"""The step log: what was brought to disk is there again, whatever happened to the rest."""

import msgspec
import pytest

from carina.runs.log import Entry, StepLog, log_path, read_log
from carina.runs.records import StepRow
from carina.store.errors import CarinaError


def row(case="a", number=0, **more):
    return StepRow(
        case=case, study="s", patient=None, protocol="percept", source="phantom", target=None, path=None, number=number,
        step=str(number), stage=1, task="detection", format="choice", multiple=False, options=2,
        **{"state": "answered", "raw": "Answer: 1", **more},
    )  # fmt: skip


def written(folder, *entries, process=0):
    with StepLog(log_path(folder, process)) as log:
        log.append(entries)
        log.sync()


def test_entries_are_found_by_case_and_step(tmp_path):
    written(tmp_path, Entry(row=row()), Entry(row=row(number=1)))
    written(tmp_path, Entry(row=row("b"), text="a longer reply"), process=1)
    found = read_log(tmp_path)
    assert {case: sorted(steps) for case, steps in found.items()} == {"a": [0, 1], "b": [0]}
    assert found["a"][0].reply == "Answer: 1"
    assert found["b"][0].reply == "a longer reply"


def test_later_calls_add_to_the_file(tmp_path):
    written(tmp_path, Entry(row=row()))
    written(tmp_path, Entry(row=row(number=1)))
    assert sorted(read_log(tmp_path)["a"]) == [0, 1]


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_truncated_last_line_is_dropped_and_the_file_stays_usable(tmp_path, cut):
    written(tmp_path, Entry(row=row()), Entry(row=row(number=1)))
    path = log_path(tmp_path)
    path.write_bytes(path.read_bytes()[:-cut])
    # Whoever else may be writing leaves the file alone.
    assert sorted(read_log(tmp_path)["a"]) == [0]
    assert not path.read_bytes().endswith(b"\n")
    assert sorted(read_log(tmp_path, repair=True)["a"]) == [0]
    written(tmp_path, Entry(row=row(number=2)))
    assert sorted(read_log(tmp_path)["a"]) == [0, 2]


def test_an_answer_replaces_an_error_and_never_the_reverse(tmp_path):
    failed = Entry(row=row(state="incomplete", raw=None, error="down"))
    written(tmp_path, failed, Entry(row=row()), process=0)
    written(tmp_path, failed, process=1)
    assert read_log(tmp_path)["a"][0].row.state == "answered"


def test_a_line_that_is_no_entry_is_refused_by_line(tmp_path):
    written(tmp_path, Entry(row=row()))
    with log_path(tmp_path).open("ab") as file:
        file.write(b'{"row": 3}\n')
    with pytest.raises(CarinaError, match=r"steps-00\.jsonl, line 2: not an answered step"):
        read_log(tmp_path)


def test_entries_survive_the_round_trip(tmp_path):
    entry = Entry(row=row(answer=("yes",), seconds=1.25, text="é\n☃"), text="raw ☃")
    written(tmp_path, entry)
    assert read_log(tmp_path)["a"][0] == entry
    assert msgspec.json.decode(log_path(tmp_path).read_bytes(), type=Entry) == entry


def test_bytes_that_are_no_text_are_refused_by_line(tmp_path):
    written(tmp_path, Entry(row=row(raw="abc")))
    path = log_path(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"abc", b"\xff\xfe\xfd"))
    with pytest.raises(CarinaError, match=r"steps-00\.jsonl, line 1: not an answered step"):
        dict(read_log(tmp_path))

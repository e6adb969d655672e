"""Conversations in order of their stages and others in no order: told apart in the head of a report."""

import importlib.util
import json
from pathlib import Path

import msgspec
import pytest

from carina.cases import Provenance, open_benchmark, write_benchmark
from carina.report import write_report
from carina.report.exam import exams
from carina.report.read import read_runs
from carina.studies import write_png

spec = importlib.util.spec_from_file_location(
    "talk_like", Path(__file__).parents[1] / "show" / "talk_like.py"
)
like = importlib.util.module_from_spec(spec)
spec.loader.exec_module(like)


@pytest.fixture
def talks(small, tmp_path):
    """Writes a benchmark of conversations in these orders, and a run on it."""

    def write(name, *orders):
        for key in like.KEYS:
            write_png(tmp_path / name / key, like.film())
        cases = [
            msgspec.structs.replace(like.talk(), id=f"talk-{number}", patient=f"p{number}", order=order)
            for number, order in enumerate(orders)
        ]
        write_benchmark(tmp_path / name, cases, Provenance(command="test"))
        rows = [
            small.row(case, step, number, status="ok", raw="words", correct=number % 2 == 0, score=0.5)
            for case in cases
            for number, step in enumerate(case.steps)
        ]
        bench = open_benchmark(tmp_path / name)
        return small.write_run(tmp_path / f"run-{name}", bench, rows, "lab/alpha", "own")

    return write


def titles(*runs):
    return [exam.title for exam in exams(read_runs(list(runs)))]


def test_staged_alone_needs_no_word(talks):
    assert titles(talks("a", "staged")) == ["trek · a"]


def test_both_are_told_apart(talks, tmp_path):
    runs = [talks("a", "staged"), talks("b", "shuffled")]
    assert titles(*runs) == ["trek · a · staged order", "trek · b · shuffled order"]
    written = write_report(runs, tmp_path / "report")
    source = written.html.read_text()
    # In the head, in the way to the section, and above it.
    assert source.count("trek · b · shuffled order") >= 3
    data = json.loads(source.partition('id="data">')[2].partition("</script>")[0])
    assert data["exams"] == ["trek · a · staged order", "trek · b · shuffled order"]


def test_both_in_one_benchmark_are_counted_and_scored_apart(talks):
    (exam,) = exams(read_runs([talks("a", "staged", "shuffled", "shuffled")]))
    assert exam.title == "trek · a · 1 staged, 2 shuffled"
    (order,) = [one for one in exam.facts.dimensions if one.title == "Order"]
    assert order.labels == ("staged", "shuffled")

"""Conversations in order of their stages and shuffled ones: the titles of a report say which is which."""

import json

import msgspec
import pytest
from tests.pages import conversation_cases as like

from carina.cases import Provenance, open_benchmark, write_benchmark
from carina.pages.report import report as write_report
from carina.runs.analysis.read import read_runs
from carina.runs.analysis.run_groups import group_runs
from carina.studies import write_png


@pytest.fixture
def talks(small, tmp_path):
    """Writes a benchmark of conversations in these orders, and a run on it."""

    def write(name, *orders):
        for key in like.KEYS:
            write_png(tmp_path / name / key, like.image_pixels())
        cases = [
            msgspec.structs.replace(
                like.conversation(), id=f"talk-{number}", patient=f"p{number}", order=order
            )
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
    return [group.title for group in group_runs(read_runs(list(runs)))]


def test_staged_conversations_alone_have_no_order_in_the_title(talks):
    assert titles(talks("a", "staged")) == ["trek · a"]


def test_staged_and_shuffled_benchmarks_have_their_order_in_the_title(talks, tmp_path):
    runs = [talks("a", "staged"), talks("b", "shuffled")]
    assert titles(*runs) == ["trek · a · staged order", "trek · b · shuffled order"]
    written = write_report(runs, tmp_path / "report")
    source = written.pages[0].read_text()
    # In the head, in the way to the section, and above it.
    assert source.count("trek · b · shuffled order") >= 3
    data = json.loads(source.partition('id="data">')[2].partition("</script>")[0])
    assert data["groups"] == ["trek · a · staged order", "trek · b · shuffled order"]


def test_both_orders_in_one_benchmark_are_counted_and_broken_down(talks):
    (group,) = group_runs(read_runs([talks("a", "staged", "shuffled", "shuffled")]))
    assert group.title == "trek · a · 1 staged, 2 shuffled"
    (order,) = [one for one in group.facts.dimensions if one.title == "Order"]
    assert order.labels == ("staged", "shuffled")

"""Whole runs with in-process models: finished, resumed, refused."""

from contextlib import contextmanager

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.runs.conftest import CASES

from carina.models.served import Reply
from carina.runs import Policy, open_run, read_info, shards
from carina.runs.builtin.oracle import Oracle
from carina.runs.evaluate import run_model
from carina.runs.log import log_path
from carina.runs.options import RunOptions
from carina.store.errors import CarinaError

STEPS = sum(len(case.steps) for case in CASES)


def run(bench, out, model="builtin/oracle", **options):
    return run_model(bench.directory, model, out, RunOptions(**options))


def timeless(rows):
    return [msgspec.structs.replace(row, seconds=None) for row in rows]


class Failing(Oracle):
    """Answers so many turns, then the process dies; or fails on some of them."""

    name = "builtin/failing"
    batch = 3

    def __init__(self, benchmark, turns=None, fails=()):
        super().__init__(benchmark)
        self.left, self.fails, self.asked = turns, fails, []

    def answer(self, turns, images):
        if self.left is not None:
            self.left -= len(turns)
            if self.left < 0:
                raise KeyboardInterrupt
        self.asked += [(turn.case, turn.step.id) for turn in turns]
        replies = super().answer(turns, images)
        return [
            Reply(text=None, error="no memory") if (t.case, t.step.id) in self.fails else reply
            for t, reply in zip(turns, replies, strict=True)
        ]


@pytest.fixture
def use_model(monkeypatch):
    """Sets the model that answers."""

    def use(made):
        monkeypatch.setattr(shards, "_open_once", lambda *_: made)
        return made

    return use


def test_the_oracle_is_right_about_every_step(bench, tmp_path):
    reports = []

    @contextmanager
    def progress(title, total):
        reports.append((title, total))
        yield lambda done=1, /, *, asked=0, failed=0: reports.append((done, asked, failed))

    result = run_model(bench.directory, "builtin/oracle", tmp_path / "run", RunOptions(), progress=progress)
    assert reports[0] == ("Cases", len(CASES))
    assert [sum(column) for column in zip(*reports[1:], strict=True)] == [len(CASES), STEPS, 0]
    assert (result.counts.cases, result.counts.complete) == (len(CASES), len(CASES))
    assert (result.counts.steps, result.counts.answered) == (STEPS, STEPS)
    assert result.counts.statuses == {"ok": STEPS}
    rows = open_run(tmp_path / "run").rows()
    assert [(row.case, row.step) for row in rows] == [
        (case.id, step.id) for case in CASES for step in case.steps
    ]
    assert {row.correct for row in rows} == {True, None}
    assert {row.score for row in rows} == {1.0}
    info = read_info(tmp_path / "run")
    assert (info.model, info.policy, info.cases) == ("builtin/oracle", Policy(), None)


@pytest.mark.parametrize("turns", [0, 1, 4, 17, STEPS - 1])
def test_resume_asks_no_answered_step_again(bench, tmp_path, use_model, turns):
    run(bench, tmp_path / "whole")
    use_model(Failing(bench, turns=turns))
    with pytest.raises(KeyboardInterrupt):
        run(bench, tmp_path / "broken")
    first = use_model(Failing(bench))
    run(bench, tmp_path / "broken")
    assert timeless(open_run(tmp_path / "broken").rows()) == timeless(open_run(tmp_path / "whole").rows())
    # Nothing that was answered is asked again.
    assert len(first.asked) == len(set(first.asked))
    assert len(first.asked) >= STEPS - turns - 1
    third = use_model(Failing(bench))
    run(bench, tmp_path / "broken")
    assert third.asked == []


def test_failed_cases_are_listed_and_asked_again(bench, tmp_path, use_model):
    use_model(Failing(bench, fails={("rr", "3a"), ("talk-1", "t1")}))
    result = run(bench, tmp_path / "run")
    assert sorted(result.failures) == [("rr", "no memory"), ("talk-1", "no memory")]
    assert result.counts.incomplete == 5 + 5
    assert result.counts.complete == len(CASES) - 2
    second = use_model(Failing(bench))
    retried = run(bench, tmp_path / "run")
    assert retried.failures == ()
    assert retried.counts.answered == STEPS
    assert sorted(second.asked)[0] == ("rr", "3a")
    assert len(second.asked) == 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": Policy(history="gold")}, "history own, not gold"),
        ({"model": "builtin/random"}, "model builtin/oracle, not builtin/random"),
        ({"blind": True}, "blind False, not True"),
        ({"max_side": 64}, "max_side None, not 64"),
    ],
)
def test_other_options_in_the_same_directory_are_refused_with_the_difference(
    bench, tmp_path, options, message
):
    run(bench, tmp_path / "run")
    with pytest.raises(CarinaError, match=f"holds another run .*{message}"):
        run(bench, tmp_path / "run", **options)


def test_another_version_of_the_benchmark_is_refused(bench, tmp_path):
    from carina.cases import Provenance, write_benchmark

    run(bench, tmp_path / "run", limit=1)
    write_benchmark(tmp_path / "other", CASES[:4], Provenance(command="made by hand"))
    with pytest.raises(CarinaError, match=r"holds another run .*fingerprint"):
        run_model(tmp_path / "other", "builtin/oracle", tmp_path / "run", RunOptions(limit=1))


def test_a_directory_with_other_files_is_refused(bench, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(CarinaError, match="is not empty and holds no run"):
        run(bench, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_selected_cases_are_recorded(bench, tmp_path):
    run(bench, tmp_path / "run", sample_per_stratum=1, seed=3)
    info = read_info(tmp_path / "run")
    assert len(info.cases) == 3
    assert info.selection == {"limit": None, "sample_per_cell": 1, "split": None, "seed": 3}
    assert {row.case for row in open_run(tmp_path / "run").rows()} == set(info.cases)


def test_the_table_opens_in_any_tool(bench, tmp_path):
    run(bench, tmp_path / "run", "builtin/random", limit=3)
    table = pq.read_table(tmp_path / "run" / "steps.parquet")
    assert table.num_rows == sum(len(case.steps) for case in CASES[:3])
    assert {"case", "step", "correct", "raw", "chance"} <= set(table.column_names)


def test_concatenated_tables_say_which_run_each_row_is_from(bench, tmp_path):
    run(bench, tmp_path / "one", "builtin/random", limit=2)
    run(bench, tmp_path / "other", "builtin/oracle", limit=1, policy=Policy(history="gold"), blind=True)
    tables = [pq.read_table(tmp_path / name / "steps.parquet") for name in ("one", "other")]
    together = pa.concat_tables(tables).select(["model", "history", "blind", "case"]).to_pylist()
    assert [tuple(row.values()) for row in together] == [
        *[("builtin/random", "own", False, case.id) for case in CASES[:2] for _ in case.steps],
        ("builtin/oracle", "gold", True, CASES[0].id),
    ]


def test_an_unfinished_run_is_refused_by_file(bench, tmp_path, use_model):
    use_model(Failing(bench, turns=0))
    with pytest.raises(KeyboardInterrupt):
        run(bench, tmp_path / "run")
    with pytest.raises(CarinaError, match=r"steps\.parquet: missing; the run is not finished"):
        open_run(tmp_path / "run").rows()
    for function in (read_info, open_run):
        with pytest.raises(CarinaError, match=r"nowhere: holds no run \(run\.json is missing\)"):
            function(tmp_path / "nowhere")


def test_answers_are_on_disk_before_the_next_question(bench, tmp_path, use_model):
    out = tmp_path / "run"

    class Watching(Failing):
        def answer(self, turns, images):
            lines = log_path(out).read_bytes().count(b"\n") if log_path(out).exists() else 0
            assert lines == len(self.asked)
            return super().answer(turns, images)

    use_model(Watching(bench))
    run(bench, out)


def test_random_is_at_chance(bench, tmp_path):
    run(bench, tmp_path / "run", "builtin/random")
    rows = [row for row in open_run(tmp_path / "run").rows() if row.chance is not None]
    assert all(row.status == "ok" for row in rows)
    assert {row.chance for row in rows if row.step in ("1", "2", "t3")} == {0.5}
    assert {row.chance for row in rows if row.step == "3a"} == {1 / 8}


def test_processes_share_the_cases_and_the_table_is_the_same(bench, tmp_path, monkeypatch):
    run(bench, tmp_path / "one", "builtin/random")
    monkeypatch.setattr(shards, "_SHARE", 5)
    run(bench, tmp_path / "two", "builtin/random", processes=2)
    assert len(list((tmp_path / "two").glob("steps-*.jsonl"))) == 3
    assert timeless(open_run(tmp_path / "two").rows()) == timeless(open_run(tmp_path / "one").rows())


def test_a_call_that_could_not_open_its_model_leaves_the_directory_free(bench, tmp_path, monkeypatch):
    out = tmp_path / "run"

    def fail(*_):
        raise CarinaError("no weights")

    with monkeypatch.context() as patch:
        patch.setattr(shards, "_open_once", fail)
        with pytest.raises(CarinaError, match="no weights"):
            run(bench, out, "builtin/oracle")
    (out / ".run.json.123.tmp").touch()
    assert run(bench, out, "builtin/random", limit=1).info.model == "builtin/random"


def test_a_benchmark_without_cases_is_refused(tmp_path):
    from carina.cases import Provenance, write_benchmark

    write_benchmark(tmp_path / "empty", [], Provenance(command="nothing"))
    with pytest.raises(CarinaError, match="empty: the benchmark has no cases"):
        run_model(tmp_path / "empty", "builtin/random", tmp_path / "run", RunOptions())


def test_a_case_without_steps_is_refused_before_anything_is_asked(tmp_path):
    from carina.cases import Provenance, write_benchmark

    bare = msgspec.structs.replace(CASES[0], id="bare", steps=())
    write_benchmark(tmp_path / "bench", [bare, CASES[0]], Provenance(command="test"))
    with pytest.raises(CarinaError, match=r"case 'bare': steps: empty.*carina check"):
        run_model(tmp_path / "bench", "builtin/oracle", tmp_path / "run", RunOptions())
    assert not (tmp_path / "run/run.json").exists()


def test_a_lone_surrogate_in_an_answer_does_not_end_a_run(bench, tmp_path, use_model):
    class Halved(Failing):
        def answer(self, turns, images):
            return [Reply(text=f"{one.text} \ud83d") for one in super().answer(turns, images)]

    use_model(Halved(bench))
    run(bench, tmp_path / "run", limit=2)
    assert run(bench, tmp_path / "run", limit=2).counts.complete == 2


def test_the_batch_size_is_that_of_the_option_and_changes_no_answer(bench, tmp_path):
    sizes = []

    class Batched(Failing):
        def answer(self, turns, images):
            sizes.append(len(turns))
            return super().answer(turns, images)

    def opened(_name, **_options):
        return Batched(bench)

    tables = {}
    for size in (None, 1, 7):
        sizes.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(shards, "open_model", opened)
            shards._open_once.cache_clear()
            tables[size] = timeless(run(bench, tmp_path / f"run-{size}", batch_size=size).rows())
        assert max(sizes) == (size or Batched.batch)
    shards._open_once.cache_clear()
    assert tables[None] == tables[1] == tables[7]

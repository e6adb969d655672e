"""Work shared between processes: in order, as needed, and none left behind."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import cv2
import pytest

from carina.store.errors import CarinaError
from carina.store.workers import in_order, local, pool, send_message


def slow_first(task: int) -> tuple[int, int]:
    """The earlier the task, the later it ends."""
    time.sleep(max(0, 4 - task) * 0.05)
    return task, os.getpid()


def refuse(task: int, *, bad: int) -> int:
    if task == bad:
        raise ValueError(f"task {task} is refused")
    return task * 10


def chatter(task: int) -> int:
    for number in range(task):
        send_message((task, number))
    if task == 4:
        raise ValueError("task 4 is refused")
    return task * 10


def die(task: int) -> int:
    if task == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def threads(_task: int) -> int:
    return cv2.getNumThreads()


def sleep_and_tell(directory: Path, task: int) -> None:
    (directory / f"{task}").write_text(str(os.getpid()))
    time.sleep(60)


def run_for_ever(directory: Path) -> None:
    list(in_order(partial(sleep_and_tell, directory), range(100), workers=2))


def test_results_come_in_the_order_of_the_tasks_from_other_processes():
    results = list(in_order(slow_first, range(12), workers=2))
    assert [task for task, _ in results] == list(range(12))
    processes = {process for _, process in results}
    assert os.getpid() not in processes
    assert len(processes) == 2


@pytest.mark.parametrize("workers", [0, 1])
def test_one_worker_runs_in_this_process(workers):
    assert list(in_order(slow_first, [7, 8], workers=workers)) == [(7, os.getpid()), (8, os.getpid())]


def test_no_tasks_give_no_results():
    assert list(in_order(slow_first, [], workers=2)) == []


@pytest.mark.parametrize(("workers", "ahead", "most"), [(1, 4, 1), (2, 2, 4), (2, 3, 6)])
def test_tasks_are_taken_as_results_are_asked_for(workers, ahead, most):
    taken = 0

    def tasks():
        nonlocal taken
        for task in range(30):
            taken += 1
            yield task

    results = in_order(slow_first, tasks(), workers=workers, ahead=ahead)
    assert taken == 0
    for given in range(30):
        assert next(results)[0] == given
        assert taken == min(30, given + most)
    assert next(results, None) is None


@pytest.mark.parametrize("workers", [1, 2])
def test_the_error_of_a_task_is_raised_at_its_place(workers):
    results = in_order(partial(refuse, bad=2), range(9), workers=workers)
    assert [next(results), next(results)] == [0, 10]
    with pytest.raises(ValueError, match="task 2 is refused"):
        next(results)
    assert list(results) == []


def test_an_error_of_the_task_iterator_is_raised():
    def tasks():
        yield 1
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        list(in_order(slow_first, tasks(), workers=2))


def test_workers_do_not_share_out_their_share():
    assert set(in_order(threads, range(4), workers=2)) == {1}


def test_a_pool_does_several_pieces_of_work_with_the_same_workers():
    with pool(workers=2) as opened:
        first = list(opened.in_order(slow_first, range(6), ahead=2))
        second = list(opened.in_order(partial(refuse, bad=-1), range(6)))
        third = list(opened.in_order(slow_first, range(6)))
    assert [task for task, _ in first] == [task for task, _ in third] == list(range(6))
    assert second == [0, 10, 20, 30, 40, 50]
    assert {process for _, process in first} == {process for _, process in third}


def test_work_that_is_given_up_leaves_the_workers_to_the_next():
    with pool(workers=2) as opened:
        begun = opened.in_order(slow_first, range(100))
        assert next(begun)[0] == 0
        begun.close()
        assert [task for task, _ in opened.in_order(slow_first, range(3))] == [0, 1, 2]


def test_a_pool_of_one_is_this_process():
    with pool(workers=1) as opened:
        opened.begin(slow_first)
        assert list(opened.in_order(slow_first, [7])) == [(7, os.getpid())]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to see processes")
def test_workers_start_before_there_is_work():
    def started() -> set[int]:
        told = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
        return set(map(int, told)) - before

    before: set[int] = set()
    before = started()
    with pool(workers=2) as opened:
        opened.begin(slow_first)
        # Beside them there may be the process that clears up after all of them.
        assert len(started()) >= 2
        assert {process for _, process in opened.in_order(slow_first, range(6))} <= started()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see processes")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_worker_outlives_its_parent(tmp_path, how):
    run = "import sys; sys.path.insert(0, sys.argv[1]); import test_workers; from pathlib import Path; "
    run += "test_workers.run_for_ever(Path(sys.argv[2]))"
    with subprocess.Popen([sys.executable, "-c", run, Path(__file__).parent, tmp_path]) as parent:
        until = time.monotonic() + 60
        while len(told := [path.read_text() for path in tmp_path.iterdir()]) < 2 or "" in told:
            assert parent.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        parent.send_signal(how)
        parent.wait()
    while any(Path(f"/proc/{process}").exists() for process in told):
        assert time.monotonic() < until, "a worker goes on without its parent"
        time.sleep(0.02)


# ---- messages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_messages_of_a_task_are_heard_before_its_result(workers):
    heard = []
    with pool(workers=workers) as opened:
        for task, result in enumerate(opened.in_order(chatter, range(4), on_message=heard.append)):
            assert result == task * 10
            assert [message for message in heard if message[0] == task] == [(task, n) for n in range(task)]
        assert sorted(heard) == [(task, number) for task in range(4) for number in range(task)]
        # Where nobody listens, messages go nowhere.
        assert list(opened.in_order(chatter, range(4))) == [0, 10, 20, 30]
    assert len(heard) == 6
    send_message("outside of any task")
    assert len(heard) == 6


@pytest.mark.parametrize("workers", [1, 2])
def test_a_task_that_fails_after_its_messages_raises_and_the_pool_goes_on(workers):
    heard = []
    with pool(workers=workers) as opened:
        with pytest.raises(ValueError, match="task 4 is refused"):
            list(opened.in_order(chatter, range(6), on_message=heard.append))
        assert list(opened.in_order(chatter, [2], on_message=heard.append)) == [20]
    assert heard[-2:] == [(2, 0), (2, 1)]


def test_a_killed_worker_is_reported_with_what_to_do():
    with pytest.raises(CarinaError, match=r"a worker process ended unexpectedly.*same command again"):
        list(in_order(die, range(4), workers=2))


def test_a_script_needs_no_guard_around_its_calls(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from carina.store.workers import in_order\n"
        "print('running')\n"
        "print(list(in_order(str.upper, ['a', 'b', 'c'], workers=2)), __file__)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.stdout == f"running\n['A', 'B', 'C'] {script}\n", done.stderr


# ---- interrupts and lost workers -------------------------------------------------------------------------------------


class TwoWordsError(Exception):
    """An error whose copy cannot be made from its message alone."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


def raise_two_words(_task: int) -> None:
    raise TwoWordsError("cannot", "travel")


def write_and_wait(directory: Path, task: int) -> None:
    temporary = directory / f"{task}.tmp"
    temporary.write_text("begun")
    try:
        time.sleep(60)
    finally:
        temporary.unlink()


def large(task: int) -> bytes:
    return bytes(1_000_000) + task.to_bytes(4, "big")


def wait_until(is_true) -> None:
    until = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_an_error_that_cannot_be_copied_is_raised_with_its_traceback_as_text():
    with pytest.raises(RuntimeError, match=r"(?s)raise_two_words.*TwoWordsError: cannot travel"):
        list(in_order(raise_two_words, range(2), workers=2))


def test_an_error_that_is_no_sentence_for_users_carries_the_traceback_of_the_worker():
    with pytest.raises(ValueError, match="task 0 is refused") as raised:
        list(in_order(partial(refuse, bad=0), range(2), workers=2))
    assert "in refuse" in raised.value.__notes__[0]


def test_an_interrupted_worker_removes_its_temporary_files(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "_GRACE", 60.0)

    def tasks():
        yield from range(2)
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(in_order(partial(write_and_wait, tmp_path), tasks(), workers=2))
    assert list(tmp_path.iterdir()) == []


def test_results_that_nobody_takes_do_not_keep_the_pool_from_ending():
    with pool(workers=2) as opened:
        results = opened.in_order(large, range(8))
        assert next(results) == bytes(1_000_004)
        with pytest.raises(ZeroDivisionError):
            raise ZeroDivisionError


def test_two_pieces_of_work_may_take_turns():
    with pool(workers=2) as opened:
        first = opened.in_order(partial(refuse, bad=-1), range(6), ahead=1)
        second = opened.in_order(large, range(3), ahead=1)
        assert [next(first), next(second), next(first)] == [0, large(0), 10]
        first.close()
        assert list(second) == [large(1), large(2)]


def test_workers_import_nothing_from_the_current_directory(tmp_path):
    for name in ("array", "cv2", "numpy", "pickle", "socket", "tempfile"):
        (tmp_path / f"{name}.py").write_text(f"open('{name}.imported', 'w').close()\n")
    script = (
        "import sys; sys.path.remove(''); from carina.store.workers import in_order; "
        "print(list(in_order(str.upper, ['a'] * 4, workers=2)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=os.environ | {"PYTHONSAFEPATH": ""}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "['A', 'A', 'A', 'A']\n", done.stderr
    assert sorted(path.name for path in tmp_path.glob("*.imported")) == []


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import carina.cli, carina.program, test_workers
from pathlib import Path

def work(**_):
    test_workers.run_for_ever(Path(sys.argv[2]))

carina.cli.app = work
carina.program.main()
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see processes")
@pytest.mark.parametrize("number", [1, 2, 5])
def test_the_program_ends_after_any_number_of_interrupts(tmp_path, number):
    command = [sys.executable, "-c", PROGRAM, Path(__file__).parent, tmp_path]
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True) as program:
        wait_until(
            lambda: len(told := [path.read_text() for path in tmp_path.iterdir()]) == 2 and "" not in told
        )
        workers = [path.read_text() for path in tmp_path.iterdir()]
        for _ in range(number):
            os.killpg(program.pid, signal.SIGINT)
        assert program.wait(timeout=60) in (130, -signal.SIGINT)
        assert program.stderr.read() == ""
    wait_until(lambda: not any(Path(f"/proc/{process}").exists() for process in workers))


def test_the_second_interrupt_is_left_to_the_operating_system():
    script = (
        "import signal, carina.program as program; signal.signal(signal.SIGINT, program._interrupt)\n"
        "try:\n    signal.raise_signal(signal.SIGINT)\n"
        "except KeyboardInterrupt:\n    print(signal.getsignal(signal.SIGINT) is signal.SIG_DFL)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


LOST = """
import signal, sys
import carina.cli, carina.program

class Dropped:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)  # Python prints and drops what is raised here

def work(**_):
    Dropped()
    signal.pause()

carina.cli.app = work
carina.program.main()
"""


def test_an_interrupt_while_python_cleans_up_is_not_lost():
    done = subprocess.run(
        [sys.executable, "-c", LOST], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (130, "")

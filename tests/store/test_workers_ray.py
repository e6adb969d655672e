"""Work shared with a Ray cluster of two machines: in order, as needed, and nothing lost with a worker."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import cv2
import pytest

from carina.store.errors import CarinaError, RegionError
from carina.store.workers import in_order

pytestmark = pytest.mark.xdist_group("ray")  # one cluster for all of them

ray = pytest.importorskip("ray")
MACHINE = {"num_cpus": 1, "object_store_memory": 80 * 1024 * 1024, "include_dashboard": False}


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        # Workers import the functions of this module from here.
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]), prepend=os.pathsep)
        two = Cluster(initialize_head=True, head_node_args=MACHINE)
        two.add_node(**MACHINE)
        two.wait_for_nodes()
        yield two
        two.shutdown()


@pytest.fixture
def on_cluster(cluster):
    return partial(in_order, workers=1, engine="ray", address=cluster.address)


def where(task: int) -> tuple[int, str, int]:
    """The earlier the task, the later it ends."""
    import ray

    time.sleep(max(0, 4 - task) * 0.05)
    return task, ray.get_runtime_context().get_node_id(), cv2.getNumThreads()


def refuse(task: int, *, bad: int) -> int:
    if task == bad:
        raise RegionError(f"task {task} is refused")
    return task * 10


def die_once(marks: Path, task: int) -> int:
    mark = marks / str(task)
    if task % 3 == 1 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return task * 10


def die(_task: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stay_on(doomed: str, marks: Path, task: int) -> int:
    """On the machine that is to go away every task but the first is begun and never ended."""
    import ray

    if task and ray.get_runtime_context().get_node_id() == doomed:
        (marks / str(task)).touch()
        time.sleep(600)
    return task * 10


def test_results_come_in_order_from_both_machines(on_cluster):
    results = list(on_cluster(where, range(24)))
    assert [task for task, _, _ in results] == list(range(24))
    assert len({machine for _, machine, _ in results}) == 2
    assert {threads for _, _, threads in results} == {1}
    assert not ray.is_initialized()


def test_no_tasks_give_no_results(on_cluster):
    assert list(on_cluster(where, [])) == []


def test_tasks_are_taken_as_results_are_asked_for(on_cluster):
    taken = 0

    def tasks():
        nonlocal taken
        for task in range(12):
            taken += 1
            yield task

    results = on_cluster(partial(refuse, bad=99), tasks(), ahead=2)
    assert taken == 0
    for given in range(12):
        assert next(results) == given * 10
        assert taken == min(12, given + 4)  # two each for two cores
    assert next(results, None) is None


def test_the_error_of_a_task_is_raised_at_its_place(on_cluster):
    results = on_cluster(partial(refuse, bad=2), range(9))
    assert [next(results), next(results)] == [0, 10]
    with pytest.raises(RegionError, match="task 2 is refused") as caught:
        next(results)
    assert type(caught.value) is RegionError
    assert list(results) == []
    assert not ray.is_initialized()


def test_a_killed_worker_loses_nothing(on_cluster, tmp_path):
    assert list(on_cluster(partial(die_once, tmp_path), range(6))) == [0, 10, 20, 30, 40, 50]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "4"]


def test_a_task_that_kills_every_worker_is_given_up(on_cluster, monkeypatch):
    monkeypatch.setattr("carina.store.workers.on_ray._RETRIES", 1)
    with pytest.raises(CarinaError, match=r"Ray lost a task for good: .*died"):
        list(on_cluster(die, [1]))


def test_a_connection_of_the_caller_is_used_and_left(cluster, on_cluster):
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    try:
        assert [task for task, _, _ in on_cluster(where, range(5))] == list(range(5))
        assert ray.is_initialized()
    finally:
        ray.shutdown()


def test_ray_is_started_here_where_no_cluster_is_named_and_says_nothing(tmp_path):
    run = "from carina.store.workers import in_order; import operator;"
    run += "print(list(in_order(operator.neg, range(3), workers=1, engine='ray')))"
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    done = subprocess.run(
        [sys.executable, "-c", run], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path
    )
    assert (done.stdout, done.stderr) == ("[0, -1, -2]\n", "")


def test_an_address_where_nobody_is_is_an_error():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(CarinaError, match=f"no Ray cluster answers at 127.0.0.1:{port}: Connection refused"):
        list(in_order(where, [1], workers=1, engine="ray", address=f"127.0.0.1:{port}"))


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_an_address_where_somebody_else_is_is_an_error(answer):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def reply():
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(answer)

        threading.Thread(target=reply, daemon=True).start()
        port = server.getsockname()[1]
        with pytest.raises(CarinaError, match=f"at 127.0.0.1:{port}: what is there speaks otherwise"):
            list(in_order(where, [1], workers=1, engine="ray", address=f"127.0.0.1:{port}"))


def test_somebody_who_says_nothing_is_not_waited_for_long(monkeypatch):
    monkeypatch.setattr("carina.store.workers.on_ray._PATIENCE", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(CarinaError, match=f"at {address}: what is there speaks otherwise"):
            list(in_order(where, [1], workers=1, engine="ray", address=address))


@pytest.mark.parametrize("address", ["somewhere", "host:", ":6379", "ray://host"])
def test_an_invalid_address_is_refused(address):
    with pytest.raises(CarinaError, match=r"is no address of a Ray cluster: expected host:port"):
        list(in_order(where, [1], workers=1, engine="ray", address=address))


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(CarinaError, match=r"this needs ray: pip install 'carina\[ray\]'"):
        list(in_order(where, [1], workers=1, engine="ray"))


def test_ray_is_imported_only_when_it_is_used():
    run = "import sys; from carina.store.workers import in_order; list(in_order(abs, [1], workers=1)); "
    run += "assert 'ray' not in sys.modules"
    subprocess.run([sys.executable, "-c", run], check=True)


def test_workers_import_nothing_from_the_current_directory(cluster, tmp_path):
    for name in ("cv2", "numpy"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w').close()\n")
    script = (
        "import sys; sys.path.remove(''); from carina.store.workers import in_order; "
        f"print(list(in_order(str.upper, ['a', 'b'], workers=1, engine='ray', address={cluster.address!r})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "['A', 'B']\n", done.stderr
    assert not (tmp_path / "imported").exists()

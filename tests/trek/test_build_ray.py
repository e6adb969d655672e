"""The same build on a Ray cluster of two machines, also when a worker is killed on the way."""

import hashlib
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from carina.cases import open_benchmark
from carina.store.progress import call_on_advance
from carina.studies import open_studies
from carina.trek import build_trek

pytestmark = pytest.mark.xdist_group("ray")  # one cluster for all of them

ray = pytest.importorskip("ray")
MACHINE = {"num_cpus": 1, "object_store_memory": 80 * 1024 * 1024, "include_dashboard": False}
OPTIONS = {"seed": 3, "part_size": 12}


def digests(directory):
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    two = Cluster(initialize_head=True, head_node_args=MACHINE)
    two.add_node(**MACHINE)
    two.wait_for_nodes()
    yield two
    two.shutdown()


@pytest.fixture(scope="module")
def studies(made, phantoms, tmp_path_factory):
    return open_studies(made.write(tmp_path_factory.mktemp("trek") / "studies", phantoms))


@pytest.fixture(scope="module")
def local(studies):
    directory = studies.directory.parent / "local"
    build_trek(studies, directory, **OPTIONS, workers=1)
    return digests(directory)


def parent_of(process: Path) -> int:
    lines = (process / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("PPid:"))


def is_ours(pid: int) -> bool:
    """Whether a process descends from this one: nothing else may be ended."""
    while pid > 1 and pid != os.getpid():
        pid = parent_of(Path("/proc") / str(pid))
    return pid == os.getpid()


def at_work() -> list[int]:
    """Ids of our cluster's workers that are at a task; Ray names a process after what it does."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cmdline").read_bytes().startswith(b"ray::_attempt") and is_ours(int(process.name)):
                found.append(int(process.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def test_a_cluster_writes_the_same_bytes(cluster, studies, local):
    directory = studies.directory.parent / "cluster"
    told = []
    built = build_trek(
        studies,
        directory,
        **OPTIONS,
        engine="ray",
        address=cluster.address,
        progress=call_on_advance(told.append),
    )
    assert digests(directory) == local
    assert told == [part.rows for part in built.manifest.parts]
    assert len(told) > 5
    assert not ray.is_initialized()


def test_a_killed_worker_loses_nothing(cluster, studies, local):
    directory = studies.directory.parent / "killed"
    killed: list[int] = []
    over = threading.Event()

    def kill_one():
        while not over.is_set() and not killed:
            for pid in at_work()[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            time.sleep(0.001)

    hunter = threading.Thread(target=kill_one)
    hunter.start()
    try:
        build_trek(studies, directory, **OPTIONS, engine="ray", address=cluster.address)
    finally:
        over.set()
        hunter.join()
    assert len(killed) == 1
    assert digests(directory) == local
    assert list(open_benchmark(directory).check(images=False)) == []


def test_without_a_cluster_the_error_names_the_address(studies, tmp_path):
    from carina.store.errors import CarinaError

    with pytest.raises(CarinaError, match=r"no Ray cluster answers at 127\.0\.0\.1:1"):
        build_trek(studies, tmp_path / "bench", **OPTIONS, engine="ray", address="127.0.0.1:1")
    assert not (tmp_path / "bench" / "bench.json").exists()

"""Overhead of a turn without the model: turns per second of one process against a loopback service.

Conversations of five turns, in which three images of 125 KB are sent one after the other and the history grows as in
real runs, 50 at a time, in the same run by
  bare      a plain asyncio + httpx loop that sends the same messages and stores nothing
  bare2     the same with httpx2, which the openai client uses: it does not search all connections at each request
  carina    `carina run`: inspect-ai's model layer, Carina's walk, scores and fsynced log
  inspect   `inspect eval` of the same walk, without images in its log
The service answers after 50 ms and counts, in its own process, from the first request to the last answer: start-up is
not measured. A second round with a delay of one second shows how near `carina run` comes to the ideal. Other work on
the machine distorts the numbers: all is repeated in turn, and medians are printed with the CPU time of a turn.

    python benchmarks/run_overhead.py
"""

import argparse
import asyncio
import base64
import importlib
import json
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from carina.cases import (
    Case,
    CaseImage,
    CaseView,
    Key,
    Option,
    Panel,
    Provenance,
    Step,
    open_benchmark,
    write_benchmark,
)
from carina.cases.messages import Message, messages
from carina.runs.prompts import system_prompt
from carina.studies import SourceInfo, write_png

TURNS = 5
ENTERS = (1, 2, 3)
"""Turns with which a picture enters."""
SIDE = 354
"""Of a picture of noise: 125 KB as a grey PNG."""
PICTURES = 12
CONNECTIONS = 50
LATENCY = 0.050
SLOW = 1.0
SLOW_CASES = 400
"""Forty turns a connection: how all of them start together weighs little."""
TARGET_BARE, TARGET_INSPECT, TARGET_IDEAL = 0.70, 2.0, 0.95
MODEL = "openai-api/loopback/tiny"
SAID = "There is a homogeneous opacity in the right lower zone with a blunted costophrenic angle.\nAnswer: 1"


class Measured(NamedTuple):
    """One contender in one round."""

    turns: int
    seconds: float
    megabytes: float
    processor: float
    """Seconds of the client."""

    @property
    def rate(self) -> float:
        return self.turns / self.seconds


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--cases", type=int, default=200, help="conversations of a round")
    arguments.add_argument("--repeat", type=int, default=3)
    arguments.add_argument("--only", choices=tuple(CONTENDERS), action="append", help="not all of them")
    arguments.add_argument("--skip-slow", action="store_true", help="without the service that takes a second")
    arguments.add_argument("--contender", nargs=3, metavar=("WHO", "BENCH", "URL"), help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.contender:
        who, bench, url = given.contender
        return _contend(who, Path(bench), url)
    with TemporaryDirectory() as folder:
        bench = _write_bench(Path(folder), given.cases)
        found = _compare(bench, tuple(given.only or CONTENDERS), given.repeat)
        slow = None if given.skip_slow else _slow(_write_bench(Path(folder) / "slow", SLOW_CASES))
    return _tell(found, slow)


def _compare(bench: Path, who: tuple[str, ...], repeat: int) -> dict[str, list[Measured]]:
    found: dict[str, list[Measured]] = {name: [] for name in who}
    with _service(LATENCY) as url:
        for _ in range(repeat):
            for name in who:
                one = _measure(name, bench, url)
                found[name].append(one)
                print(
                    f"  {name:8} {one.turns} turns  {one.rate:6.1f} turns/s  "
                    f"{1000 * one.processor / one.turns:5.1f} ms of processor a turn  "
                    f"{one.megabytes:.0f} MB sent",
                    flush=True,
                )
    return found


def _slow(bench: Path) -> Measured:
    with _service(SLOW) as url:
        return _measure("carina", bench, url)


def _tell(found: dict[str, list[Measured]], slow: Measured | None) -> int:
    rates = {name: statistics.median(one.rate for one in rounds) for name, rounds in found.items()}
    print(f"\n{CONNECTIONS} connections, {LATENCY * 1000:.0f} ms service, medians:")
    for name, rate in rates.items():
        print(f"  {name:8} {rate:6.1f} turns/s")
    reached = []
    for other, target in (("bare", TARGET_BARE), ("bare2", None), ("inspect", TARGET_INSPECT)):
        if "carina" in rates and other in rates:
            # Neighbours in time share what else the machine does.
            ratio = statistics.median(
                ours.rate / theirs.rate for ours, theirs in zip(found["carina"], found[other], strict=True)
            )
            reached.append(target is None or ratio >= target)
            print(
                f"  carina / {other:8} {ratio:.2f}" + ("" if target is None else f"  (target {target:.2f})")
            )
    if slow is not None:
        # The first request of each connection is part of the count, the delay before its answer too.
        share = slow.rate * SLOW / CONNECTIONS
        reached.append(share >= TARGET_IDEAL)
        print(f"{CONNECTIONS} connections, {SLOW:.0f} s service: {slow.rate:.1f} turns/s, ", end="")
        print(f"{share:.1%} of {CONNECTIONS / SLOW:.0f} (target {TARGET_IDEAL:.0%})")
    print("targets reached" if all(reached) else "short of a target")
    return 0 if all(reached) else 1


# ---- the conversations ----------------------------------------------------------------------------------------------


def _write_bench(folder: Path, number: int) -> Path:
    draw = np.random.default_rng(1)
    for name in range(PICTURES):
        write_png(folder / f"images/{name}.png", draw.integers(0, 256, (SIDE, SIDE), dtype=np.uint8))
    made = Provenance(
        command="benchmarks/run_overhead.py",
        seed=1,
        options={},
        sources=(SourceInfo(name="noise", licence="CC0-1.0"),),
        image_root="../images",
    )
    write_benchmark(folder / "bench", (_case(n) for n in range(number)), made)
    return folder / "bench"


def _case(number: int) -> Case:
    keys = [f"{(number + n) % PICTURES}.png" for n in range(len(ENTERS))]
    return Case(
        id=f"c{number:05}",
        protocol="percept",
        study=f"s{number}",
        patient=f"p{number}",
        source="noise",
        target="effusion",
        images=tuple(CaseImage(key=key, width=SIDE, height=SIDE, finished=True) for key in keys),
        views=tuple(CaseView(id=f"v{n}", panels=(Panel(image=key),)) for n, key in enumerate(keys, 1)),
        steps=tuple(_step(turn) for turn in range(1, TURNS + 1)),
    )


def _step(turn: int) -> Step:
    options = tuple(Option(id=f"o{n}", text=f"what one could see in picture {n}") for n in range(1, 6))
    listed = "\n".join(f"{n}. {option.text}" for n, option in enumerate(options, 1))
    shown = (f"v{turn}",) if turn in ENTERS else ()
    return Step(
        id=str(turn),
        stage=turn,
        task="detection",
        format="choice",
        question=f"Question {turn}: which of these is seen in the picture?\n{listed}",
        options=options,
        shows=shown,
        uses=shown,
        key=Key(options=("o1",)),
    )


# ---- the contenders -------------------------------------------------------------------------------------------------


def _measure(who: str, bench: Path, url: str) -> Measured:
    """Run one contender in a process of its own."""
    command = [sys.executable, __file__, "--contender", who, str(bench), url]
    ended = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | {"LOOPBACK_API_KEY": "k"}
    )
    counts = _get(url, "told")
    turns = len(open_benchmark(bench, verify=False)) * TURNS
    assert counts["turns"] == turns, f"{who} asked {counts['turns']} times, not {turns}"
    seconds = counts["last"] - counts["first"]
    return Measured(turns, seconds, counts["bytes"] / 1e6, float(ended.stdout.split()[-1]))


def _contend(who: str, bench: Path, url: str) -> int:
    with TemporaryDirectory() as folder:
        run = CONTENDERS[who](bench, url, Path(folder))
        # What is loaded with the first call is no part of a turn.
        run(2)
        _get(url, "reset")
        before = _processor()
        run(None)
        print(_processor() - before)
    return 0


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


Contender = Callable[[int | None], object]
"""Runs the first cases, or all."""


def _bare(bench: Path, url: str, _folder: Path) -> Contender:
    return _loop(bench, url, importlib.import_module("httpx"))


def _bare2(bench: Path, url: str, _folder: Path) -> Contender:
    return _loop(bench, url, importlib.import_module("httpx2"))


def _loop(bench: Path, url: str, httpx: Any) -> Contender:
    opened = open_benchmark(bench)
    every = [(case, messages(case, answers=False)) for case in opened]
    root = bench.parent / "images"

    def part(case: Case, view: str) -> dict[str, Any]:
        content = (root / case.view(view).panels[0].image).read_bytes()
        uri = f"data:image/png;base64,{base64.b64encode(content).decode()}"
        return {"type": "image_url", "image_url": {"url": uri, "detail": "auto"}}

    async def work(client: Any, todo: Iterator[tuple[Case, list[Message]]]) -> None:
        for case, questions in todo:
            said: list[dict[str, Any]] = [{"role": "system", "content": system_prompt(case.protocol)}]
            for question in questions:
                parts = [part(case, view) for view in question.shows]
                said.append({"role": "user", "content": [*parts, {"type": "text", "text": question.text}]})
                body = {"messages": said, "model": "tiny", "max_tokens": 2048, "temperature": 0.0}
                response = await client.post(f"{url}/chat/completions", json=body)
                answer = response.raise_for_status().json()["choices"][0]["message"]["content"]
                said.append({"role": "assistant", "content": answer})

    async def everything(limit: int | None) -> None:
        todo = iter(every[:limit])
        limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
        async with httpx.AsyncClient(limits=limits, timeout=60) as client, asyncio.TaskGroup() as group:
            for _ in range(CONNECTIONS):
                group.create_task(work(client, todo))

    return lambda limit: asyncio.run(everything(limit))


def _carina(bench: Path, url: str, folder: Path) -> Contender:
    from carina.runs import run  # noqa: PLC0415

    # The first request of a run is no turn; like the start-up, it is not measured.
    return lambda limit: run(
        bench,
        MODEL,
        folder / f"run-{limit}",
        connections=CONNECTIONS,
        base_url=url,
        limit=limit,
        first_request=False,
    )


def _inspect(bench: Path, url: str, folder: Path) -> Contender:
    from inspect_ai import eval as inspect_eval  # noqa: PLC0415

    from carina.runs.inspect_task import percept  # noqa: PLC0415

    return lambda limit: inspect_eval(
        percept(bench=str(bench)),
        model=MODEL,
        model_base_url=url,
        max_connections=CONNECTIONS,
        max_samples=CONNECTIONS,
        log_images=False,
        log_dir=str(folder),
        display="none",
        limit=limit,
    )


CONTENDERS = {"bare": _bare, "bare2": _bare2, "carina": _carina, "inspect": _inspect}


# ---- the service ----------------------------------------------------------------------------------------------------


class _Counts:
    """Requests since the last reset."""

    def __init__(self) -> None:
        self.turns = 0
        self.bytes = 0
        self.first: float | None = None
        self.last = 0.0


class _Connection(asyncio.Protocol):
    """Reads a request without looking at it, waits, answers."""

    def __init__(self, counts: _Counts, latency: float, answer: bytes) -> None:
        self._counts = counts
        self._latency = latency
        self._answer = answer
        self._head = b""
        self._missing = 0
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._counts.bytes += len(data)
        if not self._missing:
            if self._counts.first is None:
                self._counts.first = time.monotonic()
            self._head += data
            head, found, body = self._head.partition(b"\r\n\r\n")
            if not found:
                return
            self._head = b""
            if head.startswith(b"GET"):
                self._control(head.split()[1])
                return
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            self._missing = int(length.partition(b":")[2]) - len(body)
        else:
            self._missing -= len(data)
        if self._missing == 0:
            asyncio.get_running_loop().call_later(self._latency, self._send)

    def _send(self) -> None:
        self._counts.turns += 1
        self._counts.last = time.monotonic()
        self._transport.write(_http(self._answer))

    def _control(self, path: bytes) -> None:
        counts = self._counts
        kept = {
            "turns": counts.turns,
            "bytes": counts.bytes,
            "first": counts.first,
            "last": counts.last,
        }
        if path.endswith(b"reset"):
            counts.__init__()  # type: ignore[misc]
        self._transport.write(_http(json.dumps(kept).encode(), close=True))
        self._transport.close()


def _http(content: bytes, *, close: bool = False) -> bytes:
    kept = "close" if close else "keep-alive"
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: {kept}\r\n"
    return f"{head}content-length: {len(content)}\r\n\r\n".encode() + content


def _serve(latency: float, port: Any) -> None:
    message = {"role": "assistant", "content": SAID}
    answer = {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020},
    }
    content = json.dumps(answer).encode()

    async def run() -> None:
        counts = _Counts()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Connection(counts, latency, content), "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


@contextmanager
def _service(latency: float) -> Iterator[str]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(latency, theirs), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/v1"
    finally:
        process.terminate()
        process.join()


def _get(url: str, what: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/{what}") as response:  # noqa: S310
        return dict(json.load(response))


if __name__ == "__main__":
    sys.exit(main())

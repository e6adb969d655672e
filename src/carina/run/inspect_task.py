"""The examination as Inspect tasks: `inspect eval carina/percept -T bench=DIR -T history=gold --model openai/gpt-5`.

For those who live in Inspect: the walk is that of `carina run`, the loop, the log and `inspect view` are theirs. A case
is a sample, a stage a score; a stage that no answer came to is NaN, never nought. Pictures stay out of the log unless
`-T log_images=true`: what stands there is the SHA-256 of each. With `-T out=RUN` the answers are also kept as those of
`carina run`, which can take the run up, and the other way round. Imported by inspect-ai alone.
"""

import asyncio
import base64
import hashlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import transcript
from inspect_ai.model import ChatMessageSystem, GenerateConfig, get_model
from inspect_ai.model._model import use_model_event_sink
from inspect_ai.scorer import SampleScore, Score, mean, metric, scorer, stderr
from inspect_ai.solver import solver

from carina.cases import Benchmark, Case, open_benchmark
from carina.cases.chat import asked
from carina.errors import CarinaError
from carina.models.served import Said, Sampling
from carina.models.served.service import generated, message
from carina.run.choose import chosen_cases
from carina.run.examine import RunOptions
from carina.run.inspect_kept import KeptRun
from carina.run.log import Answered
from carina.run.pictures import CasePictures
from carina.run.records import Policy, StepRow
from carina.run.resume import resume
from carina.run.served import spoken
from carina.run.terms import refuse_restricted
from carina.run.walk import Walk


def _define(protocol: str) -> Callable[..., Any]:
    def examination(
        bench: str,
        *,
        history: str = "own",
        scope: str = "step",
        on_wrong: str = "continue",
        profile: str = "carina",
        blind: bool = False,
        max_side: int | None = None,
        sample_per_cell: int | None = None,
        seed: int = 0,
        images: str | None = None,
        out: str | None = None,
        accept_terms: bool = False,
        log_images: bool = False,
    ) -> Any:  # noqa: ANN401
        options = RunOptions(
            policy=_policy(history=history, scope=scope, on_wrong=on_wrong, profile=profile),
            blind=blind,
            max_side=max_side,
            sample_per_cell=sample_per_cell,
            seed=seed,
            images=None if images is None else Path(images),
            accept_terms=accept_terms,
        )
        opened = open_benchmark(bench, options.images).where(protocol=protocol)
        ids = chosen_cases(opened, limit=None, sample_per_cell=sample_per_cell, seed=seed)
        ids = ids or tuple(opened.ids())
        if not ids:
            raise CarinaError(f"{bench}: holds no case of {protocol}")
        kept = None if out is None else KeptRun(Path(out), opened, options, ids)
        return Task(
            dataset=MemoryDataset([_sample(case) for case in opened.pick(ids)], name=protocol),
            solver=_walked(opened, options, kept, log_images=log_images),
            scorer=_by_stage(sorted(opened.manifest.counts.stages, key=int)),
            config=GenerateConfig(temperature=Sampling().temperature, max_tokens=Sampling().max_tokens),
        )

    return task(name=protocol)(examination)  # type: ignore[no-any-return]


percept = _define("percept")
trek = _define("trek")
ground = _define("ground")


def _policy(**given: str) -> Policy:
    try:
        return msgspec.convert(given, Policy)
    except msgspec.ValidationError as error:
        raise CarinaError(f"not a way to examine: {error}") from error


def _sample(case: Case) -> Any:  # noqa: ANN401
    told = {"protocol": case.protocol, "source": case.source, "patient": case.patient, "cell": case.cell}
    return Sample(id=case.id, input=asked(case.steps[0]), metadata=told)


# ---- the walk -------------------------------------------------------------------------------------------------------


def _walked(bench: Benchmark, options: RunOptions, kept: KeptRun | None, *, log_images: bool) -> Any:  # noqa: ANN401
    pictures = CasePictures(bench, max_side=options.max_side, blind=options.blind)

    def make() -> Any:  # noqa: ANN401
        async def solve(state: Any, _generate: Any) -> Any:  # noqa: ANN401
            model = get_model()
            base_url = getattr(model.api, "base_url", None)
            refuse_restricted(bench, str(model), base_url=base_url, accept_terms=options.accept_terms)
            walk = Walk(await asyncio.to_thread(bench.__getitem__, str(state.sample_id)), options.policy)
            answered: Answered = {} if kept is None else await kept.answered(str(model), base_url)
            resume(walk, answered)
            said = _Conversation(walk.system, logged=log_images)
            shown: dict[str, str] = {}
            while (turn := walk.turn) is not None:
                missing = [view for one in turn.messages for view in one.shows if view not in shown]
                if missing:
                    shown |= await asyncio.to_thread(pictures.data_uris, walk.case, missing)
                messages = said.messages(spoken(turn, shown))
                began = time.perf_counter()
                with said.recorded():
                    reply = await generated(model, messages, name=str(model))
                row = walk.take(reply, seconds=round(time.perf_counter() - began, 4))
                if kept is not None:
                    await kept.keep(row, reply)
                state.messages = said.shown(reply.text)
            state.metadata["steps"] = [_told(row) for row in walk.rows()]
            state.completed = True
            return state

        return solve

    return solver(name="walk")(make)()


class _Conversation:
    """The messages of one sample, each made once, and the same without pictures for the log."""

    def __init__(self, system: str, *, logged: bool) -> None:
        self._head = ChatMessageSystem(content=system)
        self._made: list[tuple[Said, Any, Any]] = []
        self._logged = logged

    def messages(self, said: Sequence[Said]) -> list[Any]:
        self._made = [
            self._made[place]
            if place < len(self._made) and self._made[place][0] == one
            else (one, message(one), message(_without_pictures(one)))
            for place, one in enumerate(said)
        ]
        return [self._head, *(sent for _, sent, _ in self._made)]

    def shown(self, answer: str | None) -> list[Any]:
        """The conversation as the log shows it, with the last answer."""
        which = 1 if self._logged else 2
        last = [] if answer is None else [message(Said(role="assistant", text=answer))]
        return [self._head, *(made[which] for made in self._made), *last]

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """What is asked now enters the log without pictures, unless they are wanted there."""
        with use_model_event_sink(None if self._logged else _Bare([*self.shown(None)])):
            yield


class _Bare:
    """Hands an event on to the log of the sample with other messages than were sent."""

    def __init__(self, messages: list[Any]) -> None:
        self._messages = messages

    def on_pending(self, event: Any) -> None:  # noqa: ANN401
        event.input = self._messages
        transcript()._event(event)

    def on_complete(self, event: Any) -> None:  # noqa: ANN401
        transcript()._event_updated(event)


def _without_pictures(one: Said) -> Said:
    contents = [base64.b64decode(uri.partition(",")[2]) for uri in one.pictures]
    names = [f"[picture, SHA-256 {hashlib.sha256(content).hexdigest()}]" for content in contents]
    return Said(role=one.role, text="\n".join([*names, one.text]))


# ---- scores ---------------------------------------------------------------------------------------------------------


def _told(row: StepRow) -> dict[str, Any]:
    names = ("step", "stage", "task", "state", "status", "correct", "score", "error")
    return {name: getattr(row, name) for name in names}


def _by_stage(stages: Sequence[str]) -> Any:  # noqa: ANN401
    """A score for every stage of the benchmark, so that one that a case does not reach is not lost for the others."""

    def make() -> Any:  # noqa: ANN401
        async def score(state: Any, _target: Any) -> Any:  # noqa: ANN401
            steps = state.metadata["steps"]
            values = {f"stage {stage}": _mean_of(steps, int(stage)) for stage in stages}
            failed = [f"{step['step']}: {step['error']}" for step in steps if step["error"]]
            answered = sum(step["state"] == "answered" for step in steps)
            told = "; ".join([f"{answered} of {len(steps)} steps answered", *failed])
            return Score(value=values, explanation=told, metadata={"steps": steps})

        return score

    metrics = {"*": [mean(), stderr(), _cases()]}
    return scorer(metrics=metrics, name="stages")(make)()


def _mean_of(steps: Sequence[dict[str, Any]], stage: int) -> float:
    values = [step["score"] for step in steps if step["stage"] == stage and step["state"] == "answered"]
    return math.fsum(values) / len(values) if values else math.nan


def _make_cases() -> Callable[[list[SampleScore]], float]:
    def cases(scores: list[SampleScore]) -> float:
        return float(len(scores))

    return cases


_cases = metric(name="n")(_make_cases)
"""Always told: of how few cases a mean is."""

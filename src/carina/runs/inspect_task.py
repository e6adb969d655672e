"""Benchmarks as Inspect tasks: `inspect eval carina/percept -T bench=DIR -T history=gold --model openai/gpt-5`.

The walk is that of `carina run`; the loop, the log and `inspect view` are Inspect's. A case is a sample, a stage a
score: the mean score of its steps, 0 for those that were not reached because the case had stopped; a stage of which no
step could be asked is NaN, never 0. `mean` averages cases; `report_accuracy` is the value of the stage in `carina
report`: from the same steps, by the same function. The log holds the SHA-256 of each image instead of the image, unless
`-T log_images=true`. With `-T out=RUN` the answers are also stored as a run, which `carina run` can resume, and vice
versa. Imported by inspect-ai alone.
"""

import asyncio
import base64
import hashlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, cast, get_args

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import transcript
from inspect_ai.model import ChatMessageSystem, GenerateConfig, get_model
from inspect_ai.model._model import use_model_event_sink
from inspect_ai.scorer import SampleScore, Score, mean, metric, scorer, stderr
from inspect_ai.solver import solver

from carina.cases import Benchmark, Case, open_benchmark
from carina.cases.messages import prompt_text
from carina.models import Sampling, parse_model_name
from carina.models.served import ChatMessage
from carina.models.served.service import generate_reply, guard_model, to_inspect_message
from carina.models.served.terms import refuse_restricted
from carina.runs.analysis.stage_values import stage_values
from carina.runs.examples import open_images, prepare_prompts
from carina.runs.inspect_log import TaskRun
from carina.runs.log import Answered
from carina.runs.options import LONGEST_ANSWER, HistoryName, RunOptions, make_policy, select_cases
from carina.runs.records import ImageDetail, ImageOrder, Policy, Profile, PromptStyle, Scope, StepRow
from carina.runs.served import ExampleMessages, chat_messages, list_sources
from carina.runs.user_prompts import make_example_request, make_prompts
from carina.runs.walk import Walk, resume_walk
from carina.store.errors import CarinaError
from carina.studies.vocabulary import Split


def _define(protocol: str) -> Callable[..., Any]:
    def evaluate(
        bench: str,
        *,
        history: str = "own",
        scope: str | None = None,
        on_wrong: str = "continue",
        profile: str = "carina",
        blind: bool = False,
        max_side: int | None = None,
        sample_per_cell: int | None = None,
        split: Split | None = None,
        seed: int = 0,
        system_prompt: str | None = None,
        prompt_style: PromptStyle = "plain",
        image_order: ImageOrder | None = None,
        image_detail: ImageDetail = "auto",
        examples: str | None = None,
        examples_split: Split | None = None,
        examples_per_protocol: int = 2,
        max_example_images: int = 20,
        images: str | None = None,
        out: str | None = None,
        accept_terms: bool = False,
        log_images: bool = False,
    ) -> Any:  # noqa: ANN401
        policy = _policy(history, scope, on_wrong, profile)
        options = RunOptions(
            policy=policy,
            prompts=make_prompts(
                # As on the command line of `carina run`, a file.
                system_prompt=None if system_prompt is None else Path(system_prompt),
                prompt_style=prompt_style,
                image_order=image_order,
                image_detail=image_detail,
                profile=policy.profile,
            ),
            examples=make_example_request(
                examples,
                split=examples_split,
                per_protocol=examples_per_protocol,
                max_images=max_example_images,
            ),
            split=split,
            blind=blind,
            max_side=max_side,
            sample_per_stratum=sample_per_cell,
            seed=seed,
            images=None if images is None else Path(images),
            accept_terms=accept_terms,
        )
        opened = open_benchmark(bench, options.images, verify_images=options.verify_images).where(
            protocol=protocol
        )
        ids = select_cases(opened, limit=None, sample_per_stratum=sample_per_cell, seed=seed, split=split)
        ids = ids or tuple(opened.ids())
        if not ids:
            raise CarinaError(f"{bench}: the benchmark has no cases of the protocol {protocol}")
        opened.require_sound(ids)
        options = prepare_prompts(opened, parse_model_name("openai/any"), options)
        task_run = None if out is None else TaskRun(Path(out), opened, options, ids)
        return Task(
            dataset=MemoryDataset([_sample(case) for case in opened.pick(ids)], name=protocol),
            solver=_walk_solver(opened, options, task_run, log_images=log_images),
            scorer=_stage_scorer(sorted(opened.manifest.counts.stages, key=int)),
            config=GenerateConfig(
                temperature=Sampling().temperature, max_tokens=LONGEST_ANSWER[policy.profile]
            ),
        )

    return task(name=protocol)(evaluate)  # type: ignore[no-any-return]


percept = _define("percept")
trek = _define("trek")
ground = _define("ground")


def _policy(history: str, scope: str | None, on_wrong: str, profile: str) -> Policy:
    """The policy that `carina run` makes of the same words."""
    words: tuple[tuple[str, object, tuple[object, ...]], ...] = (
        ("history", history, get_args(HistoryName)),
        ("scope", scope, (None, *get_args(Scope))),
        ("on_wrong", on_wrong, ("continue", "stop")),
        ("profile", profile, get_args(Profile)),
    )
    for name, given, known in words:
        if given not in known:
            listed = ", ".join(str(word) for word in known if word is not None)
            raise CarinaError(f"the policy is wrong: {name} {given!r}; expected one of {listed}")
    return make_policy(
        cast("HistoryName", history),
        cast("Scope | None", scope),
        cast('Literal["continue", "stop"]', on_wrong),
        cast("Profile", profile),
    )


def _sample(case: Case) -> Any:  # noqa: ANN401
    metadata = {"protocol": case.protocol, "source": case.source, "patient": case.patient, "cell": case.cell}
    return Sample(id=case.id, input=prompt_text(case.steps[0]), metadata=metadata)


# ---- the walk -------------------------------------------------------------------------------------------------------


def _walk_solver(bench: Benchmark, options: RunOptions, task_run: TaskRun | None, *, log_images: bool) -> Any:  # noqa: ANN401
    images = open_images(bench, options)
    detail = options.prompts.image_detail
    examples = ExampleMessages(images, detail)
    sources = list_sources(bench, options)

    def make() -> Any:  # noqa: ANN401
        async def solve(state: Any, _generate: Any) -> Any:  # noqa: ANN401
            model = get_model()
            base_url = getattr(model.api, "base_url", None)
            stay_local = refuse_restricted(
                sources, str(model), base_url=base_url, accept_terms=options.accept_terms
            )
            guard_model(model, name=str(model), stay_local=stay_local)
            case = await asyncio.to_thread(bench.__getitem__, str(state.sample_id))
            walk = Walk(case, options.policy, options.prompts)
            answered: Answered = {} if task_run is None else await task_run.read_answers(str(model), base_url)
            resume_walk(walk, answered)
            conversation = _Conversation(walk.system, log_images=log_images)
            uris: dict[str, str] = {}
            while (turn := walk.turn) is not None:
                missing = [view for one in turn.messages for view in one.shows if view not in uris]
                if missing:
                    uris |= await asyncio.to_thread(images.data_uris, walk.case, missing)
                before = await examples.of(turn)
                messages = conversation.messages([*before, *chat_messages(turn, uris, detail)])
                began = time.perf_counter()
                with conversation.record_calls():
                    reply = await generate_reply(
                        model,
                        messages,
                        name=str(model),
                        keep_reasoning=options.policy.profile == "chexpercept",
                    )
                row = walk.take(reply, seconds=round(time.perf_counter() - began, 4))
                if task_run is not None:
                    await task_run.store(row, reply)
                state.messages = conversation.list_logged_messages(reply.text)
            state.metadata["steps"] = [_step_metadata(row) for row in walk.rows()]
            state.completed = True
            return state

        return solve

    return solver(name="walk")(make)()


class _Conversation:
    """The messages of one sample, each made once, with and without images."""

    def __init__(self, system: str, *, log_images: bool) -> None:
        self._head = [ChatMessageSystem(content=system)] if system else []
        self._messages_by_form: list[tuple[ChatMessage, Any, Any]] = []
        self._log_images = log_images

    def messages(self, turn: Sequence[ChatMessage]) -> list[Any]:
        self._messages_by_form = [
            self._messages_by_form[place]
            if place < len(self._messages_by_form) and self._messages_by_form[place][0] == one
            else (one, to_inspect_message(one), to_inspect_message(_without_images(one)))
            for place, one in enumerate(turn)
        ]
        return [*self._head, *(sent for _, sent, _ in self._messages_by_form)]

    def list_logged_messages(self, answer: str | None) -> list[Any]:
        """The conversation as the log shows it, with the last answer."""
        which = 1 if self._log_images else 2
        last = [] if answer is None else [to_inspect_message(ChatMessage(role="assistant", text=answer))]
        return [*self._head, *(made[which] for made in self._messages_by_form), *last]

    @contextmanager
    def record_calls(self) -> Iterator[None]:
        """Log the calls of the block without images, unless the images are to be logged."""
        with use_model_event_sink(
            None if self._log_images else _ReplaceMessages([*self.list_logged_messages(None)])
        ):
            yield


class _ReplaceMessages:
    """Passes an event on to the log of the sample with other messages than were sent."""

    def __init__(self, messages: list[Any]) -> None:
        self._messages = messages

    def on_pending(self, event: Any) -> None:  # noqa: ANN401
        event.input = self._messages
        transcript()._event(event)

    def on_complete(self, event: Any) -> None:  # noqa: ANN401
        transcript()._event_updated(event)


def _without_images(one: ChatMessage) -> ChatMessage:
    contents = [base64.b64decode(uri.partition(",")[2]) for uri in one.images]
    names = [f"[image, SHA-256 {hashlib.sha256(content).hexdigest()}]" for content in contents]
    return ChatMessage(role=one.role, text="\n".join([*names, one.text]))


# ---- scores ---------------------------------------------------------------------------------------------------------


def _step_metadata(row: StepRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _LOGGED}


_LOGGED = (
    "case", "patient", "protocol", "target", "path", "number", "step", "stage", "task", "format", "multiple", "state",
    "status", "gold_label", "correct", "score", "error",
)  # fmt: skip
"""Fields of a step in the log: what its result is, and what the report weighs it by."""


def _stage_scorer(stages: Sequence[str]) -> Any:  # noqa: ANN401
    """A score for every stage of the benchmark, also where a case does not reach the stage."""

    def make() -> Any:  # noqa: ANN401
        async def score(state: Any, _target: Any) -> Any:  # noqa: ANN401
            steps = state.metadata["steps"]
            values = {f"stage {stage}": _mean_of(steps, int(stage)) for stage in stages}
            failed = [f"{step['step']}: {step['error']}" for step in steps if step["error"]]
            answered = sum(step["state"] == "answered" for step in steps)
            explanation = "; ".join([f"{answered} of {len(steps)} steps answered", *failed])
            return Score(value=values, explanation=explanation, metadata={"steps": steps})

        return score

    metrics = {
        f"stage {stage}": [mean(), stderr(), _cases(), _report_accuracy(int(stage))] for stage in stages
    }
    return scorer(metrics=metrics, name="stages")(make)()


def _mean_of(steps: Sequence[dict[str, Any]], stage: int) -> float:
    own = [step for step in steps if step["stage"] == stage and step["state"] != "incomplete"]
    values = [step["score"] if step["state"] == "answered" else 0.0 for step in own]
    return math.fsum(values) / len(values) if values else math.nan


def _make_cases() -> Callable[[list[SampleScore]], float]:
    def cases(scores: list[SampleScore]) -> float:
        return float(len(scores))

    return cases


_cases = metric(name="n")(_make_cases)
"""Number of cases behind a mean; always shown."""


def _make_report_accuracy(stage: int) -> Callable[[list[SampleScore]], float]:
    def report_accuracy(scores: list[SampleScore]) -> float:
        logged = [step for one in scores for step in (one.score.metadata or {}).get("steps", ())]
        rows = [StepRow(study="", source="", options=0, **step) for step in logged]
        values = stage_values(rows)
        return values.get(stage, math.nan)

    return report_accuracy


_report_accuracy = metric(name="report_accuracy")(_make_report_accuracy)
"""The value of a stage in `carina report`: accuracy, balanced over opposing paths, or the mean score of free text."""

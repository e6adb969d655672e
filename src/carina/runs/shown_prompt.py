"""`carina.show_prompt`: the messages of one case as a run would send them. Nothing is sent."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

import polars as pl

from carina.cases import Benchmark, Case, open_benchmark
from carina.cases.messages import Message
from carina.models import Reply, parse_model_name
from carina.runs.examples import open_images, prepare_prompts
from carina.runs.images import CaseImages
from carina.runs.options import HistoryName, RunOptions, make_options, select_cases
from carina.runs.records import ImageDetail, ImageOrder, Profile, PromptStyle, Scope, Turn
from carina.runs.user_prompts import SystemPrompt, add_prompts
from carina.runs.walk import Walk
from carina.store.arguments import PositiveInt, check_arguments
from carina.store.errors import CarinaError
from carina.store.results import Location, Result, as_path, image_directory
from carina.studies.vocabulary import Split

ANSWER: Final = "[answer of the model]"
"""Stands for each answer of the model, which is not known; it counts as wrong, so that corrections can be seen."""


@dataclass(frozen=True, kw_only=True)
class ShownImage:
    """An image of a message."""

    view: str
    width: int
    height: int
    bytes: int
    """Size of the PNG that is sent."""


@dataclass(frozen=True, kw_only=True)
class ShownMessage:
    """One message as it would be sent."""

    part: str
    """"system", "example 1" and so on, or "case"."""
    role: Literal["system", "user", "assistant"]
    step: str
    """Id of the step that it asks or answers; empty for the system prompt."""
    text: str
    images: tuple[ShownImage, ...] = ()


@dataclass(frozen=True, kw_only=True, repr=False)
class ShownPrompt(Result):
    """All messages of one case; print it to read them."""

    benchmark: Path
    model: str
    case: str
    messages: tuple[ShownMessage, ...]
    image_order: ImageOrder = "before"
    image_detail: ImageDetail = "auto"
    is_one_conversation: bool = True
    """Whether each question comes after the earlier ones; not with the history none."""

    @property
    def path(self) -> Path:
        """Directory of the benchmark."""
        return self.benchmark

    def to_dict(self) -> dict[str, Any]:
        """The messages and what they belong to."""
        return asdict(self) | {"benchmark": str(self.benchmark)}

    def to_frame(self) -> pl.DataFrame:
        """One row a message: `part`, `role`, `step`, `text`, and the number of `images`."""
        rows = [(one.part, one.role, one.step, one.text, len(one.images)) for one in self.messages]
        return pl.DataFrame(rows, schema=["part", "role", "step", "text", "images"], orient="row")

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"Case {self.case} for {self.model}. Nothing was sent. {ANSWER} counts as wrong here."
        if not self.is_one_conversation:
            yield "Each question is sent on its own, after the system prompt and the examples."
        for one in self.messages:
            about = "" if one.part in ("system", "case") else f" ({one.part})"
            yield ""
            yield f"{one.role.upper()}{about}"
            images = [self._describe(image) for image in one.images]
            yield from (*images, one.text) if self.image_order == "before" else (one.text, *images)

    def _describe(self, image: ShownImage) -> str:
        detail = "" if self.image_detail == "auto" else f", detail {self.image_detail}"
        return f"[image {image.view}: {image.width} x {image.height} pixels, {image.bytes:,} bytes{detail}]"

    def _summary(self) -> Mapping[str, object]:
        return {"model": self.model, "case": self.case, "messages": len(self.messages)}


@check_arguments
def show_prompt(
    bench: Location,
    model: str,
    *,
    case: str | None = None,
    history: HistoryName = "own",
    scope: Scope | None = None,
    profile: Profile = "carina",
    blind: bool = False,
    max_side: PositiveInt | None = None,
    split: Split | None = None,
    seed: int = 0,
    system_prompt: SystemPrompt = None,
    prompt_style: PromptStyle = "plain",
    image_order: ImageOrder | None = None,
    image_detail: ImageDetail = "auto",
    examples: Location | None = None,
    examples_split: Split | None = None,
    examples_per_protocol: PositiveInt = 2,
    max_example_images: PositiveInt = 20,
    images: Location | None = None,
) -> ShownPrompt:
    """Show the messages of one case as `run` with the same arguments would send them. No model is opened.

    The answers of the model are not known: each is shown as `[answer of the model]` and counts as wrong, so that hints
    and replaced answers can be seen.

    Args:
        bench: Benchmark to ask.
        model: Name of the model.
        case: Id of the case; None for the first one that is selected.
        history: History policy, as for `run`.
        scope: As for `run`.
        profile: As for `run`.
        blind: As for `run`.
        max_side: Longest side of an image, in pixels.
        split: As for `run`.
        seed: Seed for the choice of examples.
        system_prompt: As for `run`: text, or a path of a file.
        prompt_style: As for `run`.
        image_order: As for `run`.
        image_detail: As for `run`.
        examples: As for `run`.
        examples_split: As for `run`.
        examples_per_protocol: As for `run`.
        max_example_images: As for `run`.
        images: Directory of the images, if they have moved.

    Returns:
        The messages: `print` shows them, `.messages` has them as records, `.to_frame()` as a table.

    Raises:
        CarinaError: The case, the model or an option is wrong, or an image is missing.

    Example:
        >>> show_prompt("bench", "openai/gpt-5", prompt_style="answer").messages[0].text[-25:]
        'line of the answer alone.'
    """
    name = parse_model_name(model, needs="chat")
    options = make_options(
        history=history,
        scope=scope,
        on_wrong="continue",
        profile=profile,
        blind=blind,
        max_side=max_side,
        limit=None,
        sample_per_stratum=None,
        seed=seed,
        temperature=None,
        max_tokens=None,
        images=image_directory(bench, images),
        split=split,
    )
    options = add_prompts(
        options,
        system_prompt=system_prompt,
        prompt_style=prompt_style,
        image_order=image_order,
        image_detail=image_detail,
        examples=examples,
        examples_split=examples_split,
        examples_per_protocol=examples_per_protocol,
        max_example_images=max_example_images,
    )
    opened = open_benchmark(as_path(bench), options.images)
    options = prepare_prompts(opened, name, options)
    chosen = _find_case(opened, case, options)
    return ShownPrompt(
        benchmark=opened.directory,
        model=model,
        case=chosen.id,
        messages=tuple(_list_messages(opened, chosen, options)),
        image_order=options.prompts.image_order,
        image_detail=options.prompts.image_detail,
        is_one_conversation=options.policy.history != "none",
    )


def _find_case(bench: Benchmark, case: str | None, options: RunOptions) -> Case:
    if case is not None:
        return bench[case]
    ids = select_cases(bench, limit=1, sample_per_stratum=None, seed=options.seed, split=options.split)
    if not ids:
        raise CarinaError(f"{bench.directory}: the benchmark has no cases")
    return bench[ids[0]]


def _list_messages(bench: Benchmark, case: Case, options: RunOptions) -> Iterator[ShownMessage]:
    images = open_images(bench, options)
    images.add(case)
    turns = list(_turns(case, options))
    if not turns:
        return
    last = turns[-1]
    if last.system:
        yield ShownMessage(part="system", role="system", step="", text=last.system)
    for number, example in enumerate(last.examples, start=1):
        for message in example.messages:
            yield _show(images, example.case, f"example {number}", message)
    for turn in turns if options.policy.history == "none" else [last]:
        for message in turn.messages:
            yield _show(images, case.id, "case", message)


def _turns(case: Case, options: RunOptions) -> Iterator[Turn]:
    walk = Walk(case, options.policy, options.prompts)
    while (turn := walk.turn) is not None:
        yield turn
        walk.take(Reply(text=ANSWER, stop="stop"))


def _show(images: CaseImages, case_id: str, part: str, message: Message) -> ShownMessage:
    return ShownMessage(
        part=part,
        role=message.role,
        step=message.step,
        text=message.text,
        images=tuple(_show_image(view, images(case_id, view)) for view in message.shows),
    )


def _show_image(view: str, png: bytes) -> ShownImage:
    # Where every PNG states its size.
    width, height = (int.from_bytes(png[at : at + 4]) for at in (16, 20))
    return ShownImage(view=view, width=width, height=height, bytes=len(png))

"""`carina.estimate`: calls, images, tokens and cost of a run, before anything is sent.

Every step counts as asked once, with four characters per token. The length of the answers is a range: answers of a
usual length, the same with an allowance for reasoning where a model is known to reason, and every answer as long as
`max_tokens` allows. A run that stops at the first wrong stage takes less, one with retries more; hints are not counted.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import polars as pl

from carina.cases import Case, CaseView, Step, open_benchmark
from carina.cases.messages import prompt_text
from carina.models import parse_model_name
from carina.runs.examples import example_id, open_examples, prepare_prompts
from carina.runs.options import HistoryName, RunOptions, make_options, select_cases
from carina.runs.prices import TABLE, Prices, months_since, read_prices
from carina.runs.prompts import system_prompt
from carina.runs.records import Example, ImageDetail, ImageOrder, Profile, PromptStyle, Scope
from carina.runs.user_prompts import SystemPrompt, add_prompts
from carina.runs.walk import LONGEST_IN_HISTORY, count_example_images
from carina.store.arguments import PositiveInt, check_arguments
from carina.store.errors import CarinaError
from carina.store.results import Location, Result, as_path, image_directory
from carina.studies.vocabulary import Split

_CHARACTERS: Final = 4
"""Characters per token."""
_OUTDATED: Final = 12
"""Age of the price table, in months, after which an estimate warns."""
GIVEN: Final = "given"
"""In place of a date, where the caller gave the price."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Estimate(Result):
    """What a run would take: with answers alone, with an allowance for reasoning, and at most."""

    benchmark: Path
    model: str
    cases: int
    calls: int
    images: int
    """Different images; each is rendered and encoded once."""
    image_sends: int
    """Images in all requests; each call carries those of the turns before it, and those of the examples."""
    example_images: dict[str, int]
    """Images that the examples of each protocol add to every call; empty without examples."""
    text_tokens: int
    most_text_tokens: int
    """Text tokens if every answer in the history has the greatest length."""
    image_tokens: int
    output_tokens: int
    """Answers alone, at a usual length."""
    reasoning_tokens: int
    """Allowance for reasoning; 0 for a model that is not known to reason."""
    most_output_tokens: int
    """Every answer as long as it may be, reasoning included."""
    cost: float | None
    """US dollars, without discounts for cached prompts; None where the price is not known."""
    cost_with_reasoning: float | None
    most_cost: float | None
    prices: str
    """Year and month of the prices, or "given"."""

    @property
    def path(self) -> Path:
        """Directory of the benchmark."""
        return self.benchmark

    @property
    def warning(self) -> str | None:
        """A sentence where the cost rests on prices that are more than a year old."""
        if self.prices == GIVEN or not self.cost:
            return None
        age = months_since(self.prices, datetime.now(UTC).date())
        if age <= _OUTDATED:
            return None
        return (
            f"The prices are from {self.prices}, {age} months ago: check your provider's page, and pass --price-in and "
            "--price-out"
        )

    def to_dict(self) -> dict[str, Any]:
        """All numbers by name."""
        values = dataclasses.asdict(self)
        del values["benchmark"]
        return values

    def to_frame(self) -> pl.DataFrame:
        """One row with all numbers."""
        return pl.DataFrame([self.to_dict()])

    def rows(self) -> list[tuple[str, str]]:
        """Rows of a table for people: quantity and amount."""
        output = _range(
            f"about {self.output_tokens:,}",
            f"{self.output_tokens + self.reasoning_tokens:,}" if self.reasoning_tokens else None,
            f"{self.most_output_tokens:,}",
        )
        cost = "unknown"
        if self.cost is not None and self.cost_with_reasoning is not None and self.most_cost is not None:
            with_reasoning = f"{self.cost_with_reasoning:,.2f}" if self.reasoning_tokens else None
            cost = _range(f"{self.cost:,.2f} US dollars", with_reasoning, f"{self.most_cost:,.2f}")
        return [
            ("model", self.model),
            ("cases", f"{self.cases:,}"),
            ("calls", f"{self.calls:,}"),
            ("images", f"{self.images:,}"),
            ("image sends", f"{self.image_sends:,}"),
            *(
                (f"images of examples, {protocol}", f"{number:,} in every call")
                for protocol, number in self.example_images.items()
            ),
            ("text tokens", f"about {self.text_tokens:,}"),
            ("image tokens", f"about {self.image_tokens:,}"),
            ("output tokens", output),
            ("cost", cost),
            ("prices", self.prices if self.prices == GIVEN else f"list prices of {self.prices}"),
        ]

    def _summary(self) -> Mapping[str, object]:
        return dict(self.rows())


def _range(alone: str, with_reasoning: str | None, most: str) -> str:
    between = "" if with_reasoning is None else f", {with_reasoning} with reasoning"
    return f"{alone} for answers alone{between}, {most} at most"


@check_arguments
def estimate(
    bench: Location,
    model: str,
    *,
    history: HistoryName = "own",
    scope: Scope | None = None,
    on_wrong: Literal["continue", "stop"] = "continue",
    profile: Profile = "carina",
    max_side: PositiveInt | None = None,
    limit: PositiveInt | None = None,
    sample_per_stratum: PositiveInt | None = None,
    split: Split | None = None,
    seed: int = 0,
    max_tokens: PositiveInt | None = None,
    system_prompt: SystemPrompt = None,
    prompt_style: PromptStyle = "plain",
    image_order: ImageOrder | None = None,
    image_detail: ImageDetail = "auto",
    examples: Location | None = None,
    examples_split: Split | None = None,
    examples_per_protocol: PositiveInt = 2,
    max_example_images: PositiveInt = 20,
    images: Location | None = None,
    price_in: float | None = None,
    price_out: float | None = None,
    prices: Location | None = None,
) -> Estimate:
    """Estimate calls, tokens and cost of `run` with the same arguments. No model is contacted.

    Args:
        bench: Benchmark to ask.
        model: Name of the model.
        history: History policy, as for `run`.
        scope: As for `run`.
        on_wrong: As for `run`.
        profile: As for `run`.
        max_side: Longest side of an image, in pixels.
        limit: Number of cases to ask, from the start of the benchmark; None for all.
        sample_per_stratum: Number of cases of each stratum (lesion and path), sampled at random; None for all.
        split: Ask only cases of this split; None for all.
        seed: Seed for all random choices.
        max_tokens: Longest answer, reasoning included, in tokens; None for 2048, or 8192 with the profile chexpercept.
        system_prompt: As for `run`.
        prompt_style: As for `run`.
        image_order: As for `run`; it changes no number.
        image_detail: As for `run`. What "low" saves depends on the provider and is not subtracted.
        examples: As for `run`.
        examples_split: As for `run`.
        examples_per_protocol: As for `run`.
        max_example_images: As for `run`.
        images: Directory of the images, if they have moved.
        price_in: US dollars per million tokens that are sent; None for the table of prices.
        price_out: US dollars per million tokens that the model writes.
        prices: Another table of prices, in the layout of `prices.yaml`.

    Returns:
        The estimate: `.rows()` for people, `.to_frame()`, `.warning` where the prices are old.

    Raises:
        CarinaError: The model's name or an option is wrong, or only one of the two prices is given.

    Example:
        >>> estimate("bench", "openai/gpt-5", limit=10).calls
        45
    """
    if (price_in is None) != (price_out is None):
        raise CarinaError("price_in and price_out: expected both or none (--price-in and --price-out)")
    price = None if price_in is None or price_out is None else (price_in, price_out)
    name = parse_model_name(model, needs="chat")
    options = make_options(
        history=history,
        scope=scope,
        on_wrong=on_wrong,
        profile=profile,
        blind=False,
        max_side=max_side,
        limit=limit,
        sample_per_stratum=sample_per_stratum,
        seed=seed,
        temperature=None,
        max_tokens=max_tokens,
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
    table = read_prices(TABLE if prices is None else as_path(prices))
    path = as_path(bench)
    benchmark = open_benchmark(path, options.images, verify=False)
    options = prepare_prompts(benchmark, name, options)
    ids = select_cases(benchmark, limit=limit, sample_per_stratum=sample_per_stratum, seed=seed, split=split)
    before = _examples_by_protocol(options, model, table)
    cases, calls = 0, 0
    sums = _Sums()
    for case in benchmark if ids is None else benchmark.pick(ids):
        cases += 1
        calls += len(case.steps)
        sums += _Sums.of(case, model, table, options, before.get(case.protocol, _NOTHING))
    per_million = price or table.price(model)
    text, most_text = sums.text // _CHARACTERS, sums.most_text // _CHARACTERS
    most_output = calls * options.sampling.max_tokens

    def cost(text_tokens: int, output: int) -> float | None:
        if per_million is None:
            return None
        return ((text_tokens + sums.image_tokens) * per_million[0] + output * per_million[1]) / 1e6

    return Estimate(
        benchmark=path,
        model=model,
        cases=cases,
        calls=calls,
        images=sums.images,
        image_sends=sums.sends,
        example_images={name: one.images for name, one in before.items()},
        text_tokens=text,
        most_text_tokens=most_text,
        image_tokens=sums.image_tokens,
        output_tokens=sums.output,
        reasoning_tokens=sums.reasoning,
        most_output_tokens=most_output,
        cost=cost(text, sums.output),
        cost_with_reasoning=cost(text, sums.output + sums.reasoning),
        most_cost=cost(most_text, most_output),
        prices=table.date if price is None else GIVEN,
    )


class _Sums(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over some cases."""

    images: int = 0
    sends: int = 0
    text: int = 0
    """Characters."""
    most_text: int = 0
    image_tokens: int = 0
    output: int = 0
    reasoning: int = 0

    def __add__(self, other: "_Sums") -> "_Sums":
        fields = self.__struct_fields__
        return _Sums(**{name: getattr(self, name) + getattr(other, name) for name in fields})

    @classmethod
    def of(cls, case: Case, model: str, table: Prices, options: RunOptions, examples: "_Examples") -> "_Sums":
        most = options.sampling.max_tokens
        rule = table.image_rule(model)
        answers = [min(round(table.answers.get(step.format, 0)), most) for step in case.steps]
        reasoning = [min(table.reasoning_tokens(model), most - answer) for answer in answers]
        views = _new_views(case.steps, alone=options.policy.history == "none")
        tokens = {
            view.id: rule.tokens(*_size(case, view, options.max_side))
            for view in case.views
            if any(view.id in new for new in views)
        }
        system = len(system_prompt(case.protocol, options.prompts, options.policy.profile)) + examples.text
        calls = len(case.steps)
        text = [len(prompt_text(step)) for step in case.steps]
        longest = text
        sends = [len(new) for new in views]
        image_tokens = [sum(tokens[view] for view in new) for new in views]
        if options.policy.history != "none":
            # A turn holds all questions and answers before it; answers without reasoning, up to a length.
            is_cut = options.policy.profile != "chexpercept" or case.protocol != "percept"
            longest_answer = min(_CHARACTERS * most, LONGEST_IN_HISTORY) if is_cut else _CHARACTERS * most
            longest = _accumulate(text, [longest_answer] * len(text))
            text = _accumulate(text, [_CHARACTERS * answer for answer in answers])
            sends, image_tokens = list(accumulate(sends)), list(accumulate(image_tokens))
        return cls(
            images=len(tokens),
            sends=sum(sends) + calls * examples.images,
            text=sum(text) + system * len(text),
            most_text=sum(longest) + system * len(text),
            image_tokens=sum(image_tokens) + calls * examples.image_tokens,
            output=sum(answers),
            reasoning=sum(reasoning),
        )


class _Examples(msgspec.Struct, frozen=True, kw_only=True):
    """What the examples of a protocol add to every call."""

    images: int = 0
    text: int = 0
    """Characters."""
    image_tokens: int = 0


_NOTHING: Final = _Examples()


def _examples_by_protocol(options: RunOptions, model: str, table: Prices) -> dict[str, _Examples]:
    source = open_examples(options)
    if source is None:
        return {}
    rule = table.image_rule(model)

    def image_tokens(one: Example) -> int:
        case = source[example_id(one)]
        views = [case.view(view) for message in one.messages for view in message.shows]
        return sum(rule.tokens(*_size(case, view, options.max_side)) for view in views)

    shown: dict[str, _Examples] = {}
    for one in options.prompts.examples:
        so_far = shown.get(one.protocol, _NOTHING)
        shown[one.protocol] = _Examples(
            images=so_far.images + count_example_images([one]),
            text=so_far.text + sum(len(message.text) for message in one.messages),
            image_tokens=so_far.image_tokens + image_tokens(one),
        )
    return shown


def _accumulate(questions: Sequence[int], answers: Sequence[int]) -> list[int]:
    """Characters of each turn, with all questions and answers before it."""
    before = [0, *answers[:-1]]
    return list(accumulate(question + answer for question, answer in zip(questions, before, strict=True)))


def _new_views(steps: Sequence[Step], *, alone: bool) -> list[tuple[str, ...]]:
    """Views that are first shown with each step; all of its views where each step is asked alone."""
    seen: Mapping[str, None] = {}
    new_views = []
    for step in steps:
        used = dict.fromkeys((*step.shows, *step.uses))
        new_views.append(tuple(view for view in used if alone or view not in seen))
        seen = {**seen, **used}
    return new_views


def _size(case: Case, view: CaseView, max_side: int | None) -> tuple[int, int]:
    """Width and height of the rendered image of a view, its panels side by side."""
    width = height = 0
    for panel in view.panels:
        image = case.image(panel.image)
        wide, high = (image.width, image.height) if panel.crop is None else panel.crop[2:]
        factor = 1.0 if view.side is None else view.side / max(wide, high)
        width += round(wide * factor)
        height = max(height, round(high * factor))
    if max_side is not None and max(width, height) > max_side:
        factor = max_side / max(width, height)
        width, height = round(width * factor), round(height * factor)
    return max(1, width), max(1, height)

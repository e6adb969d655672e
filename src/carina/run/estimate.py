"""What a run would take, before anything is sent: calls, pictures, tokens, cost. No model is contacted.

Every step is taken to be asked once, four characters to a token. What a model writes is told as a range: answers of a
usual length, the same with an allowance for reasoning where a model is known to reason, and every answer as long as
`max_tokens` lets it be. A run that stops at the first wrong stage takes less, one that fails on the way and tries again
more; hints are not counted.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final

import msgspec

from carina.cases import Case, CaseView, Step, open_benchmark
from carina.cases.chat import asked
from carina.run.choose import chosen_cases
from carina.run.examine import RunOptions
from carina.run.prices import TABLE, Prices, read_prices
from carina.run.prompts import system_prompt
from carina.run.walk import LONGEST_IN_HISTORY

_CHARACTERS: Final = 4
"""Of a token."""
GIVEN: Final = "given"
"""In place of a date, where the user has told the price."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """How much a run would take: with answers alone, with an allowance for reasoning, and at most."""

    model: str
    cases: int
    calls: int
    images: int
    """Different pictures: each is drawn and encoded once."""
    image_sends: int
    """Pictures in all requests: each call carries those of the turns before it."""
    text_tokens: int
    most_text_tokens: int
    """Where later turns carry answers of the greatest length."""
    image_tokens: int
    output_tokens: int
    """Answers alone, at a usual length."""
    reasoning_tokens: int
    """Allowance for what a model thinks before it answers; 0 for one that is not known to."""
    most_output_tokens: int
    """Every answer as long as it may be, thoughts and all."""
    cost: float | None
    """US dollars, without discounts for what a provider keeps of earlier calls; None where the price is not known."""
    cost_with_reasoning: float | None
    most_cost: float | None
    prices: str
    """Date of the prices, or "given"."""

    def rows(self) -> list[tuple[str, str]]:
        """For a reader: what, and how much."""
        plain = [(name.replace("_", " "), f"{getattr(self, name):,}") for name in _COUNTED]
        output = _range(
            f"about {self.output_tokens:,}",
            f"{self.output_tokens + self.reasoning_tokens:,}" if self.reasoning_tokens else None,
            f"{self.most_output_tokens:,}",
        )
        cost = "unknown"
        if self.cost is not None and self.cost_with_reasoning is not None and self.most_cost is not None:
            reasoned = f"{self.cost_with_reasoning:,.2f}" if self.reasoning_tokens else None
            cost = _range(f"{self.cost:,.2f} US dollars", reasoned, f"{self.most_cost:,.2f}")
        return [
            ("model", self.model),
            *plain,
            ("text tokens", f"about {self.text_tokens:,}"),
            ("image tokens", f"about {self.image_tokens:,}"),
            ("output tokens", output),
            ("cost", cost),
            ("prices", self.prices if self.prices == GIVEN else f"list prices of {self.prices}"),
        ]


_COUNTED: Final = ("cases", "calls", "images", "image_sends")


def _range(alone: str, reasoned: str | None, most: str) -> str:
    between = "" if reasoned is None else f", {reasoned} with reasoning"
    return f"{alone} for answers alone{between}, {most} at most"


def estimate(
    bench: Path,
    model: str,
    options: RunOptions,
    *,
    price: tuple[float, float] | None = None,
    prices: Path = TABLE,
) -> Estimate:
    """Reckon what `run_model` with the same arguments would take.

    `price` is in US dollars a million tokens, in and out; without it the table's, where the model is in it.
    """
    table = read_prices(prices)
    opened = open_benchmark(bench, options.images, verify=False)
    ids = chosen_cases(
        opened, limit=options.limit, sample_per_cell=options.sample_per_cell, seed=options.seed
    )
    cases, calls = 0, 0
    sums = _Taken()
    for case in opened if ids is None else opened.pick(ids):
        cases += 1
        calls += len(case.steps)
        sums += _Taken.of(case, model, table, options)
    paid = price or table.price(model)
    text, most_text = sums.text // _CHARACTERS, sums.most_text // _CHARACTERS
    most_output = calls * options.sampling.max_tokens

    def cost(text_tokens: int, output: int) -> float | None:
        if paid is None:
            return None
        return ((text_tokens + sums.picture) * paid[0] + output * paid[1]) / 1e6

    return Estimate(
        model=model,
        cases=cases,
        calls=calls,
        images=sums.images,
        image_sends=sums.sends,
        text_tokens=text,
        most_text_tokens=most_text,
        image_tokens=sums.picture,
        output_tokens=sums.output,
        reasoning_tokens=sums.reasoning,
        most_output_tokens=most_output,
        cost=cost(text, sums.output),
        cost_with_reasoning=cost(text, sums.output + sums.reasoning),
        most_cost=cost(most_text, most_output),
        prices=table.date if price is None else GIVEN,
    )


class _Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What some cases take."""

    images: int = 0
    sends: int = 0
    text: int = 0
    """Characters."""
    most_text: int = 0
    picture: int = 0
    output: int = 0
    reasoning: int = 0

    def __add__(self, other: "_Taken") -> "_Taken":
        fields = self.__struct_fields__
        return _Taken(**{name: getattr(self, name) + getattr(other, name) for name in fields})

    @classmethod
    def of(cls, case: Case, model: str, table: Prices, options: RunOptions) -> "_Taken":
        most = options.sampling.max_tokens
        rule = table.picture(model)
        answers = [min(round(table.answers.get(step.format, 0)), most) for step in case.steps]
        thoughts = [min(table.thoughts(model), most - answer) for answer in answers]
        views = _entering(case.steps, apart=options.policy.history == "none")
        tokens = {
            view.id: rule.tokens(*_size(case, view, options.max_side))
            for view in case.views
            if any(view.id in entering for entering in views)
        }
        system = len(system_prompt(case.protocol))
        said = [len(asked(step)) for step in case.steps]
        longest = said
        sent = [len(entering) for entering in views]
        weighed = [sum(tokens[view] for view in entering) for entering in views]
        if options.policy.history != "none":
            # A turn holds all before it, and the answers to them, without what was thought and up to a length.
            longest = _carried(said, [min(_CHARACTERS * most, LONGEST_IN_HISTORY)] * len(said))
            said = _carried(said, [_CHARACTERS * answer for answer in answers])
            sent, weighed = list(accumulate(sent)), list(accumulate(weighed))
        return cls(
            images=len(tokens),
            sends=sum(sent),
            text=sum(said) + system * len(said),
            most_text=sum(longest) + system * len(said),
            picture=sum(weighed),
            output=sum(answers),
            reasoning=sum(thoughts),
        )


def _carried(questions: Sequence[int], answers: Sequence[int]) -> list[int]:
    """Characters of each turn with all that was asked and answered before it."""
    before = [0, *answers[:-1]]
    return list(accumulate(question + answer for question, answer in zip(questions, before, strict=True)))


def _entering(steps: Sequence[Step], *, apart: bool) -> list[tuple[str, ...]]:
    """Views that enter with each step: those that were not there yet, or all where each step stands for itself."""
    seen: Mapping[str, None] = {}
    found = []
    for step in steps:
        used = dict.fromkeys((*step.shows, *step.uses))
        found.append(tuple(view for view in used if apart or view not in seen))
        seen = {**seen, **used}
    return found


def _size(case: Case, view: CaseView, max_side: int | None) -> tuple[int, int]:
    """Of the picture of a view, its panels side by side."""
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

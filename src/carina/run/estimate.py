"""What a run would take, before anything is sent: calls, pictures, tokens, cost. No model is contacted.

Every step is taken to be asked once and answered at a usual length, four characters to a token. A run that stops at the
first wrong stage takes less, one that fails on the way and tries again more; hints are not counted.
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
from carina.run.prices import TABLE, PictureRule, Prices, read_prices
from carina.run.prompts import system_prompt

_CHARACTERS: Final = 4
"""Of a token."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """How much a run would take."""

    model: str
    cases: int
    calls: int
    images: int
    """Different pictures: each is drawn and encoded once."""
    image_sends: int
    """Pictures in all requests: each call carries those of the turns before it."""
    text_tokens: int
    image_tokens: int
    output_tokens: int
    cost: float | None
    """US dollars, without discounts for what a provider keeps of earlier calls; None where the price is not known."""
    prices: str
    """Date of the prices."""

    def words(self, name: str) -> str:
        """A field for a reader."""
        value = getattr(self, name)
        if name == "cost":
            return "unknown" if value is None else f"{value:,.2f} US dollars"
        if isinstance(value, int):
            return f"about {value:,}" if name.endswith("tokens") else f"{value:,}"
        return str(value)


def estimate(bench: Path, model: str, options: RunOptions, *, prices: Path = TABLE) -> Estimate:
    """Reckon what `run_model` with the same arguments would take."""
    table = read_prices(prices)
    opened = open_benchmark(bench, options.images, verify=False)
    ids = chosen_cases(
        opened, limit=options.limit, sample_per_cell=options.sample_per_cell, seed=options.seed
    )
    rule = table.picture(model)
    cases, calls, images, sends, text, picture, output = 0, 0, 0, 0, 0, 0, 0
    for case in opened if ids is None else opened.pick(ids):
        found = _Taken.of(case, rule, table, options)
        cases += 1
        calls += len(case.steps)
        images += found.images
        sends += found.sends
        text += found.text
        picture += found.picture
        output += found.output
    price = table.price(model)
    tokens_in = text // _CHARACTERS + picture
    return Estimate(
        model=model,
        cases=cases,
        calls=calls,
        images=images,
        image_sends=sends,
        text_tokens=text // _CHARACTERS,
        image_tokens=picture,
        output_tokens=output,
        cost=None if price is None else (tokens_in * price[0] + output * price[1]) / 1e6,
        prices=table.date,
    )


class _Taken(msgspec.Struct, frozen=True):
    """What one case takes."""

    images: int
    sends: int
    text: int
    """Characters."""
    picture: int
    output: int

    @classmethod
    def of(cls, case: Case, rule: PictureRule, table: Prices, options: RunOptions) -> "_Taken":
        answers = [round(table.answers.get(step.format, 0)) for step in case.steps]
        views = _entering(case.steps, apart=options.policy.history == "none")
        tokens = {
            view.id: rule.tokens(*_size(case, view, options.max_side))
            for view in case.views
            if any(view.id in entering for entering in views)
        }
        system = len(system_prompt(case.protocol))
        said = [len(asked(step)) for step in case.steps]
        sent = [len(entering) for entering in views]
        weighed = [sum(tokens[view] for view in entering) for entering in views]
        if options.policy.history != "none":
            # A turn holds all before it, and the answers to them.
            before = [0, *(_CHARACTERS * answer for answer in answers[:-1])]
            said = list(accumulate(question + answer for question, answer in zip(said, before, strict=True)))
            sent, weighed = list(accumulate(sent)), list(accumulate(weighed))
        return cls(
            images=len(tokens),
            sends=sum(sent),
            text=sum(said) + system * len(said),
            picture=sum(weighed),
            output=sum(answers),
        )


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

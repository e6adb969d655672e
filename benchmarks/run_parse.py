"""How fast are answers read? Replies per second on one core, beside the naive "last number in the text".

    python benchmarks/run_parse.py [--seconds 1.0]

The naive pattern is the lower bound of what any parser must do: it looks at every character once, and it is wrong for
most replies of the table in the specification. Six kinds of replies, each a rotation over many wordings and numbers:

| kind | what |
|---|---|
| short | "Answer: 2", "(3)", "**Answer:** red and blue", "Yes, the base is opaque." |
| reasoned | a sentence that no other reply has, then a marker and the answer, as the examination asks for it |
| new | the short ones, with a marker or without, each followed by a remark that makes it unlike all others |
| free | sentences with options in natural words, refusals, no answer at all |
| long | 2 KB of reasoning in words, then a marker and the answer |
| json | a record with reasoning and answer, plain or fenced |

A model takes seconds for a reply, so tens of thousands of replies a second are plenty. Each figure is the best of five
rounds.
"""

import argparse
import re
import time
from collections.abc import Callable, Sequence

from carina.cases import Option, Step
from carina.runs.parse import parse

Reply = tuple[Step, str]
_NUMBER = re.compile(r"\d+")
_SENTENCES = (
    "The cardiac silhouette is within normal limits for a frontal projection.",
    "There is a hazy opacity in the right lower zone that obscures the hemidiaphragm.",
    "Mask 1 leaves out the lateral part of this area, as far as the 7th rib.",
    "Mask 3 follows the border more closely but takes in some of the heart.",
    "The left costophrenic angle is sharp and the apices are clear.",
    "Comparing the two candidates, the second one spills over the mediastinum.",
)


def choice(texts: Sequence[str], *, multiple: bool) -> Step:
    options = tuple(Option(id=f"o{n}", text=text) for n, text in enumerate(texts, start=1))
    return Step(
        id="s", stage=1, task="t", format="choice", question="Which?", options=options, multiple=multiple
    )


MASKS = choice(("1st mask", "2nd mask", "3rd mask", "4th mask"), multiple=False)
POINTS = choice(("red point", "orange point", "yellow point", "blue point", "None"), multiple=True)
YES_NO = choice(("Yes", "No"), multiple=False)
SIDES = choice(("on the left", "on the right"), multiple=False)
FINDING = Step(id="s", stage=1, task="t", format="yes_no", question="Is there an effusion?")


def short() -> list[Reply]:
    replies: list[Reply] = []
    for n in range(1, 5):
        said = (
            f"Answer: {n}",
            f"{n}",
            f"({n})",
            f"**Answer:** [{n}]",
            f"Final answer: {n}.",
            f"Answer: mask {n}",
        )
        replies += [(MASKS, text) for text in said]
        replies += [(POINTS, text) for text in (f"Answer: {n}, 2", "Answer: red and blue", "Answer: None")]
    replies += [
        (YES_NO, text) for text in ("Yes", "Answer: No", "Yes, the right base is opaque.", "Answer: 2")
    ] * 2
    replies += [(FINDING, text) for text in ("Yes.", "No, there is no effusion.", "Uncertain", "No")] * 2
    return replies


def distinct(replies: list[Reply]) -> list[Reply]:
    return list({(step.question, step.options, text): (step, text) for step, text in replies}.values())


def new() -> list[Reply]:
    """More replies to a choice, and more to a question for a label, than are remembered."""
    return [(step, f"{text} (case {n})") for n in range(5000) for step, text in distinct(short())]


def reasoned() -> list[Reply]:
    """No reply comes twice, but answers do."""
    marked = [
        (step, text) for step, text in distinct(short()) if text.lower().startswith(("answer", "final"))
    ]
    return [
        (step, f"In case {n} the {n % 7}th rib is covered.\n{text}")
        for n in range(1000)
        for step, text in marked
    ]


def free() -> list[Reply]:
    said = (
        (SIDES, "It is on the right in case {}, as one sees."),
        (MASKS, "Answer: 3 because case {} shows the apex."),
        (MASKS, "In case {} I would choose mask 3."),
        (MASKS, "In case {} the apex is covered."),
        (MASKS, "I'm sorry, but I cannot interpret image {}."),
        (FINDING, "There is no effusion in case {}."),
    )
    return [(step, text.format(n)) for n in range(4000) for step, text in said]


def long() -> list[Reply]:
    replies: list[Reply] = []
    for n in range(24):
        words: list[str] = []
        while sum(map(len, words)) < 2000:
            words.append(_SENTENCES[(n + len(words)) % len(_SENTENCES)])
        replies.append((MASKS, f"{' '.join(words)}\n\nAnswer: {n % 4 + 1}"))
    return replies


def structured() -> list[Reply]:
    replies: list[Reply] = []
    for n in range(24):
        record = f'{{"reasoning": "{_SENTENCES[n % 6]}", "answer": {n % 4 + 1}}}'
        replies.append((MASKS, record if n % 2 else f"```json\n{record}\n```"))
    return replies


def naive(step: Step, text: str) -> int | None:
    found = _NUMBER.findall(text)
    return int(found[-1]) if found and int(found[-1]) <= len(step.options) else None


def rate(parser: Callable[[Step, str], object], replies: list[Reply], seconds: float) -> float:
    best = 0.0
    for _ in range(5):
        done, start = 0, time.process_time()
        while (spent := time.process_time() - start) < seconds / 5:
            for step, text in replies:
                parser(step, text)
            done += len(replies)
        best = max(best, done / spent)
    return best


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seconds", type=float, default=1.0, help="CPU time for each figure")
    seconds = options.parse_args().seconds
    print(f"{'replies':<8} {'answers/s':>12} {'last number/s':>14} {'ratio':>7}")
    for name, replies in (
        ("short", short()),
        ("reasoned", reasoned()),
        ("new", new()),
        ("free", free()),
        ("long", long()),
        ("json", structured()),
    ):
        assert name == "free" or all(parse(step, text).status == "ok" for step, text in replies)
        ours, bound = rate(parse, replies, seconds), rate(naive, replies, seconds)
        print(f"{name:<8} {ours:>12,.0f} {bound:>14,.0f} {ours / bound:>7.2f}")


if __name__ == "__main__":
    main()

"""JSON schemas of answers, for models that are asked for JSON (`--structured`).

Every answer in the schema of a step is read by `carina.runs.parse` as what it says. A field for reasoning comes first,
so that the model may think before it answers, as it may in words.
"""

from typing import Any, Final

from carina.cases import Step
from carina.models.served.request_options import object_schema

_REASONING: Final = {"type": "string", "description": "Reasoning that leads to the answer; may be empty."}
_LABELS: Final = ("yes", "no", "uncertain")
_CORNERS: Final = "The corners of each box as [x1, y1, x2, y2], in the unit that the question names."


def answer_schema(step: Step) -> dict[str, Any] | None:
    """The JSON schema of the answer to a step; None where the answer is a text.

    Args:
        step: The step, with or without its answer key, which is not used.

    Example:
        >>> from carina.cases import Option
        >>> options = (Option(id="no", text="No"), Option(id="yes", text="Yes"))
        >>> question = "Is it? (1) No (2) Yes"
        >>> step = Step(id="1", stage=1, task="t", format="choice", question=question, options=options)
        >>> answer_schema(step)["properties"]["answer"]
        {'type': 'integer', 'enum': [1, 2]}
    """
    answer: dict[str, Any]
    if step.format == "choice":
        answer = _option_schema(step)
        if step.multiple:
            answer = {"type": "array", "items": answer}
    elif step.format == "yes_no":
        answer = {"type": "string", "enum": list(_LABELS)}
    elif step.format == "boxes":
        corners = {"type": "array", "items": {"type": "number"}}
        answer = {"type": "array", "items": corners, "description": _CORNERS}
    else:
        return None
    return object_schema({"reasoning": _REASONING, "answer": answer})


def _option_schema(step: Step) -> dict[str, Any]:
    """An option as the question labels it: by number or by letter; by its text where it has no label."""
    numbers = range(1, len(step.options) + 1)
    for label in ("({}) ", "{}) ", "{}. "):
        if all(
            label.format(n) + one.text in step.question for n, one in zip(numbers, step.options, strict=True)
        ):
            return {"type": "integer", "enum": list(numbers)}
        if all(label.format(one.id) + one.text in step.question for one in step.options):
            return {"type": "string", "enum": [one.id for one in step.options]}
    return {"type": "string", "enum": [one.text for one in step.options]}

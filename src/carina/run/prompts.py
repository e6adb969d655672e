"""What a model is told before the first question, by protocol, and how the truth of a failed step is told."""

from typing import Final

PERCEPT: Final = (
    "You are an expert thoracic radiologist who is examined on chest X-rays. Every question has numbered options. "
    "Look at the images, think as long as you need, and end each reply with a line that starts with 'Answer:' and "
    "holds nothing else but the number of the right option, or all right numbers separated by commas."
)
CONVERSATION: Final = (
    "You are an expert thoracic radiologist who reads chest X-rays step by step. Answer each question from the images "
    "and from what was said before, and keep to the form and the length that the question asks for."
)
_BY_PROTOCOL: Final = {"percept": PERCEPT}

_HINT: Final = (
    "For your information: the right answer to the question “{question}” is: {answer} "
    "Disregard what was said about it before."
)


def system_prompt(protocol: str) -> str:
    """What stands before the conversation."""
    return _BY_PROTOCOL.get(protocol, CONVERSATION)


def hint(question: str, answer: str) -> str:
    """The truth of an earlier step, as a fact."""
    told = answer if answer.rstrip().endswith((".", "!", "?")) else f"{answer}."
    return _HINT.format(question=" ".join(question.split()), answer=told)

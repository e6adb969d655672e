"""The prompts that a user sets: a system prompt as text or in a file, a style, and how images are sent."""

import os
import reprlib
from dataclasses import replace
from pathlib import Path
from typing import Final

from carina.models import ModelName
from carina.models.registry import MODELS
from carina.runs.options import ExampleRequest, RunOptions
from carina.runs.records import ImageDetail, ImageOrder, Profile, Prompts, PromptStyle
from carina.store.documents import read_file
from carina.store.errors import CarinaError
from carina.store.results import Location, as_path, image_directory
from carina.studies.vocabulary import Split

LONGEST_SYSTEM_PROMPT: Final = 100_000
"""Bytes of a system prompt: it is sent with every question."""
_LONGEST_NAME: Final = 255
"""Characters of the name of a file."""

SystemPrompt = str | os.PathLike[str] | None
"""A system prompt: text is the prompt itself, a path is a file that holds it, None stands for the protocol's own."""


def add_prompts(
    options: RunOptions,
    *,
    system_prompt: SystemPrompt,
    prompt_style: PromptStyle,
    image_order: ImageOrder | None,
    image_detail: ImageDetail,
    examples: Location | None,
    examples_split: Split | None,
    examples_per_protocol: int,
    max_example_images: int,
) -> RunOptions:
    """The options of a run with the prompts of its user, and with where examples come from.

    Raises:
        CarinaError: The system prompt is too long, its file cannot be read, or there is a split without a benchmark.
    """
    return replace(
        options,
        prompts=make_prompts(
            system_prompt=system_prompt,
            prompt_style=prompt_style,
            image_order=image_order,
            image_detail=image_detail,
            profile=options.policy.profile,
        ),
        examples=make_example_request(
            examples,
            split=examples_split,
            per_protocol=examples_per_protocol,
            max_images=max_example_images,
        ),
    )


def make_prompts(
    *,
    system_prompt: SystemPrompt,
    prompt_style: PromptStyle,
    image_order: ImageOrder | None,
    image_detail: ImageDetail,
    profile: Profile,
) -> Prompts:
    """The prompts of a run, without examples.

    Raises:
        CarinaError: The system prompt is too long, or its file cannot be read.
    """
    return Prompts(
        system=read_system_prompt(system_prompt),
        style=prompt_style,
        # The published runner sends text before images.
        image_order=image_order or ("after" if profile == "chexpercept" else "before"),
        image_detail=image_detail,
    )


def read_system_prompt(given: object) -> str | None:
    """The text of a system prompt, without blank lines around it; "" for none.

    Raises:
        CarinaError: It is too long, its file is missing or not UTF-8 text, or text was given that names a file.
    """
    if given is None:
        return None
    if isinstance(given, str):
        _refuse_name_of_file(given)
        return _check(given, "system_prompt")
    if not isinstance(given, os.PathLike):
        shown = f"{reprlib.repr(given)} ({type(given).__name__})"
        raise CarinaError(f"system_prompt: expected text, or a path of a file with the text, found {shown}")
    path = as_path(given)
    content = read_file(path, max_bytes=LONGEST_SYSTEM_PROMPT)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CarinaError(
            f"{path}: not UTF-8 text (byte {error.start}); save the system prompt as UTF-8"
        ) from None
    return _check(text, str(path))


def _refuse_name_of_file(text: str) -> None:
    is_name = 0 < len(text) <= _LONGEST_NAME and text.isprintable()
    if is_name and Path(text).is_file():
        raise CarinaError(
            f"system_prompt: text is taken as the prompt itself, and {text!r} is a file; pass Path({text!r}) to read it"
        )


def _check(text: str, where: str) -> str:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise CarinaError(f"{where}: not text that can be sent as UTF-8") from None
    if "\0" in text:
        raise CarinaError(f"{where}: expected text, found a NUL character")
    if size > LONGEST_SYSTEM_PROMPT:
        raise CarinaError(
            f"{where}: a system prompt has at most {LONGEST_SYSTEM_PROMPT:,} bytes, this has {size:,}"
        )
    return text.replace("\r\n", "\n").strip()


def make_example_request(
    benchmark: Location | None, *, split: Split | None, per_protocol: int, max_images: int
) -> ExampleRequest | None:
    """Where examples come from; None for none.

    Raises:
        CarinaError: A split without a benchmark.
    """
    if benchmark is None:
        if split is not None:
            raise CarinaError(f"examples_split {split!r}: expected a benchmark too (--examples BENCH)")
        return None
    return ExampleRequest(
        benchmark=as_path(benchmark),
        images=image_directory(benchmark, None),
        split=split,
        per_protocol=per_protocol,
        max_images=max_images,
    )


def check_model_takes(model: ModelName, prompts: Prompts, *, has_examples: bool) -> None:
    """Refuse what a model would ignore.

    Raises:
        CarinaError: Examples for a model that does not read them, or a detail of images for one that is not served.
    """
    if has_examples and not MODELS[model.kind].takes_examples:
        able = ", ".join(kind.form for kind in MODELS.entries().values() if kind.takes_examples)
        raise CarinaError(f"model {model.text!r}: does not read examples; models that do: {able}")
    if prompts.image_detail != "auto" and not model.is_served:
        raise CarinaError(
            f"model {model.text!r}: image_detail {prompts.image_detail} is a request to a served model; this one gets "
            "images as they are (--max-side makes them smaller)"
        )

"""Published questions as cases: images, steps and single-question cases, for every source that brings questions.

A case of the protocol "questions" has one question. Its answer is yes or no, options of a closed set, or words. Text
that stands beside a question in its record, such as a report, has no place in a case: nothing here stores it.
"""

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec

from carina.cases.model import Case, CaseImage, CaseView, Format, Key, Label, Option, Panel, Role, Step
from carina.sources._json import Entry, read_entries
from carina.sources._question_protocols import CLOSED, OPEN, QUESTIONS
from carina.sources._record import RecordError, SourceError, describe, printable
from carina.sources._source import Item, Skipped, Stream
from carina.sources.swift_chat.record import Fields
from carina.sources.swift_chat.texts import option_letter
from carina.store.errors import CarinaError
from carina.studies.image_files import inside
from carina.studies.model import Origin
from carina.studies.pixels import Header, read_header
from carina.studies.vocabulary import Split, View

T = TypeVar("T")
ChosenSplit: TypeAlias = Literal["train", "val", "test", "all"]
"""An option of readers: the questions of one split, or all of them."""

CREDENTIALED: Final = "PhysioNet Credentialed Health Data License 1.5.0: nothing of it may be passed on"
SECOND_ID: Final = "second id"
DEFECTS: Final = {SECOND_ID: "the id of the second question gets a number"}
"""For the decorator of a source whose question ids may come twice."""

_BATCH: Final = 8
"""Records of one call; a worker gets several calls at a time."""
_BLANK: Final = frozenset({"", "nan", "null"})
_YES_NO: Final = re.compile(r"(yes|no)(?=$|[\s.,;:!])", re.IGNORECASE)
_BARE_YES_NO: Final = re.compile(r"(yes|no)\W*", re.IGNORECASE)
_ASKS_YES_NO: Final = re.compile(
    r"(?:.*[,.:;]\s*)?(?:is|are|was|were|does|do|did|has|have|had|can|could|may|will|would|should)\b",
    re.IGNORECASE | re.DOTALL,
)
_LETTERS: Final = 26
_TASKS: Final = {"plane": "view"}
"""Kinds of question that Carina scores, by the name it knows them under."""
_HEADERS: Final = 65_536
"""Images whose size is remembered: most sets ask many questions about one image."""


# ---- records --------------------------------------------------------------------------------------------------------


def decode_lenient(content: bytes) -> Any:  # noqa: ANN401 - JSON
    """The value of a record; NaN and infinite numbers, as Python writes them, are read as null.

    Raises:
        RecordError: It is not JSON.
    """
    try:
        return msgspec.json.decode(content)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(content, parse_constant=lambda _word: None)
    except (ValueError, RecursionError) as error:
        raise RecordError("record", f"not JSON: {printable(str(error), longest=200)}", kind="json") from error


def read_json(path: Path, expected: str) -> Any:  # noqa: ANN401 - JSON
    """The value of a small file."""
    if not path.is_file():
        raise SourceError(f"{path}: missing, expected {expected}")
    try:
        return decode_lenient(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except (OSError, RecordError) as error:
        raise SourceError(f"{path}: cannot be read: {error}") from error


def find_questions(path: Path, name: str, advice: str) -> Path:
    """The file of questions: the path itself, or the file of that name in the folder.

    Raises:
        SourceError: It is missing; `advice` says what to put there.
    """
    file = path / name if path.is_dir() else path
    if not file.is_file():
        raise SourceError(f"{file}: missing{advice}")
    return file


@dataclass(frozen=True, kw_only=True)
class RecordReader(ABC):
    """Base of readers of the questions of one JSON file; sent to the workers with every batch of records."""

    file: Path

    @abstractmethod
    def make(self, number: int, record: Fields) -> Item | None:
        """The case of a record; None for one that was not asked for."""

    def read(self) -> Stream:
        """Read all records."""
        yield from read_in_batches(read_entries(self.file), self._make, self._place)

    def _make(self, entry: Entry) -> Item | None:
        return self.make(entry.number, Fields(decode_lenient(entry.content)))

    def _place(self, entry: Entry) -> str:
        return f"{self.file}: record {entry.number}"


def read_in_batches(
    records: Iterable[T], make: Callable[[T], Item | None], place: Callable[[T], str]
) -> Stream:
    """Batches of records for the workers: what `make` returns, or why a record cannot be used.

    Args:
        records: Texts of records or rows of a table.
        make: Makes a case from a record; None for a record that was not asked for. A function of a module, or a
            partial of one.
        place: File and number of a record, likewise.
    """
    rest = iter(records)
    while batch := list(islice(rest, _BATCH)):
        yield partial(_read_batch, batch, make, place)


def _read_batch(batch: list[T], make: Callable[[T], Item | None], place: Callable[[T], str]) -> list[Item]:
    found = (_read_one(record, make, place) for record in batch)
    return [item for item in found if item is not None]


def _read_one(record: T, make: Callable[[T], Item | None], place: Callable[[T], str]) -> Item | None:
    try:
        return make(record)
    except RecordError as error:
        return Skipped.from_error(error, place(record))


def read_answer(value: object, field: str = "answer") -> str:
    """An answer as text: numbers without an empty fraction, lists joined by commas.

    Raises:
        RecordError: There is none.
    """
    if isinstance(value, bool):
        text = "yes" if value else "no"
    elif isinstance(value, float):
        text = "" if not math.isfinite(value) else f"{value:g}"
    elif isinstance(value, list):
        text = ", ".join(read_answer(item, field) for item in value)
    elif value is None or isinstance(value, str | int):
        text = " ".join(str("" if value is None else value).split())
    else:
        raise RecordError(field, f"is {describe(value)}, expected text, a number or a list", kind="answer")
    if text.lower() in _BLANK:
        raise RecordError(field, "is blank", kind="blank answer")
    return text


# ---- images ---------------------------------------------------------------------------------------------------------


def find_image(
    root: Path, key: str, *, role: Role = "current", view: View = "unknown", is_finished: bool = False
) -> CaseImage:
    """An image by its key below the root; its size is read from the file.

    Raises:
        RecordError: The file is missing, cannot be read, or does not lie below the root.
    """
    header = _read_header_once(root, key)
    if isinstance(header, str):
        raise RecordError("image", header, kind="image")
    if header is None:
        raise RecordError("image", f"{printable(repr(key))} is missing", kind="image missing")
    return CaseImage(
        key=key,
        width=header.width,
        height=header.height,
        bits=header.bits,
        role=role,
        view=view,
        finished=is_finished,
    )


@lru_cache(maxsize=_HEADERS)
def _read_header_once(root: Path, key: str) -> Header | str | None:
    """Size of an image, what is wrong with it, or None where there is no file."""
    try:
        path = inside(root.resolve(), key)
        return read_header(path) if path.is_file() else None
    except ValueError as error:
        return f"{printable(repr(key))} {error}"
    except CarinaError as error:
        return str(error)


def resolve_key(path: str, *, start: str = "") -> str:
    """The key of a path as a file gives it: relative to `start`, with `..` resolved as long as it stays in the root.

    Raises:
        RecordError: It leads out of the root.
    """
    parts: list[str] = []
    for part in PurePosixPath(start, path.replace("\\", "/").lstrip("/")).parts:
        if part == "..":
            if not parts:
                raise RecordError(
                    "image", f"{printable(repr(path))} leads out of the folder of images", kind="image"
                )
            parts.pop()
        else:
            parts.append(part)
    if not parts:
        raise RecordError("image", "is empty", kind="image")
    return "/".join(parts)


# ---- steps ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question with its key, before its images are known."""

    text: str
    task: str
    key: Key
    options: tuple[Option, ...] = ()
    multiple: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the answer is in words."""
        return not self.options and self.key.label is None

    def step(
        self,
        step_id: str = "q1",
        *,
        stage: int | None = None,
        shows: Sequence[str] = (),
        uses: Sequence[str] = (),
        depends_on: Sequence[str] = (),
        context: str | None = None,
    ) -> Step:
        """The step that asks it."""
        form: Format = "open" if self.is_open else "choice" if self.options else "yes_no"
        return Step(
            id=step_id,
            stage=stage or (OPEN if self.is_open else CLOSED),
            task=self.task,
            format=form,
            question=self.text,
            multiple=self.multiple,
            options=self.options,
            context=context,
            shows=tuple(shows),
            uses=tuple(uses or shows),
            score="text" if self.is_open else "set" if self.multiple else "exact",
            depends_on=tuple(depends_on),
            origin=Origin(method="import"),
            key=self.key,
        )


def ask(text: str, answer: str, *, task: str, is_closed: bool | None = None) -> Question:
    """A question without options: a yes/no question where its answer is yes or no, else an open one.

    Args:
        text: The question.
        answer: The right answer.
        task: Kind of question, as the source names it.
        is_closed: Whether the source calls the question closed. None where it does not say: then an answer that goes on
            after its yes or no, such as "No, the heart is normal", is one to a yes/no question if the question asks so.
    """
    text = read_question(text)
    bare = _BARE_YES_NO.fullmatch(answer)
    longer = _YES_NO.match(answer) if is_closed or (is_closed is None and _ASKS_YES_NO.match(text)) else None
    found = bare or longer
    if found is None:
        return Question(text=text, task=task, key=Key(text=answer))
    label: Label = "yes" if found[1].lower() == "yes" else "no"
    return Question(text=text, task=task, key=Key(label=label, text=None if bare else answer))


def ask_record(record: Fields, kind: str) -> Question:
    """The question of a record with the fields question, answer and answer_type (OPEN or CLOSED).

    Args:
        record: The record.
        kind: Kind of question, as the source names it.
    """
    return ask(
        record.required("question"),
        read_answer(record.value("answer")),
        task=_TASKS.get(kind, kind),
        is_closed=(record.text("answer_type") or "").strip().upper() == "CLOSED",
    )


def ask_options(
    text: str, options: Sequence[str], right: Iterable[int], *, task: str, multiple: bool = False
) -> Question:
    """A question with options, which are listed below it by letter, or by number where there are too many.

    Args:
        text: The question.
        options: Texts of the options, without labels.
        right: Places of the right options, from 0.
        task: Kind of question, as the source names it.
        multiple: Whether several options may be right.
    """
    text = read_question(text)
    is_lettered = len(options) <= _LETTERS
    labels = [option_letter(place) if is_lettered else str(place + 1) for place in range(len(options))]
    listed = [f"{label}. {option}" for label, option in zip(labels, options, strict=True)]
    if not all(line in text for line in listed):
        text = "\n".join([text, *listed])
    return Question(
        text=text,
        task=task,
        key=Key(options=tuple(labels[place] for place in sorted(set(right)))),
        options=tuple(Option(id=label, text=option) for label, option in zip(labels, options, strict=True)),
        multiple=multiple,
    )


def read_question(text: str) -> str:
    """The text of a question, without spaces around it."""
    text = text.strip()
    if text.lower() in _BLANK:
        raise RecordError("question", "is blank", kind="blank question")
    return text


def find_right(answer: str, labels: Sequence[str], options: Sequence[str]) -> int:
    """The place of the right option, which an answer names by its label, by its text, or by both.

    Raises:
        RecordError: It names none of them, or label and text name two.
    """
    plain = [" ".join(option.split()).rstrip(".").lower() for option in options]
    said = " ".join(answer.split())
    by_text = [place for place, option in enumerate(plain) if option == said.rstrip(".").lower()]
    if len(by_text) == 1:
        return by_text[0]
    label, rest = re.match(r"\(?(\w*)\)?[.):]*\s*(.*)", said, re.DOTALL).groups()  # type: ignore[union-attr]
    place = next((place for place, one in enumerate(labels) if one.lower() == label.lower()), None)
    if place is None or (rest and rest.rstrip(".").lower() != plain[place]):
        raise RecordError(
            "answer", f"is {describe(answer)}, which names none of {len(options)} options", kind="answer"
        )
    return place


# ---- cases ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What a question is about."""

    case: str
    study: str
    patient: str | None
    split: Split | None = None
    reference_study: str | None = None
    path: str | None = None


def make_case(
    source: str,
    subject: Subject,
    question: Question,
    images: Sequence[CaseImage],
    *,
    context: str | None = None,
) -> Case:
    """The case of one question; the images enter with it, one after the other.

    The target of the case is the kind of question, so that reports tell the kinds apart.
    """
    views = make_views(images)
    step = question.step(shows=[view.id for view in views], context=context)
    return Case(
        id=subject.case,
        protocol=QUESTIONS.name,
        study=subject.study,
        patient=subject.patient,
        source=source,
        split=subject.split,
        target=question.task,
        path=subject.path,
        reference_study=subject.reference_study,
        images=tuple({image.key: image for image in images}.values()),
        views=views,
        steps=(step,),
    )


def make_views(images: Sequence[CaseImage]) -> tuple[CaseView, ...]:
    """One view an image, numbered from 1."""
    return tuple(
        CaseView(id=f"v{number}", panels=(Panel(image=image.key),))
        for number, image in enumerate(images, start=1)
    )


def choose_splits(split: ChosenSplit) -> tuple[Split, ...]:
    """The splits that an option names."""
    return ("train", "val", "test") if split == "all" else (split,)


def list_split_files(
    folder: Path, names: dict[Split, tuple[str, ...]], split: ChosenSplit
) -> Iterator[tuple[Split, Path]]:
    """The files of the chosen splits; each may have several names.

    Raises:
        SourceError: A file is missing; with "all", only where every file is.
    """
    found = []
    for one in choose_splits(split):
        file = next((folder / name for name in names[one] if (folder / name).is_file()), None)
        if file is not None:
            found.append((one, file))
        elif split != "all":
            raise SourceError(f"{folder / names[one][0]}: missing, expected the questions of the split {one}")
    if not found:
        raise SourceError(
            f"{folder}: holds none of {', '.join(name for one in names.values() for name in one)}"
        )
    yield from found

"""A published conversation as a case. Facts that the record does not state stay unknown.

| unknown | stored as |
|---|---|
| size of an image whose file is missing | 0 x 0 |
| view, age, sex, indication, date, split | unknown or none |
| which earlier turns a question needs | no dependency; the fact `history` says that there is one |
| when studies were taken | no order; numbers of studies are not taken for time |
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Final, Literal, NamedTuple, cast, get_args

from carina.cases import Case, CaseImage, CaseView, Panel, Step
from carina.cases.faults import faults
from carina.sources._json import decode
from carina.sources._record import RecordError
from carina.sources.swift_chat import texts
from carina.sources.swift_chat.record import Defect, Fields
from carina.sources.swift_chat.steps import Turn, read_step
from carina.store.errors import ImageError
from carina.studies.image_files import inside
from carina.studies.pixels import Header, read_header
from carina.studies.vocabulary import Split

PROTOCOL: Final = "trek"
_DIGITS: Final = re.compile(r"\d+")
_SPLITS: Final = get_args(Split)
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""The scheme of an address, such as `https:`; a drive has one letter."""
_PATIENT_GROUP: Final = re.compile(r"p1[0-9]")
_PATIENT_FOLDER: Final = re.compile(r"patient[0-9]+")
_ROOTS: Final = ("files", "train", "valid", "test")
"""Folders at the top of public data sets, directly above the folder of a patient."""
_KEPT_NAMES: Final = 3
"""Trailing names that are kept of a path whose root is unknown: patient, study, file."""


@dataclass(kw_only=True)
class CaseResult:
    """The case of a record, and what is wrong or unused in it."""

    case: Case
    defects: Counter[Defect] = field(default_factory=Counter)
    unmapped: list[str] = field(default_factory=list)
    """Fields that have no place in a case."""


@dataclass(frozen=True, kw_only=True)
class _MessagePair:
    """A question and its answer as messages, which may hold placeholders."""

    question: str
    answer: str


def read_case(content: bytes, *, images: Path | None = None) -> CaseResult:
    """The case of a record.

    Args:
        content: The text of the record.
        images: Folder of the image files, for their sizes.

    Raises:
        RecordError: The record cannot be used; names the field that is wrong.
    """
    record = Fields(decode(content))
    defects: Counter[Defect] = Counter()
    patient, study, links = _read_ids(record)
    located = _locate_images(record, patient, images, defects)
    items = record.objects("content")
    if not items:
        raise RecordError(
            "content", "is missing: without it, formats and stages of the questions are unknown"
        )
    pairs = _pair_messages(record, len(items))
    spoken, entering = _read_texts(items, pairs, len(located), defects)
    pictures = _make_images(located, items, study=study, links=links)
    views = tuple(
        CaseView(id=f"v{place}", panels=(Panel(image=image.key),))
        for place, image in enumerate(pictures, start=1)
    )
    current = [image for image in pictures if image.role == "current"]
    steps: list[Step] = []
    entered = 0
    for place, (item, (question, answer)) in enumerate(zip(items, spoken, strict=True)):
        shows = tuple(view.id for view in views[entered : entered + entering[place]])
        entered += entering[place]
        words = Turn(question=question, answer=answer, shows=shows, uses=tuple(v.id for v in views[:entered]))
        count = item.integer("image_input_count")
        defects["image count differs"] += count is not None and count != entered
        steps.append(read_step(place + 1, item, words, current, defects))
    defects["study numbers against time"] += _count_links_against_time(study, links)
    case_id = record.name("id")
    # Published studies are numbered within a patient; files that Carina exported hold the id of the case, and ids of
    # studies that need no patient.
    within = None if case_id is not None else patient
    case = Case(
        id=case_id or f"{PROTOCOL}-{_full_id(study, within)}",
        protocol=PROTOCOL,
        study=_full_id(study, within),
        reference_study=_full_id(links.reference, within) if links.reference else None,
        later_study=_full_id(links.later, within) if links.later else None,
        patient=patient,
        source=record.name("source") or "unknown",
        split=_read_split(record),
        order=_read_order(steps, links, defects),
        images=pictures,
        views=views,
        steps=tuple(steps),
    )
    wrong = next(faults(case), None)
    if wrong is not None:
        raise RecordError("record", wrong)
    for item in items:
        item.has("num_of_images")  # read only where folders do not show the study of an image
    unmapped = [*record.unknown(), *(f"content.{name}" for item in items for name in item.unknown())]
    defects["unmapped field"] += len(unmapped)
    return CaseResult(case=case, defects=+defects, unmapped=unmapped)


# ---- patient and studies --------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _LinkedStudies:
    reference: str | None
    later: str | None


def _read_ids(record: Fields) -> tuple[str | None, str, _LinkedStudies]:
    study = record.name("study_id")
    if study is None:
        raise RecordError("study_id", "is missing")
    links = _LinkedStudies(reference=record.name("ref_study_id"), later=record.name("pos_study_id"))
    return record.name("pat_id"), study, links


def _full_id(name: str, patient: str | None) -> str:
    return name if patient is None else f"{patient}-{name}"


def _count_links_against_time(study: str, links: _LinkedStudies) -> int:
    """Number of links that contradict the numbers of studies: a reference numbered later, a later study earlier."""

    def number(name: str | None) -> int | None:
        digits = _DIGITS.findall(name or "")
        return int(digits[-1]) if digits else None

    now, before, after = number(study), number(links.reference), number(links.later)
    if now is None:
        return 0
    return (before is not None and before > now) + (after is not None and after < now)


def _read_split(record: Fields) -> Split | None:
    split = record.name("split")
    if split is not None and split not in _SPLITS:
        raise RecordError("split", f"is {split!r}, expected {', '.join(_SPLITS)}")
    return cast("Split | None", split)


def _read_order(
    steps: Sequence[Step], links: _LinkedStudies, defects: Counter[Defect]
) -> Literal["staged", "shuffled"]:
    """The order of the stages, as observed; also counts linked studies without the stages that they imply."""
    stages = [step.stage for step in steps]
    staged = stages == sorted(stages)
    defects["shuffled order"] += not staged
    if 8 in stages:
        last = len(stages) - 1 - stages[::-1].index(8)
        defects["turn after the report"] += len(stages) - 1 - last
    defects["stage 5 without reference"] += 5 in stages and links.reference is None
    defects["reference without stage 5"] += 5 not in stages and links.reference is not None
    defects["stage 6 without link"] += 6 in stages and links.later is None
    return "staged" if staged else "shuffled"


# ---- messages -------------------------------------------------------------------------------------------------------


def _pair_messages(record: Fields, wanted: int) -> list[_MessagePair] | None:
    """The messages in pairs; None where there are none, or not as many as questions."""
    messages = record.objects("messages")
    spoken = [(message.text("role"), message.text("content") or "") for message in messages]
    if spoken and spoken[0][0] == "system":
        spoken = spoken[1:]
    if not spoken:
        return None
    questions, answers = spoken[::2], spoken[1::2]
    if [role for role, _ in spoken] != ["user", "assistant"] * (len(spoken) // 2):
        raise RecordError("messages", "expected a user and an assistant in turn")
    pairs = [_MessagePair(question=q, answer=a) for (_, q), (_, a) in zip(questions, answers, strict=True)]
    return pairs if len(pairs) == wanted else None


def _read_texts(
    items: Sequence[Fields], pairs: list[_MessagePair] | None, pictures: int, defects: Counter[Defect]
) -> tuple[list[tuple[str, str]], list[int]]:
    """Questions and answers, and how many pictures enter with each.

    What is sent is the message, which may say more than the item (a lead-in, an instruction). Where it says something
    else, the item counts: the key belongs to it.
    """
    spoken: list[tuple[str, str]] = []
    entering: list[int] = []
    for place, item in enumerate(items):
        question, answer = item.text("question"), item.text("answer")
        pair = pairs[place] if pairs is not None else None
        if pair is None:
            if question is None or answer is None:
                missing = "question" if question is None else "answer"
                raise RecordError(item.full_name(missing), "is missing, and no message holds it")
            sent, replied = question, answer
        else:
            sent, replied = pair.question, pair.answer
            if question is not None and _comparable_words(question) not in _comparable_words(sent):
                defects["texts differ"] += 1
                sent = question
            if answer is not None and _comparable_words(answer) != _comparable_words(replied):
                defects["texts differ"] += 1
                replied = answer
        entering.append((pair.question if pair is not None else sent).count(texts.PLACEHOLDER))
        spoken.append((texts.remove_placeholders(sent), texts.remove_placeholders(replied)))
    if sum(entering) == 0 and pictures:
        entering = _count_entering_images(items)
    if sum(entering) != pictures:
        raise RecordError("messages", f"hold {sum(entering)} placeholders for {pictures} images")
    return spoken, entering


def _comparable_words(text: str) -> str:
    return texts.make_comparable(texts.remove_placeholders(text))


def _count_entering_images(items: Sequence[Fields]) -> list[int]:
    """Number of images that enter with each question, from the cumulative numbers of the record."""
    seen = [item.integer("image_input_count") or 0 for item in items]
    return [max(0, now - before) for before, now in zip([0, *seen], seen, strict=False)]


# ---- images ---------------------------------------------------------------------------------------------------------


class LocatedImage(NamedTuple):
    """An image of a record."""

    key: str
    parts: tuple[str, ...]
    """Names in the path as it was given."""
    absolute: bool
    header: Header | None
    """None where there is no such file."""


def _locate_images(
    record: Fields, patient: str | None, root: Path | None, defects: Counter[Defect]
) -> list[LocatedImage]:
    name = "images" if record.has("images") else "image"
    located = [
        locate_image(path, f"{name}[{place}]", patient=patient, root=root)
        for place, path in enumerate(record.texts(name))
    ]
    record.has("image")
    defects["absolute path"] += sum(image.absolute for image in located)
    defects["size unknown"] += sum(image.header is None for image in located)
    defects["image absent"] += root is not None and sum(image.header is None for image in located)
    return located


def _make_images(
    located: Sequence[LocatedImage], items: Sequence[Fields], *, study: str, links: _LinkedStudies
) -> tuple[CaseImage, ...]:
    """Images with their roles: by the folder of their study, or by the number of current images."""
    roles = _roles_by_study(located, study, links) or _roles_by_number(len(located), items)
    if roles is None:
        raise RecordError("image", "which images are of the reference study is unknown")
    return tuple(
        CaseImage(
            key=image.key,
            width=image.header.width if image.header else 0,
            height=image.header.height if image.header else 0,
            bits=image.header.bits if image.header else 8,
            role="reference" if role == "reference" else "current",
        )
        for image, role in zip(located, roles, strict=True)
    )


def _roles_by_study(located: Sequence[LocatedImage], study: str, links: _LinkedStudies) -> list[str] | None:
    if links.reference is None:
        return ["current"] * len(located)
    roles = []
    for image in located:
        folders = image.parts[:-1]
        if (
            links.later is not None
            and _is_of_study(folders, links.later)
            and not _is_of_study(folders, study)
        ):
            raise RecordError("image", "shows the later study, from which answers come")
        current, reference = _is_of_study(folders, study), _is_of_study(folders, links.reference)
        if current == reference:
            return None
        roles.append("reference" if reference else "current")
    return roles


def _is_of_study(folders: Sequence[str], study: str) -> bool:
    return any(folder in (study, f"s{study}", f"study{study}") for folder in folders)


def _roles_by_number(images: int, items: Sequence[Fields]) -> list[str] | None:
    stated = {number for item in items if (number := item.integer("num_of_images")) is not None}
    if len(stated) != 1:
        return None
    (current,) = stated
    if current > images:
        raise RecordError("content", f"num_of_images is {current}, but there are {images} images")
    return ["current"] * current + ["reference"] * (images - current)


def locate_image(path: str, field: str, *, patient: str | None, root: Path | None) -> LocatedImage:
    """The key of an image: with an image root, the longest end of its path that leads to a file there."""
    if _ADDRESS.match(path):
        raise RecordError(field, f"{path[:40]!r} is an address, expected the path of a file")
    windows = PureWindowsPath(path)
    foreign = bool(windows.drive or "\\" in path)
    parts = tuple(part for part in (windows if foreign else PurePosixPath(path)).parts if part != ".")
    absolute = bool(windows.drive) or path.startswith(("/", "\\"))
    names = parts[1:] if absolute else parts
    if not names or ".." in names or not path.isprintable():
        raise RecordError(field, f"{path[:80]!r} does not lead to a file below a root")
    if root is not None:
        for start in range(len(names)):
            key = "/".join(names[start:])
            header = _read_header(root, key)
            if header is not None:
                return LocatedImage(key, names, absolute, header)
    return LocatedImage(
        "/".join(names[_count_private_names(names, patient) if absolute else 0 :]), names, absolute, None
    )


def _read_header(root: Path, key: str) -> Header | None:
    try:
        path = inside(root, key)
        return read_header(path) if path.is_file() else None
    except (ValueError, ImageError):
        return None


def _count_private_names(names: tuple[str, ...], patient: str | None) -> int:
    """How many leading names of a path are private to somebody else's machine."""
    for place, name in enumerate(names):
        if _PATIENT_GROUP.fullmatch(name) or _PATIENT_FOLDER.fullmatch(name) or name == patient:
            return place - 1 if place and names[place - 1] in _ROOTS else place
    return max(0, len(names) - _KEPT_NAMES)

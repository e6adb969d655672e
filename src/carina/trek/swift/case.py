"""A published conversation as a case. What the record does not tell stays unknown.

| unknown | stands as |
|---|---|
| size of an image that is not at hand | 0 x 0 |
| view, age, sex, indication, date, split | unknown or none |
| which earlier turns a question needs | no dependency; the fact `history` says that there is one |
| when studies were taken | no order; numbers of studies are not taken for time |
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, cast, get_args

import msgspec

from carina.cases import Case, CaseImage, CaseView, Panel, Step
from carina.cases.faults import faults
from carina.studies.vocabulary import Split
from carina.trek.swift import texts
from carina.trek.swift.faults import Defect, RecordError
from carina.trek.swift.fields import Fields
from carina.trek.swift.paths import Located, locate
from carina.trek.swift.turns import Said, step_of

PROTOCOL: Final = "trek"
_DIGITS: Final = re.compile(r"\d+")
_SPLITS: Final = get_args(Split)


@dataclass(kw_only=True)
class Read:
    """What came of a record."""

    case: Case
    defects: Counter[Defect] = field(default_factory=Counter)
    unmapped: list[str] = field(default_factory=list)
    """Names of fields that nothing was made of."""


@dataclass(frozen=True, kw_only=True)
class _Pair:
    """A question and its answer as messages, which may hold placeholders."""

    asked: str
    answered: str


def case_of(content: bytes, *, images: Path | None = None) -> Read:
    """The case of a record; `RecordError` names the field for which it cannot be used.

    `images` is where image files lie, for their sizes.
    """
    try:
        values = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError("record", f"not JSON: {error}") from error
    record = Fields(values)
    found: Counter[Defect] = Counter()
    patient, study, links = _who(record)
    located = _located(record, patient, images, found)
    items = record.objects("content")
    if not items:
        raise RecordError(
            "content", "is not there: formats and stages of the questions are not known without it"
        )
    pairs = _pairs(record, len(items))
    said, entering = _said(items, pairs, len(located), found)
    pictures = _images(located, items, study=study, links=links)
    views = tuple(
        CaseView(id=f"v{place}", panels=(Panel(image=image.key),))
        for place, image in enumerate(pictures, start=1)
    )
    current = [image for image in pictures if image.role == "current"]
    steps: list[Step] = []
    entered = 0
    for place, (item, (question, answer)) in enumerate(zip(items, said, strict=True)):
        shows = tuple(view.id for view in views[entered : entered + entering[place]])
        entered += entering[place]
        words = Said(question=question, answer=answer, shows=shows, uses=tuple(v.id for v in views[:entered]))
        count = item.whole("image_input_count")
        found["image count differs"] += count is not None and count != entered
        steps.append(step_of(place + 1, item, words, current, found))
    found["study numbers against time"] += _against_time(study, links)
    case_id = record.name("id")
    # Published studies are numbered within a patient; our own files name the case, and studies by their own ids.
    within = None if case_id is not None else patient
    case = Case(
        id=case_id or f"{PROTOCOL}-{_called(study, within)}",
        protocol=PROTOCOL,
        study=_called(study, within),
        reference_study=_called(links.reference, within) if links.reference else None,
        later_study=_called(links.later, within) if links.later else None,
        patient=patient,
        source=record.name("source") or "unknown",
        split=_split(record),
        order=_order(steps, links, found),
        images=pictures,
        views=views,
        steps=tuple(steps),
    )
    wrong = next(faults(case), None)
    if wrong is not None:
        raise RecordError("record", wrong)
    for item in items:
        item.has("num_of_images")  # asked for where folders do not tell
    unmapped = [*record.unknown(), *(f"content.{name}" for item in items for name in item.unknown())]
    found["unmapped field"] += len(unmapped)
    return Read(case=case, defects=+found, unmapped=unmapped)


# ---- who ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Links:
    reference: str | None
    later: str | None


def _who(record: Fields) -> tuple[str | None, str, _Links]:
    study = record.name("study_id")
    if study is None:
        raise RecordError("study_id", "is not there")
    links = _Links(reference=record.name("ref_study_id"), later=record.name("pos_study_id"))
    return record.name("pat_id"), study, links


def _called(name: str, patient: str | None) -> str:
    return name if patient is None else f"{patient}-{name}"


def _against_time(study: str, links: _Links) -> int:
    """Links whose numbers run against what they say: a reference numbered later, a later study numbered earlier."""

    def number(name: str | None) -> int | None:
        digits = _DIGITS.findall(name or "")
        return int(digits[-1]) if digits else None

    now, before, after = number(study), number(links.reference), number(links.later)
    if now is None:
        return 0
    return (before is not None and before > now) + (after is not None and after < now)


def _split(record: Fields) -> Split | None:
    split = record.name("split")
    if split is not None and split not in _SPLITS:
        raise RecordError("split", f"is {split!r}, expected {', '.join(_SPLITS)}")
    return cast("Split | None", split)


def _order(steps: Sequence[Step], links: _Links, found: Counter[Defect]) -> Literal["staged", "shuffled"]:
    """How the stages follow each other, by what is seen; and what the links should have led to."""
    stages = [step.stage for step in steps]
    staged = stages == sorted(stages)
    found["shuffled order"] += not staged
    if 8 in stages:
        last = len(stages) - 1 - stages[::-1].index(8)
        found["turn after the report"] += len(stages) - 1 - last
    found["stage 5 without reference"] += 5 in stages and links.reference is None
    found["reference without stage 5"] += 5 not in stages and links.reference is not None
    found["stage 6 without link"] += 6 in stages and links.later is None
    return "staged" if staged else "shuffled"


# ---- what is said -------------------------------------------------------------------------------------------------


def _pairs(record: Fields, wanted: int) -> list[_Pair] | None:
    """The messages in pairs; None where there are none, or not as many as questions."""
    messages = record.objects("messages")
    spoken = [(message.text("role"), message.text("content") or "") for message in messages]
    if spoken and spoken[0][0] == "system":
        spoken = spoken[1:]
    if not spoken:
        return None
    asked, answered = spoken[::2], spoken[1::2]
    if [role for role, _ in spoken] != ["user", "assistant"] * (len(spoken) // 2):
        raise RecordError("messages", "expected a user and an assistant in turn")
    pairs = [_Pair(asked=q, answered=a) for (_, q), (_, a) in zip(asked, answered, strict=True)]
    return pairs if len(pairs) == wanted else None


def _said(
    items: Sequence[Fields], pairs: list[_Pair] | None, pictures: int, found: Counter[Defect]
) -> tuple[list[tuple[str, str]], list[int]]:
    """Questions and answers, and how many pictures enter with each.

    What is sent is the message, which may say more than the item (a lead-in, an instruction). Where it says something
    else, the item counts: the key belongs to it.
    """
    said: list[tuple[str, str]] = []
    entering: list[int] = []
    for place, item in enumerate(items):
        question, answer = item.text("question"), item.text("answer")
        pair = pairs[place] if pairs is not None else None
        if pair is None:
            if question is None or answer is None:
                missing = "question" if question is None else "answer"
                raise RecordError(item.called(missing), "is not there, and no message holds it")
            sent, replied = question, answer
        else:
            sent, replied = pair.asked, pair.answered
            if question is not None and _words(question) not in _words(sent):
                found["texts differ"] += 1
                sent = question
            if answer is not None and _words(answer) != _words(replied):
                found["texts differ"] += 1
                replied = answer
        entering.append((pair.asked if pair is not None else sent).count(texts.PLACEHOLDER))
        said.append((texts.without_placeholders(sent), texts.without_placeholders(replied)))
    if sum(entering) == 0 and pictures:
        entering = _by_count(items)
    if sum(entering) != pictures:
        raise RecordError("messages", f"hold {sum(entering)} placeholders for {pictures} images")
    return said, entering


def _words(text: str) -> str:
    return texts.same(texts.without_placeholders(text))


def _by_count(items: Sequence[Fields]) -> list[int]:
    """Pictures that enter, from the numbers of those seen so far."""
    seen = [item.whole("image_input_count") or 0 for item in items]
    return [max(0, now - before) for before, now in zip([0, *seen], seen, strict=False)]


# ---- images -------------------------------------------------------------------------------------------------------


def _located(record: Fields, patient: str | None, root: Path | None, found: Counter[Defect]) -> list[Located]:
    name = "images" if record.has("images") else "image"
    located = [
        locate(path, f"{name}[{place}]", patient=patient, root=root)
        for place, path in enumerate(record.texts(name))
    ]
    record.has("image")
    found["absolute path"] += sum(image.absolute for image in located)
    found["size unknown"] += sum(image.header is None for image in located)
    found["image absent"] += root is not None and sum(image.header is None for image in located)
    return located


def _images(
    located: Sequence[Located], items: Sequence[Fields], *, study: str, links: _Links
) -> tuple[CaseImage, ...]:
    """Images with their part in the case: by the folder of their study, or by the number of current ones."""
    roles = _roles_by_study(located, study, links) or _roles_by_number(len(located), items)
    if roles is None:
        raise RecordError("image", "cannot be told which are of the reference study")
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


def _roles_by_study(located: Sequence[Located], study: str, links: _Links) -> list[str] | None:
    if links.reference is None:
        return ["current"] * len(located)
    roles = []
    for image in located:
        folders = image.parts[:-1]
        if (
            links.later is not None
            and _names_study(folders, links.later)
            and not _names_study(folders, study)
        ):
            raise RecordError("image", "shows the later study, from which answers come")
        current, reference = _names_study(folders, study), _names_study(folders, links.reference)
        if current == reference:
            return None
        roles.append("reference" if reference else "current")
    return roles


def _names_study(folders: Sequence[str], study: str) -> bool:
    return any(folder in (study, f"s{study}", f"study{study}") for folder in folders)


def _roles_by_number(images: int, items: Sequence[Fields]) -> list[str] | None:
    stated = {number for item in items if (number := item.whole("num_of_images")) is not None}
    if len(stated) != 1:
        return None
    (current,) = stated
    if current > images:
        raise RecordError("content", f"num_of_images is {current}, but there are {images} images")
    return ["current"] * current + ["reference"] * (images - current)

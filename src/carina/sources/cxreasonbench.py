"""CXReasonBench: chains of questions from a first decision over criterion, anatomy and measurement to the last one.

Every question lists its options as `(a) text, (b) text`. Measured values stand beside some questions: they are not
read. Only the path of direct reasoning (`path1`) is imported; the guided paths depend on what a model answered before.
Where a measurement lies near its threshold, the set accepts either decision: such a case has no key, and is skipped.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta

from carina.cases.model import Case, CaseImage, CaseView, Key, Option, Panel, Step
from carina.sources._mimic_images import MimicImages, read_path_ids
from carina.sources._question_protocols import CXREASONBENCH
from carina.sources._questions import (
    CREDENTIALED,
    Question,
    find_image,
    read_answer,
    read_json,
    read_question,
    resolve_key,
)
from carina.sources._record import RecordError, SourceError, describe, printable
from carina.sources._source import Item, Skipped, Stream, source
from carina.sources.swift_chat.record import Fields

NAME: Final = "cxreasonbench"
CASES: Final = "dx_by_dicoms.json"
QUESTIONS: Final = "qa"
MASKS: Final = "segmask_bodypart"
STAGES: Final = {"init": 1, "stage1": 2, "stage1.5": 3, "stage2": 4, "stage3": 5, "stage4": 6}
"""Folders of the stages in order, and the number of each in the protocol."""
OPTIONAL: Final = frozenset({"stage1.5"})
"""Stages that some tasks do not have."""
_PATH: Final = "path1"
_NAME: Final = re.compile(r"[0-9A-Za-z_-]{1,100}")
"""Names of tasks and images, which are names of folders and files."""
_LABEL: Final = re.compile(r"\(([a-z])\)\s*")
_END_OF_LAST: Final = re.compile(r"[.?!](?=\s|$)|\s+(?=Also, |If |Please |Do not |Select |Choose )|\n")
"""Where the last option of a question ends: what follows asks for the form of the answer."""
_SEVERAL: Final = re.compile(r"\ball\b|\bone or more\b", re.IGNORECASE)
_DECISIONS: Final = frozenset({"init", "stage4"})
"""Stages that ask for one decision."""
_DRAWN: Final = "stage2"
"""The stage that asks for drawn structures, of which several may be right."""


@source(
    name=NAME,
    title="CXReasonBench, chains of diagnostic reasoning",
    needs=f"the folder CXReasonBench with {CASES}, {QUESTIONS}/ and {MASKS}/; and with --images a folder that holds "
    "both it and MIMIC-CXR-JPG.",
    tree="""
    CXReasonBench/
      dx_by_dicoms.json
      qa/
        TASK/path1/stage1/.../IMAGE.json
      segmask_bodypart/
    files/    of MIMIC-CXR-JPG, below the same folder, named with --images
    """,
    licence=CREDENTIALED,
    truth=("questions", "keys"),
    brings="cases",
    url="https://physionet.org/content/chexstruct-cxreasonbench/",
    citation="Lee H, Choi G, Lee JO, Yoon H, Hong HG, Choi E. CXReasonBench: a benchmark for evaluating structured "
    "diagnostic reasoning in chest X-rays. NeurIPS Datasets and Benchmarks 2025.",
    inputs=lambda path: {"cases": path / CASES},
    image_root="images",
)
def read_cxreasonbench(
    path: Path,
    *,
    mimic: Annotated[
        Path | None,
        Meta(
            description="Folder of MIMIC-CXR-JPG within --images; without it, --images holds files/ itself."
        ),
    ] = None,
    images: Annotated[
        Path | None, Meta(description="Folder that holds both the folder CXReasonBench and MIMIC-CXR-JPG.")
    ] = None,
) -> Stream:
    """Read one case a task and image, with the questions of all its stages."""
    if images is None:
        raise SourceError(
            f"source {NAME}: name with --images the folder that holds both {path} and MIMIC-CXR-JPG"
        )
    reader = _Reader(
        path=path,
        root=images,
        masks=f"{_find_within(images, path, NAME)}{MASKS}",
        radiographs=_locate_mimic(images, mimic or images),
    )
    listed = read_json(path / CASES, "an object from task to a list of images")
    if not isinstance(listed, dict) or not all(isinstance(names, list) for names in listed.values()):
        raise SourceError(f"{path / CASES}: expected an object from task to a list of images")
    for task, names in listed.items():
        for name in names:
            yield partial(reader.read, str(task), str(name))


def _locate_mimic(root: Path, mimic: Path) -> MimicImages:
    """The radiographs, by keys that start at the root of the images."""
    found = MimicImages.at(mimic, NAME)
    return MimicImages(root, f"{_find_within(root, mimic, 'MIMIC-CXR-JPG')}{found.prefix}")


def _find_within(root: Path, folder: Path, called: str) -> str:
    """The path of a folder relative to the root, with a final slash, or nothing for the root itself."""
    try:
        inner = folder.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        raise SourceError(
            f"{folder}: does not lie within {root}; name with --images a folder that holds {called} too"
        ) from None
    return "" if inner == "." else f"{inner}/"


@dataclass
class _Draft:
    """The images, views and steps of a case in the making."""

    images: dict[str, CaseImage] = field(default_factory=dict)
    views: list[CaseView] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def add(self, question: Question, stage: int, images: Sequence[CaseImage]) -> None:
        shows = []
        for image in images:
            self.images[image.key] = image
            view = CaseView(id=f"v{len(self.views) + 1}", panels=(Panel(image=image.key),))
            self.views.append(view)
            shows.append(view.id)
        rounds = sum(step.stage == stage for step in self.steps) + 1
        self.steps.append(
            question.step(
                f"{stage}.{rounds}",
                stage=stage,
                shows=shows,
                uses=[view.id for view in self.views],
                depends_on=[step.id for step in self.steps[-1:]],
            )
        )


@dataclass(frozen=True, kw_only=True)
class _Reader:
    """Reads the chain of one task and image."""

    path: Path
    root: Path
    masks: str
    """Folder of the drawn structures, relative to the root."""
    radiographs: MimicImages

    def read(self, task: str, name: str) -> list[Item]:
        try:
            return [self._make_case(task, name)]
        except RecordError as error:
            place = f"{self.path / QUESTIONS}: {printable(task)}: {printable(name)}"
            return [
                Skipped(place=place, field=error.field, reason=error.reason, kind=error.kind, target=task)
            ]
        except SourceError as error:
            return [Skipped(place=str(self.path), reason=str(error), kind="file", target=task)]

    def _make_case(self, task: str, name: str) -> Case:
        for called in (task, name):
            if not _NAME.fullmatch(called):
                raise RecordError(
                    "", f"{describe(called)} cannot be the name of a task or an image", kind="id"
                )
        draft = _Draft()
        study = ""
        patient = ""
        for folder, stage in STAGES.items():
            file = self._find_file(task, folder, name)
            if file is None:
                continue
            record = Fields(read_json(file, "one question of the chain"), folder)
            if folder == "init":
                patient, study = read_path_ids(_first_path(record))
            for question, images in self._read_rounds(record, folder):
                draft.add(question, stage, images)
        return Case(
            id=f"{NAME}-{task}-{name}",
            protocol=CXREASONBENCH.name,
            study=study,
            patient=patient,
            source=NAME,
            split="test",
            target=task.replace("_", " "),
            images=tuple(draft.images.values()),
            views=tuple(draft.views),
            steps=tuple(draft.steps),
        )

    def _find_file(self, task: str, folder: str, name: str) -> Path | None:
        """The file of a stage, which lies in one of several folders by the form of its question."""
        stage = self.path / QUESTIONS / task / _PATH / folder
        found = sorted(stage.glob(f"*/{name}.json"))
        if len(found) > 1:
            raise RecordError(folder, f"{len(found)} files of one image, expected one", kind="file")
        if not found and folder not in OPTIONAL:
            raise RecordError(folder, f"no file {name}.json in a folder of {stage}", kind="file missing")
        return found[0] if found else None

    def _read_rounds(self, record: Fields, folder: str) -> Iterator[tuple[Question, list[CaseImage]]]:
        """Questions of a stage with the images that enter: one, or several after each other."""
        texts, answers = (_as_list(record.value(name)) for name in ("question", "answer"))
        if isinstance(record.value("question"), str) and len(answers) > 1:
            answers = [answers]  # of one question that has several right answers
        if len(texts) != len(answers) or not texts:
            raise RecordError(
                record.full_name("answer"),
                f"{len(texts)} questions and {len(answers)} answers",
                kind="answer",
            )
        paths = _split_images(record, len(texts))
        for text, answer, shown in zip(texts, answers, paths, strict=True):
            if not isinstance(text, str):
                raise RecordError(
                    record.full_name("question"), f"is {describe(text)}, expected text", kind="blank question"
                )
            find = self._find_radiograph if folder == "init" else self._find_mask
            yield read_options(text, answer, task=folder), [find(path) for path in shown]

    def _find_radiograph(self, path: str) -> CaseImage:
        return self.radiographs.find_path(path)

    def _find_mask(self, path: str) -> CaseImage:
        return find_image(self.root, resolve_key(path, start=self.masks), is_finished=True)


def _as_list(value: Any) -> list[Any]:  # noqa: ANN401 - JSON
    return value if isinstance(value, list) else [] if value is None else [value]


def _first_path(record: Fields) -> str:
    paths = record.texts("img_path")
    if not paths:
        raise RecordError(record.full_name("img_path"), "is empty", kind="image missing")
    return paths[0]


def _split_images(record: Fields, rounds: int) -> list[list[str]]:
    """Paths of images by round: a list for each, or one list where there is one round."""
    stated = _as_list(record.value("img_path"))
    by_round = [stated] if all(isinstance(path, str) for path in stated) else stated
    if not stated:
        by_round = [[] for _ in range(rounds)]
    if len(by_round) != rounds or not all(
        isinstance(paths, list) and all(isinstance(path, str) for path in paths) for paths in by_round
    ):
        raise RecordError(
            record.full_name("img_path"),
            f"expected a list of images for each of {rounds} questions",
            kind="image",
        )
    return by_round


def read_options(text: str, answer: object, *, task: str) -> Question:
    """A question whose text lists options as `(a) text, (b) text`, and an answer that names them by letter.

    A question without such a list is an open one.
    """
    text = read_question(text)
    listed = text[text.rfind("Options:") :] if "Options:" in text else text
    parts = _LABEL.split(listed)
    letters, texts = parts[1::2], parts[2::2]
    key = read_answer(answer)
    if len(letters) < 2 or letters != [chr(ord("a") + place) for place in range(len(letters))]:
        return Question(text=text, task=task, key=Key(text=key))
    end = _END_OF_LAST.search(texts[-1])
    texts[-1] = texts[-1][: end.start()] if end else texts[-1]
    right = tuple(dict.fromkeys(_LABEL.findall(f"{key} ")))
    if not right or not set(right) <= set(letters):
        raise RecordError(
            "answer", f"is {describe(key)}, expected one of (a) to ({letters[-1]})", kind="answer"
        )
    if task in _DECISIONS and len(right) > 1:
        raise RecordError(
            "answer", f"is {describe(key)}: either decision is accepted", kind="either accepted"
        )
    options = tuple(
        Option(id=letter, text=option.strip().rstrip(",;.").strip())
        for letter, option in zip(letters, texts, strict=True)
    )
    multiple = len(right) > 1 or (task == _DRAWN and _SEVERAL.search(text) is not None)
    return Question(text=text, task=task, key=Key(options=right), options=options, multiple=multiple)

"""What a served model may do in a build: read reports, reword questions. Its answers are kept, none is paid twice."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from carina.cases import Case
from carina.models import parse_model_option
from carina.models.served import AnswerCache
from carina.reports.by_model import ExtractionCounts, with_report_truth_by_model
from carina.store.errors import CarinaError, install
from carina.studies import Provenance, Studies, open_studies, write_studies
from carina.trek.paraphrase import ParaphraseCounts, paraphrase

READ: Final = "reading"
"""Folder of the study set whose findings a model has read from reports."""
_ANSWERS: Final = "answers.jsonl"
_PREFIX: Final = "model:"


def model_name(given: str, option: str) -> str:
    """The name of the model that an option gives; an error before anything is begun where it can't be asked."""
    name = parse_model_option(given, option).location
    if find_spec("inspect_ai") is None:
        raise CarinaError(f"{option} {given!r}: served models need inspect-ai: {install('served')}")
    return name


@contextmanager
def answers(directory: Path) -> Iterator[AnswerCache]:
    """The answers that this benchmark has been given so far."""
    with AnswerCache(directory / _ANSWERS) as cache:
        yield cache


def read_by_model(studies: Studies, directory: Path, model: str) -> tuple[Studies, ExtractionCounts]:
    """The studies with findings that a model has read from their reports, as a set of their own beside the cases."""
    counts = ExtractionCounts()
    folder = directory / READ
    manifest = studies.manifest
    provenance = Provenance(
        command=f"carina build trek {studies.directory.resolve().name} --extractor {_PREFIX}{model}",
        seed=None,
        options={"model": model, "studies": [part.sha256 for part in manifest.parts]},
        sources=manifest.sources,
        image_root=os.path.relpath((studies.directory / manifest.image_root).resolve(), folder.resolve()),
    )
    # Answers are kept, so that an interrupted reading is simply done again.
    with answers(directory) as cache:
        read = with_report_truth_by_model(model, studies, counts=counts, cache=cache)
        write_studies(folder, read, provenance, replace=True)
    return open_studies(folder), counts


def reworded(
    cases: Iterable[Case], model: str, *, counts: ParaphraseCounts, cache: AnswerCache, seed: int
) -> Iterator[Case]:
    """The cases with questions in a model's words, where their keys hold."""
    return paraphrase(model, cases, counts=counts, cache=cache, seed=seed)

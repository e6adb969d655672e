"""Served models in a build: they read reports and reword questions. Answers are cached, so that none is paid twice."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from carina.cases import Case
from carina.models import parse_model_option
from carina.models.served import AnswerCache
from carina.models.served.terms import refuse_restricted
from carina.reports.by_model import ExtractionCounts, with_report_truth_by_model
from carina.store.errors import CarinaError, install
from carina.studies import Provenance, Studies, open_studies, write_studies
from carina.trek.paraphrase import ParaphraseCounts, paraphrase

READ_FOLDER: Final = "reading"
"""Folder of the study set whose findings a model has read from reports."""
_ANSWERS: Final = "answers.jsonl"
_PREFIX: Final = "model:"


@dataclass(frozen=True)
class BuildModel:
    """A served model of a build."""

    name: str
    """Name in inspect-ai."""
    stay_local: bool
    """Whether requests to any other machine are refused."""


def choose_model(given: str, option: str, studies: Studies, *, accept_terms: bool) -> BuildModel:
    """The model that an option gives; an error before anything is written or sent where it cannot be used.

    Args:
        given: Value of the option, as in "model:openai/gpt-5".
        option: Name of the option, for messages.
        studies: Studies whose reports, or questions about them, the model gets.
        accept_terms: Whether the user states that the terms of restricted sources allow sending them to the provider.

    Raises:
        CarinaError: It is no served model, its package is not installed, or the studies must not be sent to it.
    """
    name = parse_model_option(given, option).location
    if find_spec("inspect_ai") is None:
        raise CarinaError(f"{option} {given!r}: served models need inspect-ai: {install('served')}")
    sources = studies.manifest.sources
    return BuildModel(name, refuse_restricted(sources, name, base_url=None, accept_terms=accept_terms))


@contextmanager
def open_answer_cache(directory: Path) -> Iterator[AnswerCache]:
    """Open the cache of the answers that models have given for this benchmark."""
    with AnswerCache(directory / _ANSWERS) as cache:
        yield cache


def extract_findings(
    studies: Studies, directory: Path, model: BuildModel
) -> tuple[Studies, ExtractionCounts]:
    """The studies with findings that a model has read from their reports, as a study set beside the cases."""
    counts = ExtractionCounts()
    folder = directory / READ_FOLDER
    manifest = studies.manifest
    provenance = Provenance(
        command=f"carina build trek {studies.directory.resolve().name} --extractor {_PREFIX}{model.name}",
        seed=None,
        options={"model": model.name, "studies": [part.sha256 for part in manifest.parts]},
        sources=manifest.sources,
        image_root=os.path.relpath((studies.directory / manifest.image_root).resolve(), folder.resolve()),
    )
    # Answers are cached, so an interrupted extraction simply starts again.
    with open_answer_cache(directory) as cache:
        read = with_report_truth_by_model(
            model.name, studies, counts=counts, cache=cache, stay_local=model.stay_local
        )
        write_studies(folder, read, provenance, replace=True)
    return open_studies(folder), counts


def reword_questions(
    cases: Iterable[Case], model: BuildModel, *, counts: ParaphraseCounts, cache: AnswerCache, seed: int
) -> Iterator[Case]:
    """The cases with questions that a model has reworded, where their keys stay the same."""
    return paraphrase(model.name, cases, counts=counts, cache=cache, seed=seed, stay_local=model.stay_local)

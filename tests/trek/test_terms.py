"""Reports of restricted sources reach a served model on another machine only with the user's word."""

import pytest

pytest.importorskip("inspect_ai", reason="the extra served is not installed")

from carina.models.served.terms import refuse_restricted
from carina.store.errors import CarinaError
from carina.studies import Provenance, SourceInfo, Study, open_studies, write_studies
from carina.trek import build_trek
from carina.trek.served_models import choose_model


def studies_of(folder, licence):
    provenance = Provenance(command="by hand", sources=(SourceInfo(name="hospital", licence=licence),))
    write_studies(folder, [Study(id="s", patient="p", source="hospital", images=())], provenance)
    return open_studies(folder)


@pytest.mark.parametrize(
    "option", [{"extractor": "model:openai/gpt-5"}, {"paraphrase": "model:openai/gpt-5"}]
)
def test_a_build_sends_no_restricted_report_to_another_machine(tmp_path, monkeypatch, option):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("INSPECT_EVAL_MODEL_BASE_URL", raising=False)
    studies = studies_of(tmp_path / "studies", "Credentialed Health Data License 1.5.0")
    with pytest.raises(CarinaError, match=r"source hospital: .*openai/gpt-5.*--accept-terms"):
        build_trek(studies, tmp_path / "trek", **option, workers=1)
    assert not (tmp_path / "trek").exists()


def test_data_of_a_build_stays_here_unless_its_terms_are_open_or_accepted(tmp_path):
    restricted = studies_of(tmp_path / "restricted", "Credentialed Health Data License 1.5.0")
    free = studies_of(tmp_path / "free", "CC BY 4.0")
    here, there = "model:ollama/tiny", "model:openai/gpt-5"
    assert choose_model(here, "--extractor", restricted, accept_terms=False).stay_local
    assert not choose_model(there, "--extractor", restricted, accept_terms=True).stay_local
    assert not choose_model(there, "--extractor", free, accept_terms=False).stay_local


@pytest.mark.parametrize(
    ("licence", "is_open"),
    [
        ("CC0-1.0", True),
        ("CC BY-NC 4.0", True),
        ("MIT", True),
        ("Apache-2.0", True),
        ("BSD 3-Clause", True),
        ("MIT-LCP credentialed health data use agreement", False),
        ("CCDA restricted", False),
        ("Apaches of the hospital only", False),
        ("", False),
    ],
)
def test_only_whole_names_of_open_licences_count(licence, is_open):
    stays = refuse_restricted(
        [SourceInfo(name="x", licence=licence)], "ollama/tiny", base_url=None, accept_terms=False
    )
    assert stays is not is_open

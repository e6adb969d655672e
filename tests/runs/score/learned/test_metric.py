"""Rows of a run and the figures of answers in words: through whole runs, and by a metric that counts words."""

import subprocess
import sys

import msgspec
import pytest
from tests.runs.conftest import CASES
from tests.runs.test_evaluate import timeless

from carina.runs import StepRow, open_run, read_info
from carina.runs.evaluate import run_model
from carina.runs.options import RunOptions
from carina.runs.score.learned import BERTSCORE, CHEXBERT, RADGRAPH, TextMetric, TextScorer, text_metrics
from carina.runs.score.learned import metric as module
from carina.store.errors import CarinaError

COLUMNS = ("bertscore", "chexbert_f1", "radgraph_entity_f1", "radgraph_f1")
SPOKEN = [(case.id, step.id) for case in CASES for step in case.steps if step.format in ("open", "report")]


def row(text, gold="edema", **other):
    made = {"case": "c", "study": "s", "patient": None, "protocol": "trek", "source": "made", "target": None}
    made |= {"path": None, "number": 0, "step": "1", "stage": 1, "task": "t", "format": "open"}
    made |= {"multiple": False, "options": 0, "state": "answered", "status": "ok"}
    return StepRow(**(made | {"text": text, "gold": gold} | other))


def shared(pairs):
    """How many words of the key the answer has, and how many pairs came together."""
    return [(float(len(set(key.split()) & set(said.split()))), len(pairs) / 1000) for key, said in pairs]


METRIC = TextMetric("Shared", "0" * 16, ("chexbert_f1", "bertscore"), shared)


def test_only_answers_in_words_have_figures():
    given = [
        row("mild edema", gold="edema mild heart"),
        row("edema", format="choice"),
        row("edema", state="incomplete", status=None),
        row("edema", format="report"),
        row("edema", status="refusal"),
        row("  "),
        row(None, status="no_answer"),
        row("edema", gold=""),
    ]
    found = TextScorer([METRIC])(given)
    assert [one.chexbert_f1 for one in found] == [2.0, None, None, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert [one.bertscore for one in found] == [0.002, None, None, 0.002, 0.0, 0.0, 0.0, 0.0]
    back = [msgspec.structs.replace(one, chexbert_f1=None, bertscore=None) for one in found]
    assert back == given
    assert TextScorer([])(given) == given


def test_answers_are_scored_in_batches_with_progress_messages(monkeypatch):
    monkeypatch.setattr(module, "_PROGRESS_INTERVAL", -1.0)
    told = []
    found = TextScorer([METRIC], told.append)([row(f"edema {n}") for n in range(300)])
    assert [one.chexbert_f1 for one in found] == [1.0] * 300
    assert sorted({one.bertscore for one in found}) == [0.044, 0.128]
    assert told == [f"{n} answers in words compared with their keys (Shared)" for n in (128, 256, 300)]


@pytest.fixture
def all_named(named, bert, chexbert, radgraph):
    named({BERTSCORE: bert, CHEXBERT: chexbert, RADGRAPH: radgraph})


def run(bench, out, **options):
    return run_model(bench.directory, "builtin/oracle", out, RunOptions(**options))


@pytest.mark.usefixtures("all_named")
def test_a_run_has_the_figures_of_all_models(bench, tmp_path):
    result = run(bench, tmp_path / "run")
    metrics = text_metrics()
    assert result.info.text_models == {one.name: one.weights for one in metrics}
    assert list(result.info.text_models) == ["BERTScore", "CheXbert", "RadGraph"]
    assert read_info(tmp_path / "run") == result.info
    rows = open_run(tmp_path / "run").rows()
    spoken = [one for one in rows if (one.case, one.step) in SPOKEN]
    assert spoken
    assert all(getattr(one, name) is None for one in rows if one not in spoken for name in COLUMNS)
    # The key itself: only a text in which RadGraph finds nothing has no figure above 0.
    for one in spoken:
        assert one.text == one.gold
        assert (one.bertscore, one.chexbert_f1) == (pytest.approx(1, abs=1e-5), 1.0)
        assert one.radgraph_f1 in (0.0, 1.0)
        assert one.radgraph_f1 == one.radgraph_entity_f1 == metrics[2].score([(one.gold, one.text)])[0][0]


@pytest.mark.usefixtures("all_named")
def test_a_run_that_grows_or_is_closed_again_has_the_same_figures(bench, tmp_path):
    run(bench, tmp_path / "whole")
    run(bench, tmp_path / "grown", limit=1)
    run(bench, tmp_path / "grown")
    assert timeless(open_run(tmp_path / "grown").rows()) == timeless(open_run(tmp_path / "whole").rows())
    before = (tmp_path / "whole" / "steps.parquet").read_bytes()
    info = (tmp_path / "whole" / "run.json").read_bytes()
    run(bench, tmp_path / "whole")
    assert (tmp_path / "whole" / "steps.parquet").read_bytes() == before
    assert (tmp_path / "whole" / "run.json").read_bytes() == info


def test_figures_depend_on_the_folders_that_are_named(bench, tmp_path, named, chexbert, monkeypatch):
    out = tmp_path / "run"
    first = run(bench, out)
    assert first.info.text_models == {}
    assert all(getattr(one, name) is None for one in open_run(out).rows() for name in COLUMNS)
    named({CHEXBERT: chexbert})
    assert list(run(bench, out).info.text_models) == ["CheXbert"]
    assert sum(one.chexbert_f1 is not None for one in open_run(out).rows()) == len(SPOKEN)
    assert list(read_info(out).text_models) == ["CheXbert"]
    monkeypatch.delenv(CHEXBERT)
    run(bench, out)
    assert read_info(out).text_models == {}
    assert all(one.chexbert_f1 is None for one in open_run(out).rows())


@pytest.mark.parametrize("variable", [BERTSCORE, CHEXBERT, RADGRAPH])
def test_a_bad_folder_is_refused_before_anything_is_asked(bench, tmp_path, named, variable):
    pytest.importorskip("torch", reason="the extra torch is not installed")
    out = tmp_path / "run"
    named({variable: tmp_path / "nowhere"})
    with pytest.raises(CarinaError, match=f"{variable}: .*nowhere: no such folder"):
        run(bench, out)
    (tmp_path / "nowhere").mkdir()
    with pytest.raises(CarinaError, match=r"nowhere/config\.json: missing"):
        run(bench, out)
    assert not out.exists()


def test_without_torch_the_extra_is_named(named, tmp_path, monkeypatch):
    named({CHEXBERT: tmp_path})
    monkeypatch.setattr("carina.models.extra.importlib.util.find_spec", lambda _name: None)
    with pytest.raises(CarinaError, match=r"torch.*pip install 'carina\[torch\]'"):
        text_metrics()


def test_models_are_imported_only_if_a_folder_is_named():
    code = (
        "import sys; from carina.runs.score.learned import text_metrics; assert text_metrics() == ();"
        "print([name for name in sys.modules if name in ('torch', 'transformers') or 'learned.' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.strip()
    assert loaded == "['carina.runs.score.learned.metric']"

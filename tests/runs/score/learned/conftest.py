"""Folders of tiny models in the published layouts, and an environment that names none of them."""

import pytest

from carina.runs.score.learned import BERTSCORE, CHEXBERT, RADGRAPH


@pytest.fixture(autouse=True)
def _none_named(monkeypatch):
    for name in (BERTSCORE, CHEXBERT, RADGRAPH):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def tiny():
    """The module that makes tiny models."""
    pytest.importorskip("torch", reason="the extra torch is not installed")
    pytest.importorskip("transformers", reason="the extra torch is not installed")
    from tests.runs.score.learned import tiny

    return tiny


@pytest.fixture(scope="session")
def bert(tiny, tmp_path_factory):
    """A BERT with random weights, as transformers saves it; not to be changed."""
    import torch
    import transformers

    folder = tiny.save_tokenizer(tmp_path_factory.mktemp("bert") / "tiny")
    torch.manual_seed(0)
    transformers.BertModel(tiny.config()).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def chexbert(tiny, tmp_path_factory):
    """A CheXbert whose labels can be told by hand; not to be changed."""
    return tiny.save_chexbert(tmp_path_factory.mktemp("chexbert") / "tiny")


@pytest.fixture(scope="session")
def radgraph(tiny, tmp_path_factory):
    """A RadGraph whose entities can be told by hand; not to be changed."""
    return tiny.save_radgraph(tmp_path_factory.mktemp("radgraph") / "tiny", spans_per_word=1.5)


@pytest.fixture
def named(monkeypatch):
    """Sets environment variables: `named({CHEXBERT: folder})`."""

    def name(folders):
        for variable, folder in folders.items():
            monkeypatch.setenv(variable, str(folder))

    return name

"""The small examination, its analysis and its report, made once."""

import importlib.util
from pathlib import Path

import msgspec
import pytest

from carina.report import write_report
from carina.report.analysis import analyse
from carina.report.exam import exams
from carina.report.read import read_runs
from carina.run.prices import read_prices

spec = importlib.util.spec_from_file_location("small", Path(__file__).with_name("small.py"))
small_runs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(small_runs)


@pytest.fixture(scope="session")
def small():
    return small_runs


@pytest.fixture(scope="session")
def runs(small, tmp_path_factory):
    return small.write_all(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def prices():
    """Of beta alone: a dollar a million tokens in, two out."""
    known = read_prices()
    return msgspec.structs.replace(known, prices={"lab/beta": (1.0, 2.0)})


@pytest.fixture(scope="session")
def analysis(runs, prices):
    (exam,) = exams(read_runs(runs))
    return analyse(exam, prices)


@pytest.fixture(scope="session")
def histories(small, prices, tmp_path_factory):
    """The analysis of models under several histories."""
    (exam,) = exams(read_runs(small.write_histories(tmp_path_factory.mktemp("histories"))))
    return analyse(exam, prices)


@pytest.fixture(scope="session")
def report(runs, tmp_path_factory):
    return write_report(runs, tmp_path_factory.mktemp("report"))

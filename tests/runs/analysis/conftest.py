"""The small runs with their analysis and their report, made once."""

import msgspec
import pytest
from tests.runs.analysis import small_runs

from carina.pages.report import report
from carina.runs.analysis.case_facts import collect_case_facts
from carina.runs.analysis.read import read_runs
from carina.runs.analysis.run_analysis import analyse_group
from carina.runs.analysis.run_groups import group_runs
from carina.runs.prices import read_prices


@pytest.fixture(scope="session")
def small():
    return small_runs


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Directories of the four small runs."""
    return small_runs.write_all(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def prices():
    """The price of beta only: one dollar a million input tokens, two dollars a million output tokens."""
    known = read_prices()
    return msgspec.structs.replace(known, prices={"lab/beta": (1.0, 2.0)})


@pytest.fixture(scope="session")
def analysis(runs, prices):
    (group,) = group_runs(read_runs(runs))
    return analyse_group(group, prices)


@pytest.fixture(scope="session")
def keys(analysis):
    """The right answers of the small runs' benchmark, in words."""
    return collect_case_facts(analysis.group.bench, analysis.group.cases)[1]


@pytest.fixture(scope="session")
def histories(prices, tmp_path_factory):
    """The analysis of models under several histories."""
    (group,) = group_runs(read_runs(small_runs.write_histories(tmp_path_factory.mktemp("histories"))))
    return analyse_group(group, prices)


@pytest.fixture(scope="session")
def written(runs, tmp_path_factory):
    """The report of the small runs."""
    return report(runs, tmp_path_factory.mktemp("report"))

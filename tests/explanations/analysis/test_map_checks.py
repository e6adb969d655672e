"""Checks of maps in the report: figures as they were found, and differences from random maps worked out by hand."""

import csv
import re

import polars as pl
import pytest

from carina.explanations.analysis.checks import summarise_checks
from carina.explanations.analysis.read import read_maps_run
from carina.explanations.checks import CheckResult, Checks, write_checks
from carina.explanations.checks import Figure as CheckFigure
from carina.explanations.maps import open_maps
from carina.pages.report import report
from carina.stats import Interval
from carina.store.errors import CarinaError

PATIENTS = ["a", "b", "c", "d", None, "a"]
DELETED = [0.2, 0.3, 0.1, 0.2, 0.4, 0.3]
INSERTED = [0.7, 0.5, 0.6, 0.8, 0.9, 0.4]
FOUND = {
    "deletion": 0.25,
    "deletion.random": 0.5,
    "insertion": 0.65,
    "insertion.random": 0.65,
    "swap.pearson": 0.9,
    "peak.present": 3.0,
    "peak.absent": 2.5,
    "weights.whole.pearson": 0.125,
    "weights.block 1.pearson": 0.5,
}


def checked(run, **changes):
    """Deletion is a quarter below that of a random map in every probe, insertion the same as its own."""
    told = {
        "maps": open_maps(run).manifest.fingerprint,
        "model": "lab/good",
        "method": "similarity",
        "probes": 6,
        "present": 6,
        "seed": 0,
        "options": {},
        "shuffled": "cascading",
        "figures": tuple(
            CheckFigure(name=name, definition=name, mean=Interval(value, value - 0.01, value + 0.01, 6, 5))
            for name, value in FOUND.items()
        ),
    }
    rows = pl.DataFrame(
        {
            "case": [f"p{place}" for place in range(6)],
            "patient": PATIENTS,
            "deletion": DELETED,
            "deletion.random": [value + 0.25 for value in DELETED],
            "insertion": INSERTED,
            "insertion.random": INSERTED,
        }
    )
    write_checks(run, CheckResult(Checks(**(told | changes)), rows))
    return run


@pytest.fixture
def run(probes, tiny, tmp_path):
    return checked(tiny.explained(tmp_path / "good", probes, controls=()))


def test_differences_from_random_maps_are_paired_on_probes(run, explained):
    assert summarise_checks(read_maps_run(explained[0])) is None
    found = summarise_checks(read_maps_run(run))
    assert {one.metric: one.value for one in found.estimates} == FOUND
    deletion, insertion = found.differences
    # The same in all probes, so every draw of patients gives it too.
    assert (deletion.value, deletion.low, deletion.high) == pytest.approx((-0.25, -0.25, -0.25))
    # Five patients, one of them unknown: 2 of 32 patterns of signs are as far from 0; Holm's correction doubles it.
    assert deletion.p == pytest.approx(2 / 32)
    assert deletion.adjusted == pytest.approx(4 / 32)
    assert (insertion.value, insertion.p, insertion.n) == (0, 1, 6)


def test_the_page_shows_the_checks_and_how_to_read_them(run, tmp_path):
    written = report([run], tmp_path / "out")
    page = written.pages[0].read_text(encoding="utf-8")
    section = page[page.index("Do maps depend on image, text and weights?") :].partition("</section>")[0]
    values = re.findall(r'data-key="([^"]*)".*?<span class="value">([^<]*)</span>', section)
    assert dict(values) == {
        **{f"good|model|check||{name}|": f"{FOUND[name]:.4f}" for name in list(FOUND)[:4]},
        "good|model|check||swap.pearson|": "0.90",
        "good|model|check||weights.whole.pearson|": "0.12",
        "good|model|check||weights.block 1.pearson|": "0.50",
        "good|model|check||peak.present|": "3",
        "good|model|check||peak.absent|": "2.5",
        "good|random map|check||deletion": "−0.2500",
        "good|random map|check||insertion": "0.0000",
    }
    for words in (
        "a lower area of deletion",
        "Near 1 the map does not depend on the text",
        "less similar",
        "should be higher",
    ):
        assert words in section
    for name, column in (("checks", "metric"), ("checks-less-random", "metric")):
        with (tmp_path / "out" / "tables" / f"ground-{name}.csv").open(encoding="utf-8") as file:
            rows = [row[column] for row in csv.DictReader(file)]
        assert rows == (list(FOUND) if name == "checks" else ["deletion", "insertion"])


def test_checks_of_other_maps_and_half_a_check_are_refused(run):
    checked(run, maps="other")
    with pytest.raises(CarinaError, match=r"checks\.json: belongs to other maps"):
        read_maps_run(run)
    checked(run)
    pl.read_parquet(run / "checks.parquet").drop("patient").write_parquet(run / "checks.parquet")
    with pytest.raises(CarinaError, match=r"checks.parquet: no column 'patient'"):
        read_maps_run(run)
    (run / "checks.parquet").unlink()
    with pytest.raises(CarinaError, match=r"checks.parquet: missing; .* carina explain --check"):
        read_maps_run(run)
    (run / "checks.json").write_text("{}")
    with pytest.raises(CarinaError, match=r"checks.json: not the checks of a run of maps"):
        read_maps_run(run)

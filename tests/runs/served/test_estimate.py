"""What a run would take, worked out by hand; no model is contacted, so no extra is needed."""

import json
import re
import subprocess
import sys
from datetime import date

import msgspec
import pytest
from tests.runs.conftest import CASES
from typer.testing import CliRunner

from carina.cases import Case, CaseImage, CaseView, Key, Option, Panel, Provenance, Step, write_benchmark
from carina.cli import app
from carina.runs import estimate
from carina.runs.prices import ImageRule, months_since, read_prices
from carina.runs.prompts import system_prompt
from carina.store.errors import CarinaError

TABLE = """
date: 2030-01
answers: {choice: 10}
pictures: {"": {rule: patches, tile: 10}, "some/": {rule: area, each: 100}}
prices: {some/model: [2.0, 50.0]}
own: ["mine/"]
reasoning: {some/think: 100, some/thinker: 30.0}
"""


@pytest.fixture
def made(tmp_path):
    """Three questions of 40 characters about two pictures, 100 x 50 and two of them side by side."""
    image = CaseImage(key="a.png", width=100, height=50)
    views = (
        CaseView(id="v1", panels=(Panel(image="a.png"),)),
        CaseView(id="v2", panels=(Panel(image="a.png"), Panel(image="a.png", crop=(0, 0, 10, 20))), side=60),
        CaseView(id="unused", panels=(Panel(image="a.png"),)),
    )
    steps = tuple(
        Step(id=str(n), stage=1, task="t", format="choice", question="?" * 40, shows=shows, uses=uses,
             options=(Option(id="a", text="a"), Option(id="b", text="b")), key=Key(options=("a",)))
        for n, (shows, uses) in enumerate([(("v1",), ("v1",)), (("v2",), ("v1", "v2")), ((), ("v2",))])
    )  # fmt: skip
    case = Case(id="c", protocol="percept", study="s", patient=None, source="x", images=(image,), views=views,
                steps=steps)  # fmt: skip
    write_benchmark(tmp_path / "bench", [case], Provenance(command="made by hand"))
    (tmp_path / "prices.yaml").write_text(TABLE)
    return tmp_path


def reckoned(made, model="some/model", **options):
    return estimate(made / "bench", model, **options, prices=made / "prices.yaml")


def test_an_estimate_counts_the_history_of_each_call(made):
    found = reckoned(made)
    system = len(system_prompt("percept"))
    assert (found.cases, found.calls, found.images) == (1, 3, 2)
    assert found.image_sends == 1 + 2 + 2
    assert found.text_tokens == (3 * system + (1 + 2 + 3) * 40 + (0 + 1 + 2) * 40) // 4
    # 100 x 50, and 60 x 30 beside 30 x 60: 90 x 60.
    assert found.image_tokens == 50 + 2 * (50 + 54)
    assert found.output_tokens == 30
    assert found.cost == pytest.approx(((found.text_tokens + found.image_tokens) * 2 + 30 * 50) / 1e6)
    assert found.prices == "2030-01"


def test_the_upper_bound_is_max_tokens_per_answer(made):
    found = reckoned(made, max_tokens=100)
    assert (found.output_tokens, found.reasoning_tokens, found.most_output_tokens) == (30, 0, 300)
    # Later turns carry answers of 400 characters in place of 40.
    assert found.most_text_tokens == found.text_tokens + (0 + 1 + 2) * 360 // 4
    sent = found.most_text_tokens + found.image_tokens
    assert found.most_cost == pytest.approx((sent * 2 + 300 * 50) / 1e6)
    assert found.cost_with_reasoning == found.cost
    # However long they are, 8000 characters of each are carried.
    system = len(system_prompt("percept"))
    longest = reckoned(made, max_tokens=5000)
    assert longest.most_text_tokens == (3 * system + (1 + 2 + 3) * 40 + (0 + 1 + 2) * 8000) // 4
    alone = reckoned(made, max_tokens=5000, history="none")
    assert alone.most_text_tokens == alone.text_tokens


def test_max_tokens_bounds_every_answer_of_an_estimate(made):
    found = reckoned(made, "some/think", max_tokens=7)
    assert (found.output_tokens, found.reasoning_tokens, found.most_output_tokens) == (21, 0, 21)


def test_the_allowance_for_reasoning_is_bounded_by_max_tokens(made):
    found = reckoned(made, "some/think", max_tokens=500)
    assert (found.output_tokens, found.reasoning_tokens) == (30, 300)
    assert reckoned(made, "some/think", max_tokens=60).reasoning_tokens == 150
    assert reckoned(made, "some/thinker-2").reasoning_tokens == 90
    assert reckoned(made, "some/model").reasoning_tokens == 0


def test_a_given_price_replaces_the_table(made):
    found = estimate(made / "bench", "some/think", price_in=1.0, price_out=10.0, prices=made / "prices.yaml")
    sent = found.text_tokens + found.image_tokens
    assert found.cost == pytest.approx((sent + 300) / 1e6)
    assert found.cost_with_reasoning == pytest.approx((sent + 3300) / 1e6)
    assert dict(found.rows())["prices"] == found.prices == "given"


def test_the_table_of_an_estimate_shows_ranges(made):
    rows = dict(reckoned(made, max_tokens=20_000).rows())
    assert rows["calls"] == "3"
    assert rows["output tokens"] == "about 30 for answers alone, 60,000 at most"
    assert re.fullmatch(r"0\.00 US dollars for answers alone, 3\.\d\d at most", rows["cost"])
    assert rows["prices"] == "list prices of 2030-01"
    estimated = estimate(
        made / "bench", "some/think", price_in=0.0, price_out=1e4, prices=made / "prices.yaml"
    ).rows()
    assert dict(estimated)["output tokens"] == "about 30 for answers alone, 330 with reasoning, 6,144 at most"
    assert dict(estimated)["cost"] == "0.30 US dollars for answers alone, 3.30 with reasoning, 61.44 at most"


def test_months_are_counted():
    assert months_since("2025-08", date(2025, 8, 31)) == 0
    assert months_since("2025-08", date(2026, 8, 1)) == 12
    assert months_since("2025-11", date(2026, 2, 1)) == 3


def test_without_a_history_each_call_carries_its_own_images(made):
    found = reckoned(made, history="none")
    assert found.image_sends == 1 + 2 + 1
    assert found.text_tokens == (3 * len(system_prompt("percept")) + 3 * 40) // 4
    assert found.image_tokens == 50 + (50 + 54) + 54


def test_downscaled_images_need_fewer_tokens(made):
    # 50 x 25 and 50 x 33.
    assert reckoned(made, max_side=50).image_tokens == 13 + 2 * (13 + 17)


def test_an_unknown_price_is_none_and_a_local_model_is_free(made):
    assert reckoned(made, "some/other").cost is None
    assert dict(reckoned(made, "some/other").rows())["cost"] == "unknown"
    assert reckoned(made, "mine/model").most_cost == 0.0
    assert dict(reckoned(made, "mine/model").rows())["cost"].startswith("0.00 US dollars")


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("openai/gpt-5", True),
        ("openai/gpt-5-2025-08-07", True),
        ("openai/gpt-5-mini", True),
        ("openai/gpt-5.7", False),
        ("openai/gpt-5-maxi", False),
        ("anthropic/claude-sonnet-4-20250514", True),
        ("anthropic/claude-sonnet-4-9", False),
        ("openai-api/local/gpt-5", False),
    ],
)
def test_a_price_is_that_of_the_model_and_its_dated_versions(model, known):
    assert (read_prices().price(model) is not None) is known
    assert read_prices().price("openai/gpt-5-mini") == (0.25, 2.0)


@pytest.mark.parametrize(
    ("rule", "size", "tokens"),
    [
        # 2048 x 4096 fits 1024 x 2048, then 768 x 1536: 2 x 3 tiles.
        (
            {"rule": "tiles", "fit": 2048, "short": 768, "tile": 512, "base": 85, "each": 170},
            (2048, 4096),
            1105,
        ),
        ({"rule": "tiles", "fit": 2048, "short": 768, "tile": 512, "base": 85, "each": 170}, (512, 512), 255),
        ({"rule": "area", "fit": 1568, "each": 750}, (1000, 1000), 1334),
        ({"rule": "area", "fit": 1000, "each": 1000}, (2000, 1000), 500),
        ({"rule": "patches", "tile": 28}, (1024, 1024), 1369),
        ({"rule": "patches", "tile": 28, "most": 1000}, (1024, 1024), 1000),
    ],
)
def test_image_tokens_follow_the_rule_of_the_provider(rule, size, tokens):
    assert msgspec.convert(rule, ImageRule).tokens(*size) == tokens


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("choice: 10", "choice: many"), r"prices\.yaml: not a table of prices: .*answers"),
        (("rule: patches", "rule: guess"), "not a table of prices"),
        (('"": {rule: patches, tile: 10}, ', ""), "pictures: expected a rule for all other models"),
        (("date: 2030-01", "day: 1"), "not a table of prices"),
        (("date: 2030-01", "date: 2030-13"), "not a table of prices: .*date"),
    ],
)
def test_a_wrong_price_table_is_refused(made, change, message):
    (made / "prices.yaml").write_text(TABLE.replace(*change))
    with pytest.raises(CarinaError, match=message):
        reckoned(made)
    with pytest.raises(CarinaError, match=r"none\.yaml: no such file"):
        estimate(made / "bench", "some/model", prices=made / "none.yaml")


def test_the_command_estimates_what_the_run_counts(bench):
    code = "import sys; from carina.program import main; sys.exit(main())"
    line = [sys.executable, "-c", code, "run", str(bench.directory), "--model", "openai/gpt-5", "--estimate"]
    estimated = json.loads(
        subprocess.run([*line, "--json"], capture_output=True, text=True, check=True).stdout
    )
    assert estimated["cases"] == len(CASES)
    assert estimated["calls"] == sum(len(case.steps) for case in CASES)
    # What a run on the loopback service has sent: see there.
    assert estimated["image_sends"] == 96
    assert 0 < estimated["cost"] < estimated["cost_with_reasoning"] < estimated["most_cost"]


def said(bench, *words):
    return CliRunner().invoke(app, ["run", str(bench.directory), "--estimate", "--model", *words])


def test_outdated_prices_give_a_warning(bench, monkeypatch):
    monkeypatch.setattr("carina.runs.cost.months_since", lambda *_: 13)
    done = said(bench, "openai/gpt-5")
    assert done.stderr.startswith("The prices are from 2025-08, 13 months ago: check your provider's page")
    assert "months" not in done.stdout
    for words in (("openai/gpt-5", "--price-in", "1", "--price-out", "2"), ("vllm/mine",), ("some/unknown",)):
        assert said(bench, *words).stderr == ""
    monkeypatch.setattr("carina.runs.cost.months_since", lambda *_: 12)
    assert said(bench, "openai/gpt-5").stderr == ""


def test_one_price_is_not_enough(bench):
    done = said(bench, "openai/gpt-5", "--price-in", "1")
    assert (done.exit_code, "expected both" in done.stderr) == (2, True)

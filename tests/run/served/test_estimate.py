"""What a run would take, worked out by hand; no model is contacted, so no extra is needed."""

import json
import subprocess
import sys

import msgspec
import pytest
from tests.run.conftest import CASES

from carina.cases import Case, CaseImage, CaseView, Key, Option, Panel, Provenance, Step, write_benchmark
from carina.errors import CarinaError
from carina.run import Policy, RunOptions
from carina.run.estimate import estimate
from carina.run.prices import PictureRule, read_prices
from carina.run.prompts import system_prompt

TABLE = """
date: 2030-01
answers: {choice: 10}
pictures: {"": {rule: patches, tile: 10}, "some/": {rule: area, each: 100}}
prices: {some/model: [2.0, 50.0]}
own: ["mine/"]
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
    return estimate(made / "bench", model, RunOptions(**options), prices=made / "prices.yaml")


def test_a_conversation_carries_what_was_before(made):
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


def test_questions_for_themselves_carry_what_they_use(made):
    found = reckoned(made, policy=Policy(history="none"))
    assert found.image_sends == 1 + 2 + 1
    assert found.text_tokens == (3 * len(system_prompt("percept")) + 3 * 40) // 4
    assert found.image_tokens == 50 + (50 + 54) + 54


def test_smaller_pictures_take_less(made):
    # 50 x 25 and 50 x 33.
    assert reckoned(made, max_side=50).image_tokens == 13 + 2 * (13 + 17)


def test_an_unknown_price_is_not_nought_and_an_own_machine_is(made):
    assert reckoned(made, "some/other").cost is None
    assert reckoned(made, "some/other").words("cost") == "unknown"
    assert reckoned(made, "mine/model").cost == 0.0
    assert reckoned(made, "mine/model").words("cost") == "0.00 US dollars"
    assert reckoned(made).words("calls") == "3"
    assert reckoned(made).words("image_tokens").startswith("about ")


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
def test_pictures_are_counted_by_rule(rule, size, tokens):
    assert msgspec.convert(rule, PictureRule).tokens(*size) == tokens


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("choice: 10", "choice: many"), r"prices\.yaml: not a table of prices: .*answers"),
        (("rule: patches", "rule: guess"), "not a table of prices"),
        (('"": {rule: patches, tile: 10}, ', ""), "pictures: expected a rule for all other models"),
        (("date: 2030-01", "day: 1"), "not a table of prices"),
    ],
)
def test_a_table_of_something_else_is_refused(made, change, told):
    (made / "prices.yaml").write_text(TABLE.replace(*change))
    with pytest.raises(CarinaError, match=told):
        reckoned(made)
    with pytest.raises(CarinaError, match="cannot be read"):
        estimate(made / "bench", "m", RunOptions(), prices=made / "none.yaml")


def test_the_command_estimates_without_a_model_and_as_the_run_then_counts(bench):
    code = "import sys; from carina.cli import main; sys.exit(main())"
    line = [sys.executable, "-c", code, "run", str(bench.directory), "--model", "openai/gpt-5", "--estimate"]
    told = json.loads(subprocess.run([*line, "--json"], capture_output=True, text=True, check=True).stdout)
    assert told["cases"] == len(CASES)
    assert told["calls"] == sum(len(case.steps) for case in CASES)
    # What a run on the loopback service has sent: see there.
    assert told["image_sends"] == 96
    assert told["cost"] > 0

"""Prompts that a user sets: read by one plain rule, recorded, and never mixed with others."""

import hashlib
import json
import re

import msgspec
import pytest
from tests.runs.conftest import revision_required
from typer.testing import CliRunner

from carina.cases.messages import prompt_text
from carina.cli import app
from carina.models import Reply
from carina.runs import Policy, Prompts, Walk, open_run, read_info, run, show_prompt
from carina.runs.analysis.histories import pair_with_corrected
from carina.runs.analysis.read import read_runs
from carina.runs.claim import identify_run
from carina.runs.prompts import CONVERSATION, PERCEPT, split_facts, state_facts, style_text, system_prompt
from carina.runs.shown_prompt import ANSWER
from carina.runs.user_prompts import LONGEST_SYSTEM_PROMPT, read_system_prompt
from carina.store.errors import CarinaError

RR = revision_required()


# ---- the system prompt ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"Be brief.", "Be brief."),
        (b"\n Be brief.\r\nAnswer.\r\n\n", "Be brief.\nAnswer."),
        (b"\xef\xbb\xbfBe brief.", "Be brief."),
        ("Größe".encode(), "Größe"),
        (b"", ""),
        (b" \n", ""),
    ],
)
def test_a_path_is_a_file_and_text_is_the_prompt_itself(tmp_path, content, text):
    (tmp_path / "mine.txt").write_bytes(content)
    assert read_system_prompt(tmp_path / "mine.txt") == text
    assert read_system_prompt(content.decode("utf-8-sig")) == text
    assert read_system_prompt(None) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"caf\xe9", r"mine\.txt: not UTF-8 text \(byte 3\)"),
        (b"a\0b", r"mine\.txt: .*NUL"),
        (b"a" * (LONGEST_SYSTEM_PROMPT + 1), r"mine\.txt: "),
    ],
)
def test_a_file_that_is_no_system_prompt_is_refused(tmp_path, content, message):
    (tmp_path / "mine.txt").write_bytes(content)
    with pytest.raises(CarinaError, match=message):
        read_system_prompt(tmp_path / "mine.txt")


def test_what_is_neither_text_nor_a_file_is_refused(tmp_path, monkeypatch):
    with pytest.raises(CarinaError, match=r"none\.txt: no such file"):
        read_system_prompt(tmp_path / "none.txt")
    with pytest.raises(CarinaError, match=str(tmp_path)):
        read_system_prompt(tmp_path)
    with pytest.raises(CarinaError, match="system_prompt: expected text, or a path"):
        read_system_prompt(b"Be brief.")
    with pytest.raises(CarinaError, match=r"system_prompt: .*at most 100,000 bytes"):
        read_system_prompt("a" * (LONGEST_SYSTEM_PROMPT + 1))
    with pytest.raises(CarinaError, match="system_prompt: not text"):
        read_system_prompt("\ud800")
    (tmp_path / "mine.txt").write_text("Be brief.")
    monkeypatch.chdir(tmp_path)
    # Whoever writes the name of a file means the file; which of the two is taken must not be guessed.
    with pytest.raises(CarinaError, match=r"is a file; pass Path\('mine\.txt'\)"):
        read_system_prompt("mine.txt")


def test_a_style_is_added_at_the_end_of_any_system_prompt():
    for protocol, own in (("percept", PERCEPT), ("trek", CONVERSATION)):
        assert system_prompt(protocol) == system_prompt(protocol, Prompts()) == own
        assert style_text(protocol, "plain") == ""
        for style in ("reasoning", "answer"):
            added = style_text(protocol, style)
            assert system_prompt(protocol, Prompts(style=style)) == f"{own} {added}"
            assert system_prompt(protocol, Prompts(style=style, system="a\nb")) == f"a\nb\n{added}"
            assert system_prompt(protocol, Prompts(style=style, system="")) == added
        assert system_prompt(protocol, Prompts(system="")) == ""
    assert system_prompt("percept", Prompts(system="mine"), "chexpercept") == "mine"


def test_default_prompts_are_those_of_earlier_versions():
    walk = Walk(RR, Policy())
    first = walk.turn
    content = msgspec.json.encode([first.system, first.messages], order="deterministic")
    row = walk.take(Reply(text="Answer: 1", stop="stop"))
    assert row.seen_sha256 == hashlib.sha256(content).hexdigest()
    assert (first.examples, first.image_order) == ((), "before")


# ---- a run ----------------------------------------------------------------------------------------------------------


def test_a_run_states_its_prompts_and_is_resumed_with_the_same_alone(bench, tmp_path):
    out = tmp_path / "run"
    ask = {"limit": 2, "prompt_style": "reasoning"}
    run(bench, "builtin/oracle", out, system_prompt="Mine.", **ask)
    info = read_info(out)
    assert info.system == {
        "percept": f"Mine. {style_text('percept', 'reasoning')}",
        "trek": f"Mine. {style_text('trek', 'reasoning')}",
    }
    stored = json.loads((out / "run.json").read_text())["prompts"]
    assert stored == {"own_system": True, "style": "reasoning", "image_order": "before", "image_detail": "auto",
                      "examples": None}  # fmt: skip
    (tmp_path / "mine.txt").write_text("Mine.\n")
    assert run(bench, "builtin/oracle", out, system_prompt=tmp_path / "mine.txt", **ask).counts.answered
    for other, message in [
        ({"system_prompt": "Mine?"}, r"system prompt of percept 'Mine\. .*, not 'Mine\? "),
        ({"system_prompt": "Mine.", "image_order": "after"}, "image_order before, not after"),
        ({"system_prompt": "Mine.", "prompt_style": "plain"}, "style reasoning, not plain"),
        ({}, "system prompt of percept 'Mine"),
        ({"system_prompt": "Mine.", "split": "test"}, "split 'test'|split None, not test"),
    ]:
        with pytest.raises(CarinaError, match=message):
            run(bench, "builtin/oracle", out, **(ask | other))


def test_prompts_that_differ_late_are_told_apart_in_the_error(bench, tmp_path):
    run(bench, "builtin/oracle", tmp_path / "run", limit=1, system_prompt="word " * 40 + "first")
    with pytest.raises(CarinaError, match=r"word first', not '.*word second'"):
        run(bench, "builtin/oracle", tmp_path / "run", limit=1, system_prompt="word " * 40 + "second")


def test_a_system_prompt_that_equals_the_protocols_own_is_the_same_run(bench, tmp_path):
    info = read_info(run(bench, "builtin/oracle", tmp_path / "run", limit=1).path)
    renamed = msgspec.structs.replace(info, prompts=msgspec.structs.replace(info.prompts, own_system=True))
    assert identify_run(renamed) == identify_run(info)


@pytest.mark.parametrize(
    "first", [{"prompt_style": "answer"}, {"system_prompt": "A."}, {"image_order": "after"}]
)
def test_runs_with_other_prompts_have_other_names_and_are_no_pair(bench, tmp_path, first):
    second = {"system_prompt": "B."} if "system_prompt" in first else {}
    folders = [
        run(bench, "builtin/oracle", tmp_path / f"{place}-{history}", history=history, limit=2, **given).path
        for place, given in enumerate([first, second])
        for history in ("own", "gold")
    ]
    found = read_runs(folders)
    names = [one.model for one in found]
    assert names[0] == names[1] != names[2] == names[3]
    assert all(name.startswith("builtin/oracle") for name in names)
    assert [(one.id, other.id) for one, other in pair_with_corrected(found)] == [
        ("0-own", "0-gold"),
        ("1-own", "1-gold"),
    ]
    assert not pair_with_corrected([found[0], found[3]])


def test_a_run_of_earlier_versions_has_the_prompts_of_its_protocols(bench, tmp_path):
    out = run(bench, "builtin/oracle", tmp_path / "run", limit=1).path
    before = identify_run(read_info(out))
    stored = json.loads((out / "run.json").read_text())
    del stored["prompts"], stored["selection"]["split"]
    (out / "run.json").write_text(json.dumps(stored))
    assert identify_run(read_info(out)) == before
    assert run(bench, "builtin/oracle", out).counts.cases == len(bench)


def test_a_detail_of_images_is_for_served_models(bench, tmp_path):
    with pytest.raises(CarinaError, match=r"builtin/oracle.*image_detail low.*--max-side"):
        run(bench, "builtin/oracle", tmp_path / "run", image_detail="low")
    assert not (tmp_path / "run").exists()


def test_every_step_of_the_facts_is_read_as_it_was_written():
    steps = [RR.step(name) for name in ("1", "2", "3a", "3b", "3c")]
    facts = (
        ("detection", ("Yes",)),
        ("contour evaluation", ("Yes",)),
        ("expansion", ("red point", "green point")),
        ("contraction", ()),
        ("revision", ("2nd mask",)),
    )
    assert split_facts(f"{state_facts(steps)}\n\nQuestion?") == ("Question?", facts)
    assert split_facts("Question?") == ("Question?", ())


def test_the_anchored_reader_believes_facts_as_it_believes_hints(bench, tmp_path):
    ask = {"limit": 3, "scope": "stage"}
    plain = run(bench, "builtin/anchored", tmp_path / "plain", history="hint", **ask)
    after = run(bench, "builtin/anchored", tmp_path / "after", history="hint", profile="chexpercept", **ask)
    percept = [[row.answer for row in one.rows() if row.protocol == "percept"] for one in (plain, after)]
    assert percept[0] == percept[1]
    assert any(row.hint and row.hint.startswith("Established fact") for row in after.rows())


# ---- what would be sent ---------------------------------------------------------------------------------------------


def test_a_prompt_is_shown_with_images_and_corrections(bench):
    shown = show_prompt(bench, "openai/gpt-5", case="rr", history="hint")
    assert [one.role for one in shown.messages] == ["system", *["user", "assistant"] * 6, "user"]
    assert shown.messages[0].text == PERCEPT
    first, second = shown.messages[1], shown.messages[3]
    assert first.text == prompt_text(RR.steps[0])
    assert [(image.view, image.width, image.height) for image in first.images] == [("v1", 32, 32)]
    assert second.text.startswith("For your information: the right answer to the question “Question 1?")
    assert {one.text for one in shown.messages if one.role == "assistant"} == {ANSWER}
    lines = str(shown).splitlines()
    assert "Nothing was sent" in lines[0]
    place = lines.index("Question 1?")
    assert re.fullmatch(r"\[image v1: 32 x 32 pixels, \d+ bytes\]", lines[place - 1])
    after = str(
        show_prompt(bench, "openai/gpt-5", case="rr", image_order="after", image_detail="low")
    ).splitlines()
    assert after[after.index("(2) No") + 1].endswith("bytes, detail low]")
    assert shown.to_frame().height == len(shown.messages)


def test_a_prompt_without_history_shows_every_question_on_its_own(bench):
    shown = show_prompt(bench, "openai/gpt-5", case="rr", history="none")
    assert [one.role for one in shown.messages] == ["system", *["user"] * 7]
    assert "on its own" in str(shown)


def test_the_first_case_is_shown_where_none_is_named(bench):
    assert show_prompt(bench, "builtin/reader").case == bench.ids()[0]
    assert show_prompt(bench, "builtin/reader", system_prompt="").messages[0].role == "user"
    with pytest.raises(CarinaError, match="nobody"):
        show_prompt(bench, "builtin/reader", case="nobody")


def test_the_command_line_shows_prompts_and_takes_them_from_a_file(bench, tmp_path):
    (tmp_path / "mine.txt").write_text("Mine.")
    line = [
        "run",
        str(bench.directory),
        "--model",
        "builtin/oracle",
        "--system-prompt",
        str(tmp_path / "mine.txt"),
    ]
    done = CliRunner().invoke(app, [*line, "--prompt-style", "answer", "--show-prompt", "--case", "talk"])
    assert done.exit_code == 0
    assert f"SYSTEM\nMine. {style_text('trek', 'answer')}\n\nUSER\n[image v1" in done.stdout
    done = CliRunner().invoke(app, [*line, "--show-prompt", "--json"])
    assert [one["part"] for one in json.loads(done.stdout)["messages"]] == ["system", "case"]
    done = CliRunner().invoke(app, [*line, "-o", str(tmp_path / "run"), "--limit", "1"])
    assert done.exit_code == 0
    assert read_info(tmp_path / "run").system == {"percept": "Mine.", "trek": "Mine."}
    assert open_run(tmp_path / "run").counts.answered == 1

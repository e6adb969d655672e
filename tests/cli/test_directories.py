"""Every command that writes a directory: one writer at a time, one finishing step, no leftovers, no file lost."""

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from carina.cli import app
from carina.store import writing
from carina.store.files import lock_file
from carina.store.resume import LOCK, UNFINISHED, CarinaError, lock_directory
from carina.studies import Region

RUNNER = CliRunner()


def carina(words: str) -> object:
    return RUNNER.invoke(app, words.split())


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Inputs of all commands."""
    root = tmp_path_factory.mktemp("home")
    before = Path.cwd()
    os.chdir(root)
    for words in (
        "phantom -n 6 --seed 2 --size 64 --workers 1 -o studies",
        "build percept studies --per-cell 1 --target edema --workers 1 -o percept",
        "build trek studies --workers 1 -o trek",
        "build ground studies --workers 1 -o probes",
        "run percept --model builtin/reader -o run",
        "export trek --to chat --layout swift --pictures copy --workers 1 -o chat",
    ):
        result = carina(words)
        assert result.exit_code == 0, result.output
    (root / "maps").mkdir()
    name = "patient0_study1_view1_frontal"
    np.save(root / "maps" / f"{name}_Edema_map.npy", np.random.default_rng(1).random((16, 16)))
    region = Region.from_box(4, 4, 8, 8, height=16, width=16).to_coco()
    (root / "regions.json").write_text(json.dumps({name: {"Edema": region}}))
    (root / "pickles").mkdir()
    (root / "pickles" / f"{name}_Edema_map.pkl").write_bytes(pickle.dumps({"map": np.zeros((2, 2))}))
    os.chdir(before)
    return root


@pytest.fixture(autouse=True)
def inside(home, monkeypatch):
    """The working directory, beside which every command has a new output."""
    monkeypatch.chdir(home)


SETS = {
    "phantom": "phantom -n 3 --seed 2 --size 64 --workers 1 -o",
    "import": "import swift-chat chat --images chat --copy-images --workers 1 -o",
    "percept": "build percept studies --per-cell 1 --target edema --workers 1 -o",
    "trek": "build trek studies --workers 1 -o",
    "ground": "build ground studies --workers 1 -o",
    "explain": "explain probes --model builtin/asymmetry --limit 2 --no-controls --workers 1 -o",
}
EXPORTS = {
    "chat": "export percept --to chat --workers 1 -o",
    "chexpercept": "export percept --to chexpercept --workers 1 -o",
    "hf": "export percept --to hf --pictures copy --workers 1 -o",
}
PAGES = {
    "report": "report run -o",
    "show": "show studies --limit 1 -o",
    "show one": "show studies p000000-s1 -o",
    "audit": "audit percept --no-files --workers 1 -o",
    "score-maps": "score-maps --maps maps --regions regions.json --geometry whole --replicates 5 -o",
    "convert-pickles": "convert-pickles pickles -o",
}
RUN = {"run": "run percept --model builtin/reader --limit 1 -o"}
ALL = SETS | EXPORTS | PAGES | RUN


def files(directory):
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def hidden(directory):
    """Hidden files but for the list of the files that Carina wrote."""
    found = {
        str(path.relative_to(directory)) for path in directory.rglob(".*") if path.name != ".carina.files"
    }
    return sorted(found)


def call(words, out):
    result = carina(f"{words} {out}")
    assert result.exit_code == 0, result.output + result.stderr
    return result


# ---- one writer -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ALL.values(), ids=ALL)
def test_a_second_call_at_the_same_time_gets_one_sentence(words, tmp_path):
    out = tmp_path / "out"
    busy = CarinaError("busy")
    held = lock_file(tmp_path / ".out.lock", busy) if "export" in words else lock_directory(out)
    with held:
        result = carina(f"{words} {out}")
    assert result.exit_code == 2, result.output
    sentence = result.stderr.splitlines()[-1]
    assert sentence.startswith(f"Error: {out}: another")
    assert not out.exists() or list(out.iterdir()) == []


def test_a_second_demo_at_the_same_time_gets_one_sentence(tmp_path):
    with lock_directory(tmp_path):
        result = carina(f"demo -o {tmp_path}")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith(f"Error: {tmp_path}: another")


def test_maps_are_scored_while_no_other_command_can_write_to_them(tmp_path, monkeypatch):
    scored = []

    def score(_bench, maps, **_):
        with pytest.raises(CarinaError, match="another process is writing here"):
            lock_directory(maps.directory).__enter__()
        scored.append(maps.directory)

    monkeypatch.setattr("carina.explanations.map_run.score_map_run", score)
    for _ in range(2):  # the maps are made, and then complete already
        carina(f"{SETS['explain']} {tmp_path / 'out'}")
    assert scored == [tmp_path / "out"] * 2


@pytest.mark.parametrize("held", ["studies", "percept", "run"])
@pytest.mark.parametrize("words", PAGES.values(), ids=PAGES)
def test_pages_and_scores_are_not_mixed_with_a_set(words, held):
    before = files(Path(held))
    result = carina(f"{words} {held}")
    assert result.exit_code == 2
    assert f"Error: {held}: is a " in result.stderr
    assert files(Path(held)) == before


@pytest.mark.parametrize("words", PAGES.values(), ids=PAGES)
def test_pages_and_scores_are_not_mixed_with_the_beginning_of_a_set(words, tmp_path):
    (tmp_path / UNFINISHED).write_text("of a build")
    result = carina(f"{words} {tmp_path}")
    assert result.exit_code == 2
    assert f"Error: {tmp_path}: holds the beginning of a set" in result.stderr


def test_an_audit_is_written_into_its_benchmark():
    assert carina("audit percept --no-files --workers 1").exit_code == 0
    names = sorted(path.name for path in Path("percept/audit").iterdir())
    assert names == [".carina.files", "audit.html", "audit.json"]


def test_a_report_that_fails_leaves_no_directory(tmp_path):
    assert carina(f"report probes -o {tmp_path / 'new' / 'report'}").exit_code == 2
    assert not (tmp_path / "new").exists()


# ---- the finishing step ---------------------------------------------------------------------------------------------

BESIDE = {
    "phantom": {"images"},
    "import": {"import.json", "skipped.csv", "defects.csv", "images"},
    "percept": {"build.json", "skipped.csv"},
    "trek": {"build.json", "skipped.csv"},
    "ground": {"build.json", "skipped.csv"},
    "explain": {"skipped.csv"},
}


@pytest.mark.parametrize("name", SETS)
def test_the_manifest_comes_after_everything_else_and_a_killed_command_is_finished_by_the_next(
    name, tmp_path, monkeypatch
):
    whole, out = tmp_path / "whole", tmp_path / "out"
    call(SETS[name], whole)

    def kill(_layout, directory, _manifest):
        assert BESIDE[name] <= {path.name for path in directory.iterdir()}
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(writing, "save_manifest", kill)
        assert carina(f"{SETS[name]} {out}").exit_code == 130
    call(SETS[name], out)
    assert files(out) == files(whole)
    assert hidden(out) == []


@pytest.mark.parametrize("name", SETS)
def test_a_command_that_was_killed_after_its_manifest_is_cleaned_up_by_the_next(name, tmp_path):
    out = tmp_path / "out"
    call(SETS[name], out)
    whole = files(out)
    (manifest,) = (
        path for path in out.glob("*.json") if "fingerprint" in path.read_text() and path.stem != "scoring"
    )
    (out / UNFINISHED).write_text(json.loads(manifest.read_text())["fingerprint"])
    (out / LOCK).touch()
    if name == "percept":
        (out / ".journal").write_text("outcomes")
    if name == "import":
        (out / ".import").mkdir()
        (out / ".import" / "00000.json").write_text("{}")
    call(SETS[name], out)
    assert hidden(out) == []
    assert files(out) == whole


@pytest.mark.parametrize("name", [name for name in SETS if "skipped.csv" in BESIDE[name]])
def test_a_list_of_skipped_records_that_is_missing_is_written_again(name, tmp_path):
    out = tmp_path / "out"
    call(SETS[name], out)
    whole = files(out)
    (out / "skipped.csv").unlink()
    call(SETS[name], out)
    assert files(out) == whole


def test_a_finished_import_is_left_as_it_is_and_says_the_same(tmp_path):
    words = f"{SETS['import']} {tmp_path / 'out'} --json"
    first, second = carina(words), carina(words)
    assert first.exit_code == second.exit_code == 0
    assert json.loads(first.stdout)["cases"] > 0
    assert second.stdout == first.stdout


# ---- leftovers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ALL.values(), ids=ALL)
def test_a_successful_call_removes_what_killed_calls_left(words, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / LOCK).touch()
    for name in (".index.html.99.tmp", ".run.json.123.tmp", ".steps.parquet.7.tmp"):
        (out / name).write_text("half")
    call(words, out)
    assert hidden(tmp_path) == []
    (out / ".run.json.123.tmp").write_text("half")
    if (
        "export" not in words
    ):  # an export is not written in place: whatever lies in a finished one is not its own
        call(words, out)
        assert hidden(tmp_path) == []


def test_temporary_files_in_the_folders_of_a_report_are_removed(tmp_path):
    for folder in ("tables", "figures"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / ".a.csv.99.tmp").write_text("half")
        (tmp_path / folder / ".mine.tmp").write_text("of the user")
    call(PAGES["report"], tmp_path)
    assert hidden(tmp_path) == ["figures/.mine.tmp", "tables/.mine.tmp"]


# ---- foreign files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"my notes", None], ids=["no table", "a table"])
@pytest.mark.parametrize("name", SETS)
def test_a_part_that_this_command_did_not_write_is_neither_removed_nor_overwritten(name, content, tmp_path):
    folder = tmp_path / {"phantom": "studies", "explain": "maps"}.get(name, "cases")
    folder.mkdir()
    own = folder / "part-00007.parquet"
    if content is None:
        pq.write_table(pq.read_table("studies/studies/part-00000.parquet").replace_schema_metadata(), own)
        content = own.read_bytes()
    own.write_bytes(content)
    result = carina(f"{SETS[name]} {tmp_path}")
    assert result.exit_code == 2
    assert f"{own}: was not written by this command" in result.stderr
    assert files(tmp_path) == {str(own.relative_to(tmp_path)): content}


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("phantom", "images/mine.png"),
        ("import", "skipped.csv"),
        ("percept", "build.json"),
        ("percept", ".journal"),
        ("trek", "skipped.csv"),
        ("ground", "skipped.csv"),
        ("explain", "skipped.csv"),
        ("explain", "scoring.json"),
    ],
)
def test_a_file_of_the_user_is_not_overwritten_by_the_files_beside_the_parts(name, file, tmp_path):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("mine")
    result = carina(f"{SETS[name]} {tmp_path}")
    assert result.exit_code == 2
    assert f"{tmp_path / Path(file).parts[0]}: was not written by this command" in result.stderr
    assert files(tmp_path) == {file: b"mine"}


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("report", "report.html"),
        ("show", "index.html"),
        ("show one", "p000000-s1.html"),
        ("audit", "audit.html"),
    ],
)
def test_a_page_of_the_user_is_not_overwritten(name, page, tmp_path):
    (tmp_path / page).write_text("<title>Mine</title>")
    result = carina(f"{PAGES[name]} {tmp_path}")
    assert result.exit_code == 2
    assert f"Error: {tmp_path / page}: was not written by Carina" in result.stderr
    assert files(tmp_path) == {page: b"<title>Mine</title>"}


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("report", "tables/headline.csv"),
        ("report", "tables.parquet"),
        ("report", "figures/percept-headline.svg"),
        ("show", "contact-sheet.png"),
        ("show", "p000000-s1.png"),
        ("show", "p000000-s1.html"),
        ("show one", "p000000-s1.png"),
        ("audit", "audit.json"),
        ("score-maps", "scores.csv"),
        ("score-maps", "scores.parquet"),
        ("score-maps", "summary.csv"),
        ("score-maps", "scores.json"),
    ],
)
def test_a_file_of_the_user_is_not_overwritten_by_the_files_beside_pages(name, file, tmp_path):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("mine")
    result = carina(f"{PAGES[name]} {tmp_path}")
    assert result.exit_code == 2
    assert f"Error: {tmp_path / file}: was not written by Carina" in result.stderr
    assert files(tmp_path) == {file: b"mine"}
    (tmp_path / file).unlink()
    os.mkfifo(tmp_path / file)
    assert carina(f"{PAGES[name]} {tmp_path}").exit_code == 2
    assert (tmp_path / file).is_fifo()


@pytest.mark.parametrize("name", ["report", "show", "show one", "audit", "score-maps"])
def test_files_of_an_interrupted_call_are_overwritten_by_the_next(name, tmp_path, monkeypatch):
    whole, out = tmp_path / "whole", tmp_path / "out"
    call(PAGES[name], whole)
    replace, written = Path.replace, []

    def kill(path, target):
        if written and target.name != ".carina.files":
            raise KeyboardInterrupt
        written.extend([target] if target.name != ".carina.files" else [])
        return replace(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", kill)
        assert carina(f"{PAGES[name]} {out}").exit_code == 130
    assert len(written) == 1
    assert written[0].is_file()
    call(PAGES[name], out)
    call(PAGES[name], out)
    assert files(out) == files(whole)
    assert hidden(out) == []


def test_a_file_that_an_earlier_report_did_not_write_is_not_overwritten_by_a_larger_one(tmp_path):
    out = tmp_path / "report"
    call(PAGES["report"], out)
    first = min((out / "figures").iterdir())
    known = json.loads((out / ".carina.files").read_text())
    (out / ".carina.files").write_text(
        json.dumps([name for name in known if Path(name) != first.relative_to(out)])
    )
    first.write_text("precious")
    result = carina(f"{PAGES['report']} {out}")
    assert result.exit_code == 2
    assert f"{first}: was not written by Carina" in result.stderr
    assert first.read_text() == "precious"


@pytest.mark.parametrize("content", ["{}", "half"])
def test_a_damaged_list_of_files_is_an_error_that_says_what_to_do(tmp_path, content):
    (tmp_path / ".carina.files").write_text(content)
    result = carina(f"{PAGES['report']} {tmp_path}")
    assert result.exit_code == 2
    assert "remove this file, or choose another directory" in result.stderr


def test_the_description_of_something_else_is_not_overwritten_by_a_run(tmp_path):
    (tmp_path / "run.json").write_text('{"important": 1}')
    result = carina(f"{RUN['run']} {tmp_path}")
    assert result.exit_code == 2
    assert f"Error: {tmp_path / 'run.json'}: " in result.stderr
    assert files(tmp_path) == {"run.json": b'{"important": 1}'}


@pytest.mark.parametrize(
    ("words", "link"),
    [
        (PAGES["report"], "tables"),
        (PAGES["report"], "figures"),
        (SETS["phantom"], "studies"),
        (SETS["phantom"], "images"),
        (SETS["import"], "images"),
        (SETS["percept"], "cases"),
        (SETS["explain"], "maps"),
    ],
)
def test_nothing_is_written_through_a_link_that_leads_out_of_the_directory(words, link, tmp_path):
    out, outside = tmp_path / "out", tmp_path / "outside"
    out.mkdir()
    outside.mkdir()
    (out / link).symlink_to("../outside")
    result = carina(f"{words} {out}")
    assert result.exit_code == 2
    assert f"Error: {out / link}: is a link that leads out of {out}" in result.stderr
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("name", ["steps-00.jsonl", "steps.parquet", "run.json"])
def test_a_run_does_not_follow_a_link_out_of_its_directory(name, tmp_path):
    out, outside = tmp_path / "out", tmp_path / "outside"
    call(RUN["run"], out)
    outside.write_text("")
    (out / name).unlink(missing_ok=True)
    (out / name).symlink_to("../outside")
    result = carina(f"{RUN['run']} {out}")
    assert result.exit_code == 2
    assert f"Error: {out / name}: is a link that leads out of {out}" in result.stderr
    assert outside.read_text() == ""


@pytest.mark.parametrize("link", [".out.partial", ".out.partial/images"])
def test_an_export_is_not_written_through_a_link(link, tmp_path):
    outside = tmp_path / "elsewhere" / "outside"
    outside.mkdir(parents=True)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / link).parent.mkdir(exist_ok=True)
    (tmp_path / "there" / link).symlink_to(outside)
    result = carina(f"{EXPORTS['chat']} {tmp_path / 'there' / 'out'}")
    assert result.exit_code == 2
    assert f"Error: {tmp_path / 'there' / link}: is a link that leads out of" in result.stderr
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("words", ALL.values(), ids=ALL)
def test_the_directory_itself_may_be_a_link(words, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to("disk")
    call(words, tmp_path / "out")
    call(words, tmp_path / "out")
    assert (tmp_path / "out").is_symlink()
    assert any((tmp_path / "disk").iterdir())


def test_pages_are_written_beside_links_of_the_user(tmp_path):
    (tmp_path / "data").symlink_to("/")
    call(PAGES["show one"], tmp_path)
    assert (tmp_path / "data").is_symlink()


def test_a_file_of_the_user_in_the_hidden_directory_of_an_export_is_kept(tmp_path):
    (tmp_path / ".out.partial").mkdir()
    (tmp_path / ".out.partial" / "notes").write_text("mine")
    result = carina(f"{EXPORTS['chat']} {tmp_path / 'out'}")
    assert result.exit_code == 2
    assert f"{tmp_path / '.out.partial'}: holds files that Carina did not write" in result.stderr
    assert files(tmp_path) == {".out.partial/notes": b"mine"}


def test_a_copied_image_does_not_overwrite_another_one(tmp_path):
    image = sorted(path for path in Path("chat/images").rglob("*.png"))[0].relative_to("chat")
    (tmp_path / "images" / image).parent.mkdir(parents=True)
    (tmp_path / "images" / image).write_text("mine")
    result = carina(f"{SETS['import']} {tmp_path}")
    assert result.exit_code == 2
    assert f"{tmp_path / 'images' / image}: is there already" in result.stderr
    assert (tmp_path / "images" / image).read_text() == "mine"


# ---- damaged exports ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["changed", "missing"])
@pytest.mark.parametrize("name", EXPORTS)
def test_every_damaged_file_of_an_export_is_named_by_the_next_call(name, damage, tmp_path):
    out = tmp_path / "out"
    call(EXPORTS[name], out)
    call(EXPORTS[name], out)
    whole = files(out)
    assert any(path.endswith(".png") for path in whole)
    for path, content in whole.items():
        if path == "carina.json":
            continue
        if damage == "changed":
            (out / path).write_bytes(bytes([content[0] ^ 1]) + content[1:])
        else:
            (out / path).unlink()
        result = carina(f"{EXPORTS[name]} {out}")
        assert result.exit_code == 2, path
        reason = "was changed since it was exported" if damage == "changed" else "is missing"
        assert f"Error: {out / path}: {reason}" in result.stderr
        (out / path).write_bytes(content)
    call(EXPORTS[name], out)
    assert files(out) == whole


@pytest.mark.parametrize(
    "name", ["/dev/zero", "../../../../../../../etc/hostname", "images/../../x", "a//b", "", "a\0b", "./a"]
)
@pytest.mark.parametrize("digest", ["", "0" * 64])
def test_a_list_of_an_export_that_leads_out_of_it_is_refused(name, digest, tmp_path):
    out = tmp_path / "out"
    call(EXPORTS["chat"], out)
    manifest = json.loads((out / "carina.json").read_text())
    for change in ({"files": {name: digest}}, {"pictures": [name]}):
        (out / "carina.json").write_text(json.dumps(manifest | change))
        result = carina(f"{EXPORTS['chat']} {out}")
        assert result.exit_code == 2
        assert (
            f"Error: {out / 'carina.json'}: lists {name!r}, which is no path within the export"
            in result.stderr
        )


@pytest.mark.parametrize("digest", ["", "0", "G" * 64, "0" * 63, "0" * 65])
def test_a_file_of_an_export_is_listed_with_its_whole_checksum(digest, tmp_path):
    out = tmp_path / "out"
    call(EXPORTS["chat"], out)
    manifest = json.loads((out / "carina.json").read_text())
    (name, whole), *_ = manifest["files"].items()
    for change in ({"files": {name: digest or whole[:32]}}, {"pictures": [f"images/{digest[:31]}.png"]}):
        (out / "carina.json").write_text(json.dumps(manifest | change))
        result = carina(f"{EXPORTS['chat']} {out}")
        assert result.exit_code == 2
        assert "which is no SHA-256" in result.stderr


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_whose_list_leaves_files_out_is_not_complete(name, tmp_path):
    out = tmp_path / "out"
    call(EXPORTS[name], out)
    manifest = json.loads((out / "carina.json").read_text())
    changes = [{"files": {}}]
    changes += [
        {"files": {each: digest for each, digest in manifest["files"].items() if each != left_out}}
        for left_out in manifest["files"]
    ]
    changes += [{"pictures": manifest["pictures"][1:]}] if "pictures" in manifest else []
    for change in changes:
        (out / "carina.json").write_text(json.dumps(manifest | change))
        result = carina(f"{EXPORTS[name]} {out}")
        assert result.exit_code == 2, change
        assert f"Error: {out / 'carina.json'}: does not list " in result.stderr


def test_a_pipe_in_place_of_a_file_of_an_export_is_not_read(tmp_path):
    out = tmp_path / "out"
    call(EXPORTS["chat"], out)
    (file, *_) = json.loads((out / "carina.json").read_text())["files"]
    (out / file).unlink()
    os.mkfifo(out / file)
    result = carina(f"{EXPORTS['chat']} {out}")
    assert result.exit_code == 2
    assert f"Error: {out / file}: is not a regular file" in result.stderr


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_that_was_killed_after_it_got_its_name_is_cleaned_up_by_the_next(name, tmp_path):
    out = tmp_path / "out"
    call(EXPORTS[name], out)
    whole = files(out)
    (out / UNFINISHED).write_text("fingerprint")
    (out / ".parts").mkdir()
    (out / ".parts" / "00000.json").write_text("{}")
    (tmp_path / ".out.lock").touch()
    call(EXPORTS[name], out)
    assert hidden(tmp_path) == []
    assert files(out) == whole


def test_an_export_of_which_only_the_notes_are_left_is_made_again(tmp_path, monkeypatch):
    """A note of a finished part must not outlive the records of the part."""
    whole, out = tmp_path / "whole", tmp_path / "out"
    call(EXPORTS["chexpercept"], whole)

    def kill(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("carina.store.resume.remove_notes", kill)
        assert carina(f"{EXPORTS['chexpercept']} {out}").exit_code == 130
    call(EXPORTS["chexpercept"], out)
    assert files(out) == files(whole)

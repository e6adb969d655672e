"""Runs the examples of the documentation and checks what they print: `make snippets` writes it anew.

| block | what happens |
|---|---|
| `python` | run; the blocks of a page share their names and their directory |
| `python title="NAME.py"` | written to this file, which the blocks after it can import |
| `text` right after `python` | must be what that block prints |
| `console` | each line after `$ ` is run in the page's directory, the lines below it must be what it prints |
| `sh` | shown only: for commands that need a clone, a network or much time |

A line `...` in expected output stands for any number of lines, and `...` within a line for any text.
"""

import os
import re
import subprocess
import sys
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
RUN, SHOWN = ("python", "console"), ("sh", "text", "json", "yaml", "toml")
TIMEOUT_S = 1200

_PROGRESS = re.compile(r"^[A-Z][a-z ]+: \d+( of \d+)?(, [\d.]+ questions/s)?(, \d+ failed)?\n", re.MULTILINE)
"""Lines about the progress of a command, which only slow machines print."""
_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


_TITLE = re.compile(r'title="([\w-]+\.py)"')


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block: its language, its text, and where that text stands on the page."""

    language: str
    body: str
    start: int
    end: int
    file: str = ""
    """Name of the file that the block is, if it is one."""


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """Expected output that is not what was printed."""

    block: Block
    """The block that holds the expectation."""
    printed: str
    """What the block should hold."""


def pages() -> list[Path]:
    """Every page of the documentation."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(
            language=fence["info"].strip().partition(" ")[0],
            body=fence["body"],
            start=fence.start("body"),
            end=fence.end("body"),
            file=title[1] if (title := _TITLE.search(fence["info"])) else "",
        )
        for fence in _FENCE.finditer(page)
    ]


def run_page(page: str, directory: Path) -> list[Mismatch]:
    """Run a page's blocks in order, in a directory; an example that fails raises."""
    found: list[Mismatch] = []
    names: dict[str, object] = {"__name__": "__main__"}
    last = ""
    end_of_last = -1
    for block in blocks(page):
        if block.language == "console":
            printed = _console(block, directory)
            if not matches(block.body, printed):
                found.append(Mismatch(block=block, printed=printed))
        elif block.file:
            (directory / block.file).write_text(block.body)
        elif block.language == "python":
            last, end_of_last = _python(block.body, names, directory), block.end
        elif (
            block.language == "text" and _follows(page, end_of_last, block) and not matches(block.body, last)
        ):
            found.append(Mismatch(block=block, printed=last))
    return found


def _follows(page: str, end: int, block: Block) -> bool:
    """Whether nothing but the two fences lies between the block that ends at `end` and this one."""
    return end >= 0 and page[end : block.start].split() == ["```", "```text"]


def matches(expected: str, printed: str) -> bool:
    """Whether output is as expected, trailing spaces aside; `...` stands for anything."""
    expected, printed = (_trimmed(text) for text in (expected, printed))
    pattern = ".*".join(re.escape(piece) for piece in expected.split("..."))
    return re.fullmatch(pattern, printed, re.DOTALL) is not None


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _environment() -> dict[str, str]:
    # One thread, no colours and a fixed width, so that the same is printed everywhere.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "NO_COLOR": "1", "COLUMNS": "100", "OMP_NUM_THREADS": "1"}


def _run(command: list[str], directory: Path, shown: str) -> str:
    done = subprocess.run(  # noqa: S603 - the documentation's own examples
        command,
        cwd=directory,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    if done.returncode:
        raise RuntimeError(
            f"an example fails with exit code {done.returncode}:\n{shown}\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def _console(block: Block, directory: Path) -> str:
    """The block with the output that its commands really print; those that are meant to fail end in `|| true`."""
    lines = [line[2:] for line in block.body.splitlines() if line.startswith("$ ")]
    if not lines:
        raise RuntimeError(f"a console block without a line that starts with '$ ':\n{block.body}")
    printed = [f"$ {line}\n{_run(['bash', '-c', f'{{ {line}; }} 2>&1'], directory, line)}" for line in lines]
    return _PROGRESS.sub("", "".join(printed))


def _python(body: str, names: dict[str, object], directory: Path) -> str:
    """What one block prints after those before it."""
    printed = StringIO()
    sys.path.insert(0, str(directory))
    try:
        with chdir(directory), redirect_stdout(printed):
            exec(compile(body, "<example>", "exec"), names)  # noqa: S102 - the documentation's own examples
    finally:
        sys.path.remove(str(directory))
    return printed.getvalue()


def updated(page: str, wrong: list[Mismatch]) -> str:
    """The page with expectations replaced by what was printed."""
    for item in sorted(wrong, key=lambda item: item.block.start, reverse=True):
        page = page[: item.block.start] + item.printed.rstrip() + "\n" + page[item.block.end :]
    return page


def main() -> int:
    """Update every page, or the pages named as arguments; with `--check`, only print what is wrong.

    Returns:
        Exit code: 1 if `--check` finds output that is not what a page says.
    """
    names = [name for name in sys.argv[1:] if name != "--check"]
    only_check = "--check" in sys.argv[1:]
    exit_code = 0
    for path in [Path(name).resolve() for name in names] or pages():
        text = path.read_text(encoding="utf-8")
        with TemporaryDirectory() as directory:
            wrong = run_page(text, Path(directory))
        if only_check:
            for item in wrong:
                print(f"expected\n{item.block.body}\nprinted\n{item.printed}")
                exit_code = 1
        elif wrong:
            path.write_text(updated(text, wrong), encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {len(wrong)} {'wrong' if only_check else 'changed'}")
    return exit_code


if __name__ == "__main__":
    sys.exit(main())

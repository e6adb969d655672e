"""Pinned versions: their hashes, what is installed, and what an audit of them says."""

import base64
import importlib.metadata
import importlib.util
import re
from hashlib import sha256
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pins():
    spec = importlib.util.spec_from_file_location("pins", ROOT / "tools" / "pins.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_pinned_version_has_hashes_but_the_stated_exceptions(pins):
    versions, hashed = pins.read_pins(), pins.read_pins(pins.HASHES)
    assert hashed == {name: version for name, version in versions.items() if name not in pins.WITHOUT_HASHES}
    blocks = re.split(r"\n(?=[a-z0-9])", pins.HASHES.read_text(encoding="utf-8"))[1:]
    assert len(blocks) == len(hashed)
    assert all(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", block) for block in blocks)


def make_distribution(folder, name, version, *, content=b"x = 1\n"):
    """An installed distribution of one module, as pip leaves it."""
    information = folder / f"{name}-{version}.dist-info"
    information.mkdir(parents=True)
    (folder / f"{name}.py").write_bytes(content)
    digest = base64.urlsafe_b64encode(sha256(content).digest()).decode().rstrip("=")
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (information / "RECORD").write_text(f"{name}.py,sha256={digest},{len(content)}\n")


@pytest.fixture
def environment(pins, monkeypatch, tmp_path):
    """A folder whose distributions are the installed ones, and pins of two packages."""
    (tmp_path / "constraints.txt").write_text("# pins\nOne_Package==1.0\ntorch==2.13.0\n")
    monkeypatch.setattr(pins, "read_pins", lambda read=pins.read_pins: read(tmp_path / "constraints.txt"))
    there = importlib.metadata.distributions
    monkeypatch.setattr(importlib.metadata, "distributions", lambda: there(path=[str(tmp_path / "site")]))
    return tmp_path / "site"


def test_what_is_installed_must_be_pinned_to_its_version(pins, environment):
    make_distribution(environment, "one_package", "1.0")
    make_distribution(environment, "torch", "2.13.0+cpu")
    make_distribution(environment, "carina", "0.1")
    assert list(pins.find_unpinned()) == []
    make_distribution(environment, "stranger", "3.0")
    (problem,) = pins.find_unpinned()
    assert problem.startswith("stranger 3.0: installed, but not pinned")
    (environment.parent / "constraints.txt").write_text("one-package==1.1\ntorch==2.13.0\nstranger==3.0\n")
    (problem,) = pins.find_unpinned()
    assert problem.startswith("one-package 1.0: installed, but 1.1 is pinned")


def test_a_file_that_was_changed_or_removed_after_installation_is_found(pins, environment):
    make_distribution(environment, "one_package", "1.0")
    make_distribution(environment, "torch", "2.13.0")
    assert list(pins.find_changed_files()) == []
    (environment / "one_package.py").write_bytes(b"x = 2\n")
    (environment / "torch.py").unlink()
    changed, missing = sorted(pins.find_changed_files())
    assert changed.startswith("one-package: one_package.py: changed")
    assert missing.startswith("torch: torch.py: missing")


SOUND = {"name": "six", "version": "1.17.0", "vulns": []}
SKIPPED = {"name": "six", "skip_reason": "not found"}
BAD = {"name": "old", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}


@pytest.mark.parametrize(
    ("found", "code", "said"),
    [
        ([SOUND], 0, "1 of 1 pins checked, 0 with"),
        ([SOUND, BAD], 1, "old 1: CVE-1; fixed in 2"),
        # A service that answers nothing must not look like a clean bill.
        ([SKIPPED, SKIPPED], 2, "0 of 2 pins checked, 0 with"),
        ([SKIPPED, SOUND], 2, "1 pins were not checked"),
    ],
)
def test_an_audit_that_checked_nothing_is_no_success(pins, capsys, found, code, said):
    assert pins.report_audit(found) == code
    assert said in capsys.readouterr().out

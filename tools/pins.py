"""The pinned versions of Carina's dependencies: hashes of their files, what is installed, and known vulnerabilities.

    python tools/pins.py hashes     writes hashes.txt: every file that the index has of every pinned version
    python tools/pins.py installed  is everything that is installed pinned, consistent and unchanged?
    python tools/pins.py audit      runs pip-audit, which must be installed beside this Python, on all pins

Run by `make constraints`, `make verify-pins` and `make audit-dependencies`. Not part of the package.
"""

import argparse
import base64
import hashlib
import importlib.metadata
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
HASHES = ROOT / "hashes.txt"
WITHOUT_HASHES = {
    "torch": "its CPU build and the build of the index share a version; the latter needs further packages on Linux"
}
"""Pins that a hash-checked installation leaves to the ordinary one, and why."""
OURS = {"carina", "pip"}
"""Installed, and not pinned: the project itself, and the pip that Python brings."""
HEADER = """\
# SHA-256 of every file of every pinned version, for all platforms. Made by: make constraints
# Used by: make install-checked
"""


def normalise(name: str) -> str:
    """The name of a distribution as indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_pins(path: Path = CONSTRAINTS) -> dict[str, str]:
    """Pinned versions by normalised name."""
    found = re.findall(r"^([A-Za-z0-9][\w.-]*)==([^\s\\]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {normalise(name): version for name, version in found}


# ---- hashes ---------------------------------------------------------------------------------------------------------


def write_hashes() -> int:
    """Write `hashes.txt` from the indexes that pip is configured to use."""
    lines = [HEADER]
    yanked: list[str] = []
    for name, version in read_pins().items():
        if name in WITHOUT_HASHES:
            lines.append(f"# {name}=={version}: without hashes: {WITHOUT_HASHES[name]}\n")
            continue
        files = dict(list_files(name, version))
        if not files:
            print(f"{name}=={version}: no index of pip's configuration has a file of it", file=sys.stderr)
            return 1
        if all(is_yanked for is_yanked in files.values()):
            yanked.append(f"{name}=={version}")
        lines.append(
            " \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{one}" for one in sorted(files))])
        )
        lines.append("\n")
    HASHES.write_text("".join(lines), encoding="utf-8")
    print(f"{HASHES.name}: {len(read_pins(HASHES))} versions")
    for pin in yanked:
        print(f"{pin}: yanked by its authors; choose another version", file=sys.stderr)
    return 1 if yanked else 0


def list_files(name: str, version: str) -> Iterator[tuple[str, bool]]:
    """SHA-256 of each file of a version, for any platform, and whether it was yanked."""
    # pip's own classes: they know its configuration, from indexes to certificates.
    from pip._internal.commands import create_command
    from pip._internal.index.collector import parse_links
    from pip._internal.models.link import Link
    from pip._vendor.packaging.utils import (
        InvalidSdistFilename,
        InvalidWheelFilename,
        parse_sdist_filename,
        parse_wheel_filename,
    )
    from pip._vendor.packaging.version import InvalidVersion, Version

    command = create_command("download")
    options, _ = command.parse_args(["--quiet"])
    with command._build_session(options) as session:
        finder = command._build_package_finder(options, session)
        for url in finder.search_scope.get_index_urls_locations(name):
            page = finder._link_collector.fetch_response(Link(url))
            for link in parse_links(page) if page is not None else ():
                parse = parse_wheel_filename if link.filename.endswith(".whl") else parse_sdist_filename
                try:
                    found = parse(link.filename)[1]
                except (InvalidSdistFilename, InvalidWheelFilename, InvalidVersion):
                    continue
                if found == Version(version) and link.hash_name == "sha256" and link.hash:
                    yield link.hash, link.yanked_reason is not None


# ---- what is installed ----------------------------------------------------------------------------------------------


def check_installed() -> int:
    """Print everything that is installed and not pinned, of another version, incomplete or changed; no network."""
    problems = [*find_unpinned(), *find_changed_files()]
    consistent = subprocess.run(
        [sys.executable, "-m", "pip", "check"], check=False, capture_output=True, text=True
    )
    if consistent.returncode:
        problems += consistent.stdout.splitlines()
    for problem in problems:
        print(problem)
    number = len(list(installed()))
    print(f"{number} installed distributions, {len(problems)} problems")
    return 1 if problems else 0


def installed() -> Iterator[importlib.metadata.Distribution]:
    """Distributions of this environment, without Carina and pip."""
    for distribution in importlib.metadata.distributions():
        if normalise(distribution.metadata["Name"]) not in OURS:
            yield distribution


def find_unpinned() -> Iterator[str]:
    """Installed distributions that are not pinned, or not to the version that is there."""
    pins = read_pins()
    for distribution in installed():
        name, version = normalise(distribution.metadata["Name"]), distribution.version
        if name not in pins:
            yield f"{name} {version}: installed, but not pinned in {CONSTRAINTS.name}; run make constraints"
        elif pins[name] != version.partition("+")[0]:
            yield f"{name} {version}: installed, but {pins[name]} is pinned; remove .venv and install again"


def find_changed_files() -> Iterator[str]:
    """Installed files that are missing or whose SHA-256 is not the one that was recorded when they were installed."""
    for distribution in installed():
        name = normalise(distribution.metadata["Name"])
        for file in distribution.files or ():
            if file.hash is None or file.hash.mode != "sha256":
                continue
            path = Path(str(distribution.locate_file(file)))
            if not path.is_file():
                yield f"{name}: {file}: missing; remove .venv and install again"
                continue
            with path.open("rb") as opened:
                digest = hashlib.file_digest(opened, "sha256").digest()
            if base64.urlsafe_b64encode(digest).decode().rstrip("=") != file.hash.value:
                yield f"{name}: {file}: changed since it was installed; remove .venv and install again"


# ---- known vulnerabilities ------------------------------------------------------------------------------------------


def audit() -> int:
    """Run pip-audit on all pins, and print what it found; 2 where its service did not answer."""
    command = [
        sys.executable, "-m", "pip_audit", "--requirement", str(CONSTRAINTS), "--no-deps", "--disable-pip",
        "--format", "json", "--progress-spinner", "off",
    ]  # fmt: skip
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    try:
        found = json.loads(done.stdout)["dependencies"]
    except (json.JSONDecodeError, KeyError):
        reason = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        print(f"Nothing was checked: the service of known vulnerabilities cannot be reached ({reason}).")
        return 2
    return report_audit(found)


def report_audit(found: list[dict[str, object]]) -> int:
    """Print the vulnerabilities of the audited pins; 1 for any, 2 where some pin could not be looked up."""
    skipped = [str(one["name"]) for one in found if "skip_reason" in one]
    vulnerable = [one for one in found if one.get("vulns")]
    for one in vulnerable:
        for vulnerability in one["vulns"]:
            fixed = ", ".join(vulnerability.get("fix_versions", ())) or "no version"
            print(f"{one['name']} {one['version']}: {vulnerability['id']}; fixed in {fixed}")
    print(
        f"{len(found) - len(skipped)} of {len(found)} pins checked, {len(vulnerable)} with known vulnerabilities."
    )
    if vulnerable:
        return 1
    if skipped:
        some = ", ".join(skipped[:3])
        print(
            f"{len(skipped)} pins were not checked: the service does not know them or cannot be reached ({some})."
        )
        return 2
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("hashes", "installed", "audit"))
    chosen = parser.parse_args().action
    return {"hashes": write_hashes, "installed": check_installed, "audit": audit}[chosen]()


if __name__ == "__main__":
    sys.exit(main())

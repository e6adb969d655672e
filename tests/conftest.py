"""Settings and fixtures of the whole suite.

Hypothesis: no test may depend on how fast the machine is, so there are no deadlines; in continuous integration (where
the environment variable `CI` is set) the examples are the same in every run. A failure prints how to reproduce it.

Browser: one per process for the tests of pages; where none is installed, those tests are skipped.
"""

import os
import shutil
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("carina", deadline=None, print_blob=True)
settings.register_profile("carina-ci", settings.get_profile("carina"), derandomize=True)
settings.load_profile("carina-ci" if os.environ.get("CI") else "carina")

# Tests interrupt commands. Where the suite runs in the background, Ctrl-C is ignored, and so the commands would do.
signal.signal(signal.SIGINT, signal.default_int_handler)

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    if BROWSER is None:
        pytest.skip("needs Chromium or Chrome on the PATH")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield started
        started.close()

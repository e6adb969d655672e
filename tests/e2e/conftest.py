"""Pages in the real browser, which may fetch nothing."""

import pytest


@pytest.fixture
def page(browser):
    opened = browser.new_page()
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    # The pages are whole in themselves: nothing may be fetched.
    opened.on("request", lambda request: request.url.startswith("file:") or faults.append(request.url))
    yield opened
    opened.close()
    assert [fault for fault in faults if not fault.startswith("data:")] == []

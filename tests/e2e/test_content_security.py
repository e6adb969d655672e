"""The content security policy of every page: it names what the page holds, and keeps out everything else."""

import base64
import re
import threading
from hashlib import sha256
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from carina import audit, tour
from carina.pages import audit as audit_page

POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
HANDLER = re.compile(r"<[^>]*\son[a-z]+\s*=", re.IGNORECASE)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Every kind of page that Carina writes."""
    root = tmp_path_factory.mktemp("site")
    made = tour.demo(root / "demo", studies=3, size=64, per_cell=1, workers=1)
    audit(made.percept, root / "audit", files=False)
    return root


@pytest.fixture(scope="module")
def pages(site):
    found = sorted(site.rglob("*.html"))
    names = {path.name for path in found}
    assert {"index.html", "report.html", "ground.html", audit_page.HTML} <= names
    return found


@pytest.fixture(scope="module")
def server(site):
    """The pages over HTTP, and the paths that were asked for."""
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *given, **named):
            super().__init__(*given, directory=site, **named)

        def log_message(self, _format, *_):
            asked.append(self.path)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}", asked
        running.shutdown()
        thread.join()


def source_hash(text):
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def test_every_page_has_a_policy_that_names_exactly_its_scripts_and_its_style_sheet(pages):
    for path in pages:
        html = path.read_text(encoding="utf-8")
        (policy,) = POLICY.findall(html)
        rules = dict(rule.strip().split(" ", 1) for rule in unescape(policy).split(";"))
        # Before the first element that it is about.
        assert html.index("Content-Security-Policy") < html.index("<style>"), path
        assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'", path
        assert rules["img-src"] == "data:", path
        (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
        assert rules["style-src-elem"] == source_hash(style), path
        scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
        assert rules["script-src"].split() == [source_hash(text) for text in scripts], path
        assert not HANDLER.search(re.sub(r"<(script|style).*?</\1>", "", html, flags=re.DOTALL)), path


def test_every_kind_of_page_opens_from_a_file_and_from_a_server_without_a_message(
    browser, site, pages, server
):
    address, _ = server
    # Of each folder its index or report, and one page of a study or a case.
    kinds = {(path.parent, path.stem in {"index", "report", "ground"}): path for path in pages}
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(f"{page.url}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"{page.url}: {error}"))
    for path in kinds.values():
        for url in (path.as_uri(), f"{address}/{path.relative_to(site).as_posix()}"):
            page.goto(url)
            # Its style sheet and its script are in force: the button that is pressed changes the colours.
            page.get_by_role("button", name="Dark", exact=True).click()
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 19, 22)", url
            assert page.locator("img").evaluate_all(
                "images => images.every(image => image.loading === 'lazy' || image.naturalWidth > 0)"
            ), url
    page.close()
    assert [one for one in said if "favicon.ico" not in one] == []


ATTACKS = {
    "script": "<script>document.title = 'taken'</script>",
    "handler": "<img src='data:image/png,x' onerror=\"document.title = 'taken'\">",
    "image": "<img src='{outside}/image'>",
    "style sheet": "<style>body {{ background: rgb(1, 2, 3) !important }}</style>",
    "linked style sheet": "<link rel=stylesheet href='{outside}/style'>",
    "style attribute": "<p style=\"background: url('{outside}/background')\">x</p>",
    "frame": "<iframe src='{outside}/frame'></iframe>",
    "base": "<base href='{outside}/base/'>",
    "script from elsewhere": "<script src='{outside}/script'></script>",
    "object": "<object data='{outside}/object'></object>",
}


@pytest.mark.parametrize("served", [False, True], ids=["file", "server"])
def test_what_is_put_into_a_page_from_outside_neither_runs_nor_loads(browser, site, pages, server, served):
    address, asked = server
    html = next(path for path in pages if path.name == "report.html").read_text(encoding="utf-8")
    outside = f"{address}/outside"
    attacked = site / "attacked.html"
    attack = "".join(ATTACKS.values()).format(outside=outside)
    attacked.write_text(html.replace('<main id="main"', f'{attack}<main id="main"', 1), encoding="utf-8")
    assert outside in attacked.read_text(encoding="utf-8")
    page = browser.new_page()
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(f"{address}/attacked.html" if served else attacked.as_uri())
    page.wait_for_load_state("networkidle")
    assert page.title() != "taken"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(1, 2, 3)"
    page.close()
    attacked.unlink()
    assert [path for path in asked if "outside" in path] == []
    assert any("Content Security Policy" in message for message in refused)

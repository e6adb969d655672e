"""The start page of a directory in a real browser: every link opens, from there and from the pages that it leads to."""

import shutil
from urllib.parse import unquote, urlparse

import pytest

from carina import audit, build_ground, build_percept, explain, make_phantoms, report, run, show
from carina.store.errors import CarinaError


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A directory with studies, two benchmarks, an audit, runs, maps and a report of all but one run."""
    root = tmp_path_factory.mktemp("my project")
    studies = make_phantoms(root / "studies", n=6, seed=2, size=64, workers=1)
    build_ground(studies, root / "bench" / "probes & co", workers=1)
    build_percept(studies, root / "bench" / "lesions", per_cell=1, workers=1)
    audit(root / "bench" / "lesions", files=False, render=0, workers=1)
    probes = root / "bench" / "probes & co"
    for model in ("reader", "majority", "oracle"):
        run(probes, f"builtin/{model}", root / "runs" / model)
    explain(probes, "control/centre", root / "maps" / "centre")
    show(probes, root / "shown" / "probes", limit=3)
    runs = [root / "runs" / "reader", root / "runs" / "majority", root / "maps" / "centre"]
    report(runs, root / "compared", pages=[root / "shown" / "probes"])
    return root


def addresses(page) -> list[str]:
    found = page.locator("a[href]").evaluate_all("all => all.map((one) => one.href)")
    return [address for address in dict.fromkeys(found) if "#" not in address or "maps-" in address]


def test_every_link_opens(page, project):
    shown = show(project, project, limit=2)
    assert shown.path == project / "index.html"
    assert (shown.noun, shown.total) == ("set", 3)
    page.goto(shown.path.as_uri())
    links = addresses(page)
    reached = {unquote(urlparse(link).path).removeprefix(f"{project}/") for link in links}
    assert reached >= {
        "pages/studies/index.html",
        "pages/bench-lesions/index.html",
        "bench/lesions/audit/audit.html",
        # Pages that were there are used as they are.
        "shown/probes/index.html",
        "compared/report.html",
        "compared/ground.html",
    }
    assert not (project / "pages" / "bench-probes-co").exists()
    for link in links:
        response = page.goto(link)
        assert response.ok, link
        assert page.title().endswith("· Carina"), link
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_runs_are_listed_with_whether_a_report_holds_them(page, project):
    page.goto(show(project, project, limit=2).path.as_uri())
    rows = [row.inner_text().split("\t") for row in page.locator("#runs ~ .scroll tbody tr").all()]
    assert {row[3]: row[4] for row in rows} == {
        "runs/majority": "yes",
        "runs/oracle": "not yet",
        "runs/reader": "yes",
        "maps/centre": "yes",
    }
    commands = page.locator(".commands code").all_inner_texts()
    assert commands == [
        f"carina audit {project}/bench/probes & co",
        f"carina report {project}/runs -o {project}/report",
    ]


def test_answers_and_maps_of_the_same_studies_link_to_each_other_and_to_the_cases(page, project):
    answers, maps = ((project / "compared" / name).as_uri() for name in ("report.html", "ground.html"))
    page.goto(answers)
    page.get_by_role("link", name="Maps of probes & co").click()
    assert page.url == f"{maps}#maps-1"
    page.get_by_role("link", name="Answers to ground").click()
    assert page.url.startswith(f"{answers}#ground-")
    case = page.locator("#list button", has_text="g-").first.get_attribute("data-case")
    page.locator(f"[data-case='{case}']").click()
    link = page.get_by_role("link", name="Page of this case")
    listed = {path.stem for path in (project / "shown" / "probes").glob("g-*.html")}
    # Three of the cases have a page.
    with_page = [
        one for one in page.locator("#list button").all() if one.get_attribute("data-case") in listed
    ]
    assert len(with_page) == 3
    with_page[0].click()
    wanted = with_page[0].get_attribute("data-case")
    link.click()
    assert page.url.endswith(f"/shown/probes/{wanted}.html")


def test_the_start_page_may_lie_elsewhere(page, project, tmp_path):
    shown = show(project, tmp_path / "out", limit=2)
    page.goto(shown.path.as_uri())
    for link in addresses(page):
        assert page.goto(link).ok, link


def test_a_directory_with_nothing_to_show_is_refused(project, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notes.txt").write_text("nothing")
    with pytest.raises(CarinaError, match="neither a study set"):
        show(tmp_path / "empty", tmp_path / "out")
    with pytest.raises(CarinaError, match="is no set"):
        show(project, tmp_path / "out", id="p000000-s1")
    shutil.rmtree(tmp_path / "empty")

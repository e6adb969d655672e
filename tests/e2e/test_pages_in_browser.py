"""Pages of studies in a real browser: filters, layers, and highlights that tie sentences to regions."""

import pytest

from carina.pages import write_study_pages
from carina.phantom import Mix, PhantomOptions
from carina.phantom.make import write_phantom
from carina.studies import open_studies


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    directory = tmp_path_factory.mktemp("studies")
    mix = Mix(normal=0.5, findings={"mass": 1.0}, with_prior=0.0)
    write_phantom(directory, n=6, seed=3, options=PhantomOptions(size=128, mix=mix))
    return open_studies(directory)


@pytest.fixture(scope="module")
def sheet(studies, tmp_path_factory):
    return write_study_pages(studies, tmp_path_factory.mktemp("pages"))


def with_mass(studies):
    return [s for s in studies if any(f.name == "mass" and f.certainty == "present" for f in s.findings)]


def test_filter_keeps_the_studies_with_that_finding(page, sheet, studies):
    page.goto(sheet.html.as_uri())
    assert page.locator(".study:visible").count() == 6
    page.get_by_role("button", name="mass").click()
    shown = page.locator(".study:visible").all_inner_texts()
    assert {text.split()[0] for text in shown} == {study.id for study in with_mass(studies)}
    page.get_by_role("button", name="all").click()
    assert page.locator(".study:visible").count() == 6


def test_card_links_to_the_page_of_its_study(page, sheet, studies):
    first = with_mass(studies)[0]
    page.goto(sheet.html.as_uri())
    page.get_by_role("link", name=first.id).first.click()
    assert page.locator("h1").inner_text() == first.id


def test_hovering_over_a_sentence_highlights_its_region(page, sheet, studies):
    study = with_mass(studies)[0]
    mass = next(f for f in study.findings if f.name == "mass")
    page.goto(sheet.html.with_name(f"{study.id}.html").as_uri())
    assert page.locator("svg .mark.lit").count() == 0
    page.locator(f"#s{mass.evidence[0] + 1}").hover()
    lit = page.locator("svg .mark.lit")
    assert lit.count() > 0
    assert {lit.nth(k).get_attribute("data-layer") for k in range(lit.count())} == {"finding/mass"}


def test_layer_is_switched_on_and_off(page, sheet, studies):
    study = with_mass(studies)[0]
    page.goto(sheet.html.with_name(f"{study.id}.html").as_uri())
    mark = page.locator('svg .mark[data-layer="anatomy/heart"]').first
    assert not mark.is_visible()
    page.locator('input[data-layer="anatomy/heart"]').check()
    assert mark.is_visible()
    page.locator('input[data-layer="anatomy/heart"]').uncheck()
    assert not mark.is_visible()


def test_index_shows_findings_and_anatomy_and_can_hide_each(page, sheet):
    page.goto(sheet.html.as_uri())
    shown = {kind: page.locator(f"svg .mark.{kind}").first for kind in ("finding", "anatomy")}
    assert shown["finding"].is_visible()
    assert shown["anatomy"].is_visible()
    page.get_by_role("button", name="anatomy").click()
    assert not shown["anatomy"].is_visible()
    assert shown["finding"].is_visible()

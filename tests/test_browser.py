"""The report in a real browser: it loads alone, complains of nothing and answers the pointer."""

import os
import shutil

import pytest

from conftest import tiny_config
from ertrl.reporting import report
from ertrl.training import Run, train_run

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    BROWSER is None and "ERTRL_MUST_BROWSE" not in os.environ,
    reason="no Chromium here; `apt-get install chromium` brings one",
)


@pytest.fixture(scope="module")
def page_file(tiny_run, tiny_dataset, tmp_path_factory):
    """A report of two methods."""
    folder = tmp_path_factory.mktemp("browser")
    other = Run.create(folder, tiny_dataset, tiny_config("focal"), "test")
    train_run(other, tiny_dataset, "none")
    return report([tiny_run.path, other.path], folder / "report")


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    quiet = ("--disable-quic", "--no-first-run", "--disable-background-networking")
    quiet += ("--disable-component-update", "--disable-sync", "--disable-gpu")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=BROWSER, chromium_sandbox=os.getuid() != 0, args=list(quiet)
        )
        yield opened
        opened.close()


@pytest.fixture
def page(browser, page_file):
    """The open report; whatever it complains of or asks the network for is collected."""
    opened = browser.new_page(viewport={"width": 1200, "height": 900})
    opened.complaints, opened.requested = [], []
    opened.on("console", lambda m: opened.complaints.append(m.text) if m.type == "error" else None)
    opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.on("request", lambda request: opened.requested.append(request.url))
    opened.goto(page_file.as_uri())
    yield opened
    opened.close()


def test_it_loads_nothing_but_itself_and_complains_of_nothing(page, page_file):
    assert page.complaints == []
    beyond = [u for u in page.requested if not u.startswith("data:")]
    assert beyond == [page_file.as_uri()]
    assert page.locator("h1").is_visible()
    for image in page.locator("img").all():
        image.scroll_into_view_if_needed()
        assert image.evaluate("i => i.complete && i.naturalWidth > 0")


def test_every_entry_of_the_menu_leads_to_its_section(page):
    entries = page.locator("nav a").all()
    assert len(entries) > 3
    for entry in entries:
        target = page.locator(entry.get_attribute("href"))
        assert target.count() == 1
        entry.click()
        assert target.is_visible()


def test_the_explorer_draws_the_chosen_method_and_names_the_task_under_the_pointer(page):
    box = page.locator(".explorer").first
    box.scroll_into_view_if_needed()
    marks = box.locator(".marks path")
    assert marks.count() > 40
    before = marks.first.get_attribute("transform")
    chooser = box.locator("select").first
    names = chooser.locator("option").all_inner_texts()
    assert len(names) == 2
    chooser.select_option(names[1])
    assert marks.first.get_attribute("transform") != before
    assert "Point at a mark" in box.inner_text()
    marks.first.dispatch_event("pointerenter")
    assert "Task 0" in box.inner_text()
    assert box.locator("svg path.on").count() >= 2
    for said in ("first component of z", "goal angle (degrees)", "out of distribution"):
        assert said in box.locator("svg").inner_html(), said
    assert page.complaints == []


def test_the_explorer_answers_the_keyboard(page):
    box = page.locator(".explorer").first
    box.locator("svg").focus()
    for key, said in (
        ("ArrowRight", "Task 0,"),
        ("ArrowRight", "Task 1,"),
        ("ArrowLeft", "Task 0,"),
    ):
        page.keyboard.press(key)
        assert said in box.inner_text()
    page.keyboard.press("ArrowLeft")
    assert "Task 39, out of distribution" in box.inner_text()
    page.keyboard.press("Escape")
    assert box.locator("svg path.on").count() == 0


def test_the_first_stop_of_the_keyboard_skips_the_menu(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0


@pytest.mark.parametrize("width", [1400, 400])
def test_nothing_runs_out_of_the_window(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = page.locator(".wider")
    assert (wide.count() > 0) == (width == 400), "what is wider than a phone says so"
    if width == 400:
        hint = "getComputedStyle(document.querySelector('.wider'), '::after').content"
        assert "sideways" in page.evaluate(hint)
        cell = page.locator("table.grid tbody th").first
        page.locator("table.grid").first.evaluate("t => t.parentElement.scrollLeft = 200")
        assert cell.bounding_box()["x"] >= 0, "the name of a row stays in sight"
    else:
        menu = "[...document.querySelectorAll('nav a')].map(a => a.getBoundingClientRect().right)"
        assert max(page.evaluate(menu)) <= width

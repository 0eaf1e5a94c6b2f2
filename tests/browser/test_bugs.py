"""Bugs that were seen on the page."""

import shutil


def test_an_address_with_a_word_that_means_nothing_is_ignored(open_page):
    visit = open_page()
    visit.page.goto(
        f"{visit.url}#colours=constructor&layout=toString&method=valueOf&image=scene+0&constructor=1&other=toString&brush=x,1,2&of=99"
    )
    visit.page.reload()
    visit.settle()
    assert visit.page.evaluate("[certiseg.state.colours, certiseg.state.layout]") == ["label", "grid"]
    assert visit.page.locator("#banner-title").inner_text() == "The promise of this run"


def test_a_run_that_is_gone_is_told_on_the_page(open_page, run):
    visit = open_page()
    shutil.rmtree(run.path)
    visit.page.keyboard.press("ArrowRight")
    visit.wait("document.getElementById('banner-title').textContent === 'Not possible'")
    visit.page.reload()
    visit.wait("document.querySelector('main > p.error')")
    assert "the run folder must be there" in visit.page.locator("main").inner_text()
    assert all("404" in error for error in visit.errors)  # noted by the browser itself
    visit.errors.clear()


def test_radii_that_are_a_statement_of_their_own_are_not_under_the_green_banner(open_page):
    visit = open_page()
    visit.page.locator("#colours").select_option("radius")
    visit.settle()
    assert "statement of their own" in visit.page.locator("#banner-title").inner_text()
    visit.page.keyboard.press("1")
    visit.settle()
    assert visit.page.locator("#banner-title").inner_text() == "A comparison, not the promise"


def test_both_panes_and_the_pixel_name_a_method_alike(open_page):
    visit = open_page()
    visit.page.locator("#other").select_option("sets:3")
    visit.page.keyboard.press("5")
    visit.settle()
    titles = [visit.page.locator(f".pane-{pane} figcaption").inner_text()[3:] for pane in "ab"]
    assert titles[0] == titles[1]
    visit.hover(3, 4)
    assert "Sets (up to 3), row 3" in visit.page.locator("#inspector").inner_text()

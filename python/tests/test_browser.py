"""Pages in a real browser: what fits on the first screen, zoom and tooltips, a phone."""

import asyncio
from pathlib import Path

import polypath as pp
import pytest
from browser import DESKTOP, PHONE, Page, needs_browser, shown

pytestmark = needs_browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with claims, bands, and a figure of each kind."""
    exp = pp.Experiment("claims & figures", duration="10s", measure_from="2s", seeds="1..6")
    exp = exp.link("a", "x", "8Mbit/s", "20ms", queue="1bdp").link("x", "b", "100Mbit/s", "1ms")
    exp = exp.link("a", "y", "4Mbit/s", "60ms", queue="1bdp").link("y", "b", "100Mbit/s", "1ms")
    exp = exp.flow("bulk", "a", "b", paths=[["x"], ["y"]], start=["0s", "1s"])
    exp = exp.grid("connection.scheduler.policy", ["min_rtt", "earliest_arrival"], name="scheduler")
    exp = exp.grid("link.a->x.delay", ["5ms", "20ms"], name="delay")
    exp = exp.expect("goodput", flow="bulk", claim="the sum of both", published=10.3e6, margin=1e6, cell="min_rtt,5ms")
    exp = exp.expect("goodput", flow="bulk", claim="much more", published=40e6, margin=1e6, cell="min_rtt,5ms", min=1e6)
    exp = exp.expect("utilisation", flow="bulk", claim="nearly full", min=2.0, cell="min_rtt,20ms")
    both = [{"flow": "bulk", "path": 0}, {"flow": "bulk", "path": 1}]
    exp = exp.figure("time", "course", both, cell="min_rtt,5ms", bin="200ms")
    exp = exp.figure("cdf", "distribution", [{"flow": "bulk"}], metric="goodput")
    for kind in ("box", "violin"):
        exp = exp.figure(kind, kind, [{"flow": "bulk"}], metric="goodput", axis="scheduler")
    exp = exp.figure("heat", "squares", [{"flow": "bulk"}], metric="goodput", axis="scheduler", rows="delay")
    file = tmp_path_factory.mktemp("page") / "report.html"
    pp.run(exp).report(file)
    return file


def in_browser(file: Path, size: tuple[int, int], check, mobile: bool = False) -> None:  # type: ignore[no-untyped-def]
    async def run() -> None:
        async with shown(file, size, mobile) as page:
            await check(page)
            assert page.errors == []
            assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == [], "it needs no network"

    asyncio.run(run())


INSIDE = """[...document.querySelectorAll(%r)].every(e => {
    const box = e.getBoundingClientRect();
    return box.width > 0 && box.left >= 0 && box.right <= innerWidth && box.bottom <= %s;
})"""


def test_the_first_screen_has_every_claim_with_its_verdict_and_small_figure(report: Path, tmp_path: Path) -> None:
    async def check(page: Page) -> None:
        await page.screenshot(tmp_path / "desktop.png")
        assert await page.value("document.querySelectorAll('table.claims td.claim').length") == 2
        assert await page.value(INSIDE % ("table.claims td", "innerHeight")), "on the first screen"
        verdicts = await page.value("[...document.querySelectorAll('table.claims .finding')].map(e => e.textContent)")
        assert verdicts == ["reproduced", "refuted"]
        colours = await page.value("[...document.querySelectorAll('table.claims .finding')].map(e => getComputedStyle(e).backgroundColor)")
        assert len(set(colours)) == 2
        assert await page.value("document.querySelectorAll('table.claims svg.interval circle').length") == 2
        folded = "[...document.querySelectorAll('section details:not(.bands)')].every(d => !d.open)"
        assert await page.value(folded), "walls of text are folded"
        assert await page.value("document.querySelector('details.bands').open"), "a band is not met"
        assert (tmp_path / "desktop.png").stat().st_size > 20_000

    in_browser(report, DESKTOP, check)


BOX = "(e => { const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })"


async def see(page: Page, title: str, what: str) -> list[float]:
    """Where the part ``what`` of the figure ``title`` is, once it is in view."""
    figure = f"[...document.querySelectorAll('figure')].find(f => f.querySelector('h3').textContent === {title!r})"
    await page.value(f"{figure}.scrollIntoView({{block: 'center'}})")
    await page.until(f"{figure}.querySelector({what!r}) !== null")
    return await page.value(f"{BOX}({figure}.querySelector({what!r}))")


async def tip_over(page: Page, title: str, what: str) -> str:
    """What is told where the pointer stands in the middle of a part; a busy browser notices late."""
    await page.move(1, 1)
    await page.until("document.querySelector('.tip').hidden")
    for turn in range(100):
        left, top, width, height = await see(page, title, what)
        await page.move(left + width / 2 + turn % 2, top + height / 2)
        if tip := await page.value("document.querySelector('.tip:not([hidden])')?.textContent"):
            return str(tip)
        await asyncio.sleep(0.05)
    raise TimeoutError(title)


def test_a_figure_has_tooltips_and_zoom(report: Path) -> None:
    async def check(page: Page) -> None:
        tip = await tip_over(page, "course", ".u-over")
        left, top, width, _ = await see(page, "course", ".u-over")
        assert tip.startswith("time, s: ") and "bulk path 0: " in tip and "[" in tip, tip
        zoom = "document.querySelector('figure[data-live]').dataset.zoom.split(' ').map(Number)"
        whole = await page.value(zoom)
        await page.drag((left + width * 0.4, top + 50), (left + width * 0.6, top + 50))
        await page.until(f"(z => z[1] - z[0] < {0.3 * (whole[1] - whole[0])})({zoom})")
        await page.value("[...document.querySelectorAll('figure[data-live] .tools button')][2].click()")
        assert await page.value(zoom) == whole
        for title in ("box", "violin", "squares"):
            assert "min_rtt: " in await tip_over(page, title, ".hit")

    in_browser(report, DESKTOP, check)


def test_a_phone_shows_the_claims_column_and_nothing_wider_than_it(report: Path, tmp_path: Path) -> None:
    async def check(page: Page) -> None:
        await page.screenshot(tmp_path / "phone.png")
        assert await page.value(INSIDE % ("table.claims td", "Infinity"))
        claim = await page.value(f"{BOX}(document.querySelector('td.claim'))")
        assert claim[2] > 300, "the claim has the width of the screen"
        assert await page.value("document.documentElement.scrollWidth <= innerWidth"), "only figures scroll sideways"
        size = await page.value("parseFloat(getComputedStyle(document.querySelector('td.claim')).fontSize)")
        assert size >= 13

    in_browser(report, PHONE, check, mobile=True)


def test_it_says_its_seeds_and_how_to_make_it_again(report: Path) -> None:
    async def check(page: Page) -> None:
        text = await page.value("document.querySelector('header').textContent")
        assert "24 runs, seeds 1..6" in text and ".report(" in text, text

    in_browser(report, DESKTOP, check)

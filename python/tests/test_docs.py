"""What the documentation shows runs: the README, docs/python.md, docs/research.md, and the notebooks."""

import asyncio
import os
import re
from pathlib import Path

import pytest
from browser import CHROMIUM, DESKTOP, shown

ROOT = Path(__file__).resolve().parents[2]


def examples() -> list[tuple[str, str]]:
    found = []
    for name in ("README.md", "docs/python.md", "docs/research.md"):
        blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), re.MULTILINE | re.DOTALL)
        assert blocks, name
        found += [(f"{name} {n}", block) for n, block in enumerate(blocks, 1)]
    return found


@pytest.mark.parametrize(("name", "code"), examples(), ids=[name for name, _ in examples()])
def test_an_example_runs(name: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, name, "exec"), {"__name__": "__main__"})
    if "savefig" in code:
        assert any(tmp_path.glob("*.svg")), "the figure is drawn"


@pytest.mark.parametrize("notebook", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom_and_a_browser_shows_it(notebook: Path, tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(notebook, as_version=4)
    assert all(not cell.get("outputs") for cell in book.cells), "committed without outputs"
    NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [o for cell in book.cells for o in cell.get("outputs", [])]
    figures = sum("image/png" in o.get("data", {}) for o in outputs)
    tables = sum("text/html" in o.get("data", {}) for o in outputs)
    assert figures > 0, "figures are shown"
    out = Path(os.environ.get("POLYPATH_NOTEBOOKS", tmp_path))
    out.mkdir(parents=True, exist_ok=True)
    page = out / f"{notebook.stem}.html"
    page.write_text(html(book))
    if CHROMIUM is None:
        pytest.skip("SKIPPED browser: `tools/deps browser` installs Chromium")
    asyncio.run(looked_at(page, figures, tables))


def html(book: object) -> str:
    """As a page that needs no network: nbconvert's own has MathJax and RequireJS from there, which nothing here needs."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(
        template_name="basic",
        embed_images=True,
        exclude_anchor_links=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    body, _ = exporter.from_notebook_node(book)
    style = "body{max-width:60rem;margin:1rem auto;padding:0 1rem;font:16px/1.5 system-ui}.highlight pre{overflow-x:auto;background:#f5f7f9;padding:.6rem;border-radius:6px;font-size:.85rem}img{max-width:100%}"
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Polypath</title><style>{style}</style>'
    return f"<!DOCTYPE html><html lang=en><head>{head}</head><body>{body}</body></html>"


async def looked_at(file: Path, figures: int, tables: int) -> None:
    async with shown(file, DESKTOP) as page:
        await page.until("[...document.images].every(i => i.complete)")
        drawn = "[...document.images].filter(i => i.naturalWidth > 300 && i.getBoundingClientRect().width > 300).length"
        assert await page.value(drawn) == figures
        assert await page.value("document.querySelectorAll('table').length") >= tables
        assert "Error" not in await page.value("document.body.innerText"), "no cell failed"
        assert await page.value("document.documentElement.scrollWidth <= innerWidth"), "nothing is cut off"
        await page.screenshot(file.with_suffix(".png"))
        assert page.errors == []
        assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == [], "it needs no network"

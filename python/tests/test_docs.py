"""What the documentation shows runs: the README, docs/python.md, and the notebooks."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def examples() -> list[tuple[str, str]]:
    found = []
    for name in ("README.md", "docs/python.md"):
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
def test_a_notebook_runs_from_top_to_bottom(notebook: Path, tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(notebook, as_version=4)
    assert all(not cell.get("outputs") for cell in book.cells), "committed without outputs"
    NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [o for cell in book.cells for o in cell.get("outputs", [])]
    assert any("image/png" in o.get("data", {}) for o in outputs), "figures are shown"

"""tools/paper.py PAGE.md OUT.pdf: called by tools/paper. The first heading is the title; what stands below `## Abstract` is set over
both columns, and so are figures and tables of more than four columns. A figure is an image alone in its paragraph; its text is the caption."""
import re
import sys
from pathlib import Path

import pypandoc
import typst

FEWEST, MOST = 4, 6

STYLE = """
#set page(paper: "a4", margin: (x: 1.8cm, y: 2cm), columns: 2, numbering: "1")
#set columns(gutter: 0.7cm)
#set text(font: "Libertinus Serif", size: 10pt, lang: "en")
#set par(justify: true, leading: 0.52em, spacing: 0.72em)
#set table(stroke: none, inset: (x: 2.5pt, y: 1.3pt))
#show table: set text(size: 7.6pt)
#show table: set par(justify: false, leading: 0.4em)
#show raw: set text(font: "DejaVu Sans Mono", size: 0.82em)
#show heading.where(level: 1): it => block(above: 1.1em, below: 0.6em, text(size: 11.5pt, weight: "bold", it.body))
#show heading.where(level: 2): it => block(above: 0.9em, below: 0.5em, text(size: 10.5pt, style: "italic", it.body))
#show figure.caption: it => align(left, it.body)
#show figure.caption: set text(size: 8.8pt)
#show figure.caption: set par(justify: false, leading: 0.45em)
#set image(width: 86%)
#set figure(gap: 0.4em, placement: top, scope: "parent")
#show figure.where(kind: table): set figure(placement: none, scope: "column")
#let horizontalrule = line(length: 100%)
"""


def parts(text):
    """Title, abstract and the rest of a page."""
    text = re.sub(r"<!--.*?-->\n?", "", text)
    title, rest = re.match(r"# (.*?)\n(.*)", text, re.DOTALL).groups()
    _, abstract, rest = re.match(r"(.*?)## Abstract\n(.*?)\n(?=## )(.*)", rest, re.DOTALL).groups()
    return title, abstract.strip(), rest


def as_typst(markdown):
    return pypandoc.convert_text(markdown, "typst", format="gfm-alerts+implicit_figures", extra_args=["--wrap=none"])


def set_tables(body):
    """Wide tables go over both columns, at the top or the bottom of a page; each column has room for what stands in it."""
    def one(match):
        table = match.group(0)
        rows = [re.findall(r"\[((?:[^\[\]]|\\\[|\\\])*)\]", line) for line in table.splitlines() if line.strip().startswith("[")]
        count = max(map(len, rows))
        longest = [max(len(row[n]) if n < len(row) else 0 for row in rows) for n in range(count)]
        columns = ", ".join("auto" if most <= 22 else f"{most ** 0.5:.1f}fr" for most in longest)
        table = re.sub(r"columns: (\([^)]*\)|\d+)", f"columns: ({columns},)", table, count=1)
        table = re.sub(r"align: \([^)]*\)", "align: left", table, count=1)
        scope = ', scope: "parent", placement: auto' if count > 4 else ""
        return table.replace(", kind: table", f", kind: table{scope}")

    return re.sub(r"#figure\(\s*align\(center\)\[#table\(.*?\n\s*, kind: table\s*\)", one, body, flags=re.DOTALL)


def document(page):
    title, abstract, rest = parts(page.read_text(encoding="utf-8"))
    rest = re.sub(r"^#(#+) ", r"\1 ", rest, flags=re.MULTILINE)
    head = f"""#place(top + center, scope: "parent", float: true, clearance: 1.2em)[
#text(size: 14.5pt, weight: "bold")[{as_typst(title).strip()}]
#v(0.5em)
#block(width: 88%)[#set text(size: 9.6pt); #set align(left); #set par(justify: true)
*Abstract.* {as_typst(abstract)}]]
"""
    return STYLE + head + set_tables(as_typst(rest))


def main(page, out):
    page = Path(page)
    source = page.parent / ".paper.typ"
    source.write_text(document(page), encoding="utf-8")
    try:
        typst.compile(str(source), output=out, root=str(page.parent))
        pages = len(typst.compile(str(source), format="svg", root=str(page.parent)))
    finally:
        if "--keep" not in sys.argv:
            source.unlink()
    if not FEWEST <= pages <= MOST:
        sys.exit(f"{out}: {pages} pages; {FEWEST} to {MOST} are what reproducibility tracks of journals take")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:3])

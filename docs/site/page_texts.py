"""A Sphinx extension for pages: a link whose text is a file's name shows the title of that page; the page of examples lists all of them; and no page has
scripts or styles of its own.

The control room serves the site under a policy (CSP) that allows scripts and styles only in files."""

import hashlib
import itertools
import re
from pathlib import Path

from publish import forward

FILE_NAME = re.compile(r"\[(?:[\w./-]+/)?[\w-]+\.md\]\((?=[^)\s:]+\.md[)#])")


def setup(app):
    app.connect("source-read", _name_pages)
    app.connect("build-finished", _move_scripts_and_styles)
    return {"parallel_read_safe": True}


def _name_pages(app, name, source):
    source[0] = FILE_NAME.sub("[](", source[0])
    if name == "docs/reference/examples":
        root = Path(app.srcdir)
        rows = [_example(root, path) for path in sorted((root / "examples").rglob("*.toml"))]
        source[0] += "\n" + "\n".join(["| file | what it is |", "|---|---|", *rows]) + "\n"


def _example(root, path):
    """A row with the first sentence of the file."""
    comment = itertools.takewhile(lambda line: line.startswith("#"), path.read_text().splitlines())
    text = " ".join(line.lstrip("# ") for line in comment)
    sentence = re.match(r".*?(?=[.:] |[.:]?$)", text)[0].replace("|", "\\|")
    return f"| [{path.relative_to(root / 'examples')}](../../{path.relative_to(root)}) | {sentence} |"


def _move_scripts_and_styles(app, exception):
    if exception or app.builder.name != "html":
        return
    out = Path(app.outdir)
    styles = {}  # the text of a `style` attribute: its number

    def numbered(match):
        return f' data-style="{styles.setdefault(match[1], len(styles))}"'

    for page in out.rglob("*.html"):
        text = page.read_text()
        up = "../" * (len(page.relative_to(out).parts) - 1)

        def moved(match):
            kind, ending = match[1], "js" if match[1] == "script" else "css"
            name = f"_static/{hashlib.sha256(match[2].encode()).hexdigest()[:12]}.{ending}"
            (out / name).write_text(match[2])
            if kind == "script":
                return f'<script src="{up}{name}"></script>'
            return f'<link rel="stylesheet" href="{up}{name}">'

        text = re.sub(r"<(script|style)>(.*?)</\1>", moved, text, flags=re.DOTALL)
        page.write_text(re.sub(r'(?<=[\w"]) style="([^"]*)"', numbered, text))
    rules = "".join(f'[data-style="{number}"] {{ {style} }}\n' for style, number in styles.items())
    with (out / "_static" / "site.css").open("a") as file:
        file.write(rules)
    (out / "index.html").write_text(forward("docs/index.html"))

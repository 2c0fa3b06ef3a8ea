"""Copies a built site to DIRECTORY/VERSION, and writes the list of versions into each site of the directory: publish.py SITE DIRECTORY"""

import json
import re
import shutil
import sys
from pathlib import Path


def publish(site, directory):
    version = re.search(r'data-version="([^"]+)"', (site / "docs/index.html").read_text())[1]
    target = directory / version
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(site, target)
    sites = [page.parents[1] for page in directory.glob("*/docs/index.html")]
    pages = {each.name: sorted(str(page.relative_to(each)) for page in each.rglob("*.html")) for each in sites}
    newest_first = dict(sorted(pages.items(), key=lambda item: _numbers(item[0]), reverse=True))
    for each in sites:
        (each / "_static/versions.js").write_text(f"var rodeoVersions = {json.dumps(newest_first)}\n")
    newest = next(iter(newest_first))
    (directory / "index.html").write_text(forward(f"{newest}/docs/index.html"))
    return target


def forward(address):
    """A page that leads to another one."""
    return f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={address}"><a href="{address}">Rodeo</a>\n'


def _numbers(version):
    return [int(number) for number in re.findall(r"\d+", version)]


if __name__ == "__main__":
    print("docs:", publish(Path(sys.argv[1]), Path(sys.argv[2])) / "docs/index.html")

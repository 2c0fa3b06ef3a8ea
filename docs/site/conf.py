"""Sphinx's settings for the documentation site, which tools/docs builds. The source directory is the clone: a link between documents is one for the site, too."""

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "docs" / "site"), os.environ["RODEO_DOCS_PYTHON"]]

project = "Rodeo"
author = "the authors of Rodeo"
release = version = re.search(r"project\(rodeo VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]

extensions = ["myst_parser", "sphinx.ext.autodoc", "breathe", "python_texts", "page_texts"]
root_doc = "docs/index"
include_patterns = ["*.md"] + [
    f"{room}/**.md" for room in ("docs", "src", "python", "bench", "packaging", "plugins", "tests", "web")
]
exclude_patterns = ["build*", ".*", "**/node_modules", "packaging/wheel", "src/cli/plugin_template", "docs/site"]
nitpicky = True
# The command reads the headings of error_codes.md; every header declares the namespace.
suppress_warnings = ["myst.header", "duplicate_declaration.cpp"]

myst_heading_anchors = 4
highlight_language = "text"  # a block without a language has commands with comments, or a picture

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"
python_use_unqualified_type_names = True
default_role = "code"
breathe_projects = {"rodeo": os.environ["RODEO_DOCS_XML"]}
breathe_default_project = "rodeo"
breathe_default_members = ("members",)
breathe_show_include = False
# Names of other libraries, and names in declarations that Doxygen writes without their class or namespace.
nitpick_ignore_regex = [("cpp:identifier", ".*"), ("py:.*", ".*")]

html_theme = "furo"
html_title = "Rodeo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["versions.js", "site.js"]
templates_path = ["templates"]
html_favicon = "../../python/rodeo/control/page/icon.svg"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "version.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b57a4", "color-brand-content": "#0b57a4"},
    "dark_css_variables": {"color-brand-primary": "#7fb5f0", "color-brand-content": "#7fb5f0"},
}

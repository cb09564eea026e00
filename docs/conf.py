"""How Sphinx builds the site from this folder.

``.ci/site`` does; with ``sphinx-build -D nb_execution_mode=off docs build/site`` the tutorials are not run.
Sphinx because the docstrings are reStructuredText, because ``-W`` turns every broken link and anchor into an error, and
because MyST-NB runs the tutorials while it builds. Every page also reads on its own where Markdown is shown.
"""

import os
import sys
import tomllib
from importlib.metadata import version as installed_version
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE / "tools")]

# what the tutorials run in: this Python, a cache of their own, one thread
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
os.environ["COLUMNS"] = "100"
os.environ["OMP_NUM_THREADS"] = "1"

project = "textbench"
author = "The textbench developers"
copyright = author
version = release = installed_version("textbench")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "leaderboard_page",
    "markup",
]
exclude_patterns = ["tools", "**/.ipynb_checkpoints"]

# Markdown
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
repository_url = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]["urls"]["Source"]

html_math_renderer = "mathml"  # of tools/markup.py: formulas need neither a script nor a network
myst_update_mathjax = False

# tutorials are run, and an error in one is an error of the build
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 600  # of a cell, on a machine that is busy with other things
nb_execution_show_tb = True
nb_merge_streams = True
suppress_warnings = ["myst-nb.lexer"]  # tutorials that aren't run have no colours
nb_output_stderr = "remove"  # progress of others; an error is one of the build

# docstrings
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
add_module_names = False
napoleon_use_ivar = True  # the fields of a dataclass are documented once

# external links are checked where there is a network: .ci/links
linkcheck_ignore = [r"http://(localhost|127\.0\.0\.1)", rf"{repository_url}/(blob|tree)/"]
linkcheck_anchors = False

highlight_language = "text"  # a block that names no language is what somebody reads or prints

html_theme = "furo"
html_title = "textbench"
html_theme_options = {
    "source_repository": repository_url,
    "source_branch": "main",
    "source_directory": "docs/",
}
html_show_sphinx = False
html_favicon = "tools/static/favicon.svg"
html_static_path = ["tools/static"]
html_css_files = ["site.css"]
html_extra_path = ["../llms.txt"]
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True


def setup(app: Sphinx) -> None:
    """What is made of the code each time that the site is built, and isn't kept in the repository.

    These are the pages of methods, the tables of the reference pages, and the docstrings of the API.
    """
    from pages.methods import write_pages

    write_pages()
    app.connect("env-get-outdated", lambda app, env, *changes: sorted(env.found_docs & TABLES))
    app.connect("source-read", put_tables)


TABLES = {"reference/commands", "reference/research", "reference/configuration", "reference/files"}
"""The pages with tables that are made of the code. They are read again in every build, as the code may have changed."""


def put_tables(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the tables, or the docstrings, into a page that is being read; ``source`` holds its text."""
    if docname in TABLES:
        from pages.reference import with_tables

        source[0] = with_tables(source[0])
    elif docname.startswith("reference/api/"):
        from pages.api import page

        source[0] = page(docname.rpartition("/")[2], on_the_site=True)

"""Executed notebooks as pages that need no network: nbconvert's bare fragment in a frame of ours."""

from collections.abc import Sequence
from pathlib import Path

import jinja2
import nbformat
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments.formatters import HtmlFormatter

from metabo.errors import DataError
from metabo.report.checks import ListedClaim
from metabo.report.html import templates

LIGHT, DARK = "default", "github-dark"
"""Styles of highlighted code."""
ANCHOR = '<span id="figure"></span>'
"""The one piece of HTML that a Markdown cell may hold: where claims link to."""
FOLDED = """{%- extends 'index.html.j2' -%}
{%- block input -%}
<details class="code"><summary>Code</summary>{{ super() }}</details>
{%- endblock input -%}"""
"""Code is folded away, so that the page reads as text, figure and tables."""


class _Exporter(HTMLExporter):
    """Shows HTML in Markdown as text, since it may contain a user's names, and accepts no script as an address."""

    @jinja2.pass_context
    def markdown2html(self, context: jinja2.runtime.Context, source: str) -> str:
        """Return Markdown as HTML."""
        if source == ANCHOR:
            return source
        renderer = IPythonRenderer(escape=True, allow_harmful_protocols=False, exclude_anchor_links=True)
        return MarkdownWithMath(renderer=renderer).render(source)


def exporter() -> HTMLExporter:
    """Return what turns a notebook into an HTML fragment."""
    return _Exporter(
        template_name="basic",
        raw_template=FOLDED,
        exclude_anchor_links=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )


def render(notebook: Path, name: str, index: str, export: HTMLExporter, claims: Sequence[ListedClaim] = ()) -> str:
    """Return the page of the executed notebook of the artefact `name`; `index`: address of the report page from there;
    `claims`: those that the artefact is evidence for, whose verdicts are on the report page.

    Raises DataError if the notebook cannot be read.
    """
    try:
        node = nbformat.read(notebook, as_version=4)
    except (OSError, ValueError) as error:
        raise DataError(f"{notebook}: not a readable notebook ({error}); make the artefact again") from error
    given = node.metadata.get("papermill", {}).get("parameters", {})
    _describe_images(node, ": ".join(filter(None, [given.get("title", "Figure"), given.get("caption", "")])))
    body, _ = export.from_notebook_node(_with_anchor(node))
    return templates().get_template("notebook.html.j2").render(
        name=name,
        title=given.get("title", name),
        benchmark=given.get("benchmark", ""),
        index=index,
        body=body,
        claims=claims,
        light=_colours(LIGHT, ".highlight"),
        dark_chosen=_colours(DARK, ":root[data-theme=dark] .highlight"),
        dark_preferred=_colours(DARK, ":root:not([data-theme=light]) .highlight"),
    )  # fmt: skip


def _describe_images(node: nbformat.NotebookNode, text: str) -> None:
    """Give the notebook's images an alternative text: nbconvert takes it from the metadata of the output."""
    for cell in node.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.setdefault("metadata", {}).setdefault("image/png", {}).setdefault("alt", text)


def _with_anchor(node: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Mark the first cell that shows an image as #figure, or the page's end if there is none: claims link there."""
    showing = [
        place
        for place, cell in enumerate(node.cells)
        if any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))
    ]
    anchor = nbformat.v4.new_markdown_cell(ANCHOR)
    node.cells.insert(showing[0] if showing else len(node.cells), anchor)
    return node


def _colours(style: str, selector: str) -> str:
    """Return the rules of a Pygments style below a selector."""
    return HtmlFormatter(style=style).get_style_defs(selector)

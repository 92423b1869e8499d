"""Text of users in Markdown: shown letter for letter, also on the page of the notebook."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest

from metabo.artefacts import api
from metabo.artefacts.text import heading, plain
from metabo.metrics import Runs
from metabo.report import notebooks

ROOT = Path(__file__).parents[2]
NASTY = [
    "<script>alert(1)</script>", "a **b** _c_ `d`", "[x](javascript:alert(1))", "![x](http://host/x.png)", "$a$, $$b$$",
    "<b onmouseover=alert(1)>x</b> & &lt;", "# head", "- one", "1. two", "a\\b \\[x\\]", "http://host/x", "~~x~~ |y|",
]  # fmt: skip


class Text(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.texts, self.tags, self.attributes = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data):
        self.texts.append(data)


def page(*, markdown="", output=None, metadata=None):
    cells = [nbformat.v4.new_markdown_cell(markdown)]
    if output:
        shown = nbformat.v4.new_output("display_data", data=output, metadata=metadata or {})
        cells.append(nbformat.v4.new_code_cell("x", outputs=[shown]))
    return Text(notebooks.exporter().from_notebook_node(nbformat.v4.new_notebook(cells=cells))[0])


def assert_harmless(found):
    assert not {"script", "b", "iframe"} & set(found.tags)
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert not [value for name, value in found.attributes if name in ("href", "src") and "javascript:" in value]


@pytest.mark.parametrize("text", NASTY)
def test_a_text_is_shown_as_it_is(text):
    found = page(output={"text/markdown": f"Note: {plain(text)}"})
    assert_harmless(found)
    assert f"Note: {text}" in re.sub(r"\s+", " ", "".join(found.texts))
    assert not {"em", "strong", "code", "a", "img", "h1", "li", "table", "del"} & set(found.tags)


@pytest.mark.parametrize("text", NASTY)
def test_markdown_with_html_does_no_harm(text):
    assert_harmless(page(markdown=text, output={"text/markdown": text}))


def test_what_markdown_is_for_stays():
    found = page(markdown="**Figure 1.** R² > 0.5, `a < b`, [report](../index.html), $x_1$")
    assert {"strong", "code", "a"} <= set(found.tags) and ("href", "../index.html") in found.attributes
    assert "R² > 0.5, a < b, report, $x_1$" in "".join(found.texts)


def test_alternative_texts_are_escaped(tmp_path):
    title = '"><script>alert(1)</script>'
    image = nbformat.v4.new_output("display_data", data={"image/png": "aaaa"})
    node = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x", outputs=[image])])
    node.metadata["papermill"] = {"parameters": {"title": title, "caption": "a & b"}}
    nbformat.write(node, tmp_path / "notebook.ipynb")
    found = Text(notebooks.render(tmp_path / "notebook.ipynb", "<x>", "../index.html", notebooks.exporter()))
    assert ("alt", f"{title}: a & b") in found.attributes
    assert not [text for text in found.texts if text == "alert(1)"] and "<x>: " + title in "".join(found.texts)


def test_notes_of_a_loader_are_shown_so(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda *all: shown.extend(all))
    api.show_notes(["study '<b>*x*</b>': flat", "other"])
    told = [one.data for one in shown]
    assert told == [r"Note of the loader: study \'\<b\>\*x\*\<\/b\>\'\: flat", "Note of the loader: other"]


def test_no_template_shows_them_otherwise():
    for path in (ROOT / "notebooks").glob("**/*.ipynb"):
        for cell in json.loads(path.read_text())["cells"]:
            assert not re.search(r"Markdown\([^\n]*flag", "".join(cell["source"])), path


def test_names_in_data_are_no_formulas(tmp_path):
    figure, _ = plt.subplots()
    table = pd.DataFrame({"task": ["=1+1", "plain"], "regret": [0.5, -0.5]})
    api.save(figure, {"t": table}, str(tmp_path), "fig", "title", "caption", keys=["task"])
    plt.close(figure)
    lines = (tmp_path / "data.csv").read_text().splitlines()
    assert lines[1:] == ['fig,,t,"""=1+1""",regret,0.5', "fig,,t,plain,regret,-0.5"]


def runs(**repetitions: int) -> Runs:
    """Runs of methods without priors, so many of each, on two tasks."""
    values = {method: np.zeros((1, number, 2, 3)) for method, number in repetitions.items()}
    return Runs(values, {}, ("a", "b"), np.arange(1, 4), frozenset(values))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"rand": 21, "stbo": 3, "h_nll": 3}, "Ranks (pd1_mini, 2 tasks, 3 repetitions, of Rand 21)"),
        ({"stbo": 1}, "Ranks (pd1_mini, 2 tasks, 1 repetition)"),
    ],
)
def test_a_heading_says_how_many_tasks_and_repetitions_there_are(made, said):
    assert heading("Ranks", "pd1_mini", runs(**made)) == said

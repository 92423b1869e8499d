"""The site: its links lead somewhere, what its summaries say stands in the notes, and it builds without a warning."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest
import yaml
from PIL import Image

import metabo
from docs.hooks import chart, citation, claims, gallery, links, prose, repository

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT)
    for pattern in (
        "*.md",
        "config/*.md",
        "benchmarks/*.md",
        "results/*.md",
        "evidence/*.md",
        "docs/**/*.md",
        "src/**/*.md",
    )
    for path in ROOT.glob(pattern)
)
SUMMARIES = [page for page in PAGES if page.parent.name == "papers" and page.parts[0] == "docs"] + [
    Path("docs/index.md"),
    Path("docs/which-method.md"),
]
"""Pages whose numbers others have measured: they say nothing that the notes or the estimates do not."""
MARK = re.compile(r"^<!-- site: (\w+) ?(.*?) -->$", re.M)


def nav() -> list[str]:
    """Return the pages of the navigation, in order."""

    def pages(entries):
        for entry in entries:
            for below in entry.values():
                yield from [below] if isinstance(below, str) else pages(below)

    return list(pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_and_anchors_lead_somewhere(page):
    for link in prose.links((ROOT / page).read_text()):
        path, anchor = prose.target(PurePosixPath(page), link)
        assert (ROOT / path).exists(), link
        if anchor:
            assert anchor in prose.anchors((ROOT / path).read_text()), link


def test_the_first_page_and_readme_say_the_same_of_the_papers():
    of_readme, of_site = ((ROOT / page).read_text() for page in ("README.md", "docs/index.md"))
    rows = [line.replace("(docs/", "(") for line in of_readme.splitlines() if line.startswith("| [")]
    assert len(rows) == 4 and rows == [line for line in of_site.splitlines() if line.startswith("| [")]


def test_the_reference_has_every_public_name():
    """Here too, since the site is built only where its packages are."""
    text = (ROOT / "docs/reference/public.md").read_text()
    assert {name for name in metabo.__all__ if f"::: metabo.{name}\n" not in text} == {"__version__"}


def test_the_navigation_has_every_page_once():
    listed = nav()
    assert [page for page in listed if not (ROOT / repository.file_of(page)).is_file()] == []
    written = {str(path.relative_to("docs")) for path in PAGES if path.parts[0] == "docs"}
    assert {page for page in listed if not page.startswith(repository.OTHERS)} == written
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("page", SUMMARIES, ids=str)
def test_the_numbers_of_a_summary_stand_in_the_notes(page):
    """A run that changes the notes changes these pages too."""
    number = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?![\w])")
    text = re.sub(r"`[^`]*`|\([^()]*\.md[^()]*\)|<!--.*?-->", "", (ROOT / page).read_text())
    sources = ["docs/replication-notes.md", "docs/paper-scale.md", "src/metabo/report/papers.yaml"]
    known = set(number.findall(" ".join((ROOT / source).read_text() for source in sources)))
    assert set(number.findall(text)) - known == set()


@pytest.mark.parametrize("page", [page for page in PAGES if MARK.search((ROOT / page).read_text())], ids=str)
def test_what_a_page_asks_for_is_there(page):
    papers = yaml.safe_load((ROOT / "src/metabo/report/papers.yaml").read_text())
    for name, arguments in MARK.findall((ROOT / page).read_text()):
        given = [one.strip() for one in arguments.split("|") if one.strip()]
        if name == "section":
            assert prose.section(repository.text_of(PurePosixPath(given[0])), *given[1:]).strip()
        elif name == "tables":
            assert prose.tables(repository.text_of(PurePosixPath(given[0])), given[1])
        elif name == "claims":
            assert given[0] in papers and claims.sheet(ROOT, given[0])
        else:
            assert name in {"curves", "gallery", "citation"} and not given


TEXT = """# Top

## One thing: `x`, twice

- first
  goes on

  | a | b |
  |---|---|
  | 1 | 2 |
- second
Words
| c | b |
|---|---|
| 3 | 4 |

```python
## no heading, and no [link](there.md)
```

### Inside

See [there](../a/b.md#place), `[code](no.md)` and [elsewhere](https://example.org).

## Inside

Last.
"""


def test_sections_keep_fences_and_move_headings():
    assert prose.section(TEXT, "Top", "Inside") == (
        "See [there](../a/b.md#place), `[code](no.md)` and [elsewhere](https://example.org).\n"
    )
    inside = prose.section(TEXT, "One thing", level=3)
    assert inside.startswith("- first") and "### Inside" in inside and "\n## no heading" in inside
    assert "## Inside" in prose.section(TEXT, "One thing", level=2)
    with pytest.raises(LookupError, match="no heading begins with 'Two'"):
        prose.section(TEXT, "Two")


def test_anchors_are_those_of_the_repository():
    assert prose.anchors(TEXT) == {"top", "one-thing-x-twice", "inside", "inside-1"}


def test_links_are_found_and_changed_outside_code():
    assert prose.links(TEXT) == ["../a/b.md#place"]
    changed = prose.relinked(TEXT, lambda link: f"<{link}>")
    assert "(<../a/b.md#place>)" in changed and changed.count("<") == 1
    assert prose.target(PurePosixPath("docs/x.md"), "../a/b.md#place") == (PurePosixPath("a/b.md"), "place")
    html = '<p>\n<img src="docs/a.png" alt="x"> <a href="https://e.org">e</a> `<img src="b.png">`'
    assert prose.links(html) == ["docs/a.png"]
    assert prose.relinked(html, lambda link: f"../{link}") == html.replace("docs/a", "../docs/a")


def test_lists_and_tables_have_the_spacing_of_the_renderer():
    lines = prose.spaced(TEXT).splitlines()
    start = lines.index("- first")
    assert lines[start + 1 : start + 4] == ["    goes on", "", "    | a | b |"]
    assert lines[lines.index("| c | b |") - 1] == ""
    assert "## no heading, and no [link](there.md)" in lines


def test_tables_are_found_by_a_column():
    first, second = prose.tables(TEXT, "b")
    assert first.splitlines()[-1] == "| 1 | 2 |" and second.startswith("| c | b |")
    with pytest.raises(LookupError):
        prose.tables(TEXT, "d")


def test_files_have_pages():
    for path in ("docs/papers/mphd.md", "CONTRIBUTING.md", "src/metabo/plan/method.py", "LICENSE"):
        assert repository.file_of(repository.page_of(PurePosixPath(path))) == PurePosixPath(path)
    assert "```python\n" in repository.text_of(PurePosixPath("src/metabo/plan/method.py"))
    assert repository.text_of(PurePosixPath("notebooks/tutorial/own_data.ipynb")).startswith("# ")
    found = repository.linked([(PurePosixPath("README.md"), "[how](CONTRIBUTING.md), [what](docs/claims.md)")])
    assert PurePosixPath("config/README.md") in found, "which CONTRIBUTING.md links to"


def test_the_curves_are_drawn_from_the_notes():
    found = chart.panels(
        prose.tables(repository.text_of(PurePosixPath("docs/replication-notes.md")), "on new rows"), "on new rows"
    )
    assert list(found) == ["pd1_mini", "hpob_mini", "LCBench", "TaskSet"]
    assert all(len(values) == len(chart.AT) for rows in found.values() for values in rows.values())
    drawn = chart.shown(found, chart.colours(ROOT))
    assert drawn.count('role="img"') == 4 and set(chart.STYLES) <= set(found["LCBench"])
    assert f"H-NLL {found['LCBench']['H-NLL'][0]:.3f}" in drawn


def test_the_citation_has_the_software_and_each_paper():
    entries = re.findall(r"^@(\w+)\{(\w+),", citation.shown(ROOT / "CITATION.cff"), re.M)
    assert entries[0] == ("software", "metabo") and len(entries) == 5 == len(set(entries))


def artefact(folder: Path) -> None:
    folder.mkdir(parents=True)
    Image.new("RGB", (1200, 900), "white").save(folder / "figure.png")
    for name in ("notebook.ipynb", "data.csv"):
        (folder / name).write_text(name)


def test_the_gallery_shows_the_largest_scale(tmp_path):
    (tmp_path / "workflow").mkdir()
    entry = {"title": "Curves & more", "paper": "mphd", "caption": "What is < 1.", "claims": ["M4"]}
    (tmp_path / "workflow" / "catalogue.yaml").write_text(yaml.safe_dump({"mphd_fig06": entry}))
    assert gallery.cards(tmp_path) == ("", [])
    assert "`make reproduce`" in gallery.shown("", [], {})
    artefact(tmp_path / "results" / "smoke" / "mphd" / "tables" / "mphd_fig06")
    for place in ("mphd_l/mphd_fig06", "mphd_fig06"):
        artefact(tmp_path / "results" / "laptop" / "mphd" / place)
    scale, made = gallery.cards(tmp_path)
    assert scale == "laptop" and [card.benchmark for card in made] == ["", "mphd_l"]
    text = gallery.shown(scale, made, {"mphd": "MPHD"})
    assert text.count('id="mphd_fig06"') == 1 and 'href="papers/mphd.html#m4"' in text
    assert "Curves &amp; more (mphd_l)" in text and "What is &lt; 1." in text and "provenance" not in text
    files = gallery.pictures(made)
    assert set(files) == {
        f"gallery/laptop/mphd/{place}/{name}"
        for place in ("mphd_l/mphd_fig06", "mphd_fig06")
        for name in ("small.webp", "figure.png", "notebook.ipynb", "data.csv")
    }


def test_claims_have_an_anchor_and_the_verdict_of_a_run(tmp_path):
    sheet = {
        "M4": {"statement": "a | b", "section": "5", "headline": True, "tests": [{"artefact": "mphd_fig06"}]},
        "M5": {"statement": "c", "section": "6", "untestable": "why"},
    }
    (tmp_path / "results" / "smoke" / "claims").mkdir(parents=True)
    table = "claim,role,verdict\nM4,claim,holds\nM4,part,contradicted\n"
    (tmp_path / "results" / "smoke" / "claims" / "mphd.csv").write_text(table)
    scale, judged = claims.verdicts(tmp_path, "mphd")
    assert (scale, judged) == ("smoke", {"M4": "holds"})
    rows = claims.shown(sheet, scale, judged, {"mphd_fig06"}).splitlines()
    assert '| <a id="m4"></a>**M4** | a \\| b | 5 | [`mphd_fig06`](../gallery.html#mphd_fig06) | holds |' in rows
    assert '| <a id="m5"></a>M5 | c | 6 | – | not testable |' in rows
    assert claims.verdicts(tmp_path, "cmbo") == ("", {})


def test_a_link_that_leads_nowhere_is_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a id="here" href="b.html#there">b</a> <img src="c.png"> <a href="https://d.org">'
    )
    (tmp_path / "b.html").write_text('<script src="https://e.org/x.js"></script> <a href="a.html#here">a</a>')
    (tmp_path / "s.css").write_text("a { background: url(https://f.org/x.png) }")
    assert links.faults(tmp_path) == [
        "a.html: <a> leads to b.html#there, but b.html has no such place",
        "a.html: <img> leads to c.png, which is not there",
        "b.html: <script> loads https://e.org/x.js",
        "s.css: loads https://f.org/x.png",
    ]


def built(site: Path, config: Path = ROOT / "mkdocs.yml") -> subprocess.CompletedProcess[str]:
    """Build the site with the options of `make docs`."""
    if any(importlib.util.find_spec(name) is None for name in ("mkdocs", "material", "mkdocstrings")):
        pytest.skip("the packages of the site are not installed (`make docs` installs requirements-docs.lock)")
    (recipe,) = re.findall(r"^\t.*-m (mkdocs .*)$", (ROOT / "Makefile").read_text(), re.M)
    command = [sys.executable, "-m", *recipe.split(), "--config-file", str(config), "--site-dir", str(site)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_its_links_lead_somewhere(tmp_path):
    done = built(tmp_path)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    assert links.faults(tmp_path) == []
    public = (tmp_path / "reference" / "public.html").read_text()
    for name in metabo.__all__:
        assert f'id="metabo.{name}"' in public or name == "__version__"
    index = json.loads((tmp_path / "search" / "search_index.json").read_text())
    assert any(entry["location"].startswith("papers/hyperbo.html") for entry in index["docs"])


@pytest.mark.slow
def test_a_link_that_leads_nowhere_stops_the_build(tmp_path):
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    with (tmp_path / "docs" / "cite.md").open("a") as page:
        page.write('\n[x](nowhere.md), [y](python.md#nowhere), <a href="none.html">z</a>\n')
    hooks = {"INHERIT": str(ROOT / "mkdocs.yml"), "hooks": [str(ROOT / "docs" / "hooks" / "events.py")]}
    python = {"mkdocstrings": {"handlers": {"python": {"paths": [str(ROOT / "src")]}}}}
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump({**hooks, "plugins": {"search": {}, "offline": {}, **python}}))
    done = built(tmp_path / "site", tmp_path / "mkdocs.yml")
    assert done.returncode != 0
    for said in ("nowhere.md", "#nowhere", "cite.html: <a> leads to none.html, which is not there"):
        assert said in done.stderr

"""The hook of MkDocs (mkdocs.yml): pages of docs/ as the site shows them, and a check of what was built.

A line `<!-- site: NAME ARGUMENT | ARGUMENT -->` of a page is replaced by what a function of `INSERTED` gives. Links to
files of the repository that are not in docs/ lead to pages that show these files, below repo/.
"""

import logging
import posixpath
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path, PurePosixPath

import yaml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.hooks import chart, citation, claims, gallery, links, prose, repository
from docs.hooks.repository import ROOT

log = logging.getLogger("mkdocs.hooks.events")
MARK = re.compile(r"^<!-- site: (\w+) ?(.*?) -->$", re.M)
NOTES = PurePosixPath("docs/replication-notes.md")
NEW_ROWS = "on new rows"
"""The column of its tables that the curves of the first page show."""
ONE_PAGE = "replication-notes.md"
"""What other pages show piece by piece: the search leads there instead."""


@cache
def papers() -> dict[str, str]:
    """Return the name of each paper, by its id."""
    entries = yaml.safe_load((ROOT / "src/metabo/report/papers.yaml").read_text())
    return {paper: entry["name"] for paper, entry in entries.items()}


@cache
def made() -> tuple[str, list[gallery.Card]]:
    """Return what the gallery shows."""
    return gallery.cards(ROOT)


def section(page: str, path: str, *titles: str) -> str:
    """Return what stands in a file below the heading that begins like the last title."""
    source = PurePosixPath(path)
    text = prose.section(repository.text_of(source), *titles, level=3)
    return relinked(text, source, page)


def tables(page: str, path: str, column: str) -> str:
    """Return the tables of a file that have a column of this name."""
    return "\n".join(prose.tables(repository.text_of(PurePosixPath(path)), column))


def curves(page: str) -> str:
    """Return the regret curves on rows that no past task has seen."""
    found = prose.tables(repository.text_of(NOTES), NEW_ROWS)
    return chart.shown(chart.panels(found, NEW_ROWS), chart.colours(ROOT))


def claimed(page: str, paper: str) -> str:
    """Return the claims of a paper."""
    shown = {card.id for card in made()[1]}
    return claims.shown(claims.sheet(ROOT, paper), *claims.verdicts(ROOT, paper), shown)


INSERTED: dict[str, Callable[..., str]] = {
    "section": section,
    "tables": tables,
    "curves": curves,
    "claims": claimed,
    "gallery": lambda page: gallery.shown(*made(), papers()),
    "citation": lambda page: citation.shown(ROOT / "CITATION.cff"),
}


def relinked(text: str, source: PurePosixPath, page: str) -> str:
    """Return a text that stands in `source` with its links as `page` needs them."""

    def change(link: str) -> str:
        path, anchor = prose.target(source, link)
        if link.startswith("#") and repository.page_of(source) == page:
            return link
        if not (ROOT / path).is_file():
            return link  # MkDocs warns of it
        place = posixpath.relpath(repository.page_of(path), posixpath.dirname(page) or ".")
        return f"{place}#{anchor}" if anchor else place

    return prose.relinked(text, change)


def content(page: str, text: str) -> str:
    """Return the Markdown of a page: its text with what its marks ask for, links and spacing as the site needs them."""
    source, parts, end = repository.file_of(page), [], 0
    for mark in MARK.finditer(text):
        parts.append(relinked(text[end : mark.start()], source, page))
        name, arguments = mark[1], [one.strip() for one in mark[2].split("|") if one.strip()]
        if name not in INSERTED:
            raise PluginError(f"{source}: nothing is called {name!r}; a page can have {', '.join(INSERTED)}")
        try:
            parts.append(INSERTED[name](page, *arguments))
        except (LookupError, OSError, TypeError) as error:
            raise PluginError(f"{source}: {mark[0]}: {error}") from error
        end = mark.end()
    return prose.spaced("".join([*parts, relinked(text[end:], source, page)]))


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give headings the anchors that they have where the repository is read."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = prose.slug
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files that pages link to, and those of the gallery."""
    texts = []
    for file in files.documentation_pages():
        source, text = repository.file_of(file.src_uri), file.content_string
        texts.append((source, text))
        for mark in MARK.finditer(text):
            if mark[1] == "section":
                path, *titles = (one.strip() for one in mark[2].split("|"))
                texts.append((PurePosixPath(path), prose.section(repository.text_of(PurePosixPath(path)), *titles)))
    for path in repository.linked(texts):
        files.append(File.generated(config, repository.page_of(path), content=repository.text_of(path)))
    for place, given in gallery.pictures(made()[1]).items():
        made_file = {"abs_src_path": str(given)} if isinstance(given, Path) else {"content": given}
        files.append(File.generated(config, place, **made_file))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the page's Markdown as `content` has it."""
    if page.file.src_uri == ONE_PAGE or page.file.src_uri.startswith(f"{repository.OTHERS}src"):
        page.meta.setdefault("search", {"exclude": True})
    if page.is_homepage:
        page.meta.setdefault("hide", ["navigation"])
    return content(page.file.src_uri, markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Warn of links that lead nowhere and of what would be loaded from elsewhere: with --strict the build fails."""
    for fault in links.faults(Path(config.site_dir)):
        log.warning(fault)

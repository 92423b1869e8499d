"""Files of the repository as pages of the site: those of docs/ at their place, others that a page links below repo/."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from docs.hooks import prose

ROOT = Path(__file__).parents[2]
OTHERS = "repo/"
"""Where files that are not in docs/ are on the site."""
LANGUAGES = {".py": "python", ".yaml": "yaml", ".cff": "yaml", ".csv": "text", ".toml": "toml", "": "text"}


def page_of(path: PurePosixPath) -> str:
    """Return the page (its source's place in docs/) that shows a file of the repository."""
    if path.parts[0] == "docs":
        return str(path.relative_to("docs"))
    return f"{OTHERS}{path}" if path.suffix == ".md" else f"{OTHERS}{path}.md"


def file_of(page: str, root: Path = ROOT) -> PurePosixPath:
    """Return the file of the repository that a page shows."""
    if not page.startswith(OTHERS):
        return PurePosixPath("docs") / page
    path = page.removeprefix(OTHERS)
    return PurePosixPath(path if (root / path).is_file() else path.removesuffix(".md"))


def text_of(path: PurePosixPath, root: Path = ROOT) -> str:
    """Return the Markdown that shows a file: its own, a notebook's cells, or its text as code."""
    own = (root / path).read_text()
    if path.suffix == ".md":
        return own
    if path.suffix == ".ipynb":
        return "\n\n".join(_cell(cell) for cell in json.loads(own)["cells"])
    return f"# `{path}`\n\n{_fenced(own, LANGUAGES.get(path.suffix, 'text'))}"


def _cell(cell: Mapping[str, object]) -> str:
    lines = cell["source"]
    assert isinstance(lines, list), "the notebooks' format"
    return "".join(lines) if cell["cell_type"] == "markdown" else _fenced("".join(lines), "python")


def _fenced(text: str, language: str) -> str:
    fence = "`" * 3
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def linked(texts: Iterable[tuple[PurePosixPath, str]], root: Path = ROOT) -> list[PurePosixPath]:
    """Return the files outside docs/ that texts, each with the file it stands in, link to, also through other files."""
    waiting, found = list(texts), {}
    while waiting:
        source, text = waiting.pop()
        for link in prose.links(text):
            path, _ = prose.target(source, link)
            if path.parts[0] != "docs" and path not in found and (root / path).is_file():
                found[path] = True
                if path.suffix == ".md":
                    waiting.append((path, text_of(path, root)))
    return sorted(found)

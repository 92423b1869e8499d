"""The built site, checked as a reader without a network has it: every link leads somewhere, and nothing is loaded from
another machine."""

import posixpath
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
FOLLOWED = LOADED | {("a", "href"), ("use", "href")}
SAID_ONLY = {"canonical", "next", "prev", "alternate"}
"""What a <link> may be without being loaded."""


@dataclass
class Seen(HTMLParser):
    """What one page has: anchors, and its links with the element that makes them."""

    anchors: set[str] = field(default_factory=set)
    links: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element is called and where it leads."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "link" and values.get("rel") in SAID_ONLY:
            return
        self.links += [(tag, value) for name, value in values.items() if (tag, name) in FOLLOWED]


def faults(site: Path) -> list[str]:
    """Return a line for each link of the site that leads nowhere and for each thing that it loads from elsewhere."""
    pages = {path.relative_to(site).as_posix(): _seen(path.read_text()) for path in sorted(site.rglob("*.html"))}
    found = [
        fault
        for name, page in pages.items()
        for tag, link in page.links
        if (fault := _fault(site, pages, name, tag, link))
    ]
    for path in sorted(site.rglob("*.css")):
        found += [
            f"{path.relative_to(site)}: loads {url}"
            for url in re.findall(r"url\(['\"]?(https?:[^)]*)", path.read_text())
        ]
    return found


def _seen(text: str) -> Seen:
    seen = Seen()
    seen.feed(text)
    return seen


def _fault(site: Path, pages: dict[str, Seen], name: str, tag: str, link: str) -> str:
    parts = urlsplit(link)
    if parts.scheme == "data":
        return ""
    if parts.scheme or parts.netloc:
        return f"{name}: <{tag}> loads {link}" if tag != "a" else ""
    place = unquote(parts.path)
    path = posixpath.normpath(posixpath.join("/", posixpath.dirname(name), place)).lstrip("/") if place else name
    if not (site / path).is_file():
        path = posixpath.join(path, "index.html")
        if not (site / path).is_file() or name != "404.html":
            return f"{name}: <{tag}> leads to {link}, which is not there"
    anchor = unquote(parts.fragment)
    if anchor and path in pages and anchor not in pages[path].anchors | {"__consent"}:
        return f"{name}: <{tag}> leads to {link}, but {path} has no such place"
    return ""

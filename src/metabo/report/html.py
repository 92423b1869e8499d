"""The templates of this package (package data), and how they write times, sizes and names."""

import re
from functools import cache

import jinja2
from markupsafe import Markup, escape


@cache
def templates() -> jinja2.Environment:
    """Return the environment of the templates: HTML is escaped, an undefined name is an error."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("metabo.report"),
        autoescape=jinja2.select_autoescape(enabled_extensions=("j2",)),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"duration": duration, "moment": moment, "mebibytes": mebibytes, "slug": slug}
    environment.filters |= {"code_words": code_words, "breakable": breakable}
    return environment


def duration(seconds: float) -> str:
    """Write seconds for a reader: "0.8 s", "34 s", "12 min 3 s", "1 h 5 min"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def moment(time: str) -> str:
    """Write a time of a sidecar (ISO 8601, in UTC) for a reader: "2026-11-21 20:54 UTC"; "" if none."""
    return f"{time[:10]} {time[11:16]} UTC" if time else ""


def mebibytes(number: float) -> str:
    """Write bytes as MiB, "–" for none."""
    return f"{number / 2**20:,.0f} MiB" if number else "–"


def slug(text: str) -> str:
    """Return a name for CSS classes: "not testable" is "not-testable"."""
    return "-".join(text.lower().split())


def code_words(text: str) -> Markup:
    """Return HTML of a text in which `words` between backticks are code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def breakable(path: str) -> Markup:
    """Return HTML of a path that a narrow column may break after each slash."""
    return Markup(str(escape(path)).replace("/", "/<wbr>"))

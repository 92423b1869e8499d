"""How to cite: CITATION.cff as text and as BibTeX entries."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict, cast

import yaml


class Work(TypedDict, total=False):
    """A work as CITATION.cff has it, what is read of it."""

    title: str
    authors: list[dict[str, str]]
    journal: str
    volume: int
    year: int
    version: str
    license: str
    notes: str
    message: str
    identifiers: list[dict[str, str]]
    references: list["Work"]


def shown(path: Path) -> str:
    """Return the Markdown of a citation file: a sentence and a BibTeX entry for the software and for each reference."""
    own = cast(Work, yaml.safe_load(path.read_text()))
    lines = [own["message"], "", "## This software", "", *_shown("metabo", "software", own)]
    lines += ["## The papers", ""]
    for work in own["references"]:
        kind = "article" if "journal" in work else "misc"
        lines += [f"### {work['notes']}", "", *_shown(_key(work), kind, work)]
    return "\n".join(lines)


def _shown(key: str, kind: str, work: Work) -> list[str]:
    where = [str(work[name]) for name in ("journal", "volume") if name in work]
    where += [one["value"] for one in work.get("identifiers", [])]
    where += [f"version {work['version']}", work["license"]] if "version" in work and "license" in work else []
    year = f" ({work['year']})" if "year" in work else ""
    sentence = f"{_names(work['authors'], ', ')}{year}: *{work['title']}*. {', '.join(where)}."
    return [sentence, "", "```bibtex", *_entry(key, kind, work), "```", ""]


def _names(authors: Sequence[Mapping[str, str]], between: str) -> str:
    return between.join(one.get("name") or f"{one['given-names']} {one['family-names']}" for one in authors)


def _key(work: Work) -> str:
    first = work["authors"][0]["family-names"].lower()
    word = next(word for word in re.findall(r"\w+", work["title"].lower()) if len(word) > 4)
    return f"{first}{work['year']}{word}"


def _entry(key: str, kind: str, work: Work) -> list[str]:
    fields = {"title": f"{{{work['title']}}}", "author": _names(work["authors"], " and ")}
    if "name" in work["authors"][0]:
        fields["author"] = f"{{{fields['author']}}}"
    for name in ("journal", "volume", "year", "version"):
        if name in work:
            fields[name] = str(work[name])
    for identifier in work.get("identifiers", []):
        scheme, _, number = identifier["value"].partition(":")
        fields |= {"eprint": number, "archiveprefix": scheme}
    return [f"@{kind}{{{key},", *(f"  {name} = {{{value}}}," for name, value in fields.items()), "}"]

"""The figures and tables that a run has made, as cards with their files and the claims that they decide."""

import html
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict

import yaml
from PIL import Image

SCALES = {
    "paper": "the published sizes",
    "laptop": "the default sizes",
    "smoke": "toy sizes, which show nothing but that it runs",
}
"""Scales of a run, the largest first."""
FILES = {"notebook.html": "notebook", "notebook.ipynb": "notebook", "data.csv": "data", "provenance.json": "provenance"}
"""What a card links to; of two of one name the first that there is."""
WIDTH = 560
"""Pixels of a card's picture."""
PAGE = "gallery.html"


class GalleryEntry(TypedDict):
    """An artefact as the catalogue has it, what a card shows of it."""

    title: str
    paper: str
    caption: str
    claims: NotRequired[list[str]]


@dataclass(frozen=True)
class Card:
    """An artefact that was made: its id, its entry, its folder, and the place of the folder below results/."""

    id: str
    entry: GalleryEntry
    folder: Path
    place: str

    @property
    def benchmark(self) -> str:
        """The benchmark that it shows; "" if none."""
        above = self.folder.parent.name
        return "" if above == self.entry["paper"] else above

    @property
    def files(self) -> dict[str, str]:
        """What to call each file that there is, by its name."""
        found: dict[str, str] = {}
        for name, label in FILES.items():
            if label not in found.values() and (self.folder / name).is_file():
                found[name] = label
        return found


def catalogue(root: Path) -> dict[str, GalleryEntry]:
    """Return the entries of the catalogue, in its order."""
    return yaml.load((root / "workflow" / "catalogue.yaml").read_text(), Loader=yaml.CSafeLoader)


def cards(root: Path) -> tuple[str, list[Card]]:
    """Return the largest scale that has figures, and a card for each in the order of the catalogue; "" if none has."""
    for scale in SCALES:
        results = root / "results" / scale
        found = [
            Card(name, entry, place, place.relative_to(root / "results").as_posix())
            for name, entry in catalogue(root).items()
            for place in sorted([results / entry["paper"] / name, *(results / entry["paper"]).glob(f"*/{name}")])
            if (place / "figure.png").is_file()
        ]
        if found:
            return scale, found
    return "", []


def pictures(made: Sequence[Card]) -> dict[str, bytes | Path]:
    """Return the files that the cards need, by their place on the site: small pictures, and copies of the rest."""
    files: dict[str, bytes | Path] = {}
    for card in made:
        base = f"gallery/{card.place}"
        files[f"{base}/small.webp"] = _small(card.folder / "figure.png")
        files |= {f"{base}/{name}": card.folder / name for name in ("figure.png", *card.files)}
    return files


def _small(figure: Path) -> bytes:
    with Image.open(figure) as opened:
        picture = opened.convert("RGB")
        picture.thumbnail((WIDTH, 4 * WIDTH), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    picture.save(out, "webp", quality=82)
    return out.getvalue()


def shown(scale: str, made: Sequence[Card], papers: Mapping[str, str]) -> str:
    """Return the gallery: a heading for each of `papers` (id -> name) and its cards; a sentence if there are none."""
    if not made:
        return (
            "There are no figures here: this site was built from a folder without results. `make reproduce` makes "
            "them, `make smoke` makes some at toy sizes; then `make docs` shows them on this page.\n"
        )
    lines = [f"{len(made)} figures and tables of the run in `results/{scale}`: {SCALES[scale]}.", ""]
    for paper, name in papers.items():
        if own := [card for card in made if card.entry["paper"] == paper]:
            lines += [f"## {name}", "", '<div class="gallery">', *_cards(own), "</div>", ""]
    return "\n".join(lines)


def _cards(made: Sequence[Card]) -> list[str]:
    seen: set[str] = set()
    lines = []
    for card in made:
        anchor = "" if card.id in seen else f' id="{card.id}"'
        seen.add(card.id)
        lines.append(_card(card, anchor))
    return lines


def _card(card: Card, anchor: str) -> str:
    base = f"gallery/{card.place}"
    with Image.open(card.folder / "figure.png") as opened:
        width, height = opened.size
    title = html.escape(card.entry["title"] + (f" ({card.benchmark})" if card.benchmark else ""))
    links = [f'<a href="{base}/{name}">{label}</a>' for name, label in card.files.items()]
    paper = card.entry["paper"]
    links += [f'<a href="papers/{paper}.html#{claim.lower()}">{claim}</a>' for claim in card.entry.get("claims", [])]
    caption = html.escape(card.entry["caption"])
    return (
        f'<figure{anchor}><a href="{base}/figure.png"><img src="{base}/small.webp" width="{width}" height="{height}" '
        f'loading="lazy" alt="{title}"></a><figcaption><b>{title}</b> <code>{card.id}</code>'
        f"<details><summary>Caption</summary>{caption}</details>{' · '.join(links)}</figcaption></figure>"
    )

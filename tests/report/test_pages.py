"""The written pages as files: every link leads somewhere, nothing is fetched, text is escaped, all is there."""

import html
import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from metabo.report import checks

OUT = Path("results/smoke")
VOID = {"meta", "link", "img", "input", "br", "hr", "wbr"}


class Page(HTMLParser):
    """Ids, links, sources, texts by id, and whether tags close in order."""

    def __init__(self, path: Path):
        super().__init__()
        self.path, self.ids, self.links, self.sources, self.images, self.open = path, [], [], [], [], []
        self.feed(path.read_text())
        self.close()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if tag == "a" and "href" in given else []
        self.sources += [given[name] for name in ("src", "data", "action") if tag != "a" and name in given]
        self.sources += [given["href"]] if tag == "link" else []
        self.images += [given] if tag == "img" else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"{self.path}: </{tag}> at {self.getpos()}"


@pytest.fixture(scope="module")
def index(site):
    return Page(site / OUT / "index.html")


@pytest.fixture(scope="module")
def notebooks(site):
    return [Page(path) for path in sorted((site / OUT).glob("**/notebook.html"))]


def test_every_link_leads_to_a_file_or_a_place_on_the_page(index, notebooks):
    assert len(notebooks) == 4
    for page in (index, *notebooks):
        assert page.open == [] and len(page.ids) == len(set(page.ids))
        for link in page.links:
            file, _, anchor = link.partition("#")
            target = (page.path.parent / file).resolve() if file else page.path
            assert target.is_file(), f"{page.path}: {link}"
            assert not anchor or anchor in Page(target).ids, f"{page.path}: {link}"


def test_a_notebook_ends_with_what_follows_and_folds_its_code_away(site):
    sheet = checks.sheet("hyperbo")
    for name, claims in {
        "tables/hyperbo_fig08": ["C01", "C02"],
        "tables/hyperbo_tab05": ["C03"],
        "pd1/hyperbo_fig08": [],
    }.items():
        text = (site / OUT / "hyperbo" / name / "notebook.html").read_text()
        body, _, follows = text.partition('<section id="follows"')
        links = re.findall(r'href="([^"]*)"', follows)
        anchors = [link.partition("#")[2] for link in links if "#claim-" in link]
        assert anchors == [f"claim-hyperbo-{claim}" for claim in claims]
        assert all(html.escape(sheet[claim].statement, quote=False) in html.unescape(follows) for claim in claims)
        decided = [f"check-hyperbo-{check.name}" for claim in claims for check in sheet[claim].checks]
        assert [link.partition("#")[2] for link in links if "#check-" in link] == decided
        assert ("No claim of the paper is tested" in follows) == (not claims)
        assert {"data.csv", "provenance.json", "figure.pdf"} <= set(links)
        assert body.count('<details class="code">') == body.count('class="input_area"') > 0
        assert "In&nbsp;[" not in body and "In [" not in body


def test_nothing_is_fetched_from_a_network(index, notebooks):
    for page in (index, *notebooks):
        for source in page.sources:
            assert not re.match(r"[a-z]+:(?!image/|,)|//", source), f"{page.path}: {source[:80]}"
        assert not re.search(r"@import|url\((?!data:)|https?://[^ ]*\.(js|css)", page.path.read_text())


def test_every_image_has_its_text_and_the_page_keeps_its_place(index, notebooks):
    assert len(index.images) == 4
    assert all(image["alt"] and int(image["width"]) > 100 < int(image["height"]) for image in index.images)
    assert [image["alt"][:9] for page in notebooks for image in page.images] == [
        "Regret <c",
        "Regret <c",
        "Best metr",
        "Theory of",
    ]


def test_text_of_results_is_escaped(index, notebooks):
    text = index.path.read_text()
    assert "Regret &lt;curves&gt; &amp; more" in text and "<curves>" not in text
    assert "as printed &lt;b&gt;" in text
    assert all("<curves>" not in page.path.read_text() for page in notebooks)


def test_claims_artefacts_theory_times_and_environment_are_shown(index, site):
    text = re.sub(r"\s+", " ", re.sub(r"<(script|style)>.*?</\1>|<[^>]+>", " ", index.path.read_text(), flags=re.S))
    for part in (
        "4 figures and tables, 4 claims, 2 statements of theory", "1 holds", "1 not testable",
        "The claims of this paper are not checked in this run", "3.21 [2.4, 4.9] times", "2 parts", "Said of C03.",
        "1 beside: other readings, benchmarks, metrics", "HyperBO, headline", "undecided cause: power;",
        "1 refuted", "1 supported", "error 0.5 in 2 cases", "pretrain", "1 min 40 s",
        "4 jobs, 2 min 42 s", "python", "numpy", "1 fail", "90 of 100.; claims C02, C03",
    ):  # fmt: skip
        assert part in text, part
    assert "unused" not in text
    table = pd.read_csv(site / OUT / "scorecard.csv")
    assert list(table["claim"]) == ["C01", "C02", "C03", "C04"] and list(table["headline"]) == [1, 1, 0, 0]
    table = pd.read_csv(site / OUT / "multiverse.csv")
    assert list(table["claim"]) == ["C01", "C02", "C02", "C02", "C02", "C03", "C04"]


def test_the_page_opens_with_answers_and_headline_claims(index):
    text = index.path.read_text()
    part = text.split('id="papers"')[1].split("</section>")[0]
    assert (
        text.index('id="papers"')
        < text.index('id="scorecard"')
        < text.index('id="gallery"')
        < text.index('id="theory"')
    )
    words = html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", part)))
    assert "One of four claims holds, one of two headline claims: “Pre-training helps” (C01)." in words
    assert "One is contradicted: C03 for a reason that this run does not show." in words
    assert (
        "One is undecided: it has too few units for an effect of that size, and more would decide it (C02); one"
        in words
    )
    assert "verdicts rest on our stand-ins for the paper's data (tables)" in words
    table = part.split("<table")[1]
    assert "3 times" in table and "3.21 [2.4, 4.9] times" in table and "not printed" in table and "C03" not in table
    assert 'href="hyperbo/tables/hyperbo_fig08/notebook.html#figure"' in table and "data.csv" in table


def test_a_check_says_what_it_asks_and_leads_to_its_claims(index):
    part = index.path.read_text().split('id="checks"')[1].split("</section>")[0]
    assert 'id="check-hyperbo-speedup"' in part and "src/<wbr>metabo/<wbr>papers/<wbr>hyperbo/<wbr>checks/" in part
    assert "<code>over</code>" in part
    assert 'href="#claim-hyperbo-C01"' in part and 'href="#check-hyperbo-speedup"' in index.path.read_text()


def test_the_widths_of_headline_claims_stand_beside_the_effects(index):
    part = index.path.read_text().split('id="widths"')[1].split("</details>")[0]
    assert "headline claims against the effects" in part and "C01" in part and "C03" not in part
    told = re.findall(r'data-label="The paper">(.*?)</td>', part)
    assert len(told) == 2 and all(told)  # every headline claim, with or without an effect


def test_the_log_says_the_verdicts_and_where_the_time_went(site):
    log = (site / "report.log").read_text().splitlines()
    assert log[0] == ("hyperbo: 1 holds, 1 contradicted, 1 undecided, 1 not testable; 1 of 2 headline claims decided")
    assert log[1] == "mphd: claims are not checked"
    assert log[2] == "11 jobs took 3 min 25 s in all:"
    assert re.fullmatch(r"  48\.8%  +1 min 40 s  pretrain \(1 jobs, longest 1 min 40 s: priors/.*/h_nll\)", log[3])


def test_the_same_results_give_the_same_page(copied, write_report):
    before = (OUT / "index.html").read_bytes()
    write_report()
    assert (OUT / "index.html").read_bytes() == before

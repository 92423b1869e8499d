"""A check of MPHD compares with the methods that its figure takes for references; it finds no row of any other."""

from pathlib import Path

import pytest

from metabo.papers.engine.claims import sheet
from metabo.plan import catalogue, templates

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"
COMPARE = {"beats", "beaten_by", "by_margin", "matches"}
ENTRIES = catalogue.load()
TESTS = [
    (name, test.artefact, test.arguments["method"])
    for name, claim in ((claim.id, claim) for claim in sheet.load("mphd"))
    for test in claim.tests
    if test.check in COMPARE and isinstance(test.artefact, str)
]


@pytest.mark.parametrize(("claim", "artefact", "method"), TESTS)
def test_the_method_of_a_comparison_is_a_reference_of_its_figure(claim, artefact, method):
    entry = ENTRIES[artefact]
    given = templates.parameters(NOTEBOOKS / entry.notebook)["references"]
    assert method in entry.parameters.get("references", given)


def test_there_are_such_comparisons():
    assert len(TESTS) > 15 and {"mphd_fig07", "mphd_x03"} <= {artefact for _, artefact, _ in TESTS}

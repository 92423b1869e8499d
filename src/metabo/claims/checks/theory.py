"""Checks of the papers' theory, by the verdicts of the statements (`metabo.theory`)."""

from collections.abc import Sequence

from metabo.claims.evidence import Evidence
from metabo.claims.verdicts import FAILED, REPLICATED, UNTESTABLE, WEAK, Finding, together
from metabo.errors import ConfigError
from metabo.theory.verdicts import INCONCLUSIVE, REFUTED, SUPPORTED

_VERDICTS = {SUPPORTED: REPLICATED, INCONCLUSIVE: WEAK, REFUTED: FAILED}


def statements(evidence: Evidence, names: Sequence[str]) -> Finding:
    """Supported statements are replicated, refuted ones not; inconclusive ones are weak: tested, and undecided.

    One without power, whose negative control is not refuted either, is not testable.

    `names`: "id, version" of each statement, e.g. "Theorem 5, printed". Raises ConfigError for an unknown one.
    """
    rows = evidence.table("verdict")
    found = []
    for wanted in names:
        named = rows[rows["claim"].str.startswith(f"{wanted}: ")]
        if named.empty:
            held = "; ".join(rows["claim"].str.partition(": ")[0])
            raise ConfigError(f"no statement '{wanted}' among the theory checks; there are {held}")
        row = named.iloc[0]
        verdict = UNTESTABLE if row["no_power"] else _VERDICTS[row["parameter"]]
        found.append(Finding(verdict, f"{row['claim']}: {row['parameter'].lower()}", unit="verdict"))
    return together(found, "statements")

"""Checks that claims of several papers name: verdicts on theory (`metabo.papers.engine.theory`), and lower regret."""

from collections.abc import Sequence

from metabo.errors import ConfigError
from metabo.papers.engine.claims.comparing import OTHERS, Moment, Side, absent, against, held, orders
from metabo.papers.engine.claims.conjunctions import together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import CONTRADICTED, HOLDS, UNDECIDED, UNTESTABLE, Finding
from metabo.papers.engine.theory.verdicts import INCONCLUSIVE, REFUTED, SUPPORTED

_VERDICTS = {SUPPORTED: HOLDS, INCONCLUSIVE: UNDECIDED, REFUTED: CONTRADICTED}


def statements(evidence: Evidence, names: Sequence[str]) -> Finding:
    """Supported statements hold, refuted ones are contradicted, inconclusive ones undecided.

    A theory check has a level of its own over all that it compares; a refuted one counts as such in a conjunction. One
    without power, whose negative control is not refuted either, and one that is not informative, whose bounds could be
    a hundred times smaller, are not testable.

    `names`: "id, version" of each statement, e.g. "Theorem 5, printed". Raises ConfigError for an unknown one.
    """
    rows = evidence.table("verdict")
    found = []
    for wanted in names:
        named = rows[rows["statement"].str.startswith(f"{wanted}: ")]
        if named.empty:
            held = "; ".join(rows["statement"].str.partition(": ")[0])
            raise ConfigError(f"no statement '{wanted}' among the theory checks; there are {held}")
        row = named.iloc[0]
        verdict = UNTESTABLE if row["no_power"] else _VERDICTS[row["verdict"]]
        against = 0.0 if verdict == CONTRADICTED else 1.0
        found.append(Finding(verdict, f"{row['statement']}: {row['verdict'].lower()}", unit="verdict", against=against))
    return together(found, "statements")


def lower_regret(
    evidence: Evidence, lower: Sequence[Side], than: str | Sequence[Side] = OTHERS, at: Sequence[Moment] = (100,)
) -> Finding:
    """ORD: each of `lower` has less regret than each of `than`, at every moment of `at`."""
    runs = evidence.runs
    first = held(lower, runs)
    pairs = [(a, b) for a in first for b in against(than, lower, runs)]
    lost = [*absent(lower, runs), *absent(than, runs)]
    return together([*orders(evidence, pairs, at), *lost], "comparisons")

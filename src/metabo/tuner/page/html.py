"""The page itself: one HTML file that includes its style and figures. All text from users is escaped."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape

from metabo.data.history.account import StudyAccount, several
from metabo.data.history.description import Configuration, Description
from metabo.tuner import listing
from metabo.tuner.formats import StoredRecord
from metabo.tuner.ledger import best_of
from metabo.tuner.page import charts
from metabo.tuner.page.facts import EffectShare, ShownStudy
from metabo.tuner.trials import StudyTrial, broken, counts

SHOWN = 200
"""The most trials in the table, taken from the latest."""
STYLE = """
:root{--paper:#fff;--ink:#1b1f24;--soft:#5b6672;--line:#dde2e8;--mark:#1f6feb;--best:#c2410c;--fill:#eef3fb}
@media(prefers-color-scheme:dark){:root{--paper:#14171b;--ink:#e7eaee;--soft:#9aa5b1;--line:#30363d;--mark:#6cb0ff;
--best:#ff9b5e;--fill:#1d2530}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:62rem;padding:1.5rem 1.1rem 3rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .3rem}h2{font-size:1.12rem;margin:2.2rem 0 .5rem}
p{margin:.4rem 0;max-width:44rem}.soft{color:var(--soft)}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,22rem),1fr));gap:0 2.2rem}
.best{background:var(--fill);border-radius:.5rem;padding:.8rem 1rem;margin:1rem 0}
.best b{font-size:1.35rem}
dl{display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;margin:.4rem 0 0}dl div{display:flex;gap:.4rem}
dt{color:var(--soft)}dd{margin:0;font-variant-numeric:tabular-nums}
svg{width:100%;max-width:34rem;height:auto;display:block;overflow:visible}
svg text{font:12px system-ui,sans-serif;fill:var(--soft)}svg .name{fill:var(--ink)}
.grid{stroke:var(--line);fill:none}.axis,.tick{stroke:var(--soft);fill:none}
.dots circle{fill:var(--mark);fill-opacity:.65}.dots .out{fill:none;stroke:var(--soft)}
.line{stroke:var(--best);stroke-width:2.2;fill:none}
.range{stroke:var(--mark);stroke-opacity:.3;stroke-width:2}.diagonal{stroke:var(--soft);stroke-dasharray:4 4;fill:none}
.bars{display:grid;grid-template-columns:fit-content(50%) 1fr auto;gap:.45rem .8rem;align-items:center}
.bars i{display:block;height:.75rem;background:var(--mark);border-radius:.2rem;min-width:2px}
.bars b{font-weight:400;white-space:nowrap}.bars b,.n{text-align:right;font-variant-numeric:tabular-nums}
.wide{overflow-x:auto;max-height:32rem;border:1px solid var(--line);border-radius:.4rem}
table{border-collapse:collapse;width:100%;font-size:.88rem}
th,td{padding:.32rem .65rem;text-align:left;white-space:nowrap;overflow-wrap:normal;border-bottom:1px solid var(--line)}
td.text{white-space:normal;min-width:9.5rem}td.text:last-child{min-width:14rem}
th{position:sticky;top:0;background:var(--fill);font-weight:600}th.n{text-align:right}
@media(max-width:30rem){svg text{font-size:15px}}
tr.top td{background:var(--fill);font-weight:600}tr:last-child td{border-bottom:0}
"""


def page(name: str, record: StoredRecord, space: Description, trials: Sequence[StudyTrial], facts: ShownStudy) -> str:
    """Return the page of a study. `name` is that of the study, `record` that of its prior."""
    best = best_of(trials, space)
    done = [one for one in trials if one["state"] != "running"]
    studies = several(sum(past["studies"] for past in record["past"]), "past study", "past studies")
    learned = f"{record['spec']['method']}, learned from {studies}"
    body = [
        f"<h1>{escape(name)}</h1>",
        f"<p class='soft'>{'Maximise' if space.maximise else 'Minimise'} {escape(space.outcome)} · "
        f"{counts(trials)}{escape(listing.infeasible(trials, space))} · {escape(learned)} · "
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC</p>",
        _best(best, space),
        "<div class='pair'>",
        _figure(
            "Best so far",
            charts.best_so_far(
                [(one["number"], one["outcome"]) for one in done],
                facts.best,
                space.outcome,
                space.log,
                [one["number"] for one in done if broken(one, space)],
            ),
            "Each dot is a finished trial, the line is the best outcome up to it. Failed trials have no dot."
            + (" A ring breaks a constraint, and is never the best." if space.constraints else ""),
        )
        if best
        else "<section><h2>Best so far</h2><p>No "
        f"{'feasible ' if space.constraints else ''}trial has an outcome yet.</p></section>",
        _predictions(facts, space),
        "</div>",
        _parts(facts),
        _trials(trials, space, best),
        _past([account for past in record["past"] for account in past["accounts"]], record["remarks"]),
    ]
    head = (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{escape(name)} · metabo</title>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<style>{STYLE}</style></head>"
    )
    return f"{head}<body>{''.join(body)}</body></html>\n"


def _best(best: StudyTrial | None, space: Description) -> str:
    if best is None or best["outcome"] is None:
        return ""
    values = "".join(
        f"<div><dt>{escape(key)}</dt><dd>{value}</dd></div>"
        for key, value in _cells(best["parameters"], space)
        if value
    )
    return (
        f"<div class='best'>Best {escape(space.outcome)}: <b>{best['outcome']:.6g}</b> "
        f"<span class='soft'>in trial {best['number']}</span><dl>{values}</dl></div>"
    )


def _figure(title: str, drawn: str, said: str) -> str:
    return f"<section><h2>{title}</h2>{drawn}<p class='soft'>{said}</p></section>"


def _predictions(facts: ShownStudy, space: Description) -> str:
    if not facts.compared:
        return (
            "<section><h2>Predicted against observed</h2><p>Predictions are compared once five trials have outcomes "
            "that differ.</p></section>"
        )
    inside = sum(one.low <= one.outcome <= one.high for one in facts.compared)
    said = (
        f"Each trial is predicted from all others; {inside} of {len(facts.compared)} outcomes lie in the central 90 % "
        "(the vertical lines). Dots near the dashed line are predicted well."
    )
    drawn = charts.predicted_against_observed(facts.compared, space.outcome, space.log)
    return _figure("Predicted against observed", drawn, said)


def _parts(facts: ShownStudy) -> str:
    if not facts.parts:
        return "<h2>Which parameters matter</h2><p>The model needs five trials with outcomes that differ.</p>"
    source = "past studies and this one" if facts.with_past else "this study's trials"
    return (
        f"<h2>Which parameters matter</h2><p class='soft'>Share of the variation that the model predicts over the space"
        f" (from {source}) which goes with the parameter alone or together with others. Shares may add up to more than "
        f"100 %; they are rough while trials are few.</p><div class='bars'>{''.join(map(_bar, facts.parts))}</div>"
    )


def _bar(part: EffectShare) -> str:
    return (
        f"<span>{escape(part.name)}</span><span><i style='width:{100 * part.share:.1f}%'></i></span>"
        f"<b>{100 * part.share:.0f} %</b>"
    )


def _trials(trials: Sequence[StudyTrial], space: Description, best: StudyTrial | None) -> str:
    if not trials:
        return ""
    shown = list(trials)[-SHOWN:]
    measured = [one.name for one in space.constraints]
    head = ["trial", space.outcome, "state", *measured, *(field.name for field in space.fields)]
    rows = []
    for one in reversed(shown):
        outcome = "" if one["outcome"] is None else f"{one['outcome']:.6g}"
        state = one["state"]
        if "claim" in one:
            state += f" since {one['claim']['at'][:16].replace('T', ' ')}, {one['claim']['by']}"
        if breaks := broken(one, space):
            state += f", breaks {', '.join(breaks)}"
        values = one.get("constraints", {})
        cells = [
            str(one["number"]),
            outcome,
            escape(state),
            *(f"{values[name]:.6g}" if name in values else "" for name in measured),
            *(cell for _, cell in _cells(one["parameters"], space)),
        ]
        rows.append((cells, best is not None and one["number"] == best["number"]))
    more = f"<p class='soft'>The latest {SHOWN} of {len(trials)}.</p>" if len(trials) > SHOWN else ""
    return f"<h2>Trials</h2>{more}{_table(head, rows, numeric=(0, 1, *range(3, 3 + len(measured))), text=(2,))}"


def _past(accounts: Sequence[StudyAccount], remarks: Sequence[str]) -> str:
    """Return what each past study contributed, and the remarks made when the prior was learned."""
    parts = []
    if accounts:
        rows = [
            [
                escape(one["study"]),
                str(one["read"]),
                str(one["used"]),
                str(one["failed"]),
                escape("; ".join(_said(one))),
            ]
            for one in accounts
        ]
        rows = [(cells, False) for cells in rows]
        head = ["study", "rows read", "used", "of these failed", "left out, and what was done"]
        parts.append(f"<h2>Past studies</h2>{_table(head, rows, numeric=(1, 2, 3), text=(4,))}")
    if remarks:
        parts.append(f"<h2>Remarks on the past</h2><ul>{''.join(f'<li>{escape(one)}</li>' for one in remarks)}</ul>")
    return "".join(parts)


def _said(account: StudyAccount) -> list[str]:
    return [*(f"{len(one['rows'])}: {one['reason']}" for one in account["dropped"]), *account["notes"]]


def _cells(configuration: Configuration, space: Description) -> list[tuple[str, str]]:
    """Return each parameter with its value as escaped text; floats have six digits."""
    values = [(field.name, configuration.get(field.name), field) for field in space.fields]
    return [
        (name, f"{value:.6g}" if isinstance(value, float) and not field.choices else escape(field.written(value)))
        for name, value, field in values
    ]


def _table(
    head: Sequence[str], rows: Iterable[tuple[Sequence[str], bool]], numeric: Sequence[int], text: Sequence[int] = ()
) -> str:
    """Lay out cells that are already escaped, under a head that is not. Each row says whether it is highlighted."""
    kinds = ["n" if place in numeric else "text" if place in text else "" for place in range(len(head))]
    top = "".join(f"<th class='{kind}'>{escape(cell)}</th>" for kind, cell in zip(kinds, head, strict=True))
    lines = [
        ("<tr class='top'>" if out else "<tr>")
        + "".join(f"<td class='{kind}'>{cell}</td>" for kind, cell in zip(kinds, cells, strict=True))
        + "</tr>"
        for cells, out in rows
    ]
    return f"<div class='wide'><table><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"

"""The command: every study runs with the smoke sizes and leaves its tables and a sidecar; drawings take them."""

import json

import pandas as pd
import pytest
from matplotlib.figure import Figure

from metabo.papers.engine.studies import files as tables
from metabo.papers.hyperbo.figures import studies as drawings
from metabo.papers.hyperbo.figures import transfer as transfer_drawings
from metabo.papers.hyperbo.studies import summaries
from metabo.plan import config, registry
from metabo.plan.typed import plain

# Their tables take three seconds to a minute, and nothing in the fast set reads them.
SLOW = ("cmbo_timing", "complexity", "mphd_asymptotics", "mphd_divergence", "mphd_lemma1", "mphd_single", "transfer")


@pytest.mark.parametrize(
    "study", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in registry.studies()]
)
def test_the_stage_writes_tables_and_a_sidecar(made, smoke, study):
    path = made(study)
    frames, sidecar = tables.read(path), json.loads(path.with_suffix(".json").read_text())
    assert sidecar["stage"] == "study" and sidecar["spec"] == plain(config.study_spec(smoke, study))
    assert sidecar["rows"] == {name: len(frame) for name, frame in frames.items()}


def panels(figure: Figure) -> list[str]:
    assert isinstance(figure, Figure)
    return [ax.get_title() for ax in figure.axes if ax.axison]


def test_landscapes_are_drawn_with_their_minima(made):
    curve = tables.read(made("landscapes"))["curve"]
    figure = drawings.landscape_panels(curve.assign(nll_scaled=curve["nll"]), "T")
    assert [ax.get_xlabel() for ax in figure.axes] == ["constant", "lengthscale", "amplitude"]
    assert [ax.get_xscale() for ax in figure.axes] == ["linear", "log", "log"]
    own = curve[curve["parameter"] == "constant"]
    dots = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert dots[0].get_xdata()[0] == own["x"].iloc[own["ekl"].argmin()]


def test_estimates_are_drawn_in_six_panels(made):
    frames = {name: frame[frame["functions"] == 10] for name, frame in tables.read(made("estimates")).items()}
    shown = frames["marginal"][frames["marginal"]["draw"] == 0]
    titles = panels(drawings.estimate_panels(frames["training"], shown, frames["test"], "T"))
    assert titles[:3] == ["10 training functions", "prior", "posterior, 1 observation"] and len(titles) == 6


@pytest.mark.slow
def test_transfer_is_drawn_while_it_trains_and_in_comparison(made):
    frames = tables.read(made("transfer"))
    shown = [frames[name] for name in ("function", "band", "sample")]
    priors = ["prior, step 0", "prior, step 2", "prior, step 10"]
    assert panels(transfer_drawings.pretraining_panels(*shown, "T"))[:3] == priors
    compared = panels(transfer_drawings.comparison_panels(*shown, "T"))
    assert compared[0] == "prior, ground truth" and compared[-1] == "posterior, single-task"
    assert set(summaries.losses(frames["loss"])["metric"]) >= set(summaries.ORDERS)


def test_the_gap_is_drawn_from_its_reference(made):
    frames = tables.read(made("training_losses"))
    figure = drawings.gap_panels(frames["loss"], frames["difference"], "T")
    flat = figure.axes[1].lines[0].get_ydata()
    assert abs(pd.Series(flat)).max() < 1e-8

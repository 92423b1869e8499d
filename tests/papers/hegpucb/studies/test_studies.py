"""Studies of HE-GP-UCB: their tables at toy size, the settings of the profiles, sizes of the paper, and period fits."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from metabo.errors import ConfigError, NumericsError
from metabo.papers.engine.studies import files as tables
from metabo.papers.hegpucb import problems
from metabo.papers.hegpucb.studies import bands, fits, robust, sensitivity
from metabo.papers.hegpucb.studies import runs as hegpucb_runs
from metabo.papers.hegpucb.studies.profiles import BESIDE, COMPARED, case, execute, run_table, simple_regret
from metabo.plan import config
from tests import stage_runs

ROOT = Path(__file__).parents[4]
SMOKE = stage_runs.smoke().sizes["studies"]["hegpucb_runs"]
SIZES, SEEDS = SMOKE["problems"]["lengthscale"], SMOKE["seeds"]["lengthscale"]
"""Those of the smoke run everywhere, so that one compiled program serves all tests of a problem."""


@pytest.fixture(scope="module")
def frames(made):
    return tables.read(made("hegpucb_runs"))


def test_protocol_of_the_paper_at_the_default_scale():
    """§7 (G19)."""
    studies = config.load(ROOT).sizes["studies"]
    runs = studies["hegpucb_runs"]
    assert runs["delta"] == studies["hegpucb_robust"]["delta"] == studies["hegpucb_sensitivity"]["delta"] == 0.1
    assert runs["seeds"] == {"lengthscale": 50, "period": 50, "decomposition": 100, "mean": 50}
    sizes = {name: (own["iterations"], own["initial"]) for name, own in runs["problems"].items()}
    assert {name: t for name, (t, _) in sizes.items()} == dict.fromkeys(sizes, 50) | {"mean": 100}
    assert sizes["lengthscale"][1] == 3 and sizes["period"][1] == 5
    assert studies["hegpucb_sensitivity"]["noise"][0] == runs["noise"] == studies["hegpucb_robust"]["noise"]
    assert (
        studies["hegpucb_sensitivity"]["beta"][0] == runs["beta"] and studies["hegpucb_robust"]["norm"] == runs["norm"]
    )
    assert studies["hegpucb_sensitivity"]["problems"] == runs["problems"]


def test_every_run_is_there_and_its_regrets_belong_together(frames, smoke):
    run, spec = frames["run"], smoke.sizes["studies"]["hegpucb_runs"]
    expected = sum(
        3 * len((*COMPARED[name], *BESIDE[name])) * spec["seeds"][name] * own["iterations"]
        for name, own in spec["problems"].items()
    )
    assert len(run) == expected and set(run["profile"]) == {"figure", "plain", "successor"}
    for _, own in run.groupby(["problem", "profile", "method", "seed"]):
        np.testing.assert_allclose(own["regret"].cumsum(), own["cumulative"])
        simple = own["simple"].to_numpy()
        assert (np.diff(simple) <= 0).all() and (simple <= np.minimum.accumulate(own["regret"]) + 1e-12).all()
        alive = own["alive"].to_numpy()
        dropped = -np.diff(alive, prepend=alive[0] + own["rejected"].iloc[0])
        np.testing.assert_array_equal(dropped, own["rejected"].astype(int))
    assert (run["regret"] >= 0).all() and not run.loc[run["method"] != "he_gp_ucb", "rejected"].any()
    assert (run.loc[run["method"] == "gp_ucb", "u"] == run.loc[run["method"] == "gp_ucb", "truth"]).all()
    assert (run.loc[run["problem"] == "lengthscale", "truth"] == -1).all()
    assert run.loc[run["problem"] == "mean"].groupby("seed")["truth"].nunique().max() == 1
    for (name, profile), own in frames["candidate"].groupby(["problem", "profile"]):
        assert own["label"].tolist() == problems.labels(name, "code" if profile == "successor" else "paper")


def test_methods_share_functions_and_first_points():
    sizes = SMOKE["problems"]["mean"]
    trace = execute(case("mean", sizes, SEEDS, 0), ("mle", "he_gp_ucb"), SEEDS, 0, "test")
    np.testing.assert_array_equal(trace.initial[0], trace.initial[1])
    other = execute(case("mean", sizes, SEEDS, 1), ("mle",), SEEDS, 1, "test")
    assert not np.array_equal(other.y, trace.y[:1])


def test_simple_regret_counts_the_initial_points():
    one = case("lengthscale", SIZES, SEEDS, 0)
    trace = execute(one, ("uniform",), SEEDS, 0, "test")
    f = np.asarray(one.problem.f)
    first = trace.initial.shape[2]
    for seed in range(SEEDS):
        seen = f[[*trace.initial[0, seed], *trace.point[0, seed]]]
        best = np.maximum.accumulate(seen)[first:]
        np.testing.assert_allclose(simple_regret(trace, f)[0, seed], f.max() - best)
    assert (f[trace.initial[0]].max(axis=1) > f[trace.point[0, :, 0]]).any(), "else the initial points say nothing"


def test_profiles():
    plain = [case(name, SIZES | {"points": [5] * d}, 2, 0) for name, d in
             (("lengthscale", 1), ("period", 1), ("decomposition", 3), ("mean", 1))]  # fmt: skip
    assert [float(c.problem.noise_std) for c in plain] == pytest.approx([0, 0, 0.1, 0.1])
    assert [c.settings.beta for c in plain] == ["frequentist"] * 3 + ["bayes_finite"]
    assert {(c.settings.R, c.settings.B, c.settings.delta, c.settings.xi) for c in plain} == {(0.1, 1.0, 0.1, "pi2")}
    scaled = [case(name, SIZES, 2, 0, profile="figure", beta=1.5, norm=7.0) for name in ("lengthscale", "mean")]
    assert {(c.settings.R, c.settings.B, c.settings.delta, c.settings.beta) for c in scaled} == {
        (0.1, 1.5, 0.1, "constant")
    }
    later = [case(name, SIZES, 2, 0, profile="successor") for name in ("lengthscale", "mean")]
    assert [c.settings.beta for c in later] == ["frequentist_printed", "bayes_successor"]
    for one in later:
        settings = one.settings
        assert (settings.R, settings.noise, settings.delta, settings.B) == (1e-4, 1e-2, 0.01, 1.0)
        assert settings.standardise and settings.predictive and one.problem.noise_std == 0
    np.testing.assert_allclose(later[0].problem.scales, problems.LENGTHSCALES["code"])
    changed = case("mean", SIZES, 2, 0, noise=0.04, delta=0.3, norm=2.0, standardise=True, height=1.0).settings
    assert (changed.R, changed.delta, changed.B, changed.standardise) == (0.2, 0.3, 2.0, True)
    with pytest.raises(ConfigError, match="unknown profile 'ours'"):
        case("mean", SIZES, 2, 0, profile="ours")
    with pytest.raises(ConfigError, match="noise level 'R' is 0"):
        case("mean", SIZES, 2, 0, noise=0.0)


def test_an_unsound_run_ends_the_study():
    one = case("lengthscale", SIZES, SEEDS, 0)
    kernels = one.problem.kernels.at[2].set(-1.0)  # no covariance at all
    with pytest.raises(NumericsError, match=r"here: the posterior of mle, seed 0, is not finite from iteration \d"):
        execute(one._replace(problem=one.problem._replace(kernels=kernels)), ("mle",), SEEDS, 0, "here")


def test_a_kept_last_candidate_is_said_aloud(capsys):
    """Errors of 50 where all candidates expect 0.01: one is dropped at every query, until one is left."""
    one = case("lengthscale", SIZES, SEEDS, 0)
    ones = jnp.ones_like(one.problem.kernels)
    problem = one.problem._replace(kernels=ones, f=jnp.zeros(ones.shape[1]), noise_std=50.0)
    one = one._replace(problem=problem, settings=one.settings._replace(R=0.01))
    trace = execute(one, ("he_gp_ucb", "mle"), SEEDS, 0, "here")
    said = capsys.readouterr().out
    assert said.startswith(f"here: he_gp_ucb would have dropped its last candidate in {SEEDS} of {SEEDS} runs; it was")
    assert "mle" not in said
    table = run_table(one, trace, ("he_gp_ucb", "mle")).query("method == 'he_gp_ucb'")
    for _, own in table.groupby("seed"):
        assert own["alive"].tolist() == [4, 3, 2, 1, 1, 1] and own["rejected"].tolist() == [True] * 4 + [False] * 2


def test_the_grid_of_sensitivity_has_every_cell(made, smoke):
    spec = smoke.sizes["studies"]["hegpucb_sensitivity"]
    ending = tables.read(made("hegpucb_sensitivity"))["ending"]
    settings = ["variant", "beta", "noise", "standardise", "predictive", "height", "width"]
    cells = ending.drop_duplicates(["problem", "cell"])
    assert cells.groupby("problem", sort=False)["cell"].count().to_dict() == {
        "lengthscale": 4 + 6 + 3, "period": 4 + 6 + 2, "decomposition": 4 + 6, "mean": 16 + 6,
    }  # fmt: skip
    assert not cells.duplicated(["problem", *settings]).any()
    assert (ending.groupby(["problem", "cell", "method"])["seed"].nunique() == spec["seeds"]).all()
    first = cells[cells["cell"] == 0].set_index("problem")
    assert (first.loc["period", ["beta", "noise", "standardise"]] == [spec["beta"][0], 0.01, 0]).all()
    assert (first.loc["mean", ["beta", "height", "width"]] == [spec["beta"][0], 2.0, 0.04]).all()


@pytest.mark.parametrize("problem", ["lengthscale", "mean"])
def test_every_cell_is_run_with_its_settings(problem, monkeypatch):
    spec = config.load(ROOT).sizes["studies"]["hegpucb_sensitivity"] | {"seed": 0, "seeds": SEEDS}
    spec |= {"problems": {problem: SMOKE["problems"][problem]}}
    given = []
    monkeypatch.setattr(sensitivity, "execute", lambda one, *rest: given.append(one) or execute(one, *rest))
    ending = sensitivity.run(spec)["ending"]
    cells = ending.drop_duplicates("cell").sort_values("cell")
    for cell, one in zip(cells.itertuples(), given, strict=True):
        assert pytest.approx(cell.noise**0.5) == one.settings.R and one.settings.standardise == bool(cell.standardise)
        assert one.settings.predictive == bool(cell.predictive)
        if cell.beta:
            assert (one.settings.beta, one.settings.B) == ("constant", cell.beta)
        else:
            assert one.settings.beta == ("bayes_finite" if problem == "mean" else "frequentist")
            assert one.settings.B == 1.0
        if problem == "mean":
            means = np.asarray(one.problem.means)
            assert means.max() <= 2 * cell.height < means.max() * 1.6
            # The hills cover 20 times their half-width of [0, 1].
            assert (means[0] > 0).mean() == pytest.approx(20 * cell.width, abs=0.2)
        else:
            f = problems.lengthscale_function(np.asarray(one.problem.x), cell.variant)
            np.testing.assert_array_equal(one.problem.f, f)
            assert cell.height == cell.width == 0
    wide = ending.pivot(index="cell", columns=["method", "seed"], values="cumulative").round(9)
    assert (~wide.duplicated()).sum() > len(cells) / 2


def test_robust_runs(made):
    found = tables.read(made("hegpucb_robust"))
    run, function = found["run"], found["function"]
    assert set(run["method"]) == {"he_stable_opt", "stable_opt", "mle_stable_opt"}
    assert ((run["x"] - run["moved"]).abs() <= 0.05 + 1e-9).all() and (run["x"] != run["moved"]).any()
    worst = function.set_index("x")["worst"]
    assert (function["worst"] <= function["value"]).all()
    np.testing.assert_allclose(run["regret"], worst.max() - worst.loc[run["x"]].to_numpy())
    assert (run.loc[run["method"] == "stable_opt", ["u", "v"]] == 4).all(axis=None)
    assert (run.loc[run["method"] != "he_stable_opt", "rejected"] == 0).all()
    assert (run["simple"] <= run["regret"]).all() and set(run["reported"].round(9)) <= set(run["regret"].round(9))


def test_the_reported_point_is_the_first_with_the_highest_bound():
    trace = lambda score, regret: type("T", (), {"score": np.array([[score]]), "regret": np.array([[regret]])})  # noqa: E731
    found = robust.reported(trace([0.1, 0.5, 0.2, 0.5, 0.7], [5.0, 4.0, 3.0, 2.0, 1.0]))
    np.testing.assert_array_equal(found[0, 0], [5, 4, 4, 4, 1])


def test_numbers_of_the_robust_study_matter(smoke):
    """They are those of the run; that every number of a run matters is shown with the runs."""
    spec = smoke.sizes["studies"]["hegpucb_robust"] | {"seed": 0}
    one = robust.robust_case(spec | {"noise": 0.25, "norm": 3.0, "delta": 0.5})
    assert (one.settings.R, one.settings.B, one.settings.delta) == (0.5, 3.0, 0.5)
    near = [robust.robust_case(spec | {"epsilon": e}).problem.neighbours for e in (0.05, 0.2)]
    assert near[0].shape == (41, 5) and near[1].shape == (41, 17)


def test_numbers_of_a_study_of_runs_matter():
    spec = SMOKE | {"seed": 0, "problems": {"lengthscale": SIZES}}
    base = hegpucb_runs.run(spec)["run"]
    changes = {
        "plain": ({"norm": 4.0}, {"noise": 0.3}, {"delta": 0.9}, {"seed": 1}),
        "figure": ({"beta": 4.0}, {"noise": 0.3}),
    }  # fmt: skip
    for profile, change in ((profile, change) for profile, own in changes.items() for change in own):
        found = (base, hegpucb_runs.run(spec | change)["run"])
        pair = [table.loc[table["profile"] == profile, "x"] for table in found]
        assert not np.array_equal(*pair), (profile, change)


def test_a_constant_beta_is_the_printed_form_for_small_noise():
    one = case("lengthscale", SIZES, SEEDS, 0, profile="figure", beta=1.5)
    printed = one._replace(settings=one.settings._replace(beta="frequentist_printed", R=1e-12, noise=0.1))
    constant = one._replace(settings=one.settings._replace(R=1e-12, noise=0.1))
    traces = [execute(given, ("he_gp_ucb", "mle"), SEEDS, 0, "here") for given in (printed, constant)]
    np.testing.assert_array_equal(traces[0].point, traces[1].point)
    np.testing.assert_allclose(traces[1].beta, 1.5)


def test_log_likelihood_of_a_periodic_kernel():
    """Against the density of scipy at the best variance, which no other variance exceeds."""
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 2, 7), rng.normal(size=7)
    (value,), (scale,) = fits.log_likelihood(x, y, np.array([0.7]), np.array([0.4]))
    gram = problems.periodic(x[:, None], 0.7, 0.4) + fits.NUGGET * np.eye(7)
    density = lambda s: multivariate_normal(np.zeros(7), s * gram).logpdf(y)  # noqa: E731
    assert value == pytest.approx(density(scale), rel=1e-8)
    assert value > max(density(1.02 * scale), density(0.98 * scale))


@pytest.mark.parametrize(("piece", "period"), [(0, 1 / 4), (1, 1 / 4), (2, 3 / 14), (3, 2 / 7), (4, 1.0)])
def test_fits_find_the_periods(piece, period):
    ends = [*zip(problems.PIECES[:-1], problems.PIECES[1:], strict=True), (0.0, 2.0)]
    x = np.random.default_rng(piece).uniform(*ends[piece], 20 if piece < 4 else 60)
    found = fits.fit(x, problems.period_function(x[:, None]), 200, 8)
    assert found["period"] == pytest.approx(period, rel=1e-3)
    assert found["margin"] >= 0 if piece == 4 else found["margin"] > 0.5


def test_bands_and_the_pictures_made_of_them():
    grid = np.array([0.0, 0.5])
    found = bands.band(grid, np.array([0.0]), np.array([2.0]), 0.5, noise=1.0, beta=2.0)
    k = np.exp(-0.5)
    np.testing.assert_allclose(found["mean"], [1.0, k])
    half = 2 * np.sqrt([0.5, 1 - k**2 / 2])
    np.testing.assert_allclose(found["high"] - found["mean"], half)
    np.testing.assert_allclose(found["mean"] - found["low"], half)
    example = bands.elimination_example()
    for row in example["outcome"].itertuples():
        at = example["band"][np.isclose(example["band"]["x"], row.x)].set_index("model")
        inside = (at["low"] <= row.y) & (row.y <= at["high"])
        assert inside.tolist() == [True, row.kind == "kept"]
    misfit = bands.misfit_example()
    joined = misfit["band"].merge(misfit["function"], on="x")
    assert joined.loc[joined["value"].idxmax(), "value"] > joined.loc[joined["value"].idxmax(), "high"]

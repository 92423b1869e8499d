"""What is measured: the sections of the benchmark and their cases, with the words of the table."""

from typing import Any

SECTIONS: dict[str, dict[str, Any]] = {
    "adam": {
        "title": "Pre-training: Adam on the NLL, {tasks} tasks x {batch} of {rows} points, MLP {layers}, d = {dim}",
        "unit": "step", "goal_ms": 1.3, "reference": "metabo", "within": {"case": "limit", "at_most": 1.6},
        "cases": {
            "metabo": "metabo, float64",
            "metabo_float32": "metabo, float32",
            "metabo_autodiff": "metabo, automatic Cholesky gradient",
            "metabo_pairs_map": "metabo, {pairs} pairs in one program, in turn",
            "metabo_pairs_vmap": "metabo, {pairs} pairs in one program, vmap",
            "textbook": "textbook: loop over tasks, autodiff",
            "limit": "limit: FLOP at the speed of products, LAPACK",
            "metabo_gpu": "metabo on the GPU, {accelerator_pairs} pairs, vmap",
        },
    },
    "lbfgs": {
        "title": "Pre-training: L-BFGS on the EKL, {matched} matched points, {tasks} tasks, MLP {layers}",
        "unit": "iteration", "goal_ms": None, "reference": "metabo",
        "cases": {
            "metabo": "metabo, float64",
            "metabo_autodiff": "metabo, automatic Cholesky gradient",
            "textbook": "textbook: SciPy L-BFGS-B, autodiff",
            "metabo_gpu": "metabo on the GPU",
        },
    },
    "bo": {
        "title": "BO, fixed prior: {pool} candidates, d = {dim}, budget {budget}",
        "unit": "BO iteration", "goal_ms": 0.06, "reference": "metabo",
        "cases": {
            "metabo": "metabo, PI",
            "metabo_ei": "metabo, EI",
            "textbook": "textbook: full Cholesky each time, PI",
            "botorch": "BoTorch: posterior and log-EI",
            "metabo_gpu": "metabo on the GPU, {accelerator_runs} runs, PI",
        },
    },
    "refit": {
        "title": "BO with a re-fit each iteration: {pool} candidates, d = {dim}, budget {budget}",
        "unit": "BO iteration", "goal_ms": None, "reference": "metabo_stboh",
        "cases": {
            "metabo_stboh": "metabo STBOH, at most {refit_steps} L-BFGS steps",
            "metabo_stbo": "metabo STBO (MLP), at most {refit_steps} steps",
            "textbook": "textbook STBOH: SciPy, recompiles as data grow",
            "botorch": "BoTorch, at most {refit_steps} L-BFGS-B steps",
            "botorch_default": "BoTorch, default fit",
            "metabo_gpu": "metabo STBOH on the GPU, {accelerator_refits} runs",
        },
    },
    "refit_loss": {
        "title": "Loss and gradient of STBOH's re-fit: {fit_points} observations, d = {dim}",
        "unit": "evaluation", "goal_ms": None, "reference": "metabo", "within": {"case": "limit", "at_most": 1.6},
        "cases": {
            "metabo": "metabo",
            "metabo_autodiff": "metabo, automatic Cholesky gradient",
            "limit": "limit: FLOP at the speed of products, LAPACK",
        },
    },
    "mphd_step1": {
        "title": "MPHD step 1: Adam on one domain, {functions} functions x {batch} of {points} points, d = {inputs}",
        "unit": "step", "goal_ms": None, "reference": "metabo",
        "cases": {
            "metabo": "metabo",
            "metabo_widened": "metabo, padded to {widest} inputs",
            "textbook": "textbook: loop over functions, autodiff",
        },
    },
    "mphd_step2": {
        "title": "MPHD step 2: Adam on the prior network, {lengthscales} length-scales",
        "unit": "step", "goal_ms": None, "reference": "metabo",
        "cases": {"metabo": "metabo", "textbook": "textbook: optimiser not compiled"},
    },
    "mphd_map": {
        "title": "MPHD, BO with a MAP fit each iteration: {points} candidates, d = {inputs}, budget {budget}",
        "unit": "BO iteration", "goal_ms": None, "reference": "metabo",
        "cases": {
            "metabo": "metabo, {map_runs} runs side by side, {map_steps} L-BFGS steps",
            "metabo_single": "metabo, one run",
            "textbook": "textbook: SciPy, recompiles as data grow",
            "metabo_gpu": "metabo on the GPU, {accelerator_maps} runs, {map_steps} L-BFGS steps",
        },
    },
    "tables_load": {
        "title": "Reading a table in LCBench's format: {data_sets} files x {configurations} rows x {epochs} epochs",
        "unit": "archive", "goal_ms": 5000.0, "reference": "metabo",
        "cases": {
            "metabo": "metabo: the loader, with its checks",
            "textbook": "textbook: np.load, no check",
        },
    },
    "tables_bo": {
        "title": "BO, fixed prior, on each of {data_sets} data sets: {configurations} candidates, budget {budget}",
        "unit": "data set", "goal_ms": 285.0, "reference": "metabo",  # 35 of them in ten seconds
        "cases": {
            "metabo": "metabo, PI",
            "textbook": "textbook: full Cholesky each time, PI",
        },
    },
    "gp_fit": {
        "title": "GP fitted to {fit_points} points by maximum likelihood, d = {dim}",
        "unit": "fit", "goal_ms": None, "reference": "metabo",
        "cases": {
            "metabo": "metabo.GP.fit",
            "textbook": "textbook: SciPy L-BFGS-B, autodiff",
            "botorch": "BoTorch: SingleTaskGP, fit_gpytorch_mll",
            "sklearn": "scikit-learn: GaussianProcessRegressor.fit",
        },
    },
    "gp_fit_large": {
        "title": "GP fitted to {fit_points_large} points by maximum likelihood, d = {dim}",
        "unit": "fit", "goal_ms": None, "reference": "metabo",
        "cases": {
            "metabo": "metabo.GP.fit",
            "textbook": "textbook: SciPy L-BFGS-B, autodiff",
            "botorch": "BoTorch: SingleTaskGP, fit_gpytorch_mll",
            "sklearn": "scikit-learn: GaussianProcessRegressor.fit",
        },
    },
    "gp_posterior": {
        "title": "GP conditioned on {fit_points} points, mean and variance at {pool} candidates, d = {dim}",
        "unit": "prediction", "goal_ms": None, "reference": "metabo",
        "cases": {
            "metabo": "metabo, one compiled program",
            "metabo_api": "metabo.GP: posterior and predict",
            "textbook": "textbook: Cholesky, SciPy",
            "botorch": "BoTorch: posterior of a SingleTaskGP",
            "sklearn": "scikit-learn: fit without optimiser, predict",
        },
    },
    "gp_log_ei": {
        "title": "Expected improvement at {pool} candidates after {fit_points} points, d = {dim}",
        "unit": "scoring", "goal_ms": None, "reference": "metabo",
        "cases": {
            "metabo": "metabo: EI, factor known",
            "textbook": "textbook: log-EI, conditioned anew",
            "botorch": "BoTorch: LogExpectedImprovement, factor known",
        },
    },
    "ask_few": {
        "title": "Next configuration of a mixed space of 7 parameters after {told_few} trials",
        "unit": "ask, CPU time", "goal_ms": None, "reference": "optuna_tpe",
        "cases": {
            "metabo": "metabo: Study.suggest, learned prior",
            "optuna_tpe": "Optuna: TPESampler",
            "optuna_gp": "Optuna: GPSampler",
        },
    },
    "ask_many": {
        "title": "Next configuration of a mixed space of 7 parameters after {told_many} trials",
        "unit": "ask, CPU time", "goal_ms": None, "reference": "optuna_tpe",
        "cases": {
            "metabo": "metabo: Study.suggest, learned prior",
            "optuna_tpe": "Optuna: TPESampler",
            "optuna_gp": "Optuna: GPSampler",
        },
    },
    "growth_tasks": {
        "title": "Growth of an Adam step with the tasks {growth_tasks}: {batch} points, MLP {layers}",
        "unit": "step", "goal_ms": None, "reference": "metabo", "sizes": "growth_tasks",
        "cases": {"metabo": "metabo", "textbook": "textbook: loop over tasks, autodiff"},
    },
    "growth_points": {
        "title": "Growth of an Adam step with the points of a task {growth_points}: {tasks} tasks, MLP {layers}",
        "unit": "step", "goal_ms": None, "reference": "metabo", "sizes": "growth_points",
        "cases": {"metabo": "metabo", "textbook": "textbook: loop over tasks, autodiff"},
    },
    "growth_candidates": {
        "title": "Growth of a BO iteration, fixed prior, with the candidates {growth_candidates}: budget {budget}",
        "unit": "BO iteration", "goal_ms": None, "reference": "metabo", "sizes": "growth_candidates",
        "cases": {"metabo": "metabo, PI", "textbook": "textbook: full Cholesky each time, PI"},
    },
    "growth_observations": {
        "title": "Growth of a BO iteration, fixed prior, with the budget {growth_observations}: {pool} candidates",
        "unit": "BO iteration", "goal_ms": None, "reference": "metabo", "sizes": "growth_observations",
        "cases": {"metabo": "metabo, PI", "textbook": "textbook: full Cholesky each time, PI"},
    },
}  # fmt: skip
"""`unit`: what a time is for; `goal_ms`: of the `reference`, whose ratio is 1; `within`: the goal of its time over that
of a case; `sizes`: the field of `Sizes` that a growth goes through."""

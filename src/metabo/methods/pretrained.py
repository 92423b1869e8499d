"""Methods that pre-train a GP on past tasks and then run BO with it fixed: H-NLL, H-EKL, FSBO, ABLR."""

VARIANTS = {
    "h_nll": {
        "label": "H-NLL", "colour": "#d62728", "acquisition": "pi", "needs_matched": False,
        "model": {"mean": "linear_mlp", "kernel": "matern52", "features": [32, 32]},
        "pretrain": {"objective": "nll", "optimizer": "adam", "learning_rate": 1e-3, "steps": 50000, "batch": 50},
        "policy": {"pi_threshold": 0.1},
    },
    "h_ekl": {
        "label": "H-EKL", "colour": "#6a3d9a", "acquisition": "pi", "needs_matched": True,
        "model": {"mean": "linear_mlp", "kernel": "matern52", "features": [32, 32]},
        "pretrain": {"objective": "ekl", "optimizer": "lbfgs", "steps": 100, "matched_points": 0},
        "policy": {"pi_threshold": 0.1},
    },
    "fsbo": {
        "label": "FSBO", "colour": "#ff7f0e", "acquisition": "pi", "needs_matched": False,
        "model": {"mean": "zero", "kernel": "matern52", "features": [32, 32]},
        "pretrain": {"objective": "nll", "optimizer": "adam", "learning_rate": 1e-3, "steps": 50000, "batch": 50},
        "policy": {"pi_threshold": 0.1},
    },
    "ablr": {
        "label": "ABLR", "colour": "#17becf", "acquisition": "pi", "needs_matched": False,
        "model": {"mean": "zero", "kernel": "dot_product", "features": [32, 32]},
        "pretrain": {"objective": "nll", "optimizer": "adam", "learning_rate": 1e-3, "steps": 50000, "batch": 50},
        "policy": {"pi_threshold": 0.1},
    },
}  # fmt: skip

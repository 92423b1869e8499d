"""Methods that fit a GP to the test task alone, at every iteration: STBO, STBOH."""

VARIANTS = {
    "stbo": {
        "label": "STBO", "colour": "#7f7f7f", "acquisition": "pi", "needs_matched": False,
        "model": {"mean": "linear_mlp", "kernel": "matern52", "features": [32, 32]},
        "pretrain": {},
        "policy": {"pi_threshold": 0.1, "refit": "stbo", "refit_steps": 100},
    },
    "stboh": {
        "label": "STBOH", "colour": "#2ca02c", "acquisition": "ucb18", "needs_matched": False,
        "model": {"mean": "constant", "kernel": "matern52", "features": []},
        "pretrain": {},
        "policy": {"refit": "stboh", "refit_steps": 100},
    },
}  # fmt: skip

"""Random search: uniform over the candidates, with replacement (hyperbo §3, "Rand")."""

VARIANTS = {
    "rand": {
        "label": "Rand", "colour": "#1f77b4", "acquisition": "uniform", "needs_matched": False,
        "model": {}, "pretrain": {}, "policy": {},
    },
}  # fmt: skip

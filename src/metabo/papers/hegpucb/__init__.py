"""HE-GP-UCB (2024): claims, theory, studies, metrics and figures."""

"""cm-BO (2025): claims, theory, studies, metrics and figures."""

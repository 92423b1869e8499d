"""One's own tuning history: read it, learn a prior from it, ask for configurations and tell what came out."""

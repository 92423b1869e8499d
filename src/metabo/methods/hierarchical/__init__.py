"""MPHD: a network from the context of a search space to a hierarchical GP prior."""

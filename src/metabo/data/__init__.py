"""Data sources: one module each, with a literal table ``BENCHMARKS`` and a function ``load``."""

"""Data sources: one module each, registering its benchmarks in a literal `BENCHMARKS` table."""

"""The benchmark's modules are scripts beside each other, not a package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

"""What cm-BO prints, to set beside ours; sources: papers/README.md."""

from pathlib import Path

import pandas as pd

from metabo.papers.engine import printed


def table(name: str) -> pd.DataFrame:
    """Return printed numbers, e.g. "timing": kind, measure, low, high. Raises ConfigError, which lists the names."""
    return printed.read(Path(__file__).parent, name)

"""A description of this machine, for records that say where a number was measured."""

import platform
from pathlib import Path


def cpu_model() -> str:
    """Return the name of the processor as the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()

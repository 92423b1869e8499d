"""Wait for the disk where names change. (`records.files` has a copy of its own: an edit there would make every recorded
result one of other code.)"""

import os
from pathlib import Path


def to_disk(folder: Path) -> None:
    """Wait until the names in a folder are on the disk. Raises OSError for a folder that cannot be read."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

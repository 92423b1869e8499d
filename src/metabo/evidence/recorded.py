"""The verdicts among recorded results, for the report: those of folders that are as they were added, and a line on each
other folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from metabo.errors import DataError
from metabo.evidence import earlier, manifest
from metabo.evidence.manifest import BACK, Manifest


class RecordedVerdicts(NamedTuple):
    """The tables of claims of one scale by paper, the newest first, the folder that has them, and its manifest."""

    folder: Path
    manifest: Manifest
    tables: Mapping[str, Sequence[Path]]


class RecordedEvidence(NamedTuple):
    """The folders with recorded verdicts, and, for each folder that is not used, one line that says why."""

    folders: list[RecordedVerdicts]
    refused: list[str]


def verdicts(root: Path) -> RecordedEvidence:
    """Return the recorded verdicts below `root`, after comparing them with the manifests; nothing if there is no such
    folder or it is empty. A folder that is damaged, edited, of an older schema, or no evidence raises no error but is
    listed as refused."""
    found = RecordedEvidence([], [])
    folders = manifest.folders(root)
    if not folders and root.exists() and not (root.is_dir() and not any(root.iterdir())):
        found.refused.append(f"{root}: no recorded results, it has no {manifest.NAME}; add a run (metabo evidence add)")
    for folder in folders:
        try:
            listed = manifest.checked(folder)
            found.folders.append(RecordedVerdicts(folder, listed, earlier.tables(folder)))
        except DataError as error:
            found.refused.append(str(error))
        except OSError as error:
            found.refused.append(f"{error.filename or folder}: cannot be read ({error.strerror}); {BACK}")
    return found

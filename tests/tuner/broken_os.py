"""The operating system below a study's folder, made to fail: every call is counted, and at a chosen one it refuses, or
the process dies, or the power goes and leaves on the disk what was waited for. It replaces functions of `os`, so only a
child that ends with it may use it.
"""

import builtins
import errno
import fcntl
import io
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

NAMES = ("unlink", "mkdir", "rmdir", "chmod", "stat", "lstat", "scandir")
CALLS = ("open", "close", "fsync", "replace", "truncate", *NAMES)
WRITES = ("create", "write", "fsync", "replace", "mkdir")
"""Calls that a full disk refuses."""
CHANGES = (*WRITES, "unlink", "rmdir", "chmod", "flock", "truncate")
"""Calls that change something: before and after any other one, a process that dies leaves the same."""
CUTS = ("power cut", "power cut, names kept", "power cut, half kept")
TRUE = {name: getattr(os, name) for name in CALLS}
OPEN = io.open


def kinds(call: str) -> list[str]:
    """Return the faults that may strike at a call."""
    found = ["EIO"]
    if call in CHANGES:
        found += ["EIO after", "kill before", "kill after", *CUTS]
    if call in WRITES:
        found += ["ENOSPC", "disk full"]
    return [*found, "torn"] if call == "write" else found


class Disk:
    """What of a folder is on the disk: the contents of files, and the names in folders, that were waited for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.contents: dict[int, bytes] = {}
        self.names: dict[int, dict[str, tuple[int, bool]]] = {}
        for place in [folder, *folder.rglob("*")]:
            self.keep(place)

    def keep(self, place: Path) -> None:
        """Take a file or the names in a folder as they are now."""
        found = TRUE["stat"](place)
        inode = found.st_ino
        if stat.S_ISDIR(found.st_mode):
            with TRUE["scandir"](place) as entries:
                self.names[inode] = {entry.name: (entry.inode(), entry.is_dir()) for entry in entries}
        else:
            with OPEN(place, "rb") as stream:
                self.contents[inode] = stream.read()

    def forget(self, inode: int) -> None:
        """Take what was just made for what is not on the disk; its number may be that of something deleted."""
        self.contents.pop(inode, None)
        self.names.pop(inode, None)

    def leave(self, to: Path, names_kept: bool, half_kept: bool) -> None:
        """Write what is left after the power was cut. `names_kept`: all names had reached the disk by themselves;
        `half_kept`: so had half of what was added to each file, and its length, with zeros for the other half."""
        places = [self.folder, *self.folder.rglob("*")]
        for place in places if names_kept else ():
            if place.is_dir():
                self.keep(place)
        for place in places if half_kept else ():
            inode = TRUE["stat"](place).st_ino
            if inode in self.contents and place.is_file():
                with OPEN(place, "rb") as stream:
                    now = stream.read()
                kept = (len(self.contents[inode]) + len(now)) // 2
                if now.startswith(self.contents[inode]):
                    self.contents[inode] = now[:kept] + b"\0" * max(len(now) - kept - 1, 0) + now[kept:][-1:]
        self._leave(TRUE["stat"](self.folder).st_ino, to)

    def _leave(self, inode: int, to: Path) -> None:
        to.mkdir()
        for name, (inner, is_folder) in self.names.get(inode, {}).items():
            if is_folder:
                self._leave(inner, to / name)
            else:
                (to / name).write_bytes(self.contents.get(inner, b""))


class Faults:
    """Counts calls, and does at the one with the number `at` what `kind` says."""

    def __init__(self, folder: Path, kind: str, at: int) -> None:
        self.folder, self.kind, self.at = folder, kind, at
        self.disk = Disk(folder)
        self.seen: list[str] = []
        self.paths: dict[int, Path] = {}

    def install(self) -> None:
        """Replace the functions; there is no way back."""
        for name in CALLS:
            setattr(os, name, self._counted(name, TRUE[name]))
        fcntl.flock = self._counted("flock", fcntl.flock)
        io.open = builtins.open = self._open

    def call(self, name: str, true: Callable, *given, **options):
        """Make a call, or what becomes of it. A write is torn in half where the process or the power ends."""
        self.seen.append(name)
        here, kind = len(self.seen) == self.at, self.kind
        if kind == "disk full" and len(self.seen) >= self.at > 0 and name in WRITES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if not here:
            return true(*given, **options)
        if kind in ("ENOSPC", "EIO"):
            if name == "close":  # closed it is, whatever the call says
                true(*given, **options)
            raise OSError(getattr(errno, kind), os.strerror(getattr(errno, kind)))
        if kind == "kill before":
            os._exit(9)
        if kind == "torn" and name == "write":
            true(bytes(given[0])[: len(given[0]) // 2])
            os._exit(9)
        true(*given, **options)
        if kind == "EIO after":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if kind.startswith("power cut"):
            self._cut()
        os._exit(9)

    def _cut(self) -> None:
        for name, true in TRUE.items():
            setattr(os, name, true)
        io.open = builtins.open = OPEN
        left = self.folder.with_name("left")
        self.disk.leave(left, "names kept" in self.kind, "half kept" in self.kind)
        shutil.rmtree(self.folder)
        os.rename(left, self.folder)

    def _counted(self, name: str, true: Callable) -> Callable:
        def called(*given, **options):
            shown = "create" if name == "open" and given[1] & os.O_CREAT else name
            return self.call(shown, noted, *given, **options)

        def noted(*given, **options):
            found = true(*given, **options)
            if name == "open":
                self.paths[found] = Path(given[0])
                if given[1] & os.O_EXCL:
                    self.disk.forget(os.fstat(found).st_ino)
            elif name == "mkdir":
                self.disk.forget(TRUE["stat"](given[0]).st_ino)
            elif name == "fsync":
                self.disk.keep(self.paths[given[0]])
            return found

        return called

    def _open(self, file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
        """What `open` does, on a file whose calls are counted."""
        name, plain = "create" if mode[0] in "wxa" else "open", mode.replace("b", "").replace("t", "")
        raw = self.call(name, _Raw, file, plain, closefd, opener)
        raw.faults = self
        self.paths[raw.fileno()] = Path(file)
        wrap = io.BufferedRandom if "+" in mode else io.BufferedReader if mode[0] == "r" else io.BufferedWriter
        if buffering == 0:
            return raw
        return wrap(raw) if "b" in mode else io.TextIOWrapper(wrap(raw), encoding, errors, newline)


class _Raw(io.FileIO):
    """A file whose calls are counted."""

    faults: Faults | None = None

    def write(self, data):
        return self.faults.call("write", super().write, data) if self.faults else super().write(data)

    def readinto(self, buffer):
        return self.faults.call("read", super().readinto, buffer) if self.faults else super().readinto(buffer)

    def readall(self):
        return self.faults.call("read", super().readall) if self.faults else super().readall()

    def close(self):
        if self.faults and not self.closed:
            return self.faults.call("close", super().close)
        return super().close()

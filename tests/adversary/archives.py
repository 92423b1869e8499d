"""Archives that are damaged or hostile, through `metabo.data.archives.read_members`.

What is taken must be what was put in. The one damage that no reader can see is left out: a plain tar has no checksum of
its contents.
"""

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import time
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from metabo.data.archives import read_members
from tests.adversary.judge import Attempt

ZIPS = {
    "zip": zipfile.ZIP_DEFLATED,
    "zip-0": zipfile.ZIP_STORED,
    "zip-bz2": zipfile.ZIP_BZIP2,
    "zip-xz": zipfile.ZIP_LZMA,
}
TARS: dict[str, Callable[[bytes], bytes]] = {
    "tar": bytes,
    "tar.gz": lambda content: gzip.compress(content, 6, mtime=0),
    "tar.bz2": bz2.compress,
    "tar.xz": lzma.compress,
}
KINDS = (*ZIPS, *TARS)
SQUEEZED = tuple(TARS)[1:]
WANTED = ("a.json", "b.csv")
BLOCK = 512
SLOW = 4.0
"""Seconds of CPU in which a bomb must be refused: to read all that it holds takes longer."""
Members = list[tuple[str, bytes]]
BAD_NAMES = (
    "../evil",
    "a/../../evil",
    "/etc/evil",
    "a\\..\\evil",
    "C:/evil",
    "c:evil",
    "..",
    "\\\\host\\evil",
    "./../x",
)
ODD_NAMES = ("a\nb", "\x1b[2J", "x" * 5000, "=1+1", "\u202eabc", "日本", "{0}", "%s", " ", "d/" * 60 + "x", "\t", "'")
EVIL = b"evil"


class Made(NamedTuple):
    """An archive: its words, name and bytes; how the try must end, and words one of which a refusal has."""

    what: str
    name: str
    content: bytes
    end: Literal["value", "refusal", "either"] = "either"
    named: tuple[str, ...] = ()


def members(rng: np.random.Generator) -> Members:
    """Draw what an archive holds: the wanted members, one of them compressed once more, and another one."""
    numbers = rng.integers(10**9, size=int(rng.integers(20, 400)))
    wanted = [(f"deep/{WANTED[0]}", repr(numbers.tolist()).encode()), (WANTED[1], rng.bytes(int(rng.integers(3000))))]
    if rng.random() < 0.3:
        wanted[0] = (f"{wanted[0][0]}.gz", gzip.compress(wanted[0][1], mtime=0))
    held = [*wanted, ("deep/readme.txt", b"read me\n" * 20)]
    rng.shuffle(held)
    return held


def plain(held: Members) -> dict[str, bytes]:
    """Return what is to come out."""
    found = {}
    for name, content in held:
        last = name.rpartition("/")[2]
        if last.removesuffix(".gz") in WANTED:
            found[last.removesuffix(".gz")] = gzip.decompress(content) if last.endswith(".gz") else content
    return found


def packed(kind: str, held: Members) -> bytes:
    """Return the bytes of an archive."""
    if kind in TARS:
        return TARS[kind](tar([(info(name, content), content) for name, content in held]))
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", ZIPS[kind]) as archive:
        warnings.simplefilter("ignore")  # of names that are there already
        for name, content in held:
            archive.writestr(name, content)
    return file.getvalue()


def tar(held: list[tuple[tarfile.TarInfo, bytes]], layout: int = tarfile.PAX_FORMAT) -> bytes:
    """Return the bytes of a plain tar."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=layout) as archive:
        for one, content in held:
            archive.addfile(one, io.BytesIO(content))
    return file.getvalue()


def info(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    """Describe a member of a tar."""
    one = tarfile.TarInfo(name)
    one.size, one.type, one.linkname = len(content), tarfile.DIRTYPE if name.endswith("/") else kind, link
    return one


def header(name: str, size: int, kind: bytes) -> bytes:
    """Return a header of a tar whose size may be a lie; one below zero is written to base 256, as GNU tar writes it."""
    block = bytearray(info(name, b"", kind).tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")[:BLOCK])
    wide = (256**12 if size < 0 else 128 << 88) + size
    block[124:136] = b"%011o\0" % size if 0 <= size < 8**11 else wide.to_bytes(12, "big")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def _good(kind: str, held: Members, rng: np.random.Generator) -> Made:
    ending = str(rng.choice(["x.zip", "x.tar.gz", "x.tar", "x", "x.csv", "x.7z"]))
    return Made("undamaged", ending, packed(kind, held), "value")


def _flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def _flip(kind: str, held: Members, rng: np.random.Generator) -> Made:
    content = packed(kind, held)
    able = np.arange(len(content))
    if kind == "tar":
        able = np.concatenate([able[:0], *(able[at : at + BLOCK] for at in _headers(content))])
    bit = int(rng.choice(able)) * 8 + int(rng.integers(8))
    return Made(f"bit {bit} of {len(content) * 8} flipped", "x", _flipped(content, bit))


def _headers(content: bytes) -> list[int]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return [one.offset for one in archive.getmembers()]


def _trailer(kind: str, held: Members, rng: np.random.Generator) -> Made:
    """Damage the checksum behind the last member."""
    chosen = kind if kind in SQUEEZED else SQUEEZED[int(rng.integers(3))]
    content = packed(chosen, held)
    # the last byte of a bz2 is filled up with bits that mean nothing
    low, high = {"tar.gz": (8, 0), "tar.bz2": (6, 1), "tar.xz": (12, 0)}[chosen]
    bit = int(rng.integers((len(content) - low) * 8, (len(content) - high) * 8))
    return Made(f"bit {bit} of {len(content) * 8} flipped, in the trailer", "x", _flipped(content, bit), "refusal")


def _cut(kind: str, held: Members, rng: np.random.Generator) -> Made:
    content = packed(kind, held)
    keep = int(rng.choice([rng.integers(len(content)), len(content) - rng.integers(1, 30), rng.integers(40)]))
    return Made(f"cut to {keep} of {len(content)}", "x", content[:keep], "either" if kind == "tar" else "refusal")


def _more(kind: str, held: Members, rng: np.random.Generator) -> Made:
    more = (bytes(100), b"\n", rng.bytes(700), b"<html>", packed("zip", [("a.json", EVIL)])[:-30])[int(rng.integers(5))]
    return Made(f"{len(more)} bytes more, {more[:6]!r}", "x", packed(kind, held) + more)


def _before(kind: str, held: Members, rng: np.random.Generator) -> Made:
    more = (b"\n", b"<html>sign in</html>", bytes(BLOCK), rng.bytes(64))[int(rng.integers(4))]
    return Made(f"{len(more)} bytes before, {more[:6]!r}", "x", more + packed(kind, held))


def _noise(kind: str, held: Members, rng: np.random.Generator) -> Made:
    kind = "tar.gz" if kind == "tar" else kind
    content = packed(kind, held)
    size = int(rng.integers(2, 60))
    at = int(rng.integers(max(len(content) - size, 1)))
    new = bytes(size) if rng.random() < 0.5 else rng.bytes(size)
    return Made(f"{size} bytes other from {at}", "x", (content[:at] + new + content[at + size :])[: len(content)])


def _directory(kind: str, held: Members, rng: np.random.Generator) -> Made:
    """Damage the directory of a zip: there its sizes, offsets and names stand."""
    content = packed(kind if kind in ZIPS else "zip", [*held, ("donn\xe9es", b"x")])
    begin = content.index(b"PK\x01\x02")
    at, value = int(rng.integers(begin, len(content))), int(rng.choice([0, 1, 0x7F, 0x80, 0xFF]))
    return Made(
        f"byte {at - begin} of the directory is {value}", "x", content[:at] + bytes([value]) + content[at + 1 :]
    )


def _outside(kind: str, held: Members, rng: np.random.Generator) -> Made:
    name = BAD_NAMES[int(rng.integers(len(BAD_NAMES)))]
    held = [*held, (name, EVIL)] if rng.random() < 0.5 else [(name, EVIL), *held]
    return Made(f"a member {name!r}", "x", packed(kind, held), "refusal", (name, "outside"))


def _link(kind: str, held: Members, rng: np.random.Generator) -> Made:
    target = str(rng.choice(["a.json", "/etc/passwd", "../x", "self", "x" * 3000, "a\nb"]))
    if kind in ZIPS:
        file = io.BytesIO(packed(kind, held))
        one = zipfile.ZipInfo("self")
        sort = int(rng.choice([stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK]))
        one.create_system, one.external_attr = 3, (sort | 0o777) << 16
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr(one, target)
        return Made(f"a link or device of mode {sort:o}", "x", file.getvalue(), "refusal", ("self",))
    sorts = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
    sort = sorts[int(rng.integers(5))]
    entries = [(info(name, content), content) for name, content in held] + [(info("self", b"", sort, target), b"")]
    return Made(f"type {sort!r} to {target[:20]!r}", "x", TARS[kind](tar(entries)), "refusal", ("self",))


def _doubled(kind: str, held: Members, rng: np.random.Generator) -> Made:
    name = str(rng.choice(["a.json", "other/a.json", "b.csv", "deep/b.csv.gz", "deep/readme.txt"]))
    wrong = "readme" not in name
    content = packed(kind, [*held, (name, gzip.compress(EVIL) if name.endswith(".gz") else EVIL)])
    return Made(f"twice: {name}", "x", content, "refusal" if wrong else "value", ("twice",))


def _missing(kind: str, held: Members, rng: np.random.Generator) -> Made:
    gone = WANTED[int(rng.integers(2))]
    left = [one for one in held if gone not in one[0]]
    if rng.random() < 0.5:
        left += [(f"{gone}/", b""), (f"{gone}/x", EVIL), (gone.upper(), EVIL), (f"{gone}~", EVIL)]
    many = [(f"{'long' * 30}{i}", b"") for i in range(30)] if rng.random() < 0.3 else []
    return Made(f"without {gone}", "x", packed(kind, left + many), "refusal", (gone,))


def _named_oddly(kind: str, held: Members, rng: np.random.Generator) -> Made:
    """Names of users' files: right beside the wanted ones, to be shown where a member is refused or lacks."""
    name = ODD_NAMES[int(rng.integers(len(ODD_NAMES)))]
    way = int(rng.integers(3))
    if way == 0:
        return Made(f"also {name[:20]!r}", "x", packed(kind, [*held, (name, EVIL)]), "value")
    if way == 1:
        return Made(f"only {name[:20]!r}", "x", packed(kind, [(name, EVIL)]), "refusal", WANTED)
    return Made(f"outside, {name[:20]!r}", "x", packed(kind, [*held, (f"../{name}", EVIL)]), "refusal", ("outside",))


@cache
def _zeros(kind: str, megabytes: int = 16) -> bytes:
    return TARS[kind](bytes(megabytes << 20))


def _long(kind: str, begin: bytes, times: int) -> bytes:
    """Return a compressed stream of a beginning and `times` times 16 MiB of zeros, made of streams in a row."""
    return TARS[kind](begin) + _zeros(kind) * times


def _bomb(kind: str, held: Members, rng: np.random.Generator) -> Made:
    """Hold gigabytes in few bytes: a member, a gzip file in it, a long name, an extended header, the end, a sparse
    file."""
    squeezed = kind if kind in SQUEEZED else SQUEEZED[int(rng.integers(3))]
    before = tar([(info(name, content), content) for name, content in held])[: -2 * BLOCK]
    before = before[: _headers(before)[-1]] if rng.random() < 0.5 else b""
    times = int(rng.integers(200, 300))
    size = times << 24
    ways = ["member", "gz", "long name", "pax", "below zero", "sparse", "end", "wanted"]
    if kind in ZIPS:
        ways = ["zip", "zip gz", "zip that lies"]
    way = ways[int(rng.integers(len(ways)))]
    if way in ("zip", "zip gz", "zip that lies"):
        content = bytes(80 << 20) if way != "zip gz" else gzip.compress(b"") + _zeros("tar.gz") * 200
        name = "a.json.gz" if way == "zip gz" else "a.json"
        made = packed("zip" if kind == "zip-0" else kind, [(name, content), ("b.csv", b"")])
        if way == "zip that lies":
            made = made.replace(len(content).to_bytes(4, "little"), (100).to_bytes(4, "little"))
        return Made(f"bomb: {way}", "x", made, "refusal")
    if way == "gz":
        inner = _long("tar.gz", b"", times)
        return Made(
            "bomb: gz", "x", TARS[squeezed](tar([(info("a.json.gz", inner), inner)])), "refusal", ("a.json.gz",)
        )
    if way == "end":
        return Made("bomb: end", "x", _long(squeezed, tar([(info(n, c), c) for n, c in held]), times), "refusal")
    any_sort = rng.choice([b"L", b"x", b"g", b"0"])
    sort = {"long name": b"L", "pax": b"x", "below zero": any_sort, "sparse": b"S"}.get(way, b"0")
    name = "a.json" if way == "wanted" else "other"
    stated = -int(rng.integers(1, 5000)) if way == "below zero" else size
    return Made(f"bomb: {way}", "x", _long(squeezed, before + header(name, stated, bytes(sort)), times), "refusal")


def _headers_of_tar(kind: str, held: Members, rng: np.random.Generator) -> Made:
    """Headers that a tar may not have: sizes below zero, chains without end, extended headers of nonsense."""
    before = tar([(info(name, content), content) for name, content in held])
    before = before[: _headers(before)[-1]]
    way = str(rng.choice(["below zero", "chain", "pax", "old sparse", "not UTF-8", "huge"]))
    if way == "below zero":
        more = header("x", -int(rng.choice([1, 512, 1024, len(before), 2**40])), tarfile.REGTYPE)
    elif way == "chain":
        one = header("x", 2, rng.choice([b"L", b"K"])) + b"y\0".ljust(BLOCK, b"\0")
        more = one * int(rng.choice([3, 400, 4000]))
    elif way == "pax":
        lines = (b"9 size=x\n", b"11 size=-5\n", b"99999 a=b\n", b"-5 a=b\n", b"0 a=b\n", b"x", b"8 path=\n",
                 b"12 path=\xff\xfe\n", b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n", b"21 GNU.sparse.map=a,\n",
                 b"9" * 400 + b" a=b\n", b"19 mtime=9999e9999\n", b"22 hdrcharset=BINARY\n13 path=../e\n",
                 b"24 GNU.sparse.size=1e99\n")  # fmt: skip
        said = lines[int(rng.integers(len(lines)))]
        more = header("x", len(said), rng.choice([b"x", b"g"])) + said.ljust(BLOCK, b"\0") + header("y", 0, b"0")
    elif way == "old sparse":
        more = header("x", 600, tarfile.GNUTYPE_SPARSE) + rng.bytes(1024)
    elif way == "not UTF-8":
        more = tar([(info("\udcff\udcfe../x"), b"")], tarfile.GNU_FORMAT)
    else:
        more = header("x", int(rng.choice([2**33, 2**62, 2**80])), tarfile.REGTYPE)
    squeezed = kind if kind in TARS else "tar.gz"
    return Made(f"header: {way}", "x", TARS[squeezed](before + more + bytes(1024)))


def _password(kind: str, held: Members, rng: np.random.Generator) -> Made:
    """Mark one or all members as encrypted, with either of the two ways that zip has."""
    content = bytearray(packed(kind if kind in ZIPS else "zip", held))
    flag = int(rng.choice([0x1, 0x41]))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.find(mark)
        while at >= 0:
            content[at + offset] |= flag
            at = content.find(mark, at + 1) if rng.random() < 0.7 else -1
    return Made(f"encrypted, flags {flag:x}", "x.zip", bytes(content), "refusal")


def _other(kind: str, held: Members, rng: np.random.Generator) -> Made:
    """Files that are no archive, or an archive of nothing."""
    empty_zip, ones = b"PK\x05\x06" + bytes(18), b"\xff"
    choices = {
        "empty": b"",
        "an empty zip": empty_zip,
        "an empty tar": bytes(10240),
        "an empty tar.gz": gzip.compress(bytes(10240)),
        "an empty gz": gzip.compress(b""),
        "an empty xz": lzma.compress(b""),
        "HTML": b"<!doctype html><p>Sign in</p>" * 30,
        "a gz of text": gzip.compress(b"text" * 400),
        "7z": b"7z\xbc\xaf\x27\x1c" + rng.bytes(500),
        "noise": rng.bytes(3000),
        "JSON": b'{"a": 1}',
        "zeros": bytes(700),
        "magic of gz": b"\x1f\x8b\x08\0",
        "magic of xz": b"\xfd7zXZ\0",
        "magic of bz2": b"BZh9",
        "a tar in two gz": gzip.compress(packed("tar.gz", held)),
        "a zip in a gz": gzip.compress(packed("zip", held)),
        "an end of zip": b"x" * 50 + empty_zip,
        "an npz": packed("zip-0", [("a.npy", rng.bytes(200))]),
        "RAR": b"Rar!\x1a\x07\x01\0" + rng.bytes(90),
        "a wrong end": b"PK\x05\x06" + b"\xff" * 18,
        "zip64": b"PK\x06\x06%bPK\x06\x07%bPK\x05\x06%b\0\0" % (ones * 52, ones * 16, ones * 16),
    }
    what = str(rng.choice(list(choices)))
    return Made(what, str(rng.choice(["x.zip", "x.tar.gz"])), choices[what], "refusal")


FAULTS = (
    _good, _flip, _trailer, _cut, _more, _flip, _before, _noise, _directory, _outside, _link, _doubled, _flip, _missing,
    _named_oddly, _bomb, _headers_of_tar, _password, _other,
)  # fmt: skip
PLACES = ("nothing", "a folder", "a dangling link", "a pipe", "a locked file", "a folder that is a file")


def attempt(number: int, rng: np.random.Generator, place: Path) -> Attempt:
    """Make one archive with one fault, the faults in turn, the kind drawn; the first are paths that lead to no file."""
    if number < len(PLACES):
        return _nowhere(PLACES[number], place)
    kind = KINDS[int(rng.integers(len(KINDS)))]
    held = members(rng)
    made = FAULTS[number % len(FAULTS)](kind, held, rng)
    path = place / made.name
    path.write_bytes(made.content)
    wanted = plain(held)
    begun = [0.0]

    def act() -> dict[str, bytes]:
        begun[0] = time.process_time()
        return read_members(path, WANTED, lambda _, stream: stream.read())

    def right(found: dict[str, bytes]) -> str:
        return "" if found == wanted else f"another content: {[len(one) for one in found.values()]} bytes"

    def after() -> str:
        if {one.name for one in place.iterdir()} != {made.name} or path.read_bytes() != made.content:
            return "wrote into the folder"
        spent = time.process_time() - begun[0]
        return f"took {spent:.1f} s of CPU" if spent > SLOW else ""

    named = made.named or (str(path),)
    return Attempt(f"{kind}: {made.what}", act, right, made.end, named, after)


def _nowhere(what: str, place: Path) -> Attempt:
    path = place / "x.zip"
    if what == "a folder":
        path.mkdir()
    elif what == "a dangling link":
        path.symlink_to(place / "gone.zip")
    elif what == "a pipe":
        os.mkfifo(path)
    elif what == "a locked file":
        path.write_bytes(b"")
        path.chmod(0)
    elif what == "a folder that is a file":
        path.write_bytes(b"")
        path = path / "x.zip"
    return Attempt(
        what, lambda: read_members(path, WANTED, lambda _, stream: stream.read()), lambda _: "", "refusal", ("x.zip",)
    )

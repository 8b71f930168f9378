# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compiled programs that outlive a run, so that the same program is compiled once on a machine.

The folder is JAX_COMPILATION_CACHE_DIR or, without it, XDG_CACHE_HOME/jaxbench. It has one *part* for each kind of
device, set of versions and flags, and set of processes. Sets on a GPU do not share a part: its compiler tries variants,
and another choice is part of how processes differ. So set k meets the choices that set k has made. The compilers of
CPUs and TPUs need no device and make the same program each time, so there all sets share a part.

JAX writes the files, and not atomically. `seal` removes those that a killed process or a full disk has cut off.
No jax here.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import shutil
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jaxbench.catalog.jax_settings import OFF, SILENT
from jaxbench.errors import UserError
from jaxbench.records.documents import decode
from jaxbench.records.manifest import Machine
from jaxbench.records.reading import read_json

FOLDER, LIMIT, ENABLED = "JAX_COMPILATION_CACHE_DIR", "JAX_COMPILATION_CACHE_MAX_SIZE", "JAX_ENABLE_COMPILATION_CACHE"
LIMIT_BYTES = 10 * 10**9
PART, SEALED, TIMES = "part.json", "sealed.json", "compile_times"
SUFFIX = "-cache"  # of JAX's entries
TUNINGS = 8  # parts that the pairs of `ab` use in turn on a GPU
# By default JAX leaves out programs that compile within a second, as many of them do. XLA's own caches stay off: they
# would shorten the compile time of the next program, and their folder would be part of the key.
KEEP_ALL = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none",
    LIMIT: "-1",  # `evict` keeps the limit: JAX would need a lock and a file of its own for each entry
    ENABLED: "true",
}
NO_CACHE = {FOLDER: "", ENABLED: "false"}
# Variables that change what a compiler makes of a program, besides JAX's own.
_FLAGS = ("XLA_FLAGS", "LIBTPU_INIT_ARGS", "TF_XLA_FLAGS", "TF_ENABLE_ONEDNN_OPTS", "NVIDIA_TF32_OVERRIDE")
_PACKAGES = ("jax", "jaxlib", "libtpu", "nvidia-")
_ZSTD = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class ProgramCache:
    """The parts of this machine, as it is now. facts: what they have in common."""

    root: Path
    facts: dict[str, str]
    shared: bool  # by all sets: the compiler makes the same program each time
    limit_bytes: float = LIMIT_BYTES

    def part(self, number: int) -> Path:
        """The folder of a set of processes."""
        name = hashlib.sha256(json.dumps(self.facts, sort_keys=True).encode()).hexdigest()[:12]
        return self.root / f"{self.facts['platform']}-{name}-set{self.number(number)}"

    def number(self, number: int) -> int:
        return 0 if self.shared else number % TUNINGS

    def begin(self, number: int) -> Path:
        """Makes the part of a set, without what a killed process has left there. Raises OSError."""
        part = self.part(number)
        part.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (part / PART).exists():
            _write(part / PART, {**self.facts, "set": str(self.number(number))})
        seal(part)
        return part


def tunes(platform: str) -> bool:
    """Whether the compiler of a platform tries variants on the device."""
    return platform not in ("cpu", "tpu")


def folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of all parts. Raises UserError without a home folder."""
    if given := environment.get(FOLDER, ""):
        return Path(given.removeprefix("file://")).expanduser().absolute()
    base = environment.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the XDG specification: a relative path is ignored, like an empty one
        try:
            base = str(Path.home() / ".cache")
        except RuntimeError as error:
            raise UserError(f"this user has no home folder: set XDG_CACHE_HOME or {FOLDER}.") from error
    return Path(base) / "jaxbench"


def opened(machine: Machine, environment: Mapping[str, str] = os.environ) -> tuple[ProgramCache | None, str]:
    """(the cache, ""), or (None, a sentence that says why compiled programs are not kept)."""
    lost = "Compiled programs are not kept"
    if environment.get(ENABLED, "true").lower() in OFF:
        return None, f"{lost}, because {ENABLED}={environment[ENABLED]} is set."
    if "://" in (given := environment.get(FOLDER, "")) and not given.startswith("file://"):
        return None, f"{lost}, because {FOLDER} is not a folder of this machine: use a local path."
    limit = limit_bytes(environment)
    if limit == 0:
        return None, f"{lost}, because {LIMIT}=0 is set."
    try:
        root = folder(environment)
        cache = ProgramCache(root, _facts(machine), not tunes(machine["platform"]), limit)
        probe = cache.begin(0) / f".{os.getpid()}.probe"
        try:
            _fill(probe)
        finally:
            probe.unlink(missing_ok=True)
    except UserError as error:
        return None, f"{lost}: {error}"
    except OSError as error:
        return None, f"{lost}, because their folder cannot be written ({error.strerror}): set {FOLDER} to another."
    evict(root, cache.limit_bytes)
    return cache, ""


def limit_bytes(environment: Mapping[str, str] = os.environ) -> float:
    """The most bytes of all parts together. JAX's own value for "no limit" is -1. Raises UserError."""
    text = environment.get(LIMIT, "")
    if not text:
        return LIMIT_BYTES
    try:
        given = int(text)
    except ValueError as error:
        raise UserError(f"{LIMIT}={text} is not a number of bytes: use {LIMIT_BYTES}, or -1 for no limit.") from error
    return given if given >= 0 else math.inf


def variables(part: Path | None) -> dict[str, str]:
    """The variables of a process that uses a part; None: it uses none, whatever a shell has set."""
    return dict(NO_CACHE) if part is None else {FOLDER: str(part), **KEEP_ALL}


def _facts(machine: Machine) -> dict[str, str]:
    """What decides which compiled programs this machine can run, and which its compiler would make."""
    known = machine.get("identity", {})
    instructions = known.get("instruction_sets") or []
    digest = hashlib.sha256(json.dumps(instructions).encode()).hexdigest()[:12]
    of_cpu = {"cpu": machine.get("cpu_model", ""), "instructions": digest}
    return {
        "platform": machine["platform"],
        "device_kind": machine.get("device_kind", ""),
        "compiler": machine.get("platform_version", ""),
        **(of_cpu if machine["platform"] == "cpu" else {}),
        **{name: text for name, text in machine.get("versions", {}).items() if name.startswith(_PACKAGES)},
        **{name: text for name, text in machine.get("environment", {}).items() if _is_flag(name)},
    }


def _is_flag(name: str) -> bool:
    return name in _FLAGS or (name.startswith("JAX_") and not SILENT.match(name.lower()))


def _fill(path: Path) -> None:
    """Writes as much as a small program takes. Raises OSError on a full disk."""
    with open(path, "wb") as file:
        file.write(b"\0" * 2**16)
        file.flush()
        os.fsync(file.fileno())


def _write(path: Path, value: object) -> None:
    """Replaces a small JSON file atomically. Raises OSError."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_text(json.dumps(value, indent=1, sort_keys=True))
    os.replace(part, path)


def _read(path: Path) -> dict[str, object]:
    """The JSON object in a file; {} if there is none, or a damaged one: what these files say can be found again."""
    try:
        return read_json(path, partial(decode, dict[str, object]), "")
    except UserError:
        return {}


def seal(part: Path) -> int:
    """Removes entries that were not written to their end, and notes the others. Returns the number of removed ones.

    If another process is still writing an entry, that process goes on, and the program is compiled again later.
    """
    sealed, removed = _read(part / SEALED), 0
    now: dict[str, object] = {}
    for entry in _entry_paths(part):
        with contextlib.suppress(FileNotFoundError):  # another run has evicted it
            size = entry.stat().st_size
            if sealed.get(entry.name) == size or _whole(entry):
                now[entry.name] = size
            else:
                entry.unlink()
                removed += 1
    if now != sealed:
        with contextlib.suppress(OSError):  # a full disk: the entries are checked again at the next start
            _write(part / SEALED, now)
    return removed


def _whole(entry: Path) -> bool:
    """Whether JAX can unpack an entry: both of its formats have an end mark and a checksum or a length."""
    data = entry.read_bytes()
    if data.startswith(_ZSTD):
        return _whole_zstd(data)
    try:
        unpacked = zlib.decompressobj()
        unpacked.decompress(data)
        return unpacked.eof
    except zlib.error:
        return False


def _whole_zstd(data: bytes) -> bool:
    """Only a process with the package can have written the entry."""
    try:
        import zstandard
    except ImportError:
        return True
    try:
        zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError:
        return False
    return True


def _entry_paths(part: Path) -> Iterator[Path]:
    yield from sorted(part.glob(f"*{SUFFIX}"))


def evict(root: Path, limit: float) -> int:
    """Removes the entries that were not used for longest, until all parts take at most `limit` bytes. Returns how many.

    A process that has loaded an entry keeps its program.
    """
    found = []
    for part in _part_folders(root):
        for entry in _entry_paths(part):
            with contextlib.suppress(OSError):
                stat = entry.stat()
                found.append((max(stat.st_atime, stat.st_mtime), stat.st_size, entry))
    total, removed = sum(size for _, size, _ in found), 0
    for _, size, entry in sorted(found, key=lambda each: each[0]):
        if total <= limit:
            break
        with contextlib.suppress(OSError):
            entry.unlink()
            total, removed = total - size, removed + 1
    return removed


def _part_folders(root: Path) -> list[Path]:
    return sorted(path.parent for path in root.glob(f"*/{PART}"))


# What the first compilation of a program took. A worker asks when it has loaded a program.


def note_compile_s(part: str | None, sha256: str, seconds: float) -> None:
    """Records the compile time of a program, unless it is known. part: JAX's folder; None: there is no cache."""
    if not part or (path := Path(part) / TIMES / f"{sha256}.json").exists():
        return
    with contextlib.suppress(OSError):  # a full disk: JAX has kept whole seconds with the program
        path.parent.mkdir(exist_ok=True)
        _write(path, {"compile_s": seconds, "time": time.time()})


def known_compile_s(part: str | None, sha256: str) -> float | None:
    """The recorded compile time of a program, in seconds; None if there is none."""
    value = _read(Path(part) / TIMES / f"{sha256}.json").get("compile_s") if part else None
    return value if isinstance(value, float) and math.isfinite(value) and value >= 0 else None


@dataclass(frozen=True)
class Part:
    """A part as it is shown. used: Unix time of the newest use."""

    name: str
    facts: dict[str, str]
    programs: int
    bytes: int
    used: float


def parts(root: Path) -> list[Part]:
    """All parts of a folder; [] if there is none."""
    found = []
    for path in _part_folders(root):
        stats = []
        for entry in _entry_paths(path):
            with contextlib.suppress(OSError):
                stats.append(entry.stat())
        used = max((max(stat.st_atime, stat.st_mtime) for stat in stats), default=0.0)
        facts = {key: str(value) for key, value in _read(path / PART).items()}
        found.append(Part(path.name, facts, len(stats), sum(stat.st_size for stat in stats), used))
    return found


def clear(root: Path) -> tuple[int, int]:
    """Removes all parts, and no other file. Returns (programs, bytes). Raises UserError if a part cannot be removed."""
    all_ = parts(root)
    for part in all_:
        try:
            shutil.rmtree(root / part.name)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise UserError(f"'{root / part.name}' cannot be removed ({error.strerror}).") from error
    return sum(part.programs for part in all_), sum(part.bytes for part in all_)

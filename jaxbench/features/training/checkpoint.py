# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a training: saved in the background, verified on reading, the same for any strategy and device count.

A checkpoint is a folder named by its step: the canonical state as orbax writes it, a flat {name: array}, and a seal
with the sha256 of each file and of all values. Orbax alone would read some flipped bits as numbers. With several
processes, each writes its part of the arrays, and the first one seals the checkpoint. Any number of processes may read
it. Two bitwise equal trainings have the same hash.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, TypeVar, cast

import absl.logging
import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from orbax.checkpoint import v1 as ocp

from jaxbench.core.program import TrainState
from jaxbench.core.store import write_atomic
from jaxbench.core.trees import ArrayTree
from jaxbench.errors import UserError
from jaxbench.features.training.folder import writing
from jaxbench.processes.group import ProcessGroup
from jaxbench.records.documents import decode
from jaxbench.records.reading import count_of, of_text, read_json

T = TypeVar("T")
FORMAT = 1
STATE = "state"
SEAL = "seal.json"
LOOP_CLOSED = "Event loop is closed"  # in Python's words
PART = ".part"  # suffix of the name of an incomplete checkpoint


def params_sha256(params: ArrayTree) -> str:
    """Hex sha256 over the leaves in the order of their names: name, dtype, shape and bytes (little-endian, C order)."""
    return sha256(named_leaves(params))


def to_host(tree: T) -> T:
    """A copy in host memory: a view would change when the next step reuses a donated buffer."""
    return jax.tree.map(lambda leaf: np.array(leaf), tree)


def named_leaves(tree: object) -> dict[str, np.ndarray]:
    """{"params.hidden.kernel": array}, in the tree's own order."""
    pairs, _ = jax.tree_util.tree_flatten_with_path(tree)
    named = {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in pairs}
    if len(named) < len(pairs):  # {"a.b": x, "a": {"b": y}}: one of the two would silently not be saved
        raise ValueError("two leaves of the tree have the same name")
    return named


def sha256(leaves: Mapping[str, np.ndarray]) -> str:
    """`params_sha256` of named leaves."""
    digest = hashlib.sha256()
    for name in sorted(leaves):
        leaf = np.ascontiguousarray(leaves[name]).reshape(np.shape(leaves[name]))  # shape () had become (1,)
        # The zeros end each part, so that no two trees give the same bytes.
        digest.update(f"{name}\0{leaf.dtype.name}\0{leaf.shape}\0".encode())
        digest.update(leaf.tobytes())
    return digest.hexdigest()


def shapes(leaves: Mapping[str, jax.ShapeDtypeStruct | np.ndarray]) -> dict[str, str]:
    """{"params.hidden.kernel": "float32[784, 128]"}"""
    return {name: f"{np.dtype(leaf.dtype).name}{list(leaf.shape)}" for name, leaf in leaves.items()}


Header = dict[str, Any]  # format, shapes, sha256, files, progress


@dataclass(frozen=True)
class Restored:
    """The newest usable checkpoint.

    Attributes:
      state: canonical, leaves in host memory; None without a checkpoint, when training starts afresh.
      progress: of `Writer.save`.
      notes: one sentence for every checkpoint that could not be used.
    """

    state: TrainState | None
    progress: dict[str, Any]
    notes: tuple[str, ...]

    @property
    def step(self) -> int:
        return 0 if self.state is None else int(self.state.step)


class _Damaged(Exception):
    """A checkpoint cannot be used; the message gives the reason."""


class Writer:
    """Saves into `folder`, one checkpoint at a time, in the background; keeps the newest `keep`.

    A checkpoint gets its final name when it is complete and sealed; only then is an older one removed. Call
    `restore_latest` first, so that damaged checkpoints are not counted.
    """

    def __init__(
        self,
        folder: Path,
        *,
        keep: int,
        on_sealed: Callable[[float], None] = lambda seconds: None,
        members: ProcessGroup = ProcessGroup(),  # noqa: B008
    ):
        """on_sealed: called by another thread with the seconds from the return of `save` until the checkpoint was
        sealed. members: the process group that saves together; each process has a Writer."""
        self._folder, self._keep, self._on_sealed = folder.absolute(), keep, on_sealed
        self._members, self._saves = members, 0
        if members.leads:
            with _writing(self._folder):
                self._folder.mkdir(parents=True, exist_ok=True)
                for path in _unfinished(self._folder):  # of a start that was killed while it saved
                    shutil.rmtree(path)
        members.barrier()  # nobody may begin to write what the leader is about to remove
        self._quiet = contextlib.ExitStack()
        # One thread: a newer checkpoint is never sealed before an older one.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._saving: Future[None] | None = None

    def __enter__(self) -> Writer:
        _quiet_threads()
        self._quiet.enter_context(_quiet_orbax())
        return self

    def __exit__(self, *error: object) -> None:
        with self._quiet, self._thread:
            self.wait()

    def save(self, state: TrainState, progress: dict[str, Any]) -> None:
        """Starts saving a canonical state in host memory (`to_host`); waits only for the previous save.

        progress: JSON, such as the rows measured so far; the value of the first process is kept.
        """
        leaves = named_leaves(state)
        header = {"format": FORMAT, "shapes": shapes(leaves), "progress": progress}
        # Hashed here and not in the background: the hash must be that of the state, not of what was written.
        header |= {"sha256": sha256(leaves)} if self._members.leads else {}  # only the leader writes the seal
        text = json.dumps(header)  # now, because the caller may change `progress` later
        stored: dict[str, Any] = {name: leaf for name, leaf in leaves.items() if leaf.size}  # orbax refuses empty ones
        self.wait()
        if not self._members.alone:
            stored = _shared_out(stored, self._members)
        self._saves += 1
        part = self._folder / f"{int(state.step)}{PART}"
        with _writing(self._folder):
            written = ocp.save_async(part / STATE, stored, checkpointable_name=STATE)
        self._saving = self._thread.submit(self._commit, written, part, text, time.perf_counter())

    def _commit(self, written: ocp.AsyncResponse[None], part: Path, header: str, saved: float) -> None:
        """Waits for the background write, seals the folder and renames it. Removes older ones."""
        written.result()
        if self._members.leads:
            # The files' own hashes find a damaged file before orbax reads it, and name it.
            names = sorted(str(file.relative_to(part)) for file in part.rglob("*") if file.is_file())
            files = {name: _file_sha256(part / name) for name in names}
            text = json.dumps({**json.loads(header), "files": files})
            digest = hashlib.sha256(text.encode()).hexdigest()
            write_atomic(part / SEAL, json.dumps({"header": text, "sha256": digest}))
            # The rename is atomic: a kill leaves either a complete checkpoint or a .part, which the next start removes.
            os.rename(part, part.with_suffix(""))
            self._on_sealed(time.perf_counter() - saved)
            # After the rename: at any moment at least `keep` sealed checkpoints are on the disk.
            for step in saved_steps(self._folder)[self._keep :]:
                shutil.rmtree(self._folder / str(step))
        # All wait for the seal: a process that went on could end, and the others with it, before the rename.
        self._members.named_barrier(f"sealed/{self._saves}")

    def wait(self) -> None:
        """Returns when the newest checkpoint is on the disk. Raises UserError when it could not be written."""
        saving, self._saving = self._saving, None
        if saving is not None:
            with _writing(self._folder):
                saving.result()


def _shared_out(leaves: dict[str, np.ndarray], members: ProcessGroup) -> dict[str, jax.Array]:
    """The arrays, split over one device of each process along the first dimension that divides: its part to write."""
    # One device per process is enough: the state is in host memory, and its parts only say who writes what.
    count = len(members.processes)
    firsts = [next(d for d in jax.devices() if d.process_index == process) for process in members.processes]
    mesh = Mesh(np.array(firsts), ("process",))

    def split(x: np.ndarray) -> jax.Array:
        dim = next((dim for dim, length in enumerate(x.shape) if length % count == 0), None)
        spec = PartitionSpec() if dim is None else PartitionSpec(*[None] * dim, "process")
        return jax.make_array_from_callback(x.shape, NamedSharding(mesh, spec), lambda index: x[index])

    return {name: split(leaf) for name, leaf in leaves.items()}


def restore_latest(folder: Path, like: TrainState, members: ProcessGroup = ProcessGroup()) -> Restored:  # noqa: B008
    """Reads the newest intact checkpoint of `folder`; damaged newer ones are moved aside and noted.

    Args:
      folder: where a `Writer` saved.
      like: the canonical state to restore, as arrays or as jax.ShapeDtypeStruct.
      members: the process group that restores together. All processes return the same.

    Raises:
      UserError: no checkpoint is intact, or the newest intact checkpoint is of another model or optimizer.
    """
    notes = members.on_leader(lambda: [f"{path} is incomplete and is removed." for path in _unfinished(folder)])
    damaged: list[Path] = []
    for step in members.on_leader(lambda: saved_steps(folder)):
        path = folder.absolute() / str(step)
        try:
            with _quiet_orbax():
                state, progress = _read(path, like, members)
        except _Damaged as error:
            damaged.append(path)
            notes.append(f"checkpoint {folder / str(step)} is damaged ({error}) and is skipped.")
            continue
        if members.leads:  # only now: with no intact one left, the damaged ones may still be of use to somebody
            for bad in damaged:
                _move_aside(bad)
        return Restored(state, progress, tuple(notes))
    if damaged:
        raise UserError(
            f"none of the {len(damaged)} checkpoints in '{folder}' is intact; the newest: {notes[-len(damaged)]} "
            "Delete that folder to train from the start, or choose a new --workdir."
        )
    return Restored(None, {}, tuple(notes))


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """`folder.writing`, also for orbax. It reports a disk error as a ValueError that names the errno; or, if the error
    ended its event loop while another of its threads still wrote, as what that thread found."""
    with writing(folder):
        try:
            yield
        except (ValueError, RuntimeError) as error:
            cause: BaseException | None = error
            while cause is not None:
                if isinstance(cause, OSError):
                    raise OSError(cause.errno, cause.strerror) from error
                if number := re.search(r"os_error_code='(\d+)'", str(cause)):
                    raise OSError(int(number[1]), os.strerror(int(number[1]))) from error
                cause = cause.__cause__ or cause.__context__
            if str(error) != LOOP_CLOSED:
                raise
            raise OSError(errno.ENOSPC, f"orbax stopped writing: {error}; most often the disk is full") from error


def saved_steps(folder: Path) -> list[int]:
    """The steps that have a checkpoint, newest first."""
    return sorted((step for path in folder.glob("*") if (step := count_of(path.name)) is not None), reverse=True)


def _unfinished(folder: Path) -> list[Path]:
    """The folders that a killed process has left."""
    return sorted(folder.glob(f"*{PART}"))


def _read(path: Path, like: TrainState, members: ProcessGroup) -> tuple[TrainState, dict[str, Any]]:
    """Reads a checkpoint after checking its files: not all errors of orbax for damaged files can be caught."""
    leaves = named_leaves(like)
    header = members.on_leader(lambda: _checked(path, leaves))
    if "damaged" in header:
        raise _Damaged(header["damaged"])
    values = {name: np.empty(leaf.shape, leaf.dtype) for name, leaf in leaves.items()}  # empty arrays stay as they are
    stored = {name: leaf for name, leaf in values.items() if leaf.size}
    try:
        values.update(ocp.load(path / STATE, stored, checkpointable_name=STATE))
        # The leader has checked the files. Each process also checks the values that it has read.
        same = sha256(values) == header["sha256"]
    except OSError as error:
        same = False  # not raised here: the other processes wait for this one's answer
        if members.alone:
            raise _on_disk(path, error) from error
    if not members.all(same):
        raise _Damaged("its arrays are not those that were saved")
    return jax.tree.unflatten(jax.tree.structure(like), [values[name] for name in leaves]), header["progress"]


def _checked(path: Path, leaves: dict[str, np.ndarray]) -> Header:
    """The header of a checkpoint if its files are those that were saved; otherwise {"damaged": reason}."""
    try:
        header = _read_seal(path)  # first: it has the hashes, and its own
        for name, digest in header["files"].items():
            if _file_sha256(path / name) != digest:
                raise _Damaged(f"{name} is not the file that was saved")
    except OSError as error:
        return {"damaged": str(_on_disk(path, error))}
    except _Damaged as error:
        return {"damaged": str(error)}
    # Another model is not damage: skipping to an older checkpoint would only delay the same answer.
    saved, expected = header["shapes"], shapes(leaves)
    different = sorted(name for name in saved.keys() | expected.keys() if saved.get(name) != expected.get(name))
    if different:
        name = different[0]
        old, new = saved.get(name, "absent"), expected.get(name, "absent")
        raise UserError(
            f"checkpoint {path} is of another model or optimizer ({name} was {old} and is now {new}; {len(different)} "
            f"of {len(saved)} arrays differ): choose a new --workdir."
        )
    return header


def _on_disk(path: Path, error: OSError) -> _Damaged:
    return _Damaged(f"{Path(error.filename or path).name}: {error.strerror}")


@dataclass(frozen=True)
class _Seal:
    """seal.json: the header as text, and its hash."""

    header: str
    sha256: str


class _Header(TypedDict):
    """The types in a header of `FORMAT`."""

    format: int
    shapes: dict[str, str]
    sha256: str
    files: dict[str, str]
    progress: dict[str, Any]


def _read_seal(path: Path) -> Header:
    again = "it is not the file that was saved"
    try:
        seal = read_json(path / SEAL, partial(decode, _Seal), again)
        if seal.sha256 != hashlib.sha256(seal.header.encode()).hexdigest():
            raise _Damaged(f"{SEAL} is not the file that was saved")
        header = of_text(path / SEAL, seal.header, partial(decode, Header), again)
        if header.get("format") == FORMAT:
            return of_text(path / SEAL, seal.header, _header, again)
    except UserError as error:
        raise _Damaged(f"{SEAL} cannot be read") from error
    raise UserError(
        f"checkpoint {path} has format {header.get('format')}, but this jaxbench reads format {FORMAT}: use the "
        "jaxbench that wrote it, or a new --workdir."
    )


def _header(value: object) -> Header:
    """The header of a sealed checkpoint. Raises if a field is absent or a file lies outside."""
    header = decode(_Header, value)
    if absent := _Header.__annotations__.keys() - header.keys():
        raise KeyError(min(absent))
    for name in header["files"]:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ValueError(f"'{name}' is not a file of the checkpoint")
    return cast(Header, header)


def _file_sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _move_aside(path: Path) -> None:
    """Moves a checkpoint into the sibling folder "<folder>.damaged". It is kept there, but no longer counts."""
    aside = path.parent.with_name(f"{path.parent.name}.damaged")
    aside.mkdir(exist_ok=True)
    target, number = aside / path.name, 1
    while target.exists():  # the same step may be damaged again after it was trained again
        target, number = aside / f"{path.name}.{number}", number + 1
    path.rename(target)


def _quiet_threads() -> None:
    """From now on, drops what the threads of orbax's file library print after a disk error has ended their loop.

    They print at any time until the process ends, so this stays. The error itself is raised where the process waits.
    """
    if getattr(sys.unraisablehook, "quiet", False):
        return
    before = sys.unraisablehook  # a callback from C++ has nobody to raise its exception in

    def hook(about: Any) -> None:
        late = isinstance(about.exc_value, RuntimeError) and str(about.exc_value) == LOOP_CLOSED
        if not late or absl.logging.get_verbosity() >= absl.logging.DEBUG:
            before(about)

    hook.quiet = True  # type: ignore[attr-defined]
    sys.unraisablehook = hook
    logging.getLogger("asyncio").addFilter(
        # The error of the task was raised already, where the process waits for it.
        lambda record: (
            "never retrieved" not in record.getMessage() or absl.logging.get_verbosity() >= absl.logging.DEBUG
        )
    )


@contextlib.contextmanager
def _quiet_orbax() -> Iterator[None]:
    """Drops orbax's log messages below warnings, and the errors of its threads, unless --verbosity=1."""

    def keep(record: logging.LogRecord) -> bool:
        # orbax logs the stack of each error of its threads, and then raises it where this process waits.
        raised_here = record.exc_info is not None and "_SignalingThread" in str(record.msg)
        noise = "orbax" in record.pathname and (raised_here or record.levelno < logging.WARNING)
        return not noise or absl.logging.get_verbosity() >= absl.logging.DEBUG

    logger = absl.logging.get_absl_logger()
    logger.addFilter(keep)
    try:
        yield
    finally:
        logger.removeFilter(keep)

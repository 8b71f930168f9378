# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The folder of a training: one config, one process at a time, and a manifest of all starts.

It is continued only with equivalent settings and the same experiment.

Each start has a time ledger: what the process is doing, and for how long (`trainings` reads it).
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxbench.core import store
from jaxbench.core.store import CONFIG, MANIFEST, RECORDS, RunFolder, write_json, write_manifest
from jaxbench.errors import UserError
from jaxbench.features.training import trainings
from jaxbench.features.training.trainings import KINDS, LEDGER
from jaxbench.levers import LEVERS
from jaxbench.processes.group import ProcessGroup
from jaxbench.records import identity
from jaxbench.records.documents import flatten
from jaxbench.records.manifest import Machine

CHECKPOINTS = "checkpoints"
SEEN_LIMIT_S = 5.0  # for a file system of several hosts to show a new file on all of them
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # a full disk, a quota, and a limit on the size of a file

# Fields that change the result at most by the order of sums, and fields that only measurements read. They may change.
FREE = (
    *("train.strategy", "train.checkpoint_every", "train.keep", "train.tensorboard"),
    *("batch", "accelerator_batch", "scaling", "strategy", "explain"),
    *(f"lever.{name}" for name, lever in LEVERS.items() if lever.changes == "program"),
)
FREE_GROUPS = ("mesh.", "measure.", "report.")
# Fields that the config of an older jaxbench lacks, with the value that it used.
ADDED: dict[str, Any] = {
    "train.warmup": 0,
    "train.evaluate_every": 0,
    "train.noise_examples": 0,
    "train.metric": trainings.ACCURACY,
    "train.mode": trainings.AUTO,
}
MAY_GROW = ("train.epochs", "train.target")  # the target of a loss may only fall

# A line is written whenever a start is 1 % older than at its last line, so a kill hides at most 1 % of its time.
BEAT, SHORTEST_BEAT_S, LONGEST_BEAT_S = 0.01, 0.05, 10.0


@contextlib.contextmanager
def locked_folder(folder: Path, config: dict[str, Any], members: ProcessGroup = ProcessGroup()) -> Iterator[Path]:  # noqa: B008
    """Creates `folder` or continues it, locks it against other processes, and yields the folder of its checkpoints.

    members: the process group that trains together; its first process locks the folder.

    Raises:
      UserError: the folder cannot be written, is in use, holds measurements or a training with another config, or is
        not on a file system that all processes see.
    """

    def begin() -> None:
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(store.lock_folder(folder))
        _claim(folder, json.loads(json.dumps(config, default=str)))  # as it will be read: a tuple becomes a list

    with contextlib.ExitStack() as stack:
        # The lock must be held by one process for all: the others would refuse each other.
        members.on_leader(begin)
        _require_shared(folder, members)
        yield folder / CHECKPOINTS


def _require_shared(folder: Path, members: ProcessGroup) -> None:
    """Raises UserError in all processes if one of them does not see what the first one writes into `folder`."""

    def write() -> str:
        name = f"seen-{uuid.uuid4().hex}"
        with writing(folder):
            (folder / name).touch()
        return name

    if members.alone:
        return
    token, deadline = folder / members.on_leader(write), time.monotonic() + SEEN_LIMIT_S
    # Network file systems show new files late, so one look is not enough.
    while not (seen := token.exists()) and time.monotonic() < deadline:
        time.sleep(0.1)
    all_seen = members.all_gather(seen)
    if members.leads:
        token.unlink()
    if not all(all_seen):
        raise UserError(
            f"process {members.processes[all_seen.index(False)]} does not see what process 0 wrote into '{folder}': "
            "choose a --workdir on a file system that all hosts share, because all of them write the checkpoints."
        )


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """A context for writes into `folder` that turns a disk error, such as a full disk, into a UserError."""
    try:
        yield
    except OSError as error:
        advice = "choose another --workdir"
        if error.errno in NO_ROOM:
            advice = "free some space, and the same command continues from the newest checkpoint"
        raise UserError(f"cannot write to '{folder}' ({error.strerror}): {advice}.") from error


def _claim(folder: Path, config: dict[str, Any]) -> None:
    """Writes the config of a new training. Raises UserError if the folder holds something else."""
    if (folder / RECORDS).exists():
        raise UserError(f"'{folder}' holds measurements ({RECORDS}): choose a new --workdir for a training.")
    if any((folder / CHECKPOINTS).glob("*")):  # before the first checkpoint any config may start
        _require_continuation(folder, flatten(RunFolder(folder).config()), flatten(config))
    with writing(folder):
        write_json(folder / CONFIG, config)


def _require_continuation(folder: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    wrong = []
    for name in sorted(old.keys() | new.keys()):
        before, now = (fields.get(name, ADDED.get(name)) for fields in (old, new))
        # Equal results are what counts: a field that changes at most the order of sums may differ.
        if before == now or name in FREE or name.startswith(FREE_GROUPS):
            continue
        words = {**ADDED, **new}
        falls = name == "train.target" and trainings.minimised(words["train.metric"], words["train.mode"])
        # More epochs, or a target that is harder to reach, leave every step that was trained as it is.
        if name in MAY_GROW and before is not None and now is not None and (now < before if falls else now > before):
            continue
        only = f", but may only {'fall' if falls else 'grow'}" if name in MAY_GROW else ""
        wrong.append(f"{name} was {before!r} and is now {now!r}{only}")
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise UserError(
            f"'{folder}' holds a training with another config ({'; '.join(wrong[:3])}{more}): choose a new --workdir."
        )


@dataclass(frozen=True, kw_only=True)
class Session:
    """One start of a training.

    Attributes:
      command: as it was typed.
      devices, strategy, processes: different values give the same training, up to the order of sums.
      experiment_file, experiment_sha256: the name of the experiment's source, and its hash.
      machine: `manifest.probe`.
      levers: of the workload and of the program; an absent lever has its default.
      begun_ns: Unix time in ns at which its process was created, for the time ledger; default: when this object was
        made.
    """

    command: list[str]
    devices: int
    strategy: str
    experiment_file: str
    experiment_sha256: str
    machine: Machine
    levers: dict[str, str] = field(default_factory=dict)
    begun_ns: int = field(default_factory=time.time_ns)
    processes: int = 1

    @property
    def layout(self) -> str:
        """The levers that change the program, such as "mesh=data=2,tensor=2". Like the strategy, they may change."""
        levers = [lever for lever in LEVERS.values() if lever.changes == "program"]
        return ", ".join(f"{one.name}={self.levers[one.name]}" for one in levers if one.of(self.levers) != one.of({}))

    @property
    def where(self) -> str:
        return _where(self.devices, self.strategy, self.layout, processes=self.processes)

    def facts(self) -> dict[str, Any]:
        """The facts about this start that its checkpoints store."""
        names = ("devices", "processes", "strategy", "layout", "experiment_file", "experiment_sha256")
        return {name: getattr(self, name) for name in names}

    def require_same_experiment(self, progress: dict[str, Any]) -> None:
        """Raises UserError if `progress`, that of a checkpoint or {}, comes from another experiment file."""
        # By content: the file may have moved, and an edit may change the model without changing a shape.
        if progress.get("experiment_sha256", self.experiment_sha256) != self.experiment_sha256:
            raise UserError(
                f"the experiment file '{self.experiment_file}' has changed since this training started, or a module "
                "that it loads: choose a new --workdir, or undo the change."
            )

    def moved_from(self, progress: dict[str, Any]) -> str:
        """Where the checkpoint was trained, if the devices, strategy or layout differ; otherwise ''."""
        if not progress:
            return ""
        facts = [progress.get(name, getattr(self, name)) for name in ("devices", "strategy", "layout")]
        before = _where(*facts, processes=progress.get("processes", 1))
        return "" if before == self.where else before


def _where(devices: int, strategy: str, layout: str, *, processes: int) -> str:
    """Devices, processes and strategy of a training, as a clause."""
    several = f" in {processes} processes" if processes > 1 else ""
    where = f"on {devices} device{'s' if devices > 1 else ''}{several}, strategy {strategy}"
    return f"{where}, {layout}" if layout else where


def record(folder: Path, session: Session, members: ProcessGroup, *, step: int, examples: Mapping[str, int]) -> None:
    """Writes the manifest of `folder`, or adds this start to it.

    step: the step at which this start begins. examples: how many the training and the test split have.
    """
    if not members.leads:
        return
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    entry = {"started": now, "command": session.command, "from_step": step, **session.facts()}
    with writing(folder):
        if not (folder / MANIFEST).exists():
            first = {"started": now, "command": session.command, "examples": dict(examples), **session.facts()}
            del first["devices"]  # the manifest's own "devices" counts those of the machine
            write_manifest(folder, {**session.machine, **first, "sessions": [entry]})
            return
        manifest = RunFolder(folder).manifest()
        then = flatten(manifest)
        # Measured facts of the identity vary a little from start to start: `identity` allows for that.
        facts = {name: value for name, value in flatten(session.machine).items() if not name.startswith("identity.")}
        changed = {name: value for name, value in facts.items() if then.get(name) != value}
        changed |= {name: now for name, (_, now) in identity.differences(manifest, session.machine).items()}
        if identity.other_speed(manifest, session.machine):
            changed[identity.SPEED] = session.machine["identity"]["product_s"]
        if changed:
            entry["machine"] = changed  # such as another version of jax
        write_manifest(folder, {**manifest, "sessions": [*manifest.get("sessions", []), entry]})


Clock = Callable[[], int]


def process_begun_ns() -> int:
    """Unix time in ns at which this process was created, to a tick of the system; the current time without a /proc.

    The creation time survives `os.execve`, so a process that replaced itself includes the time of its predecessor.
    """
    stat = Path("/proc/self/stat")
    if not stat.exists():
        return time.time_ns()
    ticks = int(stat.read_text().rpartition(")")[2].split()[19])  # proc(5): starttime, since the system's boot
    return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) + ticks * 10**9 // os.sysconf("SC_CLK_TCK")


class TimeLedger:
    """The time ledger of this start in `folder`. As a context it also writes from a thread while the process is busy.

    Attributes:
      step: completed steps, set by the training loop.
      from_step: the restored step, 0 for a fresh training; None before restoring.
      finished: the training has ended, so the time until it is continued with a larger target is not lost time.
      kind, ticks: what the process is doing, and the number of changes of that.
    """

    def __init__(
        self,
        folder: Path,
        *,
        begun_ns: int,
        kept: bool = True,
        wall: Clock = time.time_ns,
        clock: Clock = time.monotonic_ns,
    ) -> None:
        """begun_ns: Unix time in ns at which this start began. kept: whether the ledger is written; only one of several
        processes writes it.

        Raises UserError when the folder cannot be written.
        """
        before = trainings.read_ledger(folder) if kept else []
        self._folder, self._clock, self._lock = folder, clock, threading.Lock()
        self._number = len(before) + 1
        # Not before the end of the previous start: an elastic restart happens within the life of one process.
        self._begun_ns = max([begun_ns, *(start.end_ns for start in before[-1:])])
        self._ns = dict.fromkeys(KINDS, 0)
        self._ns["start"] = max(0, wall() - self._begun_ns)
        self.kind, self.ticks, self._since = "start", 0, clock()
        self.step = 0
        self.from_step: int | None = None
        self.finished = False
        self._sealed, self._sealing_ns = 0, 0
        self._path, self._silent = folder / LEDGER, not kept
        self._ended = threading.Event()
        if kept:
            with writing(folder), open(self._path, "a+b") as file:
                self._at = file.tell()  # where the lines of this start begin
                file.seek(max(0, self._at - 1))
                if file.read() not in (b"", b"\n"):
                    file.write(b"\n")  # after a line that a crash cut off
        self._thread = threading.Thread(target=self._beat, name="ledger", daemon=True)
        self.write()

    def __enter__(self) -> TimeLedger:
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._ended.set()
        self._thread.join()
        if error is None:  # an error may be that of a full disk, which a last line would meet again
            self.write()

    @contextlib.contextmanager
    def doing(self, kind: str) -> Iterator[TimeLedger]:
        """A context that books its time under `kind`, one of `KINDS`. Contexts inside it book their own time."""
        before = self._switch(kind)
        try:
            yield self
        finally:
            self._switch(before)

    def rename(self, kind: str) -> None:
        """Books the time since the current context began under `kind` instead."""
        with self._lock:
            self.kind = kind  # the time is booked when the context ends, under the kind that it has then

    def _switch(self, kind: str) -> str:
        """Begins a context of `kind`. Returns the kind of the previous context."""
        with self._lock:
            now, before = self._clock(), self.kind
            self._ns[before] += now - self._since
            self.kind, self._since = kind, now
            self.ticks += 1  # a process that does not change what it is doing may hang (`run.Watch`)
            return before

    def sealed(self, seconds: float) -> None:
        """Notes that a checkpoint was sealed, `seconds` after it had ceased to block. Any thread may call this."""
        with self._lock:
            self._sealed += 1
            self._sealing_ns += round(seconds * 1e9)

    def discard(self) -> None:
        """Removes what was written, because there was nothing to train."""
        with self._lock, writing(self._folder):
            if not self._silent:
                os.truncate(self._path, self._at)
            self._silent = True  # the thread would write again

    def write(self, *, saving: bool = False) -> None:
        """Appends a line. saving: a checkpoint of `step` begins. Raises UserError when the disk is full."""
        with self._lock:
            if self._silent:
                return
            ns = {**self._ns, self.kind: self._ns[self.kind] + self._clock() - self._since}
            line = {
                "start": self._number,
                "begun_ns": self._begun_ns,
                "from_step": self.from_step,
                "step": self.step,
                "saving": saving,
                "sealed": self._sealed,
                "sealing_ns": self._sealing_ns,
                "finished": self.finished,
                "ns": ns,
            }
            # One call of the system appends the line, so a kill leaves all of it or none.
            with writing(self._folder), open(self._path, "ab", buffering=0) as file:
                file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def _beat(self) -> None:
        """Writes the ledger from time to time, until the training ends."""
        first, pause_s = self._clock(), SHORTEST_BEAT_S  # short at first: a start may be killed after a second
        with contextlib.suppress(UserError):  # a full disk: the training thread meets and reports it too
            while not self._ended.wait(pause_s):
                self.write()
                pause_s = min(LONGEST_BEAT_S, max(SHORTEST_BEAT_S, BEAT * (self._clock() - first) / 1e9))

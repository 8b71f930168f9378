# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A run folder: it can be created, resumed, appended to and read without losing a finished measurement.

Each line of ``records.jsonl`` has a hash of itself and of the hash of the line before it, or, in the first line, of the
config. So a changed setting, and a line that was changed, removed or added, is found. Lines of older versions have no
hash.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import errno
import fcntl
import json
import os
from collections.abc import Iterable, Mapping
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any

from jaxbench.core import same_model, schema
from jaxbench.errors import UserError
from jaxbench.records.documents import SHA256, decode, digest, flatten, sealed, unsealed
from jaxbench.records.manifest import Manifest
from jaxbench.records.reading import read_json, read_lines

RECORDS = "records.jsonl"
CONFIG = "config.json"
MANIFEST = "manifest.json"
LOCK = ".lock"
_RESTORE = "restore it, or choose a new --workdir."
LAUNCH = "launch.json"  # marks a folder of launched jobs, each with its own run folder: analysis/launched.py


def write_atomic(path: Path, text: str | bytes) -> None:
    """Replaces `path` atomically: a reader, or a crash, leaves the old file or the new one, never half of it.

    Raises UserError if the disk is full.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")  # with the id, so that two writers do not share it
    try:
        with open(part, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
            file.flush()
            os.fsync(file.fileno())  # before the rename, or a crash could leave an empty file
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise UserError(f"cannot write '{path}' ({error.strerror}): make room and continue.") from error


def write_json(path: Path, value: object) -> None:
    write_atomic(path, json.dumps(value, indent=2, sort_keys=True) + "\n")


def write_manifest(folder: Path, manifest: Mapping[str, object]) -> None:
    """Writes `manifest.json` with its hash, in place of an earlier one."""
    write_json(folder / MANIFEST, sealed(json.loads(json.dumps(manifest))))  # the hash is of what will be read


class FolderLock:
    """Locks `folder` against other processes until it is closed, or this process ends. It leaves no file behind.

    Raises:
      UserError: another process holds the lock.
    """

    def __init__(self, folder: Path):
        path = folder / LOCK
        self._path = path
        while True:
            # The kernel frees the lock of a killed process. A link could lead to a file of another folder.
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(self._file)
                raise UserError(
                    f"another process is using '{folder}': wait for it or choose a new --workdir."
                ) from error
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self._file), os.stat(path)):
                    return
            os.close(self._file)  # the holder has ended, and has removed it in between

    def close(self) -> None:
        with contextlib.suppress(OSError):  # a folder that became read-only, or that is gone, keeps its state
            self._path.unlink(missing_ok=True)  # while it is locked
        os.close(self._file)

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()


def lock_folder(folder: Path) -> FolderLock:
    """Locks a folder; see `FolderLock`."""
    return FolderLock(folder)


class RunFolder:
    """``manifest.json``, ``config.json``, ``records.jsonl``, and the figures and pages of its report.

    Open it with `begin` to write, and by its constructor to read, which needs no lock.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self.notes: list[str] = []  # sentences to show, such as a repaired file
        self._file: FileIO | None = None
        self._lock: FolderLock | None = None
        self._hash = ""  # of the last record
        self._first: dict[str, schema.PointRecord | schema.CaseRecord] = {}  # by point; says which model it measures

    @classmethod
    def begin(cls, path: str | os.PathLike[str], config: Mapping[str, object]) -> RunFolder:
        """Creates the folder, or continues it if it has the same config. Locks it until `close`.

        Raises:
          UserError: the folder cannot be written, is in use, contains a training, another config or model, or records
            of another schema.
        """
        run = cls(path)
        try:
            config = json.loads(json.dumps(config))  # as it will be read back: a tuple becomes a list
        except TypeError as error:
            raise UserError(f"the config cannot be written as JSON ({error}): use numbers, strings, lists.") from error
        try:
            run.path.mkdir(parents=True, exist_ok=True)
            run._lock = lock_folder(run.path)
            run._claim(config)
            (run.path / "figures").mkdir(exist_ok=True)
            write_json(run.path / CONFIG, config)  # report.* may have changed
            run._file = FileIO(run.path / RECORDS, "a")  # unbuffered: with a buffer, a full disk would fail in `close`
        except OSError as error:
            run.close()
            raise UserError(f"cannot write to '{run.path}' ({error.strerror}): choose another --workdir.") from error
        except UserError:
            if run._lock is not None:
                run._lock.close()
                run._lock = None
            run.close()
            raise
        return run

    def _claim(self, config: Mapping[str, object]) -> None:
        """Raises UserError if the locked folder has something that this run must not be mixed with."""
        if (self.path / "checkpoints").exists() or (self.path / "metrics.jsonl").exists():
            raise UserError(f"'{self.path}' contains a training: choose a new --workdir for measurements.")
        if (self.path / LAUNCH).exists():
            raise UserError(f"'{self.path}' gathers the runs of launched jobs: choose a new --workdir.")
        if (self.path / CONFIG).exists():
            self._require_same_config(config)
        elif (self.path / RECORDS).exists():
            raise UserError(f"'{self.path}' has records but no {CONFIG}: choose a new --workdir.")
        notes = list(self.notes)
        for record in self.records():  # raises for damage or another schema before anything is changed
            self._require_same_model(record)
        self.notes = notes  # without the note on an unfinished line, which the next call removes
        self._repair_last_line()

    def _require_same_config(self, config: Mapping[str, object]) -> None:
        """Raises UserError if a field differs that is not in report.*, which may change."""
        old, new = flatten(self.config()), flatten(config)
        names = (name for name in old.keys() | new.keys() if not name.startswith("report."))
        changed = sorted(name for name in names if old.get(name) != new.get(name))
        if changed:
            shown = ", ".join(f"{k} was {old.get(k)!r} and is now {new.get(k)!r}" for k in changed[:3])
            more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
            raise UserError(f"'{self.path}' has results of another config ({shown}{more}): choose a new --workdir.")

    def _repair_last_line(self) -> None:
        """Removes a last line that a crash left unfinished, and adds a note."""
        path = self.path / RECORDS
        if not path.exists():
            return
        data = path.read_bytes()
        end = data.rfind(b"\n") + 1
        if end < len(data):
            write_atomic(path, data[:end])
            cut = len(data) - end
            self.notes.append(f"{path}: the last line was cut off by a crash and was removed ({cut} bytes).")

    def append(self, record: schema.Record) -> schema.Record:
        """Writes one record and syncs it to the disk. Returns it with its time.

        Raises:
          UserError: it cannot be written, or it is of another model than the point's earlier records.
        """
        if self._file is None:
            raise ValueError("this run folder was opened for reading")
        self._require_same_model(record)
        line = schema.to_json(record)
        line["time"] = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        try:
            line[SHA256] = self._hash = digest(line, self._hash or config_hash(self.config()))
        except ValueError as error:
            raise UserError(f"{record.point} cannot be recorded, because {error}: check its FLOPs.") from error
        data = f"{json.dumps(line, separators=(',', ':'))}\n".encode()
        try:
            while data:  # a nearly full disk takes a part of it
                data = data[self._file.write(data) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise UserError(f"cannot write to '{self.path}' ({error.strerror}): make room and continue.") from error
        return dataclasses.replace(record, time=line["time"])

    def _require_same_model(self, record: schema.Record) -> None:
        """Raises UserError if the model of a point has changed: one median would mix the times of two models."""
        if not isinstance(record, schema.PointRecord | schema.CaseRecord):
            return
        first = self._first.setdefault(record.point, record)
        if differences := same_model.model_differences(first, record):
            sentence = same_model.model_sentence(differences, "so far", "now")
            raise UserError(f"'{self.path}' has another model of {record.point} ({sentence}): use a new --workdir.")

    def close(self) -> None:
        for file in (self._file, self._lock):
            if file is not None:
                file.close()
        self._file = self._lock = None

    def config(self) -> dict[str, Any]:
        return read_json(self._file_of_run(CONFIG), partial(decode, dict[str, Any]), _RESTORE)

    def manifest(self) -> Manifest:
        return read_json(self._file_of_run(MANIFEST), lambda value: decode(Manifest, unsealed(value)), _RESTORE)

    def _file_of_run(self, name: str) -> Path:
        if not (path := self.path / name).exists():
            raise UserError(f"'{self.path}' is not a run folder: it has no {name}.")
        return path

    def records(self) -> list[schema.Record]:
        """Reads all records. An unfinished last line is skipped, with a note.

        Raises:
          UserError: another line is not a record, was changed after it was written, or has another schema version.
        """
        path, self._hash = self.path / RECORDS, ""
        if not path.exists():
            return []
        if (data := path.read_bytes()) and not data.endswith(b"\n"):
            number = data.count(b"\n") + 1
            self.notes.append(f"{path}, line {number}: unfinished, skipped.")
        advice = "restore the file, or delete this line and all lines after it."
        return [*read_lines(path, self._record, advice)]

    def _record(self, line: dict[str, Any]) -> schema.Record:
        """One line as a record. Raises if its schema is another one, or if the chain of hashes is broken."""
        if line["schema"] != schema.SCHEMA_VERSION:
            raise UserError(
                f"a record in '{self.path}' has schema {line['schema']}, this jaxbench reads schema "
                f"{schema.SCHEMA_VERSION}: use the jaxbench that wrote it or a new --workdir."
            )
        stated = line.pop(SHA256, "")
        if (stated or self._hash) and stated != digest(line, self._hash or config_hash(self.config())):
            raise ValueError("it, a line before it or the config is not as it was written")
        self._hash = stated
        return schema.from_json(line)


def config_hash(config: Mapping[str, object]) -> str:
    """The hash of what may not change in a config: all but report.*."""
    return digest({name: value for name, value in config.items() if name != "report"})


def chained(records: Iterable[schema.Record], config: Mapping[str, object]) -> str:
    """The text of a records file with these records, for a run with this config."""
    lines, hash_before = [], config_hash(config)
    for line in map(schema.to_json, records):
        hash_before = digest(line, hash_before)
        lines.append(json.dumps({**line, SHA256: hash_before}, separators=(",", ":")) + "\n")
    return "".join(lines)

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A result card: a run as one document with config, manifest, raw samples, results, the machine profile and a hash.

A card does not record when it was made, so a run always gives the same card. The file name comes from the content. The
results are derived from the records when a card is made, and again whenever it is read.

A card has no private data: home folders, user names, host names and paths. This is the only place that removes private
data.

- In every string, paths below the working folder and below the package become relative, and home folders become "~".
- In `PRIVATE` fields it also replaces the host's name, the user's name in a path or before an @, and every other
  absolute path except for its last part.
- The values of environment variables with a name such as ADDRESS, HOST, USER or TOKEN are removed.

Numbers and the names of fields never change.
"""

from __future__ import annotations

import dataclasses
import getpass
import json
import math
import re
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.text import Text

from jaxbench.analysis import machine_profile
from jaxbench.core.store import CONFIG, RECORDS, RunFolder, write_atomic, write_json, write_manifest
from jaxbench.errors import UserError
from jaxbench.features.comparison import comparable
from jaxbench.features.comparison.comparable import FinishedRun
from jaxbench.records import documents
from jaxbench.records.documents import SHA256, AtLeastOne
from jaxbench.records.machine_profile import MachineProfile
from jaxbench.records.reading import read_json, read_lines
from jaxbench.report import columns
from jaxbench.report.table import records
from jaxbench.statistics.bootstrap import MIN_ROUNDS

PRIVATE = frozenset({"command", "environment", "os", "reason", "detail", "notes"})  # free text, at any depth
REMOVED = "<removed>"
_SECRET = {
    "ADDRESS",
    "ADDRESSES",
    "HOST",
    "HOSTS",
    "HOSTNAME",
    "HOSTNAMES",
    "IP",
    "USER",
    "TOKEN",
    "KEY",
    "PASSWORD",
    "SECRET",
}
# A home folder, if nothing stands before it that makes it a part of another path, such as backup/home/ada.
_HOME = re.compile(r"(?<![\w.])/(?:root|(?:home|Users)/[^/\s\"':;,]+)(?=[/\s\"':;,)]|$)")
# An absolute path. After "~", ">" or ")" it is the rest of a path, and the beginning is redacted already.
_PATH = re.compile(r"(?<![\w.~/>)-])/(?:[\w.+@-]+/)+([\w.+@-]+)")
# How a card contradicts its own records.
CONTRADICTIONS = {
    "measures": "it says that it measures {says}, and its records are of {found}",
    "name": "its name has {field} {says!r}, and its records {found!r}",
    "points": "its table and its records do not have the same points",
    "table": "its table has {field} {says!r} at {point}, and its records {found!r}",
}
NO_INTERVAL = f"{{point}}: no interval, because it has {{count}} of the {MIN_ROUNDS} rounds that an interval needs."
RESTORE = "restore it, or make it again from its run."
SCHEMA = 1
KIND = "jaxbench card"
# Columns of summary.csv, with the same meaning.
COMMON = (
    "devices",
    "platform",
    "device_kind",
    "oversubscribed",
    "status",
    "check_ok",
    "reason",
    "notes",
    "rounds",
    "samples",
    "step_s",
    "step_s_lo",
    "step_s_hi",
    "step_s_p95",
    "step_s_cv",
    "throughput",
    "throughput_lo",
    "throughput_hi",
    "throughput_unit",
    "compile_s",
    "peak_bytes",
    "flop_per_s",
)
TRAINING = (
    "strategy",
    "scaling",
    "arm",
    "global_batch",
    "speedup",
    "speedup_lo",
    "speedup_hi",
    "efficiency",
    "efficiency_lo",
    "efficiency_hi",
    "base_devices",
    "mfu",
    "gradient_bytes",
)
CASES = (
    "op",
    "dtype",
    "impl",
    "shape",
    "elements",
    "payload_bytes",
    "mesh",
    "axis",
    "source",
    "target",
    "cores",
    "bytes_per_s",
    "bytes_per_s_lo",
    "bytes_per_s_hi",
    "algbw",
    "busbw",
    "busbw_lo",
    "busbw_hi",
    "peak_share",
    "wrong",
    "gate",
    "gate_reason",
)
# What must follow from the records
CLAIMS = ("status", "devices", "global_batch", "step_s", "efficiency", "busbw", "bytes_per_s", "flop_per_s")
# The relative difference allowed between a card's number and the number derived from its records. A later version may
# compute it differently: a step time was once the median of all blocks, and is now the mean over processes of their
# medians. Pages show the derived number, so an edit within this tolerance has no effect.
SLACK = 0.1


def redact(value: Any, *, private: bool = False) -> Any:
    """A copy of a JSON value without private data. private: whether it is inside one of the `PRIVATE` fields."""
    if isinstance(value, dict):
        return {
            name: REMOVED
            if private and isinstance(inner, str) and _SECRET & set(name.upper().split("_"))
            else redact(inner, private=private or name in PRIVATE)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact(inner, private=private) for inner in value]
    return redact_text(value, private=private) if isinstance(value, str) else value


def redact_text(string: str, *, private: bool = False) -> str:
    """One string without private data."""
    # Longest first, so that a folder inside another is replaced before it.
    # Not the home folder itself, even if that is the working folder: "~" says more than ".".
    folders = {str(Path.cwd()), str(Path(__file__).resolve().parents[3])} - {"/", str(Path.home())}
    for folder in sorted(folders, key=len, reverse=True):
        string = re.sub(rf"(?<![\w.]){re.escape(folder)}/", "", string)
        string = re.sub(rf"(?<![\w.]){re.escape(folder)}(?![\w.-])", ".", string)
    # After the folders above: they may lie in the home folder, and relative paths say more than "~".
    string = _HOME.sub("~", string)
    if not private:
        return string
    string = _PATH.sub(r".../\1", string)  # the last part stays: it names the experiment or the library
    host, user = socket.gethostname(), _user()
    if len(host) > 2 and host != "localhost":  # a shorter name would also match parts of ordinary words
        string = re.sub(rf"(?<![\w.]){re.escape(host)}(?![\w])", "<host>", string)
    return re.sub(rf"(?<=/){re.escape(user)}(?=/|$)|\b{re.escape(user)}(?=@)", "<user>", string) if user else string


def _user() -> str:
    """The name of this user; "" if the system does not know it."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may have no entry for its user: OSError from Python 3.13 on
        return ""


@dataclass(frozen=True, kw_only=True)
class CardName:
    """What a card is named after. devices: the largest number that was measured."""

    experiment: str
    device_kind: str
    devices: AtLeastOne


@dataclass(frozen=True, kw_only=True)
class CardDocument:
    """One run of jaxbench in one document: its settings, its machine, every raw sample, and the results.

    Units are in the names: _s seconds, _bytes bytes, _per_s per second. An unknown number is null, never NaN. Home
    folders, host and user names, addresses and absolute paths are removed (jaxbench/features/cards/card.py).

    Attributes:
      config: every setting of the run, as in its config.json: enough to run it again.
      manifest: the machine and the software.
      records: every line of records.jsonl in its order: the raw samples.
      points: the results, one entry for each point, including failed and missing points; fields as in summary.csv.
      notes: a sentence for each point that is not as requested, and for each repair of a file.
      machine: the machine profile of the run; None without one, for the reason in `machine_why_not`.
      sha256: of the canonical JSON of all other fields (names sorted, no spaces, ASCII).
    """

    schema: Literal[1]
    kind: Literal["jaxbench card"]
    name: CardName
    measures: Literal["training", "cases"]
    config: dict[str, Any]
    manifest: dict[str, Any]
    records: tuple[dict[str, Any], ...]
    points: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]
    machine: dict[str, Any] | None
    machine_why_not: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Card:
    """A card that was read and verified. points: one entry per point, derived from its records."""

    path: Path
    data: dict[str, Any]
    points: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    @property
    def manifest(self) -> dict[str, Any]:
        return self.data["manifest"]

    @property
    def of_cases(self) -> bool:
        return self.data["measures"] == "cases"

    def run(self) -> FinishedRun:
        """The run that the card was made from, analysed again from the samples."""
        # Through a run folder, so that a card passes every check of a run, and no second reader can differ.
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_json(folder / CONFIG, self.data["config"])
            write_manifest(folder, self.manifest)
            lines = (json.dumps(line, allow_nan=False) for line in self.data["records"])
            (folder / RECORDS).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            try:
                analysed = comparable.read(folder)
            except UserError as error:
                message = str(error).replace(f"{folder}/", "").replace(str(folder), str(self.path))
                raise UserError(f"the card '{self.path}' does not hold a run: {message}") from error
        return dataclasses.replace(analysed, path=self.path)


def make(run: Path) -> dict[str, Any]:
    """The card of the run folder `run`, as JSON values.

    Raises:
      UserError: it is not a run folder, it is damaged or of another schema, or it holds no measurement.
    """
    measured = comparable.read(run)  # refuses what no reader of the card could use
    machine = machine_profile.read(run / machine_profile.NAME)
    why_not = "the run has no machine.json: 'jaxbench machine' makes one, and later runs take it with them."
    # Peaks of another machine would turn right rates into wrong shares.
    if machine is not None and (why_not := machine_profile.matches(machine, measured.manifest)):
        machine = None
    folder = RunFolder(run)
    folder.records()  # fills `notes` with what it skipped
    card = redact(
        {
            "schema": SCHEMA,
            "kind": KIND,
            "name": _name(measured),
            "measures": _measures(measured),
            "config": measured.config,
            "manifest": measured.manifest,
            "records": _lines(run / RECORDS),
            "points": _points(measured, machine_profile.at_speed_of(machine, measured.manifest)),
            "notes": [note.replace(str(run), run.name) for note in folder.notes] + _short(measured),
            "machine": machine,
            "machine_why_not": why_not,
        }
    )
    # Sealed last: the hash must be that of the redacted card, which is all that its readers have.
    try:
        return documents.sealed(card)
    except ValueError as error:
        raise UserError(f"no card can be made of '{run}', because {error}.") from error


def write(card: dict[str, Any], folder: Path) -> Path:
    """Writes the card into `folder` under a name made from its content, so the same card is always the same file.

    Raises UserError if another file has that name.
    """
    name = card["name"]
    path = (
        folder / f"{_slug(name['experiment'])}-{_slug(name['device_kind'])}-{name['devices']}-{card['sha256'][:8]}.json"
    )
    text = _text(card)
    folder.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.read_bytes() != text.encode():  # eight digits of a hash, or somebody edited it
        raise UserError(f"'{path}' exists and is not this card: move it away, because it is not overwritten.")
    write_atomic(path, text)
    return path


def save(run: Path, folder: Path, console: Console) -> int:
    """Makes and writes the card of a run, and prints its path and notes. Returns the exit code 0. Raises UserError."""
    made = make(run)
    path = write(made, folder)
    for note in made["notes"]:
        console.print(Text(note, style="yellow"), soft_wrap=True)
    if made["machine_why_not"]:
        console.print(Text(f"No link and peak numbers: {made['machine_why_not']}", style="dim"), soft_wrap=True)
    console.print(Text(f"Card: {path}"), soft_wrap=True)
    return 0


def _slug(name: str) -> str:
    """ "NVIDIA H100 80GB" -> "nvidia-h100-80gb": a valid file name on every system."""
    return re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")[:40] or "unnamed"


def _text(card: dict[str, Any]) -> str:
    """The card as JSON, one line for each field and each list entry, so that `diff` can compare cards."""
    lines = []
    for name, value in sorted(card.items()):
        if isinstance(value, list) and value:
            entries = ",\n".join(f"  {json.dumps(entry, sort_keys=True, allow_nan=False)}" for entry in value)
            lines.append(f'"{name}": [\n{entries}\n ]')
        else:
            lines.append(f'"{name}": {json.dumps(value, sort_keys=True, allow_nan=False)}')
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def _lines(path: Path) -> list[dict[str, Any]]:
    """Every complete line of a records file that has been validated, without its hash: the card has its own."""
    lines = read_lines(path, dict, "restore the file.")
    return [{name: value for name, value in line.items() if name != SHA256} for line in lines]


def _short(run: FinishedRun) -> list[str]:
    """A sentence for each point that failed, is incomplete or wrong, or has too few rounds for an interval."""
    sentences = [f"{p.point}: {p.status} ({p.reason})." for p in run.points if p.status != "ok"]
    sentences += [f"{p.point}: wrong ({p.reason})." for p in run.points if p.status == "ok" and p.check_ok is False]
    few = [(p.point, len(p.rounds)) for p in run.points if 0 < len(p.rounds) < MIN_ROUNDS]
    return sentences + [NO_INTERVAL.format(point=point, count=count) for point, count in few]


def _measures(run: FinishedRun) -> str:
    """ "training" or "cases"."""
    return "cases" if run.points and run.points[0].of_case else "training"


def _name(run: FinishedRun) -> dict[str, Any]:
    """The experiment, the kind of device, and the largest number of devices."""
    measured = [point for point in run.points if point.rounds]  # points that failed prove no devices
    kinds = [point.record.device_kind for point in measured if point.record is not None]
    return {
        "experiment": measured[0].experiment,
        "device_kind": str(run.manifest.get("device_kind") or next(iter(kinds), "unknown")),
        "devices": max(point.devices for point in measured),
    }


def _points(run: FinishedRun, machine: MachineProfile | None) -> list[dict[str, Any]]:
    """One entry per point, including failed and missing points. Unknown numbers are None.

    machine: the peaks and links of its machine (`machine_profile.read`), or None.
    """
    rows = run.rows(machine)
    fields = (*(CASES if _measures(run) == "cases" else TRAINING), *COMMON)
    return [
        # As Python's numbers: some are NumPy's, which JSON does not know.
        {"point": row.point_id, **{field: np.asarray(record[field]).item() for field in fields}}
        for row, record in zip(rows, records(columns.FILE, rows), strict=True)
    ]


def read(path: Path) -> Card:
    """Reads a card. Checks its schema, its hash, its fields, and its table against its records.

    Raises:
      UserError: one sentence that names the card and what is wrong with it.
    """

    def decoded(data: Any) -> Card:
        if not isinstance(data, dict) or data.get("kind") != KIND:
            raise UserError(f"'{path}' is not a result card: make one of a run with 'jaxbench card --run=DIR'.")
        documents.unsealed(data)  # raises for a wrong hash
        documents.decode(CardDocument, data)
        run = Card(path=path, data=data).run()
        # Anybody can compute a hash, so the numbers are derived from the samples again, and the table is only compared.
        card = Card(path=path, data=data, points=_points(run, data["machine"]))
        if why := _contradiction(card, run):
            raise ValueError(why)
        return card

    return read_json(path, decoded, RESTORE)


def _contradiction(card: Card, run: FinishedRun) -> str:
    """How a card contradicts its own records, as a clause; "" if it does not."""
    stated, name = {point.get("point"): point for point in card.data["points"]}, _name(run)
    if card.data["measures"] != _measures(run):
        return CONTRADICTIONS["measures"].format(says=card.data["measures"], found=_measures(run))
    for field in ("experiment", "devices"):  # the kind of device may be unknown to the records
        if (says := card.data["name"][field]) != name[field]:
            return CONTRADICTIONS["name"].format(field=field, says=says, found=name[field])
    if stated.keys() != {point["point"] for point in card.points}:
        return CONTRADICTIONS["points"]
    for point in card.points:
        for field in point.keys() & {*CLAIMS}:  # a card of cases has other columns than one of steps
            says, derived = stated[point["point"]].get(field), point[field]
            if field == "efficiency" and derived is None:  # earlier versions gave one without an interval, too
                continue
            numbers = isinstance(says, float) and isinstance(derived, int | float)
            if not (math.isclose(says, derived, rel_tol=SLACK) if numbers else says == derived):
                facts = {"field": field, "says": says, "point": point["point"], "found": derived}
                return CONTRADICTIONS["table"].format(**facts)
    return ""

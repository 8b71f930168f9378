# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The file format of a card: its hash, its lines, and a reader that verifies both."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench.cards import derived
from jaxbench.errors import UserError
from jaxbench.records import documents, schema
from jaxbench.records.store import CONFIG, MANIFEST, RECORDS, write_json
from jaxbench.verdicts import comparable
from jaxbench.verdicts.comparable import FinishedRun

SCHEMA = 1
KIND = "jaxbench card"
DOCUMENT = Path(__file__).parent / "schema" / "card.schema.json"
_TYPES: dict[str, tuple[type, ...]] = {  # every field of a card, and what it may be
    "schema": (int,), "kind": (str,), "name": (dict,), "measures": (str,), "config": (dict,), "manifest": (dict,),
    "records": (list,), "points": (list,), "notes": (list,), "machine": (dict, type(None)), "machine_why_not": (str,),
    "sha256": (str,),
}  # fmt: skip
_OF_POINT = ("point", "devices", "status", "check_ok", "oversubscribed", "step_s", "step_s_lo", "step_s_hi")
_OF_TRAINING = ("strategy", "scaling", "arm", "efficiency", "efficiency_lo", "efficiency_hi")
_OF_CASE = ("op", "dtype", "shape", "elements", "payload_bytes")
_NUMBERS = (
    "step_s", "step_s_lo", "step_s_hi", "efficiency", "efficiency_lo", "efficiency_hi", "elements", "payload_bytes",
    "base_devices",
)  # fmt: skip
_TEXTS = ("strategy", "scaling", "arm", "op", "dtype", "shape")


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
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_json(folder / CONFIG, self.data["config"])
            write_json(folder / MANIFEST, self.manifest)
            lines = (json.dumps(line, allow_nan=False) for line in self.data["records"])
            (folder / RECORDS).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            try:
                analysed = comparable.read(folder)
            except UserError as error:
                message = str(error).replace(f"{folder}/", "").replace(str(folder), str(self.path))
                raise UserError(f"the card '{self.path}' does not hold a run: {message}") from error
        return dataclasses.replace(analysed, path=self.path)


def to_text(card: dict[str, Any]) -> str:
    """The card as JSON, one line for each field and each list entry, so that `diff` can compare cards."""
    lines = []
    for name, value in sorted(card.items()):
        if isinstance(value, list) and value:
            entries = ",\n".join(f"  {json.dumps(entry, sort_keys=True, allow_nan=False)}" for entry in value)
            lines.append(f'"{name}": [\n{entries}\n ]')
        else:
            lines.append(f'"{name}": {json.dumps(value, sort_keys=True, allow_nan=False)}')
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def read(path: Path) -> Card:
    """Reads a card. Checks its schema, its hash, its fields, and its table against its records.

    Raises:
      UserError: one sentence that names the card and what is wrong with it.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise UserError(f"the card '{path}' cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise _damaged(path, "it is not UTF-8 text") from error
    try:
        data = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"it is not JSON, or it is truncated: {error}") from error
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise UserError(f"'{path}' is not a result card: make one of a run with 'jaxbench card --run=DIR'.")
    if data.get("schema") != SCHEMA or isinstance(data.get("schema"), bool):
        problem = f"the card '{path}' has schema {data.get('schema')!r}, but this jaxbench reads schema {SCHEMA}"
        raise UserError(f"{problem}: use the jaxbench that wrote it, or make the card again from its run.")
    _require_hash(path, data)
    _require_fields(path, data)
    card = Card(path=path, data=data)
    run = card.run()
    found = derived.points(run, data["machine"])
    if why := derived.contradiction(data, run, found):
        raise _damaged(path, why)
    return dataclasses.replace(card, points=found)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("an object has a name twice")
    return value


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _damaged(path: Path, why: str) -> UserError:
    return UserError(f"the card '{path}' is damaged ({why}): restore it, or make it again from its run.")


def _require_hash(path: Path, data: dict[str, Any]) -> None:
    try:
        actual = documents.digest(data)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "it holds a number that is not finite") from error
    if data.get("sha256") != actual:
        raise _damaged(path, f"its content has sha256 {actual[:8]}..., but it records {str(data.get('sha256'))[:8]}...")


def _require_fields(path: Path, data: dict[str, Any]) -> None:
    for name, types in _TYPES.items():
        if not isinstance(data.get(name), types) or name not in data:
            raise _damaged(path, f"its field {name} is missing or of the wrong kind")
    if extra := sorted(data.keys() - _TYPES.keys()):
        raise _damaged(path, f"it has an unknown field {extra[0]!r}")
    if data["measures"] not in ("training", "cases"):
        raise _damaged(path, f"it measures {data['measures']!r}, neither training nor cases")
    fields = (*_OF_POINT, *(_OF_CASE if data["measures"] == "cases" else _OF_TRAINING))
    for number, point in enumerate(data["points"], start=1):
        missing = [name for name in fields if not isinstance(point, dict) or name not in point]
        if missing:
            raise _damaged(path, f"point {number} has no {missing[0]}")
        _require_values(path, number, point)
    for line in data["records"]:
        version = line.get("schema") if isinstance(line, dict) else None
        if version != schema.SCHEMA_VERSION:
            problem = f"the card '{path}' has a record of schema {version}, but this jaxbench reads schema"
            raise UserError(f"{problem} {schema.SCHEMA_VERSION}: use the jaxbench that wrote it.")


def _require_values(path: Path, number: int, point: dict[str, Any]) -> None:
    """Values that tables and figures use must be numbers, or null if they may be unknown."""
    odd = [n for n in _NUMBERS if not isinstance(point.get(n), int | float | None) or isinstance(point.get(n), bool)]
    odd += [name for name in _TEXTS if not isinstance(point.get(name), str | None)]
    odd += [name for name in ("point", "status") if not isinstance(point[name], str)]
    if type(point["devices"]) is not int or point["devices"] < 1:
        odd.append("devices")
    if odd:
        raise _damaged(path, f"{odd[0]} of point {number} is {point[odd[0]]!r}")

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The result of an acceptance test, as `accept.json` keeps it. Without jax."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jaxbench.errors import UserError
from jaxbench.features.accept import rule
from jaxbench.records.documents import JsonObject, decode, plain
from jaxbench.records.reading import read_json

FILE = "accept.json"
SCHEMA = 1
FLEET = "all hosts"  # the host of what several hosts measure together
ALL = "all"  # the device of what a host measures as a whole


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The verdict on one unit in one probe.

    Attributes:
      host, device: that it belongs to; `ALL` for a whole host. unit: as the probe names it, such as "0>1" or "core 3".
      verdict: of `rule`. share, lo, hi: of the reference, at the level that decides; None: unknown.
      rate: the median over rounds, in the unit of the probe. reference: what judged it, as a clause.
      rounds: measured. needed: rounds that would decide it; 0: it is decided. margin: that it was judged with.
      text: what is wrong, as a clause.
    """

    host: str
    device: str
    unit: str
    probe: str
    verdict: str
    share: float | None = None
    lo: float | None = None
    hi: float | None = None
    rate: float | None = None
    reference: str = ""
    rounds: int = 0
    needed: int = 0
    margin: float = 0.0
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class HostResult:
    """A host. kinds: of its devices. verdict: on all that belongs to it. silent: why it has no results, as a clause."""

    name: str
    verdict: str
    kinds: tuple[str, ...] = ()
    silent: str = ""
    start_s: float = 0.0
    software: dict[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """A whole test.

    Attributes:
      sentences: that name what failed, then what is open, then what was not measured.
      against: the references in the order of trust, as clauses. level: of the error of one unit at the last look.
    """

    schema: int
    started: str
    finished: str
    seconds: float
    verdict: str
    margin: float
    against: tuple[str, ...]
    level: float
    rounds: int
    hosts: tuple[HostResult, ...]
    cells: tuple[Judged, ...]
    sentences: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        return rule.EXIT[self.verdict]

    def passing(self) -> list[str]:
        return [host.name for host in self.hosts if host.verdict == rule.PASS]

    def failing(self) -> list[str]:
        return [host.name for host in self.hosts if host.verdict == rule.FAIL]

    def document(self) -> JsonObject:
        """As JSON: with the exit code, and the names of the hosts by verdict."""
        whole: JsonObject = plain(self)
        return {**whole, "exit_code": self.exit_code, "passing": self.passing(), "failing": self.failing()}


def read(path: Path) -> Acceptance:
    """An acceptance test from its file. Raises UserError if there is none, or if it is damaged."""
    if not path.exists():
        raise UserError(f"there is no '{path}': name an accept.json of an earlier test, or a machine.json.")
    return read_json(path, partial(_decoded, path), "measure it again with jaxbench accept.")


def _decoded(path: Path, value: object) -> Acceptance:
    """The acceptance that a file holds. Raises UserError for another kind of file."""
    fields = decode(dict[str, object], value)
    if fields.get("schema") != SCHEMA or "cells" not in fields:
        raise UserError(f"'{path}' is no {FILE} of this jaxbench: measure it again with jaxbench accept.")
    made = ("exit_code", "passing", "failing")
    return decode(Acceptance, {name: each for name, each in fields.items() if name not in made})

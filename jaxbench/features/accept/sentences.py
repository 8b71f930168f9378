# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a test says in words: the slow device, link or pair of hosts first. Without jax."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxbench.features.accept import rule
from jaxbench.features.accept.outcome import ALL, FLEET, HostResult, Judged
from jaxbench.features.accept.probes import DOCTOR, HEAT, SOFTWARE, TITLES
from jaxbench.features.accept.verdicts import Measured

OPEN = 8  # the most open questions that are listed: a noisy fleet has hundreds


def of(cells: Sequence[Judged], hosts: Sequence[HostResult]) -> list[str]:
    """What failed, by weight: wrong bits, silence, then slowness; then what is open."""
    order = (rule.WRONG, rule.SILENT, rule.FAIL, rule.CANNOT_TELL)
    known = [cell for cell in cells if cell.verdict in order]
    ranked = sorted(known, key=lambda cell: (order.index(cell.verdict), cell.share or 0.0))
    bad = [_bad(cell) for cell in ranked if cell.verdict != rule.CANNOT_TELL]
    open_ = [_open(cell) for cell in ranked if cell.verdict == rule.CANNOT_TELL]
    more = [f"And {len(open_) - OPEN} more questions are open."] if len(open_) > OPEN else []
    nothing = [
        f"{host.name}: nothing could be judged: it has one device, and there is no card or forecast of it."
        for host in hosts
        if host.verdict == rule.CANNOT_TELL and not any(cell.host == host.name for cell in known)
    ]
    return [*bad, *open_[:OPEN], *more, *nothing]


def name(cell: Judged) -> str:
    """The device, link, core or pair of hosts, as people call it."""
    if cell.probe == "host_pairs":
        return "the link from {} to {}".format(*cell.unit.split(" > "))
    if cell.host == FLEET:
        return FLEET
    if cell.probe == "pairs":
        return "the link from device {} to device {} of {}".format(*cell.unit.split(">"), cell.host)
    if cell.device != ALL:
        return f"device {cell.device} of {cell.host}"
    return f"{cell.unit} of {cell.host}" if cell.unit.startswith("core ") else cell.host


def _bad(cell: Judged) -> str:
    who = name(cell)
    if cell.verdict == rule.WRONG:
        return f"{who} computes wrong bits in {TITLES[cell.probe]}: {cell.text}."
    if cell.verdict == rule.SILENT:
        return f"{who} does not answer: {cell.text}."
    if cell.probe == SOFTWARE:
        return f"{who} has other software: {cell.text}."
    if cell.probe == DOCTOR:
        return f"{who} is not fit: {cell.text}"
    if cell.share is None:
        return f"{who} failed in {TITLES.get(cell.probe, cell.probe)}: {cell.text}."
    if cell.probe == HEAT:
        return f"{who} became slower under load: {_percent(cell)} of the speed of its first third."
    return f"{who} is slow in {TITLES[cell.probe]}: {_percent(cell)} of {cell.reference}."


def _open(cell: Judged) -> str:
    who = name(cell)
    if cell.probe == SOFTWARE:
        return f"{who} has other software than as many hosts: {cell.text}."
    if cell.share is None:
        return f"{who} in {TITLES[cell.probe]}: {cell.rounds} rounds are too few."
    more = f"; it would need about {cell.needed} rounds" if cell.needed else ""
    return f"{who} in {TITLES[cell.probe]}: {_percent(cell)} of {cell.reference} after {cell.rounds} rounds{more}."


def _percent(cell: Judged) -> str:
    return f"{100 * (cell.share or 0):.1f} % [{100 * (cell.lo or 0):.1f}, {100 * (cell.hi or 0):.1f}]"


def left_out(hosts: Iterable[Measured]) -> list[str]:
    """Probes that were not measured, each once with its reason."""
    found: dict[str, list[str]] = {}
    for host in hosts:
        for probe, why in host.left_out.items():
            found.setdefault(f"{TITLES[probe]} was not measured: {why}.", []).append(host.name)
    return [*found]


def findings(hosts: Iterable[Measured]) -> list[str]:
    """What the doctor doubts."""
    return [
        f"{host.name}, {what}: {message}"
        for host in hosts
        for what, state, message in host.findings
        if state == "doubtful"
    ]

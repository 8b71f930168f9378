# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a test says in words: the slow device, link or pair of hosts first. Without jax."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from jaxbench.features.accept import rule
from jaxbench.features.accept.outcome import ALL, FLEET, HostResult, Judged
from jaxbench.features.accept.probes import DOCTOR, HEAT, SOFTWARE, TITLES
from jaxbench.features.accept.verdicts import Measured

BAD = {  # by verdict or probe
    rule.WRONG: "{who} computes wrong bits in {probe}: {text}.",
    rule.SILENT: "{who} does not answer: {text}.",
    SOFTWARE: "{who} has other software: {text}.",
    DOCTOR: "{who} is not fit: {text}",
    "failed": "{who} failed in {probe}: {text}.",
    HEAT: "{who} became slower under load: {percent} of the speed of its first third.",
    "slow": "{who} is slow in {probe}: {percent} of {reference}.",
}
UNSURE = {
    SOFTWARE: "{who} has other software than half of the hosts, so neither version is the usual one: {text}.",
    "few": "{who}, {probe}: {rounds} rounds are too few.",
    "open": "{who}, {probe}: {percent} of {reference} after {rounds} rounds{more}.",
}
ENOUGH_MARGIN = (
    "Rounds vary too much here for a margin of {asked:g} %. Nothing is more than {enough} % slower than its reference: "
    "with --margin={enough}% these rounds would pass everything."
)
PAIR_OF_HOSTS, PAIR = "the link from {} to {}", "the link from device {} to device {} of {}"
OPEN = 8  # the most open questions that are listed: a noisy fleet has hundreds


def of(cells: Sequence[Judged], hosts: Sequence[HostResult]) -> list[str]:
    """What failed, by weight: wrong bits, silence, then slowness; then what is open."""
    order = (rule.WRONG, rule.SILENT, rule.FAIL, rule.CANNOT_TELL)
    known = [cell for cell in cells if cell.verdict in order]
    ranked = sorted(known, key=lambda cell: (order.index(cell.verdict), cell.share or 0.0))
    bad = [_fault_sentence(cell) for cell in ranked if cell.verdict != rule.CANNOT_TELL]
    open_ = [_undecided_sentence(cell) for cell in ranked if cell.verdict == rule.CANNOT_TELL]
    more = [f"And {len(open_) - OPEN} more questions are open."] if len(open_) > OPEN else []
    nothing = [
        f"{host.name}: nothing could be judged: it has one device, and there is no card or forecast of it."
        for host in hosts
        if host.verdict == rule.CANNOT_TELL and not any(cell.host == host.name for cell in known)
    ]
    return [*bad, *_enough_margin(ranked), *open_[:OPEN], *more, *nothing]


def _enough_margin(cells: Sequence[Judged]) -> list[str]:
    """The margin at which these rounds would pass everything, if nothing failed: a noisy machine cannot tell 5 %."""
    lows = [cell.lo for cell in cells if cell.verdict == rule.CANNOT_TELL and cell.share is not None and cell.lo]
    if not lows or len(lows) < len(cells):
        return []
    asked, enough = 100 * min(cell.margin for cell in cells), math.floor(100 * (1 - min(lows))) + 1
    return [ENOUGH_MARGIN.format(asked=asked, enough=enough)]


def name(cell: Judged) -> str:
    """The device, link, core or pair of hosts, as people call it."""
    if cell.probe == "host_pairs":
        return PAIR_OF_HOSTS.format(*cell.unit.split(" > "))
    if cell.host == FLEET:
        return FLEET
    if cell.probe == "pairs":
        return PAIR.format(*cell.unit.split(">"), cell.host)
    if cell.device != ALL:
        return f"device {cell.device} of {cell.host}"
    return f"{cell.unit} of {cell.host}" if cell.unit.startswith("core ") else cell.host


def _fault_sentence(cell: Judged) -> str:
    kind = cell.verdict if cell.verdict in (rule.WRONG, rule.SILENT) else cell.probe
    if kind not in BAD or (kind == HEAT and cell.share is None):
        kind = "failed" if cell.share is None else "slow"
    return BAD[kind].format(
        who=name(cell),
        probe=TITLES.get(cell.probe, cell.probe),
        text=cell.text,
        percent="" if cell.share is None else percent(cell),
        reference=cell.reference,
    )


def _undecided_sentence(cell: Judged) -> str:
    more = f"; it would need about {cell.needed:,} rounds" if cell.needed else ""
    return UNSURE[SOFTWARE if cell.probe == SOFTWARE else "few" if cell.share is None else "open"].format(
        who=name(cell),
        probe=TITLES.get(cell.probe, cell.probe),
        text=cell.text,
        percent="" if cell.share is None else percent(cell),
        reference=cell.reference,
        rounds=cell.rounds,
        more=more,
    )


def percent(cell: Judged) -> str:
    """The share with its interval: "92.1 % [90.3, 94.0]"."""
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

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""From the measured rounds of all hosts to a verdict on every unit. Without jax."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from jaxbench.features.accept import rule
from jaxbench.features.accept.outcome import ALL, FLEET, Judged
from jaxbench.features.accept.probe import LOOSE
from jaxbench.features.accept.probes import DOCTOR, HEAT, PROBES, SOFTWARE
from jaxbench.features.accept.reference_rates import References
from jaxbench.statistics import thirds

LEAST_ROUNDS_UNDER_LOAD = 2 * thirds.LEAST_ROUNDS  # so that the first and the last third can be compared


@dataclass
class Measured:
    """What one host has measured.

    Attributes:
      name: of the host. kinds: of its devices. silent: why it has no more results, as a clause.
      units, amounts: of each probe. seconds: of each probe, by round, one number for each unit.
      wrong: (probe, unit, clause) of each result with wrong bits. left_out: why, by probe. losses: of gpt, by round.
    """

    name: str
    kinds: tuple[str, ...] = ()
    silent: str = ""
    start_s: float = 0.0
    processor: str = ""
    software: dict[str, str] = field(default_factory=dict)
    units: dict[str, tuple[str, ...]] = field(default_factory=dict)
    amounts: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, dict[int, tuple[float, ...]]] = field(default_factory=dict)
    wrong: dict[tuple[str, int], str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    findings: tuple[tuple[str, str, str], ...] = ()
    losses: dict[int, str] = field(default_factory=dict)

    def device(self, probe: str, unit: str) -> str:
        """The device that a unit belongs to; ALL for the whole host."""
        scope = PROBES[probe].scope
        return unit if scope == "device" else unit.partition(">")[0] if scope == "pair" else ALL


@dataclass(frozen=True)
class UnitOfHost:
    """One unit of one probe. number: its index in the probe of its host."""

    host: Measured
    probe: str
    number: int

    @property
    def text(self) -> str:
        return self.host.units[self.probe][self.number]

    @property
    def kind(self) -> str:
        """Of its device, or of the first one of its host."""
        device = self.host.device(self.probe, self.text)
        return self.host.kinds[int(device)] if device.isdigit() else next(iter(self.host.kinds), "")


@dataclass(frozen=True)
class Series:
    """The rates of the units of one probe. logs: (units, rounds), NaN where there is none. rounds: their numbers."""

    units: tuple[UnitOfHost, ...]
    logs: np.ndarray


def series(probe: str, hosts: Sequence[Measured]) -> Series:
    """All units of a probe over all hosts."""
    rounds = sorted({number for host in hosts for number in host.seconds.get(probe, {})})
    units, logs = [], []
    for host in hosts:
        for number in range(len(host.units.get(probe, ()))):
            row = np.full(len(rounds), np.nan)
            for at, each in enumerate(rounds):
                if (found := host.seconds.get(probe, {}).get(each)) is not None and found[number] > 0:
                    row[at] = np.log(host.amounts[probe] / found[number])
            units.append(UnitOfHost(host, probe, number))
            logs.append(row)
    return Series(tuple(units), np.array(logs).reshape(len(units), len(rounds)))


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What decides. margin: as asked. look: which look this is, from 1. against: the references."""

    margin: float
    look: int
    against: References


def judge(hosts: Sequence[Measured], probes: Sequence[str], how: Rule) -> list[Judged]:
    """The verdict on every unit in every probe, in the order of the hosts and of their devices."""
    every = [series(probe, hosts) for probe in probes if probe in PROBES]
    count = sum(len(each.units) for each in every)
    alpha = rule.level(count, how.look)
    cells = [cell for each in every if each.units for cell in _of_probe(each, how, alpha)]
    cells += [cell for host in hosts for cell in _of_host(host, probes, how, alpha)]
    if SOFTWARE in probes:
        cells += software(hosts)
    cells += losses(hosts)
    names = [host.name for host in hosts]
    order = {name: at for at, name in enumerate([*names, FLEET])}
    return sorted(cells, key=lambda cell: (order[cell.host], cell.device == ALL, cell.device.zfill(6)))


def _of_probe(each: Series, how: Rule, alpha: float) -> Iterable[Judged]:
    probe = PROBES[each.units[0].probe]
    margin = probe.margin(how.margin)
    process = np.zeros(each.logs.shape[1], dtype=int)
    references = [how.against.of(probe.name, unit.kind, len(unit.host.kinds)) for unit in each.units]
    own = np.array([np.log(known.rate) if known else np.nan for known in references])
    fixed = rule.intervals(each.logs - own[:, None], process, alpha)
    fleet = _fleet(each, process, alpha) if how.against.fleet else [None] * len(each.units)
    for unit, row, known, of_reference, of_fleet in zip(each.units, each.logs, references, fixed, fleet, strict=True):
        # The fleet can only decide what no card does: a band fails a device, and else it is the fleet that passes it.
        chosen, verdict, text = None, rule.NOT_JUDGED, rule.NOTHING
        if known is not None:
            chosen, verdict, text = of_reference, rule.verdict(of_reference, margin, band=known.band), known.source
        if of_fleet is not None and (known is None or (known.band and verdict != rule.FAIL)):
            chosen, verdict, text = of_fleet, rule.verdict(of_fleet, margin), _fleet_text(each, unit)
        rate = None if np.isnan(row).all() else float(np.exp(np.nanmedian(row)))
        yield _cell(unit, verdict, chosen, text, margin, rate)


def _fleet_text(each: Series, unit: UnitOfHost) -> str:
    count = sum(other.kind == unit.kind and other.host.processor == unit.host.processor for other in each.units)
    return "the other one" if count == 2 else f"the median of all {count}"


def _fleet(each: Series, process: np.ndarray, alpha: float) -> list[rule.Interval | None]:
    """The interval of each unit against the fleet: units of the same kind of device, on hosts of the same processor."""
    found: list[rule.Interval | None] = [None] * len(each.units)
    if PROBES[each.units[0].probe].scope == "hosts":  # the hosts wait for each other, so all are equally fast
        return found
    groups: dict[tuple[str, str], list[int]] = {}
    for at, unit in enumerate(each.units):
        groups.setdefault((unit.kind, unit.host.processor), []).append(at)
    for members in groups.values():
        if len(members) > 1:
            logs = rule.of_fleet(each.logs[members])
            for at, interval in zip(members, rule.intervals(logs, process, alpha), strict=True):
                found[at] = interval
    return found


def _cell(
    unit: UnitOfHost, verdict: str, interval: rule.Interval | None, reference: str, margin: float, rate: float | None
) -> Judged:
    """The verdict on one unit as a cell of the table. Wrong bits outweigh its speed."""
    host = unit.host
    known = interval is not None and np.isfinite([interval.value, interval.hi]).all()
    return Judged(
        host=FLEET if PROBES[unit.probe].scope == "hosts" else host.name,
        device=host.device(unit.probe, unit.text),
        unit=unit.text,
        probe=unit.probe,
        verdict=rule.WRONG if (unit.probe, unit.number) in host.wrong else verdict,
        share=interval.value if interval is not None and known else None,
        lo=interval.lo if interval is not None and known else None,
        hi=interval.hi if interval is not None and known else None,
        rate=rate,
        reference=reference,
        rounds=interval.rounds if interval is not None else 0,
        needed=rule.needed(interval, margin) if interval is not None else 0,
        margin=margin,
        text=host.wrong.get((unit.probe, unit.number), ""),
    )


def _of_host(host: Measured, probes: Sequence[str], how: Rule, alpha: float) -> Iterable[Judged]:
    """The verdicts that need no other host: an answer at all, heat, and what the doctor finds."""
    if host.silent:
        yield Judged(host=host.name, device=ALL, unit=ALL, probe="answer", verdict=rule.SILENT, text=host.silent)
    for probe, why in host.failed.items():
        yield Judged(host=host.name, device=ALL, unit=ALL, probe=probe, verdict=rule.FAIL, text=why)
    if HEAT in probes:
        yield from _heat(host, how, alpha)
    if DOCTOR in probes and host.findings:
        bad = [message for _, state, message in host.findings if state == "bad"]
        verdict = rule.FAIL if bad else rule.PASS
        yield Judged(host=host.name, device=ALL, unit=ALL, probe=DOCTOR, verdict=verdict, text=" ".join(bad))


def _heat(host: Measured, how: Rule, alpha: float) -> Iterable[Judged]:
    """The speed of the last third of the rounds under load over that of the first, by device."""
    rounds = sorted(host.seconds.get("gpt", {}))
    for number, unit in enumerate(host.units.get("gpt", ())):
        logs = np.log([host.seconds["gpt"][each][number] for each in rounds])
        found = thirds.compare(np.zeros(len(logs), dtype=int), logs)
        if found is None:
            text = f"it needs {thirds.LEAST_ROUNDS} rounds"
            yield Judged(host=host.name, device=unit, unit=unit, probe=HEAT, verdict=rule.NOT_JUDGED, text=text)
            continue
        # Of times, so the speed is its inverse. A third of the rounds has a wide interval, so a device passes unless it
        # may have become much slower.
        share, lo, hi = 1 / found.ratio.value, 1 / found.ratio.hi, 1 / found.ratio.lo
        slower = hi < 1 - how.margin and found.chance <= alpha
        verdict = rule.FAIL if slower else rule.PASS if lo > 1 - max(how.margin, LOOSE) else rule.CANNOT_TELL
        yield Judged(
            host=host.name,
            device=unit,
            unit=unit,
            probe=HEAT,
            verdict=verdict,
            share=share,
            lo=lo,
            hi=hi,
            reference="its own first third",
            rounds=len(rounds),
            margin=how.margin,
        )


def software(hosts: Sequence[Measured]) -> list[Judged]:
    """A host with other software than most is named, even if it is fast. Without a majority nobody is wrong."""
    there = [host for host in hosts if host.software]
    found = []
    for host in there:
        apart, tied = [], False
        for name in sorted({name for each in there for name in each.software}):
            counts = Counter(each.software.get(name, "none") for each in there)
            (usual, most), mine = counts.most_common(1)[0], host.software.get(name, "none")
            alone = counts[mine] < most
            draw = counts[mine] == most and list(counts.values()).count(most) > 1
            if alone or draw:
                others = usual if mine != usual else next(value for value in counts if value != mine)
                apart.append(f"{name} is {mine}, on {'most' if alone else 'as many'} hosts {others}")
                tied = tied or draw
        only_ties = bool(apart) and all("as many" in each for each in apart)
        verdict = rule.PASS if not apart else rule.CANNOT_TELL if only_ties else rule.FAIL
        clause = "; ".join(apart)
        found.append(Judged(host=host.name, device=ALL, unit=ALL, probe=SOFTWARE, verdict=verdict, text=clause))
    return found


def losses(hosts: Sequence[Measured]) -> list[Judged]:
    """Hosts with the same processor and software have the same bits of the loss; a minority that differs is wrong."""
    groups: dict[tuple[str, str], list[Measured]] = {}
    for host in hosts:
        # On a GPU each process chooses its kernels by timing them, so equal hosts may add up in another order.
        if host.losses and "cpu" in host.kinds:
            groups.setdefault((host.processor, str(sorted(host.software.items()))), []).append(host)
    wrong = []
    for group in groups.values():
        counts = Counter(loss for host in group for loss in host.losses.values())
        usual = counts.most_common(1)[0][0]
        for host in group:
            if len(group) > 2 and (other := {*host.losses.values()} - {usual}) and usual not in host.losses.values():
                text = f"its loss has the bits {sorted(other)[0]}, on most hosts {usual}"
                wrong.append(Judged(host=host.name, device=ALL, unit=ALL, probe="gpt", verdict=rule.WRONG, text=text))
    return wrong


def hosts_of(cells: Sequence[Judged], hosts: Sequence[Measured]) -> Mapping[str, str]:
    """The verdict on each host: the worst of all that belongs to it, where only the guilty ends of a link count."""
    blamed = _blamed(cells)
    own: dict[str, list[str]] = {host.name: [] for host in hosts}
    for cell in cells:
        if cell.host in own and not (cell.probe == "host_pairs"):
            own[cell.host].append(cell.verdict)
        elif cell.probe == "host_pairs":
            bad = cell.verdict in rule.BAD
            for name in cell.unit.split(" > "):
                own[name].append((rule.FAIL if name in blamed else rule.NOT_JUDGED) if bad else cell.verdict)
    timed: dict[str, list[str]] = {host.name: [] for host in hosts}
    for cell in cells:
        if cell.host in timed and cell.probe in PROBES:
            timed[cell.host].append(cell.verdict)
    # A host of unknown speed does not pass because its facts are in order.
    unknown = {name for name, verdicts in timed.items() if verdicts and {*verdicts} == {rule.NOT_JUDGED}}
    return {
        name: rule.worst([*verdicts, *([rule.CANNOT_TELL] if name in unknown else [])])
        for name, verdicts in own.items()
    }


def _blamed(cells: Sequence[Judged]) -> set[str]:
    """The hosts that explain the slow links between hosts."""
    links = [cell for cell in cells if cell.probe == "host_pairs"]
    ends = [(a, b) for a, _, b in (cell.unit.partition(" > ") for cell in links)]
    return rule.guilty(ends, [cell.verdict in rule.BAD for cell in links])

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One acceptance test: prepares the probes on all hosts, measures them in rounds, and looks until all is decided.

All hosts measure the same round at the same time, so what changes with time cancels in a comparison with the fleet.
Probes over hosts follow in processes of their own. A test that was interrupted starts anew: a machine is judged as it
is now.
"""

from __future__ import annotations

import datetime
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from jaxbench.features.accept import outcome, probes, rule, sentences, verdicts
from jaxbench.features.accept.hosts import Hosts
from jaxbench.features.accept.messages import ExamineHost, MeasureProbes, PrepareProbes, ProbesReady, WrongBits
from jaxbench.features.accept.outcome import Acceptance, Judged
from jaxbench.features.accept.reference_rates import References
from jaxbench.features.accept.team import Team
from jaxbench.features.accept.verdicts import Measured, Rule

GROWS = 4 / 3  # between looks, in rounds: looks cost confidence, and rare ones would measure longer than needed
ROUND_S = 0.25  # a probe that takes longer is left out of some rounds
SELDOM = 4  # and is in every fourth at least
CPU_BUDGET_S, BUDGET_S = 36.0, 75.0
LOAD_S = 30.0  # how long the devices work before the first look, so that heat shows
LOADED = 0.6  # seconds of gpt steps in a round
WORLD_S = 15.0
Clock = Callable[[], float]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is tested. probes: their names. budget_s: for the rounds of each host alone; None: by platform. limit_s: for
    an
    answer of a host."""

    probes: tuple[str, ...]
    margin: float
    references: References
    folder: Path
    budget_s: float | None = None
    limit_s: float = 60.0

    def budget(self, platform: str) -> float:
        return self.budget_s or (CPU_BUDGET_S if platform == "cpu" else BUDGET_S)


@dataclass
class _Progress:
    """Rounds so far. looked: how often the rule was asked; cells: its last answer."""

    rounds: int = 0
    looked: int = 0
    cells: list[Judged] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def accept(hosts: Hosts, plan: Plan, console: Console, clock: Clock = time.monotonic) -> Acceptance:
    """Tests these hosts. Raises UserError for references that do not belong to them."""
    started, begun = datetime.datetime.now(datetime.UTC), clock()
    plan.references.refuse(sorted({facts.devices.kind for facts in hosts.facts.values()}))
    measured = {
        process: Measured(name=name, silent=hosts.silent.get(process, "")) for process, name in hosts.names.items()
    }
    for process, facts in hosts.facts.items():
        host = measured[process]
        host.kinds = (facts.devices.kind,) * hosts.count(process)
        host.software, host.processor = dict(facts.versions), str(facts.config["processor"])
    progress = _Progress()
    _alone(hosts, plan, measured, progress, console, clock)
    _over_hosts(hosts, plan, measured, progress, console, clock)
    how = Rule(margin=plan.margin, look=max(1, progress.looked), against=plan.references)
    cells = verdicts.judge([*measured.values()], plan.probes, how)
    by_host = verdicts.hosts_of(cells, [*measured.values()])
    results = tuple(
        outcome.HostResult(
            name=host.name,
            verdict=by_host[host.name],
            kinds=host.kinds,
            silent=host.silent,
            start_s=host.start_s,
            software=host.software,
        )
        for host in measured.values()
    )
    fleet = [cell.verdict for cell in cells if cell.host == outcome.FLEET]
    judged = [verdict for verdict in fleet if verdict != rule.NOT_JUDGED]
    return Acceptance(
        schema=outcome.SCHEMA,
        started=started.isoformat(timespec="seconds"),
        finished=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        seconds=clock() - begun,
        verdict=rule.worst([*(_as_one(verdict) for verdict in by_host.values()), *judged]),
        margin=plan.margin,
        against=plan.references.sentences,
        level=rule.level(len(cells), how.look),
        rounds=progress.rounds,
        hosts=results,
        cells=tuple(cells),
        sentences=tuple(sentences.of(cells, results)),
        notes=(*progress.notes, *sentences.left_out(measured.values()), *sentences.findings(measured.values())),
    )


def _as_one(verdict: str) -> str:
    return verdict if verdict in rule.EXIT else rule.CANNOT_TELL


def _alone(
    hosts: Hosts, plan: Plan, measured: dict[int, Measured], progress: _Progress, console: Console, clock: Clock
) -> None:
    """The probes of each host alone, on all hosts at once, until all is decided or the budget is spent."""
    names = probes.timed(plan.probes, over_hosts=False)
    folder = plan.folder.resolve()
    team = Team(hosts.start, {process: hosts.setup(process, folder) for process in hosts.facts}, plan.limit_s)
    try:
        # How seldom a probe runs follows from its cost on the slowest host, so that all hosts measure the same rounds.
        cost = _prepare(team, names, measured, console)
        if cost:
            _rounds(team, plan, cost, measured, progress, console, hosts.platform, clock)
        if probes.DOCTOR in plan.probes:
            for process, found in team.ask(ExamineHost(folder=str(folder))).items():
                measured[process].findings = found.findings
    finally:
        team.close()
    for process, why in team.lost.items():
        measured[process].silent = measured[process].silent or why


def _prepare(team: Team, names: Sequence[str], measured: dict[int, Measured], console: Console) -> dict[str, float]:
    """Prepares one probe after the other, each within the limit of an answer. Returns the seconds of each."""
    cost: dict[str, float] = {}
    for name in names:
        console.print(f"preparing: {probes.TITLES[name]}", style="dim", highlight=False)
        for process, ready in team.ask(PrepareProbes(probes=(name,))).items():
            take(measured[process], ready)
            for facts in ready.probes:
                cost[name] = max(cost.get(name, 0.0), facts.cost_s)
    return cost


def take(host: Measured, ready: ProbesReady) -> None:
    """Adds what a host says about its prepared probes."""
    host.left_out |= ready.left_out
    host.start_s = host.start_s or ready.start_s
    host.kinds = ready.devices or host.kinds
    for facts in ready.probes:
        host.units[facts.name], host.amounts[facts.name] = facts.units, facts.amount
    add_wrong(host, ready.wrong)


def add_wrong(host: Measured, wrong: Sequence[WrongBits]) -> None:
    for each in wrong:
        host.wrong.setdefault((each.probe, each.unit), each.text)


def _rounds(
    team: Team,
    plan: Plan,
    cost: dict[str, float],
    measured: dict[int, Measured],
    progress: _Progress,
    console: Console,
    platform: str,
    clock: Clock,
) -> None:
    """Measures rounds until every unit is decided or the budget is spent."""
    every = {name: min(SELDOM, max(1, math.ceil(seconds / ROUND_S))) for name, seconds in cost.items()}
    every["gpt"] = 1
    budget, begun, look_at = plan.budget(platform), clock(), 0
    load_s = min(LOAD_S, 0.75 * budget)
    timed = min(LOADED, load_s / verdicts.LEAST_ROUNDS_UNDER_LOAD)
    while True:
        due = tuple(name for name in cost if progress.rounds % every[name] == 0)
        measure(team, due, timed, measured, progress.rounds)
        progress.rounds += 1
        spent = clock() - begun
        if not team.present:
            return
        late = spent + spent / progress.rounds > budget  # another round would end after the budget
        enough = progress.rounds >= rule.LEAST_ROUNDS and spent >= load_s
        if late or (enough and progress.rounds >= look_at):
            progress.looked += 1
            look_at = math.ceil(progress.rounds * GROWS)
            how = Rule(margin=plan.margin, look=progress.looked, against=plan.references)
            progress.cells = verdicts.judge([*measured.values()], [*cost, *plan.probes[-3:]], how)
            open_ = sum(cell.verdict == rule.CANNOT_TELL for cell in progress.cells)
            console.print(f"{progress.rounds} rounds, {spent:.0f} s: {open_} open", style="dim", highlight=False)
            if late or not open_:
                return


def measure(team: Team, names: Sequence[str], load_s: float, measured: dict[int, Measured], number: int) -> None:
    """One round on all hosts."""
    for process, answer in team.ask(MeasureProbes(probes=tuple(names), load_s=load_s)).items():
        host = measured[process]
        for name, seconds in answer.seconds.items():
            host.seconds.setdefault(name, {})[number] = seconds
        add_wrong(host, answer.wrong)
        if answer.loss:
            host.losses[number] = answer.loss


def _over_hosts(
    hosts: Hosts, plan: Plan, measured: dict[int, Measured], progress: _Progress, console: Console, clock: Clock
) -> None:
    """The probes over hosts. If a host is lost meanwhile, they begin again without it."""
    names = probes.timed(plan.probes, over_hosts=True)
    platforms = {str(facts.config["platform"]) for facts in hosts.facts.values()}
    while names and len(present := [p for p in hosts.facts if not measured[p].silent]) > 1 and len(platforms) == 1:
        team = Team(hosts.start, hosts.world(present, plan.folder.resolve()), plan.limit_s)
        try:
            _world(team, names, present, measured, console, clock)
        finally:
            team.close()
        gone = [p for p in team.lost if hosts.followers is not None and not hosts.followers.has(p)]
        for process in gone:
            measured[process].silent = f"it was lost while hosts measured together: {team.lost[process]}"
        if not gone:
            for process, why in team.lost.items():
                progress.notes.append(f"{measured[process].name} in the probes over hosts: {why}.")
            return
        for process in present:  # what was measured with the lost host says nothing about the others
            for name in names:
                measured[process].seconds.pop(name, None)


def _world(
    team: Team,
    names: Sequence[str],
    present: Sequence[int],
    measured: dict[int, Measured],
    console: Console,
    clock: Clock,
) -> None:
    """Forms one JAX process group of the hosts and prepares the probes over several hosts."""
    _prepare(team, names, measured, console)
    for process in present:
        host = measured[process]
        if messages_units := host.units.get("host_pairs"):
            ends = [unit.split(">") for unit in messages_units]
            host.units["host_pairs"] = tuple(
                " > ".join(measured[present[int(end)]].name for end in each) for each in ends
            )
    if set(team.lost):
        return
    begun, number = clock(), 0
    known = [name for name in names if any(name in measured[process].units for process in present)]
    while known and (number < rule.LEAST_ROUNDS or clock() - begun < WORLD_S) and clock() - begun < 4 * WORLD_S:
        measure(team, known, 0.0, measured, number)
        number += 1
        if team.lost:
            return
    for process in present[1:]:
        # All hosts wait for each other in an all-reduce, so one of them speaks for all.
        for name in ("hosts_allreduce_1", "hosts_allreduce_256"):
            measured[process].units.pop(name, None)

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Runs every check of this machine, shows the findings as a table, and ends with a one-sentence verdict."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from jaxbench.core.store import write_json
from jaxbench.features.doctor import gpus, speed, system
from jaxbench.features.doctor.finding import DoctorFinding, worst
from jaxbench.machine import manifest
from jaxbench.records.documents import plain as plain_json
from jaxbench.report.table import FOLD, TEXT, Cell, plain
from jaxbench.sweep.progress import heartbeat

FILE = "doctor.json"
Question = tuple[str, Callable[[], list[DoctorFinding]]]  # (progress text, check)


def examine(console: Console, *, folder: Path, seconds: float = 10.0) -> list[DoctorFinding]:
    """Examines this machine and prints the findings. folder: where results would go. seconds: how long to run the
    reference kernel."""
    findings = []
    text = ""
    # Refreshed by hand: a refreshing thread would run on the cores that are examined.
    with Live(console=console, auto_refresh=False, transient=True) as line, heartbeat(console, lambda: text):
        for text, question in questions(folder, seconds):
            line.update(Text(f"{text} ..."), refresh=True)
            try:
                findings += question()
            except (OSError, ValueError) as error:  # an unreadable system file is a finding, too
                findings.append(DoctorFinding(text, "unknown", f"This check could not run ({error})."))
    show(findings, console)
    return findings


def questions(folder: Path, seconds: float) -> Iterator[Question]:
    """The checks in order. Other load is read before our own work starts, the clock right after work, and heat last."""
    throttled = system.throttles()  # before all work, because `heat` at the end reports the difference
    yield "Asking NVML what will spoil the numbers", lambda: gpus.examine(system.read_host().nvidia, gpus.spoiling)
    yield "Watching other load", system.other_load
    yield "Working on every core, alone and together", speed.contention
    yield "Reading the cores and their clock", system.processor
    yield "Trying memory, disk and timer", lambda: system.resources(folder)
    facts, jax = system.probe_jax()  # in a child: a jax that does not start is a finding, and not the end of doctor
    yield "Asking JAX for devices", lambda: [jax, *system.software(facts, manifest.versions())]
    if facts:
        yield f"Multiplying matrices ({seconds:g} s)", lambda: kernel(facts["platform"], seconds)
    yield "Asking NVML about the GPUs", lambda: gpus.examine(system.read_host().nvidia, gpus.at_work)
    yield "Reading the counters of heat", lambda: [system.heat(throttled, system.throttles())]


def kernel(platform: str, seconds: float) -> list[DoctorFinding]:
    """Times the reference kernel and watches other load meanwhile, because load that starts late looks like drift."""
    before, start, own_s = system.cpu_times(), time.perf_counter(), sum(os.times()[:4])
    findings = speed.stability(platform, seconds)
    wall_s, own_s = time.perf_counter() - start, sum(os.times()[:4]) - own_s
    load = system.others(before, system.cpu_times(), wall_s, system.affinity(), own_s)
    return [*findings, replace(load, name="load meanwhile")]


def ok(findings: Sequence[DoctorFinding]) -> bool:
    return worst(finding.state for finding in findings) != "bad"


def verdict(findings: Sequence[DoctorFinding]) -> str:
    """The verdict as one sentence. Unknown findings do not count."""
    state = worst(finding.state for finding in findings)
    names = ", ".join(dict.fromkeys(finding.name for finding in findings if finding.state == state))
    if state == "bad":
        return f"This machine is not fit to measure on: {names}."
    return f"This machine is fit to measure on{f', with doubts: {names}' if state == 'doubtful' else ''}."


def show(findings: Sequence[DoctorFinding], console: Console) -> None:
    rows = [(Cell(each.state, each.state), each.name, f"{each.message}\n{each.advice}".strip()) for each in findings]
    console.print(plain({"": TEXT, "what": TEXT, "found": FOLD}, rows).terminal(console.width))
    console.print(Text(verdict(findings), style="bold"))


def write(findings: Sequence[DoctorFinding], path: Path) -> None:
    """Writes `doctor.json`: every finding with its numbers, and the verdict."""
    write_json(path, {"ok": ok(findings), "verdict": verdict(findings), "findings": plain_json(list(findings))})

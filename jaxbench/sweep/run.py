# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench run`: measures an experiment with a config into a run folder or, in a dry run, lists its points."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import functools
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ml_collections import ConfigDict
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jaxbench import config as config_lib
from jaxbench import discovery, features, levers, parallel
from jaxbench.cases import placement
from jaxbench.cases.case_bench import build_cases
from jaxbench.config import CaseSettings, Settings
from jaxbench.core.point import Point
from jaxbench.core.store import MANIFEST, RunFolder, write_manifest
from jaxbench.errors import UserError
from jaxbench.hlo.out_of_memory import needed_bytes
from jaxbench.machine import cores, lock, start
from jaxbench.machine import manifest as manifest_lib
from jaxbench.measure.arm import build_workload, inspected
from jaxbench.processes import launch
from jaxbench.processes.client import WorkerError
from jaxbench.processes.counts import device_counts
from jaxbench.processes.launch import Followers
from jaxbench.processes.messages import Compile, Fields
from jaxbench.records import identity
from jaxbench.records.documents import JsonObject
from jaxbench.records.manifest import Machine, Manifest, Plan, PlannedPoint, Session
from jaxbench.sweep import ablations, generation, plan, studies, sweep
from jaxbench.sweep.job import Automatic, Look, SweepJob, live
from jaxbench.sweep.progress import AGAIN, GUESS_S, format_s, heartbeat, working
from jaxbench.sweep.references import References
from jaxbench.sweep.start import programs_of
from jaxbench.sweep.studies import Study, limit
from jaxbench.sweep.workers import Workers

# A run folder belongs to one machine and one set of software. Continuing it with others would mix two results.
SAME_SOFTWARE = ("python", "environment", "versions")

# Only for the estimate of a dry run, never a result: the speed of a CPU core on a small model.
GUESS_FLOP_PER_S_PER_CORE = 2e10
GUESS_CASE_S = 0.2  # the time for checking a case and finding its block length


@dataclass(frozen=True)
class Asked:
    """The plan of a config on this machine. notes: sentences for the user."""

    settings: Settings | CaseSettings
    machine: Machine
    points: Sequence[Point]
    notes: list[str]
    facts: Plan  # further fields of the manifest's plan
    live: bool  # all sets of processes live at the same time

    @property
    def counts(self) -> tuple[int, int]:
        """(rounds, sets of processes); with rounds=auto, the least rounds."""
        return config_lib.counts(self.settings.rounds, self.settings.processes, live=self.live)


def ask(experiment: str, config: ConfigDict, console: Console, followers: Followers | None = None) -> Asked:
    """Parses the config and probes the machine; in a launch, the machines of all processes. Raises UserError."""
    if config.get("measures") == "cases":
        chosen = config_lib.parse_cases(config)
        cases = build_cases(config, experiment)
        machine = probe_machine(chosen.platform, console)
        machine = launch.all_hosts(followers, machine, experiment, config) if followers else machine
        placed, left_out = placement.place(cases, chosen, machine)
        facts = Plan(measures="cases", view=cases.view, left_out=left_out)
        return Asked(chosen, machine, placed, left_out, facts, live(placed, followers))
    if followers and studies.asked(config_lib.plain(config)):
        raise UserError(
            f"what '{config.experiment}' searches for is found by one process: start it without a launcher, or choose "
            "another experiment."
        )
    given = copy.deepcopy(config)  # as the other processes have it, which do not parse it
    settings = parse(experiment, config)
    machine = probe_machine(settings.platform, console)
    machine = launch.all_hosts(followers, machine, experiment, given) if followers else machine
    config_lib.choose_batch(config, machine["platform"])
    settings = dataclasses.replace(settings, batch=config.batch)
    measures = str(config.get("measures", ""))
    if measures == generation.MEASURES:
        points, left_out = generation.points(settings, machine)
        facts = Plan(measures=measures, swept=list(settings.swept), left_out=left_out)
        return Asked(settings, machine, points, left_out, facts, live(points, followers))
    points = plan.make(settings, machine)
    points += ablations.points(settings, points)
    missing = sorted(set(device_counts(settings, machine)) - {point.devices for point in points})
    counts = ", ".join(map(str, missing))
    notes = [f"Left out: {counts} devices: a batch of {settings.batch} does not divide over them."] if missing else []
    unfused = [arm.name for arm in settings.arms if arm.levers["execution"] == "unfused"]
    if unfused and machine["platform"] == "tpu":
        notes.append(f"Left out: {', '.join(unfused)}: {plan.UNFUSED}")
    facts = Plan(measures="levers", swept=list(settings.swept)) if settings.swept else Plan()
    if compiler_sets := {name: about for point in points for name, about in levers.named_sets(point.levers).items()}:
        facts["compiler_sets"] = compiler_sets
    return Asked(settings, machine, points, notes, facts, live(points, followers))


def check(experiment: str, config: ConfigDict) -> None:
    """Raises UserError for settings that the suite or the model refuses on every machine."""
    if config.get("measures") == "cases":
        config_lib.parse_cases(config)
        build_cases(config, experiment)
        return
    parse(experiment, config)


def parse(experiment: str, config: ConfigDict) -> Settings:
    """The settings of a training experiment. Raises UserError for those that the suite or the model refuses.

    It takes a second, and no process has started by then. The config of a user's own step learns that it is one.
    """
    start.only_cpu_here()  # an accelerator belongs to the worker processes
    for feature in features.providing("settle"):
        if strategies := list(feature.settle(config, experiment)):
            return config_lib.parse(config, strategies, strategies)
    settings = config_lib.parse(config, parallel.strategy_names(), parallel.of_any_model())
    plain = copy.deepcopy(config)
    with plain.unlocked():  # a list of levers names the arms of a sweep, and a model is built for one arm
        plain.lever = levers.defaults()
    inspected(plain, experiment)
    if config.weak == "model" and "weak" in str(config.scaling):
        build_workload(plain, experiment, grown=2)
    studies.depths(config_lib.plain(config))
    return settings


def run(
    experiment: str, config: ConfigDict, workdir: Path, console: Console, look: Look, followers: Followers | None = None
) -> None:
    """Measures every point of the sweep that the folder lacks. Raises UserError. An interrupt loses nothing.

    look: decides when measure.rounds=auto has enough rounds (`statistics.looks.look`). followers: the other
    processes of a launch.
    """
    begun_s = time.monotonic()
    asked = ask(experiment, config, console, followers)
    folder = RunFolder.begin(workdir, config_lib.plain(config))
    try:
        session = begin_session(folder, session_of(asked, experiment))
        job = job_of(folder, asked, config, experiment, session=session, followers=followers)
        programs, not_kept = programs_of(asked.settings.compile, asked.machine)
        job = dataclasses.replace(job, programs=programs, not_kept=not_kept, begun_s=begun_s)
        if asked.settings.rounds is None:  # measure.rounds=auto
            job = dataclasses.replace(job, automatic=Automatic(folder, look))
        title = f"{config.experiment}: {size_of(asked)}, into {workdir}"
        console.print(title, highlight=False, soft_wrap=True)
        for note in (*folder.notes, *asked.notes, *([not_kept] if not_kept else [])):
            console.print(note, style="yellow", highlight=False, soft_wrap=True)
        if isinstance(asked.settings, Settings):
            study = Study(
                points=asked.points,
                experiment=job.experiment,
                config=job.config,
                limit=limit(asked.settings.search_bytes, asked.machine),
                folder=job.run.path,
                console=console,
            )
            studies.run(study)
        sweep.run(job, console)
    finally:
        folder.close()


def dry_run(experiment: str, config: ConfigDict, console: Console, followers: Followers | None = None) -> bool:
    """Compiles every point and prints its expected memory and time. Runs and writes nothing. True: all compile."""
    asked = ask(experiment, config, console, followers)
    title = f"{config.experiment}: {size_of(asked)}"
    table = Table(*("point", "compile", "peak memory per device"), title=title)
    seconds: list[float | None] = []
    every = config.get("strategy") == "all" or levers.every_set(config)
    with (
        tempfile.TemporaryDirectory() as folder,  # processes need a folder for logs, and a dry run leaves none
        heartbeat(console, lambda: f"{len(seconds)} of {len(asked.points)} points compiled", terminal=True),
    ):
        job = job_of(RunFolder(folder), asked, config, experiment, session=0, followers=followers)
        references = References(Path(folder), asked.points)
        with Workers(job, asked.points) as workers:
            for point in asked.points:
                if getattr(point, "explains", ""):  # a whole step needs a reference only to be checked
                    references.make(workers, point)
                cells, guess_s = _dry_point(point, workers, asked, every=every, told=references.told(point))
                mark = " (oversubscribed)" if point.oversubscribed else ""
                table.add_row(Text(point.point + mark), *map(Text, cells))
                seconds.append(guess_s)
    console.print(table)
    for note in asked.notes:
        console.print(note, style="yellow", highlight=False, soft_wrap=True)
    failing = seconds.count(None)
    if failing:
        console.print(f"{failing} of {len(asked.points)} points would fail.")
    elif asked.machine["platform"] == "cpu":
        total = format_s(sum(s for s in seconds if s is not None))
        console.print(f"Measuring would take roughly {total}. Nothing was run or written.")
    else:
        console.print("The time of the steps is not known before they run. Nothing was run or written.")
    return not failing


def _dry_point(
    point: Point, workers: Workers, asked: Asked, *, every: bool, told: Fields | None = None
) -> tuple[list[str], float | None]:
    """(the cells of a point's row, a guess of its seconds on a CPU; None if it would fail).

    every: --config.strategy=all or lever.compiler=all, so an unsupported point is not a failure. told: its
    reference.
    """
    try:
        answer = workers.ask(point.point, Compile(point=point.to_json(), reference=told or {}))
    except WorkerError as error:
        if error.stage == "model":
            raise UserError(str(error)) from error
        if studies.out_of_memory(error):
            needed = needed_bytes(str(error))
            return ["does not fit the device", "unknown" if needed is None else f"{needed / 1e6:.1f} MB"], None
        if error.unsupported:
            return [f"not supported: {error}"], 0.0 if every else None
        return [f"would fail: {error}"], None
    settings, compile_s = asked.settings, answer.compile_s
    if note := _too_large_to_check(answer.whole_bytes, asked.machine):
        asked.notes.append(f"{point.point}: {note}")
    used = min(getattr(point, "devices", 1), asked.machine["cores"])  # fake devices share the cores
    step_s = answer.flops / (GUESS_FLOP_PER_S_PER_CORE * used)
    blocks = 2.0 * settings.blocks  # and the same number for warm-up; few rounds have 2 K steps
    if answer.loop:  # cases are also timed in a loop on the device
        blocks += 1 + 3 * settings.blocks
    cells = [f"{compile_s:.1f} s", f"{(answer.peak_bytes or 0) / 1e6:.1f} MB"]
    prepare_s = 2 * compile_s + (GUESS_CASE_S if isinstance(settings, CaseSettings) else GUESS_S["prepare"] / 2)
    rounds, sets = asked.counts
    again_s = 0 if point.oversubscribed else (sets - 1) * GUESS_S[AGAIN] / 2
    block_s = max(0.0 if point.oversubscribed else settings.block_s, step_s)
    return cells, prepare_s + again_s + plan.rounds_of(point, rounds) * blocks * block_s


def _too_large_to_check(whole_bytes: float, machine: Machine) -> str:
    """A sentence if the reference, the whole batch on one device, does not fit the device's memory."""
    available = machine.get("device_memory_bytes") or machine.get("memory_bytes")
    if not available or whole_bytes <= available:
        return ""
    return (
        f"the reference on one device takes about {whole_bytes / 2**30:.1f} GiB of {available / 2**30:.1f}: it is "
        "computed in parts if the loss is a mean over examples, or by the host, else the point stays unchecked."
    )


def probe_machine(platform: str, console: Console) -> Machine:
    """The machine's manifest. Prints a warning if JAX does not see the machine's GPU."""
    with working(console, "probing this machine"):
        machine = manifest_lib.probe(platform).copy()
        machine["free_cores"] = free_cores()
    if machine["platform"] == "cpu" and platform == "auto" and Path("/dev/nvidiactl").exists():
        console.print(
            "This machine has an NVIDIA GPU that JAX does not see, so this run measures the CPU. "
            "For the GPU install the extra cuda13 or cuda12.",
            style="yellow",
        )
    return machine


@functools.cache
def free_cores() -> list[int]:
    """The cores, ordered by their load before this process measured. All its runs use the same order, such as both arms
    of ab."""
    return cores.free_cores()


def size_of(asked: Asked) -> str:
    """The amount of measuring in words, such as "8 points on 1, 2 and 4 devices, 10 rounds each"."""
    rounds, sets = asked.counts
    *some, most = sorted({point.devices for point in asked.points})
    counts = f"{', '.join(map(str, some))} and {most}" if some else str(most)
    points = f"{len(asked.points)} point{'s' * (len(asked.points) != 1)}"
    where = f"on {counts} device{'s' * (most != 1)}"
    least = "at least " if asked.settings.rounds is None else ""
    turns = f", by {sets} groups of processes in turns" if sets > 1 else ""
    return f"{points} {where}, {least}{rounds} round{'s' * (rounds != 1)} each{turns}"


def job_of(
    folder: RunFolder,
    asked: Asked,
    config: ConfigDict,
    experiment: str,
    *,
    session: int,
    followers: Followers | None = None,
) -> SweepJob:
    return SweepJob(
        run=folder,
        points=asked.points,
        order=asked.machine.get("free_cores", ()),
        config=config_lib.plain(config),
        memory_bytes=float(asked.machine.get("memory_bytes") or "inf"),
        experiment=absolute(experiment),
        session=session,
        followers=followers,
    )


def absolute(experiment: str) -> str:
    return str(Path(experiment).expanduser().resolve()) if experiment.endswith(".py") else experiment


def session_of(asked: Asked, experiment: str) -> Manifest:
    """The manifest of this start of the run."""
    source, settings, machine = discovery.experiment_path(experiment), asked.settings, asked.machine
    rounds, _ = asked.counts
    points = [{**p.to_json(), "rounds": plan.rounds_of(p, rounds), "processes": p.processes} for p in asked.points]
    auto = Plan(auto={"budget_s": settings.budget_s, "ended": "", "looks": []}) if settings.rounds is None else Plan()
    return {
        **machine,
        "command": ["jaxbench", *sys.argv[1:]],
        "shared_with": lock.shared_with(),
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "experiment_file": source.name,
        "experiment_sha256": discovery.digest(experiment),
        "plan": {
            **asked.facts,
            "experiment": settings.experiment,
            "platform": machine["platform"],
            "processes": max(point.processes for point in asked.points),
            "rounds": rounds,
            "blocks": settings.blocks,
            **auto,
            "points": cast(list[PlannedPoint], points),
        },
    }


def begin_session(folder: RunFolder, session: Manifest) -> int:
    """Writes the manifest, or adds a session to it. Returns the number of the session.

    Raises:
      UserError: the folder was measured on another machine, or with other software or another experiment.
    """
    digest = hashlib.sha256(json.dumps(folder.config(), sort_keys=True).encode()).hexdigest()
    if not (folder.path / MANIFEST).exists():
        write_manifest(folder.path, {**session, "config_sha256": digest, "sessions": []})
        return 0
    manifest = folder.manifest()
    if other := identity.differences(manifest, session):
        raise UserError(f"'{folder.path}' was measured {identity.refused(other)}: choose a new --workdir.")
    for key in (*SAME_SOFTWARE, "experiment_sha256"):
        old, new = cast(JsonObject, manifest).get(key), cast(JsonObject, session)[key]
        if old != new:
            changes = identity.changes(old, new)
            raise UserError(f"'{folder.path}' was measured with other {key} ({changes}): choose a new --workdir.")
    # A point in other processes is another measurement. A point that the plan did not have is no contradiction.
    then, now = _processes(manifest), _processes(session)
    if moved := [point for point in now if then.get(point, now[point]) != now[point]]:
        raise UserError(
            f"'{folder.path}' was measured with {moved[0]} in {then[moved[0]]} processes, now it would be "
            f"{now[moved[0]]}: choose a new --workdir."
        )
    if manifest["git"] != session["git"]:
        old, new = (identity.commit(one["git"]) for one in (manifest, session))
        folder.notes.append(f"{folder.path} was started with jaxbench at {old}, but now it is {new}.")
    elif manifest.get("source_sha256") not in (None, session.get("source_sha256")):  # None: an older run
        folder.notes.append(f"the source of jaxbench has changed since {folder.path} was started.")
    if unknown := identity.cannot_tell(manifest, session):
        folder.notes.append(f"{folder.path}: {unknown}.")
    folder.notes += [f"{folder.path}: {each}." for each in identity.cautions(manifest, session, "at its start", "now")]
    kept = ("started", "command", "git", "shared_with", "identity")
    again = cast(Session, {key: cast(JsonObject, session)[key] for key in kept})
    sessions = [*manifest["sessions"], again]
    write_manifest(folder.path, {**manifest, "sessions": sessions})
    return len(sessions)


def _processes(manifest: Manifest) -> dict[str, int]:
    """The number of processes that run each planned point."""
    return {each["point"]: each.get("processes", 1) for each in manifest.get("plan", {}).get("points", ())}

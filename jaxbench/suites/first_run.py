# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench first-run`: every part of the suite, sized for the machine, against expectations that hold on any machine.

`first-run.json` has the parts with their outcomes, the expectations with their answers, and the machine.
"""

from __future__ import annotations

import dataclasses
import datetime
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict
from rich.console import Console
from rich.text import Text

from jaxbench import config as config_lib
from jaxbench import discovery, parallel
from jaxbench.analysis import expectations, machine_profile, points, run_rows
from jaxbench.analysis.expectations import CANNOT_TELL, NO, Item
from jaxbench.core.schema import FailureRecord, PointRecord, ProfileRecord, to_json
from jaxbench.core.store import MANIFEST, RunFolder, lock_folder, write_json
from jaxbench.errors import UserError
from jaxbench.features.cards.card import redact
from jaxbench.features.machine_profile import machine_command
from jaxbench.machine.start import only_cpu_here
from jaxbench.parallel import axes
from jaxbench.processes.counts import CPU_DEVICES
from jaxbench.records import identity
from jaxbench.records.manifest import Machine
from jaxbench.records.reading import read_document
from jaxbench.statistics import bootstrap
from jaxbench.suites import command
from jaxbench.suites import first_run_page as page
from jaxbench.suites.command import AMISS, ASKED, BROKEN, DONE, REFUSED, SKIPPED, STOPPED, Document, Launch
from jaxbench.sweep.progress import ProgressLine, format_s
from jaxbench.sweep.run import SAME_SOFTWARE, probe_machine

NAME, KIND = "first-run.json", "jaxbench first run"
SMOKE, MACHINE, SCALING, PROFILE, LEVERS = "smoke", "machine", "scaling", "profile", "levers"  # the stages
BUDGET_S = 1800.0  # seconds for one start
SHARE = {SMOKE: 0.6}  # a stage must end by this share of the budget, so that later stages have time, too
MIN_LEFT_S = 5.0  # with less time left no part starts
# Sizes for timing on accelerators. A step must take much longer than its launch; it needs 2 to 8 GB of device memory.
ON_ACCELERATORS: dict[str, dict[str, Any]] = {
    "cnn": {"model.width": 64, "batch": 1024},
    "gpt": {"model.preset": "small", "model.context": 256},
}
# Seconds per part, as an estimate until a part of the stage has been measured.
GUESS_S = {SMOKE: 40.0, MACHINE: 180.0, SCALING: 120.0, PROFILE: 40.0, LEVERS: 25.0}
# The records that the document gets. For cases these are only failures: the machine profile has their numbers.
_SENT = (PointRecord, FailureRecord, ProfileRecord)


@dataclass(frozen=True, kw_only=True)
class Part:
    """One command. run: the name of its folder. words: the arguments of `jaxbench`, without the folder."""

    run: str
    stage: str
    experiment: str
    words: tuple[str, ...]


def largest(machine: Machine) -> int:
    """The device count for trying strategies: all accelerators, or as many CPU devices as cores but at least 2."""
    if machine["platform"] == "cpu":  # with one device no strategy would communicate
        return max(2, *(n for n in CPU_DEVICES if n <= machine["cores"]))
    return 2 ** (int(machine["devices"]).bit_length() - 1)  # a power of two, which divides batches and models


def all_of(machine: Machine) -> list[Part]:
    """Every part, in the order in which they run. machine: a manifest."""
    devices, on_cpu = largest(machine), machine["platform"] == "cpu"
    sizes = {name: {} if on_cpu else settings for name, settings in ON_ACCELERATORS.items()}
    profile = {"profile": "true", "mesh.devices": min(devices, machine["cores"]) if on_cpu else devices}
    # Few rounds: a traced step is slowed, so its times are no sample.
    profile |= {"scaling": "strong", "measure.rounds": 3, "measure.processes": 1}
    return [
        *_smoke(devices),
        Part(run="machine", stage=MACHINE, experiment="machine", words=("machine",)),
        # Strong and weak scaling over 1, 2, 4, ... devices. Never oversubscribed, because that does not show speed.
        *(_run(SCALING, name, {"mesh.oversubscribe": "false", **sizes[name]}) for name in ("cnn", "gpt")),
        _run(PROFILE, "cnn", {**profile, **sizes["cnn"]}),
        *_levers(devices),
    ]


def _smoke(devices: int) -> Iterator[Part]:
    """Every model at a tiny size, with each strategy that it supports, on all devices."""
    # `gpt` is first, because it has the most strategies: if time runs out, most of them were tried.
    parts = max(2, devices)  # sizes of `gpt` in which heads, blocks and positions can be divided over all devices
    sizes = {"layers": parts, "heads": parts, "width": 8 * parts, "context": 2 * parts}
    split = {f"model.{name}": size for name, size in sizes.items()}
    yield _small("gpt", devices, {"strategy": _strategies("gpt", split), **split})
    experts = {"strategy": "expert", "model.experts": max(8, devices), "model.context": 8}
    yield _small("moe", devices, experts)
    yield _small("hybrid", devices, {**split, "lever.mesh": ";".join(mixed(devices))})
    for experiment in config_lib.training_experiments():
        if experiment != "gpt":
            yield _small(experiment, devices, {"strategy": _strategies(experiment, {})})


def _levers(devices: int) -> Iterator[Part]:
    """Every other experiment on a training step, at a tiny size. They are last: they need correct strategies."""
    for experiment in discovery.experiments():
        config = getattr(discovery.load_experiment(experiment), "get_config", ConfigDict)()
        own = experiment in (*config_lib.training_experiments(), "moe", "hybrid")  # of the stage `smoke`
        if not own and "measures" not in config:
            alone = config.get("mesh", {}).get("devices") == "1"  # the experiment is about a single device
            settings = {"mesh.devices": 1 if alone else devices, "batch": max(16, 8 * devices), "measure.rounds": 1}
            yield _run(LEVERS, experiment, settings, preset="smoke")


def _small(experiment: str, devices: int, settings: dict[str, Any]) -> Part:
    """A run of one round that shows whether an experiment works."""
    common = {"mesh.devices": devices, "scaling": "strong", "batch": max(16, 4 * devices), "measure.rounds": 1}
    return _run(SMOKE, experiment, {**common, **settings}, preset="smoke")


def _strategies(experiment: str, settings: dict[str, Any]) -> str:
    """The strategies that take the experiment, as a setting."""
    module = discovery.load_experiment(experiment)
    config = config_lib.compose(experiment, module, discovery.load_preset("smoke"))
    with config.unlocked():
        config.update_from_flattened_dict(settings)
    return ",".join(parallel.of_model(discovery.build(experiment, config)))


def mixed(devices: int) -> list[str]:
    """Meshes with as many axes as the device count has factors of two, or with one axis if it has none."""
    meshes = []
    for inner in (("tensor", "fsdp", "data"), ("tensor", "stage", "data")):
        sizes: dict[str, int] = {}
        left = devices
        for axis in inner[:-1]:
            sizes[axis] = 2 if left % 2 == 0 else 1
            left //= sizes[axis]
        sizes[inner[-1]] = left
        meshes.append({axis: sizes[axis] for axis in axes.AXES if sizes.get(axis, 1) > 1} or {"data": 1})
    return list(dict.fromkeys(axes.text(sizes) for sizes in meshes))


def _run(stage: str, experiment: str, settings: dict[str, Any], *, preset: str = "auto") -> Part:
    """One command of the first run."""
    flags = [f"--config.{name}={value}" for name, value in settings.items()]
    words = ("run", experiment, *([f"--preset={preset}"] if preset != "auto" else []), *flags)
    return Part(run=f"{stage}-{experiment}", stage=stage, experiment=experiment, words=words)


def first_run(
    folder: Path, console: Console, *, launch: Launch = command.launch, clock: Callable[[], float] = time.monotonic
) -> bool:
    """Runs the parts that `folder` does not have yet, and writes its page, even after an interrupt.

    Returns whether everything is as expected.

    Raises:
      UserError: the folder is in use, or was started on another machine.
    """
    began = clock()
    folder.mkdir(parents=True, exist_ok=True)
    with lock_folder(folder):
        machine, every = _machine_and_parts(console)
        document = begin(folder, machine, every)
        # Parts that are broken or amiss are repeated: their cause may be gone.
        todo = [part for part in every if document["parts"][part.run]["outcome"] != DONE]
        heading = f"running {len(todo)} of {len(every)} parts, within {format_s(BUDGET_S)}, into {folder}"
        console.print(heading, highlight=False, soft_wrap=True)
        try:
            with Parts(console, todo) as progress:
                for part in todo:
                    progress.show(title(part))
                    stage_s = SHARE.get(part.stage, 1.0) * BUDGET_S
                    limit_s = began + stage_s - clock()
                    late = f"this stage must end within {format_s(stage_s)} of the start. {command.CONTINUES}"
                    record = partial(_record, document, part, folder, progress)
                    if limit_s < MIN_LEFT_S:
                        record(SKIPPED, f"Not started: {late}", 0.0)
                    else:
                        command.measure(
                            part.words,
                            folder,
                            part.run,
                            limit_s,
                            late=f"Stopped: {late}",
                            launch=launch,
                            clock=clock,
                            record=record,
                        )
        finally:
            page.write(folder, document)
    page.show(document, console)
    measured = all(part["outcome"] == DONE for part in document["parts"].values())
    return measured and not any(item["agrees"] == NO for item in page.items(document))


def dry_run(console: Console) -> None:
    """Prints the commands of a first run on this machine. Measures and writes nothing."""
    for part in _machine_and_parts(console)[1]:
        console.print(f"jaxbench {' '.join(part.words)}", highlight=False, soft_wrap=True)


def _machine_and_parts(console: Console) -> tuple[Machine, list[Part]]:
    only_cpu_here()
    machine = probe_machine("auto", console)
    return machine, all_of(machine)


def begin(folder: Path, machine: Machine, parts: Sequence[Part]) -> dict[str, Any]:
    """The document of a folder: a new one, or the existing one brought up to date.

    Raises:
      UserError: the document was started on another machine or with other software, or cannot be read.
    """
    made = {"kind": KIND, "schema": 1, "machine": redact(dict(machine)), "parts": {}, "found": {}, "card": None}
    made["begun"] = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    path = folder / NAME
    if path.exists():
        old = read_document(path, KIND, 1, ("begun", "machine", "parts", "found", "card"), "choose a new --workdir.")
        if other := identity.differences(old["machine"], made["machine"]):
            raise UserError(f"'{folder}' was started {identity.refused(other)}: choose a new --workdir.")
        for key in SAME_SOFTWARE:
            was, now = old["machine"].get(key), made["machine"].get(key)
            if was != now:
                changes = identity.changes(was, now)
                raise UserError(f"'{folder}' was started with other {key} ({changes}): choose a new --workdir.")
        made |= {name: old[name] for name in ("begun", "parts", "found", "card")}
    # Parts that this version does not have any more disappear, and new ones are added.
    old_parts, made["parts"] = made["parts"], {}
    for number, part in enumerate(parts):
        about = {"stage": part.stage, "about": part.experiment, "outcome": ASKED, "seconds": 0.0, "said": ""}
        made["parts"][part.run] = about | old_parts.get(part.run, {}) | {"number": number, "words": list(part.words)}
    return made


def _record(
    document: Document, part: Part, folder: Path, progress: Parts, outcome: str, message: str, seconds: float
) -> None:
    """Adds the outcome of a part, writes the document, and prints the part's line."""
    results = evidence(part, folder)
    items = results["items"]
    against = any(item["agrees"] == NO for item in items)
    if outcome == AMISS and against:
        message = "Some results are not as expected: see above."  # the command's own last line only names its page
    command.add(document["parts"][part.run], outcome, message, seconds)
    if outcome in (REFUSED, BROKEN) or (outcome == AMISS and not against):
        items.append(complaint(part, NO, outcome, message))
    elif outcome in (STOPPED, SKIPPED):
        items.append(complaint(part, CANNOT_TELL, outcome, message))
    document["found"][part.run] = redact(results, private=True)
    document["card"] = redact(machine_profile.read(folder / "machine" / machine_profile.NAME))
    write_json(folder / NAME, document)  # after each part, so that a crash loses none
    progress.end(part, document["parts"][part.run], seconds, document["found"][part.run]["items"])


def evidence(part: Part, folder: Path) -> dict[str, Any]:
    """The results of the part so far. folder: the folder of the whole first run."""
    results: dict[str, Any] = {"items": [], "grid": {}, "records": {}}
    # `machine` is one command with several run folders.
    names = [f"{part.run}/{name}" for name in machine_command.EXPERIMENTS] if part.stage == MACHINE else [part.run]
    for run in (folder / name for name in names if (folder / name / MANIFEST).exists()):
        name = run.relative_to(folder).as_posix()
        try:
            read = _cases(run) if part.stage == MACHINE else _trainings(part.stage, run)  # items by stage
        except UserError as error:  # a damaged folder is a finding of the first run, not its end
            results["items"].append(complaint(part, NO, "its records cannot be read", str(error)))
            continue
        about = part.experiment if part.stage != MACHINE else run.name
        for stage, items in read["items"].items():
            results["items"] += [_item_json(item, stage, about, name) for item in items]
        results["grid"] |= read.get("grid", {})
        results["records"][name] = read["records"]
    return results


def complaint(part: Part, agrees: str, found: str, why: str) -> dict[str, Any]:
    """The item for a part that did not end well as a whole."""
    expected = "The command ends without an error."
    item = Item(expected=expected, found=found, agrees=agrees, judged=int(agrees == NO), why=(why,))
    return _item_json(item, part.stage, part.experiment, part.run)


def _trainings(stage: str, path: Path) -> dict[str, Any]:
    """What the records of steps say about the expectations of a stage."""
    run = RunFolder(path)
    rows = run_rows.analyse(points.load(run), config=run.config(), spread=bootstrap.read_spread(run.path))
    items = {SMOKE: expectations.of_training(rows)}  # correctness is shown in one place, whatever part ran the program
    if stage == SCALING:
        items[SCALING] = expectations.of_scaling(rows)
    if stage == PROFILE:
        items[PROFILE] = [expectations.of_profile(rows)]
    grid = expectations.grid(rows) if stage == SMOKE else {}
    return {"items": items, "grid": grid, "records": _sent_records(run.records())}


def _cases(path: Path) -> dict[str, Any]:
    """What the records of cases say about the machine."""
    run = RunFolder(path)
    manifest = run.manifest()
    rows = run_rows.analyse(
        points.load_cases(run), manifest=manifest, machine=None, spread=bootstrap.read_spread(run.path)
    )
    items = expectations.of_cases(rows)
    if manifest["plan"].get("view") == "matmul":
        items.append(expectations.of_peak(rows, manifest))
    return {"items": {MACHINE: items}, "records": _sent_records(run.records())}


def _sent_records(records: Iterable[Any]) -> list[dict[str, Any]]:
    return [to_json(record) for record in records if isinstance(record, _SENT)]


def _item_json(item: Item, stage: str, about: str, run: str) -> dict[str, Any]:
    return {"stage": stage, "about": about, "run": run, **dataclasses.asdict(item), "why": list(item.why)}


class Parts(ProgressLine):
    """Counts the remaining parts, and estimates the time left from finished ones."""

    def __init__(self, console: Console, todo: Sequence[Part]):
        super().__init__(console, len(todo))
        self._left = list(todo)
        self._seen: dict[str, list[float]] = {}

    def end(self, part: Part, about: Mapping[str, Any], seconds: float, items: Sequence[Mapping[str, Any]]) -> None:
        """Prints the line of a finished part. about: its entry in the document. items: its expectations."""
        if about["outcome"] not in (SKIPPED, STOPPED):  # those did not take the time that they need
            self._seen.setdefault(part.stage, []).append(seconds)
        self._left.remove(part)
        self.advance()
        against = [item for item in items if item["agrees"] == NO]
        unknown = sum(item["agrees"] == CANNOT_TELL for item in items)
        word = "NOT as expected" if against else f"as expected, {unknown} inconclusive" if unknown else "as expected"
        if not against and about["outcome"] in (SKIPPED, STOPPED):
            word = "not finished"
        line = f"{title(part):<28} {about['outcome']:<8} {format_s(seconds):>12}   {word}"
        self._console.print(Text(line, style="red" if against else "" if about["outcome"] == "done" else "yellow"))
        for item in against:
            self._console.print(Text(f"  {'; '.join(item['why'][:2])}", style="red"), soft_wrap=True)

    def left_s(self) -> float:
        """The estimated seconds of the remaining parts: the mean of the part's stage so far, else GUESS_S."""
        mean = {stage: sum(seen) / len(seen) for stage, seen in self._seen.items()}
        return sum(mean.get(part.stage, GUESS_S[part.stage]) for part in self._left)


def title(part: Part) -> str:
    """The part's name in the terminal: "smoke: cnn", "machine"."""
    return part.stage if part.stage == part.experiment else f"{part.stage}: {part.experiment}"

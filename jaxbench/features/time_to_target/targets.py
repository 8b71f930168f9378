# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench run` of measures="targets": trainings to a target over models, device counts, batches, rules and seeds.

Each training is a folder of `jaxbench train` under trainings/, so it survives kill -9. A training that has ended has a
result.json, and the same command continues with the others. One process runs all trainings of a device count.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict
from rich.console import Console

from jaxbench import config as config_lib
from jaxbench import discovery, parallel
from jaxbench.config import LINEAR, TUNED, TargetSettings, parse_targets
from jaxbench.core.store import RunFolder, write_json
from jaxbench.errors import UserError
from jaxbench.features.time_to_target.worker import DescribeModel, HowEnded, TrainModel
from jaxbench.features.training import trainings
from jaxbench.features.training.folder import writing
from jaxbench.features.training.trainings import Trained
from jaxbench.machine import energy, program_cache
from jaxbench.machine import manifest as manifest_lib
from jaxbench.processes.client import Worker, WorkerError
from jaxbench.processes.counts import device_counts
from jaxbench.processes.messages import KEEP_MEMORY, Answer, Request, Setup
from jaxbench.records.manifest import Machine, Manifest
from jaxbench.records.reading import read_json
from jaxbench.sweep.progress import heartbeat
from jaxbench.sweep.run import absolute, begin_session, free_cores

MODULE = "jaxbench.features.time_to_target.worker"
LONGEST_S = 1e6  # limit for one training, eleven days: a training has no length that could be expected


def rates(rule: str, batch: int, *, base_rate: float, base_batch: int, grid: tuple[float, ...]) -> tuple[float, ...]:
    """The learning rates to try at a batch: a single rate for a rule, or for `tuned` the grid around the `sqrt` rate.

    `linear`: base_rate x batch / base_batch (Goyal et al. 2017). `sqrt`: base_rate x sqrt(batch / base_batch)
    (Krizhevsky 2014). base_rate, base_batch: from the model's own training.
    """
    scale: Callable[[float], float] = float if rule == LINEAR else math.sqrt
    rate = base_rate * scale(batch / base_batch)
    # Six digits: the rate is in the name of a folder, and rules that give the same rate share it.
    return tuple(float(f"{rate * factor:.6g}") for factor in (grid if rule == TUNED else (1.0,)))


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model that is trained.

    base_rate, base_batch, epochs, target: those of its own training, unless the config sets them. examples: the number
    in its training split.
    """

    name: str
    experiment: str
    config: ConfigDict
    base_rate: float
    base_batch: int
    epochs: int
    target: float
    examples: int = 0


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One training of the study."""

    model: Model
    devices: int
    batch: int
    rule: str
    seed: int
    rate: float

    @property
    def folder(self) -> str:
        """The name of its folder. Rules that give the same learning rate share one training."""
        return f"{self.model.name}-devices{self.devices}-batch{self.batch}-rate{self.rate:g}-seed{self.seed}"

    def config(self, settings: TargetSettings) -> ConfigDict:
        """The config of `jaxbench train`."""
        model, config = self.model, self.model.config.copy_and_resolve_references()
        steps = model.examples // self.batch
        with config.unlocked():
            config.seed, config.optimizer.learning_rate = self.seed, self.rate
            config.mesh.platform, config.mesh.devices = settings.platform, str(self.devices)
            config.train.update(
                batch=self.batch,
                epochs=model.epochs,
                target=model.target,
                strategy=settings.strategy,
                evaluate_every=max(1, steps // settings.evaluations),
                noise_examples=settings.noise_examples,
                warmup=math.ceil(settings.warmup * steps),  # in steps; the setting is in epochs
                checkpoint_every=0,
                keep=1,  # after each epoch, and only the newest: an ended training needs none
            )
        return config


class TargetStudy:
    """The run in `folder`: its settings, this machine, and the trainings so far. per_hour: the machine's price."""

    def __init__(
        self,
        settings: TargetSettings,
        folder: Path,
        machine: Machine,
        console: Console,
        per_hour: float | None = None,
    ):
        self.settings, self.folder, self.machine, self.console = settings, folder, machine, console
        self.per_hour = per_hour
        self.trained: dict[tuple[str, str], Trained] = {}  # by folder and rule

    def run(self, models: Sequence[Model], counts: Sequence[int]) -> None:
        """Trains what is missing. Raises UserError."""
        for model in models:
            for devices in counts:
                with self._process(devices) as worker:  # one for all batches: starting devices takes seconds
                    asked = DescribeModel(experiment=model.experiment, config=model.config.to_dict())
                    # Only a worker may read the data: a model's code imports jax, and this process starts no devices.
                    known = replace(model, examples=_ask(worker, asked, model.experiment).examples)
                    for rule in self.settings.rule:
                        for batch in self._batches(known, devices, first=rule == self.settings.rule[0]):
                            self._batch(worker, known, devices, batch, rule)

    def _batches(self, model: Model, devices: int, *, first: bool) -> Iterator[int]:
        """The batches that the data and the devices allow. The first call prints those that are left out."""
        for batch in self.settings.batches:
            why = f"a batch of {batch} does not divide over {devices} devices" if batch % devices else ""
            if batch > model.examples:
                why = f"a batch of {batch} is more than the {model.examples} examples"
            if not why:
                yield batch
            elif first:
                self.console.print(f"Left out: {model.name}: {why}.", style="yellow", highlight=False, soft_wrap=True)

    def _batch(self, worker: Worker, model: Model, devices: int, batch: int, rule: str) -> None:
        """Trains all seeds of a batch. With `tuned` the first seed tries the grid, on the first device count."""
        settings = self.settings
        of_model: dict[str, Any] = {"model": model, "devices": devices, "batch": batch, "rule": rule}
        grid = rates(rule, batch, base_rate=model.base_rate, base_batch=model.base_batch, grid=settings.rates)
        chosen = grid[0]
        if rule == TUNED:
            chosen = self._tuned(model, batch) or self._search(worker, of_model, grid)
        for seed in range(settings.seed, settings.seed + settings.seeds):
            self._one(worker, Wanted(**of_model, seed=seed, rate=chosen))

    def _tuned(self, model: Model, batch: int) -> float | None:
        """The learning rate that was chosen on a smaller device count."""
        # The device count changes no result but the order of sums, so one search serves all counts.
        found = (one for one in self.trained.values() if (one.model, one.batch, one.rule) == (model.name, batch, TUNED))
        return next((one.learning_rate for one in found), None)

    def _search(self, worker: Worker, of_model: dict[str, Any], grid: Sequence[float]) -> float:
        """The learning rate of the grid with the fewest steps or, if none reaches the target, the highest accuracy."""
        tried = [
            self._one(worker, Wanted(**{**of_model, "rule": trainings.GRID}, seed=self.settings.seed, rate=rate))
            for rate in grid
        ]
        # Reached before not reached; among these, the fewest steps or the highest accuracy.
        best = min(tried, key=lambda one: (not one.reached, one.steps if one.reached else -(one.accuracy or 0.0)))
        return best.learning_rate

    def _one(self, worker: Worker, wanted: Wanted) -> Trained:
        """Runs a training, unless it has ended before, and adds it to the records."""
        folder = self.folder / trainings.TRAININGS / wanted.folder
        ended = folder / trainings.RESULT
        if not ended.exists():
            config = wanted.config(self.settings)
            before, whole = energy.read(), not folder.exists()  # a killed start's energy is unknown
            order = TrainModel(
                experiment=wanted.model.experiment,
                config=config_lib.plain(config),
                workdir=str(folder),
                command=("jaxbench", *sys.argv[1:]),
            )
            said = f"{len(self.trained)} trainings ended; now {wanted.folder}"
            with heartbeat(self.console, lambda: said, terminal=True):
                answer = _ask(worker, order, folder)
            if not answer.finished:
                raise KeyboardInterrupt  # the same signal as ours stopped it
            with writing(folder):
                used = energy.between(before, energy.read()) if whole else {}
                write_json(ended, {**_result(folder, wanted, answer), "joules": sum(used.values()) if used else None})
                shutil.rmtree(folder / "checkpoints", ignore_errors=True)  # hundreds of them would fill a disk
        found = self._ended(ended, wanted)
        self.trained[wanted.folder, wanted.rule] = found
        with writing(self.folder):  # after each training, so that a report of an interrupted run has all that ended
            trainings.write_trained(self.folder, list(self.trained.values()))
        self.console.print(trainings.trained_sentence(found), highlight=False, soft_wrap=True)
        return found

    def _ended(self, result: Path, wanted: Wanted) -> trainings.Trained:
        """The result of a training. Raises UserError if its file is damaged."""
        known = dict(rule=wanted.rule, price_per_hour=self.per_hour)
        advice = "delete its folder, and the same command trains it again."
        return read_json(result, lambda line: trainings.parse_trained(line, **known), advice)

    @contextlib.contextmanager
    def _process(self, devices: int) -> Iterator[Worker]:
        """A worker process that trains on this number of devices."""
        logs = self.folder / "logs"
        logs.mkdir(exist_ok=True)
        programs, _ = program_cache.opened(self.machine)
        setup = Setup(
            module=MODULE,
            platform=self.machine["platform"],
            devices=devices,
            order=tuple(free_cores()),
            environment=KEEP_MEMORY,
            worker=f"devices{devices}",
            machine=self.machine,
            cache=str(programs.begin(0) if programs is not None else (self.folder / "compiled").absolute()),
        )
        with contextlib.closing(Worker(setup, logs / f"devices{devices}.log")) as worker:
            yield worker


def _ask(worker: Worker, request: Request[Answer], of: str | Path) -> Answer:
    """Raises UserError, which names the experiment or the folder `of` the training."""
    try:
        return worker.ask(request, LONGEST_S)
    except WorkerError as error:
        raise UserError(f"{Path(of).name}: {error}") from error


def _result(folder: Path, wanted: Wanted, answer: HowEnded) -> dict[str, Any]:
    """The result of a training that has ended, from its own files."""
    rows = trainings.read_rows(folder)
    spent = trainings.totals(trainings.read_ledger(folder))
    # A training that did not reach its target counts as the whole budget of steps.
    budget = wanted.model.epochs * (wanted.model.examples // wanted.batch)
    done = answer.diverged or (rows[-1]["step"] if rows else 0)
    return {
        "model": wanted.model.name,
        "batch": wanted.batch,
        "devices": wanted.devices,
        "seed": wanted.seed,
        "learning_rate": wanted.rate,
        "target": wanted.model.target,
        "steps": rows[-1]["step"] if answer.reached else budget,
        "reached": answer.reached,
        "diverged": answer.diverged,
        "accuracy": rows[-1].get("test_accuracy") if rows else None,
        # `steps` are those that count, so a kill does not make a batch look slower.
        "step_s": (spent["steps"] + spent["input"]) / 1e9 / done if done else None,
        "noise": [[row["step"], row["gradient_square"], row["noise_trace"]] for row in rows if "noise_trace" in row],
        "folder": wanted.folder,
    }


def models_of(settings: TargetSettings) -> list[Model]:
    """The models, with their own configs. Raises UserError for a model that cannot be trained to a target."""
    found = []
    for name in settings.models:
        module, preset = discovery.load_experiment(name), discovery.load_preset("auto")
        config = config_lib.compose(Path(name).stem, module, preset, tiny=False, training=True)
        if "measures" in config:
            raise UserError(f"--config.models={name} is not a model: use mlp or cnn, for example.")
        own = config.train
        found.append(
            Model(
                name=Path(name).stem,
                experiment=absolute(name),
                config=config,
                base_rate=float(config.optimizer.learning_rate),
                base_batch=int(own.batch),
                epochs=settings.epochs or int(own.epochs),
                target=settings.target or float(own.target),
            )
        )
    names = [model.name for model in found]
    if twice := {name for name in names if names.count(name) > 1}:  # the name is a part of each training's folder
        raise UserError(f"--config.models has two models of the name '{min(twice)}': rename one of the files.")
    return found


def ask(config: ConfigDict) -> tuple[TargetSettings, list[Model], Machine, tuple[int, ...]]:
    """(settings, models, machine, device counts). Raises UserError."""
    settings = parse_targets(config)
    parallel.load(settings.strategy)
    models = models_of(settings)
    machine = manifest_lib.probe(settings.platform)
    return settings, models, machine, device_counts(settings, machine)  # type: ignore[arg-type]


def dry_run(config: ConfigDict, console: Console) -> None:
    """Prints the number of trainings that a run would have."""
    settings, models, _, counts = ask(config)
    console.print(_size(settings, models, counts), highlight=False, soft_wrap=True)


def _size(settings: TargetSettings, models: Sequence[Model], counts: Sequence[int]) -> str:
    """How many trainings the settings ask for, as a clause."""
    each = len(settings.batches) * settings.seeds
    # Of a grid, the first seed on the first device count tries all rates; one of them is the one that it keeps.
    tried = len(settings.batches) * (len(settings.rates) - 1) if TUNED in settings.rule else 0
    total = len(models) * (len(counts) * each * len(settings.rule) + tried)
    return (
        f"at most {total} trainings: {', '.join(model.name for model in models)}; devices "
        f"{', '.join(map(str, counts))}; batches {', '.join(map(str, settings.batches))}; {settings.seeds} seeds; "
        f"rule {', '.join(settings.rule)}"
    )


def run(experiment: str, config: ConfigDict, workdir: Path, console: Console, per_hour: float | None = None) -> None:
    """Runs the trainings that the folder lacks. Raises UserError. An interrupt loses only the newest steps.

    per_hour: the price of this machine, which is written into the record of each training.
    """
    settings, models, machine, counts = ask(config)
    folder = RunFolder.begin(workdir, config_lib.plain(config))
    try:
        begin_session(folder, _session(experiment, settings, models, machine, counts))
        # Before hours of training: whoever asked for too many sees it in time.
        title = f"{settings.experiment}: {_size(settings, models, counts)}, into {workdir}"
        console.print(title, highlight=False, soft_wrap=True)
        for note in folder.notes:
            console.print(note, style="yellow", highlight=False, soft_wrap=True)
        TargetStudy(settings, workdir, machine, console, per_hour).run(models, counts)
    finally:
        folder.close()


def _session(
    experiment: str, settings: TargetSettings, models: Sequence[Model], machine: Machine, counts: Sequence[int]
) -> Manifest:
    """The manifest of this start."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    digests = {model.name: discovery.digest(model.experiment) for model in models}
    return {
        **machine,
        "command": ["jaxbench", *sys.argv[1:]],
        "shared_with": [],
        "started": now,
        "experiment_file": discovery.experiment_path(experiment).name,
        "experiment_sha256": digests,
        "plan": {
            "measures": "targets",
            "experiment": settings.experiment,
            "platform": machine["platform"],
            "devices": list(counts),
            "models": {
                model.name: {
                    "base_rate": model.base_rate,
                    "base_batch": model.base_batch,
                    "epochs": model.epochs,
                    "target": model.target,
                }
                for model in models
            },
            "points": [],  # readers of a plan expect the field
        },
    }

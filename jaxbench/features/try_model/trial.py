# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench try EXPERIMENT`: describes a model and checks which strategies train it correctly, without timing.

Everything runs on fake CPU devices, compiled without optimization, because only results and communication are checked.
For the same reason two processes can share the work.
"""

from __future__ import annotations

import dataclasses
import math
import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import jax
from ml_collections import ConfigDict
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from jaxbench import config as config_lib
from jaxbench import parallel
from jaxbench.analysis import step_work
from jaxbench.analysis.step_work import BEYOND, Stated
from jaxbench.core.point import Point
from jaxbench.core.program import Program
from jaxbench.core.workload import TrainWorkload
from jaxbench.digits import size
from jaxbench.errors import UserError
from jaxbench.levers import ACCUMULATE, DEFAULTS, GATHER
from jaxbench.machine.cores import available_cores
from jaxbench.machine.start import run_once_options
from jaxbench.measure import first_step
from jaxbench.measure.bench import Bench
from jaxbench.measure.compile_report import example_flops
from jaxbench.measure.model_steps import ModelSteps
from jaxbench.processes.client import Worker, WorkerError
from jaxbench.processes.forkserver import ForkServers
from jaxbench.processes.messages import Describe, Description, Fields, Setup, Tried, Try
from jaxbench.processes.server import stage
from jaxbench.sweep.progress import heartbeat, working
from jaxbench.sweep.run import absolute
from jaxbench.workloads import inspection
from jaxbench.workloads.adapters import flax_models

DEVICES = (1, 2, 8)
BATCH = 16  # examples, all devices together; a model that cannot take just any number gets the batch of the config
PROCESSES = 2  # each needs the memory of a model and of its reference
RIGHT, WRONG, CANNOT, ERROR = "right", "wrong", "cannot", "error"
# wrong: shown by a comparison. cannot: refused, or a comparison that proves nothing. error: an exception.
STYLES = {RIGHT: "green", WRONG: "bold red", CANNOT: "yellow", ERROR: "red"}
LARGE = 20_000_000  # parameters: above, only one process is used, to save memory
NEEDS_A_MESH = "hybrid"  # the only strategy that must be told how to lay out its devices
LARGEST = 3  # number of the largest parameters that are listed


@dataclass
class StrategyTrial:
    """One strategy on one device count. word: one of STYLES. note: the reason, or a remark."""

    word: str
    note: str = ""
    tried: Tried | None = None


def run(experiment: str, config: ConfigDict, console: Console) -> bool:
    """Prints description and results. True: a strategy trains the model, correctly wherever it takes it."""
    config_lib.parse(config, parallel.strategy_names(), parallel.of_any_model())  # refuses bad settings at once
    setup = Setup(
        platform="cpu",
        devices=max(DEVICES),
        experiment=absolute(experiment),
        worker="try",
        config=config_lib.plain(config),
    )
    forks = ForkServers(["jaxbench.features.ablations.recipe"])
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as threads, closing(forks):
        workers = [
            Worker(setup, Path(folder) / f"log{i}", forks=forks) for i in range(min(PROCESSES, available_cores()))
        ]
        try:
            try:
                with working(console, "looking at the model"):
                    model = workers[0].ask(Describe())
            except WorkerError as error:
                raise UserError(str(error)) from error
            _print_model(model, console)
            used = workers if model.parameters <= LARGE else workers[:1]
            outcomes = _try_all(used, model.strategies, threads, console, batch=model.batch, loss=model.loss)
            gathered = _try_gathers(workers[0], config, model.strategies, batch=model.batch, loss=model.loss)
        finally:
            for worker in workers:
                worker.close()
    console.print(_table(model.strategies, outcomes))
    trains = any(_trains(name, outcomes) for name in model.strategies)
    last = model.training if trains else f"No strategy is shown to train '{model.name}' correctly."
    does, contradictions = _does(outcomes, model.batch)
    for line in (*model.notes, *_notes(model.strategies, outcomes), *gathered, *does, *contradictions, last):
        console.print(line, highlight=False, soft_wrap=True)
    return trains and not contradictions  # a run would refuse every row


def _trains(strategy: str, outcomes: dict[tuple[str, int], StrategyTrial]) -> bool:
    """Whether a strategy is right on some device count and wrong on none."""
    words = {outcomes[strategy, count].word for count in DEVICES}
    return RIGHT in words and not words & {WRONG, ERROR}


def _try_all(
    workers: list[Worker],
    strategies: Sequence[str],
    threads: Executor,
    console: Console,
    *,
    batch: int = BATCH,
    loss: str = "",
) -> dict[tuple[str, int], StrategyTrial]:
    """Tries all strategies on all device counts. Raises UserError if a worker died.

    loss: its kind, as the first worker has described it.
    """
    # Points with a common reference are neighbours: first those of the whole batch, then those of each device count.
    whole = [name for name in strategies if name.startswith("jit")]
    parts = [name for name in strategies if name not in whole]
    waiting = deque((name, count) for names in (whole, parts) for count in DEVICES for name in names)
    outcomes: dict[tuple[str, int], StrategyTrial] = {}
    first, total = waiting[0], len(waiting)

    with (
        heartbeat(console, lambda: f"{len(outcomes)} of {total} points tried, {total - len(outcomes)} left"),
        Progress(console=console, transient=True) as progress,
    ):
        task = progress.add_task("trying", total=total)

        def work(worker: Worker, take: Callable[[], tuple[str, int]]) -> None:
            while waiting:
                try:
                    point = take()
                except IndexError:  # the other worker took the last point
                    return
                # What a step changes and multiplies belongs to the model, so one point tells.
                outcomes[point] = _try(worker, *point, batch, loss, watch=point == first)
                progress.advance(task)

        # The two workers start from opposite ends, so they need no common reference until they meet.
        takes = (waiting.popleft, waiting.pop)
        for done in as_completed([threads.submit(work, *each) for each in zip(workers, takes, strict=False)]):
            done.result()
    return outcomes


def _try_gathers(worker: Worker, config: ConfigDict, strategies: Sequence[str], *, batch: int, loss: str) -> list[str]:
    """What each value of the lever `gather` sends and needs with the micro-batches of the config, under fsdp."""
    many = max(ACCUMULATE.read(word) for word in ACCUMULATE.words(str(config.lever.accumulate)))
    if many == 1 or "fsdp" not in strategies:
        return []
    lines, sent, devices = [], {}, DEVICES[1]
    for gather in GATHER.values:
        levers = {ACCUMULATE.name: str(many), GATHER.name: gather}
        trial = _try(worker, "fsdp", devices, batch, loss, levers=levers)
        line = f"fsdp on {devices}, accumulate={many}, gather={gather}: {trial.word}"
        if trial.tried is not None and trial.word == RIGHT:
            sent[gather] = trial.tried.sent_bytes
            line += f", sends {size(trial.tried.sent_bytes)} a step, peak {size(trial.tried.peak_bytes)}"
        lines.append(line + (f" ({trial.note})" if trial.note else "") + ".")
    if sent:
        least = min(sent, key=lambda gather: sent[gather])
        lines.append(f"gather={least} sends least: use it if its memory fits (jaxbench advise forecasts its time).")
    return lines


def _try(
    worker: Worker,
    strategy: str,
    devices: int,
    batch: int = BATCH,
    loss: str = "",
    *,
    watch: bool = False,
    levers: Mapping[str, str] = MappingProxyType({}),
) -> StrategyTrial:
    """The trial of one strategy on one device count, in the worker."""
    point = Point(
        point=f"{strategy}/strong/{devices}",
        strategy=strategy,
        scaling="strong",
        devices=devices,
        global_batch=batch,
        oversubscribed=True,
        levers={**DEFAULTS, **levers},
        platform="cpu",
    )
    try:
        answer = worker.ask(Try(point=point.to_json(), loss=loss, watch=watch))
    except WorkerError as error:
        if not error.alive:  # killed, such as for its memory: this worker cannot try the rest
            raise UserError(f"{strategy} on {devices} devices: {error}") from error
        return StrategyTrial(CANNOT if error.refused else ERROR, str(error))
    checks = answer.checks
    wrong = [check.reason for check in checks if not check.ok and not check.unchecked]
    unproven = [check.reason for check in checks if check.unchecked]
    excess = [check.reason for check in checks if check.ok and check.excess_bytes]
    word = WRONG if wrong else CANNOT if unproven else RIGHT
    return StrategyTrial(word, "; ".join(wrong or unproven or excess), answer)


def _print_model(model: Description, console: Console) -> None:
    table = Table(show_header=False, box=None, title=f"{model.name}, a batch of {model.batch} {model.unit}")
    largest = ", ".join(f"{path} {shape}" for path, shape in model.largest)
    for name, value in (
        ("parameters", f"{model.parameters:,} in {model.arrays} arrays; largest: {largest}"),
        ("work", f"{model.flops_per_example:,.0f} FLOPs per example in matrix products, forward and backward"),
        ("loss", model.loss + ("; draws random numbers" if model.uses_key else "")),
        ("state", f"{model.state_numbers:,} untrained numbers" if model.state_numbers else "none"),
    ):
        table.add_row(Text(name, style="bold"), Text(value))
    console.print(table)


def _table(strategies: Sequence[str], outcomes: dict[tuple[str, int], StrategyTrial]) -> Table:
    """A row for each strategy: verdicts by device count, and sizes on the largest."""
    counts = ", ".join(map(str, DEVICES))
    title = f"correct on {counts} fake devices? and per device of {DEVICES[-1]}: bytes sent, model state, peak memory"
    columns = (*(str(n) for n in DEVICES), "sent per step", "model state", "peak of a step")
    table = Table("strategy", *columns, title=title)
    for name in strategies:
        tried = outcomes[name, DEVICES[-1]].tried
        words = [Text(word, style=STYLES[word]) for word in (outcomes[name, count].word for count in DEVICES)]
        sizes = (tried.sent_bytes, tried.state_bytes, tried.peak_bytes) if tried else (None, None, None)
        table.add_row(name, *words, *map(size, sizes))
    return table


def _notes(strategies: Sequence[str], outcomes: dict[tuple[str, int], StrategyTrial]) -> list[str]:
    """Each note once, with the strategies and device counts that it applies to."""
    places: dict[str, dict[str, list[str]]] = {}
    for name in strategies:
        for count in DEVICES:
            if note := outcomes[name, count].note:
                places.setdefault(note, {}).setdefault(name, []).append(str(count))
    return [f"{_where(found, strategies)}: {note}" for note, found in places.items()]


def _does(outcomes: dict[tuple[str, int], StrategyTrial], batch: int) -> tuple[list[str], list[str]]:
    """(what the steps of the model do, where that is less than a reader expects; what contradicts the stated FLOPs)."""
    does: list[str] = []
    contradictions: list[str] = []
    for tried in (outcome.tried for outcome in outcomes.values() if outcome.tried is not None):
        if tried.work is not None:
            stated = Stated(tried.flops, batch, 1, tried.beyond)
            does += step_work.sentences(tried.work)
            contradictions += filter(None, [stated.contradiction(tried.work)])
    return [f"The step: {sentence}." for sentence in does], [f"The step: {sentence}." for sentence in contradictions]


def _where(places: dict[str, list[str]], strategies: Sequence[str]) -> str:
    """The strategies and device counts of a remark, as a clause."""
    if len(places) == len(strategies) and all(len(counts) == len(DEVICES) for counts in places.values()):
        return "every strategy"
    everywhere = len(DEVICES)
    named = [name if len(at) == everywhere else f"{name} on {' and '.join(at)}" for name, at in places.items()]
    return ", ".join(named)


def describe(bench: Bench[ModelSteps]) -> Description:
    """Sizes, the kind of loss, and the strategies that are tried. Raises StageError."""
    plain, proof = bench.steps.plain, bench.steps.proof  # without levers, as the user wrote it
    with stage("model"):
        loss, uses_key = proof.loss_kind.described, proof.uses_key
    params, model_state = jax.eval_shape(plain.init, bench.key)
    leaves = sorted(jax.tree.leaves_with_path(params), key=lambda found: -found[1].size)[:LARGEST]
    largest = [
        (jax.tree_util.keystr(path, simple=True, separator="/"), "x".join(map(str, leaf.shape)) or "one number")
        for path, leaf in leaves
    ]
    return Description(
        name=plain.name,
        unit=plain.unit,
        batch=plain.traceable(BATCH),
        parameters=_count_numbers(params),
        arrays=len(jax.tree.leaves(params)),
        largest=tuple(largest),
        flops_per_example=example_flops(plain),
        loss=loss,
        uses_key=uses_key,
        state_numbers=_count_numbers(model_state),
        training=_training(plain),
        notes=(sentence,) if (sentence := flax_models.named_axes_sentence(plain.init)) else (),
        strategies=tuple(name for name in parallel.of_model(plain) if name != NEEDS_A_MESH),
    )


def attempt(bench: Bench[ModelSteps], placed: Fields, *, watch: bool = False) -> Tried:
    """The verdicts on a point, compiled without optimization, and the bytes that one device sends and holds.

    watch: also what its steps do.

    Every point starts with the same state, which its program loads. The program's own `init` is traced but never
    compiled: its values come from the model, and `load` gives the same layout. Raises StageError.
    """
    point = Point.from_json(placed)
    built = bench.compiler.compile(point, run_once_options())
    workload, program, compiled, proof = built.workload, built.program, built.compiled, bench.steps.proof
    with stage("check"):
        start = proof.start(workload)
        loaded = dataclasses.replace(program, init=lambda key: program.load(start))
        batch = bench.source.batch(point)
        checks = proof.verdicts(point, 1, loaded, compiled, batch)
        checks = first_step.diagnosed(checks, {}, workload, key=bench.key, batch=batch, device=bench.device)
        work = bench.steps.work(dataclasses.replace(built, program=loaded), batch) if watch else None
    beyond = bench.source.facts(workload)
    return Tried(
        checks=tuple(checks),
        sent_bytes=sum(each.wire_bytes for each in compiled.report.collectives),
        state_bytes=_state_bytes(program, bench.key),
        peak_bytes=compiled.report.peak_bytes,
        flops=compiled.report.flops_per_step,
        beyond=sum(beyond.get(name, 0.0) for name in BEYOND),
        work=work,
    )


def _training(workload: TrainWorkload) -> str:
    """A sentence that says whether the model can also be trained, or what it lacks."""
    try:
        inspection.require_trainable(workload)
    except UserError as error:
        return str(error)
    return f"'{workload.name}' can also be trained: jaxbench train."


def _state_bytes(program: Program, key: jax.Array) -> int:
    """The bytes of the whole training state on one device."""
    state, shardings = jax.eval_shape(program.init, key), program.state_sharding
    placed = zip(jax.tree.leaves(state), jax.tree.leaves(jax.tree.broadcast(shardings, state)), strict=True)
    return sum(math.prod(sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize for leaf, sharding in placed)


def _count_numbers(tree: object) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(tree))

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Trains a workload on its real data to a target. A checkpoint holds everything that decisions depend on.

The batches, the random key, the optimizer, the rows and the decision to stop are functions of (config, step). So a run
that was killed and restarted ends with the same bits as an uninterrupted run.

One process of a training starts its devices, builds model and program (`take`), and trains (`train`).
"""

from __future__ import annotations

import contextlib
import datetime
import io
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
from ml_collections import ConfigDict
from rich.console import Console

from jaxbench import config as config_lib
from jaxbench import discovery, native_log, parallel
from jaxbench.config import CACHED
from jaxbench.core.program import Program, TrainState
from jaxbench.core.store import MANIFEST, RunFolder, write_manifest
from jaxbench.core.workload import Dataset, TrainWorkload, random_key
from jaxbench.digits import counted
from jaxbench.errors import UserError, present
from jaxbench.features.training.checkpoint import Restored, Writer, params_sha256, restore_latest
from jaxbench.features.training.folder import Session, TimeLedger, locked_folder, record, writing
from jaxbench.features.training.loop import Stop, TrainLoop, of_signals, shown
from jaxbench.features.training.metrics import MetricLog
from jaxbench.features.training.plan import Plan, Row, count, read_data, read_plan
from jaxbench.features.training.trainings import ACCURACY, read_ledger
from jaxbench.levers import LEVERS
from jaxbench.machine import preparing, start
from jaxbench.machine.program_cache import seal, tunes, variables
from jaxbench.measure.arm import Arms, build_program, inspected, require_options
from jaxbench.measure.proof import Proof, require_micro_batchable
from jaxbench.measure.reference import with_first_state
from jaxbench.parallel import multihost
from jaxbench.parallel.layout import canonical_avals
from jaxbench.processes.group import ProcessGroup
from jaxbench.processes.messages import Fields, Setup, TrainSetup
from jaxbench.records.manifest import Machine
from jaxbench.records.preparation import Ledger
from jaxbench.sweep.plan import require_equal_parts
from jaxbench.sweep.progress import heartbeat
from jaxbench.sweep.start import programs_of
from jaxbench.workloads import inspection

PREPARES = ("start", "compile", "restore")  # kinds of time before the first step


@dataclass(frozen=True, kw_only=True)
class TrainResult:
    """The result of a training.

    Attributes:
      reached: the newest value of the metric on the test set has reached the target.
      finished: the target is reached or all epochs are done; False after a signal.
      was_finished: it had finished before, and nothing was trained now.
      stopped_by: "SIGTERM" or "SIGINT" if a signal stopped it before it had finished.
      step, epoch: completed steps and epochs.
      score: the newest value of the metric; None before the first evaluation.
      elapsed_s: seconds of work, summed over resumes: compiling, training, evaluating and waiting for checkpoints; not
        loading data, nor work that a kill has discarded.
      compile_s: the part of elapsed_s spent compiling.
      params_sha256: of the parameters, see `params_sha256`.
    """

    reached: bool
    finished: bool
    was_finished: bool
    stopped_by: str | None
    step: int
    epoch: int
    score: float | None
    elapsed_s: float
    compile_s: float
    params_sha256: str


@dataclass
class ProcessRole:
    """The role of this process in a training: alone, or in a process group. Its first process writes and prints.

    stop: the request to end. ledger: the time ledger, once the training has begun.
    """

    members: ProcessGroup = ProcessGroup()
    stop: Stop = field(default_factory=of_signals)
    ledger: TimeLedger | None = None


def train(
    workload: TrainWorkload,
    program_builder: Callable[[TrainWorkload], Program],
    *,
    config: ConfigDict,
    folder: Path,
    console: Console,
    session: Session,
    role: ProcessRole | None = None,
) -> TrainResult:
    """Trains to ``config.train.target`` in `folder`, or continues the training that is there.

    Args:
      workload: must pass `inspection.require_trainable`.
      program_builder: distributes the workload over devices; not called if there is nothing left to train.
      config: seed and train.{batch, epochs, target, checkpoint_every, keep, tensorboard} are used; all of it is stored.
      folder: for config.json, manifest.json, metrics.jsonl, checkpoints/ and, on request, tensorboard/.
      console: for the live progress, one line per epoch, notes and the closing sentences.
      session: this start, for the manifest and the checkpoints.
      role: that of this process if there are several. All return the same, except for the clocks.

    Raises:
      UserError: values or data that do not fit, a folder of another training, no intact checkpoint, a loss that is not
        finite, a full disk, a folder that not all processes see.
    """
    members = (role := role or ProcessRole()).members
    # All processes run the same code, and one of them prints. The others need a console that leads nowhere.
    console = console if members.leads else Console(file=io.StringIO())
    inspection.require_trainable(workload, config.train.get("metric", ACCURACY))
    data = read_data(workload, seed=config.seed)
    plan = read_plan(config, count(data.train))
    # The lock comes first: the ledger and the checkpoints may only be touched by its holder.
    with (
        locked_folder(folder, config.to_dict(), members) as checkpoints,
        TimeLedger(folder, begun_ns=session.begun_ns, kept=members.leads) as ledger,
        heartbeat(console, lambda: f"step {ledger.step:,} of at most {plan.steps:,} ({ledger.kind})"),
    ):
        role.ledger = ledger
        with ledger.doing("restore"):
            restored = restore_latest(checkpoints, canonical_avals(workload), members)
        for note in restored.notes:
            console.print(note, style="yellow", highlight=False, soft_wrap=True)
        rows: list[Row] = restored.progress.get("rows", [])
        facts = _facts(data, session, restored.progress, members)
        examples = {"train": plan.examples, "test": count(data.test)}
        with _metric_log(folder, rows, plan, members) as log:
            # Nothing is left to train: the program is not even built, and this start leaves no trace in the ledger.
            # A target that was raised since makes the training unfinished again.
            if restored.state is not None and plan.finished(restored.step, rows):
                ledger.discard()
                record(folder, session, members, step=restored.step, examples=examples)
                result = _result(plan, restored.state, rows, was_finished=True)
            else:
                program = _built(workload, program_builder, plan.batch)
                ledger.from_step = restored.step
                record(folder, session, members, step=restored.step, examples=examples)
                _print_start(console, workload, data, plan=plan, restored=restored, session=session)
                with discovery.naming_lines(f"the training step of '{workload.name}'"):
                    loop = TrainLoop(
                        workload, program, ledger, plan=plan, data=data, restored=restored, session=session
                    )
                with Writer(checkpoints, keep=plan.keep, on_sealed=ledger.sealed, members=members) as writer:
                    state, stopped_by = loop.run(log, writer, facts=facts, console=console, stop=role.stop)
                    rows = members.broadcast(log.rows)  # only the first process has evaluated
                result = _result(plan, state, rows, stopped_by=stopped_by, clock=loop.clock.to_json())
                ledger.finished = result.finished
    if members.leads:
        _print_end(console, result, plan)
    return result


def _built(workload: TrainWorkload, builder: Callable[[TrainWorkload], Program], batch: int) -> Program:
    """The program, if it can take a batch of this many examples. Raises UserError."""
    with discovery.naming_lines(f"the training step of '{workload.name}'"):
        program = builder(workload)
        parts = {"parts": program.parts, "micro_batches": workload.micro_batches}
        require_equal_parts("train.batch", batch, **parts)
        return program


@contextlib.contextmanager
def _metric_log(folder: Path, rows: list[Row], plan: Plan, members: ProcessGroup) -> Iterator[MetricLog]:
    """The log of metrics. The first process writes it; the other processes only use its rows."""
    with contextlib.ExitStack() as stack:
        if members.leads:
            yield stack.enter_context(MetricLog(folder, rows, tensorboard=plan.tensorboard))
        else:
            scratch = stack.enter_context(tempfile.TemporaryDirectory())
            yield stack.enter_context(MetricLog(Path(scratch), rows, tensorboard=False))


def _facts(data: Dataset, session: Session, progress: dict[str, Any], members: ProcessGroup) -> dict[str, Any]:
    """The facts about this training that its checkpoints store.

    Raises UserError if the newest checkpoint, or another process, has other data or another experiment file.
    """
    session.require_same_experiment(progress)
    # By content: another file under the same path would silently continue with other examples.
    digest = params_sha256({"train": dict(data.train), "test": dict(data.test)})
    if progress.get("data_sha256", digest) != digest:
        raise UserError(f"the data '{data.name}' have changed since this training started: choose a new --workdir.")
    # Each process reads its own rows of a batch, so different files would mix into a data set that nobody has.
    others = members.all_gather(digest)
    if wrong := [process for process, other in zip(members.processes, others, strict=True) if other != others[0]]:
        raise UserError(
            f"process {wrong[0]} reads other data '{data.name}' than process 0: give all hosts the same files."
        )
    return {"data_sha256": digest, **session.facts()}


def _result(
    plan: Plan,
    state: TrainState,
    rows: list[Row],
    *,
    was_finished: bool = False,
    stopped_by: str | None = None,
    clock: dict[str, float] | None = None,
) -> TrainResult:
    """The result of a training, whether it has finished or stopped."""
    finished = plan.finished(int(state.step), rows)
    # A finished training reports the clocks of the newest epoch's row, so that asking again gives the same.
    elapsed = rows[-1] if finished or clock is None else clock
    return TrainResult(
        reached=plan.reached(rows),
        finished=finished,
        was_finished=was_finished,
        stopped_by=None if finished else stopped_by,  # a signal during the last step stopped nothing
        step=int(state.step),
        epoch=int(state.step) // plan.steps_per_epoch,
        score=rows[-1][f"test_{plan.metric}"] if rows else None,
        elapsed_s=elapsed["elapsed_s"],
        compile_s=elapsed["compile_s"],
        params_sha256=params_sha256(state.params),
    )


def _print_start(
    console: Console, workload: TrainWorkload, data: Dataset, *, plan: Plan, restored: Restored, session: Session
) -> None:
    console.print(
        f"{workload.name} on {data.name}, {session.where}: {plan.examples} {workload.unit} for training in "
        f"{plan.steps_per_epoch} steps of {plan.batch}, {count(data.test)} for testing; until a test "
        f"{plan.metric} of {plan.target} or {counted(plan.epochs, 'epoch')}.",
        highlight=False,
        soft_wrap=True,  # one line for a log or a script, however narrow the terminal
    )
    if restored.state is not None:
        text = f"continuing from the checkpoint at step {int(restored.state.step)}."
        if before := session.moved_from(restored.progress):
            text += f" It was trained {before}: the final bits may differ from those of an unchanged training."
        console.print(text, highlight=False, soft_wrap=True)


def _print_end(console: Console, result: TrainResult, plan: Plan) -> None:
    score = f"test {plan.metric} {shown(result.score)} after {counted(result.epoch, 'epoch')}"
    if result.stopped_by:
        text = f"stopped by {result.stopped_by} after step {result.step}; it is saved, and the same command continues."
    elif result.reached:
        text = (
            f"target {plan.target} reached: {score}, "
            f"{result.elapsed_s:.2f} s with compilation, {result.elapsed_s - result.compile_s:.2f} s without."
        )
    else:
        text = f"target {plan.target} not reached: {score}."
    if result.was_finished:
        text = f"this training had already finished. {text}"
    console.print(text, highlight=False, soft_wrap=True)


def take(setup: Setup, console: Console, role: ProcessRole) -> TrainResult:
    """Starts the devices and trains. Raises UserError."""
    train = present(setup.train)
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    preparing.here().listen(tunes=tunes(setup.platform))
    programs, note = programs_of(str(ConfigDict(setup.config).measure.get("compile", CACHED)), setup.machine)
    if programs is not None:
        keep_programs(str(programs.begin(0)))
    with native_log.aside():  # notices that XLA prints while it starts are dropped
        devices = start.start(setup.platform, setup.devices, position=setup.world)
    result = trained(setup.experiment, setup.config, train, devices, setup.machine, console, role)
    if role.members.leads:
        if note:
            console.print(note, style="yellow", highlight=False, soft_wrap=True)
        _note_preparation(Path(train.workdir), started=started, note=note)
        if programs is not None:
            seal(programs.part(0))
    console.print(f"params_sha256: {result.params_sha256}", highlight=False, soft_wrap=True)
    return result


def keep_programs(folder: str) -> None:
    """Loads compiled programs from a folder, and keeps them there. Call before the first program is compiled."""
    for name, value in variables(Path(folder)).items():
        numbers = {"-1": -1, "0": 0.0, "true": True}
        jax.config.update(name.lower(), numbers.get(value, value))


def _note_preparation(folder: Path, *, started: str, note: str) -> None:
    """Writes the preparation ledger of this start into the manifest: of its first process, if there are several."""
    found, total_s = Ledger(), 0.0
    if accounts := read_ledger(folder):
        ns = accounts[-1].ns
        total_s = sum(ns.values()) / 1e9
        found.measured_s = total_s - sum(ns[kind] for kind in PREPARES) / 1e9
    found.add(0, "training", preparing.here().take())
    if not (folder / MANIFEST).exists():  # it ended before it had a folder
        return
    manifest = {
        **RunFolder(folder).manifest(),
        "preparation": found.to_json(started=started, total_s=total_s, note=note),
    }
    with writing(folder):
        write_manifest(folder, manifest)


def trained(
    experiment: str,
    settings: Fields,
    order: TrainSetup,
    devices: list[jax.Device],
    machine: Machine,
    console: Console,
    role: ProcessRole,
) -> TrainResult:
    """Trains on devices that have started. machine: the manifest. Errors: as in `take`."""
    config = ConfigDict(settings)
    strategy = str(config.train.strategy)
    levers = levers_of(config_lib.parse(config, parallel.strategy_names(), parallel.of_any_model()))
    role.members, mine = ProcessGroup.of(devices), multihost.first_here(devices)  # checks run on a device of its own
    require_options(levers, mine)
    session = Session(
        command=list(order.command),
        devices=len(devices),
        processes=len(role.members.processes),
        strategy=strategy,
        levers=levers,
        experiment_file=discovery.experiment_path(experiment).name,
        experiment_sha256=discovery.digest(experiment),
        machine=machine,
        begun_ns=order.begun_ns,
    )
    arms = Arms(config, experiment, mine, warmup=max(0, config.train.warmup))
    plain = inspected(arms.config({}), experiment)
    # What the loss is made of decides whether the step may split its batch; the same proof as in a run.
    proof = Proof(arms, plain, devices, random_key(config.seed), own=False, batch=config.train.batch)

    def build(workload: TrainWorkload) -> Program:
        program = build_program(workload, strategy, devices, levers)
        require_micro_batchable(workload, program, proof.loss_kind)
        return with_first_state(program, proof.maker(workload))

    # Built with the levers, because a lever may change the workload itself, such as recomputation.
    return train(
        arms.workload(levers),
        build,
        config=config,
        folder=Path(order.workdir),
        console=console,
        session=session,
        role=role,
    )


def code_of(result: TrainResult) -> int:
    """The exit code: 0 when the target is reached, 1 when it is not, 130 when stopped by a signal."""
    if result.stopped_by:
        return 130
    return 0 if result.reached else 1


def levers_of(settings: config_lib.Settings) -> dict[str, str]:
    """The levers of the training. Raises UserError for several values, or for a value that training cannot use."""
    if settings.swept:
        raise UserError(
            f"--config.lever.{settings.swept[0]} has several values: a training takes one, jaxbench run several."
        )
    levers = settings.arms[0].levers
    # A lever that only a measurement reads would be in the config without effect.
    for name, lever in LEVERS.items():
        if lever.untrained and levers[name] != lever.default:
            raise UserError(
                f"--config.lever.{name}={levers[name]} is not for training, as {lever.untrained}: leave it at "
                f"{lever.default}."
            )
    return levers

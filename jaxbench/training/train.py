# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Trains a workload on its real data to a target. A checkpoint holds everything that decisions depend on.

The batches, the random key, the optimizer, the rows and the decision to stop are functions of (config, step). So a run
that was killed and restarted ends with the same bits as an uninterrupted run.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict
from rich.console import Console

from jaxbench import discovery
from jaxbench.errors import UserError
from jaxbench.parallel.layout import canonical_avals
from jaxbench.parallel.program import Program, TrainState
from jaxbench.processes.group import ProcessGroup
from jaxbench.records.trainings import ACCURACY
from jaxbench.runner.plan import require_equal_parts
from jaxbench.training.account import Account, summary
from jaxbench.training.checkpoint import Restored, Writer, restore_latest
from jaxbench.training.digest import params_sha256
from jaxbench.training.folder import locked_folder
from jaxbench.training.loop import TrainLoop, shown
from jaxbench.training.metrics import MetricLog, Row
from jaxbench.training.plan import Plan, count, read_data, read_plan
from jaxbench.training.session import Session, record
from jaxbench.training.stop import Stop, of_signals
from jaxbench.workloads import needs
from jaxbench.workloads.base import Dataset, TrainWorkload


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
      params_sha256: of the parameters, see `digest.params_sha256`.
      notes: a sentence for each checkpoint that could not be used.
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
    notes: tuple[str, ...]


@dataclass
class ProcessRole:
    """The role of this process in a training: alone, or in a process group. Its first process writes and prints.

    stop: the request to end. account: the time ledger, once the training has begun.
    """

    members: ProcessGroup = ProcessGroup()
    stop: Stop = field(default_factory=of_signals)
    account: Account | None = None


def train(
    workload: TrainWorkload,
    program_builder: Callable[[TrainWorkload], Program],
    *,
    config: ConfigDict,
    folder: Path,
    console: Console,
    session: Session,
    part: ProcessRole | None = None,
) -> TrainResult:
    """Trains to ``config.train.target`` in `folder`, or continues the training that is there.

    Args:
      workload: must satisfy `needs`.
      program_builder: distributes the workload over devices; not called if there is nothing left to train.
      config: seed and train.{batch, epochs, target, checkpoint_every, keep, tensorboard} are used; all of it is stored.
      folder: for config.json, manifest.json, metrics.jsonl, checkpoints/ and, on request, tensorboard/.
      console: for the live progress, one line per epoch, notes and the closing sentences.
      session: this start, for the manifest and the checkpoints.
      part: the role of this process if there are several. All return the same, except for the clocks.

    Raises:
      UserError: values or data that do not fit, a folder of another training, no intact checkpoint, a loss that is not
        finite, a full disk, a folder that not all processes see.
    """
    members = (part := part or ProcessRole()).members
    console = console if members.leads else Console(file=io.StringIO())
    needs.require(workload, config.train.get("metric", ACCURACY))
    data = read_data(workload, seed=config.seed)
    plan = read_plan(config, count(data.train))
    with locked_folder(folder, config.to_dict(), members) as checkpoints, _account(folder, session, part) as account:
        restored = _restore(checkpoints, workload, console, part)
        rows: list[Row] = restored.progress.get("rows", [])
        facts = _facts(data, session, restored.progress, members)
        with _metric_log(folder, rows, plan, members) as log:
            # Nothing is left to train: the program is not even built, and this start leaves no trace in the ledger.
            if restored.state is not None and plan.finished(restored.step, rows):
                account.discard()
                _record(folder, session, members, step=restored.step)
                result = _result(plan, restored.state, rows, notes=restored.notes, was_finished=True)
            else:
                with discovery.explaining(f"the training step of '{workload.name}'"):
                    program = _build(program_builder, workload, plan)
                account.from_step = restored.step
                _record(folder, session, members, step=restored.step)
                _print_start(console, workload, data, plan=plan, restored=restored, session=session)
                with discovery.explaining(f"the training step of '{workload.name}'"):
                    about: dict[str, Any] = {"plan": plan, "data": data, "restored": restored, "session": session}
                    loop = TrainLoop(workload, program, account, **about)
                result = _looped(loop, log, checkpoints, facts, console, part, notes=restored.notes)
                account.finished = result.finished
    if members.leads:
        _print_end(console, result, plan, spent=summary(folder))
    return result


def _account(folder: Path, session: Session, part: ProcessRole) -> Account:
    part.account = Account(folder, begun_ns=session.begun_ns, kept=part.members.leads)
    return part.account


@contextlib.contextmanager
def _metric_log(folder: Path, rows: list[Row], plan: Plan, members: ProcessGroup) -> Iterator[MetricLog]:
    """The log of metrics. The first process writes it; the other processes only use its rows."""
    with contextlib.ExitStack() as stack:
        if members.leads:
            yield stack.enter_context(MetricLog(folder, rows, tensorboard=plan.tensorboard))
        else:
            scratch = stack.enter_context(tempfile.TemporaryDirectory())
            yield stack.enter_context(MetricLog(Path(scratch), rows, tensorboard=False))


def _record(folder: Path, session: Session, members: ProcessGroup, *, step: int) -> None:
    if members.leads:
        record(folder, session, step=step)


def _looped(
    loop: TrainLoop,
    log: MetricLog,
    checkpoints: Path,
    facts: dict[str, Any],
    console: Console,
    part: ProcessRole,
    *,
    notes: tuple[str, ...],
) -> TrainResult:
    """Runs the loop while its checkpoints are written in the background."""
    with Writer(checkpoints, keep=loop.plan.keep, on_sealed=loop.account.sealed, members=part.members) as writer:
        state, stopped_by = loop.run(log, writer, facts=facts, console=console, stop=part.stop)
        rows = part.members.broadcast(log.rows)
    return _result(loop.plan, state, rows, notes=notes, stopped_by=stopped_by, clock=loop.clock.to_json())


def _restore(checkpoints: Path, workload: TrainWorkload, console: Console, part: ProcessRole) -> Restored:
    """Reads the newest intact checkpoint, and prints the faults of others."""
    assert part.account is not None
    with part.account.doing("restore"):
        restored = restore_latest(checkpoints, canonical_avals(workload), part.members)
    for note in restored.notes:
        console.print(note, style="yellow", highlight=False, soft_wrap=True)
    return restored


def _facts(data: Dataset, session: Session, progress: dict[str, Any], members: ProcessGroup) -> dict[str, Any]:
    """The facts about this training that its checkpoints store.

    Raises UserError if the newest checkpoint, or another process, has other data or another experiment file.
    """
    session.require_same_experiment(progress)
    digest = params_sha256({"train": dict(data.train), "test": dict(data.test)})
    if progress.get("data_sha256", digest) != digest:
        raise UserError(f"the data '{data.name}' have changed since this training started: choose a new --workdir.")
    others = members.all_gather(digest)
    if wrong := [process for process, other in zip(members.processes, others, strict=True) if other != others[0]]:
        raise UserError(
            f"process {wrong[0]} reads other data '{data.name}' than process 0: give all hosts the same files."
        )
    return {"data_sha256": digest, **session.facts()}


def _build(builder: Callable[[TrainWorkload], Program], workload: TrainWorkload, plan: Plan) -> Program:
    """Builds the program. Raises UserError when the batch does not divide over its devices, or into micro-batches."""
    program = builder(workload)
    require_equal_parts("train.batch", plan.batch, parts=program.parts, micro_batches=workload.micro_batches)
    return program


def _result(
    plan: Plan,
    state: TrainState,
    rows: list[Row],
    *,
    notes: tuple[str, ...],
    was_finished: bool = False,
    stopped_by: str | None = None,
    clock: dict[str, float] | None = None,
) -> TrainResult:
    finished = plan.finished(int(state.step), rows)
    # A finished training reports the clocks of the newest epoch's row, so that asking again gives the same.
    elapsed = rows[-1] if finished or clock is None else clock
    return TrainResult(
        reached=plan.reached(rows),
        finished=finished,
        was_finished=was_finished,
        stopped_by=None if finished else stopped_by,
        step=int(state.step),
        epoch=int(state.step) // plan.steps_per_epoch,
        score=rows[-1][f"test_{plan.metric}"] if rows else None,
        elapsed_s=elapsed["elapsed_s"],
        compile_s=elapsed["compile_s"],
        params_sha256=params_sha256(state.params),
        notes=notes,
    )


def _print_start(
    console: Console, workload: TrainWorkload, data: Dataset, *, plan: Plan, restored: Restored, session: Session
) -> None:
    console.print(
        f"{workload.name} on {data.name}, {session.place}: {plan.examples} {workload.unit} for training in "
        f"{plan.steps_per_epoch} steps of {plan.batch}, {count(data.test)} for testing; until a test "
        f"{plan.metric} of {plan.target} or {plan.epochs} epochs.",
        highlight=False,
        soft_wrap=True,
    )
    if restored.state is not None:
        text = f"continuing from the checkpoint at step {int(restored.state.step)}."
        if before := session.moved_from(restored.progress):
            text += f" It was trained {before}: the final bits may differ from those of an unchanged training."
        console.print(text, highlight=False, soft_wrap=True)


def _print_end(console: Console, result: TrainResult, plan: Plan, *, spent: str) -> None:
    score = f"test {plan.metric} {shown(result.score)} after {result.epoch} epochs"
    console.print(spent, highlight=False, soft_wrap=True)
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

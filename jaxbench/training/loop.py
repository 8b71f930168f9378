# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The training loop: steps, an evaluation after each epoch, checkpoints, and a clean end on a signal.

Several processes run it together. Each reads its own rows of a batch. The first process evaluates, and decides when to
end.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from jaxbench.hlo.collective_counts import concurrent_collectives
from jaxbench.hlo.module import parse
from jaxbench.machine.start import require_threads
from jaxbench.parallel import multihost
from jaxbench.parallel.program import Program, TrainState
from jaxbench.runner.arm import compiler_options
from jaxbench.training.account import Account
from jaxbench.training.checkpoint import Restored, Writer
from jaxbench.training.digest import to_host
from jaxbench.training.evaluate import Evaluator
from jaxbench.training.metrics import EpochMeans, MetricLog
from jaxbench.training.noise import NoiseMeter
from jaxbench.training.plan import Plan
from jaxbench.training.session import Session
from jaxbench.training.stop import Agreed, Stop
from jaxbench.workloads.base import Dataset, TrainWorkload
from jaxbench.workloads.data import order


class Clock:
    """Seconds of work, and the part of them that was spent compiling, summed over resumes."""

    def __init__(self, elapsed_s: float = 0.0, compile_s: float = 0.0):
        self._begun = time.perf_counter() - elapsed_s
        self.compile_s = compile_s

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self._begun

    @contextlib.contextmanager
    def compiling(self) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.compile_s += time.perf_counter() - start

    def to_json(self) -> dict[str, float]:
        return {"elapsed_s": self.elapsed_s, "compile_s": self.compile_s}


class TrainLoop:
    """One training with one program, from a restored or a fresh state until it ends or a signal stops it."""

    def __init__(
        self,
        workload: TrainWorkload,
        program: Program,
        account: Account,
        *,
        plan: Plan,
        data: Dataset,
        restored: Restored,
        session: Session,
    ):
        """Creates and places the state, and compiles step and evaluation.

        Raises MoreCollectives if the step could hang because this process has too few threads for its collectives.
        """
        options = compiler_options(session.levers, program)
        self.clock = Clock(restored.progress.get("elapsed_s", 0.0), restored.progress.get("compile_s", 0.0))
        self.program, self.plan, self.data, self.account = program, plan, data, account
        self.members = program.members
        self.means = EpochMeans(**restored.progress.get("means", {}))
        with jax.set_mesh(program.mesh):
            if restored.state is not None:
                with account.doing("restore"):
                    self.state = jax.block_until_ready(program.load(restored.state))
            else:
                with self.clock.compiling(), account.doing("compile"):
                    self.state = jax.block_until_ready(program.init(jax.random.PRNGKey(plan.seed)))
            batch = program.put(self._rows(np.arange(plan.batch)))
            with self.clock.compiling(), account.doing("compile"):
                # Ahead of time: an executable cannot retrace, and compiling is timed separately from the first step.
                compiled = program.step.lower(self.state, batch).compile(options or None)
        require_threads(program.mesh.size, concurrent_collectives(parse(compiled.as_text())))
        self._step: Callable[[Any, Any], tuple[Any, Any]] = compiled
        host = self._host_state()
        self.step = account.step = int(host.step)
        self._newest: Any = None  # something that the newest step returned
        device = program.mesh.devices.flat[0]
        with self.clock.compiling(), account.doing("compile"):
            if self.members.leads:
                state: dict[str, Any] = {"params": host.params, "model_state": host.model_state, "device": device}
                self.evaluate = Evaluator(workload, data.test, **state)
                self.noise = NoiseMeter(workload, data.train, plan=plan, **state) if plan.noise_examples else None
            self.members.barrier()  # after compiling: some collectives wait for half a minute only

    def run(
        self, log: MetricLog, writer: Writer, *, facts: dict[str, Any], console: Console, stop: Stop
    ) -> tuple[TrainState, str | None]:
        """Trains. Returns (the canonical state in host memory, the signal that ended the training or None).

        It returns once the last checkpoint is on the disk. facts: JSON that every checkpoint stores in addition to the
        progress of the loop.
        """
        account, agreed = self.account, Agreed(stop, self.members)
        with stop, _progress(console) as bar, account.doing("steps"):
            task = bar.add_task("", total=self.plan.steps, completed=self.step)
            while True:
                # Ends with an epoch, an evaluation, a signal, or a checkpoint that is due: only one place saves.
                for metrics in self._steps(agreed):
                    self.means.add(self.step, metrics)
                    epoch = (self.step - 1) // self.plan.steps_per_epoch + 1
                    bar.update(task, completed=self.step, description=f"epoch {epoch}")
                jax.block_until_ready(self.state)  # so that no step is counted as a part of the checkpoint
                with account.doing("checkpoint"):
                    host = self._host_state()
                if self.plan.evaluates(self.step):
                    with account.doing("evaluation"):
                        self._evaluated(host, log)
                        self.members.barrier()  # the other processes wait here
                    bar.refresh()
                    if self.members.leads and self.plan.saves(self.step):
                        console.print(_sentence(log.rows[-1], self.plan.metric), highlight=False, soft_wrap=True)
                # Only the first process has the new row, so it decides for all.
                finished = self.members.broadcast(self.plan.finished(self.step, log.rows))
                if not (agreed.name or finished or self.plan.saves(self.step)):
                    continue  # an evaluation between two checkpoints: after a kill it is done again, from the older one
                account.write(saving=True)  # a restart from this checkpoint keeps the steps up to here
                means = self.means.to_json()
                with account.doing("checkpoint"):
                    writer.save(host, {"rows": log.rows, "means": means, **facts, **self.clock.to_json()})
                    if agreed.name or finished:
                        writer.wait()
                        return host, agreed.name

    def _steps(self, agreed: Agreed) -> Iterator[dict[str, jax.Array]]:
        per_epoch = self.plan.steps_per_epoch
        epoch, position = divmod(self.step, per_epoch)
        batches = order(self.plan.examples, self.plan.batch, seed=self.plan.seed, epoch=epoch)
        for rows in batches[position:]:
            # Set per step: the mesh must not stay set while the caller runs between two steps.
            with jax.set_mesh(self.program.mesh):
                batch = self._batch(rows)
                self.state, metrics = self._step(self.state, batch)
            self._newest = metrics["loss"]
            self.step += 1
            self.account.step = self.step
            yield metrics
            if agreed.at(self.step) or self.plan.saves(self.step) or self.plan.evaluates(self.step):
                return

    def _batch(self, rows: np.ndarray) -> Any:
        """Reads a batch and puts it on the devices. They wait for it if they finish the previous step first."""
        with self.account.doing("input"):
            batch = self.program.put(self._rows(rows))
            # The devices were still busy when the batch was ready, so reading it cost no time.
            if self._newest is not None and not self._newest.is_ready():
                self.account.rename("steps")
            return batch

    def _rows(self, rows: np.ndarray) -> Any:
        """The examples with these indices, as the input of `Program.put`. Each of several processes reads its own."""
        if self.members.alone:
            return {name: array[rows] for name, array in self.data.train.items()}
        return {name: multihost.Rows(array, rows) for name, array in self.data.train.items()}

    def _evaluated(self, host: TrainState, log: MetricLog) -> None:
        """Evaluates and adds a row. With `noise_examples`, rows 1, 2, 4, 8, ... and the last one measure the noise."""
        trained = {f"train_{name}": value for name, value in self.means.means().items()}
        self.means = EpochMeans()
        epoch = self.step // self.plan.steps_per_epoch
        if not self.members.leads:
            return
        tested = {f"test_{name}": value for name, value in self.evaluate(host.params, host.model_state).items()}
        row = {"epoch": epoch, "step": self.step, **trained, **tested, **self.clock.to_json()}
        number = len(log.rows) + 1
        # number & (number - 1) is 0 for powers of two.
        if self.noise and (number & (number - 1) == 0 or self.plan.finished(self.step, [row])):
            row |= self.noise(host.params, host.model_state, step=self.step)
        log.add(row)

    def _host_state(self) -> TrainState:
        with jax.set_mesh(self.program.mesh):
            return to_host(self.program.export(self.state))


def _progress(console: Console) -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(bar_width=30), MofNCompleteColumn()
    left = TextColumn("steps, at most"), TimeRemainingColumn(compact=True), TextColumn("left")
    shown = console.is_terminal  # a log file gets the lines only
    return Progress(*columns, *left, console=console, refresh_per_second=2, transient=True, disable=not shown)


def shown(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.4f}"


def _sentence(row: dict[str, Any], metric: str) -> str:
    return (
        f"epoch {row['epoch']:3d}  step {row['step']:6d}  train loss {row['train_loss']:.4f}  "
        f"test {metric} {shown(row[f'test_{metric}'])}  {row['elapsed_s']:7.1f} s"
    )

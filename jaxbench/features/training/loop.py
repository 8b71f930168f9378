# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The training loop: steps, an evaluation after each epoch, checkpoints, and a clean end on a signal.

Several processes run it together. Each reads its own rows of a batch. The first process evaluates, and decides when to
end. One process gets the request to stop, and all of them act on it at the same step.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from jaxbench import interrupts
from jaxbench.core.clock import InFlight, run_ahead
from jaxbench.core.program import Program, TrainState
from jaxbench.core.workload import Batch, Dataset, HostBatch, Scalars, TrainWorkload, random_key
from jaxbench.features.training.checkpoint import Restored, Writer, to_host
from jaxbench.features.training.folder import Session, TimeLedger
from jaxbench.features.training.metrics import EpochMeans, Evaluator, MetricLog, NoiseMeter
from jaxbench.features.training.plan import Plan
from jaxbench.measure.arm import compiler_options
from jaxbench.parallel import multihost
from jaxbench.processes.group import ProcessGroup, members_of
from jaxbench.workloads.data import order

# Seconds, and at most steps, between two exchanges of the processes. An exchange takes a thousandth of a second.
LOOK_S, MOST_STEPS = 0.5, 1000


class Stop:
    """Turns the first SIGTERM or Ctrl-C into a request; the second acts at once.

    name: that of the signal, or None. signals: those that it listens to; () if another process listens and calls `ask`.
    """

    def __init__(self, *signals: signal.Signals) -> None:
        self.name: str | None = None
        self._signals = signals
        self._before: dict[signal.Signals, Any] = {}

    def ask(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():  # elsewhere Python sets no handlers
            for number in self._signals:
                self._before[number] = signal.signal(number, self._request)
            interrupts.spare(bool(self._signals))  # saving takes as long as it takes
        return self

    def _request(self, number: int, frame: FrameType | None) -> None:
        """Takes a signal as a request to stop after this step."""
        self.ask(signal.Signals(number).name)
        self._restore()  # so that a second signal acts at once

    def _restore(self) -> None:
        """Gives signals back to their handlers from before."""
        while self._before:
            signal.signal(*self._before.popitem())

    def __exit__(self, *error: object) -> None:
        if self._before:  # no signal has come, so none is left to spare
            interrupts.spare(False)
        self._restore()


def of_signals() -> Stop:
    return Stop(signal.SIGTERM, signal.SIGINT)


class Agreed:
    """The request to stop, agreed on by all processes: a process that continued alone would wait forever.

    The processes exchange their requests about every LOOK_S, at steps that they agree on in advance. A single process
    checks its request at every step.
    """

    def __init__(self, stop: Stop, members: ProcessGroup, clock: Callable[[], float] = time.perf_counter):
        self.name: str | None = None
        self._stop, self._members, self._clock = stop, members, clock
        self._looked = clock()
        self._last = self._next = 0

    def at(self, step: int) -> str | None:
        """The signal that ends the training after this step, or None. All processes call this at each step."""
        if self._members.alone:
            self.name = self._stop.name
        elif step >= self._next and self.name is None:
            now = self._clock()
            step_s = (now - self._looked) / max(1, step - self._last)
            # The first exchange comes after one step, before there is a step time to go by. Steps may get slower, as
            # with the first checkpoint, so the distance at most doubles.
            most = min(MOST_STEPS, 2 * max(1, step - self._last))
            ahead = max(1, min(most, int(LOOK_S / max(step_s, 1e-6)))) if self._last else 1
            answers = self._members.all_gather((self._stop.name, ahead))
            self.name = next((name for name, _ in answers if name), None)
            # The leader's estimate counts for all, so the next exchange is at the same step everywhere.
            self._looked, self._last, self._next = now, step, step + answers[0][1]
        return self.name


class Clock:
    """Seconds of work, and the part of them that was spent compiling, summed over resumes."""

    def __init__(self, elapsed_s: float = 0.0, compile_s: float = 0.0):
        self._begun = time.perf_counter() - elapsed_s  # as if it had run without a break
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
        ledger: TimeLedger,
        *,
        plan: Plan,
        data: Dataset,
        restored: Restored,
        session: Session,
    ):
        """Creates and places the state, and compiles step and evaluation."""
        options = compiler_options(session.levers, program)
        self.clock = Clock(restored.progress.get("elapsed_s", 0.0), restored.progress.get("compile_s", 0.0))
        self.program, self.plan, self.data, self.ledger = program, plan, data, ledger
        self.members = members_of(program.mesh)
        self.means = EpochMeans(**restored.progress.get("means", {}))
        with jax.set_mesh(program.mesh):
            if restored.state is not None:
                with ledger.doing("restore"):
                    self.state = jax.block_until_ready(program.load(restored.state))
            else:
                with self.clock.compiling(), ledger.doing("compile"):
                    self.state = jax.block_until_ready(program.init(random_key(plan.seed)))
            batch = program.put(self._rows(np.arange(plan.batch)))
            with self.clock.compiling(), ledger.doing("compile"):
                # Ahead of time: an executable cannot retrace, and compiling is timed separately from the first step.
                compiled = program.step.lower(self.state, batch).compile(options or None)
        self._step: Callable[[TrainState, Batch], tuple[TrainState, Scalars]] = compiled
        host = self._host_state()  # a collective in several processes: all of them call it
        self.step = ledger.step = int(host.step)
        self._in_flight = InFlight(run_ahead(program.mesh.local_devices))
        self._newest: Any = None  # something that the newest step returned
        device = program.mesh.devices.flat[0]
        with self.clock.compiling(), ledger.doing("compile"):
            if self.members.leads:
                state: dict[str, Any] = {"params": host.params, "model_state": host.model_state, "device": device}
                self.evaluate = Evaluator(workload, data.test, **state)
                self.noise = NoiseMeter(workload, data.train, plan=plan, **state) if plan.noise_examples else None
            # Only the first process compiles these. Without a barrier the others would begin the first step, and some
            # collectives wait for half a minute only.
            self.members.barrier()

    def run(
        self, log: MetricLog, writer: Writer, *, facts: dict[str, Any], console: Console, stop: Stop
    ) -> tuple[TrainState, str | None]:
        """Trains. Returns (the canonical state in host memory, the signal that ended the training or None).

        It returns once the last checkpoint is on the disk. facts: JSON that every checkpoint stores in addition to the
        progress of the loop.
        """
        ledger, agreed = self.ledger, Agreed(stop, self.members)
        with stop, _progress(console) as bar, ledger.doing("steps"):
            task = bar.add_task("", total=self.plan.steps, completed=self.step)
            while True:
                # Ends with an epoch, an evaluation, a signal, or a checkpoint that is due: only one place saves.
                for metrics in self._steps(agreed):
                    self.means.add(self.step, metrics)
                    epoch = (self.step - 1) // self.plan.steps_per_epoch + 1
                    bar.update(task, completed=self.step, description=f"epoch {epoch}")
                jax.block_until_ready(self.state)  # so that no step is counted as a part of the checkpoint
                with ledger.doing("checkpoint"):
                    host = self._host_state()
                if self.plan.evaluates(self.step):
                    with ledger.doing("evaluation"):
                        self._evaluated(host, log)
                        self.members.barrier()  # the other processes wait here
                    bar.refresh()  # so that the bar and the line below show the same step
                    if self.members.leads and self.plan.saves(self.step):
                        row, metric = log.rows[-1], self.plan.metric
                        console.print(
                            f"epoch {row['epoch']:3d}  step {row['step']:6d}  train loss {row['train_loss']:.4f}  "
                            f"test {metric} {shown(row[f'test_{metric}'])}  {row['elapsed_s']:7.1f} s",
                            highlight=False,
                            soft_wrap=True,
                        )
                # Only the first process has the new row, so it decides for all.
                finished = self.members.broadcast(self.plan.finished(self.step, log.rows))
                if not (agreed.name or finished or self.plan.saves(self.step)):
                    continue  # an evaluation between two checkpoints: after a kill it is done again, from the older one
                ledger.write(saving=True)  # a restart from this checkpoint keeps the steps up to here
                means = self.means.to_json()
                with ledger.doing("checkpoint"):  # only what blocks the steps; the rest is done in the background
                    writer.save(host, {"rows": log.rows, "means": means, **facts, **self.clock.to_json()})
                    if agreed.name or finished:
                        writer.wait()
                        return host, agreed.name

    def _steps(self, agreed: Agreed) -> Iterator[dict[str, jax.Array]]:
        """Steps until the next event: a save, an evaluation or an agreed stop."""
        per_epoch = self.plan.steps_per_epoch
        epoch, position = divmod(self.step, per_epoch)
        batches = order(self.plan.examples, self.plan.batch, seed=self.plan.seed, epoch=epoch)
        for rows in batches[position:]:  # an epoch that was interrupted continues with the same order
            # Set per step: the mesh must not stay set while the caller runs between two steps.
            with jax.set_mesh(self.program.mesh):
                batch = self._batch(rows)
                self.state, metrics = self._step(self.state, batch)
                self._in_flight.add(self.state, metrics)
            self._newest = metrics["loss"]
            self.step += 1
            self.ledger.step = self.step
            yield metrics
            if agreed.at(self.step) or self.plan.saves(self.step) or self.plan.evaluates(self.step):
                return

    def _batch(self, rows: np.ndarray) -> Batch:
        """Reads a batch and puts it on the devices. They wait for it if they finish the previous step first."""
        with self.ledger.doing("input"):
            batch = self.program.put(self._rows(rows))
            # The devices were still busy when the batch was ready, so reading it cost no time.
            if self._newest is not None and not self._newest.is_ready():
                self.ledger.rename("steps")
            return batch

    def _rows(self, rows: np.ndarray) -> HostBatch | dict[str, multihost.Rows]:
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
        # At powers of two, where number & (number - 1) is 0: the noise scale grows over a training, and measuring it
        # costs as much as several steps.
        if self.noise and (number & (number - 1) == 0 or self.plan.finished(self.step, [row])):
            row |= self.noise(host.params, host.model_state, step=self.step)
        log.add(row)

    def _host_state(self) -> TrainState:
        with jax.set_mesh(self.program.mesh):
            return to_host(self.program.export(self.state))


def _progress(console: Console) -> Progress:
    """A bar for a terminal; a log file gets no bar."""
    columns = TextColumn("{task.description}"), BarColumn(bar_width=30), MofNCompleteColumn()
    left = TextColumn("steps, at most"), TimeRemainingColumn(compact=True), TextColumn("left")
    shown = console.is_terminal  # a log file gets the lines only
    return Progress(*columns, *left, console=console, refresh_per_second=2, transient=True, disable=not shown)


def shown(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.4f}"

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The training loop: steps, an evaluation after each epoch, checkpoints, and a clean end on a signal."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from jaxbench.machine.start import require_threads
from jaxbench.measure.concurrency import concurrent_collectives
from jaxbench.parallel.program import Program, TrainState
from jaxbench.runner.arm import compiler_options
from jaxbench.training.account import Account
from jaxbench.training.checkpoint import Restored, Writer
from jaxbench.training.digest import to_host
from jaxbench.training.evaluate import Evaluator
from jaxbench.training.metrics import EpochMeans, MetricLog
from jaxbench.training.plan import Plan
from jaxbench.training.session import Session
from jaxbench.workloads.base import Dataset, TrainWorkload
from jaxbench.workloads.data import order


class Clock:
    """Seconds of work, and the part of them spent compiling, summed over resumes."""

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


class Stop:
    """Turns the first SIGTERM or Ctrl-C into a request, checked after each step; the second acts at once."""

    def __init__(self) -> None:
        self.name: str | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():  # elsewhere Python sets no handlers
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._request)
        return self

    def _request(self, number: int, frame: FrameType | None) -> None:
        self.name = signal.Signals(number).name
        self._restore()

    def _restore(self) -> None:
        while self._before:
            signal.signal(*self._before.popitem())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()


class Loop:
    """One training on one program, from a restored or a fresh state to its end or to a signal."""

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

        Raises MoreCollectives if the step could hang, because this process has too few threads for it.
        """
        options = compiler_options(session.levers, program)
        self.clock = Clock(restored.progress.get("elapsed_s", 0.0), restored.progress.get("compile_s", 0.0))
        self.program, self.plan, self.data, self.account = program, plan, data, account
        self.means = EpochMeans(**restored.progress.get("means", {}))
        with jax.set_mesh(program.mesh):
            if restored.state is not None:
                with account.doing("restore"):
                    self.state = jax.block_until_ready(program.load(restored.state))
            else:
                with self.clock.compiling(), account.doing("compile"):
                    self.state = jax.block_until_ready(program.init(jax.random.PRNGKey(plan.seed)))
            first: Any = {name: array[: plan.batch] for name, array in data.train.items()}
            batch = program.put(first)
            with self.clock.compiling(), account.doing("compile"):
                # Ahead of time: an executable cannot retrace, and compiling is timed separately from the first step.
                compiled = program.step.lower(self.state, batch).compile(options or None)
        require_threads(program.mesh.size, concurrent_collectives(compiled.as_text()))
        self._step: Callable[[Any, Any], tuple[Any, Any]] = compiled
        host = self._host_state()
        self.step = account.step = int(host.step)
        self._newest: Any = None  # something that the newest step returned
        device = program.mesh.devices.flat[0]
        with self.clock.compiling(), account.doing("compile"):
            self.evaluate = Evaluator(
                workload, data.test, params=host.params, model_state=host.model_state, device=device
            )

    def run(
        self, log: MetricLog, writer: Writer, *, facts: dict[str, Any], console: Console
    ) -> tuple[TrainState, Stop]:
        """Returns the canonical state in host memory, and the `Stop`, once the last checkpoint is on the disk.

        facts: JSON that every checkpoint carries in addition to the loop's progress.
        """
        account = self.account
        with Stop() as stop, _progress(console) as bar, account.doing("steps"):
            task = bar.add_task("", total=self.plan.steps, completed=self.step)
            while True:
                # Ends with the epoch, with a signal, or when a checkpoint is due, so that only one place saves.
                for metrics in self._steps(stop):
                    self.means.add(self.step, metrics)
                    epoch = (self.step - 1) // self.plan.steps_per_epoch + 1
                    bar.update(task, completed=self.step, description=f"epoch {epoch}")
                jax.block_until_ready(self.state)  # so that no step is counted as a part of the checkpoint
                account.write(saving=True)
                with account.doing("checkpoint"):
                    host = self._host_state()
                if self.step % self.plan.steps_per_epoch == 0:
                    with account.doing("evaluation"):
                        self._end_epoch(host, log)
                    bar.refresh()
                    console.print(_sentence(log.rows[-1]), highlight=False, soft_wrap=True)
                means = self.means.to_json()
                with account.doing("checkpoint"):
                    writer.save(host, {"rows": log.rows, "means": means, **facts, **self.clock.to_json()})
                    if stop.name or self.plan.finished(self.step, log.rows):
                        writer.wait()
                        return host, stop

    def _steps(self, stop: Stop) -> Iterator[dict[str, jax.Array]]:
        per_epoch, every = self.plan.steps_per_epoch, self.plan.checkpoint_every
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
            if stop.name or (every and self.step % every == 0):
                return

    def _batch(self, rows: np.ndarray) -> Any:
        """Reads a batch and places it. The devices wait for it if they have done the step before by then."""
        with self.account.doing("input"):
            host: Any = {name: array[rows] for name, array in self.data.train.items()}
            batch = self.program.put(host)
            if self._newest is not None and not self._newest.is_ready():
                self.account.rename("steps")
            return batch

    def _end_epoch(self, host: TrainState, log: MetricLog) -> None:
        trained = {f"train_{name}": value for name, value in self.means.means().items()}
        self.means = EpochMeans()
        epoch = self.step // self.plan.steps_per_epoch
        tested = {f"test_{name}": value for name, value in self.evaluate(host.params, host.model_state).items()}
        log.add({"epoch": epoch, "step": self.step, **trained, **tested, **self.clock.to_json()})

    def _host_state(self) -> TrainState:
        with jax.set_mesh(self.program.mesh):
            return to_host(self.program.export(self.state))


def _progress(console: Console) -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(bar_width=30), MofNCompleteColumn()
    left = TextColumn("steps, at most"), TimeRemainingColumn(compact=True), TextColumn("left")
    shown = console.is_terminal  # a log file gets the lines only
    return Progress(*columns, *left, console=console, refresh_per_second=2, transient=True, disable=not shown)


def _sentence(row: dict[str, Any]) -> str:
    return (
        f"epoch {row['epoch']:3d}  step {row['step']:6d}  train loss {row['train_loss']:.4f}  "
        f"test accuracy {row['test_accuracy']:.4f}  {row['elapsed_s']:7.1f} s"
    )

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The metrics of a training: means over an epoch, one row per epoch in metrics.jsonl and, on request, TensorBoard."""

from __future__ import annotations

import json
import math
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

from jaxbench.command_form import with_extra
from jaxbench.errors import Diverged, UserError
from jaxbench.parallel import multihost
from jaxbench.records.store import write_atomic
from jaxbench.training.folder import writing
from jaxbench.workloads.base import Metrics

METRICS = "metrics.jsonl"
Row = dict[str, Any]


class EpochMeans:
    """Means of a step's metrics over one epoch, as sums that a checkpoint within an epoch can store.

    The metrics of the newest step stay on the device until the next step is dispatched. So reading them does not stall
    the devices, and at most two steps are in flight.
    """

    def __init__(self, sums: dict[str, float] | None = None, count: int = 0):
        self._sums = dict(sums or {})
        self._count = count
        self._newest: tuple[int, Metrics] | None = None

    def add(self, step: int, metrics: Metrics) -> None:
        """Adds the metrics of a step: scalars, or one equal copy per device."""
        self._settle()  # the previous step, which has had time to finish
        self._newest = step, metrics

    def _settle(self) -> None:
        """Adds the newest step's metrics to the sums. Raises Diverged when its loss is not finite."""
        if self._newest is None:
            return
        step, metrics = self._newest
        self._newest = None
        values = {name: float(multihost.here(value).flat[0]) for name, value in metrics.items()}
        if not math.isfinite(values["loss"]):
            remedy = "lower --config.optimizer.learning_rate and choose a new --workdir"
            if step == 1:  # before any update
                remedy = "the model or its data are at fault, not the learning rate, and jaxbench try names the line"
            raise Diverged(f"the loss became {values['loss']} at step {step}: {remedy}.", step)
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        self._count += 1

    def to_json(self) -> dict[str, Any]:
        """The arguments to continue with, ``EpochMeans(**...)``. Waits for the newest step."""
        self._settle()
        return {"sums": dict(self._sums), "count": self._count}

    def means(self) -> dict[str, float]:
        """Waits for the newest step."""
        self._settle()
        return {name: value / self._count for name, value in self._sums.items()}


class MetricLog:
    """metrics.jsonl: one JSON object per epoch, on the disk before the next epoch begins."""

    def __init__(self, folder: Path, rows: list[Row], *, tensorboard: bool):
        """Sets the file to `rows`, those of the checkpoint: removes rows written after it and restores lost rows.

        Raises:
          UserError: `tensorboard` is set and tensorboardX is not installed.
        """
        self.rows = list(rows)
        self._board = _board(folder, first_step=rows[-1]["step"] + 1 if rows else 0) if tensorboard else None
        self._folder = folder
        path = folder / METRICS
        with writing(folder):
            write_atomic(path, "".join(_line(row) for row in rows))
            self._file = open(path, "a")

    def __enter__(self) -> MetricLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with writing(self._folder):
            self._file.close()
        if self._board is not None:
            self._board.close()

    def add(self, row: Row) -> None:
        """Appends one row. Numbers that JSON cannot hold become null."""
        row = {name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in row.items()}
        self.rows.append(row)
        with writing(self._folder):
            self._file.write(_line(row))
            self._file.flush()
        if self._board is not None:
            for name, value in row.items():
                if name.startswith(("train_", "test_")) and value is not None:
                    self._board.add_scalar(name.replace("_", "/", 1), value, row["step"])
            self._board.flush()


def _line(row: Row) -> str:
    return json.dumps(row, allow_nan=False) + "\n"


def _board(folder: Path, *, first_step: int) -> Any:
    if find_spec("tensorboardX") is None:
        raise UserError(
            "--config.train.tensorboard=True needs tensorboardX, which is not installed: "
            f"{with_extra('tensorboard')}; or set it to False."
        )
    from tensorboardX import SummaryWriter  # late: an optional extra

    return SummaryWriter(str(folder / "tensorboard"), purge_step=first_step or None)

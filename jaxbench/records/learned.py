# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The learning curve of a training: the rows of metrics.jsonl, with the settings needed to interpret them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench.errors import UserError
from jaxbench.records.store import RunFolder

FILE = "metrics.jsonl"
ACCURACY, AUTO = "accuracy", "auto"


def minimised(metric: str, mode: str) -> bool:
    """Whether the target of a metric is an upper limit: if mode is "min", or "auto" for a loss."""
    return mode == "min" or (mode == AUTO and metric.endswith("loss"))


def at_target(row: dict[str, Any], metric: str, mode: str, target: float) -> bool:
    """Whether a row of metrics.jsonl has reached the target."""
    value = row.get(f"test_{metric}")
    if value is None:  # the value was not finite
        return False
    return bool(value <= target if minimised(metric, mode) else value >= target)


@dataclass(frozen=True, kw_only=True)
class Learned:
    """One training. rows: as docs/metrics (Training) defines them. target: the value of `metric` to reach."""

    name: str
    experiment: str
    batch: int
    target: float
    seed: int
    rows: tuple[dict[str, Any], ...]
    metric: str = ACCURACY
    mode: str = AUTO

    def at_target(self) -> dict[str, Any] | None:
        """The first row that reached the target; None if none did."""
        return next((row for row in self.rows if at_target(row, self.metric, self.mode, self.target)), None)

    def series(self, what: str, over: str) -> tuple[list[float], list[float]]:
        """(x, y): the metric `what` over "steps", "examples" or "seconds", for the rows that have it. Seconds exclude
        compiling."""
        known = [row for row in self.rows if row.get(what) is not None]
        return [position(row, over, self.batch) for row in known], [float(row[what]) for row in known]


def position(row: dict[str, Any], over: str, batch: int) -> float:
    """The position of a row: in steps, in examples (steps x batch) or in seconds of work without compiling."""
    if over == "seconds":
        return float(row["elapsed_s"] - row["compile_s"])
    return float(row["step"] * (batch if over == "examples" else 1))


def read(folder: Path) -> Learned:
    """The training in `folder`. A truncated last line is skipped. Raises UserError if it is missing or damaged."""
    path = folder / FILE
    if not path.exists():
        raise UserError(f"'{folder}' has no {FILE}: give the folder of a 'jaxbench train'.")
    config, rows = RunFolder(folder).config(), []
    text = path.read_text()
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        try:
            if line.endswith("\n"):
                row = json.loads(line)
                rows.append({name: row[name] for name in ("step", "elapsed_s", "compile_s")} | row)
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{path}, line {number}, is damaged ({error!r}): train anew, in a new --workdir."
            ) from error
    train = config.get("train", {})
    try:
        return Learned(
            name=folder.name, experiment=str(config["experiment"]), batch=int(train["batch"]),
            target=float(train["target"]), seed=int(config["seed"]), rows=tuple(rows),
            metric=str(train.get("metric", ACCURACY)), mode=str(train.get("mode", AUTO)),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"'{folder}' has a config.json without {error}: give the folder of a 'jaxbench train'."
        ) from error


def is_training(folder: Path) -> bool:
    return (folder / FILE).exists()


def holds_trainings(folder: Path) -> bool:
    """Whether `folder` is a training, or a folder of trainings."""
    return is_training(folder) or (folder.is_dir() and any(is_training(path) for path in folder.iterdir()))


def read_all(folder: Path) -> list[Learned]:
    """The training in `folder`, or the trainings in its subfolders in order of name: seeds of one training.

    Raises UserError if there is none, or if they differ in model, batch, metric or target.
    """
    if is_training(folder) or not folder.is_dir():
        return [read(folder)]
    folders = sorted(path for path in folder.iterdir() if is_training(path))
    found = [read(path) for path in folders]
    if not found:
        raise UserError(f"'{folder}' holds no training: give the folder of a 'jaxbench train', or a folder of several.")
    if len({(one.experiment, one.batch, one.metric, one.target) for one in found}) > 1:
        raise UserError(f"the trainings in '{folder}' differ in model, batch or target: give seeds of one training.")
    return found

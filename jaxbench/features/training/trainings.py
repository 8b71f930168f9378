# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a training leaves in its folder: its time ledger, its learning curve, and its line in a time-to-target run.

`account.jsonl` is the time ledger over all starts (docs/metrics, Goodput). Each line holds all the time of one start up
to a moment, by category. The nanoseconds add up to the start's age. So the last line of a start is complete, a kill
loses only the time after it, and a damaged line loses only itself. `metrics.jsonl` is the learning curve.
`targets.jsonl` has one line for each training of a time-to-target run (docs/metrics, Time to target).
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench.core.store import CONFIG, write_atomic
from jaxbench.digits import digits
from jaxbench.errors import UserError
from jaxbench.records.documents import AtLeastOne, Count, Finite, NonNegative, decode
from jaxbench.records.reading import read_json, read_lines, sound_lines

LEDGER = "account.jsonl"
STEPS = "steps"  # `totals` divides these into steps that count and repeated steps
# What a process can be doing. At any moment it is doing exactly one of them.
KINDS = ("start", "compile", "restore", STEPS, "input", "evaluation", "checkpoint")
# Wall-time categories of a training run, in table order, with display names.
LABELS = {
    "steps": "steps that count",
    "again": "repeated steps",
    "start": "starting the process",
    "compile": "compiling",
    "restore": "restoring",
    "input": "waiting for input",
    "evaluation": "evaluation",
    "checkpoint": "checkpoints that blocked",
    "idle": "idle between starts",
}
METRICS = "metrics.jsonl"
ACCURACY, AUTO = "accuracy", "auto"
TARGETS = "targets.jsonl"
TRAININGS = "trainings"  # the subfolder with one folder per training
RESULT = "result.json"  # in the folder of a training that has ended
HOUR_S = 3600.0
GRID = "tuned grid"  # the rule of a training that only served to choose a learning rate


@dataclass(frozen=True)
class Save:
    """A checkpoint that a start began to save. step: the steps completed by then. steps_ns: the time spent on them."""

    step: int
    steps_ns: int


@dataclass(frozen=True)
class Start:
    """The account of one start.

    Attributes:
      begun_ns: the Unix time in ns at which its process was created, or at which the previous start ended if later.
      ns: nanoseconds by category of KINDS. The sum is the age of the start.
      from_step: the step that it restored; None if it ended before restoring.
      step: the last completed step.
      saves: the checkpoints in order.
      sealed, sealing_ns: how many checkpoints were sealed, and the total background time for it.
      finished: whether the training reached its end. A later start is a new request, so the time until then is no loss.
    """

    begun_ns: int
    ns: dict[str, int]
    from_step: int | None
    step: int
    saves: tuple[Save, ...]
    sealed: int
    sealing_ns: int
    finished: bool

    @property
    def end_ns(self) -> int:
        return self.begun_ns + sum(self.ns.values())


@dataclass(frozen=True, kw_only=True)
class _LedgerLine:
    """A line of the ledger: the sums of its start up to then."""

    start: AtLeastOne
    begun_ns: Count
    ns: dict[str, Count]  # by category
    from_step: Count | None
    step: Count
    saving: bool  # a checkpoint began at this step
    sealed: Count
    sealing_ns: Count
    finished: bool


def read_ledger(folder: Path) -> list[Start]:
    """The starts of the training in `folder`; [] without a ledger. Damaged lines are skipped: see `ledger_faults`."""
    starts: dict[int, Start] = {}
    for line in _ledger_lines(folder)[0]:
        before, ns = starts.get(line.start), {kind: line.ns.get(kind, 0) for kind in KINDS}
        saves = before.saves if before else ()
        if line.saving:
            saves = (*saves, Save(line.step, ns[STEPS]))
        # A line replaces the one before it; only saves accumulate.
        starts[line.start] = Start(
            begun_ns=line.begun_ns,
            ns=ns,
            from_step=line.from_step,
            step=line.step,
            saves=saves,
            sealed=line.sealed,
            sealing_ns=line.sealing_ns,
            finished=line.finished,
        )
    return list(starts.values())


def ledger_faults(folder: Path) -> list[str]:
    """A sentence for each line of the ledger that `read_ledger` skips, such as one that a crash cut off."""
    return _ledger_lines(folder)[1]


def _ledger_lines(folder: Path) -> tuple[list[_LedgerLine], list[str]]:
    path = folder / LEDGER
    if not path.exists():
        return [], []
    names = {each.name for each in dataclasses.fields(_LedgerLine)}

    def line(value: object) -> _LedgerLine:
        known = {name: each for name, each in decode(dict[str, Any], value).items() if name in names}
        return decode(_LedgerLine, known)  # without what other versions also write

    return sound_lines(path, line, "it is skipped.")


def require_possible(starts: list[Start]) -> None:
    """Raises UserError if a start ended after the next one began: edited step times would improve the goodput."""
    for number, (before, after) in enumerate(itertools.pairwise(starts), start=1):
        late = before.end_ns - after.begun_ns
        if late > 0:
            raise UserError(
                f"{LEDGER} is damaged: by its times start {number} ended {late / 1e9:.3g} s after start {number + 1} "
                "began: restore the file."
            )


def kept_saves(starts: list[Start]) -> list[tuple[Save, ...]]:
    """For each start, the checkpoints at or before the earliest step that a later start restored."""
    kept, limit = [], float("inf")
    # Backwards, because what a start saved counts only as far as no later start went back behind it.
    for start in reversed(starts):
        kept.append(tuple(save for save in start.saves if save.step <= limit))
        if start.from_step is not None:
            limit = min(limit, start.from_step)
    return kept[::-1]


def again_ns(starts: list[Start]) -> list[int]:
    """For each start, the ns of the steps that a later start repeated: the steps after the restored checkpoint."""
    lost = []
    for number, (start, saves) in enumerate(zip(starts, kept_saves(starts), strict=True)):
        later = [other.from_step for other in starts[number + 1 :] if other.from_step is not None]
        whole = not later or min(later) >= start.step  # nobody went back into this start: all of its steps count
        lost.append(0 if whole else start.ns[STEPS] - (saves[-1].steps_ns if saves else 0))
    return lost


def idle_ns(starts: list[Start]) -> list[int]:
    """The ns without a running process before each start except the first; 0 after a start that finished."""
    pairs = itertools.pairwise(starts)
    return [0 if before.finished else after.begun_ns - before.end_ns for before, after in pairs]


def totals(starts: list[Start]) -> dict[str, int]:
    """Nanoseconds by the keys of `LABELS`. They add up exactly to the wall time of the training."""
    spent = {kind: sum(start.ns[kind] for start in starts) for kind in KINDS}
    again = sum(again_ns(starts))
    spent |= {STEPS: spent[STEPS] - again, "again": again, "idle": sum(idle_ns(starts))}
    return {name: spent[name] for name in LABELS}


def goodput(spent: dict[str, int]) -> float:
    """The share of `totals` spent on steps that count; 0 for an empty ledger."""
    whole = sum(spent.values())
    return spent[STEPS] / whole if whole else 0.0


@dataclass(frozen=True, kw_only=True)
class _Row:
    """What every row of metrics.jsonl has. Its other columns are numbers of the model, null if not finite."""

    step: Count
    elapsed_s: NonNegative
    compile_s: NonNegative


def _row(value: object) -> dict[str, Any]:
    """The line as a row. Raises ValueError or KeyError if one of its numbers is none, or out of range."""
    row = decode(dict[str, Any], value)
    always = [each.name for each in dataclasses.fields(_Row)]
    decode(_Row, {name: row[name] for name in always})
    decode(dict[str, Finite | None], {name: each for name, each in row.items() if name not in always})
    return row


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What the config of a training says about its rows."""

    batch: AtLeastOne
    target: Finite
    seed: Count
    metric: str = ACCURACY
    mode: str = AUTO


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
class LearningCurve:
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


def read_curve(folder: Path) -> LearningCurve:
    """The training in `folder`, without a truncated last line. Raises UserError without a training, or for damage."""
    path = folder / METRICS
    if not path.exists():
        raise UserError(f"'{folder}' has no {METRICS}: give the folder of a 'jaxbench train'.")
    again = "train anew, in a new --workdir."
    asked, experiment = read_json(folder / CONFIG, _asked, again)
    return LearningCurve(
        name=folder.name,
        experiment=experiment,
        rows=tuple(read_rows(folder)),
        batch=asked.batch,
        target=float(asked.target),
        seed=asked.seed,
        metric=asked.metric,
        mode=asked.mode,
    )


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of metrics.jsonl, without a truncated last one. Raises UserError for damage."""
    return [*read_lines(folder / METRICS, _row, "train anew, in a new --workdir.")]


def _asked(value: object) -> tuple[_Asked, str]:
    """(what the config of a training asks for, its experiment). Raises ValueError or KeyError."""
    config = decode(dict[str, Any], value)
    names = [each.name for each in dataclasses.fields(_Asked)]
    train = {name: each for name, each in decode(dict[str, Any], config["train"]).items() if name in names}
    return decode(_Asked, {**train, "seed": config["seed"]}), decode(str, config["experiment"])


def is_training(folder: Path) -> bool:
    return (folder / METRICS).exists()


def holds_trainings(folder: Path) -> bool:
    """Whether `folder` is a training, or a folder of trainings."""
    return is_training(folder) or (folder.is_dir() and any(is_training(path) for path in folder.iterdir()))


def read_curves(folder: Path) -> list[LearningCurve]:
    """The training in `folder`, or the trainings in its subfolders in order of name: seeds of one training.

    Raises UserError if there is none, or if they differ in model, batch, metric or target.
    """
    if is_training(folder) or not folder.is_dir():
        return [read_curve(folder)]  # which also says what is wrong with a folder that is not there
    curves = [read_curve(path) for path in sorted(folder.iterdir()) if is_training(path)]
    if not curves:
        raise UserError(f"'{folder}' holds no training: give the folder of a 'jaxbench train', or a folder of several.")
    if len({(curve.experiment, curve.batch, curve.metric, curve.target) for curve in curves}) > 1:
        raise UserError(f"the trainings in '{folder}' differ in model, batch or target: give seeds of one training.")
    return curves


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A training that has ended.

    Attributes:
      rule: how its learning rate was found: one of `config.RULES`, or GRID.
      steps: the steps at the first evaluation that reached the target. Without one, the training is censored at the
        steps of its budget.
      diverged: the step with a loss that was not finite; None: it did not diverge.
      accuracy: at the newest evaluation; None before the first.
      step_s: seconds per step, by the training's own clock; None without a step.
      noise: (step, estimate of |G|^2, estimate of tr(Sigma)) of each measurement.
      folder: its folder, relative to TRAININGS.
      joules: energy used while it trained, compiled and evaluated, from the energy counters; None: unknown.
      price_per_hour: the price of the whole machine; None: not given.
    """

    model: str
    batch: int
    devices: int
    seed: int
    learning_rate: float
    rule: str
    target: float
    steps: int
    reached: bool
    diverged: int | None
    accuracy: float | None
    step_s: float | None
    noise: tuple[tuple[int, float, float], ...]
    folder: str
    joules: float | None = None
    price_per_hour: float | None = None

    @property
    def cost(self) -> float | None:
        """The price of `seconds`, in the currency of `price_per_hour`; None: unknown."""
        known = self.seconds is not None and self.price_per_hour is not None
        return self.seconds * self.price_per_hour / HOUR_S if known else None  # type: ignore[operator]

    @property
    def seconds(self) -> float | None:
        """The seconds of the steps to the target; of a censored training, a lower limit. None: unknown."""
        return None if self.step_s is None else self.steps * self.step_s

    @property
    def noise_scale(self) -> float | None:
        """tr(Sigma) / |G|^2 in examples, both averaged over the steps of the training; None unless |G|^2 > 0.

        A measurement stands for the steps since the previous one.
        """
        at, signal, noise = 0, 0.0, 0.0
        for step, square, trace in self.noise:
            signal, noise, at = signal + (step - at) * square, noise + (step - at) * trace, step
        # Both are averaged first: single estimates of |G|^2 are noisy, and may even be negative.
        return noise / signal if signal > 0 and noise > 0 else None


def parse_trained(line: dict[str, Any], **known: Any) -> Trained:
    """A training from a line of the file, or from a result with `known` fields added. Raises ValueError."""
    names = {field.name for field in dataclasses.fields(Trained)}
    return decode(Trained, {name: value for name, value in {**line, **known}.items() if name in names})


def write_trained(folder: Path, trained: Sequence[Trained]) -> None:
    write_atomic(folder / TARGETS, "".join(json.dumps(dataclasses.asdict(each)) + "\n" for each in trained))


def read_trained(folder: Path) -> list[Trained]:
    """The trainings of a run. Raises UserError if the file is missing or damaged."""
    if not (folder / TARGETS).exists():
        raise UserError(f"'{folder}' has no {TARGETS}: give the folder of a 'jaxbench run time_to_target'.")
    return [*read_lines(folder / TARGETS, parse_trained, "delete it, and the same command makes it again.")]


def trained_sentence(one: Trained) -> str:
    """One training as a line for the terminal."""
    where = f"{one.model}, {one.devices} device{'s' if one.devices > 1 else ''}, batch {one.batch}, seed {one.seed}"
    how = f"{one.steps} steps" if one.reached else f"not reached in {one.steps} steps"
    if one.diverged:
        how = f"diverged at step {one.diverged}"
    accuracy = "" if one.accuracy is None else f", accuracy {one.accuracy:.4f}"
    scale = one.noise_scale
    noise = "" if scale is None or not math.isfinite(scale) else f", noise scale {digits(scale)}"
    return f"{where}, rate {one.learning_rate:g} ({one.rule}): {how}{accuracy}{noise}"

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""MLPerf's log of trainings to a target: lines of ":::MLLOG" and a JSON object, in one file for each training.

Source: mlcommons/logging 4.1 (mllog, and the rules of its compliance checker). The run begins where
MLPerf's clock does, after initialising and compiling. A log of a model that is in no MLPerf benchmark is no
submission: it keeps the checker's rules for all benchmarks, without those for a listed benchmark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.features.exports.source import Source, software
from jaxbench.features.training import trainings
from jaxbench.features.training.trainings import LearningCurve

TOKEN = ":::MLLOG"
START, END, POINT = "INTERVAL_START", "INTERVAL_END", "POINT_IN_TIME"
Value = str | float | bool | None


def logs(source: Source) -> dict[str, str]:
    """The log of each training by the name of its file. Raises UserError if nothing was trained."""
    return {f"{folder.name}.log": "\n".join(_lines(source, folder)) + "\n" for folder in source.trainings()}


def _line(time_ms: float, event: str, key: str, value: Value = None, **metadata: Value) -> str:
    """One line of MLPerf's log."""
    about = {"file": "jaxbench", "lineno": 0, **metadata}  # the keys that MLPerf's own logger always writes
    document = {"namespace": "", "time_ms": round(time_ms), "event_type": event, "key": key, "value": value}
    return f"{TOKEN} {json.dumps({**document, 'metadata': about}, allow_nan=False)}"


def _lines(source: Source, folder: Path) -> Iterator[str]:
    """The log of a training that has an evaluation. Raises UserError without one."""
    starts, curve = trainings.read_ledger(folder), trainings.read_curve(folder)
    if not starts or not curve.rows:
        raise UserError(f"the training '{folder}' has no evaluation yet, so it has no log: let it go on.")
    begun_ms = starts[0].begun_ns / 1e6
    yield from _about(source, folder, curve, begun_ms)
    spent = starts[0].ns
    ready_ms = begun_ms + (spent["start"] + spent["compile"] + spent["restore"]) / 1e6
    yield _line(begun_ms, START, "init_start")
    yield _line(ready_ms, END, "init_stop")
    yield _line(ready_ms, START, "run_start")
    now_ms, samples, reached = ready_ms, 0, curve.at_target()
    for row in curve.rows:
        yield _line(now_ms, START, "block_start", samples_count=samples)
        # Rows have the seconds since the training began. Compiling is before the run's start.
        now_ms, samples = ready_ms + 1e3 * (row["elapsed_s"] - row["compile_s"]), row["step"] * curve.batch
        yield _line(now_ms, END, "block_stop", samples_count=samples)
        yield _line(now_ms, START, "eval_start", samples_count=samples)
        if (value := row.get(f"test_{curve.metric}")) is not None:
            yield _line(now_ms, POINT, "eval_accuracy", value, samples_count=samples)
        yield _line(now_ms, END, "eval_stop", samples_count=samples)
        if row is reached:
            break
    status = "success" if reached is not None else "aborted"
    yield _line(now_ms, END, "run_stop", status=status, samples_count=samples)


def _about(source: Source, folder: Path, curve: LearningCurve, time_ms: float) -> Iterator[str]:
    """The facts of a training, before it begins."""
    run = RunFolder(folder)
    config, examples = run.config(), run.manifest().get("examples", {})
    optimizer = config.get("optimizer", {})
    facts: dict[str, Value] = {
        "cache_clear": True,  # each training starts in a folder of its own
        "submission_benchmark": curve.experiment,
        "submission_org": "none",
        "submission_division": "open",
        "submission_status": "onprem",
        "submission_platform": software(source.manifest)["machine"] or "unknown",
        "seed": curve.seed,
        "global_batch_size": curve.batch,
        "gradient_accumulation_steps": 1,
        "opt_name": str(optimizer.get("name", "")),
        "opt_base_learning_rate": float(optimizer.get("learning_rate", 0.0)),
        "target_accuracy": curve.target,
        **{f"{'eval' if split == 'test' else split}_samples": number for split, number in examples.items()},
    }
    for key, value in facts.items():
        yield _line(time_ms, POINT, key, value)

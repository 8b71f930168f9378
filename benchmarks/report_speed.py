# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Time of a report over 100,000 records.

    python benchmarks/report_speed.py [--points=100] [--rounds=1000]

Writes a run folder with synthetic times to a temporary directory and reports on it. Limit: 10 s on 2 cores.
"""

from __future__ import annotations

import cProfile
import json
import pstats
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from absl import app, flags

from jaxbench.core import schema, store
from jaxbench.report import build

_POINTS = flags.DEFINE_integer("points", 100, "Points of the synthetic run.", lower_bound=1)
_ROUNDS = flags.DEFINE_integer("rounds", 1000, "Rounds of the synthetic run.", lower_bound=1)
_PROFILE = flags.DEFINE_bool("profile", False, "Print where the time goes.")


def _compile_report() -> schema.CompileReport:
    return schema.CompileReport(
        trace_s=0.1, lower_s=0.1, compile_s=1.0, first_run_s=0.1, parameters=1000, flops_per_step=1e9,
        compiler_flops_per_step=None, collectives=(), expected_gradient_bytes=0, argument_bytes=1, output_bytes=1,
        temp_bytes=1, alias_bytes=0, peak_bytes=3,
    )  # fmt: skip


def make(path: Path, *, points: int, rounds: int) -> int:
    """Writes the folder: four strategies, strong and weak, all needed device counts. Returns the number of records."""
    random = np.random.default_rng(0)
    plan, records = [], []
    for number in range(points):
        strategy, scaling, devices = f"strategy_{number % 4}", ("strong", "weak")[number // 4 % 2], number // 8 + 1
        name = f"{strategy}/{scaling}/{devices}"
        facts: dict[str, Any] = dict(
            strategy=strategy, scaling=scaling, devices=devices, global_batch=256, oversubscribed=False
        )
        plan.append({"point": name, **facts})
        check = schema.Verdict(name="parameters", ok=True, reason="equal")
        point = schema.PointRecord(
            point=name, experiment="made_up", processes=1, platform="cpu", device_kind="cpu", unit="images",
            compile_report=_compile_report(), checks=(check,), worker="w0", **facts,
        )  # fmt: skip
        records.append(schema.to_json(point))
        times = 0.2 / devices * (1 + 0.02 * random.standard_normal((rounds, 6)))
        for r, row in enumerate(times.tolist()):
            record = schema.RoundRecord(
                point=name, round=r, steps=20, block_s=tuple(row[:2]), double_block_s=(2 * row[2],),
                warmup_block_s=tuple(row[3:]), settled=True, compilations=0, worker="w0",
            )  # fmt: skip
            records.append(schema.to_json(record))
    (path / "figures").mkdir(parents=True)
    sizes = {"rounds": rounds, "blocks": 2, "processes": 1}
    store.write_json(
        path / store.MANIFEST, {"plan": {"points": plan, "experiment": "made_up", "platform": "cpu", **sizes}}
    )
    store.write_json(path / store.CONFIG, {})
    (path / store.RECORDS).write_text("".join(json.dumps(record) + "\n" for record in records))
    return len(records)


def main(argv: list[str]) -> None:
    del argv
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        records = make(path, points=_POINTS.value, rounds=_ROUNDS.value)
        profile = cProfile.Profile()
        if _PROFILE.value:
            profile.enable()
        start, busy = time.perf_counter(), time.process_time()
        outcome = build.write(path)
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        profile.disable()
        size = (path / "report.html").stat().st_size
        print(f"report over {records:,} records: {seconds:.1f} s (limit 10 s), {busy:.1f} s of CPU time")
        print(f"page {size / 1e6:.1f} MB, ok={outcome.ok}")
        if _PROFILE.value:
            pstats.Stats(profile).sort_stats("cumulative").print_stats(25)


if __name__ == "__main__":
    app.run(main)

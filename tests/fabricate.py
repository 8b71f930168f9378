# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Makes run folders with times that follow a known law."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxbench.core import schema, store

Law = Callable[[str, int], float]  # (scaling, devices) -> speed-up
Session = Callable[[str, int], int]  # (point, round) -> the start of the run that measured it


def amdahl(serial: float) -> Law:
    return lambda scaling, n: 1 / (serial + (1 - serial) / n) if scaling == "strong" else n - serial * (n - 1)


def usl(contention: float, coherency: float) -> Law:
    return lambda scaling, n: n / (1 + contention * (n - 1) + coherency * n * (n - 1))


def compile_report(**changes: Any) -> schema.CompileReport:
    facts: dict[str, Any] = dict(
        trace_s=0.05, lower_s=0.1, compile_s=1.25, first_run_s=0.02, parameters=61_706, flops_per_step=3.2e9,
        compiler_flops_per_step=3.1e9, expected_gradient_bytes=246_824, argument_bytes=1_050_000, output_bytes=250_000,
        temp_bytes=5_000_000, alias_bytes=250_000, peak_bytes=6_050_000,
        collectives=(schema.Collective(kind="all-reduce", count=12, bytes=246_832, scalar_bytes=8),),
    )  # fmt: skip
    return schema.CompileReport(**{**facts, **changes})


def point_record(
    *, strategy: str = "shard_map", scaling: str = "strong", devices: int = 1, ok: bool = True, **changes: Any
) -> schema.PointRecord:
    check = schema.Verdict(
        name="parameters", ok=ok, value=3e-8 if ok else 0.7, limit=1e-5,
        reason="equal those of one device" if ok else "differ from those of one device",
    )  # fmt: skip
    alone = dict(collectives=(), expected_gradient_bytes=0) if devices == 1 else {}
    facts: dict[str, Any] = dict(
        point=f"{strategy}/{scaling}/{devices}", experiment="cnn", strategy=strategy, scaling=scaling, devices=devices,
        processes=1, platform="cpu", device_kind="cpu", oversubscribed=False, global_batch=256, unit="images",
        compile_report=compile_report(**alone), checks=(check,), worker="session0/w0",
    )  # fmt: skip
    return schema.PointRecord(**{**facts, **changes})


def run_folder(
    path: Path,
    *,
    law: Law | None = None,
    strategies: Sequence[str] = ("shard_map",),
    scalings: Sequence[str] = ("strong", "weak"),
    devices: Sequence[int] = (1, 2, 4, 8),
    cores: int = 8,
    rounds: int = 5,
    blocks: int = 2,
    steps: int = 20,
    base_step_s: float = 0.0123,
    batch: int = 256,
    noise: float = 0.01,
    drift: float = 0.02,
    fixed_s: float = 0.0,
    experiment: str = "cnn",
    platform: str = "cpu",
    device_kind: str = "cpu",
    config: dict[str, Any] | None = None,
    wrong: Sequence[str] = (),
    session: Session = lambda point, round: 0,
    processes: int | None = None,
    seed: int = 0,
    work: schema.StepWork | None = None,
    unit: str = "images",
) -> Path:
    """Writes a complete run. `drift` is shared by all points of a round and session; `noise` is each block's own.

    processes: the rounds are divided among them; None: one per round, so that rounds are independent.
    """
    processes = rounds if processes is None else processes
    law = law or amdahl(0.05)
    random = np.random.default_rng(seed)
    shared = 1 + drift * random.standard_normal((1, rounds))
    plan: list[dict[str, Any]] = []
    records: list[schema.Record] = []
    for strategy_index, strategy in enumerate(strategies):
        for scaling in scalings:
            for n in devices:
                name = f"{strategy}/{scaling}/{n}"
                weak = batch if scaling == "strong" else batch * n
                step_s = base_step_s * (1 + 0.04 * strategy_index) * (weak / batch) / law(scaling, n)
                facts: dict[str, Any] = dict(
                    strategy=strategy, scaling=scaling, devices=n, global_batch=weak, oversubscribed=n > cores
                )
                plan.append({"point": name, **facts})
                about = {"experiment": experiment, "platform": platform, "device_kind": device_kind, "unit": unit}
                records.append(point_record(**facts, **about, ok=name not in wrong, work=work))
                for r in range(rounds):
                    start = session(name, r)
                    while len(shared) <= start:
                        shared = np.vstack([shared, 1 + drift * random.standard_normal(rounds)])
                    disturbed_s = step_s * float(shared[start, r])

                    def times(k: int, size: int, step_s: float = disturbed_s) -> tuple[float, ...]:
                        jitter = 1 + noise * random.standard_normal(size)
                        return tuple((fixed_s + k * step_s * jitter).tolist())

                    records.append(
                        schema.RoundRecord(
                            point=name, round=r, steps=steps, block_s=times(steps, blocks),
                            double_block_s=times(2 * steps, 1), warmup_block_s=times(steps, 3), settled=True,
                            compilations=0, worker=f"session{start}/w0#{r * processes // rounds}",
                        )
                    )  # fmt: skip
    write(path, plan=plan, records=records, rounds=rounds, experiment=experiment, platform=platform, config=config)
    return path


def write(
    path: Path,
    *,
    plan: list[dict[str, Any]],
    records: Sequence[schema.Record],
    rounds: int,
    experiment: str = "cnn",
    platform: str = "cpu",
    config: dict[str, Any] | None = None,
) -> None:
    """Writes the three files of a run folder in one go (`RunFolder.append` would sync every line to the disk)."""
    (path / "figures").mkdir(parents=True, exist_ok=True)
    asked = {
        "points": plan,
        "rounds": rounds,
        "blocks": 10,
        "experiment": experiment,
        "processes": 1,
        "platform": platform,
    }
    manifest = {"versions": {"jax": "0.10.2"}, "identity": {"family": "25", "kernel": "6.1"}, "plan": asked}
    store.write_json(path / store.MANIFEST, manifest)
    store.write_json(path / store.CONFIG, config or {"model": {"dtype": "float32"}, "report": {"overlay": ""}})
    lines = (json.dumps(schema.to_json(record), separators=(",", ":")) for record in records)
    (path / store.RECORDS).write_text("".join(f"{line}\n" for line in lines))


def edit(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Changes the records of a run. change: edits a line in place; a line for which it returns False is removed."""
    lines = [json.loads(line) for line in (path / store.RECORDS).read_text().splitlines()]
    kept = [line for line in lines if change(line) is not False]
    (path / store.RECORDS).write_text("".join(f"{json.dumps(line)}\n" for line in kept))

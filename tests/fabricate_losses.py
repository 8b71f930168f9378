# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Makes runs with ablation points: each point loses efficiency to known factors."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fabricate
import numpy as np

from jaxbench.core import schema

BASE_S, BATCH, FLOPS = 0.012, 256, 3.2e9
PEAK = 7.0e11  # FLOP/s of a device in a large product


@dataclass(frozen=True, kw_only=True)
class Loss:
    """The factors of one device count. Each is the remaining share: 1 means no loss.

    slowest: the mean over processes of the time of `local`, over the slowest's; below 1 for a run of several processes.
    fed: the step with resident input over the step with fed input; feeding the base costs nothing.
    unequal: the mean time of a fixed product over the devices, over that of the slowest device.
    runtime: the time of processes of one device each, over that of one process; 1: such processes are not measured.
    idle: the share of a pipeline's step without communication in which a stage waits for another.
    collectives: their time alone, over that of the step without them. rest: the unexplained factor: below 1
      only if no communication is hidden, above 1 only if all of it is.
    """

    extra: float = 1.0
    share: float = 1.0
    machine: float = 1.0
    unequal: float = 1.0
    runtime: float = 1.0
    slowest: float = 1.0
    idle: float = 0.0
    fed: float = 1.0
    waited: float = 0.0
    communication: float = 1.0
    collectives: float = 0.5
    rest: float = 1.0

    @property
    def efficiency(self) -> float:
        devices = self.unequal * self.machine * self.runtime * self.slowest
        waits = (1 - self.idle) * self.fed * (1 - self.waited)
        return self.extra * self.share * devices * waits * self.communication * self.rest

    def times(self, n: int, work: float) -> dict[str, float]:
        """Seconds of each program, for `work` times the base's work on n devices."""
        alone = work * BASE_S / (n * self.extra * self.share)
        apart = alone / self.unequal / self.machine
        local = apart / self.runtime / self.slowest
        full = local / (1 - self.idle)
        resident = full / self.communication / self.rest
        step = resident / self.fed / (1 - self.waited)
        times = {
            "alone": alone,
            "processes": apart,
            "local": local,
            "schedule": full,
            "communication": self.collectives * full,
        }
        return {**times, "resident": resident, "step": step}


@dataclass(frozen=True, kw_only=True)
class Program:
    """One point of the run, with its time. paces: for each process, its time over the slowest's."""

    point: str
    step_s: float
    facts: dict[str, Any]
    record: dict[str, Any] = field(default_factory=dict)
    paces: tuple[float, ...] = ()
    core_product_s: tuple[float, ...] = ()


def compile_report(
    devices: int, *, flops: float = FLOPS, product: float = FLOPS, sent: int = 246_832
) -> schema.CompileReport:
    reduce = schema.Collective(kind="all-reduce", count=12, bytes=246_832, scalar_bytes=8, wire_bytes=sent)
    return fabricate.compile_report(
        flops_per_step=flops, product_flops_per_step=product, collectives=(reduce,) if devices > 1 else (),
        compiler_flops_per_step=max(flops, product),
    )  # fmt: skip


def programs(
    losses: Mapping[int, Loss],
    *,
    strategy: str,
    scaling: str,
    levers: dict[str, str],
    sent: int,
    peak: bool,
    more: float = 0.0,
) -> list[Program]:
    """The points of one strategy and scaling, each after its ablation points."""
    made = []
    for n in (1, *losses):
        loss, work = losses.get(n, Loss()), float(n if scaling == "weak" else 1)
        times, name = loss.times(n, work), f"{strategy}/{scaling}/{n}"
        facts: dict[str, Any] = dict(
            strategy=strategy, scaling=scaling, devices=n, global_batch=int(BATCH * work), oversubscribed=False,
            levers={"part": "step", **levers},
        )  # fmt: skip

        def part(
            kind: str, devices: int, step_s: float, batch: int, record: Any, name: str = name, facts: Any = facts
        ) -> Program:
            levers = {**facts["levers"], "part": kind}
            changed = dict(devices=devices, global_batch=batch, levers=levers, explains=name)
            return Program(
                point=f"{name}/{kind}", step_s=step_s, facts={**facts, **changed}, record={"compile_report": record}
            )

        whole = compile_report(n, flops=FLOPS * work, product=FLOPS * work / loss.extra, sent=sent)
        outcome = {"waited_share": loss.waited} if any(one.waited for one in losses.values()) else {}
        if peak:
            made.append(part("peak", n, FLOPS / PEAK, int(BATCH * work), compile_report(n, flops=FLOPS * n)))
        if n > 1:
            if scaling == "strong":
                each = FLOPS * work / n
                share = compile_report(1, flops=each, product=each / loss.extra)
                made.append(part("alone", 1, times["alone"], int(BATCH * work) // n, share))
            local = part("local", n, times["local"], int(BATCH * work), whole)
            if loss.slowest < 1:
                others = (n * loss.slowest - 1) / (n - 1)
                record = {**local.record, "processes": n}
                local = dataclasses.replace(local, record=record, paces=(1.0, *(others,) * (n - 1)))
            if loss.runtime < 1:
                share = compile_report(1, flops=FLOPS * work / n, product=FLOPS * work / n / loss.extra)
                apart = part("processes", 1, times["processes"], int(BATCH * work) // n, share)
                apart.facts["levers"]["trainings"] = str(n)
                made.append(dataclasses.replace(apart, paces=(1.0,) * n))
            rest = ("schedule", "communication") if strategy == "pipeline" else ("communication",)
            made += [local, *(part(kind, n, times[kind], int(BATCH * work), whole) for kind in rest)]
        if any(one.fed < 1 for one in losses.values()):
            still = dict(facts, explains=name, levers={**facts["levers"], "input": "device"})
            facts["levers"] = {**facts["levers"], "input": "pipeline:2"}
            known = {"step_s": times["resident"], "facts": still, "record": {"compile_report": whole}}
            made.append(Program(point=f"{name}/resident", **known))
        if n == 1 and more:
            larger = dict(facts, global_batch=2 * BATCH, explains=name)
            record = {"compile_report": compile_report(1, flops=2 * FLOPS, product=2 * FLOPS)}
            made.append(Program(point=f"{name}/batch=2x", step_s=2 * BASE_S / more, facts=larger, record=record))
        record = {"compile_report": whole, "outcome": outcome}
        others = (n * loss.unequal - 1) / max(1, n - 1)
        cores = (*(1e-4 * others,) * (n - 1), 1e-4) if loss.unequal < 1 else ()
        made.append(Program(point=name, step_s=times["step"], facts=facts, record=record, core_product_s=cores))
    return made


def folder(
    path: Path,
    losses: Mapping[int, Loss],
    *,
    strategies: Sequence[str] = ("shard_map",),
    scalings: Sequence[str] = ("strong",),
    weak: Mapping[int, Loss] | None = None,
    levers: dict[str, str] | None = None,
    without: Collection[str] = (),
    wrong: Collection[str] = (),
    rounds: int = 10,
    blocks: int = 4,
    noise: float = 0.002,
    drift: float = 0.05,
    peak: bool = False,
    more: float = 0.0,
    sent: Sequence[int] = (246_832, 123_416, 61_708, 30_854),
) -> Path:
    """Writes the run. weak: the losses of weak scaling; None: the same. more: the speed-up of one device with twice the
    batch; 0: not measured.

    without: ids of planned points that failed. wrong: of those with a failed check. sent: bytes by strategy.
    """
    made = [
        program
        for strategy, bytes_ in zip(strategies, sent, strict=False)
        for scaling in scalings
        for program in programs(
            weak if weak is not None and scaling == "weak" else losses, strategy=strategy, scaling=scaling,
            levers=levers or {}, sent=bytes_, peak=peak, more=more,
        )
    ]  # fmt: skip
    random = np.random.default_rng(0)
    shared = 1 + drift * random.standard_normal(rounds)
    records: list[schema.Record] = []
    for one in made:
        if one.point in without:
            asked = {name: one.facts[name] for name in ("strategy", "scaling", "devices", "global_batch")}
            failed = {"experiment": "cnn", "stage": "build", "reason": "no such part"}
            records.append(schema.FailureRecord(point=one.point, **failed, **asked))
            continue
        records.append(fabricate.point_record(point=one.point, ok=one.point not in wrong, **one.facts, **one.record))
        records += [_round(one, r, float(shared[r]), random, blocks, noise) for r in range(rounds)]
    plan = [{"point": one.point, **one.facts} for one in made]
    fabricate.write(path, plan=plan, records=records, rounds=rounds)
    return path


def _round(
    one: Program, number: int, shared: float, random: np.random.Generator, blocks: int, noise: float
) -> schema.RoundRecord:
    def times(steps: int, size: int) -> tuple[float, ...]:
        return tuple((steps * one.step_s * shared * (1 + noise * random.standard_normal(size))).tolist())

    block_s = times(20, blocks)
    return schema.RoundRecord(
        point=one.point, round=number, steps=20, block_s=block_s, double_block_s=times(40, 2),
        warmup_block_s=times(20, 3), settled=True, compilations=0, worker=f"session0/w0#{number}",
        cores=tuple(range(len(one.core_product_s))),
        core_product_s=(one.core_product_s,) * (blocks + 2) if one.core_product_s else (),
        process_block_s=tuple(tuple(pace * seconds for seconds in block_s) for pace in one.paces),
    )  # fmt: skip


def less(loss: Loss, **changes: float) -> Loss:
    return dataclasses.replace(loss, **changes)

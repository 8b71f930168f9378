# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Makes runs that sweep levers, with known times, memory and outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fabricate
import numpy as np

from jaxbench.core import schema, store

DEFAULTS = dict(
    precision="default", remat="none", accumulate="1", freeze="none", batch="0", part="step", execution="donated",
    input="device", trainings="1",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Made:
    """One arm. rounds: the recorded ones, None for all. failed: the reason of its failure, instead of rounds."""

    levers: dict[str, str]
    step_s: float
    name: str = ""
    batch: int = 256
    compile_report: dict[str, Any] = field(default_factory=dict)
    outcome: dict[str, float] = field(default_factory=dict)
    ok: bool = True
    failed: str = ""
    rounds: Sequence[int] | None = None
    steps: int = 20
    blocks: int = 2
    slowest: float = 0.0  # extra time of every hundredth block, as a share
    others: Sequence[float] = ()  # the time of each co-running training over this one's, which is the slowest
    by_devices: dict[int, float] = field(default_factory=dict)  # step_s at other device counts

    @property
    def arm(self) -> str:
        return self.name or ", ".join(f"{lever}={value}" for lever, value in self.levers.items())


def arm(step_s: float, *, rung: str = "", **facts: Any) -> Made:
    """The levers are those of `facts` that are levers; the rest are fields of `Made`. batch=64 is both."""
    levers = {name: str(facts[name]) for name in DEFAULTS if name in facts}
    rest = {name: value for name, value in facts.items() if name not in DEFAULTS or name == "batch"}
    return Made(step_s=step_s, levers=levers, name=rung, **rest)


def lever_folder(
    path: Path,
    arms: Sequence[Made],
    swept: Sequence[str],
    *,
    strategy: str = "jit_auto",
    scaling: str = "strong",
    devices: Sequence[int] = (1,),
    cores: int = 8,
    rounds: int = 6,
    noise: float = 0.01,
    drift: float = 0.03,
    experiment: str = "cnn",
    missing: Sequence[str] = (),
    platform: str = "cpu",
    seed: int = 0,
) -> Path:
    """Writes the run folder. `drift` is common to all arms of a round; `noise` is per block."""
    random = np.random.default_rng(seed)
    shared = 1 + drift * random.standard_normal(rounds)
    plan: list[dict[str, Any]] = []
    records: list[schema.Record] = []
    for n in devices:
        for made in arms:
            point = f"{strategy}/{scaling}/{n}/{made.arm}"
            facts: dict[str, Any] = dict(
                strategy=strategy, scaling=scaling, devices=n, global_batch=made.batch, oversubscribed=n > cores,
                arm=made.arm, levers={**DEFAULTS, **made.levers},
            )  # fmt: skip
            plan.append({"point": point, **facts})
            if point in missing:
                continue
            records += _records(made, point, facts, shared, random, noise, experiment=experiment, platform=platform)
    fabricate.write(
        path, plan=plan, records=records, rounds=rounds, experiment=experiment, platform=platform,
        config={"model": {"width": 32}},
    )  # fmt: skip
    manifest = store.RunFolder(path).manifest()
    manifest["plan"] |= {"measures": "levers", "swept": list(swept)}
    store.write_json(path / store.MANIFEST, manifest)
    return path


def _records(
    made: Made, point: str, facts: dict[str, Any], shared: np.ndarray, random: Any, noise: float, *, experiment: str,
    platform: str,
) -> list[schema.Record]:  # fmt: skip
    n = facts["devices"]
    if made.failed:
        asked = {name: facts[name] for name in ("strategy", "scaling", "devices", "global_batch", "arm")}
        return [
            schema.FailureRecord(
                point=point, experiment=experiment, stage="build", reason=made.failed, detail="Traceback", **asked
            )
        ]
    alone = dict(collectives=(), expected_gradient_bytes=0) if n == 1 else {}
    compile_report = fabricate.compile_report(**{**alone, **made.compile_report})
    record = fabricate.point_record(
        **facts, point=point, experiment=experiment, platform=platform, ok=made.ok, compile_report=compile_report,
        outcome=made.outcome,
    )  # fmt: skip
    step_s = made.by_devices.get(n, made.step_s)
    found: list[schema.Record] = [record]
    for r in range(len(shared)) if made.rounds is None else made.rounds:
        jitter = 1 + noise * random.standard_normal(made.blocks)
        late = 1 + made.slowest * (random.uniform(size=made.blocks) < 0.01)
        blocks = made.steps * step_s * float(shared[r]) * jitter * late
        double = 2 * made.steps * step_s * float(shared[r]) * (1 + noise * random.standard_normal(1))
        found.append(
            schema.RoundRecord(  # one process per round: rounds are independent
                point=point,
                round=r,
                steps=made.steps,
                block_s=tuple(blocks.tolist()),
                settled=True,
                compilations=0,
                double_block_s=tuple(double.tolist()),
                warmup_block_s=(float(blocks[0]),) * 3,
                worker=f"session0/w0#{r}",
                process_block_s=tuple(tuple((each * blocks).tolist()) for each in (1, *made.others) if made.others),
            )  # fmt: skip
        )
    return found


MIB = 2**20


def precision() -> list[Made]:
    """bfloat16 takes 0.6 of the time and 0.55 of the memory; float32 is indistinguishable from default."""
    rows = (
        ("default", 0.0100, 100, 0.974), ("float32", 0.0100, 100, 0.974), ("bfloat16", 0.0060, 55, 0.972),
        ("float16", 0.0072, 55, 0.969),
    )  # fmt: skip
    return [
        arm(
            step_s, precision=name, compile_report=dict(peak_bytes=peak * MIB, temp_bytes=peak * MIB // 2),
            outcome=dict(final_loss=0.1, final_accuracy=accuracy, steps=400.0, skipped_steps=0.0),
        )
        for name, step_s, peak, accuracy in rows
    ]  # fmt: skip


def remat() -> list[Made]:
    rows = (("none", 0.0100, 90), ("sqrt", 0.0131, 22), ("block", 0.0128, 14), ("dots_saveable", 0.0104, 61))
    return [
        arm(step_s, remat=name, compile_report=dict(temp_bytes=temp * MIB, peak_bytes=(temp + 40) * MIB))
        for name, step_s, temp in rows
    ]


def batch() -> list[Made]:
    """A fixed millisecond and 20 µs an example: 90 % of the best (of 1024) is reached at 256."""
    sizes = (8, 16, 32, 64, 128, 256, 512, 1024)
    return [arm(1e-3 + 2e-5 * n, batch=n, compile_report=dict(peak_bytes=n * MIB + 40 * MIB)) for n in sizes]


def accumulate() -> list[Made]:
    memory = {k: dict(temp_bytes=80 * MIB // k, peak_bytes=80 * MIB // k + MIB) for k in (1, 2, 4, 8, 16)}
    return [arm(0.010 * (1 + 0.02 * k), accumulate=k, compile_report=each) for k, each in memory.items()]


def freeze() -> list[Made]:
    rows = (("none", 0.010, 100_000, 9e9), ("embed", 0.0092, 70_000, 8.1e9), ("embed|blocks", 0.0051, 5_000, 4.4e9))
    return [
        arm(step_s, freeze=name, compile_report=dict(parameters=count, product_flops_per_step=flops))
        for name, step_s, count, flops in rows
    ]


def ladder() -> list[Made]:
    rungs = (
        ("execution=eager", 0.200), ("execution=unfused", 0.040), ("execution=jit", 0.0140),
        ("execution=donated", 0.01397), ("precision=bfloat16", 0.0080),
    )  # fmt: skip
    return [arm(step_s, rung=rung) for rung, step_s in rungs]


def parts() -> list[Made]:
    """Forward 3 ms, backward 6, update 1, communication 2 on two devices and nothing on one."""
    times = (("forward", 3e-3, 3e-3), ("gradient", 9e-3, 9e-3), ("local", 10e-3, 10e-3), ("step", 10e-3, 12e-3))
    return [arm(one, part=name, by_devices={2: two, 4: two + 2e-3}, blocks=4) for name, one, two in times]


def inputs() -> list[Made]:
    rows = (("device", 0.0100, None), ("host", 0.0160, 0.37), ("pipeline:2", 0.0108, 0.05), ("pipeline:8", 0.01, 0.01))
    return [
        arm(step_s, input=kind, outcome={} if waited is None else {"waited_share": waited})
        for kind, step_s, waited in rows
    ]


def sharing() -> list[Made]:
    """A step takes 10 ms alone; of two concurrent trainings one takes 16 and the other 12 ms; of four all take 40."""
    others: Any = ((1, 0.010, ()), (2, 0.016, (0.75,)), (4, 0.040, (1, 1, 1)))
    return [arm(step_s, trainings=count, others=each) for count, step_s, each in others]


def sharing_mps() -> list[Made]:
    """The same; with MPS, two concurrent trainings take 12 ms, and four 20."""
    mps: Any = ((2, 0.012, (1,)), (4, 0.020, (1, 0.9, 0.9)))
    return sharing() + [arm(step_s, trainings=f"{count}:mps", others=each) for count, step_s, each in mps]


def inference(*, blocks: int = 40) -> list[Made]:
    return [
        arm(4e-4 + 1e-5 * n, batch=n, part="inference", steps=1, blocks=blocks, slowest=1.5)
        for n in (1, 4, 16, 64, 256)
    ]


def combined() -> list[Made]:
    rows = (("default", "none", 0.01), ("default", "block", 0.0128), ("bfloat16", "none", 0.0062))
    return [arm(s, precision=p, remat=r) for p, r, s in rows] + [arm(0.0079, precision="bfloat16", remat="block")]


RUNS: dict[str, tuple[Any, list[str]]] = {
    "precision": (precision, ["precision"]),
    "remat": (remat, ["remat"]),
    "batch": (batch, ["batch"]),
    "accumulate": (accumulate, ["accumulate"]),
    "freeze": (freeze, ["freeze"]),
    "ladder": (ladder, ["ladder"]),
    "phases": (parts, ["part"]),
    "inputs": (inputs, ["input"]),
    "inference": (inference, ["batch"]),
    "sharing": (sharing, ["trainings"]),
    "arms": (combined, ["precision", "remat"]),
}
SEARCH = {
    "schema": 1,
    "limit_bytes": 2.0e9,
    "limit_source": "half of the memory that was free",
    "tried": [{"batch": 2**e, "peak_bytes": int(4e7 + 2**e * 1.1e6)} for e in range(5, 13)],
    "predicted": 1781,
    "proven": [
        {"batch": 1781, "ok": True, "peak_bytes": 1_999_100_000, "measured_bytes": 1_930_000_000, "reason": ""},
        {"batch": 1782, "ok": False, "peak_bytes": None, "measured_bytes": None, "reason": "out of memory"},
    ],
    "largest": 1781,
    "error": 0.036,
}
LAW = {
    "rows": [
        {"remat": name, "blocks": n, "temp_bytes": int(size(n))}
        for name, size in (
            ("none", lambda n: 4e6 * n), ("sqrt", lambda n: 4e6 * (2 * n**0.5)), ("block", lambda n: 3e6 + 6e5 * n)
        )
        for n in (4, 9, 16, 36, 64)
    ]
}  # fmt: skip


def folder(path: Path, kind: str, **facts: Any) -> Path:
    """A run of one kind, with the additional files of that kind of run."""
    make, swept = RUNS[kind]
    arms = facts.pop("arms", None) or make()
    if kind == "phases":
        facts = {"devices": (1, 2, 4), "cores": 2, "strategy": "shard_map", **facts}
    lever_folder(path, arms, swept, **facts)
    if kind == "batch":
        store.write_json(path / "search.json", SEARCH)
    if kind == "remat":
        store.write_json(path / "remat_law.json", LAW)
    return path

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Makes run folders of kernels, transfers and collectives with known times.

case_folder(tmp_path, [matmul(2048, call_s=0.1), collective("all_reduce", 2**20, 8, call_s=1e-3)], view="matmul")
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jaxbench.core import schema, store

PLACEMENT = (
    "point", "family", "op", "dtype", "impl", "shape", "elements", "payload_bytes", "flops", "bytes_moved", "devices",
    "mesh", "axis", "source", "target", "platform", "cores", "oversubscribed", "resident_bytes",
)  # fmt: skip
CHECKED = schema.Verdict(name="result", ok=True, reason="every value is right", value=0.0, limit=0.0)
Session = Callable[[str, int], int]  # (point, round) -> the start of the run that measured it


@dataclass(frozen=True, kw_only=True)
class Made:
    """One case as it is written to the records.

    call_s: true seconds per call. loop_s: true seconds per iteration of the jitted loop; None: it has no loop.
    rounds: how many are written; None: all. failure: a failure line with this reason ends the point.
    recorded: False leaves out the case line.
    """

    record: schema.CaseRecord
    call_s: float
    loop_s: float | None = None
    fixed_s: float = 0.0  # per block, so that the clocks disagree
    rounds: int | None = None
    failure: str = ""
    recorded: bool = True


def record(**changes: Any) -> schema.CaseRecord:
    """A truthful 1024^3 float32 matmul on one CPU core, with changes. The point follows from the other fields."""
    facts: dict[str, Any] = dict(
        point="", experiment="matmul", family="kernel", op="matmul", dtype="float32", impl="jit",
        shape="1024x1024x1024", elements=1024, payload_bytes=None, flops=2 * 1024.0**3, bytes_moved=12 * 1024.0**2,
        devices=1, mesh="", axis="", source="", target="", platform="cpu", device_kind="cpu", cores=1, processes=1,
        oversubscribed=False, resident_bytes=12 * 1024**2, zeros=0.0, wrong=0, launch_s=8e-6, compile_s=0.1,
        compiler_flops=None, compiler_bytes=None, temp_bytes=0, checks=(CHECKED,), worker="session0/cpu1",
    )  # fmt: skip
    facts |= changes
    facts["point"] = facts["point"] or _name(facts)
    return schema.CaseRecord(**facts)


def _name(facts: dict[str, Any]) -> str:
    if facts["family"] == "kernel":
        return "/".join(str(facts[k] or facts["elements"]) for k in ("op", "dtype", "shape", "impl"))
    key = f"{facts['op']}/{facts['dtype']}/{facts['payload_bytes']}B"
    if facts["family"] == "transfer":
        return f"{key}/{facts['source']}->{facts['target']}"
    return f"{key}/{facts['mesh']}" + (f":{facts['axis']}" if "x" in facts["mesh"] else "")


def kernel(op: str, elements: int, *, call_s: float, loop_s: float | None | str = "same", **changes: Any) -> Made:
    """An element-wise kernel over `elements` float32: reads one array, writes one, one operation per element."""
    facts = dict(
        experiment="activation", op=op, elements=elements, shape="", flops=float(elements),
        bytes_moved=8.0 * elements, resident_bytes=8 * elements,
    )  # fmt: skip
    return made(call_s=call_s, loop_s=loop_s, **(facts | changes))


def matmul(n: int, *, call_s: float, loop_s: float | None | str = "same", **changes: Any) -> Made:
    """An n x n x n matrix product."""
    facts = dict(
        shape=f"{n}x{n}x{n}", elements=n, flops=2.0 * n**3, bytes_moved=12.0 * n * n, resident_bytes=12 * n * n
    )
    return made(call_s=call_s, loop_s=loop_s, **(facts | changes))


def stream(op: str, elements: int, *, bytes_per_s: float, loop_s: float | None | str = "same", **changes: Any) -> Made:
    """copy, scale (2 arrays), add, triad (3 arrays) of `elements` float32 at a known rate."""
    arrays = 2 if op in ("copy", "scale") else 3
    moved = 4.0 * arrays * elements
    facts = dict(
        experiment="stream", op=op, elements=elements, shape="", bytes_moved=moved, resident_bytes=int(moved),
        flops={"copy": 0.0, "triad": 2.0}.get(op, 1.0) * elements,
    )  # fmt: skip
    return made(call_s=moved / bytes_per_s, loop_s=loop_s, **(facts | changes))


def collective(
    op: str, payload_bytes: int, devices: int, *, call_s: float, loop_s: float | None | str = "same", **changes: Any
) -> Made:
    """One collective over all `devices` of a one-dimensional mesh; give mesh="2x4", axis="x" for a sub-group."""
    facts = dict(
        experiment="collectives", family="collective", op=op, impl="shard_map", shape="", elements=None,
        payload_bytes=payload_bytes, flops=None, bytes_moved=None, devices=devices, mesh=str(devices), axis="x",
        cores=devices, resident_bytes=3 * devices * payload_bytes, worker=f"session0/cpu{devices}",
    )  # fmt: skip
    return made(call_s=call_s, loop_s=loop_s, **(facts | changes))


def transfer(op: str, payload_bytes: int, source: str, target: str, *, call_s: float, **changes: Any) -> Made:
    """One copy from `source` to `target`. It has no loop."""
    facts = dict(
        experiment="transfer", family="transfer", op=op, impl="jax", shape="", elements=None,
        payload_bytes=payload_bytes, flops=None, bytes_moved=float(payload_bytes), source=source, target=target,
        resident_bytes=2 * payload_bytes,
    )  # fmt: skip
    return made(call_s=call_s, loop_s=None, **(facts | changes))


def made(*, call_s: float, loop_s: float | None | str = "same", **changes: Any) -> Made:
    """`loop_s` "same": an iteration of the loop takes as long as a call. Names of `Made` and `CaseRecord` mix."""
    own = {f.name for f in dataclasses.fields(Made)} - {"record", "call_s", "loop_s"}
    loop = call_s if loop_s == "same" else loop_s
    outer = {name: value for name, value in changes.items() if name in own}
    facts = {name: value for name, value in changes.items() if name not in own}
    return Made(record=record(**facts), call_s=call_s, loop_s=loop, **outer)  # type: ignore[arg-type]


def card(**changes: Any) -> dict[str, Any]:
    """A machine.json of a two-core machine: 100 and 190 GFLOP/s in float32, 10 and 15 GB/s of memory, 60 of cache."""
    peaks = [
        peak("flop_per_s", cores, value, op="matmul", shape="2048x2048x2048")
        for cores, value in ((1, 1e11), (2, 1.9e11))
    ]
    rates = (("memory", 1, 1e10), ("memory", 2, 1.5e10), ("cache", 1, 6e10), ("cache", 2, 1.1e11))
    peaks += [peak("bytes_per_s", cores, value, op="triad", level=level) for level, cores, value in rates]
    made = {"schema": 1, "made": "2026-01-01T00:00:00+00:00", "machine": _machine(), "peaks": peaks}
    return {**made, "made_of": [], "launch": [], "links": [], "transfers": [], **changes}


def peak(quantity: str, cores: int, value: float, *, op: str, level: str = "", **changes: Any) -> dict[str, Any]:
    facts = {
        "quantity": quantity, "dtype": "float32", "platform": "cpu", "cores": cores, "op": op, "shape": "",
        "elements": 2048, "level": level, "value": value, "lo": 0.99 * value, "hi": 1.01 * value, "rounds": 5,
        "run": "fabricated", "point": f"{op}/float32/2048/jit",
    }  # fmt: skip
    return {**facts, **changes}


def _machine() -> dict[str, Any]:
    return {
        "platform": "cpu", "device_kind": "cpu", "devices": 8, "cores": 2, "cpu_model": "Fabricated CPU",
        "memory_bytes": 8 * 2**30, "cache_bytes": 32 * 2**20,
    }  # fmt: skip


def case_folder(
    path: Path,
    cases: Sequence[Made],
    *,
    view: str = "curves",
    rounds: int = 5,
    blocks: int = 2,
    steps: int = 20,
    loop_steps: int = 100,
    noise: float = 0.01,
    drift: float = 0.02,
    left_out: Sequence[str] = (),
    config: dict[str, Any] | None = None,
    manifest: dict[str, Any] | None = None,
    machine: dict[str, Any] | None = None,
    session: Session = lambda point, round: 0,
    seed: int = 0,
) -> Path:
    """Writes a complete run. `drift` is shared by all points of a round and session; `noise` is each block's own."""
    random = np.random.default_rng(seed)
    shared: dict[tuple[int, int], float] = {}
    lines: list[schema.Record] = []
    for case in cases:
        name = case.record.point
        if case.recorded:
            lines.append(case.record)
        for r in range(rounds if case.rounds is None else case.rounds):
            start = session(name, r)
            factor = shared.setdefault((start, r), 1 + drift * float(random.standard_normal()))

            def times(per_step_s: float, count: int, size: int, fixed_s: float, factor: float = factor) -> Any:
                jitter = np.maximum(0.05, 1 + noise * random.standard_normal(size))
                return tuple((fixed_s + count * per_step_s * factor * jitter).tolist())

            lines.append(_round(case, r, start, times, steps=steps, blocks=blocks, loop_steps=loop_steps))
        if case.failure:
            lines.append(failure(case))
    _write(path, cases, lines, view=view, rounds=rounds, left_out=left_out, config=config, manifest=manifest)
    if machine is not None:
        store.write_json(path / "machine.json", machine)
    return path


def _round(case: Made, number: int, start: int, times: Any, *, steps: int, blocks: int, loop_steps: int) -> Any:
    looped: dict[str, Any] = {}
    if case.loop_s is not None:
        start_s = 1e-5 + loop_steps * max(0.0, -3 * case.loop_s)  # so that a negative slope has positive times
        samples = {"loop_s": loop_steps, "double_loop_s": 2 * loop_steps}
        looped = {name: times(case.loop_s, count, blocks, start_s) for name, count in samples.items()}
        looped["loop_steps"] = loop_steps
    return schema.RoundRecord(
        point=case.record.point, round=number, steps=steps, block_s=times(case.call_s, steps, blocks, case.fixed_s),
        double_block_s=times(case.call_s, 2 * steps, 1, case.fixed_s),
        warmup_block_s=times(case.call_s, steps, 2, case.fixed_s), settled=True, compilations=0,
        worker=f"session{start}/{case.record.worker.rpartition('/')[2]}#{number}", **looped,
    )  # fmt: skip


def failure(case: Made) -> schema.FailureRecord:
    return schema.FailureRecord(
        point=case.record.point, experiment=case.record.experiment, devices=case.record.devices, stage="measure",
        reason=case.failure,
    )  # fmt: skip


def placement(case: Made) -> dict[str, Any]:
    return {name: getattr(case.record, name) for name in PLACEMENT}


def _write(
    path: Path,
    cases: Sequence[Made],
    lines: Sequence[schema.Record],
    *,
    view: str,
    rounds: int,
    left_out: Sequence[str],
    config: dict[str, Any] | None,
    manifest: dict[str, Any] | None,
) -> None:
    (path / "figures").mkdir(parents=True, exist_ok=True)
    first = cases[0].record if cases else record()
    plan = {
        "measures": "cases", "experiment": first.experiment, "view": view, "platform": first.platform, "processes": 1,
        "rounds": rounds, "blocks": 2, "points": [placement(case) for case in cases], "left_out": list(left_out),
    }  # fmt: skip
    facts = {"versions": {"jax": "0.10.2"}, **_machine(), **(manifest or {}), "plan": plan}
    store.write_json(path / store.MANIFEST, facts)
    store.write_json(path / store.CONFIG, config or {"measures": "cases"})
    text = (json.dumps(schema.to_json(line), separators=(",", ":")) for line in lines)
    (path / store.RECORDS).write_text("".join(f"{line}\n" for line in text))


def alpha_beta(
    op: str, devices: int, sizes: Sequence[int], *, alpha_s: float, beta: float, **changes: Any
) -> list[Made]:
    """The same collective over `sizes`, at exactly t = alpha_s + S / beta."""
    return [collective(op, size, devices, call_s=alpha_s + size / beta, **changes) for size in sizes]

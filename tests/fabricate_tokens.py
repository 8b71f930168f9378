# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Makes runs of generation with times that follow a known law."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fabricate
import numpy as np

from jaxbench.core import schema, store

LAYERS, INPUT, CONTEXT, SCANNED = 12, 96, 128, 8
WEIGHT_BYTES, CACHE_BYTES = 2.4e8, 6e6  # of the whole model; of one request
TRIAD = 2e10  # bytes per second of a device


@dataclasses.dataclass(frozen=True)
class Law:
    """Seconds of the parts of a token's time. latency_s, payload_s: of one all-reduce. unexplained_s: of a token."""

    weights_s: float = 12e-3
    cache_s: float = 0.4e-3  # for each request
    smaller_s: float = 0.8e-3
    latency_s: float = 20e-6
    payload_s: float = 3e-6
    starting_s: float = 0.3e-3
    unexplained_s: float = 0.1e-3

    def times(self, batch: int, tensor: int, data: int) -> dict[str, float]:
        """Seconds of a token in each program, and of a prompt and a triad."""
        products = self.weights_s / tensor
        weights = products + self.smaller_s
        local = weights + self.cache_s * batch / tensor / data
        sums = (2 * LAYERS + 1) * (tensor > 1)
        tiny, messages = sums * self.latency_s, sums * (self.latency_s + self.payload_s)
        scan = local + messages + self.unexplained_s * (tensor > 1)
        times = {"products": products, "weights": weights, "local": local, "tiny": tiny, "messages": messages}
        return {**times, "scan": scan, "step": scan + self.starting_s, "prefill": 0.05 / tensor, "triad": 4e-3}


def folder(
    path: Path,
    law: Law | None = None,
    *,
    batches: Sequence[int] = (1, 8, 64),
    rounds: int = 9,
    noise: float = 0.004,
    config: Mapping[str, object] | None = None,
    joules: float | None = None,
    price: float | None = 2.0,
) -> Path:
    """A run of tensor and data on one and two devices. joules: of a step."""
    random = np.random.default_rng(0)
    plan: list[dict[str, Any]] = []
    records: list[schema.Record] = []
    for strategy in ("tensor", "data"):
        for devices in (1, 2):
            tensor, data = (devices, 1) if strategy == "tensor" else (1, devices)
            for batch in (each for each in batches if each % data == 0):
                times = (law or Law()).times(batch, tensor, data)
                name = f"{strategy}/strong/{devices}/batch={batch}"
                for part in _parts(strategy, devices, batch, batches):
                    place = _place(name, part, strategy, devices, batch)
                    plan.append(place)
                    scanned = 1 if part in ("step", "prefill", "triad") else SCANNED
                    facts = _facts(batch // data, tensor, scanned)
                    made = {"joules_per_step": joules} if joules and part == "step" else {}
                    about: dict[str, Any] = dict(
                        experiment="decode", facts=facts, unit="tokens", outcome=made, compile_report=_report(devices)
                    )
                    records.append(fabricate.point_record(**place, **about))
                    for number in range(rounds):
                        seconds = times[part] * scanned * (1 + noise * random.standard_normal())
                        records.append(_round(place["point"], number, seconds))
    fabricate.write(
        path,
        plan=plan,
        records=records,
        rounds=rounds,
        experiment="decode",
        config={"report": {"overlay": ""}, "price_per_hour": price or 0.0, **(config or {})},
    )
    manifest = json.loads((path / store.MANIFEST).read_text())
    manifest["plan"] |= {"measures": "decode", "swept": ["batch"], "left_out": []}
    store.write_json(path / store.MANIFEST, manifest)
    return path


def _parts(strategy: str, devices: int, batch: int, batches: Sequence[int]) -> list[str]:
    if devices == 1 and strategy == "data":  # on one device both strategies are one program
        return ["step"]
    parts = ["step", "scan"]
    if batch == min(batches) or (strategy == "data" and batch == min(each for each in batches if each % 2 == 0)):
        parts.append("prefill")
    if batch == min(batches):
        parts.append("triad")
    if batch == max(batches):
        several = ["local", "messages", "tiny"] if strategy == "tensor" and devices > 1 else []
        parts += ["weights", "products", *several]
    return parts


def _place(name: str, part: str, strategy: str, devices: int, batch: int) -> dict[str, Any]:
    levers = {"batch": str(batch), "weights": "float32", "cache": "float32", "cache_layout": "heads"}
    return dict(
        point=name if part == "step" else f"{name}/{part}",
        explains="" if part == "step" else name,
        strategy=strategy,
        scaling="strong",
        devices=devices,
        global_batch=batch,
        oversubscribed=False,
        arm=f"batch={batch}",
        levers={**levers, "context": "0", "attention": "xla", "part": part},
    )


def _facts(batch: int, tensor: int, scanned: int) -> dict[str, float]:
    return {
        "context": CONTEXT,
        "input": INPUT,
        "output": CONTEXT - INPUT,
        "layers": LAYERS,
        "weight_bytes": WEIGHT_BYTES / tensor,
        "cache_bytes": CACHE_BYTES * batch / tensor,
        "message_bytes": 768.0 * 4 * batch,
        "tensor": tensor,
        "tokens_per_call": scanned,
        "triad_bytes": TRIAD * 4e-3,
    }


def _report(devices: int) -> schema.CompileReport:
    reduce = schema.Collective(kind="all-reduce", count=25, bytes=76_800)
    return fabricate.compile_report(collectives=(reduce,) if devices > 1 else (), attention="xla")


def _round(point: str, number: int, seconds: float) -> schema.RoundRecord:
    return schema.RoundRecord(
        point=point,
        round=number,
        steps=10,
        block_s=(10 * seconds,),
        double_block_s=(20 * seconds,),
        warmup_block_s=(10 * seconds,),
        settled=True,
        compilations=0,
        worker=f"session0/w#{number % 3}",
    )

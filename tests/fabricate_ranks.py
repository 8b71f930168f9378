# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Makes runs of points on several processes, each with a known speed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fabricate
import numpy as np

from jaxbench.core import schema

LOCAL_S, STEPS = 0.1, 4


def folder(
    path: Path, slower: Sequence[float], *, local: bool = True, rounds: int = 10, starts: int = 5, blocks: int = 3,
    noise: float = 0.02, own: float = 0.01, slow_starts: int = 99, oversubscribed: bool = False, seed: int = 0,
) -> Path:  # fmt: skip
    """Writes a run of one point of len(slower) processes, its base, and its part "local", if asked for.

    slower: the relative time of each process in the first `slow_starts` starts. own: the share of a step after its last
    collective. Before that, each process waits for the slowest, so only this share differs between processes.
    """
    count, random = len(slower), np.random.default_rng(seed)
    name = f"shard_map/strong/{count}"
    many = {"devices": count, "processes": count, "oversubscribed": oversubscribed}
    part = {**many, "explains": name, "levers": {"part": "local"}}
    programs = {"shard_map/strong/1": {"devices": 1}, name: many, **({f"{name}/local": part} if local else {})}
    records: list[schema.Record] = []
    for point, facts in programs.items():
        records.append(fabricate.point_record(point=point, **facts))
        for number in range(rounds):
            start = number * starts // rounds
            work = np.ones((count, 1)) if start >= slow_starts else np.array(slower)[:, None]
            times = LOCAL_S * STEPS * work * (1 + noise * random.standard_normal((count, blocks)))
            if point == name:
                times = times.max(axis=0) + LOCAL_S * own * work
            records.append(
                _round(point, number, times if "processes" in facts else times[:1], worker=f"session0/w0#{start}")
            )
    plan = [{"point": point, **_planned(facts)} for point, facts in programs.items()]
    fabricate.write(path, plan=plan, records=records, rounds=rounds)
    return path


def _planned(facts: dict[str, Any]) -> dict[str, Any]:
    given = {"strategy": "shard_map", "scaling": "strong", "global_batch": 256, "oversubscribed": False, **facts}
    return {name: value for name, value in given.items() if name != "processes"}


def _round(point: str, number: int, times: np.ndarray, *, worker: str) -> schema.RoundRecord:
    slowest = times.max(axis=0)
    return schema.RoundRecord(
        point=point, round=number, steps=STEPS, block_s=tuple(slowest.tolist()),
        double_block_s=tuple((2 * slowest).tolist()), warmup_block_s=tuple(slowest.tolist()), settled=True,
        compilations=0, worker=worker,
        process_block_s=tuple(tuple(each.tolist()) for each in times) if len(times) > 1 else (),
    )  # fmt: skip

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The processes of a world, or of concurrent trainings, as one worker: the setup of each, and the merged answer."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from jaxbench.machine import world
from jaxbench.runner.worker import IDLE

# The time of a block of all processes is that of the slowest.
SLOWEST = ("block_s", "double_block_s", "warmup_block_s", "loop_s", "double_loop_s", "probe_s")
ADDED = ("cpu_s", "switches")


def setups(setup: dict[str, Any]) -> list[dict[str, Any]]:
    """The setup of each process. setup: that of the worker; "processes": the number of its processes.

    Each process has an equal share of the devices; of accelerators, it has one. Instead, "trainings" is the number of
    processes that train at the same time, each on all devices.
    """
    if "trainings" in setup:
        beside = {"address": world.free_address(), "processes": setup["trainings"]}
        return [{**setup, "beside": {**beside, "process": i}} for i in range(setup["trainings"])]
    count = setup.get("processes", 1)
    if count == 1:
        return [setup]
    common = {"address": world.free_address(), "processes": count}
    device = setup["platform"] != "cpu"
    places = [{**common, "process": i, **({"device": i} if device else {})} for i in range(count)]
    return [{**setup, "world": place} for place in places]


def merged(answers: Sequence[dict[str, Any]], cpus: Sequence[Any] = ()) -> dict[str, Any]:
    """The answer of a world to one request. answers: of its processes, in order.

    cpus: for each process, its host and the CPUs that it may use; processes with equal entries share their CPUs. ():
    all processes share them.
    """
    cpus = [cpu for cpu, answer in zip(cpus, answers, strict=True) if answer != IDLE] if cpus else ()
    answers = [answer for answer in answers if answer != IDLE]
    first = answers[0]
    if len(answers) == 1:
        return first
    # All restart with the same number of threads, the largest that one of them needs.
    if asked := [answer["concurrent_collectives"] for answer in answers if "concurrent_collectives" in answer]:
        return {"concurrent_collectives": max(asked)}
    if "same" in first:
        return {"same": all(answer["same"] for answer in answers)}
    if "cpus" in first:
        return {**first, "processes": len(answers)}
    if "record" in first:
        return {**first, "record": _record([answer["record"] for answer in answers], cpus)}
    return first


def _record(records: Sequence[dict[str, Any]], cpus: Sequence[Any]) -> dict[str, Any]:
    """The leader's record, with the contributions of the other processes."""
    record = dict(records[0])
    if "checks" in record:
        record["checks"] = _checks([each["checks"] for each in records])
    if record.get("wrong") is not None:  # each process counts on its own devices
        record["wrong"] = sum(each["wrong"] for each in records)
    if record["kind"] == "round":
        record["process_block_s"] = [each["block_s"] for each in records]
        record |= {name: _by_block(max, records, name) for name in SLOWEST}
        record |= {name: _by_block(sum, records, name) for name in ADDED}
        sharing = _sharing(records, cpus)
        record["steal_s"] = _added([_by_block(statistics.mean, those, "steal_s") for those in sharing])
        record["others_s"] = _added([_others_s(those) for those in sharing])
        record["cpus"] = sum(those[0]["cpus"] for those in sharing)
        record["compilations"] = max(each["compilations"] for each in records)
    return record


def _by_block(together: Callable[[Sequence[Any]], Any], records: Sequence[dict[str, Any]], name: str) -> list[Any]:
    """One number for each block, over all processes; [] if a process has none."""
    of_each = [each[name] for each in records]
    return [together(block) for block in zip(*of_each, strict=True)] if all(of_each) else []


def _sharing(records: Sequence[dict[str, Any]], cpus: Sequence[Any]) -> list[list[dict[str, Any]]]:
    """The records, grouped by processes that share their CPUs."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for record, cpu in zip(records, cpus or [None] * len(records), strict=True):
        groups.setdefault(cpu, []).append(record)
    return list(groups.values())


def _added(of_each: Sequence[list[float]]) -> list[float]:
    """The sum over processes for each block; [] if a process reports nothing."""
    return [sum(block) for block in zip(*of_each, strict=True)] if all(of_each) else []


def _others_s(records: Sequence[dict[str, Any]]) -> list[float]:
    """The CPU time of other programs on the shared CPUs: the mean reading of the processes minus their own time."""
    others, own = (_by_block(statistics.mean, records, name) for name in ("others_s", "cpu_s"))
    return [busy - (len(records) - 1) * one for busy, one in zip(others, own, strict=True)] if others and own else []


def _checks(of_each: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The leader's verdicts, replaced by those of another process that found a fault: each sees only its own shards."""
    verdicts = {verdict["name"]: verdict for verdict in of_each[0]}
    for process, checks in enumerate(of_each):
        for verdict in checks:
            if not verdict["ok"] and verdicts.get(verdict["name"], {"ok": True})["ok"]:
                verdicts[verdict["name"]] = {**verdict, "reason": f"process {process}: {verdict['reason']}"}
    return list(verdicts.values())

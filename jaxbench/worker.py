# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The worker process that measures points; `processes.server` has the protocol.

Its setup also has "experiment", "config", "worker": its name in records, and "beside": its position among co-runners
(`group.join_co_runners`). The requests are

    {"do": "prepare" | "compile" | "compile_for" | "try", "point": {...}}
                                                      with "prepare" optionally "loss": its kind, which takes a second
                                                      to find; and "paced": false: no step is timed until
    {"do": "pace", "point": id}
    {"do": "prepare_again", "point": {...}, "program_sha256": of the program that was checked, "steps": K}
    {"do": "describe"}
    {"do": "run_within", "point": {...}, "limit_bytes": n}
    {"do": "round", "point": id, "round": r}          optionally "double": false, without the second clock; and for a
                                                      training "steps", the block length to use, and "last": true,
                                                      which checks the state that the visit leaves
    {"do": "profile", "point": id, "folder": a path}

With "target" it accepts only "compile_for".
"""

from __future__ import annotations

from typing import Any

from jaxbench.core import schema
from jaxbench.processes import server


def bench_of(setup: dict[str, Any], devices: list[Any]) -> Any:
    """The bench that measures points of this process."""
    if setup["config"].get("measures") == "cases":
        from jaxbench.cases.case_bench import CaseBench as Bench
    else:
        from jaxbench.features.ablations.bench import AblationBench as Bench  # type: ignore[assignment]
    bench: Any = Bench(setup["config"], setup["experiment"], devices, setup["worker"])
    if "beside" in setup:
        from jaxbench.processes.group import join_co_runners

        bench.co_runners = join_co_runners(setup["beside"])
    return bench


def handle(bench: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Carries out one request and returns its answer."""
    optional = {name: request[name] for name in ("steps", "double", "last", "text", "options") if name in request}
    match request["do"]:
        case "round":
            return {"record": schema.to_json(bench.round(request["point"], request["round"], **optional))}
        case "describe" | "try":
            from jaxbench.features.try_model import trial

            return trial.describe(bench) if request["do"] == "describe" else trial.attempt(bench, request["point"])
        case "run_within":
            return bench.run_within(request["point"], request["limit_bytes"])
        case "profile":
            from jaxbench.features.profile import profile

            return {"record": schema.to_json(profile.of_point(bench, request["point"], request["folder"]))}
        case "compile_for":
            return {"record": schema.to_json(bench.compile_for(request["point"], **optional))}
        case "compile":
            return bench.compile_only(request["point"])
        case "prepare_again":
            return {"same": bench.prepare_again(request["point"], request["program_sha256"], request["steps"])}
        case "pace":
            return {**bench.pace(request["point"]), "steps": bench.prepared[request["point"]].steps}
    if "loss" in request:
        bench.proof.take(request["loss"])
    how = {"paced": request["paced"]} if "paced" in request else {}
    record = bench.prepare(request["point"], **how)
    return {"record": schema.to_json(record), "steps": bench.prepared[record.point].steps}


if __name__ == "__main__":
    server.main(bench_of, handle)

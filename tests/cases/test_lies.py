# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Lies of real programs that the gates must refuse. Each is built by removing one safeguard of the suite.

The margins are a factor of a hundred, so that noise cannot change an answer. If the machine itself might do what the
lie leaves out, such as waiting for a call, the time is simulated.
"""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import Any

import jax
import pytest
from fabricate_cases import card, peak

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.analysis import points as case_points
from jaxbench.analysis import run_rows
from jaxbench.analysis.run_rows import Row
from jaxbench.cases import runnable
from jaxbench.cases.case_bench import CaseBench
from jaxbench.cases.placement import place
from jaxbench.cases.runnable import Runnable
from jaxbench.core.store import RunFolder, write_json
from jaxbench.parallel import collectives

PRODUCT = '''"""One matrix product."""
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict
from jaxbench.workloads import CaseSet, KernelWorkload
from jaxbench.workloads.cases import Array

N = 768


def get_config():
    return ConfigDict({"measures": "cases", "scale": 1.0})


def build(config):
    product = KernelWorkload(
        op="matmul", dtype="float32", elements=N, flops=2.0 * N**3, bytes_moved=12.0 * N * N,
        arguments=(Array((N, N), scale=config.scale), Array((N, N), scale=N**-0.5)), function=jnp.matmul,
        answer=np.matmul,
    )
    return CaseSet(name="product", view="matmul", cases=(product,))
'''


STEP_S, LAUNCH_S = 2.0**-10, 2.0**-17


class Queue:
    """A simulated device: a call is queued in LAUNCH_S and lasts STEP_S; only a fence waits."""

    def __init__(self) -> None:
        self.now, self.idle_at = 0.0, 0.0

    def call(self, steps: int = 1) -> None:
        self.now += LAUNCH_S
        self.idle_at = max(self.idle_at, self.now) + steps * STEP_S

    def fence(self, state: Any) -> None:
        self.now = max(self.now, self.idle_at)

    def takes(self, ready: Runnable) -> Runnable:
        """The same computation, with the time of this queue."""
        step, loop = ready.step, ready.loop
        assert loop is not None

        def queued(state: Any, batch: Any) -> Any:
            self.call()
            return step(state, batch)

        def queued_loop(state: Any, batch: Any, count: Any) -> Any:
            self.call(int(count))
            return state

        return dataclasses.replace(
            ready, step=queued, loop=queued_loop, fence=self.fence, to_device=lambda number: number
        )


def measure(
    folder: Path, *, product: str = PRODUCT, scale: float = 1.0, flop_per_s: float = 1e12, queue: Queue | None = None
) -> Row:
    """Measures the product here, or in the time of `queue`, and judges it for a machine with a measured peak of
    `flop_per_s`."""
    path = folder / "product.py"
    # In simulated time the size changes only the duration of the test.
    path.write_text(product if queue is None else product.replace("N = 768", "N = 128"))
    config = config_lib.compose("product", discovery.load_experiment(str(path)), discovery.load_preset("smoke"))
    with config.unlocked():
        config.scale, config.max_bytes, config.measure.block_s = scale, 0, 0.03
    machine = {
        "platform": "cpu", "device_kind": "cpu", "devices": 8, "cores": 2, "memory_bytes": 8 * 2**30, "cpu_model": "x",
    }  # fmt: skip
    experiment = discovery.load_experiment(str(path))
    points, _ = place(experiment.build(config), config_lib.parse_cases(config), machine)
    with contextlib.closing(RunFolder.begin(folder / "run", config_lib.plain(config))) as run:
        bench = CaseBench(config_lib.plain(config), str(path), jax.devices(), "session0/here")
        if queue is not None:
            honest = bench.compile
            bench.compile = lambda placement: queue.takes(honest(placement))  # type: ignore[method-assign]
            bench.timer = dataclasses.replace(bench.timer, clock=lambda: queue.now, fence=queue.fence)
            bench.launch_s = LAUNCH_S
        run.append(bench.prepare(points[0].to_json()))
        for number in range(3):
            run.append(bench.round(points[0].point, number))
    plan = {"measures": "cases", "experiment": "product", "view": "matmul", "platform": "cpu", "processes": 1}
    manifest = {**machine, "plan": {**plan, "rounds": 3, "blocks": 1, "points": [points[0].to_json()]}}
    write_json(run.path / "manifest.json", manifest)
    peaks = [peak("flop_per_s", 2, flop_per_s, op="matmul"), peak("bytes_per_s", 2, 1e12, op="triad", level="memory")]
    (row,) = run_rows.analyse(case_points.load_cases(run), manifest=manifest, machine=card(peaks=peaks))
    return row


def refused(row: Row) -> set[str]:
    return {gate.name for gate in row.gates if gate.passed is False}


def test_only_a_noisy_clock_refuses_the_truth(tmp_path: Path) -> None:
    row = measure(tmp_path)
    assert refused(row) <= {"two clocks agree"}, row.gate_reason
    assert row.point.case is not None and row.point.case.wrong == 0


def test_work_hoisted_out_of_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the feedback all iterations are equal, and the compiler runs only one."""
    monkeypatch.setattr(runnable, "feed_back", lambda argument, result, zero: argument)
    row = measure(tmp_path)
    assert "two clocks agree" in refused(row) and "hoisted" in row.gate_reason
    assert row.loop_s.value < row.timing.step_s.value / 10


def test_the_truth_passes_in_simulated_time(tmp_path: Path) -> None:
    row = measure(tmp_path, queue=Queue())
    assert row.gate == "passed", row.gate_reason
    assert row.loop_s.value == STEP_S and row.timing.step_s.value == pytest.approx(STEP_S, rel=0.01)


def test_calls_that_are_not_waited_for(tmp_path: Path) -> None:
    class Hasty(Queue):
        def takes(self, ready: Runnable) -> Runnable:
            return dataclasses.replace(super().takes(ready), fence=lambda state: None)

    row = measure(tmp_path, queue=Hasty())
    assert "two clocks agree" in refused(row) and "not waited for" in row.gate_reason
    assert row.timing.step_s.value == LAUNCH_S


def test_a_result_that_the_compiler_removes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that does not carry its result: neither calls nor loop compute anything."""
    honest = runnable.kernel_chain

    def forgetful(workload: Any, device: Any) -> collectives.Chain:
        whole = honest(workload, device)

        def step(state: Any, batch: Any) -> tuple[Any, None]:
            whole.step(state, batch)
            return state, None

        return dataclasses.replace(whole, step=step)

    monkeypatch.setattr(runnable, "kernel_chain", forgetful)
    row = measure(tmp_path)
    assert {"right result", "not above peak", "not below roofline"} <= refused(row)


def test_zeros_for_inputs(tmp_path: Path) -> None:
    assert refused(measure(tmp_path, scale=0.0, queue=Queue())) == {"inputs not all zeros"}


def test_a_constant_that_is_called_a_product(tmp_path: Path) -> None:
    constant = PRODUCT.replace("function=jnp.matmul", "function=lambda a, b: jnp.full((N, N), 7.0)")
    constant = constant.replace("answer=np.matmul", "answer=lambda a, b: np.full((N, N), 7.0, np.float32)")
    row = measure(tmp_path, product=constant, queue=Queue())
    assert refused(row) == {"FLOPs in the program"}
    assert row.point.case is not None and row.point.case.wrong == 0


def test_a_kernel_that_asks_the_host(tmp_path: Path) -> None:
    """It is as fast as a Python function, on any device."""
    asked = "function=lambda a, b: jax.pure_callback(on_host, jax.ShapeDtypeStruct((N, N), jnp.float32), a, b)"
    on_host = "def on_host(a, b):\n    return np.asarray(a) @ np.asarray(b)\n\n\n"
    asking = PRODUCT.replace("import numpy as np", "import jax\nimport numpy as np").replace(
        "def build(", f"{on_host}def build("
    )
    asking = asking.replace("function=jnp.matmul", asked)
    row = measure(tmp_path, product=asking, queue=Queue())
    assert refused(row) == {"nothing from the host"} and row.point.check_ok is False
    said = "the compiled step does NOT run by itself, it waits for the host: pure_callback of 'on_host'"
    assert said in row.gate_reason
    assert row.point.case is not None and row.point.case.wrong == 0


def test_more_than_the_peak(tmp_path: Path) -> None:
    assert refused(measure(tmp_path, flop_per_s=1e7, queue=Queue())) == {"not above peak", "not below roofline"}

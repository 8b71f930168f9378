# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Traces of real programs, and the assignment of time to categories, computed by hand."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from jaxbench.core.schema import ProfileRecord
from jaxbench.features.profile import profile
from jaxbench.features.profile.profile import Operation
from jaxbench.hlo.module import Module, parse

STEPS = 3
OPTIMISED = {"xla_backend_optimization_level": 3}  # profiles are of measured programs


def traced(step: Any, state: Any, batch: Any, folder: Path, **changes: Any) -> ProfileRecord:
    compiled = jax.jit(step).lower(state, batch).compile(OPTIMISED)
    options: dict[str, Any] = dict(steps=STEPS, folder=folder, module=parse(compiled.as_text()), point="p", worker="w")
    state, _ = compiled(state, batch)
    return profile.trace(compiled, state, batch, **{**options, **changes})


def spread_step(devices: int) -> tuple[Any, Any, Any]:
    """Each device: a matmul, a chain of element-wise work in a loop, and a large all-reduce."""
    mesh = jax.make_mesh((devices,), ("data",), axis_types=(AxisType.Auto,), devices=jax.devices()[:devices])

    def body(w, x):
        y = jax.lax.fori_loop(0, 2, lambda i, y: jnp.tanh(jnp.exp(y) - 1), x @ w)
        return jax.lax.psum(x.T @ y, "data") * 1e-3, jnp.sum(y)[None]

    whole, split = PartitionSpec(), PartitionSpec("data")
    step = jax.shard_map(body, mesh=mesh, in_specs=(whole, split), out_specs=(whole, split))
    w = jax.device_put(jnp.full((256, 256), 1e-3), NamedSharding(mesh, whole))
    x = jax.device_put(jnp.ones((256 * devices, 256)), NamedSharding(mesh, split))
    return step, w, x


@pytest.mark.parametrize("devices", [1, 8])
def test_kinds_of_a_real_step(devices: int, tmp_path: Path) -> None:
    record = traced(*spread_step(devices), tmp_path / "profiles" / "p")
    assert sum(record.kinds.values()) == pytest.approx(record.wall_s, rel=1e-9)
    assert all(record.kinds[kind] > 0 for kind in ("matmul", "element-wise", "idle"))
    assert record.kinds["convolution"] == 0 and (record.kinds["collective"] > 0 or devices == 1)
    assert sum(seconds for *_, seconds in record.top) <= record.wall_s - record.kinds["idle"] + 1e-12
    assert [seconds for *_, seconds in record.top] == sorted((s for *_, s in record.top), reverse=True)
    # the loop itself; newer compilers call it from another function
    assert any("while" in name or "call" in name for name, kind, _ in record.top if kind == "other")


def test_files_for_perfetto_and_tensorboard(tmp_path: Path) -> None:
    record = traced(*spread_step(1), tmp_path / "profiles" / "p")
    assert record.trace.startswith("profiles/p/plugins/profile/") and (tmp_path / record.trace).is_file()
    assert list((tmp_path / record.trace).parent.glob("*.xplane.pb"))


def test_heavy_work_is_found_where_it_is(tmp_path: Path) -> None:
    def products(w, x):
        return w @ x, None

    def convolution(x, kernel):
        return jax.lax.conv(x, kernel, (1, 1), "SAME"), None

    # Each step lasts tens of milliseconds, so that no interruption of one small operation looks like most of the work.
    square = jnp.full((2000, 2000), 5e-4)  # its own square, so that it neither grows nor vanishes
    for folder, kind, step, state, batch in (
        ("a", "matmul", products, square, square),
        ("b", "convolution", convolution, jnp.ones((64, 16, 64, 64)), jnp.full((16, 16, 5, 5), 1e-3)),
        ("c", "element-wise", lambda x, y: (jnp.tanh(jnp.sin(x) * y), None), jnp.ones(2**23), jnp.ones(2**23)),
    ):
        record = traced(step, state, batch, tmp_path / "profiles" / folder)
        assert record.kinds[kind] > 0.5 * (record.wall_s - record.kinds["idle"]), (kind, record.kinds)
        assert record.top[0][1] == kind and record.kinds["collective"] == 0
        # without the program's text, by the names in the trace
        if kind != "matmul":  # a fused product is not named after its content
            unread = traced(step, state, batch, tmp_path / "profiles" / f"{folder}2", module=Module())
            assert unread.top[0][1] == kind


def test_steps_are_waited_for_inside_the_window(tmp_path: Path) -> None:
    calls, fenced = [], []

    def call(state, batch):
        calls.append(state)
        return compiled(state, batch), None

    def fence(value):
        fenced.append(value)
        return jax.block_until_ready(value)

    compiled = jax.jit(lambda state, batch: state + batch)
    state, batch = compiled(jnp.zeros(9), jnp.ones(9)), jnp.ones(9)
    folder = tmp_path / "profiles" / "p"
    about = dict(steps=STEPS, folder=folder, module=Module(), point="p", worker="w")
    record = profile.trace(call, state, batch, **about, fence=fence)
    with pytest.raises(ValueError, match="no operation of a device"):
        profile.trace(lambda s, b: (s, None), 0, 0, **{**about, "folder": tmp_path / "none" / "b"})
    assert len(calls) == STEPS and float(fenced[0][0][0]) == STEPS + 1 and len(fenced) == 1
    assert record.kinds["element-wise"] > 0  # each step ran


def op(kind: str, start: float, end: float, *, name: str = "", container: bool = False) -> Operation:
    return Operation(name or kind, kind, container, start, end)


@pytest.mark.parametrize(
    ("operations", "given"),
    [
        ([op("matmul", 0, 4), op("matmul", 4, 10)], [4, 6]),
        ([op("matmul", -5, 3), op("element-wise", 8, 20), op("copy", 30, 40)], [3, 2, 0]),  # the window cuts
        ([op("matmul", 0, 6), op("element-wise", 4, 8)], [5, 3]),  # two at a time share
        ([op("matmul", 2, 6), op("collective", 0, 10)], [4, 6]),  # the exposed part of a collective
        ([op("other", 0, 10, container=True), op("matmul", 1, 4), op("copy", 4, 5)], [6, 3, 1]),  # a loop's own part
        ([op("other", 0, 9, container=True), op("element-wise", 2, 6, container=True), op("copy", 3, 4)], [5, 3, 1]),
        ([op("collective", 0, 4), op("copy", 2, 6)], [3, 3]),
        ([op("matmul", 3, 3)], [0]),
        ([], []),
    ],
)
def test_a_moment_is_given_once(operations: list[Operation], given: list[float]) -> None:
    assert profile.share((0.0, 10.0), operations) == given


def test_means_over_devices_and_the_rest_is_idle() -> None:
    devices = [[op("matmul", 0, 4e9, name="dot.1"), op("copy", 5e9, 6e9)], [op("matmul", 0, 2e9, name="dot.1")]]
    wall_s, kinds, top = profile.add_up((0.0, 10e9), devices)
    assert wall_s == pytest.approx(10)
    spent = {kind: seconds for kind, seconds in kinds.items() if seconds}
    assert spent == pytest.approx({"matmul": 3.0, "copy": 0.5, "idle": 6.5})
    named = [(name, kind, round(seconds, 9)) for name, kind, seconds in top]
    assert named == [("dot.1", "matmul", 3), ("copy", "copy", 0.5)]


def Event(name: str, start_ns: float, duration_ns: float, **stats: Any) -> SimpleNamespace:
    return SimpleNamespace(name=name, start_ns=start_ns, duration_ns=duration_ns, stats=list(stats.items()))


def Line(name: str, *events: Any) -> SimpleNamespace:
    return SimpleNamespace(name=name, events=events, lines=events)


def planes(*made: Any) -> Any:
    return type("Data", (), {"planes": made, "from_file": classmethod(lambda cls, path: cls)})


def test_a_gpu_as_its_profiler_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names from XLA's tracer: streams have the kernels; the host has their launches, which are not counted."""
    host = Line(
        "/host:CPU", Line("python", Event(profile.STEPS, 100, 1000), Event("fusion.1", 0, 900, hlo_op="fusion.1"))
    )
    gpu = Line(
        "/device:GPU:0",
        Line("Stream #13(Compute)", Event("loop_add_fusion", 200, 50, hlo_op="loop_add_fusion", hlo_module="jit_step"),
             Event("nvjet_hsh_128x256_64x4", 300, 100, hlo_op="custom-call.3", hlo_module="jit_step")),
        Line("Stream #20(MemcpyD2D)", Event("MemcpyD2D", 390, 30)),
        Line("Stream #22(Compute)", Event("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 410, 100)),
        Line("XLA Ops", Event("loop_add_fusion", 200, 50), Event("custom-call.3", 300, 100)),
    )  # fmt: skip
    monkeypatch.setattr(profile, "ProfileData", planes(host, gpu))
    window, devices = profile.read(Path("x"), profile.OperationClassifier(Module()))
    assert window == (100, 1100) and len(devices) == 1
    _, kinds, _ = profile.add_up(window, devices)
    assert {k: round(s * 1e9, 6) for k, s in kinds.items() if s} == {
        "element-wise": 50, "matmul": 100, "copy": 15, "collective": 95, "idle": 740,
    }  # fmt: skip


def test_a_tpu_as_its_profiler_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "%fusion.3 = f32[8,8]{1,0:T(8,128)} fusion(%p), kind=kOutput, calls=%c"
    tpu = Line(
        "/device:TPU:0",
        Line("Steps", Event("1", 0, 1000)),
        Line("XLA Ops", Event("%while.2 = (s32[]) while(%t), body=%b", 100, 300, hlo_category="while"),
             Event(text, 150, 100, hlo_category="loop fusion"),
             Event("%all-reduce.1 = f32[8] all-reduce(%x)", 500, 50, hlo_category="all-reduce")),
        Line("Async XLA Ops", Event("%copy-start.1 = f32[8] copy-start(%x)", 240, 30, hlo_category="copy-start")),
    )  # fmt: skip
    monkeypatch.setattr(
        profile, "ProfileData", planes(Line("/host:CPU", Line("python", Event(profile.STEPS, 0, 1000))), tpu)
    )
    _, kinds, top = profile.add_up(*profile.read(Path("x"), profile.OperationClassifier(Module())))
    assert {k: round(s * 1e9, 6) for k, s in kinds.items() if s} == {
        "element-wise": 100, "collective": 50, "copy": 20, "other": 180, "idle": 650,
    }  # fmt: skip
    assert top[0][:2] == ("while.2", "other")

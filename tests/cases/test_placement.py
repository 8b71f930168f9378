# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The placement of cases, omitted and refused cases, and their processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from kernel_cases import composed

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.cases import runnable
from jaxbench.cases.case_bench import CaseBench, build_cases
from jaxbench.cases.placement import bytes_per_device, place
from jaxbench.config import CaseSettings
from jaxbench.core.point import Point
from jaxbench.errors import NothingToMeasure, UserError
from jaxbench.sweep import plan
from jaxbench.workloads.cases import Array, CaseSet, CollectiveWorkload, KernelWorkload, TransferWorkload

GB = 10**9
CPU = {"platform": "cpu", "devices": 1, "cores": 2, "memory_bytes": 16 * GB, "device_kind": "cpu", "device_kinds": []}
GPUS = {
    "platform": "gpu", "devices": 4, "cores": 16, "memory_bytes": 128 * GB, "device_memory_bytes": 40 * GB,
    "device_kind": "NVIDIA A100-SXM4-40GB", "device_kinds": ["NVIDIA A100-SXM4-40GB"],
}  # fmt: skip


def settings(**changes: Any) -> CaseSettings:
    facts: dict[str, Any] = dict(
        experiment="x", seed=0, platform="auto", devices=None, max_devices=None, mesh_processes="1", mesh_shape="auto",
        cores=("all",),        max_bytes=0, rounds=3, processes=1, blocks=1, block_s=0.01,
        allocator="system", power_limit="", compile="cached",
    )  # fmt: skip
    return CaseSettings(**{**facts, **changes})


def copy(elements: int, **changes: Any) -> KernelWorkload:
    facts: dict[str, Any] = dict(
        op="copy", dtype="float32", elements=elements, flops=None, bytes_moved=8.0 * elements,
        arguments=(Array((elements,), changes.get("dtype", "float32")),), function=jnp.copy,
    )  # fmt: skip
    return KernelWorkload(**{**facts, **changes})


def cases(*members: Any, typed: bool = False) -> CaseSet:
    return CaseSet(name="x", view="stream", cases=members, typed=typed)


def names(found: tuple[list[Point], list[str]]) -> list[str]:
    return [p.point for p in found[0]]


def test_kernels_on_a_cpu_have_all_cores_in_one_process() -> None:
    points, left_out = place(cases(copy(8), copy(16, impl="numpy", host=True)), settings(), CPU)
    assert [p.point for p in points] == ["copy/float32/8/jit", "copy/float32/16/numpy"] and not left_out
    ((name, (members, known)),) = plan.groups(points).items()
    assert name == "cpu-cores2" and members == [p.point for p in points]
    assert (known.platform, known.devices, known.cores) == ("cpu", 1, 2)


def test_one_core_and_all_are_told_apart_and_one_core_is_one_place() -> None:
    found = place(cases(copy(8)), settings(cores=("1", "all")), CPU)
    assert names(found) == ["copy/float32/8/jit/cores1", "copy/float32/8/jit/cores2"]
    assert list(plan.groups(found[0])) == ["cpu-cores1", "cpu-cores2"]
    found = place(cases(copy(8, one_core=True)), settings(cores=("1", "all")), CPU)
    assert names(found) == ["copy/float32/8/jit/cores1"], "more cores do not help it"
    assert names(place(cases(copy(8, one_core=True)), settings(), CPU)) == ["copy/float32/8/jit"], "as asked for"
    found = place(cases(copy(8)), settings(cores=("1", "all")), {**CPU, "cores": 1})
    assert names(found) == ["copy/float32/8/jit/cores1"]


def test_on_an_accelerator_the_same_kernel_runs_on_the_cpu_too_and_host_code_only_there() -> None:
    found = place(cases(copy(8), copy(8, impl="numpy", host=True)), settings(), GPUS)
    assert names(found) == ["copy/float32/8/jit", "copy/float32/8/jit@cpu", "copy/float32/8/numpy"]
    assert [p.platform for p in found[0]] == ["gpu", "cpu", "cpu"]
    assert names(place(cases(copy(8)), settings(platform="gpu"), GPUS)) == ["copy/float32/8/jit"]


def test_an_oversized_case_is_left_out_by_default_and_refused_if_typed_whatever_the_limit() -> None:
    points, left_out = place(cases(copy(8), copy(10**9)), settings(), CPU)
    assert names((points, [])) == ["copy/float32/8/jit"]
    assert "copy/float32/1000000000/jit" in left_out[0] and "1.07 GB" in left_out[0]
    assert len(place(cases(copy(8), copy(25 * 10**7), typed=True), settings(), CPU)[0]) == 2
    said = r"2\.4 GB .*arguments 1\.2 GB, results and buffers 1\.2 GB.* up to 8 times .* 16 GB"
    with pytest.raises(UserError, match=said):
        place(cases(copy(8), copy(3 * 10**8), typed=True), settings(), CPU)
    points, left_out = place(cases(copy(8), copy(3 * 10**8)), settings(max_bytes=10**12), CPU)
    assert len(points) == 1 and "more than 2 GB" in left_out[0]
    points, left_out = place(cases(copy(8), copy(1000), typed=True), settings(max_bytes=100), CPU)
    assert len(points) == 1 and "100 bytes" in left_out[0]
    with pytest.raises(NothingToMeasure, match="Left out: copy/float32/1000/jit"):
        place(cases(copy(1000)), settings(max_bytes=100), CPU)


def test_the_memory_of_a_device_is_a_limit_besides_the_hosts() -> None:
    sent = CollectiveWorkload(op="all_reduce", payload_bytes=8 * GB)
    assert place(cases(sent, typed=True), settings(devices=(2,), mesh_shape=""), GPUS)[0]
    with pytest.raises(UserError, match="half the memory of a device is 4 GB"):
        machine = {**GPUS, "device_memory_bytes": 8 * GB}
        place(cases(sent, typed=True), settings(devices=(2,), mesh_shape=""), machine)


def test_a_dry_run_shows_what_one_device_holds() -> None:
    case = CollectiveWorkload(op="all_reduce", payload_bytes=1024)
    (point, *_) = place(cases(case), settings(devices=(4,), mesh_shape="2x2"), CPU)[0]
    assert bytes_per_device(point) == 2048 and point.resident_bytes == 4 * 2048
    (kernel,) = place(cases(copy(8)), settings(), CPU)[0]
    assert bytes_per_device(kernel) == kernel.resident_bytes


def test_many_flops_and_narrow_dtypes_are_left_to_accelerators() -> None:
    big = copy(8, flops=1e12)
    assert [p.platform for p in place(cases(big, copy(16)), settings(), GPUS)[0]] == ["gpu", "gpu", "cpu"]
    assert len(place(cases(big, typed=True), settings(), CPU)[0]) == 1
    with pytest.raises(UserError, match="float8_e4m3fn: a cpu does not compute .*float64, float32"):
        place(cases(copy(8, dtype="float8_e4m3fn")), settings(), CPU)
    assert len(place(cases(copy(8, dtype="float8_e4m3fn")), settings(), GPUS)[0]) == 1


def test_transfers_sweep_sizes_on_one_pair_and_pairs_at_the_largest_size() -> None:
    sizes = [TransferWorkload(op="device_to_device", payload_bytes=size) for size in (1024, 2048)]
    found = names(place(cases(*sizes), settings(devices=(3,)), CPU))
    assert found[0] == "device_to_device/float32/1024B/cpu:0->cpu:1"
    assert len(found) == 1 + 3 * 2 and all("2048B" in name for name in found[1:])
    host = TransferWorkload(op="host_to_device", payload_bytes=1024)
    found = names(place(cases(host), settings(devices=(2,)), CPU))
    assert found == [f"host_to_device/float32/1024B/host->cpu:{device}" for device in (0, 1)]


def test_collectives_run_in_each_count_and_along_the_axes_of_a_mesh() -> None:
    case = CollectiveWorkload(op="all_reduce", payload_bytes=1024)
    points, _ = place(cases(case), settings(), CPU)
    seen = [(p.point.removeprefix("all_reduce/float32/1024B/"), p.devices, p.oversubscribed) for p in points]
    assert seen == [
        ("2", 2, False), ("4", 4, True), ("8", 8, True), ("2x4:x", 2, True), ("2x4:y", 4, True)
    ]  # fmt: skip
    assert list(plan.groups(points)) == ["cpu2", "cpu4", "cpu8"]
    assert plan.groups(place(cases(case), settings(), GPUS)[0])["gpu"][1].devices == 4


def places(points: list[Point]) -> list[tuple[str, int, int]]:
    return [(p.point.rpartition("/")[2], p.devices, p.processes) for p in points]


def test_of_several_processes_one_axis_is_between_them_and_the_other_inside() -> None:
    case = CollectiveWorkload(op="all_reduce", payload_bytes=1024)
    points, _ = place(cases(case), settings(mesh_processes="2", devices=(2, 8)), CPU)
    assert places(points) == [("2", 2, 2), ("8", 8, 2), ("2x4:x", 2, 2), ("2x4:y", 4, 2)]
    assert {name: known.processes for name, (_, known) in plan.groups(points).items()} == {
        "cpu2-2processes": 2, "cpu8-2processes": 2
    }  # fmt: skip
    each = place(cases(case), settings(mesh_processes="per_device", devices=(4,)), CPU)[0]
    assert places(each) == [("4", 4, 4)]


def test_of_several_hosts_one_axis_is_between_them_whatever_processes_they_have() -> None:
    case = CollectiveWorkload(op="all_reduce", payload_bytes=1024)
    hosts = {**CPU, "cores": 4, "hosts": ["a", "a", "b", "b"]}
    assert places(place(cases(case), settings(devices=(4,)), hosts)[0]) == [
        ("4", 4, 4), ("2x2:x", 2, 4), ("2x2:y", 2, 4)
    ]  # fmt: skip
    assert places(place(cases(case), settings(devices=(2,)), hosts)[0]) == [("2", 2, 2)]


def test_sizes_that_nobody_chose_are_smaller_between_processes() -> None:
    sizes = [CollectiveWorkload(op="all_reduce", payload_bytes=2**n) for n in (24, 26)]
    assert len(place(cases(*sizes), settings(devices=(2,)), CPU)[0]) == 2
    points, left_out = place(cases(*sizes), settings(devices=(2,), mesh_processes="2"), CPU)
    assert [p.payload_bytes for p in points] == [2**24] and "134 MB" in left_out[0]


@pytest.mark.parametrize("case", [copy(8), TransferWorkload(op="device_to_host", payload_bytes=8)])
def test_kernels_and_transfers_have_one_process(case: Any) -> None:
    with pytest.raises(UserError, match=r"mesh.processes=2: the kernels and transfers of 'x' .* use 1"):
        place(cases(case), settings(mesh_processes="2"), CPU)
    with pytest.raises(UserError, match="start it without a launcher, or choose collectives"):
        place(cases(case), settings(), {**CPU, "hosts": ["a", "b"]})


def test_one_accelerator_has_no_collectives_and_a_mesh_must_factor_the_devices() -> None:
    case = CollectiveWorkload(op="all_reduce", payload_bytes=1024)
    with pytest.raises(NothingToMeasure, match="at least 2 devices"):
        place(cases(case), settings(), {**GPUS, "devices": 1})
    with pytest.raises(UserError, match="3x2"):
        place(cases(case), settings(mesh_shape="3x2"), CPU)


def test_payloads_are_what_is_really_moved() -> None:
    case = CollectiveWorkload(op="all_gather", payload_bytes=1000)
    (point, *_) = place(cases(case), settings(devices=(8,), mesh_shape="8"), CPU)[0]
    assert point.payload_bytes is not None and point.payload_bytes % 32 == 0
    assert point.point == "all_gather/float32/1000B/8"


def test_of_more_devices_than_cores_every_second_size_is_enough() -> None:
    sizes = [CollectiveWorkload(op="all_reduce", payload_bytes=size) for size in (1024, 2048, 4096)]
    points, left_out = place(cases(*sizes), settings(devices=(2, 4), mesh_shape="4"), CPU)
    assert [p.payload_bytes for p in points] == [1024, 2048, 4096, 1024, 4096]
    assert "2048B on more devices than cores: with more devices than cores" in left_out[0]
    assert len(place(cases(*sizes, typed=True), settings(devices=(2, 4), mesh_shape="4"), CPU)[0]) == 6


# The cases that a user's experiment may return, the messages for anything else, and dry runs.


HEAD = """
import jax.numpy as jnp
from jaxbench.workloads import CaseSet
from jaxbench.workloads.cases import Array, CollectiveWorkload, KernelWorkload, TransferWorkload

def kernel(**changes):
    facts = dict(op="x", dtype="float32", elements=4, flops=None, bytes_moved=None, arguments=(Array((4,)),),
                 function=jnp.abs)
    return KernelWorkload(**{**facts, **changes})

def cases(*members, **changes):
    return CaseSet(**{**dict(name="own", view="curves", cases=members), **changes})

def build(config):
    return """


def built(expression: str, folder: Path) -> Any:
    path = folder / "own.py"
    path.write_text(HEAD + expression + "\n")
    return build_cases(config_lib.defaults("cases"), str(path))


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("None", "returned NoneType"),
        ("{}['x']", "own.py', line 15: KeyError: 'x'"),
        ("cases()", "no implementation of"),
        ("cases(kernel(), view='curve')", "has the view 'curve': did you mean 'curves'?"),
        ("cases(cases=(kernel() for _ in 'x'))", "are a generator: they must be a tuple"),
        ("cases(cases=None)", "are a NoneType: they must be a tuple"),
        ("cases('x')", "str is not a KernelWorkload"),
        ("cases(kernel(), kernel(function=jnp.exp))", "the case x/float32/4/jit, but it occurs twice"),
        ("cases(kernel(function=None))", "either a function or a prepare"),
        ("cases(kernel(arguments=()))", "at least one element"),
        ("cases(kernel(arguments=(Array((0,)),)))", "at least one element"),
        ("cases(TransferWorkload(op='to_host', payload_bytes=4))", "its op is unknown: "),
        ("cases(CollectiveWorkload(op='all_reduc', payload_bytes=4))", "did you mean 'all_reduce'?"),
        ("cases(CollectiveWorkload(op='all_reduce', payload_bytes=0))", "at least 1 byte"),
    ],
)
def test_an_unmeasurable_experiment_is_one_sentence(expression: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as said:
        built(expression, tmp_path)
    assert sentence in str(said.value)


def test_a_measurable_experiment_is_taken(tmp_path: Path) -> None:
    assert [case.key for case in built("cases(kernel(), kernel(op='y'))", tmp_path).cases] == [
        "x/float32/4/jit", "y/float32/4/jit"
    ]  # fmt: skip


def test_the_smoke_run_of_versus_is_small() -> None:
    """It had 140 points and took 15 minutes on a busy machine."""
    config = config_lib.compose("versus", discovery.load_experiment("versus"), discovery.load_preset("smoke"))
    placed, _ = place(build_cases(config, "versus"), config_lib.parse_cases(config), CPU)
    assert 0 < len(placed) <= 30 and {point.text.split()[0] for point in placed} > {"product"}


@pytest.mark.parametrize("text", ["1e400", "inf", "1k,-inf", "nan"])
def test_sizes_are_finite(text: str) -> None:
    with pytest.raises(UserError, match="is not a size"):
        build_cases(composed("stream", sizes=text), "stream")


@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), 0.0])
def test_blocks_are_finite(seconds: float) -> None:
    with pytest.raises(UserError, match="must be above 0 and finite"):
        config_lib.parse_cases(composed("stream", **{"measure.block_s": seconds}))


@pytest.mark.parametrize(
    ("name", "changes"), [("stream", {"impls": "numpy"}), ("fusion", {"impls": "op_by_op"}), ("transfer", {})]
)
def test_a_dry_run_runs_nothing(name: str, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def ran(*_: Any, **__: Any) -> None:
        raise AssertionError("a dry run ran something")

    config = composed(name, sizes="1Ki", **changes)
    points, _ = place(build_cases(config, name), settings(devices=(1,)), CPU)
    bench = CaseBench(config_lib.plain(config), name, jax.devices(), "w")
    monkeypatch.setattr(runnable, "calls", ran)
    monkeypatch.setattr(runnable, "copies", ran)
    assert bench.compile_only(points[0].to_json()).peak_bytes == points[0].resident_bytes

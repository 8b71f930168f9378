# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The cases that a user's experiment may return, the messages for anything else, and dry runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import pytest
from cases.test_placement import CPU, settings
from kernel_cases import composed

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.cases import runnable
from jaxbench.cases.case_bench import CaseBench, build_cases
from jaxbench.cases.placement import place
from jaxbench.errors import UserError

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
    return build_cases(config_lib.case_defaults(), str(path))


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

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Checks that a compiled step does not wait for the host: a timed block must need nothing from there.

If a step calls back into Python, or the host feeds or reads it while it runs, the host decides how long it takes.
Compilers implement ordinary operations by custom calls too; those are not counted. On a CPU the host executes every
custom call, so there a custom call counts unless XLA or jaxlib registers its name.
"""

from __future__ import annotations

import re
from typing import Any

from jaxbench.measure.hlo import Instruction, parse
from jaxbench.records.schema import Verdict
from jaxbench.workloads.jaxprs import equations

# jax's callbacks: xla_ffi_python_cpu_callback, xla_ffi_partitioned_python_gpu_callback, xla_python_cpu_callback.
_CALLBACK = re.compile(r'custom_call_target="\w*python\w*callback"')
_TARGET = re.compile(r'custom_call_target="([^"]*)"')
# XLA's and jaxlib's on a CPU: top-k, LAPACK and sparse products, libraries of kernels, and marks that do nothing.
_OWN = re.compile(r"TopK|lapack_|blas_|cpu_|__|annotate_|Sharding|SPMD|xla\.|AllocateBuffer|PadToStatic|SliceToDynamic")
_OPERATION = re.compile(r'op_name="(?:[^"]*/)?([^"/]+)"')
_FEEDS = frozenset({"infeed", "outfeed"})
_SENDS = frozenset({"send", "recv"})  # between devices, unless they are marked


def find(hlo: str, jaxpr: Any = None, *, platform: str = "") -> tuple[str, ...]:
    """The program's requests to the host, each listed once: the operation and, if `jaxpr` has them, the names of the
    Python functions.

    hlo: optimized text of one module. jaxpr: of the same step. platform: of the devices that it is compiled for.
    """
    lines = list(parse(hlo).instructions.values())
    operations = dict.fromkeys(map(_operation, filter(_of_host, lines)))
    names = _functions(jaxpr) if jaxpr is not None and operations else {}
    known = [f"{name} of '{', '.join(names[name])}'" if name in names else name for name in operations]
    unknown = dict.fromkeys(filter(None, map(_unknown, lines))) if platform == "cpu" else {}
    return (*known, *(f"a custom call '{name}', which is none of XLA's or jaxlib's" for name in unknown))


def judge(calls: tuple[str, ...]) -> Verdict:
    """The verdict "host". calls: as `find` returns them."""
    reason = "the compiled step has no callback, infeed or outfeed: nothing comes from the host"
    if calls:
        reason = f"the compiled step does NOT run by itself, it waits for the host: {', '.join(calls)}"
    return Verdict(name="host", ok=not calls, reason=reason, value=len(calls), limit=0)


def _of_host(line: Instruction) -> bool:
    if line.opcode == "custom-call":
        return _CALLBACK.search(line.rest) is not None
    return line.opcode in _FEEDS or (line.opcode in _SENDS and "is_host_transfer=true" in line.rest)


def _unknown(line: Instruction) -> str:
    """The target of a custom call that comes from neither the compiler nor jaxlib; "" for other instructions."""
    named = _TARGET.search(line.rest) if line.opcode == "custom-call" and not _of_host(line) else None
    return "" if named is None or _OWN.match(named[1]) else named[1]


def _operation(line: Instruction) -> str:
    """The primitive that an instruction comes from, such as pure_callback; its opcode if the text does not tell."""
    named = _OPERATION.search(line.rest)
    return named[1] if named and line.opcode == "custom-call" else line.opcode


def _functions(jaxpr: Any) -> dict[str, list[str]]:
    """The names of the Python functions that a step calls back, by primitive."""
    names: dict[str, list[str]] = {}
    for equation in equations(jaxpr):
        function = getattr(equation.params.get("callback"), "callback_func", None)
        if function is not None:
            found = names.setdefault(equation.primitive.name, [])
            name = getattr(function, "__name__", type(function).__name__)
            found.extend([name] if name not in found else [])
    return names

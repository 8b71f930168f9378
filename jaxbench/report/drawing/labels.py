# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Labels in figures. Records, JSON and CSV keep the ids; `display` turns an id into the field's terms."""

from __future__ import annotations

import re

from jaxbench.analysis.quantities import payload
from jaxbench.analysis.waterfall import CALLED, SLOWEST_PROCESS, STAGE_WORK

_WORDS = {
    **CALLED,
    SLOWEST_PROCESS: "straggler",
    STAGE_WORK: "stage imbalance",
    "jit+copies": "jit incl. copies",
    "op_by_op": "op by op",
}
_OPERATIONS = re.compile(r"\b(all_(?:reduce|gather|to_all)|reduce_scatter|(?:host|device)_to_(?:host|device))\b")
_POINT = re.compile(r"([\w+]+)/(strong|weak)/(\d+)(/?)")
_CASE = re.compile(r"^[\w+]+/[a-z]+\d+/")
_LEVER = re.compile(
    r"\b([a-z]{5,}|mesh)=(?=\S)"
)  # a lever and its value; a mesh such as "data=2" stays in the field's notation
_AXES = ("data", "tensor", "stage", "context", "expert")
_RATE = re.compile(r"\b(\d+)([kmg])bit\b")
_SIZE = re.compile(r"\b(\d+)B\b")
_DEVICE = re.compile(r"\b(cpu|gpu|tpu):(\d+)")


def display(name: str) -> str:
    """An id in words: "jit_auto/strong/1" -> "jit_auto, strong, 1 device"; "all_reduce" -> "all-reduce"."""
    if name in _WORDS:
        return _WORDS[name]
    name = _POINT.sub(lambda m: f"{m[1]}, {m[2]}, {m[3]} device{'s' * (m[3] != '1')}{', ' * bool(m[4])}", name)
    if _CASE.match(name):
        name = name.replace("/", ", ")
    name = _LEVER.sub(lambda m: m[0] if m[1] in _AXES else f"{m[1]}: ", name)
    name = _RATE.sub(lambda m: f"{m[1]} {m[2].upper() if m[2] != 'k' else 'k'}bit/s", name)
    name = _SIZE.sub(lambda m: payload(float(m[1])), name).replace("->", " → ")
    name = _DEVICE.sub(lambda m: f"{m[1].upper()} {m[2]}", name)
    for id in ("jit+copies", "op_by_op"):
        name = name.replace(id, _WORDS[id])
    name = re.sub(r"\bcores(\d+)\b", lambda m: f"{m[1]} core{'s' * (m[1] != '1')}", name)
    return _OPERATIONS.sub(lambda m: m[1].replace("_", " " if "device" in m[1] else "-"), name)

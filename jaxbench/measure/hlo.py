# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The text of a compiled program as instructions and computations."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) .*\{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?(?P<name>[\w.\-]+) = .*? (?P<opcode>[a-z][a-z0-9\-]*)\((?P<rest>.*)$")


@dataclass(frozen=True)
class Instruction:
    """One line of HLO text. rest: everything behind the opening bracket of its operands."""

    opcode: str
    rest: str


@dataclass
class Module:
    """Optimised HLO text, parsed. instructions: by name; computations: their instructions' names, in an order in which
    each comes after what it uses. entry: the name of the computation that is run."""

    name: str = ""
    entry: str = ""
    instructions: dict[str, Instruction] = field(default_factory=dict)
    computations: dict[str, list[str]] = field(default_factory=dict)


def parse(hlo: str) -> Module:
    """Reads `compiled.as_text()`; "" gives an empty module."""
    module, inside = Module(), ""
    for line in hlo.splitlines():
        if line.startswith("HloModule "):
            module.name = re.split(r"[ ,]", line)[1]
        elif found := _INSTRUCTION.match(line):
            module.instructions[found["name"]] = Instruction(found["opcode"], found["rest"])
            module.computations.setdefault(inside, []).append(found["name"])
        elif found := _COMPUTATION.match(line):
            inside = found[1]
            module.entry = inside if line.startswith("ENTRY") else module.entry
    return module

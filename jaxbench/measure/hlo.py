# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The text of a compiled program as instructions and computations."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) .*\{$")
_INSTRUCTION = re.compile(
    r"^\s+(?:ROOT )?%?(?P<name>[\w.\-]+) = (?P<type>.*?) (?P<opcode>[a-z][a-z0-9\-]*)\((?P<rest>.*)$"
)
_BODY = re.compile(r"\bbody=%?([\w.\-]+)")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_CALLED = re.compile(r"(?:calls|to_apply|body|condition|(?:true|false)_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")


@dataclass(frozen=True)
class Instruction:
    """One line of HLO text. type: of its result. rest: everything behind the opening bracket of its operands."""

    opcode: str
    rest: str
    type: str = ""

    def calls(self) -> dict[str, int]:
        """The computations it runs, and how often: a loop's body as often as XLA knows that it turns, else once."""
        names = _CALLED.findall(self.rest)
        for branches in _BRANCHES.findall(self.rest):
            names += [name.strip().lstrip("%") for name in branches.split(",")]
        body, trips = _BODY.search(self.rest), _TRIPS.search(self.rest)
        turns = {body[1]: int(trips[1])} if body and trips else {}
        return {name: turns.get(name, 1) for name in names}


@dataclass
class Module:
    """Optimised HLO text, parsed. instructions: by name; computations: their instructions' names, in an order in which
    each comes after what it uses. entry: the name of the computation that is run."""

    name: str = ""
    entry: str = ""
    instructions: dict[str, Instruction] = field(default_factory=dict)
    computations: dict[str, list[str]] = field(default_factory=dict)

    def turns(self) -> dict[str, int]:
        """How often each computation runs in one run of the program, each branch of a condition counted in full."""
        found = dict.fromkeys(self.computations, 0)

        def visit(name: str, times: int) -> None:
            found[name] += times
            for instruction in self.computations[name]:
                for called, often in self.instructions[instruction].calls().items():
                    if called in self.computations:
                        visit(called, times * often)

        if self.entry in self.computations:  # "" holds what stands in no computation, a fragment of a text
            visit(self.entry, 1)
        return found


def parse(hlo: str) -> Module:
    """Reads `compiled.as_text()`; "" gives an empty module."""
    module, inside = Module(), ""
    for line in hlo.splitlines():
        if line.startswith("HloModule "):
            module.name = re.split(r"[ ,]", line)[1]
        elif found := _INSTRUCTION.match(line):
            module.instructions[found["name"]] = Instruction(found["opcode"], found["rest"], found["type"])
            module.computations.setdefault(inside, []).append(found["name"])
        elif found := _COMPUTATION.match(line):
            inside = found[1]
            module.entry = inside if line.startswith("ENTRY") else module.entry
    return module

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The text of a compiled program as instructions and computations, as XLA's CPU, GPU and TPU compilers print it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) .*\{$")
_INSTRUCTION = re.compile(
    r"^\s+(?P<root>ROOT )?%?(?P<name>[\w.\-]+) = (?P<type>.*?) (?P<opcode>[a-z][a-z0-9\-]*)\((?P<rest>.*)$"
)
_OPERAND = re.compile(r"%([\w.\-]+)")
_BODY = re.compile(r"\bbody=%?([\w.\-]+)")
_CONDITION = re.compile(r"\bcondition=%?([\w.\-]+)")
_TRIPS = re.compile(r'known_trip_count"?:\{"n":"(\d+)"\}')
_CALLED = re.compile(
    r"\b(?:calls|to_apply|body|condition|called_computations|(?:true|false)_computation)=\{?%?([\w.\-]+)"
)
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_INDEX = re.compile(r"\bindex=(\d+)")
_NUMBER = re.compile(r"^(-?\d+)\)")
# What hands a number on as it is.
_SAME = ("copy", "bitcast", "convert", "reshape")


@dataclass(frozen=True)
class Instruction:
    """One line of HLO text. type: of its result. rest: everything behind the opening bracket of its operands."""

    opcode: str
    rest: str
    type: str = ""
    name: str = ""

    @property
    def operands(self) -> list[str]:
        return _OPERAND.findall(self.rest.split("), ")[0])

    @property
    def branches(self) -> list[str]:
        """The computations of a conditional, of which one is run."""
        found = _BRANCHES.search(self.rest)
        return [name.strip().lstrip("%") for name in found[1].split(",")] if found else []

    @property
    def called(self) -> list[str]:
        """All computations that it runs."""
        return _CALLED.findall(self.rest) + self.branches


@dataclass
class Module:
    """Optimised HLO text, parsed. instructions: by name; computations: their instructions' names, in an order in which
    each comes after what it uses; roots: their results. entry: the name of the computation that is run."""

    name: str = ""
    entry: str = ""
    instructions: dict[str, Instruction] = field(default_factory=dict)
    computations: dict[str, list[str]] = field(default_factory=dict)
    roots: dict[str, str] = field(default_factory=dict)

    def turns(self) -> dict[str, int]:
        """How often each computation runs in one run of the program: a loop's body as often as `trip_count` says, once
        where that is not known; each branch of a condition in full."""
        found = dict.fromkeys(self.computations, 0)

        def visit(name: str, times: int) -> None:
            found[name] += times
            for instruction in map(self.instructions.__getitem__, self.computations[name]):
                body = _BODY.search(instruction.rest)
                for called in instruction.called:
                    often = (self.trip_count(instruction) or 1) if body and called == body[1] else 1
                    if called in self.computations:
                        visit(called, times * often)

        if self.entry in self.computations:  # "" holds what stands in no computation, a fragment of a text
            visit(self.entry, 1)
        return found

    def trip_count(self, loop: Instruction) -> int | None:
        """How often the body of a `while` runs; None where the text does not tell.

        XLA's CPU and GPU compilers write it down. Its TPU compiler does not; there the loop's own text is read:
        `while i < end: i += step`, with numbers for the first value, the end and the step.
        """
        if known := _TRIPS.search(loop.rest):
            return int(known[1])
        condition, body = _CONDITION.search(loop.rest), _BODY.search(loop.rest)
        test = self.instructions.get(self.roots.get(condition[1], "")) if condition else None
        carried = self.instructions.get(loop.operands[0]) if loop.operands else None
        after = self.instructions.get(self.roots.get(body[1], "")) if body else None
        if test is None or carried is None or after is None or {carried.opcode, after.opcode} != {"tuple"}:
            return None
        if test.opcode != "compare" or "direction=LT" not in test.rest or len(test.operands) != 2:
            return None
        counter, end = self._place(test.operands[0]), self._number(test.operands[1])
        if counter is None or end is None:
            return None
        first, step = self._number(carried.operands[counter]), self._step(after.operands[counter], counter)
        return max(0, -(-(end - first) // step)) if first is not None and step else None

    def _place(self, name: str) -> int | None:
        """The place in its tuple of a value that is taken out of one."""
        taken = self.instructions.get(name)
        index = _INDEX.search(taken.rest) if taken is not None and taken.opcode == "get-tuple-element" else None
        return int(index[1]) if index else None

    def _number(self, name: str) -> int | None:
        """The value of an integer constant, through what hands it on as it is."""
        found = self.instructions.get(name)
        while found is not None and found.opcode in _SAME and found.operands:
            found = self.instructions.get(found.operands[0])
        value = _NUMBER.match(found.rest) if found is not None and found.opcode == "constant" else None
        return int(value[1]) if value else None

    def _step(self, name: str, place: int) -> int | None:
        """What a loop's body adds to the value at `place`."""
        added = self.instructions.get(name)
        if added is None or added.opcode != "add" or self._place(added.operands[0]) != place:
            return None
        return self._number(added.operands[1])


def parse(hlo: str) -> Module:
    """Reads `compiled.as_text()`; "" gives an empty module."""
    module, inside = Module(), ""
    for line in hlo.splitlines():
        if line.startswith("HloModule "):
            module.name = re.split(r"[ ,]", line)[1]
        elif found := _INSTRUCTION.match(line):
            name = found["name"]
            module.instructions[name] = Instruction(found["opcode"], found["rest"], found["type"], name)
            module.computations.setdefault(inside, []).append(name)
            if found["root"]:
                module.roots[inside] = name
        elif found := _COMPUTATION.match(line):
            inside = found[1]
            module.entry = inside if line.startswith("ENTRY") else module.entry
    return module

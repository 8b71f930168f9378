# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Parses the text of a compiled program, as XLA's CPU, GPU and TPU compilers print it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

# bf16[8,128]{1,0:T(8,128)}: dtype, shape, and a layout that not every compiler prints.
_ARRAY = re.compile(r"\b(pred|bf16|[sufc]\d+\w*)\[([\d,]*)\](\{[^}]*\})?")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) .*\{$")
_INSTRUCTION = re.compile(
    r"^\s+(?P<root>ROOT )?%?(?P<name>[\w.\-]+) = (?P<type>.*?) (?P<opcode>[a-z][a-z0-9\-]*)\((?P<rest>.*)$"
)
_REFERENCE = re.compile(r"%([\w.\-]+)")
# name="text" | name={text} | name=%text
_ATTRIBUTE = re.compile(r'\b(\w+)=(?:"([^"]*)"|\{([^{}]*)\}|%?([^\s,{}"]+))')
_TRIPS = re.compile(r'known_trip_count"?:\{"n":"(\d+)"\}')  # in the JSON of a loop's backend_config
# The attributes that name computations which the instruction runs, in addition to the branches of a conditional.
_RUNS = ("calls", "to_apply", "body", "condition", "called_computations")
_NUMBER = re.compile(r"^(-?\d+)\)")  # of a constant: "4)" in `constant(4)`
# Names of scopes in which a program has conditionals of a known kind. ALIKE: the branches do the same work, each with
# other parameters. ONE_IN: followed by a number, how many times it runs for each time that the longer branch is taken.
# A loop of no turn or of one is such a conditional, too. INSTEAD: it runs instead of another that does the same work.
ALIKE, ONE_IN, INSTEAD = "alike_branches", "one_in_", "instead_of_another"
_SELDOM = re.compile(rf"{ONE_IN}(\d+)/[^/]*$")
_SCOPE = re.compile(r'op_name="([^"]*)"')
# Operations that pass an integer on unchanged.
_SAME = ("copy", "bitcast", "convert", "reshape")


@dataclass(frozen=True)
class Array:
    """An array in an HLO type. layout: the text in braces after its shape; "" without one."""

    dtype: str
    shape: tuple[int, ...]
    layout: str = ""

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        # The first number of a dtype is its width, also in names such as f8e4m3fn.
        bits = 8 if self.dtype == "pred" else int(re.findall(r"\d+", self.dtype)[0])
        return self.size * max(1, bits // 8)  # narrower numbers, such as s4, count as a byte each


def arrays(text: str) -> tuple[Array, ...]:
    """The arrays of an HLO type."""
    return tuple(
        Array(dtype, tuple(int(side) for side in shape.split(",") if side), layout)
        for dtype, shape, layout in _ARRAY.findall(text)
    )


@dataclass(frozen=True)
class Instruction:
    """One line of HLO text. type: that of its result. rest: the text after the opening parenthesis of its operands."""

    opcode: str
    rest: str
    type: str = ""
    name: str = ""

    @property
    def kind(self) -> str:
        """The opcode; for the start of an asynchronous pair, that of the synchronous operation."""
        return self.opcode.removesuffix("-start")

    @cached_property
    def operands(self) -> list[str]:
        return _REFERENCE.findall(self.rest.split("), ")[0])  # what follows are attributes, which name computations

    @cached_property
    def references(self) -> list[str]:
        """Everything that the line names: operands, computations, instructions that must run first."""
        return _REFERENCE.findall(self.rest)

    @cached_property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays of its result."""
        return arrays(self.type)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its result, or of the first of several; () if unknown."""
        return self.arrays[0].shape if self.arrays else ()

    @cached_property
    def attributes(self) -> dict[str, str]:
        """The attributes by name, without quotes and braces. Of several with one name, the first."""
        found: dict[str, str] = {}
        for name, *texts in _ATTRIBUTE.findall(self.rest):
            found.setdefault(name, next(filter(None, texts), ""))
        return found

    @property
    def target(self) -> str:
        """The function that a custom call runs; "" for other instructions."""
        return self.attributes.get("custom_call_target", "") if self.opcode == "custom-call" else ""

    @property
    def branches(self) -> list[str]:
        """The computations of a conditional; exactly one of them runs."""
        # XLA names those of a conditional over a truth value apart from those of a switch.
        named = ("branch_computations", "true_computation", "false_computation")
        return [name for attribute in named for name in self._named(attribute)]

    @property
    def taken(self) -> list[str]:
        """The branches of a conditional that count as taken: one of those that are alike, else all."""
        return self.branches[:1] if f"{ALIKE}/" in self.rest else self.branches

    @property
    def seldom(self) -> int:
        """How many times a conditional, or a loop that is one, runs for each time that its longer branch is taken, by
        the name of its scope; 0 for any other instruction."""
        scope = _SCOPE.search(self.rest) if self.branches or self.body else None
        named = _SELDOM.search(scope[1]) if scope else None
        return int(named[1]) if named else 0

    @property
    def instead(self) -> bool:
        """Whether it is a loop that runs instead of another that does the same work."""
        scope = _SCOPE.search(self.rest) if self.body else None
        return scope is not None and scope[1].rpartition("/")[0].endswith(INSTEAD)

    @property
    def body(self) -> str:
        """The computation that a `while` repeats; "" for any other instruction."""
        return self.attributes.get("body", "")

    @cached_property
    def called(self) -> list[str]:
        """All computations that the instruction runs."""
        return [name for attribute in _RUNS for name in self._named(attribute)] + self.branches

    def _named(self, attribute: str) -> list[str]:
        """The names that an attribute lists."""
        return re.findall(r"[\w.\-]+", self.attributes.get(attribute, ""))

    def dims(self, attribute: str) -> list[int]:
        """The dimensions that an attribute lists, such as `lhs_contracting_dims={1,2}`; [] without it."""
        return [int(text) for text in re.findall(r"\d+", self.attributes.get(attribute, ""))]


@dataclass
class Module:
    """Optimized HLO text, parsed. instructions: by name. computations: the names of their instructions, each after its
    operands. roots: the results of computations. entry: the name of the computation that runs first."""

    name: str = ""
    entry: str = ""
    instructions: dict[str, Instruction] = field(default_factory=dict)
    computations: dict[str, list[str]] = field(default_factory=dict)
    roots: dict[str, str] = field(default_factory=dict)

    def lines(self, computation: str) -> list[Instruction]:
        """The instructions of a computation; [] if the text lacks it."""
        return [self.instructions[name] for name in self.computations.get(computation, ())]

    def turns(self) -> dict[str, int]:
        """How often each computation runs in one run of the program.

        The body of a loop runs `trip_count` times, or counts once if that is unknown. Every branch of a conditional
        counts as if it were taken, except that one of several alike stands for all.
        """
        counts = dict.fromkeys(self.computations, 0)

        def visit(name: str, times: int) -> None:
            counts[name] += times
            for instruction in self.lines(name):
                ran = instruction.taken if instruction.branches else instruction.called
                for called in ran:
                    known = self.trip_count(instruction) if called == instruction.body else 1
                    trips = 1 if known is None else known
                    if called in self.computations and trips:
                        visit(called, times * trips)

        if self.entry in self.computations:  # "" holds instructions outside any computation, in a fragment of a text
            visit(self.entry, 1)
        return counts

    def trip_count(self, loop: Instruction) -> int | None:
        """How often the body of a `while` runs; None if the text does not tell.

        XLA's CPU and GPU compilers print this number. Its TPU compiler does not, so the number is computed for loops of
        the form `while i < end: i += step` with a constant first value, end and step. A loop that is a conditional
        (`seldom`) counts as if it were taken, and one that runs instead of another does not count.
        """
        if loop.seldom or loop.instead:
            return int(not loop.instead)
        if known := _TRIPS.search(loop.rest):
            return int(known[1])
        test = self.instructions.get(self.roots.get(loop.attributes.get("condition", ""), ""))
        carried = self.instructions.get(loop.operands[0]) if loop.operands else None
        after = self.instructions.get(self.roots.get(loop.body, ""))
        if test is None or carried is None or after is None or {carried.opcode, after.opcode} != {"tuple"}:
            return None
        # Any other loop stays unknown. A wrong count would multiply collectives and FLOPs without a trace.
        if test.opcode != "compare" or test.attributes.get("direction") != "LT" or len(test.operands) != 2:
            return None
        counter, end = self._place(test.operands[0]), self._number(test.operands[1])
        if counter is None or end is None:
            return None
        first, step = self._number(carried.operands[counter]), self._step(after.operands[counter], counter)
        return max(0, -(-(end - first) // step)) if first is not None and step else None

    def _place(self, name: str) -> int | None:
        """The index of a value that is extracted from a tuple, and possibly copied or converted."""
        taken = self._source(name)
        return taken.dims("index")[0] if taken is not None and taken.opcode == "get-tuple-element" else None

    def _number(self, name: str) -> int | None:
        """The value of an integer constant, possibly copied or converted."""
        source = self._source(name)
        value = _NUMBER.match(source.rest) if source is not None and source.opcode == "constant" else None
        return int(value[1]) if value else None

    def _source(self, name: str) -> Instruction | None:
        """The instruction of a value, before copies and conversions of it."""
        source = self.instructions.get(name)
        while source is not None and source.opcode in _SAME and source.operands:
            source = self.instructions.get(source.operands[0])
        return source

    def _step(self, name: str, place: int) -> int | None:
        """What a loop's body adds to its carried value at index `place`."""
        added = self.instructions.get(name)
        if added is None or added.opcode != "add" or self._place(added.operands[0]) != place:
            return None
        return self._number(added.operands[1])


def _whole_lines(hlo: str) -> Iterator[str]:
    """The lines of a text, each instruction on one. The metadata of a TPU's kernel breaks the line of its instruction
    after an opening brace, and its closing brace begins the last part."""
    begun = ""
    for line in hlo.splitlines():
        if begun and not line.startswith("}"):
            begun += line
        elif line.endswith("{") and _INSTRUCTION.match(line):  # unlike the first line of a computation
            begun = line
        else:
            yield begun + line
            begun = ""


def parse(hlo: str) -> Module:
    """Reads `compiled.as_text()`; "" gives an empty module."""
    module, inside = Module(), ""
    for line in _whole_lines(hlo):
        if line.startswith("HloModule "):
            module.name = re.split(r"[ ,]", line)[1]
        elif match := _INSTRUCTION.match(line):  # indented, unlike the first line of a computation
            name = match["name"]
            module.instructions[name] = Instruction(match["opcode"], match["rest"], match["type"], name)
            # By name over the whole module, because XLA gives every instruction of a module its own name.
            module.computations.setdefault(inside, []).append(name)
            if match["root"]:
                module.roots[inside] = name
        elif match := _COMPUTATION.match(line):
            inside = match[1]
            module.entry = inside if line.startswith("ENTRY") else module.entry
    return module

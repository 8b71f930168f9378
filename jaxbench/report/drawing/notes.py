# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Words in figures: labels of ids, and footnotes. Records, JSON and CSV keep the ids."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxbench.analysis.quantities import payload
from jaxbench.analysis.run_rows import Row
from jaxbench.analysis.waterfall import SLOWEST_PROCESS, STAGE_WORK, TERMS
from jaxbench.digits import counted
from jaxbench.statistics.bootstrap import MIN_ROUNDS

HOLLOW = "hollow: more devices than cores, so the result is checked but its speed means nothing"
FAKE = "fake devices beyond the cores prove bytes and arithmetic, never speed"
WRONG = "large black x: failed its checks"
REFUSED = "small grey x: not trusted, for the reason in the table, and so on no line"
PUBLISHED = "hollow, dotted grey: published by others, not measured here"
EXACT = "bytes are exact, so their marks are filled with more devices than cores, too"
BARS = "error bars: 95 % confidence intervals"
_WORDS = {
    **TERMS,
    SLOWEST_PROCESS: "straggler",
    STAGE_WORK: "stage imbalance",
    "jit+copies": "jit incl. copies",
    "op_by_op": "op by op",
}
_OPERATIONS = re.compile(r"\b(all_(?:reduce|gather|to_all)|reduce_scatter|(?:host|device)_to_(?:host|device))\b")
_POINT = re.compile(r"([\w+]+)/(strong|weak)/(\d+)(/?)")
_CASE = re.compile(r"^[\w+]+/[a-z]+\d+/")
# In a sentence: ids of points and of cases.
_SETTING = r"\w+=[^\s,;:()]+(?::\d+)?"
_IDS = re.compile(rf"(?<![\w/.])([\w+]+)/(strong|weak)/(\d+)((?:/{_SETTING}(?:,{_SETTING})*)*)(?![\w/]|\.\w)")
_CASES = re.compile(
    r"(?<![\w/.])([\w+]+)/((?:b?float|u?int|bool|complex)\d*)/"
    r"((?:(?:\d+ rows?|seed \d+|[^\s,;()/]+)/)*[^\s,;()/]+?)(?=[.,;:)]*(?:\s|$))"
)
_COPIED = re.compile(r"\b(host|[cgt]pu:\d+)->(host|[cgt]pu:\d+)")
_TOLD = re.compile(rf"(?<![=\w/.'])(?:{_OPERATIONS.pattern})(?![=\w/.'])")  # not in a command or a file's name
# With its value. A flag is to be typed, and "data=2" of a mesh stays in the field's notation.
_LEVER = re.compile(r"(?<![-.])\b([a-z]{5,}|mesh)=(?=\S)")
_AXES = ("data", "tensor", "stage", "context", "expert")
_RATE = re.compile(r"\b(\d+)([kmg])bit\b")
_SIZE = re.compile(r"\b(\d+)B\b")
_DEVICE = re.compile(r"\b(cpu|gpu|tpu):(\d+)")


def of_marks(rows: Sequence[Row], *, fake: bool = False) -> list[str]:
    """The footnotes on error bars, sample sizes and marks that these rows need.

    fake: all devices are fake.
    """
    return [*of_times(rows, "per point"), *of_states(rows, fake=fake)]


def of_states(rows: Sequence[Row], *, fake: bool = False) -> list[str]:
    """The footnotes on marks that are not filled, if these rows or arms have any. fake: all devices are fake."""
    notes = []
    if any(row.point.oversubscribed and row.timing.step_s.known for row in rows):
        notes.append(f"hollow: more devices than cores; {FAKE}" if fake else HOLLOW)
    if any(row.gate == "refused" and not row.wrong for row in rows):
        notes.append(REFUSED)
    if any(row.wrong for row in rows):
        notes.append(WRONG)
    return notes


def of_times(rows: Sequence[Row], each: str, *, what: str = "", of: str = "") -> list[str]:
    """The footnotes on error bars and on the blocks, rounds and processes of `each` row; [] if nothing was timed.

    what: the start of the note. of: a remark on the intervals.
    """
    timed = [row for row in rows if row.timing.step_s.known]
    if not timed:
        return []
    bars = [row.timing.step_s.has_interval for row in timed if not row.point.oversubscribed]  # hollow marks have none
    # Ranges, because points have different numbers of rounds (measure.rounds=auto).
    n = n_of([(row.timing.samples, row.timing.rounds, row.timing.processes) for row in timed])
    notes = [f"{what}{f'{BARS}{of}; ' if any(bars) else ''}{n} {each}"]
    return notes if all(bars) else [*notes, f"no error bar: fewer than {MIN_ROUNDS} rounds"]


def n_of(every: Sequence[tuple[int, ...]]) -> str:
    """`marks.Mark.n` of several marks in words: "n = 10 blocks in 5 rounds of 5 processes", or "n = 3 seeds"."""
    if len(every[0]) == 1:
        return f"n = {_span([n[0] for n in every], 'seed')}"
    sizes = zip(zip(*every, strict=True), ("block", "round", "process"), strict=True)
    blocks, rounds, processes = (_span(values, noun) for values, noun in sizes)
    return f"n = {blocks} in {rounds} of {processes}"


def cited(source: str) -> str:
    """The footnote for published series. source: who published them and where."""
    return f"{PUBLISHED}. {source}"


def rest(shown: int, every: int, which: str) -> list[str]:
    """[a note] if the figure has fewer marks than the table, else []. which: the selection that is drawn."""
    return [f"{shown} of {every} {which}; the table has all"] if shown < every else []


def _span(values: Sequence[int], noun: str) -> str:
    """ "1 round", "5 rounds", "5 to 30 rounds"."""
    low, high = min(values), max(values)
    return ("" if low == high else f"{low} to ") + counted(high, noun)


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
    for implementation in ("jit+copies", "op_by_op"):  # also inside a longer name
        name = name.replace(implementation, _WORDS[implementation])
    name = re.sub(r"\bcores(\d+)\b", lambda m: f"{m[1]} core{'s' * (m[1] != '1')}", name)
    return _OPERATIONS.sub(lambda m: m[1].replace("_", " " if "device" in m[1] else "-"), name)


def spoken(sentence: str) -> str:
    """A sentence with the ids of its points in words: "jit_auto/strong/2" -> "jit_auto strong on 2 devices".

    Names of cases have no comma between their parts, because sentences list them: "copy float32 4,096 jit on 1 core".
    """
    words = _CASES.sub(_spoken_case, _IDS.sub(_spoken_point, sentence))
    words = _COPIED.sub(lambda m: f"{display(m[1])} → {display(m[2])}", words)
    return _TOLD.sub(lambda m: display(m[0]), words)


def _spoken_point(found: re.Match[str]) -> str:
    levers = ", ".join(display(each) for each in re.split("[/,]", found[4]) if each)
    return f"{found[1]} {found[2]} on {counted(int(found[3]), 'device')}" + (f" ({levers})" if levers else "")


def _spoken_case(found: re.Match[str]) -> str:
    rest, at, platform = found[3].partition("@")
    sizes = [f"{int(part):,}" if part.isdigit() else display(part) for part in rest.split("/")]
    parts = [display(found[1]), found[2], *sizes]
    words = [f"on {part}" if re.fullmatch(r"\d+ cores?", part) else part for part in parts]
    if _SIZE.fullmatch(rest.partition("/")[0]) and words[-1].isdigit():  # a collective
        words[-1] = f"on {counted(int(words[-1]), 'device')}"
    return " ".join([*words, *([f"on {platform.upper()}"] if at else [])])

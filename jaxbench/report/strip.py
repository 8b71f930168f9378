# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The block timeline of a point: its warm-up and timed blocks in order, as a small SVG in the colours of its page.

A mark takes ten bytes, so a timeline holds every block. `figures/blocks.py` draws all points on one clock instead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from jaxbench.records.schema import RoundRecord

WIDTH, HEIGHT, EDGE = 1000, 150, 8  # in units of the drawing; EDGE: the distance of marks from its border
SPEED = 50  # the height of the band of the machine's speed
LONGEST = 2.0  # a block that takes longer than this many medians is drawn at the upper edge


@dataclass(frozen=True, kw_only=True)
class Strip:
    """SVG elements, made from numbers alone, and their caption."""

    svg: str
    caption: str


def draw(rounds: Sequence[RoundRecord]) -> Strip | None:
    """The timeline of rounds in the order of measurement; None without a timed block.

    Heights are times per step, linear, from the shortest timed block to the longest or to `LONGEST` medians.
    """
    marks = [(number, kind, seconds) for number, each in enumerate(rounds) for kind, seconds, _ in _blocks(each)]
    probes = [probe for each in rounds for *_, probe in _blocks(each)]
    timed = [seconds for _, kind, seconds in marks if kind != "warm"]
    if not timed:
        return None
    low, middle, high = min(timed), float(np.median(timed)), max(timed)
    high = min(high, LONGEST * middle)
    step = (WIDTH - 2 * EDGE) / max(1, len(marks) - 1)
    process = _processes(rounds)
    rules, dots = [], defaultdict(list)
    for place, (number, kind, seconds) in enumerate(marks):
        if place and number != marks[place - 1][0]:
            rules.append(f"M{EDGE + (place - 0.5) * step:.1f} 0v{HEIGHT}")
        dots[f"{kind} p{process[number] % 2}"].append(f"M{EDGE + place * step:.1f} {_y(seconds, low, high):.1f}h0")
    paths = {"rule": rules, "median": [f"M0 {_y(middle, low, high):.1f}h{WIDTH}"], **dict(sorted(dots.items()))}
    paths["hollow"] = [each for name, many in dots.items() if name.startswith("warm") for each in many]
    shapes = "".join(f'<path class="{name}" d="{"".join(many)}"/>' for name, many in paths.items())
    outside = sum(not low <= seconds <= high for *_, seconds in marks)
    speed, said = _speed(probes, step)
    return Strip(
        svg=_svg(HEIGHT, "blocks in the order of time", shapes) + speed,
        caption=_caption(low, middle, high, outside) + said,
    )


def _svg(height: int, label: str, shapes: str) -> str:
    return f'<svg class="strip" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">{shapes}</svg>'


def _speed(probes: Sequence[float | None], step: float) -> tuple[str, str]:
    """(a band with the machine's speed at the blocks above it, its caption); ("", "") without probes.

    probes: seconds of the probe before each block.
    """
    known = [(place, seconds) for place, seconds in enumerate(probes) if seconds is not None]
    if not known:
        return "", ""
    speeds = np.median([seconds for _, seconds in known]) / np.array([seconds for _, seconds in known])
    low, high = float(speeds.min()), float(speeds.max())
    dots = "".join(
        f"M{EDGE + place * step:.1f} {_y(speed, low, high) * SPEED / HEIGHT:.1f}h0"
        for (place, _), speed in zip(known, speeds.tolist(), strict=True)
    )
    said = (
        f" The band below is the speed of the machine during the run, from {100 * low:.0f} % of its median (bottom) to "
        f"{100 * high:.0f} % (top), from a small product before each block. No time is corrected with it."
    )
    return _svg(SPEED, "speed of the machine", f'<path class="probe p0" d="{dots}"/>'), said


def _caption(low: float, middle: float, high: float, outside: int) -> str:
    beyond = f"; blocks outside this range, drawn at its edges: {outside}" if outside else ""
    return (
        f"Every block in order of time, in ms per step, from {1e3 * low:.4g} (bottom) to {1e3 * high:.4g} (top)"
        f"{beyond}. The line is the median, {1e3 * middle:.4g}. Circle: K steps; square: 2 K steps; hollow: warm-up, "
        "which no statistic uses. A thin rule separates rounds; colours alternate between processes."
    )


def _blocks(each: RoundRecord) -> Iterator[tuple[str, float, float | None]]:
    """(kind, seconds per step, seconds of its probe) of the blocks of a round, in the order in which they ran."""
    yield from (("warm", seconds / (each.warmup_steps or each.steps), None) for seconds in each.warmup_block_s)
    probes = iter(each.probe_s)
    for one, two in zip_longest(each.block_s, each.double_block_s):
        if one is not None:
            yield "block", one / each.steps, next(probes, None)
        if two is not None:
            yield "double", two / (2 * each.steps), next(probes, None)


def _processes(rounds: Sequence[RoundRecord]) -> list[int]:
    """For each round, the index of its process in order of first appearance."""
    names = list(dict.fromkeys(each.worker for each in rounds))
    return [names.index(each.worker) for each in rounds]


def _y(seconds: float, low: float, high: float) -> float:
    share = (min(high, max(low, seconds)) - low) / (high - low) if high > low else 0.5
    return HEIGHT - EDGE - share * (HEIGHT - 2 * EDGE)

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The block timeline of a point has a mark for every block, in order of time, and names values outside its range."""

from __future__ import annotations

import dataclasses
import re

from jaxbench.records.schema import RoundRecord
from jaxbench.report import strip


def measured(
    worker: str, block_s: tuple[float, ...], double_s: tuple[float, ...], warm_s: tuple[float, ...] = ()
) -> RoundRecord:
    return RoundRecord(
        point="p", round=0, steps=2, block_s=block_s, double_block_s=double_s, warmup_block_s=warm_s, settled=True,
        compilations=0, worker=worker,
    )  # fmt: skip


def marks(svg: str, name: str) -> list[tuple[float, float]]:
    """The positions of the marks of one class: (x, y)."""
    found = re.search(rf'<path class="{name}" d="([^"]*)"', svg)
    return [] if found is None else [(float(x), float(y)) for x, y in re.findall(r"M(\S+) (\S+)h0", found[1])]


def test_every_block_is_a_mark_in_the_order_of_time() -> None:
    rounds = [measured("a", (2.0, 4.0), (4.0, 8.0), (40.0, 2.2)), measured("b", (3.0,), (6.0,), (1.0,))]
    drawn = strip.draw(rounds)
    assert drawn is not None
    block, double, warm = (marks(drawn.svg, f"{kind} p0") for kind in ("block", "double", "warm"))
    assert [len(block), len(double), len(warm)] == [2, 2, 2]
    order = [warm[0], warm[1], block[0], double[0], block[1], double[1]]
    order += [marks(drawn.svg, f"{kind} p1")[0] for kind in ("warm", "block", "double")]
    assert [x for x, _ in order] == sorted(x for x, _ in order)
    low, high = strip.HEIGHT - strip.EDGE, strip.EDGE
    heights = [high, 0.9 * low + 0.1 * high, low, low, high, high, low, (low + high) / 2, (low + high) / 2]
    assert [y for _, y in order] == [round(height, 1) for height in heights], "time per step, the slow and the fast cut"
    assert len(marks(drawn.svg, "hollow")) == 3 and drawn.svg.count("v150") == 1
    assert "from 1000 (bottom) to 2000 (top); blocks outside this range, drawn at its edges: 2" in drawn.caption
    assert "median, 1500" in drawn.caption


def test_one_far_block_does_not_flatten_the_others() -> None:
    drawn = strip.draw([measured("a", (2.0, 2.2, 2.4, 200.0), ())])
    assert drawn is not None and "to 2300 (top); blocks outside this range, drawn at its edges: 1" in drawn.caption
    assert marks(drawn.svg, "block p0")[2][1] < 140


def test_blocks_alike_lie_in_the_middle_and_nothing_has_no_strip() -> None:
    drawn = strip.draw([measured("a", (2.0, 2.0), ())])
    assert drawn is not None and {y for _, y in marks(drawn.svg, "block p0")} == {strip.HEIGHT / 2}
    assert strip.draw([]) is None and strip.draw([measured("a", (), (), (1.0,))]) is None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Probed(RoundRecord):
    probe_s: tuple[float, ...] = ()


def test_the_speed_of_the_machine_is_a_band_below_the_blocks() -> None:
    plain = [measured("a", (2.0,), (4.0,), (2.0,)), measured("b", (2.0,), ())]
    assert (drawn := strip.draw(plain)) is not None and "speed" not in drawn.caption and drawn.svg.count("<svg") == 1
    probed = [Probed(**{**vars(each), "probe_s": p}) for each, p in zip(plain, ((0.001, 0.001), (0.002,)), strict=True)]
    shown = strip.draw(probed)
    assert shown is not None and shown.svg.startswith(drawn.svg) and shown.svg.count("<svg") == 2
    band = marks(shown.svg, "probe p0")
    assert [x for x, _ in band] == [x for kind in ("block", "double") for x, _ in marks(shown.svg, f"{kind} p0")] + [
        x for x, _ in marks(shown.svg, "block p1")
    ]
    heights = [y for _, y in band]
    assert heights[0] == heights[1] < heights[2] <= strip.SPEED, "half the speed lies below"
    assert "from 50 % of its median (bottom) to 100 % (top)" in shown.caption

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The search for the largest batch: what the compiler predicts by batch, and what running it proved."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxbench.analysis.largest_batch import Proof, Search
from jaxbench.analysis.quantities import scaled
from jaxbench.report.figures import canvas
from jaxbench.report.figures.axes import log_axis, plain
from jaxbench.report.figures.canvas import COLOURS, DASHES, short
from jaxbench.report.figures.marks import bytes_tick

CAPTION = (
    "Left: memory of a step by the compiler's count for every batch that was compiled, and the batches that were then "
    "really run. Right: of those, predicted beside measured memory."
)
_OK, _FAIL, _PREDICTED = COLOURS[2], COLOURS[1], COLOURS[0]


def draw(search: Search, *, experiment: str) -> Figure | None:
    """Two panels. None when nothing was tried."""
    if not search.tried:
        return None
    figure = canvas.blank()
    left, right = figure.subplots(1, 2, width_ratios=[1.3, 1])
    _predictions(left, search)
    _proofs(right, search)
    handles = [
        Line2D([], [], color=_PREDICTED, marker="o", label="predicted by the compiler"),
        Line2D([], [], color=_OK, marker="s", linestyle="none", label="measured"),
        Line2D([], [], **DASHES, label=f"limit, {scaled(search.limit_bytes, 'B')}"),
    ]
    lines = canvas.legend(figure, handles, title=f"{experiment}: the largest batch that fits is {search.largest}")
    runs = len(search.proven)
    notes = [
        "✓: ran within the limit; ✗: did not",
        f"limit: {short(search.limit_source, 90)}. {len(search.tried)} batches compiled, {runs} run once each",
    ]
    below = canvas.footnotes(figure, notes)
    figure.set_figheight(2.1 + 0.16 * lines + 0.12 * below)
    return figure


def _predictions(axes: Axes, search: Search) -> None:
    batches, sizes = np.array(search.tried).T
    axes.plot(batches, sizes, color=_PREDICTED, marker="o", markersize=3, zorder=2)
    axes.axhline(search.limit_bytes, **DASHES, zorder=1)
    fitted, failed = ([p for p in search.proven if p.ok is ok] for ok in (True, False))
    ends = (*([max(fitted, key=_batch)] if fitted else []), *([min(failed, key=_batch)] if failed else []))
    for proof in ends:
        _verdict(axes, proof.batch, _predicted(search, proof), proof, aside=6)
    log_axis(axes, "x", base=2, show=plain, most=7)
    log_axis(axes, "y", show=bytes_tick, most=6, span=[search.limit_bytes])
    axes.set_xlabel("global batch")
    axes.set_title("memory per device, predicted", loc="left")


def _batch(proof: Proof) -> int:
    return proof.batch


def _verdict(axes: Axes, x: float, y: float, proof: Proof, *, aside: float = 0) -> None:
    """Above its measurement, so that it does not hide it; `aside`: what ran to the left, what did not to the right."""
    sign, colour = ("✓", _OK) if proof.ok else ("✗", _FAIL)
    axes.annotate(
        sign,
        (x, y),
        xytext=(-aside if proof.ok else aside, 4),
        textcoords="offset points",
        ha="center",
        fontsize=9,
        color=colour,
        weight="bold",
    ).set_in_layout(False)


def _predicted(search: Search, proof: Proof) -> float:
    """What was predicted for a batch, interpolated between those that were compiled where it was not one of them."""
    if proof.peak_bytes is not None:
        return proof.peak_bytes
    batches, sizes = np.array(search.tried).T
    return float(np.interp(proof.batch, batches, sizes))


def _proofs(axes: Axes, search: Search) -> None:
    proofs = sorted(search.proven, key=lambda proof: proof.batch)
    for place, proof in enumerate(proofs):
        axes.plot([place], [_predicted(search, proof)], color=_PREDICTED, marker="o", linestyle="none", zorder=3)
        if proof.measured_bytes:
            axes.plot([place], [proof.measured_bytes], color=_OK, marker="s", linestyle="none", zorder=3)
        _verdict(axes, place, max(_predicted(search, proof), proof.measured_bytes or 0, search.limit_bytes), proof)
    axes.axhline(search.limit_bytes, **DASHES, zorder=1)
    axes.set_xticks(range(len(proofs)), [str(proof.batch) for proof in proofs])
    axes.set_xlim(-0.6, len(proofs) - 0.4)
    low, high = axes.dataLim.y0, axes.dataLim.y1
    if math.isfinite(low) and high > low:
        axes.set_ylim(low - 0.2 * (high - low), high + 0.35 * (high - low))
    axes.yaxis.set_major_formatter(lambda value, _: scaled(value, "B"))
    axes.locator_params(axis="y", nbins=5, steps=[1, 2, 5, 10])
    axes.grid(True, axis="y")
    axes.set_xlabel("batch that was run")
    axes.set_title("predicted and measured", loc="left")

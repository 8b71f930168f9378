# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Search for the largest batch: the compiler's memory prediction for each batch, and the batches that were run."""

from __future__ import annotations

import math

import numpy as np

from jaxbench.analysis import max_batch
from jaxbench.analysis.max_batch import Search, TriedBatch
from jaxbench.analysis.quantities import scaled
from jaxbench.report.drawing import marks
from jaxbench.report.drawing.axes import bytes_tick, entitle, log_axis, plain
from jaxbench.report.drawing.kit import COLOURS, Axes, Figure, Sheet, short
from jaxbench.report.findings import Findings

VIEWS = ("training", "levers")
ORDER = 4
CAPTION = (
    "Left: predicted memory of a step for every compiled batch, and the batches that were then run. Right: predicted "
    "and measured memory of the batches that were run."
)
_OK, _FAIL, _PREDICTED = COLOURS[2], COLOURS[1], COLOURS[0]


def caption(run: Findings) -> str:
    """The findings of a run that has the result of a search."""
    search = max_batch.read(run.path)
    return CAPTION if search is None else f"{CAPTION} {search.sentence}"


def draw(run: Findings) -> Figure | None:
    """Draws two panels. None when nothing was tried."""
    search = max_batch.read(run.path)
    if search is None or not search.tried:
        return None
    sheet = Sheet(1, 2, widths=[1.3, 1])
    _predictions(sheet.panels[0, 0], search)
    _proofs(sheet.panels[0, 1], search)
    handles = [
        marks.style_handle("predicted by the compiler", color=_PREDICTED, marker="o"),
        marks.style_handle("measured", color=_OK, marker="s", linestyle="none"),
        marks.guide_handle(f"limit, {scaled(search.limit_bytes, 'B')}"),
    ]
    counts = f"{len(search.tried)} batches compiled, {len(search.proven)} run once each"
    remarks = ["✓: ran within the limit; ✗: did not", f"limit: {short(search.limit_source, 90)}. {counts}"]
    return sheet.finish(f"{run.experiment}: the largest batch that fits is {search.largest}", handles, remarks)


def _predictions(axes: Axes, search: Search) -> None:
    batches, sizes = np.array(search.tried).T
    axes.plot(batches, sizes, color=_PREDICTED, marker="o", markersize=3, zorder=2)
    marks.unity(axes, at=search.limit_bytes, along="y")
    fitted, failed = ([p for p in search.proven if p.ok is ok] for ok in (True, False))
    for proof in (*sorted(fitted, key=_batch)[-1:], *sorted(failed, key=_batch)[:1]):
        _verdict(axes, proof.batch, _predicted(search, proof), proof, aside=6)
    log_axis(axes, "x", base=2, show=plain)
    log_axis(axes, "y", show=bytes_tick, max_ticks=6, span=[search.limit_bytes])
    entitle(axes, "memory per device, predicted", x="global batch")


def _batch(proof: TriedBatch) -> int:
    return proof.batch


def _verdict(axes: Axes, x: float, y: float, proof: TriedBatch, *, aside: float = 0) -> None:
    """Writes ✓ or ✗ above the measurement; `aside` moves ✓ to the left and ✗ to the right."""
    sign, colour, side = ("✓", _OK, -aside) if proof.ok else ("✗", _FAIL, aside)
    marks.write(axes, x, y, sign, above=True, size=9, xytext=(side, 4), va="baseline", color=colour, weight="bold")


def _predicted(search: Search, proof: TriedBatch) -> float:
    """Predicted memory of a batch, interpolated if that batch was not compiled."""
    if proof.peak_bytes is not None:
        return proof.peak_bytes
    batches, sizes = np.array(search.tried).T
    return float(np.interp(proof.batch, batches, sizes))


def _proofs(axes: Axes, search: Search) -> None:
    proofs = sorted(search.proven, key=_batch)
    for place, proof in enumerate(proofs):
        axes.plot([place], [_predicted(search, proof)], color=_PREDICTED, marker="o", linestyle="none", zorder=3)
        if proof.measured_bytes:
            axes.plot([place], [proof.measured_bytes], color=_OK, marker="s", linestyle="none", zorder=3)
        _verdict(axes, place, max(_predicted(search, proof), proof.measured_bytes or 0, search.limit_bytes), proof)
    marks.unity(axes, at=search.limit_bytes, along="y")
    axes.set_xticks(range(len(proofs)), [str(proof.batch) for proof in proofs])
    axes.set_xlim(-0.6, len(proofs) - 0.4)
    axes.grid(False, axis="x")
    low, high = axes.dataLim.y0, axes.dataLim.y1
    if math.isfinite(low) and high > low:
        axes.set_ylim(low - 0.2 * (high - low), high + 0.35 * (high - low))
    axes.yaxis.set_major_formatter(lambda value, _: scaled(value, "B"))
    axes.locator_params(axis="y", nbins=5, steps=[1, 2, 5, 10])
    entitle(axes, "predicted and measured", x="batch that was run")

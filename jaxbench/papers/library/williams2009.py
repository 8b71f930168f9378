# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Williams et al. 2009, Hockney 1994, Amdahl, Gustafson and Gunther: laws for a machine's numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxbench.analysis import scaling_laws
from jaxbench.analysis.alpha_beta import AlphaBetaFit
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.papers import targets
from jaxbench.papers.evidence import Evidence, NotTestable
from jaxbench.papers.paper import Claim, Ours, Panel, Paper, PublishedSeries, Reader, Reading, Run, curve
from jaxbench.report.drawing import marks


def under_the_roof(found: Evidence) -> Reading:
    """The largest share of its roof that any kernel reached in a run after the machine profile."""
    rows = [row for row in found.cases("kernels").rows if row.peak_share.known and row.point.reportable]
    if not rows:
        raise NotTestable("No kernel has a share of a measured roof: the machine's card is missing.")
    top = max(rows, key=lambda row: row.peak_share.value)
    size = top.point.shape or f"of {top.point.elements:,} numbers"
    return Reading(top.peak_share, f"{len(rows)} kernels, the nearest is {top.point.op} {size}")


def alpha_beta(found: Evidence) -> Reading:
    """The mean absolute relative residual of the line, over payload sizes."""
    fit = _fit(found)
    return Reading(targets.student(np.abs([r for _, r in fit.residuals])), f"{fit.name}, {len(fit.residuals)} sizes")


def law(name: str) -> Reader:
    """A reader of the measured speed-up on the most devices over that of a law, fitted to the same points."""

    def read(found: Evidence) -> Reading:
        training = found.training("scaling")
        fit = next((fit for fit in training.fits if fit.law == name), None)
        if fit is None or fit.why_not:
            raise NotTestable(f"{name}'s law: {fit.why_not if fit else 'its scaling was not measured'}.")
        rows = [r for r in training.rows if r.quotable and r.speedup.known and r.point.scaling == fit.scaling]
        top = max(rows, key=lambda row: row.point.devices)
        values = [value.value for _, _, value in fit.parameters]
        expected = float(scaling_laws.predict(name, np.array([top.relative_devices]), *values)[0])
        return Reading(top.speedup.times(1 / expected), f"{top.point.devices} devices, {fit.scaling} scaling")

    return read


def _fit(found: Evidence) -> AlphaBetaFit:
    good = [
        f for f in found.cases("machine/collectives").fits if f.place.op == "all_reduce" and not f.place.oversubscribed
    ]
    fitted = [fit for fit in good if not fit.why_not and fit.place.devices > 1]
    if not fitted:
        raise NotTestable("No all-reduce on two devices that share no core has a line of time over size.")
    return max(fitted, key=lambda fit: fit.place.devices)


def times(found: Evidence) -> Sequence[Ours]:
    fit = _fit(found)
    rows = [row for row in found.cases("machine/collectives").rows if _same(row, fit)]
    ours = marks.of(rows, lambda r: float(r.point.payload_bytes or 0), lambda r: r.timing.step_s.times(1e6))
    return [Ours(label="all-reduce here", marks=ours)]


def _same(row: CaseRow, fit: AlphaBetaFit) -> bool:
    place = fit.place
    return (row.point.op, row.point.devices, row.point.axis, row.point.mesh, row.point.dtype) == (
        place.op, place.devices, place.axis, place.mesh, place.dtype
    )  # fmt: skip


def speedups(found: Evidence) -> Sequence[Ours]:
    rows = found.training("scaling").rows
    return [curve(rows, f"cnn here, {how}", lambda row: row.speedup, scaling=how) for how in ("strong", "weak")]


def laws() -> Sequence[PublishedSeries]:
    """The laws with round parameters, for their shapes: the claims fit them to this machine's curve."""
    n = 2.0 ** np.arange(0, 7)
    return [
        PublishedSeries(label="Amdahl, s = 5 %", x=n, y=scaling_laws.predict("Amdahl", n, 0.05), formula=True),
        PublishedSeries(label="Gustafson, s = 5 %", x=n, y=scaling_laws.predict("Gustafson", n, 0.05), formula=True),
        PublishedSeries(
            label="Gunther, a = 5 %, b = 0.1 %", x=n, y=scaling_laws.predict("USL", n, 0.05, 0.001), formula=True
        ),
    ]


def hockney(found: Evidence) -> Sequence[PublishedSeries]:
    fit = _fit(found)
    sizes = np.geomspace(fit.residuals[0][0], fit.residuals[-1][0], 50)
    return [PublishedSeries(label="alpha + S / beta, fitted", x=sizes, y=1e6 * fit.seconds_at(sizes), formula=True)]


def _law(name: str, author: str, sentence: str) -> Claim:
    return Claim(
        name=author,
        sentence=sentence,
        source=author,
        quantity=f"measured speed-up on the most devices over that of {author}'s law fitted to the curve",
        low=0.95,
        high=1.05,
        read=law(name),
        here="A law needs more device counts than two cores give: three for one parameter, four for two.",
    )


PAPER = Paper(
    id="williams2009",
    citation="S. Williams, A. Waterman and D. Patterson, Roofline, Communications of the ACM 52(4), 2009; R. Hockney, "
    "The communication challenge for MPP, Parallel Computing 20(3), 1994; G. Amdahl, 1967; J. Gustafson, 1988; "
    "N. Gunther, 1993",
    title="Times of kernels and all-reduces, and speed-up, against five laws",
    tables=(),
    runs=(
        Run(name="machine", minutes=3, words=("machine",)),
        Run(name="kernels", minutes=2, words=("run", "fusion", "--config.measure.rounds=5")),
        Run(
            name="scaling",
            minutes=1.5,
            words=(
                "run", "cnn", "--config.strategy=shard_map", "--config.scaling=strong,weak",
                "--config.mesh.oversubscribe=false", "--config.measure.rounds=9", "--config.measure.processes=3",
            ),
            paper=("run", "cnn", "--preset=paper"),
        ),
    ),
    claims=(
        Claim(
            name="Williams",
            sentence="No kernel exceeds the roof: the smaller of the peak and intensity times bandwidth.",
            source="Roofline",
            quantity="largest share of its measured roof that a kernel reaches",
            high=1.1,
            read=under_the_roof,
            here="The roof is also a measurement, from another time: up to 1.1 of it is accepted, as everywhere here.",
        ),
        Claim(
            name="Hockney",
            sentence="The time of a message of S bytes is alpha + S / beta.",
            source="Hockney, section 2",
            quantity="mean relative distance of the measured all-reduce times from the fitted line",
            high=0.25,
            read=alpha_beta,
            here="Between two cores a message is a copy through caches, which have several bandwidths.",
        ),
        _law("Amdahl", "Amdahl", "A serial share s limits the speed-up of fixed work to 1 / (s + (1 - s) / n)."),
        _law("Gustafson", "Gustafson", "If the work grows with the devices, the speed-up is n - s (n - 1)."),
        _law("USL", "Gunther", "With contention and coherency, the speed-up is n / (1 + a (n - 1) + b n (n - 1))."),
    ),
    panels=(
        Panel(title="all-reduce", x="bytes", y="time, µs", log="xy", base=10, ours=times, laws=hockney),
        Panel(title="speed-up", x="devices", y="speed-up over 1 device", log="xy", published=laws, ours=speedups),
    ),
)  # fmt: skip

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Chen et al. 2016 and Korthikanti et al. 2022: activation memory as sqrt(n), and what recomputation costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxbench.catalog import published
from jaxbench.papers.evidence import Evidence, NotTestable, arm_of
from jaxbench.papers.paper import Claim, Ours, Panel, Paper, PublishedSeries, Reader, Reading, Run
from jaxbench.report.drawing.marks import Mark, exact, n_of
from jaxbench.statistics.bootstrap import Estimate

CHEN, KORTHIKANTI = "chen2016_claims", "korthikanti_table4"
PLAIN, SQRT, SELECTIVE = "none", "sqrt", "dots_saveable"


def exponent(found: Evidence) -> Reading:
    for law in found.levers("remat").laws:
        if law.remat == SQRT and law.slope.known:
            return Reading(law.slope, f"{law.sizes[0][0]} to {law.sizes[-1][0]} blocks")
    raise NotTestable("The run did not compile the policy 'sqrt' at several depths.")


def extra_of(policy: str) -> Reader:
    """A reader of the step time of a policy over that without recomputation."""

    def read(found: Evidence) -> Reading:
        arm = arm_of(found.place("remat"), policy, honest=True)
        return Reading(arm.ratio, f"{arm.row.point.devices} device, 16 blocks")

    return read


def memory(found: Evidence) -> Sequence[Ours]:
    return [
        Ours(
            label=f"{law.remat} here", marks=[Mark(at=n, value=exact(size / law.sizes[0][1])) for n, size in law.sizes]
        )
        for law in found.levers("remat").laws
        if law.remat in (PLAIN, SQRT)
    ]


def laws() -> Sequence[PublishedSeries]:
    blocks = np.array([4, 8, 16, 32])
    return [
        PublishedSeries(label="n", x=blocks, y=blocks / 4, formula=True),
        PublishedSeries(label="sqrt(n), Chen", x=blocks, y=np.sqrt(blocks / 4), formula=True),
    ]


def extra(found: Evidence) -> Sequence[Ours]:
    arms = [arm_of(found.place("remat"), name) for name in (SELECTIVE, SQRT)]
    points = [Mark(at=place, value=_percent(arm.ratio), n=n_of(arm)) for place, arm in enumerate(arms)]
    return [Ours(label="here", marks=points)]


def published_extra() -> Sequence[PublishedSeries]:
    table = published.read(KORTHIKANTI).frame.set_index("experiment")["overhead_pct"]
    claim = float(published.read(CHEN).frame.set_index("quantity")["value"]["extra_runtime"])
    return [PublishedSeries(label="Korthikanti, Chen", x=[0, 1], y=[float(table["selective_recompute"]), claim])]


def _percent(ratio: Estimate) -> Estimate:
    return Estimate(value=100 * (ratio.value - 1), lo=100 * (ratio.lo - 1), hi=100 * (ratio.hi - 1))


PAPER = Paper(
    id="chen2016",
    citation="T. Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016, arXiv:1604.06174; V. Korthikanti et "
    "al., Reducing Activation Recomputation in Large Transformer Models, 2022, arXiv:2205.05198",
    title="Activation memory over depth, and the time that recomputation costs",
    tables=(CHEN, KORTHIKANTI),
    runs=(
        Run(
            name="remat",
            minutes=4,
            words=("run", "remat"),
            paper=("run", "remat", "--config.model.preset=small", "--config.model.width=0", "--config.model.heads=0"),
        ),
    ),
    claims=(
        Claim(
            name="square root",
            sentence="With a checkpoint every sqrt(n) layers, activation memory grows as the square root of the depth.",
            source="Chen, section 4",
            quantity="exponent of scratch memory over blocks, policy sqrt",
            low=0.35,
            high=0.65,
            read=exponent,
            here="Exact: the bytes come from the compiler, for any core; they include gradients, which grow with n.",
        ),
        Claim(
            name="thirty per cent",
            sentence="This costs about 30 % more time, the time of one more forward pass.",
            source="Chen, section 5",
            quantity="step time of the policy sqrt over that without recomputation",
            high=1.3,
            read=extra_of(SQRT),
            here="One core measures a small transformer; the share of recomputed work is the same as in a large one.",
        ),
        Claim(
            name="selective",
            sentence="Recomputing only cheap operations costs a few per cent (7 % for 22 billion parameters).",
            source="Korthikanti, Table 4",
            quantity="step time of the policy dots_saveable over that without recomputation",
            high=1.07,
            read=extra_of(SELECTIVE),
            here="On a core, softmax and layer norm take a larger part of a small model's time than on an accelerator.",
        ),
    ),
    panels=(
        Panel(title="activation memory", x="blocks", y="relative to 4 blocks", log="xy", published=laws, ours=memory),
        Panel(
            title="extra time",
            x="what is recomputed",
            y="%",
            names=("selective", "sqrt(n)"),
            published=published_extra,
            ours=extra,
        ),
    ),
)

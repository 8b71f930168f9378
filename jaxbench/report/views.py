# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which figures show which kind of run. A figure with nothing to draw is left out of the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from jaxbench.errors import UserError, did_you_mean
from jaxbench.report.figures import (
    accumulate,
    alpha_beta,
    arms,
    batch,
    busbw,
    context,
    contrastive,
    curves,
    devices,
    dispatch,
    freeze,
    fusion,
    hybrid,
    inference,
    inputs,
    ladder,
    linalg,
    matmul,
    moe,
    phases,
    pipeline,
    precision,
    remat,
    roofline,
    stream,
    tensor,
    transfer,
    zero,
)
from jaxbench.report.figures.lever_material import LeverMaterial
from jaxbench.report.figures.material import Material
from jaxbench.report.figures.spread_material import SpreadMaterial


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """One figure. name: of its files. draw: None when it has nothing to show."""

    name: str
    draw: Callable[[Material], Figure | None]
    caption: str


CURVES = Drawing(name="curves", draw=curves.draw, caption=curves.CAPTION)
MATMUL = Drawing(name="matmul", draw=matmul.draw, caption=matmul.CAPTION)
STREAM = Drawing(name="stream", draw=stream.draw, caption=stream.CAPTION)
DISPATCH = Drawing(name="dispatch", draw=dispatch.draw, caption=dispatch.CAPTION)
FUSION = Drawing(name="fusion", draw=fusion.draw, caption=fusion.CAPTION)
LINALG = Drawing(name="linalg", draw=linalg.draw, caption=linalg.CAPTION)
TRANSFER = Drawing(name="transfer", draw=transfer.draw, caption=transfer.CAPTION)
BUSBW = Drawing(name="busbw", draw=busbw.draw, caption=busbw.CAPTION)
ALPHA_BETA = Drawing(name="alpha_beta", draw=alpha_beta.draw, caption=alpha_beta.CAPTION)
DEVICES = Drawing(name="devices", draw=devices.draw, caption=devices.CAPTION)
ROOFLINE = Drawing(name="roofline", draw=roofline.from_material, caption=roofline.CAPTION)

VIEWS: dict[str, tuple[Drawing, ...]] = {
    "curves": (CURVES, DEVICES, ROOFLINE),
    "matmul": (MATMUL, DEVICES, ROOFLINE),
    "stream": (STREAM, DEVICES, ROOFLINE),
    "dispatch": (DISPATCH, DEVICES),
    "fusion": (FUSION, DEVICES, ROOFLINE),
    "linalg": (LINALG, DEVICES, ROOFLINE),
    "transfer": (TRANSFER, ALPHA_BETA),
    "collectives": (BUSBW, ALPHA_BETA),
}


@dataclass(frozen=True, kw_only=True)
class LeverDrawing:
    """One figure of a sweep of levers. name: of its files. draw: None when it has nothing to show."""

    name: str
    draw: Callable[[LeverMaterial], Figure | None]
    caption: str


ARMS = LeverDrawing(name="arms", draw=arms.draw, caption=arms.CAPTION)
PHASES = LeverDrawing(name="phases", draw=phases.draw, caption=phases.CAPTION)
INFERENCE = LeverDrawing(name="inference", draw=inference.draw, caption=inference.CAPTION)

LEVER_VIEWS: dict[str, tuple[LeverDrawing, ...]] = {
    "precision": (LeverDrawing(name="precision", draw=precision.draw, caption=precision.CAPTION),),
    "remat": (LeverDrawing(name="remat", draw=remat.draw, caption=remat.CAPTION),),
    "batch": (LeverDrawing(name="batch", draw=batch.draw, caption=batch.CAPTION),),
    "accumulate": (LeverDrawing(name="accumulate", draw=accumulate.draw, caption=accumulate.CAPTION),),
    "freeze": (LeverDrawing(name="freeze", draw=freeze.draw, caption=freeze.CAPTION),),
    "ladder": (LeverDrawing(name="ladder", draw=ladder.draw, caption=ladder.CAPTION),),
    "phases": (PHASES, INFERENCE),
    "inputs": (LeverDrawing(name="inputs", draw=inputs.draw, caption=inputs.CAPTION),),
    "inference": (INFERENCE,),
    "arms": (ARMS, INFERENCE),
}


@dataclass(frozen=True, kw_only=True)
class SpreadDrawing:
    """The figure of a run about how a model is spread: name: of its files. draw: None when it has nothing to show."""

    name: str
    draw: Callable[[SpreadMaterial], Figure | None]
    caption: str


# By `config.report.view`.
SPREAD_VIEWS: dict[str, SpreadDrawing] = {
    "zero": SpreadDrawing(name="zero", draw=zero.draw, caption=zero.CAPTION),
    "tensor": SpreadDrawing(name="tensor", draw=tensor.draw, caption=tensor.CAPTION),
    "pipeline": SpreadDrawing(name="pipeline", draw=pipeline.draw, caption=pipeline.CAPTION),
    "context": SpreadDrawing(name="context", draw=context.draw, caption=context.CAPTION),
    "hybrid": SpreadDrawing(name="hybrid", draw=hybrid.draw, caption=hybrid.CAPTION),
    "moe": SpreadDrawing(name="moe", draw=moe.draw, caption=moe.CAPTION),
    "contrastive": SpreadDrawing(name="contrastive", draw=contrastive.draw, caption=contrastive.CAPTION),
}


def drawings(view: str) -> tuple[Drawing, ...]:
    """The figures of a view, in the order of the page. Raises UserError for a view that this jaxbench does not know."""
    if view not in VIEWS:
        raise UserError(f"the run's view '{view}' is unknown to this jaxbench: {did_you_mean(view, VIEWS)}")
    return VIEWS[view]

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A figure for a page: its files, and the picture with a second drawing for a phone."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from jaxbench.report.drawing import canvas
from jaxbench.report.drawing.canvas import Look
from jaxbench.report.page import Picture


def pictured(
    name: str, draw: Callable[[], Figure | None], caption: str, look: Look | None = None
) -> tuple[dict[str, bytes], list[Picture]]:
    """(bytes by suffix, [the picture]); ({}, []) if nothing is drawn."""
    files = canvas.render(draw, look)
    if not files:
        return {}, []
    return files, [Picture(name=name, svg=files["svg"], caption=caption, narrow=canvas.for_phone(draw, look))]

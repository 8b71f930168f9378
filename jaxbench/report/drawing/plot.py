# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a figure is: a name, a caption, the runs that it is for, and a function that draws it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A figure. Call it with the report of a run: it returns None if there is nothing to draw."""

    name: str  # of its files, too
    caption: str
    draw: Callable[..., Figure | None]
    # The runs that it is for: a kind ("training", "levers", "cases", "compiled"), or a kind with the view of the
    # experiment or of the swept lever ("cases/stream", "levers/remat"). Without views, other code draws it.
    views: tuple[str, ...] = ()
    order: int = 0  # its place on the page, among figures of the same order by name
    more: Callable[..., str] | None = None  # a run's own sentence at the end of the caption

    def __call__(self, *what: Any, **settings: Any) -> Figure | None:
        return self.draw(*what, **settings)


def plot(name: str, **facts: Any) -> Callable[[Callable[..., Figure | None]], Plot]:
    """Makes a `Plot` of the function below it. The function's docstring is the caption."""
    return lambda draw: Plot(name=name, caption=" ".join((draw.__doc__ or "").split()), draw=draw, **facts)

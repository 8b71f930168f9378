# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What the calls of the Python API return: tables, figures, sentences, and how a notebook shows them. No jax."""

from __future__ import annotations

import base64
import functools
import io
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from rich.text import Text

from jaxbench.core.schema import RoundRecord
from jaxbench.core.store import RunFolder
from jaxbench.features.comparison import page as comparison_page
from jaxbench.features.comparison.comparison import Comparison
from jaxbench.features.comparison.figures import draw_factors, draw_verdicts
from jaxbench.report import build, page
from jaxbench.report.drawing import canvas
from jaxbench.report.drawing.canvas import Look, Plot
from jaxbench.report.page import Page, Purpose, Section
from jaxbench.report.run_report import RunReport
from jaxbench.texts import from_cell

SHOWN = 2  # figures of a result that a notebook shows at once; all are in `figures`
PX_PER_IN = 100  # of a figure in a notebook


class ResultFigure:
    """One figure of a result. A notebook shows it. caption: what it shows, and what its marks mean."""

    def __init__(self, plot: Plot, *of: Any, look: Look = canvas.PLAIN, file: Path | None = None, **how: str):
        """of, how: the arguments of `plot`. file: the PNG, if the figure has been drawn already."""
        self.name, self.caption = plot.name, plot.caption
        self._draw, self._look, self._file = functools.partial(plot, *of, **how), look, file
        self.width_px = round(PX_PER_IN * look.width_in)

    @functools.cached_property
    def figure(self) -> Figure:
        """The matplotlib figure, always the same: what you change in it is shown and can be saved."""
        with canvas.style(self._look):  # matplotlib reads some settings only while it draws
            if (figure := self._draw()) is not None:
                canvas.lay_out(figure)
        return figure  # type: ignore[return-value]  # figures that draw nothing are in no result

    @property
    def png(self) -> bytes:
        """The figure as PNG, 200 pixels an inch."""
        # The file only while nobody has taken the figure, which may have been changed since.
        if self._file is not None and "figure" not in self.__dict__:
            return self._file.read_bytes()
        with canvas.style(self._look):
            self.figure.savefig(buffer := io.BytesIO(), format="png", dpi=canvas.DPI)
        return buffer.getvalue()

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return self.png, {"width": self.width_px}  # without it, a notebook shows twice the size

    def __repr__(self) -> str:
        return f"<figure {self.name}: {self.caption.partition('. ')[0].rstrip('.')}>"


class Sentences(dict[str, list[str]]):
    """The sentences of a page by heading. A heading that the page does not have has none."""

    def __missing__(self, heading: str) -> list[str]:
        return []


class Result:
    """A result: headlines, figures and a table. A notebook shows all three; a terminal shows one line.

    Attributes:
      path: the folder of its files; None: it has none.
      table: pandas.DataFrame.
      figures: `ResultFigure` by name.
    """

    def __init__(self, page: Page, path: Path | None, table: pd.DataFrame, figures: list[ResultFigure]):
        self._page, self.path, self.table = page, path, table
        self.figures = {each.name: each for each in figures if each._file or each.figure}  # drawn only without a file

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        return next(iter((*self.shortfalls, *self._page.headlines)), self._page.heading)

    @property
    def shortfalls(self) -> list[str]:
        """Why the result is incomplete or wrong, a sentence for each reason; [] if it is complete and correct."""
        return [s for part in self._page.sections if part.purpose is Purpose.SHORTFALL for s in part.sentences]

    @property
    def ok(self) -> bool:
        """Whether everything was measured and passed every check."""
        return not self.shortfalls

    @property
    def sentences(self) -> dict[str, list[str]]:
        """What the page says below the table, by heading, such as "Why not 100 %"; [] for a heading that it lacks."""
        return Sentences({part.heading: [*part.sentences] for part in self._page.sections})

    def _repr_html_(self) -> str:
        names = [*self.figures]
        shown = [self.figures[name] for name in names[:SHOWN]]
        images = [(each.name, base64.b64encode(each.png).decode(), each.width_px) for each in shown]
        more = f"More figures: {', '.join(names[SHOWN:])}. " if names[SHOWN:] else ""
        said = page.in_words(self._page)
        alarms = [s for part in said.sections if part.purpose is Purpose.SHORTFALL for s in part.sentences]
        return page.template("result.html").render(
            page=said,
            images=images,
            alarms=alarms[: page.SHORTFALLS],
            sections=[part for part in said.sections if part.purpose is not Purpose.SHORTFALL],
            more=f"{more}All files: {self.path}" if self.path else more,
        )

    def __repr__(self) -> str:
        where = f"'{self.path}'" if self.path else ""
        return f"{type(self).__name__}({where}): {self.headline}"


class Run(Result):
    """A run of an experiment, finished or not: what `run` and `load` return.

    Attributes:
      path: the run folder.
      table: one row for each point with the columns of summary.csv. docs/metrics defines them; times are in seconds,
        sizes in bytes. Unknown numbers are NaN.
      figures: such as "scaling" and "waterfall".
    """

    def __init__(self, report: RunReport):
        look = canvas.look_of(report.config)
        files = {file.stem: file for file in (report.path / "figures").glob("*.png")}
        drawn = build.figures_of(report).items()
        figures = [ResultFigure(plot, report, look=look, file=files.get(name)) for name, plot in drawn]
        content = Page(
            name=report.experiment,
            heading=report.title,
            headlines=report.headlines,
            pictures=(),
            table=report.table(),
            sections=report.sections(),
        )
        super().__init__(content, report.path, frame(report.csv()), figures)
        self._report = report

    @functools.cached_property
    def records(self) -> pd.DataFrame:
        """pandas.DataFrame with one row for each timed block, also of the ablations that explain a loss.

        Columns: point, devices, round, worker (the process), steps (in the block), block_s (seconds of the block),
        step_s (block_s / steps), and clock: 1 for blocks of K steps, from which the time per step comes, and 2 for
        blocks of 2 K steps, the second clock.
        """
        names = ["point", "devices", "round", "worker", "steps", "block_s", "step_s", "clock"]
        folder = RunFolder(self._report.path)
        devices = {each["point"]: each["devices"] for each in self._report.manifest["plan"]["points"]}
        rows = [
            (
                each.point,
                devices.get(each.point),
                each.round,
                each.worker,
                clock * each.steps,
                seconds,
                seconds / (clock * each.steps),
                clock,
            )
            for each in folder.records()
            if isinstance(each, RoundRecord)
            for clock, blocks in ((1, each.block_s), (2, each.double_block_s))
            for seconds in blocks
        ]
        return pd.DataFrame(rows, columns=names)


class Forecast(Result):
    """Forecasts for absent hardware. table: one row for each point on each target, with the columns of forecast.csv."""


class Machine(Result):
    """A machine profile. table: one row for each measured number, with the fields of machine.json: `list` is peaks,
    launch, links or transfers; values are in FLOP/s, bytes/s and seconds."""


class Compared(Result):
    """Run B judged against run A.

    Attributes:
      verdict: faster, slower, same, or cannot tell.
      table: one row for each point: a and b (the metric of each side), ratio (b / a) with its 95 % confidence interval
        ratio_lo and ratio_hi, and verdict.
    """

    def __init__(self, found: Comparison):
        answers = found.answers
        names = ["point", "a", "b", "ratio", "ratio_lo", "ratio_hi", "verdict", "why"]
        # Of a single point, the overall answer is the point's.
        every = [*answers.points, *([answers.overall] if len(answers.points) > 1 else [])]
        rows = [(x.name, x.a, x.b, x.ratio.value, x.ratio.lo, x.ratio.hi, x.verdict, x.why) for x in every]
        frame = pd.DataFrame(rows, columns=names)
        sections = [Section(heading, sentences) for heading, sentences in comparison_page.sections(found)]
        content = Page(
            name="comparison",
            heading=f"{found.a} against {found.b}",
            headlines=[comparison_page.headline(found)],
            pictures=(),
            table=comparison_page.answers_table(answers),
            sections=sections,
        )
        super().__init__(content, None, frame, [ResultFigure(draw, found) for draw in (draw_verdicts, draw_factors)])
        self.verdict, self.comparison = found.verdict, found


class Trial:
    """What `try_model` found. ok: whether at least one strategy trains the model, and all that take it train it
    correctly; of your own step, whether it does the same on every device count. text: what `jaxbench try` prints, which
    a notebook shows."""

    def __init__(self, ok: bool, text: Text):
        self.ok, self.text, self._styled = ok, text.plain, text

    def _repr_html_(self) -> str:
        return str(self._styled._repr_mimebundle_((), ())["text/html"])

    def __repr__(self) -> str:
        return f"Trial(ok={self.ok}): {self.text.strip().splitlines()[-1]}"


def frame(csv: str) -> pd.DataFrame:
    """A table from CSV in which only empty cells are unknown: "NA" and "None" are texts."""
    frame = pd.read_csv(io.StringIO(csv), keep_default_na=False, na_values=[""])
    for name in frame.columns:
        frame[name] = frame[name].map(lambda value: from_cell(value) if isinstance(value, str) else value)
    return frame

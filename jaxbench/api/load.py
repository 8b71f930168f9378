# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`load`: the result in a folder, of whatever kind."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from jaxbench.analysis import machine_profile
from jaxbench.api import folders
from jaxbench.api.results import Forecast, Machine, Result, ResultFigure, Run, frame
from jaxbench.core.store import RECORDS
from jaxbench.features.forecast import forecasts
from jaxbench.features.forecast import page as forecast
from jaxbench.features.forecast.figures import draw_forecast
from jaxbench.features.machine_profile import page as machine_page
from jaxbench.records import identity
from jaxbench.report import build
from jaxbench.report.page import Page, Section


def load(path: str | os.PathLike[str]) -> Result:
    """The result in a folder that a call or the command line made, finished or not: a run, a forecast, a machine
    profile, a training, trainings to a target, an `ab` or `compare`, an audit or a paper.

    Raises JaxbenchError if the folder has no result, or is damaged.
    """
    path = Path(path)
    if (path / forecasts.FILE).exists():
        records = forecasts.read(path)
        figures = [ResultFigure(draw_forecast, records, title=forecast.title(records))]
        return Forecast(forecast.page_of(records), path, frame(forecast.fill_csv(records)), figures)
    if (other := folders.load(path)) is not None:
        return other
    profile = machine_profile.read(path / machine_profile.NAME)
    if profile is None or (path / RECORDS).exists():  # a run folder may hold a copy of the profile
        return Run(build.find(path))
    name = identity.machine_name(profile["machine"])
    content = Page(
        name=name,
        heading=f"{name}: machine profile",
        headlines=machine_page.headlines(profile),
        pictures=(),
        table=machine_page.table(profile),
        sections=[Section("Doubts", machine_profile.doubts(profile))],
    )
    rows = [{"list": kind, **each} for kind in ("peaks", "launch", "links", "transfers") for each in profile[kind]]
    return Machine(content, path, pd.DataFrame(rows), [])

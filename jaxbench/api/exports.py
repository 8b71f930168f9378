# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jb.export` and `jb.log`: results in the formats of other programs. No jax."""

from __future__ import annotations

import os
from pathlib import Path

from jaxbench.api.results import Compared, Run
from jaxbench.errors import UserError, did_you_mean
from jaxbench.features.exports import formats, source, trackers
from jaxbench.features.exports.formats import FORMATS

Folder = str | os.PathLike[str]
Exportable = Run | Compared | Folder


def export(result: Exportable, to: str, *, folder: Folder | None = None) -> Path:
    """Writes a result in the format of another program, as `--export` does.

    Args:
      result: a run, a comparison, or the folder of a run, a training, or trainings to a target.
      to: summary, bmf, pytest-benchmark, openmetrics or mlperf.
      folder: where to write; None: the folder of the result. A comparison has no folder of its own.

    Returns:
      The path of the file; of mlperf, of the folder with one file for each training.

    Raises:
      JaxbenchError: the format is unknown, or the result has not what it needs.
    """
    if to not in FORMATS:
        raise UserError(f"to='{to}' is no format: {did_you_mean(to, FORMATS)}")
    (path,) = formats.write(_source(result, folder), [to])
    return path


def log(result: Exportable, *, to: str, project: str = "jaxbench", folder: Folder | None = None) -> None:
    """Logs a result to an experiment tracker, as one run of `project`.

    Args:
      result: as for `export`.
      to: wandb, mlflow, tensorboard or trackio. Each is an optional package. The tracker's own variables say where it
        is, such as WANDB_MODE or MLFLOW_TRACKING_URI.
      folder: where wandb and tensorboard write; None: the folder of the result.

    Raises:
      JaxbenchError: the tracker is unknown or not installed.
    """
    trackers.log(_source(result, folder), to, project)


def _source(result: Exportable, folder: Folder | None) -> source.Source:
    """What a result exports. Raises UserError if it has no folder."""
    if isinstance(result, Compared):
        if folder is None:
            raise UserError("a comparison has no folder of its own: name one, such as folder='results/compared'.")
        found = result.comparison
        return source.ComparisonSource(found, f"{found.a} against {found.b}", Path(found.b), Path(folder))
    path = result.path if isinstance(result, Run) else Path(result)
    if path is None or not path.is_dir():
        raise UserError(f"'{path}' is not a folder: give the results folder of a 'jaxbench run'.")
    exported = source.find(path)
    if folder is not None:
        exported.folder = Path(folder)
    return exported

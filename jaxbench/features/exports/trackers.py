# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Sends a result to Weights & Biases, MLflow, TensorBoard or trackio. Each is an optional package."""

from __future__ import annotations

from importlib.util import find_spec

from jaxbench.errors import UserError, did_you_mean
from jaxbench.features.exports.source import Source, settings, software

PARAMETERS_AT_ONCE = 100  # MLflow's limit for one request
PACKAGES = {"wandb": "wandb", "mlflow": "mlflow-skinny", "tensorboard": "tensorboardX", "trackio": "trackio"}
MODULES = {**PACKAGES, "mlflow": "mlflow"}


def log(source: Source, to: str, project: str) -> None:
    """Logs the numbers, the settings and the summary as one run of `project`.

    Raises UserError if the tracker is unknown or not installed.
    """
    if to not in PACKAGES:
        raise UserError(f"to='{to}' is no tracker that jaxbench logs to: {did_you_mean(to, PACKAGES)}")
    if find_spec(MODULES[to]) is None:
        raise UserError(f"to='{to}' needs {PACKAGES[to]}, which is not installed: pip install {PACKAGES[to]}.")
    send = {"wandb": _to_wandb, "mlflow": _to_mlflow, "tensorboard": _to_tensorboard, "trackio": _to_trackio}
    send[to](source, project)


def _config(source: Source) -> dict[str, object]:
    """Settings and software of a run, as a tracker's config."""
    about = software(source.manifest)
    return {**settings(source), **{f"measured.{name}": value for name, value in about.items()}}


def _to_wandb(source: Source, project: str) -> None:
    import wandb

    with wandb.init(project=project, name=source.folder.name, config=_config(source), dir=str(source.folder)) as run:
        for step, numbers in source.series():
            run.log(numbers, step=step)
        run.notes = source.summary()


def _to_mlflow(source: Source, project: str) -> None:
    import mlflow

    mlflow.set_experiment(project)
    with mlflow.start_run(run_name=source.folder.name):
        pairs = [(name, str(value)) for name, value in _config(source).items()]
        for at in range(0, len(pairs), PARAMETERS_AT_ONCE):
            mlflow.log_params(dict(pairs[at : at + PARAMETERS_AT_ONCE]))
        for step, numbers in source.series():
            mlflow.log_metrics(numbers, step=step)
        mlflow.log_text(source.summary(), "summary.md")


def _to_tensorboard(source: Source, project: str) -> None:
    from tensorboardX import SummaryWriter

    with SummaryWriter(str(source.folder / "tensorboard" / project)) as board:
        for step, numbers in source.series():
            for name, value in numbers.items():
                board.add_scalar(name, value, step)
        board.add_text("summary", source.summary())


def _to_trackio(source: Source, project: str) -> None:
    import trackio

    trackio.init(project=project, name=source.folder.name, config=_config(source))
    for step, numbers in source.series():
        trackio.log(numbers, step=step)
    trackio.finish()

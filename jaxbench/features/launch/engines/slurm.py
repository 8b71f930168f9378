# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Slurm, through submitit: each job is queued separately, so a small job does not wait for the nodes of a large job.

Folder and environment must be the same on all nodes, as submitit requires. A job that Slurm preempts, or that reaches
its time limit, goes back into the queue, and continues its run folder when it starts again.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any

from jaxbench.command_form import FORM
from jaxbench.errors import UserError
from jaxbench.features.launch.job import Job, Submitted, last_line, optional

OPTIONS = 'options of sbatch, each as --option or --option=value, such as --options="--partition=a100 --account=me"'


@dataclass(frozen=True)
class Command:
    """The callable that submitit pickles, and calls in each task of a job."""

    argv: tuple[str, ...]

    def __call__(self) -> None:
        """Runs the command. Raises CalledProcessError for a nonzero exit code, so that the task fails."""
        # A job's errors are read later, and not at the make that has submitted it.
        environment = {name: text for name, text in os.environ.items() if name != FORM}
        subprocess.run(self.argv, check=True, env=environment)

    def checkpoint(self) -> Any:
        """Called before the job is requeued. Returns the same command, which continues its run folder."""
        return _submitit().helpers.DelayedSubmission(self)


def check(job: Job) -> None:
    """Raises UserError for words that are not options of sbatch."""
    _options(job)


def text(job: Job) -> str:
    """The request to sbatch, and the command of each task. Raises UserError.

    This needs neither Slurm nor submitit. submitit adds the paths of logs, and the signal before a job is requeued.
    """
    asked = _asked(job)
    options = {**asked, **asked["additional_parameters"]}
    lines = [
        f"#SBATCH --{name.replace('_', '-')}" + ("" if value is True else f"={shlex.quote(str(value))}")
        for name, value in sorted(options.items())
        if name not in ("additional_parameters", "srun_args", "wckey")
    ]
    return "\n".join(["#!/bin/bash", *lines, f"# Each task executes: {shlex.join(job.argv())}"])


def require_here() -> None:
    """Raises UserError if there is no Slurm, or no submitit."""
    if shutil.which("sbatch") is None or shutil.which("srun") is None:
        raise UserError("there is no Slurm (sbatch, srun) on this machine: launch from a login node of the cluster.")
    _submitit()


def submit(job: Job) -> Submitted:
    """Submits the job. Raises UserError if Slurm does not answer, or refuses it."""
    submitit = _submitit()
    try:
        submitted = _executor(job).submit(Command(tuple(job.argv())))
    except (submitit.core.utils.FailedJobError, submitit.core.utils.FailedSubmissionError) as error:
        raise UserError(
            f"Slurm refused the job of {job.text}: {last_line(error).removeprefix('sbatch: error: ')}."
        ) from error
    return Submitted(f"Slurm job {submitted.job_id}, its output in {submitted.paths.folder}.", id=submitted.job_id)


def _submitit() -> Any:
    """The package submitit. Raises UserError with how to install it."""
    return optional("submitit", "submitit, which asks Slurm, is", "slurm")


def _executor(job: Job) -> Any:
    """Submitit's executor with the settings of the job."""
    # Any number of requeues after a time limit: a run folder continues where it was.
    executor: Any = _submitit().SlurmExecutor(folder=job.folder.parent / "slurm", max_num_timeout=10_000)
    executor.update_parameters(**_asked(job))
    return executor


def _asked(job: Job) -> dict[str, Any]:
    """The parameters of submitit's executor."""
    per_task = job.devices_per_node // job.processes_per_node
    asked: dict[str, Any] = {"gpus_per_node": job.devices_per_node} if job.platform == "gpu" else {}
    if job.platform == "cpu":  # a core for each device; srun does not inherit this from the job
        asked = {"cpus_per_task": per_task, "srun_args": [f"--cpus-per-task={per_task}"]}
    return {
        "job_name": job.name,
        "nodes": job.nodes,
        "ntasks_per_node": job.processes_per_node,
        "time": job.minutes,
        "wckey": None,  # a Slurm that tracks these keys may refuse submitit's default
        # Without "requeue" a preempted job would end, though its run folder can continue.
        "additional_parameters": {"requeue": True, **_options(job)},
        **asked,
    }


def _options(job: Job) -> dict[str, str | bool]:
    """["--partition=all", "--exclusive"] -> {"partition": "all", "exclusive": True}. Raises UserError."""
    found: dict[str, str | bool] = {}
    for word in job.options:
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not re.fullmatch("[a-z][a-z0-9_-]*", name):
            raise UserError(f"'{word}' in --options is no option of sbatch: use --partition=NAME, for example.")
        found[name] = value if equals else True
    return found

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Kubernetes: a JobSet with one pod for each host (`jobset.yaml`); `kubectl apply` is left to the user."""

from __future__ import annotations

from pathlib import Path

import jinja2

from jaxbench.errors import UserError
from jaxbench.features.launch.job import Job, Submitted, named

OPTIONS = "image=NAME, claim=NAME (a volume claim for results), and labels of nodes such as pool.example/kind=large"
RESOURCES = {"gpu": "nvidia.com/gpu", "tpu": "google.com/tpu", "cpu": "cpu"}
PORT = 8476  # the coordinator's
RESULTS = Path("/results")  # the mount point of the results in the pods


def check(job: Job) -> None:
    """Raises UserError for several processes in a pod, unknown options, and a missing image."""
    if job.processes_per_node > 1:
        raise UserError(
            f"--processes_per_node={job.processes_per_node} is not possible with k8s, where a pod is one process with "
            "all devices of its host: use 1."
        )
    if "image" not in _k8s_options(job):
        raise UserError(
            "k8s needs an image with jaxbench in it: add --options=image=registry/name:tag. The Dockerfile of the "
            "repository builds one, and its first lines say how."
        )


def text(job: Job) -> str:
    """The manifest of the JobSet."""
    options = _k8s_options(job)
    template = Path(__file__).with_name("jobset.yaml").read_text(encoding="utf-8")
    # Strict: a name that is missing would leave a manifest that is legal and wrong.
    environment = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(template).render(
        job=job,
        image=options["image"],
        claim=options.get("claim"),
        labels={name: value for name, value in options.items() if "/" in name},
        arguments=_arguments(job),
        devices={RESOURCES[job.platform]: job.devices_per_node},
        port=PORT,
        results=RESULTS,
    )


def require_here() -> None:
    """Does nothing: writing a file needs no cluster."""


def submit(job: Job) -> Submitted:
    """Writes the manifest next to the run folder."""
    path = job.folder.with_suffix(".yaml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text(job), encoding="utf-8")
    return Submitted(f"written; to start it: kubectl apply -f {path}")


def _arguments(job: Job) -> list[str]:
    """The words of the command, with every $ doubled, because Kubernetes replaces $(NAME) by a variable."""
    folder = RESULTS / job.folder.parent.name / job.folder.name
    words = [word.replace("$", "$$") for word in job.argv(folder)[1:]]
    if job.nodes == 1:
        return words
    # The first pod's name in the headless service, which the controller of JobSets makes.
    world = [f"--coordinator={job.name}-hosts-0-0.{job.name}:{PORT}", f"--processes={job.nodes}"]
    return [*words, *world, "--process=$(JOB_COMPLETION_INDEX)"]


def _k8s_options(job: Job) -> dict[str, str]:
    return named(job, "k8s", OPTIONS, lambda name: name in ("image", "claim") or "/" in name)

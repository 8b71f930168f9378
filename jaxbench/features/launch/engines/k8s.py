# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Kubernetes: the manifest of a JobSet, with one pod for each host; `kubectl apply` is left to the user.

The JobSet controller makes a headless service with the name of the JobSet, so pods find each other by name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from jaxbench.errors import UserError
from jaxbench.features.launch.job import Job, Submitted

OPTIONS = "image=NAME, claim=NAME (a volume claim for results), and labels of nodes such as pool.example/kind=large"
RESOURCES = {"gpu": "nvidia.com/gpu", "tpu": "google.com/tpu", "cpu": "cpu"}
PORT = 8476  # the coordinator's
RESULTS = Path("/results")  # the mount point of the results in the pods
RESTARTS = 3  # restarts of the whole set after a pod has failed; a run folder on a claim continues


def check(job: Job) -> None:
    """Raises UserError for several processes in a pod, unknown options, and a missing image."""
    if job.processes_per_node > 1:
        raise UserError(
            f"--processes_per_node={job.processes_per_node} is not possible with k8s, where a pod is one process with "
            "all devices of its host: use 1."
        )
    options = _options(job)
    if unknown := [name for name in options if name not in ("image", "claim") and "/" not in name]:
        raise UserError(f"'{unknown[0]}' in --options is unknown to k8s: use {OPTIONS}.")
    if "image" not in options:
        raise UserError("k8s needs an image with jaxbench in it: add --options=image=registry/name:tag.")


def text(job: Job) -> str:
    return "---\n" + yaml.safe_dump(manifest(job), sort_keys=False, width=120)


def require_here() -> None:
    """Does nothing: writing a file needs no cluster."""


def submit(job: Job) -> Submitted:
    """Writes the manifest next to the run folder. Raises UserError if it cannot be written."""
    path = job.folder.with_suffix(".yaml")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(job), encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write '{path}' ({error.strerror}): choose another --workdir.") from error
    return Submitted(f"written; to start it: kubectl apply -f {path}")


def manifest(job: Job) -> dict[str, Any]:
    """The JobSet."""
    job_spec = {
        "completionMode": "Indexed",
        "parallelism": job.nodes,
        "completions": job.nodes,
        "backoffLimit": 0,
        "activeDeadlineSeconds": 60 * job.minutes,
        "template": {"spec": _pod(job)},
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": job.name},
        "spec": {
            "network": {"enableDNSHostnames": True, "subdomain": job.name},
            "failurePolicy": {"maxRestarts": RESTARTS},
            "replicatedJobs": [{"name": "hosts", "replicas": 1, "template": {"spec": job_spec}}],
        },
    }


def _pod(job: Job) -> dict[str, Any]:
    options = _options(job)
    amount = {RESOURCES[job.platform]: job.devices_per_node}
    claim = {"persistentVolumeClaim": {"claimName": options["claim"]}} if "claim" in options else {"emptyDir": {}}
    labels = {name: value for name, value in options.items() if "/" in name}
    return {
        "restartPolicy": "Never",
        **({"nodeSelector": labels} if labels else {}),
        "containers": [
            {
                "name": "jaxbench",
                "image": options["image"],
                "command": ["python"],
                "args": _arguments(job),
                "ports": [{"containerPort": PORT}],
                "resources": {"requests": amount, "limits": {**amount}},
                "volumeMounts": [
                    {"name": "results", "mountPath": str(RESULTS)},
                    {"name": "memory", "mountPath": "/dev/shm"},
                ],
            }
        ],
        "volumes": [
            {"name": "results", **claim},
            {"name": "memory", "emptyDir": {"medium": "Memory"}},  # NCCL needs more than a pod's 64 MiB
        ],
    }


def _arguments(job: Job) -> list[str]:
    """The words of the command, with every $ doubled, because Kubernetes replaces $(NAME) by a variable."""
    folder = RESULTS / job.folder.parent.name / job.folder.name
    words = [word.replace("$", "$$") for word in job.argv(folder)[1:]]
    if job.nodes == 1:
        return words
    world = [f"--coordinator={job.name}-hosts-0-0.{job.name}:{PORT}", f"--processes={job.nodes}"]
    return [*words, *world, "--process=$(JOB_COMPLETION_INDEX)"]


def _options(job: Job) -> dict[str, str]:
    """["image=a", "pool.example/kind=large"] -> {"image": "a", "pool.example/kind": "large"}. Raises UserError."""
    if wrong := [word for word in job.options if not word.partition("=")[0] or not word.partition("=")[2]]:
        raise UserError(f"'{wrong[0]}' in --options is not NAME=VALUE: use {OPTIONS}.")
    return {name: value for name, _, value in (word.partition("=") for word in job.options)}

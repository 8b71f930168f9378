# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Ray: a JaxTrainer with workers that run the command, on the cluster that Ray finds or else on this machine.

The worker itself does not start JAX. The command is a separate process, which gets the address of the first worker.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from typing import Any

from jaxbench.errors import UserError
from jaxbench.features.launch.job import Job, Submitted, last_line, named, optional

OPTIONS = "address=ADDRESS of a Ray cluster, and for TPUs topology=4x4 and accelerator_type=TPU-V6E"
KNOWN = ("address", "topology", "accelerator_type")


def check(job: Job) -> dict[str, str]:
    """The options by name. Raises UserError for unknown ones."""
    return named(job, "ray", OPTIONS, lambda name: name in KNOWN)


def text(job: Job) -> str:
    """The arguments of JaxTrainer, as JSON."""
    asked = {"train_loop_config": {"argv": job.argv()}, "scaling_config": scaling(job), "init": _init(job)}
    return json.dumps(asked, indent=2)


def scaling(job: Job) -> dict[str, Any]:
    """The fields of Ray's ScalingConfig."""
    share = job.devices_per_node // job.processes_per_node
    resource = {"cpu": "CPU", "gpu": "GPU", "tpu": "TPU"}[job.platform]
    return {
        "num_workers": job.processes,
        "use_gpu": job.platform == "gpu",
        "use_tpu": job.platform == "tpu",
        "resources_per_worker": {resource: share},
        **{name: value for name, value in check(job).items() if name != "address"},
    }


def require_here() -> None:
    """Raises UserError if Ray is not installed."""
    optional("ray.train", "Ray is", "ray")


def submit(job: Job) -> Submitted:
    """Runs the job. Raises UserError if no cluster answers at the address."""
    ray, train, jax = (optional(name, "Ray is", "ray") for name in ("ray", "ray.train", "ray.train.v2.jax"))
    try:
        ray.init(**_init(job))
    except ConnectionError as error:
        raise UserError(f"no Ray cluster answers ({last_line(error)}): start one with 'ray start --head'.") from error
    trainer = jax.JaxTrainer(
        run_command,
        train_loop_config={"argv": job.argv()},
        jax_config=jax.JaxConfig(),  # the command joins its world itself
        scaling_config=train.ScalingConfig(**scaling(job)),
        run_config=train.RunConfig(name=job.name, storage_path=str(job.folder.parent / "ray")),
    )
    try:
        trainer.fit()
    except train.TrainingFailedError as error:
        return Submitted(f"Ray's job failed: {last_line(error)}.", code=1)
    finally:
        ray.shutdown()
    return Submitted("Ray's job has ended.", code=0)


def run_command(config: dict[str, Any]) -> None:
    """Runs the command in a worker, as one process of the world of all workers.

    Raises RuntimeError for a nonzero exit code, with the last line that the command wrote about it.
    """
    from ray.train import get_context
    from ray.train.collective import broadcast_from_rank_zero
    from ray.util import get_node_ip_address

    context, world = get_context(), []
    if context.get_world_size() > 1:
        address = broadcast_from_rank_zero(f"{get_node_ip_address()}:{_free_port()}")
        world = [f"--coordinator={address}", f"--processes={context.get_world_size()}"]
        world += [f"--process={context.get_world_rank()}"]
    # Ray reports only the exception of a worker, so the last line of the command becomes its message.
    last = ""
    with subprocess.Popen([*config["argv"], *world], stderr=subprocess.PIPE, text=True) as command:
        for line in command.stderr or ():
            sys.stderr.write(line)  # at once, so that Ray shows the progress of the command
            last = line.strip() or last
    if command.returncode:
        raise RuntimeError(f"{last.rstrip('.')} (exit code {command.returncode})")


def _free_port() -> int:
    with socket.socket() as probe:  # not machine.start.free_address, which would import jax into Ray's worker
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _init(job: Job) -> dict[str, str]:
    """The arguments of ray.init. Without arguments it uses RAY_ADDRESS or a cluster on this machine, or starts one."""
    return {name: value for name, value in check(job).items() if name == "address"}

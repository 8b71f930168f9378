# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench launch`: starts a command on the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import flags
from rich.console import Console

from jaxbench.errors import UserError
from jaxbench.jax_import import NoJax
from jaxbench.verbs import FLAGS, Verb

if TYPE_CHECKING:
    from jaxbench.features.launch.job import Job

flags.DEFINE_string("nodes", "1", "launch: the number of hosts; each of several counts, such as 1,2,4, is a job.")
flags.DEFINE_string(
    "devices", "gpu:1", "launch, accept: the devices of one host: gpu:8, tpu:4 or cpu:2; accept takes all by default."
)
flags.DEFINE_integer("processes_per_node", 1, "launch: processes on each host.")
flags.DEFINE_integer("minutes", 60, "launch: the time limit of a job.")
flags.DEFINE_string("options", "", "launch: further words for Slurm, mpirun, Kubernetes or Ray.")

VERB = Verb(
    usage="launch ENGINE -- run EXPERIMENT ...",
    help="start it (or accept) on the nodes of a cluster: ENGINE is slurm, mpi, k8s or ray",
    group="clusters",
    details="launch takes, before the --: --nodes=1,2,4 (a job each) --devices=gpu:8 (of a node; also tpu:4, cpu:2) "
    '--minutes=60 --processes_per_node=1 --options="further words for the engine" --workdir=DIR, and --dry_run, which '
    "shows the jobs.",
    argument="engine",
    example="jaxbench launch mpi --devices=cpu:1 -- run cnn",
    flags=("nodes", "devices", "processes_per_node", "minutes", "options", "workdir", "dry_run"),
    examples=(
        "launch slurm --nodes=1,2 --devices=gpu:8 -- run gpt",
        "launch mpi --devices=cpu:1 -- run cnn",
        "launch k8s --nodes=2 --devices=gpu:8 --dry_run -- run gpt",
    ),
)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    from jaxbench.analysis import launched
    from jaxbench.commands.report import report
    from jaxbench.features.launch import engines, job

    name, *command = arguments
    # All flags of launch are read here: checking the command parses the flags anew, as its processes will.
    engine, dry_run = engines.load(name), FLAGS.dry_run
    names = ("nodes", "devices", "processes_per_node", "minutes", "options")
    asked: dict[str, Any] = {flag: FLAGS[flag].value for flag in names}
    jobs = job.jobs(command, workdir, **asked)
    for each in jobs:
        engine.check(each)
    try:
        _check(command)  # now, and not after hours in a queue
    except NoJax as error:  # a login node may be without it, but then a job that starts may still be refused
        if not dry_run:
            raise
        why = f"JAX cannot be imported here ({error.reason})"
        checked = command[min(1, len(command) - 1)]  # an experiment, or `accept`, which has none
        console.out(f"# Not checked: the settings of '{checked}', because {why}. The job checks them.\n")
    if dry_run:
        for each in jobs:
            console.out(f"# {each.text}\n{engine.text(each)}\n", highlight=False)
        return 0
    # None: a queue has the jobs, so there is nothing to report yet, unless the folder has results of earlier ones.
    code = engines.submit(name, command, jobs, workdir, console)
    if command[0] == "accept" and code is not None:
        return _accepted(jobs, code)
    if code is None and command[0] == "accept":
        console.print(f"The verdict will be in {workdir}, in accept.html of each job.", highlight=False, soft_wrap=True)
        return 0
    if code is None:
        console.print(f"What is there at any time: jaxbench report --run={workdir}", highlight=False, soft_wrap=True)
    if code is None or command[0] == "train" or not launched.begun(workdir):
        return code or 0
    return max(code, report(workdir, console))


def _accepted(jobs: Sequence[Job], code: int) -> int:
    """The exit code of tests that ran here: 1 if one failed, else 3 if one cannot tell. code: of their launcher, which
    may have replaced the code of a process by its own."""
    from jaxbench.features.accept import outcome, rule

    files = [job.folder / outcome.FILE for job in jobs]
    if not all(file.exists() for file in files):
        return code or 2
    return rule.EXIT[rule.worst([outcome.read(file).verdict for file in files])]


def _check(command: list[str]) -> None:
    """Raises UserError for a command that its processes would refuse, and NoJax if only JAX could tell."""
    from jaxbench import commandline

    commandline.check_command(command)
    if command[0] == "accept":
        from jaxbench.commands import accept

        accept.check()
    if command[0] != "run":
        return
    if FLAGS.config.get("measures") == "targets":
        raise UserError(f"'{command[1]}' trains in one process on one host: use jaxbench run, without launch.")
    from jaxbench.sweep import run as runner  # late: it imports JAX

    runner.check(command[1], FLAGS.config)

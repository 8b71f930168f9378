# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A job: the command of one node count with its resources. The words of `jaxbench launch` make one per node count."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench.command_form import with_extra
from jaxbench.errors import UserError

PLATFORMS = ("cpu", "gpu", "tpu")
VERBS = ("run", "train", "accept")  # what may be launched
ALONE = ("accept",)  # those without an experiment
DEVICES, PLATFORM = "--config.mesh.devices=", "--config.mesh.platform="
# Flags of the command that launch sets itself.
OURS = ("--workdir", "--dry_run", "--nodry_run", "--target")


@dataclass(frozen=True, kw_only=True)
class Job:
    """The same command in `processes_per_node` processes on each of `nodes` hosts.

    Attributes:
      name: for the queue: lower-case letters, digits and hyphens.
      platform: of the devices: cpu, gpu or tpu. devices_per_node: the number of devices of a host.
      command: the words that each process executes, program first, without the folder of the run.
      folder: of the run, absolute.
      minutes: after which the queue may end it.
      options: further words for the engine, from --options.
    """

    name: str
    nodes: int
    processes_per_node: int
    platform: str
    devices_per_node: int
    command: tuple[str, ...]
    folder: Path
    minutes: int
    options: tuple[str, ...] = ()

    @property
    def processes(self) -> int:
        return self.nodes * self.processes_per_node

    @property
    def devices(self) -> int:
        return self.nodes * self.devices_per_node

    def argv(self, folder: Path | None = None) -> list[str]:
        """The words that each process executes. folder: that of the run, if those processes see it at another path."""
        return [*self.command, f"--workdir={folder or self.folder}"]

    @property
    def text(self) -> str:
        """ "2 nodes x 1 process, 4 devices"."""
        each = f"{self.processes_per_node} process{'es' if self.processes_per_node != 1 else ''}"
        return f"{_number_of(self.nodes, 'node')} x {each}, {_number_of(self.devices, 'device')}"


@dataclass(frozen=True)
class Submitted:
    """The outcome of a job. id: that of the queue, "" without one. code: the exit code if the job is over, else None.

    sentence: for the user.
    """

    sentence: str
    id: str = ""
    code: int | None = None


def _number_of(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"


def jobs(
    command: Sequence[str],
    workdir: Path,
    *,
    nodes: str = "1",
    devices: str = "gpu:1",
    processes_per_node: int = 1,
    minutes: int = 60,
    options: str = "",
) -> list[Job]:
    """The jobs of `jaxbench launch`, one for each node count, smallest first. Raises UserError.

    command: the words after the `--`. The other arguments are the flags as typed.
    """
    counts, (platform, per_node) = node_counts(nodes), devices_per_node(devices)
    _require_launchable(command, counts)
    if processes_per_node < 1 or per_node % processes_per_node:
        raise UserError(
            f"--devices={devices} does not divide over --processes_per_node={processes_per_node}: use 1 process, or "
            f"{per_node} of one device each."
        )
    if minutes < 1:
        raise UserError(f"--minutes={minutes} is not a time limit of at least 1 minute: use 60, for example.")
    words = [absolute(word) for word in command]
    try:
        asked = tuple(shlex.split(options))
    except ValueError as error:  # from shlex: a missing closing quotation mark
        raise UserError(f"--options={options} cannot be read ({error}).") from error
    for word in (*asked, *words, str(workdir)):
        require_printable(word)
    return [
        Job(
            name=job_name(words[0] if words[0] in ALONE else words[1], count),
            nodes=count,
            processes_per_node=processes_per_node,
            platform=platform,
            devices_per_node=per_node,
            # This Python: the nodes have the same environment, but perhaps another `jaxbench` on their path.
            command=(
                sys.executable,
                "-m",
                "jaxbench",
                *words,
                *_mesh(words, platform, count * per_node, per_node // processes_per_node),
            ),
            folder=workdir.resolve() / f"nodes-{count}",
            minutes=minutes,
            options=asked,
        )
        for count in counts
    ]


def require_printable(word: str) -> None:
    """Raises UserError for a line break or another control character, which would become a line of a job script."""
    if not word.isprintable():
        raise UserError(f"{word!r} has a character that cannot be printed: leave it out of the words of launch.")


def node_counts(text: str) -> list[int]:
    """ "1,2,4" -> [1, 2, 4]. Raises UserError."""
    words = text.split(",")
    counts = [int(word) if word.strip().isdecimal() else 0 for word in words]
    if min(counts) < 1 or len({*counts}) < len(counts):
        raise UserError(f"--nodes={text} is not a list of different node counts: use 1,2,4, for example.")
    return sorted(counts)


def devices_per_node(text: str) -> tuple[str, int]:
    """ "gpu:8" -> ("gpu", 8). Raises UserError."""
    platform, _, number = text.partition(":")
    if platform not in PLATFORMS or not re.fullmatch(r"[1-9]\d*", number):
        raise UserError(f"--devices={text} is not what one node gives: use gpu:8, tpu:4 or cpu:2, for example.")
    return platform, int(number)


def _require_launchable(command: Sequence[str], counts: Sequence[int]) -> None:
    named = len(command) > 1 and not command[1].startswith("-")
    if not command or command[0] not in VERBS or (command[0] not in ALONE and not named):
        raise UserError(
            "jaxbench launch needs run or train and its experiment after '--', or accept: jaxbench launch slurm "
            "--nodes=1,2 --devices=gpu:8 -- run gpt"
        )
    for word in command:
        if word.split("=")[0] in OURS:
            raise UserError(f"'{word}' is for launch: write it before the '--', or with make into LAUNCH=\"{word}\".")
    if len(counts) > 1 and command[0] == "train":
        raise UserError(f"--nodes={','.join(map(str, counts))} would train several times: name one node count.")
    if len(counts) > 1 and (chosen := [word for word in command if word.startswith(DEVICES)]):
        raise UserError(f"'{chosen[0]}' does not fit several node counts, which say it: leave it out, or name one.")


def _mesh(words: Sequence[str], platform: str, devices: int, of_process: int) -> list[str]:
    """The settings that make a job measure its own devices, unless the command already has them.

    devices: of the job. of_process: of each process.
    """
    if words[0] == "accept":
        given = any(word.startswith("--devices=") for word in words)
        return [] if given else [f"--devices={platform}:{of_process}"]
    if words[0] == "train":  # it uses all devices of the launch by itself
        return []
    own = (f"{PLATFORM}{platform}", f"{DEVICES}{devices}")
    return [word for word in own if not any(other.startswith(word.split("=")[0] + "=") for other in words)]


def absolute(word: str) -> str:
    """The absolute path of an experiment or preset, because a job may start in another folder."""
    flag, separator, path = word.rpartition("=") if word.startswith("--preset=") else ("", "", word)
    if word.startswith("-") and not separator or not path.endswith(".py"):
        return word
    return f"{flag}{separator}{Path(path).expanduser().resolve()}"


def job_name(experiment: str, nodes: int) -> str:
    """ "my_gpt.py" on 4 nodes -> "my-gpt-4", as Kubernetes wants names."""
    stem = re.sub("[^a-z0-9]+", "-", Path(experiment).stem.lower()).strip("-") or "job"
    return f"{stem[:40].strip('-')}-{nodes}"  # the names of its pods are longer, and may have 63 characters


def named(job: Job, engine: str, known: str, legal: Callable[[str], bool]) -> dict[str, str]:
    """["image=a", "pool.example/kind=large"] -> {"image": "a", "pool.example/kind": "large"}. Raises UserError.

    known: the options of the engine, for the sentence. legal: whether it has an option of this name.
    """
    options = {}
    for word in job.options:
        name, _, value = word.partition("=")
        if not value or not legal(name):
            raise UserError(f"'{word}' in --options is unknown to {engine}: use {known}.")
        options[name] = value
    return options


def optional(module: str, package: str, extra: str) -> Any:
    """An optional package's module. Raises UserError if it is not installed. package: its name in the sentence."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UserError(f"{package} not installed: {with_extra(extra)}.") from error


def last_line(error: Exception) -> str:
    """The last line of an error's message; without a message, its type."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else type(error).__name__

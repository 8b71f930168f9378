# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How many devices the points of a run have, and how many processes run a point together."""

from __future__ import annotations

from collections.abc import Sequence

from jaxbench.config import CaseSettings, Settings
from jaxbench.errors import UserError
from jaxbench.records.manifest import Machine

CPU_DEVICES = (1, 2, 4, 8)
PER_DEVICE = "per_device"


def device_counts(settings: Settings | CaseSettings, machine: Machine) -> tuple[int, ...]:
    """The device counts to sweep: those of the config, or powers of two. machine: a manifest.

    Raises UserError for absent devices or different kinds.
    """
    if machine["platform"] != "cpu":
        _require_accelerators(settings, machine)
    if settings.devices is not None:
        return settings.devices
    limit = settings.max_devices or max(machine["devices"], *CPU_DEVICES)
    if machine["platform"] == "cpu":
        limit = min(limit, machine["cores"]) if not getattr(settings, "oversubscribe", True) else limit
        launched = len(machine.get("hosts", ())) or 1  # each process of a launch gets an equal share of the devices
        return tuple(n for n in sorted({*CPU_DEVICES, launched}) if n <= limit and (n <= launched or n % launched == 0))
    return tuple(2**i for i in range(min(limit, machine["devices"]).bit_length()))


def _require_accelerators(settings: Settings | CaseSettings, machine: Machine) -> None:
    available, kinds = machine["devices"], machine["device_kinds"]
    if max(settings.devices or (1,)) > available:
        raise UserError(
            f"--config.mesh.devices asks for {max(settings.devices or (1,))} devices, this machine has {available} "
            f"({machine['device_kind']}): use at most {available}, or fake devices with --config.mesh.platform=cpu."
        )
    if len(kinds) > 1:  # a block would measure the slower kind
        raise UserError(
            f"this machine has different accelerators ({', '.join(kinds)}): select one kind with CUDA_VISIBLE_DEVICES."
        )


def process_counts(settings: Settings | CaseSettings, counts: Sequence[int], machine: Machine) -> dict[int, int]:
    """By device count: how many processes run a point together, in a launch or on this host. Raises UserError."""
    launched = "hosts" in machine
    return (launched_process_counts if launched else host_process_counts)(settings, counts, machine)


def launched_process_counts(
    settings: Settings | CaseSettings, counts: Sequence[int], machine: Machine
) -> dict[int, int]:
    """`process_counts` in a launch: the first of its processes.

    Each has an equal share of CPU devices, or all of its accelerators. Raises UserError for a number of processes that
    is not the launch's, and for devices that do not divide over them.
    """
    launched, asked = len(machine["hosts"]), str(settings.mesh_processes).strip()
    if asked not in ("1", str(launched)):
        raise UserError(
            f"--config.mesh.processes={asked} is not possible: this command was started {launched} times, as "
            f"{launched} processes; leave it out."
        )
    if machine["platform"] != "cpu":
        per_process = machine["devices"] // launched
        return {count: -(-count // per_process) for count in counts}
    if uneven := [count for count in counts if count > launched and count % launched]:
        raise UserError(
            f"{uneven[0]} devices do not divide over the {launched} processes that were started: use "
            f"--config.mesh.devices={launched}, for example."
        )
    return {count: min(launched, count) for count in counts}


def host_process_counts(settings: Settings | CaseSettings, counts: Sequence[int], machine: Machine) -> dict[int, int]:
    """`process_counts` on this host: the number of `mesh.processes`, but none without a device.

    Raises UserError for an illegal number, for more processes than devices, for devices that do not divide over them,
    and for several accelerators in one of several processes.
    """
    platform, text = machine["platform"], str(settings.mesh_processes).strip()
    field, asked, most = f"--config.mesh.processes={text}", int(text) if text.isdecimal() else None, max(counts)
    if asked == 0 or (asked is None and text != PER_DEVICE):
        raise UserError(f"{field} is not a number of processes: use 1, 2 or {PER_DEVICE}.")
    if asked == 1:
        return dict.fromkeys(counts, 1)
    if platform == "tpu":
        raise UserError(f"{field} is not possible on a TPU, where one process of a host owns all chips: use 1.")
    if platform != "cpu" and asked is not None:
        raise UserError(f"{field} is not possible on a {platform}, where a process has one device: use {PER_DEVICE}.")
    if asked is None:
        return {count: count for count in counts}
    if asked > most:
        raise UserError(
            f"{field} is more than the {most} devices of the largest point: use at most {most}, or more devices with "
            f"--config.mesh.devices={asked}."
        )
    if uneven := [count for count in counts if count > asked and count % asked]:
        raise UserError(
            f"{uneven[0]} devices do not divide over {field}: use {PER_DEVICE}, or --config.mesh.devices={asked}."
        )
    return {count: min(asked, count) for count in counts}

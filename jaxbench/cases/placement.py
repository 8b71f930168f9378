# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Decides where each case is measured: platform, cores, devices, mesh axis, pair of devices. Uses no device."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from jaxbench.cases import runnable
from jaxbench.config import CaseSettings
from jaxbench.core.point import Point
from jaxbench.digits import digits
from jaxbench.errors import NothingToMeasure, UserError
from jaxbench.machine.mesh import AXES, groupings, mesh_text
from jaxbench.parallel.collectives import instruction, payload, resident_bytes
from jaxbench.processes.counts import device_counts, process_counts
from jaxbench.records.manifest import Machine
from jaxbench.workloads.cases import Case, CaseSet, CollectiveWorkload, KernelWorkload, TransferWorkload

# The number formats that a backend multiplies natively; others would measure a conversion.
DTYPES = {
    "cpu": ("float64", "float32", "bfloat16", "float16", "int8", "int32"),
    "gpu": ("float64", "float32", "bfloat16", "float16", "int8", "int32", "float8_e4m3fn", "float8_e5m2"),
    "tpu": ("float32", "bfloat16", "float16", "int8", "int32", "float8_e4m3fn", "float8_e5m2"),
}
SOCKET_BYTES = 2**27  # the same where CPU devices of several processes send through sockets, which are slower
AUTO_BYTES = {"cpu": 2**30, "gpu": 2**33, "tpu": 2**33}  # limit for sizes that the user did not choose
CPU_FLOPS = 2e10  # a further limit for these on a CPU, about a second
CPU_TRANSFER_DEVICES = 4  # twelve pairs of fake devices show as much as fifty-six

# A process holds more than the case itself: inputs drawn on the host, the correct result in double precision, scratch
# of compiler and libraries. Measured on a CPU (`VmHWM`): up to 7.9 times the case for kernels (a softmax, a product in
# bfloat16), up to 4.5 times for transfers and collectives. The host's memory must be this multiple of the case.
HOST_SHARE = {"kernel": 8, "other": 5}


def mesh_devices(point: Point) -> int:
    """The devices of its mesh: "2x4" -> 8; 1 without a mesh."""
    return math.prod(int(side) for side in point.mesh.split("x")) if point.mesh else 1


def bytes_per_device(point: Point) -> int:
    """One device's part of `resident_bytes`; for a transfer, all of them."""
    return (point.resident_bytes or 0) // mesh_devices(point)


@dataclass
class _Fit:
    """Decides which cases fit, and keeps the cases that were left out with the reason."""

    settings: CaseSettings
    machine: Machine
    typed: bool
    left_out: dict[str, list[str]] = field(default_factory=dict)

    def memory(self, case: Case, platform: str) -> tuple[int, str]:
        """(the bytes that a case may hold at the same time, the reason).

        The limit is a part of the host's memory (`HOST_SHARE`), and at most half of a device's memory."""
        host = self.machine.get("memory_bytes") or 2**33  # 8 GiB if the system does not say
        share = HOST_SHARE["kernel" if isinstance(case, KernelWorkload) else "other"]
        device = self.machine.get("device_memory_bytes") if platform != "cpu" else None
        if device and device // 2 < host // share:
            return device // 2, f"half the memory of a device is {_size_text(device // 2)}"
        why = f"measuring and checking it takes up to {share} times as much, of {_size_text(host)} of memory"
        return host // share, why

    def __call__(self, case: Case, platform: str, resident: int, *, auto_bytes: int | None = None) -> bool:
        """Whether the case is measured. auto_bytes: the limit for sizes that the user did not choose.

        Raises UserError when the user chose its size and it does not fit.
        """
        limit, reason = self.memory(case, platform)
        if self.typed and resident > limit:
            raise UserError(
                f"{case.key} would hold {_size_text(resident)} at the same time ({_sum(case, resident)}), "
                f"and {reason}: use smaller --config.sizes."
            )
        limit = min(limit, self.settings.max_bytes or auto_bytes or AUTO_BYTES[platform])
        flops = case.flops if isinstance(case, KernelWorkload) else None
        if (self.settings.max_bytes or not self.typed) and resident > limit:
            why = f"they would hold more than {_size_text(limit)} at the same time (config.max_bytes)"
        elif not self.typed and platform == "cpu" and flops and flops > CPU_FLOPS:
            why = f"a call has more than {CPU_FLOPS:.0e} FLOPs, too many for a CPU unless --config.sizes names it"
        else:
            return True
        self.left_out.setdefault(why, []).append(case.key)
        return False

    def thinned(self, cases: list[CollectiveWorkload]) -> list[CollectiveWorkload]:
        """Every second size, unless the user chose the sizes: the times of oversubscribed devices support no claim."""
        sizes = sorted({case.payload_bytes for case in cases})
        thinned = [case for case in cases if self.typed or case.payload_bytes in sizes[::2]]
        if keys := [f"{case.key} on more devices than cores" for case in cases if case not in thinned]:
            why = "with more devices than cores they show bytes but not speed, so every second size is enough"
            self.left_out.setdefault(why, []).extend(keys)
        return thinned

    def sentences(self) -> list[str]:
        return [f"Left out: {_first_keys(keys)}: {why}." for why, keys in self.left_out.items()]


def place(cases: CaseSet, settings: CaseSettings, machine: Machine) -> tuple[list[Point], list[str]]:
    """(the points, sentences about cases that were left out). machine: a manifest.

    Raises:
      UserError: a dtype that the backend lacks, a chosen size that does not fit, or a mesh that does not multiply to
        the device count.
      NothingToMeasure: everything was left out, or there is one device and only collectives.
    """
    fits = _Fit(settings, machine, cases.typed)
    kernels = [c for c in cases.cases if isinstance(c, KernelWorkload)]
    transfers = [c for c in cases.cases if isinstance(c, TransferWorkload)]
    collectives = [c for c in cases.cases if isinstance(c, CollectiveWorkload)]
    alone = f"the kernels and transfers of '{cases.name}' are measured by one process"
    if (kernels or transfers) and "hosts" in machine:
        raise UserError(f"{alone}: start it without a launcher, or choose collectives.")
    if (kernels or transfers) and (asked := str(settings.mesh_processes).strip()) != "1":
        raise UserError(f"--config.mesh.processes={asked}: {alone}: use 1.")
    points = [*_kernels(kernels, settings, machine, fits), *_transfers(transfers, settings, machine, fits)]
    points += _collectives(collectives, settings, machine, fits)
    if not points:
        raise NothingToMeasure(f"nothing is left to measure. {' '.join(fits.sentences())}".strip())
    return points, fits.sentences()


def _kernels(kernels: list[KernelWorkload], settings: CaseSettings, machine: Machine, fits: _Fit) -> Iterator[Point]:
    """A point for each kernel and device that fits: the accelerator, and the CPU also for comparison."""
    accelerator = machine["platform"] if machine["platform"] != "cpu" else None
    for case in kernels:
        _require_dtype(case, accelerator or "cpu")
        host = case.host or accelerator is None
        if accelerator and not (case.host or case.cpu_only) and fits(case, accelerator, case.resident_bytes):
            yield _kernel(case, case.key, accelerator, machine["cores"])
        compare = settings.platform == "auto" and case.dtype in DTYPES["cpu"]  # also on the CPU, for comparison
        if (host or compare) and fits(case, "cpu", case.resident_bytes):
            counts = [machine["cores"] if cores == "all" else 1 for cores in settings.cores]
            counts = [1] if case.one_core and 1 in counts else counts
            for count in dict.fromkeys(counts):  # on a machine of one core both are the same
                suffix = f"/cores{count}" if len(settings.cores) > 1 else ""
                at_cpu = "@cpu" if accelerator and not case.host else ""  # the accelerator has a point of that name
                yield _kernel(case, f"{case.key}{suffix}{at_cpu}", "cpu", count)


def _require_dtype(case: Case, platform: str) -> None:
    if case.dtype not in DTYPES[platform]:
        raise UserError(
            f"--config.dtypes={case.dtype}: a {platform} does not compute in this dtype; choose from "
            f"{', '.join(DTYPES[platform])}."
        )


def _kernel(case: KernelWorkload, point: str, platform: str, cores: int) -> Point:
    """The point of a kernel on a platform with this many cores."""
    return Point(
        of_case=True,
        point=point,
        key=case.key,
        family="kernel",
        op=case.op,
        dtype=case.dtype,
        impl=case.impl,
        shape=case.shape,
        elements=case.elements,
        flops=case.flops,
        bytes_moved=case.bytes_moved,
        platform=platform,
        cores=cores,
        resident_bytes=case.resident_bytes,
    )


def _transfers(
    transfers: list[TransferWorkload], settings: CaseSettings, machine: Machine, fits: _Fit
) -> Iterator[Point]:
    """The points of transfers: every size on the first device or pair, and the largest that fits on all of them."""
    platform = machine["platform"]
    devices = max(device_counts(settings, machine))
    if platform == "cpu" and settings.devices is None:
        devices = min(devices, CPU_TRANSFER_DEVICES)
    fitting = [case for case in transfers if fits(case, platform, case.resident_bytes)]
    largest = {case.op: max(c.payload_bytes for c in fitting if c.op == case.op) for case in fitting}
    for case in fitting:
        _require_dtype(case, platform)
        pairs = runnable.pairs(case.op, runnable.ends(platform, devices))
        for source, target in pairs if case.payload_bytes == largest[case.op] else pairs[:1]:
            yield Point(
                of_case=True,
                point=f"{case.key}/{source}->{target}",
                key=case.key,
                family="transfer",
                op=case.op,
                dtype=case.dtype,
                impl="jax",
                payload_bytes=runnable.payload(case),
                bytes_moved=float(runnable.payload(case)),
                source=source,
                target=target,
                platform=platform,
                cores=machine["cores"],
                resident_bytes=case.resident_bytes,
            )


def _collectives(
    collectives: list[CollectiveWorkload], settings: CaseSettings, machine: Machine, fits: _Fit
) -> Iterator[Point]:
    """A point for each collective, device count and grouping that fits. Raises UserError if there is one device."""
    platform = machine["platform"]
    typed = settings.devices is not None
    swept = [n for n in device_counts(settings, machine) if n > 1 or typed]  # one device sends nothing
    if collectives and not swept:
        raise NothingToMeasure(
            "a collective needs at least 2 devices, and this machine has 1: --config.mesh.platform=cpu uses fake ones."
        )
    processes = process_counts(settings, swept, machine) if collectives else {}
    for devices in swept:
        shape_text = settings.mesh_shape if devices == max(swept) else ""  # a mesh such as 2x4 has one size
        owners = processes.get(devices, 1)
        sockets = SOCKET_BYTES if platform == "cpu" and owners > 1 else None
        oversubscribed = platform == "cpu" and devices > machine["cores"]
        cases = fits.thinned(collectives) if oversubscribed else collectives
        for mesh_shape, axis in groupings(devices, shape_text, parts=_parts(devices, owners, machine)):
            participants, mesh = mesh_shape[AXES.index(axis)], mesh_text(mesh_shape)
            group = f"{mesh}:{axis}" if len(mesh_shape) > 1 else mesh
            for case in cases:
                _require_dtype(case, platform)
                resident = resident_bytes(case, devices, participants, platform)
                # CPU devices all hold their arrays in the host's memory.
                on_device = resident if platform == "cpu" else resident // devices
                if fits(case, platform, on_device, auto_bytes=sockets):
                    yield Point(
                        of_case=True,
                        point=f"{case.key}/{group}",
                        key=case.key,
                        family="collective",
                        op=case.op,
                        dtype=case.dtype,
                        impl=instruction(case.op, platform),
                        payload_bytes=payload(case, participants),
                        devices=participants,
                        mesh=mesh,
                        axis=axis,
                        platform=platform,
                        cores=machine["cores"],
                        resident_bytes=resident,
                        oversubscribed=oversubscribed,
                        processes=owners,
                    )


def _parts(devices: int, owners: int, machine: Machine) -> int:
    """The number of equal parts into which hosts, if there are several, or processes divide the devices."""
    hosts = len(set(machine.get("hosts", ())[:owners]))
    return hosts if hosts > 1 and devices % hosts == 0 else owners


def _sum(case: Case, resident: int) -> str:
    """The parts of `resident`, in words."""
    if isinstance(case, KernelWorkload):
        arguments = " + ".join(_size_text(a.nbytes) for a in case.arguments)
        rest = resident - sum(a.nbytes for a in case.arguments)
        return f"arguments {arguments}, results and buffers {_size_text(rest)}"
    if isinstance(case, TransferWorkload):
        return f"source and copy, {_size_text(case.payload_bytes)} each"
    return f"argument, result and scratch of {_size_text(case.payload_bytes)} on each device"


def _size_text(value: float) -> str:
    units = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
    return next((f"{digits(value / size)} {unit}" for size, unit in units if value >= size), f"{value:.0f} bytes")


def _first_keys(keys: list[str]) -> str:
    keys = list(dict.fromkeys(keys))  # a case may be left out once for each device count
    return ", ".join(keys) if len(keys) <= 3 else f"{', '.join(keys[:2])} and {len(keys) - 2} more"

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Absent hardware for which XLA can compile: `h100:8`, `v5e:4x4`, two slices `v5e:2x4x4`, hosts of 4 `h100:2x4`.

`gpu_targets.csv` has the device description that XLA's GPU compiler needs. The TPU compiler knows its chips, and this
module has the shapes of their slices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from jaxbench.catalog import hardware, rows
from jaxbench.errors import UserError, did_you_mean, present

# JAX's name of a device, how many dimensions its slices have, and how many devices are on a chip.
TPUS = {
    "v5e": ("TPU v5 lite", 2, 1),
    "v5p": ("TPU v5", 3, 1),
    "v6e": ("TPU v6 lite", 2, 1),
    "tpu7x": ("TPU7x", 3, 2),
}
_HOST_CHIPS = (2, 2, 1)  # of one TPU host along each side
# XLA has these targets, but no JAX package can compile for them without a device.
_NEEDS_A_DEVICE = {"mi300x": "JAX's ROCm plug-in compiles only for the GPU that it runs on"}


@dataclass(frozen=True, kw_only=True)
class Target:
    """A number of devices of one kind.

    Attributes:
      shape: the chips of a TPU slice along each side; () for GPUs. slices: of TPUs, joined by a data-centre network.
      memory_bytes: of one device.
      host: GPUs in one host, as XLA counts them. domain: GPUs that NVLink or PCIe connects; more than `host` in a rack.
      path: how GPUs of a domain reach each other: nvlink | p2p | staged (through the memory of the host, without
        peer-to-peer). pcie: generation and lanes of a GPU's slot, such as "4x16".
      chip: devices on one chip.
      described: where the compiler's description of a GPU is from.
    """

    text: str
    name: str
    platform: str
    device_kind: str
    devices: int
    shape: tuple[int, ...]
    memory_bytes: int
    slices: int = 1
    host: int = 1
    domain: int = 1
    path: str = ""
    pcie: str = ""
    chip: int = 1
    described: str = ""

    @property
    def counts(self) -> tuple[int, ...]:
        """The device counts of a sweep: powers of two up to all of them, in whole hosts if several, and all."""
        powers = (2**power for power in range(self.devices.bit_length()))
        parts = {n for n in powers if self.chip <= n <= self.devices and (n <= self.host or n % self.host == 0)}
        return tuple(sorted({*parts, self.devices}))

    def part(self, devices: int) -> Target:
        """The target with `devices` devices of the same kind. Raises UserError for a count that no slice has, or that
        is not a number of whole hosts."""
        if self.platform == "gpu":
            if devices > self.host and devices % self.host:
                raise UserError(f"--target={self.text} has hosts of {self.host} GPUs: ask for a multiple of them.")
            usual = int(_gpu_rows()[self.name]["host"])  # written without the hosts, as a person would
            if self.host == usual or devices <= self.host:
                return parse(f"{self.name}:{devices}")
            return parse(f"{self.name}:{devices // self.host}x{self.host}")
        per_slice = math.prod(self.shape) * self.chip
        if self.slices > 1 and devices > per_slice and devices % per_slice == 0:  # another number of the same slices
            return parse(f"{self.name}:{devices // per_slice}x{'x'.join(map(str, self.shape))}")
        shape = [1] * len(self.shape)
        # Doubles the last of the shortest sides, but the third after the other two, as a host has 2 x 2 x 1 chips.
        while math.prod(shape) * self.chip < devices:
            at = max(range(len(shape)), key=lambda axis: (-shape[axis], axis < 2, axis))
            shape[at] *= 2
        shape = list(self.shape) if devices == per_slice else shape
        if math.prod(shape) * self.chip != devices:
            few = ", ".join(str(self.chip * 2**power) for power in range(4))
            raise UserError(f"--target={self.text} has no slice of {devices} devices: ask for {few} and so on.")
        return parse(f"{self.name}:{'x'.join(map(str, shape))}")

    def topology(self) -> tuple[str, dict[str, Any]]:
        """(platform of JAX, arguments of `get_topology_desc`)."""
        if self.platform == "gpu":
            hosts = max(1, self.devices // self.host)
            grid = f"1x{hosts}x{self.devices // hosts}"  # XLA's slices x hosts of a slice x GPUs of a host
            return "cuda", {"topology_name": grid, "topology": grid, "target_config": gpu_config(self.name)}
        host = tuple(min(side, most) for side, most in zip(self.shape, _HOST_CHIPS, strict=False))
        bounds = (*host, *[1] * (3 - len(host)))
        one = f"{self.name}:{'x'.join(map(str, self.shape))}"
        return "tpu", {"topology_name": one, "chips_per_host_bounds": bounds, "num_slices": self.slices}

    def machine(self) -> dict[str, Any]:
        """The facts of a machine's manifest that a plan needs."""
        return {
            "platform": self.platform,
            "device_kind": self.device_kind,
            "devices": self.devices,
            "device_kinds": [self.device_kind],
            "cores": 0,  # unknown, and only plans for a CPU ask
            "processes": 1,
            "device_memory_bytes": self.memory_bytes,
            "memory_bytes": 2**40,  # of the host, large enough for any plan
        }


def names() -> list[str]:
    """One example of each target."""
    slices = {(2, 1): "2x4", (3, 1): "2x2x2", (3, 2): "2x2x1"}  # of eight devices
    return [
        *(f"{name}:8" for name in _gpu_rows()),
        *(f"{name}:{slices[dims, chip]}" for name, (_, dims, chip) in TPUS.items()),
    ]


def parse(text: str) -> Target:
    """The target of a text such as "v5e:4x4" or "h100:8". Raises UserError that names the fault."""
    name, _, size = text.partition(":")
    if name in _NEEDS_A_DEVICE:
        raise UserError(f"--target={text} cannot be compiled for here: {_NEEDS_A_DEVICE[name]}.")
    if name not in _gpu_rows() and name not in TPUS:
        raise UserError(f"--target={text} is unknown: {did_you_mean(text, names())}")
    sides = size.split("x")
    if not all(side.isdecimal() and int(side) > 0 for side in sides):
        raise UserError(f"--target={text} does not say how many devices: write, for example, {_example(name)}.")
    shape = tuple(map(int, sides))
    count = math.prod(shape)
    if name in TPUS:
        kind, dims, chip = TPUS[name]
        slices, shape = (shape[0], shape[1:]) if len(shape) == dims + 1 else (1, shape)
        whole = all(side % most == 0 or count // slices < 4 for side, most in zip(shape, _HOST_CHIPS, strict=False))
        if len(shape) != dims or not whole:
            raise UserError(f"--target={text} is not a slice: {name} has {dims} dimensions, such as {_example(name)}.")
        memory_bytes = present(present(hardware.find(kind)).memory_bytes)  # the catalogue has every chip in TPUS
        return Target(
            text=text,
            name=name,
            platform="tpu",
            device_kind=kind,
            devices=count * chip,
            shape=shape,
            memory_bytes=memory_bytes,
            chip=chip,
            slices=slices,
        )
    # Without the hosts as a second number they have as many GPUs as is usual for the part.
    row = _gpu_rows()[name]
    usual, domain = int(row["host"]), int(row["domain"])
    host = shape[1] if len(shape) == 2 else usual
    if len(shape) > 2 or (count > host and count % host):
        raise UserError(
            f"--target={text}: give the number of GPUs, 1 to {usual} or a multiple of {usual}, such as "
            f"{name}:{2 * usual}, or hosts and the GPUs of each, such as {name}:4x4."
        )
    return Target(
        text=text,
        name=name,
        platform="gpu",
        device_kind=row["device_kind"],
        devices=count,
        shape=(),
        memory_bytes=int(row["memory_bytes"]),
        host=host,
        domain=host if domain == usual else domain,
        path=row["link"],
        pcie=row["pcie"],
        described=row["source"],
    )


def _example(name: str) -> str:
    """The first full name of a target that was typed without a size."""
    return next(example for example in names() if example.startswith(f"{name}:"))


def cores(device_kind: str) -> int:
    """The multiprocessors of a GPU; 0: no target is of this kind."""
    return next((int(row["cores"]) for row in _gpu_rows().values() if row["device_kind"] == device_kind), 0)


def gpu_config(name: str) -> str:
    """A GpuTargetConfigProto, as text."""
    row = _gpu_rows()[name]
    major, minor = row["capability"].split(".")
    return f"""gpu_device_info {{
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: {row["threads_per_core"]}
  shared_memory_per_block: 49152 shared_memory_per_core: {row["shared_bytes"]}
  shared_memory_per_block_optin: {row["shared_bytes_optin"]}
  core_count: {row["cores"]} fpus_per_core: {row["units_per_core"]} clock_rate_ghz: {row["clock_ghz"]}
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: {row["memory_bytes_per_s"]} l2_cache_size: {row["l2_bytes"]}
  device_memory_size: {row["memory_bytes"]}
  cuda_compute_capability {{ major: {major} minor: {minor} }}
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 1 patch: 0 }}
device_description_str: "{row["device_kind"]}"
"""


def _gpu_rows() -> dict[str, dict[str, str]]:
    return {row["name"]: row for row in rows("gpu_targets.csv")}

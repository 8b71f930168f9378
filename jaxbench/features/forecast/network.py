# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The seconds of one collective on the links of a target: alpha for the message, plus its wire bytes over the rate.

A TPU slice is a torus. A collective uses both directions of every side that it spans, and both ways around if the side
closes to a ring. A data-centre network joins slices. The GPUs of a host share NVLink or PCIe. Between hosts each GPU
has one adapter, and a group with several members on a host uses all of their adapters. The rates are from the
catalogue, a machine profile, or given.
"""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass

from jaxbench.analysis import alpha_beta
from jaxbench.catalog import hardware
from jaxbench.catalog.targets import Target
from jaxbench.core.schema import Collective
from jaxbench.errors import UserError, present
from jaxbench.features.forecast.forecasts import NVLINK, PEER, STAGED
from jaxbench.records.machine_profile import MachineProfile

_RATE = re.compile(r"(\d+(?:\.\d+)?)(k|m|g|t)bit(?::(\d+(?:\.\d+)?)(us|ms))?")
_POWERS = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_SLOT = re.compile(r"pcie([345])x(16|8|4|2|1)((?::(?:p2p|staged|switch|sockets))*)")
NO_NETWORK = "the catalogue has no network between hosts of this kind: give one with --link=400gbit."
_NVLINK_OF = "NVIDIA H100 SXM"  # the NVLink with which PCIe is compared


@dataclass(frozen=True, kw_only=True)
class AlphaBetaLink:
    """The link of one device: seconds per message, and bytes per second that it sends. slowest_alpha_s: if alpha_s is
    assumed, the longest that was measured on such a link; None: alpha_s is known."""

    alpha_s: float
    bytes_per_s: float
    slowest_alpha_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class PciePath:
    """The way between the GPUs of a host over PCIe.

    With peer-to-peer a GPU writes into another's memory. Without it, each byte is staged: one GPU writes it into the
    memory of the host, and the other reads it there. Both directions of a GPU's link then carry one flow, as with
    peer-to-peer, but at a lower rate. Behind one switch, staged flows share its link to the host: each crosses it once
    in each direction (NVIDIA/nccl#1309). Between two sockets the link of the processors is a further limit.

    Attributes:
      generation, lanes: of each GPU's link.
      peer: whether peer-to-peer is on.
      switch: whether the GPUs of a socket share one link to the host.
      socket: GPUs at each processor; None: all of them.
      limit: bytes per second that nothing exceeds, such as a slow host's; None: no further limit.
    """

    generation: int
    lanes: int
    peer: bool
    switch: bool = False
    socket: int | None = None
    limit: float | None = None

    def link(self, group: int) -> AlphaBetaLink:
        """The link of one of `group` GPUs that communicate."""
        near = self.socket or group
        rate = self.lanes * hardware.pcie(f"lane_{self.generation}")
        rate *= hardware.pcie("peer_share" if self.peer else "staged_share")
        if self.switch and not self.peer:  # peers behind one switch reach each other without the host's link
            rate /= min(group, near)
        if group > near:
            rate = min(rate, hardware.pcie("sockets"))
        return AlphaBetaLink(alpha_s=hardware.pcie("alpha_s"), bytes_per_s=min(rate, self.limit or math.inf))

    def __str__(self) -> str:
        words = [f"PCIe {self.generation}.0 x{self.lanes}", PEER if self.peer else f"{STAGED} through the host"]
        return ", ".join([*words, *["one switch"] * self.switch, *["two sockets"] * (self.socket == 1)])


@dataclass(frozen=True, kw_only=True)
class Torus:
    """A TPU slice. link: one hop, in one direction of one link of a chip. ring: sides that are a multiple of this are
    rings. chip: devices on a chip, which share its links. Within a chip data move six times as fast
    (docs.cloud.google.com/tpu/docs/tpu7x). That time counts only if all members are on one chip.
    """

    shape: tuple[int, ...]
    link: AlphaBetaLink
    ring: int
    chip: int = 1

    def seconds(self, collective: Collective, stride: int) -> float:
        if collective.group > 1 and (collective.group - 1) * max(1, stride) < self.chip:
            return self.link.alpha_s + collective.wire_bytes / (6 * self.link.bytes_per_s)
        if self.chip > 1:  # the links are those of the chip: as many bytes leave it as with one device on each
            on_one = max(1, self.chip // max(1, stride))  # members of the group
            chips = dataclasses.replace(collective, group=-(-collective.group // on_one))
            return dataclasses.replace(self, chip=1).seconds(chips, stride // self.chip)
        sides = self._sides(collective.group)
        if not sides or not collective.wire_bytes:
            return 0.0
        # An all-reduce is a reduce-scatter and an all-gather. Its wire bytes have both, but the hops come twice.
        rate, rounds = self.link.bytes_per_s, 2 if collective.kind == "all-reduce" else 1
        if collective.kind == "collective-permute":  # all devices send at once, and share the links on their ways
            links = self._links(stride)
            return links * (self.link.alpha_s + collective.wire_bytes / rate)
        hops = sum(side // 2 if self._is_ring(side) else side - 1 for side in sides)
        ports = sum(2 if self._is_ring(side) else 1 for side in sides)
        crossing = 1 / ports
        if collective.kind == "all-to-all":
            # Half of n devices send half of their bytes across the middle of the longest side. It has n / longest
            # links, and twice as many if the side closes to a ring.
            longest = max(sides)
            crossing = max(crossing, longest / (8 if self._is_ring(longest) else 4))
        return rounds * hops * self.link.alpha_s + collective.wire_bytes * crossing / rate

    def _links(self, stride: int) -> int:
        """The links between two devices `stride` apart in device order, which runs along the last side first."""
        for side in reversed(self.shape):
            if along := stride % side:
                return min(along, side - along) if self._is_ring(side) else along
            stride //= side
        return 1

    def _is_ring(self, side: int) -> bool:
        return side > 2 and side % self.ring == 0  # two chips are neighbours either way: there is no way around

    def _sides(self, group: int) -> list[int]:
        """The sides of the slice that a group spans: whole sides from the last on, as long as they divide the group."""
        # From the last on, because device numbers run along the last side first, and so do the axes of a mesh.
        sides, left = [], group or math.prod(self.shape)
        for side in reversed(self.shape):
            if side > 1 and left % side == 0:
                sides.append(side)
                left //= side
        return [side for side in ([*sides, left] if left > 1 else sides) if side > 1]


def _near(collective: Collective, stride: int, unit: int) -> int:
    """The members of a group on one host or slice of `unit` devices, which together send to the others."""
    # Members are `stride` devices apart, so a unit has a `stride`-th of its devices in the group.
    near = min(collective.group, max(1, unit // max(1, stride))) if collective.group else unit
    return 1 if collective.kind == "collective-permute" and near != collective.group else near


def _across_s(collective: Collective, near: int, inside_s: float, between: AlphaBetaLink) -> float:
    """The seconds of a collective across hosts or slices with `near` members each, which takes `inside_s` in one."""
    share = 1 / near
    if collective.kind == "all-to-all":  # every number is for one device only, so neighbours do not share the sending
        share = (collective.group - near) / max(1, collective.group - 1)
    # The longer of both: while one part of the array travels between hosts, the next one travels inside.
    return between.alpha_s + max(inside_s, share * collective.wire_bytes / between.bytes_per_s)


@dataclass(frozen=True, kw_only=True)
class Slices:
    """TPU slices of `devices` devices each. between: the part of a device in the network that joins them. A collective
    runs inside each slice and, with as many parts as it has members there, between them."""

    devices: int
    inside: Torus
    between: AlphaBetaLink

    def seconds(self, collective: Collective, stride: int) -> float:
        near = _near(collective, stride, self.devices)
        if near == collective.group or not collective.wire_bytes:
            return self.inside.seconds(collective, stride)
        inside_s = self.inside.seconds(dataclasses.replace(collective, group=near), stride) if near > 1 else 0.0
        return _across_s(collective, near, inside_s, self.between)


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """Hosts with several devices each. inside: the link within a host by kind of collective, "" for other kinds; or
    the path over PCIe. between: the adapter of a device between hosts."""

    host: int
    inside: dict[str, AlphaBetaLink] | PciePath
    between: AlphaBetaLink | None

    def seconds(self, collective: Collective, stride: int) -> float:
        group = collective.group
        if group == 1 or not collective.wire_bytes:
            return 0.0
        near = _near(collective, stride, self.host)
        if isinstance(self.inside, PciePath):
            inside: AlphaBetaLink | None = self.inside.link(near)
        else:
            inside = self.inside.get(collective.kind) or self.inside.get("")  # NVSwitch can sum: a rate of its own
        inside_s = collective.wire_bytes / inside.bytes_per_s if inside else 0.0
        if near == group:
            return present(inside).alpha_s + inside_s  # a host with several devices has links between them
        if self.between is None:
            raise UserError(NO_NETWORK)
        return _across_s(collective, near, inside_s, self.between)


@dataclass(frozen=True, kw_only=True)
class MeasuredLinks:
    """The measured links of a machine profile."""

    profile: MachineProfile

    def seconds(self, collective: Collective, stride: int) -> float:
        spreads = [alpha_beta.link_group(link) for link in self.profile["links"]]
        # Of the measured groups, the one over the most hosts and processes: a forecast is for more than one host holds.
        hosts, processes = max(((c, b) for a, b, c in spreads if a == collective.group), default=(1, 1))
        seconds = alpha_beta.collective_s(collective, collective.group, self.profile, processes, hosts)
        if math.isnan(seconds):
            raise UserError(
                f"the profile has no {collective.kind} among {collective.group} devices: measure that many with "
                "'jaxbench machine', or leave out --card."
            )
        return seconds


Network = Torus | Slices | Hosts | MeasuredLinks


def of(target: Target, *, between: AlphaBetaLink | None = None, path: PciePath | None = None) -> Network:
    """The catalogue's network of a target. between: replaces its network between hosts. path: replaces its links
    within a host. Raises UserError."""
    peak = hardware.find(target.device_kind)
    name = peak.name if peak is not None else ""
    if target.platform == "tpu":
        link = hardware.link(name, "ici")
        if link is None:
            raise UserError(f"--targets={target.text}: the catalogue has no links of {target.device_kind}: use v5e.")
        if target.devices > link.pod * target.chip * target.slices:
            raise UserError(
                f"--targets={target.text} is larger than a slice of {target.name} can be: use at most {link.pod}."
            )
        torus = Torus(shape=target.shape, link=_as_alpha_beta(link), ring=link.ring, chip=target.chip)
        if target.slices == 1:  # then it needs no network, whether the catalogue has one or not
            return torus
        joined = hardware.link(name, "dcn")
        between = between or (_as_alpha_beta(joined) if joined else None)
        if between is None:
            raise UserError(
                f"--targets={target.text}: the catalogue has no network between slices of {target.name}: give one with "
                "--link=100gbit."
            )
        return Slices(devices=target.devices // target.slices, inside=torus, between=between)
    outside = hardware.link(name, "network")
    inside = path or (_nvlink_by_kind(name) if target.path == "nvlink" else slot(target, peer=target.path == "p2p"))
    between = between or (_as_alpha_beta(outside) if outside else None)
    if target.devices > target.domain and between is None:
        raise UserError(f"--targets={target.text}: {NO_NETWORK}")
    return Hosts(host=target.domain, inside=inside, between=between)


def largest(target: Target) -> float:
    """The most devices of this kind that the catalogue can connect: a slice, or a host without a known network."""
    peak = hardware.find(target.device_kind)
    name = peak.name if peak is not None else ""
    if target.platform == "tpu":
        link = hardware.link(name, "ici")
        return link.pod * target.chip if link is not None else 1
    return math.inf if hardware.link(name, "network") is not None else target.domain


def slot(target: Target, *, peer: bool) -> PciePath:
    """The path over the slots of a target's GPUs: four at each processor, each with its own link to it."""
    generation, _, lanes = target.pcie.partition("x")
    return PciePath(generation=int(generation), lanes=int(lanes), peer=peer, socket=4)  # eight GPUs in two sockets


def alternatives(network: Network, target: Target) -> dict[str, Network]:
    """The same network with the other links that a host may have: NVLink, and PCIe with peer-to-peer and without.

    {} for TPUs, for a machine profile, and where nothing is sent within a host. NVLink is the target's own, or H100's.
    """
    if not isinstance(network, Hosts) or min(target.devices, network.host) == 1 or not target.pcie:
        return {}
    path = network.inside if isinstance(network.inside, PciePath) else None
    paths = {peer: dataclasses.replace(path or slot(target, peer=peer), peer=peer) for peer in (True, False)}
    peak = hardware.find(target.device_kind)
    own = target.path == "nvlink" and peak is not None
    nvlink = _nvlink_by_kind(peak.name if own and peak else _NVLINK_OF)  # a GPU without NVLink has no rate of its own
    inside: dict[str, dict[str, AlphaBetaLink] | PciePath] = {NVLINK: nvlink, PEER: paths[True], STAGED: paths[False]}
    return {name: dataclasses.replace(network, inside=each) for name, each in inside.items()}


def _nvlink_by_kind(name: str) -> dict[str, AlphaBetaLink]:
    found = {kind: hardware.link(name, "nvlink", kind) for kind in ("", "all-reduce")}
    return {kind: _as_alpha_beta(link) for kind, link in found.items() if link is not None}


def parse(text: str) -> AlphaBetaLink | PciePath:
    """The link between two hosts, from "1gbit" or "300mbit:50us", or the one within a host, from "pcie4x16:staged",
    "pcie4x8:p2p" or "pcie4x16:staged:switch:sockets". Raises UserError."""
    if text.strip().startswith("pcie"):
        return _parse_slot(text.strip())
    match = _RATE.fullmatch(text.strip())
    if match is None or not float(match[1]):
        raise UserError(f"--link={text} is not a rate: write, for example, 1gbit, 300mbit or 1gbit:50us.")
    rate = float(match[1]) * _POWERS[match[2]] / 8  # bits to bytes
    if match[3]:
        return AlphaBetaLink(alpha_s=float(match[3]) / (1e6 if match[4] == "us" else 1e3), bytes_per_s=rate)
    assumed, slow = (present(hardware.link("cpu", name)) for name in ("network", "slow network"))
    return AlphaBetaLink(alpha_s=assumed.alpha_s, bytes_per_s=rate, slowest_alpha_s=slow.alpha_s)


def _parse_slot(text: str) -> PciePath:
    match = _SLOT.fullmatch(text)
    words = match[3].split(":")[1:] if match else []
    if match is None or len({"p2p", "staged"} & set(words)) != 1:
        raise UserError(
            f"--link={text} is not a slot and its path: write pcie4x16:staged or pcie4x16:p2p, and :switch if the GPUs "
            "share a switch, :sockets if they are at two processors."
        )
    return PciePath(
        generation=int(match[1]),
        lanes=int(match[2]),
        peer="p2p" in words,
        switch="switch" in words,
        socket=1 if "sockets" in words else None,
    )


def slowest(network: Network) -> Network:
    """The same network at its slowest: an assumed alpha between hosts or slices is the longest that was measured, and a
    path through the host's memory has the lowest rate that was measured on one."""
    if isinstance(network, Hosts) and isinstance(network.inside, PciePath) and not network.inside.peer:
        path = dataclasses.replace(network.inside, limit=hardware.pcie("slowest_staged"))
        network = dataclasses.replace(network, inside=path)
    if isinstance(network, Hosts | Slices) and network.between and network.between.slowest_alpha_s is not None:
        between = dataclasses.replace(network.between, alpha_s=network.between.slowest_alpha_s)
        network = dataclasses.replace(network, between=between)
    return network


def assumed(network: Network) -> list[str]:
    """What `slowest` changes, in sentences."""
    notes = []
    if isinstance(network, Hosts) and isinstance(network.inside, PciePath) and not network.inside.peer:
        notes.append("The band reaches to the slowest rate that was measured without peer-to-peer.")
    if isinstance(network, Hosts | Slices) and network.between and network.between.slowest_alpha_s is not None:
        notes.append(
            "The latency of a message is assumed: measure the link with 'jaxbench run collectives' and give --card."
        )
    return notes


def _as_alpha_beta(link: hardware.KnownLink) -> AlphaBetaLink:
    return AlphaBetaLink(alpha_s=link.alpha_s, bytes_per_s=link.bytes_per_s)

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Does `jaxbench accept` find real faults on this machine, and does it leave a healthy machine alone?

- healthy: repeats on this machine as it is; at most one of 20 may fail.
- bit: a flipped bit in the result of a probe.
- quota: two processes, one in a control group with a quarter of a core (Linux, root).
- software: three processes, one with other flags of XLA.
- link: two network namespaces, first with a free link, then at 200 Mbit/s by `tc`, against the first result (root).

Run: python -m benchmarks.accept_faults [--only=bit,quota] [--repeats=20]
Writes docs/figures/accept/faults.json. Exit code 1 if a fault was not found, or if more than one repeat failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from jaxbench.features.accept import bits, outcome
from jaxbench.features.accept.outcome import Acceptance

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs" / "figures" / "accept" / "faults.json"
GROUP = Path("/sys/fs/cgroup/cpu/jaxbench-accept")  # version 1; in version 2 the folder has no "cpu"
SPACES, ADDRESSES = ("jbaccept0", "jbaccept1"), ("10.213.78.1", "10.213.78.2")
LIMIT_S = 300
RATE = "200mbit"


@dataclass(frozen=True)
class Shown:
    """What one demonstration shows. codes: of its tests. named: the first sentence of the last test."""

    fault: str
    found: bool
    codes: tuple[int, ...]
    named: str


def test(folder: Path, words: Sequence[str], before: Sequence[Sequence[str]] = ((),), **more: str) -> Acceptance:
    """One test by as many processes as there are prefixes of their commands. Returns what process 0 found."""
    count, address = len(before), more.pop("address", "")
    if count > 1 and not address:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}"
    place = [f"--coordinator={address}", f"--processes={count}"] if count > 1 else []
    command = [sys.executable, "-m", "jaxbench", "accept", f"--workdir={folder}", "--share_machine", *words]
    started = []
    for process, prefix in enumerate(before):
        own = [*place, f"--process={process}"] if place else []
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **more}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started.append(subprocess.Popen([*prefix, *command, *own], env=environment, **quiet))  # type: ignore[call-overload]
    for each in started:
        each.wait(LIMIT_S)
    return outcome.read(folder / outcome.FILE)


def shown(fault: str, found: bool, *tests: Acceptance) -> Shown:
    # Without the temporary folder of the card.
    named = re.sub(r"/\S*/free/", "free/", tests[-1].sentences[0]) if tests[-1].sentences else ""
    return Shown(fault, found, tuple(each.exit_code for each in tests), named)


def healthy(folder: Path, repeats: int) -> Shown:
    words = ("--probes=product_f32,together,triad,gpt,heat,software", "--budget_s=1")
    tests = [test(folder / str(number), words) for number in range(repeats)]
    alarms = [each for each in tests if each.exit_code == 1]
    named = alarms[0].sentences[0] if alarms else ""
    return Shown(f"none, {repeats} repeats", len(alarms) <= 1, tuple(each.exit_code for each in tests), named)


def bit(folder: Path, repeats: int) -> Shown:
    result = test(folder, ("--probes=product_f32", "--budget_s=2"), **{bits.FLIP: "product_f32:0"})
    return shown("a flipped bit on device 0", "device 0" in " ".join(result.sentences[:1]), result)


def quota(folder: Path, repeats: int) -> Shown:
    GROUP.mkdir(exist_ok=True)
    (GROUP / "cpu.cfs_quota_us").write_text("25000")  # of periods of 100 ms
    slowed = ("sh", "-c", f'echo $$ > {GROUP}/cgroup.procs; exec "$@"', "sh")
    words = ("--probes=product_f32,gpt", "--budget_s=30", "--devices=cpu:1")
    try:
        result = test(folder, words, ((), slowed))
    finally:
        GROUP.rmdir()
    return shown("a quarter of a core for process 1", result.failing() == [result.hosts[1].name], result)


def software(folder: Path, repeats: int) -> Shown:
    other = ("env", "XLA_FLAGS=--xla_cpu_enable_fast_math=true")
    result = test(folder, ("--probes=software",), ((), (), other))
    return shown("other flags of XLA in process 2", result.failing() == [result.hosts[2].name], result)


def link(folder: Path, repeats: int) -> Shown:
    words = ("--probes=host_pairs", "--devices=cpu:1", "--margin=20%")
    inside = [
        ("ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", f'hostname {name}; exec "$@"', "sh")
        for name in SPACES
    ]
    folders = [Path("/etc/netns") / name for name in SPACES]
    try:
        for name, etc in zip(SPACES, folders, strict=True):
            ip("netns", "add", name)
            etc.mkdir(parents=True, exist_ok=True)
            lines = zip(("127.0.0.1", *ADDRESSES), ("localhost", *SPACES), strict=True)
            (etc / "hosts").write_text("".join(f"{address} {host}\n" for address, host in lines))
        ip("link", "add", "eth0", "netns", SPACES[0], "type", "veth", "peer", "name", "eth0", "netns", SPACES[1])
        for name, address in zip(SPACES, ADDRESSES, strict=True):
            ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        free = test(folder / "free", words, inside, address=f"{ADDRESSES[0]}:29478")
        for name in SPACES:
            shape = ("root", "tbf", "rate", RATE, "burst", "256kb", "latency", "50ms")
            subprocess.run(("tc", "-n", name, "qdisc", "add", "dev", "eth0", *shape), check=True)
        card = f"--against=card:{folder / 'free' / outcome.FILE}"
        slow = test(folder / "slow", (*words, card), inside, address=f"{ADDRESSES[0]}:29479")
    finally:
        for name in SPACES:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
    found = slow.exit_code == 1 and "the link from" in slow.sentences[0]
    return shown(f"a link of {RATE}", found, free, slow)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


FAULTS: dict[str, Callable[[Path, int], Shown]] = {
    "healthy": healthy,
    "bit": bit,
    "quota": quota,
    "software": software,
    "link": link,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(FAULTS), help="some of them, with commas")
    parser.add_argument("--repeats", type=int, default=20, help="on the healthy machine")
    asked = parser.parse_args()
    before = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in asked.only.split(","):
        with tempfile.TemporaryDirectory() as folder:
            result = FAULTS[name](Path(folder), asked.repeats)
        before[name] = asdict(result)
        sys.stdout.write(f"{name}: {'as it should be' if result.found else 'MISSED'}, {result.codes}: {result.named}\n")
        sys.stdout.flush()
        FILE.parent.mkdir(parents=True, exist_ok=True)
        FILE.write_text(json.dumps(dict(sorted(before.items())), indent=1) + "\n")
    return int(not all(before[name]["found"] for name in asked.only.split(",")))


if __name__ == "__main__":
    sys.exit(main())

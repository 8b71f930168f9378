# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Two hosts with one link, which is cut for 5 s and for good: network namespaces of this machine, created by root."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from launched import alive, children_of, ended, started, until

from jaxbench.core import schema
from jaxbench.core.store import RunFolder

pytestmark = [pytest.mark.cluster, pytest.mark.full]

NAMES = f"jb{os.getpid()}a", f"jb{os.getpid()}b"  # of the hosts and, because they are short, of their interfaces
ADDRESSES = "10.213.77.1", "10.213.77.2"
COORDINATOR = f"{ADDRESSES[0]}:29477"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def on(process: int) -> tuple[str, ...]:
    """The arguments before a command that run it on the host of this name."""
    rename = f'hostname {NAMES[process]}; exec "$@"'
    return ("ip", "netns", "exec", NAMES[process], "unshare", "--uts", "sh", "-c", rename, "sh")


def link(state: str) -> None:
    """state: up or down."""
    ip("-n", NAMES[0], "link", "set", NAMES[0], state)


@pytest.fixture
def hosts() -> Iterator[None]:
    needed = [name for name in ("ip", "unshare") if shutil.which(name) is None]
    if os.geteuid() != 0 or needed:
        pytest.skip(f"hosts in network namespaces need {' and '.join(needed) or 'root'}")
    folders = [Path("/etc/netns") / name for name in NAMES]  # `ip netns exec` shows this as /etc
    try:
        for name, folder in zip(NAMES, folders, strict=True):
            try:
                ip("netns", "add", name)
            except subprocess.CalledProcessError as error:
                pytest.skip(f"this system makes no network namespaces: {error.stderr.decode().strip()}")
            folder.mkdir(parents=True)
            lines = zip(("127.0.0.1", *ADDRESSES), ("localhost", *NAMES), strict=True)
            (folder / "hosts").write_text("".join(f"{address} {host}\n" for address, host in lines))
        ip("link", "add", NAMES[0], "netns", NAMES[0], "type", "veth", "peer", "name", NAMES[1], "netns", NAMES[1])
        for name, address in zip(NAMES, ADDRESSES, strict=True):
            ip("-n", name, "address", "add", f"{address}/24", "dev", name)
            ip("-n", name, "link", "set", name, "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield
    finally:
        for name, folder in zip(NAMES, folders, strict=True):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
            shutil.rmtree(folder, ignore_errors=True)


def launched(folder: Path, rounds: int) -> tuple[subprocess.Popen[str], subprocess.Popen[str], list[int]]:
    """The leader and its follower after a round together, and all of their processes."""
    words = f"--config.measure.rounds={rounds}"
    follower, leader = (started(folder, COORDINATOR, i, words, before=on(i)) for i in (1, 0))
    records = folder / "run0" / "records.jsonl"
    until(lambda: records.exists() and '"process_block_s":[[' in records.read_text(), 120)
    return leader, follower, children_of(leader.pid) + children_of(follower.pid)


def test_a_link_that_is_cut_for_a_moment_costs_no_point(hosts: None, tmp_path: Path) -> None:
    leader, follower, everyone = launched(tmp_path, 40)
    link("down")
    time.sleep(5)
    link("up")
    code, out, err = ended(leader, 180)
    assert code == 0, out + err
    assert ended(follower) == (0, "", "")
    records = RunFolder(tmp_path / "run0").records()
    assert sum(isinstance(record, schema.RoundRecord) for record in records) == 80
    until(lambda: not alive(everyone))


def test_a_link_that_is_cut_for_good_ends_both_hosts_by_name(hosts: None, tmp_path: Path) -> None:
    leader, follower, everyone = launched(tmp_path, 2000)
    link("down")
    code, _, err = ended(leader)
    assert code == 2 and re.search(rf"^jaxbench: process 1 \(on {NAMES[1]}\) is gone, and .* continues", err, re.M), err
    code, out, err = ended(follower)
    assert code == 2 and re.fullmatch(f"jaxbench: process 0, which leads this launch from {ADDRESSES[0]}, .*\n", err)
    until(lambda: not alive(everyone))
    records = RunFolder(tmp_path / "run0").records()
    failures = [record for record in records if isinstance(record, schema.FailureRecord)]
    assert failures and all(NAMES[1] in failure.reason for failure in failures), "the point names rank and host"
    assert any(isinstance(record, schema.RoundRecord) for record in records)

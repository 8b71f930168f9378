# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The setups of a group's processes, and one answer merged from theirs. No process is started."""

from types import SimpleNamespace

import pytest

from jaxbench.core import schema
from jaxbench.processes import client, supervisor
from jaxbench.processes.client import Worker
from jaxbench.processes.messages import Idle, Ready, Recorded, Same, Setup


def answer(block_s=(1.0,), checks=(), **more):
    about = {"cpu_s": (0.5, 0.75) * len(block_s), "cpus": 1, **more}
    record = schema.RoundRecord(
        point="p", round=0, steps=4, block_s=block_s, double_block_s=(2.0,) * len(block_s), warmup_block_s=(1.0,),
        settled=True, compilations=0, worker="w", checks=checks, **about,
    )  # fmt: skip
    return Recorded(record=record)


def verdict(name, ok):
    return schema.Verdict(name=name, ok=ok, reason="as it is")


def test_each_process_has_a_number_and_its_accelerator_and_all_the_same_address():
    setups = supervisor.setups_here(Setup(platform="cpu", devices=4, processes=2, worker="w"))
    assert [each.world.process for each in setups] == [0, 1]
    (address,) = {each.world.address for each in setups}
    assert address.startswith("127.0.0.1:")
    alone = Setup(platform="cpu", devices=2)
    assert supervisor.setups_here(alone) == [alone]
    setups = supervisor.setups_here(Setup(platform="gpu", devices=3, processes=3))
    assert [each.world.device for each in setups] == [0, 1, 2]


def test_a_block_lasts_as_long_as_the_slowest_process_and_all_are_kept():
    merged = client.merged([answer((1.0, 3.0)), answer((2.0, 1.0)), Idle()]).record
    assert merged.block_s == (2.0, 3.0)
    assert merged.process_block_s == ((1.0, 3.0), (2.0, 1.0))
    assert merged.cpu_s == (1.0, 1.5, 1.0, 1.5) and merged.steal_s == ()
    assert schema.from_json(schema.to_json(merged)) == merged


def test_the_load_of_all_is_on_cpus_that_they_have_in_common():
    """2 CPUs were busy for 1.3 s: 0.5 s for one process, 0.6 for the other, as read by each of them."""
    one = {"block_s": (1.0,), "cpus": 2, "steal_s": (0.1, 0.0)}
    a = answer(**one, cpu_s=(0.5, 0.5), others_s=(0.8, 0.8))
    b = answer(**one, cpu_s=(0.6, 0.6), others_s=(0.7, 0.7))
    merged = client.merged([a, b]).record
    assert merged.cpu_s == (1.1, 1.1) and merged.cpus == 2 and merged.steal_s == (0.1, 0.0)
    assert merged.others_s == pytest.approx([0.2, 0.2])
    assert client.merged([a, answer()]).record.others_s == ()


def test_the_load_of_processes_on_other_cpus_is_added():
    """Processes 0 and 1 share host a, 2 has host b alone, and 3 has no device of the point."""
    a = answer(cpus=2, steal_s=(0.1, 0.0), cpu_s=(0.5, 0.5), others_s=(0.8, 0.8))
    b = answer(cpus=1, steal_s=(0.2, 0.2), cpu_s=(0.4, 0.4), others_s=(0.1, 0.1))
    merged = client.merged([a, a, b, Idle()], [("a", (0, 1)), ("a", (0, 1)), ("b", (0,)), ("b", (1,))]).record
    assert merged.cpus == 3 and merged.cpu_s == pytest.approx([1.4, 1.4])
    assert merged.others_s == pytest.approx([0.8 - 0.5 + 0.1] * 2)
    assert merged.steal_s == pytest.approx([0.3, 0.2])


def test_an_error_found_by_another_process_is_reported_with_its_number():
    merged = client.merged([
        answer(checks=(verdict("finite", ok=True), verdict("steps", ok=False))),
        answer(checks=(verdict("finite", ok=False), verdict("steps", ok=False), verdict("late", ok=False))),
    ])  # fmt: skip
    found = {each.name: each.reason for each in merged.record.checks if not each.ok}
    assert found == {"finite": "process 1: as it is", "steps": "as it is", "late": "process 1: as it is"}


def test_the_same_program_for_all():
    assert client.merged([Same(same=True), Same(same=False)]) == Same(same=False)
    assert client.merged([answer(), Idle()]) == answer()


@pytest.mark.parametrize("wrong", [[[1.0], [0.5]], [[2.0], [-1.0]]])
def test_a_record_with_other_processes_than_its_blocks_is_damaged(wrong):
    record = {**schema.to_json(answer((2.0,)).record), "process_block_s": wrong}
    with pytest.raises(ValueError, match="process_block_s"):
        schema.from_json(record)


@pytest.mark.parametrize(("hosts", "told"), [(["a", "b", "b"], ["a", "b"]), (["a", "a", "b"], None), ([], None)])
def test_the_manifest_names_the_hosts_of_a_world_where_they_are_several(hosts, told):
    """hosts: of all processes of the launch; the group has the first two of them."""
    worker = object.__new__(Worker)
    worker._ready = Ready(cpus=(0, 1), environment={}, processes=2)
    worker._followers = SimpleNamespace(hosts=hosts) if hosts else None
    expected = {"cpus": (0, 1), "environment": {}, "processes": 2}
    assert worker.surroundings == ({**expected, "hosts": told} if told else expected)

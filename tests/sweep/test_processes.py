# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Sets of processes take turns: the first checks a point, the others load its program unless they compile another."""

import dataclasses
from pathlib import Path

import fabricate
import pytest
from doorway import QUICK_MLP, jaxbench
from rich.console import Console

from jaxbench.analysis import points
from jaxbench.core import schema
from jaxbench.core.point import Point
from jaxbench.core.store import MANIFEST, RunFolder, write_json
from jaxbench.machine import program_cache
from jaxbench.processes.client import WorkerError
from jaxbench.processes.messages import Pace, Paced, Prepare, PrepareAgain, Recorded, Round, Same
from jaxbench.sweep import ongoing, sweep
from jaxbench.sweep import start as start_lib
from jaxbench.sweep import workers as workers_lib
from jaxbench.sweep.job import Automatic, SweepJob
from jaxbench.sweep.plan import rounds_of
from jaxbench.sweep.start import Start


class Scripted:
    """Sets of processes that answer immediately and store their requests: (do, point, set, request).

    other: a set that compiles another program. dies: a set with a process that ends while it prepares point 1.
    """

    def __init__(self, *, other=-1, dies=-1):
        self.other, self.dies, self.asked, self.sets = other, dies, [], []

    def __call__(self, job, points, *, number=0, programs=None, forks=None, lose=None, spend=None):
        self.sets.append(ScriptedSet(self, points, number, lose))
        return self.sets[-1]

    def did(self, *kinds):
        return [(do, point, number) for do, point, number, _ in self.asked if do in kinds]


class ScriptedSet:
    surroundings, bytes = {}, 0.0

    def __init__(self, script, points, number, lose):
        self.script, self.of, self.number = script, {point.point: point for point in points}, number
        self.lose, self.ahead, self.closed = lose, [], False

    def name(self, point):
        return f"session0/cpu{self.of[point].devices}#{self.number}"

    @property
    def program(self):
        return "another" if self.number == self.script.other else "the first"

    def send_ahead(self, point, request):
        self.ahead.append(request)

    def close(self):
        self.closed = True

    kill = close

    def ask(self, point, request):
        number, about = self.number, self.of[point]
        self.script.asked.append((request.do, point, number, request))
        if self.ahead:
            assert self.ahead.pop(0) == request
        if request.do in ("pace", "round"):
            assert not any(each.ahead for each in self.script.sets)  # no other process works while steps are timed
            assert not self.closed
        if isinstance(request, Pace):
            return Paced(steps=8)
        if isinstance(request, PrepareAgain):
            if number == self.script.dies and about.devices == 1:
                self.script.dies = -1
                for each in self.of:
                    self.lose(each)
                raise WorkerError("killed", alive=False)
            return Same(same=request.program_sha256 == self.program)
        if isinstance(request, Round):
            double_s = (2.0,) if request.double else ()
            record = schema.RoundRecord(
                point=point, round=request.round, steps=request.steps, block_s=(1.0,), double_block_s=double_s,
                warmup_block_s=(), settled=True, compilations=0, worker=self.name(point),
            )  # fmt: skip
            return Recorded(record=record)
        assert isinstance(request, Prepare) and request.point == about.to_json()
        facts = {"loss": "a mean over examples", "program_sha256": self.program, "worker": self.name(point)}
        record = fabricate.point_record(devices=about.devices, point=point, **facts)
        return Recorded(record=record, steps=8)


def planned(explained=False):
    """One device, two, and eight that share cores. explained: with an ablation point of the one on two devices."""
    about = {"strategy": "shard_map", "scaling": "strong", "global_batch": 8, "platform": "cpu"}
    asked = [Point(point=f"p{n}", devices=n, oversubscribed=n == 8, **about) for n in (1, 2, 8)]
    if explained:
        asked.append(Point(point="p2/local", devices=2, oversubscribed=False, explains="p2", **about))
    return asked


def swept(folder, monkeypatch, rounds=6, processes=3, explained=False, session=0, look=None, memory=1e12, **how):
    """The requests of a sweep to its processes, and its records."""
    asked, script = planned(explained), Scripted(**how)
    measure = {"rounds": rounds, "processes": processes, "blocks": 1, "block_s": 0.05}
    config = {"measure": measure, "seed": 0, "experiment": "mlp"}
    run = RunFolder.begin(folder / "run", config)
    if not (run.path / MANIFEST).exists():
        plan = {"rounds": 6, "points": [{**point.to_json(), "rounds": rounds_of(point, 6)} for point in asked]}
        write_json(run.path / MANIFEST, {"plan": plan | ({"auto": {"budget_s": 60, "ended": "", "looks": []}})})
    job = SweepJob(
        run=run, points=asked, config=config, experiment="mlp", session=session, memory_bytes=memory,
        automatic=Automatic(run, look) if look else None,
    )  # fmt: skip
    monkeypatch.setattr(ongoing, "Workers", script)
    monkeypatch.setattr(workers_lib.memory, "available", lambda: 1e12)
    try:
        sweep.run(job, Console(quiet=True))
    finally:
        run.close()
    return script, run.records()


def rounds_in(records, point="p1"):
    return [record for record in records if isinstance(record, schema.RoundRecord) and record.point == point]


def test_sets_take_turns_with_the_same_blocks_and_points_that_share_cores_come_last(tmp_path, monkeypatch):
    script, records = swept(tmp_path, monkeypatch)
    first = [("prepare", "p1", 0), ("prepare", "p2", 0), ("pace", "p1", 0), ("pace", "p2", 0)]
    again = [("prepare_again", f"p{n}", k) for k in (1, 2) for n in (1, 2)]
    assert script.did("prepare", "pace", "prepare_again") == [*first, *again, ("prepare", "p8", 0)]
    assert {record.steps for record in rounds_in(records)} == {8}
    assert [(r.round, r.worker[-1]) for r in rounds_in(records)] == [(n, str(n % 3)) for n in range(6)]
    assert all(each.closed for each in script.sets)
    assert script.asked[-2][:3] == ("prepare", "p8", 0)
    do, point, _, request = script.asked[-1]
    assert (do, point) == ("round", "p8") and request.steps == 1 and request.double is False
    assert [record.round for record in rounds_in(records, "p8")] == [6]
    assert len(script.sets) == 4 and [*script.sets[-1].of] == ["p8"]
    mine = [record for record in records if isinstance(record, schema.PointRecord) and record.point == "p1"]
    assert [record.worker for record in mine] == [f"session0/cpu1#{number}" for number in range(3)]
    assert [record.checked_by for record in mine] == ["", "session0/cpu1#0", "session0/cpu1#0"]
    assert len({record.checks for record in mine}) == len({record.compile_report for record in mine}) == 1
    assert schema.from_json(schema.to_json(mine[1])) == mine[1]


def test_the_first_visit_of_a_process_has_the_second_clock_and_its_last_is_checked(tmp_path, monkeypatch):
    script, records = swept(tmp_path, monkeypatch, rounds=40, processes=2)
    mine = rounds_in(records)
    assert [bool(record.double_block_s) for record in mine] == [number // 2 % 4 == 0 for number in range(40)]
    last = [request.round for do, point, _, request in script.asked if point == "p1" and do == "round" and request.last]
    assert last == [38, 39]
    few = rounds_in(swept(tmp_path / "few", monkeypatch, rounds=5, processes=1)[1])
    assert all(record.double_block_s for record in few)  # an interval of their ratio needs five


def test_points_that_explain_are_prepared_with_the_others_and_timed_alone(tmp_path, monkeypatch):
    script, _ = swept(tmp_path, monkeypatch, explained=True)
    first = [(do, point) for do, point, number, _ in script.asked if number == 0 and do in ("prepare", "pace")]
    named = ("p1", "p2", "p2/local")
    assert first == [*(("prepare", each) for each in named), *(("pace", each) for each in named), ("prepare", "p8")]
    requests = {point: request for do, point, _, request in script.asked if do == "prepare"}
    # No process waits for another one to find the kind of the loss. Those that start later are told it.
    assert {requests[each].loss for each in named} == {""} and requests["p8"].loss == "a mean over examples"
    assert not any(request.paced for request in requests.values())


def test_another_program_is_checked_like_a_new_point(tmp_path, monkeypatch):
    script, records = swept(tmp_path, monkeypatch, other=1)
    again = [(do, point) for do, point, number in script.did("prepare", "prepare_again") if number == 1]
    assert again == [("prepare_again", "p1"), ("prepare_again", "p2"), ("prepare", "p1"), ("prepare", "p2")]
    made = [r for r in records if isinstance(r, schema.PointRecord) and r.worker == "session0/cpu1#1"]
    assert [(record.program_sha256, record.checked_by) for record in made] == [("another", "")]
    assert {record.steps for record in rounds_in(records)} == {8}


def test_there_are_as_many_sets_as_fit_the_memory(tmp_path, monkeypatch):
    script, records = swept(tmp_path, monkeypatch, memory=4 * 2.5 * workers_lib.PROCESS_BYTES)
    assert {each.number for each in script.sets} == {0, 1}  # of two processes each, in half of the memory
    assert [r.worker[-1] for r in rounds_in(records)] == [*"010101"]
    assert RunFolder(tmp_path / "run").manifest()["plan"]["sets"] == 2


class Found:
    """The result of a look. visits: of the next rounds."""

    def __init__(self, ended, visits):
        self.ended, self.visits, self.spent_s = ended, () if ended else visits, 1.0

    def to_json(self):
        return {"rounds": 0, "ended": self.ended, "half_width": 0.02, "point": "p2", "spent_s": self.spent_s}


class Looks:
    """Ends a run at a number of rounds, and stores the numbers that it saw. kill: an interrupt at the second look."""

    def __init__(self, end, kill=False):
        self.end, self.kill, self.seen = end, kill, []

    def __call__(self, plan, records, *, sets, failed):
        rounds = len({r.round for r in records if isinstance(r, schema.RoundRecord) and r.point == "p1"})
        assert sets == 3 and not failed and all(record.time for record in records)
        self.seen.append(rounds)
        if self.kill and len(self.seen) == 2:
            raise KeyboardInterrupt
        visits = ("p1", "p2", "p2/local") if rounds == 3 else ("p1", "p2")
        return Found("precise" if rounds >= self.end else "", visits)


@pytest.mark.parametrize(
    "rounds, processes, followers, sets",
    [("auto", "auto", None, 6), ("auto", "auto", "a launch", 4), ("auto", 3, None, 3), (10, "auto", None, 4)],
)
def test_there_are_more_sets_where_all_live_at_the_same_time(rounds, processes, followers, sets):
    config = {"measure": {"rounds": rounds, "processes": processes}}
    job = SweepJob(run=None, points=planned(), config=config, experiment="mlp", session=0, followers=followers)
    assert job.counts == (2 * sets if rounds == "auto" else rounds, sets)


AUTO = {"rounds": "auto", "processes": 3, "explained": True}


def test_rounds_are_added_until_a_look_ends_it(tmp_path, monkeypatch):
    look = Looks(end=9)
    script, records = swept(tmp_path, monkeypatch, look=look, **AUTO)
    assert look.seen == [3, 6, 9, 12]  # the last ones have their states checked
    assert [(r.round, r.worker[-1]) for r in rounds_in(records)] == [(n, str(n % 3)) for n in range(12)]
    assert [r.round for r in rounds_in(records, "p2/local")] == [3, 4, 5]
    assert [r.round for r in rounds_in(records, "p8")] == [12]
    prepared = [point for do, point, number in script.did("prepare")]
    assert prepared == ["p1", "p2", "p2/local", "p8"]
    first, explained = ([a[at] for a in script.asked].index(of) for at, of in ((0, "round"), (1, "p2/local")))
    assert first < explained, "what explains a loss is compiled after the first rounds"
    last = [request.round for do, point, _, request in script.asked if point == "p1" and do == "round" and request.last]
    assert last == [9, 10, 11]
    plan = RunFolder(tmp_path / "run").manifest()["plan"]
    assert (plan["rounds"], plan["auto"]["ended"], len(plan["auto"]["looks"])) == (12, "precise", 4)
    assert [point["rounds"] for point in plan["points"]] == [12, 12, 1, 3]
    again, _ = swept(tmp_path, monkeypatch, look=look, session=1, **AUTO)
    assert again.asked == [] and look.seen == [3, 6, 9, 12]  # it stays finished


def test_killed_before_a_look_it_goes_on(tmp_path, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        swept(tmp_path, monkeypatch, look=Looks(end=9, kill=True), **AUTO)
    assert RunFolder(tmp_path / "run").manifest()["plan"]["auto"]["ended"] == ""
    kept = (tmp_path / "run" / "records.jsonl").read_bytes()
    again = Looks(end=9)
    _, records = swept(tmp_path, monkeypatch, look=again, session=1, **AUTO)
    assert (tmp_path / "run" / "records.jsonl").read_bytes().startswith(kept)
    assert again.seen == [9, 12]
    assert [r.round for r in rounds_in(records)] == [*range(12)]
    assert [r.round for r in rounds_in(records, "p8")] == [12]


@pytest.mark.full
def test_a_run_that_ends_by_its_budget(tmp_path):
    run = tmp_path / "run"
    how = ("--config.mesh.devices=1,2", "--config.measure.rounds=auto", "--config.measure.processes=auto")
    done = jaxbench("run", "mlp", f"--workdir={run}", *QUICK_MLP, *how, "--config.measure.budget_s=0.001")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 points on 1 and 2 devices, at least 12 rounds each, by 6 groups of processes in turns" in done.stdout
    assert "6 groups of 2 processes take turns." in done.stdout
    looks = RunFolder(run).manifest()["plan"]["auto"]["looks"]
    assert [(look["ended"], look["rounds"]) for look in looks] == [("", 6), ("budget", 12)]
    assert {(p.status, len(p.rounds), p.auto_rounds) for p in points.load(RunFolder(run))} == {("ok", 12, True)}
    shown = " ".join(done.stdout.split())
    assert "Stopped after 12 rounds in 6 groups of processes" in shown


class Idle:
    """A process that does nothing."""

    def let_go(self):
        pass

    close = let_go


def test_sets_of_a_cpu_share_compiled_programs_and_those_of_an_accelerator_do_not(tmp_path, monkeypatch):
    """An accelerator's compiler tries variants: there, another choice is part of the variation between processes."""
    started = []
    monkeypatch.setattr(workers_lib, "Worker", lambda setup, *others: started.append(setup) or Idle())
    facts = {"versions": {"jaxlib": "1"}, "environment": {}, "device_kind": "any"}
    job = SweepJob(run=RunFolder(tmp_path), points=planned(), config={"measure": {}}, experiment="mlp", session=0)
    for platform in ("cpu", "gpu"):
        machine = {**facts, "platform": platform}
        programs, why = program_cache.opened(machine, {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "kept")})
        start = Start(dataclasses.replace(job, programs=programs))
        for number in range(2):
            points = [dataclasses.replace(point, platform=platform) for point in planned()[:2]]
            with workers_lib.Workers(job, points, number=number, programs=start.variables(number)):
                pass
        assert not why
    folders = [Path(setup.environment["JAX_COMPILATION_CACHE_DIR"]).name for setup in started]
    first, other = folders[0], folders[4]
    assert folders == [*4 * [first], other, other.replace("set0", "set1")] and first != other
    assert [setup.worker for setup in started[:4]] == [f"session0/cpu{n}{k}" for k in ("", "#1") for n in (1, 2)]
    none = Start(dataclasses.replace(job, not_kept="no room."))
    assert none.variables(1)["JAX_COMPILATION_CACHE_DIR"] == str(tmp_path / "compiled"), "shared until the run ends"
    fresh = Start(dataclasses.replace(job, not_kept=start_lib.ASKED))
    folders = {fresh.variables(number)["JAX_COMPILATION_CACHE_DIR"] for number in range(2)}
    assert folders == {str(tmp_path / "compiled" / f"set{number}") for number in range(2)}, "each set compiles anew"


def test_a_process_that_dies_costs_its_point_and_the_others_are_prepared(tmp_path, monkeypatch):
    script, records = swept(tmp_path, monkeypatch, rounds=6, processes=2, dies=1)
    assert [record.point for record in records if isinstance(record, schema.FailureRecord)] == ["p1"]
    assert {r.point for r in records if isinstance(r, schema.RoundRecord)} == {"p2", "p8"}
    assert [r.round for r in rounds_in(records, "p2")] == [*range(6)]


def test_a_run_of_two_processes(tmp_path):
    run = tmp_path / "run"
    words = (*QUICK_MLP, "--config.mesh.devices=1,16", "--config.measure.rounds=4", "--config.measure.processes=2")
    done = jaxbench("run", "mlp", f"--workdir={run}", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 4 rounds each, by 2 groups of processes in turns" in done.stdout
    folder = RunFolder(run)
    manifest, records = folder.manifest(), folder.records()
    planned = {point["point"]: point["rounds"] for point in manifest["plan"]["points"]}
    assert planned == {"jit_auto/strong/1": 4, "jit_auto/strong/16": 1}
    found = {point.point: point for point in points.load(folder)}
    assert {name: len(point.rounds) for name, point in found.items() if point.status == "ok"} == planned
    one = [record for record in records if isinstance(record, schema.PointRecord) and record.devices == 1]
    assert [record.checked_by for record in one] == ["", "session0/cpu1"] and one[1].worker == "session0/cpu1#1"
    assert one[0].program_sha256 == one[1].program_sha256 != ""
    rounds = [record for record in records if isinstance(record, schema.RoundRecord) and record.point == one[0].point]
    assert [record.worker for record in rounds] == 2 * ["session0/cpu1", "session0/cpu1#1"]
    assert len({record.steps for record in rounds}) == 1
    assert all(len(record.cpu_s) == len(record.block_s) + len(record.double_block_s) for record in rounds)
    workers = manifest["workers"]
    assert set(workers) == {"session0/cpu1", "session0/cpu1#1", "session0/cpu16"}
    alone = workers["session0/cpu1"]
    assert "NPROC" not in alone["environment"] and "MALLOC_ARENA_MAX" in alone["environment"]
    assert alone["cpus"] == manifest["free_cores"][:1] == workers["session0/cpu1#1"]["cpus"]
    assert manifest["shared_with"] == ""


def test_a_continued_run_prepares_only_what_lacks_rounds(tmp_path, monkeypatch):
    """It used to compile and check all points again, so that an interrupted run of 140 points gained nothing."""
    whole = ScriptedSet.ask

    def interrupted(self, point, request):
        if point == "p2":
            raise KeyboardInterrupt
        return whole(self, point, request)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ScriptedSet, "ask", interrupted)
        swept(tmp_path, patch, rounds=2, processes=1)
    script, records = swept(tmp_path, monkeypatch, rounds=2, processes=1, session=1)
    assert {point for _, point, *_ in script.asked} == {"p2", "p8"}
    assert [record.round for record in rounds_in(records)] == [0, 1]


def test_few_rounds_follow_the_preparation_of_their_point(tmp_path, monkeypatch):
    """An interrupted run then keeps its finished points, and its continuation prepares the others."""
    script, _ = swept(tmp_path, monkeypatch, rounds=2, processes=1)
    assert [(do, point) for do, point, *_ in script.asked] == [
        *((do, point) for point in ("p1", "p2") for do in ("prepare", "pace", "round", "round")),
        ("prepare", "p8"), ("round", "p8"),
    ]  # fmt: skip

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Several processes measure one point: only the first checks it, unless a later one compiles another program."""

from pathlib import Path

import fabricate
import pytest
from doorway import QUICK_MLP, jaxbench, sketched
from rich.console import Console

from jaxbench.analysis import points
from jaxbench.records import schema
from jaxbench.records.store import MANIFEST, RunFolder, write_json
from jaxbench.runner import sweep
from jaxbench.runner import workers as workers_lib
from jaxbench.runner.automatic import Automatic
from jaxbench.runner.client import WorkerError
from jaxbench.runner.plan import Point, rounds_of
from jaxbench.runner.progress import SweepProgress


class Scripted:
    """Processes that answer at once, and keep what they were asked. other: a process that compiles another program.
    dies: a process that ends while it prepares point 1."""

    surroundings = {}

    def __init__(self, points, *, other=-1, dies=-1):
        self.of = {point.point: point for point in points}
        self.number, self.other, self.dies = dict.fromkeys(self.of, 0), other, dies
        self.asked, self.ahead, self.gone = [], [], set()
        self.waiting = {}  # how many requests were sent ahead when a point's answer came

    def name(self, point):
        return f"session0/cpu{self.of[point].devices}#{self.number[point]}"

    def program(self, number):
        return "another" if number == self.other else "the first"

    def renew(self, points):
        for point in points:
            self.number[point] += 1

    def send_ahead(self, point, request):
        self.ahead.append(request)

    def lost(self):
        lost, self.gone = self.gone, set()
        return lost

    def ask(self, point, request):
        number, devices = self.number[point], self.of[point].devices
        self.asked.append((request["do"], point, number, request.get("steps")))
        if self.ahead:
            assert self.ahead.pop(0) == request
        if request["do"] == "pace":
            assert not self.ahead  # nobody else works while steps are timed
            return {}
        if request["do"] == "prepare_again":
            if number == self.dies and devices == 1:
                self.dies, self.gone = -1, {"p2"}
                raise WorkerError("killed", alive=False)
            return {"same": request["program_sha256"] == self.program(number)}
        if request["do"] == "round":
            record = schema.RoundRecord(
                point=point, round=request["round"], steps=request.get("steps", 8 + number), block_s=(1.0,),
                double_block_s=(2.0,), warmup_block_s=(), settled=True, compilations=0, worker=self.name(point),
            )  # fmt: skip
            return {"record": schema.to_json(record)}
        known = {} if (point, number) == ("p1", 0) else {"loss": "a mean over examples"}
        known |= {"paced": False} if self.of[point].explains else {}
        assert request == {"do": "prepare", "point": self.of[point].to_json(), **known}
        self.waiting[point] = len(self.ahead)
        facts = {"loss": "a mean over examples", "program_sha256": self.program(number), "worker": self.name(point)}
        return {"record": schema.to_json(fabricate.point_record(devices=devices, point=point, **facts))}


def swept(folder, rounds=6, processes=3, explained=False, **how):
    """The processes of a sweep over one device, two, and eight that share cores; and what it recorded. explained: with
    a point that explains the one on two devices."""
    about = {"strategy": "shard_map", "scaling": "strong", "global_batch": 8, "platform": "cpu"}
    asked = [Point(point=f"p{n}", devices=n, oversubscribed=n == 8, **about) for n in (1, 2, 8)]
    if explained:
        asked.append(Point(point="p2/local", devices=2, oversubscribed=False, explains="p2", **about))
    config = {"measure": {"rounds": rounds, "processes": processes}, "seed": 0, "experiment": "mlp"}
    run = RunFolder.begin(folder / "run", config)
    write_json(run.path / MANIFEST, {})
    job = sweep.SweepJob(run=run, points=asked, config=config, experiment="mlp", session=0)
    workers = Scripted(asked, **how)
    todo = sweep.missing_rounds([], asked, rounds)
    with SweepProgress(Console(quiet=True), []) as progress:
        sweep._Sweep(job, workers, progress, asked, todo, {}).run(job.fresh)
    run.close()
    return workers, run.records()


def test_later_processes_only_compile_and_use_the_same_blocks(tmp_path):
    workers, records = swept(tmp_path)
    prepared = [(do, point, number) for do, point, number, _ in workers.asked if do != "round"]
    first = [("prepare", f"p{n}", 0) for n in (1, 2, 8)]
    assert prepared == [*first, *(("prepare_again", f"p{n}", k) for k in (1, 2) for n in (1, 2))]
    rounds = [record for record in records if isinstance(record, schema.RoundRecord)]
    assert {record.steps for record in rounds} == {8}
    assert [(r.point, r.worker[-1]) for r in rounds if r.point == "p1"] == [("p1", n) for n in "001122"]
    assert [(r.round, r.worker[-1]) for r in rounds if r.point == "p8"] == [(0, "0"), (1, "0"), (2, "0")]


def test_points_that_explain_are_prepared_beside_those_that_share_cores_and_timed_alone(tmp_path):
    workers, _ = swept(tmp_path, explained=True)
    first = [(do, point) for do, point, number, _ in workers.asked if number == 0 and do != "round"]
    assert first == [*(("prepare", point) for point in ("p1", "p2", "p8", "p2/local")), ("pace", "p2/local")]
    assert workers.waiting == {"p1": 0, "p2": 0, "p8": 1, "p2/local": 0}  # p8's answer came while another worked
    assert not [do for do, _, number, _ in workers.asked if do == "pace" and number]  # the others know the length


def test_their_records_say_who_checked_them(tmp_path):
    _, records = swept(tmp_path)
    mine = [record for record in records if isinstance(record, schema.PointRecord) and record.point == "p1"]
    assert [(record.worker, record.checked_by) for record in mine] == [
        ("session0/cpu1#0", ""),
        ("session0/cpu1#1", "session0/cpu1#0"),
        ("session0/cpu1#2", "session0/cpu1#0"),
    ]
    assert len({record.checks for record in mine}) == len({record.passport for record in mine}) == 1
    assert schema.from_json(schema.to_json(mine[1])) == mine[1]


def test_another_program_is_checked_like_a_new_point(tmp_path):
    workers, records = swept(tmp_path, other=1)
    again = [(do, point) for do, point, number, _ in workers.asked if number == 1 and do != "round"]
    assert again == [("prepare_again", "p1"), ("prepare_again", "p2"), ("prepare", "p1"), ("prepare", "p2")]
    made = [r for r in records if isinstance(r, schema.PointRecord) and r.worker == "session0/cpu1#1"]
    assert [(record.program_sha256, record.checked_by) for record in made] == [("another", "")]


class Looks:
    """Ends a run at a number of rounds, and keeps at which it was asked. kill: an interrupt at the second look."""

    def __init__(self, end, kill=False):
        self.end, self.kill, self.seen = end, kill, []

    def __call__(self, run):
        rounds = run.manifest()["plan"]["rounds"]
        assert {(r.point, r.round) for r in run.records() if isinstance(r, schema.RoundRecord)} >= {
            (point, number) for point in ("p1", "p2") for number in range(rounds)
        }
        self.seen.append(rounds)
        if self.kill and len(self.seen) == 2:
            raise KeyboardInterrupt
        return {"rounds": rounds, "ended": "precise" if rounds >= self.end else ""}


def automatic_job(folder, look, session=0):
    """A job whose rounds go on until `look` ends them, over one device, two, and eight that share cores."""
    about = {"strategy": "shard_map", "scaling": "strong", "global_batch": 8, "platform": "cpu"}
    asked = [Point(point=f"p{n}", devices=n, oversubscribed=n == 8, **about) for n in (1, 2, 8)]
    config = {"measure": {"rounds": "auto", "processes": "auto"}, "seed": 0, "experiment": "mlp"}
    run = RunFolder.begin(folder / "run", config)
    if not (run.path / MANIFEST).exists():
        points = [{**point.to_json(), "rounds": rounds_of(point, 6)} for point in asked]
        auto = {"rounds_each": 2, "ended": "", "looks": []}
        write_json(run.path / MANIFEST, {"plan": {"rounds": 6, "points": points, "auto": auto}})
    how = {"config": config, "experiment": "mlp", "session": session, "automatic": Automatic(run, look)}
    return sweep.SweepJob(run=run, points=asked, **how), asked


def measured(job, asked, monkeypatch):
    """Sweeps with scripted processes, and returns them."""
    made = []

    class Begun(Scripted):
        def __init__(self, job, points):
            super().__init__(asked)
            made.append(self)

        wait_ready, __enter__, __exit__ = lambda self: None, lambda self: self, lambda self, *_: None

    monkeypatch.setattr(sweep, "Workers", Begun)
    try:
        sweep.run(job, Console(quiet=True))
    finally:
        job.run.close()
    return made


def test_rounds_are_added_with_new_processes_until_a_look_ends_it(tmp_path, monkeypatch):
    look = Looks(end=10)
    job, asked = automatic_job(tmp_path, look)
    (workers,) = measured(job, asked, monkeypatch)
    assert look.seen == [6, 8, 10]
    rounds = [record for record in job.run.records() if isinstance(record, schema.RoundRecord)]
    assert [(r.round, r.worker[-1]) for r in rounds if r.point == "p2"] == [(n, str(n // 2)) for n in range(10)]
    assert [r.round for r in rounds if r.point == "p8"] == [0, 1, 2]
    plan = job.run.manifest()["plan"]
    assert (plan["rounds"], plan["auto"]["ended"], len(plan["auto"]["looks"])) == (10, "precise", 3)
    assert [point["rounds"] for point in plan["points"]] == [10, 10, 3]
    assert measured(*automatic_job(tmp_path, look, session=1), monkeypatch) == []  # it stays ended
    assert look.seen == [6, 8, 10]


def test_killed_before_a_look_it_ends_where_it_would_have(tmp_path, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        measured(*automatic_job(tmp_path, Looks(end=10, kill=True)), monkeypatch)
    plan = RunFolder(tmp_path / "run").manifest()["plan"]
    assert (plan["rounds"], plan["auto"]["ended"]) == (8, "")
    again = Looks(end=10)
    job, asked = automatic_job(tmp_path, again, session=1)
    measured(job, asked, monkeypatch)
    assert again.seen == [8, 10]
    rounds = [(r.point, r.round) for r in job.run.records() if isinstance(r, schema.RoundRecord)]
    assert sorted(rounds) == sorted(
        [*((p, n) for p in ("p1", "p2") for n in range(10)), *(("p8", n) for n in range(3))]
    )


@pytest.mark.full
def test_a_run_that_ends_by_its_budget(tmp_path):
    run = tmp_path / "run"
    how = ("--config.mesh.devices=1,2", "--config.measure.rounds=auto", "--config.measure.processes=auto")
    done = jaxbench("run", "mlp", f"--workdir={run}", *QUICK_MLP, *how, "--config.measure.budget_s=0.001")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 points x at least 5 rounds in 5 processes" in done.stdout
    (look,) = RunFolder(run).manifest()["plan"]["auto"]["looks"]
    assert look["ended"] in ("budget", "precise") and look["rounds"] == 5
    assert {(p.status, len(p.rounds), p.looked) for p in points.load(RunFolder(run))} == {("ok", 5, True)}
    shown = " ".join(done.stdout.split())
    assert "Ended after 5 rounds in 5 processes" in shown


class Idle:
    """A process that does nothing."""

    restarts, learned = 0, {}

    def wait_ready(self):
        pass

    close = wait_ready


def test_later_processes_of_a_cpu_keep_what_they_compile(tmp_path, monkeypatch):
    """The first compiles for itself, because its times are recorded."""
    started = []
    monkeypatch.setattr(workers_lib, "Worker", lambda setup, log, crew: started.append(setup) or Idle())
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    job, asked = automatic_job(tmp_path, Looks(end=6))
    with workers_lib.Workers(job, asked) as workers:
        workers.renew(["p1"])
        workers.renew(["p1"])
    job.run.close()
    folders = [setup["environment"].get("JAX_COMPILATION_CACHE_DIR") for setup in started]
    assert folders[:3] == [None, None, None]
    assert folders[3] is not None and folders[3] == folders[4] and not Path(folders[3]).exists()


def test_a_process_that_dies_costs_its_point_and_the_others_are_prepared(tmp_path):
    workers, records = swept(tmp_path, rounds=2, processes=2, dies=1)
    assert [record.point for record in records if isinstance(record, schema.FailureRecord)] == ["p1"]
    assert {(r.point, r.round) for r in records if isinstance(r, schema.RoundRecord)} == {
        ("p1", 0), ("p2", 0), ("p2", 1), ("p8", 0), ("p8", 1),
    }  # fmt: skip
    assert workers.number == {"p1": 1, "p2": 1, "p8": 0}


def test_a_run_of_two_processes(tmp_path):
    run = tmp_path / "run"
    words = (*QUICK_MLP, "--config.mesh.devices=1,16", "--config.measure.rounds=4", "--config.measure.processes=2")
    done = sketched("run", "mlp", f"--workdir={run}", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 points x 4 rounds in 2 processes" in done.stdout
    folder = RunFolder(run)
    manifest, records = folder.manifest(), folder.records()
    planned = {point["point"]: point["rounds"] for point in manifest["plan"]["points"]}
    assert planned == {"jit_auto/strong/1": 4, "jit_auto/strong/16": 3}
    found = {point.point: point for point in points.load(folder)}
    assert {name: (point.status, len(point.rounds)) for name, point in found.items()} == {
        name: ("ok", rounds) for name, rounds in planned.items()
    }
    one = [record for record in records if isinstance(record, schema.PointRecord) and record.devices == 1]
    assert [record.checked_by for record in one] == ["", "session0/cpu1"] and one[1].worker == "session0/cpu1#1"
    assert one[0].program_sha256 == one[1].program_sha256 != ""
    rounds = [record for record in records if isinstance(record, schema.RoundRecord) and record.point == one[0].point]
    assert [record.worker for record in rounds] == 2 * ["session0/cpu1"] + 2 * ["session0/cpu1#1"]
    assert len({record.steps for record in rounds}) == 1 and all(len(record.cpu_s) == 2 for record in rounds)
    workers = manifest["workers"]
    assert set(workers) == {"session0/cpu1", "session0/cpu1#1", "session0/cpu16"}
    alone = workers["session0/cpu1"]
    assert alone["environment"]["NPROC"] == "1" and "MALLOC_ARENA_MAX" in alone["environment"]
    assert alone["cpus"] == manifest["free_cores"][:1] == workers["session0/cpu1#1"]["cpus"]
    assert manifest["shared_with"] == ""


def test_few_rounds_follow_the_preparation_of_their_point(tmp_path):
    """An interrupted run then keeps the points that it has finished, and its continuation prepares the others."""
    workers, _ = swept(tmp_path, rounds=2, processes=1)
    assert [(do, point) for do, point, *_ in workers.asked] == [
        (do, point) for point in ("p1", "p2", "p8") for do in ("prepare", "round", "round")
    ]

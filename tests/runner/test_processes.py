# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Several processes measure one point: only the first checks it, unless a later one compiles another program."""

import fabricate
from doorway import QUICK_MLP, sketched
from rich.console import Console

from jaxbench.analysis import points
from jaxbench.records import schema
from jaxbench.records.store import MANIFEST, RunFolder, write_json
from jaxbench.runner import sweep
from jaxbench.runner.client import WorkerError
from jaxbench.runner.plan import Point
from jaxbench.runner.progress import SweepProgress


class Scripted:
    """Processes that answer at once, and keep what they were asked. other: a process that compiles another program.
    dies: a process that ends while it prepares point 1."""

    surroundings = {}

    def __init__(self, points, *, other=-1, dies=-1):
        self.of = {point.point: point for point in points}
        self.number, self.other, self.dies = dict.fromkeys(self.of, 0), other, dies
        self.asked, self.ahead, self.gone = [], [], set()

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
        assert request == {"do": "prepare", "point": self.of[point].to_json(), **known}
        facts = {"loss": "a mean over examples", "program_sha256": self.program(number), "worker": self.name(point)}
        return {"record": schema.to_json(fabricate.point_record(devices=devices, point=point, **facts))}


def swept(folder, rounds=6, processes=3, **how):
    """The processes of a sweep over one device, two, and eight that share cores; and what it recorded."""
    about = {"strategy": "shard_map", "scaling": "strong", "global_batch": 8, "platform": "cpu"}
    asked = [Point(point=f"p{n}", devices=n, oversubscribed=n == 8, **about) for n in (1, 2, 8)]
    config = {"measure": {"rounds": rounds, "processes": processes}, "seed": 0, "experiment": "mlp"}
    run = RunFolder.begin(folder / "run", config)
    write_json(run.path / MANIFEST, {})
    job = sweep.Job(run=run, points=asked, config=config, experiment="mlp", session=0)
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

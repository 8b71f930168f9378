# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The text that each engine would submit; arguments arrive unchanged; and refusals."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from doorway import environment, jaxbench
from thin import thin

from jaxbench.errors import UserError
from jaxbench.features.launch import engines
from jaxbench.features.launch import job as launch
from jaxbench.features.launch.engines import k8s, mpi, ray, slurm
from jaxbench.features.launch.job import Job

HARD = """it's "quoted" $HOME $(ID) $$ `x` é: {a} # \\ *"""


def job(**changes: Any) -> Job:
    facts: dict[str, Any] = dict(
        name="gpt-2", nodes=2, processes_per_node=1, platform="gpu", devices_per_node=8,
        command=(sys.executable, "-m", "jaxbench", "run", "gpt", f"--config.name={HARD}"),
        folder=Path("/runs/my run/nodes-2"), minutes=90,
    )  # fmt: skip
    return Job(**{**facts, **changes})


def test_mpirun_places_the_processes_and_passes_the_words_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in mpi.ALLOCATIONS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    asked = job(processes_per_node=4, options=("--hostfile", "my hosts"))
    words = mpi.line(asked, root=False, slots=2)
    assert words[:7] == ["mpirun", "-n", "8", "--bind-to", "none", "--map-by", "ppr:4:node"]
    assert ["-x", "NCCL_DEBUG"] == words[(at := words.index("NCCL_DEBUG") - 1) : at + 2]
    assert words[-len(asked.argv()) - 2 :] == ["--hostfile", "my hosts", *asked.argv()]
    assert shlex.split(mpi.text(asked))[-len(asked.argv()) :] == asked.argv()
    mpi.check(asked)
    with pytest.raises(UserError, match="--nodes=2 needs the names of the hosts"):
        mpi.check(job())
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    mpi.check(job())


@pytest.mark.parametrize(
    ("processes", "options", "root", "more"),
    [
        (2, (), False, set()),
        (4, (), False, {"--oversubscribe"}),
        (4, ("--host", "a:4"), False, set()),
        (2, (), True, {"--allow-run-as-root"}),
    ],
)
def test_mpirun_gets_only_the_permissions_it_needs(
    processes: int, options: tuple[str, ...], root: bool, more: set[str]
) -> None:
    here = job(nodes=1, processes_per_node=processes, options=options)
    assert {"--oversubscribe", "--allow-run-as-root"} & {*mpi.line(here, root=root, slots=2)} == more


def test_the_file_for_sbatch_asks_for_what_the_job_needs() -> None:
    asked = job(processes_per_node=8, options=("--partition=a100", "--exclusive", "--account=my lab"))
    text = slurm.text(asked)
    for line in (
        *("--nodes=2", "--ntasks-per-node=8", "--gpus-per-node=8", "--time=90", "--job-name=gpt-2", "--requeue"),
        *("--partition=a100", "--exclusive", "--account='my lab'"),
    ):
        assert f"#SBATCH {line}\n" in text
    assert subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True).returncode == 0
    assert shlex.split(text.splitlines()[-1].partition(": ")[2]) == asked.argv()


def test_a_cpu_device_has_a_core_in_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = job(platform="cpu", devices_per_node=4, processes_per_node=2)
    text = slurm.text(asked)
    assert "#SBATCH --cpus-per-task=2\n" in text and "gpus" not in text
    assert " --cpus-per-task=2 " in of_submitit(asked, monkeypatch)


@pytest.mark.parametrize("options", [(), ("--partition=a100", "--exclusive", "--account=my lab", "--time=5")])
def test_a_dry_run_shows_what_submitit_writes(options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    shown = [line for line in slurm.text(job(options=options)).splitlines() if line.startswith("#SBATCH")]
    written = of_submitit(job(options=options), monkeypatch).splitlines()
    added = [line for line in written if line.startswith("#SBATCH") and line not in shown]
    assert not {*shown} - {*written}
    names = ("error", "open-mode", "output", "signal")
    assert [line.split("=")[0] for line in added] == [f"#SBATCH --{name}" for name in names]


def of_submitit(asked: Job, monkeypatch: pytest.MonkeyPatch) -> str:
    """The file that submitit would give to sbatch; sbatch need not be installed."""
    import submitit

    monkeypatch.setattr(submitit.SlurmExecutor, "affinity", classmethod(lambda cls: 1))
    executor = slurm._executor(asked)
    return str(executor._make_submission_file_text(executor._submitit_command_str, ""))


def test_a_task_of_slurm_executes_the_words_and_is_requeued_with_them(tmp_path: Path) -> None:
    out = tmp_path / "out"
    code = "import sys; open(sys.argv[1], 'w').write(sys.argv[2])"
    command = slurm.Command((sys.executable, "-c", code, str(out), HARD))
    command()
    assert out.read_text() == HARD
    assert command.checkpoint().function == command
    with pytest.raises(subprocess.CalledProcessError):
        slurm.Command(("false",))()


def test_a_task_of_slurm_does_not_take_itself_for_a_part_of_make(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXBENCH_FORM", "make")
    monkeypatch.setenv("KEPT", "1")
    code = "import os, sys; sys.exit('JAXBENCH_FORM' in os.environ or 'KEPT' not in os.environ)"
    slurm.Command((sys.executable, "-c", code))()


def manifest(asked: Job) -> dict[str, Any]:
    return dict(yaml.safe_load(k8s.text(asked)))


def container(manifest: dict[str, Any]) -> dict[str, Any]:
    (replicated,) = manifest["spec"]["replicatedJobs"]
    (found,) = replicated["template"]["spec"]["template"]["spec"]["containers"]
    return found


def test_a_jobset_has_a_pod_a_host_that_finds_the_first() -> None:
    made = manifest(job(options=("image=registry/jax:1", "claim=runs", "pool.example/kind=large")))
    assert made["kind"] == "JobSet" and made["spec"]["network"]["enableDNSHostnames"]
    hosts = made["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (hosts["parallelism"], hosts["completions"], hosts["activeDeadlineSeconds"]) == (2, 2, 5400)
    pod, found = hosts["template"]["spec"], container(made)
    assert pod["nodeSelector"] == {"pool.example/kind": "large"}
    assert pod["volumes"][0]["persistentVolumeClaim"] == {"claimName": "runs"}
    assert found["resources"]["limits"] == {"nvidia.com/gpu": 8} and found["image"] == "registry/jax:1"
    assert found["args"][-4:] == [
        *("--workdir=/results/my run/nodes-2", "--coordinator=gpt-2-hosts-0-0.gpt-2:8476", "--processes=2"),
        "--process=$(JOB_COMPLETION_INDEX)",
    ]


def test_kubernetes_puts_nothing_into_the_words_of_the_command() -> None:
    """Kubernetes replaces $(NAME), and $$ by $: docs of the field `args`."""
    args = container(manifest(job(options=("image=a",))))["args"]
    assert args[4] == f"--config.name={HARD.replace('$', '$$')}"
    args = container(manifest(job(nodes=1, options=("image=a",))))["args"]
    assert not [word for word in args if "coordinator" in word]


@pytest.mark.parametrize("platform", ["gpu", "tpu", "cpu"])
def test_the_job_of_a_jobset_is_valid(platform: str) -> None:
    """A JobSet's schema is not published with Kubernetes, but the schema of its Job is."""
    validate = pytest.importorskip("kubernetes_validate")
    whole = manifest(job(platform=platform, options=("image=a", "claim=b", "x.example/y=z")))
    spec = whole["spec"]["replicatedJobs"][0]["template"]["spec"]
    made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": spec}
    validate.validate(made, validate.latest_version(), strict=True)
    spec["paralelism"] = 2
    with pytest.raises(validate.ValidationError):
        validate.validate(made, validate.latest_version(), strict=True)


def test_the_manifest_is_written_next_to_the_run(tmp_path: Path) -> None:
    asked = job(folder=tmp_path / "gpt" / "nodes-2", options=("image=a",))
    done = k8s.submit(asked)
    assert (tmp_path / "gpt" / "nodes-2.yaml").read_text() == k8s.text(asked)
    assert done.code is None and "kubectl apply -f" in done.sentence


def test_ray_is_asked_for_a_worker_a_process() -> None:
    asked = job(processes_per_node=4, options=("address=auto", "topology=4x4"))
    shown = json.loads(ray.text(asked))
    assert shown["scaling_config"] == {
        "num_workers": 8, "use_gpu": True, "use_tpu": False, "resources_per_worker": {"GPU": 2}, "topology": "4x4",
    }  # fmt: skip
    assert shown["init"] == {"address": "auto"} and shown["train_loop_config"]["argv"] == asked.argv()


@pytest.mark.parametrize(
    ("engine", "changes", "sentence"),
    [
        (slurm, {"options": ("--a b=c",)}, "'--a b=c' in --options is no option of sbatch"),
        (slurm, {"options": ("-p", "a100")}, "'-p' in --options is no option of sbatch: use --partition=NAME"),
        (k8s, {}, "k8s needs an image with jaxbench in it: add --options=image="),
        (k8s, {"options": ("image=",)}, "'image=' in --options is unknown to k8s: use image=NAME"),
        (k8s, {"options": ("image=a", "clam=b")}, "'clam=b' in --options is unknown to k8s"),
        (k8s, {"options": ("image=a",), "processes_per_node": 8}, "--processes_per_node=8 is not possible with k8s"),
        (ray, {"options": ("adress=auto",)}, "'adress=auto' in --options is unknown to ray"),
    ],
)
def test_options_that_cannot_be_are_one_sentence(engine: Any, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        engine.check(job(**changes))
    assert sentence in str(caught.value)


@pytest.mark.parametrize(("engine", "missing"), [(slurm, "no Slurm"), (mpi, "no mpirun")])
def test_a_machine_without_the_launcher_is_told_so(engine: Any, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match=missing):
        engine.require_here()


@pytest.mark.parametrize(("engine", "module", "extra"), [(slurm, "submitit", "slurm"), (ray, "ray.train", "ray")])
def test_an_optional_package_that_is_missing_is_named_with_its_extra(
    engine: Any, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("shutil.which", lambda name: name)
    with pytest.raises(UserError, match=rf"\[{extra}\]"):
        engine.require_here()


# From the arguments of `launch` to jobs: one for each node count, with the command as typed.


def jobs(*command: str, **flags: Any) -> list[Job]:
    return launch.jobs(command, Path("/runs/gpt"), **flags)


def test_each_node_count_is_a_job_that_measures_its_own_devices_in_its_own_folder() -> None:
    made = jobs("run", "gpt", "--config.model.text=a b", nodes="4,1,2", devices="gpu:8")
    expected = [(n, 8 * n, Path(f"/runs/gpt/nodes-{n}")) for n in (1, 2, 4)]
    assert [(job.nodes, job.devices, job.folder) for job in made] == expected
    assert made[1].argv()[1:] == [
        *("-m", "jaxbench", "run", "gpt", "--config.model.text=a b"),
        *("--config.mesh.platform=gpu", "--config.mesh.devices=16", "--workdir=/runs/gpt/nodes-2"),
    ]


def test_a_job_or_a_training_may_choose_its_devices_itself_and_paths_hold_in_any_folder() -> None:
    (job,) = jobs("run", "gpt", "--config.mesh.devices=1,2", "--config.mesh.platform=cpu", devices="cpu:2")
    words = [word for word in job.argv() if "mesh" in word]
    assert words == ["--config.mesh.devices=1,2", "--config.mesh.platform=cpu"]
    (job,) = jobs("train", "gpt", nodes="2")
    assert not [word for word in job.argv() if "mesh" in word]
    (job,) = jobs("run", "mine.py", "--preset=sub/own.py", "--config.data.path=x.py")
    here = Path.cwd()
    assert job.argv()[4:7] == [str(here / "mine.py"), f"--preset={here / 'sub/own.py'}", "--config.data.path=x.py"]
    assert job.name == "mine-1"


@pytest.mark.parametrize(
    ("command", "changes", "sentence"),
    [
        (("run", "gpt"), {"nodes": "1,x"}, "--nodes=1,x is not a list of different node counts: use 1,2,4"),
        (("run", "gpt"), {"nodes": "2,2"}, "--nodes=2,2 is not a list of different node counts"),
        (("run", "gpt"), {"devices": "h100:8"}, "--devices=h100:8 is not what one node gives: use gpu:8"),
        (("run", "gpt"), {"devices": "gpu:0"}, "--devices=gpu:0 is not what one node gives"),
        (("run", "gpt"), {"processes_per_node": 0}, "does not divide over --processes_per_node=0: use 1 process"),
        (("run", "gpt"), {"devices": "gpu:8", "processes_per_node": 3}, "--devices=gpu:8 does not divide over"),
        (
            ("run", "gpt"),
            {"minutes": -5},
            "--minutes=-5 is not a time limit of at least 1 minute: use 60, for example.",
        ),
        (("run", "gpt"), {"minutes": 0}, "--minutes=0 is not a time limit"),
        ((), {}, "needs run or train and its experiment after '--', or accept: jaxbench launch slurm"),
        (("ru", "gpt"), {}, "needs run or train and its experiment after '--'"),
        (("run", "--config.batch=4"), {}, "needs run or train and its experiment"),
        (("run", "gpt", "--workdir=x"), {}, "'--workdir=x' is for launch: write it before the '--', or with make into"),
        (("run", "gpt", "--dry_run"), {}, "'--dry_run' is for launch"),
        (("run", "gpt"), {"options": "--a='b"}, "--options=--a='b cannot be read (No closing quotation)"),
        (("run", "gpt"), {"options": "'--comment=a\n#SBATCH --uid=0'"}, "has a character that cannot be printed"),
        (("run", "gpt"), {"options": "--account=me\x1b[2J"}, "has a character that cannot be printed"),
        (("run", "gpt"), {"options": "'image=a\r\nkind: Pod'"}, "has a character that cannot be printed"),
        (("run", "gpt", "--config.x=a\nrm b"), {}, "has a character that cannot be printed"),
        (("train", "gpt"), {"nodes": "1,2"}, "would train several times"),
        (("run", "gpt", "--config.mesh.devices=4"), {"nodes": "1,2"}, "does not fit several node counts"),
    ],
)
def test_bad_words_are_one_sentence(command: tuple[str, ...], changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        jobs(*command, **changes)
    assert sentence in str(caught.value)


def test_engines_are_found_by_their_files() -> None:
    assert engines.names() == ["k8s", "mpi", "ray", "slurm"]
    for name in engines.names():
        engine = engines.load(name)
        assert engine.OPTIONS and all(callable(getattr(engine, part)) for part in ("check", "text", "require_here"))
    with pytest.raises(UserError, match="there is no engine 'slrm' to launch with: did you mean 'slurm'"):
        engines.load("slrm")


# `jaxbench launch` as a user runs it.


CPU = ("--devices=cpu:1", "--dry_run")


def test_a_dry_run_shows_the_line_and_starts_and_writes_nothing(tmp_path: Path) -> None:
    words = ("run", "mlp", "--config.data.path=", "--config.model.width=8")
    done = jaxbench("launch", "mpi", *CPU, f"--workdir={tmp_path / 'a b'}", "--", *words)
    assert done.returncode == 0, done.stderr
    line = shlex.split(done.stdout.splitlines()[1])
    assert line[0] == "mpirun"
    assert line[line.index(sys.executable) :] == [
        *(sys.executable, "-m", "jaxbench", *words, "--config.mesh.platform=cpu", "--config.mesh.devices=1"),
        f"--workdir={tmp_path / 'a b' / 'nodes-1'}",
    ]
    assert not list(tmp_path.iterdir())


def test_a_dry_run_for_slurm_needs_nothing_that_is_not_installed(tmp_path: Path) -> None:
    hidden = "import sys; sys.modules['submitit'] = None; from jaxbench import app; app.main()"
    words = ("launch", "slurm", "--devices=gpu:8", "--dry_run", f"--workdir={tmp_path / 'x'}", "--", "run", "mlp")
    command = [sys.executable, "-c", hidden, *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), cwd=tmp_path)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert "#SBATCH --gpus-per-node=8" in done.stdout and "jaxbench run mlp" in done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "sentence"),
    thin(
        [
            (("mpi", *CPU, "--", "run", "mlp", "--config.bach=4"), "--config.bach"),
            (("mpi", *CPU, "--", "run", "mlp", "--config.strategy=jitauto"), "did you mean 'jit_auto'?"),
            (("mpi", *CPU, "--", "run", "mlq"), "unknown experiment 'mlq': did you mean 'mlp'?"),
            (("mpi", *CPU, "--", "run", "mlp", "--worksdir=x"), "there is no flag --worksdir"),
            (("slrm", *CPU, "--", "run", "mlp"), "there is no engine 'slrm' to launch with: did you mean 'slurm'?"),
            (("mpi", *CPU), "jaxbench launch needs run or train and its experiment after '--'"),
            (("mpi", "--strategy=x", "--", "run", "mlp"), "there is no flag --strategy"),
            (("mpi", "--nodes=0", "--", "run", "mlp"), "--nodes=0 is not a list of different node counts"),
            ((), "jaxbench launch takes one engine"),
        ],
        1,
    ),
)
def test_a_mistake_is_one_sentence_before_anything_is_queued(words: tuple[str, ...], sentence: str) -> None:
    done = jaxbench("launch", *words)
    assert done.returncode == 2
    assert sentence in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.full
def test_only_launch_takes_a_command() -> None:
    done = jaxbench("list", "--", "run", "mlp")
    assert done.returncode == 2 and "jaxbench list takes nothing after '--'" in done.stderr

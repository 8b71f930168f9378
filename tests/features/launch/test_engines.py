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

from jaxbench.errors import UserError
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
    assert [line.split("=")[0] for line in added] == [
        f"#SBATCH --{x}" for x in ("error", "open-mode", "output", "signal")
    ]


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


def test_one_pod_is_a_world_of_its_own() -> None:
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

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`ab` of commits, with real repositories: the commit, the copy of the package, and the cleanup."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import signal
import statistics
import subprocess

import pytest
from doorway import QUICK_MLP, ROOT, command, environment

from jaxbench import config, discovery
from jaxbench.commands import ab as ab_command
from jaxbench.core import schema
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.features.comparison import other_commit
from jaxbench.features.comparison.other_commit import OtherCommit
from jaxbench.machine import source
from jaxbench.processes.client import Worker
from jaxbench.processes.messages import Setup

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

FOLDERS = ("jaxbench", "experiments", "configs")
ONE = (*QUICK_MLP, "--config.mesh.devices=1", "--budget_s=0.1")
# A step that also sorts its updates takes several times as long and ends with the same parameters.
SGD = "optax.sgd(c.learning_rate),"
SLOW_SGD = """optax.chain(
        optax.sgd(c.learning_rate),
        optax.stateless(lambda u, p: jax.tree.map(lambda x: x + 0 * jax.numpy.sort(x, axis=None).reshape(x.shape), u)),
    ),"""


def git(folder, *words):
    known = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", str(folder), *known, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder, message):
    """The hash of a new commit."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", f"--message={message}")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A repository with the necessary folders; this process stands for its package. Temporary files are next to it."""
    folder = tmp_path / "small"
    for name in (*FOLDERS, "mine"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("")
        (folder / name / "mlp.py").write_text(f"# {name}\n")
    (folder / "jaxbench" / "worker.py").write_text("")
    git(tmp_path, "init", "--quiet", "--initial-branch=main", "small")
    commit(folder, "first")
    monkeypatch.setattr(source, "PACKAGE", folder / "jaxbench")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A repository of this package: the tag `before`, and main with a slower SGD."""
    folder = tmp_path_factory.mktemp("project")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / ".gitignore").write_text("__pycache__/\n")
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, "before")
    git(folder, "tag", "before")
    optimizers = folder / "jaxbench" / "workloads" / "optimizers.py"
    text = optimizers.read_text()
    assert text.count(SGD) == 1
    optimizers.write_text(text.replace(SGD, SLOW_SGD).replace("import optax\n", "import jax\nimport optax\n"))
    commit(folder, "sort too")
    return folder


@pytest.fixture
def of_project(project, tmp_path, monkeypatch):
    monkeypatch.setattr(source, "PACKAGE", project / "jaxbench")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return project


def named(folder, *words):
    """`jaxbench ab mlp` with the package of a repository. Temporary files are next to it."""
    scratch = folder.parent / f"{folder.name}-scratch"
    scratch.mkdir(exist_ok=True)
    variables = {**environment(), "PYTHONPATH": str(folder), "TMPDIR": str(scratch)}
    return command("ab", "mlp", *words), {"cwd": folder, "env": variables}, scratch


def test_a_branch_a_tag_and_a_hash_are_resolved_and_their_files_removed(small, tmp_path):
    first = git(small, "rev-parse", "HEAD")
    git(small, "tag", "v1")
    (small / "jaxbench" / "mlp.py").write_text("# second\n")
    second = commit(small, "second")
    (small / "jaxbench" / "mlp.py").write_text("# not committed\n")
    for name, expected in (("v1", first), ("main", second), ("HEAD~1", first), (second[:8], second)):
        with other_commit.files(f"ref:{name}") as found:
            assert (found.commit, found.repository) == (expected, small.resolve())
            assert str(found) == f"ref:{name}, commit {expected}"
            text = (found.folder / "jaxbench" / "mlp.py").read_text()
            assert text == ("# jaxbench\n" if expected == first else "# second\n")
            assert not found.folder.is_relative_to(small)
        assert not list((tmp_path / "scratch").iterdir())
    assert git(small, "status", "--porcelain") == "M jaxbench/mlp.py"
    assert len(git(small, "worktree", "list").splitlines()) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, UserError])
def test_the_files_are_removed_however_it_ends(small, tmp_path, error):
    with pytest.raises(error), other_commit.files("ref:main"):
        assert list((tmp_path / "scratch").iterdir())
        raise error
    assert not list((tmp_path / "scratch").iterdir())


def refused(said, ref="ref:main"):
    with pytest.raises(UserError, match=said), other_commit.files(ref):
        pass


@pytest.mark.parametrize("name", ["mian", "", "--all", "main:jaxbench"])
def test_an_unknown_commit_is_refused_with_one_that_exists(small, name):
    refused(f"^ref:{name} is no commit, branch or tag of '.*main", f"ref:{name}")


def test_a_folder_without_a_repository_is_one_sentence(small, tmp_path, monkeypatch):
    shutil.rmtree(small / ".git")
    monkeypatch.chdir(tmp_path)  # for an installed package: the current folder's repository
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    refused(r"^git cannot give the files of another commit \(fatal: not a git repository")


def test_an_installed_package_takes_the_repository_of_the_current_folder(small, monkeypatch):
    monkeypatch.setattr(source, "PACKAGE", small.parent / "site-packages" / "jaxbench")
    monkeypatch.chdir(small / "mine")
    monkeypatch.setenv("GIT_DIR", "/nowhere")  # as in a hook of another repository
    with other_commit.files("ref:main") as found:
        assert found.repository == small.resolve()


def test_an_experiment_inside_the_repository_is_of_the_commit(small, tmp_path):
    outside, new = tmp_path / "outside.py", small / "mine" / "new.py"
    for path in (outside, new):
        path.write_text("")
    with other_commit.files("ref:main") as found:
        assert found.experiment("mlp") == "mlp"
        assert found.experiment(str(small / "mine" / "mlp.py")) == str(found.folder / "mine" / "mlp.py")
        assert found.experiment(str(outside)) == str(outside)
        for missing, file in (("cnn", "experiments/cnn.py"), (str(new), "mine/new.py")):
            with pytest.raises(UserError, match=f"^ref:main, commit .* has no file '{file}'"):
                found.experiment(missing)


def test_an_arm_is_a_commit_and_settings():
    made = config.compose("mlp", discovery.load_experiment("mlp"), discovery.load_preset("auto"))
    side = ab_command.side_of(made, "ref:main --config.batch=7")
    assert (side.ref, side.config.batch) == ("ref:main", 7)
    assert ab_command.side_of(made, "").ref == ""
    with pytest.raises(UserError, match="names two commits, ref:a and ref:b"):
        ab_command.side_of(made, "ref:a ref:b")


def test_a_worker_runs_the_copy_of_its_commit(of_project, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    made = {"measures": "cases", "seed": 0}
    setup = Setup(platform="cpu", devices=1, experiment="mlp", config=made, worker="w")
    with other_commit.files("ref:before") as found:
        expected = source.of(found.folder / "jaxbench")
        assert source.environment(expected)["PYTHONPATH"].split(":") == [str(found.folder), str(ROOT)]
        worker = Worker(dataclasses.replace(setup, source=expected), tmp_path / "log")
        try:
            worker.wait_ready()  # it compares the copies, and this process has a different one
        finally:
            worker.close()
        other = Worker(dataclasses.replace(setup, source={**expected, "sha256": "0"}), tmp_path / "log")
        try:
            with pytest.raises(UserError, match="changed during this run"):
                other.wait_ready()
        finally:
            other.close()


def test_a_commit_is_asked_for_its_experiment_and_its_defaults(of_project):
    made = config.compose("mlp", discovery.load_experiment("mlp"), discovery.load_preset("auto"))
    mlp = of_project / "experiments" / "mlp.py"
    git(of_project, "switch", "--quiet", "--detach", "before")
    mlp.write_text(mlp.read_text().replace('"depth": 1}', '"depth": 2}'))
    deeper = commit(of_project, "deeper")
    git(of_project, "switch", "--quiet", "main")
    with other_commit.files(f"ref:{deeper}") as found:
        there = OtherCommit.of(found, "mlp", made)
        assert there.manifest["git"] == {"commit": deeper, "dirty": False, "ref": f"ref:{deeper}"}
        experiment = (found.folder / "experiments" / "mlp.py").read_bytes()
        assert there.manifest["experiment_sha256"] == hashlib.sha256(experiment).hexdigest()
        assert there.source == source.of(found.folder / "jaxbench")
        assert "other default settings, which are not measured: model.depth 2, here 1" in there.notes[0]


def test_a_setting_that_one_side_does_not_know_is_refused():
    theirs = {"batch": 64, "model.width": 32}
    other_commit.require_known("ref:old", theirs, {**theirs, "lever.new": ""}, {**theirs, "lever.new": ""})
    with pytest.raises(UserError, match="^ref:old does not know --config.lever.new: its measuring protocol differs"):
        other_commit.require_known("ref:old", theirs, {**theirs, "lever.new": ""}, {**theirs, "lever.new": "on"})
    with pytest.raises(UserError, match="^ref:old needs --config.model.width, which is unknown here: its measuring"):
        other_commit.require_known("ref:old", theirs, {"batch": 64}, {"batch": 32})


def test_a_commit_from_before_programs_were_kept_can_be_compared():
    """`ab` compiles in each process, which such a commit always does."""
    theirs, ours = {"batch": 64}, {"batch": 64, "measure.compile": config.CACHED}
    other_commit.require_known("ref:old", theirs, ours, {"batch": 64, "measure.compile": config.FRESH})
    with pytest.raises(UserError, match="does not know --config.lever.new"):
        other_commit.require_known("ref:old", theirs, {**ours, "lever.new": ""}, {"batch": 64, "lever.new": "fresh"})
    with pytest.raises(UserError, match="does not know --config.lever.new"):
        other_commit.require_known("ref:old", theirs, {**ours, "lever.new": ""}, {"batch": 64, "lever.new": None})


def test_a_package_that_cannot_answer_has_another_protocol(small):
    with other_commit.files("ref:main") as found, pytest.raises(UserError) as error:
        found.facts("mlp")
    assert str(error.value).startswith("ref:main, commit") and "its measuring protocol differs" in str(error.value)
    assert "ImportError" in str(error.value) and "\n" not in str(error.value)


def test_a_folder_measured_at_another_commit_is_refused(small):
    with other_commit.files("ref:main") as found:
        tree = {"commit": found.commit, "dirty": False}
        other_commit.require_same_commit(small, {**tree, "ref": "ref:HEAD"}, found)  # another name for it
        other_commit.require_same_commit(small, tree, None)
        other, same = ({"ref": "ref:main", "commit": hashed} for hashed in ("0", found.commit))
        for then, now in ((other, found), (tree, found), (same, None)):
            with pytest.raises(UserError, match=r"was measured at .*, now it is .*: choose a new --workdir\.$"):
                other_commit.require_same_commit(small, then, now)


@pytest.mark.full
def test_a_slower_commit_is_found_and_nothing_is_left(project):
    before, now = (git(project, "rev-parse", f"{name}^{{commit}}") for name in ("before", "main"))
    work = project.parent / "ab"
    words, how, scratch = named(project, "--a=ref:before", "--b=ref:main", f"--workdir={work}", *ONE)
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, **how)
    assert done.returncode == 2, done.stdout + done.stderr  # one pair is too few for a verdict
    assert f"A is ref:before, commit {before}.\nB is ref:main, commit {now}.\n" in done.stdout
    medians = []
    for arm, expected in (("a", before), ("b", now)):
        folder = RunFolder(work / arm)
        assert folder.manifest()["git"]["commit"] == expected
        rounds = [record for record in folder.records() if isinstance(record, schema.RoundRecord)]
        medians.append(statistics.median(t / r.steps for r in rounds for t in r.block_s))
    assert medians[1] > 2 * medians[0]
    shas = [RunFolder(work / arm).manifest()["source_sha256"] for arm in "ab"]
    assert shas[0] != shas[1] == source.of(project / "jaxbench")["sha256"]
    differing = " ".join(json.loads((work / "comparison.json").read_text())["software"])
    assert f"git.commit: {before} in A, {now} in B" in differing and "source_sha256" in differing
    assert not [path for path in scratch.iterdir() if path.name.startswith("jaxbench-")]
    assert git(project, "status", "--porcelain") == ""
    words[words.index("--a=ref:before")] = "--a=ref:main"
    again = subprocess.run(words, capture_output=True, text=True, timeout=300, **how)
    assert again.returncode == 3 and f"was measured at ref:before, commit {before}, now it is ref:main" in again.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{"do": message.do', '{"kind": message.do'),
        ('    loss: str = ""  # its kind', '    unknown: int\n    loss: str = ""  # its kind'),
    ],
)
def test_a_commit_with_other_messages_is_refused_in_one_sentence(project, tmp_path, old, new):
    """Its workers answer in another form, or need a field that this jaxbench does not send."""
    git(project, "switch", "--quiet", "--detach", "before")
    messages = project / "jaxbench" / "processes" / "messages.py"
    text = messages.read_text()
    assert text.count(old) == 1
    messages.write_text(text.replace(old, new))
    other = commit(project, "other messages")
    git(project, "switch", "--quiet", "main")
    words, how, _ = named(project, f"--a=ref:{other}", "--b=", f"--workdir={tmp_path / 'ab'}", *ONE)
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, **how)
    assert done.returncode == 3 and len(done.stderr.splitlines()) == 1, done.stderr
    assert "cannot be measured" in done.stderr and "its measuring protocol differs" in done.stderr


@pytest.mark.full
def test_an_interrupt_removes_the_files(project):
    words, how, scratch = named(project, "--a=ref:before", "--b=", f"--workdir={project.parent / 'never'}", *ONE)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how) as process:
        assert process.stdout.readline().startswith("A is ref:before, commit")
        assert [path for path in scratch.iterdir() if path.name.startswith("jaxbench-")]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert not [path for path in scratch.iterdir() if path.name.startswith("jaxbench-")]

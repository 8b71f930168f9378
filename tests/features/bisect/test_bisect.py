# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench bisect --run` with real processes: planted wheels, planted commits, failures and interrupts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from doorway import command, environment, jaxbench
from thin import thin

from benchmarks import planted
from jaxbench.environments import release, tools
from jaxbench.errors import UserError
from jaxbench.features.bisect import versions
from jaxbench.features.bisect.versions import End

COUNT = 6  # versions 1.0 to 1.5
FIRST = 3  # the first slow one
PROGRAM = "import pace\nprint('seconds', pace.SECONDS)\n"
SAME = "--margin=0.1"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """`pace` 1.0 to 1.5, slow from 1.3 on. 1.2 needs a package that nobody has."""
    folder = tmp_path_factory.mktemp("index")
    for number in range(COUNT):
        needs = ["missing"] if number == 2 else []
        seconds = 1.5 if number >= FIRST else 1.0
        planted.wheel(folder, "pace", f"1.{number}", f"SECONDS = {seconds}\n", needs=needs)
    return folder


@pytest.fixture(scope="module")
def variables(index, tmp_path_factory):
    path = os.pathsep.join([os.path.dirname(sys.executable), "/usr/bin", "/bin"])  # pip, also where uv is installed
    return {**planted.variables(index, tmp_path_factory.mktemp("cache")), "PATH": path}


def bisect(folder, variables, *words, run="python program.py", code=PROGRAM):
    (folder / "program.py").write_text(code)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        return jaxbench("bisect", f"--run={run}", "--workdir=out", "--share_machine", *words, cwd=folder)


def answer(folder):
    return json.loads((folder / "out" / "bisect.json").read_text())


def test_a_slow_wheel_is_found_and_a_broken_one_is_named(variables, tmp_path):
    done = bisect(tmp_path, variables, "--from=pace==1.0", "--to=pace==1.5", SAME)
    assert done.returncode == 1, done.stdout + done.stderr
    found = answer(tmp_path)
    assert found["verdict"] == "slower" and found["first_slow"] is None  # 1.2 does not install
    assert found["candidates"] == ["pace==1.2", "pace==1.3"]
    by_name = {each["name"]: each for each in found["versions"]}
    assert by_name["pace==1.2"]["verdict"] == "skipped" and "missing" in by_name["pace==1.2"]["note"]
    assert by_name["pace==1.3"]["ratio"]["lo"] > 1.2 and by_name["pace==1.1"]["ratio"]["hi"] < 1.2
    assert by_name["pace==1.0"]["verdict"] == "the oldest"
    assert "The first slow version is one of pace==1.2, pace==1.3" in " ".join(done.stdout.split())
    page = (tmp_path / "out" / "bisect.html").read_text()
    assert all(f"pace==1.{number}" in page for number in range(COUNT)) and "is skipped" not in page
    assert "jaxbench bisect --run=" in page and (tmp_path / "out" / "figures" / "bisection.svg").is_file()
    assert "pace==1.3" in (tmp_path / "out" / "summary.md").read_text()
    # The same command is answered by the folder: only the version that was skipped is tried again.
    again = bisect(tmp_path, variables, "--from=pace==1.0", "--to=pace==1.5", SAME, code="raise SystemExit(1)\n")
    assert again.returncode == 1 and answer(tmp_path)["candidates"] == found["candidates"], again.stdout
    other = bisect(tmp_path, variables, "--from=pace==1.0", "--to=pace==1.4", SAME)
    assert other.returncode == 3 and "has a bisection with to 'pace==1.5', not 'pace==1.4'" in other.stderr


def test_a_difference_that_is_none_ends_after_one_comparison(variables, tmp_path):
    done = bisect(tmp_path, variables, "--from=pace==1.3", "--to=pace==1.5", SAME)
    assert done.returncode == 0 and "No difference: pace==1.5 has 1.000" in done.stdout, done.stdout + done.stderr
    assert [each["verdict"] for each in answer(tmp_path)["versions"]] == ["the oldest", "not compared", "same"]


def test_too_few_pairs_cannot_tell(variables, tmp_path):
    done = bisect(tmp_path, variables, "--from=pace==1.0", "--to=pace==1.5", "--budget_s=0.001")
    assert done.returncode == 2 and "Cannot tell whether pace==1.5 is slower" in done.stdout, done.stdout + done.stderr


CANNOT_RUN = [
    ("--to=pace==1.1", "is 'none', not a number. Correct the program", "print('none')"),
    ("--to=pace==1.7", "nearest versions", PROGRAM),
    ("--to=pace==1.1", "exit code 1 (ValueError: so)", "raise ValueError('so')"),
]


@pytest.mark.parametrize(("last", "said", "code"), thin(CANNOT_RUN, 1))
def test_what_cannot_run_ends_in_one_sentence(variables, tmp_path, last, said, code):
    done = bisect(tmp_path, variables, "--from=pace==1.0", last, code=code)
    assert done.returncode == 3 and said in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert not (tmp_path / "out" / "bisect.html").exists()


def test_an_interrupt_loses_no_pair(variables, tmp_path):
    (tmp_path / "program.py").write_text(f"import time\ntime.sleep(0.05)\n{PROGRAM}")
    words = ("--run=python program.py", "--workdir=out", "--share_machine", "--from=pace==1.0", "--to=pace==1.3")
    pairs = tmp_path / "out" / "versions" / "pace-1.3" / "pairs.jsonl"
    with subprocess.Popen(
        command("bisect", *words),
        cwd=tmp_path,
        env={**environment(), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not (pairs.is_file() and len(pairs.read_text().splitlines()) >= 2):
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "--workdir=out continues" in output
    before = pairs.read_text().splitlines()
    pairs.write_text("\n".join([*before, '{"a": 1.']))  # an interrupted write
    done = subprocess.run(
        command("bisect", *words), cwd=tmp_path, env={**environment(), **variables}, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert pairs.read_text().splitlines()[: len(before)] == before
    assert [json.loads(line) for line in pairs.read_text().splitlines()] == [{"a": 1.0, "b": 1.5}] * 6


def git(folder, *words):
    known = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", "-C", str(folder), *known, *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path):
    """Six commits of a module, slow from the fourth on. The program is not committed."""
    folder = tmp_path / "repository"
    (folder / "src").mkdir(parents=True)
    git(tmp_path, "init", "--quiet", "--initial-branch=main", "repository")
    for number in range(COUNT):
        (folder / "src" / "pace.py").write_text(f"SECONDS = {1.5 if number >= FIRST else 1.0}  # {number}\n")
        git(folder, "add", "src")
        git(folder, "commit", "--quiet", f"--message=change {number}")
        git(folder, "tag", f"v{number}")
    return folder


def test_a_slow_commit_is_found_in_the_repository_of_the_current_folder(repository, variables):
    done = bisect(repository, variables, "--from=ref:v0", "--to=ref:main", SAME)
    assert done.returncode == 1, done.stdout + done.stderr
    slow = git(repository, "rev-parse", f"v{FIRST}").strip()
    found = answer(repository)
    assert found["first_slow"] == f"ref:{slow[:12]}" and "is the first slow version" in found["sentence"]
    (line,) = [each for each in found["versions"] if each["name"] == found["first_slow"]]
    assert line["note"] == f"the first slow version; change {FIRST}"
    assert f'--to="ref:{slow}"' in found["see_again"][0]
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_ends_that_do_not_fit_are_refused(repository, index, monkeypatch):
    for name, value in planted.variables(index, repository / "cache").items():
        monkeypatch.setenv(name, value)
    tools.offered.cache_clear()

    def between(first, last):
        ends = (End.of("--from", first.split()), End.of("--to", last.split()))
        return [version.name for version in versions.between(*ends, repository)]

    assert between("pace==1.1", "pace==1.4") == [f"pace==1.{number}" for number in range(1, 5)]
    assert between("pace==1.1 jax==0.10.0", "pace==1.2 jax==0.10.0") == ["pace==1.1", "pace==1.2"]
    assert len(between("ref:v1", "ref:main")) == COUNT - 1
    for first, last, said in (
        ("pace==1.4", "pace==1.1", "pace==1.4 is newer than pace==1.1: exchange --from and --to"),
        ("pace==1.1", "ref:main", "both ends must name a commit, or neither"),
        ("pace==1.1", "pace==1.1", "nothing changes"),
        ("pace==1.1 jax==0.9", "pace==1.2 jax==0.10", "jax, pace change: let one package change"),
        ("pace==1.1 jax==0.9", "pace==1.2", "jax is named at one end only: add jax==0.9"),
        ("ref:v2", "ref:v2", "are the same commit"),
        ("ref:v3", "ref:v1", "does not descend from"),
        ("ref:v1 pace==1.1", "ref:v2 pace==1.2", "the commit and pace change: keep one of them"),
        ("mlp", "pace==1.1", "'mlp' is neither a release nor a commit"),
        ("", "pace==1.1", "must name one version"),
        ("pace>=1.1", "pace==1.2", "is no release"),
    ):
        with pytest.raises(UserError, match=said):
            between(first, last)
    tools.offered.cache_clear()
    assert release.nearest("1.2.5", ("1.0", "1.2", "1.3", "1.4", "1.5")) == ["1.0", "1.2", "1.3", "1.4"]

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The files of a commit in a temporary folder, so that its copy of this package can be compared with another copy.

A commit is named as on the command line, `ref:NAME`. NAME is a branch, a tag or anything else that git resolves to a
commit. The repository is that of this package or, if the package is installed, that of the current folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench import discovery
from jaxbench.errors import UserError, did_you_mean
from jaxbench.machine import copy_facts, source
from jaxbench.machine.manifest import git

PREFIX = "ref:"
NEEDED = ("jaxbench/__init__.py", "experiments", "configs")  # the parts that a process imports or reads
OTHER_PROTOCOL = "its measuring protocol differs from that of this jaxbench, so choose another commit"
ANSWER_LIMIT_S = 120.0
SHOWN = 20  # names of a repository that a sentence lists


@dataclass(frozen=True)
class Checkout:
    """A commit and its files.

    Attributes:
      ref: as typed, "ref:main".
      commit: its full hash.
      repository: the folder of the repository.
      folder: holds its files.
    """

    ref: str
    commit: str
    repository: Path
    folder: Path

    def __str__(self) -> str:
        return f"{self.ref}, commit {self.commit}"

    def experiment(self, name_or_path: str) -> str:
        """The experiment that its processes load.

        This is its own experiment of that name, its own file for a path inside the repository, or otherwise the same
        file. Raises UserError if the commit has no such file."""
        known = name_or_path in discovery.experiments()
        path = discovery.experiment_path(name_or_path)
        if not known and not path.is_relative_to(self.repository):
            return str(path)
        inside = Path("experiments", path.name) if known else path.relative_to(self.repository)
        if not (self.folder / inside).is_file():
            raise UserError(f"{self} has no file '{inside}': choose a commit that has this experiment.")
        return name_or_path if known else str(self.folder / inside)

    def facts(self, experiment: str) -> dict[str, Any]:
        """The result of `copy_facts.facts` with its own package, in a child. experiment: as its processes load it.

        Raises UserError if it cannot load the experiment, or its package cannot answer.
        """
        copy = source.of(self.folder / "jaxbench")
        child = {**os.environ, **source.environment(copy), "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "2"}
        command = [sys.executable, "-P", str(Path(copy_facts.__file__).resolve()), experiment]
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=child, timeout=ANSWER_LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise UserError(f"{self} does not load '{experiment}' within {ANSWER_LIMIT_S:.0f} s.") from error
        if done.returncode:
            raise UserError(f"{self} cannot report what it measures ({_last_line(done.stderr)}): {OTHER_PROTOCOL}.")
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        if "error" in answer:
            raise UserError(f"{self}: {answer['error']}")
        source.require_same(answer["source"], copy)
        return answer


@contextmanager
def files(ref: str) -> Iterator[Checkout]:
    """Yields the files of `ref`. They are removed when the context ends, even by an exception.

    Raises UserError if there is no git, no repository or no such commit, or the commit lacks this package.
    """
    repository = _repository()
    commit = _resolved(repository, ref.removeprefix(PREFIX))
    if Path(tempfile.gettempdir()).resolve().is_relative_to(repository):
        raise UserError(
            f"the folder for temporary files, '{tempfile.gettempdir()}', is inside the repository '{repository}': set "
            "TMPDIR to a folder outside of it, such as /tmp."
        )
    with tempfile.TemporaryDirectory(prefix=f"jaxbench-{commit[:12]}-") as scratch:
        folder = Path(scratch).resolve() / "files"
        _extract(repository, commit, folder)
        checkout = Checkout(ref, commit, repository, folder)
        missing = [name for name in NEEDED if not (folder / name).exists()]
        if missing:
            raise UserError(f"{checkout} has no {missing[0]}: choose a commit that has one.")
        yield checkout


def _repository() -> Path:
    if shutil.which("git") is None:
        raise UserError(f"{PREFIX}NAME needs git, which is not installed: install it, or compare settings only.")
    folder = source.PACKAGE.parent
    if not (folder / ".git").exists():
        folder = Path.cwd()
    try:
        return Path(git(folder, "rev-parse", "--show-toplevel")).resolve()
    except subprocess.CalledProcessError as error:
        raise UserError(
            f"{PREFIX}NAME needs a git repository, and '{folder}' is in none ({_last_line(error.stderr)}): start in a "
            "clone of jaxbench."
        ) from error


def _resolved(repository: Path, name: str) -> str:
    """The hash of a commit."""
    try:
        if not name or name.startswith("-"):  # git would take it for an option
            raise subprocess.CalledProcessError(1, "git")
        return git(repository, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except subprocess.CalledProcessError as error:
        newest = ("--sort=-creatordate", f"--count={SHOWN}", "refs/heads", "refs/tags", "refs/remotes")
        known = git(repository, "for-each-ref", "--format=%(refname:short)", *newest).split()
        raise UserError(
            f"{PREFIX}{name} is no commit, branch or tag of '{repository}': {did_you_mean(name, ['HEAD', *known])}"
        ) from error


def _extract(repository: Path, commit: str, folder: Path) -> None:
    archive = folder.with_suffix(".tar")
    try:
        git(repository, "archive", "--format=tar", f"--output={archive}", commit)
        with tarfile.open(archive) as files:
            # Refuses a file outside of `folder`. The first releases of Python 3.11 have no filters.
            files.extraction_filter = getattr(tarfile, "tar_filter", None)
            files.extractall(folder)
        archive.unlink()
    except subprocess.CalledProcessError as error:
        raise UserError(
            f"git cannot write the files of commit {commit} ({_last_line(error.stderr)}): fetch it completely."
        ) from error
    except OSError as error:
        raise UserError(
            f"cannot write to '{folder.parent}' ({error.strerror}): set TMPDIR to a folder with more room."
        ) from error


def require_same_commit(folder: Path, then: Mapping[str, Any], now: Checkout | None) -> None:
    """Raises UserError if a run folder was measured at another commit than `now`; None: the working tree.

    then: `git` of its manifest. Changes of a working tree are not checked here.
    """
    old, new = (then["commit"] if "ref" in then else "", now.commit if now else "")
    if old != new:
        tree = "the working tree"
        was, found = f"{then['ref']}, commit {old}" if old else tree, now or tree
        raise UserError(f"'{folder}' was measured at {was}, now it is {found}: choose a new --workdir.")


def _last_line(text: str | None) -> str:
    lines = (text or "").strip().splitlines() or ["no output"]
    return lines[-1].strip().rstrip(".")

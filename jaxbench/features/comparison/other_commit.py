# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""An arm of `jaxbench ab` that measures another commit: its processes load a git worktree's copy.

A commit is named as on the command line, `ref:NAME`. NAME is a branch, a tag or anything else that git resolves to a
commit. The repository is that of this package or, if the package is installed, that of the current folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.errors import UserError, did_you_mean
from jaxbench.features.comparison import comparable
from jaxbench.machine import source
from jaxbench.machine.manifest import git
from jaxbench.records.documents import flatten
from jaxbench.records.manifest import Manifest

Fields = dict[str, Any]  # the fields of a config by path

PREFIX = "ref:"
OTHER_PROTOCOL = "its measuring protocol differs from that of this jaxbench, so choose another commit"
# What commits without one of these settings do, where this is not its default now.
BEFORE_SETTINGS = {"measure.compile": config_lib.FRESH}
SHOWN = 20  # names of a repository that a sentence lists
# Run with the commit's own copy of this package. It uses only functions that the copy needs anyway to measure.
ASK = """
import json, sys
from pathlib import Path
from jaxbench import config, discovery

name = sys.argv[1]
made = config.compose(Path(name).stem, discovery.load_experiment(name), discovery.load_preset("auto"), tiny=False)
answer = {"config": config.plain(made), "experiment_sha256": discovery.digest(name)}
sys.stdout.write(chr(10) + json.dumps(answer))  # on a line of its own: an experiment may print
"""


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
        """What its own package says about an experiment: the defaults of its config, and a hash. Raises UserError."""
        copy = source.environment(source.of(self.folder / "jaxbench"))
        # On the CPU: an accelerator may belong to a process that measures, and only settings are asked for.
        child = {**os.environ, **copy, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "2"}
        # -P: without it Python would import the package of the current folder, which is the working tree.
        done = subprocess.run([sys.executable, "-P", "-c", ASK, experiment], capture_output=True, text=True, env=child)
        if done.returncode:
            raise UserError(f"{self} cannot report what it measures ({_last_line(done.stderr)}): {OTHER_PROTOCOL}.")
        return dict(json.loads(done.stdout.splitlines()[-1]))


@contextmanager
def files(ref: str, folder: Path | None = None) -> Iterator[Checkout]:
    """Yields the files of `ref`. They are removed when the context ends, even by an exception.

    folder: in the repository; None: as `repository_of`.

    Raises UserError if there is no repository or no such commit, or git cannot write its files.
    """
    repository = repository_of(folder)
    commit = resolved(repository, ref.removeprefix(PREFIX))
    with tempfile.TemporaryDirectory(prefix=f"jaxbench-{commit[:12]}-") as scratch:
        folder = Path(scratch).resolve() / "files"
        try:
            with _explained():
                # --detach: git refuses a branch that is checked out elsewhere, such as that of the working tree.
                git(repository, "worktree", "add", "--detach", str(folder), commit)
            yield Checkout(ref, commit, repository, folder)
        finally:
            with contextlib.suppress(subprocess.CalledProcessError):  # if `add` failed, there is none
                git(repository, "worktree", "remove", "--force", str(folder))


def repository_of(folder: Path | None = None) -> Path:
    """The repository that has the commits. Raises UserError if there is none.

    folder: inside it. None: that of this package, or of the current folder if the package is installed.
    """
    if folder is None:
        folder = source.PACKAGE.parent if (source.PACKAGE.parent / ".git").exists() else Path.cwd()
    with _explained():
        return Path(git(folder, "rev-parse", "--show-toplevel")).resolve()


@contextmanager
def _explained() -> Iterator[None]:
    """Turns a failure of git into a UserError with git's own reason."""
    try:
        yield
    except subprocess.CalledProcessError as error:
        raise UserError(f"git cannot give the files of another commit ({_last_line(error.stderr)}).") from error


def resolved(repository: Path, name: str) -> str:
    """The hash of a commit. Raises UserError if there is none of this name."""
    try:
        # ^{commit}: a tag resolves to its commit, and the hash of a file to nothing.
        return git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except subprocess.CalledProcessError as error:
        newest = ("--sort=-creatordate", f"--count={SHOWN}", "refs/heads", "refs/tags", "refs/remotes")
        known = git(repository, "for-each-ref", "--format=%(refname:short)", *newest).split()
        raise UserError(
            f"{PREFIX}{name} is no commit, branch or tag of '{repository}': {did_you_mean(name, ['HEAD', *known])}"
        ) from error


def require_same_commit(folder: Path, then: Mapping[str, Any], now: Checkout | None) -> None:
    """Raises UserError if a run folder was measured at another commit than `now`; None: the working tree.

    then: `git` of its manifest. Changes of a working tree are not checked here.
    """
    old, new = (then["commit"] if "ref" in then else "", now.commit if now else "")
    if old != new:
        was = f"{then['ref']}, commit {old}" if old else "the working tree"
        raise UserError(
            f"'{folder}' was measured at {was}, now it is {now or 'the working tree'}: choose a new --workdir."
        )


@dataclass(frozen=True)
class OtherCommit:
    """The other commit as an arm uses it.

    Attributes:
      experiment: the experiment as its processes load it.
      source: its copy of this package, as `machine.source.of` describes it.
      manifest: the entries that replace the working tree's in the manifest.
      notes: clauses about its default settings.
    """

    experiment: str
    source: dict[str, str]
    manifest: Manifest
    notes: tuple[str, ...]

    @staticmethod
    def of(checkout: Checkout, experiment: str, config: ConfigDict) -> OtherCommit:
        """Raises UserError if the commit does not have the experiment, or does not know a setting."""
        there, copy = checkout.experiment(experiment), source.of(checkout.folder / "jaxbench")
        facts = checkout.facts(there)
        module, preset = discovery.load_experiment(experiment), discovery.load_preset("auto")
        ours = _fields(config_lib.plain(config_lib.compose(Path(experiment).stem, module, preset, tiny=False)))
        theirs = _fields(facts["config"])
        require_known(checkout, theirs, ours, _fields(config_lib.plain(config)))
        manifest: Manifest = {
            "git": {"commit": checkout.commit, "dirty": False, "ref": checkout.ref},
            "source_sha256": copy["sha256"],
            "experiment_sha256": facts["experiment_sha256"],
        }
        # Both arms get the settings of this working tree, so a changed default is not measured. Say so.
        names = [name for name in ours if name in theirs and not name.startswith(comparable.HOW)]
        other = [f"{name} {theirs[name]!r}, here {ours[name]!r}" for name in names if theirs[name] != ours[name]]
        note = f"{checkout} has other default settings, which are not measured: {'; '.join(other)}"
        return OtherCommit(there, copy, manifest, (note,) if other else ())


def require_known(checkout: Checkout, theirs: Fields, ours: Fields, asked: Fields) -> None:
    """Raises UserError for a setting that one of the two packages does not know. A new setting is allowed if the arm
    keeps its default.

    theirs, ours: the defaults of the commit and of this package. asked: the settings of the arm.
    """
    # A setting that nobody reads would be measured as if it had an effect.
    changed = {name: value for name, value in asked.items() if name not in theirs and value != ours.get(name)}
    unknown = [name for name, value in changed.items() if (name, value) not in BEFORE_SETTINGS.items()]
    if unknown:
        raise UserError(f"{checkout} does not know --config.{unknown[0]}: {OTHER_PROTOCOL}.")
    if lacking := [name for name in theirs if name not in asked]:
        raise UserError(f"{checkout} needs --config.{lacking[0]}, which is unknown here: {OTHER_PROTOCOL}.")


def _fields(config: dict[str, Any]) -> Fields:
    """The fields of a config by path, as another process reads them from JSON: a tuple becomes a list."""
    return dict(json.loads(json.dumps(flatten(config))))


def _last_line(text: str | None) -> str:
    lines = (text or "").strip().splitlines() or ["no output"]
    return lines[-1].strip().rstrip(".")

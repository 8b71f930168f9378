# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench --install-completion`: completes verbs, experiments, flags and presets in bash, zsh or fish.

The words are those of this version, written into the script, so that completing starts no Python. After an update,
install it again.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from jaxbench import discovery, verbs
from jaxbench.core.store import write_atomic
from jaxbench.errors import UserError, did_you_mean
from jaxbench.verbs import Verb

VERB = Verb(
    usage="--install-completion[=SHELL]",
    help="complete verbs, experiments and flags in bash, zsh or fish",
    group="about",
    argument="...",
    examples=("--install-completion", "--install-completion=zsh", "--install-completion=fish"),
)


@dataclass(frozen=True)
class Words:
    """After a verb: its flags, and its arguments."""

    flags: tuple[str, ...]
    arguments: tuple[str, ...]


def words() -> dict[str, Words]:
    """By verb. A flag ends in "=", unless it is a switch."""
    from absl import flags

    found = {}
    for name, verb in verbs.verbs().items():
        switches = {flag for flag in verb.flags if flags.FLAGS[flag].boolean}
        shown = tuple(f"--{flag}{'' if flag in switches else '='}" for flag in verb.flags)
        presets = tuple(f"--preset={preset}" for preset in discovery.presets() if "preset" in verb.flags)
        experiments = tuple(discovery.experiments()) if verb.configured or verb.argument == "experiment" else ()
        found[name] = Words((*shown, *presets), experiments)
    return found


def bash(every: Mapping[str, Words]) -> str:
    cases = "\n".join(
        f"    {name}) words={shlex.quote(' '.join((*each.arguments, *each.flags)))} ;;" for name, each in every.items()
    )
    return f"""\
_jaxbench() {{
  local line="${{COMP_LINE:0:COMP_POINT}}" words
  local current="${{line##* }}" verb="${{COMP_WORDS[1]}}"
  if [ "$COMP_CWORD" = 1 ]; then words={shlex.quote(" ".join(every))}; else
    case "$verb" in
{cases}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  # Bash has split the word at "=": what stands before it is there already.
  case "$current" in *=*) COMPREPLY=("${{COMPREPLY[@]#"${{current%"${{current##*=}}"}}"}}") ;; esac
  case "${{COMPREPLY[*]}}" in *=) compopt -o nospace 2>/dev/null ;; esac
}}
complete -o default -F _jaxbench jaxbench
"""


def zsh(every: Mapping[str, Words]) -> str:
    cases = "\n".join(
        f"    {name}) compadd -S '' -- {shlex.join(each.flags)}; compadd -- {shlex.join(each.arguments)}; _files ;;"
        for name, each in every.items()
    )
    return f"""\
#compdef jaxbench
_jaxbench() {{
  if (( CURRENT == 2 )); then compadd -- {shlex.join(every)}; return; fi
  case "$words[2]" in
{cases}
  esac
}}
_jaxbench "$@"
"""


def fish(every: Mapping[str, Words]) -> str:
    lines = [f"complete -c jaxbench -f -n __fish_use_subcommand -a {shlex.quote(' '.join(every))}"]
    for name, each in every.items():
        after = f"complete -c jaxbench -n '__fish_seen_subcommand_from {name}'"
        if each.arguments:
            lines.append(f"{after} -a {shlex.quote(' '.join(each.arguments))}")
        for flag in each.flags:
            known = flag.endswith("=")
            if not known and "=" in flag:
                lines.append(f"{after} -l {flag[2:].partition('=')[0]} -x -a {shlex.quote(flag.partition('=')[2])}")
            else:
                lines.append(f"{after} -l {flag[2:].rstrip('=')}{' -r' if known else ''}")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Shell:
    """script: makes it from the words. file: where it goes. start: the shell's own file, and the line that loads the
    script; "" if the shell finds it."""

    script: Callable[[Mapping[str, Words]], str]
    file: Path
    start: tuple[Path, str] | None = None


def shells() -> dict[str, Shell]:
    home = Path.home()
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    of_bash, of_zsh = data / "jaxbench" / "completion.bash", data / "jaxbench" / "zsh" / "_jaxbench"
    zshrc = Path(os.environ.get("ZDOTDIR") or home) / ".zshrc"
    load = f"fpath+=({shlex.quote(str(of_zsh.parent))}); autoload -Uz compinit && compinit"
    return {
        "bash": Shell(bash, of_bash, (home / ".bashrc", f"source {shlex.quote(str(of_bash))}")),
        "zsh": Shell(zsh, of_zsh, (zshrc, load)),
        "fish": Shell(fish, config / "fish" / "completions" / "jaxbench.fish"),
    }


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    known = shells()
    name = arguments[0] if arguments else Path(os.environ.get("SHELL", "")).name
    if name not in known:
        raise UserError(f"--install-completion={name or 'SHELL'}: {did_you_mean(name, known)}")
    shell = known[name]
    try:
        shell.file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(shell.file, shell.script(words()))
        if shell.start:
            _add(*shell.start)
    except OSError as error:
        raise UserError(f"cannot write '{error.filename}' ({error.strerror}).") from error
    also = f", and a line in {shell.start[0]} that loads it" if shell.start else ""
    console.print(f"Written: {shell.file}{also}. It works in the next {name}.", highlight=False, soft_wrap=True)
    return 0


def _add(file: Path, line: str) -> None:
    """Appends a line that the file does not have."""
    text = file.read_text() if file.is_file() else ""
    if line not in text.splitlines():
        end = "" if not text or text.endswith("\n") else "\n"
        with open(file, "a") as start:
            start.write(f"{end}{line}\n")

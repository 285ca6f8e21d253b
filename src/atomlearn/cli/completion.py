"""``atomlearn completion``: a script that lets a shell complete commands and options."""

from __future__ import annotations

import argparse
import sys

from atomlearn.cli.running import options_of


def completion(options: argparse.Namespace) -> int:
    """Print the script; return 0."""
    from atomlearn.cli.arguments import build_parser

    commands = options_of(build_parser())
    writer = {"bash": _bash, "zsh": _zsh, "fish": _fish}[options.shell]
    sys.stdout.write(writer(commands))
    return 0


def _bash(commands: dict[str, list[str]]) -> str:
    cases = "\n".join(
        f'    {name}) words="{" ".join(given)}" ;;' for name, given in commands.items()
    )
    return f"""_atomlearn() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words="{" ".join(commands)}"
  if [ "$COMP_CWORD" -gt 1 ]; then
    case "${{COMP_WORDS[1]}}" in
{cases}
    *) words="" ;;
    esac
    [[ "$word" == -* ]] || words=""
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _atomlearn atomlearn
"""


def _zsh(commands: dict[str, list[str]]) -> str:
    return "autoload -U +X bashcompinit && bashcompinit\n" + _bash(commands)


def _fish(commands: dict[str, list[str]]) -> str:
    lines = [f"complete -c atomlearn -n __fish_use_subcommand -a '{' '.join(commands)}'"]
    for name, given in commands.items():
        lines += [
            f"complete -c atomlearn -n '__fish_seen_subcommand_from {name}' -l {option[2:]}"
            for option in given
        ]
    return "\n".join(lines) + "\n"

"""`singe completion`: the shell's tab completes commands, options and the values that an option may have, as the parser
has them. Elsewhere the shell completes names of files.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Final

SHELLS: Final[Mapping[str, tuple[str, str]]] = {
    "bash": (
        """\
# bash: eval "$(singe completion bash)"
_singe() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} found=
    [[ $COMP_CWORD == 1 ]] && command=""
""",
        """\
    COMPREPLY=($(compgen -W "$found" -- "$word"))
}
complete -o default -F _singe singe
""",
    ),
    "zsh": (
        """\
# zsh: eval "$(singe completion zsh)", after compinit
_singe() {
    local word=${words[CURRENT]} before=${words[CURRENT-1]} command=${words[2]}
    (( CURRENT == 2 )) && command=""
    local found=
""",
        """\
    if [[ -n $found ]]; then
        compadd -- ${=found}
    else
        compset -P '*='
        _files
    fi
}
compdef _singe singe
""",
    ),
}
"""For each shell what stands before and after the table, which finds the words for the command and the word before."""


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The function of a shell that completes the commands of a parser."""
    commands = next(a.choices for a in _actions(parser) if isinstance(a, argparse._SubParsersAction))
    values, options = [], [_case('" "*', [*commands, *_options(parser)])]
    for name, command in commands.items():
        options.append(_case(f'"{name} -"*', _options(command)))
        for action in _actions(command):
            words = list(map(str, action.choices or ()))
            if action.option_strings:
                before = "|".join(f'"{name} {option}"' for option in action.option_strings)
                values += [_case(before, words)] if words else []
            elif words:
                options.append(_case(f'"{name} "*', words))
    begin, end = SHELLS[shell]
    lines = [
        '    case "$command $before" in',
        *values,
        '    *) case "$command $word" in',
        *options,
        "    esac ;;",
        "    esac",
    ]
    return begin + "\n".join(lines) + "\n" + end


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return parser._actions


def _options(parser: argparse.ArgumentParser) -> list[str]:
    """The names of the options, the long one where there are two."""
    return [action.option_strings[-1] for action in _actions(parser) if action.option_strings]


def _case(pattern: str, words: list[str]) -> str:
    return f'    {pattern}) found="{" ".join(words)}" ;;'

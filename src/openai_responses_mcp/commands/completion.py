"""`--completion`: scripts with which shells complete our command line, made from the tables of options."""

from collections.abc import Iterable

from openai_responses_mcp.commands.usage import AGENTS, COMMAND_WORDS, GUARDING, OPTIONS, PROGRAM, Option

_FILES = ("--config", "--debug", "--policy")
_VERBS = {area: verbs for area, verbs in AGENTS.items() if verbs}


# bash


def _bash() -> str:
    return f"""\
# Completions of {PROGRAM} for bash: source <({PROGRAM} --completion bash)
_openai_responses_mcp() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  local first=1
  if [[ $COMP_CWORD -gt 1 && ${{COMP_WORDS[1]}} == agents ]]; then first=2; fi
  if [[ $first == 2 && $COMP_CWORD == 2 ]]; then COMPREPLY=($(compgen -W "{" ".join(AGENTS)}" -- "$word")); return; fi
  if [[ $COMP_CWORD -gt $first ]]; then
    case "$((COMP_CWORD - first)):${{COMP_WORDS[first]}}" in
{_lines(f'      1:{area}) COMPREPLY=($(compgen -W "{" ".join(verbs)}" -- "$word")); return ;;' for area, verbs in _VERBS.items())}
      *:guard) [[ " ${{COMP_WORDS[*]:0:COMP_CWORD}} " == *" -- "* ]] || {{ _openai_responses_mcp_guard; return; }} ;;
    esac
    case "${{COMP_WORDS[first]}}" in {"|".join(AGENTS)}) COMPREPLY=($(compgen -f -- "$word")); return ;; esac
  fi
  case "$before" in
{_bash_values(OPTIONS)}
  esac
  COMPREPLY=($(compgen -W "{_flags(OPTIONS)} {" ".join(COMMAND_WORDS)}" -- "$word"))
}}
_openai_responses_mcp_guard() {{
  case "$before" in
{_bash_values(GUARDING)}
  esac
  COMPREPLY=($(compgen -W "{_flags(GUARDING)} --" -- "$word"))
}}
complete -o filenames -F _openai_responses_mcp {PROGRAM}
"""


def _bash_values(options: tuple[Option, ...]) -> str:
    """A case for each option whose value can be completed."""
    words = [
        f'    {option.flag}) COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$word")); return ;;'
        for option in options
        if option.choices
    ]
    files = "|".join(option.flag for option in options if option.flag in _FILES)
    return "\n".join([*words, f'    {files}) COMPREPLY=($(compgen -f -- "$word")); return ;;'])


# zsh


def _zsh() -> str:
    return f"""\
#compdef {PROGRAM}
# Completions of {PROGRAM} for zsh: source <({PROGRAM} --completion zsh)
_openai_responses_mcp() {{
  if (( CURRENT > 2 )) && [[ $words[2] == agents ]]; then
    shift words; (( CURRENT -= 1 ))
    if (( CURRENT == 2 )); then compadd -- {" ".join(AGENTS)}; return; fi
  fi
  if (( CURRENT > 2 )); then
    case "$CURRENT:$words[2]" in
{_lines(f"      3:{area}) compadd -- {' '.join(verbs)}; return ;;" for area, verbs in _VERBS.items())}
      *:guard) shift words; (( CURRENT -= 1 )); _arguments {_zsh_options(GUARDING)} '*:server:_files'; return ;;
      {"|".join(f"*:{area}" for area in AGENTS)}) _files; return ;;
    esac
  fi
  _arguments {_zsh_options(OPTIONS)} '1:question or command:({" ".join(COMMAND_WORDS)})'
}}
# As a file of $fpath it is the function itself, else it is sourced.
if [ "${{funcstack[1]}}" = "_openai_responses_mcp" ]; then
  _openai_responses_mcp "$@"
else
  compdef _openai_responses_mcp {PROGRAM}
fi
"""


def _zsh_options(options: tuple[Option, ...]) -> str:
    return "".join(f"\\\n    {_zsh_option(option)} " for option in options)


def _zsh_option(option: Option) -> str:
    value = ""
    if option.value:
        action = f"({' '.join(option.choices)})" if option.choices else "_files" if option.flag in _FILES else " "
        value = f"{'::' if option.may_lack_value else ':'}{option.flag.strip('-')}:{action}"
    return f"'{option.flag}[{_quoted(option.words)}]{value}'"


# fish


def _fish() -> str:
    begin = f"complete -c {PROGRAM}"
    words, within = " ".join(COMMAND_WORDS), "__fish_seen_subcommand_from"
    inside = f"{within} {' '.join(AGENTS)}"
    return f"""\
# Completions of {PROGRAM} for fish: {PROGRAM} --completion fish | source
{begin} -f
{begin} -n "not {within} {words}" -a "{words}"
{begin} -n "{within} agents; and not {inside}" -a "{" ".join(AGENTS)}"
{_lines(f'{begin} -n "{within} {area}; and not {within} {" ".join(verbs)}" -a "{" ".join(verbs)}"' for area, verbs in _VERBS.items())}
{begin} -n "{within} check test" -F
{_lines(f'{begin} -n "{within} guard" {_fish_option(option)}' for option in GUARDING)}
{_lines(f'{begin} -n "not {within} {words}" {_fish_option(option)}' for option in OPTIONS)}
"""


def _fish_option(option: Option) -> str:
    parts = [f"-l {option.flag.strip('-')}", f"-d '{_quoted(option.words)}'"]
    if option.choices:
        parts.append(f"-xa '{' '.join(option.choices)}'")
    elif option.flag in _FILES:
        parts.append("-F" if option.may_lack_value else "-rF")
    elif option.value and not option.may_lack_value:
        parts.append("-x")
    return " ".join(parts)


def _flags(options: tuple[Option, ...]) -> str:
    return " ".join(option.flag for option in options)


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def _quoted(words: str) -> str:
    """For inside single quotes: zsh and fish escape a quote differently, so it becomes a typographic one."""
    return words.replace("'", "’")


SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}

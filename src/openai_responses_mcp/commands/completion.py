"""`--completion`: what shells need to complete our command line. Made from the table of options."""

from openai_responses_mcp.commands.usage import ASKING, COMMANDS, GENERAL, PROGRAM, Option

_OPTIONS = (*COMMANDS, *ASKING, *GENERAL)
_FILES = ("--config", "--debug")


def _bash() -> str:
    choices = "\n".join(
        f'    {option.flag}) COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$word")); return ;;'
        for option in _OPTIONS
        if option.choices
    )
    return f"""\
# Completions of {PROGRAM} for bash: source <({PROGRAM} --completion bash)
_openai_responses_mcp() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  case "$before" in
{choices}
    {"|".join(_FILES)}) COMPREPLY=($(compgen -f -- "$word")); return ;;
  esac
  COMPREPLY=($(compgen -W "{" ".join(["agents", *(option.flag for option in _OPTIONS)])}" -- "$word"))
}}
complete -o filenames -F _openai_responses_mcp {PROGRAM}
"""


def _zsh() -> str:
    return f"""\
#compdef {PROGRAM}
# Completions of {PROGRAM} for zsh: source <({PROGRAM} --completion zsh)
_openai_responses_mcp() {{
  _arguments \\
{"".join(f"    {_zsh_option(option)} {chr(92)}{chr(10)}" for option in _OPTIONS)}    '1:question or agents:(agents)'
}}
# As a file of $fpath it is the function itself, else it is sourced.
if [ "${{funcstack[1]}}" = "_openai_responses_mcp" ]; then
  _openai_responses_mcp "$@"
else
  compdef _openai_responses_mcp {PROGRAM}
fi
"""


def _zsh_option(option: Option) -> str:
    value = ""
    if option.value:
        action = f"({' '.join(option.choices)})" if option.choices else "_files" if option.flag in _FILES else " "
        value = f"{'::' if option.value.startswith('[') else ':'}{option.flag.strip('-')}:{action}"
    return f"'{option.flag}[{option.words}]{value}'"


def _fish() -> str:
    lines = [f"complete -c {PROGRAM} -f", f"complete -c {PROGRAM} -n __fish_use_subcommand -a agents"]
    lines += [_fish_option(option) for option in _OPTIONS]
    return f"# Completions of {PROGRAM} for fish: {PROGRAM} --completion fish | source\n" + "\n".join(lines) + "\n"


def _fish_option(option: Option) -> str:
    parts = [f"complete -c {PROGRAM} -l {option.flag.strip('-')}", f"-d '{option.words}'"]
    if option.choices:
        parts.append(f"-xa '{' '.join(option.choices)}'")
    elif option.flag in _FILES:
        parts.append("-F")
    elif option.value and not option.value.startswith("["):
        parts.append("-x")
    return " ".join(parts)


SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}

#!/usr/bin/env bash
# command_line_docs.sh GRADFLOW MAN_PAGE BASH_COMPLETION ZSH_COMPLETION
#
# Fails unless the manual page and the completions have exactly the commands and options of --help.
set -euo pipefail
gradflow=$1 man_page=$2 bash_completion=$3 zsh_completion=$4

# Extracts the long options from standard input.
long_options() { grep -oE -- '--[a-z_]+(-[a-z]+)*' | sort -u; }
# Extracts the section of a command from the manual page, without escapes.
manual() { sed 's/\\-/-/g' "$man_page" | sed -n "/^\.SS gradflow $1\$/,/^\.S[SH]/p"; }
completed() {
  COMP_WORDS=(gradflow "$@" --) COMP_CWORD=$#
  ((++COMP_CWORD))
  _gradflow
  printf '%s\n' "${COMPREPLY[@]}"
}
# shellcheck source=/dev/null
source "$bash_completion"
# Extracts the branch of a command from the `case` of the zsh completion: zsh may not be installed.
zsh_branch() { sed -n "/^    $1)\$/,/;;/p" "$zsh_completion"; }

same() {
  diff <(echo "$2") <(echo "$3") >/dev/null && return
  echo "$1 differ: --help (<), ours (>)"
  diff <(echo "$2") <(echo "$3")
  return 1
}

commands=$("$gradflow" --help | sed -n '/^Subcommands:/,$s/^  \([a-z]*\) .*/\1/p' | sort)
[[ -n $commands ]]
same "commands of the manual page" "$commands" \
  "$(sed -n 's/^\.SS gradflow //p' "$man_page" | sort)"
COMP_WORDS=(gradflow "") COMP_CWORD=1
_gradflow
same "commands that bash completes" "$commands" \
  "$(printf '%s\n' "${COMPREPLY[@]}" | grep -v '^-' | sort)"
same "commands that zsh completes" "$commands" \
  "$(sed -nE "/ commands=\(/,/^  \)/s/^    [\"']([a-z]+):.*/\1/p" "$zsh_completion" | sort)"
if command -v zsh >/dev/null; then zsh -n "$zsh_completion"; fi

for command in $commands; do
  help=$("$gradflow" "$command" --help | long_options)
  same "options of $command that bash completes" "$help" "$(completed "$command" | long_options)"
  same "options of $command that zsh completes" "$help" \
    "$({ zsh_branch "$command" | sed 's/(.*)--/--/'; echo --help; } | long_options)"
  same "options of $command in the manual page" "$help" \
    "$({ manual "$command"; echo --help; } | long_options)"
done

// The scripts of the shells. Each hands the words up to the cursor to `NAME complete`, and offers what that
// prints (completion_text()): names as they are, files and folders as the shell finds and quotes them.
#include <algorithm>
#include <cctype>

#include "compiler_core/base/status.h"
#include "tuner/command_line/completion.h"
#include "tuner/text/hint.h"

namespace tuner {
namespace {

// Bash breaks words at = and : ("--as=loops" comes as three) and wants what is behind the last of these.
constexpr std::string_view kBash = R"bash(# Completion of NAME for bash, written by `NAME completion bash`.
_NAME_plain() {
  local word=$1
  word=${word#[\'\"]}
  word=${word%[\'\"]}
  printf '%s' "${word//\\/}"
}
_NAME() {
  local words=() word='' typed=${COMP_WORDS[COMP_CWORD]} glued='' i kept kind line file whole quoted=''
  local endings=() found=() lines=()
  for ((i = 1; i <= COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ $word =~ ^[=:]+$ && ${#words[@]} -gt 0 ]]; then
      words[-1]+=$word
      glued=yes
    elif [[ -n $glued ]]; then
      words[-1]+=$(_NAME_plain "$word")
      glued=''
    else
      words+=("$(_NAME_plain "$word")")
    fi
  done
  case $typed in [\'\"]*) quoted=yes ;; esac
  if [[ $typed =~ ^[=:]+$ ]]; then typed=''; fi
  typed=$(_NAME_plain "$typed")
  COMPREPLY=()
  mapfile -t lines < <("${COMP_WORDS[0]/#\~/$HOME}" complete -- "${words[@]}" 2>/dev/null)
  if [[ ${#lines[@]} -eq 0 ]]; then return 0; fi
  IFS=$'\t' read -r -a endings <<<"${lines[0]}"
  kept=${endings[0]} kind=${endings[1]} endings=("${endings[@]:2}")
  local current=${words[-1]}
  local value=${current:kept} before=${current:0:kept} cut=$((${#current} - ${#typed}))
  if [[ $kind == files ]]; then
    for word in "${endings[@]}"; do
      mapfile -t -O "${#found[@]}" found < <(compgen -f -X "!*$word" -- "$value")
    done
    if [[ ${#found[@]} -eq 0 ]]; then
      mapfile -t found < <(compgen -f -- "$value")
    else
      mapfile -t -O "${#found[@]}" found < <(compgen -d -- "$value")
    fi
  elif [[ $kind == folders ]]; then
    mapfile -t found < <(compgen -d -- "$value")
  fi
  for file in "${found[@]}"; do
    whole=$before$file
    COMPREPLY+=("${whole:cut}")
  done
  for line in "${lines[@]:1}"; do
    whole=${line%%$'\t'*}
    whole=${whole:cut}
    if [[ -z $quoted && $kind == - && $whole =~ [^A-Za-z0-9_.,:=/+@%-] ]]; then
      printf -v whole %q "$whole"
    fi
    COMPREPLY+=("$whole")
  done
  if [[ $kind != - ]]; then compopt -o filenames 2>/dev/null || true; fi
  compopt -o nosort 2>/dev/null || true
  return 0
}
complete -F _NAME NAME
)bash";

constexpr std::string_view kZsh = R"zsh(#compdef NAME
# Completion of NAME for zsh, written by `NAME completion zsh`.
_NAME() {
  local -a typed lines fields endings described
  local line word says kept kind
  local -i offered=1
  typed=("${(@Q)words[2,CURRENT]}")
  typed[-1]=${(Q)PREFIX}
  lines=("${(@f)$(${~words[1]} complete -- "${typed[@]}" 2>/dev/null)}")
  fields=("${(@ps:\t:)lines[1]}")
  kept=$fields[1] kind=$fields[2] endings=("${(@)fields[3,-1]}")
  for line in "${(@)lines[2,-1]}"; do
    word=${line%%$'\t'*} says=${line#*$'\t'}
    described+=("${${word//\\/\\\\}//:/\\:}${says:+:$says}")
  done
  if (( $#described )); then
    _describe -V -t values NAME described && offered=0
  fi
  if [[ $kind == files || $kind == folders ]]; then
    (( kept > 0 )) && compset -p $kept
    if [[ $kind == folders ]]; then
      _files -/ && offered=0
    elif (( $#endings )); then
      _files -g "*${(j: *:)endings}" && offered=0
    else
      _files && offered=0
    fi
  fi
  return offered
}
if [[ $funcstack[1] == _NAME ]]; then
  _NAME "$@"
elif (( $+functions[compdef] )); then
  compdef _NAME NAME
fi
)zsh";

constexpr std::string_view kFish = R"fish(# Completion of NAME for fish, written by `NAME completion fish`.
function __NAME_complete
    set -l tokens (commandline -opc)
    set -l raw (commandline -ct)
    set -l current $raw
    string match -qr '[\'"\\\\]' -- "$raw"
    and set current (string unescape -- "$raw"; or string trim -l -c '\'"' -- "$raw")
    set -l program (string replace -r '^~' $HOME -- $tokens[1])
    type -q $program; or return
    set -l lines ($program complete -- $tokens[2..] "$current" 2>/dev/null)
    test (count $lines) -gt 0; or return
    set -l fields (string split \t -- $lines[1])
    test (count $lines) -gt 1; and printf '%s\n' $lines[2..]
    set -l value (string sub -s (math $fields[1] + 1) -- "$current")
    set -l before (string sub -l $fields[1] -- "$current")
    set -l paths
    if test $fields[2] = files
        set paths (complete -C "'' "(string escape -- "$value") | string replace -r '\t.*' '')
        set -l wanted
        for ending in $fields[3..]
            set -a wanted (string match -- "*$ending" $paths)
        end
        test (count $wanted) -gt 0; and set paths $wanted (string match -- '*/' $paths)
    else if test $fields[2] = folders
        set paths (complete -C "'' "(string escape -- "$value") | string replace -r '\t.*' '')
        set paths (string match -- '*/' $paths)
    end
    test (count $paths) -gt 0; and printf '%s\n' "$before"$paths
end
complete -c NAME -e
complete -k -c NAME -f -a '(__NAME_complete)'
)fish";

}  // namespace

const std::vector<std::string>& completion_shells() {
  static const std::vector<std::string> kShells = {"bash", "zsh", "fish"};
  return kShells;
}

std::string completion_script(std::string_view shell) {
  CHECK(shell == "bash" || shell == "zsh" || shell == "fish") << shell << " is none of completion_shells()";
  // As the shell knows this program: the last part of how it was called.
  std::string name = program_name().substr(program_name().rfind('/') + 1);
  const auto plain = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-' || c == '.'; };
  if (name.empty() || !std::ranges::all_of(name, plain)) name = "tuner";
  std::string script(shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish);
  for (size_t at = 0; (at = script.find("NAME", at)) != std::string::npos; at += name.size())
    script.replace(at, 4, name);
  return script;
}

}  // namespace tuner

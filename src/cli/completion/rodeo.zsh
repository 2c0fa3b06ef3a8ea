#compdef rodeo
# Completion of `rodeo` for zsh; it asks the command itself. `rodeo completion zsh` prints this file.

_rodeo() {
  local directives line value
  local -a lines values shown space
  lines=("${(@f)$(command ${words[1]} completion answer -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2> /dev/null)}")
  directives=" ${lines[1]} "
  for line in "${(@)lines[2,-1]}"; do
    value=${line%%$'\t'*}
    values+=("$value")
    if [[ $line == *$'\t'?* ]]; then shown+=("$value  -- ${line#*$'\t'}"); else shown+=("$value"); fi
  done
  if [[ $directives == *' nospace '* ]]; then space=(-S ''); fi
  if (( $#values )); then compadd -l "${(@)space}" -d shown -a values; fi
  if [[ $directives == *' files '* || $directives == *' directories '* ]]; then
    if [[ $PREFIX == --*=* ]]; then compset -P '*='; fi
    if [[ $directives == *' files '* ]]; then _files; else _files -/; fi
  fi
  (( $compstate[nmatches] ))
}

# If compinit loads this file, it is the function's body; if a shell sources it, it registers with compinit.
if [[ $funcstack[1] == _rodeo ]]; then _rodeo "$@"; else compdef _rodeo rodeo; fi

# Completion of `rodeo` for bash; it asks the command itself. `rodeo completion bash` prints this file.

_rodeo() {
  local IFS=$' \t\n' line directives word action quote= breaks= kept= option=
  local -a words lines
  COMPREPLY=()
  # The words as the command would get them: bash also splits at = and :.
  line=${COMP_LINE:0:COMP_POINT}
  read -ra words <<< "$line" 2> /dev/null
  case $line in
    *[[:space:]]) word= ;;
    *) word=${words[${#words[@]} - 1]} && unset "words[${#words[@]}-1]" ;;
  esac
  case $word in \'* | \"*) quote=${word:0:1} word=${word:1} ;; esac
  mapfile -t lines < <(command "${COMP_WORDS[0]}" completion answer -- "${words[@]:1}" "$word" 2> /dev/null)
  directives=" ${lines[0]} "

  # readline replaces the text after the last = or : of the word, unless the word is in quotes.
  [[ $COMP_WORDBREAKS == *=* ]] && breaks+==
  [[ $COMP_WORDBREAKS == *:* ]] && breaks+=:
  if [[ -z $quote && -n $breaks && $word == *[$breaks]* ]]; then kept=${word%"${word##*[$breaks]}"}; fi
  for line in "${lines[@]:1}"; do
    line=${line%%$'\t'*}
    COMPREPLY+=("${line#"$kept"}")
  done
  if [[ $directives == *" nospace "* ]]; then compopt -o nospace; fi
  if [[ $directives == *" files "* || $directives == *" directories "* ]]; then
    action=file
    if [[ $directives != *" files "* ]]; then action=directory; fi
    if [[ $word == --*=* ]]; then option=${word%%=*}=; fi
    while IFS= read -r line; do
      line=$option$line
      COMPREPLY+=("${line#"$kept"}")
    done < <(compgen -A "$action" -- "${word#"$option"}")
    compopt -o filenames
  fi
}

complete -F _rodeo rodeo

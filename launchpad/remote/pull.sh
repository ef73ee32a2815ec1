# pull.sh: sends a file, or what is in a directory. Behind common.sh, user.sh and files.sh.
#
# Replies: `refused REASON`, the detail as payload; or `archive KIND TOTAL`, then the raw bytes of a tar
#          archive up to its end mark and the zeros behind that, then `packed CODE` with what tar had to
#          say as payload; then `done`. TOTAL: about how many bytes, or "-".
#
# shellcheck shell=sh disable=SC2034,SC2154 # variables of common.sh and files.sh; words from stdin

newline='
'

# measure DIRECTORY: about how many bytes. GNU's du knows -b; a tree that takes long is not measured.
measure() {
  set -- "$(timeout 5 du -sb "$1" 2>/dev/null || timeout 5 du -sk "$1" 2>/dev/null)" "$1"
  # shellcheck disable=SC2086
  set -- ${1:--} "$2"
  case $1 in
    *[!0-9]* | '') total=- ;;
    *) if du -sb /dev/null >/dev/null 2>&1; then total=$1; else total=$(($1 * 1024)); fi ;;
  esac
}

# The words: PATH USER MEASURE [PATTERN]...
#   MEASURE yes|no · PATTERN a name, or "*" and the end of a name: of no interest wherever it stands
pull() {
  if [ "$#" = 0 ]; then
    IFS=' ' read -r marker size _ || exit 1
    words=$(take "$size")
    frame "begin 1"
    eval "set -- $words"
    [ "$#" -ge 3 ] || refuse cut-off 125 "$#"
    wanted_path=$1 wanted_user=$2
    shift 2
    become "$wanted_user" "$wanted_path" "$@"
  fi
  marker=$1 home=$2 measured=$4
  at_home "$3"
  shift 4
  need_tar
  total=-
  if [ -d "$path" ]; then
    command cd -P "$path" 2>/dev/null || refuse no-entry 125 "$path"
    [ -r . ] || refuse no-reading 125 "$path"
    kind=directory name=.
    [ "$measured" = no ] || measure .
  elif [ -f "$path" ]; then
    [ -r "$path" ] || refuse no-reading 125 "$path"
    kind='file' name=./${path##*/} above=${path%/*}
    command cd -P "${above:-/}" 2>/dev/null || refuse no-entry 125 "$above"
    total=$(stat -L -c %s "$name" 2>/dev/null) || total=-
  elif [ -e "$path" ]; then
    refuse special 125 "$path"
  else
    refuse missing 125 "$path"
  fi
  # Not every busybox knows the option; what need not have come is then left out where it arrives.
  if [ "$#" -gt 0 ] && tar -c -f /dev/null --exclude=x /dev/null >/dev/null 2>&1; then
    for pattern; do
      shift
      set -- "$@" "--exclude=$pattern"
    done
  else
    set --
  fi
  # A link that was named is followed; those in a directory stay links.
  [ "$kind" = directory ] || set -- -h
  frame "archive $kind $total"
  exec 4>&1
  words=$({
    tar -c -f - "$@" "$name" 2>&1 >&4 4>&- </dev/null
    printf '\n%s' "$?"
  } | last_words)
  frame "packed ${words##*"$newline"}"
  printf '%s' "${words%"$newline"*}"
  frame "done"
}

pull "$@"

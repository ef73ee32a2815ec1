# common.sh: what every script of launchpad shares. Never run alone.
#
# A script arrives on stdin behind the entry line, is read whole into $S and evaluated by bash, or
# by sh where there is no bash. It consists of functions only; the last line calls one of them.
# A script that was cut off on its way can therefore do nothing at all.
#
# shellcheck shell=sh disable=SC2034,SC2154

# take SIZE: copies exactly SIZE bytes of stdin to stdout. GNU, busybox and toybox dd know
# fullblock; one that does not refuses the word before it has read anything.
take() {
  [ "$1" -gt 0 ] || return 0
  dd bs="$1" count=1 iflag=fullblock 2>/dev/null || dd bs=1 count="$1" 2>/dev/null
}

# frame WORD...: starts a section of the reply. The marker is random for each call and nobody else
# in the container knows it, so nothing that a profile, a job or sudo prints can look like a frame.
frame() {
  printf '\n%s %s\n' "$marker" "$*"
}

# read_stat PID: one look at /proc/PID/stat (proc(5)), without a fork. Sets process_state,
# parent, group, session, ticks (field 22, raw). False where there is no such process.
# The name in field 2 may hold blanks, parentheses and newlines: the last ") " ends it.
read_stat() {
  stat_line=
  # shellcheck disable=SC2162 # no backslash is special in a number, and names end before it
  { while IFS= read -r stat_part || [ -n "$stat_part" ]; do
    stat_line="$stat_line $stat_part"
  done <"/proc/$1/stat"; } 2>/dev/null
  [ -n "$stat_line" ] || return 1
  stat_line=${stat_line##*") "}
  # The fields after the name are numbers and one letter: splitting cannot surprise.
  # shellcheck disable=SC2086
  set -- $stat_line
  process_state=$1 parent=$2 group=$3 session=$4 ticks=${20-}
  [ -n "$ticks" ]
}

# read_boot: the container's identity: boot_id, and PID 1's start ticks, because boot_id is the
# host's where LXC does not make a /dev of its own. One of the two changes with every start.
read_boot() {
  boot_id=unknown
  { IFS= read -r boot_id </proc/sys/kernel/random/boot_id; } 2>/dev/null
  if read_stat 1; then boot_ticks=$ticks; else boot_ticks=0; fi
}

# is_process PID TICKS: the very process, not another one that got its number later.
is_process() {
  read_stat "$1" && [ "$ticks" = "$2" ]
}

# is_ours PLACE...: whether nobody but us (and root) decides what is in them. Another user who owns one,
# may write in it, or has put a link in its place, could read all logs and forge all records, and a
# forged record makes us signal any process.
is_ours() {
  for whose in "$@"; do
    # shellcheck disable=SC3067 # -O is in all three shells
    { [ -O "$whose" ] && [ ! -L "$whose" ]; } || return 1
  done
  # One stat for all of them, one line for each.
  # shellcheck disable=SC2046 # a mode holds no blanks
  set -- "$#" $(stat -c %A "$@" 2>/dev/null)
  [ "$#" = "$(($1 + 1))" ] || return 1
  shift
  for whose in "$@"; do
    case $whose in ?????w* | ????????w*) return 1 ;; esac
  done
}

# read_record FILE: the words of a single-line record, into $record. False where it is missing,
# empty, or cut off: a whole record ends with the word "." .
read_record() {
  record=
  { IFS= read -r record <"$1"; } 2>/dev/null
  case $record in
    "1 "*" .") record=${record% .} && record=${record#1 } ;;
    *) record= && return 1 ;;
  esac
}

# write_record FILE WORD...: atomically, version first, a full stop last.
write_record() {
  record_file=$1
  shift
  printf '1 %s .\n' "$*" >"$record_file.new" && mv -f "$record_file.new" "$record_file"
}

# exec.sh: one command in the foreground, with the caller's streams as its own. Behind common.sh,
# user.sh, descriptors.sh, session.sh and terminal.sh.
#
# On pipes the script comes on stdin as always, and behind its words come the command's own bytes:
# we read not one byte more. On a terminal stdin is the terminal, so the call stands behind the script
# instead (execute_words MARKER TERM COMMAND...).
#
# Where the command's own bytes begin, on stdout and on pipes on stderr too:
#   frame "begin PID TICKS"   on pipes it leads a session of its own, which signals can be sent to
# Where they end, on stderr, or on the terminal: \036MARKER exit CODE\036 - no newline in it, so that
# whoever looks for it need not hold back the end of a line. Meanwhile, on pipes, on stderr:
# \036MARKER beat\036 now and then, which is to be left out.
# Or, before anything was run: frame "failed CODE REASON" with the detail as payload, then "done".
#
# shellcheck shell=sh disable=SC2016,SC2034,SC2154

# refuse REASON CODE DETAIL: nothing was run.
refuse() {
  frame "failed $2 $1"
  printf '%s' "$3"
  frame "done"
  exit "$2"
}

# check_program NAME: sets program; refuses as execve(2) would: 127 not found, 126 found but not
# executable (POSIX XCU 2.8.2).
check_program() {
  case $1 in
    */*)
      [ -e "$1" ] || refuse not-found 127 "$1"
      [ ! -d "$1" ] || refuse is-directory 126 "$1"
      [ -x "$1" ] || refuse not-executable 126 "$1"
      program=$1
      return
      ;;
  esac
  blocked='' rest=$PATH:
  while [ -n "$rest" ]; do
    program=${rest%%:*}
    rest=${rest#*:}
    program=${program:-.}/$1
    [ -f "$program" ] || continue
    [ ! -x "$program" ] || return 0
    blocked=${blocked:-$program}
  done
  [ -z "$blocked" ] || refuse not-executable 126 "$blocked"
  refuse not-found 127 "$1"
}

# start_it: the shell that becomes the command. Arguments: MARKER STDERR COMMAND... Descriptor 5 is
# the real stderr: this shell's parent has another one, on which it says "Killed" and the like.
start_it='exec 2>&5 5>&-
marker=$1 stderr=$2
shift 2
IFS= read -r stat <"/proc/$$/stat"
stat=${stat##*") "}
begin=$(set -f; set -- $stat; printf "\n%s begin %s %s\n." "$marker" "$$" "${20}")
begin=${begin%.}
printf %s "$begin"
[ "$stderr" = no ] || printf %s "$begin" >&2
unset marker stderr stat begin
exec "$@"'

# watch_line: a command whose caller is gone is hung up, as on a terminal; nobody else would tell it.
# In the background of the shell that waits for it.
watch_line() {
  trap '' PIPE INT QUIT
  read_stat $$
  shell_ticks=$ticks
  # A sleep that outlives us by a moment must hold nothing.
  while sleep 10 >/dev/null 2>&1 5>&-; do
    is_process $$ "$shell_ticks" || return
    { printf '\036%s beat\036' "$marker" >&5; } 2>/dev/null && continue
    for place in /proc/[0-9]*; do
      child=${place#/proc/}
      { read_stat "$child" && [ "$parent" = $$ ] && [ "$session" = "$child" ]; } || continue
      kill -HUP "-$child" 2>/dev/null
    done
    return
  done
}

# execute TERM COMMAND...: TERM is empty on pipes. No COMMAND: the login shell.
execute() {
  term=$1
  shift
  close_inherited
  find_user ''
  cd "$home" 2>/dev/null || cd / || exit 1
  if [ "$#" = 0 ]; then
    [ -x "$shell" ] || shell=/bin/sh
    set -- "$shell" -l
  fi
  check_program "$1"
  # exec in the shells takes options of its own, so a name such as -x goes by its path.
  case $1 in -*)
    shift
    set -- "$program" "$@"
    ;;
  esac
  stderr=yes tool=
  if [ -n "$term" ]; then
    known_terminal "$term"
    stderr=no
    # Ctrl-C on the terminal is for the command, and must not end us before it. A handler, unlike
    # an ignored signal, is not inherited.
    trap : INT QUIT
  else
    for tool in setsid python3 perl ''; do
      [ -n "$tool" ] && command -v "$tool" >/dev/null && break
    done
  fi
  exec 5>&2 2>/dev/null
  set -- env -i "HOME=$home" "USER=$user" "LOGNAME=$user" "SHELL=$shell" "PATH=$PATH" LANG=C.UTF-8 \
    ${term:+"TERM=$term"} sh -c "$start_it" launchpad "$marker" "$stderr" "$@"
  # In the foreground: an asynchronous list would get /dev/null as stdin, and SIGINT ignored. We lead
  # no group, so setsid(1) need not fork.
  if [ -n "$tool" ]; then
    watch_line </dev/null >/dev/null &
    in_session "$tool" "$@"
  else
    "$@"
  fi
  code=$?
  [ -z "$tool" ] || kill "$!" 2>/dev/null
  printf '\036%s exit %s\036' "$marker" "$code" >&5
}

execute_words() {
  marker=$1
  shift
  execute "$@"
}

execute_stdin() {
  IFS=' ' read -r marker size _ || exit 1
  words=$(take "$size")
  eval "set -- $words"
  execute '' "$@"
}

# follow.sh: the log as it grows, byte for byte. Behind common.sh, members.sh and facts.sh. Wants
# $marker, $state, $id and $dir; stdin carries heartbeats, a line each.
#
# The reply: the frame `log OFFSET`, then the log's raw bytes from there. Among them stand events,
# behind a byte 036 in place of the newline, so that each has its exact place in the stream:
#   emptied AT          what follows begins at byte 0 again: the file became shorter, or another
#   moved HOW AT        the log's name no longer leads to the file that is followed: it was deleted,
#                       renamed or replaced. The job goes on writing to the file, and so do we.
#   end                 no more raw bytes: frames as of job_facts follow (if the job has ended), `done`
# The marker is random for each call and known to nobody else: no log can forge an event.
#
# There is no `tail -f`: busybox's polls once a second, GNU's cannot say where a file was emptied.
# One descriptor stays open, each turn `cat` copies what is new from it, and /proc/PID/fdinfo tells
# how far it came. Between the turns a shell waits in `read -t` on a FIFO that nobody writes to. Only
# bash can look for one new byte without a fork, so only there the turns are short.
#
# shellcheck shell=sh disable=SC2034,SC2154,SC3013,SC3045
# (variables of common.sh; -ef is in all three shells; read -t and -n only where they were tried)

# How long the far side may be silent before we are alone (seconds); it sends a line every 5.
patience=15

# event WORD...: at this very place of the stream.
event() {
  printf '\036%s %s\n' "$marker" "$*"
}

# choose_pace: how this shell waits for the next turn, and how many turns make half a second.
choose_pace() {
  pace='sleep' step=0.1 turns_per_look=5 turns_per_proof=2
  mkfifo "$dir/timer.$$" 2>/dev/null || return 0
  { command exec 8<>"$dir/timer.$$"; } 2>/dev/null && pace='read'
  rm -f "$dir/timer.$$"
  [ "$pace" = read ] || return 0
  if [ -n "${BASH_VERSION-}" ]; then
    step=0.03 turns_per_look=17 turns_per_proof=7
    return
  fi
  # ash says 1 when time is up, dash 2 because it knows no -t.
  { read -r -t 0.01 _ <&8; } 2>/dev/null
  [ "$?" = 1 ] || pace='sleep'
}

pause() {
  if [ "$pace" = read ]; then
    read -r -t "$step" _ <&8
  else
    sleep "$step"
  fi
}

# guard: ends the follow, whatever it is doing, when the heartbeats have stopped. It runs beside the
# follow, because a `cat` whose reader is gone without a word would wait for ever.
guard() {
  { read -r -t 0.01 _ </dev/null; } 2>/dev/null
  if [ "$?" = 1 ]; then
    while read -r -t "$patience" _; do :; done
  else
    # The 6 is stdin here, too; and whoever ends us must end that timeout with us.
    exec 6<&0
    trap 'kill "$!" 2>/dev/null; exit' TERM
    while
      timeout "$patience" sh -c 'read -r _' <&6 &
      wait "$!"
    do :; done
  fi
  # $$ is the follow; nobody else may be hit if it has gone and its number belongs to another.
  read_stat self && [ "$parent" = "$$" ] || exit
  IFS=' ' read -r own _ </proc/self/stat
  kill -STOP "$$"
  for child in /proc/[0-9]*; do
    child=${child##*/}
    read_stat "$child" && [ "$parent" = "$$" ] && [ "$child" != "$own" ] && kill -KILL "$child"
  done
  kill -KILL "$$"
}

start_guard() {
  # A reader that has gone is an error of whoever writes, and not the end of this shell.
  trap '' PIPE
  # In an asynchronous list stdin is /dev/null, in dash even where `<&0` stands: hence the 6.
  exec 6<&0
  guard <&6 >/dev/null 2>&1 5<&- 6<&- &
  guard=$!
  exec 6<&-
}

stop_guard() {
  kill "$guard" 2>/dev/null
}

# position: sets at to where descriptor 5 stands.
position() {
  IFS='	 ' read -r _ at <"/proc/$$/fdinfo/5"
}

# seek OFFSET: from the beginning of the file. A descriptor of its own, so that it starts at 0.
seek() {
  exec 5<"/proc/$$/fd/5"
  [ "$1" = 0 ] || dd bs=1 skip="$1" count=0 <&5 2>/dev/null
  position
}

# hex_before OFFSET: sets hex to the (up to 16) bytes before it: the proof that a file is still the
# one that was read so far. Empty where the file does not reach so far.
hex_before() {
  hex=''
  [ "$1" -gt 0 ] || return 0
  hex_from=$(($1 > 16 ? $1 - 16 : 0))
  for hex_byte in $(dd bs=1 skip="$hex_from" count="$(($1 - hex_from))" <"/proc/$$/fd/5" 2>/dev/null |
    od -An -v -tx1); do
    hex=$hex$hex_byte
  done
  [ "${#hex}" = "$((($1 - hex_from) * 2))" ] || hex=''
}

# open_file PATH: as descriptor 5, if it is a regular file: to open a FIFO may take for ever.
open_file() {
  [ -f "$1" ] && { command exec 5<"$1"; } 2>/dev/null
}

# open_log OFFSET HEX: the job's log as descriptor 5, at OFFSET if the bytes before it are HEX (or
# nothing is claimed of them). The name may lead to another file by now, or nowhere; what the main
# process writes to does not move. Sets from, and lost where the bytes are in none of them.
open_log() {
  lost='' from=$1
  for file in "$dir/log" ${main_pid:+"/proc/$main_pid/fd/1" "/proc/$main_pid/fd/2"}; do
    open_file "$file" || continue
    hex_before "$1"
    [ "$1" = 0 ] || [ -n "$hex" ] || continue
    # The far side may know fewer than 16.
    case $hex in *"${2-}")
      seek "$1"
      return
      ;;
    esac
  done
  [ "$1" = 0 ] || lost=$1
  from=0
  open_file "$dir/log" || { exec 5</dev/null && place=deleted; }
  seek 0
}

# know_main: main_* of the job, or an empty main_pid where it is not of this start of the container.
know_main() {
  main_pid=
  read_boot
  read_main "$id" || return 0
  [ "$main_boot $main_boot_ticks" = "$boot_id $boot_ticks" ] || main_pid=
}

main_lives() {
  is_process "$main_pid" "$main_ticks" && is_living "$main_pid" "$process_state"
}

# look: what need not be seen in each turn. Sets ended.
look() {
  if [ -n "$main_pid" ]; then
    main_lives || ended=yes
  elif [ ! -e "$dir/main" ]; then
    # A start on its way, or one that broke off: that is not ours to judge.
    starting=$((starting + 1))
    [ "$starting" -lt 60 ] || ended=yes
  else
    know_main
    [ -n "$main_pid" ] || ended=yes
  fi
  position
  is_same_file && learn_file
  where=there
  if [ ! -e "$dir/log" ]; then
    where=renamed
    [ "$(stat -L -c %h "/proc/$$/fd/5" 2>/dev/null)" != 0 ] || where=deleted
  elif [ ! "$dir/log" -ef "/proc/$$/fd/5" ]; then
    where=replaced
  fi
  if [ "$where" != "$place" ]; then
    place=$where
    [ "$where" = there ] || event "moved $where $at"
  fi
}

# learn_file: what stands before $at is how we shall know the file again.
learn_file() {
  [ "$at" != "$known_at" ] || return 0
  known_at=$at
  hex_before "$at"
  known=$hex
  # It is shorter by now than what we have read.
  [ -n "$hex" ] || was_emptied
}

# is_same_file: whether it still is the file that we have read up to $at. If not, says so and begins
# again; false then.
is_same_file() {
  hex_before "$known_at"
  [ "$hex" != "$known" ] || return 0
  was_emptied
  return 1
}

# was_emptied: at $at bytes. The record is for status.
was_emptied() {
  event "emptied $at"
  write_record "$dir/emptied" "$at" "$(date +%s)" 2>/dev/null
  seek 0
  known='' known_at=0
}

# copy: everything that is new. False where nobody reads any more.
#
# A file that became shorter and has grown again looks like one that goes on: before anything of it
# is sent, it must prove that it is the same. Where more was read than can be written anew in a
# moment, one proof serves for several turns.
copy() {
  position
  byte=
  if [ -n "${BASH_VERSION-}" ]; then
    # With NUL as the delimiter one byte, whatever it is, is read without a fork.
    IFS= read -r -d '' -n 1 -u 5 byte || return 0
    [ -n "$byte" ] || byte='\000'
  else
    file_size=$(stat -L -c %s "/proc/$$/fd/5" 2>/dev/null) || file_size=$((at + 1))
    if [ "$file_size" -lt "$at" ]; then
      was_emptied
    elif [ "$file_size" = "$at" ]; then
      return 0
    fi
  fi
  if [ "$at" -lt 1048576 ] || [ "$((turn - proven))" -ge "$turns_per_proof" ]; then
    # The byte was of the old place.
    is_same_file || byte=
    proven=$turn
  fi
  case $byte in
    '') ;;
    '\000') printf '\000' ;;
    *) printf %s "$byte" ;;
  esac 2>/dev/null || return
  cat <&5 2>/dev/null || return
  # The first bytes of a log, and each time when it has doubled, at once; else look does it.
  position
  if [ "$at" -gt "$((known_at * 2))" ]; then learn_file; fi
}

# begin_log OFFSET [HEX]: opens it and says where the bytes begin.
begin_log() {
  place=there
  know_main
  open_log "$1" "${2-}"
  frame "log $from"
  [ -z "$lost" ] || event "emptied $lost"
  [ "$place" = there ] || event "moved $place 0"
  start_guard
}

# finish: the last words of the stream, and the end of the guard.
finish() {
  frame "done"
  stop_guard
}

# break_off: nobody reads any more.
break_off() {
  stop_guard
  exit 1
}

# follow OFFSET [HEX]: from OFFSET to the last byte of the job; HEX as hex_before gives it.
follow() {
  begin_log "$1" "${2-}"
  ended='' starting=0 turn=0 turns_per_look=1 turns_per_proof=1 proven=0 known='' known_at=0 pace=''
  while :; do
    # In this order: what was written before the end is copied after we have seen the end.
    # The process itself is asked in each turn (no fork): its end may take a moment to be recorded.
    [ -e "$dir/running" ] || ended=yes
    [ -z "$main_pid" ] || main_lives || ended=yes
    if [ -n "$ended" ] || [ "$((turn % turns_per_look))" = 0 ]; then look; fi
    copy || break_off
    [ -z "$ended" ] || break
    [ -n "$pace" ] || choose_pace
    turn=$((turn + 1))
    pause
  done
  event end
  job_facts "${word:-$id}"
  finish
}

# signal.sh: sends a signal to what exec.sh runs. Behind common.sh.
# The words: PID TICKS SIGNAL (its number).
#
# shellcheck shell=sh disable=SC2034,SC2119,SC2120,SC2154 # words come from stdin

send_signal() {
  IFS=' ' read -r marker size _ || exit 1
  words=$(take "$size")
  frame "begin 1"
  eval "set -- $words"
  if [ "$1" -gt 1 ] && is_process "$1" "$2"; then
    # To its process group, as a terminal does; without setsid it does not lead one.
    kill "-$3" "-$1" 2>/dev/null || kill "-$3" "$1" 2>/dev/null
  fi
  frame "done"
}

send_signal

# release.sh: ends what a call left hanging on the node because its container does not answer: a
# frozen one holds lxc-attach until it thaws, whatever has become of its caller. Behind common.sh; runs
# on the node itself, as root. The words: NAME, which stands in the command lines of that call alone.
#
# shellcheck shell=sh disable=SC2034,SC2062,SC2119,SC2120,SC2154
# (words come from stdin; what stands behind grep are files)

release() {
  IFS=' ' read -r marker size _ || exit 1
  words=$(take "$size")
  frame "begin 1"
  eval "set -- $words"
  # By way of stdin, or grep would find itself.
  for file in $(printf '%s\n' "$1" | grep -lF -f - /proc/[0-9]*/cmdline 2>/dev/null); do
    pid=${file#/proc/}
    kill -KILL "${pid%/cmdline}" 2>/dev/null
  done
  frame "done"
}

release

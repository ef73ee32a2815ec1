# terminal.sh: what exec.sh and attach.sh have to know about terminals.
#
# shellcheck shell=sh disable=SC2034 # term is for whoever stands behind this

# known_terminal: sets term to $1, or to one that this container knows and that most terminals obey.
known_terminal() {
  for term in "$1" xterm-256color xterm; do
    for place in /etc/terminfo /lib/terminfo /usr/lib/terminfo /usr/share/terminfo; do
      for letter in "$place/${term%"${term#?}"}" "$place"/[0-9a-f][0-9a-f]; do
        [ ! -e "$letter/$term" ] || return 0
      done
    done
  done
  # No terminfo at all: its programs do not need any.
  term=$1
}

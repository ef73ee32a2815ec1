# host.sh: what doctor wants to know of a node. Behind common.sh and user.sh; runs on the node
# itself, as whoever logged in, and changes nothing.
# The words: CTID
#
# The frame "facts" has a line "KEY VALUE" for each thing that is known.
#
# shellcheck shell=sh disable=SC2034,SC2119,SC2120,SC2154 # words come from stdin

refuse() {
  exit 1
}

tell() {
  [ -z "$2" ] || printf '%s %s\n' "$1" "$2"
}

host_facts() {
  IFS=' ' read -r marker size _ || exit 1
  words=$(take "$size")
  frame "begin 1"
  eval "set -- $words"
  frame facts
  tell epoch "$(date +%s)"
  find_user ''
  tell user "$user"
  tell shell "$shell"
  tell pct "$(ls -d /usr/sbin/pct 2>/dev/null)"
  [ ! -x /usr/sbin/pct ] || tell pct_usable yes
  tell sudo "$(command -v sudo)"
  # Not pveversion(1): that is Perl, and takes half a second.
  command -v dpkg-query >/dev/null &&
    tell version "$(dpkg-query -W -f '${Package} ${Version} ' pve-manager pve-container \
      2>/dev/null)"
  # For root alone: whether the container is frozen, and what sshd allows.
  [ "$uid" = 0 ] || {
    frame "done"
    return
  }
  command -v lxc-info >/dev/null &&
    tell lxc_state "$(timeout 5 lxc-info -n "$1" -s -H 2>/dev/null)"
  frame "done"
}

host_facts

# files.sh: what push.sh and pull.sh share: whose files they are, and how things are refused. Behind
# common.sh and user.sh.
#
# shellcheck shell=sh disable=SC2034,SC2154 # variables come from elsewhere, and go there

# refuse REASON CODE DETAIL: the last words.
refuse() {
  frame "refused $1"
  printf '%s' "$3"
  frame "done"
  exit "$2"
}

# become USER WORD...: the same script again as that user, with MARKER HOME WORD... as its arguments; it
# is still in the environment as $S, and $E evaluates it. stdin goes on where we have read to.
become() {
  cd / || exit 1
  find_user "$1"
  shift
  again='sh'
  [ -z "${BASH_VERSION-}" ] || again=bash
  set -- "$again" -c "$E" launchpad "$marker" "$home" "$@"
  # busybox su execs; its -c takes a line, so the words travel as that line's parameters. Behind "--",
  # because under glibc it would take options among them for its own.
  # shellcheck disable=SC2016
  case $switch in
    none) ;;
    setpriv) set -- setpriv "--reuid=$uid" "--regid=$gid" --init-groups -- "$@" ;;
    su) set -- busybox su -s /bin/sh -c 'exec "$@"' -- "$user" launchpad "$@" ;;
  esac
  exec "$@"
}

# at_home PATH: sets path; the tilde is text, and stands for the user's home.
at_home() {
  # shellcheck disable=SC2088
  case $1 in
    '~') path=$home ;;
    '~/'*) path=$home/${1#'~/'} ;;
    *) path=$1 ;;
  esac
}

# need_tar: neither verb can do without.
need_tar() {
  command -v tar >/dev/null || refuse no-tar 125 "$PATH"
}

# last_words: what a program printed, as far as anybody wants to read it.
last_words() {
  tail -c 4096
}

# push.sh: puts what comes into place. Behind common.sh, user.sh and files.sh.
#
# stdin, behind the script:
#   MARKER N _       one line: the frame marker, the size in bytes of the words
#   N bytes          the words, quoted (see push below)
#   a tar archive to the end; it is sent once `ready` has been said. In it:
#     tree             what goes to PATH: a file, or a directory, all of its directories open to us
#     modes            words, quoted: MODE and path of each directory that is not to be open to us
#                      in the end, the deepest first
#     directories      the last entry: a tar archive of the directories alone, with their times, which
#                      unpacking spoils. An archive that was cut off does not have it.
#
# Replies: `refused REASON`, the detail as payload, nothing was touched; or `ready`, and after the
#          archive `placed`, or `failed REASON` with the detail as payload; then `done`.
#
# Everything is unpacked into a directory beside its place, on the same file system, and moved from
# there by rename(2): no file is ever seen half-written. If we are killed before that, nothing of PATH
# has been touched.
#
# shellcheck shell=sh disable=SC2034,SC2094,SC2154,SC3067
# (variables of common.sh and files.sh; words come from stdin; a FIFO is opened from both sides; -O
# is in all three shells)

# How long the stream may stand still before its sender is taken for gone (seconds; up to twice that).
patience=60

newline='
'

# fail REASON DETAIL: after `ready`. Once it is said, nothing of the push is left.
fail() {
  clean_up
  frame "failed $1"
  printf '%s' "$2"
  frame "done"
  exit 1
}

# clean_up: whatever was staged. A directory that its own user may not write is made writable first.
clean_up() {
  trap - EXIT HUP INT TERM PIPE
  while [ "$stagings" -gt 0 ]; do
    eval "staging=\$staging_$stagings"
    rm -rf "$staging" 2>/dev/null || {
      chmod -R u+rwX "$staging" 2>/dev/null
      rm -rf "$staging" 2>/dev/null
    }
    stagings=$((stagings - 1))
  done
}

# find_place KIND: goes to the nearest directory that exists, and sets rest to the way from there to
# the place; empty where the place is a directory that exists.
find_place() {
  rest=
  # "/" alone keeps its slash.
  while [ "$path" != / ] && [ "${path%/}" != "$path" ]; do path=${path%/}; done
  if [ -d "$path" ]; then
    [ "$1" = directory ] || refuse is-directory 125 "$path"
    enter "$path"
    return
  fi
  if [ "$1" = directory ] && { [ -e "$path" ] || [ -L "$path" ]; }; then
    refuse not-directory 125 "$path"
  fi
  above=$path
  while :; do
    rest=${above##*/}${rest:+/$rest}
    above=${above%/*}
    [ -n "$above" ] || above=/
    [ ! -d "$above" ] || break
    if [ -e "$above" ] || [ -L "$above" ]; then refuse not-directory 125 "$above"; fi
  done
  enter "$above"
}

enter() {
  command cd -P "$1" 2>/dev/null || refuse no-entry 125 "$1"
}

# make_staging DIRECTORY: sets staging to a new directory in it, named after this process.
make_staging() {
  staging=$1/$staging_name
  problem=$(umask 077 && mkdir "$staging" 2>&1) || return 1
  stagings=$((stagings + 1))
  eval "staging_$stagings=\$staging"
}

# hold_staging: from here on staging is the directory itself, whatever becomes of its name: who owns
# the directory around it may rename it and put another one in its place, with words of his own in it.
hold_staging() {
  { command exec 7<"$staging"; } 2>/dev/null || return 1
  # Everything that is started here inherits it, and so finds it under the same name.
  staging=/proc/self/fd/7
  # What we made is ours, closed to others, and empty.
  [ -O "$staging/." ] && [ "$(stat -c %a "$staging/.")" = 700 ] || return 1
  for entry in "$staging"/* "$staging"/.[!.]*; do
    [ ! -e "$entry" ] || return 1
  done
}

# forget_old: what a push that was killed by force left behind, a day ago or longer.
forget_old() {
  now=$(date +%s)
  for old in ./.launchpad-push-*-*; do
    [ -d "$old" ] && [ ! -L "$old" ] && [ -O "$old" ] || continue
    changed=$(stat -c %Y "$old" 2>/dev/null) && [ "$((now - changed))" -gt 86400 ] || continue
    numbers=${old#./.launchpad-push-}
    case $numbers in *[!0-9-]*) continue ;; esac
    is_process "${numbers%%-*}" "${numbers##*-}" || rm -rf "$old"
  done
}

# guard: ends tar when the stream has stood still for too long: a line that was lost without a word
# would keep it, and what was staged, for ever. The FIFO's end of file is the end of the push.
guard() {
  before=-
  while :; do
    timeout "$patience" cat <&8 && exit
    pid='' read_so_far=
    IFS= read -r pid <"$staging/pid" || continue
    while read -r key value; do
      [ "$key" != rchar: ] || read_so_far=$value
    done <"/proc/$pid/io"
    [ -z "$read_so_far" ] || [ "$read_so_far" != "$before" ] || kill -KILL "$pid"
    before=$read_so_far
  done
}

# unpack: the archive on stdin into the staging directory.
unpack() {
  if mkfifo "$staging/alive" 2>/dev/null; then
    # Both ends are opened here: to open one by name later might wait for a partner that has died.
    exec 9<>"$staging/alive" 8<"$staging/alive"
    # exec: a shell keeps copies of what is redirected for a function alone, and with them the FIFO.
    (exec </dev/null >/dev/null 2>&1 9<&- && guard) &
    exec 8<&-
  fi
  # -o: the files are ours, whatever the archive says. An old busybox leaves links out unless told.
  words=$({
    # busybox tar gives modes only as it makes a file, unless it is root; nobody else can enter here.
    umask 000
    # shellcheck disable=SC2016
    EXTRACT_UNSAFE_SYMLINKS=1 sh -c \
      'echo "$$" >"$1/pid" && exec tar -xpo -f - -C "$1"' launchpad "$staging" 9<&-
    printf '\n%s' "$?"
  } 2>&1 | last_words)
  exec 9<&-
  [ "${words##*"$newline"}" = 0 ] || fail unpack "${words%"$newline"*}"
  [ -f "$staging/directories" ] || fail cut-off ''
  [ "$1" = file ] || words=$(tar -xpo -f "$staging/directories" -C "$staging" 2>&1) || fail unpack "$words"
}

# set_modes TO: of the directories that will be new below TO; one that is there keeps its own.
set_modes() {
  place=$1
  eval "set -- $(cat "$staging/modes")"
  while [ "$#" -gt 0 ]; do
    is_directory "$place${2#tree}" || chmod "$1" "$staging/$2"
    shift 2
  done
}

is_directory() {
  [ -d "$1" ] && [ ! -L "$1" ]
}

# survey FROM TO: sets conflicts: where a directory would have to become something else, or something
# else, a link included, a directory. Nobody asked for either, so nothing is moved then.
survey() {
  for entry in "$1"/* "$1"/.[!.]* "$1"/..?*; do
    there=$2/${entry#"$1/"}
    if is_directory "$entry"; then
      if is_directory "$there"; then
        survey "$entry" "$there"
      elif [ -e "$there" ] || [ -L "$there" ]; then
        conflicts="$conflicts${there#./}$newline"
      fi
    elif is_directory "$there" && { [ -e "$entry" ] || [ -L "$entry" ]; }; then
      conflicts="$conflicts${there#./}/$newline"
    fi
  done
}

# read_mounts: sets mounts, the mount points below the current directory, a line each.
read_mounts() {
  mounts=$newline
  while read -r _ _ _ _ point _; do
    case $point in *\\*) point=$(printf '%b.' "$point") && point=${point%.} ;; esac
    case $point in "${PWD%/}/"*) mounts=$mounts.${point#"${PWD%/}"}$newline ;; esac
  done </proc/self/mountinfo 2>/dev/null
}

# place FROM TO: moves everything in FROM into the directory TO, file by file where TO has directories
# of the same name. mv renames, and a rename over a file is atomic.
place() {
  for entry in "$1"/* "$1"/.[!.]* "$1"/..?*; do
    there=$2/${entry#"$1/"}
    { is_directory "$entry" && is_directory "$there"; } || continue
    case $mounts in
      *"$newline$there$newline"*) place_across "$entry" "$there" ;;
      *) place "$entry" "$there" ;;
    esac || return 1
  done
  from=$1 to=$2 unlocked=
  # A directory of one's own may forbid writing, as the one that was pushed here before did.
  [ -w "$to" ] || { chmod u+w "$to" 2>/dev/null && unlocked=yes; }
  set --
  for entry in "$from"/* "$from"/.[!.]* "$from"/..?*; do
    if is_directory "$entry"; then
      if is_directory "$to/${entry#"$from/"}"; then continue; fi
      if [ ! -w "$entry" ]; then
        move_locked "$entry" "$to" || return 1
        continue
      fi
    elif [ ! -e "$entry" ] && [ ! -L "$entry" ]; then
      continue
    fi
    clear_way "$to/${entry#"$from/"}"
    set -- "$@" "$entry"
    if [ "$#" -ge 200 ]; then
      move "$@" "$to/" || return 1
      set --
    fi
  done
  [ "$#" = 0 ] || move "$@" "$to/" || return 1
  [ -z "$unlocked" ] || chmod u-w "$to"
}

# clear_way PLACE: busybox mv gives up where a link leads in a circle. What leads nowhere can go first.
clear_way() {
  [ ! -L "$1" ] || [ -e "$1" ] || rm -f "$1"
}

move() {
  problem=$(mv -f "$@" 2>&1)
}

# move_locked DIRECTORY TO: to be moved, a directory must be writable for its user: its ".." changes.
move_locked() {
  chmod u+w "$1"
  move "$1" "$2/" || return 1
  chmod u-w "$2/${1##*/}"
}

# place_across FROM TO: TO is another file system, where mv would write into the files themselves.
place_across() {
  make_staging "$2" || return 1
  problem=$(cp -a "$1" "$staging/tree" 2>&1) || return 1
  place "$staging/tree" "$2"
}

# The words: PATH USER KIND
#   PATH in the container, or below "~" · USER empty: whoever we are · KIND directory|file
push() {
  if [ "$#" = 0 ]; then
    IFS=' ' read -r marker size _ || exit 1
    words=$(take "$size")
    frame "begin 1"
    eval "set -- $words"
    [ "$#" = 3 ] || refuse cut-off 125 "$#"
    become "$2" "$1" "$3"
  fi
  marker=$1 home=$2 kind=$4
  at_home "$3"
  umask 022
  need_tar
  find_place "$kind"
  read_stat "$$"
  staging_name=.launchpad-push-$$-$ticks stagings=0
  trap clean_up EXIT
  trap 'exit 1' HUP INT TERM PIPE
  make_staging . || refuse no-writing 125 "$problem"
  hold_staging || refuse no-writing 125 "$PWD/$staging_name is not what it was when it was made"
  frame ready
  unpack "$kind"
  [ "$kind" = file ] || [ -d "$staging/tree" ] || fail cut-off ''
  if [ -z "$rest" ]; then
    conflicts=
    survey "$staging/tree" .
    [ -z "$conflicts" ] || fail conflict "$conflicts"
    read_mounts
    set_modes .
    place "$staging/tree" . || fail place "$problem"
  else
    case $rest in
      */*) problem=$(mkdir -p "./${rest%/*}" 2>&1) || fail place "$problem" ;;
    esac
    [ "$kind" = file ] || set_modes "./$rest"
    if [ "$kind" = directory ] && [ ! -w "$staging/tree" ]; then
      chmod u+w "$staging/tree" && locked=yes
    fi
    if [ -d "./$rest" ]; then fail conflict "$rest/$newline"; fi
    clear_way "./$rest"
    move "$staging/tree" "./$rest" || fail place "$problem"
    [ -z "${locked-}" ] || chmod u-w "./$rest"
  fi
  clean_up
  forget_old
  frame placed
  frame "done"
}

push "$@"

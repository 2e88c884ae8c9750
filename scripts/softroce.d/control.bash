# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # the parts share their variables; bash -u checks them
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# The control folder of a guest: its configuration (config), its mounts (shares) and its command (run.sh). The guest
# answers by writing to the files started, failed and code. They exist from the beginning, because QEMU makes new files
# for a guest only if /proc is mounted, which a bare chroot may lack.

# Variables that have a meaning only on the host, or that point to places that are new in the guest.
readonly host_only=(TMPDIR TMP TEMP TERM XDG_RUNTIME_DIR DISPLAY WAYLAND_DISPLAY XAUTHORITY SSH_AUTH_SOCK
  SSH_CONNECTION SSH_CLIENT SSH_TTY DBUS_SESSION_BUS_ADDRESS BASH_ENV ENV OLDPWD)

# /tmp and /run are new in a guest, but the folder in them that contains the working folder stays visible.
kept_tree() {
  local rest
  case $cwd in /tmp/* | /run/*) ;; *) return 0 ;; esac
  rest=${cwd#/*/}
  printf '%s/%s\n' "${cwd%"/$rest"}" "${rest%%/*}"
}

# Prints the lines of run.sh that set the command's environment.
print_environment() { # GUEST
  local name setting peer=$((3 - $1))
  printf '%s\n' "$caller_environment"
  for name in "${host_only[@]}"; do
    case $passed in *" $name "*) ;; *) printf 'unset %s\n' "$name" ;; esac
  done
  # shellcheck disable=SC2016  # for run.sh to expand
  printf '%s\n' ': "${TERM:=dumb}" "${HOME:=/root}"' \
    'for _ in /usr/{local/,}{s,}bin /{s,}bin; do case :$PATH: in *:$_:*) ;; *) PATH+=:$_ ;; esac; done' \
    'export TERM HOME PATH'
  printf 'export %s\n' "SOFTROCE_GUEST=$1" "SOFTROCE_ADDRESS=10.9.0.$1" "SOFTROCE_ADDRESS6=fd09::$1"
  if [ "$device" != none ]; then echo "export SOFTROCE_DEVICE=${device}0"; fi
  if [ "$guests" = 2 ]; then
    printf 'export %s\n' "SOFTROCE_PEER=10.9.0.$peer" "SOFTROCE_PEER6=fd09::$peer" \
      SOFTROCE_SHARED=/run/softroce/shared
  fi
  for setting in "${settings[@]}"; do printf 'export %s=%q\n' "${setting%%=*}" "${setting#*=}"; done
}

write_run() { # GUEST COMMAND…
  local guest=$1
  shift
  print_environment "$guest"
  echo 'ulimit -l unlimited'
  # The caller's name of the folder may contain a link that the guest lacks.
  printf 'cd %q 2>/dev/null || cd %q || exit 126\n' "$PWD" "$cwd"
  printf 'type -P -- %q >/dev/null || {\n' "$1"
  printf '    printf "%%s: %%s: no such command in the guest, where /tmp and /run are fresh\\n" %q %q >&2\n' "$program" "$1"
  printf '    exit 127\n}\n'
  printf 'exec --'
  printf ' %q' "$@"
  echo
}

write_control() { # DIR GUEST COMMAND…
  local dir=$1 guest=$2 i
  shift 2
  mkdir -p "$dir"
  printf '%s=%q\n' guest "$guest" peer_guest "$((3 - guest))" guests "$guests" hostname "softroce$guest" \
    address "10.9.0.$guest" address6 "fd09::$guest" device "$device" kept "$(kept_tree)" >"$dir/config"
  for i in "${!shares[@]}"; do printf 'share%s %s\n' "$i" "${shares[i]}"; done >"$dir/shares"
  write_run "$guest" "$@" >"$dir/run.sh"
  touch "$dir/started" "$dir/failed" "$dir/code"
}

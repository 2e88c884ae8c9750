# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# The control folder of a guest: what it is to be (config), what to mount (shares), what to run (run.sh). The guest
# answers in it with the files started, failed and code.

# Variables that mean something on the host only, or that point to places the guest has fresh.
readonly host_only='TMPDIR TMP TEMP TERM XDG_RUNTIME_DIR DISPLAY WAYLAND_DISPLAY XAUTHORITY SSH_AUTH_SOCK
SSH_CONNECTION SSH_CLIENT SSH_TTY DBUS_SESSION_BUS_ADDRESS BASH_ENV ENV OLDPWD _'

write_run() { # DIR GUEST COMMAND…
    local dir=$1 guest=$2 setting
    shift 2
    {
        printf '%s\n' "$caller_environment"
        # shellcheck disable=SC2086  # a list of names
        printf 'unset'
        printf ' %s' $host_only
        printf '\nexport TERM=dumb HOME="${HOME:-/root}"\n'
        printf 'PATH=%s\n' '${PATH:+$PATH:}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; export PATH'
        printf 'export SOFTROCE_GUEST=%s SOFTROCE_ADDRESS=10.9.0.%s SOFTROCE_ADDRESS6=fd09::%s\n' "$guest" "$guest" "$guest"
        [ "$device" = none ] || printf 'export SOFTROCE_DEVICE=rxe0\n'
        [ "$guests" = 1 ] ||
            printf 'export SOFTROCE_PEER=10.9.0.%s SOFTROCE_PEER6=fd09::%s SOFTROCE_SHARED=/run/softroce/shared\n' \
                "$((3 - guest))" "$((3 - guest))"
        for setting in "${settings[@]}"; do printf 'export %q=%q\n' "${setting%%=*}" "${setting#*=}"; done
        printf 'ulimit -l unlimited\n'
        printf 'cd %q || exit 126\n' "$PWD"
        printf 'type -P -- %q >/dev/null || { echo softroce: %q: no such command in the guest >&2; exit 127; }\n' "$1" "$1"
        printf 'exec --'
        printf ' %q' "$@"
        echo
    } >"$dir/run.sh"
}

write_control() { # DIR GUEST COMMAND…
    local dir=$1 guest=$2 i
    mkdir -p "$dir"
    printf '%s=%q\n' guest "$guest" peer_guest "$((3 - guest))" guests "$guests" hostname "softroce$guest" \
        address "10.9.0.$guest" address6 "fd09::$guest" device "$device" cwd "$(realpath -e .)" >"$dir/config"
    for i in "${!shares[@]}"; do printf 'share%s %s\n' "$i" "${shares[i]}"; done >"$dir/shares"
    write_run "$@"
}

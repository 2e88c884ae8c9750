# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Runs the guests to their end and finds the exit code.

# With two guests: how long the other one may go on when one command failed.
readonly grace_us=10000000
# A guest that has not begun its command after this is lost: emulation on a busy machine needs a few seconds.
readonly boot_limit_us=180000000

now_us() { now=${EPOCHREALTIME/[.,]/}; }

running() { kill -0 "$1" 2>/dev/null; }

# Ends what start_guest began; harmless when it has ended already.
end_guests() {
    local guest pid
    for guest in "${!qemu_pid[@]}"; do
        for pid in "${qemu_pid[guest]}" "${out_pid[guest]}" "${err_pid[guest]}"; do
            if running "$pid"; then
                kill -KILL "$pid" 2>/dev/null
                wait "$pid" 2>/dev/null
            fi
        done
    done
    qemu_pid=() out_pid=() err_pid=()
}

# The end of a guest's console on stderr, without the terminal's control characters.
show_console() { # GUEST
    local log
    for log in qemu.log console; do
        [ -s "$scratch/$1/$log" ] || continue
        say "the last lines of guest $1's $log:"
        tail -n 30 "$scratch/$1/$log" | tr -d '\000-\010\013-\037' >&2
    done
}

begin_guests() {
    local guest waits=0
    rm -rf "${scratch:?}"/{1,2,shared,wire}
    mkdir "$scratch/shared"
    for ((guest = 1; guest <= guests; guest++)); do
        if [ "$guest" = 1 ]; then
            write_control "$scratch/1/control" 1 "${command1[@]}"
        else
            write_control "$scratch/2/control" 2 "${command2[@]}"
            # The wire is a socket that guest 1's QEMU makes.
            until [ -S "$scratch/wire" ] || ! running "${qemu_pid[1]}" || [ "$waits" -ge 100 ]; do
                waits=$((waits + 1))
                tick
            done
        fi
        start_guest "$guest"
    done
}

# A tenth of a second, without a process.
tick() { read -rt 0.1 -u "$tick_fd" || true; }

# Looks at one guest. Sets state: booting, running, done (code is there), failed, died, unheard.
look_at() { # GUEST
    local control=$scratch/$1/control alive=no
    if running "${qemu_pid[$1]}"; then alive=yes; fi
    if [ -s "$control/code" ]; then
        state=done
    elif [ -s "$control/failed" ]; then
        state=failed
    elif [ "$alive" = no ]; then
        state=died
    elif ! running "${out_pid[$1]}" || ! running "${err_pid[$1]}"; then
        # Somebody closed our stdout or stderr. The guest's QEMU may have just ended, which ends the relays too.
        tick
        if running "${qemu_pid[$1]}"; then state=unheard; else state=died; fi
        [ ! -s "$control/code" ] || state=done
    elif [ -e "$control/started" ]; then
        state=running
    else
        state=booting
    fi
}

# Waits for the guests. Sets verdict (done, failed, died, unheard, timed-out, lost-at-boot) and culprit, a guest.
watch_guests() {
    local guest begin now grace_end=0 finished
    now_us
    begin=$now
    while :; do
        now_us
        finished=0
        for ((guest = 1; guest <= guests; guest++)); do
            look_at "$guest"
            culprit=$guest
            case $state in
            done)
                finished=$((finished + 1))
                if [ "$(<"$scratch/$guest/control/code")" != 0 ] && [ "$grace_end" = 0 ]; then
                    grace_end=$((now + grace_us))
                fi
                ;;
            died)
                if [ -e "$scratch/$guest/control/started" ]; then verdict=died; else verdict=lost-at-boot; fi
                return
                ;;
            failed | unheard)
                verdict=$state
                return
                ;;
            booting)
                if [ $((now - begin)) -gt "$boot_limit_us" ]; then
                    verdict=lost-at-boot
                    return
                fi
                ;;
            esac
        done
        verdict=done
        [ "$finished" -lt "$guests" ] || return
        [ "$grace_end" = 0 ] || [ "$now" -lt "$grace_end" ] || return
        verdict=timed-out
        [ "$timeout" = 0 ] || [ $((now - begin)) -lt $((timeout * 1000000)) ] || return
        tick
    done
}

# Lets a guest that is done power off and its output drain, within five seconds.
settle() { # GUEST
    local waits=0 pid
    for pid in "${qemu_pid[$1]}" "${out_pid[$1]}" "${err_pid[$1]}"; do
        while running "$pid" && [ "$waits" -lt 50 ]; do
            waits=$((waits + 1))
            tick
        done
    done
}

# The exit code of guests that are done: the first one that is not 0 (of those that ended at all).
codes() {
    local guest code result=0
    for ((guest = 1; guest <= guests; guest++)); do
        if [ -s "$scratch/$guest/control/code" ]; then
            settle "$guest"
            code=$(<"$scratch/$guest/control/code")
            [ "$result" != 0 ] || result=$code
        else
            say "guest $guest was still running when the other one failed, and was ended"
        fi
    done
    end_guests
    exit "$result"
}

run_guests() {
    local attempt
    for attempt in 1 2; do
        begin_guests
        watch_guests
        # Under emulation a kernel is rarely lost at boot; no command has begun, so beginning again is safe.
        [ "$verdict" = lost-at-boot ] && [ "$attempt" = 1 ] && [ ! -s "$scratch/$culprit/qemu.log" ] &&
            [ ! -e "$scratch/1/control/started" ] && [ ! -e "$scratch/2/control/started" ] || break
        end_guests
        say "guest $culprit was lost at boot; trying once more"
    done
    case $verdict in
    done) codes ;;
    failed)
        end_guests
        show_console "$culprit"
        die "$kExitCannotStart" "guest $culprit: $(<"$scratch/$culprit/control/failed")"
        ;;
    unheard)
        end_guests
        exit 141
        ;;
    timed-out)
        end_guests
        say "timed out after $timeout s"
        for ((culprit = 1; culprit <= guests; culprit++)); do show_console "$culprit"; done
        exit "$kExitTimedOut"
        ;;
    *)
        settle "$culprit"
        end_guests
        if [ -s "$scratch/$culprit/qemu.log" ]; then
            show_console "$culprit"
            die "$kExitCannotStart" "QEMU failed"
        fi
        show_console "$culprit"
        die "$kExitGuestDied" "guest $culprit died before its command ended"
        ;;
    esac
}

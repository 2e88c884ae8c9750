# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# KVM or emulation. A /dev/kvm that opens proves nothing: inside some virtual machines kernels do not boot with it.
# So one short boot decides, and its answer is kept until this machine or its kernel changes.

kvm_boots() { # KERNEL
    local dir result
    dir=$(mktemp -d /tmp/softroce.XXXXXX)
    # QEMU may abort: no core, and no word of it from this shell.
    (
        ulimit -c 0
        timeout -k 1 15 "${qemu[@]}" -accel kvm -cpu host -m 512 -kernel "$image_vmlinux" -initrd "$image_initramfs" \
            -append "$kernel_arguments softroce.probe" -serial "file:$dir/console" </dev/null
        true
    ) >/dev/null 2>&1
    grep -q 'softroce: probe passed' "$dir/console" 2>/dev/null
    result=$?
    rm -rf "$dir"
    return "$result"
}

# Sets accel to kvm or tcg for WANTED auto, kvm or tcg.
choose_accel() { # KERNEL WANTED
    local boot answer
    accel=$2
    [ "$accel" = auto ] || return 0
    accel=tcg
    [ -r /dev/kvm ] && [ -w /dev/kvm ] || return 0
    boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null || echo unknown)
    answer=$(cache_dir)/$1/kvm-$image_release-$boot
    if [ ! -e "$answer" ]; then
        say 'trying whether KVM works here (once)'
        rm -f "$(cache_dir)/$1"/kvm-* 2>/dev/null
        if kvm_boots "$1"; then echo kvm; else echo tcg; fi >"$answer.$$" && mv "$answer.$$" "$answer"
    fi
    accel=$(<"$answer")
    case $accel in kvm | tcg) ;; *) accel=tcg ;; esac
}

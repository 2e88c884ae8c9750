# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # the parts share their variables; bash -u checks them
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Starts one guest. Its folder $scratch/GUEST holds the fifos of its output, its console and its control folder.

# The old PIT is off: on a busy machine a kernel that measures its TSC by the PIT, and not by the HPET, may compute a
# tenth of the real value.
readonly qemu=(qemu-system-x86_64 -machine "pc,pit=off" -nodefaults -no-user-config -display none -no-reboot -bios /usr/share/qemu/qboot.rom)
readonly kernel_arguments='console=ttyS0 quiet panic=-1 mitigations=off nokaslr cryptomgr.notests tsc=reliable no_timer_check random.trust_cpu=on net.ifnames=0'

# Shares one folder of the host over 9p. A comma separates QEMU's options, so a comma in the path is doubled.
plan9() { # TAG PATH [OPTION]
  qemu_args+=(-virtfs "local,path=${2//,/,,},mount_tag=$1,security_model=none,multidevs=remap${3:+,$3}")
}

# Copies one stream of a guest to ours; with two guests each line begins with the guest's number.
relay() { # FIFO GUEST
  if [ "$guests" = 1 ]; then
    exec cat "$1"
  else
    # shellcheck disable=SC2016  # perl's variables
    exec perl -e '$| = 1; my $who = shift; while (<>) { chomp; print "$who| $_\n" }' "$2" "$1"
  fi
}

# Sets vmlinuxes, initramfses and accels, arrays by guest.
prepare_guests() {
  local guest
  vmlinuxes=() initramfses=() accels=()
  for ((guest = 1; guest <= guests; guest++)); do
    prepare_image "${kernels[guest]}" "$device"
    choose_accel "$image_place" "$accel_wanted"
    vmlinuxes[guest]=$image_vmlinux initramfses[guest]=$image_initramfs accels[guest]=$accel
  done
}

# Sets qemu_pid[GUEST], out_pid[GUEST] and err_pid[GUEST].
start_guest() { # GUEST
  local guest=$1 dir=$scratch/$1 i qemu_args=()
  mkfifo "$dir/out" "$dir/err"
  relay "$dir/out" "$guest" &
  out_pid[guest]=$!
  relay "$dir/err" "$guest" >&2 &
  err_pid[guest]=$!
  plan9 root / readonly=on
  plan9 control "$dir/control"
  for i in "${!shares[@]}"; do plan9 "share$i" "${shares[i]}"; done
  if [ "$guests" = 2 ]; then
    plan9 wire "$scratch/shared"
    local role=on
    [ "$guest" = 1 ] || role=off
    qemu_args+=(-netdev "stream,id=wire,server=$role,addr.type=unix,addr.path=$scratch/wire"
      -device "virtio-net-pci,netdev=wire,mac=52:54:00:09:00:0$guest,romfile=")
  fi
  local arguments=$kernel_arguments
  # By the HPET the kernel computes three quarters of the TSC's rate, because emulation is slow to read both: a clock
  # based on that TSC runs ahead.
  [ "${accels[guest]}" != tcg ] || arguments+=' clocksource=hpet'
  # QEMU's emulation of `rep movsb` moves single bytes. A kernel with erms or fsrm copies with it, so rxe would tear
  # aligned words that a remote write brings, and other programs would see that. In Debian 12's QEMU the emulation of
  # `cmpxchg16b` leaves parts of an address in the flags: a kernel, whose allocator uses it, dies of a double fault if
  # an interrupt comes at that moment.
  setpriv --pdeathsig KILL "${qemu[@]}" -name "softroce$guest" -accel "${accels[guest]}" -cpu max,-erms,-fsrm,-cx16 -smp "$cpus" \
    -m "$memory" -kernel "${vmlinuxes[guest]}" -initrd "${initramfses[guest]}" -append "$arguments" \
    -serial "file:$dir/console" -device virtio-serial-pci \
    -chardev "file,id=out,path=$dir/out,append=on" -device virtserialport,chardev=out,name=out \
    -chardev "file,id=err,path=$dir/err,append=on" -device virtserialport,chardev=err,name=err \
    "${qemu_args[@]}" </dev/null >"$dir/qemu.log" 2>&1 &
  qemu_pid[guest]=$!
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * confine PROGRAM [ARG...]: runs PROGRAM as the engines of containers do by default: without capabilities, and without
 * the system calls that their seccomp profile refuses. It ends with 125 if it cannot do that.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__riscv)
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#else
#define ARCHITECTURE AUDIT_ARCH_PPC64LE
#endif

#define OFFSET(member) ((unsigned)offsetof(struct seccomp_data, member))
/* The lower half of an argument. All of these machines are little-endian. */
#define ARGUMENT(number) (OFFSET(args) + 8 * (number))
#define LOAD(where) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, where)
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, action)
#define ALLOW RETURN(SECCOMP_RET_ALLOW)
#define REFUSE RETURN(SECCOMP_RET_ERRNO | EPERM)
#define UNLESS_EQUAL(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
/* Each of these leaves the number of the call loaded. */
#define REFUSE_CALL(name) UNLESS_EQUAL(__NR_##name, 1), REFUSE

#define NEW_NAMESPACES \
  (CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP)

/*
 * The calls that Docker's and containerd's profiles refuse without a capability, including those that only the newer or
 * the older profiles refuse.
 */
static struct sock_filter filter[] = {
    LOAD(OFFSET(arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
    RETURN(SECCOMP_RET_KILL_PROCESS),
    LOAD(OFFSET(nr)),
    REFUSE_CALL(io_uring_setup),
    REFUSE_CALL(io_uring_enter),
    REFUSE_CALL(io_uring_register),
    REFUSE_CALL(bpf),
    REFUSE_CALL(perf_event_open),
    REFUSE_CALL(userfaultfd),
    REFUSE_CALL(keyctl),
    REFUSE_CALL(add_key),
    REFUSE_CALL(request_key),
    REFUSE_CALL(process_vm_readv),
    REFUSE_CALL(process_vm_writev),
    REFUSE_CALL(ptrace),
    REFUSE_CALL(kcmp),
    REFUSE_CALL(pidfd_getfd),
    REFUSE_CALL(process_madvise),
    REFUSE_CALL(move_pages),
    REFUSE_CALL(mbind),
    REFUSE_CALL(set_mempolicy),
    REFUSE_CALL(get_mempolicy),
    REFUSE_CALL(open_by_handle_at),
    REFUSE_CALL(name_to_handle_at),
    REFUSE_CALL(fanotify_init),
    REFUSE_CALL(mount),
    REFUSE_CALL(umount2),
    REFUSE_CALL(pivot_root),
    REFUSE_CALL(chroot),
    REFUSE_CALL(fsopen),
    REFUSE_CALL(open_tree),
    REFUSE_CALL(setns),
    REFUSE_CALL(unshare),
    REFUSE_CALL(quotactl),
    REFUSE_CALL(syslog),
    REFUSE_CALL(init_module),
    REFUSE_CALL(finit_module),
    REFUSE_CALL(delete_module),
    REFUSE_CALL(vhangup),
    REFUSE_CALL(sethostname),
    REFUSE_CALL(settimeofday),
    REFUSE_CALL(clock_settime),
    UNLESS_EQUAL(__NR_clone3, 1),
    RETURN(SECCOMP_RET_ERRNO | ENOSYS),
    /* New namespaces, in clone's flags. */
    UNLESS_EQUAL(__NR_clone, 4),
    LOAD(ARGUMENT(0)),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NEW_NAMESPACES, 0, 1),
    REFUSE,
    ALLOW,
    /* Execution domains other than the usual one, and the query for it. */
    UNLESS_EQUAL(__NR_personality, 5),
    LOAD(ARGUMENT(0)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xFFFFFFFF, 1, 0),
    REFUSE,
    ALLOW,
    /* Sockets that reach beyond the container. */
    UNLESS_EQUAL(__NR_socket, 3),
    LOAD(ARGUMENT(0)),
    UNLESS_EQUAL(AF_VSOCK, 1),
    REFUSE,
    ALLOW,
};

static int fail(const char* what) {
  fprintf(stderr, "confine: %s: %s\n", what, strerror(errno));
  return 125;
}

static int has_capabilities(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2];
  if (syscall(SYS_capget, &header, data) != 0) return 1;
  return (data[0].effective | data[1].effective | data[0].permitted | data[1].permitted) != 0;
}

static int is_refused(long number) {
  errno = 0;
  return syscall(number, -1L, -1L, -1L, -1L, -1L) == -1 && errno == EPERM;
}

int main(int argc, char** argv) {
  const struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};
  if (argc < 2) return 2;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail("no_new_privs");
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) return fail("seccomp");
  if (getuid() == 0 || has_capabilities()) return fail("there are rights left");
  if (!is_refused(__NR_bpf) || !is_refused(__NR_io_uring_setup) || personality(ADDR_NO_RANDOMIZE) != -1 ||
      socket(AF_VSOCK, SOCK_STREAM, 0) != -1 || errno != EPERM) {
    return fail("a system call is not refused");
  }
  execvp(argv[1], argv + 1);
  return fail(argv[1]);
}

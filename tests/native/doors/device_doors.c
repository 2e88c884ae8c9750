/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * device_doors: the parts of libibverbs that the plug-in does not implement: the list, GIDs, P_Keys, completion
 * channels, the descriptors; and the same through the doors directly.
 */
#include <fcntl.h>
#include <infiniband/dappledv.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#include <rdma/rdma_user_ioctl_cmds.h>

static struct ibv_context* open_named(const char* name) {
  struct ibv_context* context = NULL;
  struct ibv_device** list = ibv_get_device_list(NULL);
  if (list == NULL) return NULL;
  for (int i = 0; list[i] != NULL; i++) {
    if (strcmp(ibv_get_device_name(list[i]), name) == 0) context = ibv_open_device(list[i]);
  }
  ibv_free_device_list(list);
  return context;
}

static int number_of_devices(void) {
  int count = -1;
  struct ibv_device** list = ibv_get_device_list(&count);
  if (list == NULL) return -1;
  ibv_free_device_list(list);
  return count;
}

/* The addresses of lo are the GIDs of its device. */
static void gids(struct ibv_context* context) {
  static const unsigned char loopback[16] = {[10] = 0xFF, [11] = 0xFF, [12] = 127, [15] = 1};
  static const unsigned char link_local[16] = {0xFE, 0x80, [8] = 0x02, [11] = 0xFF, [12] = 0xFE};
  struct ibv_gid_entry entries[32];
  struct ibv_gid_entry entry;
  union ibv_gid gid;
  int found = 0;
  const ssize_t count = ibv_query_gid_table(context, entries, 32, 0);
  CHECK(count >= 1);
  for (ssize_t i = 0; i < count; i++) {
    CHECK(entries[i].gid_type == IBV_GID_TYPE_ROCE_V2 && entries[i].port_num == 1);
    CHECK(entries[i].ndev_ifindex == if_nametoindex("lo"));
    CHECK(ibv_query_gid(context, 1, (int)entries[i].gid_index, &gid) == 0 && memcmp(&gid, &entries[i].gid, 16) == 0);
    CHECK(ibv_query_gid_ex(context, 1, entries[i].gid_index, &entry, 0) == 0 &&
          memcmp(&entry, &entries[i], sizeof entry) == 0);
    found += memcmp(&entries[i].gid, loopback, 16) == 0;
  }
  CHECK(found == 1);
  /* As on the kernel's devices, the first is the link-local GID of the MAC address. */
  CHECK(ibv_query_gid(context, 1, 0, &gid) == 0 && memcmp(&gid, link_local, sizeof gid) == 0);
  CHECK(ibv_query_gid_table(context, entries, (size_t)count - 1, 0) == -EINVAL);
  CHECK(ibv_query_gid_table(context, entries, 32, 1) == -EINVAL);
  /* For an empty entry ibv_query_gid() returns a GID of zeros, and ibv_query_gid_ex() an error. */
  CHECK(ibv_query_gid(context, 1, 63, &gid) == 0 && gid.global.interface_id == 0);
  CHECK(ibv_query_gid_ex(context, 1, 63, &entry, 0) == ENODATA);
  CHECK(ibv_query_gid_ex(context, 1, 64, &entry, 0) == EINVAL);
  CHECK(ibv_query_gid_ex(context, 2, 0, &entry, 0) == EINVAL);
}

static void pkeys(struct ibv_context* context) {
  __be16 pkey = 0;
  CHECK(ibv_query_pkey(context, 1, 0, &pkey) == 0 && pkey == 0xFFFF);
  CHECK(ibv_query_pkey(context, 1, 1, &pkey) == -1);
  CHECK(ibv_get_pkey_index(context, 1, 0xFFFF) == 0);
  CHECK(ibv_get_pkey_index(context, 1, 0x1234) == -1);
}

static void channels(struct ibv_context* context) {
  struct ibv_comp_channel* first = ibv_create_comp_channel(context);
  struct ibv_comp_channel* second = ibv_create_comp_channel(context);
  CHECK(first != NULL && second != NULL);
  if (first == NULL || second == NULL) return;
  CHECK(first->fd != second->fd);
  CHECK((fcntl(first->fd, F_GETFD) & FD_CLOEXEC) != 0);
  /* No data yet, but not the end of the file. */
  struct pollfd waiting = {.fd = first->fd, .events = POLLIN};
  CHECK(poll(&waiting, 1, 0) == 0);
  CHECK(fcntl(first->fd, F_SETFL, O_NONBLOCK) == 0);
  struct ibv_cq* cq;
  void* cq_context;
  CHECK(ibv_get_cq_event(first, &cq, &cq_context) == -1 && errno == EAGAIN);
  /* A duplicate keeps it open. */
  const int copy = dup(first->fd);
  CHECK(ibv_destroy_comp_channel(first) == 0);
  waiting.fd = copy;
  CHECK(poll(&waiting, 1, 0) == 0);
  close(copy);
  CHECK(ibv_destroy_comp_channel(second) == 0);
  /* All descriptors are released. */
  for (int i = 0; i < 20000; i++) {
    struct ibv_comp_channel* channel = ibv_create_comp_channel(context);
    if (channel == NULL || ibv_destroy_comp_channel(channel) != 0) {
      CHECK(!"a channel many times over");
      break;
    }
  }
  waiting.fd = context->async_fd;
  CHECK(poll(&waiting, 1, 0) == 0);
}

static void bare_doors(struct ibv_context* context) {
  char path[128];
  struct stat status;
  struct stat64 status64;
  struct stat named;
  snprintf(path, sizeof path, "/dev/infiniband/%s", context->device->dev_name);
  CHECK(fstat(context->cmd_fd, &status) == 0 && S_ISCHR(status.st_mode));
  CHECK(fstat64(context->cmd_fd, &status64) == 0 && status64.st_rdev == status.st_rdev);
  CHECK(stat(path, &named) == 0 && S_ISCHR(named.st_mode) && named.st_rdev == status.st_rdev);
  CHECK(access(path, R_OK | W_OK) == 0);
  CHECK(stat("/dev/infiniband/uverbs5001", &named) == -1 && errno == ENOENT);
  CHECK(open("/dev/infiniband/uverbs5001", O_RDWR) == -1 && errno == ENOENT);

  struct {
    struct ib_uverbs_ioctl_hdr header;
  } nothing = {.header = {.length = sizeof nothing, .object_id = 0x0F00}};
  CHECK(ioctl(context->cmd_fd, RDMA_VERBS_IOCTL, &nothing) == -1 && errno == EPROTONOSUPPORT);
  CHECK(ioctl(context->cmd_fd, FIONREAD, &nothing) == -1 && errno == ENOTTY);
  CHECK(write(context->cmd_fd, "ab", 2) == -1 && errno == EINVAL);
  const unsigned command[2] = {3, 2};
  CHECK(write(context->cmd_fd, command, sizeof command) == -1 && errno == EOPNOTSUPP);

  /* A duplicate is the device, too, until it is closed. */
  const int copy = fcntl(context->cmd_fd, F_DUPFD_CLOEXEC, 100);
  CHECK(copy >= 100 && fstat(copy, &named) == 0 && S_ISCHR(named.st_mode));
  CHECK(dup2(0, copy) == copy && fstat(copy, &named) == 0 && named.st_rdev != status.st_rdev);
  close(copy);

  struct ibv_context* import = ibv_import_device(dup(context->cmd_fd));
  CHECK(import != NULL && import->async_fd != context->async_fd && import->device == context->device);
  CHECK(import == NULL || ibv_close_device(import) == 0);
  CHECK(fstat(context->cmd_fd, &named) == 0 && S_ISCHR(named.st_mode));
}

/* A child of vfork() that closes all descriptors, as shells and launchers do, does not affect its parent. */
static void children(struct ibv_context* context) {
  struct ibv_comp_channel* channel = ibv_create_comp_channel(context);
  struct pollfd waiting = {.fd = channel->fd, .events = POLLIN};
  union ibv_gid gid;
  const pid_t quick = vfork();
  if (quick == 0) {
    for (int fd = 3; fd < 1024; fd++) close(fd);
    _exit(0);
  }
  waitpid(quick, NULL, 0);
  CHECK(poll(&waiting, 1, 0) == 0);
  CHECK(ibv_query_gid(context, 1, 0, &gid) == 0);

  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    failures = 0;
    CHECK(ibv_query_gid(context, 1, 0, &gid) == 0);
    CHECK(number_of_devices() >= 1);
    fflush(stdout);
    _exit(failures != 0);
  }
  int code = 0;
  waitpid(child, &code, 0);
  CHECK(code == 0);
  CHECK(ibv_query_gid(context, 1, 0, &gid) == 0);
  CHECK(ibv_destroy_comp_channel(channel) == 0);
}

int main(void) {
  CHECK(number_of_devices() >= 1);
  struct ibv_context* context = open_named("dapple0");
  CHECK(context != NULL);
  if (context == NULL) return 1;
  CHECK(context->num_comp_vectors == (int)sysconf(_SC_NPROCESSORS_ONLN));
  CHECK(ibv_get_device_guid(context->device) != 0);
  CHECK(context->device->transport_type == IBV_TRANSPORT_IB && context->device->node_type == IBV_NODE_CA);
  gids(context);
  pkeys(context);
  channels(context);
  bare_doors(context);
  children(context);
  struct dappledv_device_attr attr;
  CHECK(dappledv_query_device(context, &attr) == 0 && attr.coherence == DAPPLEDV_COHERENCE_COHERENT &&
        attr.reason == DAPPLEDV_REASON_SOFTWARE_DEVICE);
  CHECK(ibv_close_device(context) == 0);
  /* Daemons start in this way. */
  closefrom(3);
  CHECK(number_of_devices() >= 1);
  printf("%d failed\n", failures);
  return failures != 0;
}

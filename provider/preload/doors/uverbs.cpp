// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/uverbs.hpp"

#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>

#include "provider/preload/doors/devices.hpp"
#include "provider/preload/doors/process/descriptors.hpp"
#include "provider/preload/doors/process/real.hpp"
#include "provider/protocol/identity.hpp"

namespace dapple::doors {
namespace {

int refuse(int error) {
  errno = error;
  return -1;
}

// A pipe: the program waits at one end, and the plug-in finds the other end through this one.
int open_channel() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  real.fcntl(ends[1], F_SETFL, O_NONBLOCK);
  const int writer = hide(ends[1]);
  if (track(ends[0], {.kind = Kind::kChannel, .attached = {writer, -1}})) return ends[0];
  const int error = errno;
  close(ends[0]);
  close_hidden(writer);
  return refuse(error);
}

// The attributes of an ioctl, in the program's memory.
struct Attributes {
  ib_uverbs_attr* first;
  unsigned count;

  ib_uverbs_attr* find(uint16_t id) const {
    for (unsigned i = 0; i < count; ++i) {
      if (first[i].attr_id == id) return &first[i];
    }
    return nullptr;
  }
  // The attribute contains a constant itself, as 64 bits.
  bool constant(uint16_t id, uint64_t& value) const {
    const ib_uverbs_attr* found = find(id);
    if (found == nullptr || found->len > sizeof(value)) return false;
    value = 0;
    memcpy(&value, &found->data, found->len);
    return true;
  }
  // Copies as many bytes as fit.
  bool answer(uint16_t id, const void* bytes, size_t size) const {
    ib_uverbs_attr* found = find(id);
    if (found == nullptr) return false;
    memcpy(reinterpret_cast<void*>(static_cast<uintptr_t>(found->data)), bytes, found->len < size ? found->len : size);
    found->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
    return true;
  }
};

ib_uverbs_gid_entry entry_of(const soft::DeviceInfo& device, uint32_t index) {
  ib_uverbs_gid_entry entry = {};
  memcpy(entry.gid, device.gids[index].gid, sizeof(entry.gid));
  entry.gid_index = index;
  entry.port_num = 1;
  entry.gid_type = static_cast<uint32_t>(device.gids[index].type);
  entry.netdev_ifindex = device.gids[index].netdev_index;
  return entry;
}

int query_gid_table(const soft::DeviceInfo& device, const Attributes& attributes) {
  uint64_t entry_size = 0;
  uint64_t flags = 0;
  ib_uverbs_attr* entries = attributes.find(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
  if (!attributes.constant(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, entry_size) || entry_size == 0 ||
      !attributes.constant(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, flags) || flags != 0 || entries == nullptr) {
    return refuse(EINVAL);
  }
  const uint64_t room = entries->len / entry_size;
  auto* out = reinterpret_cast<unsigned char*>(static_cast<uintptr_t>(entries->data));
  uint64_t count = 0;
  for (uint32_t i = 0; i < soft::kMaxGids; ++i) {
    if (device.gids[i].valid == 0) continue;
    if (count == room) return refuse(EINVAL);
    const ib_uverbs_gid_entry entry = entry_of(device, i);
    memset(out, 0, entry_size);
    memcpy(out, &entry, entry_size < sizeof entry ? entry_size : sizeof entry);
    out += entry_size;
    ++count;
  }
  entries->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
  return attributes.answer(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, &count, sizeof count) ? 0 : refuse(EINVAL);
}

int query_gid_entry(const soft::DeviceInfo& device, const Attributes& attributes) {
  uint64_t port = 0;
  uint64_t index = 0;
  uint64_t flags = 0;
  if (!attributes.constant(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, port) || port != 1 ||
      !attributes.constant(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, index) || index >= soft::kMaxGids ||
      !attributes.constant(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, flags) || flags != 0) {
    return refuse(EINVAL);
  }
  if (device.gids[index].valid == 0) return refuse(ENODATA);
  const ib_uverbs_gid_entry entry = entry_of(device, static_cast<uint32_t>(index));
  return attributes.answer(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, &entry, sizeof entry) ? 0 : refuse(EINVAL);
}

// A context that is being imported.
struct Import {
  std::atomic<int> cmd_fd{-1};  // -1: a free place
  std::atomic<int> async_fd{-1};
};
constinit Import imports[64];

// The number of a descriptor is one of this process, so the call comes from the thread that imports the context.
int alloc_async_fd(int cmd_fd, const Attributes& attributes) {
  ib_uverbs_attr* handle = attributes.find(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE);
  if (handle == nullptr) return refuse(EINVAL);
  for (Import& each : imports) {
    if (each.cmd_fd.load() != cmd_fd) continue;
    const int async_fd = each.async_fd.exchange(-1);
    if (async_fd < 0) continue;
    handle->data_s64 = async_fd;
    handle->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
    each.cmd_fd.store(-1);
    return 0;
  }
  return refuse(EOPNOTSUPP);
}

// A program asks with a driver's number to find out whether that driver has the device.
int query_port(const Attributes& attributes, uint32_t driver) {
  if (driver != soft::kDriverId) return refuse(EINVAL);
  ib_uverbs_query_port_resp_ex response = {};
  response.legacy_resp.state = 4;  // active
  response.legacy_resp.gid_tbl_len = soft::kMaxGids;
  response.legacy_resp.pkey_tbl_len = 1;
  response.legacy_resp.link_layer = 2;  // Ethernet
  return attributes.answer(UVERBS_ATTR_QUERY_PORT_RESP, &response, sizeof response) ? 0 : refuse(EINVAL);
}

}  // namespace

ssize_t uverbs_write(const void* bytes, size_t size) {
  ib_uverbs_cmd_hdr header;
  ib_uverbs_create_comp_channel request;
  if (size < sizeof header) return refuse(EINVAL);
  memcpy(&header, bytes, sizeof header);
  if (size_t{header.in_words} * 4 != size) return refuse(EINVAL);
  if (header.command != IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL) return refuse(EOPNOTSUPP);
  ib_uverbs_create_comp_channel_resp response = {};
  if (size < sizeof header + sizeof request || size_t{header.out_words} * 4 < sizeof response) return refuse(ENOSPC);
  memcpy(&request, static_cast<const unsigned char*>(bytes) + sizeof header, sizeof request);
  const int channel = open_channel();
  if (channel < 0) return -1;
  response.fd = static_cast<uint32_t>(channel);
  memcpy(reinterpret_cast<void*>(static_cast<uintptr_t>(request.response)), &response, sizeof response);
  return static_cast<ssize_t>(size);
}

bool answer_async_fd(int cmd_fd, int async_fd) {
  for (Import& each : imports) {
    int free = -1;
    // A place of the same descriptor is left from an import that has failed.
    if (each.cmd_fd.load() != cmd_fd && !each.cmd_fd.compare_exchange_strong(free, cmd_fd)) continue;
    each.async_fd.store(async_fd);
    return true;
  }
  return false;
}

int uverbs_ioctl(int fd, uint32_t index, unsigned long request, void* argument) {
  if (request != RDMA_VERBS_IOCTL) return refuse(ENOTTY);
  auto* header = static_cast<ib_uverbs_ioctl_hdr*>(argument);
  if (header == nullptr) return refuse(EFAULT);
  if (header->length != sizeof(*header) + header->num_attrs * sizeof(ib_uverbs_attr)) return refuse(EINVAL);
  const Attributes attributes = {.first = header->attrs, .count = header->num_attrs};
  if (header->object_id == UVERBS_OBJECT_ASYNC_EVENT && header->method_id == UVERBS_METHOD_ASYNC_EVENT_ALLOC)
    return alloc_async_fd(fd, attributes);
  // libibverbs then uses write(), which only we answer.
  if (header->object_id != UVERBS_OBJECT_DEVICE) return refuse(EPROTONOSUPPORT);
  switch (header->method_id) {
    case UVERBS_METHOD_QUERY_GID_TABLE:
    case UVERBS_METHOD_QUERY_GID_ENTRY: {
      soft::DeviceInfo device;
      // As the kernel for a device that has gone.
      if (!get_device(index, device)) return refuse(errno == ENODEV ? EIO : errno);
      return header->method_id == UVERBS_METHOD_QUERY_GID_TABLE ? query_gid_table(device, attributes)
                                                                : query_gid_entry(device, attributes);
    }
    case UVERBS_METHOD_QUERY_PORT:
      return query_port(attributes, header->driver_id);
    default:
      return refuse(EPROTONOSUPPORT);
  }
}

}  // namespace dapple::doors

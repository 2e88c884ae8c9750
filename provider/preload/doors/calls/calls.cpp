// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions that use, copy and close descriptors.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>

#include "provider/member/open_questions.hpp"
#include "provider/preload/doors/explanations.hpp"
#include "provider/preload/doors/listing.hpp"
#include "provider/preload/doors/netlink/netlink.hpp"
#include "provider/preload/doors/process/descriptors.hpp"
#include "provider/preload/doors/process/real.hpp"
#include "provider/preload/doors/rdma_cm.hpp"
#include "provider/preload/doors/uverbs.hpp"
#include "provider/preload/doors/wrapper.hpp"
#include "provider/system/doors.hpp"

using namespace dapple::doors;

namespace {

constexpr size_t kLongestRequest = 16384;

// The program must not see a hidden descriptor, so it cannot close one either.
bool is_hidden(int fd) {
  Door door;
  if (!find(fd, Kind::kHidden, door)) return false;
  errno = EBADF;
  return true;
}

ssize_t send_request(int fd, const void* bytes, size_t size) {
  return netlink_request(fd, bytes, size) == 0 ? static_cast<ssize_t>(size) : -1;
}

int channel_writer(int channel) {
  Door door;
  return find(channel, Kind::kChannel, door) ? door.attached[0] : -1;
}

// Closes the descriptors in first..last that /proc lists. False if /proc has no list.
bool close_listed(unsigned first, unsigned last) {
  const int folder = real.open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  alignas(dirent64) char entries[2048];
  // Closing descriptors while the folder is read can skip entries: read it until a pass closes nothing.
  for (bool closed = true; closed;) {
    closed = false;
    lseek(folder, 0, SEEK_SET);
    for (ssize_t size; (size = getdents64(folder, entries, sizeof entries)) > 0;) {
      for (ssize_t at = 0; at < size;) {
        const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
        at += entry->d_reclen;
        const char* end = entry->d_name + strlen(entry->d_name);
        unsigned fd = 0;
        if (std::from_chars(entry->d_name, end, fd).ptr != end || fd < first || fd > last) continue;
        if (static_cast<int>(fd) != folder) closed |= real.close(static_cast<int>(fd)) == 0;
      }
    }
  }
  real.close(folder);
  return true;
}

// Like the C library's closefrom(), this also works without close_range(): a kernel before 5.9 lacks it, and a filter
// of system calls may forbid it.
int close_surely(unsigned first, unsigned last) {
  if (real.close_range(first, last, 0) == 0 || close_listed(first, last)) return 0;
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  for (unsigned fd = first; fd <= last && fd < limit.rlim_cur; ++fd) real.close(static_cast<int>(fd));
  return 0;
}

}  // namespace

DAPPLE_WRAPPER(close, int wrapped_close(int fd)) {
  if (maybe_ours(fd)) {
    if (is_hidden(fd)) return -1;
    forget(fd);
  }
  return real.close(fd);
}

DAPPLE_WRAPPER(close_range, int wrapped_close_range(unsigned first, unsigned last, int flags)) {
  // With flags the call closes nothing, or only closes descriptors in the caller's own table.
  if (flags != 0 || first > last) return real.close_range(first, last, flags);
  return close_pieces(first, last, [](unsigned from, unsigned to) { return real.close_range(from, to, 0); });
}

DAPPLE_WRAPPER(closefrom, void wrapped_closefrom(int first)) {
  const int saved = errno;
  close_pieces(first < 0 ? 0 : static_cast<unsigned>(first), UINT_MAX, close_surely);
  errno = saved;
}

DAPPLE_WRAPPER(dup, int wrapped_dup(int fd)) {
  const int copy = real.dup(fd);
  if (copy >= 0) copied(fd, copy);
  return copy;
}

DAPPLE_WRAPPER(dup2, int wrapped_dup2(int fd, int number)) {
  if (is_hidden(number)) {
    errno = EBUSY;
    return -1;
  }
  const int copy = real.dup2(fd, number);
  if (copy >= 0) copied(fd, copy);
  return copy;
}

DAPPLE_WRAPPER(dup3, int wrapped_dup3(int fd, int number, int flags)) {
  if (is_hidden(number)) {
    errno = EBUSY;
    return -1;
  }
  const int copy = real.dup3(fd, number, flags);
  if (copy >= 0) copied(fd, copy);
  return copy;
}

DAPPLE_WRAPPER(fcntl, int wrapped_fcntl(int fd, int command, ...)) {
  va_list list;
  va_start(list, command);
  void* argument = va_arg(list, void*);
  va_end(list);
  const int result = real.fcntl(fd, command, argument);
  if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && result >= 0) copied(fd, result);
  return result;
}
DAPPLE_WRAPPER_ALIAS(fcntl64, fcntl, int wrapped_fcntl64(int fd, int command, ...));

DAPPLE_WRAPPER(write, ssize_t wrapped_write(int fd, const void* bytes, size_t size)) {
  Door door;
  if (find_unchecked(fd, door) && door.kind == Kind::kRdmaCm) {
    const ssize_t written = rdma_cm_write(fd, door, bytes, size);
    if (written != kNoDoor) return written;
  }
  if (maybe_ours(fd) && find(fd, door)) {
    if (door.kind == Kind::kUverbs) return uverbs_write(bytes, size);
    if (door.kind == Kind::kNetlink) return send_request(fd, bytes, size);
  }
  return real.write(fd, bytes, size);
}

DAPPLE_WRAPPER(ioctl, int wrapped_ioctl(int fd, unsigned long request, ...)) {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  Door door;
  if (find(fd, Kind::kUverbs, door)) return uverbs_ioctl(fd, door.device, request, argument);
  return real.ioctl(fd, request, argument);
}

DAPPLE_WRAPPER(socket, int wrapped_socket(int domain, int type, int protocol)) {
  if (domain == AF_NETLINK && protocol == NETLINK_RDMA) return netlink_socket(type);
  return real.socket(domain, type, protocol);
}

DAPPLE_WRAPPER(send, ssize_t wrapped_send(int fd, const void* bytes, size_t size, int flags)) {
  Door door;
  if (find(fd, Kind::kNetlink, door)) return send_request(fd, bytes, size);
  return real.send(fd, bytes, size, flags);
}

DAPPLE_WRAPPER(sendto, ssize_t wrapped_sendto(int fd, const void* bytes, size_t size, int flags, const sockaddr* to,
                                              socklen_t to_size)) {
  Door door;
  if (find(fd, Kind::kNetlink, door)) return send_request(fd, bytes, size);
  return real.sendto(fd, bytes, size, flags, to, to_size);
}

DAPPLE_WRAPPER(sendmsg, ssize_t wrapped_sendmsg(int fd, const msghdr* message, int flags)) {
  Door door;
  if (!find(fd, Kind::kNetlink, door)) return real.sendmsg(fd, message, flags);
  alignas(nlmsghdr) unsigned char bytes[kLongestRequest];
  size_t size = 0;
  for (size_t i = 0; i < message->msg_iovlen; ++i) {
    const iovec& piece = message->msg_iov[i];
    if (piece.iov_len > sizeof bytes - size) {
      errno = EMSGSIZE;
      return -1;
    }
    memcpy(bytes + size, piece.iov_base, piece.iov_len);
    size += piece.iov_len;
  }
  return send_request(fd, bytes, size);
}

extern "C" {
[[gnu::visibility("default")]] extern const dapple::soft::Doors dapple_doors;
const dapple::soft::Doors dapple_doors = {
    .version = dapple::soft::kDoorsVersion,
    .channel_writer = channel_writer,
    .hide = hide,
    .close_hidden = close_hidden,
    .when_listing = when_listing,
    .answer_async_fd = answer_async_fd,
    .explain_cm = explain_cm,
    .when_cm_begins = when_cm_begins,
    .asks_dappled = [] { return dapple::soft::open_questions.load(std::memory_order_relaxed) != 0; },
};
}

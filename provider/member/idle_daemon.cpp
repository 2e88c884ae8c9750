// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/member/idle_daemon.hpp"

#include <errno.h>
#include <poll.h>

#include <cstddef>
#include <span>

#include "provider/common/clock.hpp"
#include "provider/protocol/messages.hpp"
#include "provider/protocol/unix_message.hpp"

namespace dapple::soft {
namespace {

constexpr uint64_t kPatienceMs = 1000;

// Waits for a message or the end of the connection.
bool wait_until(int socket, uint64_t end) {
  pollfd waiting = {socket, POLLIN, 0};
  int count = 0;
  do {
    const uint64_t now = now_ms();
    count = poll(&waiting, 1, now < end ? static_cast<int>(end - now) : 0);
  } while (count < 0 && errno == EINTR);
  return count > 0;
}

}  // namespace

bool idle_daemon_ends(int socket) {
  const uint64_t end = now_ms() + kPatienceMs;
  HeaderOnly request;
  if (const int error = send_message(socket, seal(request, static_cast<uint16_t>(MessageKind::kStatus)), {});
      error != 0)
    return error == EPIPE || error == ECONNRESET;
  std::byte room[kMaxMessageSize];
  while (wait_until(socket, end)) {
    const ssize_t size = receive_message(socket, room);
    if (size == 0 || size == -ECONNRESET) return true;
    constexpr uint16_t kAnswer = static_cast<uint16_t>(MessageKind::kStatus) | kReplyBit;
    StatusReply status;
    if (size < 0 || !well_formed(std::span(room).first(static_cast<size_t>(size)), kAnswer, status)) return false;
    if (status.members != 0) return false;
  }
  return false;
}

}  // namespace dapple::soft

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// fake-dappled: answers the messages of rdma_cm as the test that has it started orders (fake_dappled.hpp).
#include "tests/native/doors/fake_dappled.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "provider/protocol/unix_message.hpp"

using namespace dapple::soft;
using dapple::tests::FakeState;

namespace {

FakeState* state;

struct Channel {
  OwnedFd end;
  OwnedFd journal;
  uint32_t number = 0;
  int events = 0;
};
std::vector<Channel> channels;

CmChannelName name_of(uint32_t number) {
  return {.key = uint64_t{0x1234567800000000} + number, .number = number, .reserved = 0};
}

Channel* find(const CmChannelName& name) {
  for (Channel& channel : channels) {
    if (channel.number == name.number && name.key == name_of(name.number).key) return &channel;
  }
  return nullptr;
}

template <class Reply>
void answer(int to, MessageKind kind, Reply& reply, std::span<const int> descriptors = {}) {
  const uint16_t number = static_cast<uint16_t>(kind) | kReplyBit;
  const auto message = seal(reply, number);
  if (state->other_version != 0) reply.header.version++;
  send_message(to, message, descriptors);
}

void refuse(int to, MessageKind kind, int error) {
  ErrorReply reply;
  reply.header.error = static_cast<uint32_t>(error);
  strcpy(reply.line, "fake-dappled refuses");
  answer(to, kind, reply);
}

// The journal holds the channel's number.
void open_channel(int to, Descriptors& descriptors) {
  Channel channel;
  channel.number = static_cast<uint32_t>(state->opens++);
  channel.end = std::move(descriptors.fds[0]);
  channel.journal = OwnedFd(memfd_create("journal", MFD_CLOEXEC));
  if (write(channel.journal.get(), &channel.number, sizeof channel.number) != sizeof channel.number) abort();
  CmOpenReply reply;
  reply.channel = name_of(channel.number);
  const int journal = channel.journal.get();
  channels.push_back(std::move(channel));
  answer(to, MessageKind::kCmOpen, reply, {&journal, 1});
}

void restore_channel(int to, Descriptors& descriptors) {
  Channel channel;
  if (const int error = state->refuse_restore.exchange(0); error != 0)
    return refuse(to, MessageKind::kCmRestore, error);
  if (descriptors.count != 2 ||
      pread(descriptors.fds[1].get(), &channel.number, sizeof channel.number, 0) != sizeof channel.number)
    return refuse(to, MessageKind::kCmRestore, EINVAL);
  CmRestoreReply reply;
  reply.channel = name_of(channel.number);
  if (find(reply.channel) == nullptr) {
    channel.end = std::move(descriptors.fds[0]);
    channel.journal = std::move(descriptors.fds[1]);
    channels.push_back(std::move(channel));
    state->restores++;
  }
  answer(to, MessageKind::kCmRestore, reply);
}

void add_answer(CmCommandReply& reply, uint32_t id) {
  const auto length = static_cast<uint32_t>(state->ahead.exchange(0));
  if (length == 0) return;
  const CmAnswerAhead front = {.id = id, .command = RDMA_USER_CM_CMD_QUERY_ROUTE, .length = length};
  uint8_t* place = reply.response + cm_aligned(reply.length);
  memcpy(place, &front, sizeof front);
  memset(place + sizeof front, dapple::tests::kAheadByte, cm_aligned(length));
  reply.ahead = static_cast<uint32_t>(sizeof front + cm_aligned(length));
}

void fill(CmCommandReply& reply, const rdma_ucm_cmd_hdr& header, Channel& channel) {
  static uint32_t ids = 0;
  if (header.cmd == RDMA_USER_CM_CMD_GET_EVENT) {
    rdma_ucm_event_resp event = {};
    event.id = channel.number;
    event.status = static_cast<uint32_t>(channel.events--);
    reply.length = std::min<uint32_t>(sizeof event, header.out);
    memcpy(reply.response, &event, reply.length);
    add_answer(reply, event.id);
  } else if (header.cmd == RDMA_USER_CM_CMD_DESTROY_ID || header.cmd == RDMA_USER_CM_CMD_MIGRATE_ID) {
    const rdma_ucm_destroy_id_resp response = {.events_reported = 3};
    reply.length = sizeof response;
    memcpy(reply.response, &response, sizeof response);
  } else if (header.out >= sizeof(rdma_ucm_create_id_resp)) {
    const rdma_ucm_create_id_resp response = {.id = ++ids};
    reply.length = sizeof response;
    memcpy(reply.response, &response, sizeof response);
  }
}

void command(int to, const CmCommandRequest& request) {
  state->channel = request.channel;
  state->source = request.source;
  memset(state->command, 0, sizeof state->command);
  memcpy(state->command, request.command, request.length);
  state->length = request.length;
  state->commands++;
  if (state->die.exchange(0) != 0) _exit(0);
  CmCommandReply reply;
  rdma_ucm_cmd_hdr header;
  memcpy(&header, request.command, sizeof header);
  Channel* channel = find(request.channel);
  const int error = state->fail.exchange(0);
  if (channel == nullptr || error != 0) {
    reply.header.error = static_cast<uint32_t>(channel == nullptr ? EBADF : error);
  } else if (header.cmd == RDMA_USER_CM_CMD_GET_EVENT &&
             (state->forget_event.exchange(0) != 0 || channel->events == 0)) {
    reply.header.error = EAGAIN;
  } else {
    reply.removed = static_cast<uint32_t>(state->removed.exchange(0));
    fill(reply, header, *channel);
  }
  answer(to, MessageKind::kCmCommand, reply);
}

// False at the end of a connection.
bool serve(int from) {
  alignas(8) std::byte room[kMaxMessageSize];
  Descriptors descriptors;
  const ssize_t size = receive_message(from, room, descriptors);
  if (size <= 0) return false;
  const std::span<const std::byte> bytes(room, static_cast<size_t>(size));
  MessageHeader header;
  memcpy(&header, room, sizeof header);
  const auto kind = static_cast<MessageKind>(header.kind);
  CmCommandRequest request;
  if (kind == MessageKind::kCmOpen && descriptors.count == 1) {
    open_channel(from, descriptors);
  } else if (kind == MessageKind::kCmRestore) {
    restore_channel(from, descriptors);
  } else if (kind == MessageKind::kCmCommand && well_formed(bytes, header.kind, request)) {
    command(from, request);
  } else {
    refuse(from, kind, ENOSYS);
  }
  return true;
}

void post_event() {
  const int to = state->post_to.exchange(0);
  Channel* channel = to == 0 ? nullptr : find(name_of(static_cast<uint32_t>(to - 1)));
  if (channel == nullptr) return;
  channel->events++;
  if (send(channel->end.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1) abort();
}

[[noreturn]] void run(int listener) {
  std::vector<int> members;
  for (int alone = 0; alone < 300; alone++) {
    if (!members.empty() || !channels.empty()) alone = 0;
    std::vector<pollfd> waiting = {{listener, POLLIN, 0}};
    for (const int member : members) waiting.push_back({member, POLLIN, 0});
    for (const Channel& channel : channels) waiting.push_back({channel.end.get(), 0, 0});
    poll(waiting.data(), waiting.size(), 1);
    for (size_t i = 0; i < channels.size();) {
      if ((waiting[1 + members.size() + i].revents & POLLHUP) == 0) {
        i++;
        continue;
      }
      channels.erase(channels.begin() + static_cast<long>(i));
      waiting.erase(waiting.begin() + static_cast<long>(1 + members.size() + i));
      state->hangups++;
    }
    post_event();
    for (size_t i = members.size(); i > 0; i--) {
      if (waiting[i].revents == 0 || serve(members[i - 1])) continue;
      close(members[i - 1]);
      members.erase(members.begin() + static_cast<long>(i - 1));
    }
    if (waiting[0].revents != 0) {
      members.push_back(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
      state->connections++;
    }
  }
  _exit(0);
}

}  // namespace

int main() {
  const char* path = getenv("FAKE_DAPPLED_STATE");
  const int file = path == nullptr ? -1 : open(path, O_RDWR | O_CLOEXEC);
  void* page = mmap(nullptr, sizeof(FakeState), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file < 0 || page == MAP_FAILED) return 1;
  state = static_cast<FakeState*>(page);
  sockaddr_un address;
  const socklen_t size = abstract_address(kDaemonName, address);
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fork() != 0) _exit(0);
  alarm(60);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    // Another fake-dappled was faster.
    return errno == EADDRINUSE && write(3, "R", 1) == 1 ? 0 : 1;
  }
  if (listen(listener, 64) != 0) return 1;
  state->process = getpid();
  state->starts++;
  if (write(3, "R", 1) != 1) return 1;
  close(3);
  run(listener);
}

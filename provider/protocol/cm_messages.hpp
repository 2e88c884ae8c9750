// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Messages with which dappled serves a program as the kernel does through /dev/infiniband/rdma_cm. They follow the
// rules of messages.hpp.
//
// An open rdma_cm file is a channel. The program's descriptor is one end of a SOCK_SEQPACKET pair that the door makes;
// dappled holds the other end, and the program keeps a copy of that one. So:
// - dappled sends a message for each event that waits, and the descriptor polls readable. The message is the event
//   itself (CmEvent), or one byte. After a byte the reader asks for the event by RDMA_USER_CM_CMD_GET_EVENT. EAGAIN:
//   the event has gone with its id; take the next. GET_EVENT does not return an event of which a CmEvent was sent.
// - fork, dup and SCM_RIGHTS share a channel as they share a file. When the last copy of the program's end is closed,
//   dappled's end reports POLLHUP, and dappled destroys the channel's ids. Its peers learn at once.
// - when dappled dies, the program's end stays open, as the program holds the other end too, and hands it to the next
//   dappled.
// Commands go over a process' own connection to dappled. A child of fork() connects anew; a channel is named by its
// number and key, which only processes that have the channel know. dappled answers each command at once and never waits
// for a peer.
#pragma once

#include <string.h>

#include <atomic>
#include <span>

#include "provider/protocol/messages.hpp"

namespace dapple::soft {

struct CmChannelName {
  uint64_t key = 0;  // random
  uint32_t number = 0;
  uint32_t reserved = 0;
};

// The beginning of a channel's journal, which dappled and the channel's processes have mapped.
struct CmFront {
  uint64_t mark = 0;
  CmChannelName name;
  // Processes write this: the ticket of the newest CmEvent that one of them has taken, and above it the epoch, which
  // changes with each dappled. They exchange the whole word, and only while it has the event's epoch.
  std::atomic<uint64_t> taken{0};
  std::atomic<uint32_t> commands{0};      // the number of commands on the channel that may change an id
  std::atomic<uint32_t> takes_events{0};  // 1: a process has mapped this, so CmEvent may come
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(CmFront) == 40);

// kCmOpen: with one descriptor, dappled's end of the pair. The reply carries one: the channel's journal, a memfd in
// which dappled notes listeners and connections. The program keeps it and uses nothing but its CmFront.
struct CmOpenReply {
  MessageHeader header;
  CmChannelName channel;
};

// kCmRestore: HeaderOnly to the dappled that follows one that died, with two descriptors, dappled's end of the pair and
// the journal. The reply is a CmRestoreReply without descriptors. Listeners listen again and connections stay; ids that
// were in a handshake report RDMA_CM_EVENT_UNREACHABLE or RDMA_CM_EVENT_CONNECT_ERROR. A listener whose port another
// program has got meanwhile reports RDMA_CM_EVENT_DEVICE_REMOVAL. The channel's name and the ids' numbers stay the
// same. A dappled that has the channel does nothing. One that cannot take over the whole channel refuses.
struct CmRestoreReply {
  MessageHeader header;
  CmChannelName channel;
  uint32_t lost_listeners = 0;  // that listen no more
  uint16_t lost_port = 0;       // of one of them
  uint16_t reserved = 0;
};

inline constexpr size_t kCmCommandSize = 1024;  // longer than any of <rdma/rdma_user_cm.h>
inline constexpr size_t kCmReplySize = 1536;    // longer than any answer and the answers that come along with it

// kCmCommand: bytes as the program writes them to the file, from rdma_ucm_cmd_hdr on. The pointer `response` in them
// means nothing to dappled, and SET_OPTION's `optval` means nothing either: the option's `optlen` bytes follow the
// command's struct. `token` differs from command to command, and is not 0. It is the same when a command is asked again
// because dappled died before its answer came: the next dappled sees in the journal what has been done. MIGRATE_ID's
// `fd` means nothing: `source` names that channel. The door has checked the lengths: the bytes of a command's struct
// are all there. The message ends behind the `length` bytes.
struct CmCommandRequest {
  MessageHeader header;
  CmChannelName channel;
  CmChannelName source;
  uint32_t length = 0;
  uint32_t token = 0;
  alignas(8) uint8_t command[kCmCommandSize];
};

// header.error is the errno of the program's write(). If it is 0, `response` has the bytes for the program's response
// buffer: at most as many as the command's `out` allowed. `removed` counts the unread events that this command has
// taken away: DESTROY_ID and LEAVE_MCAST remove them, MIGRATE_ID moves them. The door takes as many bytes off the
// descriptor (MIGRATE_ID: off the source's) without waiting for them, so that it does not poll readable for nothing.
// `removed_events` counts those of which a CmEvent was sent; the door takes all CmEvents of the id off. If one of the
// two is not 0, dappled sends nothing on that channel until kCmResume, or until the connection ends, so that the door
// can keep the others in their order.
//
// librdmacm asks about an id as soon as it has an event of it. So the answers to these questions come along with some
// events: `ahead` bytes of CmAnswerAhead follow the response, from the next offset divisible by 8. The answers are
// valid until this process gives a command about that id, or reads another event of it. The id may change by itself
// earlier, but a program that had asked at once would have the same answers.
//
// The message ends after the last of these bytes.
struct CmCommandReply {
  MessageHeader header;
  uint32_t length = 0;
  uint32_t removed = 0;
  uint32_t ahead = 0;
  uint32_t removed_events = 0;
  alignas(8) uint8_t response[kCmReplySize];
};

// kCmResume.
struct CmResumeRequest {
  MessageHeader header;
  CmChannelName channel;
};

// An event in a channel's message: `reply` is the same as for RDMA_USER_CM_CMD_GET_EVENT with room for the whole
// answer. The reader enters `ticket` into CmFront::taken, unless that has another epoch: then the message counts as one
// byte. The answers that come along are of use only if CmFront::commands still is `commands`.
struct CmEvent {
  uint32_t epoch = 0;
  uint32_t ticket = 0;
  uint32_t commands = 0;
  uint32_t reserved = 0;
  CmCommandReply reply;
};

// dappled's answer to QUERY_ROUTE, or to INIT_QP_ATTR for the queue pair's state `qp_state`, about the id `id`, as a
// program with room for the whole answer would get it at once. `length` bytes follow, then zeros up to an offset
// divisible by 8.
struct CmAnswerAhead {
  uint32_t id = 0;
  uint16_t command = 0;
  uint8_t qp_state = 0;
  uint8_t reserved = 0;
  uint32_t length = 0;
  uint32_t more = 0;
};

constexpr size_t cm_aligned(size_t size) {
  return (size + 7) & ~size_t{7};
}

static_assert(offsetof(CmCommandRequest, command) == 16 + 2 * 16 + 8);
static_assert(offsetof(CmCommandReply, response) == 16 + 16);
static_assert(sizeof(CmAnswerAhead) == 16 && offsetof(CmEvent, reply) == 16);
static_assert(sizeof(CmCommandReply) <= kMaxMessageSize);

inline std::span<const uint8_t> answers_ahead(const CmCommandReply& reply) {
  return std::span<const uint8_t>(reply.response).subspan(cm_aligned(reply.length), reply.ahead);
}

// The number of bytes to send or receive, or 0 if the message claims to be longer than its struct.
inline size_t cm_size(const CmCommandRequest& request) {
  const bool fits = request.length <= sizeof request.command;
  return fits ? offsetof(CmCommandRequest, command) + request.length : 0;
}

inline size_t cm_size(const CmCommandReply& reply) {
  if (reply.length > sizeof reply.response) return 0;
  const size_t length = reply.ahead == 0 ? reply.length : cm_aligned(reply.length);
  const bool fits = length <= sizeof reply.response && reply.ahead <= sizeof reply.response - length;
  return fits ? offsetof(CmCommandReply, response) + length + reply.ahead : 0;
}

// Like the functions of unix_message.hpp, for messages that contain their own length.
template <class Message>
concept CmMessage = requires(const Message& message) {
  cm_size(message);
};

template <CmMessage Message>
bool well_formed(std::span<const std::byte> bytes, uint16_t kind, Message& message) {
  constexpr size_t kRoom = sizeof(message.header) + sizeof(message.length);
  if (bytes.size() < kRoom || bytes.size() > sizeof(Message)) return false;
  memcpy(static_cast<void*>(&message), bytes.data(), bytes.size());
  const MessageHeader& header = message.header;
  return header.magic == kMagic && header.version == kProtocolVersion && header.kind == kind &&
         header.size == bytes.size() && cm_size(message) == bytes.size();
}

template <CmMessage Message>
std::span<const std::byte> seal(Message& message, uint16_t kind) {
  message.header.kind = kind;
  message.header.size = static_cast<uint32_t>(cm_size(message));
  return {reinterpret_cast<const std::byte*>(&message), message.header.size};
}

}  // namespace dapple::soft

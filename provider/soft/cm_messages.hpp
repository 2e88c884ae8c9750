// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Messages with which dappled serves a program as the kernel does through /dev/infiniband/rdma_cm. They follow the
// rules of messages.hpp.
//
// An open rdma_cm file is a channel. The program's descriptor is one end of a SOCK_SEQPACKET pair that the door makes;
// dappled holds the other end, and the program keeps a copy of that one. So:
// - dappled sends a message of one byte for each event that waits, and the descriptor polls readable. The reader takes
//   a byte, then asks for the event by RDMA_USER_CM_CMD_GET_EVENT. EAGAIN: the event has gone with its id; take the
//   next.
// - fork, dup and SCM_RIGHTS share a channel as they share a file. When the last copy of the program's end is closed,
//   dappled's end reports POLLHUP, and dappled destroys the channel's ids. Its peers learn at once.
// - when dappled dies, the program's end stays open, as the program holds the other end too, and hands it to the next
//   dappled.
// Commands go over a process' own connection to dappled. A child of fork() connects anew; a channel is named by its
// number and key, which only those who have the channel know. dappled answers each command at once and never waits for
// a peer.
#ifndef DAPPLE_PROVIDER_SOFT_CM_MESSAGES_HPP
#define DAPPLE_PROVIDER_SOFT_CM_MESSAGES_HPP

#include "provider/soft/messages.hpp"

namespace dapple::soft {

struct CmChannelName {
  uint64_t key = 0;  // random
  uint32_t number = 0;
  uint32_t reserved = 0;
};

// kCmOpen: with one descriptor, dappled's end of the pair. The reply carries one: the channel's journal, a memfd in
// which dappled notes listeners and connections. The program keeps it and never reads it.
struct CmOpenReply {
  MessageHeader header;
  CmChannelName channel;
};

// kCmRestore: HeaderOnly to the dappled that follows one that died, with two descriptors, dappled's end of the pair and
// the journal. The reply is a CmOpenReply without descriptors. Listeners listen again and connections stay; ids that
// were in a handshake report RDMA_CM_EVENT_UNREACHABLE or RDMA_CM_EVENT_CONNECT_ERROR. The channel's
// name and the ids' numbers stay the same. A dappled that has the channel does nothing.

inline constexpr size_t kCmCommandSize = 1024;  // longer than any of <rdma/rdma_user_cm.h>

// kCmCommand: bytes as the program writes them to the file, from rdma_ucm_cmd_hdr on. The pointer `response` in them
// means nothing to dappled, and SET_OPTION's `optval` means nothing either: the option's `optlen` bytes follow the
// command's struct. `token` is another one for each command, and not 0. It is the same when a command is asked again
// because dappled died before its answer came: the next dappled sees in the journal what has been done. MIGRATE_ID's
// `fd` means nothing: `source` names that channel. The door has checked the lengths: the bytes of a command's struct
// are all there.
struct CmCommandRequest {
  MessageHeader header;
  CmChannelName channel;
  CmChannelName source;
  uint32_t length = 0;
  uint32_t token = 0;
  alignas(8) uint8_t command[kCmCommandSize] = {};
};

// header.error is the errno of write(). Else `response` is what the program finds in its response buffer: at most as
// much as the command's `out` allowed. `removed` counts the unread events that this command has taken away: DESTROY_ID
// and LEAVE_MCAST remove them, MIGRATE_ID moves them. The door takes as many bytes off the descriptor (MIGRATE_ID: off
// the source's) without waiting for them, so that it does not poll readable for nothing.
struct CmCommandReply {
  MessageHeader header;
  uint32_t length = 0;
  uint32_t removed = 0;
  alignas(8) uint8_t response[kCmCommandSize] = {};
};

static_assert(sizeof(CmCommandRequest) == 16 + 2 * 16 + 8 + kCmCommandSize);
static_assert(sizeof(CmCommandReply) == 16 + 8 + kCmCommandSize);

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_CM_MESSAGES_HPP

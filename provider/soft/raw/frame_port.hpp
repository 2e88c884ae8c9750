// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The frames of one device: AF_PACKET sockets on its network interface, and the flows that steer arriving frames. The
// raw packet queue pairs of a process that belong to one device share it.
//
// The kernel gives a receiving socket a copy of each frame that the interface receives; its own stack gets the frame,
// too. So there is one only while there is a flow. As in a NIC, the frames that this host sends by the interface to the
// interface's own address or to a group come to the flows, too.
#pragma once

#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "provider/soft/raw/flow_table.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::soft {

// Opens a socket that sends and receives frames. 0, or an errno: EPERM without CAP_NET_RAW.
int open_frames(OwnedFd& made);

class FramePort {
 public:
  // Null without memory.
  static FramePort* create(uint32_t device, uint32_t netdev);
  ~FramePort();

  // The socket sends from now on. 0, or an errno: EOPNOTSUPP on an interface without Ethernet headers.
  int start(OwnedFd& socket);
  // The socket receives from now on. 0, or an errno.
  int listen(OwnedFd& socket);
  // No socket receives from now on. Returns the one that did: with it, the kernel forgets what the interface was to
  // admit for flows.
  OwnedFd end_listening() { return std::move(receiver_); }
  // The socket that receives.
  int fd() const { return receiver_.get(); }
  // The interface takes frames for this flow, which it would leave out otherwise: of a multicast group, of another
  // address, or all. 0, or an errno.
  int admit(const FlowRule& rule, bool wanted);

  // Any thread. As FrameSender::send().
  size_t send(std::span<const iovec> frames, int& error) const;

  // Calls take(frame) for each frame that has arrived, up to some dozens. Returns their number.
  template <typename Take>
  size_t receive(Take take) {
    const size_t count = fetch();
    for (size_t i = 0; i < count; i++) {
      Frame frame;
      const std::span<std::byte> bytes = fetched(i);
      if (!bytes.empty() && parse_frame(bytes, frame)) take(frame);
    }
    return count;
  }
  void close_in_child() {
    sender_.reset();
    receiver_.reset();
  }

  const uint32_t device_index;
  const uint32_t netdev_index;
  // Guarded by the lock of receiving.
  uint32_t users = 0;
  FlowTable flows;
  FramePort* next = nullptr;

 private:
  static constexpr size_t kFramesAtOnce = 32;
  struct Slot;

  FramePort(uint32_t device, uint32_t netdev);
  int bind_to_netdev(const OwnedFd& socket, uint16_t protocol) const;
  // Receives frames. Returns their number.
  size_t fetch();
  // One of them, as it was on the wire; empty if it is lost.
  std::span<std::byte> fetched(size_t number);

  OwnedFd sender_;
  OwnedFd receiver_;
  std::unique_ptr<std::byte[]> bytes_;
  std::unique_ptr<Slot[]> slots_;
  std::unique_ptr<mmsghdr[]> messages_;
};

}  // namespace dapple::soft

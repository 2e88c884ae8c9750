// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The wire of a process that has raw packet queue pairs: with the packets of RoCE it receives Ethernet frames. Other
// processes have the wire below without this one.
#pragma once

#include <stdint.h>

#include <cstddef>
#include <memory>
#include <span>

#include "provider/soft/objects/objects.hpp"
#include "provider/soft/raw/frame_port.hpp"
#include "provider/soft/wire/wire.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::soft {

class FrameTaker {
 public:
  // A frame for this queue pair. It is valid during the call.
  virtual void take_frame(Qp& qp, std::span<const std::byte> frame) = 0;

 protected:
  ~FrameTaker() = default;
};

// Guarded by the lock of receiving, except for the functions of a batch and receive_fd().
//
// The kernel takes milliseconds to close a packet socket, and meanwhile nothing of the process would be received. So
// functions leave a socket that they do not take with the caller, and return those that are needed no longer: the
// caller closes them after the lock.
class FrameWire final : public Wire {
 public:
  FrameWire(Wire& below, FrameTaker& taker) : below_(below), taker_(taker) {}

  // Before everything else. 0, or an errno.
  int open();
  bool is_open() const { return static_cast<bool>(descriptors_); }

  struct Netdev {
    uint32_t device_index;  // of the device on it
    uint32_t index;
  };
  // The queue pair, which has its RawQp, uses the device's frames. `socket` becomes that of the device, if it has none.
  // 0, or an errno.
  int join(Qp& qp, const Netdev& netdev, OwnedFd& socket);
  // It uses them no longer, and has no flow. Returns the port if no queue pair uses it now.
  std::unique_ptr<FramePort> leave(Qp& qp);
  // The flow's queue pair has joined. `socket` receives from now on, if none does. 0, or an errno.
  int add(FlowEntry& flow, OwnedFd& socket);
  // Returns the socket that receives no longer, if the flow was the last one.
  OwnedFd remove(FlowEntry& flow);
  // The same when the program closes the device and leaves its flows.
  OwnedFd forget(const Context& context);

  SendBatch* make_batch() override { return below_.make_batch(); }
  size_t receive(ArrivalSink& sink) override;
  int receive_fd() const override { return descriptors_.get(); }
  void expect_datagrams() override { below_.expect_datagrams(); }
  int join(const uint8_t group[16], uint32_t netdev_index) override { return below_.join(group, netdev_index); }
  int leave(const uint8_t group[16], uint32_t netdev_index) override { return below_.leave(group, netdev_index); }
  bool instrumented() const override { return below_.instrumented(); }
  void close_in_child() override;

 private:
  FramePort* find(const Netdev& netdev);
  int make(const Netdev& netdev, OwnedFd& socket, FramePort*& made);
  // Packets at the descriptor wake up the threads that wait. 0, or an errno.
  int watch(int fd);
  void ignore(int fd);
  int listen(FramePort& port, OwnedFd& socket);
  // If the port has no flow any more, returns the socket that received for it.
  OwnedFd stop_if_unused(FramePort& port);

  Wire& below_;
  FrameTaker& taker_;
  OwnedFd descriptors_;  // an epoll of the wire below, and of the ports that receive
  FramePort* ports_ = nullptr;
};

}  // namespace dapple::soft

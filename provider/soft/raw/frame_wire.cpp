// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/raw/frame_wire.hpp"

#include <errno.h>
#include <sys/epoll.h>

#include <cassert>
#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/soft/raw/raw_objects.hpp"

namespace dapple::soft {

int FrameWire::watch(int fd) {
  epoll_event event = {};
  event.events = EPOLLIN;
  if (epoll_ctl(descriptors_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return 0;
  return errno;  // no refusal: the verb gives the reason
}

void FrameWire::ignore(int fd) {
  epoll_event event = {};
  epoll_ctl(descriptors_.get(), EPOLL_CTL_DEL, fd, &event);
}

int FrameWire::open() {
  OwnedFd made(epoll_create1(EPOLL_CLOEXEC));
  if (!made) return errno;  // no refusal: the verb gives the reason
  made.hide();
  descriptors_ = std::move(made);
  const int error = watch(below_.receive_fd());
  if (error != 0) descriptors_.reset();
  return error;
}

// A device may have the index of one that is gone, and another network interface.
FramePort* FrameWire::find(const Netdev& netdev) {
  FramePort* port = ports_;
  while (port != nullptr && (port->device_index != netdev.device_index || port->netdev_index != netdev.index))
    port = port->next;
  return port;
}

int FrameWire::make(const Netdev& netdev, OwnedFd& socket, FramePort*& made) {
  std::unique_ptr<FramePort> port(FramePort::create(netdev.device_index, netdev.index));
  if (port == nullptr) return ENOMEM;  // no refusal: the verb gives the reason
  if (const int error = port->start(socket); error != 0) return error;
  port->next = ports_;
  made = ports_ = port.release();
  return 0;
}

int FrameWire::join(Qp& qp, const Netdev& netdev, OwnedFd& socket) {
  assert(is_open());
  FramePort* port = find(netdev);
  if (port == nullptr) {
    if (const int error = make(netdev, socket, port); error != 0) return error;
  }
  port->users++;
  qp.raw->port = port;
  return 0;
}

std::unique_ptr<FramePort> FrameWire::leave(Qp& qp) {
  FramePort* port = std::exchange(qp.raw->port, nullptr);
  if (port == nullptr || --port->users != 0) return nullptr;
  assert(port->flows.empty());
  FramePort** at = &ports_;
  while (*at != port) at = &(*at)->next;
  *at = port->next;
  return std::unique_ptr<FramePort>(port);
}

int FrameWire::listen(FramePort& port, OwnedFd& socket) {
  if (const int error = port.listen(socket); error != 0) return error;
  const int error = watch(port.fd());
  if (error != 0) socket = port.end_listening();
  return error;
}

OwnedFd FrameWire::stop_if_unused(FramePort& port) {
  if (!port.flows.empty()) return {};
  ignore(port.fd());
  return port.end_listening();
}

int FrameWire::add(FlowEntry& flow, OwnedFd& socket) {
  FramePort& port = *flow.qp->raw->port;
  int error = port.flows.empty() ? listen(port, socket) : 0;
  if (error != 0) return error;
  error = port.admit(flow.rule, true);
  if (error == 0) port.flows.add(flow);
  if (OwnedFd unneeded = stop_if_unused(port)) socket = std::move(unneeded);
  return error;
}

OwnedFd FrameWire::remove(FlowEntry& flow) {
  FramePort& port = *flow.qp->raw->port;
  port.flows.remove(flow);
  port.admit(flow.rule, false);
  return stop_if_unused(port);
}

OwnedFd FrameWire::forget(const Context& context) {
  // A device has one interface as long as it has its GUID, so all flows of the context are of one port.
  OwnedFd unneeded;
  for (FramePort* port = ports_; port != nullptr; port = port->next) {
    if (port->flows.empty()) continue;
    port->flows.remove_if([&](const FlowEntry& flow) { return flow.qp->context == &context; },
                          [&](const FlowEntry& flow) { port->admit(flow.rule, false); });
    if (OwnedFd socket = stop_if_unused(*port)) unneeded = std::move(socket);
  }
  return unneeded;
}

size_t FrameWire::receive(ArrivalSink& sink) {
  const CancelGuard whole;
  size_t count = below_.receive(sink);
  for (FramePort* port = ports_; port != nullptr; port = port->next) {
    if (port->flows.empty()) continue;
    count += port->receive([&](const Frame& frame) {
      port->flows.steer(frame, [&](Qp& qp) { taker_.take_frame(qp.raw->receiver_of(frame), frame.bytes); });
    });
  }
  return count;
}

void FrameWire::close_in_child() {
  for (FramePort* port = ports_; port != nullptr; port = port->next) port->close_in_child();
  descriptors_.reset();
  below_.close_in_child();
}

}  // namespace dapple::soft

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Owners of librpma's objects and of mapped memory.
#pragma once

#include <librpma.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace dapple::fio {

template <typename T, int (*Free)(T**)>
struct Freed {
  void operator()(T* object) const noexcept { (void)Free(&object); }
};

using Peer = std::unique_ptr<rpma_peer, Freed<rpma_peer, rpma_peer_delete>>;
using PeerConfig = std::unique_ptr<rpma_peer_cfg, Freed<rpma_peer_cfg, rpma_peer_cfg_delete>>;
using Region = std::unique_ptr<rpma_mr_local, Freed<rpma_mr_local, rpma_mr_dereg>>;
using RemoteRegion = std::unique_ptr<rpma_mr_remote, Freed<rpma_mr_remote, rpma_mr_remote_delete>>;
using ConnectionConfig = std::unique_ptr<rpma_conn_cfg, Freed<rpma_conn_cfg, rpma_conn_cfg_delete>>;
using Connection = std::unique_ptr<rpma_conn, Freed<rpma_conn, rpma_conn_delete>>;
using ConnectionRequest = std::unique_ptr<rpma_conn_req, Freed<rpma_conn_req, rpma_conn_req_delete>>;
using Listener = std::unique_ptr<rpma_ep, Freed<rpma_ep, rpma_ep_shutdown>>;

// True if a call of librpma succeeded; otherwise prints the call and the reason.
[[nodiscard]] bool succeeded(int result, const char* call) noexcept;

// Puts the result of librpma_call(&object, ...) into an owner: made(owner, "rpma_...", [&](auto** out) { return
// rpma_...(..., out); }).
template <typename Owner, typename Call>
[[nodiscard]] bool made(Owner& owner, const char* name, const Call& call) noexcept {
  typename Owner::pointer object = nullptr;
  if (!succeeded(call(&object), name)) return false;
  owner.reset(object);
  return true;
}

// The device that has this address, or by which it is reached; without one it prints the reason.
[[nodiscard]] ibv_context* device_at(const char* address, rpma_util_ibv_context_type side) noexcept;

// A peer on the device; without one it prints the reason.
[[nodiscard]] Peer peer_on(ibv_context* device) noexcept;

// Queues for this number of requests and receives at a time; without them it prints the reason.
[[nodiscard]] ConnectionConfig config_of(std::uint32_t requests, std::uint32_t receives) noexcept;

// The port of a job; first, from port=, belongs to the first job of the file, on both sides. Valid until the thread's
// next call; nullptr, after a line, if there is no such port.
[[nodiscard]] const char* port_of(std::uint32_t first, std::uint32_t job) noexcept;

// True if the descriptor is readable within that time; an interruption ends the wait.
[[nodiscard]] bool readable(int descriptor, int timeout_ms) noexcept;

// Makes a descriptor of librpma's non-blocking; prints the reason if it cannot.
[[nodiscard]] bool unblocked(int descriptor) noexcept;

// Memory that the destructor unmaps.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* address, std::size_t size) noexcept : address_(address), size_(size) {}
  Mapping(Mapping&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Mapping() {
    if (address_) (void)munmap(address_, size_);
  }

  // Zeroed memory of this process; empty, after a line, if there is none.
  [[nodiscard]] static Mapping anonymous(std::size_t size) noexcept;

  [[nodiscard]] char* address() const noexcept { return static_cast<char*>(address_); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  explicit operator bool() const noexcept { return address_ != nullptr; }

 private:
  void* address_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace dapple::fio

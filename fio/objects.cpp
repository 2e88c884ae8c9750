// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "fio/objects.hpp"

#include <fcntl.h>
#include <poll.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "fio/host.hpp"

namespace dapple::fio {

bool succeeded(int result, const char* call) noexcept {
  if (result == 0) return true;
  say("%s: %s", call, rpma_err_2str(result));
  return false;
}

ibv_context* device_at(const char* address, rpma_util_ibv_context_type side) noexcept {
  if (!address || !*address) {
    say("serverip= is missing");
    return nullptr;
  }
  // librpma's own log goes to syslog; its messages about a failure belong on the user's terminal.
  (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_ERROR);
  ibv_context* device = nullptr;
  const int result = rpma_utils_get_ibv_context(address, side, &device);
  if (result == 0) return device;
  say("no RDMA device %s %s: %s", side == RPMA_UTIL_IBV_CONTEXT_LOCAL ? "has" : "leads to", address,
      rpma_err_2str(result));
  return nullptr;
}

Peer peer_on(ibv_context* device) noexcept {
  Peer peer;
  if (device) (void)made(peer, "rpma_peer_new", [&](rpma_peer** out) { return rpma_peer_new(device, out); });
  return peer;
}

ConnectionConfig config_of(std::uint32_t requests, std::uint32_t receives) noexcept {
  ConnectionConfig config;
  if (!made(config, "rpma_conn_cfg_new", rpma_conn_cfg_new)) return config;
  if (!succeeded(rpma_conn_cfg_set_sq_size(config.get(), requests), "rpma_conn_cfg_set_sq_size") ||
      !succeeded(rpma_conn_cfg_set_rq_size(config.get(), receives), "rpma_conn_cfg_set_rq_size") ||
      !succeeded(rpma_conn_cfg_set_cq_size(config.get(), requests + receives), "rpma_conn_cfg_set_cq_size")) {
    config.reset();
  }
  return config;
}

const char* port_of(std::uint32_t first, std::uint32_t job) noexcept {
  thread_local char text[16];
  const std::uint64_t port = std::uint64_t{first} + job - 1;
  if (first == 0 || port > 65535) {
    say("port=%u is not possible for job %u: choose a port from 1 to %u", first, job, 65536 - job);
    return nullptr;
  }
  std::snprintf(text, sizeof text, "%u", static_cast<unsigned>(port));
  return text;
}

bool readable(int descriptor, int timeout_ms) noexcept {
  pollfd wait = {.fd = descriptor, .events = POLLIN, .revents = 0};
  return poll(&wait, 1, timeout_ms) > 0;
}

bool unblocked(int descriptor) noexcept {
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags != -1 && fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0) return true;
  say("fcntl: %s", std::strerror(errno));
  return false;
}

Mapping Mapping::anonymous(std::size_t size) noexcept {
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) return {memory, size};
  say("%zu bytes of memory: %s", size, std::strerror(errno));
  return {};
}

}  // namespace dapple::fio

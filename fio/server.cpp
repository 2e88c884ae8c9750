// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "fio/server.hpp"

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <new>

namespace dapple::fio {
namespace {

using Clock = std::chrono::steady_clock;

// The duration of one work().
constexpr int kWhile_ms = 100;

}  // namespace

const void* Server::context_of(std::uint64_t slot, Step step) noexcept {
  return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(slot << 1 | static_cast<std::uint64_t>(step)));
}

std::unique_ptr<Server> Server::listen(const Job& job) noexcept {
  std::unique_ptr<Server> server(new (std::nothrow) Server(job));
  if (!server || !server->start()) server.reset();
  return server;
}

Server::~Server() {
  if (connection_) (void)rpma_conn_disconnect(connection_.get());
}

bool Server::start() noexcept {
  const Options& options = job_.options();
  const char* const port = port_of(options.port, job_.number());
  if (!port) return false;
  device_ = device_at(options.serverip, RPMA_UTIL_IBV_CONTEXT_LOCAL);
  peer_ = peer_on(device_);
  int requests = -1;
  return peer_ && expose() &&
         made(listener_, "rpma_ep_listen",
              [&](rpma_ep** out) { return rpma_ep_listen(peer_.get(), options.serverip, port, out); }) &&
         succeeded(rpma_ep_get_fd(listener_.get(), &requests), "rpma_ep_get_fd") && unblocked(requests);
}

bool Server::expose() noexcept {
  exposed_ = Exposed::open(device_, peer_.get(), job_.first_file(), job_.options().direct_write_to_pmem != 0);
  if (!exposed_) return false;
  if (kMethod == Method::kAppliance) return true;
  slots_memory_ = Mapping::anonymous(kMaxFlushes * sizeof(FlushSlot));
  return slots_memory_ && made(slots_region_, "rpma_mr_reg", [&](rpma_mr_local** out) {
           return rpma_mr_reg(peer_.get(), slots_memory_.address(), slots_memory_.size(),
                              RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, out);
         });
}

Server::Outcome Server::work() noexcept {
  switch (state_) {
    case State::kListening:
      return accept() ? Outcome::kGoOn : Outcome::kFailed;
    case State::kAccepting:
      return finish_accepting() ? Outcome::kGoOn : Outcome::kFailed;
    case State::kServing:
      break;
  }
  if (kMethod == Method::kAppliance) {
    (void)readable(events_, kWhile_ms);
  } else if (!answer_flushes()) {
    return Outcome::kFailed;
  }
  return look_at_client();
}

bool Server::accept() noexcept {
  int requests = -1;
  if (!succeeded(rpma_ep_get_fd(listener_.get(), &requests), "rpma_ep_get_fd")) return false;
  if (!readable(requests, kWhile_ms)) return true;
  const ConnectionConfig config = kMethod == Method::kGeneral ? config_of(kMaxFlushes, kMaxFlushes) : config_of(1, 1);
  rpma_conn_req* request = nullptr;
  if (!config) return false;
  const int result = rpma_ep_next_conn_req(listener_.get(), config.get(), &request);
  if (result == RPMA_E_NO_EVENT) return true;
  return succeeded(result, "rpma_ep_next_conn_req") && take(request);
}

// A client of another kind is rejected, and the server waits for the next one.
bool Server::take(rpma_conn_req* taken) noexcept {
  ConnectionRequest request(taken);
  rpma_conn_private_data data = {};
  Greeting greeting;
  if (!succeeded(rpma_conn_req_get_private_data(request.get(), &data), "rpma_conn_req_get_private_data")) return false;
  if (data.ptr && data.len >= sizeof greeting) std::memcpy(&greeting, data.ptr, sizeof greeting);
  if (!data.ptr || data.len < sizeof greeting || greeting.magic != kMagic || greeting.method != kMethod ||
      greeting.flushes > kMaxFlushes || (kMethod == Method::kAppliance && greeting.flushes != 0)) {
    say("a client of another engine was rejected");
    return true;
  }
  for (std::uint64_t slot = 0; slot < greeting.flushes; ++slot) {
    const std::size_t at = slot * sizeof(FlushSlot) + offsetof(FlushSlot, request);
    if (!succeeded(rpma_conn_req_recv(request.get(), slots_region_.get(), at, sizeof(FlushRequest),
                                      context_of(slot, Step::kRequest)),
                   "rpma_conn_req_recv")) {
      return false;
    }
  }
  Offer offer;
  if (!make_offer(offer)) return false;
  const rpma_conn_private_data answer = {&offer, sizeof offer};
  rpma_conn_req* given = request.release();
  // A client that has gone meanwhile makes this fail.
  if (!made(connection_, "rpma_conn_req_connect",
            [&](rpma_conn** out) { return rpma_conn_req_connect(&given, &answer, out); })) {
    return true;
  }
  state_ = State::kAccepting;
  return succeeded(rpma_conn_get_event_fd(connection_.get(), &events_), "rpma_conn_get_event_fd") &&
         unblocked(events_) && succeeded(rpma_conn_get_cq(connection_.get(), &completions_), "rpma_conn_get_cq") &&
         succeeded(rpma_cq_get_fd(completions_, &completions_fd_), "rpma_cq_get_fd") && unblocked(completions_fd_);
}

bool Server::make_offer(Offer& offer) const noexcept {
  PeerConfig peer;
  std::size_t peer_size = 0;
  std::size_t region_size = 0;
  const bool direct = job_.options().direct_write_to_pmem != 0;
  if (!made(peer, "rpma_peer_cfg_new", rpma_peer_cfg_new) ||
      !succeeded(rpma_peer_cfg_set_direct_write_to_pmem(peer.get(), direct),
                 "rpma_peer_cfg_set_direct_write_to_pmem") ||
      !succeeded(rpma_peer_cfg_get_descriptor_size(peer.get(), &peer_size), "rpma_peer_cfg_get_descriptor_size") ||
      !succeeded(rpma_mr_get_descriptor_size(exposed_.region(), &region_size), "rpma_mr_get_descriptor_size")) {
    return false;
  }
  if (peer_size + region_size > sizeof offer.descriptors) {
    say("librpma's descriptors have %zu bytes and should have %zu", peer_size + region_size, sizeof offer.descriptors);
    return false;
  }
  offer.direct_write_to_pmem = direct;
  offer.peer_size = static_cast<std::uint8_t>(peer_size);
  offer.region_size = static_cast<std::uint8_t>(region_size);
  return succeeded(rpma_peer_cfg_get_descriptor(peer.get(), offer.descriptors), "rpma_peer_cfg_get_descriptor") &&
         succeeded(rpma_mr_get_descriptor(exposed_.region(), offer.descriptors + peer_size), "rpma_mr_get_descriptor");
}

bool Server::finish_accepting() noexcept {
  rpma_conn_event event = RPMA_CONN_UNDEFINED;
  if (!readable(events_, kWhile_ms)) return true;
  const int result = rpma_conn_next_event(connection_.get(), &event);
  if (result == RPMA_E_NO_EVENT) return true;
  if (succeeded(result, "rpma_conn_next_event") && event == RPMA_CONN_ESTABLISHED) {
    state_ = State::kServing;
    return true;
  }
  say("a client did not finish connecting: %s", rpma_utils_conn_event_2str(event));
  connection_.reset();
  state_ = State::kListening;
  return true;
}

Server::Outcome Server::look_at_client() noexcept {
  rpma_conn_event event = RPMA_CONN_UNDEFINED;
  const int result = rpma_conn_next_event(connection_.get(), &event);
  if (result == RPMA_E_NO_EVENT) return Outcome::kGoOn;
  if (!succeeded(result, "rpma_conn_next_event")) return Outcome::kFailed;
  if (event == RPMA_CONN_CLOSED) return Outcome::kDone;
  say("the client is gone: %s", rpma_utils_conn_event_2str(event));
  return Outcome::kFailed;
}

bool Server::answer_flushes() noexcept {
  if (job_.options().busy_wait_polling) {
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(kWhile_ms);
    do {
      if (!take_completions()) return false;
    } while (Clock::now() < end);
    return true;
  }
  pollfd wait[] = {{.fd = completions_fd_, .events = POLLIN, .revents = 0},
                   {.fd = events_, .events = POLLIN, .revents = 0}};
  if (poll(wait, std::size(wait), kWhile_ms) <= 0) return true;
  const int result = rpma_cq_wait(completions_);
  return (result == RPMA_E_NO_COMPLETION || succeeded(result, "rpma_cq_wait")) && take_completions();
}

// Takes all completions that wait.
bool Server::take_completions() noexcept {
  ibv_wc taken[16];
  for (;;) {
    int count = 0;
    const int result = rpma_cq_get_wc(completions_, static_cast<int>(std::size(taken)), taken, &count);
    if (result == RPMA_E_NO_COMPLETION) return true;
    if (!succeeded(result, "rpma_cq_get_wc")) return false;
    for (int i = 0; i < count; ++i) {
      // The connection's event gives the reason.
      if (taken[i].status != IBV_WC_SUCCESS) return true;
      if (!advance(taken[i].wr_id >> 1, static_cast<Step>(taken[i].wr_id & 1))) return false;
    }
  }
}

// A slot's next request may arrive before its answer completes. It waits, since the answer occupies the slot's memory
// and the send queue.
bool Server::advance(std::uint64_t slot, Step step) noexcept {
  SlotState& state = slots_[slot];
  (step == Step::kRequest ? state.requested : state.answering) = step == Step::kRequest;
  if (!state.requested || state.answering) return true;
  state = {.requested = false, .answering = true};
  return answer(slot);
}

bool Server::answer(std::uint64_t slot) noexcept {
  auto* const message = reinterpret_cast<FlushSlot*>(slots_memory_.address()) + slot;
  const FlushRequest request = message->request;
  const std::size_t at = slot * sizeof(FlushSlot);
  message->answer.error = static_cast<std::uint32_t>(exposed_.persist(request.offset, request.length));
  return succeeded(rpma_recv(connection_.get(), slots_region_.get(), at + offsetof(FlushSlot, request),
                             sizeof(FlushRequest), context_of(slot, Step::kRequest)),
                   "rpma_recv") &&
         succeeded(rpma_send(connection_.get(), slots_region_.get(), at + offsetof(FlushSlot, answer),
                             sizeof(FlushAnswer), RPMA_F_COMPLETION_ALWAYS, context_of(slot, Step::kAnswer)),
                   "rpma_send");
}

}  // namespace dapple::fio

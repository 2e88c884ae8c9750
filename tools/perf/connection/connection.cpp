// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/perf/connection/connection.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "tools/perf/common/failure.hpp"
#include "tools/perf/connection/host.hpp"
#include "udapl/registry/event_names.hpp"

namespace dapple::perf {
namespace {

constexpr DAT_TIMEOUT kLookAround_us = 200'000;
// A power of two: the number of spins after which a wait checks the clock and the connection, and yields the CPU.
constexpr uint64_t kSpinsBetweenLooks = 1024;

// The bytes that a completion has transferred.
uint64_t check_transfer(const DAT_EVENT& event, const char* what) {
  const DAT_DTO_COMPLETION_EVENT_DATA& completion = event.event_data.dto_completion_event_data;
  if (event.event_number != DAT_DTO_COMPLETION_EVENT) {
    throw Failure(fmt::format("{}: {} came instead", what, registry::name_of_event(event.event_number)));
  }
  if (completion.status != DAT_DTO_SUCCESS) throw Failure(fmt::format("{}: {}", what, text_of(completion.status)));
  return completion.transfered_length;
}

std::string reason_of(const DAT_CONNECTION_EVENT_DATA& refused) {
  const std::string why =
      decode_refusal(refused.private_data, static_cast<size_t>(std::max(0, refused.private_data_size)));
  return why.empty() ? "see the output of its server" : why;
}

void throw_if(bool peer_gone, const char* what) {
  if (!peer_gone) return;
  throw Failure(fmt::format("the peer closed the connection or died while {} was due; see its output", what));
}

DAT_EP_ATTR endpoint_attr(const Session& session, const ConnectionOptions& options) {
  DAT_EP_ATTR attr{};
  attr.service_type = DAT_SERVICE_TYPE_RC;
  attr.max_message_size = session.attr().max_message_size;
  attr.max_rdma_size = session.attr().max_rdma_size;
  attr.qos = DAT_QOS_BEST_EFFORT;
  attr.max_recv_dtos = static_cast<DAT_COUNT>(options.receives);
  attr.max_request_dtos = static_cast<DAT_COUNT>(options.requests);
  attr.max_recv_iov = 1;
  attr.max_request_iov = 1;
  attr.max_rdma_read_in = std::max<DAT_COUNT>(1, session.attr().max_rdma_read_per_ep_in);
  attr.max_rdma_read_out = std::max<DAT_COUNT>(1, session.attr().max_rdma_read_per_ep_out);
  attr.max_rdma_read_iov = 1;
  attr.max_rdma_write_iov = 1;
  return attr;
}

}  // namespace

Connection::Connection(Session& session, const ConnectionOptions& options)
    : options_(options), family_(session.family()) {
  const auto evd = [&](uint32_t length, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE* handle) {
    check(dat_evd_create(session.ia(), static_cast<DAT_COUNT>(length), DAT_HANDLE_NULL, flags, handle),
          "dat_evd_create", "choose a smaller depth");
  };
  try {
    evd(options.requests, DAT_EVD_DTO_FLAG, &request_evd_);
    evd(options.receives, DAT_EVD_DTO_FLAG, &receive_evd_);
    evd(4, DAT_EVD_CONNECTION_FLAG, &connection_evd_);
    DAT_EP_ATTR attr = endpoint_attr(session, options);
    check(dat_ep_create(session.ia(), session.pz(), receive_evd_, request_evd_, connection_evd_, &attr, &ep_),
          "dat_ep_create", "choose a smaller depth");
  } catch (...) {
    free_all();
    throw;
  }
}

Connection::~Connection() {
  (void)dat_ep_disconnect(ep_, DAT_CLOSE_ABRUPT_FLAG);
  free_all();
}

void Connection::free_all() {
  if (ep_ != DAT_HANDLE_NULL) (void)dat_ep_free(ep_);
  for (DAT_EVD_HANDLE evd : {connection_evd_, receive_evd_, request_evd_}) {
    if (evd != DAT_HANDLE_NULL) (void)dat_evd_free(evd);
  }
}

RemoteMemory Connection::connect(const std::string& host, uint16_t port, const Parameters& parameters) {
  sockaddr_storage address = address_of_host(host, family_);
  auto greeting = encode(parameters);
  check(dat_ep_connect(ep_, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), port, options_.timeout_s * 900'000U,
                       greeting.size(), greeting.data(), DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
        "dat_ep_connect", "the address must be one that this machine can route to");
  const DAT_EVENT event = await_connection_event("the connection");
  switch (event.event_number) {
    case DAT_CONNECTION_EVENT_ESTABLISHED:
      break;
    case DAT_CONNECTION_EVENT_PEER_REJECTED:
      throw Failure(fmt::format("{} refused: {}", host, reason_of(event.event_data.connect_event_data)));
    case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
      throw Failure(fmt::format("{}: no server listens at port {}; start the server first", host, port));
    case DAT_CONNECTION_EVENT_UNREACHABLE:
      throw Failure(fmt::format("{} cannot be reached; it must be the address of an RDMA device", host));
    case DAT_CONNECTION_EVENT_TIMED_OUT:
      throw Failure(fmt::format("{} does not answer", host));
    default:
      throw Failure(fmt::format("{}: no connection ({})", host, registry::name_of_event(event.event_number)));
  }
  const DAT_CONNECTION_EVENT_DATA& data = event.event_data.connect_event_data;
  const auto memory = decode_reply(data.private_data, static_cast<size_t>(std::max(0, data.private_data_size)));
  if (!memory) throw Failure(fmt::format("{}: the program that listens there is not a server of this version", host));
  return *memory;
}

void Connection::accept(DAT_CR_HANDLE request, const RemoteMemory& memory) {
  auto reply = encode(memory);
  check(dat_cr_accept(request, ep_, reply.size(), reply.data()), "dat_cr_accept", "the client may be gone");
  const DAT_EVENT event = await_connection_event("the connection");
  if (event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED) {
    throw Failure(
        fmt::format("no connection ({}); the client may be gone", registry::name_of_event(event.event_number)));
  }
}

void Connection::post(Operation operation, DAT_LMR_TRIPLET local, const RemoteMemory& remote) {
  DAT_DTO_COOKIE cookie{};
  DAT_RMR_TRIPLET there{};
  there.virtual_address = remote.address;
  there.segment_length = local.segment_length;
  there.rmr_context = remote.rmr_context;
  const char* call = nullptr;
  DAT_RETURN result = DAT_SUCCESS;
  switch (operation) {
    case Operation::kWrite:
      call = "dat_ep_post_rdma_write";
      result = dat_ep_post_rdma_write(ep_, 1, &local, cookie, &there, DAT_COMPLETION_DEFAULT_FLAG);
      break;
    case Operation::kRead:
      call = "dat_ep_post_rdma_read";
      result = dat_ep_post_rdma_read(ep_, 1, &local, cookie, &there, DAT_COMPLETION_DEFAULT_FLAG);
      break;
    case Operation::kSend:
      call = "dat_ep_post_send";
      result = dat_ep_post_send(ep_, 1, &local, cookie, DAT_COMPLETION_DEFAULT_FLAG);
      break;
  }
  check(result, call, "is the peer alive, and does the device support the size?");
}

void Connection::post_receive(DAT_LMR_TRIPLET local) {
  check(dat_ep_post_recv(ep_, 1, &local, DAT_DTO_COOKIE{}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv",
        "the queue should have had room");
}

void Connection::await_request() {
  constexpr const char* kWhat = "the completion of a request";
  (void)check_transfer(await(request_evd_, kWhat), kWhat);
}

uint64_t Connection::await_receive() {
  constexpr const char* kWhat = "the peer's message";
  return check_transfer(await(receive_evd_, kWhat), kWhat);
}

bool Connection::peer_has_gone() {
  DAT_EVENT event;
  while (!peer_gone_ && dat_evd_dequeue(connection_evd_, &event) == DAT_SUCCESS) {
    peer_gone_ = event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED;
  }
  return peer_gone_;
}

void Connection::be_patient(const char* what, uint64_t& spins) {
  if (spins++ % kSpinsBetweenLooks != kSpinsBetweenLooks - 1) return;
  // The disconnect was known at the last check, so everything that the peer sent before it has been seen.
  throw_if(peer_gone_, what);
  (void)sched_yield();
  const Clock::time_point now = Clock::now();
  if (spins == kSpinsBetweenLooks) deadline_ = now + std::chrono::seconds(options_.timeout_s);
  (void)peer_has_gone();
  if (now >= deadline_) {
    throw Failure(fmt::format("gave up after {} s without {}; is the peer alive?", options_.timeout_s, what));
  }
}

DAT_EVENT Connection::await(DAT_EVD_HANDLE evd, const char* what) {
  if (options_.events) return await_asleep(evd, what, false);
  DAT_EVENT event{};
  for (uint64_t spins = 0;; be_patient(what, spins)) {
    const DAT_RETURN result = dat_evd_dequeue(evd, &event);
    if (result == DAT_SUCCESS) return event;
    if (DAT_GET_TYPE(result) != DAT_QUEUE_EMPTY) {
      throw Failure(fmt::format("waiting for {}: {}", what, text_of(result)));
    }
  }
}

DAT_EVENT Connection::await_asleep(DAT_EVD_HANDLE evd, const char* what, bool however_long) {
  DAT_EVENT event{};
  const Clock::time_point begin = Clock::now();
  for (;;) {
    DAT_COUNT more = 0;
    const DAT_RETURN result = dat_evd_wait(evd, kLookAround_us, 1, &event, &more);
    if (result == DAT_SUCCESS) return event;
    if (DAT_GET_TYPE(result) != DAT_TIMEOUT_EXPIRED && DAT_GET_TYPE(result) != DAT_INTERRUPTED_CALL) {
      throw Failure(fmt::format("waiting for {}: {}", what, text_of(result)));
    }
    // As above: the disconnect was known at the last check.
    throw_if(peer_gone_, what);
    (void)peer_has_gone();
    if (!however_long && Clock::now() - begin >= std::chrono::seconds(options_.timeout_s)) {
      throw Failure(fmt::format("gave up after {} s without {}; is the peer alive?", options_.timeout_s, what));
    }
  }
}

DAT_EVENT Connection::await_connection_event(const char* what) {
  DAT_EVENT event{};
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(options_.timeout_s);
  while (Clock::now() < deadline) {
    DAT_COUNT more = 0;
    const DAT_RETURN result = dat_evd_wait(connection_evd_, kLookAround_us, 1, &event, &more);
    if (result == DAT_SUCCESS) return event;
    if (DAT_GET_TYPE(result) != DAT_TIMEOUT_EXPIRED && DAT_GET_TYPE(result) != DAT_INTERRUPTED_CALL) {
      throw Failure(fmt::format("waiting for {}: {}", what, text_of(result)));
    }
  }
  throw Failure(fmt::format("gave up after {} s without {}", options_.timeout_s, what));
}

void Connection::say_goodbye(DAT_LMR_TRIPLET byte) {
  post(Operation::kSend, byte, {});
  // Its completion may be flushed: the server disconnects as soon as it has the byte.
  await_end();
}

void Connection::await_goodbye() {
  constexpr const char* kWhat = "the client's goodbye";
  const uint64_t length = check_transfer(await_asleep(receive_evd_, kWhat, true), kWhat);
  if (length != kGoodbyeBytes) throw Failure(fmt::format("{}: received {} bytes instead", kWhat, length));
  check(dat_ep_disconnect(ep_, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect", "is the peer gone?");
  await_end();
}

void Connection::await_end() {
  while (!peer_has_gone()) {
    peer_gone_ = await_connection_event("the end of the connection").event_number != DAT_CONNECTION_EVENT_ESTABLISHED;
  }
}

}  // namespace dapple::perf

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "fio/client.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <new>

namespace dapple::fio {
namespace {

using Clock = std::chrono::steady_clock;

// The server counts as lost if nothing completes for this time; meanwhile the connection is checked this often.
constexpr auto kPatience = std::chrono::seconds(60);
constexpr auto kLook = std::chrono::milliseconds(100);
// Empty polls of the CQ before the thread yields the CPU.
constexpr unsigned kSpins = 1000;
// The longest wait for the server's answer to a disconnection.
constexpr int kGoodbye_ms = 1000;

// The meaning of a completion, and the number of completed requests of its direction.
enum class Step : std::uint64_t { kRead, kWrite, kFlush, kAsk, kAnswer };
constexpr unsigned kStepBits = 3;

const void* context_of(Step step, std::uint64_t count) {
  return reinterpret_cast<const void*>(
      static_cast<std::uintptr_t>(count << kStepBits | static_cast<std::uint64_t>(step)));
}

Step step_of(const ibv_wc& completion) {
  return static_cast<Step>(completion.wr_id & ((1U << kStepBits) - 1));
}

// Each write may have a flush of its own.
constexpr std::uint32_t kRequestsPerWrite = 2;

}  // namespace

Client::Client(const Job& job, const Layout& layout)
    : job_(job),
      layout_(layout),
      depth_(std::max(job.depth(), 1U)),
      file_(job.first_file().address()),
      reads_(depth_),
      writes_(depth_) {
  ready_.reserve(depth_);
}

std::unique_ptr<Client> Client::connect(const Job& job, const Layout& layout) noexcept {
  std::unique_ptr<Client> client(new (std::nothrow) Client(job, layout));
  if (!client || !client->establish()) client.reset();
  return client;
}

Client::~Client() {
  if (!connection_ || events_ < 0) return;
  if (rpma_conn_disconnect(connection_.get()) != 0) return;
  if (readable(events_, kGoodbye_ms)) (void)connection_stands();
}

bool Client::establish() noexcept {
  const Options& options = job_.options();
  if (kMethod == Method::kGeneral && depth_ > kMaxFlushes) {
    say("iodepth=%u is more than the server's %u", depth_, kMaxFlushes);
    return false;
  }
  const char* const port = port_of(options.port, job_.number());
  if (!port) return false;
  peer_ = peer_on(device_at(options.serverip, RPMA_UTIL_IBV_CONTEXT_REMOTE));
  if (!peer_) return false;
  Greeting greeting;
  if (kMethod == Method::kGeneral) {
    greeting.flushes = depth_;
    slots_memory_ = Mapping::anonymous(depth_ * sizeof(FlushSlot));
    if (!slots_memory_ || !made(slots_region_, "rpma_mr_reg", [&](rpma_mr_local** out) {
          return rpma_mr_reg(peer_.get(), slots_memory_.address(), slots_memory_.size(),
                             RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, out);
        })) {
      return false;
    }
  }
  const ConnectionConfig config = config_of(kRequestsPerWrite * depth_, kMethod == Method::kGeneral ? depth_ : 1);
  if (!config) return false;
  ConnectionRequest request;
  if (!made(request, "rpma_conn_req_new", [&](rpma_conn_req** out) {
        return rpma_conn_req_new(peer_.get(), options.serverip, port, config.get(), out);
      })) {
    return false;
  }
  const rpma_conn_private_data hello = {&greeting, sizeof greeting};
  rpma_conn_req* given = request.release();
  rpma_conn_event event = RPMA_CONN_UNDEFINED;
  if (!made(connection_, "rpma_conn_req_connect",
            [&](rpma_conn** out) { return rpma_conn_req_connect(&given, &hello, out); }) ||
      !succeeded(rpma_conn_next_event(connection_.get(), &event), "rpma_conn_next_event")) {
    return false;
  }
  if (event != RPMA_CONN_ESTABLISHED) {
    say("no connection to %s, port %s: %s; is the server's job running?", options.serverip, port,
        rpma_utils_conn_event_2str(event));
    return false;
  }
  return succeeded(rpma_conn_get_cq(connection_.get(), &completions_), "rpma_conn_get_cq") &&
         succeeded(rpma_conn_get_event_fd(connection_.get(), &events_), "rpma_conn_get_event_fd") &&
         unblocked(events_) && take_offer();
}

bool Client::take_offer() noexcept {
  rpma_conn_private_data data = {};
  Offer offer;
  if (!succeeded(rpma_conn_get_private_data(connection_.get(), &data), "rpma_conn_get_private_data")) return false;
  if (data.ptr && data.len >= sizeof offer) std::memcpy(&offer, data.ptr, sizeof offer);
  if (!data.ptr || data.len < sizeof offer || offer.magic != kMagic || offer.method != kMethod ||
      std::size_t{offer.peer_size} + offer.region_size > sizeof offer.descriptors) {
    say("the server runs another engine");
    return false;
  }
  PeerConfig peer;
  if (!made(peer, "rpma_peer_cfg_from_descriptor",
            [&](rpma_peer_cfg** out) {
              return rpma_peer_cfg_from_descriptor(offer.descriptors, offer.peer_size, out);
            }) ||
      !succeeded(rpma_conn_apply_remote_peer_cfg(connection_.get(), peer.get()), "rpma_conn_apply_remote_peer_cfg") ||
      !made(remote_, "rpma_mr_remote_from_descriptor", [&](rpma_mr_remote** out) {
        return rpma_mr_remote_from_descriptor(offer.descriptors + offer.peer_size, offer.region_size, out);
      })) {
    return false;
  }
  std::size_t size = 0;
  if (!succeeded(rpma_mr_remote_get_size(remote_.get(), &size), "rpma_mr_remote_get_size")) return false;
  remote_size_ = size;
  flush_type_ = offer.direct_write_to_pmem ? RPMA_FLUSH_TYPE_PERSISTENT : RPMA_FLUSH_TYPE_VISIBILITY;
  return true;
}

void* Client::allocate(std::size_t size) noexcept {
  buffers_ = Mapping::anonymous(size);
  if (!buffers_ || !made(buffers_region_, "rpma_mr_reg", [&](rpma_mr_local** out) {
        return rpma_mr_reg(peer_.get(), buffers_.address(), buffers_.size(),
                           RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC, out);
      })) {
    return nullptr;
  }
  return buffers_.address();
}

void Client::release() noexcept {
  buffers_region_.reset();
  buffers_ = Mapping();
}

std::uint64_t Client::local_offset(const Request& request) const noexcept {
  return reinterpret_cast<std::uintptr_t>(request.buffer()) - reinterpret_cast<std::uintptr_t>(buffers_.address());
}

bool Client::fits(const Request& request) noexcept {
  const std::uint64_t offset = request.offset();
  const std::uint64_t length = request.length();
  if (offset > remote_size_ || length > remote_size_ - offset) {
    say("offset %llu is beyond the server's region, which has %llu bytes: its size= is less than the client's",
        static_cast<unsigned long long>(offset), static_cast<unsigned long long>(remote_size_));
    return false;
  }
  const std::uint64_t begin = local_offset(request);
  if (request.file() != file_ || begin > buffers_.size() || length > buffers_.size() - begin) {
    say("the data layout of fio's requests is unknown");
    return false;
  }
  return true;
}

bool Client::queue(const Request& request) noexcept {
  request.issued(job_);
  if (request.is_sync()) {
    await_posted();
    if (failed_) request.fail(EIO);
    return true;
  }
  if (!request.is_read() && !request.is_write()) {
    request.fail(EOPNOTSUPP);
    return true;
  }
  if (failed_ || !fits(request)) {
    request.fail(failed_ ? EIO : EINVAL);
    return true;
  }
  post(request);
  if (!job_.sync()) return false;
  await_posted();
  // fio learns of this request by the return value, so the list, which has no other request, is emptied. The request
  // has its error if it failed.
  ready_.clear();
  return true;
}

void Client::post(const Request& request) noexcept {
  const std::uint64_t offset = request.offset();
  const std::uint64_t length = request.length();
  const std::uint64_t local = local_offset(request);
  if (request.is_read()) {
    const std::uint64_t count = reads_.push(request.address());
    if (!succeeded(rpma_read(connection_.get(), buffers_region_.get(), local, remote_.get(), offset, length,
                             RPMA_F_COMPLETION_ALWAYS, context_of(Step::kRead, count)),
                   "rpma_read")) {
      give_up(EIO);
    }
    return;
  }
  if (unflushed_.length != 0 && unflushed_.offset + unflushed_.length != offset) commit();
  const std::uint64_t count = writes_.push(request.address());
  if (failed_ || !succeeded(rpma_write(connection_.get(), remote_.get(), offset, buffers_region_.get(), local, length,
                                       RPMA_F_COMPLETION_ON_ERROR, context_of(Step::kWrite, count)),
                            "rpma_write")) {
    give_up(EIO);
    return;
  }
  if (unflushed_.length == 0) unflushed_.offset = offset;
  unflushed_.length += length;
}

void Client::commit() noexcept {
  if (unflushed_.length == 0 || failed_) return;
  if (kMethod == Method::kGeneral ? ask_for_flush() : post_flush()) {
    unflushed_.length = 0;
  } else {
    give_up(EIO);
  }
}

bool Client::post_flush() noexcept {
  return succeeded(rpma_flush(connection_.get(), remote_.get(), unflushed_.offset, unflushed_.length, flush_type_,
                              RPMA_F_COMPLETION_ALWAYS, context_of(Step::kFlush, writes_.pushed())),
                   "rpma_flush");
}

bool Client::ask_for_flush() noexcept {
  // A slot is free again when its writes are complete, and there are as many slots as requests.
  const std::size_t at = flushes_++ % depth_ * sizeof(FlushSlot);
  auto* const slot = reinterpret_cast<FlushSlot*>(slots_memory_.address() + at);
  slot->request = {unflushed_.offset, unflushed_.length};
  return succeeded(rpma_recv(connection_.get(), slots_region_.get(), at + offsetof(FlushSlot, answer),
                             sizeof(FlushAnswer), context_of(Step::kAnswer, writes_.pushed())),
                   "rpma_recv") &&
         succeeded(rpma_send(connection_.get(), slots_region_.get(), at + offsetof(FlushSlot, request),
                             sizeof(FlushRequest), RPMA_F_COMPLETION_ALWAYS, context_of(Step::kAsk, writes_.pushed())),
                   "rpma_send");
}

unsigned Client::reap(unsigned minimum, unsigned maximum, const timespec* timeout) noexcept {
  ready_.erase(ready_.begin(), ready_.begin() + reaped_);
  reaped_ = 0;
  // fio may wait only for requests that were posted.
  if (minimum > 0) commit();
  const Clock::time_point start = Clock::now();
  Clock::time_point progress = start;
  Clock::time_point looked = start;
  for (unsigned spins = 0;;) {
    const std::size_t before = ready_.size();
    poll();
    if (ready_.size() >= minimum || (reads_.empty() && writes_.empty())) break;
    if (ready_.size() == before && ++spins < kSpins) continue;
    const Clock::time_point now = Clock::now();
    if (ready_.size() != before) {
      progress = now;
      spins = 0;
      continue;
    }
    (void)sched_yield();
    if (timeout && now - start >= std::chrono::seconds(timeout->tv_sec) + std::chrono::nanoseconds(timeout->tv_nsec))
      break;
    if (now - looked < kLook) continue;
    looked = now;
    if (!connection_stands()) {
      say("the server has disconnected");
      give_up(ECONNRESET);
    } else if (now - progress > kPatience) {
      say("nothing was completed in %lld seconds", static_cast<long long>(kPatience.count()));
      give_up(ETIMEDOUT);
    }
  }
  reaped_ = std::min<unsigned>(maximum, static_cast<unsigned>(ready_.size()));
  return reaped_;
}

void Client::await_posted() noexcept {
  commit();
  // Ready requests stay ready for fio's next call.
  const std::size_t all =
      ready_.size() - reaped_ + (reads_.pushed() - reads_.popped()) + (writes_.pushed() - writes_.popped());
  (void)reap(static_cast<unsigned>(all), 0, nullptr);
}

void Client::poll() noexcept {
  ibv_wc taken[16];
  int count = 0;
  const int result = rpma_cq_get_wc(completions_, static_cast<int>(std::size(taken)), taken, &count);
  if (result == RPMA_E_NO_COMPLETION || failed_) return;
  if (!succeeded(result, "rpma_cq_get_wc")) {
    give_up(EIO);
    return;
  }
  for (int i = 0; i < count && !failed_; ++i) take_completion(taken[i]);
}

void Client::take_completion(const ibv_wc& completion) noexcept {
  if (completion.status != IBV_WC_SUCCESS) {
    static constexpr const char* kSteps[] = {"a read", "a write", "a flush", "a request for a flush",
                                             "the answer to it"};
    say("%s failed: %s", kSteps[static_cast<std::uint64_t>(step_of(completion))], ibv_wc_status_str(completion.status));
    give_up(EIO);
    return;
  }
  const std::uint64_t count = completion.wr_id >> kStepBits;
  switch (step_of(completion)) {
    case Step::kRead:
      complete(reads_, count);
      break;
    case Step::kFlush:
      complete(writes_, count);
      break;
    case Step::kAnswer:
      take_answer(count);
      break;
    case Step::kAsk:
      asked_up_to_ = count;
      complete_answered();
      break;
    case Step::kWrite:
      break;
  }
}

void Client::take_answer(std::uint64_t up_to) noexcept {
  const auto* const slots = reinterpret_cast<const FlushSlot*>(slots_memory_.address());
  const std::uint32_t error = slots[answers_++ % depth_].answer.error;
  if (error == 0) {
    answered_up_to_ = up_to;
    complete_answered();
    return;
  }
  say("the server cannot make the data persistent: %s", std::strerror(static_cast<int>(error)));
  give_up(static_cast<int>(error));
}

// An answer may arrive before its request completes, which occupies the send queue until then.
void Client::complete_answered() noexcept {
  complete(writes_, std::min(asked_up_to_, answered_up_to_));
}

void Client::complete(Posted& posted, std::uint64_t up_to) noexcept {
  while (posted.popped() < up_to) ready_.push_back(posted.pop());
}

bool Client::connection_stands() noexcept {
  rpma_conn_event event = RPMA_CONN_UNDEFINED;
  return rpma_conn_next_event(connection_.get(), &event) == RPMA_E_NO_EVENT;
}

void Client::give_up(int error) noexcept {
  failed_ = true;
  unflushed_.length = 0;
  for (Posted* posted : {&reads_, &writes_}) {
    while (!posted->empty()) {
      void* const request = posted->pop();
      Request(request, layout_).fail(error);
      ready_.push_back(request);
    }
  }
}

}  // namespace dapple::fio

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "rpma/cq.hpp"

#include <new>

#include "ibverbs-glue/memlock.hpp"
#include "ibverbs-glue/no_cancel.hpp"
#include "rpma/common/destroy_once.hpp"
#include "rpma/common/export.hpp"
#include "rpma/common/log.hpp"
#include "rpma/common/refusal.hpp"
#include "rpma/common/slots.hpp"

using namespace dapple::rpma;

namespace {

// Events are acknowledged this many at a time, because each time takes a lock that all CQs share.
constexpr unsigned kAcknowledgedTogether = 64;

constexpr const char* kGetWc = "rpma_cq_get_wc";

[[gnu::cold, gnu::noinline]] int refuse_get_wc(const rpma_cq* cq, int num_entries, const ibv_wc* wc) {
  if (!cq || !wc) return refuse_null(kGetWc, {NAMED(cq), NAMED(wc)});
  if (num_entries < 1) return refuse(kGetWc, RPMA_E_INVAL, "num_entries is %d.\nPass 1 or more.", num_entries);
  return refuse(kGetWc, RPMA_E_INVAL,
                "num_entries is %d, and num_entries_got is NULL.\nPass the address of an int: there may be fewer "
                "completions.",
                num_entries);
}

[[gnu::cold, gnu::noinline]] int refuse_poll(int got, int wanted) {
  if (got < 0) {
    LOG(ERROR, "ibv_poll_cq() failed");
    return refuse(in_a_line(kGetWc), RPMA_E_PROVIDER, "ibv_poll_cq() has failed.\nDelete the connection.");
  }
  LOG(ERROR, "ibv_poll_cq() gave %d of %d completions", got, wanted);
  return refuse(in_a_line(kGetWc), RPMA_E_UNKNOWN, "ibv_poll_cq() gave %d of %d completions.\nDelete the connection.",
                got, wanted);
}

// The error when a poll for this many completions returned none, or an impossible number.
int without_completions(int got, int wanted) {
  return got == 0 ? RPMA_E_NO_COMPLETION : refuse_poll(got, wanted);
}

// rpma_cq_get_wc() except for its fast path, which is a separate function because it keeps nothing over the call.
[[gnu::noinline]] int take(rpma_cq& cq, int wanted, ibv_wc* completions, int* taken) {
  if (wanted < 1 || (wanted > 1 && !taken)) return refuse_get_wc(&cq, wanted, completions);
  std::unique_lock lock(cq.slots_mutex, std::defer_lock);
  if (cq.has_slots) [[unlikely]]
    lock.lock();
  const int got = dapple::verbs::poll(cq.cq.get(), completions, wanted);
  if (got < 1 || got > wanted) return without_completions(got, wanted);
  if (cq.has_slots) [[unlikely]] {
    for (int i = 0; i < got; ++i) dapple::rpma::resolve_slot(completions[i]);
  }
  if (taken) *taken = got;
  return 0;
}

}  // namespace

rpma_cq::~rpma_cq() {
  (void)close();
}

// A CQ can be destroyed only when all its events have been acknowledged.
void rpma_cq::acknowledge_rest() noexcept {
  if (const unsigned rest = unacknowledged.exchange(0); rest && cq) ibv_ack_cq_events(cq.get(), rest);
}

void rpma_cq::retire_rest() noexcept {
  ibv_wc completion{};
  while (has_slots && cq && dapple::verbs::poll(cq.get(), &completion, 1) == 1) {
    auto* slot = reinterpret_cast<Slot*>(completion.wr_id);
    if (slot) slot->owner->discard(*slot);
  }
}

int rpma_cq::close() noexcept {
  int result = 0;
  acknowledge_rest();
  retire_rest();
  if (const int error = destroy_once(cq)) result = FAILED("ibv_destroy_cq", error);
  cq.reset();
  if (const int error = destroy_once(own_channel)) result = FAILED("ibv_destroy_comp_channel", error);
  own_channel.reset();
  return result;
}

int rpma_cq::took_event() noexcept {
  if (unacknowledged.fetch_add(1, std::memory_order_relaxed) + 1 >= kAcknowledgedTogether) acknowledge_rest();
  const int error = ibv_req_notify_cq(cq.get(), 0);
  return error ? FAILED("ibv_req_notify_cq", error) : 0;
}

namespace dapple::rpma {

void explain_queue(int error) noexcept {
  char why[256];
  if (verbs::explain_memlock_of_queues(error, why, sizeof why)) LOG(ERROR, "%s", why);
}

int make_cq(const rpma_peer& peer, int entries, ibv_comp_channel* channel, std::unique_ptr<rpma_cq>& out) noexcept {
  ibv_context* const context = peer.pd->context;
  std::unique_ptr<rpma_cq> made(new (std::nothrow) rpma_cq);
  if (!made) return refuse_memory();
  made->has_slots = peer.maintenance() != nullptr;
  made->channel = channel;
  if (!channel) {
    made->own_channel.reset(ibv_create_comp_channel(context));
    if (!made->own_channel) return FAILED("ibv_create_comp_channel", errno);
    made->channel = made->own_channel.get();
  }
  made->cq.reset(ibv_create_cq(context, entries, made.get(), made->channel, 0));
  if (!made->cq) {
    explain_queue(errno);
    return FAILED("ibv_create_cq", errno);
  }
  if (const int error = ibv_req_notify_cq(made->cq.get(), 0)) return FAILED("ibv_req_notify_cq", error);
  out = std::move(made);
  return 0;
}

}  // namespace dapple::rpma

RPMA_EXPORT int rpma_cq_get_fd(const rpma_cq* cq, int* fd) {
  if (!cq || !fd) return refuse_null(__func__, {NAMED(cq), NAMED(fd)});
  *fd = cq->channel->fd;
  return 0;
}

RPMA_EXPORT int rpma_cq_wait(rpma_cq* cq) {
  if (!cq) return refuse_null(__func__, {NAMED(cq)});
  if (!cq->own_channel) {
    return refuse(in_a_line(__func__), RPMA_E_SHARED_CHANNEL,
                  "the CQs of the connection share a completion channel.\nCall rpma_conn_wait(), or do not set "
                  "rpma_conn_cfg_set_compl_channel().");
  }
  ibv_cq* source = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(cq->channel, &source, &context)) return RPMA_E_NO_COMPLETION;
  const dapple::NoCancel whole;
  return cq->took_event();
}

RPMA_EXPORT int rpma_cq_get_wc(rpma_cq* cq, int num_entries, ibv_wc* wc, int* num_entries_got) {
  if (!cq || !wc) [[unlikely]]
    return refuse_get_wc(cq, num_entries, wc);
  if (num_entries != 1 || num_entries_got || cq->has_slots) return take(*cq, num_entries, wc, num_entries_got);
  const int got = dapple::verbs::poll(cq->cq.get(), wc, 1);
  return got == 1 ? 0 : without_completions(got, 1);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/unit/rpma/fake_verbs.hpp"

#include <infiniband/dappledv_failure.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>
#include <utility>

#include "ibverbs-glue/capabilities.hpp"
#include "rpma/common/native.hpp"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace fake {

State state;

namespace {

// With room for the fields that follow wr_abort in any release.
struct FakeQp {
  ibv_qp_ex ex{};
  void* later[8] = {};
  bool extended = false;
};

struct FakeCq {
  ibv_cq cq{};
  int unacknowledged = 0;
};

// Addresses are not used again: the state of one context must not be taken for the next one's, nor a channel for one
// that was destroyed.
std::deque<ibv_device> devices;
std::deque<rdma_event_channel> event_channels;
constexpr int kDestroyed = -1;  // the descriptor of such a channel
verbs_context extended{};
ibv_cq* last_cq = nullptr;
Posted native;

// True if this call must fail; errno is then set.
bool hit(const char* name) {
  if (state.cancellation_points) pthread_testcancel();
  state.calls.emplace_back(name);
  if (state.fails_at == 0 || static_cast<int>(state.calls.size()) != state.fails_at) return false;
  errno = state.error;
  return true;
}

void took_event() {
  if (state.cancelled_with_event) pthread_cancel(pthread_self());
}

void complain(const char* what) {
  if (state.wrong.empty()) state.wrong = what;
}

// The real functions write to the channel of the id. An id without one has its own.
void use_channel(const rdma_cm_id* id) {
  if (id->channel && id->channel->fd == kDestroyed) complain("an id used after its channel was destroyed");
}

int post_send(ibv_qp*, ibv_send_wr* wr, ibv_send_wr** bad) {
  *bad = wr;
  if (hit("ibv_post_send")) return errno;
  if (state.post_error) return state.post_error;
  Posted posted;
  posted.what = "send";
  posted.wr_id = wr->wr_id;
  posted.opcode = wr->opcode;
  posted.flags = wr->send_flags;
  posted.has_segment = wr->num_sge == 1;
  if (posted.has_segment) posted.segment = *wr->sg_list;
  if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM) {
    posted.remote_address = wr->wr.rdma.remote_addr;
    posted.rkey = wr->wr.rdma.rkey;
  }
  if (wr->opcode == IBV_WR_SEND_WITH_IMM || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) posted.imm = wr->imm_data;
  if (wr->send_flags & IBV_SEND_INLINE) std::memcpy(&posted.bytes, reinterpret_cast<const void*>(wr->sg_list->addr), 8);
  state.posted.push_back(posted);
  return 0;
}

int keep_recv(const char* what, ibv_recv_wr* wr) {
  if (state.post_error) return state.post_error;
  Posted posted;
  posted.what = what;
  posted.wr_id = wr->wr_id;
  posted.has_segment = wr->num_sge == 1;
  if (posted.has_segment) posted.segment = *wr->sg_list;
  state.posted.push_back(posted);
  return 0;
}

int post_recv(ibv_qp*, ibv_recv_wr* wr, ibv_recv_wr**) {
  return hit("ibv_post_recv") ? errno : keep_recv("recv", wr);
}

int post_srq_recv(ibv_srq*, ibv_recv_wr* wr, ibv_recv_wr**) {
  return hit("ibv_post_srq_recv") ? errno : keep_recv("srq recv", wr);
}

int poll_cq(ibv_cq*, int capacity, ibv_wc* out) {
  int got = 0;
  if (hit("ibv_poll_cq")) return -1;
  while (got < capacity && !state.completions.empty()) {
    out[got++] = state.completions.front();
    state.completions.erase(state.completions.begin());
  }
  if (got && state.after_poll) std::exchange(state.after_poll, nullptr)();
  return got;
}

int req_notify_cq(ibv_cq*, int) {
  return hit("ibv_req_notify_cq") ? errno : 0;
}

int advise_mr(ibv_pd*, ibv_advise_mr_advice, uint32_t, ibv_sge* segments, uint32_t count) {
  if (hit("ibv_advise_mr")) return errno;
  state.advised.insert(state.advised.end(), segments, segments + count);
  return 0;
}

int query_device_ex(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex* attr, size_t size) {
  if (hit("ibv_query_device_ex")) return errno;
  std::memcpy(attr, &state.device, size);
  return 0;
}

void wr_start(ibv_qp_ex*) {
  native = {};
}
int wr_complete(ibv_qp_ex* qp) {
  if (hit("ibv_wr_complete")) return errno;
  if (state.post_error) return state.post_error;
  native.wr_id = qp->wr_id;
  native.flags = qp->wr_flags;
  state.posted.push_back(native);
  return 0;
}
void atomic_write(ibv_qp_ex*, uint32_t rkey, uint64_t address, const void* bytes) {
  native.what = "atomic write";
  native.rkey = rkey;
  native.remote_address = address;
  std::memcpy(&native.bytes, bytes, 8);
}
void flush(ibv_qp_ex*, uint32_t rkey, uint64_t address, size_t length, uint8_t placement, uint8_t) {
  native.what = "flush";
  native.rkey = rkey;
  native.remote_address = address;
  native.length = length;
  native.placement = placement;
}

void set_after_abort(FakeQp& qp, size_t distance, void (*function)()) {
  std::memcpy(reinterpret_cast<char*>(&qp) + offsetof(ibv_qp_ex, wr_abort) + distance * sizeof function, &function,
              sizeof function);
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t length, unsigned access) {
  if (hit("ibv_reg_mr")) return nullptr;
  state.accesses.push_back(access);
  if (access & state.refused_access) {
    errno = state.refused_error;
    return nullptr;
  }
  if (state.unpinned_only && !(access & IBV_ACCESS_ON_DEMAND)) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  auto* mr = new ibv_mr{};
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = address;
  mr->length = length;
  mr->lkey = 0x11;
  mr->rkey = 0x22;
  ++state.live[kMr];
  return mr;
}

// For queue pairs that never carry data.
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  if (hit("ibv_create_qp_ex")) return nullptr;
  if (!state.has_create_qp_ex || attr->send_ops_flags & ~state.known_send_ops) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  auto* made = new FakeQp;
  made->ex.qp_base.context = context;
  ++state.live[kQp];
  return &made->ex.qp_base;
}

}  // namespace

void reset() {
  state = {};
  state.attr.coherence = DAPPLEDV_COHERENCE_COHERENT;
  state.attr.certainty = DAPPLEDV_CERTAINTY_KERNEL;
  state.attr.sync_supported = 1;
  extended = {};
  change_device();
  extended.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  extended.sz = sizeof extended;
  extended.advise_mr = advise_mr;
  extended.query_device_ex = query_device_ex;
  extended.create_qp_ex = create_qp_ex;
  ibv_context_ops& ops = extended.context.ops;
  ops.poll_cq = poll_cq;
  ops.req_notify_cq = req_notify_cq;
  ops.post_send = post_send;
  ops.post_recv = post_recv;
  ops.post_srq_recv = post_srq_recv;
}

void change_device() {
  ibv_device& device = devices.emplace_back();
  std::strcpy(device.name, "fake0");
  device.transport_type = IBV_TRANSPORT_IB;
  extended.context.device = &device;
}

ibv_context* context() {
  return &extended.context;
}

void make_native() {
  state.device.device_cap_flags_ex |=
      dapple::verbs::kDeviceAtomicWrite | dapple::verbs::kDeviceFlushGlobal | dapple::verbs::kDeviceFlushPersistent;
  state.known_send_ops = dapple::rpma::native::kQpWithAtomicWrite | dapple::rpma::native::kQpWithFlush;
}

void make_noncoherent() {
  state.attr.coherence = DAPPLEDV_COHERENCE_NONCOHERENT_CPU;
  state.attr.certainty = DAPPLEDV_CERTAINTY_OVERRIDE;
}

int live() {
  int sum = 0;
  for (const int count : state.live) sum += count;
  return sum;
}

}  // namespace fake

using namespace fake;

// ---- libdapple ----

extern "C" {

const char* dappledv_refusal(unsigned*) noexcept {
  return nullptr;
}
int dappledv_report_failure(const char* text, const char* remedy) noexcept {
  state.reports.push_back(std::string(text) + " " + remedy);
  return 1;
}

int dappledv_note_call(dappledv_call*) noexcept {
  return 1;
}
int dappledv_report_missing_call(const char* text, const char* remedy, const dappledv_call*) noexcept {
  state.reports.push_back(std::string(text) + " " + remedy);
  return 1;
}

int dappledv_query_device(ibv_context*, dappledv_device_attr* attr) noexcept {
  if (hit("dappledv_query_device")) return errno;
  *attr = state.attr;
  return 0;
}
int dappledv_sync_mr_for_cpu(ibv_context*, const ibv_sge*, size_t, size_t*) noexcept {
  return state.attached ? 0 : EOPNOTSUPP;
}
int dappledv_init_region(const dappledv_device_attr* device, dappledv_region_attr* region) noexcept {
  region->coherence = device->coherence;
  return 0;
}
int dappledv_sync_for_device(const dappledv_region_attr*, const iovec* ranges, size_t count) noexcept {
  for (size_t i = 0; i < count; ++i) state.synced.push_back({false, ranges[i]});
  return 0;
}
int dappledv_sync_for_cpu(const dappledv_region_attr*, const iovec* ranges, size_t count) noexcept {
  for (size_t i = 0; i < count; ++i) state.synced.push_back({true, ranges[i]});
  return 0;
}

// ---- libibverbs ----

const char* ibv_get_device_name(ibv_device* which) {
  return which->name;
}
// For contexts without query_device_ex, which this is not.
int ibv_query_device(ibv_context*, ibv_device_attr*) {
  return hit("ibv_query_device") ? errno : ENOSYS;
}
ibv_pd* ibv_alloc_pd(ibv_context* context) {
  if (hit("ibv_alloc_pd")) return nullptr;
  ++state.live[kPd];
  return new ibv_pd{context, 0};
}
int ibv_query_qp(ibv_qp*, ibv_qp_attr* attr, int, ibv_qp_init_attr*) {
  attr->qp_state = state.qp_state;
  return 0;
}
int ibv_dealloc_pd(ibv_pd* pd) {
  if (hit("ibv_dealloc_pd")) return errno;
  --state.live[kPd];
  delete pd;
  return 0;
}
ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int access) {
  return reg_mr(pd, address, length, static_cast<unsigned>(access));
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, size_t length, uint64_t, unsigned access) {
  return reg_mr(pd, address, length, access);
}
int ibv_dereg_mr(ibv_mr* mr) {
  if (hit("ibv_dereg_mr")) return errno;
  --state.live[kMr];
  delete mr;
  return 0;
}
ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  if (hit("ibv_create_comp_channel")) return nullptr;
  ++state.live[kChannel];
  return new ibv_comp_channel{context, 1000, 0};
}
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  if (hit("ibv_destroy_comp_channel")) return errno;
  if (channel->refcnt) complain("a channel destroyed before its CQ");
  --state.live[kChannel];
  delete channel;
  return 0;
}
ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context, ibv_comp_channel* channel, int) {
  if (hit("ibv_create_cq")) return nullptr;
  auto* made = new FakeCq;
  made->cq.context = context;
  made->cq.cq_context = cq_context;
  made->cq.channel = channel;
  made->cq.cqe = entries;
  if (channel) ++channel->refcnt;
  ++state.live[kCq];
  last_cq = &made->cq;
  return last_cq;
}
int ibv_destroy_cq(ibv_cq* cq) {
  if (hit("ibv_destroy_cq")) return errno;
  auto* made = reinterpret_cast<FakeCq*>(cq);
  if (made->unacknowledged) complain("a CQ destroyed with events that were not acknowledged: that never ends");
  if (state.live[kQp] && last_cq == cq && state.live[kCq] == 1) complain("a CQ destroyed before its queue pair");
  if (cq->channel) --cq->channel->refcnt;
  --state.live[kCq];
  if (last_cq == cq) last_cq = nullptr;
  delete made;
  return 0;
}
int ibv_get_cq_event(ibv_comp_channel*, ibv_cq** cq, void** cq_context) {
  if (hit("ibv_get_cq_event")) return -1;
  if (state.cq_events == 0) {
    errno = EAGAIN;
    return -1;
  }
  --state.cq_events;
  *cq = state.cq_event_source ? state.cq_event_source : last_cq;
  *cq_context = (*cq)->cq_context;
  ++reinterpret_cast<FakeCq*>(*cq)->unacknowledged;
  took_event();
  return 0;
}
void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
  auto* made = reinterpret_cast<FakeCq*>(cq);
  made->unacknowledged -= static_cast<int>(count);
  if (made->unacknowledged < 0) complain("an event acknowledged twice");
  state.acknowledged.push_back(static_cast<int>(count));
}
ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr*) {
  if (hit("ibv_create_srq")) return nullptr;
  auto* srq = new ibv_srq{};
  srq->context = pd->context;
  ++state.live[kSrq];
  return srq;
}
int ibv_destroy_srq(ibv_srq* srq) {
  if (hit("ibv_destroy_srq")) return errno;
  --state.live[kSrq];
  delete srq;
  return 0;
}
int ibv_destroy_qp(ibv_qp* qp) {
  if (hit("ibv_destroy_qp")) return errno;
  --state.live[kQp];
  delete reinterpret_cast<FakeQp*>(qp);
  return 0;
}
// For contexts without create_qp_ex.
ibv_qp* ibv_create_qp(ibv_pd*, ibv_qp_init_attr*) {
  errno = ENOSYS;
  return nullptr;
}
ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  auto* made = reinterpret_cast<FakeQp*>(qp);
  return made->extended ? &made->ex : nullptr;
}

// ---- librdmacm ----

rdma_event_channel* rdma_create_event_channel() {
  if (hit("rdma_create_event_channel")) return nullptr;
  ++state.live[kEventChannel];
  // Readable, so that nobody sleeps for an event.
  return &event_channels.emplace_back(rdma_event_channel{eventfd(1, EFD_CLOEXEC)});
}
void rdma_destroy_event_channel(rdma_event_channel* channel) {
  --state.live[kEventChannel];
  close(std::exchange(channel->fd, kDestroyed));
}
int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space space) {
  if (hit("rdma_create_id")) return -1;
  *id = new rdma_cm_id{};
  (*id)->channel = channel;
  (*id)->context = context;
  (*id)->ps = space;
  ++state.live[kCmId];
  return 0;
}
int rdma_destroy_id(rdma_cm_id* id) {
  static auto& kept = *new std::vector<rdma_cm_id*>;  // kept to the end where a leak checker finds them
  if (hit("rdma_destroy_id")) {
    kept.push_back(id);
    return -1;
  }
  use_channel(id);
  if (id->qp) complain("an id destroyed before its queue pair");
  --state.live[kCmId];
  delete id;
  return 0;
}
int rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel) {
  use_channel(id);
  if (hit("rdma_migrate_id")) return -1;
  id->channel = channel;
  return 0;
}
int rdma_bind_addr(rdma_cm_id* id, sockaddr*) {
  if (hit("rdma_bind_addr")) return -1;
  id->verbs = fake::context();
  return 0;
}
int rdma_listen(rdma_cm_id*, int) {
  return hit("rdma_listen") ? -1 : 0;
}
int rdma_resolve_addr(rdma_cm_id* id, sockaddr*, sockaddr*, int) {
  if (hit("rdma_resolve_addr")) return -1;
  id->verbs = fake::context();
  return 0;
}
int rdma_resolve_route(rdma_cm_id*, int) {
  return hit("rdma_resolve_route") ? -1 : 0;
}
int rdma_create_qp_ex(rdma_cm_id* id, ibv_qp_init_attr_ex* attr) {
  if (hit("rdma_create_qp_ex")) return -1;
  const bool wants_ops = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  if (attr->comp_mask & ~static_cast<uint32_t>(IBV_QP_INIT_ATTR_PD)) {
    ++state.created_extended;
    if (!state.has_create_qp_ex || (wants_ops && attr->send_ops_flags & ~state.known_send_ops)) {
      errno = EOPNOTSUPP;
      return -1;
    }
  }
  auto* qp = new FakeQp;
  qp->ex.qp_base.context = id->verbs;
  qp->ex.qp_base.qp_num = 77;
  qp->extended = wants_ops;
  if (wants_ops) {
    qp->ex.wr_start = wr_start;
    qp->ex.wr_complete = wr_complete;
    if (attr->send_ops_flags & dapple::rpma::native::kQpWithAtomicWrite)
      set_after_abort(*qp, 1, reinterpret_cast<void (*)()>(atomic_write));
    if (attr->send_ops_flags & dapple::rpma::native::kQpWithFlush)
      set_after_abort(*qp, 2, reinterpret_cast<void (*)()>(flush));
  }
  id->qp = &qp->ex.qp_base;
  ++state.live[kQp];
  return 0;
}
void rdma_destroy_qp(rdma_cm_id* id) {
  if (!id->qp) complain("a queue pair destroyed twice");
  if (state.drops_completions) state.completions.clear();
  delete reinterpret_cast<FakeQp*>(id->qp);
  id->qp = nullptr;
  --state.live[kQp];
}
int rdma_connect(rdma_cm_id*, rdma_conn_param*) {
  return hit("rdma_connect") ? -1 : 0;
}
int rdma_accept(rdma_cm_id* id, rdma_conn_param*) {
  use_channel(id);
  return hit("rdma_accept") ? -1 : 0;
}
int rdma_reject(rdma_cm_id* id, const void*, uint8_t) {
  use_channel(id);
  if (hit("rdma_reject")) return -1;
  ++state.rejected;
  return 0;
}
int rdma_disconnect(rdma_cm_id*) {
  return hit("rdma_disconnect") ? -1 : 0;
}
int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** out) {
  if (hit("rdma_get_cm_event")) return -1;
  if (state.events.empty()) {
    errno = state.no_event_error;
    return -1;
  }
  const State::Event next = state.events.front();
  state.events.erase(state.events.begin());
  auto* event = new rdma_cm_event{};
  static rdma_cm_id anybody{};
  anybody.ps = RDMA_PS_TCP;
  event->event = next.type;
  event->id = &anybody;
  event->listen_id = &anybody;
  if (next.type == RDMA_CM_EVENT_CONNECT_REQUEST) {
    event->id = new rdma_cm_id{};
    event->id->channel = channel;
    event->id->verbs = fake::context();
    event->id->ps = RDMA_PS_TCP;
    ++state.live[kCmId];
  }
  if (!next.private_data.empty()) {
    event->param.conn.private_data = strndup(next.private_data.data(), next.private_data.size());
    event->param.conn.private_data_len = static_cast<uint8_t>(next.private_data.size());
  }
  took_event();
  // The real one has more of these when it has taken the event, and then nobody gets it.
  if (state.cancellation_points) pthread_testcancel();
  *out = event;
  return 0;
}
int rdma_ack_cm_event(rdma_cm_event* event) {
  std::free(const_cast<void*>(event->param.conn.private_data));
  delete event;
  return 0;
}
const char* rdma_event_str(rdma_cm_event_type) {
  return "an event";
}
int rdma_getaddrinfo(const char*, const char*, const rdma_addrinfo*, rdma_addrinfo** out) {
  if (hit("rdma_getaddrinfo")) return -1;
  *out = new rdma_addrinfo{};
  ++state.live[kAddress];
  return 0;
}
void rdma_freeaddrinfo(rdma_addrinfo* list) {
  --state.live[kAddress];
  delete list;
}

}  // extern "C"

// librpma's code allocates only in this way.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return hit("new") ? nullptr : std::malloc(size);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return hit("new") ? nullptr : std::malloc(size);
}
void* operator new(size_t size) {
  void* block = std::malloc(size);
  if (!block) std::abort();
  return block;
}
void* operator new[](size_t size) {
  return operator new(size);
}
void operator delete(void* block) noexcept {
  std::free(block);
}
void operator delete(void* block, size_t) noexcept {
  std::free(block);
}
void operator delete[](void* block) noexcept {
  std::free(block);
}
void operator delete[](void* block, size_t) noexcept {
  std::free(block);
}

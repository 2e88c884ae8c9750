// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/unit/udapl-data-path/fake_device.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/dappledv.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "tests/unit/udapl-core/take_event.hpp"
#include "udapl/core/endpoint/srq.hpp"
#include "udapl/core/lock.hpp"
#include "udapl/core/memory/lmr.hpp"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_query_port

namespace fake_device {

State state;

namespace {

struct Cq;

struct Channel {
  ibv_comp_channel channel{};
  int write_fd = -1;  // a byte for each event
  std::deque<Cq*> events;
};

struct Cq {
  ibv_cq cq{};
  std::deque<ibv_wc> entries;
  bool armed = false;
  bool only_errors = false;  // armed for solicited events, and no message is solicited
  uint32_t unacknowledged = 0;
};

struct Qp {
  ibv_qp qp{};
  std::deque<ibv_wc> sends;  // held; includes those that asked for no completion
  std::deque<bool> signalled;
  std::deque<ibv_wc> receives;
  bool failed = false;
};

struct SharedQueue {
  ibv_srq srq{};
  uint32_t limit = 0;
};

std::mutex mutex;  // for the whole device
ibv_device device{};
verbs_context extended{};
std::map<uint32_t, Qp*> qps;
std::list<Channel*> channels;
std::deque<ibv_async_event> async_events;
uint32_t next_number = 1;

struct CmEvents {
  rdma_event_channel channel{};
  int write_fd = -1;
  std::deque<rdma_cm_event*> events;
};
CmEvents* cm = nullptr;
rdma_cm_id* unanswered = nullptr;

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "fake device: %s\n", what);
  std::abort();
}

void open_pipe(int& read_fd, int& write_fd) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC)) die("no pipe");
  read_fd = fds[0];
  write_fd = fds[1];
}

// All of these are called with the mutex held.
void put(ibv_cq* where, const ibv_wc& completion) {
  auto& cq = *reinterpret_cast<Cq*>(where);
  if (cq.entries.size() >= static_cast<size_t>(cq.cq.cqe)) {
    ++state.overflows;
    return;
  }
  cq.entries.push_back(completion);
  state.most_entries = std::max<size_t>(state.most_entries, cq.entries.size());
  if (cq.only_errors && completion.status == IBV_WC_SUCCESS) return;
  if (!std::exchange(cq.armed, false) || !cq.cq.channel) return;
  auto& channel = *reinterpret_cast<Channel*>(cq.cq.channel);
  channel.events.push_back(&cq);
  const char one = 1;
  if (write(channel.write_fd, &one, 1) != 1) die("full pipe");
}

void finish_sends(Qp& qp, ibv_wc_status status) {
  for (; !qp.sends.empty(); qp.sends.pop_front(), qp.signalled.pop_front()) {
    if (status == IBV_WC_SUCCESS && !qp.signalled.front()) continue;
    qp.sends.front().status = status;
    put(qp.qp.send_cq, qp.sends.front());
  }
}

void finish_receives(Qp& qp, ibv_wc_status status) {
  for (; !qp.receives.empty(); qp.receives.pop_front()) {
    qp.receives.front().status = status;
    put(qp.qp.recv_cq, qp.receives.front());
  }
}

int post_send(ibv_qp* where, ibv_send_wr* wr, ibv_send_wr** bad) {
  if (const int error = state.refuses) return error;
  auto& qp = *reinterpret_cast<Qp*>(where);
  {
    std::lock_guard guard(mutex);
    *bad = wr;
    ibv_wc completion{};
    completion.wr_id = wr->wr_id;
    completion.qp_num = where->qp_num;
    completion.opcode = wr->opcode == IBV_WR_RDMA_WRITE ? IBV_WC_RDMA_WRITE : IBV_WC_SEND;
    const bool signalled = wr->send_flags & IBV_SEND_SIGNALED;
    if (!signalled) ++state.unsignalled;
    if (wr->send_flags & IBV_SEND_INLINE) ++state.inlined;
    qp.sends.push_back(completion);
    qp.signalled.push_back(signalled);
    if (qp.failed) {
      finish_sends(qp, IBV_WC_WR_FLUSH_ERR);
    } else if (!state.holds) {
      finish_sends(qp, IBV_WC_SUCCESS);
    }
  }
  if (const auto in_post = state.in_post) in_post();
  pthread_testcancel();
  return 0;
}

int post_recv(ibv_qp* where, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  if (const int error = state.refuses) return error;
  std::lock_guard guard(mutex);
  auto& qp = *reinterpret_cast<Qp*>(where);
  *bad = wr;
  ibv_wc completion{};
  completion.wr_id = wr->wr_id;
  completion.qp_num = where->qp_num;
  completion.opcode = IBV_WC_RECV;
  qp.receives.push_back(completion);
  if (qp.failed) {
    if (!state.misses_late) finish_receives(qp, IBV_WC_WR_FLUSH_ERR);
  } else if (!state.holds) {
    finish_receives(qp, IBV_WC_SUCCESS);
  }
  return 0;
}

// Completes at once, on one queue pair after the other, unless the device holds requests.
int post_srq_recv(ibv_srq* where, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  if (const int error = state.refuses) return error;
  std::lock_guard guard(mutex);
  *bad = wr;
  if (state.holds) return 0;
  static uint32_t turn = 0;
  uint32_t users = 0;
  for (const auto& [number, qp] : qps) users += qp->qp.srq == where;
  if (users == 0) return EINVAL;
  uint32_t at = turn++ % users;
  for (const auto& [number, qp] : qps) {
    if (qp->qp.srq != where || at--) continue;
    ibv_wc completion{};
    completion.wr_id = wr->wr_id;
    completion.qp_num = number;
    completion.opcode = IBV_WC_RECV;
    put(qp->qp.recv_cq, completion);
    break;
  }
  return 0;
}

void call_once(std::function<void()>& hook) {
  if (const auto call = std::exchange(hook, nullptr)) call();
}

int poll_cq(ibv_cq* where, int capacity, ibv_wc* out) {
  int got = 0;
  {
    std::lock_guard guard(mutex);
    auto& cq = *reinterpret_cast<Cq*>(where);
    for (; got < capacity && !cq.entries.empty(); ++got) {
      out[got] = cq.entries.front();
      cq.entries.pop_front();
    }
  }
  if (got == 0) call_once(state.after_poll);
  return got;
}

int req_notify_cq(ibv_cq* where, int solicited_only) {
  pthread_testcancel();
  call_once(state.before_arming);
  std::lock_guard guard(mutex);
  if (state.removed || state.deaf) return 0;
  auto& cq = *reinterpret_cast<Cq*>(where);
  cq.only_errors = solicited_only != 0;
  cq.armed = true;
  return 0;
}

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  std::lock_guard guard(mutex);
  auto* mw = new ibv_mw{};
  mw->context = pd->context;
  mw->pd = pd;
  mw->type = type;
  mw->rkey = next_number++ << 8;
  return mw;
}

int dealloc_mw(ibv_mw* mw) {
  delete mw;
  return 0;
}

void report(rdma_cm_id* id, rdma_cm_event_type type) {
  std::lock_guard guard(mutex);
  auto* event = new rdma_cm_event{};
  event->id = id;
  event->event = type;
  cm->events.push_back(event);
  const char one = 1;
  if (write(cm->write_fd, &one, 1) != 1) die("full pipe");
}

constexpr dapple::udapl::Tables kTables = {&kLiveTable, &kDeadTable};

}  // namespace

void reset() {
  state.holds = state.removed = state.cancels_taker = state.deaf = state.never_flushes = state.misses_late = false;
  state.keeps_queue_pairs = state.cleans_cqs = state.unanswered = state.cannot_resize = false;
  state.refuses = state.max_sge_rd = state.refuses_region = 0;
  state.max_regions = 1 << 20;
  state.overflows = state.unsignalled = state.inlined = 0;
  state.most_entries = 0;
  state.in_post = state.in_disconnect = state.after_poll = state.before_arming = nullptr;
  state.vendor_id = 0;
  state.transport = IBV_TRANSPORT_IB;
}

void complete(uint32_t qp_num) {
  fail(qp_num, IBV_WC_SUCCESS);
}

void fail(uint32_t qp_num, ibv_wc_status status) {
  std::lock_guard guard(mutex);
  finish_sends(*qps.at(qp_num), status);
  finish_receives(*qps.at(qp_num), status);
}

void complete_nothing(uint32_t qp_num) {
  std::lock_guard guard(mutex);
  ibv_wc completion{};
  completion.status = IBV_WC_GENERAL_ERR;
  completion.qp_num = qp_num;
  put(qps.at(qp_num)->qp.send_cq, completion);
}

void reach_limit(const dapple::udapl::Srq& srq) {
  std::lock_guard guard(mutex);
  if (std::exchange(reinterpret_cast<SharedQueue*>(srq.verbs_srq())->limit, 0) == 0) return;
  ibv_async_event event{};
  event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
  event.element.srq = srq.verbs_srq();
  async_events.push_back(event);
}

void answer() {
  report(unanswered, RDMA_CM_EVENT_CONNECT_RESPONSE);
}

void begin_connect(dapple::udapl::Ep& ep) {
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::lock_guard guard(dapple::udapl::control_mutex());
  if (!ep.connect(reinterpret_cast<sockaddr*>(&peer), 1, dapple::udapl::Evd::kInfinite, {})) die("connect");
}

void connect(dapple::udapl::Ep& ep) {
  using namespace dapple::udapl;
  begin_connect(ep);
  Event event;
  uint32_t more;
  if (!wait_for_event(*ep.evds().connect, 10'000'000, 1, event, more) || event.kind != EventKind::kEstablished)
    die("not connected");
}

void remove() {
  std::lock_guard guard(mutex);
  state.removed = true;
  for (Channel* channel : channels) close(std::exchange(channel->write_fd, -1));
}

using dapple::udapl::control_mutex;

Ia::Ia(bool thread_safe) {
  std::strcpy(device.name, "fake0");
  device.transport_type = state.transport;
  extended.context.device = &device;
  extended.context.async_fd = 0;
  extended.sz = sizeof extended;
  ibv_context_ops& ops = extended.context.ops;
  ops.poll_cq = poll_cq;
  ops.req_notify_cq = req_notify_cq;
  ops.post_send = post_send;
  ops.post_recv = post_recv;
  ops.post_srq_recv = post_srq_recv;
  ops.alloc_mw = alloc_mw;
  ops.dealloc_mw = dealloc_mw;
  int unused = -1;
  open_pipe(extended.context.async_fd, unused);
  ia_ =
      dapple::udapl::Ia::open({.name = "fake", .params = "127.0.0.1 0", .thread_safe = thread_safe, .tables = kTables})
          .value();
  std::lock_guard guard(control_mutex());
  pz_ = dapple::udapl::Pz::create(*ia_).value();
}

Ia::~Ia() {
  (void)dapple::udapl::Ia::close(*ia_, true);
}

dapple::udapl::Evd& Ia::evd(uint32_t qlen, uint32_t streams) {
  std::lock_guard guard(control_mutex());
  return *dapple::udapl::Evd::create(*ia_, qlen, streams).value();
}

dapple::udapl::Cno& Ia::cno() {
  std::lock_guard guard(control_mutex());
  return *dapple::udapl::Cno::create(*ia_, {}, false).value();
}

dapple::udapl::Ep& Ia::connected_ep(const dapple::udapl::EpEvds& wanted, const dapple::udapl::EpAttr& attr,
                                    dapple::udapl::Srq* srq) {
  using namespace dapple::udapl;
  EpEvds evds = wanted;
  if (!evds.recv) evds.recv = &evd(64);
  if (!evds.request) evds.request = &evd(64);
  if (!evds.connect) evds.connect = &evd(8, kEvdConnection);
  Ep* ep = nullptr;
  {
    std::lock_guard guard(control_mutex());
    ep = Ep::create(*ia_, pz_, evds, attr, srq).value();
  }
  connect(*ep);
  return *ep;
}

dapple::udapl::Lmr& Ia::lmr(void* memory, uint64_t length) {
  using namespace dapple::udapl;
  std::unique_lock control(control_mutex());
  return *Lmr::create(*ia_, *pz_, {.address = memory, .length = length, .privileges = kAllPrivileges}, control).value();
}

}  // namespace fake_device

using namespace fake_device;

extern "C" {

// ---- libdapple ----

int dappledv_query_device_override(ibv_context*, const char*, dappledv_device_attr* attr) noexcept {
  attr->coherence = DAPPLEDV_COHERENCE_COHERENT;
  attr->sync_supported = 1;
  attr->certainty = DAPPLEDV_CERTAINTY_KERNEL;
  attr->explanation = "made up";
  attr->clean_instruction = attr->clean_invalidate_instruction = attr->persist_instruction = "none";
  return 0;
}

// ---- libibverbs ----

const char* ibv_get_device_name(ibv_device* which) {
  return which->name;
}
int ibv_query_device(ibv_context*, ibv_device_attr* attr) {
  *attr = {};
  attr->vendor_id = state.vendor_id;
  attr->max_mr_size = ~uint64_t{0};
  attr->max_qp_wr = attr->max_cqe = attr->max_srq_wr = 1 << 16;
  attr->max_sge = attr->max_srq_sge = 16;
  attr->max_sge_rd = state.max_sge_rd;
  attr->max_mr = state.max_regions;
  attr->max_qp = attr->max_cq = attr->max_srq = attr->max_mw = 1 << 20;
  attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = 16;
  attr->device_cap_flags = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;
  return 0;
}
int ibv_query_port(ibv_context*, uint8_t, _compat_ibv_port_attr* out) {
  ibv_port_attr attr{};
  attr.state = IBV_PORT_ACTIVE;
  attr.max_msg_sz = 1U << 31;
  attr.active_mtu = IBV_MTU_4096;
  attr.link_layer = IBV_LINK_LAYER_ETHERNET;
  std::memcpy(out, &attr, offsetof(ibv_port_attr, port_cap_flags2));
  return 0;
}
int ibv_get_async_event(ibv_context*, ibv_async_event* event) {
  std::lock_guard guard(mutex);
  errno = EAGAIN;
  if (async_events.empty()) return -1;
  *event = async_events.front();
  async_events.pop_front();
  return 0;
}
void ibv_ack_async_event(ibv_async_event*) {}
ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return new ibv_pd{context, 0};
}
int ibv_dealloc_pd(ibv_pd* pd) {
  delete pd;
  return 0;
}
ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int) {
  std::lock_guard guard(mutex);
  if (state.regions >= state.max_regions) {
    errno = state.refuses_region;
    return nullptr;
  }
  ++state.regions;
  auto* mr = new ibv_mr{};
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = address;
  mr->length = length;
  mr->lkey = mr->rkey = next_number++;
  return mr;
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, size_t length, uint64_t, unsigned access) {
  return ibv_reg_mr(pd, address, length, static_cast<int>(access));
}
int ibv_dereg_mr(ibv_mr* mr) {
  --state.regions;
  delete mr;
  return 0;
}
ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  std::lock_guard guard(mutex);
  auto* made = new Channel;
  made->channel.context = context;
  open_pipe(made->channel.fd, made->write_fd);
  channels.push_back(made);
  ++state.channels;
  return &made->channel;
}
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  std::lock_guard guard(mutex);
  auto* made = reinterpret_cast<Channel*>(channel);
  if (channel->refcnt) die("a channel destroyed before its CQs");
  close(channel->fd);
  if (made->write_fd >= 0) close(made->write_fd);
  channels.remove(made);
  --state.channels;
  delete made;
  return 0;
}
ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context, ibv_comp_channel* channel, int) {
  std::lock_guard guard(mutex);
  auto* made = new Cq;
  made->cq.context = context;
  made->cq.cq_context = cq_context;
  made->cq.channel = channel;
  made->cq.cqe = entries;
  if (channel) ++channel->refcnt;
  return &made->cq;
}
int ibv_resize_cq(ibv_cq* cq, int entries) {
  if (fake_device::state.cannot_resize) return ENOSYS;
  std::lock_guard guard(mutex);
  cq->cqe = entries;
  return 0;
}
int ibv_destroy_cq(ibv_cq* cq) {
  auto* made = reinterpret_cast<Cq*>(cq);
  std::unique_lock guard(mutex);
  if (auto* channel = reinterpret_cast<Channel*>(cq->channel)) {
    char one;
    for (size_t gone = std::erase(channel->events, made); gone; --gone) (void)!read(channel->channel.fd, &one, 1);
  }
  // Like the real one, waits for taken events to be acknowledged.
  while (made->unacknowledged) {
    guard.unlock();
    usleep(100);
    guard.lock();
  }
  if (cq->channel) --cq->channel->refcnt;
  delete made;
  return 0;
}
int ibv_get_cq_event(ibv_comp_channel* where, ibv_cq** cq, void** cq_context) {
  char one;
  std::lock_guard guard(mutex);
  auto& channel = *reinterpret_cast<Channel*>(where);
  const ssize_t got = read(where->fd, &one, 1);
  if (got == 0) errno = EIO;
  if (got != 1) return -1;
  Cq* const told = channel.events.front();
  channel.events.pop_front();
  ++told->unacknowledged;
  *cq = &told->cq;
  *cq_context = told->cq.cq_context;
  if (state.cancels_taker.exchange(false)) pthread_cancel(pthread_self());
  pthread_testcancel();
  return 0;
}
void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
  std::lock_guard guard(mutex);
  reinterpret_cast<Cq*>(cq)->unacknowledged -= count;
}
ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr*) {
  auto* made = new SharedQueue;
  made->srq.context = pd->context;
  return &made->srq;
}
int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  if (mask & IBV_SRQ_MAX_WR && state.cannot_resize) return ENOSYS;
  if (mask & IBV_SRQ_LIMIT && state.cannot_limit) return ENOMEM;
  std::lock_guard guard(mutex);
  if (mask & IBV_SRQ_LIMIT) reinterpret_cast<SharedQueue*>(srq)->limit = attr->srq_limit;
  return 0;
}
int ibv_destroy_srq(ibv_srq* srq) {
  delete reinterpret_cast<SharedQueue*>(srq);
  return 0;
}
ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  std::lock_guard guard(mutex);
  auto* made = new Qp;
  made->qp.context = pd->context;
  made->qp.qp_context = attr->qp_context;
  made->qp.pd = pd;
  made->qp.send_cq = attr->send_cq;
  made->qp.recv_cq = attr->recv_cq;
  made->qp.srq = attr->srq;
  made->qp.qp_num = next_number++;
  attr->cap.max_inline_data = 64;
  qps[made->qp.qp_num] = made;
  return &made->qp;
}
int ibv_modify_qp(ibv_qp* which, ibv_qp_attr* attr, int mask) {
  std::lock_guard guard(mutex);
  auto& qp = *reinterpret_cast<Qp*>(which);
  if (!(mask & IBV_QP_STATE) || attr->qp_state != IBV_QPS_ERR) return 0;
  qp.failed = true;
  if (state.never_flushes) return 0;
  finish_sends(qp, IBV_WC_WR_FLUSH_ERR);
  finish_receives(qp, IBV_WC_WR_FLUSH_ERR);
  return 0;
}
int ibv_query_qp(ibv_qp* which, ibv_qp_attr* attr, int, ibv_qp_init_attr*) {
  std::lock_guard guard(mutex);
  attr->qp_state = reinterpret_cast<Qp*>(which)->failed ? IBV_QPS_ERR : IBV_QPS_RTS;
  return 0;
}
int ibv_destroy_qp(ibv_qp* which) {
  if (state.keeps_queue_pairs) return EBUSY;
  std::lock_guard guard(mutex);
  for (ibv_cq* cq : {which->send_cq, which->recv_cq}) {
    if (!state.cleans_cqs) break;
    std::erase_if(reinterpret_cast<Cq*>(cq)->entries,
                  [which](const ibv_wc& completion) { return completion.qp_num == which->qp_num; });
  }
  qps.erase(which->qp_num);
  delete reinterpret_cast<Qp*>(which);
  return 0;
}

// ---- librdmacm ----

rdma_event_channel* rdma_create_event_channel() {
  std::lock_guard guard(mutex);
  cm = new CmEvents;
  open_pipe(cm->channel.fd, cm->write_fd);
  return &cm->channel;
}
void rdma_destroy_event_channel(rdma_event_channel* channel) {
  std::lock_guard guard(mutex);
  close(cm->channel.fd);
  close(cm->write_fd);
  delete std::exchange(cm, nullptr);
  (void)channel;
}
int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space space) {
  *id = new rdma_cm_id{};
  (*id)->channel = channel;
  (*id)->context = context;
  (*id)->ps = space;
  return 0;
}
int rdma_destroy_id(rdma_cm_id* id) {
  std::lock_guard guard(mutex);
  const auto drop = [id](rdma_cm_event* event) {
    char one;
    if (event->id != id || read(cm->channel.fd, &one, 1) != 1) return false;
    delete event;
    return true;
  };
  if (cm) std::erase_if(cm->events, drop);
  delete id;
  return 0;
}
int rdma_bind_addr(rdma_cm_id* id, sockaddr*) {
  id->verbs = &extended.context;
  id->port_num = 1;
  return 0;
}
int rdma_resolve_addr(rdma_cm_id* id, sockaddr*, sockaddr*, int) {
  report(id, RDMA_CM_EVENT_ADDR_RESOLVED);
  return 0;
}
int rdma_resolve_route(rdma_cm_id* id, int) {
  report(id, RDMA_CM_EVENT_ROUTE_RESOLVED);
  return 0;
}
int rdma_connect(rdma_cm_id* id, rdma_conn_param*) {
  if (state.unanswered) {
    unanswered = id;
  } else {
    report(id, RDMA_CM_EVENT_CONNECT_RESPONSE);
  }
  return 0;
}
int rdma_establish(rdma_cm_id*) {
  return 0;
}
int rdma_init_qp_attr(rdma_cm_id*, ibv_qp_attr*, int* mask) {
  *mask = IBV_QP_STATE;
  return 0;
}
int rdma_disconnect(rdma_cm_id* id) {
  call_once(state.in_disconnect);
  report(id, RDMA_CM_EVENT_DISCONNECTED);
  return 0;
}
int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** out) {
  std::lock_guard guard(mutex);
  char one;
  errno = EAGAIN;
  if (!cm || cm->events.empty() || read(channel->fd, &one, 1) != 1) return -1;
  *out = cm->events.front();
  cm->events.pop_front();
  return 0;
}
int rdma_ack_cm_event(rdma_cm_event* event) {
  delete event;
  return 0;
}

}  // extern "C"

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/ia/ia.hpp"

#include <bit>
#include <cassert>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "ibverbs-glue/memlock.hpp"
#include "udapl/core/connection/connection_manager.hpp"
#include "udapl/core/connection/cr.hpp"
#include "udapl/core/connection/csp.hpp"
#include "udapl/core/connection/psp.hpp"
#include "udapl/core/connection/rsp.hpp"
#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/endpoint/srq.hpp"
#include "udapl/core/events/cno.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/coherence_check.hpp"
#include "udapl/core/ia/ia_params.hpp"
#include "udapl/core/log.hpp"
#include "udapl/core/memory/pz.hpp"

namespace dapple::udapl {

std::mutex& control_mutex() {
  static constinit std::mutex instance;
  static_assert(std::is_trivially_destructible_v<std::mutex>);  // lives until the process ends: our thread may end last
  return instance;
}

namespace {

// fork() must not take registered pages away from the parent. Since Linux 5.12 the kernel copies them for the child. On
// older kernels verbs must know before, and then a child lacks these pages. The call fails if the process has
// registered memory already; such a process must call ibv_fork_init() itself.
void make_fork_safe() {
  if (ibv_is_fork_initialized() == IBV_FORK_DISABLED) (void)ibv_fork_init();
}

struct ObjectCounters {
  Kind kind;
  std::optional<IaCounter> made, freed;
};
constexpr ObjectCounters kObjectCounters[] = {
    {Kind::kPz, IaCounter::kPzCreate, IaCounter::kPzFree},
    {Kind::kLmr, IaCounter::kLmrCreate, IaCounter::kLmrFree},
    {Kind::kRmr, IaCounter::kRmrCreate, IaCounter::kRmrFree},
    {Kind::kEvd, IaCounter::kEvdCreate, IaCounter::kEvdFree},
    {Kind::kEp, IaCounter::kEpCreate, IaCounter::kEpFree},
    {Kind::kSrq, IaCounter::kSrqCreate, IaCounter::kSrqFree},
    {Kind::kRsp, IaCounter::kRspCreate, IaCounter::kRspFree},
    {Kind::kPsp, std::nullopt, IaCounter::kPspFree},  // the call that makes it counts it
};

ObjectCounters counters_of(Kind kind) {
  for (const ObjectCounters& of : kObjectCounters) {
    if (of.kind == kind) return of;
  }
  return {};
}

}  // namespace

Ia::Ia(const IaOptions& options)
    : Object(options.tables.live, kKind, this), options_(options), settings_(Settings::from_environment()) {}

Result<Ia*> Ia::open(const IaOptions& options) {
  // Resolved before the lock: a name server may take its time, and other IAs have connections to serve.
  auto params = IaParams::parse(options.params);
  if (!params) return tl::unexpected(params.error());
  auto address = resolve(*params);
  if (!address) return tl::unexpected(address.error());

  std::unique_lock control(control_mutex());
  make_fork_safe();
  auto& manager = ConnectionManager::instance();
  if (auto started = manager.acquire(); !started) return tl::unexpected(started.error());
  Ia* ia = nullptr;
  const auto undo = [&] {
    if (ia) arena<Ia>().destroy(ia, options.tables.dead);
    manager.release(control);
  };
  try {
    ia = arena<Ia>().create(options);
    ia->address_ = *address;
    if (auto opened = ia->open_device(*params); !opened) {
      undo();
      return tl::unexpected(opened.error());
    }
  } catch (...) {
    undo();
    throw;
  }
  return ia;
}

Result<verbs::CmId> Ia::bind_id(verbs::SocketAddress address) {
  verbs::CmId id = ConnectionManager::instance().new_id(*this);
  if (!id) return fail_errno(errno);
  const bool bound = rdma_bind_addr(id.get(), address.get()) == 0;
  if (!bound && is_shortage(errno)) return fail_errno(errno);
  if (bound && !id->verbs) return verbs::loopback_device_id(address.get());
  if (!bound) id.reset();
  return id;
}

Result<> Ia::open_device(const IaParams& params) {
  auto id = bind_id(address_);
  if (!id) return tl::unexpected(id.error());
  id_ = std::move(*id);
  if (!id_) {
    log_error(
        "IA %s: no RDMA device serves '%s'; 'rdma link' lists what is there, and dapple-run runs a program with a "
        "software one",
        name().c_str(), params.where.c_str());
    return fail(Type::kInvalidAddress, Subtype::kAddressUnsupported);
  }
  if (int error = ibv_query_device(context(), &device_)) return fail_errno(error);
  rules_ = DeviceRules::of(*context(), device_);
  if (int error = ibv_query_port(context(), port(), &port_attr_)) return fail_errno(error);

  if (auto usable = query_coherence(params.coherence); !usable) return usable;
  named_attributes_.fill(*this);
  port_counters_.open(ibv_get_device_name(context()->device), port());
  return ConnectionManager::instance().watch(context());
}

Result<> Ia::query_coherence(const std::string& override_class) {
  if (dappledv_query_device_override(context(), override_class.empty() ? nullptr : override_class.c_str(),
                                     &coherence_)) {
    log_error("IA %s: the word in coherence '%s', DAPPLE_COHERENCE or DAPPLE_PERSISTENCE is unknown", name().c_str(),
              override_class.c_str());
    return fail(Type::kInvalidParameter);
  }
  if (const char* obstacle = obstacle_of(coherence_)) {
    log_error("IA %s: %s is not used: %s (%s)", name().c_str(), ibv_get_device_name(context()->device), obstacle,
              coherence_.explanation);
    return fail(Type::kModelNotSupported);
  }
  maintains_caches_ = coherence_.sync_for_device_required || coherence_.sync_for_cpu_required;
  dappledv_region_attr& unmarked = memory_coherence_[0][0];
  dappledv_region_attr& noncoherent = memory_coherence_[1][0];
  (void)dappledv_init_region(&coherence_, &unmarked);
  // On a CPU without the instructions sync_supported becomes 0, and no such LMR is made.
  noncoherent = unmarked;
  if (dappledv_override_region(&noncoherent, DAPPLEDV_COHERENCE_NONCOHERENT_CPU)) noncoherent = {};
  // If no instruction makes data persistent, persist_supported is 0 as well.
  for (auto& [not_persistent, persistent] : memory_coherence_) {
    persistent = not_persistent;
    (void)dappledv_persist_region(&persistent, DAPPLEDV_PERSISTENCE_UNSPECIFIED);
  }
  return {};
}

Result<> Ia::create_async_evd(uint32_t qlen) {
  std::lock_guard guard(control_mutex());
  auto evd = Evd::create(*this, qlen, kEvdAsync);
  if (!evd) return tl::unexpected(evd.error());
  assert(!async_evd_);
  async_evd_ = *evd;
  async_evd_->acquire();
  return {};
}

void Ia::borrow_async_evd(Evd& evd) {
  std::lock_guard guard(control_mutex());
  async_evd_ = &evd;
  evd.acquire();
}

Result<ibv_cq*> Ia::idle_cq() {
  errno = ENOSPC;  // as in Evd::open_queues()
  if (!idle_cq_) idle_cq_.reset(ibv_create_cq(context(), 1, nullptr, nullptr, 0));
  if (!idle_cq_) return refused_queue(errno);
  return idle_cq_.get();
}

tl::unexpected<Error> Ia::refused_queue(int error) const {
  char why[256];
  if (verbs::explain_memlock_of_queues(error, why, sizeof why)) log_error("IA %s: %s", name().c_str(), why);
  return fail_errno(error);
}

void Ia::report_async(EventKind kind, Object& object, int reason) {
  counters_.add(IaCounter::kAsyncError);
  if (kind == EventKind::kAsyncEpBroken) counters_.add(IaCounter::kAsyncQpError);
  if (kind == EventKind::kAsyncEvdOverflow) counters_.add(IaCounter::kAsyncCqError);
  if (!async_evd_) return;
  Event event{};
  event.kind = kind;
  event.async = {&object, reason};
  async_evd_->post(event);
}

void Ia::report_evd_overflow(Evd& evd) {
  // Logging each event would flood the log in a storm of events.
  const uint32_t lost = evd.count_lost();
  if (lost == 1) {
    log_error("IA %s: an event was lost because its EVD of %u entries is full", name().c_str(), evd.qlen());
  } else if (std::has_single_bit(lost)) {
    log_error("IA %s: %u events were lost so far because an EVD of %u entries is full", name().c_str(), lost,
              evd.qlen());
  }
  if (&evd != async_evd_) report_async(EventKind::kAsyncEvdOverflow, evd, 0);
}

void Ia::adopt(Object& object) {
  list_of(object.kind()).add(object);
  if (const auto counter = counters_of(object.kind()).made) counters_.add(*counter);
}

void Ia::disown(Object& object) {
  if (async_evd_) async_evd_->forget_errors(object);
  ObjectList::remove(object);
  if (const auto counter = counters_of(object.kind()).freed) counters_.add(*counter);
}

// True if the consumer has left objects. The IA's own asynchronous EVD does not count.
bool Ia::has_objects() const {
  bool found = false;
  for (const ObjectList& list : objects_) {
    list.for_each<Object>([&](const Object& object) { found |= &object != async_evd_; });
  }
  return found;
}

void Ia::serve_datagrams() {
  if (std::exchange(serves_datagrams_, true)) return;
  list_of(Kind::kPsp).for_each<Psp>([this](Psp& point) {
    if (point.listen_for_datagrams()) return;
    log_error("IA %s: another program takes the requests for datagrams to connection qualifier %llu", name().c_str(),
              static_cast<unsigned long long>(point.conn_qual()));
  });
}

ServicePoint* Ia::find_service_point(uint64_t conn_qual) {
  ServicePoint* found = nullptr;
  for (Kind kind : {Kind::kPsp, Kind::kRsp, Kind::kCsp}) {
    list_of(kind).for_each<ServicePoint>([&](ServicePoint& point) {
      if (point.conn_qual() == conn_qual && point.listening()) found = &point;
    });
  }
  return found;
}

template <class T>
void Ia::destroy_all() {
  list_of(T::kKind).template for_each<T>([this](T& object) {
    // Tried again, because no caller has the handle after this. If it fails, it has freed nothing.
    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it loses the object's result
    if (T::free(object) || T::free(object)) return;
    log_error("IA %s: the device does not release an object while the IA is closed", name().c_str());
    ObjectList::remove(object);
    if constexpr (std::is_same_v<T, Ep>) object.abandon();
    arena<T>().abandon(&object, tables().dead);
  });
}

// The order follows the dependences, so that no free finds its object in use.
void Ia::destroy_objects(Notifier::Threads& agents) {
  list_of(Kind::kEvd).for_each<Evd>([](Evd& evd) { evd.abort(); });
  destroy_all<Ep>();
  if (verbs::destroy(idle_cq_)) (void)verbs::destroy(idle_cq_);
  destroy_all<Srq>();
  destroy_all<Psp>();
  destroy_all<Rsp>();
  destroy_all<Csp>();
  destroy_all<Rmr>();
  destroy_all<Lmr>();
  destroy_all<Pz>();
  give_up_async_evd();
  // Other IAs must stop using this IA's EVDs as their asynchronous EVD.
  arena<Ia>().for_each([this](Ia& other) {
    if (other.async_evd_ && &other.async_evd_->ia() == this) other.give_up_async_evd();
  });
  destroy_all<Evd>();
  destroy_all<Cr>();  // requests that have been dequeued; the others went with their EVDs
  list_of(Kind::kCno).for_each<Cno>([&](Cno& cno) {
    if (Cno::free(cno, true, agents)) return;
    // An EVD whose CQ the device refused to destroy still uses the CNO. Wake and reject its waiters.
    cno.notifier()->close(true, agents);
    ObjectList::remove(cno);
    arena<Cno>().abandon(&cno, tables().dead);
  });
}

void Ia::forget_reports(const Ep& ep) {
  list_of(Kind::kEvd).for_each<Evd>([&ep](Evd& evd) { evd.forget_reports(ep); });
}

void Ia::forget_datagrams(const Ep& ep) {
  list_of(Kind::kEvd).for_each<Evd>([&ep](Evd& evd) { evd.forget_datagrams(ep); });
}

void Ia::give_up_async_evd() {
  if (!async_evd_) return;
  async_evd_->forget_errors(*this);
  list_of(Kind::kEvd).for_each<Evd>([this](const Evd& evd) { async_evd_->forget_errors(evd); });
  async_evd_->release();
  async_evd_ = nullptr;
}

Ia::Unlocked::Unlocked(Ia& ia, std::unique_lock<std::mutex>& control) : ia_(ia), control_(control) {
  ++ia_.unlocked_;
  control_.unlock();
}

Ia::Unlocked::~Unlocked() {
  control_.lock();
  assert(ia_.unlocked_ > 0);
  if (--ia_.unlocked_ == 0) ia_.unlocked_ended_.notify_all();
}

Result<> Ia::close(Ia& ia, bool abrupt) {
  std::unique_lock guard(control_mutex());
  if (!abrupt) {
    bool lent = false;
    arena<Ia>().for_each(
        [&](Ia& other) { lent |= &other != &ia && other.async_evd_ && &other.async_evd_->ia() == &ia; });
    if (ia.has_objects() || lent) return fail(Type::kInvalidState, Subtype::kIaInUse);
  }
  ia.unlocked_ended_.wait(guard, [&ia] { return ia.unlocked_ == 0; });
  auto& manager = ConnectionManager::instance();
  Notifier::Threads agents;
  ia.destroy_objects(agents);
  manager.unwatch(ia.context());
  arena<Ia>().destroy(&ia, ia.tables().dead);
  manager.release(guard);
  Notifier::join(agents);
  return {};
}

}  // namespace dapple::udapl

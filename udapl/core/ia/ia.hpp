// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// An open interface adapter: the local address, the device behind it, and all objects made from it.
//
// Threads: everything that creates or destroys runs under the control mutex; the accessors are immutable after open().
#pragma once

#include <infiniband/dappledv.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <string>

#include "ibverbs-glue/rdma_cm.hpp"
#include "udapl/core/arena.hpp"
#include "udapl/core/connection/ud_replies.hpp"
#include "udapl/core/counters.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/events/event.hpp"
#include "udapl/core/events/notifier.hpp"
#include "udapl/core/ia/device_rules.hpp"
#include "udapl/core/ia/named_attributes.hpp"
#include "udapl/core/ia/port_counters.hpp"
#include "udapl/core/ia/settings.hpp"
#include "udapl/core/memory/lmr_table.hpp"
#include "udapl/core/memory/window_table.hpp"
#include "udapl/core/object.hpp"

namespace dapple::udapl {

class Evd;
class ServicePoint;
struct IaParams;

struct IaOptions {
  std::string name;
  std::string params;  // the ia_params field of dat.conf
  bool thread_safe = false;
  bool relaxed_ordering = false;  // the consumer accepts it
  bool extensions = false;        // the API version has them
  Tables tables{};
};

class Ia : public Object {
 public:
  static constexpr Kind kKind = Kind::kIa;

  // Takes the control mutex itself. Logs one line for a failure that the return value cannot explain.
  static Result<Ia*> open(const IaOptions& options);
  // Takes the control mutex itself. Graceful: INVALID_STATE if objects are left, or if another IA reports to its
  // asynchronous EVD. Abrupt: destroys them all.
  static Result<> close(Ia& ia, bool abrupt);

  const std::string& name() const { return options_.name; }
  const Tables& tables() const { return options_.tables; }
  bool thread_safe() const { return options_.thread_safe; }
  bool relaxed_ordering() const { return options_.relaxed_ordering; }
  const Settings& settings() const { return settings_; }
  // The number of requests that an EP can have posted in either direction.
  uint32_t max_dtos() const { return std::min(static_cast<uint32_t>(device().max_qp_wr), settings_.max_dtos); }

  // The number of segments that an RDMA Read can have.
  uint32_t max_read_segments() const {
    if (rules_.reads_into_one_segment) return 1;
    return static_cast<uint32_t>(device_.max_sge_rd > 0 ? std::min(device_.max_sge_rd, device_.max_sge)
                                                        : device_.max_sge);
  }

  ibv_context* context() const { return id_->verbs; }
  uint8_t port() const { return id_->port_num; }
  const sockaddr* address() const { return address_.get(); }
  const ibv_device_attr& device() const { return device_; }
  const ibv_port_attr& port_attr() const { return port_attr_; }
  const DeviceRules& rules() const { return rules_; }

  // The payload of a packet in bytes, which is also the largest datagram.
  uint32_t mtu() const { return 128U << std::min(port_attr_.active_mtu, settings_.path_mtu); }
  bool offers_extensions() const { return options_.extensions; }
  bool has_extensions() const { return options_.extensions && !rules_.iwarp; }
  bool has_atomics() const { return device_.atomic_cap != IBV_ATOMIC_NONE; }

  // A type 1 window belongs to its zone, a type 2 window to an endpoint.
  bool has_type_1_windows() const { return device_.max_mw > 0 && (device_.device_cap_flags & IBV_DEVICE_MEM_WINDOW); }
  bool has_type_2_windows() const {
    constexpr unsigned int kType2 = IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
    return device_.max_mw > 0 && (device_.device_cap_flags & kType2);
  }
  bool has_send_with_invalidate() const {
    return (device_.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS) && rules_.sends_right_key_to_invalidate;
  }

  const dappledv_device_attr& coherence() const { return coherence_; }
  // The coherence for an LMR, by the marks of its memory.
  const dappledv_region_attr& memory_coherence(bool noncoherent = false, bool persistent = false) const {
    return memory_coherence_[noncoherent][persistent];
  }
  // True if DTO buffers need maintenance. False on every device whose memory is coherent.
  bool maintains_caches() const { return maintains_caches_; }
  const NamedAttributes& named_attributes() const { return named_attributes_; }
  LmrTable& lmrs() { return lmrs_; }
  // Writers hold the control mutex.
  IaCounterSet& counters() { return counters_; }
  PortCounters& port_counters() { return port_counters_; }
  WindowTable& windows() { return windows_; }

  // The asynchronous EVD: made at open, or lent by another IA; null when the consumer wants none.
  Evd* async_evd() const { return async_evd_; }
  Result<> create_async_evd(uint32_t qlen);
  void borrow_async_evd(Evd& evd);

  // The CQ for the queues of an EP that has no EVD for them. It is created at the first use.
  Result<ibv_cq*> idle_cq();
  // The number of completion channels that EVDs own. The caller holds the control mutex.
  uint32_t num_channels() const { return num_channels_; }
  void count_channel(int more) { num_channels_ += static_cast<uint32_t>(more); }
  // The error for a queue that could not be made. It also logs a line if the memlock limit may be the reason.
  [[nodiscard]] tl::unexpected<Error> refused_queue(int error) const;

  // Delivers an error to the asynchronous EVD, if there is one.
  void report_async(EventKind kind, Object& object, int reason);
  void report_evd_overflow(Evd& evd);

  // As those of an EVD, for all EVDs.
  void forget_reports(const Ep& ep);
  void forget_datagrams(const Ep& ep);

  // adopt() is the last step of making an object: it adds the object to this IA's lists. destroy() is the last step of
  // freeing one: it removes the object and destroys it.
  void adopt(Object& object);
  template <class T>
  void destroy(T& object) {
    disown(object);
    arena<T>().destroy(&object, tables().dead);
  }

  // While an object of this class lives, its thread does not hold the control mutex, which it holds before and after.
  // No close proceeds meanwhile.
  class Unlocked {
   public:
    Unlocked(Ia& ia, std::unique_lock<std::mutex>& control);
    ~Unlocked();
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

   private:
    Ia& ia_;
    std::unique_lock<std::mutex>& control_;
  };

  // True if an IA with these ia_params would be on the same device. Takes the control mutex itself.
  Result<bool> is_on_device_of(const std::string& params);

  // After the first datagram endpoint is made, public service points accept requests for datagrams too. The caller
  // holds the control mutex.
  void serve_datagrams();
  bool serves_datagrams() const { return serves_datagrams_; }
  UdReplies& ud_replies() { return ud_replies_; }

  // The service point that listens on that qualifier; null if there is none. The caller holds the control mutex.
  ServicePoint* find_service_point(uint64_t conn_qual);

 private:
  friend class Arena<Ia>;
  explicit Ia(const IaOptions& options);
  // An id on the device of an address; null if no device has it.
  Result<verbs::CmId> bind_id(verbs::SocketAddress address);
  Result<> open_device(const IaParams& params);
  Result<> query_coherence(const std::string& override_class);
  ObjectList& list_of(Kind kind) { return objects_[static_cast<size_t>(kind)]; }
  void disown(Object& object);
  bool has_objects() const;
  template <class T>
  void destroy_all();
  void destroy_objects(Notifier::Threads& agents);
  void give_up_async_evd();

  IaOptions options_;
  Settings settings_;
  verbs::SocketAddress address_;
  DeviceRules rules_{};
  ibv_device_attr device_{};
  ibv_port_attr port_attr_{};
  dappledv_device_attr coherence_{};
  dappledv_region_attr memory_coherence_[2][2]{};  // [noncoherent][persistent]
  bool maintains_caches_ = false;
  NamedAttributes named_attributes_;
  IaCounterSet counters_;
  PortCounters port_counters_;
  bool serves_datagrams_ = false;
  UdReplies ud_replies_;
  Evd* async_evd_ = nullptr;
  uint32_t unlocked_ = 0;  // the number of calls; guarded by the control mutex
  std::condition_variable unlocked_ended_;
  uint32_t num_channels_ = 0;

  // Destroyed in reverse order: the id holds the device open, so it goes last.
  verbs::CmId id_;
  verbs::Cq idle_cq_;
  LmrTable lmrs_;
  WindowTable windows_;
  std::array<ObjectList, kKinds> objects_;
};

}  // namespace dapple::udapl

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The listeners for connection requests: public (psp.hpp), reserved (rsp.hpp) and common (csp.hpp) service points. All
// calls are made with the control mutex held. Requests that have arrived at a freed one stay valid.
#pragma once

#include <cstdint>

#include "ibverbs-glue/rdma_cm.hpp"
#include "udapl/core/arena.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/object.hpp"

namespace dapple::udapl {

class Ep;
class Evd;

class ServicePoint : public Object {
 public:
  // For each kind of service point.
  template <class T>
  static Result<> free(T& point) {
    point.ia().destroy(point);
    return {};
  }

  uint64_t conn_qual() const { return conn_qual_; }
  Evd& evd() const { return *evd_; }
  bool listening() const { return id_ || datagram_id_; }

  // Also takes requests for datagrams, on the same qualifier. CONN_QUAL_IN_USE if another process does.
  Result<> listen_for_datagrams();

  void on_request(const verbs::CmEvent& event);
  // Turns an id into a request to this point: its consumer gets an event. An error leaves the id with the caller;
  // `event` holds the peer's offer. Throws std::bad_alloc. Calls take_request() of the point's class. That function
  // cannot be virtual: the first word of the object is its DAT function table.
  Result<> take(verbs::CmId& id, const verbs::CmEvent& event);

 protected:
  ServicePoint(Ia& ia, Kind kind, Evd& evd);
  ~ServicePoint();

  // The last step of making a service point: destroys it if it does not listen.
  template <class T>
  static Result<T*> finish(T& made, const Result<>& listening) {
    if (listening) {
      made.ia().adopt(made);
      return &made;
    }
    arena<T>().destroy(&made, made.ia().tables().dead);
    return tl::unexpected(listening.error());
  }

  // Listens on this address, or on the IA's address with the port of conn_qual; with 0 the system chooses.
  // CONN_QUAL_IN_USE if there is already a listener.
  Result<> listen(uint64_t conn_qual);
  Result<> listen_at(const sockaddr* address);
  Result<> listen_at(const sockaddr* address, rdma_port_space space, verbs::CmId& id);
  static bool asks_for_datagrams(const verbs::CmId& id) { return id->ps == RDMA_PS_UDP; }
  // A new EP for a request. It is not configured yet.
  Result<Ep*> make_ep(const verbs::CmId& id, const verbs::CmEvent& event);
  // Makes the request and posts its event. The request comes with `ep`, if there is one. An error leaves the id with
  // the caller, frees an EP that was made for the request, and leaves another EP UNCONNECTED. Throws std::bad_alloc.
  Result<> announce(verbs::CmId& id, const verbs::CmEvent& event, Ep* ep, bool made_for_it);
  void stop_listening() {
    id_.reset();
    datagram_id_.reset();
  }

  const UseOf<Evd> evd_;
  uint64_t conn_qual_ = 0;
  verbs::CmId id_;           // null after it has stopped listening
  verbs::CmId datagram_id_;  // null unless it listens for datagrams
};

// The port of a connection qualifier. Every rdma_cm provider of uDAPL computes it in this way.
inline uint16_t to_port(uint64_t conn_qual) {
  constexpr uint64_t kSpan = 32001;
  constexpr uint64_t kBase = 65535 - kSpan;
  return static_cast<uint16_t>(conn_qual <= 0xffff ? conn_qual : conn_qual % kSpan + kBase);
}

}  // namespace dapple::udapl

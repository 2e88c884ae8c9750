// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// An endpoint with its event dispatchers: connects or accepts, posts, and waits. Errors are thrown as Failure, and no
// wait for the peer exceeds the time-out.
#pragma once

#include <dat2/udat.h>

#include <string>

#include "tools/perf/common/clock.hpp"
#include "tools/perf/common/parameters.hpp"
#include "tools/perf/connection/region.hpp"
#include "tools/perf/connection/session.hpp"

namespace dapple::perf {

struct ConnectionOptions {
  uint32_t requests = 1;  // the most that are posted at a time
  uint32_t receives = 1;  // the most that are posted at a time
  bool events = false;    // sleep until an event arrives, instead of polling
  unsigned timeout_s = 30;
};

constexpr uint64_t kGoodbyeBytes = 1;

class Connection {
 public:
  Connection(Session& session, const ConnectionOptions& options);
  // Disconnects; this also drops posted receives.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  RemoteMemory connect(const std::string& host, uint16_t port, const Parameters& parameters);
  void accept(DAT_CR_HANDLE request, const RemoteMemory& memory);

  // local: both ends' length. remote: the start of the peer's memory; not used by a Send.
  void post(Operation operation, DAT_LMR_TRIPLET local, const RemoteMemory& remote);
  void post_receive(DAT_LMR_TRIPLET local);

  // Waits until the oldest request, or receive, is complete; returns the length of the received message.
  void await_request();
  uint64_t await_receive();

  // The end of a correct run. The client sends a byte. The server waits for it without a limit, and disconnects. A run
  // without this byte has failed.
  void say_goodbye(DAT_LMR_TRIPLET byte);
  void await_goodbye();

  // Call this between two reads of memory that the peer will write: it throws if the peer has left or is late. spins:
  // counts the reads of one wait.
  void be_patient(const char* what, uint64_t& spins);

 private:
  DAT_EVENT await(DAT_EVD_HANDLE evd, const char* what);
  DAT_EVENT await_asleep(DAT_EVD_HANDLE evd, const char* what, bool however_long);
  DAT_EVENT await_connection_event(const char* what);
  bool peer_has_gone();
  void await_end();
  void free_all();

  ConnectionOptions options_;
  int family_;
  DAT_EVD_HANDLE request_evd_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE receive_evd_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE connection_evd_ = DAT_HANDLE_NULL;
  DAT_EP_HANDLE ep_ = DAT_HANDLE_NULL;
  Clock::time_point deadline_;
  bool peer_gone_ = false;
};

}  // namespace dapple::perf

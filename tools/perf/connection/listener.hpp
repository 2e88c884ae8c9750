// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <dat2/udat.h>

#include <string>

#include "tools/perf/common/parameters.hpp"
#include "tools/perf/connection/session.hpp"

namespace dapple::perf {

struct Client {
  DAT_CR_HANDLE request = DAT_HANDLE_NULL;  // must be accepted
  std::string address;
  Parameters parameters;
};

// A service point. Destroyed before its session.
class Listener {
 public:
  // port: 0 for any free port.
  Listener(Session& session, uint16_t port);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  uint64_t port() const { return port_; }
  // Waits without a limit. Refuses a client of another kind, and prints a line on standard error.
  Client await_client(Kind kind);
  // Refuses the client and sends it the reason.
  void refuse(const Client& client, const std::string& why);

 private:
  DAT_EVD_HANDLE evd_ = DAT_HANDLE_NULL;
  DAT_CONN_QUAL port_;
  DAT_PSP_HANDLE psp_ = DAT_HANDLE_NULL;
};

}  // namespace dapple::perf

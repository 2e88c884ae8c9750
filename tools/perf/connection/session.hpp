// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// An open Interface Adapter, and the objects that are made before the connection.
#pragma once

#include <dat2/udat.h>

#include <string>

#include "tools/perf/connection/local_port.hpp"

namespace dapple::perf {

// Only one thread uses it and its objects.
class Session {
 public:
  // name: of an IA, an RDMA device or a network device, or the address of one; "" for the first IA that opens, with
  // those of active ports first. Throws Failure.
  explicit Session(const std::string& name);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  DAT_IA_HANDLE ia() const { return ia_; }
  DAT_PZ_HANDLE pz() const { return pz_; }
  const std::string& name() const { return name_; }
  const DAT_IA_ATTR& attr() const { return attr_; }
  // The address, such as "10.9.0.1".
  std::string address() const;
  // The port, as far as the provider reports it.
  LocalPort port() const;
  // The family of the IA's address; AF_UNSPEC if it has none.
  int family() const;
  // True if a sync call must follow or precede a peer's access.
  bool syncs() const { return provider_attr_.lmr_sync_req != DAT_FALSE; }

 private:
  bool try_open(const std::string& name, DAT_RETURN& result);
  void open_first();
  void open_named(const std::string& name);
  // A named attribute of the provider; empty if the provider lacks it.
  std::string attribute(const char* name) const;

  std::string name_;
  DAT_IA_HANDLE ia_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async_evd_ = DAT_HANDLE_NULL;
  DAT_PZ_HANDLE pz_ = DAT_HANDLE_NULL;
  DAT_IA_ATTR attr_{};
  DAT_PROVIDER_ATTR provider_attr_{};
};

}  // namespace dapple::perf

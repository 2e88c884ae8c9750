// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// An open Interface Adapter, and the objects that are made in it before the connection.
#pragma once

#include <dat2/udat.h>

#include <string>

#include "tools/perf/local_port.hpp"

namespace dapple::perf {

// One thread uses it and all its objects.
class Session {
 public:
  // name: of an IA, an RDMA device or a network device, or an address of that; "" for the first IA that opens, those of
  // active ports first. Throws Failure.
  explicit Session(const std::string& name);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  DAT_IA_HANDLE ia() const { return ia_; }
  DAT_PZ_HANDLE pz() const { return pz_; }
  const std::string& name() const { return name_; }
  const DAT_IA_ATTR& attr() const { return attr_; }
  // "10.9.0.1"
  std::string address() const;
  // As far as the provider tells.
  LocalPort port() const;
  // The family of that address; AF_UNSPEC without an address.
  int family() const;
  // A peer's access is followed or preceded by a sync call.
  bool syncs() const { return provider_attr_.lmr_sync_req != DAT_FALSE; }

 private:
  bool try_open(const std::string& name, DAT_RETURN& result);
  void open_first();
  void open_named(const std::string& name);
  // A named attribute of the provider; empty if it has none of that name.
  std::string attribute(const char* name) const;

  std::string name_;
  DAT_IA_HANDLE ia_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async_evd_ = DAT_HANDLE_NULL;
  DAT_PZ_HANDLE pz_ = DAT_HANDLE_NULL;
  DAT_IA_ATTR attr_{};
  DAT_PROVIDER_ATTR provider_attr_{};
};

}  // namespace dapple::perf

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Objects that need no device: an IA that was never opened, and its EVDs of software events.
#pragma once

#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"

namespace no_device {

inline const int kLiveTable = 0;
inline const int kDeadTable = 0;
inline const dapple::udapl::Tables kTables = {&kLiveTable, &kDeadTable};

class OpenIa {
 public:
  explicit OpenIa(bool thread_safe = false)
      : ia_(dapple::udapl::arena<dapple::udapl::Ia>().create(
            dapple::udapl::IaOptions{.name = "none", .params = "", .thread_safe = thread_safe, .tables = kTables})) {}
  ~OpenIa() { dapple::udapl::arena<dapple::udapl::Ia>().destroy(ia_, &kDeadTable); }
  OpenIa(const OpenIa&) = delete;
  OpenIa& operator=(const OpenIa&) = delete;
  dapple::udapl::Ia& get() { return *ia_; }

 private:
  dapple::udapl::Ia* ia_;
};

class OpenEvd {
 public:
  OpenEvd(dapple::udapl::Ia& ia, uint32_t qlen, uint32_t streams = dapple::udapl::kEvdSoftware)
      : evd_(dapple::udapl::Evd::create(ia, qlen, streams).value()) {}
  ~OpenEvd() { (void)dapple::udapl::Evd::free(*evd_); }
  OpenEvd(const OpenEvd&) = delete;
  OpenEvd& operator=(const OpenEvd&) = delete;
  dapple::udapl::Evd& get() { return *evd_; }

 private:
  dapple::udapl::Evd* evd_;
};

}  // namespace no_device

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string>

namespace dapple::perf {

// The port of an open IA, as text; empty if the provider does not report it.
struct LocalPort {
  std::string device;   // "rxe0"
  std::string number;   // "1"
  std::string address;  // "10.9.0.1"
  std::string gid;      // "::ffff:10.9.0.1"
  std::string mtu;      // "1024"
};

}  // namespace dapple::perf

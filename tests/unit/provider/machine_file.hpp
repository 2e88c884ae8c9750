// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A machine as a text file, for tests: the contents of its sysfs and devicetree, and the expected attributes. A line is
// a keyword and its arguments; # begins a comment. Paths have no blanks.
//
//   like NAME                   all of that file; lines below replace its paths and fields
//   without PATH                this machine lacks a path that NAME has
//   architecture NAME           x86-64, arm64, riscv64, riscv64-without-zicbom, ppc64le
//   device PATH                 the folder below class/infiniband
//   folder PATH
//   file PATH [TEXT]            TEXT and a newline; empty without TEXT
//   strings PATH WORD...        each ended by a zero byte, as in a devicetree
//   cells PATH NUMBER...        32 bits each, big-endian
//   size PATH BYTES             of zero
//   bytes PATH OFFSET HEX...
//   link PATH TARGET
//   driver software             the kernel names a driver of software devices
//   registration accepted|refused
//   dma bounced                 the device says so
//   environment VALUE, parameter WORD, persistence WORD
//   expect FIELD VALUE          a field of the attributes, as text
#pragma once

#include <map>
#include <optional>
#include <string>

#include "provider/libdapple/query.hpp"

namespace machine_file {

struct MachineFile {
  std::string architecture;
  std::string device;
  std::string environment;
  std::optional<std::string> parameter;
  std::string persistence;
  bool software_driver = false;
  bool bounced = false;
  dapple::provider::Registration registration = dapple::provider::Registration::kNotAsked;
  std::map<std::string, std::string> expected;  // by field
};

// Makes the machine's tree below root. False, and a line on standard error, if the file makes no sense.
bool read(const std::string& file, const std::string& root, MachineFile& machine);

// The attributes of its device, as the provider reports them.
dappledv_device_attr describe(const MachineFile& machine, const std::string& root);

// Every field of the attributes except reserved ones, as text, by its name.
std::map<std::string, std::string> fields_of(const dappledv_device_attr& attr);

}  // namespace machine_file

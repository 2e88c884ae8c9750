// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The kind of memory at an address.
#pragma once

#include <infiniband/dappledv.h>

#include "provider/device/machine/mapping.hpp"

namespace dapple::provider {

// The facts about a mapping's file.
struct MappedFile {
  enum class Kind {
    kUnknown,
    kRam,              // of a file system that keeps its files in memory
    kPageCache,        // another file, which is not mapped directly
    kDax,              // a file that is mapped directly
    kDaxDevice,        // a character device of the dax bus
    kZero,             // /dev/zero, whose mappings are memory like any other
    kCharacterDevice,  // another character device
  };
  Kind kind = Kind::kUnknown;
  Path device;  // in sysfs, of the memory behind kDax and kDaxDevice; may be empty
};

// root: "" for this machine, else the folder that holds another one's sys and proc, and the files that are mapped.
MappedFile look_at_file(const Path& root, const Mapping& mapping);

// Describes the mapping, without length and cxl. Pure, except that it reads the persistence domain of file.device.
dappledv_range_attr judge_mapping(const Mapping& mapping, const MappedFile& file);

// As dappledv_query_range().
int query_range(const Path& root, uintptr_t address, size_t length, dappledv_range_attr* attr) noexcept;

}  // namespace dapple::provider

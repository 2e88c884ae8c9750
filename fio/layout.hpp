// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The places in the running fio of what the engines need: they are part of its process and know none of its headers.
#pragma once

#include <cstdint>

namespace dapple::fio {

// Offsets, sizes and constants, by the names of layout.def.
struct Layout {
  const char* version;
#define FIO(name, definition, ...) std::uint32_t name;
#include "fio/layout.def"
#undef FIO
};

// The layout of the fio with this version string; nullptr: the version is unknown.
[[nodiscard]] const Layout* layout_of(const char* version) noexcept;

// The known versions in one line, for people.
[[nodiscard]] const char* known_versions() noexcept;

}  // namespace dapple::fio

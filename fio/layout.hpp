// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The offsets in the running fio that the engines need: engines are part of its process but do not use its headers.
#pragma once

#include <cstdint>

namespace dapple::fio {

// Offsets, sizes and constants, named as in layout.def.
struct Layout {
  const char* version;
#define FIO(name, definition, ...) std::uint32_t name;
#include "fio/layout.def"
#undef FIO
};

// The layout of the fio with this version string; nullptr: the version is unknown.
[[nodiscard]] const Layout* layout_of(const char* version) noexcept;

// The known versions in one line, for messages.
[[nodiscard]] const char* known_versions() noexcept;

}  // namespace dapple::fio

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "fio/layout.hpp"

#include <cstring>

namespace dapple::fio {
namespace {

constexpr Layout kLayouts[] = {
    {
        .version = "fio-3.33",
#define FIO(name, definition, v3_33, v3_39, v3_41) .name = (v3_33),
#include "fio/layout.def"
#undef FIO
    },
    {
        .version = "fio-3.39",
#define FIO(name, definition, v3_33, v3_39, v3_41) .name = (v3_39),
#include "fio/layout.def"
#undef FIO
    },
    {
        .version = "fio-3.41",
#define FIO(name, definition, v3_33, v3_39, v3_41) .name = (v3_41),
#include "fio/layout.def"
#undef FIO
    },
};

}  // namespace

const Layout* layout_of(const char* version) noexcept {
  for (const Layout& layout : kLayouts) {
    if (std::strcmp(layout.version, version) == 0) return &layout;
  }
  return nullptr;
}

const char* known_versions() noexcept {
  return "fio-3.33, fio-3.39 and fio-3.41";
}

}  // namespace dapple::fio

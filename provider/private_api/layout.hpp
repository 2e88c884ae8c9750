// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The layout of libibverbs' private interface: for each release of rdma-core that changed it, the sizes of its
// structures and the index of each operation in its table. Pure data and pure functions.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace dapple::provider {

// The operations of a context, by libibverbs' names.
enum class Operation : uint8_t {
#define DAPPLE_OPERATION(name, ...) name,
#include "provider/private_api/operations.inc"
#undef DAPPLE_OPERATION
  kCount
};

inline constexpr size_t kMaxOperations = static_cast<size_t>(Operation::kCount);

// The public functions of libibverbs that distinguish releases with the same name of the private interface.
struct PublicSymbols {
  bool query_qp_data_in_order;
  bool query_port_speed;
  bool alloc_buf;
  bool create_comp_cntr;

  bool operator==(const PublicSymbols&) const = default;
};

struct Layout {
  // For people: "36 to 56".
  const char* releases;
  // The version of the private symbols: "IBVERBS_PRIVATE_34".
  const char* symbol_version;
  PublicSymbols symbols;
  // sizeof(struct verbs_context), which also stands in its field sz.
  size_t context_size;
  // The number of operations in the table, all of them set.
  size_t num_operations;
  // The column of operations.inc.
  size_t column;

  // The operation's index in the table, or -1 if the release lacks it.
  int index(Operation operation) const;
};

inline constexpr size_t kNumLayouts = 6;
extern const Layout kLayouts[kNumLayouts];

// The layout of a library with this version of its private symbols and these public ones, or null if none is known.
const Layout* find_layout(const char* symbol_version, const PublicSymbols& symbols);

}  // namespace dapple::provider

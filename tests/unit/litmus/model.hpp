// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What RDMA hardware may do: an operational model after RDMA-TSO (Ambal and others, OOPSLA 2024). It is written anew,
// and nobody has compared it with the paper's rules one by one. The CPU of this model has no store buffer; each of its
// accesses is visible at once.
//
// A queue pair carries out its requests in steps, each of which may come late:
//   - it fetches the bytes of a Write, in the order of the posts, after the results before it have become visible;
//   - it sends a Write to the other node, in the order of the posts, but before Reads that are not answered;
//   - bytes that arrive there become visible later, in their order;
//   - it reads for a Read at the other node, after the Writes before it have become visible; two Reads have no order;
//   - results of Reads and completions come in the order of the posts, and become visible later, in their order.
// A request with a fence begins when the Reads and atomics before it have ended. A FetchAdd is a read at the other node
// and bytes that arrive there, with no other FetchAdd until they are visible.
#pragma once

#include <cstddef>
#include <set>

#include "tests/unit/litmus/program.hpp"

namespace dapple::litmus {

std::set<Outcome> allowed_outcomes(const Program& program);

// The same if each request took effect during its post.
std::set<Outcome> strong_outcomes(const Program& program);

}  // namespace dapple::litmus

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <librpma.h>

#include "ibverbs-glue/verbs.hpp"
#include "rpma/memory/descriptor.hpp"

// Threads: immutable.
struct rpma_mr_local {
  dapple::verbs::Mr mr;
  dapple::rpma::Descriptor descriptor;

  // len must fit into 32 bits.
  ibv_sge segment(size_t offset, size_t len) const {
    return {reinterpret_cast<uintptr_t>(mr->addr) + offset, static_cast<uint32_t>(len), mr->lkey};
  }
};

struct rpma_mr_remote {
  dapple::rpma::Descriptor descriptor;
};

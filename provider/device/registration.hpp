// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Newer kernels register memory only where it is coherent with the device. So a registration shows whether memory is
// coherent with the device.
#pragma once

#include <infiniband/verbs.h>

#include <string_view>

namespace dapple::provider {

enum class Registration {
  kNotAsked,  // an older kernel, no kernel behind the context, or no answer to this question
  kAccepted,
  kRefused,
};

// release: as uname(2) has it. True from Linux 7.1 on, where ib_umem_get() demands coherent DMA.
bool refuses_noncoherent(std::string_view release);

// Registers and deregisters its own page, if the kernel of this release would refuse a non-coherent device.
Registration try_registration(ibv_context* context, std::string_view release);

// The meaning of the result of registering a page: error is 0 or an errno value.
Registration judge_registration(int error);

}  // namespace dapple::provider

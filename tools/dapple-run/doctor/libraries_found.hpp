// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple's own files, and the libibverbs that programs get.
#pragma once

#include "tools/dapple-run/doctor/line.hpp"
#include "tools/dapple-run/process/libraries.hpp"

namespace dapple::run::doctor {

Line own_files(const Libraries& libraries);
Line libibverbs(const Libraries& libraries);

}  // namespace dapple::run::doctor

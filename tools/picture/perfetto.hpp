// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The Chrome Trace Event format, which Perfetto and chrome://tracing open.
#pragma once

#include <string>

#include "tools/picture/story.hpp"

namespace dapple::picture {

std::string as_perfetto(const Story& story);

}  // namespace dapple::picture

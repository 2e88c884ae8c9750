// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// One HTML page, which needs no network: a sequence diagram for each connection.
#pragma once

#include <string>

#include "tools/picture/story.hpp"

namespace dapple::picture {

// The title is text, not HTML.
std::string as_page(const Story& story, const std::string& title);

}  // namespace dapple::picture

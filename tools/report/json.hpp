// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace dapple {

// Members stay in the order in which they are added.
using Json = nlohmann::ordered_json;

// The text of a document: indented, with a line feed at its end. Invalid UTF-8 bytes become U+FFFD.
std::string document_of(const Json& json);

// The text, or null if it is empty.
Json text_or_null(const std::string& text);

// Rounded, so that a number in a document has at most so many digits after the point.
double rounded(double value, int digits = 3);

}  // namespace dapple

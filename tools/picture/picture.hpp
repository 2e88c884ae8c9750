// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple-info --picture.
#pragma once

#include <string>

namespace dapple::picture {

// Reads NAME.jsonl and NAME.pcap of dapple-run --trace, and the reports of dapple-run --json if there are any. Writes
// NAME.perfetto.json and NAME.html, both or none. Throws std::runtime_error with one line.
void draw(const std::string& name, const std::string& findings);

}  // namespace dapple::picture

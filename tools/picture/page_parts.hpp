// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The parts of the page that are the same for each trace: page/style.css, page/body.html and page/script.js.
#pragma once

namespace dapple::picture {

extern const char* const kPageStyle;
extern const char* const kPageBody;
extern const char* const kPageScript;

}  // namespace dapple::picture

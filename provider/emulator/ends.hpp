// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_EMULATOR_ENDS_HPP
#define DAPPLE_PROVIDER_EMULATOR_ENDS_HPP

namespace dapple::provider {

// Sees to it that the running emulator reports when the process ends by exit(), quick_exit(), or one of the signals
// that people end programs by, unless the program looks after that signal. May be called again.
void report_before_the_end();

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_EMULATOR_ENDS_HPP

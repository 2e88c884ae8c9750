// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A line of dapple-run --doctor.
#pragma once

#include <string>

namespace dapple::run::doctor {

enum class Verdict {
  kWorks,
  kPartly,  // the device works, and the line names what does not
  kFails,   // programs have no device
};

struct Line {
  Verdict verdict = Verdict::kWorks;
  std::string subject;
  std::string text;  // for people; the reason and the remedy
};

// On standard output: the verdict, the subject and the text in columns.
void print(const Line& line);

}  // namespace dapple::run::doctor

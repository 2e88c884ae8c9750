// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "rpma/common/refusal.hpp"

#include <infiniband/dappledv_failure.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "ibverbs-glue/explains.hpp"
#include "ibverbs-glue/no_cancel.hpp"

namespace dapple::rpma {
namespace {

const char* name_of(int error) {
  switch (error) {
    case RPMA_E_NOSUPP:
      return "RPMA_E_NOSUPP";
    case RPMA_E_PROVIDER:
      return "RPMA_E_PROVIDER";
    case RPMA_E_NOMEM:
      return "RPMA_E_NOMEM";
    case RPMA_E_INVAL:
      return "RPMA_E_INVAL";
    case RPMA_E_SHARED_CHANNEL:
      return "RPMA_E_SHARED_CHANNEL";
    case RPMA_E_NOT_SHARED_CHNL:
      return "RPMA_E_NOT_SHARED_CHNL";
    default:
      return "RPMA_E_UNKNOWN";
  }
}

// A refusal in words.
struct Words {
  char text[512];
  const char* remedy;  // a part of `reason`
  char reason[384];
};

// text: for printf(), with the remedy behind a line break.
[[gnu::format(printf, 4, 0)]] void put_in_words(Words& words, const char* function, int error, const char* text,
                                                va_list values) {
  std::vsnprintf(words.reason, sizeof words.reason, text, values);
  words.remedy = "";
  if (char* end = std::strchr(words.reason, '\n')) {
    *end = '\0';
    words.remedy = end + 1;
  }
  std::snprintf(words.text, sizeof words.text, "%s() fails with %s: %s", function, name_of(error), words.reason);
}

void print(const Words& words) {
  std::fprintf(stderr, "dapple: %s %s\n", words.text, words.remedy);
}

// errno stays, and a pthread_cancel() of the thread waits.
class Unnoticed {
 public:
  ~Unnoticed() { errno = saved_; }

 private:
  const NoCancel whole_;
  const int saved_ = errno;
};

}  // namespace

int refuse(Caller caller, int error, const char* text, ...) noexcept {
  if (!(caller.is_told_in_a_line ? explains_all() : explains())) return error;
  const Unnoticed all;
  Words words;
  va_list values;
  va_start(values, text);
  put_in_words(words, caller.function, error, text, values);
  va_end(values);
  // Before the first look for devices nobody takes reports.
  if (caller.is_told_in_a_line || dappledv_report_failure(words.text, words.remedy) == 0) print(words);
  return error;
}

int refuse_null(const char* function, std::initializer_list<Pointer> pointers) noexcept {
  for (const Pointer& pointer : pointers) {
    if (!pointer.value) return refuse(function, RPMA_E_INVAL, "%s is NULL.\n%s", pointer.name, pointer.remedy);
  }
  return refuse(function, RPMA_E_INVAL, "a pointer is NULL.\nSee %s(3).", function);
}

int refuse_memory() noexcept {
  if (explains_all()) {
    const Unnoticed all;
    std::fputs("dapple: librpma fails with RPMA_E_NOMEM: the process gets no memory. Raise its limit.\n", stderr);
  }
  return RPMA_E_NOMEM;  // no refusal: the line above has it
}

void tell_failure(const char* call, const char* error) noexcept {
  if (!explains_all()) return;
  const Unnoticed all;
  std::fprintf(stderr, "dapple: librpma fails with RPMA_E_PROVIDER: %s() failed: %s\n", call, error);
}

}  // namespace dapple::rpma

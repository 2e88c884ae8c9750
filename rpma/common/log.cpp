// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "rpma/common/log.hpp"

#include <infiniband/dappledv_refusal.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "rpma/common/export.hpp"
#include "rpma/common/refusal.hpp"

namespace dapple::rpma {
namespace {

struct LevelName {
  const char* text;
  int severity;
};

// Indexed by level.
constexpr LevelName kLevels[] = {
    {"*FATAL* ", LOG_CRIT},   {"*ERROR* ", LOG_ERR},  {"*WARN*  ", LOG_WARNING},
    {"*NOTE*  ", LOG_NOTICE}, {"*INFO*  ", LOG_INFO}, {"*DEBUG* ", LOG_DEBUG},
};

std::atomic<int> aux_threshold{RPMA_LOG_DISABLED};

// The current time in the form "Nov 20 14:45:19.012345 ".
void print_time(char* out, size_t size) {
  timespec now{};
  tm parts{};
  char date[24];
  clock_gettime(CLOCK_REALTIME, &now);
  if (!localtime_r(&now.tv_sec, &parts) || !std::strftime(date, sizeof date, "%b %d %H:%M:%S", &parts)) {
    std::snprintf(out, size, "[time error] ");
    return;
  }
  std::snprintf(out, size, "%s.%06ld ", date, now.tv_nsec / 1000);
}

// The line of dapple-run --explain about this call, which has just failed; or null.
const char* reason_of(const char* call) {
  const char* const reason = dappledv_refusal(nullptr);
  const size_t size = std::strlen(call);
  return reason && std::strncmp(reason, call, size) == 0 && reason[size] == '(' ? reason : nullptr;
}

const char* base_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

// This does not open syslog: the program chooses the identity there.
__attribute__((format(printf, 5, 6))) void log_by_default(rpma_log_level level, const char* file, const int line,
                                                          const char* function, const char* format, ...) {
  if (level < RPMA_LOG_LEVEL_FATAL || level > RPMA_LOG_LEVEL_DEBUG) return;
  char message[1024];
  va_list args;
  va_start(args, format);
  const int size = std::vsnprintf(message, sizeof message, format, args);
  va_end(args);
  if (size < 0) return;
  char place[256] = "";
  if (file) std::snprintf(place, sizeof place, "%s: %3d: %s: ", base_name(file), line, function);
  if (level <= aux_threshold.load(std::memory_order_relaxed)) {
    char when[45];
    print_time(when, sizeof when);
    std::fprintf(stderr, "%s[%ld] %s%s%s", when, static_cast<long>(gettid()), kLevels[level].text, place, message);
  }
  ::syslog(LOG_LOCAL7 | kLevels[level].severity, "%s%s%s", kLevels[level].text, place, message);
}

std::atomic<int>* threshold_of(rpma_log_threshold which) {
  switch (static_cast<int>(which)) {
    case RPMA_LOG_THRESHOLD:
      return &log_threshold;
    case RPMA_LOG_THRESHOLD_AUX:
      return &aux_threshold;
    default:
      return nullptr;
  }
}

int refuse_threshold(const char* function, rpma_log_threshold threshold) {
  return refuse(function, RPMA_E_INVAL, "threshold is %d.\nPass RPMA_LOG_THRESHOLD or RPMA_LOG_THRESHOLD_AUX.",
                static_cast<int>(threshold));
}

}  // namespace

constinit std::atomic<int> log_threshold{RPMA_LOG_LEVEL_WARNING};
constinit std::atomic<rpma_log_function*> log_function{log_by_default};

void log_failure(const char* file, int line, const char* function, const char* call, int error) noexcept {
  const char* const reason = reason_of(call);
  char buffer[128];
  const char* const words = strerror_r(std::abs(error), buffer, sizeof buffer);
  if (!reason) tell_failure(call, words);
  if (RPMA_LOG_LEVEL_ERROR > log_threshold.load(std::memory_order_relaxed)) return;
  rpma_log_function* const log = log_function.load(std::memory_order_relaxed);
  if (reason) {
    log(RPMA_LOG_LEVEL_ERROR, file, line, function, "%s\n", reason);
  } else {
    log(RPMA_LOG_LEVEL_ERROR, file, line, function, "%s() failed: %s\n", call, words);
  }
}

}  // namespace dapple::rpma

using namespace dapple::rpma;

RPMA_EXPORT int rpma_log_set_threshold(rpma_log_threshold threshold, rpma_log_level level) {
  std::atomic<int>* chosen = threshold_of(threshold);
  const int number = level;
  if (!chosen) return refuse_threshold(__func__, threshold);
  if (number < RPMA_LOG_DISABLED || number > RPMA_LOG_LEVEL_DEBUG) {
    return refuse(__func__, RPMA_E_INVAL, "level is %d.\nPass a value of enum rpma_log_level.", number);
  }
  chosen->store(number);
  return 0;
}

RPMA_EXPORT int rpma_log_get_threshold(rpma_log_threshold threshold, rpma_log_level* level) {
  const std::atomic<int>* chosen = threshold_of(threshold);
  if (!chosen) return refuse_threshold(__func__, threshold);
  if (!level) return refuse_null(__func__, {NAMED(level)});
  *level = static_cast<rpma_log_level>(chosen->load());
  return 0;
}

RPMA_EXPORT int rpma_log_set_function(rpma_log_function* function) {
  log_function.store(function ? function : log_by_default);
  return 0;
}

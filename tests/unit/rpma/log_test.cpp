// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The library's default messages and their destinations. This program defines syslog's functions.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include <string>

#include "rpma/common/log.hpp"
#include "tests/unit/rpma/objects.hpp"

namespace {

int priority;
std::string said;
bool opened;

}  // namespace

extern "C" {
void openlog(const char*, int, int) {
  opened = true;
}
void closelog() {
  opened = true;
}
__attribute__((format(printf, 2, 0))) static void keep(int with, const char* format, va_list args) {
  char line[1400];
  vsnprintf(line, sizeof line, format, args);
  priority = with;
  said = line;
}
void syslog(int with, const char* format, ...) {
  va_list args;
  va_start(args, format);
  keep(with, format, args);
  va_end(args);
}
// A fortified build calls this instead.
__attribute__((format(printf, 3, 4))) void __syslog_chk(int with, int, const char* format, ...) {
  va_list args;
  va_start(args, format);
  keep(with, format, args);
  va_end(args);
}
}

namespace {

char printed[2000];

// Causes an error, and keeps the text on stderr meanwhile.
void make_a_mistake() {
  rpma_mr_remote* remote = nullptr;
  FILE* file = tmpfile();
  fflush(stderr);
  const int before = dup(2);
  dup2(fileno(file), 2);
  assert_int_equal(rpma_mr_remote_from_descriptor("", 1, &remote), RPMA_E_INVAL);
  fflush(stderr);
  dup2(before, 2);
  close(before);
  rewind(file);
  memset(printed, 0, sizeof printed);
  assert_int_equal(fread(printed, 1, sizeof printed - 1, file) < sizeof printed, 1);
  fclose(file);
}

int start(void**) {
  said.clear();
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_DISABLED);
  return rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION);
}

void thresholds_are_the_originals_at_first(void**) {
  rpma_log_level level;
  assert_int_equal(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &level), 0);
  assert_int_equal(level, RPMA_LOG_LEVEL_WARNING);
  assert_int_equal(rpma_log_get_threshold(RPMA_LOG_THRESHOLD_AUX, &level), 0);
  assert_int_equal(level, RPMA_LOG_DISABLED);
}

void an_error_goes_to_syslog_alone(void**) {
  make_a_mistake();
  assert_int_equal(priority, LOG_LOCAL7 | LOG_ERR);
  assert_int_equal(said.rfind("*ERROR* mr.cpp: ", 0), 0);
  assert_non_null(strstr(said.c_str(), ": rpma_mr_remote_from_descriptor: "));
  assert_string_equal(printed, "");
}

// Defect 8 of the original: openlog() belongs to the program.
void syslog_is_left_as_the_program_has_it(void**) {
  make_a_mistake();
  assert_false(opened);
}

void the_second_threshold_adds_stderr(void**) {
  int at = 0;
  int day;
  int hour;
  int usec;
  int thread;
  char month[4];
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_ERROR);
  make_a_mistake();
  // "Nov 20 14:45:19.012345 [1234] *ERROR* mr.cpp:  57: function: message".
  assert_int_equal(sscanf(printed, "%3s %d %d:%*d:%*d.%6d [%d] %n", month, &day, &hour, &usec, &thread, &at), 5);
  assert_int_equal(thread, gettid());
  assert_string_equal(printed + at, said.c_str());
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_FATAL);
  make_a_mistake();
  assert_string_equal(printed, "");
}

void nothing_is_said_beyond_the_threshold(void**) {
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_FATAL);
  make_a_mistake();
  assert_string_equal(said.c_str(), "");
}

int calls;

void count(rpma_log_level level, const char* file, const int line, const char* function, const char* format, ...) {
  assert_int_equal(level, RPMA_LOG_LEVEL_ERROR);
  assert_non_null(file);
  assert_true(line > 0);
  assert_string_equal(function, "rpma_mr_remote_from_descriptor");
  assert_int_equal(format[strlen(format) - 1], '\n');
  ++calls;
}

void a_function_of_the_program_takes_its_place(void**) {
  rpma_log_set_function(count);
  make_a_mistake();
  assert_int_equal(calls, 1);
  assert_string_equal(said.c_str(), "");
}

void levels_have_the_originals_names_and_severities(void**) {
  const struct {
    rpma_log_level level;
    const char* name;
    int severity;
  } rows[] = {
      {RPMA_LOG_LEVEL_FATAL, "*FATAL* ", LOG_CRIT},      {RPMA_LOG_LEVEL_ERROR, "*ERROR* ", LOG_ERR},
      {RPMA_LOG_LEVEL_WARNING, "*WARN*  ", LOG_WARNING}, {RPMA_LOG_LEVEL_NOTICE, "*NOTE*  ", LOG_NOTICE},
      {RPMA_LOG_LEVEL_INFO, "*INFO*  ", LOG_INFO},       {RPMA_LOG_LEVEL_DEBUG, "*DEBUG* ", LOG_DEBUG},
  };
  for (const auto& row : rows) {
    dapple::rpma::log_function.load()(row.level, "a/path/file.c", 7, "function", "%d\n", 5);
    assert_string_equal(said.c_str(), (std::string(row.name) + "file.c:   7: function: 5\n").c_str());
    assert_int_equal(priority, LOG_LOCAL7 | row.severity);
  }
}

// Registers a MiB as a user who may lock 64 KiB, which is refused with this error; returns the last message.
std::string refused_region(int error) {
  Objects o;
  fake::reset();
  assert_int_equal(rpma_peer_new(fake::context(), &o.peer), 0);
  fake::state.fails_at = static_cast<int>(fake::state.calls.size()) + 2;  // after the allocation
  fake::state.error = error;
  const int result = rpma_mr_reg(o.peer, reinterpret_cast<void*>(0x100000), 1 << 20, RPMA_MR_USAGE_RECV, &o.mr);
  o.free();
  return result == RPMA_E_PROVIDER ? said : rpma_err_2str(result);
}

// CAP_IPC_LOCK lifts the limit, so a user without it asks.
void a_region_beyond_the_limit_of_locked_memory_is_explained(void**) {
  constexpr const char* kExplained =
      "register_memory: 1048576 bytes cannot be registered: 64 KiB may be locked (RLIMIT_MEMLOCK), 0 are locked, 1024 "
      "are "
      "needed; raise the limit by 'ulimit -l 1024' or as dapple-info explains\n";
  const pid_t child = fork();
  if (child == 0) {
    const rlimit few{65536, 65536};
    if (setrlimit(RLIMIT_MEMLOCK, &few) != 0 || (geteuid() == 0 && setuid(65534) != 0)) _exit(1);
    if (!refused_region(ENOMEM).ends_with(kExplained) || !refused_region(EPERM).ends_with(kExplained)) _exit(2);
    _exit(refused_region(EIO).find("ibv_reg_mr() failed: ") == std::string::npos ? 3 : 0);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(thresholds_are_the_originals_at_first),
      cmocka_unit_test_setup(an_error_goes_to_syslog_alone, start),
      cmocka_unit_test_setup(syslog_is_left_as_the_program_has_it, start),
      cmocka_unit_test_setup(the_second_threshold_adds_stderr, start),
      cmocka_unit_test_setup(nothing_is_said_beyond_the_threshold, start),
      cmocka_unit_test_setup(a_function_of_the_program_takes_its_place, start),
      cmocka_unit_test_setup(a_region_beyond_the_limit_of_locked_memory_is_explained, start),
      cmocka_unit_test_setup(levels_have_the_originals_names_and_severities, start),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

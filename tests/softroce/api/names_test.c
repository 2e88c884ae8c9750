/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * The names that open without a line of dat.conf, and the listed names. The registry reads dat.conf once in a process,
 * so each case is a process of its own.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/softroce/api/api.h"

static char conf_path[] = "/tmp/names-conf-XXXXXX";
static char said_path[] = "/tmp/names-said-XXXXXX";

/* main() fills in the names that contain the device's name. */
static char by_port[32], by_port_scm[32], by_port_ucm[32], no_port[32], device_params[32];
static const char* const automatic_names[] = {"ofa-v2-d0", by_port, by_port_scm, by_port_ucm ONLY_12(, "OpenIB-cma")};
/* dat.conf's fields after the name; %s stands for the varying parts of the library's name. */
#define LINE                                                      \
  ONLY_20("u2.0 nonthreadsafe default libdapl%s%s.so.2 dapl.2.0") \
  ONLY_12("u1.2 nonthreadsafe default libdapl%s%s.so.1 dapl.1.2")

static void name_device(void) {
  const char* device = getenv("SOFTROCE_DEVICE");
  snprintf(by_port, sizeof by_port, "ofa-v2-%s-1", device);
  snprintf(by_port_scm, sizeof by_port_scm, "ofa-v2-%s-1s", device);
  snprintf(by_port_ucm, sizeof by_port_ucm, "ofa-v2-%s-1u", device);
  snprintf(no_port, sizeof no_port, "ofa-v2-%s-2", device);
  snprintf(device_params, sizeof device_params, "%s 1", device);
}

/* Runs body in a child with that dat.conf (NULL: DAT_OVERRIDE names no file); returns the lines it wrote to stderr. */
static size_t with_conf(const char* text, void (*body)(void)) {
  FILE* conf = fopen(conf_path, "w");
  FILE* said;
  size_t lines = 0;
  int status, c;
  pid_t child;
  assert_non_null(conf);
  if (text) fputs(text, conf);
  fclose(conf);
  child = fork();
  if (child == 0) {
    int fd = open(said_path, O_WRONLY | O_TRUNC);
    if (fd < 0 || dup2(fd, STDERR_FILENO) < 0) _exit(98);
    setenv("DAT_OVERRIDE", text ? conf_path : "/nonexistent/dat.conf", 1);
    body();
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  said = fopen(said_path, "r");
  assert_non_null(said);
  while ((c = fgetc(said)) != EOF) {
    if (c == '\n') lines++;
    if (!WIFEXITED(status) || WEXITSTATUS(status)) putchar(c);
  }
  fclose(said);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  return lines;
}

/* Ends the child with a message unless the condition is true. */
static void must(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "not so: %s\n", what);
  _exit(1);
}

static size_t times_listed(const char* name) {
  DAT_PROVIDER_INFO infos[16];
  DAT_PROVIDER_INFO* list[16];
  DAT_COUNT i, count = 0;
  size_t times = 0;
  for (i = 0; i < 16; i++) list[i] = &infos[i];
  must(dat_registry_list_providers(16, &count, list) == DAT_SUCCESS && count <= 16, "list_providers");
  for (i = 0; i < count; i++) times += strcmp(infos[i].ia_name, name) == 0;
  return times;
}

static void open_both_ways(const char* name) {
  int thread_safe;
  for (thread_safe = 0; thread_safe < 2; thread_safe++) {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_PROVIDER_ATTR attr;
    must(dat_ia_openv((char*)name, 8, &async, &ia, DAT_VERSION, thread_safe ? DAT_TRUE : DAT_FALSE) == DAT_SUCCESS,
         name);
    must(dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr) == DAT_SUCCESS, "query");
    must(strcmp(attr.provider_name, name) == 0, "provider_name");
    must((attr.is_thread_safe != DAT_FALSE) == (thread_safe != 0), "is_thread_safe");
    must(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG) == DAT_SUCCESS, "close");
  }
}

static void every_automatic_name_opens(void) {
  size_t i;
  for (i = 0; i < sizeof automatic_names / sizeof *automatic_names; i++) {
    open_both_ways(automatic_names[i]);
    must(times_listed(automatic_names[i]) == (i == 0), automatic_names[i]);
  }
}

static void only_the_alias_is_open(void) {
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  must(dat_ia_open(by_port_scm, 8, &async, &ia) == DAT_SUCCESS, "open");
  must(times_listed(by_port_scm) == 0, "an alias is not listed while it is open");
  must(times_listed("ofa-v2-d0") == 1, "the port is listed while it is open");
  must(dat_ia_close(ia, DAT_CLOSE_DEFAULT) == DAT_SUCCESS, "close");
}

static void line_takes_the_place(void) {
  must(times_listed("mine") == 1, "the line is listed");
  must(times_listed("ofa-v2-d0") == 0, "its port is not listed again");
  open_both_ways("ofa-v2-d0");
}

static void nothing_without_rdma(void) {
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  const DAT_RETURN not_found = DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND | DAT_NAME_NOT_REGISTERED;
  must(times_listed("ofa-v2-plain0") == 0, "a network device without RDMA is not listed");
  must(dat_ia_open("ofa-v2-plain0", 8, &async, &ia) == not_found, "nor opens");
  must(dat_ia_open(no_port, 8, &async, &ia) == not_found, "a port that is not there");
}

static void automatic__empty_dat_conf(void** state) {
  (void)state;
  assert_int_equal(with_conf("", every_automatic_name_opens), 0);
  assert_int_equal(with_conf("# nothing\n", only_the_alias_is_open), 0);
  /* One line lists the names that there are. */
  assert_int_equal(with_conf("", nothing_without_rdma), 1);
}

static void automatic__bad_override_leaves_them_and_one_line(void** state) {
  (void)state;
  assert_int_equal(with_conf(NULL, every_automatic_name_opens), 1);
}

static void automatic__no_dat_conf_at_all(void** state) {
  char* kept = strdup(getenv("DAT_OVERRIDE"));
  pid_t child;
  int status;
  (void)state;
  if (access("/etc/dat.conf", F_OK) == 0) skip();
  child = fork();
  if (child == 0) {
    unsetenv("DAT_OVERRIDE");
    every_automatic_name_opens();
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  free(kept);
}

static void automatic__port_with_a_line_is_listed_by_that_alone(void** state) {
  static const char* const params[] = {"d0 0", device_params, "10.9.0.1 0"};
  size_t i;
  (void)state;
  for (i = 0; i < sizeof params / sizeof *params; i++) {
    char text[256];
    snprintf(text, sizeof text, "mine " LINE " \"%s\" \"\"\n", "", ONLY_20("ofa") ONLY_12("cma"), params[i]);
    assert_int_equal(with_conf(text, line_takes_the_place), 0);
  }
}

/* The lines of an installation that had the original: all its libraries, both spellings. */
static void lines__every_library_with_both_spellings(void** state) {
  static const char* const libraries[] = {ONLY_20("ofa", "scm", "ucm") ONLY_12("cma", "scm")};
  enum { kLibraries = sizeof libraries / sizeof *libraries };
  static const char* const params[] = {"d0 0", "10.9.0.1 0", device_params};
  char text[2048] = "";
  size_t i, j;
  (void)state;
  for (i = 0; i < kLibraries; i++)
    for (j = 0; j < 3; j++)
      snprintf(text + strlen(text), sizeof text - strlen(text), "%s-%zu " LINE " \"%s\" \"\"\n", libraries[i], j,
               ONLY_20(i ? "o" :) "", libraries[i], params[j]);
  for (i = 0; i < kLibraries; i++)
    for (j = 0; j < 3; j++) {
      char name[16];
      DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
      DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
      FILE* conf = fopen(conf_path, "w");
      int status;
      pid_t child;
      assert_non_null(conf);
      fputs(text, conf);
      fclose(conf);
      snprintf(name, sizeof name, "%s-%zu", libraries[i], j);
      child = fork();
      if (child == 0) {
        setenv("DAT_OVERRIDE", conf_path, 1);
        must(dat_ia_open(name, 8, &async, &ia) == DAT_SUCCESS, name);
        must(dat_ia_close(ia, DAT_CLOSE_DEFAULT) == DAT_SUCCESS, name);
        _exit(0);
      }
      assert_int_equal(waitpid(child, &status, 0), child);
      assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(automatic__empty_dat_conf),
      cmocka_unit_test(automatic__bad_override_leaves_them_and_one_line),
      cmocka_unit_test(automatic__no_dat_conf_at_all),
      cmocka_unit_test(automatic__port_with_a_line_is_listed_by_that_alone),
      cmocka_unit_test(lines__every_library_with_both_spellings),
  };
  int failed;
  name_device();
  close(mkstemp(conf_path));
  close(mkstemp(said_path));
  failed = RUN_TESTS(tests);
  unlink(conf_path);
  unlink(said_path);
  return failed;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* A program takes the library's messages of the chosen levels into its own log. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common.h"

static char lines[20][200];
static size_t count;

__attribute__((format(printf, 5, 6))) static void remember(enum rpma_log_level level, const char* file_name,
                                                           const int line_no, const char* function_name,
                                                           const char* message_format, ...) {
  va_list arguments;
  char* line = lines[count % 20];
  const int size = snprintf(line, 100, "%d %s ", (int)level, function_name);
  check(file_name != NULL && line_no > 0 && size > 0, "where a message comes from");
  va_start(arguments, message_format);
  vsnprintf(line + strlen(line), 100, message_format, arguments);
  va_end(arguments);
  ++count;
}

static bool remembered(const char* text) {
  for (size_t i = 0; i < count && i < 20; ++i) {
    if (strstr(lines[i], text)) return true;
  }
  return false;
}

static void listen_to_log(void) {
  enum rpma_log_level level = RPMA_LOG_DISABLED;
  must(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &level), "rpma_log_get_threshold");
  check(level == RPMA_LOG_LEVEL_WARNING, "the threshold at first");
  must(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_NOTICE), "rpma_log_set_threshold");
  must(rpma_log_set_function(remember), "rpma_log_set_function");
}

static void server(const char* address, const char* port) {
  struct rpma_peer* peer = local_peer(address);
  const struct first_recv none = {NULL, 0};
  struct rpma_conn* conn = NULL;
  listen_to_log();
  conn = accept_one(peer, address, port, NULL, none, NULL);
  wait_hang_up(&conn);
  must(rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION), "rpma_log_set_function");
  check(remembered("Waiting for incoming connection on"), "listening is logged");
  check(remembered("Connection established") && remembered("Connection closed"), "connections are logged");
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

static void client(const char* address, const char* port) {
  struct rpma_peer* peer = remote_peer(address);
  const struct first_recv none = {NULL, 0};
  struct rpma_conn* conn = NULL;
  struct rpma_mr_remote* region = NULL;
  size_t before;
  listen_to_log();
  conn = connect_to(peer, address, port, NULL, none, NULL);
  check(remembered("Requesting a connection to"), "connecting is logged");
  /* A mistake is logged as an error, and not at all if the log is off. */
  check(rpma_mr_remote_from_descriptor("", 1, &region) == RPMA_E_INVAL, "a descriptor of one byte");
  check(remembered("1 rpma_mr_remote_from_descriptor "), "mistakes are logged");
  must(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED), "rpma_log_set_threshold");
  before = count;
  check(rpma_mr_remote_from_descriptor("", 1, &region) == RPMA_E_INVAL, "a descriptor of one byte");
  check(count == before, "nothing is logged");
  must(rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION), "rpma_log_set_function");
  hang_up(&conn);
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

int main(int argc, char** argv) {
  return run_example(argc, argv, server, client);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * dapple-demo: two uDAPL endpoints move data by RDMA Write and RDMA Read, synchronise memory before and after, and
 * check every byte.
 *
 * session.c shows the objects that a uDAPL program needs, server.c the synchronisation, client.c the transfers.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "pair.h"
#include "protocol.h"
#include "report.h"
#include "server.h"

static const char kUsage[] =
    "usage: dapple-demo server [options]\n"
    "       dapple-demo client [options] ADDRESS\n"
    "       dapple-demo pair [options]            both, on this machine\n"
    "\n"
    "  --ia NAME        the interface adapter to open, a name of dat.conf (default: the first that opens)\n"
    "  --port N         the connection qualifier, 1 to 65535 (default: 18420)\n"
    "  --max-size N     the largest size to transfer, in bytes (default: 16777216)\n"
    "  --timeout N      the time to wait for the peer, in seconds (default: 60)\n";

static uint64_t number(const char* text, const char* option, uint64_t smallest, uint64_t largest) {
  char* end = NULL;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < smallest || value > largest) {
    fail("--%s %s: a number from %llu to %llu is needed", option, text, (unsigned long long)smallest,
         (unsigned long long)largest);
  }
  return value;
}

static _Noreturn void fail_usage(const char* what) {
  fprintf(stderr, "dapple-demo: %s\n%s", what, kUsage);
  exit(2);
}

int main(int argc, char** argv) {
  static const struct option kOptions[] = {
      {"ia", required_argument, NULL, 'i'},       {"port", required_argument, NULL, 'p'},
      {"max-size", required_argument, NULL, 's'}, {"timeout", required_argument, NULL, 't'},
      {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
  struct server_options server = {.port = kDefaultPort, .timeout_s = 60, .address_fd = -1};
  struct client_options client = {.server = NULL};
  server.largest_size = kLargestSize;
  for (int option; (option = getopt_long(argc, argv, "h", kOptions, NULL)) != -1;) {
    switch (option) {
      case 'i':
        server.ia_name = optarg;
        break;
      case 'p':
        server.port = (uint16_t)number(optarg, "port", 1, 65535);
        break;
      case 's':
        server.largest_size = number(optarg, "max-size", 1, kLargestSize);
        break;
      case 't':
        server.timeout_s = (unsigned)number(optarg, "timeout", 1, 3600);
        break;
      case 'h':
        fputs(kUsage, stdout);
        return 0;
      default:
        fail_usage("unknown option");
    }
  }
  client.ia_name = server.ia_name;
  client.port = server.port;
  client.timeout_s = server.timeout_s;
  client.largest_size = server.largest_size;

  const char* mode = optind < argc ? argv[optind] : "";
  int operands = argc - optind - 1;
  if (strcmp(mode, "server") == 0 && operands == 0) {
    report_set_role("dapple-demo server");
    run_server(&server);
    puts("the client's ranges were all as they should be");
  } else if (strcmp(mode, "client") == 0 && operands == 1) {
    report_set_role("dapple-demo client");
    client.server = argv[optind + 1];
    run_client(&client);
  } else if (strcmp(mode, "pair") == 0 && operands == 0) {
    run_pair(&server, &client);
  } else {
    fail_usage("say server, client ADDRESS or pair");
  }
  return fflush(stdout) == 0 ? 0 : 1;
}

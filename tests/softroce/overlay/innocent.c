/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */

/*
 * innocent DEVICE...: a verbs program without any knowledge of dapple, for dapple-run. It opens every device twice, and
 * once more in a child and from its file descriptor, registers memory on each, and prints which library serves its
 * posting and polling. It prints the same with and without dapple-run.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char buffer[8192];

static void die(const char* what) {
  perror(what);
  exit(1);
}

static void say_library(const char* what, const void* function) {
  Dl_info info;
  const char* slash;

  if (!dladdr(function, &info)) die("dladdr");
  slash = strrchr(info.dli_fname, '/');
  printf("  %s: %s, %s\n", what, slash ? slash + 1 : info.dli_fname, info.dli_sname ? info.dli_sname : "no name");
}

static void use(struct ibv_context* context) {
  struct ibv_pd* pd = ibv_alloc_pd(context);
  struct ibv_mr* mr = pd ? ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE) : NULL;

  if (!mr) die("ibv_reg_mr");
  printf("  a region of %zu bytes\n", mr->length);
  say_library("poll_cq", (const void*)context->ops.poll_cq);
  say_library("post_send", (const void*)context->ops.post_send);
  say_library("post_recv", (const void*)context->ops.post_recv);
  if (ibv_dereg_mr(mr) || ibv_dealloc_pd(pd)) die("ibv_dereg_mr");
}

static struct ibv_context* open_named(struct ibv_device** devices, const char* name) {
  struct ibv_context* context = NULL;

  for (int i = 0; devices[i]; i++) {
    if (strcmp(ibv_get_device_name(devices[i]), name) == 0) context = ibv_open_device(devices[i]);
  }
  if (!context) die(name);
  printf("%s\n", name);
  return context;
}

static void use_in_child(struct ibv_device** devices, const char* name) {
  int status = -1;
  pid_t child;

  fflush(stdout);
  child = fork();
  if (child == 0) {
    struct ibv_context* context = open_named(devices, name);

    use(context);
    if (ibv_close_device(context)) die("ibv_close_device");
    exit(0);
  }
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) die("child");
}

static void use_imported(const struct ibv_context* context) {
  struct ibv_context* imported = ibv_import_device(dup(context->cmd_fd));

  /* Some providers cannot. */
  printf("  imported: %s\n", imported ? "yes" : "no");
  if (!imported) return;
  use(imported);
  ibv_close_device(imported);
}

int main(int argc, char** argv) {
  struct ibv_device** devices = ibv_get_device_list(NULL);

  if (!devices) die("ibv_get_device_list");
  for (int i = 1; i < argc; i++) {
    struct ibv_context* first = open_named(devices, argv[i]);
    struct ibv_context* second = open_named(devices, argv[i]);

    use(first);
    use(second);
    use_in_child(devices, argv[i]);
    use_imported(first);
    if (ibv_close_device(first)) die("ibv_close_device");
    use(second);
    if (ibv_close_device(second)) die("ibv_close_device");
  }
  ibv_free_device_list(devices);
  return 0;
}

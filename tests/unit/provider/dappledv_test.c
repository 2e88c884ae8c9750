/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */

/*
 * Uses the library as a C program does, with contexts that no library opened. The header comes first, because it must
 * compile alone.
 */
#include <infiniband/dappledv.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define VARIABLE "DAPPLE_COHERENCE"

/* The attributes of a device that no description of the machine contains, and that no kernel reports. */
#if defined(__x86_64__) || (defined(__powerpc64__) && defined(__LITTLE_ENDIAN__))
#define BY_DEFAULT DAPPLEDV_COHERENCE_COHERENT, DAPPLEDV_REASON_ARCHITECTURE
#else
#define BY_DEFAULT DAPPLEDV_COHERENCE_UNKNOWN, DAPPLEDV_REASON_ASSUMED
#endif

static char root[64];
static struct ibv_device bare_device;
static struct ibv_device hardware_device;
static struct ibv_context bare;
static struct ibv_context hardware;

static int make_device(struct ibv_device* device, struct ibv_context* context, const char* name) {
  snprintf(device->name, sizeof(device->name), "%s", name);
  snprintf(device->ibdev_path, sizeof(device->ibdev_path), "%s/%s", root, name);
  context->device = device;
  context->cmd_fd = -1;
  return mkdir(device->ibdev_path, 0755);
}

static int make_devices(void** state) {
  char link[128];

  (void)state;
  snprintf(root, sizeof(root), "/tmp/dapple-sysfs.XXXXXX");
  if (!mkdtemp(root) || make_device(&bare_device, &bare, "bare0") || make_device(&hardware_device, &hardware, "mlx5_0"))
    return -1;
  snprintf(link, sizeof(link), "%s/mlx5_0/device", root);
  return symlink("../../pci", link);
}

static int remove_devices(void** state) {
  char command[96];

  (void)state;
  snprintf(command, sizeof(command), "rm -r '%s'", root);
  return system(command);
}

static int clear_environment(void** state) {
  (void)state;
  return unsetenv(VARIABLE);
}

static void assert_query(struct ibv_context* context, const char* parameter, enum dappledv_coherence coherence,
                         enum dappledv_reason reason) {
  struct dappledv_device_attr attr;

  memset(&attr, 0xa5, sizeof(attr));
  attr.comp_mask = 0;
  errno = ENOTTY;
  assert_int_equal(dappledv_query_device_override(context, parameter, &attr), 0);
  assert_int_equal(errno, ENOTTY);
  assert_int_equal(attr.comp_mask, 0);
  assert_int_equal(attr.coherence, coherence);
  assert_int_equal(attr.reason, reason);
  assert_true(attr.line_size != 0 && (attr.line_size & (attr.line_size - 1)) == 0);
  assert_true(attr.writeback_granule >= attr.line_size);
  assert_int_equal(attr.sync_for_device_required, coherence != DAPPLEDV_COHERENCE_COHERENT);
  assert_int_equal(attr.sync_for_cpu_required, coherence != DAPPLEDV_COHERENCE_COHERENT);
  assert_true(attr.sync_complete <= 1);
  assert_true(attr.sync_supported <= 1);
  assert_non_null(attr.clean_instruction);
  assert_non_null(attr.clean_invalidate_instruction);
  assert_non_null(attr.explanation);
  assert_string_not_equal(attr.explanation, "");
  assert_string_not_equal(dappledv_certainty_str(attr.certainty), "invalid");
  assert_int_equal(attr.pci_relaxed_ordering, DAPPLEDV_ANSWER_UNKNOWN);
  assert_int_equal(attr.pci_no_snoop, DAPPLEDV_ANSWER_UNKNOWN);
}

static void regions__of_a_coherent_device(void** state) {
  struct dappledv_device_attr attr = {0};
  struct dappledv_region_attr region = {0}, ordinary;
  static char data[300];
  struct iovec range = {data + 1, 200};

  (void)state;
  assert_int_equal(dappledv_query_device_override(&bare, "coherent", &attr), 0);
  errno = ENOTTY;
  assert_int_equal(dappledv_init_region(NULL, &region), EINVAL);
  assert_int_equal(dappledv_init_region(&attr, &region), 0);
  assert_int_equal(region.coherence, DAPPLEDV_COHERENCE_COHERENT);
  ordinary = region;
  assert_int_equal(dappledv_override_region(&region, DAPPLEDV_COHERENCE_UNKNOWN), EINVAL);
  assert_int_equal(dappledv_override_region(NULL, DAPPLEDV_COHERENCE_NONCOHERENT_CPU), EINVAL);
  assert_int_equal(dappledv_dmabuf_region(&region, STDIN_FILENO), EINVAL);
  assert_memory_equal(&region, &ordinary, sizeof(region));
  assert_int_equal(dappledv_sync_for_device(NULL, &range, 1), EINVAL);
  assert_int_equal(dappledv_sync_for_cpu(NULL, &range, 1), EINVAL);
  memset(data, 7, sizeof(data));
  assert_int_equal(dappledv_sync_for_device(&region, &range, 1), 0);
  assert_int_equal(dappledv_sync_for_cpu(&region, &range, 1), 0);
  if (dappledv_override_region(&region, DAPPLEDV_COHERENCE_NONCOHERENT_CPU) == EOPNOTSUPP) skip();
  assert_int_equal(errno, ENOTTY);
  assert_int_equal(region.coherence, DAPPLEDV_COHERENCE_NONCOHERENT_CPU);
  assert_int_equal(region.reason, DAPPLEDV_REASON_OVERRIDE_REGION);
  assert_int_equal(region.certainty, DAPPLEDV_CERTAINTY_OVERRIDE);
  assert_int_equal(dappledv_sync_for_device(&region, &range, 1), 0);
  assert_int_equal(dappledv_sync_for_cpu(&region, &range, 1), 0);
  assert_int_equal(data[0] + data[100] + data[299], 21);
}

static void query_device__null_arguments(void** state) {
  struct dappledv_device_attr attr = {0};
  struct ibv_context no_device;

  (void)state;
  memset(&no_device, 0, sizeof(no_device));
  assert_int_equal(dappledv_query_device(NULL, &attr), EINVAL);
  assert_int_equal(dappledv_query_device(&bare, NULL), EINVAL);
  assert_int_equal(dappledv_query_device(&no_device, &attr), EINVAL);
  assert_int_equal(dappledv_query_device_override(NULL, "cpu", &attr), EINVAL);
  assert_int_equal(dappledv_query_device_override(&bare, "cpu", NULL), EINVAL);
}

/* Sysfs shows no hardware for the first device. That does not make it a software device: only its driver's id does. */
static void query_device__without_override(void** state) {
  (void)state;
  assert_query(&bare, NULL, BY_DEFAULT);
  assert_query(&hardware, NULL, BY_DEFAULT);
}

/* A later program on this library: it asks for a field that does not exist yet, and learns that it was not filled. */
static void query_device__unknown_comp_mask_is_cleared(void** state) {
  struct dappledv_device_attr attr = {.comp_mask = UINT64_MAX};
  struct dappledv_region_attr region = {.comp_mask = UINT64_MAX};

  (void)state;
  assert_int_equal(dappledv_query_device(&bare, &attr), 0);
  assert_int_equal(attr.comp_mask, 0);
  assert_int_equal(dappledv_init_region(&attr, &region), 0);
  assert_int_equal(region.comp_mask, 0);
}

static void persist_region__syncs_reach_persistence(void** state) {
  struct dappledv_device_attr attr = {0};
  struct dappledv_region_attr region = {0};
  static char data[300];
  struct iovec range = {data + 1, 200};

  (void)state;
  assert_int_equal(dappledv_query_device_override(&bare, "coherent", &attr), 0);
  assert_non_null(attr.persist_instruction);
  assert_int_equal(dappledv_init_region(&attr, &region), 0);
  assert_int_equal(region.persistence, DAPPLEDV_PERSISTENCE_UNSPECIFIED);
  errno = ENOTTY;
  assert_int_equal(dappledv_persist_region(NULL, DAPPLEDV_PERSISTENCE_UNSPECIFIED), EINVAL);
  assert_int_equal(dappledv_persist_region(&region, (enum dappledv_persistence)99), EINVAL);
  assert_int_equal(errno, ENOTTY);
  /* Waiting is always possible. */
  assert_int_equal(dappledv_persist_region(&region, DAPPLEDV_PERSISTENCE_CPU_CACHES), 0);
  assert_int_equal(dappledv_sync_for_device(&region, &range, 1), 0);
  if (!attr.persist_supported) {
    assert_int_equal(dappledv_persist_region(&region, DAPPLEDV_PERSISTENCE_UNSPECIFIED), EOPNOTSUPP);
    skip();
  }
  assert_int_equal(dappledv_persist_region(&region, DAPPLEDV_PERSISTENCE_UNSPECIFIED), 0);
  assert_int_not_equal(region.persistence, DAPPLEDV_PERSISTENCE_UNSPECIFIED);
  assert_int_equal(region.coherence, attr.coherence);
  memset(data, 7, sizeof(data));
  assert_int_equal(dappledv_sync_for_device(&region, &range, 1), 0);
  assert_int_equal(dappledv_sync_for_cpu(&region, &range, 1), 0);
  assert_int_equal(data[0] + data[100] + data[299], 21);
  if (dappledv_override_region(&region, DAPPLEDV_COHERENCE_NONCOHERENT_CPU) == EOPNOTSUPP) skip();
  assert_int_not_equal(region.persistence, DAPPLEDV_PERSISTENCE_UNSPECIFIED);
  assert_int_equal(dappledv_sync_for_device(&region, &range, 1), 0);
  assert_int_equal(data[0] + data[100] + data[299], 21);
}

/* A process logs this once: no other test here may give a malformed value. */
static void persist_region__what_somebody_says_of_the_machine(void** state) {
  struct dappledv_device_attr attr = {0};
  struct dappledv_region_attr region = {0};

  (void)state;
  assert_int_equal(setenv("DAPPLE_PERSISTENCE", "cpu_cache", 1), 0);
  assert_int_equal(dappledv_query_device(&bare, &attr), 0);
  assert_int_equal(attr.caches_persistent, DAPPLEDV_ANSWER_YES);
  assert_int_equal(attr.persist_supported, 1);
  assert_int_equal(dappledv_init_region(&attr, &region), 0);
  assert_int_equal(dappledv_persist_region(&region, DAPPLEDV_PERSISTENCE_UNSPECIFIED), 0);
  assert_int_equal(region.persistence, DAPPLEDV_PERSISTENCE_CPU_CACHES);
  assert_int_equal(setenv("DAPPLE_PERSISTENCE", "eADR", 1), 0);
  assert_int_equal(dappledv_query_device(&bare, &attr), EINVAL);
  assert_int_equal(dappledv_persist_region(&region, DAPPLEDV_PERSISTENCE_CPU_CACHES), EINVAL);
  assert_int_equal(unsetenv("DAPPLE_PERSISTENCE"), 0);
}

static void query_range__memory_of_this_process(void** state) {
  struct dappledv_range_attr attr = {.comp_mask = UINT64_MAX};
  static char data[64];
  const long page = sysconf(_SC_PAGESIZE);
  char* hole = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* shared = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

  (void)state;
  assert_true(hole != MAP_FAILED && shared != MAP_FAILED);
  assert_int_equal(munmap(hole + page, page), 0);
  errno = ENOTTY;
  data[0] = 1;
  if (dappledv_query_range(hole + 10, 100, &attr) == ENOENT) skip(); /* a kernel without smaps */
  assert_int_equal(attr.comp_mask, 0);
  assert_int_equal(attr.length, 100);
  assert_int_equal(attr.memory, DAPPLEDV_MEMORY_ANONYMOUS);
  assert_int_equal(attr.caching, DAPPLEDV_CACHING_WRITE_BACK);
  assert_int_equal(attr.persistence, DAPPLEDV_PERSISTENCE_UNSPECIFIED);
  assert_non_null(attr.explanation);
  /* It ends where the mapping does. */
  assert_int_equal(dappledv_query_range(hole + 10, 2 * page, &attr), 0);
  assert_int_equal(attr.length, page - 10);
  assert_int_equal(dappledv_query_range(shared, 1, &attr), 0);
  assert_int_equal(attr.memory, DAPPLEDV_MEMORY_PAGE_CACHE);
  assert_int_equal(attr.caching, DAPPLEDV_CACHING_WRITE_BACK);
  assert_int_equal(munmap(hole, page), 0);
  assert_int_equal(dappledv_query_range(hole, 1, &attr), EFAULT);
  assert_int_equal(dappledv_query_range(data, 0, &attr), EINVAL);
  assert_int_equal(dappledv_query_range(data, SIZE_MAX, &attr), EINVAL);
  assert_int_equal(dappledv_query_range(data, 1, NULL), EINVAL);
  assert_int_equal(errno, ENOTTY);
  assert_int_equal(munmap(shared, page), 0);
}

static void query_device_override__words(void** state) {
  (void)state;
  assert_query(&bare, "coherent", DAPPLEDV_COHERENCE_COHERENT, DAPPLEDV_REASON_OVERRIDE_PARAMETER);
  assert_query(&bare, "cpu", DAPPLEDV_COHERENCE_NONCOHERENT_CPU, DAPPLEDV_REASON_OVERRIDE_PARAMETER);
  assert_query(&hardware, "io", DAPPLEDV_COHERENCE_NONCOHERENT_IO, DAPPLEDV_REASON_OVERRIDE_PARAMETER);
}

static void query_device_override__bad_word_leaves_attr_alone(void** state) {
  static const char* const words[] = {"", "CPU", "noncoherent", "rxe0=cpu", "cpu "};
  struct dappledv_device_attr attr, before;
  size_t i;

  (void)state;
  memset(&attr, 0xa5, sizeof(attr));
  before = attr;
  for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
    assert_int_equal(dappledv_query_device_override(&bare, words[i], &attr), EINVAL);
  assert_memory_equal(&attr, &before, sizeof(attr));
  /* Even if the environment would override it. */
  assert_int_equal(setenv(VARIABLE, "cpu", 1), 0);
  assert_int_equal(dappledv_query_device_override(&bare, "CPU", &attr), EINVAL);
  assert_memory_equal(&attr, &before, sizeof(attr));
}

static void environment__wins_over_the_parameter(void** state) {
  (void)state;
  assert_int_equal(setenv(VARIABLE, "cpu", 1), 0);
  assert_query(&bare, "coherent", DAPPLEDV_COHERENCE_NONCOHERENT_CPU, DAPPLEDV_REASON_OVERRIDE_ENVIRONMENT);
  assert_query(&hardware, NULL, DAPPLEDV_COHERENCE_NONCOHERENT_CPU, DAPPLEDV_REASON_OVERRIDE_ENVIRONMENT);
}

static void environment__list_goes_by_device(void** state) {
  (void)state;
  assert_int_equal(setenv(VARIABLE, "mlx5_0=io,other=cpu", 1), 0);
  assert_query(&hardware, NULL, DAPPLEDV_COHERENCE_NONCOHERENT_IO, DAPPLEDV_REASON_OVERRIDE_ENVIRONMENT);
  assert_query(&bare, NULL, BY_DEFAULT);
  assert_query(&bare, "cpu", DAPPLEDV_COHERENCE_NONCOHERENT_CPU, DAPPLEDV_REASON_OVERRIDE_PARAMETER);
}

static void environment__empty_is_unset(void** state) {
  (void)state;
  assert_int_equal(setenv(VARIABLE, "", 1), 0);
  assert_query(&bare, NULL, BY_DEFAULT);
}

/* A process logs this once: no other test here may give a malformed value. */
static void environment__malformed_is_refused_and_said_once(void** state) {
  struct dappledv_device_attr attr, before;
  char said[512] = "";
  FILE* file = tmpfile();
  int saved_stderr = dup(STDERR_FILENO);
  int results[3];
  size_t length;

  (void)state;
  assert_non_null(file);
  assert_true(saved_stderr >= 0);
  memset(&attr, 0xa5, sizeof(attr));
  before = attr;
  assert_int_equal(setenv(VARIABLE, "rxe0=nonsense", 1), 0);

  fflush(stderr);
  dup2(fileno(file), STDERR_FILENO);
  results[0] = dappledv_query_device(&bare, &attr);
  results[1] = dappledv_query_device_override(&bare, "coherent", &attr);
  results[2] = dappledv_query_device(&hardware, &attr);
  fflush(stderr);
  dup2(saved_stderr, STDERR_FILENO);
  close(saved_stderr);

  rewind(file);
  length = fread(said, 1, sizeof(said) - 1, file);
  fclose(file);
  assert_int_equal(results[0], EINVAL);
  assert_int_equal(results[1], EINVAL);
  assert_int_equal(results[2], EINVAL);
  assert_memory_equal(&attr, &before, sizeof(attr));
  assert_true(length > 0);
  assert_non_null(strstr(said, "DAPPLE_COHERENCE=rxe0=nonsense"));
  assert_ptr_equal(strchr(said, '\n'), said + length - 1);
}

static void sync__leaves_data_unchanged(void** state) {
  static const char* const words[] = {"coherent", "cpu", "io"};
  static unsigned char memory[8192], expected[8192];
  const struct iovec ranges[] = {
      {memory, sizeof(memory)}, {memory + 1, 1}, {memory + 63, 130}, {memory + 100, 0}, {NULL, 0}};
  struct dappledv_device_attr attr = {0};
  struct dappledv_region_attr region = {0};
  size_t i, j;

  (void)state;
  for (i = 0; i < 4; i++) {
    assert_int_equal(dappledv_query_device_override(&hardware, words[i % 3], &attr), 0);
    assert_int_equal(dappledv_init_region(&attr, &region), 0);
    if (i == 3) region.coherence = DAPPLEDV_COHERENCE_UNKNOWN;
    for (j = 0; j < sizeof(memory); j++) memory[j] = expected[j] = (unsigned char)(j * 13 + i);
    assert_int_equal(dappledv_sync_for_device(&region, ranges, 5), region.sync_supported ? 0 : EOPNOTSUPP);
    assert_memory_equal(memory, expected, sizeof(memory));
    assert_int_equal(dappledv_sync_for_cpu(&region, ranges, 5), region.sync_supported ? 0 : EOPNOTSUPP);
    assert_memory_equal(memory, expected, sizeof(memory));
    (void)dappledv_sync_for_device(&region, NULL, 0);
    (void)dappledv_sync_for_cpu(&region, NULL, 0);
  }
}

static void attach__refused_without_a_library_to_attach_to(void** state) {
  const struct ibv_sge segment = {0};

  (void)state;
  assert_int_equal(dappledv_attach(NULL, 0), EINVAL);
  assert_int_equal(dappledv_attach(&bare, 1 << 1), EINVAL);
  errno = ENOTTY;
  assert_int_equal(dappledv_attach(&bare, DAPPLEDV_ATTACH_EMULATE), EOPNOTSUPP);
  assert_int_equal(dappledv_attach(&bare, 0), EOPNOTSUPP);
  assert_int_equal(errno, ENOTTY);
  setenv(VARIABLE, "perhaps", 1);
  assert_int_equal(dappledv_attach(&bare, 0), EINVAL);
  assert_int_equal(dappledv_sync_mr_for_device(&bare, &segment, 1, NULL), EOPNOTSUPP);
  assert_int_equal(dappledv_sync_mr_for_cpu(NULL, NULL, 0, NULL), EOPNOTSUPP);
  assert_int_equal(dappledv_sync_mr_for_cpu(&bare, NULL, 1, NULL), EINVAL);
  assert_non_null(dappledv_attach_obstacle(&bare));
  assert_non_null(dappledv_attach_obstacle(NULL));
}

static void strings__every_value_has_its_own(void** state) {
  int i, j;

  (void)state;
  for (i = DAPPLEDV_COHERENCE_UNKNOWN; i <= DAPPLEDV_COHERENCE_BOUNCED; i++) {
    assert_string_not_equal(dappledv_coherence_str((enum dappledv_coherence)i), "invalid");
    for (j = DAPPLEDV_COHERENCE_UNKNOWN; j < i; j++)
      assert_string_not_equal(dappledv_coherence_str((enum dappledv_coherence)i),
                              dappledv_coherence_str((enum dappledv_coherence)j));
  }
  for (i = DAPPLEDV_REASON_NONE; i <= DAPPLEDV_REASON_DMABUF; i++) {
    assert_string_not_equal(dappledv_reason_str((enum dappledv_reason)i), "invalid");
    for (j = DAPPLEDV_REASON_NONE; j < i; j++)
      assert_string_not_equal(dappledv_reason_str((enum dappledv_reason)i),
                              dappledv_reason_str((enum dappledv_reason)j));
  }
  for (i = DAPPLEDV_CERTAINTY_NONE; i <= DAPPLEDV_CERTAINTY_ASSUMED; i++) {
    assert_string_not_equal(dappledv_certainty_str((enum dappledv_certainty)i), "invalid");
    for (j = DAPPLEDV_CERTAINTY_NONE; j < i; j++)
      assert_string_not_equal(dappledv_certainty_str((enum dappledv_certainty)i),
                              dappledv_certainty_str((enum dappledv_certainty)j));
  }
  assert_string_equal(dappledv_answer_str(DAPPLEDV_ANSWER_UNKNOWN), "unknown");
  assert_string_equal(dappledv_answer_str(DAPPLEDV_ANSWER_NO), "no");
  assert_string_equal(dappledv_answer_str(DAPPLEDV_ANSWER_YES), "yes");
  for (i = DAPPLEDV_MEMORY_UNKNOWN; i <= DAPPLEDV_MEMORY_DEVICE; i++) {
    assert_string_not_equal(dappledv_memory_str((enum dappledv_memory)i), "invalid");
    for (j = DAPPLEDV_MEMORY_UNKNOWN; j < i; j++)
      assert_string_not_equal(dappledv_memory_str((enum dappledv_memory)i),
                              dappledv_memory_str((enum dappledv_memory)j));
  }
  for (i = DAPPLEDV_CACHING_UNKNOWN; i <= DAPPLEDV_CACHING_UNCACHED; i++) {
    assert_string_not_equal(dappledv_caching_str((enum dappledv_caching)i), "invalid");
    for (j = DAPPLEDV_CACHING_UNKNOWN; j < i; j++)
      assert_string_not_equal(dappledv_caching_str((enum dappledv_caching)i),
                              dappledv_caching_str((enum dappledv_caching)j));
  }
  assert_string_equal(dappledv_persistence_str(DAPPLEDV_PERSISTENCE_UNSPECIFIED), "unspecified");
  assert_string_equal(dappledv_persistence_str(DAPPLEDV_PERSISTENCE_MEMORY_CONTROLLER), "memory_controller");
  assert_string_equal(dappledv_persistence_str(DAPPLEDV_PERSISTENCE_CPU_CACHES), "cpu_cache");
}

static void strings__other_values_are_invalid(void** state) {
  (void)state;
  assert_string_equal(dappledv_coherence_str((enum dappledv_coherence)99), "invalid");
  assert_string_equal(dappledv_reason_str((enum dappledv_reason)99), "invalid");
  assert_string_equal(dappledv_certainty_str((enum dappledv_certainty)99), "invalid");
  assert_string_equal(dappledv_answer_str((enum dappledv_answer)99), "invalid");
  assert_string_equal(dappledv_persistence_str((enum dappledv_persistence)99), "invalid");
  assert_string_equal(dappledv_memory_str((enum dappledv_memory)99), "invalid");
  assert_string_equal(dappledv_caching_str((enum dappledv_caching)99), "invalid");
}

static void fault_next__without_the_device__enosys(void** state) {
  (void)state;
  errno = 0;
  assert_int_equal(dappledv_fault_next("ibv_reg_mr", ENOMEM), ENOSYS);
  assert_int_equal(dappledv_fault_clear(), ENOSYS);
  assert_int_equal(dappledv_fault_pending(NULL), 0);
  assert_int_equal(errno, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fault_next__without_the_device__enosys),
      cmocka_unit_test_setup(query_device__null_arguments, clear_environment),
      cmocka_unit_test_setup(query_device__without_override, clear_environment),
      cmocka_unit_test_setup(query_device__unknown_comp_mask_is_cleared, clear_environment),
      cmocka_unit_test_setup(persist_region__syncs_reach_persistence, clear_environment),
      cmocka_unit_test_setup(persist_region__what_somebody_says_of_the_machine, clear_environment),
      cmocka_unit_test_setup(query_range__memory_of_this_process, clear_environment),
      cmocka_unit_test_setup(query_device_override__words, clear_environment),
      cmocka_unit_test_setup(query_device_override__bad_word_leaves_attr_alone, clear_environment),
      cmocka_unit_test_setup(environment__wins_over_the_parameter, clear_environment),
      cmocka_unit_test_setup(environment__list_goes_by_device, clear_environment),
      cmocka_unit_test_setup(environment__empty_is_unset, clear_environment),
      cmocka_unit_test_setup(environment__malformed_is_refused_and_said_once, clear_environment),
      cmocka_unit_test_setup(regions__of_a_coherent_device, clear_environment),
      cmocka_unit_test_setup(sync__leaves_data_unchanged, clear_environment),
      cmocka_unit_test_setup(attach__refused_without_a_library_to_attach_to, clear_environment),
      cmocka_unit_test_setup(strings__every_value_has_its_own, clear_environment),
      cmocka_unit_test_setup(strings__other_values_are_invalid, clear_environment),
  };
  return cmocka_run_group_tests(tests, make_devices, remove_devices);
}

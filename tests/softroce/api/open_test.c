/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* Opening and closing: an IA's attributes, anything that it leaves behind, IAs that cannot be opened, and fork(). */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/softroce/api/api.h"
#include "tests/softroce/descriptors.h"

/* Two queries into memory with different contents: a field that is not set differs. */
#define FILLED(field) assert_memory_equal(&a.field, &b.field, sizeof a.field)

static void ia_query__every_ia_attribute_is_filled(void** state) {
  struct fixture* f = *state;
  DAT_IA_ATTR a, b;
  memset(&a, 0xa5, sizeof a);
  memset(&b, 0x5a, sizeof b);
  assert_ok(dat_ia_query(f->ia, NULL, DAT_IA_FIELD_ALL, &a, 0, NULL));
  assert_ok(dat_ia_query(f->ia, NULL, DAT_IA_FIELD_ALL, &b, 0, NULL));
  FILLED(adapter_name), FILLED(vendor_name), FILLED(hardware_version_major), FILLED(hardware_version_minor);
  FILLED(firmware_version_major), FILLED(firmware_version_minor), FILLED(ia_address_ptr), FILLED(max_eps);
  FILLED(max_dto_per_ep), FILLED(max_rdma_read_per_ep_in), FILLED(max_rdma_read_per_ep_out), FILLED(max_evds);
  FILLED(max_evd_qlen), FILLED(max_iov_segments_per_dto), FILLED(max_lmrs), FILLED(max_lmr_block_size);
  FILLED(max_lmr_virtual_address), FILLED(max_pzs), FILLED(max_message_size), FILLED(max_rdma_size), FILLED(max_rmrs);
  FILLED(max_rmr_target_address), FILLED(max_srqs), FILLED(max_ep_per_srq), FILLED(max_recv_per_srq);
  FILLED(max_iov_segments_per_rdma_read), FILLED(max_iov_segments_per_rdma_write), FILLED(max_rdma_read_in);
  FILLED(max_rdma_read_out), FILLED(max_rdma_read_per_ep_in_guaranteed), FILLED(max_rdma_read_per_ep_out_guaranteed);
  ONLY_20(FILLED(zb_supported), FILLED(extension_supported), FILLED(extension_version);)
  FILLED(num_transport_attr), FILLED(transport_attr), FILLED(num_vendor_attr), FILLED(vendor_attr);

  assert_string_equal(a.adapter_name, getenv("SOFTROCE_DEVICE"));
  assert_int_equal(a.ia_address_ptr->sa_family, AF_INET);
  assert_string_equal(inet_ntoa(((struct sockaddr_in*)a.ia_address_ptr)->sin_addr), getenv("SOFTROCE_ADDRESS"));
  assert_in_range(a.max_eps, 2, INT32_MAX);
  assert_in_range(a.max_dto_per_ep, 16, INT32_MAX);
  assert_in_range(a.max_evds, 4, INT32_MAX);
  assert_in_range(a.max_evd_qlen, 64, INT32_MAX);
  assert_in_range(a.max_iov_segments_per_dto, 1, 1000);
  assert_in_range(a.max_iov_segments_per_rdma_read, 1, 1000);
  assert_in_range(a.max_iov_segments_per_rdma_write, 1, 1000);
  assert_in_range(a.max_lmrs, 1, INT32_MAX);
  assert_in_range(a.max_pzs, 1, INT32_MAX);
  assert_in_range(a.max_message_size, 1 << 20, UINT32_MAX);
  assert_in_range(a.max_rdma_size, 1 << 20, UINT32_MAX);
  assert_in_range(a.max_lmr_block_size, 1 << 20, UINT64_MAX);
  assert_in_range(a.max_rdma_read_per_ep_in, 1, 1000);
  assert_in_range(a.max_rdma_read_per_ep_out, 1, 1000);
}

static void ia_query__every_provider_attribute_is_filled(void** state) {
  struct fixture* f = *state;
  DAT_PROVIDER_ATTR a, b;
  bool cpu = needs_sync();
  memset((void*)&a, 0xa5, sizeof a);
  memset((void*)&b, 0x5a, sizeof b);
  assert_ok(dat_ia_query(f->ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &a));
  assert_ok(dat_ia_query(f->ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &b));
  FILLED(provider_name), FILLED(provider_version_major), FILLED(provider_version_minor), FILLED(dapl_version_major);
  FILLED(dapl_version_minor), FILLED(lmr_mem_types_supported), FILLED(iov_ownership_on_return);
  FILLED(dat_qos_supported), FILLED(completion_flags_supported), FILLED(is_thread_safe);
  FILLED(max_private_data_size), FILLED(supports_multipath), FILLED(ep_creator), FILLED(pz_support);
  FILLED(optimal_buffer_alignment), FILLED(evd_stream_merging_supported), FILLED(srq_supported);
  FILLED(srq_watermarks_supported), FILLED(srq_ep_pz_difference_supported), FILLED(srq_info_supported);
  FILLED(ep_recv_info_supported), FILLED(lmr_sync_req), FILLED(dto_async_return_guaranteed);
  FILLED(rdma_write_for_rdma_read_req), FILLED(num_provider_specific_attr), FILLED(provider_specific_attr);
  ONLY_20(FILLED(rdma_read_lmr_rmr_context_exposure), FILLED(rmr_scope_supported);)
  ONLY_20(FILLED(is_signal_safe), FILLED(ha_supported), FILLED(ha_loadbalancing);)

  assert_string_equal(a.provider_name, IA_NAME);
  assert_int_equal(a.dapl_version_major, FOR_DAT_12 ? 1 : 2);
  assert_int_equal(a.is_thread_safe, DAT_FALSE);
  assert_int_equal(a.lmr_mem_types_supported, DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_SHARED_VIRTUAL);
  assert_int_equal(a.max_private_data_size, 56);
  assert_int_equal(a.lmr_sync_req, cpu ? DAT_TRUE : DAT_FALSE);
  assert_in_range(a.optimal_buffer_alignment, 64, 4096);
  for (size_t i = 0; i < sizeof a.evd_stream_merging_supported / sizeof a.evd_stream_merging_supported[0]; ++i) {
    for (size_t k = 0; k < sizeof a.evd_stream_merging_supported[0] / sizeof(DAT_BOOLEAN); ++k) {
      assert_int_equal(a.evd_stream_merging_supported[i][k], DAT_TRUE);
    }
  }
}

static const char* named(const DAT_PROVIDER_ATTR* attr, const char* name) {
  for (DAT_COUNT i = 0; i < attr->num_provider_specific_attr; ++i) {
    if (strcmp(attr->provider_specific_attr[i].name, name) == 0) return attr->provider_specific_attr[i].value;
  }
  fail_msg("no attribute %s", name);
  return "";
}

static void ia_query__named_attributes(void** state) {
  struct fixture* f = *state;
  assert_string_equal(named(&f->provider, "DAT_IB_DEVICE_NAME"), getenv("SOFTROCE_DEVICE"));
  assert_string_equal(named(&f->provider, "DAT_IB_IMMED_DATA"), FOR_DAT_12 || on_iwarp() ? "FALSE" : "TRUE");
  assert_string_equal(named(&f->provider, "DAT_IB_PORT_NUMBER"), "1");
  assert_string_equal(named(&f->provider, "DAPPLE_TRANSPORT"), on_iwarp() ? "iWARP" : "RoCE");
  assert_string_equal(named(&f->provider, "DAPPLE_COHERENCE_CERTAINTY"), needs_sync() ? "override" : "kernel");
  assert_string_equal(named(&f->provider, "DAPPLE_SYNC_FOR_READ"), needs_sync() ? "TRUE" : "FALSE");
  assert_string_equal(named(&f->provider, "DAPPLE_WINDOW_TYPE_2B"), on_iwarp() ? "FALSE" : "TRUE");
  assert_string_equal(named(&f->provider, "DAPPLE_PCI_NO_SNOOP"), "UNKNOWN");
  assert_string_not_equal(named(&f->provider, "DAPPLE_COHERENCE_REASON"), "");
}

/* The last attributes of the provider agree with them, and the original's names come first. */
static void ia_query__transport_attributes(void** state) {
  struct fixture* f = *state;
  const DAT_COUNT count = f->attr.num_transport_attr;
  const DAT_COUNT before = f->provider.num_provider_specific_attr - count;
  assert_true(count > 10 && before > 10);
  for (DAT_COUNT i = 0; i < count; ++i) {
    assert_string_equal(f->attr.transport_attr[i].name, f->provider.provider_specific_attr[before + i].name);
    assert_string_equal(f->attr.transport_attr[i].value, f->provider.provider_specific_attr[before + i].value);
    assert_int_equal(strncmp(f->attr.transport_attr[i].name, "DAPPLE_", 7), 0);
    assert_string_not_equal(f->attr.transport_attr[i].value, "");
  }
  for (DAT_COUNT i = 0; i < before; ++i) {
    assert_int_equal(strncmp(f->provider.provider_specific_attr[i].name, "DAT_", 4), 0);
  }
  assert_string_equal(f->attr.transport_attr[0].name, "DAPPLE_COHERENCE");
}

static int entries(const char* folder) {
  DIR* const dir = opendir(folder);
  int count = 0;
  assert_non_null(dir);
  errno = 0;
  while (readdir(dir)) ++count;
  assert_int_equal(errno, 0);
  closedir(dir);
  return count;
}

/*
 * The software device, which librdmacm keeps open, has two threads of its own: one makes progress when nobody polls,
 * and one notices the death of dappled for rdma_cm. ThreadSanitizer has one, too. A thread that has been joined may
 * still be listed for a moment.
 */
static void expect_one_thread(void) {
#ifdef __SANITIZE_THREAD__
  const int runtimes = 1;
#else
  const int runtimes = 0;
#endif
  const int most = (on_software_device() ? 5 : 3) + runtimes; /* with . and .. */
  for (int tries = 0; tries < 1000 && entries("/proc/self/task") > most; ++tries) usleep(2000);
  assert_in_range(entries("/proc/self/task"), 3, most);
}

static void open_and_close(void) {
  struct fixture f;
  open_ia(&f, IA_NAME);
  register_memory(&f);
  make_end(&f, &f.active, NULL);
  make_end(&f, &f.passive, NULL);
  listen_any(&f);
  assert_ok(dat_ia_close(f.ia, DAT_CLOSE_ABRUPT_FLAG));

  munmap(f.memory, MEMORY_SIZE);
}

/*
 * On the software device two tables grow at times and stay: librdmacm's, by 8 KiB for each 1,024 numbers of ids, which
 * dappled gives one after the other, and the device's own, by 80 KiB for each 1,024 keys. So most of a hundred rounds
 * must allocate nothing, which a leak would.
 */
static void ia_open__100_times_leaves_nothing_behind(void** state) {
  const size_t most = on_software_device() ? 2 * 8208 + 2 * 81936 : 4096;
  int fds;
  size_t least = SIZE_MAX, memory;
  (void)state;
  for (int i = 0; i < 5; ++i) open_and_close();
  fds = count_descriptors().others;
  memory = mallinfo2().uordblks;
  for (int part = 0; part < 5; ++part) {
    const size_t before = mallinfo2().uordblks;
    size_t now, grown;
    for (int i = 0; i < 20; ++i) open_and_close();
    now = mallinfo2().uordblks;
    grown = now > before ? now - before : 0;
    if (grown < least) least = grown;
  }
  assert_int_equal(other_descriptors_settle(fds), fds);
  expect_one_thread();
  assert_int_equal(least, 0);
  assert_true(mallinfo2().uordblks < memory + most);
}

static DAT_RETURN open_version(const char* name, DAT_UINT32 major, DAT_UINT32 minor, DAT_IA_HANDLE* ia) {
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  return dat_ia_openv((DAT_NAME_PTR)(uintptr_t)name, 8, &async, ia, major, minor, DAT_FALSE);
}

static DAT_RETURN open_name(const char* name, DAT_IA_HANDLE* ia) {
  return open_version(name, DAT_VERSION, ia);
}

static void ia_open__what_is_not_there(void** state) {
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  const int fds = count_descriptors().others;
  (void)state;
  for (int i = 0; i < 3; ++i) {
    assert_error(open_name("nobody", &ia), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
    assert_error(open_version(IA_NAME, 7, 0, &ia), DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND);
    assert_error_type(open_name("no-netdev", &ia), DAT_INVALID_ADDRESS);
    /* Each network device has a software device. */
    if (!on_software_device()) assert_error_type(open_name("no-rdma", &ia), DAT_INVALID_ADDRESS);
    assert_error_type(open_name("no-port", &ia), DAT_INVALID_ADDRESS);
    assert_error_type(open_name("bad-params", &ia), DAT_INVALID_PARAMETER);
    assert_error_type(open_name("bad-coherence", &ia), DAT_INVALID_PARAMETER);
    assert_ptr_equal(ia, DAT_HANDLE_NULL);
  }
  expect_one_thread();
  /*
   * The first look into the device tree may leave librdmacm with its devices open. The two software devices take three
   * descriptors each, for their file and both ends of a pipe; the process' slot takes six, its links three, and the
   * access of peers to its memory two.
   */
  assert_true(count_descriptors().others <= fds + (on_software_device() ? 2 * 3 + 6 + 3 + 2 : 4));
}

#if !FOR_DAT_12
/* Two lines with one name, for 2.0 and 2.1. The second is for a network device that does not exist. */
static void ia_open__each_minor_has_its_line(void** state) {
  (void)state;
  for (int i = 0; i < 3; ++i) {
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    assert_error_type(open_version("two-minors", 2, 1, &ia), DAT_INVALID_ADDRESS);
    assert_ok(open_version("two-minors", 2, 0, &ia));
    assert_ok(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
  }
}
#endif

static void ia_open__bad_arguments(void** state) {
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_IA_HANDLE ia;
  int local_variable = 0;
  (void)state;
  assert_error_type(dat_ia_open(NULL, 8, &async, &ia), DAT_INVALID_PARAMETER);
  assert_error_type(dat_ia_open((DAT_NAME_PTR)IA_NAME, 8, NULL, &ia), DAT_INVALID_PARAMETER);
  assert_error_type(dat_ia_open((DAT_NAME_PTR)IA_NAME, 8, &async, NULL), DAT_INVALID_HANDLE);
  assert_error(dat_ia_open((DAT_NAME_PTR)IA_NAME, 0, &async, &ia), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  async = &local_variable;
  assert_error(dat_ia_open((DAT_NAME_PTR)IA_NAME, 8, &async, &ia), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_ASYNC);
  expect_one_thread();
}

static void ia_open__every_way_to_name_the_device(void** state) {
  static const char* const names[] = {"by-address", "by-device", "by-ipv6", IA_NAME};
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    DAT_IA_HANDLE ia;
    DAT_IA_ATTR attr;
    assert_ok(open_name(names[i], &ia));
    assert_ok(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
    assert_string_equal(attr.adapter_name, getenv("SOFTROCE_DEVICE"));
    assert_int_equal(attr.ia_address_ptr->sa_family, strcmp(names[i], "by-ipv6") == 0 ? AF_INET6 : AF_INET);
    assert_ok(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
  }
}

static void ia_open__coherence_in_ia_params(void** state) {
  DAT_PROVIDER_ATTR provider;
  DAT_IA_HANDLE ia;
  (void)state;
  assert_ok(open_name("as-cpu", &ia));
  assert_ok(dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &provider));
  assert_int_equal(provider.lmr_sync_req, DAT_TRUE);
  assert_string_not_equal(named(&provider, "DAPPLE_CLEAN_INSTRUCTION"), "none");
  assert_ok(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* Two IAs over IPv6 of one process connect to each other. */
static void connect__over_ipv6(void** state) {
  struct fixture f;
  (void)state;
  memset(&f, 0, sizeof f);
  assert_ok(open_name("by-ipv6", &f.ia));
  assert_ok(dat_ia_query(f.ia, NULL, DAT_IA_FIELD_ALL, &f.attr, 0, NULL));
  assert_ok(dat_pz_create(f.ia, &f.pz));
  make_end(&f, &f.active, NULL);
  make_end(&f, &f.passive, NULL);
  listen_any(&f);
  connect_ends(&f);
  assert_ok(dat_ia_close(f.ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void one_write(struct fixture* f, unsigned int seed) {
  DAT_LMR_TRIPLET source = local(f, 0, 5000);
  const DAT_RMR_TRIPLET there = remote(f, HALF, 5000);
  fill(f->memory, 5000, seed);
  assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &source, cookie(seed), &there, DAT_COMPLETION_DEFAULT_FLAG));
  expect_written(f, seed);
  sync_for_write(f, HALF, 5000);
  assert_true(is_filled(f->memory + HALF, 5000, seed));
}

static void expect_exit_0(pid_t child) {
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static void fork__a_child_that_exits_disturbs_nothing(void** state) {
  struct fixture* f = *state;
  one_write(f, 1);
#ifdef __SANITIZE_ADDRESS__
  /* Memory that only a thread's stack refers to looks like a leak in a child, which lacks that thread. */
  const int first = 1;
#else
  const int first = 0;
#endif
  for (int quick = first; quick < 2; ++quick) {
    const pid_t child = fork();
    if (child == 0) {
      if (quick) _exit(0);
      exit(0); /* with all handlers and destructors */
    }
    expect_exit_0(child);
    one_write(f, 2 + (unsigned int)quick);
  }
  expect_nothing(f->active.connect);
  expect_nothing(f->passive.connect);
  assert_ok(dat_ep_disconnect(f->active.ep, DAT_CLOSE_GRACEFUL_FLAG));
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
}

static void fork__a_child_that_runs_a_program_disturbs_nothing(void** state) {
  struct fixture* f = *state;
  one_write(f, 1);
  for (unsigned int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      execl("/bin/true", "true", (char*)NULL);
      _exit(1);
    }
    one_write(f, 2 + i); /* while it begins */
    expect_exit_0(child);
    one_write(f, 5 + i);
  }
}

/* The child writes to its copies of the pages that the device uses, before and after the parent's transfers. */
static void fork__a_child_that_goes_on_disturbs_nothing(void** state) {
  struct fixture* f = *state;
  int to_child[2], from_child[2];
  char turn = 0;
  pid_t child;
  DAT_LMR_TRIPLET to = local(f, HALF, 5000);
  assert_int_equal(pipe(to_child), 0);
  assert_int_equal(pipe(from_child), 0);
  assert_ok(dat_ep_post_recv(f->passive.ep, 1, &to, cookie(9), DAT_COMPLETION_DEFAULT_FLAG)); /* before the fork */
  fill(f->memory, 5000, 9);
  child = fork();
  if (child == 0) {
    alarm(600);
    close(to_child[1]);
    for (;;) {
      memset(f->memory, 0xee, MEMORY_SIZE);
      if (write(from_child[1], &turn, 1) != 1) _exit(1);
      if (read(to_child[0], &turn, 1) != 1) _exit(is_all(f->memory, MEMORY_SIZE, 0xee) ? 0 : 2);
    }
  }
  close(to_child[0]);
  for (unsigned int i = 0; i < 4; ++i) {
    assert_int_equal(read(from_child[0], &turn, 1), 1);
    if (i == 0) {
      DAT_LMR_TRIPLET from = local(f, 0, 5000);
      assert_ok(dat_ep_post_send(f->active.ep, 1, &from, cookie(8), DAT_COMPLETION_DEFAULT_FLAG));
      expect_dto(f->active.request, 8, DAT_DTO_SEND, DAT_DTO_SUCCESS);
      expect_dto(f->passive.recv, 9, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
      assert_true(is_filled(f->memory + HALF, 5000, 9));
    }
    one_write(f, i);
    assert_int_equal(write(to_child[1], &turn, 1), 1);
  }
  /* Memory registered while the child lives belongs to the parent alone, too. */
  assert_ok(dat_lmr_free(f->lmr));
  munmap(f->memory, MEMORY_SIZE);
  register_memory(f);
  one_write(f, 77);
  close(to_child[1]);
  expect_exit_0(child);
  close(from_child[0]);
  close(from_child[1]);
  assert_ok(dat_ep_disconnect(f->active.ep, DAT_CLOSE_GRACEFUL_FLAG));
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* Each call is refused: the child would free the parent's objects. */
static int calls_that_work(const struct fixture* f) {
  DAT_EVENT event;
  DAT_COUNT more;
  DAT_PZ_HANDLE pz;
  DAT_EP_PARAM param;
  DAT_LMR_TRIPLET segment = local(f, 0, 100);
  const DAT_RETURN statuses[] = {
      dat_evd_dequeue(f->active.recv, &event),
      dat_evd_wait(f->active.recv, 0, 1, &event, &more),
      dat_ep_post_recv(f->active.ep, 1, &segment, cookie(1), DAT_COMPLETION_DEFAULT_FLAG),
      dat_ep_query(f->active.ep, DAT_EP_FIELD_ALL, &param),
      dat_lmr_sync_rdma_read(f->ia, &segment, 1),
      dat_pz_create(f->ia, &pz),
      dat_ep_disconnect(f->active.ep, DAT_CLOSE_ABRUPT_FLAG),
      dat_ep_free(f->passive.ep),
      dat_lmr_free(f->lmr),
      dat_ia_close(f->ia, DAT_CLOSE_ABRUPT_FLAG),
  };
  int count = 0;
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; ++i)
    count += DAT_GET_TYPE(statuses[i]) != DAT_INVALID_STATE;
  return count;
}

static void fork__a_child_can_do_nothing_to_its_parents(void** state) {
  struct fixture* f = *state;
  one_write(f, 1);
  for (unsigned int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      _exit(calls_that_work(f));
    }
    expect_exit_0(child);
    one_write(f, 2 + i);
  }
  expect_nothing(f->active.connect);
  expect_nothing(f->passive.connect);
}

static void* poll_forever(void* stop) {
  struct fixture* f = ((void**)stop)[0];
  atomic_bool* ended = ((void**)stop)[1];
  DAT_EVENT event;
  while (!*ended) {
    DAT_PZ_HANDLE pz;
    dat_evd_dequeue(f->passive.request, &event);
    if (dat_pz_create(f->ia, &pz) == DAT_SUCCESS) dat_pz_free(pz);
  }
  return NULL;
}

static void fork__beside_a_thread_in_a_call(void** state) {
  struct fixture* f = *state;
  atomic_bool ended = false;
  void* both[] = {f, &ended};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, poll_forever, both), 0);
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      _exit(calls_that_work(f));
    }
    expect_exit_0(child);
  }
  ended = true;
  pthread_join(thread, NULL);
  one_write(f, 1);
}

/* None of the parent's objects works in a child, and each call returns that error. */
static void fork__a_child_opens_nothing(void** state) {
  struct fixture* f = *state;
  const pid_t child = fork();
  if (child == 0) {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    _exit(DAT_GET_TYPE(dat_ia_open((DAT_NAME_PTR)IA_NAME, 8, &async, &ia)) == DAT_INVALID_STATE ? 0 : 1);
  }
  expect_exit_0(child);
  one_write(f, 1);
}

static void* wait_forever(void* evd) {
  DAT_EVENT event;
  DAT_COUNT more;
  dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
  return NULL;
}

static void exit__without_close_is_clean(void** state) {
  (void)state;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      void* own = NULL;
      pthread_t thread;
      alarm(30);
      set_up_connected(&own);
      pthread_create(&thread, NULL, wait_forever, ((struct fixture*)own)->active.recv);
      usleep(i * 20000U);
      exit(0);
    }
    expect_exit_0(child);
  }
}

/*
 * mallinfo2() counts freed blocks as used while a thread keeps them for itself, and how many a thread keeps depends on
 * the scheduler. The C library reads this setting once.
 */
static void free_blocks_at_once(char** argv) {
  static const char setting[] = "glibc.malloc.tcache_count=0";
  const char* const present = getenv("GLIBC_TUNABLES");
  if (present && strcmp(present, setting) == 0) return;
  setenv("GLIBC_TUNABLES", setting, 1);
  execv("/proc/self/exe", argv);
}

int main(int argc, char** argv) {
  (void)argc;
  free_blocks_at_once(argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(exit__without_close_is_clean), /* before the parent knows any device */
      cmocka_unit_test(ia_open__what_is_not_there),
      ONLY_20(cmocka_unit_test(ia_open__each_minor_has_its_line), ) cmocka_unit_test(ia_open__bad_arguments),
      cmocka_unit_test(ia_open__every_way_to_name_the_device),
      cmocka_unit_test(ia_open__coherence_in_ia_params),
      cmocka_unit_test(ia_open__100_times_leaves_nothing_behind),
      cmocka_unit_test(connect__over_ipv6),
      IA_TEST(ia_query__every_ia_attribute_is_filled),
      IA_TEST(ia_query__every_provider_attribute_is_filled),
      IA_TEST(ia_query__named_attributes),
      IA_TEST(ia_query__transport_attributes),
      CONNECTED_TEST(fork__a_child_that_exits_disturbs_nothing),
      CONNECTED_TEST(fork__a_child_that_runs_a_program_disturbs_nothing),
      CONNECTED_TEST(fork__a_child_that_goes_on_disturbs_nothing),
      CONNECTED_TEST(fork__a_child_opens_nothing),
      CONNECTED_TEST(fork__a_child_can_do_nothing_to_its_parents),
      CONNECTED_TEST(fork__beside_a_thread_in_a_call),
  };
  return RUN_TESTS(tests);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Contexts, protection domains, regions and device memory that other contexts import. Runs under dapple-run.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

// False under --check, which counts mistakes.
bool makes_mistakes = true;

// A context that imports the pair's.
ibv_context* import_copy(int cmd_fd) {
  const int copy = dup(cmd_fd);
  errno = 0;
  ibv_context* context = copy < 0 ? nullptr : ibv_import_device(copy);
  return context;
}

// Two connected queue pairs of an importing context.
struct Importer {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_qp* qp[2] = {};
};
Importer importer;

bool begin_import() {
  if (!begin({})) return false;
  importer = {};
  importer.context = import_copy(pair->context->cmd_fd);
  if (importer.context == nullptr) return false;
  importer.pd = ibv_import_pd(importer.context, pair->pd->handle);
  importer.cq = ibv_create_cq(importer.context, 16, nullptr, nullptr, 0);
  if (importer.pd == nullptr || importer.cq == nullptr) return false;
  for (ibv_qp*& qp : importer.qp) {
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = importer.cq;
    attr.cap = {4, 4, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    qp = ibv_create_qp(importer.pd, &attr);
    if (qp == nullptr) return false;
  }
  return connect(importer.qp[0], importer.qp[1]->qp_num) && connect(importer.qp[1], importer.qp[0]->qp_num);
}

void end_import() {
  for (ibv_qp* qp : importer.qp) assert_int_equal(ibv_destroy_qp(qp), 0);
  assert_int_equal(ibv_destroy_cq(importer.cq), 0);
  ibv_unimport_pd(importer.pd);
  assert_int_equal(ibv_close_device(importer.context), 0);
}

// An RDMA Write between the importer's queue pairs.
ibv_wc_status write(uint64_t from, uint32_t lkey, uint64_t to, uint32_t rkey, uint32_t length) {
  ibv_sge segment = {from, length, lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = to;
  request.wr.rdma.rkey = rkey;
  ibv_wc completion = {};
  if (ibv_post_send(importer.qp[0], &request, &bad) != 0 || !wait_for(importer.cq, completion))
    return IBV_WC_GENERAL_ERR;
  return completion.status;
}

uint64_t address_of(const char* bytes) {
  return reinterpret_cast<uintptr_t>(bytes);
}

void import__shares_domains_and_keys(void**) {
  assert_true(begin_import());
  assert_string_equal(ibv_get_device_name(importer.context->device), ibv_get_device_name(pair->context->device));
  assert_int_equal(importer.context->num_comp_vectors, pair->context->num_comp_vectors);
  assert_int_equal(importer.pd->handle, pair->pd->handle);
  ibv_mr* mr = ibv_import_mr(importer.pd, pair->a.mr->handle);
  assert_non_null(mr);
  assert_null(mr->addr);
  assert_ptr_equal(mr->pd, importer.pd);
  assert_int_equal(mr->length, kBufferSize);
  assert_int_equal(mr->lkey, pair->a.mr->lkey);
  assert_int_equal(mr->rkey, pair->a.mr->rkey);
  memset(pair->a.buffer, 'i', 100);
  assert_int_equal(write(address_of(pair->a.buffer), mr->lkey, address_of(pair->b.buffer), pair->b.mr->rkey, 100),
                   IBV_WC_SUCCESS);
  assert_memory_equal(pair->a.buffer, pair->b.buffer, 100);
  // A region of the import is one of the domain, too.
  char bytes[8] = "region";
  ibv_mr* made = ibv_reg_mr(importer.pd, bytes, sizeof bytes, kPeerRights);
  assert_non_null(made);
  assert_int_not_equal(made->lkey, pair->a.mr->lkey);
  ibv_sge segment = {address_of(bytes), sizeof bytes, made->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma = {address_of(pair->b.buffer), pair->b.mr->rkey};
  assert_int_equal(ibv_post_send(pair->a.qp, &request, &bad), 0);
  expect(pair->a.cq, 0, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
  assert_memory_equal(pair->b.buffer, bytes, sizeof bytes);
  assert_int_equal(ibv_dereg_mr(made), 0);
  ibv_unimport_mr(mr);
  // Another domain of the importing context is another domain.
  ibv_pd* other = ibv_alloc_pd(importer.context);
  assert_non_null(other);
  assert_int_not_equal(other->handle, importer.pd->handle);
  assert_int_equal(ibv_dealloc_pd(other), 0);
  end_import();
  assert_int_equal(post_send(pair->a, 5, IBV_WR_RDMA_WRITE, 0, 8, &pair->b), 0);
  expect(pair->a.cq, 5, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
}

// Events of an importing context's objects come by its own descriptor.
void import__has_asynchronous_events_of_its_own(void**) {
  if (!makes_mistakes) skip();
  assert_true(begin_import());
  assert_int_not_equal(importer.context->async_fd, pair->context->async_fd);
  assert_int_equal(write(address_of(pair->a.buffer), pair->a.mr->lkey, address_of(pair->b.buffer), 0x12345, 8),
                   IBV_WC_REM_ACCESS_ERR);
  assert_true(becomes_readable(importer.context->async_fd));
  ibv_async_event event;
  assert_int_equal(ibv_get_async_event(importer.context, &event), 0);
  assert_int_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
  assert_ptr_equal(event.element.qp, importer.qp[1]);
  ibv_ack_async_event(&event);
  assert_false(readable(pair->context->async_fd, 0));
  end_import();
}

// libibverbs counts the queues of a channel under the mutex of the queue's context in ibv_create_cq(), but under that
// of the channel's in ibv_destroy_cq(). Without both, one of two threads would lose its change.
ibv_cq* create_cq(ibv_context* context, ibv_comp_channel* channel) {
  const bool is_importers = context != channel->context;
  if (is_importers) pthread_mutex_lock(&channel->context->mutex);
  ibv_cq* cq = ibv_create_cq(context, 1, nullptr, channel, 0);
  if (is_importers) pthread_mutex_unlock(&channel->context->mutex);
  return cq;
}

// A completion queue with one event that nobody reads.
bool leave_event(ibv_context* context, ibv_pd* pd, ibv_comp_channel* channel) {
  ibv_cq* cq = create_cq(context, channel);
  if (cq == nullptr) return false;
  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = cq;
  init.cap = {1, 1, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  ibv_qp* qp = ibv_create_qp(pd, &init);
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  bool good = qp != nullptr &&
              ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0;
  ibv_recv_wr receive = {}, *bad = nullptr;
  good = good && ibv_post_recv(qp, &receive, &bad) == 0 && ibv_req_notify_cq(cq, 0) == 0;
  attr.qp_state = IBV_QPS_ERR;
  good = good && ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0;
  ibv_wc completion = {};
  good = good && wait_for(cq, completion) && completion.status == IBV_WC_WR_FLUSH_ERR;
  return good && ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0;
}

struct Leaver {
  ibv_context* context;
  ibv_pd* pd;
  ibv_comp_channel* channel;
  bool good = true;
};

void* leave_events(void* argument) {
  auto& leaver = *static_cast<Leaver*>(argument);
  for (int i = 0; i < 2000 && leaver.good; i++) leaver.good = leave_event(leaver.context, leaver.pd, leaver.channel);
  return nullptr;
}

// The unread events of a completion queue leave the channel with it, also while another context's thread does the same.
// An event that is lost, or left, lets ibv_destroy_cq() wait for ever.
void import__shares_completion_channels(void**) {
  assert_true(begin_import());
  ibv_comp_channel* channel = ibv_create_comp_channel(pair->context);
  assert_non_null(channel);
  Leaver leavers[] = {{pair->context, pair->pd, channel}, {importer.context, importer.pd, channel}};
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], nullptr, leave_events, &leavers[i]), 0);
  timespec end = {};
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 60;
  for (const pthread_t thread : threads) assert_int_equal(pthread_timedjoin_np(thread, nullptr, &end), 0);
  assert_true(leavers[0].good && leavers[1].good);
  assert_false(readable(channel->fd, 0));
  assert_int_equal(ibv_destroy_comp_channel(channel), 0);
  // Another open file of the same device has no part in it.
  channel = ibv_create_comp_channel(importer.context);
  ibv_context* other = open_loopback();
  assert_true(channel != nullptr && other != nullptr);
  errno = 0;
  assert_null(ibv_create_cq(other, 1, nullptr, channel, 0));
  assert_int_equal(errno, EBADF);
  assert_int_equal(ibv_destroy_comp_channel(channel), 0);
  assert_int_equal(ibv_close_device(other), 0);
  end_import();
}

void import__of_device_memory(void**) {
  assert_true(begin_import());
  ibv_alloc_dm_attr attr = {};
  attr.length = 64;
  ibv_dm* dm = ibv_alloc_dm(pair->context, &attr);
  assert_non_null(dm);
  char bytes[16] = "device's memory";
  assert_int_equal(ibv_memcpy_to_dm(dm, 0, bytes, sizeof bytes), 0);
  ibv_dm* import = ibv_import_dm(importer.context, dm->handle);
  assert_non_null(import);
  char copy[16] = {};
  assert_int_equal(ibv_memcpy_from_dm(copy, import, 0, sizeof copy), 0);
  assert_memory_equal(copy, bytes, sizeof copy);
  ibv_mr* mr = ibv_reg_dm_mr(importer.pd, import, 0, 64, kPeerRights | IBV_ACCESS_ZERO_BASED);
  assert_non_null(mr);
  assert_int_equal(write(0, mr->lkey, address_of(pair->b.buffer), pair->b.mr->rkey, sizeof bytes), IBV_WC_SUCCESS);
  assert_memory_equal(pair->b.buffer, bytes, sizeof bytes);
  assert_int_equal(ibv_free_dm(dm), EBUSY);
  assert_int_equal(ibv_dereg_mr(mr), 0);
  // The memory ends, and the import's copies do no harm.
  assert_int_equal(ibv_free_dm(dm), 0);
  assert_int_equal(ibv_memcpy_from_dm(copy, import, 0, sizeof copy), 0);
  errno = 0;
  assert_null(ibv_reg_dm_mr(importer.pd, import, 0, 64, kPeerRights | IBV_ACCESS_ZERO_BASED));
  assert_int_equal(errno, EINVAL);
  ibv_unimport_dm(import);
  end_import();
}

// Of an import of a domain that has ended.
void makes_nothing(ibv_pd* pd) {
  static char bytes[64];
  ibv_srq_init_attr srq = {nullptr, {1, 1, 0}};
  ibv_ah_attr address = {};
  address.is_global = 1;
  address.port_num = 1;
  address.grh.sgid_index = index_of_loopback(pd->context);
  assert_int_equal(ibv_query_gid(pd->context, 1, address.grh.sgid_index, &address.grh.dgid), 0);
  ibv_parent_domain_init_attr parent = {};
  parent.pd = pd;
  ibv_qp_init_attr qp = {};
  qp.qp_type = IBV_QPT_RC;
  qp.send_cq = qp.recv_cq = importer.cq;
  qp.cap = {1, 1, 1, 1, 0};
  const auto is_refused = [](const void* made) { return made == nullptr && errno == EINVAL; };
  errno = 0;
  assert_true(is_refused(ibv_reg_mr(pd, bytes, sizeof bytes, kPeerRights)));
  errno = 0;
  assert_true(is_refused(ibv_alloc_mw(pd, IBV_MW_TYPE_2)));
  errno = 0;
  assert_true(is_refused(ibv_create_srq(pd, &srq)));
  errno = 0;
  assert_true(is_refused(ibv_create_ah(pd, &address)));
  errno = 0;
  assert_true(is_refused(ibv_alloc_parent_domain(pd->context, &parent)));
  errno = 0;
  assert_true(is_refused(ibv_create_qp(pd, &qp)));
}

// The first dealloc ends the object, for all its structures.
void import__ends_with_the_object(void**) {
  assert_true(begin_import());
  static char bytes[64];
  ibv_pd* pd = ibv_alloc_pd(pair->context);
  ibv_mr* mr = ibv_reg_mr(pd, bytes, sizeof bytes, kPeerRights);
  assert_non_null(mr);
  ibv_pd* imported_pd = ibv_import_pd(importer.context, pd->handle);
  ibv_mr* imported_mr = ibv_import_mr(imported_pd, mr->handle);
  assert_non_null(imported_mr);
  assert_int_equal(ibv_dealloc_pd(imported_pd), EBUSY);
  assert_int_equal(ibv_dereg_mr(imported_mr), 0);
  assert_null(ibv_import_mr(imported_pd, mr->handle));
  assert_int_equal(errno, ENOENT);
  assert_int_equal(ibv_dereg_mr(mr), ENOENT);
  assert_int_equal(ibv_dealloc_pd(imported_pd), 0);
  assert_int_equal(ibv_dealloc_pd(pd), ENOENT);
  // The other way around.
  pd = ibv_alloc_pd(pair->context);
  imported_pd = ibv_import_pd(importer.context, pd->handle);
  mr = ibv_reg_mr(pd, bytes, sizeof bytes, kPeerRights);
  imported_mr = ibv_import_mr(imported_pd, mr->handle);
  assert_non_null(imported_mr);
  assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
  assert_int_equal(ibv_dereg_mr(mr), 0);
  assert_int_equal(ibv_dereg_mr(imported_mr), ENOENT);
  assert_int_equal(ibv_dealloc_pd(pd), 0);
  assert_int_equal(ibv_dealloc_pd(imported_pd), ENOENT);
  makes_nothing(imported_pd);
  ibv_unimport_mr(imported_mr);
  ibv_unimport_pd(imported_pd);
  // The context that made an object closes first.
  ibv_context* maker = import_copy(pair->context->cmd_fd);
  assert_non_null(maker);
  pd = ibv_alloc_pd(maker);
  imported_pd = ibv_import_pd(importer.context, pd->handle);
  assert_non_null(imported_pd);
  assert_int_equal(ibv_close_device(maker), 0);
  mr = ibv_reg_mr(imported_pd, bytes, sizeof bytes, kPeerRights);
  assert_non_null(mr);
  assert_int_equal(ibv_dereg_mr(mr), 0);
  assert_int_equal(ibv_dealloc_pd(imported_pd), 0);
  end_import();
}

void import__bad_input_is_refused(void**) {
  assert_true(begin({}));
  errno = 0;
  assert_null(ibv_import_device(-1));
  assert_int_equal(errno, EINVAL);
  const int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
  assert_null(ibv_import_device(other));
  assert_true(errno == ENODEV || errno == EINVAL);
  close(other);
  ibv_context* context = import_copy(pair->context->cmd_fd);
  assert_non_null(context);
  for (const uint32_t wrong : {0u, pair->pd->handle + 100, UINT32_MAX}) {
    errno = 0;
    assert_null(ibv_import_pd(context, wrong));
    assert_int_equal(errno, ENOENT);
    errno = 0;
    assert_null(ibv_import_mr(pair->pd, wrong));
    assert_int_equal(errno, ENOENT);
    errno = 0;
    assert_null(ibv_import_dm(context, wrong));
    assert_int_equal(errno, ENOENT);
  }
  assert_int_equal(ibv_close_device(context), 0);
  // Another open file of the same device.
  context = open_loopback();
  assert_non_null(context);
  assert_null(ibv_import_pd(context, pair->pd->handle));
  assert_int_equal(errno, ENOENT);
  // All contexts of an open file are closed; a copy of the descriptor is left.
  const int copy = dup(context->cmd_fd);
  ibv_pd* pd = ibv_alloc_pd(context);
  assert_non_null(pd);
  const uint32_t handle = pd->handle;
  assert_int_equal(ibv_dealloc_pd(pd), 0);
  assert_int_equal(ibv_close_device(context), 0);
  context = ibv_import_device(copy);
  assert_non_null(context);
  assert_null(ibv_import_pd(context, handle));
  assert_int_equal(errno, ENOENT);
  assert_int_equal(ibv_close_device(context), 0);
}

struct Sent {
  int fd;
  uint32_t pd;
};

union Control {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
};

bool send_device(int socket, int fd, uint32_t handle) {
  iovec part = {&handle, sizeof handle};
  Control control = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return sendmsg(socket, &message, 0) == sizeof handle;
}

Sent receive_device(int socket) {
  Sent sent = {-1, 0};
  iovec part = {&sent.pd, sizeof sent.pd};
  Control control = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = sizeof control;
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof sent.pd) return sent;
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr)
    memcpy(&sent.fd, CMSG_DATA(header), sizeof sent.fd);
  return sent;
}

// The device of another process can be imported, and its objects cannot.
void import__from_another_process(void**) {
  int sockets[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    ibv_context* context = open_loopback();
    ibv_pd* pd = context == nullptr ? nullptr : ibv_alloc_pd(context);
    if (pd == nullptr || !send_device(sockets[1], context->cmd_fd, pd->handle)) _exit(1);
    pause();
    _exit(0);
  }
  const Sent sent = receive_device(sockets[0]);
  assert_true(sent.fd >= 0);
  for (const bool is_dead : {false, true}) {
    if (is_dead) {
      assert_int_equal(kill(child, SIGKILL), 0);
      assert_int_equal(waitpid(child, nullptr, 0), child);
    }
    ibv_context* context = import_copy(sent.fd);
    assert_non_null(context);
    assert_null(ibv_import_pd(context, sent.pd));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_null(ibv_import_dm(context, 1));
    assert_int_equal(errno, EOPNOTSUPP);
    ibv_pd* own = ibv_alloc_pd(context);
    assert_non_null(own);
    assert_null(ibv_import_mr(own, 1));
    assert_int_equal(errno, EOPNOTSUPP);
    ibv_pd* import = ibv_import_pd(context, own->handle);
    assert_non_null(import);
    ibv_unimport_pd(import);
    assert_int_equal(ibv_dealloc_pd(own), 0);
    assert_int_equal(ibv_close_device(context), 0);
  }
  close(sent.fd);
  close(sockets[0]);
  close(sockets[1]);
}

}  // namespace

int main(int argc, char**) {
  makes_mistakes = argc == 1;
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(import__shares_domains_and_keys, finish),
      cmocka_unit_test_teardown(import__has_asynchronous_events_of_its_own, finish),
      cmocka_unit_test_teardown(import__shares_completion_channels, finish),
      cmocka_unit_test_teardown(import__of_device_memory, finish),
      cmocka_unit_test_teardown(import__ends_with_the_object, finish),
      cmocka_unit_test_teardown(import__bad_input_is_refused, finish),
      cmocka_unit_test(import__from_another_process),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

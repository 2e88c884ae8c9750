/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* Sends requests of all kinds over RDMA netlink. Each gets the answer of a kernel that had the software device's
   module, or its refusal: the reply, the error or the list, an acknowledgement if it asked for one, and nothing more.
   Runs under dapple-run. */
#include <linux/capability.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/native/doors/check.h"

enum { FIRST_DEVICE = 0x7FFF0000, NEVER = 0x7FFF0999 };

/* The attributes that a request has. */
enum {
  OURS = 1,
  MISSING = 2,
  FOREIGN = 4,
  PORT = 8,
  WRONG_PORT = 16,
  UVERBS = 32,
  RDMA_CM = 64,
  UMAD = 128,
  LQPN = 256
};

enum outcome {
  REPLY,   /* one message, and an acknowledgement if asked for */
  REFUSED, /* an error, whether an acknowledgement is asked for or not */
  ADMIN,   /* EPERM without CAP_NET_ADMIN, and EOPNOTSUPP with it */
  LIST,    /* messages and the end of the list */
  EMPTY,   /* the end of the list: this program has no resources, and it runs alone */
  BAD_LIST /* the end of the list, with an error */
};

static const struct row {
  unsigned client, operation, flags, attributes;
  enum outcome outcome;
  int error;      /* REFUSED, BAD_LIST */
  unsigned reply; /* the operation in the reply's type */
  int kernels;    /* a kernel with RDMA answers itself */
} rows[] = {
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET, NLM_F_DUMP, 0, LIST, 0, RDMA_NLDEV_CMD_GET, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET, NLM_F_ROOT, 0, LIST, 0, RDMA_NLDEV_CMD_GET, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET, NLM_F_DUMP, OURS, LIST, 0, RDMA_NLDEV_CMD_GET, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET, 0, OURS, REPLY, 0, RDMA_NLDEV_CMD_GET, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET, 0, MISSING, REFUSED, EINVAL, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET, 0, FOREIGN, REFUSED, EINVAL, 0, 1},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET, 0, 0, REFUSED, EINVAL, 0, 1},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_PORT_GET, 0, OURS | PORT, REPLY, 0, RDMA_NLDEV_CMD_GET, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_PORT_GET, 0, OURS | WRONG_PORT, REFUSED, EINVAL, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_PORT_GET, 0, OURS, REFUSED, EINVAL, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_PORT_GET, NLM_F_DUMP, OURS, LIST, 0, RDMA_NLDEV_CMD_PORT_GET, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_PORT_GET, NLM_F_DUMP, MISSING, BAD_LIST, EINVAL, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_PORT_GET, NLM_F_DUMP, 0, BAD_LIST, EINVAL, 0, 1},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET, 0, 0, REPLY, 0, RDMA_NLDEV_CMD_SYS_GET, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET, NLM_F_DUMP, 0, REFUSED, EINVAL, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET_CHARDEV, 0, OURS | UVERBS, REPLY, 0, RDMA_NLDEV_CMD_GET_CHARDEV, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET_CHARDEV, 0, OURS | PORT | UMAD, REFUSED, EOPNOTSUPP, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET_CHARDEV, 0, OURS, REFUSED, EINVAL, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET_CHARDEV, 0, MISSING | UVERBS, REFUSED, EINVAL, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET_CHARDEV, 0, RDMA_CM, REPLY, 0, RDMA_NLDEV_CMD_GET_CHARDEV, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET_CHARDEV, 0, PORT | RDMA_CM, REFUSED, EINVAL, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET_CHARDEV, NLM_F_DUMP, OURS | UVERBS, REFUSED, EINVAL, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SET, 0, OURS, ADMIN, 0, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_NEWLINK, 0, 0, ADMIN, 0, 0, 1},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_DELLINK, 0, OURS, ADMIN, 0, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_SET, 0, 0, ADMIN, 0, 0, 1},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_STAT_SET, 0, OURS | PORT, ADMIN, 0, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_STAT_DEL, 0, OURS | PORT, ADMIN, 0, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_QP_GET_RAW, NLM_F_DUMP, OURS, ADMIN, 0, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_CQ_GET_RAW, 0, OURS, ADMIN, 0, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_MR_GET_RAW, 0, OURS, ADMIN, 0, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_GET, 0, OURS, REPLY, 0, RDMA_NLDEV_CMD_RES_GET, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_GET, NLM_F_DUMP, 0, LIST, 0, RDMA_NLDEV_CMD_RES_GET, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_QP_GET, NLM_F_DUMP, OURS, EMPTY, 0, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_QP_GET, NLM_F_DUMP, MISSING, BAD_LIST, EINVAL, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_QP_GET, NLM_F_DUMP, OURS | PORT, EMPTY, 0, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_QP_GET, NLM_F_DUMP, OURS | WRONG_PORT, BAD_LIST, EINVAL, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_QP_GET, 0, OURS | PORT, REFUSED, EINVAL, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_QP_GET, 0, OURS | PORT | LQPN, REFUSED, ENOENT, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_QP_GET, 0, OURS | LQPN, REFUSED, EINVAL, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_CM_ID_GET, NLM_F_DUMP, OURS, EMPTY, 0, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_CQ_GET, NLM_F_DUMP, OURS, EMPTY, 0, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_MR_GET, NLM_F_DUMP, OURS, EMPTY, 0, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_PD_GET, NLM_F_DUMP, OURS, EMPTY, 0, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_PD_GET, NLM_F_DUMP, FOREIGN, BAD_LIST, EINVAL, 0, 1},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_CTX_GET, NLM_F_DUMP, OURS, EMPTY, 0, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_SRQ_GET, NLM_F_DUMP, OURS, EMPTY, 0, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_STAT_GET, 0, OURS | PORT, REPLY, 0, RDMA_NLDEV_CMD_STAT_GET, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_STAT_GET, 0, OURS, REFUSED, EINVAL, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_STAT_GET, NLM_F_DUMP, OURS, BAD_LIST, EINVAL, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_STAT_GET, NLM_F_DUMP, 0, BAD_LIST, EINVAL, 0, 1},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_STAT_GET_STATUS, 0, OURS | PORT, REPLY, 0, RDMA_NLDEV_CMD_STAT_GET_STATUS, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_STAT_GET_STATUS, 0, OURS, REFUSED, EINVAL, 0, 0},
    {RDMA_NL_NLDEV, RDMA_NLDEV_CMD_UNSPEC, 0, 0, REFUSED, EINVAL, 0, 0},
    {RDMA_NL_NLDEV, 8, 0, OURS, REFUSED, EINVAL, 0, 0},
    {RDMA_NL_NLDEV, 200, NLM_F_DUMP, OURS, REFUSED, EINVAL, 0, 1},
    {RDMA_NL_LS, RDMA_NL_LS_OP_RESOLVE, 0, 0, REFUSED, EINVAL, 0, 1},
    {RDMA_NL_LS, RDMA_NL_LS_OP_SET_TIMEOUT, 0, 0, REFUSED, EINVAL, 0, 1},
    {RDMA_NL_IWCM, RDMA_NL_IWPM_REG_PID, 0, 0, REFUSED, EINVAL, 0, 1},
    {1, 0, NLM_F_DUMP, 0, REFUSED, EINVAL, 0, 1},
    {6, 0, 0, 0, REFUSED, EINVAL, 0, 1},
    {63, 0, 0, 0, REFUSED, EINVAL, 0, 1},
};

static int netlink;
static uint32_t sequence;

struct request {
  struct nlmsghdr header;
  unsigned char attributes[64];
};

static void put(struct request* request, unsigned type, const void* value, size_t size) {
  const struct nlattr attribute = {.nla_len = NLA_HDRLEN + size, .nla_type = type};
  unsigned char* to = request->attributes + NLMSG_ALIGN(request->header.nlmsg_len) - NLMSG_HDRLEN;
  memcpy(to, &attribute, sizeof attribute);
  memcpy(to + NLA_HDRLEN, value, size);
  request->header.nlmsg_len = NLMSG_ALIGN(request->header.nlmsg_len) + NLA_ALIGN(attribute.nla_len);
}

static struct request make(unsigned client, unsigned operation, unsigned flags, unsigned attributes) {
  const uint32_t ours = FIRST_DEVICE, missing = NEVER, foreign = 77, one = 1, two = 2;
  struct request request = {0};
  request.header.nlmsg_len = NLMSG_HDRLEN;
  request.header.nlmsg_type = RDMA_NL_GET_TYPE(client, operation);
  request.header.nlmsg_flags = NLM_F_REQUEST | flags;
  request.header.nlmsg_seq = ++sequence;
  if (attributes & OURS) put(&request, RDMA_NLDEV_ATTR_DEV_INDEX, &ours, 4);
  if (attributes & MISSING) put(&request, RDMA_NLDEV_ATTR_DEV_INDEX, &missing, 4);
  if (attributes & FOREIGN) put(&request, RDMA_NLDEV_ATTR_DEV_INDEX, &foreign, 4);
  if (attributes & PORT) put(&request, RDMA_NLDEV_ATTR_PORT_INDEX, &one, 4);
  if (attributes & WRONG_PORT) put(&request, RDMA_NLDEV_ATTR_PORT_INDEX, &two, 4);
  if (attributes & UVERBS) put(&request, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "uverbs", 7);
  if (attributes & RDMA_CM) put(&request, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "rdma_cm", 8);
  if (attributes & LQPN) put(&request, RDMA_NLDEV_ATTR_RES_LQPN, &missing, 4);
  if (attributes & UMAD) put(&request, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "umad", 5);
  return request;
}

/* The answers that have come, one after the other. */
static unsigned char bytes[65536];
static size_t have, at;

/* The next message, or NULL if none comes within the socket's time-out. */
static struct nlmsghdr* next(void) {
  if (at == have) {
    const ssize_t size = recv(netlink, bytes, sizeof bytes, 0);
    if (size <= 0) return NULL;
    have = size;
    at = 0;
  }
  struct nlmsghdr* message = (struct nlmsghdr*)(bytes + at);
  if (have - at < sizeof *message || message->nlmsg_len < sizeof *message || message->nlmsg_len > have - at)
    return NULL;
  at += NLMSG_ALIGN(message->nlmsg_len) < have - at ? NLMSG_ALIGN(message->nlmsg_len) : have - at;
  return message;
}

static int is_silent(void) {
  char byte;
  return at == have && recv(netlink, &byte, 1, MSG_DONTWAIT) < 0;
}

static const struct nlmsgerr* error_of(const struct nlmsghdr* message) {
  return message != NULL && message->nlmsg_type == NLMSG_ERROR ? (const struct nlmsgerr*)(message + 1) : NULL;
}

static int is_acknowledged(const struct request* request) {
  const struct nlmsghdr* message = next();
  const struct nlmsgerr* error = error_of(message);
  return error != NULL && error->error == 0 && message->nlmsg_seq == request->header.nlmsg_seq &&
         message->nlmsg_flags == NLM_F_CAPPED && error->msg.nlmsg_seq == request->header.nlmsg_seq;
}

static int is_refused(const struct request* request, int with) {
  const struct nlmsghdr* message = next();
  const struct nlmsgerr* error = error_of(message);
  if (error == NULL || error->error != -with || message->nlmsg_seq != request->header.nlmsg_seq) return 0;
  const size_t whole = sizeof *message + sizeof error->error + request->header.nlmsg_len;
  return message->nlmsg_flags == 0 && message->nlmsg_len == whole &&
         memcmp(&error->msg, request, request->header.nlmsg_len) == 0;
}

static int is_listed(const struct request* request, unsigned reply, int with, int empty) {
  int listed = 0;
  const struct nlmsghdr* message = next();
  for (; message != NULL && message->nlmsg_type == RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, reply); message = next()) {
    if ((message->nlmsg_flags & NLM_F_MULTI) == 0) return 0;
    listed++;
  }
  if (message == NULL || message->nlmsg_type != NLMSG_DONE || message->nlmsg_seq != request->header.nlmsg_seq) return 0;
  int code;
  memcpy(&code, message + 1, sizeof code);
  return code == -with && (listed > 0) == (with == 0 && !empty);
}

static int may_administer(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2] = {{0}};
  return syscall(SYS_capget, &header, data) == 0 && (data[0].effective & 1U << CAP_NET_ADMIN) != 0;
}

static int is_right(const struct row* row, const struct request* request, int acknowledge) {
  const struct nlmsghdr* message;
  switch (row->outcome) {
    case REPLY:
      message = next();
      return message != NULL && message->nlmsg_type == RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, row->reply) &&
             message->nlmsg_flags == 0 && message->nlmsg_seq == request->header.nlmsg_seq &&
             (!acknowledge || is_acknowledged(request));
    case REFUSED:
      return is_refused(request, row->error);
    case ADMIN:
      return is_refused(request, may_administer() ? EOPNOTSUPP : EPERM);
    case LIST:
      return is_listed(request, row->reply, 0, 0);
    case EMPTY:
      return is_listed(request, 0xFFFF, 0, 1);
    default:
      return is_listed(request, 0xFFFF, row->error, 0);
  }
}

static void check_rows(int kernel) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const struct row* row = &rows[i];
    if (kernel && row->kernels) continue;
    for (int acknowledge = 0; acknowledge < 2; acknowledge++) {
      const struct request request =
          make(row->client, row->operation, row->flags | (acknowledge ? NLM_F_ACK : 0), row->attributes);
      const int sent = send(netlink, &request, request.header.nlmsg_len, 0) == request.header.nlmsg_len;
      if (sent && is_right(row, &request, acknowledge) && is_silent()) continue;
      printf("FAILED row %zu: client %u, operation %u, flags %#x, attributes %#x, acknowledge %d\n", i, row->client,
             row->operation, row->flags, row->attributes, acknowledge);
      failures++;
      while (next() != NULL) continue;
      at = have = 0;
    }
  }
}

static int joined(unsigned char* to, int count, const struct request* requests) {
  int size = 0;
  for (int i = 0; i < count; i++) {
    memcpy(to + size, &requests[i], requests[i].header.nlmsg_len);
    size += NLMSG_ALIGN(requests[i].header.nlmsg_len);
  }
  return size;
}

/* Several requests in one message, and the ways of sending them. */
static void check_batches(void) {
  unsigned char together[512];
  for (int way = 0; way < 3; way++) {
    const struct request requests[] = {make(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET, NLM_F_ACK, OURS),
                                       make(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_GET, 0, OURS),
                                       make(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_PORT_GET, NLM_F_DUMP, OURS),
                                       make(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_PORT_GET, 0, OURS | PORT)};
    const struct row reply = {.outcome = REPLY, .reply = RDMA_NLDEV_CMD_GET};
    const struct row counts = {.outcome = REPLY, .reply = RDMA_NLDEV_CMD_RES_GET};
    const int size = joined(together, 4, requests);
    struct iovec pieces[] = {{together, 30}, {together + 30, size - 30}};
    const struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
    CHECK((way == 0   ? write(netlink, together, size)
           : way == 1 ? sendmsg(netlink, &message, 0)
                      : sendto(netlink, together, size, 0, NULL, 0)) == size);
    CHECK(is_right(&reply, &requests[0], 1));
    CHECK(is_right(&counts, &requests[1], 0));
    CHECK(is_listed(&requests[2], RDMA_NLDEV_CMD_PORT_GET, 0, 0));
    CHECK(is_right(&reply, &requests[3], 0));
    CHECK(is_silent());
  }
}

static void check_odd_messages(void) {
  struct request request = make(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET, NLM_F_ACK, OURS);
  const struct row reply = {.outcome = REPLY, .reply = RDMA_NLDEV_CMD_GET};
  /* Cut off, or shorter than a header: no answer. */
  for (int size = 1; size < (int)request.header.nlmsg_len; size++) CHECK(send(netlink, &request, size, 0) == size);
  const uint32_t length = request.header.nlmsg_len;
  for (uint32_t wrong = 0; wrong < NLMSG_HDRLEN; wrong++) {
    request.header.nlmsg_len = wrong;
    CHECK(send(netlink, &request, length, 0) == (ssize_t)length);
  }
  request.header.nlmsg_len = 0xFFFFFFFF;
  CHECK(send(netlink, &request, length, 0) == (ssize_t)length);
  CHECK(is_silent());
  /* Its last bytes are too few for an attribute or for the alignment. */
  request.header.nlmsg_len = length + 1;
  CHECK(send(netlink, &request, length + 1, 0) == (ssize_t)length + 1);
  CHECK(is_right(&reply, &request, 1) && is_silent());
  /* No request, or a control message: an acknowledgement at most. */
  request.header.nlmsg_len = length;
  for (int acknowledge = 0; acknowledge < 2; acknowledge++) {
    request.header.nlmsg_flags = acknowledge ? NLM_F_ACK : 0;
    CHECK(send(netlink, &request, length, 0) == (ssize_t)length);
    CHECK(!acknowledge || is_acknowledged(&request));
    struct request control = request;
    control.header.nlmsg_flags |= NLM_F_REQUEST;
    control.header.nlmsg_type = NLMSG_NOOP;
    CHECK(send(netlink, &control, length, 0) == (ssize_t)length);
    CHECK(!acknowledge || is_acknowledged(&control));
    CHECK(is_silent());
  }
  /* Attributes with wrong lengths are as none. */
  for (int wrong = 0; wrong < 8; wrong++) {
    request = make(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_PORT_GET, 0, OURS | PORT);
    /* The second attribute's length. */
    request.attributes[8] = wrong;
    CHECK(send(netlink, &request, request.header.nlmsg_len, 0) == (ssize_t)request.header.nlmsg_len);
    CHECK(is_refused(&request, EINVAL) && is_silent());
  }
  /* A program may want only the header of a refused request, as of one that is longer than an answer. */
  const int on = 1;
  CHECK(setsockopt(netlink, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on) == 0);
  request = make(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_STAT_GET_STATUS, 0, OURS);
  CHECK(send(netlink, &request, request.header.nlmsg_len, 0) == (ssize_t)request.header.nlmsg_len);
  const struct nlmsghdr* message = next();
  CHECK(error_of(message) != NULL && error_of(message)->error == -EINVAL);
  CHECK(message != NULL && message->nlmsg_flags == NLM_F_CAPPED && message->nlmsg_len == 36 && is_silent());
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  const long kernel = syscall(SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
  if (kernel >= 0) printf("this kernel has RDMA and answers some requests itself\n");
  netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
  const struct timeval patience = {.tv_sec = 5};
  CHECK(setsockopt(netlink, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
  check_rows(kernel >= 0);
  check_batches();
  check_odd_messages();
  printf("%d failed\n", failures);
  return failures == 0 ? 0 : 1;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// lent NAME: gives memory back or changes it while a request uses it, or sends the result of a Read too early, for
// dapple-run --check.
// "correct" makes no mistake.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/pair.hpp"

using namespace dapple::tests;

namespace {

constexpr uint32_t kSize = 2 * 4096;

// Memory that is registered for end a's requests.
struct Memory {
  char* bytes = nullptr;
  ibv_mr* mr = nullptr;
};

bool add(Pair& pair, Memory& memory, void* bytes) {
  memory.bytes = static_cast<char*>(bytes);
  memset(bytes, 1, kSize);
  memory.mr = ibv_reg_mr(pair.pd, bytes, kSize, int{IBV_ACCESS_LOCAL_WRITE});
  return memory.mr != nullptr;
}

bool add_mapped(Pair& pair, Memory& memory) {
  void* bytes = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return bytes != MAP_FAILED && add(pair, memory, bytes);
}

bool post(Pair& pair, const Memory& memory, ibv_wr_opcode opcode, unsigned flags = IBV_SEND_SIGNALED, uint64_t id = 0) {
  ibv_sge segment = {reinterpret_cast<uintptr_t>(memory.bytes), kSize, memory.mr->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.wr_id = id;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = opcode;
  request.send_flags = flags;
  request.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(pair.b.buffer);
  request.wr.rdma.rkey = pair.b.mr->rkey;
  return ibv_post_send(pair.a.qp, &request, &bad) == 0;
}

bool post_receive(Pair& pair, const Memory& memory) {
  ibv_sge segment = {reinterpret_cast<uintptr_t>(memory.bytes), kSize, memory.mr->lkey};
  ibv_recv_wr request = {}, *bad = nullptr;
  request.sg_list = &segment;
  request.num_sge = 1;
  return ibv_post_recv(pair.a.qp, &request, &bad) == 0;
}

bool ends(ibv_cq* cq, ibv_wc_status status = IBV_WC_SUCCESS) {
  ibv_wc completion;
  return wait_for(cq, completion) && completion.status == status;
}

// The device takes the bytes during the post, or on a busy machine after the program has given them back.
bool ends_either_way(ibv_cq* cq) {
  ibv_wc completion;
  return wait_for(cq, completion) && (completion.status == IBV_WC_SUCCESS || completion.status == IBV_WC_LOC_PROT_ERR);
}

// Gives the memory back between the post and the poll.
bool give_back(Pair& pair, const char* name) {
  const bool is_block = strcmp(name, "freed") == 0 || strcmp(name, "deregistered") == 0;
  Memory memory;
  if (is_block ? !add(pair, memory, malloc(kSize)) : !add_mapped(pair, memory)) return false;
  void* elsewhere = mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (elsewhere == MAP_FAILED || !post(pair, memory, IBV_WR_RDMA_WRITE)) return false;
  void* const mapped = memory.bytes;
  bool good = true;
  if (strcmp(name, "freed") == 0) free(memory.bytes);
  if (strcmp(name, "unmapped") == 0) good = munmap(mapped, kSize) == 0;
  if (strcmp(name, "moved") == 0)
    good = mremap(mapped, kSize, kSize, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere) == elsewhere;
  if (strcmp(name, "dropped") == 0) good = madvise(mapped, kSize, MADV_DONTNEED) == 0;
  if (strcmp(name, "replaced") == 0)
    good = mmap(mapped, kSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == mapped;
  // Nobody looks at the memory any more.
  if (strcmp(name, "deregistered-unmapped") == 0)
    return ibv_dereg_mr(memory.mr) == 0 && munmap(mapped, kSize) == 0 && ends_either_way(pair.a.cq);
  if (strcmp(name, "deregistered") == 0) return ibv_dereg_mr(memory.mr) == 0 && ends_either_way(pair.a.cq);
  return good && ends_either_way(pair.a.cq) && ibv_dereg_mr(memory.mr) == 0;
}

// The bytes of a Read are not inline, whatever its flags are.
bool free_inline_read(Pair& pair) {
  Memory memory;
  if (!add(pair, memory, malloc(64 * 1024))) return false;
  if (!post(pair, memory, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED | IBV_SEND_INLINE)) return false;
  free(memory.bytes);
  return ends_either_way(pair.a.cq) && ibv_dereg_mr(memory.mr) == 0;
}

// The region gets other memory between the post and the poll.
bool reregister(Pair& pair) {
  Memory memory;
  if (!add(pair, memory, malloc(kSize)) || !post(pair, memory, IBV_WR_RDMA_WRITE)) return false;
  char* const other = static_cast<char*>(malloc(kSize));
  const bool good = other != nullptr &&
                    ibv_rereg_mr(memory.mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, other, kSize, 0) == 0 &&
                    ends_either_way(pair.a.cq) && ibv_dereg_mr(memory.mr) == 0;
  free(memory.bytes);
  free(other);
  return good;
}

// `is_full`: the device refuses a further receive meanwhile.
bool free_receive(Pair& pair, bool is_full) {
  Memory memory;
  if (!add(pair, memory, malloc(kSize)) || !post_receive(pair, memory)) return false;
  for (uint32_t i = 0; i < kDepth - 1 && is_full; i++) {
    if (post_receive(pair.a, 1, 0, 64) != 0) return false;
  }
  if (is_full && post_receive(pair.a, 1, 0, 64) != ENOMEM) return false;
  free(memory.bytes);
  return to_error(pair.a.qp) && ends(pair.a.cq, IBV_WC_WR_FLUSH_ERR) && ibv_dereg_mr(memory.mr) == 0;
}

bool free_twice() {
  void* volatile block = malloc(kSize);
  free(block);
  free(block);
  return true;
}

// A message may come before the queue pair ends.
bool deregister_receive(Pair& pair) {
  Memory memory;
  if (!add(pair, memory, malloc(kSize)) || !post_receive(pair, memory) || ibv_dereg_mr(memory.mr) != 0) return false;
  const bool good = to_error(pair.a.qp) && ends(pair.a.cq, IBV_WC_WR_FLUSH_ERR);
  free(memory.bytes);
  return good;
}

// The blocks of a receive in a shared queue. A queue pair of the queue may get a message, or no longer.
bool free_shared_receive(Pair& pair, bool is_in_use) {
  Memory memory;
  if (!add(pair, memory, malloc(kSize))) return false;
  ibv_sge segment = {reinterpret_cast<uintptr_t>(memory.bytes), kSize, memory.mr->lkey};
  ibv_recv_wr request = {}, *bad = nullptr;
  request.sg_list = &segment;
  request.num_sge = 1;
  if (ibv_post_srq_recv(pair.srq, &request, &bad) != 0 || (!is_in_use && !to_error(pair.b.qp))) return false;
  free(memory.bytes);
  return to_error(pair.b.qp) && ibv_dereg_mr(memory.mr) == 0;
}

// The block of a tag in a list. The program removes the tag before, or a message takes it.
bool free_tag(Pair& pair, bool is_removed, bool is_taken) {
  ibv_cq_init_attr_ex of_cq = {};
  of_cq.cqe = 10;
  of_cq.wc_flags = uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_TM_INFO;
  ibv_cq_ex* const extended = ibv_create_cq_ex(pair.context, &of_cq);
  if (extended == nullptr) return false;
  ibv_cq* const cq = ibv_cq_ex_to_cq(extended);
  ibv_srq_init_attr_ex of_srq = {};
  of_srq.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
  of_srq.srq_type = IBV_SRQT_TM;
  of_srq.attr = {4, 1, 0};
  of_srq.pd = pair.pd;
  of_srq.cq = cq;
  of_srq.tm_cap = {4, 8};
  ibv_qp_init_attr of_qp = {};
  of_qp.qp_type = IBV_QPT_RC;
  of_qp.send_cq = of_qp.recv_cq = cq;
  of_qp.srq = ibv_create_srq_ex(pair.context, &of_srq);
  ibv_qp* const qp = of_qp.srq == nullptr ? nullptr : ibv_create_qp(pair.pd, &of_qp);
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RESET;
  if (qp == nullptr || ibv_modify_qp(pair.a.qp, &attr, IBV_QP_STATE) != 0) return false;
  if (!connect(pair.a.qp, qp->qp_num) || !connect(qp, pair.a.qp->qp_num)) return false;
  Memory memory;
  if (!add(pair, memory, malloc(kSize))) return false;
  ibv_sge segment = {reinterpret_cast<uintptr_t>(memory.bytes), kSize, memory.mr->lkey};
  ibv_ops_wr wr = {}, *bad = nullptr;
  wr.opcode = IBV_WR_TAG_ADD;
  wr.tm.add.sg_list = &segment;
  wr.tm.add.num_sge = 1;
  if (ibv_post_srq_ops(of_qp.srq, &wr, &bad) != 0) return false;
  if (is_removed) {
    wr.opcode = IBV_WR_TAG_DEL;
    if (ibv_post_srq_ops(of_qp.srq, &wr, &bad) != 0) return false;
  }
  if (is_taken) {
    constexpr char kEager = 3;
    memset(pair.a.buffer, 0, 16);
    pair.a.buffer[0] = kEager;
    if (post_send(pair.a, 1, IBV_WR_SEND, 0, 100) != 0 || !ends(pair.a.cq) || !ends(cq)) return false;
  }
  free(memory.bytes);
  return ibv_destroy_qp(qp) == 0 && ibv_destroy_srq(of_qp.srq) == 0 && ibv_destroy_cq(cq) == 0 &&
         ibv_dereg_mr(memory.mr) == 0;
}

// The block moves, or loses its end, or stays with all bytes of the request.
bool reallocate(Pair& pair, size_t size) {
  Memory memory;
  if (!add(pair, memory, malloc(2 * kSize))) return false;
  void* behind = malloc(64);  // so that the block cannot grow where it is
  if (behind == nullptr || !post(pair, memory, IBV_WR_RDMA_WRITE)) return false;
  void* block = realloc(memory.bytes, size);
  if (block == nullptr || !ends(pair.a.cq) || ibv_dereg_mr(memory.mr) != 0) return false;
  free(block);
  free(behind);
  return true;
}

// Changes the bytes between the post and the poll.
bool change(Pair& pair) {
  Memory memory;
  if (!add(pair, memory, malloc(kSize)) || !post(pair, memory, IBV_WR_RDMA_WRITE)) return false;
  memory.bytes[100]++;
  if (!ends(pair.a.cq)) return false;
  free(memory.bytes);
  return ibv_dereg_mr(memory.mr) == 0;
}

// The program has got the completion of another request only. `name`: "freed-..." or "changed-...".
bool use_second(Pair& pair, const char* name) {
  Memory first, second;
  if (!add(pair, first, malloc(kSize)) || !add(pair, second, malloc(kSize))) return false;
  const bool is_other_queue = strstr(name, "other-queue") != nullptr;
  if (is_other_queue) {
    // A message of the other end's, which this end does not poll.
    if (post_receive(pair.a, 1, 0, 64) != 0 || post_send(pair.b, 1, IBV_WR_SEND, 0, 64) != 0) return false;
  } else if (!post(pair, first, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 1)) {
    return false;
  }
  if (!post(pair, second, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 2)) return false;
  if (!ends(is_other_queue ? pair.b.cq : pair.a.cq)) return false;
  const bool is_freed = strncmp(name, "freed", 5) == 0;
  if (is_freed) {
    free(second.bytes);
  } else {
    second.bytes[100]++;
  }
  if (is_other_queue) {
    ibv_wc completion;
    for (int i = 0; i < 2; i++) {
      if (!wait_for(pair.a.cq, completion)) return false;
    }
  } else if (!ends_either_way(pair.a.cq)) {
    return false;
  }
  if (!is_freed) free(second.bytes);
  free(first.bytes);
  return ibv_dereg_mr(first.mr) == 0 && ibv_dereg_mr(second.mr) == 0;
}

// An inline request has no memory, and the same id as the one behind it. Its completion tells nothing of that one.
bool free_behind_inline(Pair& pair) {
  Memory memory;
  if (!add(pair, memory, malloc(kSize))) return false;
  if (post_send(pair.a, 0, IBV_WR_RDMA_WRITE, 0, 8, &pair.b, 0, IBV_SEND_SIGNALED | IBV_SEND_INLINE) != 0) return false;
  if (!post(pair, memory, IBV_WR_RDMA_WRITE) || !ends(pair.a.cq)) return false;
  free(memory.bytes);
  return ends_either_way(pair.a.cq) && ibv_dereg_mr(memory.mr) == 0;
}

// A request without a completion is over when a later one is complete.
bool change_unsignaled(Pair& pair) {
  Memory first, second;
  if (!add(pair, first, malloc(kSize)) || !add(pair, second, malloc(kSize))) return false;
  if (!post(pair, first, IBV_WR_RDMA_WRITE, 0, 1)) return false;
  first.bytes[100]++;
  if (!post(pair, second, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 2) || !ends(pair.a.cq)) return false;
  free(first.bytes);
  free(second.bytes);
  return ibv_dereg_mr(first.mr) == 0 && ibv_dereg_mr(second.mr) == 0;
}

// The peer has no receive for a long time, so the device sends the bytes again.
bool use_long_after(Pair& pair, const char* name) {
  Memory memory;
  if (!add(pair, memory, malloc(kSize)) || !post(pair, memory, IBV_WR_SEND)) return false;
  usleep(150'000);
  if (strncmp(name, "freed", 5) == 0) {
    free(memory.bytes);
    return to_error(pair.a.qp) && ends(pair.a.cq, IBV_WC_WR_FLUSH_ERR) && ibv_dereg_mr(memory.mr) == 0;
  }
  memory.bytes[100]++;
  if (post_receive(pair.b, 1, 0, kSize) != 0 || !ends(pair.a.cq)) return false;
  free(memory.bytes);
  return ibv_dereg_mr(memory.mr) == 0;
}

// Two receives have the same bytes.
bool share(Pair& pair) {
  return post_receive(pair.b, 1, 0, 64) == 0 && post_receive(pair.b, 2, 32, 64) == 0;
}

// A NIC keeps the pages of a receive. Another mapping takes their place, and ends.
bool unmap_receive(Pair& pair) {
  Memory memory;
  if (!add_mapped(pair, memory) || !post_receive(pair, memory)) return false;
  for (int i = 0; i < 2; i++) {
    if (munmap(memory.bytes, kSize) != 0) return false;
    void* again = mmap(memory.bytes, kSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (again != memory.bytes) return false;
  }
  return to_error(pair.a.qp) && ends(pair.a.cq, IBV_WC_WR_FLUSH_ERR) && ibv_dereg_mr(memory.mr) == 0;
}

// Posts a Read, and a Write of its result.
bool write_result(Pair& pair, unsigned flags) {
  Memory memory;
  if (!add(pair, memory, malloc(kSize)) || !post(pair, memory, IBV_WR_RDMA_READ, 0)) return false;
  if (!post(pair, memory, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED | flags) || !ends(pair.a.cq)) return false;
  free(memory.bytes);
  return ibv_dereg_mr(memory.mr) == 0;
}

// The memory is given back after the completion, after a peer's answer, after the end of the queue pair.
bool be_correct(Pair& pair) {
  Memory memory;
  for (int i = 0; i < 20; i++) {
    if (!add(pair, memory, malloc(kSize)) || !post(pair, memory, IBV_WR_RDMA_WRITE) || !ends(pair.a.cq)) return false;
    memory.bytes[100]++;
    free(memory.bytes);
    if (ibv_dereg_mr(memory.mr) != 0) return false;
  }
  for (int i = 0; i < 20; i++) {
    if (!add_mapped(pair, memory) || post_receive(pair.b, 1, 0, kSize) != 0 || !post(pair, memory, IBV_WR_SEND, 0))
      return false;
    if (!ends(pair.b.cq) || munmap(memory.bytes, kSize) != 0 || ibv_dereg_mr(memory.mr) != 0) return false;
  }
  for (int i = 0; i < 20; i++) {
    if (!write_result(pair, IBV_SEND_FENCE)) return false;
  }
  for (int i = 0; i < 20; i++) {
    Memory first, second;
    if (!add(pair, first, malloc(kSize)) || !add(pair, second, malloc(kSize))) return false;
    if (!post(pair, first, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 1)) return false;
    if (!post(pair, second, IBV_WR_RDMA_WRITE, 0, 2) || !ends(pair.a.cq)) return false;
    first.bytes[100]++;
    free(first.bytes);
    // Its completion tells of the second one.
    if (post_send(pair.a, 2, IBV_WR_RDMA_WRITE, 0, 8, &pair.b, 0, int{IBV_SEND_SIGNALED} | IBV_SEND_INLINE) != 0)
      return false;
    if (!ends(pair.a.cq)) return false;
    second.bytes[100]++;
    free(second.bytes);
    if (ibv_dereg_mr(first.mr) != 0 || ibv_dereg_mr(second.mr) != 0) return false;
  }
  // All requests have one id.
  for (int i = 0; i < 20; i++) {
    for (int j = 0; j < 2; j++) {
      if (post_send(pair.a, 0, IBV_WR_RDMA_WRITE, 0, 8, &pair.b, 0, int{IBV_SEND_SIGNALED} | IBV_SEND_INLINE) != 0)
        return false;
    }
    if (!add(pair, memory, malloc(kSize)) || !post(pair, memory, IBV_WR_RDMA_WRITE)) return false;
    for (int j = 0; j < 3; j++) {
      if (!ends(pair.a.cq)) return false;
    }
    memory.bytes[100]++;
    free(memory.bytes);
    if (ibv_dereg_mr(memory.mr) != 0) return false;
  }
  Memory received;
  if (!add(pair, memory, malloc(kSize)) || !add(pair, received, malloc(kSize))) return false;
  if (!post_receive(pair, received) || !post(pair, memory, IBV_WR_RDMA_WRITE, 0)) return false;
  if (!to_error(pair.a.qp) || ibv_destroy_qp(pair.a.qp) != 0) return false;
  pair.a.qp = nullptr;
  free(memory.bytes);
  free(received.bytes);
  return ibv_dereg_mr(memory.mr) == 0 && ibv_dereg_mr(received.mr) == 0;
}

}  // namespace

int main(int count, char** words) {
  need_new_namespace();
  // A message whose acknowledgement is late must not be sent again, as its memory may have gone after the peer's
  // answer.
  constexpr uint8_t kFourSeconds = 20;
  const std::unique_ptr<Pair> pair(
      make_pair({.srq = count == 2 && strstr(words[1], "shared-receive") != nullptr, .timeout = kFourSeconds}));
  if (pair == nullptr || count != 2) {
    puts("SKIP: no pair of queue pairs");
    return 77;
  }
  const char* name = words[1];
  bool good = false;
  if (strcmp(name, "correct") == 0) {
    good = be_correct(*pair);
  } else if (strcmp(name, "freed-twice") == 0) {
    good = free_twice();
  } else if (strcmp(name, "freed-receive") == 0) {
    good = free_receive(*pair, false);
  } else if (strcmp(name, "inline-read") == 0) {
    good = free_inline_read(*pair);
  } else if (strcmp(name, "reregistered") == 0) {
    good = reregister(*pair);
  } else if (strcmp(name, "deregistered-receive") == 0) {
    good = deregister_receive(*pair);
  } else if (strcmp(name, "full-receives") == 0) {
    good = free_receive(*pair, true);
  } else if (strstr(name, "shared-receive") != nullptr) {
    good = free_shared_receive(*pair, strncmp(name, "freed", 5) == 0);
  } else if (strstr(name, "-tag") != nullptr) {
    good = free_tag(*pair, strncmp(name, "removed", 7) == 0, strncmp(name, "taken", 5) == 0);
  } else if (strcmp(name, "reallocated") == 0) {
    good = reallocate(*pair, 100 * kSize);
  } else if (strcmp(name, "shrunk") == 0) {
    good = reallocate(*pair, kSize / 2);
  } else if (strcmp(name, "shrunk-behind") == 0) {
    good = reallocate(*pair, kSize + 64);
  } else if (strcmp(name, "unmapped-receive") == 0) {
    good = unmap_receive(*pair);
  } else if (strcmp(name, "freed-behind-inline") == 0) {
    good = free_behind_inline(*pair);
  } else if (strstr(name, "-second") != nullptr || strstr(name, "-other-queue") != nullptr) {
    good = use_second(*pair, name);
  } else if (strstr(name, "-long-after") != nullptr) {
    good = use_long_after(*pair, name);
  } else if (strcmp(name, "changed-unsignaled") == 0) {
    good = change_unsignaled(*pair);
  } else if (strcmp(name, "changed") == 0) {
    good = change(*pair);
  } else if (strcmp(name, "shared") == 0) {
    good = share(*pair);
  } else if (strcmp(name, "unfenced") == 0) {
    good = write_result(*pair, 0);
  } else {
    good = give_back(*pair, name);
  }
  puts(good ? "all went as planned" : "not as planned");
  return good ? 0 : 1;
}

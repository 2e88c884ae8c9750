// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/emulator/self_test.hpp"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "provider/common/clock.hpp"
#include "provider/common/loaded_object.hpp"

namespace dapple::provider {
namespace {

constexpr size_t kPage = 4096;
constexpr int kMaxGids = 16;
constexpr uint64_t kPatienceNs = 10'000'000'000;
constexpr unsigned char kPattern = 0xa7;

// Functions of the libibverbs that a context came from. This library is not linked with libibverbs.
struct Verbs {
  void* library;
  decltype(&ibv_query_port) query_port = get<decltype(&ibv_query_port)>("ibv_query_port");
  decltype(&ibv_query_gid) query_gid = get<decltype(&ibv_query_gid)>("ibv_query_gid");
  decltype(&ibv_alloc_pd) alloc_pd = get<decltype(&ibv_alloc_pd)>("ibv_alloc_pd");
  decltype(&ibv_dealloc_pd) dealloc_pd = get<decltype(&ibv_dealloc_pd)>("ibv_dealloc_pd");
  decltype(&ibv_create_cq) create_cq = get<decltype(&ibv_create_cq)>("ibv_create_cq");
  decltype(&ibv_destroy_cq) destroy_cq = get<decltype(&ibv_destroy_cq)>("ibv_destroy_cq");
  decltype(&ibv_create_qp) create_qp = get<decltype(&ibv_create_qp)>("ibv_create_qp");
  decltype(&ibv_modify_qp) modify_qp = get<decltype(&ibv_modify_qp)>("ibv_modify_qp");
  decltype(&ibv_destroy_qp) destroy_qp = get<decltype(&ibv_destroy_qp)>("ibv_destroy_qp");
  decltype(&ibv_dereg_mr) dereg_mr = get<decltype(&ibv_dereg_mr)>("ibv_dereg_mr");
  ibv_mr* (*reg_mr_iova)(ibv_pd*, void*, size_t, uint64_t,
                         int) = get<ibv_mr* (*)(ibv_pd*, void*, size_t, uint64_t, int)>("ibv_reg_mr_iova");

  explicit Verbs(ibv_context* context) : library(open_verbs_of(context)) {}
  ~Verbs() {
    if (library != nullptr) dlclose(library);
  }
  Verbs(const Verbs&) = delete;
  Verbs& operator=(const Verbs&) = delete;

  bool complete() const {
    return query_port && query_gid && alloc_pd && dealloc_pd && create_cq && destroy_cq && create_qp && modify_qp &&
           destroy_qp && dereg_mr && reg_mr_iova;
  }

 private:
  template <typename Function>
  Function get(const char* name) const {
    return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
  }
};

bool is_zero(const ibv_gid& gid) {
  return gid.global.subnet_prefix == 0 && gid.global.interface_id == 0;
}

// One page holds the source, one the program's memory, and one is registered under that memory's address.
class IovaTest {
 public:
  explicit IovaTest(const Verbs& verbs) : verbs_(verbs) {}
  ~IovaTest() {
    if (qp_ != nullptr) verbs_.destroy_qp(qp_);
    bool idle = true;
    if (source_region_ != nullptr) idle = verbs_.dereg_mr(source_region_) == 0;
    if (shadow_region_ != nullptr) idle = verbs_.dereg_mr(shadow_region_) == 0 && idle;
    if (cq_ != nullptr) verbs_.destroy_cq(cq_);
    if (pd_ != nullptr) verbs_.dealloc_pd(pd_);
    // If a region could not be deregistered, the device may still write to the pages, so they stay.
    if (pages_ != nullptr && idle) munmap(pages_, 3 * kPage);
  }
  IovaTest(const IovaTest&) = delete;
  IovaTest& operator=(const IovaTest&) = delete;

  bool prepare(ibv_context* context) {
    void* pages = mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return false;
    pages_ = static_cast<unsigned char*>(pages);
    memset(source(), kPattern, kPage);
    pd_ = verbs_.alloc_pd(context);
    cq_ = verbs_.create_cq(context, 4, nullptr, nullptr, 0);
    if (pd_ == nullptr || cq_ == nullptr) return false;
    source_region_ = verbs_.reg_mr_iova(pd_, source(), kPage, address_of(source()), IBV_ACCESS_LOCAL_WRITE);
    shadow_region_ = verbs_.reg_mr_iova(pd_, shadow(), kPage, address_of(program()),
                                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    return source_region_ != nullptr && shadow_region_ != nullptr;
  }

  // True if the device wrote to the registered page, and not to the page whose address it was given. gid: of the port,
  // at this index of its table.
  bool passes(uint8_t port, const ibv_port_attr& attr, const ibv_gid& gid, uint8_t index) {
    memset(program(), 0, 2 * kPage);
    if (!connect(port, attr, gid, index) || !write()) return false;
    return memcmp(shadow(), source(), kPage) == 0 && program()[0] == 0 && program()[kPage - 1] == 0;
  }

 private:
  static uint64_t address_of(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }
  unsigned char* source() { return pages_; }
  unsigned char* program() { return pages_ + kPage; }
  unsigned char* shadow() { return pages_ + 2 * kPage; }

  bool connect(uint8_t port, const ibv_port_attr& port_attr, const ibv_gid& gid, uint8_t index) {
    if (qp_ != nullptr) verbs_.destroy_qp(qp_);
    ibv_qp_init_attr init = {};
    init.send_cq = cq_;
    init.recv_cq = cq_;
    init.qp_type = IBV_QPT_RC;
    init.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    qp_ = verbs_.create_qp(pd_, &init);
    if (qp_ == nullptr) return false;

    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = port;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    if (verbs_.modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
      return false;
    attr = {};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_256;
    attr.dest_qp_num = qp_->qp_num;
    attr.max_dest_rd_atomic = 1;
    attr.ah_attr.port_num = port;
    attr.ah_attr.dlid = port_attr.lid;
    attr.ah_attr.is_global = port_attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    attr.ah_attr.grh.dgid = gid;
    attr.ah_attr.grh.sgid_index = index;
    attr.ah_attr.grh.hop_limit = 1;
    if (verbs_.modify_qp(qp_, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)) {
      return false;
    }
    attr = {};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 18;  // IBTA code: 1.07 seconds, because an emulated machine's clock may run too fast
    attr.retry_cnt = 7;
    attr.max_rd_atomic = 1;
    return verbs_.modify_qp(qp_, &attr,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                IBV_QP_MAX_QP_RD_ATOMIC) == 0;
  }

  bool write() {
    ibv_sge segment = {.addr = address_of(source()), .length = kPage, .lkey = source_region_->lkey};
    ibv_send_wr request = {};
    request.sg_list = &segment;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma.remote_addr = address_of(program());
    request.wr.rdma.rkey = shadow_region_->rkey;
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(qp_, &request, &bad) != 0) return false;
    const uint64_t deadline_ns = now_ns() + kPatienceNs;
    while (now_ns() < deadline_ns) {
      ibv_wc completion;
      const int count = ibv_poll_cq(cq_, 1, &completion);
      if (count < 0) return false;
      // A completion of an earlier queue pair may arrive late; it is skipped.
      if (count == 1 && completion.qp_num == qp_->qp_num) return completion.status == IBV_WC_SUCCESS;
      const timespec moment = {.tv_sec = 0, .tv_nsec = 50'000};
      nanosleep(&moment, nullptr);
    }
    return false;
  }

  const Verbs& verbs_;
  unsigned char* pages_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_mr* source_region_ = nullptr;
  ibv_mr* shadow_region_ = nullptr;
  ibv_qp* qp_ = nullptr;
};

bool port_passes(const Verbs& verbs, IovaTest& test, ibv_context* context, uint8_t port) {
  ibv_port_attr attr = {};
  // libibverbs' exported ibv_query_port() fills in the older structure, with which this one begins.
  if (verbs.query_port(context, port, reinterpret_cast<_compat_ibv_port_attr*>(&attr)) != 0) return false;
  if (attr.state != IBV_PORT_ACTIVE) return false;
  const int gids = attr.gid_tbl_len < kMaxGids ? attr.gid_tbl_len : kMaxGids;
  // The table begins with the link-local address, for which a system may have no route. So the last entry is tried
  // first.
  for (int i = gids - 1; i >= 0; --i) {
    ibv_gid gid = {};
    if (verbs.query_gid(context, port, i, &gid) != 0 || is_zero(gid)) continue;
    if (test.passes(port, attr, gid, static_cast<uint8_t>(i))) return true;
  }
  return false;
}

}  // namespace

const char* fails_iova_test(ibv_context* context) {
  if (context->device->transport_type == IBV_TRANSPORT_IWARP) {
    // siw ignores the IOVA. An iWARP queue pair can only be connected by a connection manager, so there is no quick
    // test.
    return "the emulator needs a device that honours the IOVA of a region, and iWARP devices may ignore it";
  }
  const Verbs verbs(context);
  if (!verbs.complete()) return "the emulator needs libibverbs' ibv_reg_mr_iova";
  IovaTest test(verbs);
  if (!test.prepare(context)) return "the emulator cannot test the device: memory cannot be registered with an IOVA";
  // Further ports are not tried.
  for (uint8_t port = 1; port <= 2; ++port) {
    if (port_passes(verbs, test, context, port)) return nullptr;
  }
  return "the emulator's test failed: no active port carries a write to the address of a region's IOVA";
}

}  // namespace dapple::provider

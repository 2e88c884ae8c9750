// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/tag_matching/tag_objects.hpp"

#include <errno.h>

#include <cassert>
#include <new>
#include <utility>

#include "provider/soft/tag_matching/tag_queue_pair.hpp"

namespace dapple::soft {

std::unique_ptr<roce::QueuePair> TagQp::around(std::unique_ptr<roce::QueuePair> engine, uint64_t max_message) {
  if (engine == nullptr) return nullptr;
  return std::unique_ptr<roce::QueuePair>(
      new (std::nothrow) TagQueuePair(std::move(engine), receives, rendezvous, reads, max_message));
}

void TagQp::end() {
  receives.reset();
  rendezvous.reset();
}

std::unique_ptr<TagSrq, void (*)(TagSrq*)> make_tag_srq(Cq& cq, const ibv_tm_cap& cap, int& error) {
  std::unique_ptr<TagSrq, void (*)(TagSrq*)> made(new (std::nothrow) TagSrq(cq), [](TagSrq* srq) { delete srq; });
  error = made == nullptr ? ENOMEM : made->list.initialize(cap.max_num_tags);
  if (error == 0) error = made->operations.initialize(cap.max_ops);
  if (error != 0) made.reset();
  return made;
}

std::unique_ptr<TagQp, void (*)(TagQp*)> make_tag_qp(const Qp& qp, roce::Memory& memory, roce::CompletionSink& received,
                                                     roce::EventSink& events) {
  assert(qp.srq != nullptr && qp.srq->tags != nullptr && qp.qpn != 0);
  const bool reads = reads_by_itself(qp.init.cap);
  return {new (std::nothrow) TagQp(*qp.srq->tags, qp.srq->queue, qp.qpn, reads, memory, received, events),
          [](TagQp* made) { delete made; }};
}

}  // namespace dapple::soft

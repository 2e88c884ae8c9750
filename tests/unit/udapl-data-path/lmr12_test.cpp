// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// LMRs by the functions of DAT 1.2: what a query returns, and what a device without a region left gives.
#include <cerrno>
#include <vector>

#include "tests/unit/udapl-data-path/fake_device.hpp"
#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/functions/functions.hpp"

using namespace dapple::udapl;
namespace functions = dapple::udapl::functions;

namespace {

alignas(4096) char memory[4096];

DAT_RETURN create(fake_device::Ia& ia, DAT_MEM_TYPE type, int privileges, DAT_LMR_HANDLE& lmr) {
  DAT_REGION_DESCRIPTION region{};
  region.for_va = memory;
  return functions::lmr_create(ia.get(), type, region, sizeof memory, &ia.pz(),
                               static_cast<DAT_MEM_PRIV_FLAGS>(privileges), &lmr, nullptr, nullptr, nullptr, nullptr);
}

void lmr_query__privileges_as_they_were_asked_for() {
  fake_device::reset();
  fake_device::Ia ia(false);
  for (const DAT_MEM_TYPE type : {DAT_MEM_TYPE_VIRTUAL, DAT_MEM_TYPE_SO_VIRTUAL}) {
    for (const int rights : {0, 0x01, 0x10, 0x02, 0x20, 0x33}) {
      for (const int flag : {0, int{DAT_MEM_PRIV_RO_DISABLE_FLAG}}) {
        DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
        CHECK_EQUAL(create(ia, type, rights | flag, lmr), DAT_RETURN{DAT_SUCCESS});
        DAT_LMR_PARAM param{};
        CHECK_EQUAL(functions::lmr_query(*static_cast<Lmr*>(lmr), DAT_LMR_FIELD_ALL, &param), DAT_RETURN{DAT_SUCCESS});
        CHECK_EQUAL(int{param.mem_priv}, rights | flag);
        CHECK_EQUAL(param.mem_type, type);
        CHECK_EQUAL(functions::lmr_free(*static_cast<Lmr*>(lmr)), DAT_RETURN{DAT_SUCCESS});
      }
    }
  }
}

// As many regions as max_lmrs reports; the next has the specification's error, whichever way the device refuses it.
void lmr_create__no_region_left() {
  constexpr int kMax = 50;
  for (const int error : {ENOMEM, ENOSPC, EINVAL}) {
    fake_device::reset();
    fake_device::state.max_regions = kMax;
    fake_device::state.refuses_region = error;
    fake_device::Ia ia(false);
    DAT_IA_ATTR attr{};
    CHECK_EQUAL(functions::ia_query(ia.get(), nullptr, DAT_IA_FIELD_ALL, &attr, 0, nullptr), DAT_RETURN{DAT_SUCCESS});
    CHECK_EQUAL(attr.max_lmrs, kMax);
    std::vector<DAT_LMR_HANDLE> lmrs(kMax);
    for (DAT_LMR_HANDLE& lmr : lmrs) CHECK_EQUAL(create(ia, DAT_MEM_TYPE_VIRTUAL, 0x33, lmr), DAT_RETURN{DAT_SUCCESS});
    DAT_LMR_HANDLE more = DAT_HANDLE_NULL;
    CHECK_EQUAL(create(ia, DAT_MEM_TYPE_VIRTUAL, 0x33, more),
                DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES |
                    static_cast<DAT_RETURN>(error == ENOMEM ? DAT_RESOURCE_MEMORY : DAT_RESOURCE_DEVICE));
    CHECK(more == DAT_HANDLE_NULL);
    CHECK_EQUAL(functions::lmr_free(*static_cast<Lmr*>(lmrs.back())), DAT_RETURN{DAT_SUCCESS});
    CHECK_EQUAL(create(ia, DAT_MEM_TYPE_VIRTUAL, 0x33, lmrs.back()), DAT_RETURN{DAT_SUCCESS});
    for (DAT_LMR_HANDLE lmr : lmrs) CHECK_EQUAL(functions::lmr_free(*static_cast<Lmr*>(lmr)), DAT_RETURN{DAT_SUCCESS});
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST_IN_CHILD(lmr_query__privileges_as_they_were_asked_for),
      TEST_IN_CHILD(lmr_create__no_region_left),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

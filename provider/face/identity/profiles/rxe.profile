# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# The kernel's software device, rdma_rxe of Linux 6.1. Its device has no hardware behind it.

name = rxe%d
fw_ver = 
node_desc = rxe
vendor_id = 0xffffff
vendor_part_id = 0
hw_ver = 0
pci = none
rate = 2.5

max_mr_size = 0xffffffffffffffff
page_size_cap = 0xfffff000
device_cap_flags = 0x01223c76
max_qp = 1048560
max_qp_wr = 1048576
max_sge = 32
max_sge_rd = 32
max_inline = 512
max_msg_sz = 0x800000
too_long = completes
max_cq = 1048576
max_cqe = 32767
num_comp_vectors = 1
resize_cq = yes
max_mr = 524287
max_pd = 1048576
max_mw = 524287
memory_windows = yes
max_ah = 32767
max_srq = 917503
max_srq_wr = 1048576
max_srq_sge = 27
srq = yes
atomics = hca
flush = no
time_stamps = no
on_demand_paging = no
device_memory = no
dma_handles = no
completion_counters = no
tag_matching = no
max_qp_rd_atom = 128
max_qp_init_rd_atom = 128
max_res_rd_atom = 258048
max_mcast_grp = 8192
max_mcast_qp_attach = 56
max_total_mcast_qp_attach = 458752
multicast = yes
local_ca_ack_delay = 15

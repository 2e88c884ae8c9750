# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Elastic RDMA of Alibaba Cloud, as the erdma driver shows it. A receive has one piece of memory, and the size of a
# completion queue cannot change. It has no shared receive queues, no memory windows and no multicast.

name = erdma_%d
fw_ver = 0.2.0
node_desc = Elastic RDMA(iWARP) stack
vendor_id = 0x1ded
vendor_part_id = 4223
hw_ver = 1
rate = 100

pci = 0000:00:06.0
driver = erdma
pci_class = 0x020000
pci_vendor = 0x1ded
pci_device = 0x107f
pci_subsystem_vendor = 0x1ded
pci_subsystem_device = 0x107f
pci_revision = 1
numa = 0

max_mr_size = 0x1000000000
page_size_cap = 0x7ffff000
device_cap_flags = 0x00200000
max_qp = 131071
max_qp_wr = 8192
max_send_sge = 6
max_recv_sge = 1
max_sge_rd = 1
max_inline = 96
max_msg_sz = 0xffffffff
too_long = completes
max_cq = 262143
max_cqe = 1048576
num_comp_vectors = 31
resize_cq = no
max_mr = 262144
max_pd = 131072
max_mw = 0
memory_windows = no
max_ah = 2147483647
srq = no
atomics = global
flush = no
time_stamps = no
on_demand_paging = no
device_memory = no
dma_handles = no
completion_counters = no
tag_matching = no
max_qp_rd_atom = 128
max_qp_init_rd_atom = 128
max_res_rd_atom = 16777216
max_mcast_grp = 0
max_mcast_qp_attach = 0
max_total_mcast_qp_attach = 0
multicast = no
local_ca_ack_delay = 0

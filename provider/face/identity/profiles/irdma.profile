# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Intel E810-C with one port of 100 Gb/s in RoCE mode, as the irdma driver shows it. It has no shared receive queues
# and no atomic operations.

name = irdma%d
fw_ver = 1.74
node_desc = 
vendor_id = 0x8086
vendor_part_id = 5522
hw_ver = 2
rate = 100

pci = 0000:86:00.0
driver = ice
pci_class = 0x020000
pci_vendor = 0x8086
pci_device = 0x1592
pci_subsystem_vendor = 0x8086
pci_subsystem_device = 0x0002
pci_revision = 2
pci_link_speed = 16
pci_link_width = 16
numa = 0

max_mr_size = 0x200000000000
page_size_cap = 0x40201000
device_cap_flags = 0x01221000
max_qp = 4092
max_qp_wr = 8127
max_sge = 6
max_sge_rd = 6
max_inline = 101
max_msg_sz = 0x7fffffff
too_long = completes
max_cq = 8189
max_cqe = 1048574
num_comp_vectors = 16
resize_cq = yes
max_mr = 4194301
max_pd = 262141
max_mw = 4194301
memory_windows = yes
max_ah = 131072
srq = no
atomics = none
flush = no
time_stamps = no
on_demand_paging = no
device_memory = no
dma_handles = no
completion_counters = no
tag_matching = no
max_qp_rd_atom = 8
max_qp_init_rd_atom = 8
max_res_rd_atom = 0
max_mcast_grp = 4096
max_mcast_qp_attach = 8
max_total_mcast_qp_attach = 32768
multicast = yes
local_ca_ack_delay = 0

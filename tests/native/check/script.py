# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Two protection domains that are left at exit, from two lines. PyDLL holds the interpreter's lock, as pyverbs does.
import ctypes

verbs = ctypes.PyDLL('libibverbs.so.1')
for name in ('ibv_get_device_list', 'ibv_open_device', 'ibv_alloc_pd'):
  getattr(verbs, name).restype = ctypes.c_void_p
verbs.ibv_get_device_list.argtypes = [ctypes.c_void_p]
verbs.ibv_open_device.argtypes = verbs.ibv_alloc_pd.argtypes = [ctypes.c_void_p]


def first_device():
  return ctypes.cast(verbs.ibv_get_device_list(None), ctypes.POINTER(ctypes.c_void_p))[0]


def take_domain(context):
  return verbs.ibv_alloc_pd(context)


context = verbs.ibv_open_device(first_device())
assert take_domain(context)  # the first
assert take_domain(context)  # the second
print('all went as planned')

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A libcuda.so.1 for tests, without a GPU. The CPU crashes where it touches the memory of a "GPU"; the bytes are mapped
// elsewhere. A copy ends when its stream is waited for. Contexts are checked as strictly as CUDA's driver may: a copy
// needs the context of its memory and of its stream, and a child of fork() has none. The functions have the names, and
// the numbers, of cuda.h.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

using CUdeviceptr = unsigned long long;
using CUcontext = struct FakeContext*;
using CUstream = struct FakeStream*;

int cuInit(unsigned flags);
int cuDeviceGet(int* device, int ordinal);
int cuDevicePrimaryCtxRetain(CUcontext* context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxCreate_v2(CUcontext* context, unsigned flags, int device);
int cuCtxDestroy_v2(CUcontext context);
int cuCtxPushCurrent_v2(CUcontext context);
int cuCtxPopCurrent_v2(CUcontext* context);
int cuCtxGetCurrent(CUcontext* context);
int cuMemAlloc_v2(CUdeviceptr* pointer, size_t size);
int cuMemAllocManaged(CUdeviceptr* pointer, size_t size, unsigned flags);
int cuMemHostAlloc(void** pointer, size_t size, unsigned flags);
// Of a pool: without a context.
int cuMemAllocAsync(CUdeviceptr* pointer, size_t size, CUstream stream);
int cuMemFree_v2(CUdeviceptr pointer);
int cuMemGetAddressRange_v2(CUdeviceptr* begin, size_t* size, CUdeviceptr pointer);
int cuMemGetHandleForAddressRange(void* handle, CUdeviceptr begin, size_t size, int type, unsigned long long flags);
int cuPointerGetAttribute(void* value, int attribute, CUdeviceptr pointer);
int cuStreamCreate(CUstream* stream, unsigned flags);
int cuStreamDestroy_v2(CUstream stream);
int cuStreamSynchronize(CUstream stream);
int cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, CUstream stream);
int cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, CUstream stream);
int cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t size);
int cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size);
int cuGetErrorName(int error, const char** name);

// The test's own part: the bytes of a GPU's memory, the streams that exist, and the error of all copies from now on (0:
// none).
char* fake_cuda_bytes(CUdeviceptr pointer);
int fake_cuda_streams();
void fake_cuda_fail_copies(int error);
}

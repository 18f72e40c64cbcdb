/* The CUDA driver, NVRTC and nvJitLink, opened at run time: one binary works with and without a
 * GPU.
 *
 * Compiled only where CUDA's headers are (PEAL_HAVE_CUDA in peal_config.h). Every entry point that
 * peal calls is in one of the two lists; a library that lacks one of them is treated as missing,
 * with the reason in words. */
#ifndef PEAL_BASE_CUDA_DRIVER_H
#define PEAL_BASE_CUDA_DRIVER_H

#include "peal_config.h"

#if PEAL_HAVE_CUDA
#include <cuda.h>
#include <nvrtc.h>
#include <stddef.h>
#include <stdint.h>

/* X(name): cuda.h maps some names to a later version of the function; the table is typed and looked
 * up by what the name is mapped to, so that header and library agree. */
#define PEAL_CUDA_FUNCTIONS(X)                                                                     \
    X(cuInit)                                                                                      \
    X(cuDriverGetVersion)                                                                          \
    X(cuGetErrorName)                                                                              \
    X(cuGetErrorString)                                                                            \
    X(cuDeviceGetCount)                                                                            \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetName)                                                                             \
    X(cuDeviceGetUuid)                                                                             \
    X(cuDeviceGetAttribute)                                                                        \
    X(cuDeviceTotalMem)                                                                            \
    X(cuDeviceCanAccessPeer)                                                                       \
    X(cuDeviceGetP2PAttribute)                                                                     \
    X(cuDeviceGetPCIBusId)                                                                         \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuDevicePrimaryCtxRelease)                                                                   \
    X(cuCtxSetCurrent)                                                                             \
    X(cuCtxGetCurrent)                                                                             \
    X(cuCtxEnablePeerAccess)                                                                       \
    X(cuCtxSynchronize)                                                                            \
    X(cuCtxGetStreamPriorityRange)                                                                 \
    X(cuMemGetInfo)                                                                                \
    X(cuMemAlloc)                                                                                  \
    X(cuMemFree)                                                                                   \
    X(cuMemHostAlloc)                                                                              \
    X(cuMemFreeHost)                                                                               \
    X(cuMemHostRegister)                                                                           \
    X(cuMemHostUnregister)                                                                         \
    X(cuMemHostGetDevicePointer)                                                                   \
    X(cuMemcpy)                                                                                    \
    X(cuMemcpyAsync)                                                                               \
    X(cuMemcpyHtoD)                                                                                \
    X(cuMemcpyDtoH)                                                                                \
    X(cuMemcpyHtoDAsync)                                                                           \
    X(cuMemcpyDtoHAsync)                                                                           \
    X(cuMemcpy3DAsync)                                                                             \
    X(cuMemsetD8)                                                                                  \
    X(cuMemsetD8Async)                                                                             \
    X(cuMemGetAllocationGranularity)                                                               \
    X(cuMemAddressReserve)                                                                         \
    X(cuMemAddressFree)                                                                            \
    X(cuMemCreate)                                                                                 \
    X(cuMemRelease)                                                                                \
    X(cuMemMap)                                                                                    \
    X(cuMemUnmap)                                                                                  \
    X(cuMemSetAccess)                                                                              \
    X(cuMemExportToShareableHandle)                                                                \
    X(cuMemImportFromShareableHandle)                                                              \
    X(cuIpcGetMemHandle)                                                                           \
    X(cuIpcOpenMemHandle)                                                                          \
    X(cuIpcCloseMemHandle)                                                                         \
    X(cuPointerGetAttribute)                                                                       \
    X(cuPointerGetAttributes)                                                                      \
    X(cuStreamCreateWithPriority)                                                                  \
    X(cuStreamDestroy)                                                                             \
    X(cuStreamSynchronize)                                                                         \
    X(cuStreamQuery)                                                                               \
    X(cuStreamWaitEvent)                                                                           \
    X(cuStreamWaitValue64)                                                                         \
    X(cuStreamWriteValue64)                                                                        \
    X(cuStreamBatchMemOp)                                                                          \
    X(cuStreamBeginCapture)                                                                        \
    X(cuStreamBeginCaptureToGraph)                                                                 \
    X(cuStreamEndCapture)                                                                          \
    X(cuStreamIsCapturing)                                                                         \
    X(cuStreamGetCaptureInfo)                                                                      \
    X(cuStreamUpdateCaptureDependencies)                                                           \
    X(cuLaunchHostFunc)                                                                            \
    X(cuEventCreate)                                                                               \
    X(cuEventDestroy)                                                                              \
    X(cuEventRecord)                                                                               \
    X(cuEventQuery)                                                                                \
    X(cuEventSynchronize)                                                                          \
    X(cuEventElapsedTime)                                                                          \
    X(cuModuleLoadData)                                                                            \
    X(cuModuleUnload)                                                                              \
    X(cuModuleGetFunction)                                                                         \
    X(cuModuleGetGlobal)                                                                           \
    X(cuFuncGetAttribute)                                                                          \
    X(cuFuncSetAttribute)                                                                          \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                                 \
    X(cuLaunchKernel)                                                                              \
    X(cuLaunchKernelEx)                                                                            \
    X(cuLaunchCooperativeKernel)                                                                   \
    X(cuGraphCreate)                                                                               \
    X(cuGraphDestroy)                                                                              \
    X(cuGraphAddNode)                                                                              \
    X(cuGraphGetNodes)                                                                             \
    X(cuGraphNodeGetType)                                                                          \
    X(cuGraphConditionalHandleCreate)                                                              \
    X(cuGraphInstantiateWithParams)                                                                \
    X(cuGraphExecDestroy)                                                                          \
    X(cuGraphUpload)                                                                               \
    X(cuGraphLaunch)

#define PEAL_NVRTC_FUNCTIONS(X)                                                                    \
    X(nvrtcVersion)                                                                                \
    X(nvrtcGetErrorString)                                                                         \
    X(nvrtcCreateProgram)                                                                          \
    X(nvrtcDestroyProgram)                                                                         \
    X(nvrtcCompileProgram)                                                                         \
    X(nvrtcGetProgramLogSize)                                                                      \
    X(nvrtcGetProgramLog)                                                                          \
    X(nvrtcGetCUBINSize)                                                                           \
    X(nvrtcGetCUBIN)                                                                               \
    X(nvrtcGetPTXSize)                                                                             \
    X(nvrtcGetPTX)                                                                                 \
    X(nvrtcGetLTOIRSize)                                                                           \
    X(nvrtcGetLTOIR)

#define PEAL_CUDA_MEMBER_(name) __typeof__(&name) name##_;

/* Members are the names with an underscore at the end, since cuda.h defines many names as macros:
 * driver->cuMemAlloc_ is cuMemAlloc_v2. */
typedef struct peal_cuda_driver {
    PEAL_CUDA_FUNCTIONS(PEAL_CUDA_MEMBER_)
    int version; /* 13000: the driver's CUDA 13.0 */
    int device_count;
} peal_cuda_driver;

typedef struct peal_nvrtc {
    PEAL_NVRTC_FUNCTIONS(PEAL_CUDA_MEMBER_)
    int major, minor;
} peal_nvrtc;

/* The linker of device code. Its types are spelled out here, so that nvJitLink.h is not needed. */
typedef struct peal_jitlink {
    int (*create)(void **handle, uint32_t option_count, const char **options);
    int (*destroy)(void **handle);
    int (*add_data)(void *handle, int kind, const void *data, size_t bytes, const char *name);
    int (*complete)(void *handle);
    int (*cubin_size)(void *handle, size_t *bytes);
    int (*cubin)(void *handle, void *image);
    int (*error_log_size)(void *handle, size_t *bytes);
    int (*error_log)(void *handle, char *log);
    int (*info_log_size)(void *handle, size_t *bytes);
    int (*info_log)(void *handle, char *log);
    int (*ptx_size)(void *handle, size_t *bytes);
    int (*ptx)(void *handle, char *text);
    int (*version_of)(unsigned *major, unsigned *minor);
    unsigned major, minor;
} peal_jitlink;

enum { PEAL_JITLINK_LTOIR = 3, PEAL_JITLINK_ANY = 10 }; /* kinds of data */

/* The driver, initialised, or NULL and why not, in words (static text or good until exit). Opened
 * at the first call, any thread. */
const peal_cuda_driver *peal_cuda_open(const char **reason);
const peal_nvrtc *peal_nvrtc_open(const char **reason);
const peal_jitlink *peal_jitlink_open(const char **reason);
/* "CUDA_ERROR_OUT_OF_MEMORY: out of memory"; never NULL. */
const char *peal_cuda_error(CUresult result, char text[160]);

#endif
#endif

/* The entry points that only record and succeed. They are defined by the names that cuda.h maps to,
 * without its prototypes: a caller's arguments are ignored. */
#include <cuda.h>

#include "tests/standin/emulate.h"
#include "tests/standin/record.h"

#define TEXT_(name) #name
#define TEXT(name)  TEXT_(name)
#define RECORDED(name)                                                                             \
    CUresult standin_##name(void) __asm__(TEXT(name));                                             \
    CUresult standin_##name(void)                                                                  \
    {                                                                                              \
        return standin_call(#name) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;                            \
    }
/* The first argument is what is given back. */
#define ENDED(name, kind)                                                                          \
    CUresult standin_##name(void) __asm__(TEXT(name));                                             \
    CUresult standin_##name(void)                                                                  \
    {                                                                                              \
        if (standin_call(#name))                                                                   \
            return CUDA_ERROR_UNKNOWN;                                                             \
        standin_gone(kind);                                                                        \
        return CUDA_SUCCESS;                                                                       \
    }
/* The first argument gets a new thing, made `from` the second where kernels are emulated, or known
 * by an address of its own. */
#define MADE(name, kind, thing)                                                                    \
    CUresult standin_##name(void **out, const void *from) __asm__(TEXT(name));                     \
    CUresult standin_##name(void **out, const void *from)                                          \
    {                                                                                              \
        static char place;                                                                         \
        (void)from, (void)place;                                                                   \
        if (standin_call(#name))                                                                   \
            return CUDA_ERROR_OUT_OF_MEMORY;                                                       \
        *out = thing;                                                                              \
        standin_made(kind);                                                                        \
        return CUDA_SUCCESS;                                                                       \
    }

RECORDED(cuCtxEnablePeerAccess)
RECORDED(cuStreamGetCaptureInfo)
RECORDED(cuStreamUpdateCaptureDependencies)
RECORDED(cuLaunchHostFunc)
RECORDED(cuEventSynchronize)
RECORDED(cuEventElapsedTime)
RECORDED(cuFuncSetAttribute)
RECORDED(cuGraphGetNodes)
RECORDED(cuGraphNodeGetType)
RECORDED(cuGraphConditionalHandleCreate)
RECORDED(cuGraphUpload)
MADE(cuModuleLoadData, STANDIN_MODULE, emulate_module ? emulate_module(from) : &place)
ENDED(cuModuleUnload, STANDIN_MODULE)
MADE(cuGraphCreate, STANDIN_GRAPH, emulate_graph ? emulate_graph() : &place)
ENDED(cuGraphDestroy, STANDIN_GRAPH)
/* An executable graph is the graph. */
MADE(cuGraphInstantiateWithParams, STANDIN_EXECUTABLE, emulate_graph ? (void *)from : &place)
ENDED(cuGraphExecDestroy, STANDIN_EXECUTABLE)

/* Compiles a unit of a source, and reports the compiler's errors. No other room includes this. */
#ifndef PEAL_CUDA_SOURCE_COMPILE_H
#define PEAL_CUDA_SOURCE_COMPILE_H

#include "backends/cuda/codegen/codegen.h"
#include "backends/cuda/jit/compile.h"

/* A request for an image of `text`, which is a unit of the source; the caller may change it. */
peal_cuda_compile_request peal_cuda_source_request(const peal_cuda_source *source, const char *text,
                                                   int architecture);

/* Compiles it. Errors of the compiler are reported at the tasks and files that they are about. */
peal_status peal_cuda_source_compile(const peal_cuda_source *source,
                                     const peal_cuda_compile_request *request,
                                     peal_cuda_compile_result *out);

#endif

/* Errors of the driver as diagnostics: all files of the backend report them in the same words. */
#include "backends/cuda/gpu/error.h"

#include "backends/cuda/gpu/gpu.h"

static const peal_source nowhere = {0};

peal_status peal_cuda_driver_failed(peal_diagnostics *diagnostics, peal_source source,
                                    CUresult result, const char *call, const char *what)
{
    char text[160];
    return peal_report(diagnostics, PEAL_E_DRIVER_REFUSED, source, NULL, "%s: %s: %s", what, call,
                       peal_cuda_error(result, text));
}

peal_status peal_cuda_interop_failed(peal_diagnostics *diagnostics, const peal_device *device,
                                     CUresult result)
{
    char text[160];
    return peal_report(diagnostics, PEAL_E_STREAM_NOT_USABLE, nowhere,
                       "give a stream of the GPU that this process uses, made in its primary "
                       "context, that is not being captured",
                       "GPU %s, the application's stream or event: %s", device->bus,
                       peal_cuda_error(result, text));
}

/* Errors of the driver as diagnostics. */
#ifndef PEAL_CUDA_ERROR_H
#define PEAL_CUDA_ERROR_H

#include "base/cuda_driver.h"
#include "base/diagnostic.h"

#include <peal/plugin/backend.h>

/* PEAL_E_DRIVER_REFUSED, "WHAT: CALL: CUDA_ERROR_...": the driver's function `call` failed, made
 * for `what`. */
peal_status peal_cuda_driver_failed(peal_diagnostics *diagnostics, peal_source source,
                                    CUresult result, const char *call, const char *what);

/* PEAL_E_STREAM_NOT_USABLE: the application's stream or event cannot be used with the device. */
peal_status peal_cuda_interop_failed(peal_diagnostics *diagnostics, const peal_device *device,
                                     CUresult result);

#endif

/* What suits GPUs, as the scheduler is told. */
#ifndef PEAL_CUDA_TRAITS_H
#define PEAL_CUDA_TRAITS_H

#include <peal/plugin/machine.h>

extern const peal_machine_traits peal_cuda_traits;

#endif

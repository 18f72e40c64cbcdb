/* Prints the units of a source. No other room includes this. */
#ifndef PEAL_CUDA_TRANSLATION_UNIT_H
#define PEAL_CUDA_TRANSLATION_UNIT_H

#include "backends/cuda/codegen/codegen.h"

/* source->text, and communication_free or fused, of the entries and expressions that it has. */
void peal_cuda_translation_units_print(peal_cuda_source *source);

#endif

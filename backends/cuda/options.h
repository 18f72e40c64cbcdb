/* How a plan is driven: the words of `peal run --lower`, "signal=memop,copy=engine,lanes=2", and
 * what a plan takes where they say nothing. */
#ifndef PEAL_CUDA_OPTIONS_H
#define PEAL_CUDA_OPTIONS_H

#include "backends/cuda/codegen/codegen.h"
#include "backends/cuda/lower/plan.h"

/* Sets what the words say, and leaves the rest of *out as it is. False: a word is not understood.
 */
bool peal_cuda_options_parse(const char *text, peal_cuda_options *out);

/* Sets the plan's options, and refuses what its mode or its GPU cannot do. may_ring false: the
 * driver has refused what a stream needs to ring for messages. */
peal_status peal_cuda_options_choose(peal_cuda_plan *plan, bool may_ring);

/* Reports why the plan's stream cannot ring for messages to other hosts (PEAL_E_NO_DOORBELLS). */
peal_status peal_cuda_options_refuse_doorbells(const peal_cuda_plan *plan, const char *why);

/* What the words change in the persistent kernel's text. Words that are not understood change
 * nothing: they are reported when the plan is made. */
peal_cuda_fused_text peal_cuda_options_fused_text(const char *text);

#endif

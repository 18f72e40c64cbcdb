/* `peal plan --emit`. */
#ifndef PEAL_TOOLS_PLAN_EMIT_H
#define PEAL_TOOLS_PLAN_EMIT_H

#include "tools/options.h"

#include <peal/plugin/backend.h>

/* Prints the source that is compiled for the ranks of desc, if one process has them all. */
peal_status plan_emit(const peal_options *options, const peal_backend_desc *desc);

#endif

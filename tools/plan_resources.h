/* `peal plan --resources`. */
#ifndef PEAL_TOOLS_PLAN_RESOURCES_H
#define PEAL_TOOLS_PLAN_RESOURCES_H

#include "tools/options.h"
#include "tools/output.h"

#include <peal/plugin/backend.h>

/* Prints what the kernels of the ranks of desc, which one process has, take of a GPU; or appends it
 * to `list`, if that is not NULL. */
peal_status plan_resources(const peal_options *options, const peal_backend_desc *desc,
                           json_t *list);

#endif

/* Which engine carries messages between hosts, and why not the others: a part of `peal explain`. */
#ifndef PEAL_TOOLS_EXPLAIN_NETWORK_H
#define PEAL_TOOLS_EXPLAIN_NETWORK_H

#include <peal/plugin/machine.h>

#include <jansson.h>

/* What is there is said of this host. */
void network_engines_print(const peal_machine *machine);
void network_engines_add_json(const peal_machine *machine, json_t *object);

#endif

/* What the files with rows of the table write them with. */
#ifndef PEAL_DSL_KEY_ROWS_H
#define PEAL_DSL_KEY_ROWS_H

#include "dsl/keys.h"

/* Of a context: its rows. */
#define KEYS(list) list, (int)(sizeof(list) / sizeof((list)[0]))
/* Of a row: the member that the key fills. */
#define AT(type, member) .at = {offsetof(type, member), sizeof(((type *)NULL)->member)}
/* Of a context: the struct that its keys fill, whose `name` is what the map stands under. */
#define NAMED(type) sizeof(type), .named = {offsetof(type, name), sizeof(const char *)}

/* The contexts before PEAL_CONTEXT_SPEC (machine_keys.c). */
extern const peal_context peal_machine_contexts[PEAL_CONTEXT_SPEC];
/* Those of statements (statement_keys.c). */
extern const peal_context peal_statement_contexts[PEAL_CONTEXT_COUNT - PEAL_CONTEXT_TASK];

#endif

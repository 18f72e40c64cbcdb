/* Exchanges of halos that nobody reads. */
#include "scheduler/halos/halos.h"
#include "scheduler/messages/messages.h"

#include <stdio.h>

static bool has_halo(const rank_view *v, int array)
{
    return !peal_box_contains(&v->layout[array].own, &v->layout[array].stored);
}

/* The first statement behind the exchange, or in the next round, that reads what was exchanged, and
 * by which name it does so after the swaps between them; NULL: none. */
static const peal_statement *next_reader(const common_input *c, int exchange, int array,
                                         const peal_access **out)
{
    int count = c->graph->statement_count;
    for (int i = exchange + 1; i < exchange + count; i++) {
        const peal_statement *s = c->statement[i % count];
        if (s && s->kind == PEAL_STATEMENT_SWAP) {
            int first = s->u.swap.first, second = s->u.swap.second;
            array = array == first ? second : array == second ? first : array;
        }
        for (int k = 0; s && s->kind == PEAL_STATEMENT_TASK && k < s->u.task.access_count; k++) {
            *out = &s->u.task.access[k];
            if ((*out)->array == array && (*out)->mode != PEAL_WRITE_ACCESS)
                return s;
        }
    }
    return NULL;
}

static void warn_of_one(const common_input *c, const pass_context *pass, int exchange,
                        const peal_exchange_item *item)
{
    const peal_access *access;
    const peal_statement *reader = next_reader(c, exchange, item->array, &access);
    char hint[400];
    if (reader)
        snprintf(hint, sizeof(hint),
                 "if `%.80s` (line %d) needs it: %s: {%.80s: {star: 1}}; else leave it out",
                 reader->name, reader->source.line,
                 access->mode == PEAL_READ_ACCESS ? "read" : "update",
                 array_name(c, access->array));
    else
        snprintf(hint, sizeof(hint), "no task reads `%.80s` at all: leave it out",
                 array_name(c, item->array));
    peal_warn(pass->diagnostics, PEAL_E_UNREAD_EXCHANGE, item->source, hint,
              "no task reads the halo of `%s` that is exchanged here", array_name(c, item->array));
}

void begin_halo_readers(const common_input *c, const pass_context *pass, halo_readers *out)
{
    int arrays = c->graph->array_count;
    *out = (halo_readers){.has = PEAL_ARENA_ARRAY(pass->arena, bool, arrays + 1),
                          .read = PEAL_ARENA_ARRAY(pass->arena, bool, arrays + 1)};
}

void note_halo_readers(const common_input *c, const rank_view *v, halo_readers *readers)
{
    for (int a = 0; a < c->graph->array_count; a++)
        if (!readers->read[a] && has_halo(v, a)) {
            readers->has[a] = true;
            readers->read[a] = halo_is_read(c, v, a);
        }
}

/* An exchange none of whose halos any task reads, nor any message. */
static void warn_of_unread(const common_input *c, const pass_context *pass,
                           const halo_readers *readers)
{
    for (int i = 0; i < c->graph->statement_count; i++) {
        const peal_statement *s = c->statement[i];
        if (!s || s->kind != PEAL_STATEMENT_EXCHANGE || peal_is_copy(s))
            continue;
        for (int k = 0; k < s->u.exchange.item_count; k++) {
            int array = s->u.exchange.item[k].array;
            if (readers->has[array] && !readers->read[array])
                warn_of_one(c, pass, i, &s->u.exchange.item[k]);
        }
    }
}

void warn_of_halos(const common_input *c, const pass_context *pass, const halo_readers *readers)
{
    bool any_task = false;
    for (int i = 0; i < c->graph->statement_count; i++)
        any_task |= c->statement[i] && c->statement[i]->kind == PEAL_STATEMENT_TASK;
    if (any_task) /* an exchange alone is read by the application */
        warn_of_unread(c, pass, readers);
}

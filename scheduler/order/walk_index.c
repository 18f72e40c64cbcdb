/* Where the nodes of a rank stand in its walk, and what uses an array there. Both ends of each
 * message ask, so that what a message costs must not grow with the number of the others. */
#include "scheduler/order/walk_index.h"
#include "base/sorted.h"

enum { MOST_PERIOD = 12 };

struct walk_index {
    node_position *position; /* by message */
    array_use *use, *swap;
    int use_count, use_capacity, swap_count, swap_capacity, body_count;
    int *rotation; /* by body: 1 + what rotation_of() says; 0: not asked for */
};

static int group_number(const common_input *c, int array)
{
    return c->swap_group[array] >= 0 ? c->swap_group[array] : array;
}

static void add_use(const common_input *c, const pass_context *pass, walk_index *table, int body,
                    int position, const node *n)
{
    for (int i = 0; i < n->touch_count; i++) {
        int array = n->touch[i].array;
        if (array < 0 || array >= c->graph->array_count)
            continue;
        PEAL_ARENA_ROOM(pass->arena, table->use, table->use_count, table->use_capacity);
        table->use[table->use_count++] = (array_use){group_number(c, array), body, position, n};
    }
    if (n->kind != NODE_SWAP)
        return;
    PEAL_ARENA_ROOM(pass->arena, table->swap, table->swap_count, table->swap_capacity);
    table->swap[table->swap_count++] = (array_use){group_number(c, n->first), body, position, n};
}

/* Notes where the messages of a body and of those within stand. */
static void note_body(const common_input *c, const pass_context *pass, walk_index *table,
                      const node_list *body, const node_position *where)
{
    node_position here = *where;
    here.body = body;
    here.number = where->section == LOOP_OUTER ? table->body_count++ : -1;
    for (int i = 0; i < body->count; i++) {
        const node *n = body->item[i];
        here.position = i;
        if (here.number >= 0)
            add_use(c, pass, table, here.number, i, n);
        if (n->kind == NODE_SEND || n->kind == NODE_RECV)
            table->position[n->message] = here;
        node_position within = here;
        within.in_if = n->kind == NODE_IF;
        within.loop = n->kind == NODE_LOOP ? n->statement : here.loop;
        if (n->kind == NODE_IF || n->kind == NODE_LOOP)
            note_body(c, pass, table, &n->body, &within);
    }
}

static int by_array(const void *left, const void *right)
{
    const array_use *a = left, *b = right;
    if (a->array != b->array)
        return a->array < b->array ? -1 : 1;
    if (a->body != b->body)
        return a->body < b->body ? -1 : 1;
    return a->position < b->position ? -1 : a->position > b->position;
}

/* A node that touches an array several times uses it once. */
static int sort_uses(array_use *use, int count)
{
    return peal_sort_unique(use, count, sizeof(*use), by_array);
}

static walk_index *walk_index_of(const common_input *c, const pass_context *pass, rank_view *v)
{
    if (v->walk)
        return v->walk;
    static const int names[] = {LOOP_SETUP, LOOP_OUTER, LOOP_FINISH};
    const node_list *sections[] = {&v->setup, &v->step, &v->finish};
    walk_index *table = PEAL_ARENA_NEW(pass->arena, walk_index);
    table->position = PEAL_ARENA_ARRAY(pass->arena, node_position, v->message_count);
    for (int i = 0; i < 3; i++)
        note_body(c, pass, table, sections[i],
                  &(node_position){.loop = names[i], .section = names[i]});
    table->use_count = sort_uses(table->use, table->use_count);
    table->swap_count = sort_uses(table->swap, table->swap_count);
    table->rotation = PEAL_ARENA_ARRAY(pass->arena, int, table->body_count + 1);
    return v->walk = table;
}

const node_position *node_position_of(const common_input *c, const pass_context *pass, rank_view *v,
                                      int message)
{
    return &walk_index_of(c, pass, v)->position[message];
}

/* The first entry that is not before a body. */
static int find_use(const array_use *use, int count, int array, int body)
{
    array_use key = {.array = array, .body = body};
    return peal_sorted_first(&key, use, count, sizeof(*use), by_array);
}

static const array_use *uses_between(const array_use *use, int all, int array, int first, int end,
                                     int *count)
{
    int low = find_use(use, all, array, first);
    *count = find_use(use, all, array, end) - low;
    return use ? use + low : NULL;
}

const array_use *uses_of(const common_input *c, const pass_context *pass, rank_view *v, int array,
                         int *count)
{
    const walk_index *table = walk_index_of(c, pass, v);
    return uses_between(table->use, table->use_count, group_number(c, array), 0, table->body_count,
                        count);
}

const array_use *uses_in(const common_input *c, const pass_context *pass, rank_view *v, int array,
                         int body, int *count)
{
    const walk_index *table = walk_index_of(c, pass, v);
    return uses_between(table->use, table->use_count, group_number(c, array), body, body + 1,
                        count);
}

const array_use *swaps_in(const common_input *c, const pass_context *pass, rank_view *v, int array,
                          int body, int *count)
{
    const walk_index *table = walk_index_of(c, pass, v);
    return uses_between(table->swap, table->swap_count, group_number(c, array), body, body + 1,
                        count);
}

static void apply_swaps(const node_list *body, int *binding)
{
    for (int i = 0; i < body->count; i++)
        if (body->item[i]->kind == NODE_SWAP) {
            int held = binding[body->item[i]->first];
            binding[body->item[i]->first] = binding[body->item[i]->second];
            binding[body->item[i]->second] = held;
        }
}

static int find_rotation(const common_input *c, const pass_context *pass, const node_list *body)
{
    int arrays = c->graph->array_count;
    int *binding = PEAL_ARENA_ARRAY(pass->arena, int, arrays);
    for (int i = 0; i < arrays; i++)
        binding[i] = i;
    for (int period = 1; period <= MOST_PERIOD; period++) {
        bool identity = true;
        apply_swaps(body, binding);
        for (int i = 0; i < arrays; i++)
            identity &= binding[i] == i;
        if (identity)
            return period;
    }
    return 0;
}

int rotation_of(const common_input *c, const pass_context *pass, rank_view *v,
                const node_list *body, int number)
{
    walk_index *table = walk_index_of(c, pass, v);
    if (!table->rotation[number])
        table->rotation[number] = 1 + find_rotation(c, pass, body);
    return table->rotation[number] - 1;
}

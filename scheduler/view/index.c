/* Tables of a graph's statements and arrays by number, and the arrays that nobody declares but
 * statements need. */
#include "scheduler/view/compilation.h"

int array_total(const common_input *c)
{
    return c->graph->array_count + c->hidden_count;
}

const char *array_name(const common_input *c, int array)
{
    int graphs = c->graph->array_count;
    return array < graphs ? c->graph->arrays[array].name : c->hidden[array - graphs].name;
}

peal_type array_type(const common_input *c, int array)
{
    int graphs = c->graph->array_count;
    return array < graphs ? c->graph->arrays[array].type : c->hidden[array - graphs].type;
}

bool is_plain_buffer(const common_input *c, int array)
{
    const peal_array *a = &c->graph->arrays[array];
    return a->kind == PEAL_ARRAY_BUFFER && a->points.kind == PEAL_POINTS_ONE;
}

static bool communicates(const peal_statement *s)
{
    return s->kind == PEAL_STATEMENT_EXCHANGE || s->kind == PEAL_STATEMENT_REDUCE ||
           s->kind == PEAL_STATEMENT_SEND || s->kind == PEAL_STATEMENT_RECV;
}

bool differs_by_rank_and_counter(const peal_statement *s)
{
    return s->when && communicates(s) &&
           peal_expr_uses(s->when) == (PEAL_USES_RANK | PEAL_USES_COUNTER);
}

bool has_messages(const peal_statement *s)
{
    if (s->kind == PEAL_STATEMENT_REPEAT)
        for (int i = 0; i < s->u.loop.body.count; i++)
            if (has_messages(s->u.loop.body.statement[i]))
                return true;
    return communicates(s);
}

static void add_hidden(common_input *c, const pass_context *pass, const peal_statement *s, int item,
                       const peal_reduction *r, const char *what)
{
    PEAL_ARENA_ROOM(pass->arena, c->hidden, c->hidden_count, c->hidden_capacity);
    const peal_array *array = &c->graph->arrays[r->array];
    if (c->statement_hidden[s->id] < 0)
        c->statement_hidden[s->id] = c->graph->array_count + c->hidden_count;
    c->hidden[c->hidden_count++] =
        (hidden_array){peal_arena_print(pass->arena, "%s.%s@%d", array->name, what, s->id), s->id,
                       item, array->type};
}

static void join_swap_groups(common_input *c, int first, int second)
{
    int a = c->swap_group[first], b = c->swap_group[second];
    int group = a >= 0 ? a : b >= 0 ? b : first;
    c->swap_group[first] = c->swap_group[second] = group;
    for (int i = 0; i < c->graph->array_count; i++)
        if (c->swap_group[i] >= 0 && (c->swap_group[i] == a || c->swap_group[i] == b))
            c->swap_group[i] = group;
}

/* Tables by statement: itself, its loop, its hidden arrays; groups of arrays that swaps permute. */
static void index_body(common_input *c, const pass_context *pass, const peal_body *body, int loop,
                       int section)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        c->statement[s->id] = s;
        c->statement_loop[s->id] = loop;
        c->statement_section[s->id] = section;
        for (int k = 0; k < s->after_count; k++)
            c->statement_awaited[s->after[k]] = true;
        if (s->kind == PEAL_STATEMENT_TASK)
            for (int k = 0; k < s->u.task.reduction_count; k++)
                add_hidden(c, pass, s, k, &s->u.task.reduction[k], "partials");
        if (s->kind == PEAL_STATEMENT_REDUCE)
            for (int k = 0; k < s->u.reduce.item_count; k++)
                add_hidden(c, pass, s, k, &s->u.reduce.item[k], "gathered");
        if (s->kind == PEAL_STATEMENT_SWAP) {
            PEAL_ARENA_ROOM(pass->arena, c->swap, c->swap_count, c->swap_capacity);
            c->swap[c->swap_count++] = s;
            join_swap_groups(c, s->u.swap.first, s->u.swap.second);
        }
        if (differs_by_rank_and_counter(s)) {
            PEAL_ARENA_ROOM(pass->arena, c->mixed, c->mixed_count, c->mixed_capacity);
            c->mixed[c->mixed_count++] = s;
        }
        if (s->kind == PEAL_STATEMENT_REPEAT)
            index_body(c, pass, &s->u.loop.body, s->id, section);
    }
}

void index_graph(common_input *c, const pass_context *pass)
{
    const peal_graph_data *g = c->graph;
    c->statement = PEAL_ARENA_ARRAY(pass->arena, const peal_statement *, g->statement_count + 1);
    c->statement_loop = PEAL_ARENA_ARRAY(pass->arena, int, g->statement_count + 1);
    c->statement_section = PEAL_ARENA_ARRAY(pass->arena, int, g->statement_count + 1);
    c->statement_awaited = PEAL_ARENA_ARRAY(pass->arena, bool, g->statement_count + 1);
    c->statement_hidden = PEAL_ARENA_ARRAY(pass->arena, int, g->statement_count + 1);
    c->swap_group = PEAL_ARENA_ARRAY(pass->arena, int, g->array_count + 1);
    c->leads = (message_leads){PEAL_ARENA_ARRAY(pass->arena, int, g->statement_count + 1),
                               PEAL_ARENA_ARRAY(pass->arena, int, g->statement_count + 1),
                               PEAL_ARENA_ARRAY(pass->arena, int, g->statement_count + 1)};
    for (int i = 0; i < g->statement_count; i++) {
        c->statement_hidden[i] = c->leads.receive_above[i] = -1;
        c->leads.ahead[i] = 1;
    }
    for (int i = 0; i < g->array_count; i++)
        c->swap_group[i] = -1;
    index_body(c, pass, &g->setup, LOOP_SETUP, LOOP_SETUP);
    index_body(c, pass, &g->step.body, LOOP_OUTER, LOOP_OUTER);
    index_body(c, pass, &g->finish, LOOP_FINISH, LOOP_FINISH);
}

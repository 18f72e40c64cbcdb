/* When the reductions of a task are needed: under which static condition anybody reads what they
 * compute; and whether a reduction over ranks is needed for reports alone.
 *
 * Conservative: always, unless every reader stands after the task in the same body, under a static
 * `when`. */
#include "scheduler/tasks/tasks.h"

typedef struct element_search {
    int array;
    bool found;
} element_search;

static void match_element(void *user, int array)
{
    element_search *search = user;
    search->found |= array == search->array;
}

void statement_elements(const peal_statement *s, void (*visit)(void *user, int array), void *user)
{
    peal_expr_elements(s->when, visit, user);
    switch (s->kind) {
    case PEAL_STATEMENT_TASK:
        peal_expr_elements(s->u.task.box.count, visit, user);
        for (int i = 0; i < s->u.task.argument_count; i++)
            peal_expr_elements(s->u.task.argument[i], visit, user);
        break;
    case PEAL_STATEMENT_SET:
        peal_expr_elements(s->u.set.value, visit, user);
        break;
    case PEAL_STATEMENT_PRINT:
        for (int i = 0; i < s->u.print.item_count; i++)
            peal_expr_elements(s->u.print.item[i].value, visit, user);
        break;
    case PEAL_STATEMENT_REPEAT:
        peal_expr_elements(s->u.loop.until, visit, user);
        break;
    default:
        break;
    }
}

bool statement_reads(const peal_statement *s, int array)
{
    element_search search = {array, false};
    statement_elements(s, match_element, &search);
    if (search.found)
        return true;
    switch (s->kind) {
    case PEAL_STATEMENT_TASK:
        for (int i = 0; i < s->u.task.access_count; i++)
            if (s->u.task.access[i].array == array && s->u.task.access[i].mode != PEAL_WRITE_ACCESS)
                return true;
        return false;
    case PEAL_STATEMENT_SEND:
        return s->u.message.points.array == array || s->u.message.count == array;
    case PEAL_STATEMENT_REDUCE:
        for (int i = 0; i < s->u.reduce.item_count; i++)
            if (s->u.reduce.item[i].array == array)
                return true;
        return false;
    case PEAL_STATEMENT_SAVE:
        return s->u.file.array == array;
    case PEAL_STATEMENT_EXCHANGE:
        for (int i = 0; i < s->u.exchange.item_count; i++)
            if (s->u.exchange.item[i].into >= 0 && s->u.exchange.item[i].array == array)
                return true;
        return false;
    default:
        return false;
    }
}

typedef struct reader_search {
    const common_input *c;
    const pass_context *pass;
    int array;
    int loop;                   /* body in which readers may stand */
    int after;                  /* and after this statement */
    bool always;                /* some reader stands elsewhere, or without a static condition */
    const peal_expr *condition; /* of all readers so far */
} reader_search;

static const peal_expr *either(const pass_context *pass, const peal_expr *a, const peal_expr *b)
{
    if (!a || a == b || (a->text && b->text && !__builtin_strcmp(a->text, b->text)))
        return b;
    const peal_expr **operand = PEAL_ARENA_ARRAY(pass->arena, const peal_expr *, 2);
    operand[0] = a;
    operand[1] = b;
    peal_expr *out = PEAL_ARENA_NEW(pass->arena, peal_expr);
    *out = (peal_expr){.kind = PEAL_EXPR_OPERATOR,
                       .op = PEAL_OPERATOR_OR,
                       .operand_count = 2,
                       .operand = operand,
                       .source = a->source};
    return out;
}

static void search_readers(reader_search *r)
{
    for (int i = 0; i < r->c->graph->statement_count; i++) {
        const peal_statement *s = r->c->statement[i];
        if (!s || !statement_reads(s, r->array))
            continue;
        bool follows =
            r->c->statement_loop[i] == r->loop && i > r->after && s->kind != PEAL_STATEMENT_REPEAT;
        if (!follows || !s->when || peal_expr_uses(s->when) & (PEAL_USES_ELEMENT | PEAL_USES_RANK))
            r->always = true;
        else
            r->condition = either(r->pass, r->condition, s->when);
    }
    element_search until = {r->array, false};
    peal_expr_elements(r->c->graph->step.until, match_element, &until);
    r->always |= r->c->swap_group[r->array] >= 0; /* read under another name */
    r->always |= until.found || r->c->graph->arrays[r->array].keep;
}

static const peal_expr never = {.kind = PEAL_EXPR_CONSTANT,
                                .value = {.kind = PEAL_BOOLEAN},
                                .text = "false"};

bool array_is_reported(const common_input *c, int array)
{
    element_search acts = {array, c->swap_group[array] >= 0};

    peal_expr_elements(c->graph->step.until, match_element, &acts);
    for (int i = 0; i < c->graph->statement_count && !acts.found; i++) {
        const peal_statement *s = c->statement[i];
        if (!s || c->statement_loop[i] == LOOP_FINISH)
            continue;
        if (s->kind == PEAL_STATEMENT_PRINT || s->kind == PEAL_STATEMENT_REDUCE)
            peal_expr_elements(s->when, match_element, &acts);
        else
            acts.found = statement_reads(s, array);
    }
    return !acts.found;
}

bool reduction_is_reported(const common_input *c, const peal_statement *s)
{
    if (s->kind != PEAL_STATEMENT_REDUCE || c->statement_loop[s->id] != LOOP_OUTER)
        return false;
    for (int i = 0; i < s->u.reduce.item_count; i++)
        if (!array_is_reported(c, s->u.reduce.item[i].array))
            return false;
    return true;
}

const peal_expr *reduction_needed(const common_input *c, const pass_context *pass,
                                  const peal_statement *s)
{
    const peal_expr *condition = NULL;
    for (int i = 0; i < s->u.task.reduction_count; i++) {
        reader_search r = {.c = c,
                           .pass = pass,
                           .array = s->u.task.reduction[i].array,
                           .loop = c->statement_loop[s->id],
                           .after = s->id,
                           .condition = condition};
        search_readers(&r);
        if (r.always)
            return NULL;
        condition = r.condition;
    }
    return condition ? condition : &never;
}

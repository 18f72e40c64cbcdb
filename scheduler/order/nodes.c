/* Stage 4, nodes: the statements of a rank become launches, sends, receives, copies and regions,
 * with what they touch. walk_order.c then puts each body into walk order. */
#include "scheduler/order/nodes.h"
#include "scheduler/conditions/conditions.h"
#include "scheduler/tasks/tasks.h"

#include <string.h>

static node *new_node(const pass_context *pass, node_kind kind, const peal_statement *s, int event)
{
    node *n = PEAL_ARENA_NEW(pass->arena, node);
    *n = (node){.kind = kind,
                .statement = s ? s->id : -1,
                .event = event,
                .task = -1,
                .message = -1,
                .loop = -1,
                .decision = -1};
    if (s) {
        n->label = s->name;
        n->source = s->source;
    }
    return n;
}

static node *add_launch(const common_input *c, const pass_context *pass, const rank_view *v,
                        node_list *list, const peal_statement *s, int task, int event)
{
    const peal_schedule_task *t = &v->task[task];
    if (t->tile_count == 0)
        return NULL;
    node *n = new_node(pass, NODE_LAUNCH, s, event);
    n->task = task;
    n->label = t->name;
    n->source = t->source;
    n->range = PEAL_ARENA_ARRAY(pass->arena, peal_tile_range, t->tiling_count);
    n->range_count = t->tiling_count;
    for (int i = 0; i < t->tiling_count; i++) {
        n->range[i].tiling = i;
        memcpy(n->range[i].hi, t->tiling[i].count, sizeof(n->range[i].hi));
    }
    touch_launch(c, pass, v, n);
    add_node(pass, list, n);
    return n;
}

static void touch_children(const pass_context *pass, node *n)
{
    for (int i = 0; i < n->body.count; i++) {
        const node *child = n->body.item[i];
        for (int k = 0; k < child->touch_count; k++) {
            touch t = child->touch[k];
            t.tiling = -1;
            t.per_tile = 0;
            add_touch(pass, n, t);
        }
        n->sends |= child->sends || child->kind == NODE_SEND;
        n->communicates |= child->communicates || child->kind == NODE_RECV;
    }
    if (n->kind == NODE_LOOP) /* its later messages wait for credits of its first */
        n->communicates |= n->sends;
}

static void add_messages(const pass_context *pass, const rank_view *v, node_list *list,
                         const peal_statement *s, int phase, bool outgoing, int event)
{
    for (int i = v->first_of[s->id]; i >= 0; i = v->next_of[i]) {
        const rank_message *m = &v->message[i];
        if (m->phase != phase || m->outgoing != outgoing)
            continue;
        node *n = new_node(pass, outgoing ? NODE_SEND : NODE_RECV, s, event);
        n->message = i;
        n->touch = PEAL_ARENA_ARRAY(pass->arena, touch, m->piece_count);
        n->touch_capacity = m->piece_count;
        for (int k = 0; k < m->piece_count; k++) {
            const peal_piece *p = &m->piece[k];
            peal_box target = {.axis_count = v->layout[p->target_array].stored.axis_count};
            for (int a = 0; a < PEAL_AXES; a++) {
                target.lo[a] = p->target[a];
                target.hi[a] = p->target[a] + p->target_extent[a];
            }
            add_touch(pass, n,
                      outgoing ? fixed_touch(p->array, false, &p->source)
                               : fixed_touch(p->target_array, true, &target));
        }
        add_node(pass, list, n);
    }
}

static void add_local(const pass_context *pass, const rank_view *v, node_list *list,
                      const peal_statement *s, int event)
{
    if (!v->local_count[s->id])
        return;
    node *n = new_node(pass, NODE_LOCAL, s, event);
    n->piece = v->local[s->id];
    n->piece_count = v->local_count[s->id];
    for (int i = 0; i < n->piece_count; i++) {
        const peal_piece *p = &n->piece[i];
        peal_box target = p->source;
        for (int a = 0; a < PEAL_AXES; a++) {
            target.lo[a] = p->target[a];
            target.hi[a] = p->target[a] + p->target_extent[a];
        }
        add_touch(pass, n, fixed_touch(p->array, false, &p->source));
        add_touch(pass, n, fixed_touch(p->target_array, true, &target));
    }
    add_node(pass, list, n);
}

static void add_folds(const common_input *c, const pass_context *pass, const rank_view *v,
                      node_list *list, const peal_statement *s, int task)
{
    int count = v->task[task].reduction_count, event = EVENTS * s->id + 1;
    const peal_expr *needed = v->task[task].needed;
    node_list *into = list;
    node *region = NULL;
    if (needed && needed->kind == PEAL_EXPR_CONSTANT)
        return; /* nobody reads them */
    if (needed && count) {
        region = new_node(pass, NODE_IF, s, event);
        region->condition = needed;
        into = &region->body;
    }
    for (int i = 0; i < count; i++)
        add_launch(c, pass, v, into, s, task + 1 + i, event);
    if (region) {
        touch_children(pass, region);
        add_node(pass, list, region);
    }
}

static void add_combines(const common_input *c, const pass_context *pass, const rank_view *v,
                         node_list *list, const peal_statement *s, int level, int event)
{
    for (int i = 0; i < s->u.reduce.item_count; i++) {
        int task = v->statement[s->id].task + level * s->u.reduce.item_count + i;
        if (v->task[task].hi > v->task[task].lo)
            add_launch(c, pass, v, list, s, task, event);
    }
}

static bool folds_on(const rank_view *v, const peal_statement *s, int level)
{
    int items = s->u.reduce.item_count;
    const peal_schedule_task *t = &v->task[v->statement[s->id].task + level * items];
    for (int i = 0; i < items; i++)
        if (t[i].hi > t[i].lo)
            return true;
    return false;
}

/* A reduction up a tree, level by level, and down again. */
static void add_tree(const common_input *c, const pass_context *pass, const rank_view *v,
                     node_list *list, const peal_statement *s)
{
    int levels = v->statement[s->id].levels, event = EVENTS * s->id;
    for (int level = 0; level < levels; level++) {
        if (folds_on(v, s, level))
            add_local(pass, v, list, s, event + level);
        add_messages(pass, v, list, s, level, true, event + level);
        add_messages(pass, v, list, s, level, false, event + level + 1);
        add_combines(c, pass, v, list, s, level, event + level + 1);
    }
    for (int phase = levels; phase < 2 * levels; phase++) {
        add_messages(pass, v, list, s, phase, true, event + phase);
        add_messages(pass, v, list, s, phase, false, event + phase + 1);
    }
}

static void add_reduction(const common_input *c, const pass_context *pass, const rank_view *v,
                          node_list *list, const peal_statement *s)
{
    int event = EVENTS * s->id;
    if (v->statement[s->id].levels) {
        add_tree(c, pass, v, list, s);
        return;
    }
    add_local(pass, v, list, s, event);
    add_messages(pass, v, list, s, 0, true, event);
    add_messages(pass, v, list, s, 0, false, event + 1);
    add_combines(c, pass, v, list, s, 0, event + 1);
    add_messages(pass, v, list, s, 1, true, event + 1);
    add_messages(pass, v, list, s, 1, false, event + 2);
}

static void add_swap(const pass_context *pass, const rank_view *v, node_list *list,
                     const peal_statement *s)
{
    node *n = new_node(pass, NODE_SWAP, s, EVENTS * s->id);
    n->first = s->u.swap.first;
    n->second = s->u.swap.second;
    add_touch(pass, n, fixed_touch(n->first, true, &v->layout[n->first].stored));
    add_touch(pass, n, fixed_touch(n->second, true, &v->layout[n->second].stored));
    add_node(pass, list, n);
}

/* Of a graph nothing is done once an `until` has come true: it is decided at the end. */
static int add_decision(const common_input *c, const pass_context *pass, rank_view *v,
                        node_list *list, const peal_statement *s, const peal_expr *value,
                        const char *name, int event)
{
    int task = add_task(c, pass, v, s, PEAL_TASK_DECIDE);
    v->task[task].value = value;
    v->task[task].name = name;
    v->task[task].source = value->source;
    v->task[task].decision = v->decision_count++;
    node *launch = add_launch(c, pass, v, list, s, task, event);
    launch->last = peal_is_repeated(c) && (!s || value != s->when);
    add_touch(pass, launch, virtual_touch(decision_array(v->task[task].decision), true));
    return v->task[task].decision;
}

static void add_loop(peal_schedule_loop *out, const peal_loop *loop)
{
    *out = (peal_schedule_loop){.depth = loop->depth,
                                .repeat = loop->repeat,
                                .until = loop->until != NULL,
                                .decision = -1,
                                .every = loop->every,
                                .lag = loop->lag,
                                .counter = loop->counter};
}

static void make_body(const common_input *c, const pass_context *pass, rank_view *v,
                      const peal_body *body, node_list *list);

static void add_repeat(const common_input *c, const pass_context *pass, rank_view *v,
                       node_list *list, const peal_statement *s)
{
    PEAL_ARENA_ROOM(pass->arena, v->loop, v->loop_count, v->loop_capacity);
    node *n = new_node(pass, NODE_LOOP, s, EVENTS * s->id);
    int index = n->loop = v->loop_count++;
    add_loop(&v->loop[index], &s->u.loop);
    make_body(c, pass, v, &s->u.loop.body, &n->body);
    if (s->u.loop.until)
        v->loop[index].decision =
            add_decision(c, pass, v, &n->body, s, s->u.loop.until, "until", EVENTS * s->id + 3);
    order_body(c, pass, v, &n->body);
    touch_children(pass, n);
    add_node(pass, list, n);
}

static void make_statement(const common_input *c, const pass_context *pass, rank_view *v,
                           node_list *list, const peal_statement *s)
{
    int event = EVENTS * s->id, task = v->statement[s->id].task;
    switch (s->kind) {
    case PEAL_STATEMENT_TASK:
        add_launch(c, pass, v, list, s, task, event);
        add_folds(c, pass, v, list, s, task);
        break;
    case PEAL_STATEMENT_EXCHANGE:
        add_messages(pass, v, list, s, 0, true, event);
        add_local(pass, v, list, s, event);
        add_messages(pass, v, list, s, 0, false, event + 1);
        break;
    case PEAL_STATEMENT_SEND:
    case PEAL_STATEMENT_RECV:
        add_messages(pass, v, list, s, 0, s->kind == PEAL_STATEMENT_SEND, event);
        break;
    case PEAL_STATEMENT_REDUCE:
        add_reduction(c, pass, v, list, s);
        break;
    case PEAL_STATEMENT_SWAP:
        add_swap(pass, v, list, s);
        break;
    case PEAL_STATEMENT_REPEAT:
        add_repeat(c, pass, v, list, s);
        break;
    case PEAL_STATEMENT_PRINT:
        if (v->rank == 0)
            add_launch(c, pass, v, list, s, task, event);
        break;
    default:
        add_launch(c, pass, v, list, s, task, event);
        break;
    }
}

/* `after`: the statement's nodes read what those of the named statements write; those within a
 * region too, since only they become ops that wait. */
static void touch_after(const common_input *c, const pass_context *pass, const peal_statement *s,
                        node_list *list, int first)
{
    for (int i = first; i < list->count; i++) {
        add_touch(pass, list->item[i], virtual_touch(after_array(c, s->id), true));
        for (int k = 0; k < s->after_count; k++)
            add_touch(pass, list->item[i], virtual_touch(after_array(c, s->after[k]), false));
        touch_after(c, pass, s, &list->item[i]->body, 0);
    }
}

static void make_body(const common_input *c, const pass_context *pass, rank_view *v,
                      const peal_body *body, node_list *list)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        int first = list->count;
        if (!is_active(v, s))
            continue;
        unsigned uses = s->when ? peal_expr_uses(s->when) : 0;
        if (!(uses & (PEAL_USES_COUNTER | PEAL_USES_ELEMENT)))
            make_statement(c, pass, v, list, s);
        else {
            node *region = new_node(pass, NODE_IF, s, EVENTS * s->id);
            if (uses & PEAL_USES_ELEMENT)
                region->decision =
                    add_decision(c, pass, v, list, s, s->when, "when", EVENTS * s->id);
            else
                region->condition = s->when;
            make_statement(c, pass, v, &region->body, s);
            if (!region->body.count)
                continue;
            order_body(c, pass, v, &region->body);
            touch_children(pass, region);
            if (region->decision >= 0)
                add_touch(pass, region, virtual_touch(decision_array(region->decision), false));
            add_node(pass, list, region);
        }
        if (s->after_count || c->statement_awaited[s->id])
            touch_after(c, pass, s, list, first);
    }
}

/* Lists the messages of each statement. */
static void list_messages(const common_input *c, const pass_context *pass, rank_view *v)
{
    v->first_of = PEAL_ARENA_ARRAY(pass->arena, int, c->graph->statement_count + 1);
    v->next_of = PEAL_ARENA_ARRAY(pass->arena, int, v->message_count + 1);
    for (int i = 0; i < c->graph->statement_count; i++)
        v->first_of[i] = -1;
    for (int i = v->message_count - 1; i >= 0; i--) {
        int *first = &v->first_of[v->message[i].own_statement];
        v->next_of[i] = *first;
        *first = i;
    }
}

peal_status make_nodes(const common_input *c, const pass_context *pass, rank_view *v)
{
    list_messages(c, pass, v);
    make_body(c, pass, v, &c->graph->setup, &v->setup);
    make_body(c, pass, v, &c->graph->step.body, &v->step);
    add_loop(&v->outer, &c->graph->step);
    if (c->graph->step.until)
        v->outer.decision = add_decision(c, pass, v, &v->step, NULL, c->graph->step.until, "until",
                                         EVENTS * c->graph->statement_count);
    make_body(c, pass, v, &c->graph->finish, &v->finish);
    order_body(c, pass, v, &v->setup);
    order_body(c, pass, v, &v->step);
    order_body(c, pass, v, &v->finish);
    return PEAL_STATUS_OK;
}

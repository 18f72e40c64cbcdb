/* The walk order of a body: a linear extension of program order's dependences in which border tiles
 * and sends go first, then everything that needs no message, then receives.
 *
 * Why this cannot deadlock: within a body, sends only move up and receives only move down relative
 * to each other and keep their own order, so a receive still comes after every send that precedes
 * it in the program; the graph of waits is a subset of the program's, which deadlock.c has checked.
 * Waits for credits reach back to earlier iterations of the body; a loop that sends waits for
 * credits of its own iterations, so it counts as a receive and stays in program order with them.
 *
 * In mode fused what an exchange copies within the rank goes before a FOLD, too, below a condition
 * or not: on a GPU it goes with the tiles that have written it, if nothing is between. */
#include "scheduler/order/nodes.h"

static int urgency(const node *n)
{
    if (n->kind == NODE_SEND || (n->kind == NODE_LAUNCH && n->border))
        return 0;
    if (n->kind == NODE_RECV || n->communicates)
        return 2;
    return 1;
}

/* A FOLD, or nothing but FOLDs below a condition. */
static bool is_fold(const rank_view *v, const node *n)
{
    if (n->kind == NODE_LAUNCH)
        return v->task[n->task].kind == PEAL_TASK_FOLD;
    for (int i = 0; i < n->body.count; i++)
        if (!is_fold(v, n->body.item[i]))
            return false;
    return n->kind == NODE_IF && n->body.count > 0;
}

/* Numbers, the smallest first. */
typedef struct heap {
    int *item;
    int count;
} heap;

static void push(heap *h, int number)
{
    int at = h->count++;
    for (; at > 0 && h->item[(at - 1) / 2] > number; at = (at - 1) / 2)
        h->item[at] = h->item[(at - 1) / 2];
    h->item[at] = number;
}

static void pop(heap *h)
{
    int number = h->item[--h->count], at = 0;
    for (int child; (child = 2 * at + 1) < h->count; at = child) {
        child += child + 1 < h->count && h->item[child + 1] < h->item[child];
        if (h->item[child] >= number)
            break;
        h->item[at] = h->item[child];
    }
    h->item[at] = number;
}

/* Nodes that may come now. */
enum { URGENCIES = 3 };
typedef struct ready_nodes {
    heap by_urgency[URGENCIES];
    heap local;
    bool *is_ordered;
} ready_nodes;

static void make_ready(ready_nodes *ready, const node_list *body, int i)
{
    push(&ready->by_urgency[urgency(body->item[i])], i);
    if (body->item[i]->kind == NODE_LOCAL)
        push(&ready->local, i);
}

static int smallest(heap *h, const bool *is_ordered)
{
    while (h->count && is_ordered[h->item[0]])
        pop(h);
    return h->count ? h->item[0] : -1;
}

/* The most urgent, then as written. */
static int next_node(const common_input *c, const rank_view *v, const node_list *body,
                     ready_nodes *ready)
{
    int next = -1;
    for (int i = 0; i < URGENCIES && next < 0; i++)
        next = smallest(&ready->by_urgency[i], ready->is_ordered);
    bool gives_way = c->mode == PEAL_MODE_FUSED && is_fold(v, body->item[next]);
    int local = gives_way ? smallest(&ready->local, ready->is_ordered) : -1;
    return local >= 0 ? local : next;
}

void order_body(const common_input *c, const pass_context *pass, const rank_view *v,
                node_list *body)
{
    if (c->mode == PEAL_MODE_SERIAL || c->mode == PEAL_MODE_SYNC)
        return; /* as written */
    split_border_tiles(c, pass, v, body);
    int count = body->count, pairs, at = 0;
    node_list out = {0};
    const node_pair *pair = find_precedence(pass, body, &pairs);
    int *waits = PEAL_ARENA_ARRAY(pass->arena, int, count + 1); /* for how many it waits */
    int *first = PEAL_ARENA_ARRAY(pass->arena, int, count + 1); /* of its pairs */
    ready_nodes ready = {.is_ordered = PEAL_ARENA_ARRAY(pass->arena, bool, count + 1)};
    for (int i = 0; i < URGENCIES; i++)
        ready.by_urgency[i].item = PEAL_ARENA_ARRAY(pass->arena, int, count + 1);
    ready.local.item = PEAL_ARENA_ARRAY(pass->arena, int, count + 1);
    for (int i = 0; i < pairs; i++)
        waits[pair[i].second]++;
    for (int i = 0; i < count; i++) {
        first[i] = at;
        while (at < pairs && pair[at].first == i)
            at++;
        if (!waits[i])
            make_ready(&ready, body, i);
    }
    while (out.count < count) {
        int next = next_node(c, v, body, &ready);
        ready.is_ordered[next] = true;
        for (int i = first[next]; i < pairs && pair[i].first == next; i++)
            if (!--waits[pair[i].second])
                make_ready(&ready, body, pair[i].second);
        add_node(pass, &out, body->item[next]);
    }
    *body = out;
}

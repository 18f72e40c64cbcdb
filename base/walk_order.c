/* Program order among the walks of several ranks. */
#include "base/walk_order.h"

#include <limits.h>

/* ---- preparation ---- */

static bool is_message(const peal_op *op)
{
    return (op->kind == PEAL_OP_WAIT || op->kind == PEAL_OP_WRITE) && !op->credit;
}

/* The END of a LOOP that counts, or 0. */
static int counted_end(const peal_schedule *schedule, int index, bool messages)
{
    const peal_op *op = &schedule->op[index];

    if (op->kind != PEAL_OP_LOOP)
        return 0;
    for (int i = index + 1; i < op->end; i++)
        if (!messages || is_message(&schedule->op[i]))
            return op->end;
    return 0;
}

/* Behind all events of the setup ranks shake hands: flags first, then waits. */
static int event_of(const peal_op *op)
{
    if (op->event >= 0)
        return op->event;
    return INT_MAX - (op->kind == PEAL_OP_WAIT ? 1 : 2);
}

/* From its end on, where nothing is left. A loop's key waits at its LOOP op for what is in it. */
static void set_keys(peal_walk_order *order, const peal_section *section, bool messages)
{
    const peal_op *ops = order->schedule->op;
    int next = INT_MAX;

    for (int i = section->end - 1; i >= section->first; i--) {
        const peal_op *op = &ops[i];
        bool loops = op->kind == PEAL_OP_END && counted_end(order->schedule, op->end, messages);
        if (loops) {
            order->key[op->end] = next;
            next = INT_MAX;
        } else if (op->kind == PEAL_OP_LOOP && counted_end(order->schedule, i, messages)) {
            int inside = op->event >= 0 ? op->event : next;
            next = !messages || inside < order->key[i] ? inside : order->key[i];
        } else if (messages && is_message(op)) {
            next = event_of(op) < next ? event_of(op) : next;
        } else if (!messages && op->event >= 0) {
            next = op->event;
        }
        order->key[i] = next;
    }
}

void peal_walk_order_create(const peal_schedule *schedule, peal_arena *arena, bool messages,
                            peal_walk_order *out)
{
    int around = -1;

    out->schedule = schedule;
    out->key = PEAL_ARENA_ARRAY(arena, int, schedule->op_count + 1);
    out->around = PEAL_ARENA_ARRAY(arena, int, schedule->op_count + 1);
    for (int i = 0; i < schedule->op_count; i++) {
        const peal_op *op = &schedule->op[i];
        out->around[i] = around;
        if (counted_end(schedule, i, messages))
            around = i;
        else if (op->kind == PEAL_OP_END && op->end == around)
            around = out->around[op->end];
    }
    out->key[schedule->op_count] = INT_MAX;
    out->around[schedule->op_count] = -1;
    set_keys(out, &schedule->setup, messages);
    set_keys(out, &schedule->step, messages);
    set_keys(out, &schedule->finish, messages);
}

/* ---- comparison ---- */

enum { MOST = 32 };

static int sign(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

/* The loops around a place and the place itself, innermost first. */
static int enclosing(const peal_walk_place *place, int list[MOST])
{
    int count = 0;

    for (int op = place->position; op >= 0 && count < MOST; op = place->order->around[op])
        list[count++] = op;
    return count;
}

static int64_t iteration(const peal_walk_place *place, int op)
{
    return place->loop[place->order->schedule->op[op].loop].iteration;
}

int peal_walk_compare(const peal_walk_place *a, const peal_walk_place *b)
{
    int x[MOST], y[MOST];

    if (a->step != b->step)
        return sign(a->step, b->step);
    int m = enclosing(a, x), n = enclosing(b, y);
    for (;;) {
        int order = sign(a->order->key[x[--m]], b->order->key[y[--n]]);
        if (order)
            return order;
        if (m == 0 || n == 0) /* who has not entered the loop is before it */
            return sign(m, n);
        order = sign(iteration(a, x[m]), iteration(b, y[n]));
        if (order)
            return order;
    }
}

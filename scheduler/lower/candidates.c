/* The ops that another one may have to wait for. Where many touch an array, they are followed back
 * to the writes that stand between, so that what an op costs does not grow with their number. */
#include "scheduler/lower/candidates.h"
#include "base/sorted.h"
#include "scheduler/geometry/geometry.h"

#include <stdlib.h>

int many_touches = 256;

/* Pieces in which it is followed for whom nobody stands; different boxes of an array that are
 * written, which are looked at. */
enum { OPEN_BOXES = 64, WRITTEN_BOXES = 64 };

/* The different boxes of an array that ops write. */
typedef struct written_boxes {
    bool complete; /* false: there are more */
    int count;
    peal_box box[WRITTEN_BOXES];
} written_boxes;

struct candidates {
    const common_input *c;
    const pass_context *pass;
    const lowered_op *op;
    int count, step_first, step_end;
    const bool *always; /* by op */
    op_touch *touched;  /* by array, then op */
    int touched_count;
    op_touch *writer; /* of these, ops that write it */
    int writer_count;
    written_boxes **written; /* by array; NULL: not asked for yet */
    int *seen; /* by op: 1 + the last op that asked for those which touch its arrays */
    int *found;
    int found_count;
};

static int by_array(const void *left, const void *right)
{
    const op_touch *a = left, *b = right;
    if (a->array != b->array)
        return a->array < b->array ? -1 : 1;
    return a->op < b->op ? -1 : a->op > b->op;
}

int find_op_touch(const op_touch *list, int count, int array, int op)
{
    op_touch key = {array, op};
    return peal_sorted_first(&key, list, count, sizeof(*list), by_array);
}

int sort_op_touches(op_touch *list, int count)
{
    return peal_sort_unique(list, count, sizeof(*list), by_array);
}

static void add_candidate(candidates *p, int b, int a)
{
    if (p->seen[a] != b + 1)
        p->found[p->found_count++] = a;
    p->seen[a] = b + 1;
}

/* What of a touch no later write stands for yet. */
typedef struct open_part {
    peal_box box[OPEN_BOXES];
    int count;
} open_part;

/* Too many pieces: they stay as they are. */
static void close_box(open_part *open, const peal_box *box)
{
    open_part left = {.count = 0};
    for (int i = 0; i < open->count; i++) {
        box_list rest = {.count = 0};
        subtract_box(&open->box[i], box, &rest);
        if (left.count + rest.count > OPEN_BOXES)
            return;
        for (int k = 0; k < rest.count; k++)
            left.box[left.count++] = rest.box[k];
    }
    *open = left;
}

static bool is_open(const open_part *open, const peal_box *box)
{
    for (int i = 0; i < open->count; i++)
        if (peal_box_meets(&open->box[i], box))
            return true;
    return false;
}

/* The boxes of an array that ops write, each once. */
static const written_boxes *written_of(candidates *p, int array, int first, int end)
{
    if (p->written[array])
        return p->written[array];
    written_boxes *w = p->written[array] = PEAL_ARENA_ARRAY(p->pass->arena, written_boxes, 1);
    w->complete = true;
    for (int n = first; n < end && w->complete; n++) {
        const lowered_op *op = &p->op[p->touched[n].op];
        for (int i = 0; i < op->touch_count && w->complete; i++) {
            const touch *t = &op->touch[i];
            int k = 0;
            if (t->array != array || !t->write)
                continue;
            while (k < w->count && !peal_box_contains(&w->box[k], &t->box))
                k++;
            if (k == WRITTEN_BOXES)
                w->complete = false;
            else if (k == w->count)
                w->box[w->count++] = t->box;
        }
    }
    return w;
}

/* What of a touch any op writes: for the rest nobody would ever stand, and nobody needs to. */
static void open_touch(candidates *p, const touch *t, int first, int end, open_part *open)
{
    *open = (open_part){.box = {t->box}, .count = 1};
    if (t->write)
        return;
    const written_boxes *written = written_of(p, t->array, first, end);
    if (!written->complete)
        return;
    open_part never = *open;
    for (int i = 0; i < written->count; i++)
        close_box(&never, &written->box[i]);
    for (int i = 0; i < never.count; i++)
        close_box(open, &never.box[i]);
}

/* What a WAIT brings was written when this rank had used the memory and said so (credits.c). */
static bool was_ordered(const candidates *p, const lowered_op *op, const touch *t)
{
    return !op->waits_for_nothing || (t->array >= 0 && t->array < p->c->graph->array_count);
}

/* The ops [first, end) of one section that touch what is open, from the last one backwards. One
 * that always writes a part of it has waited for whoever had touched that before: it stands for
 * them, element by element. */
static void add_backwards(candidates *p, int b, const touch *t, int first, int end, open_part *open)
{
    const op_touch *list = t->write ? p->touched : p->writer;
    int count = t->write ? p->touched_count : p->writer_count;
    int at = find_op_touch(list, count, t->array, end) - 1;
    for (; at >= 0 && open->count && list[at].array == t->array && list[at].op >= first; at--) {
        int a = list[at].op;
        const lowered_op *op = &p->op[a];
        bool met = false;
        for (int i = 0; i < op->touch_count; i++)
            met |= op->touch[i].array == t->array && (op->touch[i].write || t->write) &&
                   is_open(open, &op->touch[i].box);
        if (!met)
            continue;
        add_candidate(p, b, a);
        for (int i = 0; i < op->touch_count && p->always[a]; i++)
            if (op->touch[i].array == t->array && op->touch[i].write && !op->touch[i].per_tile &&
                was_ordered(p, op, &op->touch[i]))
                close_box(open, &op->touch[i].box);
    }
}

/* Adds the ops that touch what a touch of B does; where these are many, without those for which
 * another one stands. False: some may be left out. */
static bool add_candidates(candidates *p, int b, const touch *t)
{
    int array = array_or_group(p->c, t->array);
    int first = find_op_touch(p->touched, p->touched_count, array, 0);
    int end = find_op_touch(p->touched, p->touched_count, array, p->count);
    bool pruned =
        end - first > many_touches && array >= 0 && group_of(p->c, array) < 0 && p->always[b];
    if (pruned) {
        bool in_step = b >= p->step_first && b < p->step_end;
        int section = in_step ? p->step_first : b < p->step_first ? 0 : p->step_end;
        open_part open;
        open_touch(p, t, first, end, &open);
        add_backwards(p, b, t, section, b, &open);
        if (!open.count)
            return false;
        open_part before = open;
        if (in_step) /* in the step before, if there is one */
            add_backwards(p, b, t, b, p->step_end, &before);
        end = find_op_touch(p->touched, p->touched_count, array, section);
    }
    for (int i = first; i < end; i++)
        add_candidate(p, b, p->touched[i].op);
    return !pruned;
}

/* Of an array of which all ops have been added, no more can be. */
static void add_candidates_of(candidates *p, int b, const touch *list, int count)
{
    int complete = -1;
    for (int i = 0; i < count; i++)
        if (list[i].array != complete && add_candidates(p, b, &list[i]))
            complete = list[i].array;
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

const int *find_candidates(candidates *p, int b, int *count)
{
    const lowered_op *ob = &p->op[b];
    p->found_count = 0;
    add_candidates_of(p, b, ob->touch, ob->touch_count);
    add_candidates_of(p, b, ob->extra, ob->extra_count);
    *count = p->found_count;
    if (p->found_count < p->count / 16) {
        qsort(p->found, (size_t)p->found_count, sizeof(int), ascending);
        return p->found;
    }
    p->found_count = 0; /* many: a look at all is faster than to sort them */
    for (int a = 0; a < p->count; a++)
        if (p->seen[a] == b + 1)
            p->found[p->found_count++] = a;
    return p->found;
}

candidates *begin_candidates(const common_input *c, const pass_context *pass, const lowered_op *op,
                             int count, int step_first, int step_end, const bool *always)
{
    candidates *p = PEAL_ARENA_NEW(pass->arena, candidates);
    int touches = 0;
    *p = (candidates){.c = c,
                      .pass = pass,
                      .op = op,
                      .count = count,
                      .step_first = step_first,
                      .step_end = step_end,
                      .always = always};
    for (int i = 0; i < count; i++)
        touches += op[i].touch_count;
    p->touched = PEAL_ARENA_ARRAY(pass->arena, op_touch, touches + 1);
    p->writer = PEAL_ARENA_ARRAY(pass->arena, op_touch, touches + 1);
    p->seen = PEAL_ARENA_ARRAY(pass->arena, int, count);
    p->found = PEAL_ARENA_ARRAY(pass->arena, int, count);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < op[i].touch_count; k++) {
            op_touch by = {array_or_group(c, op[i].touch[k].array), i};
            p->touched[p->touched_count++] = by;
            if (op[i].touch[k].write)
                p->writer[p->writer_count++] = by;
        }
    p->touched_count = sort_op_touches(p->touched, p->touched_count);
    p->writer_count = sort_op_touches(p->writer, p->writer_count);
    int arrays = p->touched_count ? p->touched[p->touched_count - 1].array + 1 : 0;
    p->written = PEAL_ARENA_ARRAY(pass->arena, written_boxes *, arrays > 0 ? arrays : 1);
    return p;
}

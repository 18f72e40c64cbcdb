/* The ops that another one may have to wait for. Where many touch an array, they are followed back
 * to the writes that stand between, so that what an op costs does not grow with their number. */
#include "scheduler/lower/candidates.h"
#include "base/sorted.h"
#include "scheduler/geometry/geometry.h"

#include <stdlib.h>

int many_touches = 256;

/* Pieces in which it is followed for whom nobody stands; different boxes of an array that are
 * written, which are looked at; iterations in which swaps give memory its name back, else all ops
 * are taken. */
enum { OPEN_BOXES = 64, WRITTEN_BOXES = 64, ITERATIONS = 8 };

/* The different boxes of an array that ops write. */
typedef struct written_boxes {
    bool complete; /* false: there are more */
    int count;
    peal_box box[WRITTEN_BOXES];
} written_boxes;

struct candidates {
    candidates_of of;
    op_touch *touched; /* by array, or group, then op */
    int touched_count;
    op_touch *writer; /* of these, ops that write it */
    int writer_count;
    written_boxes **written; /* by array, or group; NULL: not asked for yet */
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

/* What of a touch no later write stands for yet, and the name that its memory has there. */
typedef struct open_part {
    peal_box box[OPEN_BOXES];
    int count;
    int array;
} open_part;

/* False: those would be too many pieces, and they stay as they are. */
static bool close_box(open_part *open, const peal_box *box)
{
    open_part left = {.count = 0, .array = open->array};
    for (int i = 0; i < open->count; i++) {
        box_list rest = {.count = 0};
        subtract_box(&open->box[i], box, &rest);
        if (left.count + rest.count > OPEN_BOXES)
            return false;
        for (int k = 0; k < rest.count; k++)
            left.box[left.count++] = rest.box[k];
    }
    *open = left;
    return true;
}

static bool is_open(const open_part *open, const peal_box *box)
{
    for (int i = 0; i < open->count; i++)
        if (peal_box_meets(&open->box[i], box))
            return true;
    return false;
}

/* The boxes of an array, or of a group, that ops write, each once. */
static const written_boxes *written_of(candidates *p, int array, int first, int end)
{
    if (p->written[array])
        return p->written[array];
    written_boxes *w = p->written[array] = PEAL_ARENA_ARRAY(p->of.pass->arena, written_boxes, 1);
    w->complete = true;
    for (int n = first; n < end && w->complete; n++) {
        const lowered_op *op = &p->of.op[p->touched[n].op];
        for (int i = 0; i < op->touch_count && w->complete; i++) {
            const touch *t = &op->touch[i];
            int k = 0;
            if (array_or_group(p->of.c, t->array) != array || !t->write)
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
    *open = (open_part){.box = {t->box}, .count = 1, .array = t->array};
    if (t->write)
        return;
    const written_boxes *written = written_of(p, array_or_group(p->of.c, t->array), first, end);
    if (!written->complete)
        return;
    open_part never = *open;
    for (int i = 0; i < written->count; i++)
        if (!close_box(&never, &written->box[i]))
            return;
    for (int i = 0; i < never.count; i++)
        close_box(open, &never.box[i]);
}

/* What a WAIT brings was written when this rank had used the memory and said so (credits.c). */
static bool was_ordered(const candidates *p, const lowered_op *op, const touch *t)
{
    return !op->waits_for_nothing || (t->array >= 0 && t->array < p->of.c->graph->array_count);
}

/* Whether an op is done, once, in each iteration of a loop, or in a section, in which ops of region
 * `in` are done. */
static bool always(const candidates *p, int op, op_region in)
{
    op_region region = p->of.region[op];
    return region.loop == in.loop && (!region.when || (region.when > 0 && region.when == in.when));
}

/* Adds an op if it touches what is open. */
static bool add_met(candidates *p, int b, bool write, int a, const open_part *open)
{
    const lowered_op *op = &p->of.op[a];
    bool met = false;
    for (int i = 0; i < op->touch_count; i++)
        met |= op->touch[i].array == open->array && (op->touch[i].write || write) &&
               is_open(open, &op->touch[i].box);
    if (met)
        add_candidate(p, b, a);
    return met;
}

/* The border of the launch whose rest an op is; -1: none. If they touch the same, it comes first
 * (split_border_tiles, order/precedence.c): a rest in front of its border need not be looked for.
 */
static int border_of(const candidates *p, int rest)
{
    int border = p->of.op[rest].op.rest ? rest - 1 : -1;
    while (border >= 0 && !are_one_launch(&p->of.op[border], &p->of.op[rest]))
        border--;
    return border;
}

/* Goes back over an op: adds it if it touches what is open. One that always writes a part of that
 * has waited for whoever had touched it before: it stands for them, element by element. But border
 * and rest of one launch have not waited for each other. */
static void go_over(candidates *p, int b, bool write, int a, op_region in, open_part *open)
{
    const lowered_op *op = &p->of.op[a];
    int border = border_of(p, a);
    if (border >= 0)
        add_met(p, b, write, border, open);
    if (!add_met(p, b, write, a, open) || (a < b && are_one_launch(op, &p->of.op[b])))
        return;
    for (int i = 0; i < op->touch_count && always(p, a, in); i++)
        if (op->touch[i].array == open->array && op->touch[i].write && !op->touch[i].per_tile &&
            was_ordered(p, op, &op->touch[i]))
            close_box(open, &op->touch[i].box);
}

/* Goes back over a swap, which gives the memory another name. False: perhaps it does. */
static bool go_over_swap(const candidates *p, int swap, op_region in, open_part *open)
{
    const peal_op *op = &p->of.op[swap].op;
    if (!always(p, swap, in))
        return false;
    if (open->array == op->first)
        open->array = op->second;
    else if (open->array == op->second)
        open->array = op->first;
    return true;
}

/* The ops [first, end) of a loop, or a section, from the last one backwards, in an iteration in
 * which ops of region `in` are done. False: it cannot be told which of them touch the memory. */
static bool go_back(candidates *p, int b, const touch *t, op_region in, int first, int end,
                    open_part *open)
{
    int array = array_or_group(p->of.c, t->array), group = group_of(p->of.c, t->array);
    const op_touch *list = t->write ? p->touched : p->writer;
    int count = t->write ? p->touched_count : p->writer_count;
    int at = find_op_touch(list, count, array, end) - 1;
    int swap = group < 0 ? -1 : find_op_touch(p->of.swap, p->of.swap_count, group, end) - 1;
    while (open->count) {
        int op = at >= 0 && list[at].array == array ? list[at].op : -1;
        int swaps = swap >= 0 && p->of.swap[swap].array == group ? p->of.swap[swap].op : -1;
        if (op < first && swaps < first)
            return true;
        if (swaps > op) {
            if (!go_over_swap(p, swaps, in, open))
                return false;
            swap--;
        } else {
            go_over(p, b, t->write, op, in, open);
            at--;
        }
    }
    return true;
}

/* In the iterations before, if there are any: what is open at op `at`, in whose place B is or in
 * whose body. Where swaps have given the memory its name back, nothing new can come; but what of
 * this iteration was looked at under a condition is another thing in those. */
static bool go_around(candidates *p, int b, const touch *t, int loop, const int body[2], int at,
                      int array, open_part before)
{
    const op_region each = {loop, 0};
    bool is_alike = !p->of.region[at].when;
    for (int k = 0; k < ITERATIONS && before.count; k++) {
        if (!go_back(p, b, t, each, at, body[1], &before))
            return false;
        if (before.array == array && is_alike)
            return true;
        is_alike = true;
        if (!go_back(p, b, t, each, body[0], at, &before))
            return false;
    }
    return !before.count;
}

/* The ops of a loop's body, or of a section. */
static void body_of(const candidates *p, int loop, int op, int body[2])
{
    bool in_setup = op < p->of.step_first;
    if (loop >= 0) {
        body[0] = loop + 1;
        body[1] = p->of.op[loop].op.end;
    } else if (loop == IN_STEP) {
        body[0] = p->of.step_first;
        body[1] = p->of.step_end;
    } else {
        body[0] = in_setup ? 0 : p->of.step_end;
        body[1] = in_setup ? p->of.step_first : p->of.count;
    }
}

static bool swaps_in(const candidates *p, int array, const int body[2])
{
    int group = group_of(p->of.c, array);
    int at = find_op_touch(p->of.swap, p->of.swap_count, group, body[0]);
    return group >= 0 && at < p->of.swap_count && p->of.swap[at].array == group &&
           p->of.swap[at].op < body[1];
}

/* Adds the ops that touch what a touch of B does, from the innermost loop around it outwards,
 * without those for which another one stands. Returns up to which op all others are to be added:
 * there they were not looked at. */
static int follow(candidates *p, int b, const touch *t, open_part *open)
{
    int at = b, body[2];
    for (;;) {
        op_region in = p->of.region[at];
        int loop = in.loop, array = open->array;
        body_of(p, loop, at, body);
        if (!go_back(p, b, t, in, body[0], at, open))
            return p->of.count;
        if (!open->count)
            return 0;
        if (loop != IN_SECTION && !go_around(p, b, t, loop, body, at, array, *open))
            return p->of.count;
        if (loop < 0)
            return body[0];
        if (swaps_in(p, t->array, body)) /* each iteration begins with another name */
            return p->of.count;
        at = loop;
    }
}

/* Adds the ops that touch what a touch of B does; where these are many, those that matter. False:
 * some may be left out. */
static bool add_candidates(candidates *p, int b, const touch *t)
{
    int array = array_or_group(p->of.c, t->array);
    int first = find_op_touch(p->touched, p->touched_count, array, 0);
    int end = find_op_touch(p->touched, p->touched_count, array, p->of.count);
    bool is_complete = end - first <= many_touches || array < 0;
    if (!is_complete) {
        open_part open;
        open_touch(p, t, first, end, &open);
        int up_to = follow(p, b, t, &open);
        is_complete = up_to == p->of.count;
        end = find_op_touch(p->touched, p->touched_count, array, up_to);
    }
    for (int i = first; i < end; i++)
        add_candidate(p, b, p->touched[i].op);
    return is_complete;
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
    const lowered_op *ob = &p->of.op[b];
    p->found_count = 0;
    add_candidates_of(p, b, ob->touch, ob->touch_count);
    add_candidates_of(p, b, ob->extra, ob->extra_count);
    *count = p->found_count;
    if (p->found_count < p->of.count / 16) {
        qsort(p->found, (size_t)p->found_count, sizeof(int), ascending);
        return p->found;
    }
    p->found_count = 0; /* many: a look at all is faster than to sort them */
    for (int a = 0; a < p->of.count; a++)
        if (p->seen[a] == b + 1)
            p->found[p->found_count++] = a;
    return p->found;
}

candidates *begin_candidates(const candidates_of *of)
{
    peal_arena *arena = of->pass->arena;
    candidates *p = PEAL_ARENA_NEW(arena, candidates);
    int touches = 0;
    *p = (candidates){.of = *of};
    for (int i = 0; i < of->count; i++)
        touches += of->op[i].touch_count;
    p->touched = PEAL_ARENA_ARRAY(arena, op_touch, touches + 1);
    p->writer = PEAL_ARENA_ARRAY(arena, op_touch, touches + 1);
    p->seen = PEAL_ARENA_ARRAY(arena, int, of->count);
    p->found = PEAL_ARENA_ARRAY(arena, int, of->count);
    for (int i = 0; i < of->count; i++)
        for (int k = 0; k < of->op[i].touch_count; k++) {
            op_touch by = {array_or_group(of->c, of->op[i].touch[k].array), i};
            p->touched[p->touched_count++] = by;
            if (of->op[i].touch[k].write)
                p->writer[p->writer_count++] = by;
        }
    p->touched_count = sort_op_touches(p->touched, p->touched_count);
    p->writer_count = sort_op_touches(p->writer, p->writer_count);
    int arrays = p->touched_count ? p->touched[p->touched_count - 1].array + 1 : 0;
    p->written = PEAL_ARENA_ARRAY(arena, written_boxes *, arrays > 0 ? arrays : 1);
    return p;
}

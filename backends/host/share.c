/* Distributes tiles over workers, and finds which tiles of other workers each tile waits for
 * (`fused`).
 *
 * A worker runs its tiles of an op in a fixed order, so one count per (op, worker) says which of
 * them are done. A tile's dependences become "worker w has finished its first n tiles of op A", and
 * a need is listed only where it asks for more than an earlier tile of the same instance did: the
 * list grows with the surface between workers, not with the tiles. */
#include "backends/host/wait.h"

#include <stdlib.h>
#include <string.h>

/* Tiles by worker. */

static int worker_of(const host_rank *rank, const peal_schedule_task *task, const host_op *op,
                     int64_t tile)
{
    if (task->tile_count <= 1 || rank->share_count == 1)
        return op->owner;
    return peal_dispatch_owner(tile, task->tile_count, rank->share_count);
}

static host_run make_run(const peal_tiling *tiling, const int64_t *at, int64_t count)
{
    host_run run = {.first = tiling->first, .count = count};
    int64_t step = 1;

    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t lo = tiling->box.lo[k] + at[k] * tiling->extent[k];
        int64_t hi = lo + tiling->extent[k];
        run.first += at[k] * step;
        step *= tiling->count[k];
        run.lo[k] = (int)lo;
        run.hi[k] = (int)(hi < tiling->box.hi[k] ? hi : tiling->box.hi[k]);
    }
    run.extent = tiling->extent[0];
    run.box_hi = tiling->box.hi[0];
    return run;
}

typedef struct run_list {
    host_run *run;
    int count, capacity;
    int64_t tiles;
} run_list;

static void add_run(peal_arena *arena, run_list *list, host_run run)
{
    PEAL_ARENA_ROOM(arena, list->run, list->count, list->capacity);
    list->run[list->count++] = run;
    list->tiles += run.count;
}

/* One row of tiles along x, cut where the owner changes. */
static void share_row(host_rank *rank, const host_op *op, const peal_tiling *tiling,
                      const int64_t *row, int64_t end, run_list *list)
{
    const peal_schedule_task *task = op->task->source;
    bool single = rank->plan->desc.hooks.shuffle_seed != 0;
    int64_t at[PEAL_AXES];

    memcpy(at, row, sizeof(at));
    while (at[0] < end) {
        host_run run = make_run(tiling, at, 1);
        int worker = worker_of(rank, task, op, run.first);
        int64_t next = run.first + end - at[0];
        if (task->tile_count > 1 && rank->share_count > 1) {
            int64_t border = peal_dispatch_first(worker + 1, task->tile_count, rank->share_count);
            next = border < next ? border : next;
        }
        run.count = single ? 1 : next - run.first;
        add_run(rank->plan->arena, &list[worker], run);
        at[0] += run.count;
    }
}

static void share_range(host_rank *rank, const host_op *op, const peal_tile_range *range,
                        run_list *list)
{
    const peal_tiling *tiling = &op->task->source->tiling[range->tiling];
    int64_t at[PEAL_AXES];

    for (int k = 0; k < PEAL_AXES; k++)
        if (range->lo[k] >= range->hi[k])
            return;
    for (at[3] = range->lo[3]; at[3] < range->hi[3]; at[3]++)
        for (at[2] = range->lo[2]; at[2] < range->hi[2]; at[2]++)
            for (at[1] = range->lo[1]; at[1] < range->hi[1]; at[1]++) {
                at[0] = range->lo[0];
                share_row(rank, op, tiling, at, range->hi[0], list);
            }
}

static void shuffle(run_list *list, uint64_t seed)
{
    for (int i = list->count - 1; i > 0; i--) {
        int j = (int)(host_random(&seed) % (uint64_t)(i + 1));
        host_run other = list->run[i];
        list->run[i] = list->run[j];
        list->run[j] = other;
    }
}

/* Whether box b continues box a along axis k. */
static bool continues(const host_run *a, const host_run *b, int k)
{
    for (int other = 0; other < PEAL_AXES; other++)
        if (other != k && (a->lo[other] != b->lo[other] || a->hi[other] != b->hi[other]))
            return false;
    return a->hi[k] == b->lo[k];
}

/* Joins the tiles of a share to boxes: rows along x, then boxes that continue each other along y, z
 * and w. */
static void merge_runs(peal_arena *arena, const run_list *list, host_share *share)
{
    share->merged = PEAL_ARENA_ARRAY(arena, host_run, list->count + 1);
    share->merged_count = list->count;
    for (int i = 0; i < list->count; i++) {
        const host_run *run = &list->run[i];
        int64_t hi = run->lo[0] + run->count * run->extent;
        share->merged[i] = *run;
        share->merged[i].count = 1;
        share->merged[i].hi[0] = (int)(hi < run->box_hi ? hi : run->box_hi);
        share->merged[i].extent = share->merged[i].hi[0] - run->lo[0];
    }
    for (int k = 1; k < PEAL_AXES; k++) {
        int kept = 0;
        for (int i = 1; i < share->merged_count; i++)
            if (continues(&share->merged[kept], &share->merged[i], k))
                share->merged[kept].hi[k] = share->merged[i].hi[k];
            else
                share->merged[++kept] = share->merged[i];
        share->merged_count = share->merged_count ? kept + 1 : 0;
    }
}

/* A task without tiling (of one point) is one tile without extent. */
static void share_op(host_rank *rank, host_op *op, run_list *list)
{
    const peal_op *source = op->source;
    uint64_t seed = rank->plan->desc.hooks.shuffle_seed;

    memset(list, 0, (size_t)rank->share_count * sizeof(*list));
    if (op->task->source->kind != PEAL_TASK_KERNEL || op->task->source->tiling_count == 0) {
        host_run run = {.count = 1, .extent = 1, .box_hi = 1, .hi = {1, 1, 1, 1}};
        add_run(rank->plan->arena, &list[op->owner], run);
    } else {
        for (int i = 0; i < source->range_count; i++)
            share_range(rank, op, &source->range[i], list);
    }
    op->share = PEAL_ARENA_ARRAY(rank->plan->arena, host_share, rank->share_count);
    int holders = 0;
    for (int w = 0; w < rank->share_count; w++) {
        if (seed)
            shuffle(&list[w], seed + (uint64_t)(op - rank->op) * 131u + (uint64_t)w);
        op->share[w].run = list[w].run;
        op->share[w].run_count = list[w].count;
        op->share[w].tiles = list[w].tiles;
        if (op->task->source->mergeable && !seed)
            merge_runs(rank->plan->arena, &list[w], &op->share[w]);
        holders += list[w].tiles > 0;
    }
    op->shared = holders > 1;
    for (int w = 0; holders == 1 && w < rank->share_count; w++)
        if (list[w].tiles > 0)
            op->owner = w;
}

void host_shares_prepare(host_rank *rank)
{
    run_list *list = PEAL_ARENA_ARRAY(rank->plan->arena, run_list, rank->share_count);
    for (int i = 0; i < rank->schedule->op_count; i++)
        if (rank->op[i].kind == PEAL_OP_LAUNCH)
            share_op(rank, &rank->op[i], list);
}

/* What tiles wait for. */

/* position[t]: the position of tile t among its worker's tiles of this op; -1: not of this op. */
typedef struct op_positions {
    int64_t *position;
} op_positions;

typedef struct need_builder {
    host_rank *rank;
    op_positions *positions; /* by op; made when first used */
    uint64_t *most; /* by dependence of the op, by worker: 1 + the greatest target so far */
    int64_t *last;  /* by worker: the greatest position among some tiles; -1: none */
    host_need *need;
    int count, capacity;
    bool no_memory;
} need_builder;

static bool is_tiled(const host_op *op)
{
    return op->kind == PEAL_OP_LAUNCH && op->task->source->kind == PEAL_TASK_KERNEL &&
           op->task->source->tiling_count > 0;
}

/* NULL: no memory. */
static const int64_t *positions_of(need_builder *b, int index)
{
    const host_op *op = &b->rank->op[index];
    int64_t tiles = op->task->source->tile_count;

    if (b->positions[index].position)
        return b->positions[index].position;
    int64_t *position = malloc((size_t)(tiles > 0 ? tiles : 1) * sizeof(*position));
    if (!position) {
        b->no_memory = true;
        return NULL;
    }
    for (int64_t t = 0; t < tiles; t++)
        position[t] = -1;
    for (int w = 0; w < b->rank->share_count; w++) {
        int64_t at = 0;
        for (int r = 0; r < op->share[w].run_count; r++)
            for (int64_t i = 0; i < op->share[w].run[r].count; i++)
                position[op->share[w].run[r].first + i] = at++;
    }
    b->positions[index].position = position;
    return position;
}

static uint64_t per_instance(const host_op *op, int worker)
{
    return op->kind == PEAL_OP_LAUNCH ? (uint64_t)op->share[worker].tiles : 1;
}

/* Lists, unless an earlier tile asks for as much, that the tile at position `at` waits until worker
 * w has finished the tile at position `target` of dependence d's op. */
static void add_need(need_builder *b, const peal_op *op, int d, int64_t at, int w, uint64_t target)
{
    const peal_dependence *dependence = &op->dependence[d];
    const host_op *other = &b->rank->op[dependence->op];
    uint64_t *most = &b->most[(size_t)d * (size_t)b->rank->share_count + (size_t)w];

    if (*most > target)
        return;
    *most = target + 1;
    if (b->count == b->capacity) {
        int capacity = b->capacity ? 2 * b->capacity : 16;
        host_need *grown = realloc(b->need, (size_t)capacity * sizeof(*grown));
        if (!grown) {
            b->no_memory = true;
            return;
        }
        b->need = grown;
        b->capacity = capacity;
    }
    b->need[b->count++] = (host_need){.position = at,
                                      .op = dependence->op,
                                      .lag = dependence->lag,
                                      .worker = w,
                                      .per_instance = per_instance(other, w),
                                      .target = target};
    b->rank->op[dependence->op].published = true;
}

/* The tile at position `at` waits for all tiles of dependence d's op. */
static void need_all(need_builder *b, const peal_op *op, int d, int64_t at, int me)
{
    const host_op *other = &b->rank->op[op->dependence[d].op];

    for (int w = 0; w < b->rank->share_count; w++) {
        bool has = other->kind == PEAL_OP_LAUNCH ? other->share[w].tiles > 0 : w == other->owner;
        if (w != me && has)
            add_need(b, op, d, at, w, per_instance(other, w) - 1);
    }
}

/* Finds each worker's latest tile among a row of A's tiles, of indexes [first, last]. */
static void find_latest(need_builder *b, int a, const int64_t *position, int64_t first,
                        int64_t last)
{
    const host_op *other = &b->rank->op[a];
    const peal_schedule_task *task = other->task->source;

    for (int64_t t = first; t <= last; t++) {
        int64_t *latest = &b->last[worker_of(b->rank, task, other, t)];
        *latest = position[t] > *latest ? position[t] : *latest;
    }
}

/* Whether the tiles from `first` to `last` are all tiles of the op. */
static bool are_all_tiles(const peal_op *op, int tiling, const int64_t *first, const int64_t *last)
{
    for (int i = 0; i < op->range_count; i++)
        for (int k = 0; k < PEAL_AXES; k++)
            if (op->range[i].tiling != tiling || op->range[i].lo[k] < first[k] ||
                op->range[i].hi[k] > last[k] + 1)
                return false;
    return true;
}

/* Whether all tiles of indexes [first, last] are the worker's own. */
static bool is_mine(const need_builder *b, int a, int me, int64_t first, int64_t last)
{
    const host_op *other = &b->rank->op[a];
    const peal_schedule_task *task = other->task->source;
    return worker_of(b->rank, task, other, first) == me &&
           worker_of(b->rank, task, other, last) == me;
}

static void need_box(need_builder *b, const peal_op *op, int d, int64_t at, int me,
                     const int64_t *first, const int64_t *last)
{
    int a = op->dependence[d].op, workers = b->rank->share_count;
    const peal_tiling *tiling = &b->rank->op[a].task->source->tiling[op->dependence[d].a_tiling];
    const int64_t *count = tiling->count;
    const int64_t *position = NULL;
    int64_t i[PEAL_AXES];

    for (int w = 0; w < workers; w++)
        b->last[w] = -1;
    for (i[3] = first[3]; i[3] <= last[3]; i[3]++)
        for (i[2] = first[2]; i[2] <= last[2]; i[2]++)
            for (i[1] = first[1]; i[1] <= last[1]; i[1]++) {
                int64_t row =
                    tiling->first + count[0] * (i[1] + count[1] * (i[2] + count[2] * i[3]));
                if (is_mine(b, a, me, row + first[0], row + last[0]))
                    continue;
                position = position ? position : positions_of(b, a);
                if (!position)
                    return;
                find_latest(b, a, position, row + first[0], row + last[0]);
            }
    for (int w = 0; w < workers; w++)
        if (w != me && b->last[w] >= 0)
            add_need(b, op, d, at, w, (uint64_t)b->last[w]);
}

static void need_tiles(need_builder *b, const peal_op *op, int d, int64_t at, int me,
                       const int64_t *j)
{
    const peal_dependence *dependence = &op->dependence[d];
    const host_op *other = &b->rank->op[dependence->op];
    const peal_tiling *tiling = &other->task->source->tiling[dependence->a_tiling];
    int64_t first[PEAL_AXES], last[PEAL_AXES];

    for (int k = 0; k < PEAL_AXES; k++) {
        peal_dispatch_map(&dependence->map[k], j, &first[k], &last[k]);
        first[k] = first[k] < 0 ? 0 : first[k];
        last[k] = last[k] >= tiling->count[k] ? tiling->count[k] - 1 : last[k];
        if (first[k] > last[k])
            return;
    }
    if (are_all_tiles(other->source, dependence->a_tiling, first, last))
        need_all(b, op, d, at, me);
    else
        need_box(b, op, d, at, me, first, last);
}

/* Whether the maps name an op without tiles, which counts as one tile with indexes 0. */
static bool maps_to_one(const peal_dependence *dependence, const int64_t *j)
{
    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t first, last;
        peal_dispatch_map(&dependence->map[k], j, &first, &last);
        if (first > 0 || last < 0 || first > last)
            return false;
    }
    return true;
}

/* The tiling of tile `tile`, and its indexes along the axes. */
static int locate(const peal_schedule_task *task, int64_t tile, int64_t *j)
{
    int index = 0;
    while (index + 1 < task->tiling_count && tile >= task->tiling[index + 1].first)
        index++;
    const peal_tiling *tiling = &task->tiling[index];
    int64_t rest = tile - tiling->first;
    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t count = tiling->count[k] > 0 ? tiling->count[k] : 1;
        j[k] = rest % count;
        rest /= count;
    }
    return index;
}

static void needs_of_tile(need_builder *b, const host_op *op, int64_t tile, int64_t at, int me)
{
    const peal_op *source = op->source;
    int64_t j[PEAL_AXES] = {0};
    int tiling = is_tiled(op) ? locate(op->task->source, tile, j) : -1;

    for (int d = 0; d < source->dependence_count; d++) {
        const peal_dependence *dependence = &source->dependence[d];
        const host_op *other = &b->rank->op[dependence->op];
        bool other_exists = other->kind == PEAL_OP_LAUNCH || other->kind == PEAL_OP_COPY ||
                            other->kind == PEAL_OP_WRITE || other->kind == PEAL_OP_WAIT;
        if (!other_exists ||
            (tiling >= 0 && dependence->b_tiling >= 0 && dependence->b_tiling != tiling))
            continue;
        if (!dependence->all && is_tiled(other))
            need_tiles(b, source, d, at, me, j);
        else if (dependence->all || maps_to_one(dependence, j))
            need_all(b, source, d, at, me);
    }
}

static host_need *take_needs(need_builder *b, int *count)
{
    host_need *out = PEAL_ARENA_ARRAY(b->rank->plan->arena, host_need, b->count + 1);
    if (b->count > 0)
        memcpy(out, b->need, (size_t)b->count * sizeof(*out));
    *count = b->count;
    b->count = 0;
    return out;
}

static void needs_of_op(need_builder *b, host_op *op)
{
    size_t words = (size_t)op->source->dependence_count * (size_t)b->rank->share_count;

    if (op->kind != PEAL_OP_LAUNCH) {
        memset(b->most, 0, words * sizeof(*b->most));
        needs_of_tile(b, op, 0, 0, op->owner);
        op->need = take_needs(b, &op->need_count);
        return;
    }
    for (int w = 0; w < b->rank->share_count; w++) {
        host_share *share = &op->share[w];
        int64_t at = 0;
        memset(b->most, 0, words * sizeof(*b->most));
        for (int r = 0; r < share->run_count; r++)
            for (int64_t i = 0; i < share->run[r].count; i++)
                needs_of_tile(b, op, share->run[r].first + i, at++, w);
        share->need = take_needs(b, &share->need_count);
    }
}

static bool does_work(const host_op *op)
{
    return op->kind == PEAL_OP_LAUNCH || op->kind == PEAL_OP_COPY || op->kind == PEAL_OP_WRITE ||
           op->kind == PEAL_OP_WAIT;
}

peal_status host_needs_prepare(host_rank *rank)
{
    int ops = rank->schedule->op_count;
    int most = 1;
    need_builder b = {.rank = rank};

    for (int i = 0; i < ops; i++)
        if (rank->schedule->op[i].dependence_count > most)
            most = rank->schedule->op[i].dependence_count;
    b.positions = calloc((size_t)ops + 1, sizeof(*b.positions));
    b.most = calloc((size_t)most * (size_t)rank->share_count, sizeof(*b.most));
    b.last = calloc((size_t)rank->share_count, sizeof(*b.last));
    b.no_memory = !b.positions || !b.most || !b.last;
    for (int i = 0; i < ops && !b.no_memory; i++)
        if (does_work(&rank->op[i]))
            needs_of_op(&b, &rank->op[i]);
    for (int i = 0; i < ops && b.positions; i++)
        free(b.positions[i].position);
    for (int i = 0; i < rank->schedule->decision_count; i++)
        if (rank->decision[i].op >= 0)
            rank->op[rank->decision[i].op].published = true;
    free(b.positions);
    free(b.most);
    free(b.last);
    free(b.need);
    if (!b.no_memory)
        return PEAL_STATUS_OK;
    return peal_report(rank->plan->desc.diagnostics, PEAL_E_NOT_ENOUGH_MEMORY, (peal_source){0},
                       "use larger tiles, or fewer workers",
                       "no memory for what the tiles of rank %d wait for", rank->schedule->rank);
}

/* Which blocks of the kernel of mode fused wait for which: random work items, whose tiles' points
 * are listed one by one. Blocks of which one writes what the other touches are ordered, whichever
 * work item comes first, or if one waits for all; partitions are each block of a grid once.
 * Tickets: whichever of those that blocks have taken ends next, the lowest one can run, and none
 * before what it depends on; and of tiles with uneven work blocks that take tickets are through
 * sooner. */
#include "backends/cuda/fused/dispatchers/ticket_list.h"
#include "tests/backends/check.h"

#include <stdlib.h>
#include <string.h>

enum { SPACES = 3, SIDE = 64, ORIGIN = 20, RECORDS = 4, GRID = 9, PLANS = 400, ROUNDS = 3 };
enum { WORKERS = 20 /* at most, of a work item */ };

/* What a block touches: per space and point 1 (read), 2 (written), by tiles; messages apart. */
typedef struct marks {
    unsigned char point[SPACES][SIDE][SIDE];
    unsigned char message[SPACES][SIDE][SIDE]; /* written by the message of word 1 */
    bool awaits;                               /* that word */
    bool works;
} marks;

static uint64_t state = 88172645463325252u;
static marks *all;
static int ordered, apart, late, spared;

static int below(int n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)n);
}

/* ---- random work items ---- */

static void random_box(peal_launch_box *box, unsigned first, int64_t tile, bool single)
{
    memset(box, 0, sizeof(*box));
    box->first = first;
    box->blocks = 1;
    box->tile = tile;
    for (int k = 0; k < PEAL_AXES; k++) {
        int length = k < 2 ? 1 + below(12) : 1;
        box->lo[k] = k < 2 ? below(6) : 0;
        box->hi[k] = box->lo[k] + length;
        box->extent[k] = single ? length : k < 2 ? 1 + below(5) : 1;
        box->lead = k == 0 && !single ? below(box->extent[0]) : box->lead;
        length += k == 0 ? box->lead : 0;
        box->count[k] = (unsigned)((length + box->extent[k] - 1) / box->extent[k]);
        box->tile_step[k] = box->blocks;
        box->blocks *= box->count[k];
    }
}

static peal_reach *random_reach(peal_arena *arena)
{
    peal_reach *reach = PEAL_ARENA_NEW(arena, peal_reach);

    for (int k = 0; k < PEAL_AXES; k++) {
        static const int ratio[3][2] = {{1, 1}, {2, 1}, {1, 2}};
        const int *r = ratio[k < 2 && below(3) == 0 ? below(3) : 0];
        reach->axis[k] = (peal_reach_axis){.num = r[0], .den = r[1]};
        if (k < 2) {
            reach->axis[k].low = -below(3);
            reach->axis[k].high = below(3);
            reach->axis[k].fixed = below(8) == 0;
        }
        if (reach->axis[k].fixed)
            reach->axis[k].high = reach->axis[k].low + 1 + below(4);
    }
    return reach;
}

static void random_touch(peal_arena *arena, peal_cuda_touch *touch)
{
    memset(touch, 0, sizeof(*touch));
    touch->space = below(SPACES);
    touch->write = below(3) == 0;
    touch->boxes = below(2) ? ~0u : (unsigned)below(8);
    int kind = below(12);
    touch->kind = kind < 8    ? PEAL_CUDA_TOUCH_REACH
                  : kind < 10 ? PEAL_CUDA_TOUCH_BOX
                              : PEAL_CUDA_TOUCH_INDEX;
    if (touch->kind == PEAL_CUDA_TOUCH_REACH)
        touch->reach = random_reach(arena);
    for (int k = 0; k < PEAL_AXES && touch->kind == PEAL_CUDA_TOUCH_BOX; k++) {
        touch->lo[k] = k < 2 ? below(10) : 0;
        touch->hi[k] = touch->lo[k] + (k < 2 ? 1 + below(3) : 1);
    }
    if (touch->kind == PEAL_CUDA_TOUCH_BOX && below(2)) {
        touch->word = 1;
        touch->write = true;
    }
}

static void random_record(peal_arena *arena, int number, peal_cuda_work_item *item)
{
    bool single = below(2);

    memset(item, 0, sizeof(*item));
    item->number = number;
    item->serves = below(2) ? -1 : below(5);
    item->after_all = below(4) == 0;
    item->spares = item->after_all && below(2);
    item->touch = PEAL_ARENA_ARRAY(arena, peal_cuda_touch, PEAL_CUDA_WORK_ITEM_TOUCHES);
    item->touch_count = 1 + below(4);
    for (int i = 0; i < item->touch_count; i++)
        random_touch(arena, &item->touch[i]);
    item->launch.box_count = single ? 1 : 1 + below(3);
    item->launch.wait_count = 1;
    item->launch.wait[0].word = 1;
    for (int b = 0; b < item->launch.box_count; b++) {
        peal_launch_box *box = &item->launch.box[b];
        random_box(box, item->blocks, item->blocks, single);
        box->waits = below(3) == 0;
        item->blocks += box->blocks;
    }
}

static void random_plan(peal_arena *arena, peal_cuda_fused *fused)
{
    fused->item = PEAL_ARENA_ARRAY(arena, peal_cuda_work_item, RECORDS);
    fused->kind_item = PEAL_ARENA_ARRAY(arena, int, RECORDS);
    fused->most_kinds = PEAL_FUSED_ITEM_KINDS;
    fused->most_items = PEAL_FUSED_ITEMS;
    for (int r = 0; r < fused->count; r++) {
        if (r > 1 && below(3) == 0)
            fused->item[r] = fused->item[below(r)];
        else
            random_record(arena, r, &fused->item[r]);
        fused->item[r].step = r / 2;
    }
}

/* ---- points ---- */

static int64_t floored(int64_t a, int64_t b)
{
    int64_t q = a / b;
    while (q * b > a)
        q--;
    while ((q + 1) * b <= a)
        q++;
    return q;
}

static void mark(marks *m, const peal_cuda_touch *touch, const int *lo, const int *hi)
{
    unsigned char(*points)[SIDE] = touch->word ? m->message[touch->space] : m->point[touch->space];

    for (int y = lo[1]; y < hi[1]; y++)
        for (int x = lo[0]; x < hi[0]; x++) {
            assert_in_range(y + ORIGIN, 0, SIDE - 1);
            assert_in_range(x + ORIGIN, 0, SIDE - 1);
            points[y + ORIGIN][x + ORIGIN] |= touch->write ? 2 : 1;
        }
}

static void mark_tile(marks *m, const peal_cuda_touch *touch, const int *lo, const int *hi,
                      int index)
{
    int from[2] = {index, -ORIGIN}, to[2] = {index + 1, SIDE - ORIGIN};

    if (touch->kind == PEAL_CUDA_TOUCH_BOX) {
        mark(m, touch, touch->lo, touch->hi);
        return;
    }
    for (int k = 0; k < 2 && touch->kind == PEAL_CUDA_TOUCH_REACH; k++) {
        const peal_reach_axis *axis = &touch->reach->axis[k];
        from[k] = (int)(axis->fixed ? axis->low
                                    : floored((int64_t)lo[k] * axis->num, axis->den) + axis->low);
        to[k] = (int)(axis->fixed ? axis->high
                                  : -floored(-(int64_t)hi[k] * axis->num, axis->den) + axis->high);
    }
    /* Indexes are few: those that are beyond the picture are left to their hulls. */
    if (touch->kind == PEAL_CUDA_TOUCH_INDEX && index >= SIDE - ORIGIN)
        return;
    mark(m, touch, from, to);
}

static void mark_block(marks *m, const peal_cuda_work_item *item, unsigned block)
{
    const peal_launch_box *box = item->launch.box;
    int b = 0;

    while (block - box[b].first >= box[b].blocks)
        b++;
    unsigned rest = block - box[b].first;
    int lo[PEAL_AXES], hi[PEAL_AXES], index = (int)box[b].tile + (int)rest;
    for (int k = 0; k < PEAL_AXES; k++) {
        int place = (int)(rest % box[b].count[k]);
        rest /= box[b].count[k];
        lo[k] = box[b].lo[k] - (k == 0 ? box[b].lead : 0) + place * box[b].extent[k];
        hi[k] = lo[k] + box[b].extent[k] < box[b].hi[k] ? lo[k] + box[b].extent[k] : box[b].hi[k];
        lo[k] = lo[k] > box[b].lo[k] ? lo[k] : box[b].lo[k];
    }
    m->works = true;
    m->awaits |= box[b].waits & 1;
    for (int i = 0; i < item->touch_count; i++)
        if (item->touch[i].boxes >> b & 1)
            mark_tile(m, &item->touch[i], lo, hi, index);
}

/* ---- what has to be ordered ---- */

static bool conflict(const marks *a, const marks *b)
{
    for (int s = 0; s < SPACES; s++)
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                int mine = a->point[s][y][x], theirs = b->point[s][y][x];
                if (mine && theirs && (mine | theirs) & 2)
                    return true;
                if (mine && b->message[s][y][x] && !a->awaits)
                    return true;
                if (theirs && a->message[s][y][x] && !b->awaits)
                    return true;
            }
    return false;
}

/* How many work items a block may be behind one that waits for it; -1: it is not waited for. */
static int may_be_behind(const peal_cuda_block_deps *order, const peal_fused_partition *partition,
                         unsigned block)
{
    for (unsigned i = 0; i < partition->after_count; i++)
        if (order->after[partition->after + i].block == block)
            return order->after[partition->after + i].behind;
    return block >= partition->range_first &&
                   block < partition->range_first + (unsigned)partition->range_count
               ? partition->range_behind
               : -1;
}

static void check_shares(const peal_cuda_fused *fused, const peal_cuda_block_deps *order)
{
    for (int r = 0; r < fused->count; r++) {
        const peal_cuda_work_item *item = &fused->item[r];
        const peal_fused_partition *partition = &order->partition[(size_t)item->kind * fused->grid];
        unsigned covered = 0;
        for (unsigned b = 0; b < fused->grid; b++) {
            for (unsigned i = 0; i < partition[b].count; i++)
                mark_block(&all[(unsigned)r * WORKERS + b], item,
                           partition[b].first + i * partition[b].stride);
            covered += partition[b].count;
            assert_true(partition[b].count == 0 ||
                        partition[b].first + (partition[b].count - 1) * partition[b].stride <
                            item->blocks);
        }
        assert_int_equal(covered, item->blocks);
    }
}

/* A block waits until others are through with all before it that meets what it does; rounds do not
 * overlap. */
static void check_order(const peal_cuda_fused *fused, const peal_cuda_block_deps *order)
{
    for (int i = 0; i < fused->count * fused->count; i++) {
        int r = i / fused->count, other = i % fused->count;
        for (unsigned a = 0; a < fused->grid && other < r; a++)
            for (unsigned b = 0; b < fused->grid; b++) {
                const marks *mine = &all[(unsigned)r * WORKERS + a];
                const marks *theirs = &all[(unsigned)other * WORKERS + b];
                const peal_fused_partition *partition =
                    &order->partition[(size_t)fused->item[r].kind * fused->grid + a];
                if (a == b || !mine->works || !theirs->works)
                    continue;
                const peal_cuda_work_item *item = &fused->item[r], *before = &fused->item[other];
                bool all_wait = item->after_all && (!item->spares || before->serves < 0);
                int behind = may_be_behind(order, partition, b);
                bool waits = behind >= 0 && r - behind > other;
                assert_true(waits || !(all_wait || conflict(mine, theirs)));
                spared += item->spares && !waits;
                ordered += waits;
                apart += !waits;
                late += behind > 0;
            }
    }
}

static void blocks_that_meet_are_ordered(void **unused)
{
    (void)unused;
    all = calloc((size_t)RECORDS * WORKERS, sizeof(*all));
    assert_non_null(all);
    for (int plan = 0; plan < PLANS; plan++) {
        peal_arena *arena = peal_arena_create();
        peal_schedule schedule = {.array_count = SPACES};
        peal_cuda_plan owner = {.arena = arena};
        peal_cuda_rank rank = {.plan = &owner, .schedule = &schedule};
        peal_cuda_fused fused = {.count = 1 + below(RECORDS),
                                 .grid = 1 + (unsigned)below(GRID),
                                 .dispatcher = &peal_cuda_dispatcher_tiles};
        peal_cuda_block_deps order;
        random_plan(arena, &fused);
        peal_cuda_partition_cyclic(&fused, (unsigned)below(3));
        peal_cuda_partition_serve(&fused, below(2) ? fused.grid : 16 * (fused.grid - 1));
        assert_true(peal_cuda_fused_has_room(&fused));
        peal_cuda_block_deps_build(&rank, &fused, &order);
        memset(all, 0, (size_t)RECORDS * WORKERS * sizeof(*all));
        check_shares(&fused, &order);
        check_order(&fused, &order);
        peal_arena_destroy(arena);
    }
    free(all);
    print_message("%d pairs of blocks ordered, %d not; %d may be behind, %d spared\n", ordered,
                  apart, late, spared);
    assert_true(ordered > 0 && apart > 0 && late > 0 && spared > 0);
}

/* ---- tickets ---- */

/* A run of random blocks through the list: a window of tickets that they have taken. */
typedef struct simulation {
    const peal_cuda_fused *fused;
    const peal_cuda_block_deps *order;
    const peal_cuda_tickets *tickets;
    unsigned epoch[WORKERS];
    unsigned round; /* epoch of its first work item */
} simulation;

static const peal_fused_partition *share_of_ticket(const simulation *s, const peal_fused_ticket *t)
{
    return &s->order->partition[(size_t)t->kind * s->fused->grid + t->worker];
}

static bool can_run(const simulation *s, const peal_fused_ticket *t)
{
    const peal_fused_partition *partition = share_of_ticket(s, t);

    for (unsigned w = 0; w < s->fused->grid; w++) {
        int behind = may_be_behind(s->order, partition, w);
        if (behind >= 0 && (int)(s->epoch[w] - (s->round + t->item - (unsigned)behind)) < 0)
            return false;
    }
    return true;
}

/* The one that runs meets none of earlier work items that have not ended. */
static void check_run(const simulation *s, const peal_fused_ticket *const *open, int count,
                      const peal_fused_ticket *t)
{
    const marks *mine = &all[(unsigned)t->item * WORKERS + t->worker];

    for (int i = 0; i < count; i++) {
        const marks *theirs = &all[(unsigned)open[i]->item * WORKERS + open[i]->worker];
        if (open[i]->item >= t->item)
            continue;
        assert_false(open[i]->worker == t->worker);
        assert_false(mine->works && theirs->works && conflict(mine, theirs));
        ordered++;
    }
    assert_true(s->epoch[t->worker] == s->round + t->item || share_of_ticket(s, t)->count == 0);
}

static void run_part(simulation *s, int part)
{
    const peal_cuda_ticket_launch *p = &s->fused->part[part];
    const peal_fused_ticket *open[WORKERS + 1], *list = s->tickets->list + p->ticket;
    unsigned taken = 1, blocks = 1 + (unsigned)below(WORKERS - 1);
    int count = 0;

    assert_int_equal(list[0].worker, PEAL_TICKET_BEGIN);
    assert_int_equal(list[0].item, p->item);
    for (unsigned w = 0; w < s->fused->grid; w++) /* as it was left, or at the very begin */
        assert_int_equal(s->epoch[w],
                         s->round + s->tickets->first[(size_t)part * s->fused->grid + w]);
    while (taken < p->count || count > 0) {
        while (taken < p->count && count < (int)blocks)
            open[count++] = &list[taken++];
        int pick = below(count);
        assert_true(can_run(s, open[0]));
        pick = can_run(s, open[pick]) ? pick : 0;
        const peal_fused_ticket *t = open[pick];
        for (int i = pick; i < count - 1; i++)
            open[i] = open[i + 1];
        check_run(s, open, --count, t);
        assert_true((int)(s->epoch[t->worker] - (s->round + t->next)) < 0);
        s->epoch[t->worker] = s->round + t->next;
    }
}

static void tickets_are_in_an_order(void **unused)
{
    (void)unused;
    all = calloc((size_t)RECORDS * WORKERS, sizeof(*all));
    assert_non_null(all);
    ordered = 0;
    for (int plan = 0; plan < PLANS; plan++) {
        peal_arena *arena = peal_arena_create();
        peal_schedule schedule = {.array_count = SPACES};
        peal_cuda_plan owner = {.arena = arena};
        peal_cuda_rank rank = {.plan = &owner, .schedule = &schedule};
        peal_cuda_fused fused = {.count = 1 + below(RECORDS), .blocks = 1 + (unsigned)below(4)};
        peal_cuda_block_deps order;
        peal_cuda_tickets tickets;
        fused.dispatcher = below(2) ? &peal_cuda_dispatcher_paper : &peal_cuda_dispatcher_tickets;
        random_plan(arena, &fused);
        fused.grid = fused.dispatcher->workers(&fused);
        peal_cuda_partition_serve(&fused, fused.grid);
        assert_in_range(fused.grid, 1, WORKERS);
        assert_true(peal_cuda_fused_has_room(&fused));
        peal_cuda_block_deps_build(&rank, &fused, &order);
        fused.dispatcher->list_tickets(&rank, &fused, &order, &tickets);
        memset(all, 0, (size_t)RECORDS * WORKERS * sizeof(*all));
        check_shares(&fused, &order);
        simulation s = {.fused = &fused, .order = &order, .tickets = &tickets};
        for (unsigned w = 0; w < fused.grid; w++)
            s.epoch[w] = tickets.first[w];
        for (int i = 0; i < ROUNDS; i++, s.round += (unsigned)fused.count)
            for (int p = 0; p < fused.part_count; p++)
                run_part(&s, p);
        peal_arena_destroy(arena);
    }
    free(all);
    assert_true(ordered > 0);
}

/* ---- uneven tiles ---- */

enum { TILES = 64, LONG_TILES = 16, TIMES = 10, BLOCKS = 4 };

static int work_of(const peal_fused_partition *partition)
{
    int work = 0;

    for (unsigned i = 0; i < partition->count; i++)
        work += partition->first + i * partition->stride < LONG_TILES ? TIMES : 1;
    return work;
}

/* One work item, whose first tiles take ten times as long: when the last block is through. */
static int time_of(bool tickets)
{
    peal_arena *arena = peal_arena_create();
    peal_schedule schedule = {.array_count = SPACES};
    peal_cuda_plan owner = {.arena = arena};
    peal_cuda_rank rank = {.plan = &owner, .schedule = &schedule};
    peal_cuda_fused fused = {.count = 1,
                             .blocks = BLOCKS,
                             .services = 1,
                             .dispatcher = tickets ? &peal_cuda_dispatcher_tickets
                                                   : &peal_cuda_dispatcher_tiles};
    int busy[BLOCKS] = {0}, last = 0;
    peal_cuda_block_deps order;
    peal_cuda_tickets list = {.count = 0};

    random_plan(arena, &fused);
    memset(&fused.item[0].launch, 0, sizeof(fused.item[0].launch));
    fused.item[0].touch_count = 0;
    fused.item[0].blocks = TILES;
    fused.grid = fused.dispatcher->workers(&fused);
    assert_true(peal_cuda_fused_has_room(&fused));
    peal_cuda_block_deps_build(&rank, &fused, &order);
    if (tickets)
        fused.dispatcher->list_tickets(&rank, &fused, &order, &list);
    for (unsigned b = 0; b < BLOCKS && !tickets; b++)
        busy[b] = work_of(&order.partition[b]);
    for (size_t t = 1; t < list.count; t++) { /* by the block that is the first to be free */
        int free_one = 0;
        for (int b = 1; b < BLOCKS; b++)
            free_one = busy[b] < busy[free_one] ? b : free_one;
        busy[free_one] += work_of(&order.partition[list.list[t].worker]);
    }
    for (int b = 0; b < BLOCKS; b++)
        last = busy[b] > last ? busy[b] : last;
    peal_arena_destroy(arena);
    return last;
}

static void uneven_tiles_are_shared_out(void **unused)
{
    int sum = LONG_TILES * TIMES + TILES - LONG_TILES, fixed = time_of(false);
    int dynamic = time_of(true);

    (void)unused;
    print_message("work of %d for %d blocks: %d fixed, %d by tickets\n", sum, BLOCKS, fixed,
                  dynamic);
    assert_true(BLOCKS * dynamic < 2 * sum && dynamic < fixed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_that_meet_are_ordered),
                                       cmocka_unit_test(tickets_are_in_an_order),
                                       cmocka_unit_test(uneven_tiles_are_shared_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

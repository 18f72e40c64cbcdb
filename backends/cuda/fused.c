/* Records of the kernel that stays, how they lie in device memory, and how many blocks run them. */
#include "backends/cuda/fused.h"
#include "backends/cuda/emit.h"

#include <stddef.h>
#include <string.h>

/* ---- records ---- */

static cuda_fused *noted(const cuda_rank *rank)
{
    return &rank->plan->fused[rank->plan->fused_half].rank[rank->index];
}

void cuda_fused_begin(cuda_plan *plan, int half)
{
    if (!plan->fused)
        plan->fused = PEAL_ARENA_ARRAY(plan->arena, cuda_fused_kernel, 2);
    cuda_fused_kernel *kernel = &plan->fused[half];
    plan->fused_half = half;
    kernel->rank = PEAL_ARENA_ARRAY(plan->arena, cuda_fused, plan->rank_count);
    kernel->parameter = PEAL_ARENA_ARRAY(plan->arena, peal_fused, plan->rank_count);
    for (int r = 0; r < plan->rank_count; r++)
        kernel->rank[r].touch = PEAL_ARENA_ARRAY(plan->arena, cuda_touch, CUDA_RECORD_TOUCHES);
}

static cuda_record *next_record(const cuda_rank *rank)
{
    cuda_fused *fused = noted(rank);

    if (fused->count == fused->room)
        fused->record =
            peal_arena_grow(rank->plan->arena, fused->record, &fused->room, sizeof(*fused->record));
    cuda_record *record = &fused->record[fused->count++];
    memset(record, 0, sizeof(*record));
    record->serves = -1;
    return record;
}

static int number_of(const cuda_rank *rank, CUfunction function, const peal_launch *launch,
                     const cuda_group *group)
{
    if (!group || group->kind != CUDA_GROUP_TASK) {
        int number = 0;
        while (cuda_kernels_builtin(rank->plan->kernels, (cuda_builtin)number) != function)
            number++;
        return number;
    }
    int number = rank->op[launch->op].kernel->number;
    bool folds = group->task->kind == PEAL_TASK_KERNEL && group->task->reduction_count > 0;
    return number + (int)(folds && !group->partials ? CUDA_FUSED_BARE : CUDA_FUSED_FULL);
}

static void keep_touches(cuda_plan *plan, cuda_record *record)
{
    cuda_touch *kept = PEAL_ARENA_ARRAY(plan->arena, cuda_touch, record->touch_count + 1);

    memcpy(kept, record->touch, (size_t)record->touch_count * sizeof(*kept));
    record->touch = kept;
}

/* What a record waits for, as one of its own. */
static void add_receive(cuda_rank *rank, const peal_launch *launch)
{
    cuda_record *record = next_record(rank);
    peal_launch *own = &record->launch;

    own->control = launch->control;
    own->stop = launch->stop;
    own->skip = launch->skip;
    own->step = launch->step;
    own->budget = launch->budget;
    own->op = launch->op;
    own->counter[0] = launch->counter[0];
    own->wait_count = launch->wait_count;
    memcpy(own->wait, launch->wait, (size_t)launch->wait_count * sizeof(own->wait[0]));
    own->box_count = 1;
    own->box[0] = (peal_launch_box){.blocks = 1, .bit = 1, .waits = (1u << own->wait_count) - 1};
    for (int k = 0; k < PEAL_AXES; k++) {
        own->box[0].hi[k] = own->box[0].extent[k] = 1;
        own->box[0].count[k] = 1;
    }
    record->number = CUDA_BUILTIN_SIGNAL;
    record->blocks = 1;
    record->schedule = rank->schedule;
    record->receives = true;
    record->step = rank->walk.counter[0];
    record->touch = noted(rank)->touch;
    cuda_fused_touch_waits(rank, record);
    keep_touches(rank->plan, record);
}

/* So many chunks a block folds one after the other, while others go on (16384^2 on 2 H200: 32 of
 * them 441 us a step, 403 by many blocks). */
enum { MOST_CHUNKS = 4 };

/* Folds, and rows, for which no task waits can be behind: which of the schedule's tasks it is; -1.
 */
static int serves(const cuda_rank *rank, const cuda_group *group)
{
    if (!group || group->kind != CUDA_GROUP_TASK || !rank->scratch)
        return -1;
    bool folds = group->task->kind == PEAL_TASK_FOLD || group->task->kind == PEAL_TASK_COMBINE;
    if (folds ? !rank->scratch[group->task->gather] : group->task->kind != PEAL_TASK_PRINT)
        return -1;
    return (int)(group->task - rank->schedule->task);
}

/* What such a record waits for and sends is then done by the dispatcher, at a time. A COMBINE reads
 * contributions where they have come in. */
static bool is_alone(const cuda_rank *rank, const cuda_group *group, cuda_record *record)
{
    peal_launch *launch = &record->launch;

    if (record->serves < 0 || record->blocks != 1 || launch->stop || launch->skip ||
        launch->box_count != 1 || cuda_has_tickets(rank->plan->lowering.order))
        return false;
    memcpy(record->quantum, group->quantum, sizeof(record->quantum));
    if (group->task->kind != PEAL_TASK_COMBINE)
        return group->task->kind == PEAL_TASK_FOLD && launch->list_count == 0;
    peal_launch_ride ride;
    if (!cuda_ride_describe(rank, group, &ride))
        return false;
    launch->ride = ride;
    return true;
}

void cuda_fused_add(cuda_rank *rank, CUfunction function, unsigned blocks,
                    const peal_launch *launch, const cuda_group *group)
{
    cuda_plan *plan = rank->plan;

    if (plan->lowering.order == CUDA_ORDER_PERIOD && launch->wait_count > 0)
        add_receive(rank, launch);
    cuda_record *record = next_record(rank);
    record->launch = *launch;
    record->step = rank->walk.counter[0];
    record->number = number_of(rank, function, launch, group);
    record->blocks = blocks;
    record->schedule = rank->schedule;
    record->serves = serves(rank, group);
    if (group && group->kind == CUDA_GROUP_TASK && cuda_fused_sends_fold(rank, group))
        record->launch.view[0] =
            record->launch.view[1]; /* among the partials, which are read then */
    if (group && group->kind == CUDA_GROUP_TASK && group->task->kind == PEAL_TASK_KERNEL &&
        group->task->mergeable && rank->op[launch->op].kernel->shapes) {
        record->task = group->task;
        record->first_blocks = cuda_fused_first_blocks(launch, blocks);
        record->partials = group->partials;
    }
    if (launch->box_count == 1 && launch->box[0].blocks == 0)
        record->launch.box[0].blocks = blocks;
    if (record->serves >= 0 && group->task->kind == PEAL_TASK_FOLD && blocks <= MOST_CHUNKS)
        record->blocks = record->launch.box[0].blocks = 1;
    record->alone = is_alone(rank, group, record);
    record->touch = noted(rank)->touch;
    cuda_fused_touch(rank, record, group);
    record->after_all |= plan->lowering.order == CUDA_ORDER_GRID;
    keep_touches(plan, record);
}

/* ---- layout ---- */

_Static_assert(PEAL_FUSED_RANKS_MOST * sizeof(peal_fused) <= 4096, "a kernel's parameters");

enum { PARTS = 7 };

/* Parts of a peal_launch that records use, all of the same length. */
typedef struct part {
    size_t from, bytes; /* of peal_launch; of what is used */
} part;

static size_t longer(size_t a, size_t b)
{
    return a > b ? a : b;
}

static int find_parts(const cuda_fused *fused, part *out)
{
    part found[PARTS] = {{0, offsetof(peal_launch, base)},  {offsetof(peal_launch, base), 0},
                         {offsetof(peal_launch, list), 0},  {offsetof(peal_launch, box), 0},
                         {offsetof(peal_launch, wait), 0},  {offsetof(peal_launch, write), 0},
                         {offsetof(peal_launch, mirror), 0}};
    int count = 0;

    for (int r = 0; r < fused->count; r++) {
        const peal_launch *l = &fused->record[r].launch;
        found[1].bytes = longer(found[1].bytes, l->list_count > 0 ? sizeof(l->base) : 0);
        found[2].bytes = longer(found[2].bytes, (size_t)l->list_count * sizeof(l->list[0]));
        found[3].bytes = longer(found[3].bytes, (size_t)l->box_count * sizeof(l->box[0]));
        found[4].bytes = longer(found[4].bytes, (size_t)l->wait_count * sizeof(l->wait[0]));
        found[5].bytes = longer(found[5].bytes, (size_t)l->write_count * sizeof(l->write[0]));
        found[6].bytes = longer(found[6].bytes, (size_t)l->mirror_count * sizeof(l->mirror[0]));
    }
    for (int i = 0; i < PARTS; i++)
        if (found[i].bytes > 0)
            out[count++] = found[i];
    return count;
}

_Static_assert(sizeof(peal_launch_box) % 8 == 0 && sizeof(peal_launch_wait) % 8 == 0 &&
                   sizeof(peal_launch_write) % 8 == 0 && sizeof(peal_launch_mirror) % 8 == 0 &&
                   sizeof(peal_launch_list) % 8 == 0 && offsetof(peal_launch, base) % 8 == 0,
               "records are copied by words of 8 bytes");

/* Where things lie in the rank's one piece of device memory. */
typedef struct places {
    size_t heads, shares, after, adds, places, epochs, arrived, records, tickets, first, words,
        bytes;
} places;

static size_t place(size_t *end, size_t bytes)
{
    size_t at = (*end + 255) / 256 * 256;
    *end = at + bytes;
    return at;
}

static void pack(const cuda_fused *fused, const part *parts, int count, char *out)
{
    for (int r = 0; r < fused->count; r++)
        for (int p = 0; p < count; p++) {
            memcpy(out, (const char *)&fused->record[r].launch + parts[p].from, parts[p].bytes);
            out += parts[p].bytes;
        }
}

static void place_tickets(const cuda_fused *fused, const cuda_tickets *tickets, places *at)
{
    at->tickets = place(&at->bytes, tickets->count * sizeof(peal_fused_ticket));
    at->first = place(&at->bytes, (size_t)fused->part_count * fused->grid * sizeof(unsigned short));
    at->words = place(&at->bytes, sizeof(peal_fused_words));
}

/* The first launch's; `begun` is not that of the round that comes next. */
static void write_tickets(const cuda_fused *fused, const cuda_tickets *tickets, const places *at,
                          char *image, peal_fused *f)
{
    memcpy(image + at->tickets, tickets->list, tickets->count * sizeof(peal_fused_ticket));
    memcpy(image + at->first, tickets->first,
           (size_t)fused->part_count * fused->grid * sizeof(unsigned short));
    ((peal_fused_words *)(image + at->words))->begun = f->first;
    f->tickets = (peal_fused_tickets){.list = fused->memory + at->tickets,
                                      .first = fused->memory + at->first,
                                      .words = fused->memory + at->words,
                                      .count = fused->part[0].count,
                                      .record = (unsigned)fused->part[0].record,
                                      .workers = fused->grid};
}

static peal_status upload(const cuda_rank *rank, cuda_fused *fused, const cuda_order *order,
                          const cuda_tickets *tickets, peal_fused *f)
{
    cuda_plan *plan = rank->plan;
    part parts[PARTS];
    int count = find_parts(fused, parts);
    size_t words = 0, grid = fused->grid, records = (size_t)fused->count;
    places at = {.bytes = 0};
    char text[160];

    for (int p = 0; p < count; p++)
        words += parts[p].bytes / 8;
    /* Who polls one epoch holds up no other; but where all blocks poll all of them, they are near.
     */
    f->epoch_words = 8;
    for (int r = 0; r < fused->count; r++)
        f->epoch_words = fused->record[r].spread ? 1 : f->epoch_words;
    at.heads = place(&at.bytes, records * sizeof(peal_fused_head));
    at.shares = place(&at.bytes, (size_t)fused->kinds * grid * sizeof(peal_fused_share));
    at.after = place(&at.bytes, (order->after_count + 1) * sizeof(*order->after));
    at.adds = place(&at.bytes, (order->add_count + 1) * sizeof(peal_fused_add));
    at.places = place(&at.bytes, words * sizeof(unsigned short));
    at.epochs = place(&at.bytes, grid * f->epoch_words * sizeof(unsigned));
    at.arrived = place(&at.bytes, records * PEAL_FUSED_COUNTERS * sizeof(unsigned));
    at.records = place(&at.bytes, records * words * 8);
    if (fused->tickets)
        place_tickets(fused, tickets, &at);
    CUresult result = plan->driver->cuMemAlloc_(&fused->memory, at.bytes);
    if (result)
        return peal_report(plan->desc.diagnostics, PEAL_E660, CUDA_NOWHERE, NULL,
                           "no device memory for the records of mode fused, %zu bytes: %s",
                           at.bytes, peal_cuda_error(result, text));
    char *image = PEAL_ARENA_ARRAY(plan->arena, char, at.bytes);
    for (int r = 0; r < fused->count; r++) {
        cuda_record *record = &fused->record[r];
        unsigned function = record->shape < 0 ? (unsigned)record->number
                                              : PEAL_FUSED_SHAPES + (unsigned)record->shape;
        ((peal_fused_head *)(image + at.heads))[r] =
            (peal_fused_head){function, (unsigned)record->kind, record->blocks, record->alone,
                              record->back};
        record->launch.arrived =
            fused->memory + at.arrived + (size_t)r * PEAL_FUSED_COUNTERS * sizeof(unsigned);
        if (record->alone)
            record->launch.box[0].waits = record->launch.write_count = 0;
    }
    memcpy(image + at.shares, order->share, (size_t)fused->kinds * grid * sizeof(peal_fused_share));
    memcpy(image + at.after, order->after, order->after_count * sizeof(*order->after));
    if (fused->tickets)
        write_tickets(fused, tickets, &at, image, f);
    memcpy(image + at.adds, order->add, order->add_count * sizeof(peal_fused_add));
    unsigned short *to = (unsigned short *)(image + at.places);
    for (int p = 0; p < count; p++)
        for (size_t i = 0; i < parts[p].bytes / 8; i++)
            *to++ = (unsigned short)(parts[p].from / 8 + i);
    pack(fused, parts, count, image + at.records);
    result = plan->driver->cuMemcpyHtoD_(fused->memory, image, at.bytes);
    if (result)
        return peal_report(plan->desc.diagnostics, PEAL_E660, CUDA_NOWHERE, NULL,
                           "cannot copy the records of mode fused to the device: %s",
                           peal_cuda_error(result, text));
    f->heads = fused->memory + at.heads;
    f->records = fused->memory + at.records;
    f->shares = fused->memory + at.shares;
    f->after = fused->memory + at.after;
    f->adds = fused->memory + at.adds;
    f->places = fused->memory + at.places;
    f->epochs = fused->memory + at.epochs;
    f->control = rank->control_device;
    f->stop = rank->stop_word;
    f->record_words = (unsigned)words;
    f->record_count = (unsigned)fused->count;
    f->kind_count = (unsigned)fused->kinds;
    return PEAL_STATUS_OK;
}

/* ---- creation ---- */

static peal_status refuse(cuda_plan *plan, const char *reason)
{
    return peal_report(plan->desc.diagnostics, PEAL_E664, CUDA_NOWHERE,
                       "--mode graph runs it; --mode auto takes the first mode that can",
                       "mode fused cannot run this: %s", reason);
}

/* What a rank's blocks do in a round, and how many blocks it has work for beside the one for what
 * is one block's. */
typedef struct demand {
    uint64_t work;
    unsigned most;
    bool folds; /* tiles have partials */
} demand;

static demand demand_of(const cuda_fused *fused)
{
    demand d = {0, 1, false};

    for (int r = 0; r < fused->count; r++) {
        unsigned blocks = fused->record[r].blocks;
        d.work += blocks;
        d.most = blocks > d.most ? blocks : d.most;
        d.folds |= fused->record[r].partials;
    }
    d.most++;
    return d;
}

/* Ranks get two blocks each, or one if there are so few, then one at a time: who has the fewest for
 * its work. */
static void share_blocks(cuda_fused_kernel *kernel, const demand *of, int rank_count,
                         unsigned resident)
{
    unsigned least = resident >= 2 * (unsigned)rank_count ? 2 : 1;

    kernel->blocks = 0;
    for (int r = 0; r < rank_count; r++)
        kernel->blocks += kernel->rank[r].blocks = least;
    while (kernel->blocks < resident) {
        int next = -1;
        for (int r = 0; r < rank_count; r++)
            if (kernel->rank[r].blocks < of[r].most &&
                (next < 0 ||
                 kernel->rank[r].blocks * of[next].work < kernel->rank[next].blocks * of[r].work))
                next = r;
        if (next < 0)
            return;
        kernel->rank[next].blocks++;
        kernel->blocks++;
    }
}

/* Blocks of an SM get in each other's way where each has a tile or two: fences wait for what others
 * have stored (5-point relaxation on 2 H200: 4.1 us a step with one block against 4.8 with three
 * where an SM has 2 tiles, 9.5 against 6.5 where it has 8). Those with partials come one after the
 * other in a block, and wait for memory each. */
enum { LEAST_TILES = 2 };

static int wanted_on_sm(const cuda_plan *plan, const demand *of)
{
    unsigned tiles = 0, each = LEAST_TILES * (unsigned)plan->device->sm_count;

    for (int r = 0; r < plan->rank_count; r++)
        tiles += of[r].folds ? LEAST_TILES * of[r].most : of[r].most;
    if (plan->lowering.blocks > 0)
        return plan->lowering.blocks;
    return tiles < 2 * each ? 1 : (int)(tiles / each);
}

/* With as many blocks as the compiler leaves registers for: how their shares are laid out is
 * compiled in. */
static void choose_spread(const cuda_plan *plan, cuda_fused_kernel *kernel, const demand *of)
{
    int wanted = wanted_on_sm(plan, of);
    unsigned on_sm = wanted < PEAL_FUSED_BLOCKS ? (unsigned)wanted : PEAL_FUSED_BLOCKS;

    share_blocks(kernel, of, plan->rank_count, on_sm * (unsigned)plan->device->sm_count);
    for (int r = 0; r < plan->rank_count; r++)
        cuda_fused_spread(&kernel->rank[r], kernel->rank[r].blocks);
}

/* As many blocks as are resident together, and no more than there is work for. */
static peal_status choose_grid(cuda_plan *plan, cuda_fused_kernel *kernel, const demand *of)
{
    int resident = cuda_fused_resident(plan, kernel);

    if (resident < 1)
        return refuse(plan, "its kernel does not fit on the device");
    int wanted = wanted_on_sm(plan, of);
    resident = wanted < resident ? wanted : resident;
    unsigned all = (unsigned)resident * (unsigned)plan->device->sm_count;
    if (all < (unsigned)plan->rank_count)
        return refuse(plan, peal_arena_print(plan->arena,
                                             "%d ranks of a process share a GPU, which has room "
                                             "for %u of its kernel's blocks at a time",
                                             plan->rank_count, all));
    share_blocks(kernel, of, plan->rank_count, all);
    for (int r = 0; r < plan->rank_count; r++) {
        cuda_fused *fused = &kernel->rank[r];
        fused->grid = fused->tickets ? cuda_fused_workers(fused) : fused->blocks;
        cuda_fused_serve(fused, fused->blocks);
        if (fused->grid >= UINT16_MAX)
            return refuse(plan, "the device has too many SMs");
    }
    return PEAL_STATUS_OK;
}

static peal_status check_records(cuda_plan *plan, const cuda_fused *fused)
{
    if (fused->count > PEAL_FUSED_RECORDS)
        return refuse(plan, "a period has more than 2048 launches");
    for (int r = 0; r < fused->count; r++)
        if (fused->record[r].overflows)
            return refuse(plan, "a task or message touches more than 256 boxes of memory");
    return PEAL_STATUS_OK;
}

static peal_status build_rank(cuda_rank *rank, cuda_fused *fused, peal_fused *parameter)
{
    cuda_order order;
    cuda_tickets tickets;

    fused->kind_record = PEAL_ARENA_ARRAY(rank->plan->arena, int, fused->count + 1);
    if (!cuda_fused_order(rank, fused, &order))
        return refuse(rank->plan, "a period has more than 128 kinds of launches");
    if (fused->tickets)
        cuda_fused_tickets(rank, fused, &order, &tickets);
    return upload(rank, fused, &order, &tickets, parameter);
}

peal_status cuda_fused_build(cuda_plan *plan, int half)
{
    cuda_fused_kernel *kernel = &plan->fused[half];
    demand *of = PEAL_ARENA_ARRAY(plan->arena, demand, plan->rank_count);
    peal_status status = PEAL_STATUS_OK;
    unsigned begin = 0;

    for (int r = 0; r < plan->rank_count && !status; r++) {
        kernel->rank[r].tickets = cuda_has_tickets(plan->lowering.order);
        kernel->rank[r].receives = plan->lowering.order == CUDA_ORDER_PERIOD;
        status = check_records(plan, &kernel->rank[r]);
        of[r] = demand_of(&kernel->rank[r]);
    }
    if (status)
        return status;
    choose_spread(plan, kernel, of);
    const char *shapes = cuda_fused_shape(kernel, plan->rank_count, plan->device, plan->arena);
    status = cuda_kernels_fused(plan->kernels, half, shapes, kernel->shapes, &kernel->function);
    if (!status)
        status = choose_grid(plan, kernel, of);
    for (int r = 0; r < plan->rank_count && !status; r++) {
        kernel->parameter[r].begin = begin;
        kernel->parameter[r].grid = kernel->rank[r].blocks;
        begin += kernel->rank[r].blocks;
        status = build_rank(&plan->rank[r], &kernel->rank[r], &kernel->parameter[r]);
    }
    return status;
}

void cuda_fused_destroy(cuda_plan *plan)
{
    cuda_fused_scratch_free(plan);
    for (int half = 0; plan->fused && half < 2; half++)
        for (int r = 0; plan->fused[half].rank && r < plan->rank_count; r++)
            if (plan->fused[half].rank[r].memory)
                plan->driver->cuMemFree_(plan->fused[half].rank[r].memory);
}

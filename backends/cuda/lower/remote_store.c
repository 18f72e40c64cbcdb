/* Remote stores: each block of a task stores the points of its tile that belong to a message into
 * the receiver's memory (device/send.h). Images of the rank's own points are stored in the same
 * way.
 *
 * That is right if each point of the message is written by one tile of the launch and by nothing
 * after it, or by nothing in the launch at all (walls, which never change). Other messages are
 * copied by the last block that sends, or by a kernel of their own, as other images are. */
#include "backends/cuda/lower/emit.h"
#include "base/checked.h"

#include <limits.h>
#include <string.h>

/* ---- preparation ---- */

static bool fits_int(int64_t value)
{
    return value >= INT_MIN / 2 && value <= INT_MAX / 2;
}

/* Whether the task writes, of this access, exactly the points of its tile. */
static bool writes_its_points(const peal_schedule_task *task, const peal_task_access *access)
{
    if (access->mode == PEAL_READ_ACCESS || access->per_tile > 0 || access->reach_count != 1)
        return false;
    for (int k = 0; k < PEAL_AXES; k++) {
        const peal_reach_axis *axis = &access->reach[0].axis[k];
        if (!axis->fixed && (axis->num != axis->den || axis->low != 0 || axis->high != 0))
            return false;
        for (int t = 0; axis->fixed && t < task->tiling_count; t++)
            if (axis->low != task->tiling[t].box.lo[k] || axis->high != task->tiling[t].box.hi[k] ||
                axis->high - axis->low != 1)
                return false;
    }
    return true;
}

unsigned peal_cuda_remote_store_accesses(const peal_schedule_task *task)
{
    unsigned bits = 0;

    for (int i = 0; i < task->access_count && i < PEAL_LAUNCH_VIEWS; i++)
        if (writes_its_points(task, &task->access[i]))
            bits |= 1u << i;
    return bits;
}

/* Sets the remote store of a piece. False: blocks cannot store it (it is counted, has a fourth
 * axis, elements of more than 8 bytes, or numbers that do not fit). */
static bool bind_remote_store(const peal_cuda_rank *rank, const peal_cuda_op *op,
                              const peal_piece *piece, peal_cuda_remote_store *out)
{
    const peal_schedule *schedule = rank->schedule;
    const peal_box *source = &piece->source;
    bool local = op->source->copy == PEAL_COPY_LOCAL, staged = !local && !piece->direct;
    const peal_layout *layout =
        local    ? &schedule->array[piece->target_array].layout
        : staged ? NULL
                 : &schedule->peer[op->channel->peer_index].layout[piece->target_array];
    int64_t bytes = (int64_t)peal_type_bytes(schedule->array[piece->array].type), dense = 1;
    int64_t slot = staged && op->channel->slots > 1 ? op->channel->staging_bytes : 0;

    *out = (peal_cuda_remote_store){.array = piece->array, .points = 1};
    out->base = (peal_cuda_base){local    ? PEAL_CUDA_BASE_OWN
                                 : staged ? PEAL_CUDA_BASE_STAGING
                                          : PEAL_CUDA_BASE_PEER,
                                 piece->target_array};
    out->box.bytes = (unsigned short)bytes;
    out->offset = staged ? piece->staging : 0;
    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t step = (layout ? layout->stride[k] : dense) * bytes;
        int64_t from =
            layout ? piece->target[k] - layout->stored.lo[k] - source->lo[k] : -source->lo[k];
        out->offset += from * step;
        out->to_lo[k] = (int)piece->target[k];
        out->to_hi[k] = (int)(piece->target[k] + piece->target_extent[k]);
        out->points *= source->hi[k] - source->lo[k];
        dense *= source->hi[k] - source->lo[k];
        if (k < 3) {
            out->box.lo[k] = (int)source->lo[k];
            out->box.hi[k] = (int)source->hi[k];
        }
        if (k == 1 || k == 2)
            out->box.step[k - 1] = step;
        if (!fits_int(source->lo[k]) || !fits_int(source->hi[k]))
            return false;
    }
    return bytes <= 8 && !piece->counted && out->points <= INT_MAX &&
           source->hi[3] - source->lo[3] == 1 && source->lo[3] == 0 &&
           (!staged || (piece->staging | slot) % bytes == 0);
}

void peal_cuda_remote_stores_bind(peal_cuda_rank *rank, peal_cuda_op *op)
{
    bool local = op->source->copy == PEAL_COPY_LOCAL;
    const peal_piece *piece = local ? op->source->piece : op->channel->piece;
    int count = local ? op->source->piece_count : op->channel->piece_count;

    op->remote_store = PEAL_ARENA_ARRAY(rank->plan->arena, peal_cuda_remote_store, count + 1);
    op->can_store_remotely = count > 0;
    for (int i = 0; i < count && op->can_store_remotely; i++) {
        op->can_store_remotely =
            bind_remote_store(rank, op, &piece[i], &op->remote_store[op->remote_store_count]);
        op->remote_store_count += op->remote_store[op->remote_store_count].points > 0;
    }
}

/* ---- joining a task ---- */

/* How many points a box and a remote store have in common. A remote store has index 0 only along
 * the fourth axis. */
static int64_t common_points(const peal_launch_box *box,
                             const peal_launch_remote_store *remote_store)
{
    int64_t points = box->lo[3] <= 0 && box->hi[3] > 0;

    for (int k = 0; k < 3 && points > 0; k++) {
        int lo = box->lo[k] > remote_store->lo[k] ? box->lo[k] : remote_store->lo[k];
        int hi = box->hi[k] < remote_store->hi[k] ? box->hi[k] : remote_store->hi[k];
        points *= hi > lo ? hi - lo : 0;
    }
    return points;
}

/* The view of the launch through which its tiles write the storage; -1: none. */
static int view_of(const peal_cuda_group *group, int storage)
{
    for (int i = 0; i < group->written_count; i++)
        if (group->written[i] == storage)
            return i;
    return -1;
}

/* Sets inner_lo and inner_hi: the part of the remote store in the hull of some boxes. Returns how
 * many points it has. */
static int64_t clip_to_hull(const peal_launch *launch, unsigned boxes,
                            peal_launch_remote_store *remote_store)
{
    int64_t points = 1;

    for (int k = 0; k < 3; k++) {
        int lo = INT_MAX, hi = INT_MIN;
        for (int b = 0; b < launch->box_count; b++) {
            const peal_launch_box *box = &launch->box[b];
            lo = boxes >> b & 1 && box->lo[k] < lo ? box->lo[k] : lo;
            hi = boxes >> b & 1 && box->hi[k] > hi ? box->hi[k] : hi;
        }
        remote_store->inner_lo[k] = lo > remote_store->lo[k] ? lo : remote_store->lo[k];
        remote_store->inner_hi[k] = hi < remote_store->hi[k] ? hi : remote_store->hi[k];
        points *= remote_store->inner_hi[k] > remote_store->inner_lo[k]
                      ? remote_store->inner_hi[k] - remote_store->inner_lo[k]
                      : 0;
    }
    return points;
}

/* The boxes of the launch whose blocks do the remote store; 0: they cannot. Their tiles must fill
 * the part of it that lies in their hull. The launch does not write the points around the hull; a
 * block whose tile is at the rim of the hull along an axis stores them too. Blocks look at three
 * axes, so a box of several tiles along the fourth is refused. */
static unsigned boxes_of(const peal_cuda_group *group, unsigned boxes,
                         peal_launch_remote_store *remote_store)
{
    int64_t points = 0;
    unsigned bits = 0;

    for (int b = 0; b < group->launch.box_count; b++)
        bits |=
            boxes >> b & 1 && common_points(&group->launch.box[b], remote_store) > 0 ? 1u << b : 0;
    for (int b = 0; b < group->launch.box_count; b++) {
        points += bits >> b & 1 ? common_points(&group->launch.box[b], remote_store) : 0;
        if (bits >> b & 1 && group->launch.box[b].count[3] > 1)
            return 0;
    }
    return bits && clip_to_hull(&group->launch, bits, remote_store) == points ? bits : 0;
}

/* Whether a box has points in tiles that a dependence names. The dependent op has no tiles of its
 * own. */
static bool is_box_needed(const peal_schedule_task *task, const peal_dependence *dependence,
                          const peal_launch_box *box)
{
    if (dependence->all)
        return true;
    const peal_tiling *tiling = &task->tiling[dependence->a_tiling];
    for (int k = 0; k < PEAL_AXES; k++) {
        const peal_map_axis *map = &dependence->map[k];
        int64_t low = peal_floor_divide(map->low, map->divisor);
        int64_t high = peal_floor_divide(map->high, map->divisor);
        low = low > map->first ? low : map->first;
        high = high < map->last ? high : map->last;
        if (map->b_axis < 0 && (box->lo[k] >= tiling->box.lo[k] + (high + 1) * tiling->extent[k] ||
                                box->hi[k] <= tiling->box.lo[k] + low * tiling->extent[k]))
            return false;
    }
    return true;
}

/* Those of `boxes` whose tiles op `index` depends on. All of them belong to ops that it depends on,
 * but perhaps by other tiles. */
static unsigned boxes_needed(const peal_cuda_rank *rank, const peal_cuda_group *group, int index,
                             unsigned boxes)
{
    const peal_op *op = &rank->schedule->op[index];
    unsigned needed = 0;

    if (group->task->kind != PEAL_TASK_KERNEL || boxes == group->launch.fold_bit)
        return boxes;
    for (int i = 0; i < op->dependence_count; i++) {
        const peal_dependence *dependence = &op->dependence[i];
        int member = rank->member[dependence->op];
        if (member <= 0 || dependence->lag > 0 ||
            rank->schedule->op[dependence->op].kind != PEAL_OP_LAUNCH)
            continue;
        for (int b = 0; b < group->launch.box_count; b++)
            if ((boxes & group->op_bits[member - 1]) >> b & 1 &&
                is_box_needed(group->task, dependence, &group->launch.box[b]))
                needed |= 1u << b;
    }
    return needed;
}

/* Whether tiles may store images of the rank's own points while other tiles still run: no other
 * access of the task uses the image's storage, this one nothing but the tile's points, and no tile
 * writes the image's. */
static bool is_independent(const peal_cuda_group *group, const peal_cuda_remote_store *remote_store,
                           int view, int storage)
{
    const peal_launch *launch = &group->launch;

    if (view < group->task->access_count &&
        !writes_its_points(group->task, &group->task->access[view]))
        return false;
    for (int i = 0; i < group->task->access_count; i++)
        if (i != view && group->storage[i] == storage)
            return false;
    for (int b = 0; b < launch->box_count; b++) {
        bool meets = true;
        for (int k = 0; k < PEAL_AXES; k++)
            meets = meets && launch->box[b].lo[k] < remote_store->to_hi[k] &&
                    launch->box[b].hi[k] > remote_store->to_lo[k];
        if (meets)
            return false;
    }
    return storage >= 0;
}

bool peal_cuda_remote_store_join(peal_cuda_rank *rank, peal_cuda_group *group, int index,
                                 const peal_walk_frame *frame)
{
    const peal_cuda_op *op = &rank->op[index];
    peal_launch *launch = &group->launch;
    unsigned waits, boxes, all = 0;

    if (!op->can_store_remotely || group->kind != PEAL_CUDA_GROUP_TASK ||
        group->written_count == 0 ||
        launch->remote_store_count + op->remote_store_count > PEAL_LAUNCH_REMOTE_STORES ||
        !peal_cuda_depends_within(rank, group, index, &waits, &boxes) || !boxes)
        return false;
    boxes = peal_cuda_group_boxes(group, boxes);
    if (boxes != launch->fold_bit && group->task->kind == PEAL_TASK_KERNEL &&
        (group->communication_free || op->source->copy == PEAL_COPY_UNPACK ||
         boxes & launch->piggyback.bit))
        return false;
    for (int i = 0; i < op->remote_store_count; i++) {
        const peal_cuda_remote_store *remote_store = &op->remote_store[i];
        peal_launch_remote_store *out = &launch->remote_store[launch->remote_store_count + i];
        int view = view_of(group, frame->binding[remote_store->array]);
        *out = remote_store->box;
        unsigned bits = view >= 0 ? boxes_of(group, boxes, out) : 0;
        if (!bits)
            return false;
        out->view = (unsigned short)view;
        out->boxes = bits;
        CUdeviceptr base = peal_cuda_base_address(rank, op, remote_store->base, frame);
        if (op->source->copy == PEAL_COPY_LOCAL && group->task->kind == PEAL_TASK_KERNEL &&
            boxes != launch->fold_bit &&
            !is_independent(group, remote_store, view, peal_cuda_storage_at(rank, base)))
            return false;
        group->image[launch->remote_store_count + i] = remote_store;
        group->image_storage[launch->remote_store_count + i] = peal_cuda_storage_at(rank, base);
        out->target = base + (uint64_t)remote_store->offset;
        all |= bits;
    }
    waits |= peal_cuda_channel_bits(rank, group, index, PEAL_OP_WAIT);
    launch->remote_store_count += op->remote_store_count;
    for (int b = 0; b < launch->box_count; b++)
        if (all >> b & 1) {
            launch->box[b].sends = 1;
            launch->box[b].waits |= waits;
        }
    /* The message's flag must come after other tiles too: those that read points which the peer may
     * overwrite once it has the message. */
    peal_cuda_group_join(rank, group, index, all | boxes_needed(rank, group, index, boxes));
    return true;
}

/* ---- flags ---- */

/* The most blocks that add to a flag, since each addition goes over the link by itself. It does not
 * limit the persistent kernel, in which each block partition adds once. */
enum { MOST_ADDERS = 128 };

void peal_cuda_remote_store_flags(peal_cuda_group *group, bool is_partitioned)
{
    peal_launch *launch = &group->launch;

    launch->adds = group->can_add && (launch->write_count > 0 || launch->remote_store_count > 0) &&
                   (group->kind == PEAL_CUDA_GROUP_COPY || launch->list_count == 0);
    for (int i = 0; i < launch->write_count && launch->adds; i++) {
        peal_launch_write *write = &launch->write[i];
        if (launch->fold_bit && write->boxes == launch->fold_bit)
            continue;
        uint64_t quantum = group->quantum[i];
        unsigned blocks = 0;
        for (int b = launch->box_count - 1; b >= 0; b--)
            if (write->boxes >> b & 1) {
                blocks += launch->box[b].blocks;
                write->first = launch->box[b].first;
            }
        /* A single block stores the value instead. */
        if (blocks > 1 || (is_partitioned && blocks == 1)) {
            write->part = quantum / blocks;
            write->rest = quantum - write->part * blocks;
        }
        launch->adds = blocks > 0 && (is_partitioned || blocks <= MOST_ADDERS);
    }
}

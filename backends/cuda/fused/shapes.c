/* Shapes: what launches have in common, but for addresses and counts of the run, printed as
 * constants for the compiler (codegen/device/shaped.h). Work items of the same shape share a
 * function. */
#define _GNU_SOURCE
#include "backends/cuda/codegen/codegen.h"
#include "backends/cuda/codegen/task_traits.h"
#include "backends/cuda/codegen/text.h"
#include "backends/cuda/fused/fused.h"
#include "backends/cuda/gpu/occupancy.h"

#include <string.h>

/* Each shape is a function, so many take the compiler long. Further work items have the general
 * one. */
enum { MOST_SHAPES = 24 };

/* A shape is rare if at most one work item in so many has it. */
enum { RARE = 16 };

/* Staging: shared memory for what up to MOST_BUFFERS tiles read, one of them being run and the
 * others being copied. Tiles of two axes have all that the dispatcher leaves. Tiles of three axes
 * have TILE_BYTES: boxes that need more are better off with the rest as the SM's cache. */
enum { TILE_BYTES = 19584, MOST_BUFFERS = 4 };

static int64_t room_of(const peal_cuda_sm *sm, const peal_cuda_work_item *item)
{
    int room = 0;

    if (sm && peal_cuda_task_axes(item->task) == 2)
        room = sm->shared_bytes / PEAL_FUSED_BLOCKS - sm->shared_block - PEAL_CUDA_DISPATCHER_BYTES;
    return room > TILE_BYTES ? room : TILE_BYTES;
}

/* How many tiles a partition has, as far as that decides about buffers. */
static int most_of(const peal_cuda_work_item *item)
{
    return item->each < 2 ? 2 : item->each > MOST_BUFFERS ? MOST_BUFFERS : (int)item->each;
}

_Static_assert((int)PEAL_CUDA_SHAPED_BOXES < (int)PEAL_FUSED_COUNTERS,
               "a counter a box, behind one for all");

bool peal_cuda_fused_can_shape(const peal_cuda_work_item *item)
{
    const peal_launch *launch = &item->launch;

    if (!item->task || launch->skip || launch->list_count > 0 || launch->fold_bit ||
        launch->piggyback.bit || launch->box_count < 1 ||
        launch->box_count > PEAL_CUDA_SHAPED_BOXES)
        return false;
    for (int b = 0; b < launch->box_count; b++)
        for (int k = 0; k < PEAL_AXES; k++)
            if (launch->box[b].extent[k] < 1 || launch->box[b].count[k] < 1)
                return false;
    /* Each thread has to fold the same points as in other modes: here only if tiles are aligned. */
    return !item->partials || launch->aligned != PEAL_UNALIGNED;
}

static bool is_same_box(const peal_launch_box *a, const peal_launch_box *b)
{
    for (int k = 0; k < PEAL_AXES; k++)
        if (a->hi[k] - a->lo[k] != b->hi[k] - b->lo[k] || a->extent[k] != b->extent[k] ||
            a->count[k] != b->count[k] || a->tile_step[k] != b->tile_step[k])
            return false;
    return a->first == b->first && a->blocks == b->blocks && a->bit == b->bit &&
           !a->sends == !b->sends && !a->waits == !b->waits && a->lead == b->lead;
}

/* Whether two remote stores are the same, counted from where the first boxes begin. */
static bool is_same_store(const peal_launch *x, const peal_launch *y, int index)
{
    const peal_launch_remote_store *a = &x->remote_store[index], *b = &y->remote_store[index];

    for (int k = 0; k < 3; k++) {
        int apart = x->box[0].lo[k] - y->box[0].lo[k];
        if (a->lo[k] - b->lo[k] != apart || a->hi[k] - b->hi[k] != apart ||
            a->inner_lo[k] - b->inner_lo[k] != apart || a->inner_hi[k] - b->inner_hi[k] != apart)
            return false;
    }
    return a->step[0] == b->step[0] && a->step[1] == b->step[1] && a->boxes == b->boxes &&
           a->view == b->view && a->bytes == b->bytes;
}

bool peal_cuda_fused_is_same_shape(const peal_cuda_work_item *a, const peal_cuda_work_item *b)
{
    const peal_launch *x = &a->launch, *y = &b->launch;

    if (a->number != b->number || a->deep != b->deep || x->box_count != y->box_count ||
        x->aligned != y->aligned || x->remote_store_count != y->remote_store_count ||
        a->cyclic != b->cyclic || a->dynamic != b->dynamic || most_of(a) != most_of(b) ||
        x->adds != y->adds ||
        memcmp(x->stride, y->stride, (size_t)a->task->access_count * sizeof(x->stride[0])) != 0)
        return false;
    for (int i = 0; i < x->box_count; i++)
        for (int k = 0; k < PEAL_AXES; k++)
            if (!is_same_box(&x->box[i], &y->box[i]) ||
                x->box[i].lo[k] - x->box[0].lo[k] != y->box[i].lo[k] - y->box[0].lo[k])
                return false;
    for (int i = 0; i < x->remote_store_count; i++)
        if (!is_same_store(x, y, i))
            return false;
    return true;
}

/* ---- printing ---- */

/* Boxes of a launch that share a type, for they have the same tiles: `count` from `index` on. */
typedef struct box_group {
    const peal_launch_box *box;
    int index, count;
} box_group;

static void print_values(const long long *value, int count, FILE *out)
{
    for (int k = 0; k < count - 1; k++)
        fprintf(out, "axis == %d ? %lld : ", k, value[k]);
    fprintf(out, "%lld", value[count - 1]);
}

static void print_constants(const char *type, const char *name, const long long *value, int count,
                            FILE *out)
{
    fprintf(out, "    static __device__ constexpr %s %s(int axis)\n    {\n        return ", type,
            name);
    print_values(value, count, out);
    fprintf(out, ";\n    }\n");
}

typedef long long axis_values[PEAL_AXES];

/* Constants that differ by part. */
static void print_by_part(const char *type, const char *name, axis_values *value, int parts,
                          FILE *out)
{
    int last = parts - 1;

    while (last > 0 && !memcmp(value[last], value[last - 1], sizeof(value[0])))
        last--;
    fprintf(out,
            "    static __device__ constexpr %s %s(int axis, unsigned%s)\n    {\n        return ",
            type, name, last > 0 ? " part" : "");
    for (int i = 0; i < last; i++) {
        fprintf(out, "part == %d ? (", i);
        print_values(value[i], PEAL_AXES, out);
        fprintf(out, ") :\n               ");
    }
    print_values(value[last], PEAL_AXES, out);
    fprintf(out, ";\n    }\n");
}

static void print_strides(const peal_cuda_work_item *item, FILE *out)
{
    fprintf(out, "    static __device__ __forceinline__ long long stride(const peal_launch &, int "
                 "view, int axis)\n    {\n");
    for (int v = 0; v < item->task->access_count; v++)
        fprintf(out,
                "        if (view == %d)\n            return axis == 0 ? %lld : axis == 1 ? %lld : "
                "%lld;\n",
                v, item->launch.stride[v][0], item->launch.stride[v][1], item->launch.stride[v][2]);
    fprintf(out, "        return 0;\n    }\n");
}

/* Where each view's part of a buffer begins. Returns the bytes of a buffer; 0: nothing is staged,
 * since threads have one point each, rows do not begin at whole chunks of 16 bytes, or it is too
 * much. */
static int64_t lay_out_stage(const peal_cuda_work_item *item, const peal_launch_box *box,
                             long long *place)
{
    int64_t bytes = 0, points = 1;

    if (peal_cuda_task_whole(item->task) == PEAL_WHOLE_FLAT)
        return 0; /* a thread has all its loads under way at the same time anyway */
    for (int k = 0; k < PEAL_AXES; k++)
        points *= box->extent[k];
    for (int i = 0; i < item->task->access_count; i++) {
        int64_t low[PEAL_AXES], high[PEAL_AXES];
        int array = item->task->access[i].array;
        int64_t size = (int64_t)peal_type_bytes(item->schedule->array[array].type);
        place[i] = bytes;
        if (!peal_cuda_access_stages(item->schedule, item->task, i, low, high))
            continue;
        if (16 % size != 0 || item->launch.stride[i][0] * size % 16 != 0 ||
            item->launch.stride[i][1] * size % 16 != 0)
            return 0;
        int64_t each = 16 / size; /* as in device/staged.h */
        int64_t pitch = (box->extent[0] + high[0] - low[0] + 2 * each - 2) / each * each;
        bytes += pitch * (box->extent[1] + high[1] - low[1]) * (box->extent[2] + high[2] - low[2]) *
                 size;
    }
    return points > PEAL_CUDA_TASK_THREADS && bytes <= TILE_BYTES ? bytes : 0;
}

/* How many buffers of so many bytes a box has. */
static int buffers_of(const peal_cuda_fused_kernel *kernel, const peal_cuda_work_item *item,
                      int64_t bytes)
{
    int64_t buffers = bytes > 0 ? room_of(kernel->sm, item) / bytes : 0;

    return buffers > most_of(item) ? most_of(item) : (int)buffers;
}

/* Whether blocks of the kernel may take any tiles of a box. */
static bool is_dynamic(const peal_cuda_work_item *item, const peal_launch_box *box)
{
    return item->dynamic && !box->sends && !box->waits;
}

static void print_stage(peal_cuda_fused_kernel *kernel, const peal_cuda_work_item *item,
                        const box_group *group, FILE *out)
{
    long long place[PEAL_LAUNCH_VIEWS] = {0};
    int64_t bytes = item->deep                ? item->deep->window_bytes
                    : kernel->is_never_staged ? 0
                                              : lay_out_stage(item, group->box, place);
    int buffers = item->deep ? 2 : buffers_of(kernel, item, bytes);
    bool dynamic = buffers > 1;

    for (int i = 0; i < group->count; i++)
        dynamic = dynamic && is_dynamic(item, &group->box[i]);

    if (buffers * bytes > kernel->stage_bytes)
        kernel->stage_bytes = (int)(buffers * bytes);
    fprintf(out, "    enum : int { staged = %d, buffers = %d, dynamic = %d };\n", bytes > 0,
            buffers, dynamic);
    fprintf(out,
            "    static __device__ __forceinline__ unsigned char *stage(unsigned turn)\n    {\n"
            "        return (unsigned char *)peal_stage_ + turn * %lld;\n    }\n",
            (long long)bytes);
    print_constants("int", "place", place, item->task->access_count, out);
    if (item->deep)
        peal_cuda_deep_print(item, out);
}

/* Which part a block is of, and the part's first block. */
static void print_parts(const box_group *group, FILE *out)
{
    fprintf(out,
            "    static __device__ constexpr unsigned part(unsigned%s)\n    {\n        return 0",
            group->count > 1 ? " block" : "");
    for (int i = 1; i < group->count; i++)
        fprintf(out, " + (block >= %u)", group->box[i].first);
    fprintf(out,
            ";\n    }\n    static __device__ constexpr unsigned begin(unsigned%s)\n    {\n        "
            "return ",
            group->count > 1 ? " part" : "");
    for (int i = 0; i < group->count - 1; i++)
        fprintf(out, "part == %d ? %u : ", i, group->box[i].first);
    fprintf(out, "%u;\n    }\n", group->box[group->count - 1].first);
}

/* Lengths, counts, and along which axes the last tiles are cut. */
static void print_lengths(const box_group *group, FILE *out)
{
    axis_values length[PEAL_CUDA_SHAPED_BOXES], count[PEAL_CUDA_SHAPED_BOXES];
    long long cut[PEAL_AXES] = {0};

    for (int i = 0; i < group->count; i++)
        for (int k = 0; k < PEAL_AXES; k++) {
            const peal_launch_box *box = &group->box[i];
            length[i][k] = box->hi[k] - box->lo[k];
            count[i][k] = box->count[k];
            cut[k] |= (length[i][k] + (k == 0 ? box->lead : 0)) % box->extent[k] != 0;
        }
    print_by_part("int", "length", length, group->count, out);
    print_by_part("unsigned", "count", count, group->count, out);
    print_constants("bool", "is_cut", cut, PEAL_AXES, out);
}

static void print_group(peal_cuda_fused_kernel *kernel, const peal_cuda_work_item *item, int shape,
                        const box_group *group, FILE *out)
{
    const peal_launch_box *first = group->box;
    long long extent[PEAL_AXES], step[PEAL_AXES];
    unsigned blocks = 0;

    for (int k = 0; k < PEAL_AXES; k++) {
        extent[k] = first->extent[k];
        step[k] = first->tile_step[k];
    }
    for (int i = 0; i < group->count; i++) {
        const peal_launch_box *box = &group->box[i];
        fprintf(out, "/* %s: %d x %d x %d points in tiles of %d x %d x %d%s%s */\n",
                item->task->name, box->hi[0] - box->lo[0], box->hi[1] - box->lo[1],
                box->hi[2] - box->lo[2], box->extent[0], box->extent[1], box->extent[2],
                box->sends ? ", parts of messages" : "", item->deep ? ", deep rounds" : "");
        blocks += box->blocks;
    }
    fprintf(out,
            "struct peal_box%s_%d_%d_ {\n"
            "    enum : unsigned { index = %d, first = %u, blocks = %u };\n"
            "    enum : int { lead = %d, cyclic = %d };\n",
            group->count > 1 ? "es" : "", shape, group->index, group->index, first->first, blocks,
            first->lead, item->cyclic);
    print_parts(group, out);
    print_lengths(group, out);
    print_constants("int", "extent", extent, PEAL_AXES, out);
    print_constants("unsigned", "step", step, PEAL_AXES, out);
    print_strides(item, out);
    print_stage(kernel, item, group, out);
    fprintf(out,
            "    static __device__ constexpr int aligned(const peal_launch &)\n    {\n"
            "        return %d;\n    }\n};\n",
            item->launch.aligned);
}

static bool is_sent_by(const peal_launch *launch, int box, int remote_store)
{
    return launch->box[box].sends &&
           (launch->remote_store[remote_store].boxes & launch->box[box].bit);
}

/* A remote store of a box that sends, counted from where the box begins. */
static void print_store(const peal_cuda_work_item *item, int shape, int box, int index, FILE *out)
{
    static const char *const types[] = {[1] = "unsigned char",
                                        [2] = "unsigned short",
                                        [4] = "unsigned",
                                        [8] = "unsigned long long"};
    const peal_launch_remote_store *remote_store = &item->launch.remote_store[index];
    const int *begin = item->launch.box[box].lo;
    long long place[4][3], step[2], stride[2];

    for (int k = 0; k < 3; k++) {
        place[0][k] = remote_store->lo[k] - begin[k];
        place[1][k] = remote_store->hi[k] - begin[k];
        place[2][k] = remote_store->inner_lo[k] - begin[k];
        place[3][k] = remote_store->inner_hi[k] - begin[k];
    }
    for (int k = 0; k < 2; k++) {
        step[k] = remote_store->step[k];
        stride[k] = item->launch.stride[remote_store->view][k];
    }
    fprintf(out,
            "struct peal_remote_store_%d_%d_%d_ {\n    typedef %s type;\n"
            "    enum : int { index = %d, view = %d };\n",
            shape, box, index, types[remote_store->bytes], index, remote_store->view);
    print_constants("int", "lo", place[0], 3, out);
    print_constants("int", "hi", place[1], 3, out);
    print_constants("int", "inner_lo", place[2], 3, out);
    print_constants("int", "inner_hi", place[3], 3, out);
    print_constants("long long", "step", step, 2, out);
    print_constants("long long", "stride", stride, 2, out);
    fprintf(out, "};\n");
}

/* What the blocks of boxes that send do behind their tiles. */
static void print_sending(const peal_launch *launch, int shape, FILE *out)
{
    bool any = false;

    for (int b = 0; b < launch->box_count; b++) {
        if (!launch->box[b].sends)
            continue;
        fprintf(out, "%speal_shaped_count_<peal_box_%d_%d_>(blocks)",
                any ? " +\n                              " : "    const unsigned senders = ", shape,
                b);
        any = true;
    }
    if (!any)
        return;
    fprintf(out, ";\n    if (senders > 0) {\n");
    if (!launch->adds) /* else the dispatcher adds */
        fprintf(out, "        peal_shaped_flags_(launch, senders);\n");
    /* If an expression has failed, neither that tile nor a later one sends anything. */
    if (launch->remote_store_count > 0)
        fprintf(out, "        __syncthreads();\n"
                     "        if (peal_fused_failed_.kind)\n            return;\n");
    for (int b = 0; b < launch->box_count; b++)
        for (int m = 0; m < launch->remote_store_count; m++)
            if (is_sent_by(launch, b, m))
                fprintf(out,
                        "        peal_shaped_remote_store_<peal_box_%d_%d_, "
                        "peal_remote_store_%d_%d_%d_>(launch, "
                        "blocks);\n",
                        shape, b, shape, b, m);
    fprintf(out, "    }\n");
}

/* How many boxes from one on share its type. Sharing costs a tile a few instructions. Where work
 * items are rare, boxes of different counts share one, too, of which no tiles are dynamic then. */
static int group_count(const peal_cuda_work_item *item, int index, bool is_rare)
{
    const peal_launch_box *first = &item->launch.box[index];
    int count = 1;

    for (; !item->deep && index + count < item->launch.box_count; count++) {
        const peal_launch_box *last = &first[count - 1], *next = &first[count];
        if (next->first != last->first + last->blocks || next->lead != first->lead ||
            memcmp(next->extent, first->extent, sizeof(first->extent)) != 0 ||
            memcmp(next->tile_step, first->tile_step, sizeof(first->tile_step)) != 0)
            break;
        if (!is_rare && (is_dynamic(item, next) != is_dynamic(item, first) ||
                         memcmp(next->count, first->count, sizeof(first->count)) != 0))
            break;
    }
    return count;
}

static void print_shape(peal_cuda_fused_kernel *kernel, const peal_cuda_work_item *item, int shape,
                        bool is_rare, FILE *out)
{
    const peal_launch *launch = &item->launch;
    int entry = (item->number - PEAL_CUDA_BUILTIN_COUNT) / PEAL_CUDA_FUSED_VARIANTS;
    peal_cuda_variant variant =
        item->number == peal_cuda_fused_number(entry, PEAL_CUDA_FUSED_NO_REDUCTION)
            ? PEAL_CUDA_SHAPED_NO_REDUCTION
            : PEAL_CUDA_SHAPED;

    variant = item->deep ? PEAL_CUDA_DEEP : variant;
    int group[PEAL_CUDA_SHAPED_BOXES] = {0};

    for (int b = 0; b < launch->box_count; b += group[b]) {
        group[b] = group_count(item, b, is_rare);
        if (group[b] > 1)
            print_group(kernel, item, shape, &(box_group){&launch->box[b], b, group[b]}, out);
        for (int i = b; i < b + group[b]; i++)
            if (group[b] == 1 || launch->box[i].sends)
                print_group(kernel, item, shape, &(box_group){&launch->box[i], i, 1}, out);
    }
    for (int b = 0; b < launch->box_count; b++)
        for (int m = 0; m < launch->remote_store_count; m++)
            if (is_sent_by(launch, b, m))
                print_store(item, shape, b, m, out);
    fprintf(out,
            "static __device__ __forceinline__ void peal_shape_%d(const peal_launch &launch, "
            "const peal_blocks_of_ &blocks)\n{\n",
            shape);
    for (int b = 0; b < launch->box_count; b += group[b])
        fprintf(out, "    peal_tiles_%d%s<peal_box%s_%d_%d_>(launch, blocks);\n", entry,
                peal_cuda_variant_suffix(variant), group[b] > 1 ? "es" : "", shape, b);
    print_sending(launch, shape, out);
    fprintf(out, "}\n\n");
}

/* Whether few work items have the item's shape, as where a norm is taken now and then: what it
 * saves the compiler is worth more than a few instructions a tile. Of bundles, each shape is here
 * once. */
static bool is_rare(const peal_cuda_fused_kernel *kernel, int rank_count,
                    const peal_cuda_work_item *item)
{
    int alike = 0, all = 0;

    for (int r = 0; r < rank_count; r++)
        for (int i = 0; i < kernel->rank[r].count; i++, all++)
            alike += peal_cuda_fused_can_shape(&kernel->rank[r].item[i]) &&
                     peal_cuda_fused_is_same_shape(&kernel->rank[r].item[i], item);
    return !kernel->is_never_staged && alike <= all / RARE;
}

/* The work item's shape, which is printed if it is new; -1: it has none, or there are too many. */
static int shape_of(peal_cuda_fused_kernel *kernel, int rank_count, const peal_cuda_work_item *item,
                    const peal_cuda_work_item **known, FILE *out)
{
    int s = 0;

    if (!peal_cuda_fused_can_shape(item))
        return -1;
    while (s < kernel->shapes && !peal_cuda_fused_is_same_shape(known[s], item))
        s++;
    if (s == MOST_SHAPES)
        return -1;
    if (s == kernel->shapes) {
        known[kernel->shapes++] = item;
        print_shape(kernel, item, s, is_rare(kernel, rank_count, item), out);
    }
    return s;
}

const char *peal_cuda_fused_shape(peal_cuda_fused_kernel *kernel, int rank_count,
                                  const peal_device *device, peal_arena *arena)
{
    const peal_cuda_work_item *known[MOST_SHAPES];
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = peal_cuda_text_open(arena, &text, &bytes);

    kernel->shapes = 0;
    kernel->stage_bytes = 0;
    kernel->sm = peal_cuda_sm_find(10 * device->major + device->minor);
    /* Rounds first: they have no general function. */
    for (int pass = 0; pass < 2; pass++)
        for (int r = 0; r < rank_count; r++)
            for (int i = 0; i < kernel->rank[r].count; i++) {
                peal_cuda_work_item *item = &kernel->rank[r].item[i];
                if ((item->deep != NULL) == (pass == 0))
                    item->shape = shape_of(kernel, rank_count, item, known, out);
            }
    const char *shapes = peal_cuda_text_close(arena, out, &text);
    return peal_arena_print(arena, "PEAL_SHARED_ROOM_(peal_stage_, %d);\n\n%s", kernel->stage_bytes,
                            shapes);
}

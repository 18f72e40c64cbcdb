// Runs generated communication-free kernels on the host: boxes of all sizes, cut as the backend cuts them, have
// each of their points visited once and no other point.
#include "device.h"

#include "communication_free.cu"

#include "start.h"

#include "partials.h"

extern "C" void peal_cuda_box_cut(int many, int most_rows, const int threads[3], int whole, int lead,
                             peal_launch_box *box);

enum { HALO = 2, MOST_BOXES = 3 };

struct room {
    int lo[4], n[4]; /* points around boxes */
    long long stride[3], points;
    double *field;

    long long offset(const int *at) const
    {
        return at[0] + at[1] * stride[0] + at[2] * stride[1];
    }
};

/* Short, medium, and long enough for several whole tiles. */
static int length()
{
    static const unsigned most[] = {3, 40, 300, 600};
    return 1 + (int)pick(most[pick(4)]);
}

/* The kinds of whole tiles that the kernels have. */
static const int kinds[4] = {0, 0, PEAL_WHOLE_2, PEAL_WHOLE_FLAT};

/* Boxes lie side by side along one axis; lines of memory begin at begin plus multiples. */
static int make_boxes(int axes, int sm_count, int begin, peal_launch *launch, room *out)
{
    static const int threads[4][3] = {{}, {256, 1, 1}, {64, 4, 1}, {32, 4, 2}};
    int count = 1 + (int)pick(MOST_BOXES), along = (int)pick(axes);
    int lo[4], hi[4];
    unsigned blocks = 0;

    for (int k = 0; k < 4; k++) {
        lo[k] = k < axes ? (int)pick(200) - (pick(2) ? 100 : 0) : 0;
        hi[k] = lo[k] + (k >= axes ? 1 : axes == 3 && k < 2 ? 1 + length() / 3 : length());
        out->lo[k] = lo[k] - (k < axes ? HALO : 0);
    }
    for (int i = 0; i < count; i++) {
        peal_launch_box *box = &launch->box[i];
        if (i > 0) {
            lo[along] = hi[along];
            hi[along] += 1 + (int)pick(70);
        }
        memcpy(box->lo, lo, sizeof(lo));
        memcpy(box->hi, hi, sizeof(hi));
        peal_cuda_box_cut(3 * sm_count, 8, threads[axes], kinds[axes],
                     (int)((unsigned)(lo[0] - begin) % 32), box);
        box->first = blocks;
        blocks += box->blocks;
    }
    out->points = 1;
    for (int k = 0; k < 4; k++) {
        out->n[k] = hi[k] + (k < axes ? HALO : 0) - out->lo[k];
        if (k == 0 && pick(4))
            out->n[k] += out->n[k] % 2; /* rows of pairs */
        out->points *= out->n[k];
        if (k < 3)
            out->stride[k] = out->points;
    }
    launch->box_count = count;
    return (int)blocks;
}

static bool is_inside(const peal_launch &launch, const int *at)
{
    for (int i = 0; i < launch.box_count; i++) {
        const peal_launch_box *box = &launch.box[i];
        bool in = true;
        for (int k = 0; k < 3; k++)
            in = in && box->lo[k] <= at[k] && at[k] < box->hi[k];
        if (in)
            return true;
    }
    return false;
}

/* Where the points of a whole tile are pairs: in no other place masks change an address. */
static bool is_aligned(const peal_launch &launch)
{
    long long bytes = PEAL_WHOLE_COLUMNS * sizeof(double);
    long long begin = launch.box[0].lo[0] - launch.box[0].lead;

    return (launch.view[0] + begin * (long long)sizeof(double)) % bytes == 0 &&
           launch.stride[0][0] % PEAL_WHOLE_COLUMNS == 0 &&
           launch.stride[0][1] % PEAL_WHOLE_COLUMNS == 0;
}

/* Points in whole tiles. */
static long long points_of_whole(const peal_launch &launch, int axes)
{
    long long points = 0;

    for (int i = 0; i < launch.box_count && launch.aligned && kinds[axes]; i++) {
        const peal_launch_box *box = &launch.box[i];
        long long here = 1;
        for (int k = 0; k < 3; k++) {
            int first = box->lo[k], length = box->hi[k] - first;
            if (k == 0 && box->lead)
                length -= box->extent[0] - box->lead;
            int extent = peal_whole_extent_(kinds[axes], k);
            if (box->extent[k] != extent)
                length = 0;
            here *= length > 0 ? length / extent * extent : 0;
        }
        points += here;
    }
    return points;
}

static long long check_boxes(kernel_function *kernel, int axes)
{
    static const int sm_counts[] = {0, 0, 1, 4};
    peal_launch launch = {};
    room r;
    int begin = (int)pick(40) - 20;
    int blocks = make_boxes(axes, sm_counts[pick(4)], begin, &launch, &r);
    /* Memory whose pairs begin where tiles do, or elsewhere. */
    long long shift = (((r.offset(r.lo) + begin) % 2) + 2 + pick(4) / 3) % 2;

    double *memory = (double *)aligned_alloc(16, (size_t)(r.points + 2) / 2 * 16);
    memset(memory, 0, (size_t)(r.points + 2) / 2 * 16);
    r.field = memory + shift;
    launch.view[0] = at(r.field - r.offset(r.lo));
    for (int k = 0; k < 3; k++)
        launch.stride[0][k] = r.stride[k];
    launch.argument[0].real = 1;
    launch.aligned = is_aligned(launch) ? PEAL_ALIGNED : PEAL_UNALIGNED;
    start(kernel, (unsigned)blocks, 256, launch);
    for (long long i = 0; i < r.points; i++) {
        int point[3] = {r.lo[0] + (int)(i % r.n[0]), r.lo[1] + (int)(i / r.n[0] % r.n[1]),
                        r.lo[2] + (int)(i / r.stride[1])};
        CHECK(r.field[i] == (is_inside(launch, point) ? 1 : 0));
    }
    free(memory);
    return points_of_whole(launch, axes);
}

/* Kernels may run other points than those of their tile: a copy of a whole one, made wider. */
static long long visited;

template <int kind> static void wider_kernel(const peal_launch launch)
{
    peal_tile tile;
    if (!peal_enter_tile_(launch, &tile))
        return;
    peal_tile wide = peal_whole_of_<kind, 0>(tile);
    for (int k = 0; k < (kind == PEAL_WHOLE_2 ? 2 : 3); k++) {
        wide.lo[k]--;
        wide.hi[k]++;
    }
    if (kind == PEAL_WHOLE_2) {
        PEAL_FOR_2D(wide, x, y)
        {
            visited += x >= wide.lo[0] && x < wide.hi[0] && y >= wide.lo[1] && y < wide.hi[1];
        }
    } else {
        PEAL_FOR_3D(wide, x, y, z)
        {
            visited += x >= wide.lo[0] && x < wide.hi[0] && z >= wide.lo[2] && z < wide.hi[2];
        }
    }
}

template <int kind> static void check_wider()
{
    peal_launch launch = {};
    peal_launch_box *box = &launch.box[0];
    long long points = 1;

    launch.box_count = 1;
    box->blocks = 1;
    for (int k = 0; k < 4; k++) {
        bool has = k < (kind == PEAL_WHOLE_2 ? 2 : 3);
        box->lo[k] = has ? 7 : 0;
        box->extent[k] = has ? peal_whole_extent_(kind, k) : 1;
        box->hi[k] = box->lo[k] + box->extent[k];
        box->count[k] = 1;
        points *= box->extent[k] + 2 * has;
    }
    visited = 0;
    start(wider_kernel<kind>, 1, 256, launch);
    CHECK(visited == points);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        print_all_partials(peal_task_3_communication_free, peal_task_5_communication_free);
        return 0;
    }
    long long whole[4] = {};
    check_wider<PEAL_WHOLE_2>();
    check_wider<PEAL_WHOLE_3>();
    check_wider<PEAL_WHOLE_FLAT>();

    for (int i = 0; i < 40; i++) {
        check_boxes(peal_task_0_communication_free, 1);
        whole[2] += check_boxes(peal_task_1_communication_free, 2) + check_boxes(peal_task_1_communication_free, 2);
        whole[3] += check_boxes(peal_task_2_communication_free, 3);
    }
    CHECK(whole[2] > 100000 && whole[3] > 10000);
    printf("all as expected, %lld and %lld points in whole tiles\n", whole[2], whole[3]);
    return 0;
}

// Runs peal's device code, and a generated translation unit, on the host, against plain loops.
#include "device.h"

#include "unit.cu"

#include "start.h"

#include "partials.h"

extern "C" void host_fold(int type, int combine, const void *element, int64_t count, int64_t stride,
                          void *out);

/* Folds. */

template <class type, int combine> static void fold_kernel(const peal_launch launch)
{
    peal_fold_<type, combine>(launch);
}
template <class type, int combine> static void combine_kernel(const peal_launch launch)
{
    peal_combine_<type, combine>(launch);
}

template <class type, int combine> static void check_folds(int host_type)
{
    static const int counts[] = {0, 1, 2, 3, 7, 8, 9, 255, 256, 257, 2047, 2048, 2049, 5000, 6145};
    type *element = (type *)malloc(70000 * sizeof(type)), *kept = element + 35000;
    for (int c : counts) {
        type result = 0, expected = 0;
        unsigned arrived = 0;
        unsigned long long flag = 0;
        for (int i = 0; i < c; i++)
            kept[i] = element[i] = (type)((int)pick(2001) - 1000) / (type)(combine ? 1 : 7);
        if (c == 9 && (type)0.5 != 0)
            kept[5] = element[5] = (type)NAN;
        host_fold(host_type, combine, kept, c, 1, &expected);
        peal_launch launch = {};
        launch.view[0] = at(&result);
        launch.view[1] = at(element);
        launch.argument[0].integer = c;
        launch.arrived = at(&arrived);
        launch.senders = 1;
        launch.write_count = 1;
        launch.write[0] = {at(&flag), 77};
        start(fold_kernel<type, combine>, c > 2048 ? (c + 2047) / 2048 : 1, 256, launch);
        CHECK(memcmp(&result, &expected, sizeof(type)) == 0 ||
              (result != result && expected != expected));
        CHECK(flag == 77 && arrived == 0);
    }
    for (int rows = 1; rows < 20; rows++) {
        enum { WIDTH = 300 };
        type result[WIDTH], expected;
        for (int i = 0; i < rows * WIDTH; i++)
            element[i] = (type)((int)pick(2001) - 1000) / (type)7;
        unsigned arrived = 0;
        peal_launch launch = {};
        launch.view[0] = at(result);
        launch.view[1] = at(element);
        launch.argument[0].integer = rows;
        launch.argument[1].integer = WIDTH;
        launch.arrived = at(&arrived);
        start(combine_kernel<type, combine>, 2, 256, launch);
        for (int i = 0; i < WIDTH; i++) {
            host_fold(host_type, combine, element + i, rows, WIDTH, &expected);
            CHECK(memcmp(&result[i], &expected, sizeof(type)) == 0);
        }
    }
    free(element);
}

#include "along.h"

/* Copies. */

static void check_copy(unsigned grid)
{
    enum { BYTES = 1 << 20, PIECES = 9, FIRST_LIST = 4 };
    alignas(16) static unsigned char from[BYTES], to[BYTES], expected[BYTES];
    peal_device_piece piece[PIECES];
    unsigned arrived = 0;
    unsigned long long flag = 0;
    long long target = 64, first_units = 0;
    peal_launch launch = {};

    for (int i = 0; i < BYTES; i++)
        from[i] = (unsigned char)pick(256);
    memset(to, 3, BYTES);
    memset(expected, 3, BYTES);
    /* two lists: bases of the second are counted from 3 on */
    launch.base[1] = launch.base[4] = at(from);
    launch.base[2] = launch.base[5] = at(to);
    for (int p = 0; p < PIECES; p++) {
        peal_device_piece *q = &piece[p];
        *q = peal_device_piece();
        q->source = 1;
        q->target = 2;
        q->unit = 1 << pick(5);
        q->run = 1 + pick(pick(2) ? 3 : 90);
        for (int k = 0; k < 3; k++)
            q->count[k] = 1 + pick(pick(2) ? 2 : 9);
        q->units = (long long)q->run * q->count[0] * q->count[1] * q->count[2];
        if (p == FIRST_LIST)
            first_units = launch.units;
        q->begin = launch.units - first_units;
        launch.units += q->units;
        q->source_offset = 16 * pick(100);
        q->source_step[0] = (long long)q->unit * (q->run + pick(5));
        q->source_step[1] = q->source_step[0] * q->count[0] + q->unit * pick(3);
        q->source_step[2] = q->source_step[1] * q->count[1];
        q->target_offset = (target + 15) / 16 * 16;
        q->target_step[0] = (long long)q->unit * q->run;
        q->target_step[1] = q->target_step[0] * q->count[0];
        q->target_step[2] = q->target_step[1] * q->count[1] + 16;
        target = q->target_offset + q->target_step[2] * q->count[2] + 32;
        CHECK(target < BYTES);
        for (unsigned a = 0; a < q->count[2]; a++)
            for (unsigned b = 0; b < q->count[1]; b++)
                for (unsigned c = 0; c < q->count[0]; c++)
                    memcpy(expected + q->target_offset + a * q->target_step[2] +
                               b * q->target_step[1] + c * q->target_step[0],
                           from + q->source_offset + a * q->source_step[2] + b * q->source_step[1] +
                               c * q->source_step[0],
                           (size_t)q->unit * q->run);
    }
    launch.list_count = 2;
    launch.list[0] = {at(piece), first_units, FIRST_LIST, 0};
    launch.list[1] = {at(piece + FIRST_LIST), launch.units, PIECES - FIRST_LIST, 3};
    launch.arrived = at(&arrived);
    launch.write_count = 1;
    launch.write[0] = {at(&flag), 5};
    if (grid > 1 && pick(2)) { /* each block adds its share */
        launch.adds = 1;
        launch.write[0].part = 5000 / grid;
        launch.write[0].rest = 5000 % grid;
        launch.write[0].boxes = 1;
        flag = 5 - 5000;
    }
    if (grid > 0)
        start(peal_copy, grid, 256, launch);
    else { /* the end of a task */
        launch.senders = 1;
        start([](const peal_launch l) { peal_send_last_(&l); }, 1, pick(2) ? 256 : 1, launch);
    }
    CHECK(memcmp(to, expected, BYTES) == 0);
    CHECK(flag == 5 && arrived == 0);
}

/* The kernel before gives up when this one has already begun: its flags stay as they are. */
static void check_failure_before()
{
    double element[3] = {1, 2, 4}, result = 0;
    unsigned arrived = 0;
    unsigned long long flag = 0, ready = 1;
    peal_launch launch = {};

    launch.view[0] = at(&result);
    launch.view[1] = at(element);
    launch.argument[0].integer = 3;
    launch.argument[1].integer = 1;
    launch.arrived = at(&arrived);
    launch.senders = 1;
    launch.write_count = 1;
    launch.write[0] = {at(&flag), 77, 0, 0, 1, 0};
    launch.wait_count = launch.box_count = 1; /* all threads have begun when the first goes on */
    launch.wait[0].word = at(&ready);
    launch.wait[0].value = 1;
    launch.box[0].waits = 1;
    follows_failure = true;
    for (int kind = 0; kind < 4; kind++) {
        peal_given_up = 0;
        launch.adds = kind == 3;
        if (kind == 0)
            start(fold_kernel<double, PEAL_SUM_>, 1, 256, launch);
        else if (kind == 1)
            start(combine_kernel<double, PEAL_SUM_>, 1, 256, launch);
        else
            start(peal_copy, 1, 256, launch);
        CHECK(flag == 0);
    }
    follows_failure = false;
    peal_given_up = 0;
    start(peal_copy, 1, 256, launch);
    CHECK(flag == 77);
}

/* Tasks: those of the unit add 1 to each of their points, and their tile's number to a sum. */

struct grid_of_tiles {
    peal_launch launch;
    unsigned blocks;
};

static void cut(peal_launch_box *box, const int *lo, const int *hi, unsigned *blocks)
{
    long long step = 1;
    box->first = *blocks;
    box->blocks = 1;
    for (int k = 0; k < 4; k++) {
        box->lo[k] = lo[k];
        box->hi[k] = hi[k];
        box->extent[k] = 1 + pick(pick(2) ? 70 : 9);
        if (k == 3)
            box->extent[k] = 1;
        box->count[k] = (hi[k] - lo[k] + box->extent[k] - 1) / box->extent[k];
        box->tile_step[k] = step;
        step *= box->count[k];
        box->blocks *= box->count[k];
    }
    *blocks += box->blocks;
}

/* Each block copies its part of three messages; flags are sums, or stored by the last one. */
static void check_mirrors(kernel_function *kernel, peal_launch launch, unsigned blocks,
                          const int *n, int cut_at)
{
    static double target[1 << 16];
    const double *field = (const double *)launch.view[0];
    const unsigned long long quantum = 1ull << 61;
    unsigned long long flag[2] = {quantum, quantum};
    int lo[3][3], hi[3][3];

    launch.remote_store_count = 3;
    launch.box[1].sends = 1;
    launch.senders = blocks;
    launch.adds = (int)pick(2);
    launch.box[0].bit = 1;
    launch.box[1].bit = 2;
    for (int w = 0; w < 2; w++) {
        unsigned long long adders = w ? blocks : launch.box[0].blocks;
        launch.write[w] = {at(&flag[w]),     2 * quantum, quantum / adders,
                           quantum % adders, w ? 3u : 1u, 0};
    }
    for (int m = 0; m < 3; m++) {
        for (int k = 0; k < 3; k++) {
            lo[m][k] = (int)pick((unsigned)n[k]);
            hi[m][k] = lo[m][k] + 1 + (int)pick((unsigned)(n[k] - lo[m][k]));
        }
        launch.remote_store[m] = {};
        launch.remote_store[m].target = at(target + (m == 0 ? 0 : 20000 * m));
        launch.remote_store[m].step[0] = 8 * n[0];
        launch.remote_store[m].step[1] = 8ll * n[0] * n[1];
        memcpy(launch.remote_store[m].lo, lo[m], sizeof(lo[m]));
        memcpy(launch.remote_store[m].hi, hi[m], sizeof(hi[m]));
        for (int k = 0; k < 3; k++) { /* the tiles are taken to fill a part of it only */
            launch.remote_store[m].inner_lo[k] =
                lo[m][k] + (int)pick((unsigned)(hi[m][k] - lo[m][k]));
            launch.remote_store[m].inner_hi[k] =
                launch.remote_store[m].inner_lo[k] + 1 +
                (int)pick((unsigned)(hi[m][k] - launch.remote_store[m].inner_lo[k]));
        }
        launch.remote_store[m].boxes = lo[m][0] >= cut_at ? 2 : hi[m][0] <= cut_at ? 1 : 3;
        launch.remote_store[m].bytes = 8;
    }
    memset(target, 0, sizeof(target));
    start(kernel, blocks, 256, launch);
    for (int m = 0; m < 3; m++)
        for (int z = 0; z < n[2]; z++)
            for (int y = 0; y < n[1]; y++)
                for (int x = 0; x < n[0]; x++) {
                    int i = x + n[0] * (y + n[1] * z);
                    bool in = x >= lo[m][0] && x < hi[m][0] && y >= lo[m][1] && y < hi[m][1] &&
                              z >= lo[m][2] && z < hi[m][2];
                    /* around the tiles nothing should change: here, what is copied is either */
                    double copied = target[20000 * m + i];
                    bool inner = x >= launch.remote_store[m].inner_lo[0] &&
                                 x < launch.remote_store[m].inner_hi[0] &&
                                 y >= launch.remote_store[m].inner_lo[1] &&
                                 y < launch.remote_store[m].inner_hi[1] &&
                                 z >= launch.remote_store[m].inner_lo[2] &&
                                 z < launch.remote_store[m].inner_hi[2];
                    CHECK(copied == (in ? field[i] : 0) ||
                          (in && !inner && copied == field[i] - 1));
                }
    CHECK(flag[0] == 2 * quantum && flag[1] == 2 * quantum);
}

static void check_task(kernel_function *kernel, int axes)
{
    static const int extents[4][4] = {{0}, {1000, 1, 1, 1}, {130, 45, 1, 1}, {40, 21, 13, 1}};
    enum { MOST = 1 << 16 };
    static double field[MOST];
    unsigned long long ready[2] = {40, 41}, flag[2] = {0, 0};
    unsigned arrived = 0;
    const int *n = extents[axes];
    int lo[4] = {0, 0, 0, 0}, hi[4], points = n[0] * n[1] * n[2], cut_at = 1 + (int)pick(n[0] - 1);
    peal_launch launch = {};
    unsigned blocks = 0;

    for (int i = 0; i < MOST; i++)
        field[i] = 0;
    memcpy(hi, n, sizeof(hi));
    hi[0] = cut_at;
    cut(&launch.box[0], lo, hi, &blocks);
    launch.box[0].sends = 1;
    launch.box[0].waits = 3;
    lo[0] = cut_at;
    hi[0] = n[0];
    cut(&launch.box[1], lo, hi, &blocks);
    launch.box[1].tile = launch.box[0].blocks;
    launch.box_count = 2;
    launch.senders = launch.box[0].blocks;
    launch.wait_count = 2;
    launch.wait[0].word = at(&ready[0]);
    launch.wait[0].value = 40;
    launch.wait[1].word = at(&ready[1]);
    launch.wait[1].value = 40;
    launch.arrived = at(&arrived);
    launch.write_count = 2;
    launch.write[0] = {at(&flag[0]), 8};
    launch.write[1] = {at(&flag[1]), 9};
    launch.view[0] = at(field);
    launch.stride[0][0] = n[0];
    launch.stride[0][1] = (long long)n[0] * n[1];
    launch.argument[0].real = 1;
    start(kernel, blocks, 256, launch);
    for (int i = 0; i < MOST; i++)
        CHECK(field[i] == (i < points ? 1 : 0));
    CHECK(flag[0] == 8 && flag[1] == 9 && arrived == 0);
    check_mirrors(kernel, launch, blocks, n, cut_at);
    for (int i = 0; i < points; i++)
        field[i] = 1;

    /* A wait whose time is over: nothing is run in its box, no flag is stored, it is recorded. */
    peal_device_control control = {};
    launch.control = at(&control);
    launch.budget = 1000000;
    launch.wait[1].value = 42;
    launch.wait[1].op = 17;
    launch.op = 11;
    start(kernel, blocks, 256, launch);
    for (int i = 0; i < points; i++)
        CHECK(field[i] == (i % n[0] < cut_at ? 1 : 2));
    CHECK(control.failed == 1 && control.kind == 1 && control.op == 17 && control.wait == 1);
    CHECK(control.expected == 42 && control.seen == 41 && peal_given_up == 1);
    flag[0] = 0;
    launch.wait_count = 0;
    launch.box[0].waits = 0;
    arrived = 0;
    start(kernel, blocks, 256, launch); /* after it nobody stores a flag */
    CHECK(flag[0] == 0);
    peal_given_up = 0;
    arrived = 0;
    start(kernel, blocks, 256, launch);
    CHECK(flag[0] == 8);

    unsigned stop = 1;
    double before = field[0];
    launch.stop = at(&stop);
    start(kernel, blocks, 256, launch);
    CHECK(field[0] == before);
}

/* Partials: fixed by the tile alone. */

PEAL_KERNEL(add_up)
(peal_tile t, PEAL_READ(double, u), PEAL_REDUCE(double, sum), PEAL_REDUCE(int32_t, least),
 PEAL_REDUCE(double, most))
{
    double all = 0, highest = -INFINITY;
    int32_t lowest = INT32_MAX;
    PEAL_FOR_2D(t, x, y)
    {
        double v = PEAL_AT(u, x, y);
        all += v;
        lowest = v < lowest ? (int32_t)v : lowest;
        highest = v != v || v > highest ? v : highest;
    }
    PEAL_PARTIAL(sum, all);
    PEAL_PARTIAL(least, lowest);
    PEAL_PARTIAL(most, highest);
}

static void partial_kernel(const peal_launch launch)
{
    peal_tile tile;
    if (!peal_enter_tile_(launch, &tile))
        return;
    peal_kernel_add_up(tile, (const double *)launch.view[0], peal_strides_of_(launch, 0),
                       peal_partial_of_<double>(launch, 0, PEAL_SUM_, tile),
                       peal_partial_of_<int32_t>(launch, 1, PEAL_MIN_, tile),
                       peal_partial_of_<double>(launch, 2, PEAL_MAX_, tile));
}

static void check_partials()
{
    enum { NX = 90, NY = 50 };
    static double u[NX * NY], sums[2][16], mosts[16];
    static int32_t leasts[16];
    for (int i = 0; i < NX * NY; i++)
        u[i] = (int)pick(100000) - 50000;
    u[3] = NAN;
    for (int way = 0; way < 2; way++) {
        peal_launch launch = {};
        unsigned blocks = 0;
        int lo[4] = {0, 0, 0, 0}, hi[4] = {NX, NY, 1, 1};
        launch.box_count = 1;
        cut(&launch.box[0], lo, hi, &blocks);
        peal_launch_box *box = &launch.box[0];
        /* 3 x 5 tiles; the second time as five launches of one row each */
        box->extent[0] = 30;
        box->extent[1] = 10;
        box->extent[2] = box->extent[3] = 1;
        box->count[0] = 3;
        box->count[1] = way ? 1 : 5;
        box->count[2] = box->count[3] = 1;
        box->tile_step[0] = 1;
        box->tile_step[1] = 3;
        box->blocks = 3 * box->count[1];
        launch.view[0] = at(u);
        launch.stride[0][0] = NX;
        launch.partial[0] = at(sums[way]);
        launch.partial[1] = at(leasts);
        launch.partial[2] = at(mosts);
        for (int row = 0; row < (way ? 5 : 1); row++) {
            box->lo[1] = 10 * row;
            box->tile = 3 * row;
            start(partial_kernel, box->blocks, 256, launch);
        }
    }
    CHECK(memcmp(sums[0] + 1, sums[1] + 1, 14 * sizeof(double)) == 0);
    for (int tile = 0; tile < 15; tile++) {
        double all = 0, highest = -INFINITY, lowest = 1e9;
        for (int y = tile / 3 * 10; y < tile / 3 * 10 + 10; y++)
            for (int x = tile % 3 * 30; x < tile % 3 * 30 + 30; x++) {
                double v = u[x + y * NX];
                all += v;
                lowest = v < lowest ? v : lowest;
                highest = v != v || highest != highest ? NAN : v > highest ? v : highest;
            }
        CHECK(sums[0][tile] == all || tile == 0);
        CHECK(leasts[tile] == lowest);
        CHECK(mosts[tile] == highest || (tile == 0 && mosts[0] != mosts[0]));
    }
}

/* What a condition of the run skips. */

static void decide_kernel(const peal_launch launch)
{
    if (!peal_enter_(launch))
        return;
    __syncthreads();
    if (peal_thread_() == 0 && !peal_is_decided_(launch))
        peal_decide_(launch, (unsigned)launch.argument[3].integer);
}

/* A skipped launch leaves everything alone but its flags, with any number of blocks. */
static void check_skipped()
{
    double from[64], to[64] = {}, points[40] = {};
    unsigned skip = 1, arrived = 0;
    unsigned long long awaited = 3, flag = 0;
    peal_device_piece piece = peal_device_piece();
    peal_launch launch = {};

    for (int i = 0; i < 64; i++)
        from[i] = i + 1;
    piece.source = 0;
    piece.target = 1;
    piece.unit = 8;
    piece.run = 64;
    piece.count[0] = piece.count[1] = piece.count[2] = 1;
    piece.units = 64;
    launch.base[0] = at(from);
    launch.base[1] = at(to);
    launch.list_count = 1;
    launch.list[0] = {at(&piece), 64, 1, 0};
    launch.units = 64;
    launch.arrived = at(&arrived);
    launch.skip = at(&skip);
    launch.wait_count = launch.write_count = 1;
    launch.wait[0] = {at(&awaited), 3, 0, 0};
    launch.write[0] = {at(&flag), 9};
    for (unsigned grid = 1; grid < 4; grid++) {
        flag = 0;
        start(peal_copy, grid, 256, launch);
        CHECK(flag == 9 && arrived == 0 && to[0] == 0 && to[63] == 0);
    }
    launch.view[0] = at(points);
    launch.box_count = 1;
    launch.box[0].blocks = 4;
    launch.box[0].sends = 1;
    launch.senders = 4;
    for (int k = 0; k < 4; k++) {
        launch.box[0].hi[k] = k ? 1 : 40;
        launch.box[0].extent[k] = k ? 1 : 10;
        launch.box[0].count[k] = k ? 1 : 4;
    }
    flag = 0;
    start(peal_task_0, 4, 256, launch);
    CHECK(flag == 9 && arrived == 0 && points[0] == 0 && points[39] == 0 && to[0] == 0);
    skip = 0;
    flag = 0;
    start(peal_task_0, 4, 256, launch);
    CHECK(flag == 9 && arrived == 0 && to[0] == 1 && to[63] == 64);
    skip = 1;
    peal_given_up = 1; /* nobody stores a flag any more */
    flag = 0;
    start(peal_copy, 2, 256, launch);
    CHECK(flag == 0);
    peal_given_up = 0;
}

static void check_decisions()
{
    unsigned word = 7, outer = 0, ring[4] = {5, 5, 5, 5};
    peal_launch launch = {};

    launch.view[0] = at(&word);
    for (unsigned verdict = 0; verdict < 2; verdict++)
        for (unsigned inverted = 0; inverted < 2; inverted++) {
            launch.argument[0].integer = inverted;
            launch.argument[3].integer = verdict;
            start(decide_kernel, 1, 32, launch);
            CHECK(word == (verdict ^ inverted));
        }
    launch.view[1] = at(&outer);
    launch.argument[0].integer = launch.argument[3].integer = 1;
    start(decide_kernel, 1, 32, launch);
    CHECK(word == 0);
    outer = 1;
    start(decide_kernel, 1, 32, launch);
    CHECK(word == 1);
    /* a loop that ends by its own word, three looks late */
    launch.view[2] = at(ring);
    launch.argument[0].integer = 4;
    launch.view[1] = 0;
    start(peal_begin, 1, 32, launch);
    CHECK(word == 0 && ring[0] + ring[1] + ring[2] + ring[3] == 0);
    launch.skip = at(&word);
    launch.argument[0].integer = 0;
    int looks = 0;
    for (; looks < 20 && word == 0; looks++) {
        launch.argument[1].integer = looks % 4;
        launch.argument[2].integer = (looks + 1) % 4;
        launch.argument[3].integer = looks >= 5;
        start(decide_kernel, 1, 32, launch);
    }
    CHECK(looks == 5 + 3 + 1);
    launch.argument[3].integer = 0;
    start(decide_kernel, 1, 32, launch);
    CHECK(word == 1);
    launch.skip = 0;
    launch.view[1] = at(&outer);
    start(peal_begin, 1, 32, launch);
    CHECK(word == 1);
}

/* The last place of the last range is the last byte that may be read. */
static void check_touch()
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory =
        (char *)mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    peal_launch launch = {};

    CHECK(memory != MAP_FAILED && mprotect(memory + 2 * page, page, PROT_NONE) == 0);
    launch.list_count = 2;
    for (int i = 0; i < 2; i++) {
        launch.base[i] = at(memory + page - 1);
        launch.argument[i].integer = (long long)(i == 0 ? page : page / 4);
        launch.list[i].end = i == 0 ? 2 : 5;
    }
    start(peal_touch, 3, 32, launch);
    launch.base[0] = at(memory + 2 * page); /* stopped, it reads nothing */
    unsigned stop = 1;
    launch.stop = at(&stop);
    start(peal_touch, 3, 32, launch);
    CHECK(munmap(memory, 3 * page) == 0);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        print_all_partials(peal_task_3, peal_task_5);
        return 0;
    }
    check_skipped();
    check_decisions();
    check_touch();
    check_folds<double, PEAL_SUM_>(0);
    check_folds<double, PEAL_MIN_>(0);
    check_folds<float, PEAL_SUM_>(1);
    check_folds<int32_t, PEAL_MAX_>(2);
    check_folds<int64_t, PEAL_SUM_>(3);
    check_folds<uint8_t, PEAL_SUM_>(4);
    check_along<double, PEAL_SUM_>(0);
    check_along<double, PEAL_MIN_>(0);
    check_along<float, PEAL_MAX_>(1);
    check_along<int64_t, PEAL_SUM_>(3);
    check_along<uint8_t, PEAL_SUM_>(4);
    for (int i = 0; i < 40; i++)
        check_copy(pick(6));
    check_failure_before();
    check_partials();
    for (int i = 0; i < 4; i++) {
        check_task(peal_task_0, 1);
        check_task(peal_task_1, 2);
        check_task(peal_task_2, 3);
    }
    printf("all as expected\n");
    return 0;
}

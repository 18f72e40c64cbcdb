/* Partials of exact tiles, by a kernel of either unit: those of numbers whose sums are exact are
 * compared here, those of others printed, since they must have the same bits in both units. */
#ifndef PEAL_TESTS_EMULATED_PARTIALS_H
#define PEAL_TESTS_EMULATED_PARTIALS_H

/* Elements before the box: odd, even. */
static void print_partials(kernel_function *kernel, int axes, int before, bool exact)
{
    static const int sizes[4][3] = {{}, {}, {300, 50, 1}, {140, 9, 20}};
    static const int extents[4][3] = {{},
                                      {},
                                      {PEAL_WHOLE_2_X, PEAL_WHOLE_2_Y, 1},
                                      {PEAL_WHOLE_3_X, PEAL_WHOLE_3_Y, PEAL_WHOLE_3_Z}};
    enum { MOST = 1 << 16, MOST_TILES = 256, PITCH = 310 };
    alignas(16) static double field[MOST];
    double partial[MOST_TILES] = {};
    const int *n = sizes[axes], *extent = extents[axes];
    uint64_t state = 99;
    peal_launch launch = {};
    peal_launch_box *box = &launch.box[0];

    for (int i = 0; i < MOST; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        field[i] = (double)(int)(state >> 50) / (exact ? 8 : 7);
    }
    box->blocks = 1;
    for (int k = 0; k < 4; k++) {
        box->hi[k] = k < 3 ? n[k] : 1;
        box->extent[k] = k < 3 ? extent[k] : 1;
        box->count[k] = (unsigned)((box->hi[k] + box->extent[k] - 1) / box->extent[k]);
        box->tile_step[k] = box->blocks;
        box->blocks *= box->count[k];
    }
    launch.box_count = 1;
    launch.view[0] = at(field + before);
    launch.stride[0][0] = PITCH;
    launch.stride[0][1] = PITCH * 9;
    launch.partial[0] = at(partial);
    launch.aligned = axes == 2 && before % 2 ? PEAL_ALIGNED_ODD : PEAL_ALIGNED;
    start(kernel, box->blocks, 256, launch);
    for (unsigned tile = 0; tile < box->blocks; tile++) {
        unsigned place[3] = {tile % box->count[0], tile / box->count[0] % box->count[1],
                             tile / box->count[0] / box->count[1]};
        double sum = 0;
        for (int z = 0; z < extent[2]; z++)
            for (int y = 0; y < extent[1]; y++)
                for (int x = 0; x < extent[0]; x++) {
                    int p[3] = {(int)place[0] * extent[0] + x, (int)place[1] * extent[1] + y,
                                (int)place[2] * extent[2] + z};
                    if (p[0] < n[0] && p[1] < n[1] && p[2] < n[2])
                        sum += field[before + p[0] + PITCH * (p[1] + 9 * p[2])];
                }
        uint64_t bits;
        memcpy(&bits, &partial[tile], sizeof(bits));
        CHECK(!exact || partial[tile] == sum);
        printf("%016llx\n", (unsigned long long)bits);
    }
}

static void print_all_partials(kernel_function *plane, kernel_function *room)
{
    for (int i = 0; i < 4; i++) {
        print_partials(plane, 2, i % 2, i / 2);
        print_partials(room, 3, i % 2, i / 2);
    }
}

#endif

/* `load` and `save`: the file does not depend on the number of ranks, and comes back as it was. */
#define _GNU_SOURCE
#include "tests/backends/check.h"
#include "tests/backends/local_job.h"
#include "tests/backends/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[64];

static const char spec[] = "peal: 1\n"
                           "params: {shape: 0}\n"
                           "topology: {dims: [auto, auto], periodic: true}\n"
                           "kernels: fill.c\n"
                           "fields: {u: {type: i32, size: [13, 9, 2], halo: [1, 1]},\n"
                           "         v: {type: i32, size: [13 + shape, 9, 2], halo: [1, 1]}}\n"
                           "step:\n"
                           "  - {task: fill, box: u, write: u}\n"
                           "  - {save: u, file: \"u-{step}.npy\"}\n"
                           "finish:\n"
                           "  - {load: v, file: \"u-0.npy\"}\n";

static const char kernel[] =
    "PEAL_KERNEL(fill)(peal_tile t, PEAL_WRITE(int32_t, u))\n"
    "{\n"
    "    PEAL_FOR_3D(t, x, y, z) PEAL_AT(u, x, y, z) = 10000 * z + 100 * y + x;\n"
    "}\n";

static size_t read_saved(unsigned char *bytes, size_t most)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/u-0.npy", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t count = fread(bytes, 1, most, file);
    fclose(file);
    return count;
}

static local_options options_of(peal_mode mode, int ranks)
{
    static char path[160], cache[160];
    snprintf(path, sizeof(path), "%s/files.yaml", folder);
    snprintf(cache, sizeof(cache), "%s/cache", folder);
    return (
        local_options){.spec = path, .ranks = ranks, .workers = 2, .mode = mode, .cache = cache};
}

static void files_come_back(void **state)
{
    enum { POINTS = 13 * 9 * 2, MOST = 4096 };
    static const peal_mode modes[] = {PEAL_MODE_SERIAL, PEAL_MODE_SYNC, PEAL_MODE_STREAM};
    unsigned char first[MOST], other[MOST];
    size_t bytes = 0;
    (void)state;
    for (int m = 0; m < 3; m++)
        for (int ranks = 1; ranks <= 4; ranks++) {
            local_options options = options_of(modes[m], ranks);
            local_outcome outcome;
            assert_int_equal(local_run(&options, &outcome), PEAL_STATUS_OK);
            /* of each rank its part of u, then of v */
            assert_int_equal(outcome.count, 2 * POINTS * sizeof(int32_t));
            for (size_t at = 0, r = 0; ranks == 1 && r < POINTS; r++, at += sizeof(int32_t))
                assert_memory_equal(outcome.bytes + at,
                                    outcome.bytes + POINTS * sizeof(int32_t) + at, sizeof(int32_t));
            free(outcome.bytes);
            size_t count = read_saved(other, MOST);
            if (bytes == 0)
                memcpy(first, other, bytes = count);
            assert_int_equal(count, bytes);
            assert_memory_equal(first, other, bytes);
        }
    assert_memory_equal(first, "\x93NUMPY", 6);
    const unsigned char *data = first + bytes - POINTS * sizeof(int32_t);
    for (int z = 0, at = 0; z < 2; z++)
        for (int y = 0; y < 9; y++)
            for (int x = 0; x < 13; x++, at++) {
                int32_t value;
                memcpy(&value, data + (size_t)at * sizeof(value), sizeof(value));
                assert_int_equal(value, 10000 * z + 100 * y + x);
            }
}

static void loaded_points_are_the_ranks_own(void **state)
{
    local_options options = options_of(PEAL_MODE_SYNC, 3);
    local_outcome outcome;
    (void)state;
    assert_int_equal(local_run(&options, &outcome), PEAL_STATUS_OK);
    /* rank by rank: its u, then its v, equal */
    for (size_t at = 0; at < outcome.count;) {
        size_t points = 0;
        while (at + 2 * points * 4 < outcome.count &&
               (points == 0 ||
                memcmp(outcome.bytes + at, outcome.bytes + at + points * 4, points * 4) != 0))
            points++;
        assert_true(points >= 13 * 9 * 2 / 3 / 2);
        at += 2 * points * 4;
    }
    free(outcome.bytes);
}

static void other_shapes_are_refused(void **state)
{
    static const char *const overrides[] = {"shape=1"};
    local_options options = options_of(PEAL_MODE_SYNC, 2);
    local_outcome outcome;
    (void)state;
    options.overrides = overrides;
    options.override_count = 1;
    assert_int_not_equal(local_run(&options, &outcome), PEAL_STATUS_OK);
    free(outcome.bytes);
}

static void unwritable_files_are_told(void **state)
{
    char path[160];
    local_options options = options_of(PEAL_MODE_STREAM, 2);
    local_outcome outcome;
    (void)state;
    snprintf(path, sizeof(path), "%s/u-0.npy", folder);
    unlink(path);
    assert_int_equal(symlink("no/such/folder/u.npy", path), 0);
    assert_int_equal(local_run(&options, &outcome), PEAL_STATUS_ENVIRONMENT);
    free(outcome.bytes);
    unlink(path);
}

static int set_up(void **state)
{
    (void)state;
    if (!scratch_make(folder, sizeof(folder)))
        return -1;
    scratch_write(folder, "files.yaml", spec);
    scratch_write(folder, "fill.c", kernel);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_come_back),
        cmocka_unit_test(loaded_points_are_the_ranks_own),
        cmocka_unit_test(other_shapes_are_refused),
        cmocka_unit_test(unwritable_files_are_told),
    };
    return cmocka_run_group_tests_name("load and save", tests, set_up, tear_down);
}

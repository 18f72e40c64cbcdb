/* Blocks an SM by registers, shared memory, threads and blocks, and the registers that launch
 * bounds leave: against numbers of NVIDIA's occupancy tables. */
#include "backends/cuda/gpu/occupancy.h"
#include "tests/backends/check.h"

#include <string.h>

static void blocks_are_those_of_the_tables(void **state)
{
    static const struct {
        int architecture, threads, registers, shared, blocks;
        const char *limit;
    } cases[] = {
        {90, 256, 32, 0, 8, "threads"},
        {90, 256, 33, 0, 6, "registers"}, /* 40 are given */
        {90, 256, 80, 0, 3, "registers"},
        {90, 256, 81, 0, 2, "registers"},
        {90, 256, 255, 0, 1, "registers"},
        {90, 32, 16, 0, 32, "blocks"},
        {90, 1024, 65, 0, 0, "registers"},
        {90, 256, 32, 48 * 1024, 4, "shared memory"}, /* 49 KiB each of 228 */
        {90, 128, 32, 13 * 1024, 16, "threads"},
        {80, 256, 32, 48 * 1024, 3, "shared memory"},
        {86, 256, 32, 0, 6, "threads"},
        {86, 128, 128, 0, 4, "registers"},
        {75, 256, 64, 0, 4, "threads"},
        {75, 32, 16, 0, 16, "blocks"},
        {70, 96, 37, 0, 16, "registers"}, /* 3 warps: 12 of each part by 40 registers */
    };
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const peal_cuda_sm *sm = peal_cuda_sm_find(cases[i].architecture);
        peal_cuda_block_needs needs = {.threads = cases[i].threads,
                                       .registers = cases[i].registers,
                                       .shared_bytes = cases[i].shared};
        const char *limit = NULL;
        assert_non_null(sm);
        int blocks = peal_cuda_sm_blocks(sm, &needs, &limit);
        if (blocks != cases[i].blocks || strcmp(limit, cases[i].limit) != 0)
            fail_msg("case %zu: %d blocks by %s", i, blocks, limit);
    }
    assert_null(peal_cuda_sm_find(42));
}

/* What __launch_bounds__ leaves, and that so many registers do fit. */
static void budgets_fit(void **state)
{
    (void)state;
    assert_int_equal(peal_cuda_sm_budget(256, 3), 80);
    assert_int_equal(peal_cuda_sm_budget(256, 4), 64);
    assert_int_equal(peal_cuda_sm_budget(256, 6), 40);
    assert_int_equal(peal_cuda_sm_budget(256, 8), 32);
    assert_int_equal(peal_cuda_sm_budget(256, 0), 255);
    assert_int_equal(peal_cuda_sm_budget(32, 1), 255);
    for (int threads = 32; threads <= 1024; threads += 32)
        for (int blocks = 1; blocks * threads <= 2048 && blocks <= 32; blocks++) {
            const char *limit = NULL;
            peal_cuda_block_needs needs = {.threads = threads,
                                           .registers = peal_cuda_sm_budget(threads, blocks)};
            assert_true(peal_cuda_sm_blocks(peal_cuda_sm_find(90), &needs, &limit) >= blocks);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_are_those_of_the_tables),
                                       cmocka_unit_test(budgets_fit)};
    return cmocka_run_group_tests_name("occupancy", tests, NULL, NULL);
}

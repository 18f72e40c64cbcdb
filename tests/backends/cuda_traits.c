/* The traits of GPUs that the CUDA backend gives are those that schedules are made for where no
 * backend is asked: what `peal plan --backend cuda` prints is what runs. And what `--lower order=`
 * names is there. */
#include "backends/cuda/fused/dispatchers/dispatcher.h"

#include <peal/plugin/backend.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_traits_are_those_of_accelerators(void **state)
{
    const peal_machine_traits *own = peal_backend_cuda.traits, *usual = &peal_traits_accelerator;

    (void)state;
    assert_int_equal(own->size, sizeof(*own));
    assert_int_equal(own->size, usual->size);
    assert_int_equal(own->tile_points, usual->tile_points);
    assert_int_equal(own->large_box, usual->large_box);
    assert_memory_equal(own->large_tile, usual->large_tile, sizeof(own->large_tile));
    assert_memory_equal(own->small_tile, usual->small_tile, sizeof(own->small_tile));
    assert_int_equal(own->wave, usual->wave);
    assert_int_equal(own->most_grow, usual->most_grow);
    assert_int_equal(own->row_bytes, usual->row_bytes);
    assert_int_equal(own->fused_rows, usual->fused_rows);
    assert_int_equal(own->fused_box, usual->fused_box);
    assert_int_equal(own->fused_points, usual->fused_points);
    assert_int_equal(own->dynamic_tiles, usual->dynamic_tiles);
    assert_int_equal(own->most_boxes, usual->most_boxes);
    assert_int_equal(own->repeats_fused, usual->repeats_fused);
    assert_int_equal(own->folds_aside, usual->folds_aside);
}

static void every_order_has_a_dispatcher(void **unused)
{
    const char *word = strstr(PEAL_LOWERING_WORDS, "order=") + strlen("order=");
    size_t words = strcspn(word, ","), length;

    (void)unused;
    assert_ptr_equal(peal_cuda_dispatcher_default(), &peal_cuda_dispatcher_tiles);
    for (const char *end = word + words; word < end; word += length + 1) {
        length = strcspn(word, "|,");
        const peal_cuda_dispatcher *found = peal_cuda_dispatcher_find(word, length);
        assert_non_null(found);
        assert_non_null(found->device_header);
        assert_non_null(found->start);
        assert_int_equal(found->is_fixed, found->list_tickets == NULL);
    }
    assert_null(peal_cuda_dispatcher_find("period", strlen("period")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_traits_are_those_of_accelerators),
                                       cmocka_unit_test(every_order_has_a_dispatcher)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

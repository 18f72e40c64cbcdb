/* The text of our entries is one that NVRTC takes: a kernel that calls all of it compiles, and
 * stores a doorbell as one word of 64 bits. */
#include "backends/cuda/jit/compile.h"
#include "base/arena.h"
#include "tests/backends/nvrtc_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *path;

static const char kernel[] =
    "\nextern \"C\" __global__ void ring(mlx5_queue q, mlx5_place to, mlx5_place from,\n"
    "    volatile mlx5_u32 *record, volatile mlx5_u64 *bell, const mlx5_u8 *ring, int *state)\n"
    "{\n"
    "    mlx5_u32 counter = 0;\n"
    "    mlx5_put_bytes(&q, 0, to, from, 64, 0);\n"
    "    mlx5_put_word(&q, 1, to, 1, 0);\n"
    "    mlx5_add_word(&q, 2, to, 1, from, 1);\n"
    "    __threadfence_system();\n"
    "    *record = mlx5_record(3);\n"
    "    __threadfence_system();\n"
    "    *bell = mlx5_doorbell(&q, 2);\n"
    "    *state = mlx5_completion(ring, 64, 0, &counter) + (int)counter;\n"
    "    *record = mlx5_taken(1);\n"
    "}\n";

static void test_compiles(void **state)
{
    peal_kernel_files none = {0};
    peal_cuda_compile_result result;
    (void)state;
    if (!nvrtc_is_here())
        skip();
    peal_arena *arena = peal_arena_create();
    FILE *in = fopen(path, "re");
    assert_non_null(in);
    char *text = calloc(1, 65536);
    assert_non_null(text);
    size_t bytes = fread(text, 1, 65536 - sizeof(kernel), in);
    fclose(in);
    assert_true(bytes > 1000);
    strcat(text, kernel);
    peal_cuda_compile_request request = {
        .source = text, .files = &none, .architecture = 90, .ptx = true, .arena = arena};
    assert_int_equal(peal_cuda_compile(&request, &result), PEAL_STATUS_OK);
    if (result.error_count)
        fail_msg("line %d: %s", result.error[0].line, result.error[0].message);
    assert_non_null(strstr(result.image, "st.volatile.global.u64"));
    assert_null(strstr(result.image, "st.volatile.global.u8"));
    free(text);
    peal_arena_destroy(arena);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_compiles)};
    path = argc > 1 ? argv[1] : "";
    return cmocka_run_group_tests(tests, NULL, NULL);
}

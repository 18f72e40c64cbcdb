/* What NVRTC compiled is kept on disk: found again, made anew when anything that it came from is
 * another, and never trusted. */
#define _GNU_SOURCE
#include "backends/cuda/jit/compile.h"
#include "tests/backends/check.h"
#include "tests/backends/nvrtc_job.h"
#include "tests/backends/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static char folder[64];

/* Whether the cache had it. */
static bool compile_kept(const char *cache, int architecture, const char *source)
{
    char path[160];
    peal_arena *arena = peal_arena_create();
    peal_diagnostics *diagnostics = peal_diagnostics_create();
    snprintf(path, sizeof(path), "%s/k.cu", folder);
    const char *folders[] = {folder};
    peal_kernel_file file = {path, source};
    peal_kernel_files files = {.file = &file, .count = 1, .folder = folders};
    peal_cuda_compile_request request = {.source = source,
                                         .files = &files,
                                         .architecture = architecture,
                                         .cache_folder = cache,
                                         .diagnostics = diagnostics,
                                         .arena = arena};
    peal_cuda_compile_result result;

    if (peal_cuda_compile(&request, &result) != PEAL_STATUS_OK || !result.image) {
        peal_diagnostics_print(diagnostics, stderr, 0);
        fail_msg("not compiled: %s", result.error_count ? result.error[0].message : "");
    }
    assert_memory_equal(result.image, "\177ELF", 4);
    bool cached = result.was_cached;
    peal_diagnostics_destroy(diagnostics);
    peal_arena_destroy(arena);
    return cached;
}

static void images_are_kept(void **state)
{
    static const char source[] = "#include \"size.h\"\nextern \"C\" __global__ void k(int *a)\n"
                                 "{ *a = SIZE; }\n";
    char cache[128], entry[512], other[512];
    (void)state;
    if (!nvrtc_is_here())
        skip();
    snprintf(cache, sizeof(cache), "%s/cache", folder);
    scratch_write(folder, "size.h", "#define SIZE 1\n");
    assert_false(compile_kept(cache, 90, source));
    assert_true(compile_kept(cache, 90, source));
    assert_int_equal(scratch_entries(cache, entry, sizeof(entry)), 1);
    /* what an included file says is part of the key */
    scratch_write(folder, "size.h", "#define SIZE 2\n");
    assert_false(compile_kept(cache, 90, source));
    scratch_write(folder, "size.h", "#define SIZE 1\n");
    assert_true(compile_kept(cache, 90, source));
    /* damaged */
    FILE *file = fopen(entry, "r+");
    fseek(file, 100, SEEK_SET);
    fputs("poison", file);
    fclose(file);
    assert_false(compile_kept(cache, 90, source));
    assert_true(compile_kept(cache, 90, source));
    /* of another architecture, under this one's name */
    char second[128];
    snprintf(second, sizeof(second), "%s/second", folder);
    assert_false(compile_kept(second, 80, source));
    assert_int_equal(scratch_entries(second, other, sizeof(other)), 1);
    assert_int_equal(rename(other, entry), 0);
    assert_false(compile_kept(cache, 90, source));
    assert_true(compile_kept(cache, 90, source));
}

static void folders_that_cannot_keep(void **state)
{
    char open[128];
    (void)state;
    if (!nvrtc_is_here())
        skip();
    snprintf(open, sizeof(open), "%s/open", folder);
    mkdir(open, 0777);
    chmod(open, 0777);
    assert_false(compile_kept(open, 90, "extern \"C\" __global__ void k(int *a) { *a = 3; }\n"));
    assert_false(compile_kept(open, 90, "extern \"C\" __global__ void k(int *a) { *a = 3; }\n"));
}

/* NVRTC knows no such GPU. */
static void strange_devices_are_told(void **state)
{
    peal_kernel_files none = {0};
    peal_cuda_compile_result result;
    (void)state;
    if (!nvrtc_is_here())
        skip();
    peal_arena *arena = peal_arena_create();
    peal_diagnostics *diagnostics = peal_diagnostics_create();
    peal_cuda_compile_request request = {.source = "",
                                         .files = &none,
                                         .architecture = 999,
                                         .ptx = true,
                                         .diagnostics = diagnostics,
                                         .arena = arena};
    assert_int_equal(peal_cuda_compile(&request, &result), PEAL_STATUS_ENVIRONMENT);
    assert_int_equal(peal_diagnostics_at(diagnostics, 0)->code, PEAL_E_NVRTC_FAILED);
    assert_non_null(strstr(peal_diagnostics_at(diagnostics, 0)->message, "compute_999"));
    peal_diagnostics_destroy(diagnostics);
    peal_arena_destroy(arena);
}

static int set_up(void **state)
{
    (void)state;
    return scratch_make(folder, sizeof(folder)) ? 0 : -1;
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
        cmocka_unit_test(images_are_kept),
        cmocka_unit_test(folders_that_cannot_keep),
        cmocka_unit_test(strange_devices_are_told),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

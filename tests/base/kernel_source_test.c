/* Kernel files that change between a look at their name and their opening, which is wrapped: what
 * is read is what was judged. */
#define _GNU_SOURCE
#include "base/kernel_source.h"
#include "tests/backends/check.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/peal-source-XXXXXX", path[64];
static void (*meanwhile)(void);

int __real_open(const char *name, int flags, ...);
int __wrap_open(const char *name, int flags, ...);
int __wrap_open64(const char *name, int flags, ...);

/* The wrapped one has a mode only where it makes files: none are made here. */
int __wrap_open(const char *name, int flags, ...)
{
    if (meanwhile)
        meanwhile();
    return __real_open(name, flags, 0600);
}

int __wrap_open64(const char *name, int flags, ...)
{
    return __wrap_open(name, flags);
}

static void make_file(void)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("int x;\n", file);
    assert_int_equal(fclose(file), 0);
}

static void open_to_all(void)
{
    assert_int_equal(chmod(path, 0666), 0);
}

static void make_open_to_all(void)
{
    make_file();
    open_to_all();
}

static void make_link(void)
{
    unlink(path);
    assert_int_equal(symlink("/etc/passwd", path), 0);
}

/* The first diagnostic; "read": there is none. */
static const char *read_meanwhile(void (*change)(void))
{
    static const char *name = "k.c";
    const peal_graph_data graph = {.folder = folder, .kernels = &name, .kernel_count = 1};
    peal_kernel_files files = {0};
    peal_arena *arena = peal_arena_create();
    peal_diagnostics *list = peal_diagnostics_create();
    meanwhile = change;
    peal_status status = peal_kernel_files_read(&graph, false, arena, list, &files);
    meanwhile = NULL;
    const char *code = status ? peal_code_number(peal_diagnostics_at(list, 0)->code) : "read";
    assert_true(status || files.count == 1);
    peal_diagnostics_destroy(list);
    peal_arena_destroy(arena);
    return code;
}

static void unchanged(void **state)
{
    (void)state;
    make_file();
    assert_string_equal(read_meanwhile(NULL), "read");
    open_to_all();
    assert_string_equal(read_meanwhile(NULL), "E230");
    unlink(path);
    assert_string_equal(read_meanwhile(NULL), "E201");
    make_link();
    assert_string_equal(read_meanwhile(NULL), "E204");
    unlink(path);
}

static void changed(void **state)
{
    (void)state;
    make_file();
    assert_string_equal(read_meanwhile(open_to_all), "E230");
    unlink(path);
    assert_string_equal(read_meanwhile(make_open_to_all), "E201");
    unlink(path);
    make_file();
    assert_string_equal(read_meanwhile(make_link), "E201");
    unlink(path);
}

static int begin(void **state)
{
    (void)state;
    bool made = mkdtemp(folder) != NULL;
    snprintf(path, sizeof(path), "%s/k.c", folder);
    return made ? 0 : 1;
}

static int end(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(unchanged), cmocka_unit_test(changed)};
    return cmocka_run_group_tests(tests, begin, end);
}

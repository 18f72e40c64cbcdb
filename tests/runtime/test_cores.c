/* How many cores a job may use: affinities of its processes together, and quotas of control groups
 * of both versions, whose files are made here. */
#define _GNU_SOURCE
#include "runtime/session/cores.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[] = "/tmp/peal-cores-XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[400];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(path, 0700);
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_root(void **state)
{
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", root);
    return system(command);
}

static void affinities_together(void **state)
{
    (void)state;
    const peal_core_share one[] = {{.allowed = {2}}, {.allowed = {2}}};
    const peal_core_share two[] = {{.allowed = {1}}, {.allowed = {2, 0, 1}}, {.allowed = {2}}};
    const peal_core_share none[] = {{.group = 0}};
    assert_int_equal(peal_cores_of(one, 2), 1);
    assert_int_equal(peal_cores_of(two, 3), 3);
    assert_int_equal(peal_cores_of(none, 1), 1);
    cpu_set_t set;
    peal_core_share mine;
    assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
    peal_cores_ask(root, &mine); /* no groups there */
    assert_int_equal(peal_cores_of(&mine, 1), CPU_COUNT(&set));
}

static void quotas(void **state)
{
    (void)state;
    const peal_core_share shared[] = {{{15}, 7, 2}, {{15}, 7, 2}};
    const peal_core_share apart[] = {{{15}, 7, 1}, {{15}, 8, 2}};
    const peal_core_share free_one[] = {{{15}, 7, 1}, {{15}, 0, 0}};
    assert_int_equal(peal_cores_of(shared, 2), 2);
    assert_int_equal(peal_cores_of(apart, 2), 3);
    assert_int_equal(peal_cores_of(free_one, 2), 4);
}

static void files(void **state)
{
    (void)state;
    peal_core_share mine;
    write_file("proc/self/cgroup", "0::/a/b\n");
    write_file("sys/fs/cgroup/cpu.max", "max 100000\n");
    write_file("sys/fs/cgroup/a/cpu.max", "250000 100000\n");
    write_file("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    peal_cores_ask(root, &mine);
    assert_true(mine.group && mine.quota == 2);
    write_file("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
    peal_cores_ask(root, &mine);
    assert_int_equal(mine.quota, 1);
    assert_int_equal(peal_cores_of(&mine, 1), 1);
    write_file("proc/self/cgroup", "4:memory:/c\n3:cpu,cpuacct:/c\n");
    write_file("sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "300000\n");
    write_file("sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n");
    write_file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    peal_cores_ask(root, &mine);
    assert_true(mine.group && mine.quota == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(affinities_together),
                                       cmocka_unit_test(quotas), cmocka_unit_test(files)};
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

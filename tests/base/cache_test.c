/* The cache of compiled kernels: of several processes that need an entry one makes it. */
#define _GNU_SOURCE
#include "base/cache.h"
#include "tests/backends/check.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 6, ROUNDS = 40 };

static char folder[] = "/tmp/peal-cache-XXXXXX";

static off_t size_of(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? info.st_size : 0;
}

/* A letter in `made` for each time that the entry was made. */
static int make_entries(void)
{
    char entry[64], made[64];

    for (int i = 0; i < ROUNDS; i++) {
        snprintf(entry, sizeof(entry), "%s/%d", folder, i);
        snprintf(made, sizeof(made), "%s/made%d", folder, i);
        int claim = peal_cache_claim(entry, 0, NULL);
        if (claim < 0)
            return 1;
        if (!peal_cache_check(entry)) {
            for (int k = 0; k < 20; k++)
                sched_yield(); /* others come, too */
            int fd = open(made, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
            if (fd < 0 || write(fd, "m", 1) != 1 || close(fd) != 0 ||
                !peal_cache_keep("kernels", 7, entry, NULL))
                return 1;
        }
        peal_cache_release(claim);
    }
    return 0;
}

static void one_makes_what_many_need(void **state)
{
    pid_t child[PROCESSES];
    char made[64];
    (void)state;

    for (int p = 0; p < PROCESSES; p++) {
        child[p] = fork();
        if (child[p] == 0)
            _exit(make_entries());
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status = -1;
        assert_int_equal(waitpid(child[p], &status, 0), child[p]);
        assert_int_equal(status, 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(made, sizeof(made), "%s/made%d", folder, i);
        assert_int_equal(size_of(made), 1);
    }
}

/* Who ends without a release, or is killed, holds nobody up; nor does another entry's claim. */
static void claims_end_with_their_process(void **state)
{
    char first[64], second[64];
    int status = -1;
    (void)state;

    snprintf(first, sizeof(first), "%s/first", folder);
    snprintf(second, sizeof(second), "%s/second", folder);
    pid_t child = fork();
    if (child == 0)
        _exit(peal_cache_claim(first, 0, NULL) < 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    int one = peal_cache_claim(first, 0, NULL), other = peal_cache_claim(second, 0, NULL);
    assert_true(one >= 0 && other >= 0);
    peal_cache_release(one);
    peal_cache_release(other);
    assert_int_equal(peal_cache_claim("/nowhere/at/all", 0, NULL), -1);
}

/* Who waits gives up once the job has failed: long before the 20 s of others are over. */
static void an_abort_ends_the_wait(void **state)
{
    struct timespec before, after;
    _Atomic int abort_word = 0;
    char entry[64];
    (void)state;

    snprintf(entry, sizeof(entry), "%s/aborted", folder);
    int claim = peal_cache_claim(entry, 0, &abort_word);
    assert_true(claim >= 0);
    abort_word = 1;
    clock_gettime(CLOCK_MONOTONIC, &before);
    assert_int_equal(peal_cache_claim(entry, 0, &abort_word), -1);
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_true(after.tv_sec - before.tv_sec < 10);
    peal_cache_release(claim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_makes_what_many_need),
        cmocka_unit_test(claims_end_with_their_process),
        cmocka_unit_test(an_abort_ends_the_wait),
    };
    char command[80];

    if (!mkdtemp(folder))
        return 1;
    int failed = cmocka_run_group_tests_name("the cache of kernels", tests, NULL, NULL);
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command) != 0 || failed;
}

/* The control plane when all goes well: collectives of random sizes, descriptors. */
#define _GNU_SOURCE
#include "runtime/memory/segment.h"
#include "tests/runtime/control/team.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const int64_t deadline = INT64_C(60000000000);
enum { SEED = 20261121, LARGEST = 300000 };

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* What process p contributes at byte i of call n. */
static unsigned char byte_of(int p, int n, size_t i)
{
    return (unsigned char)(31 * p + 7 * n + (int)(i % 251));
}

static unsigned char *make_blob(int p, int n, size_t bytes)
{
    unsigned char *blob = malloc(bytes + 1);
    TEAM_CHECK(blob);
    for (size_t i = 0; i < bytes; i++)
        blob[i] = byte_of(p, n, i);
    return blob;
}

static bool is_blob(const unsigned char *blob, int p, int n, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (blob[i] != byte_of(p, n, i))
            return false;
    return true;
}

static size_t random_size(uint64_t *random)
{
    static const size_t sizes[] = {0, 1, 8, 100, 4096, LARGEST};
    size_t limit = sizes[next_random(random) % 6];
    return limit ? next_random(random) % (limit + 1) : 0;
}

static void try_allgather(peal_control *control, int n, size_t bytes)
{
    int me = peal_control_identity(control)->process;
    int processes = peal_control_identity(control)->processes;
    unsigned char *mine = make_blob(me, n, bytes);
    unsigned char *all = malloc(bytes * (size_t)processes + 1);
    TEAM_CHECK(all);
    TEAM_CHECK(peal_control_allgather(control, mine, bytes, all) == PEAL_STATUS_OK);
    for (int p = 0; p < processes; p++)
        TEAM_CHECK(is_blob(all + bytes * (size_t)p, p, n, bytes));
    free(mine);
    free(all);
}

static void try_broadcast(peal_control *control, int n, int root, size_t bytes)
{
    unsigned char *data = make_blob(peal_control_identity(control)->process, n, bytes);
    TEAM_CHECK(peal_control_broadcast(control, root, data, bytes) == PEAL_STATUS_OK);
    TEAM_CHECK(is_blob(data, root, n, bytes));
    free(data);
}

static void try_gather(peal_control *control, int n, uint64_t *random)
{
    int me = peal_control_identity(control)->process;
    int processes = peal_control_identity(control)->processes;
    size_t expected[TEAM_LIMIT], size[TEAM_LIMIT];
    void *blob[TEAM_LIMIT];
    for (int p = 0; p < processes; p++)
        expected[p] = random_size(random);
    unsigned char *mine = make_blob(me, n, expected[me]);
    TEAM_CHECK(peal_control_gather(control, mine, expected[me], blob, size) == PEAL_STATUS_OK);
    free(mine);
    for (int p = 0; me == 0 && p < processes; p++) {
        TEAM_CHECK(size[p] == expected[p]);
        TEAM_CHECK(is_blob(blob[p], p, n, size[p]));
        free(blob[p]);
    }
}

static int all_collectives(test_team *team, int process)
{
    _Atomic int abort_word = 0;
    peal_control *control = NULL;
    uint64_t random = SEED;
    peal_bootstrap *bootstrap = team_caller_bootstrap(team, process);
    TEAM_CHECK(peal_control_open(bootstrap, NULL, &abort_word, deadline, NULL, &control) ==
               PEAL_STATUS_OK);
    TEAM_CHECK(peal_control_identity(control)->process == process);
    for (int n = 0; n < 40; n++) {
        size_t bytes = random_size(&random);
        int root = (int)(next_random(&random) % (uint64_t)team->processes);
        switch (next_random(&random) % 4) {
        case 0:
            try_allgather(control, n, bytes);
            break;
        case 1:
            try_broadcast(control, n, root, bytes);
            break;
        case 2:
            try_gather(control, n, &random);
            break;
        default:
            /* A barrier holds: nobody is through before all are in. */
            atomic_fetch_add(&team->board->flag[0], 1);
            int in = atomic_load(&team->board->flag[1]) + team->processes;
            TEAM_CHECK(peal_control_barrier(control) == PEAL_STATUS_OK);
            TEAM_CHECK(atomic_load(&team->board->flag[0]) >= in);
            TEAM_CHECK(peal_control_barrier(control) == PEAL_STATUS_OK);
            if (process == 0)
                atomic_store(&team->board->flag[1], in);
            TEAM_CHECK(peal_control_barrier(control) == PEAL_STATUS_OK);
        }
    }
    peal_control_close(control);
    bootstrap->ops->close(bootstrap);
    TEAM_CHECK(abort_word == 0);
    return 0;
}

static void run_sizes(team_member member)
{
    const int sizes[] = {1, 2, 3, 5, 8, 13};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        test_team team;
        team_create(&team, sizes[i]);
        team_run(&team, member);
        for (int p = 0; p < sizes[i]; p++)
            assert_int_equal(team.exit_code[p], 0);
        team_destroy(&team);
    }
}

static void check_collectives(void **state)
{
    (void)state;
    run_sizes(all_collectives);
}

/* Every process maps the segment of every other, some before it has been published. */
static int all_segments(test_team *team, int process)
{
    enum { KEY = 7, BYTES = 1 << 16 };
    _Atomic int abort_word = 0;
    peal_control *control = NULL;
    peal_segment mine, theirs;
    int64_t told = 0;
    peal_bootstrap *bootstrap = team_bootstrap(team, process);
    TEAM_CHECK(peal_control_open(bootstrap, NULL, &abort_word, deadline, NULL, &control) ==
               PEAL_STATUS_OK);
    TEAM_CHECK(peal_segment_create(BYTES, true, NULL, &mine) == PEAL_STATUS_OK);
    mine.base[100] = (unsigned char)(process + 1);
    const int *host = peal_control_hosts(control);
    bool late = process % 2 == 0 && team->processes > 1;
    if (!late)
        TEAM_CHECK(peal_control_publish(control, KEY, mine.descriptor, process + 1) ==
                   PEAL_STATUS_OK);
    for (int step = 1; step <= team->processes; step++) {
        int other = (process + step) % team->processes, descriptor = -1;
        if (late && other % 2 == 0) {
            late = false; /* else all even ones would wait for each other */
            TEAM_CHECK(peal_control_publish(control, KEY, mine.descriptor, process + 1) ==
                       PEAL_STATUS_OK);
        }
        peal_status status = peal_control_fetch(control, other, KEY, &descriptor, &told);
        if (host && host[other] != host[process]) {
            TEAM_CHECK(status == PEAL_STATUS_INTERNAL);
            continue;
        }
        TEAM_CHECK(status == PEAL_STATUS_OK && told == other + 1);
        TEAM_CHECK(fcntl(descriptor, F_GETFD) & FD_CLOEXEC);
        TEAM_CHECK(peal_segment_import(descriptor, BYTES, NULL, &theirs) == PEAL_STATUS_OK);
        TEAM_CHECK(theirs.base[100] == other + 1);
        peal_segment_destroy(&theirs);
    }
    peal_control_close(control);
    bootstrap->ops->close(bootstrap);
    peal_segment_destroy(&mine);
    return 0;
}

static void check_descriptors(void **state)
{
    (void)state;
    run_sizes(all_segments);
}

/* A later publish under the same key replaces the earlier; what is withdrawn is held no longer. */
static int publish_twice(test_team *team, int process)
{
    _Atomic int abort_word = 0;
    peal_control *control = NULL;
    peal_bootstrap *bootstrap = team_bootstrap(team, process);
    int ends[2], descriptor = -1;
    int64_t told = 0;
    char byte = 0;
    TEAM_CHECK(peal_control_open(bootstrap, NULL, &abort_word, deadline, NULL, &control) ==
               PEAL_STATUS_OK);
    TEAM_CHECK(pipe2(ends, O_CLOEXEC) == 0);
    if (process == 0) {
        TEAM_CHECK(peal_control_publish(control, 1, STDERR_FILENO, 1) == PEAL_STATUS_OK);
        TEAM_CHECK(peal_control_publish(control, 1, ends[1], 2) == PEAL_STATUS_OK);
    }
    TEAM_CHECK(peal_control_barrier(control) == PEAL_STATUS_OK);
    if (process == 1) {
        TEAM_CHECK(peal_control_fetch(control, 0, 1, &descriptor, &told) == PEAL_STATUS_OK);
        TEAM_CHECK(told == 2);
        TEAM_CHECK(write(descriptor, "x", 1) == 1);
        close(descriptor);
    }
    if (process == 0)
        TEAM_CHECK(read(ends[0], &byte, 1) == 1 && byte == 'x');
    TEAM_CHECK(peal_control_fetch(control, 99, 1, &descriptor, NULL) == PEAL_STATUS_INTERNAL);
    TEAM_CHECK(peal_control_barrier(control) == PEAL_STATUS_OK);
    close(ends[1]);
    TEAM_CHECK(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
    TEAM_CHECK(process == 1 || read(ends[0], &byte, 1) < 0); /* the published end is still open */
    peal_control_withdraw(control, 7);
    peal_control_withdraw(control, 1);
    TEAM_CHECK(read(ends[0], &byte, 1) == 0);
    peal_control_close(control);
    bootstrap->ops->close(bootstrap);
    close(ends[0]);
    return 0;
}

static void check_replaced(void **state)
{
    test_team team;
    (void)state;
    if (getenv("PEAL_TEST_HOSTS")) /* the two are on two */
        skip();
    team_create(&team, 2);
    team_run(&team, publish_twice);
    assert_int_equal(team.exit_code[0], 0);
    assert_int_equal(team.exit_code[1], 0);
    team_destroy(&team);
}

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_collectives),
        cmocka_unit_test(check_descriptors),
        cmocka_unit_test(check_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

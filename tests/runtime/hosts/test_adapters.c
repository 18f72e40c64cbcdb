/* Jobs on three hosts whose messages go by RDMA adapters, of software (tests/softhca): what is told
 * when a process, a path or a port is gone. Of an adapter's path and port the engine itself must
 * learn: the network that the job was started over is well. Times are printed, not judged. */
#define _GNU_SOURCE
#include "runtime/network/network.h"
#include "tests/runtime/hosts/deeds.h"
#include "tests/softhca/world.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static hca_world *world;

static bool open_world(void)
{
    char path[256];
    const char *folder = getenv(HCA_FOLDER);
    snprintf(path, sizeof(path), "%s/world", folder ? folder : "");
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return false;
    void *at = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    world = at == MAP_FAILED ? NULL : at;
    return world;
}

static void cut_path(test_team *team, const peal_session *session)
{
    (void)team, (void)session;
    atomic_store(&world->is_cut, true);
}

static void mend_path(void)
{
    atomic_store(&world->is_cut, false);
}

static void check_cut_path(void **state)
{
    (void)state;
    deed = (test_deed){cut_path, 0, PEAL_STATUS_PEER_LOST, "a message was not taken: "};
    run_fault("a path that no packet gets through", PROCESSES, -1, mend_path);
}

static void take_port_down(test_team *team, const peal_session *session)
{
    (void)team, (void)session;
    atomic_store(&world->is_down, true);
}

static void bring_port_up(void)
{
    atomic_store(&world->is_down, false);
}

static void check_port_down(void **state)
{
    (void)state;
    deed = (test_deed){take_port_down, 0, PEAL_STATUS_PEER_LOST, "RDMA adapter mlx5_0: port error"};
    run_fault("a port that is down", PROCESSES, -1, bring_port_up);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_killed),
        cmocka_unit_test(check_killed_with_copy),
        cmocka_unit_test(check_cut_path),
        cmocka_unit_test(check_port_down),
    };
    const char *why = peal_network_verbs_refuses();
    if (!why)
        why = hosts_create();
    if (!why && !open_world())
        why = "there is no adapter of software";
    if (why) {
        printf("skipped: %s\n", why);
        return 77;
    }
    cmocka_set_test_filter(getenv("DEED_ONLY")); /* one of them, by name */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

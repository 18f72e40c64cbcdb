/* A plan of the CUDA backend for which memory runs out: every allocation of making one fails in
 * turn, without a device. Each attempt is a process of its own, which reports the lack of memory
 * and goes on. */
#define _GNU_SOURCE
#include "backends/cuda/dry_plan.h"
#include "tests/backends/check.h"
#include "tests/backends/local_job.h"
#include "tests/starve.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARCHITECTURE = 90, NEVER_STARVED = 0, TOLD = 1, DID_WITHOUT = 2, SILENT = 3, WRONG = 4 };

static const char *root; /* of the sources */

static peal_status no_memory(void)
{
    return PEAL_STATUS_ENVIRONMENT;
}

static peal_status make_text(const peal_backend_desc *desc, peal_arena *arena, const char **text)
{
    PEAL_ARENA_GUARD(arena, return no_memory());
    return peal_cuda_dry_plan_fused(desc, 0, ARCHITECTURE, arena, text);
}

static int attempt(const peal_backend_desc *desc, int number)
{
    const char *text = NULL;
    peal_arena *arena = peal_arena_create();
    starve_at(STARVE_CALLOC | STARVE_REALLOC, number);
    peal_status status = make_text(desc, arena, &text);
    bool was_starved = starved();
    starve_at(0, 0);
    peal_arena_destroy(arena);
    if (!status)
        return was_starved ? DID_WITHOUT : NEVER_STARVED;
    if (status != PEAL_STATUS_ENVIRONMENT || !was_starved)
        return WRONG;
    return peal_diagnostics_errors(desc->diagnostics) > 0 ? TOLD : SILENT;
}

/* Not each of those at the end: many are alike. */
static peal_status all_in_turn(const peal_backend_desc *desc, void *user)
{
    int *outcomes = user;
    for (int number = 0; !outcomes[NEVER_STARVED]; number += 1 + number / 20) {
        int state = 0;
        fflush(NULL);
        pid_t pid = fork();
        if (!pid)
            _exit(attempt(desc, number));
        assert_int_equal(waitpid(pid, &state, 0), pid);
        if (!WIFEXITED(state) || WEXITSTATUS(state) >= WRONG)
            fail_msg("allocation %d: state %x", number, (unsigned)state);
        outcomes[WEXITSTATUS(state)]++;
    }
    return PEAL_STATUS_OK;
}

static void every_allocation_fails(void **state)
{
    int outcomes[WRONG] = {0};
    char path[512];
    const local_options options = {.spec = path, .ranks = 2, .workers = 1, .mode = PEAL_MODE_FUSED};
    (void)state;
    snprintf(path, sizeof(path), "%s/samples/jacobi2d/jacobi2d.yaml", root);
    assert_int_equal(local_describe(&options, all_in_turn, outcomes), PEAL_STATUS_OK);
    print_message("%d told, %d silent, %d did without\n", outcomes[TOLD], outcomes[SILENT],
                  outcomes[DID_WITHOUT]);
    assert_true(outcomes[TOLD] > 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_fails)};
    root = argc > 1 ? argv[1] : ".";
    return cmocka_run_group_tests_name("a plan without memory", tests, NULL, NULL);
}

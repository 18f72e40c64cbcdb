/* Agreement over processes: random graphs, their ranks spread over 2 and 3 processes, give the same
 * bits in every mode as `serial` does in one.
 *
 * test_processes N          starts itself as N processes; once, because libpmix cannot serve a
 *                           second job in the same process
 * test_processes member     one of several processes that a launcher has started */
#define _GNU_SOURCE
#include "base/diagnostic.h"
#include "runtime/launch/launch.h"
#include "runtime/session/session.h"
#include "tests/property/random_graph.h"
#include "tests/share/share.h"

#include <peal/plan.h>
#include <peal/plugin/backend.h>
#include <peal/session.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GRAPHS = 600, COMMITS = 15, SKIP = 77 }; /* a commit takes one of so many parts */

static const char *const modes[] = {"sync", "stream", "fused"};

static peal_status run(peal_session *session, random_graph *r, const char *mode, uint64_t seed,
                       uint64_t *digest)
{
    /* every fifth seed starts the count of messages near the wrap of flags */
    peal_backend_hooks hooks = {.shuffle_seed = seed % 2 ? seed : 0,
                                .first_message = seed % 5 ? 0 : UINT64_MAX - 3};
    peal_plan_options options = {.size_bytes = sizeof(options),
                                 .mode = mode,
                                 .ranks = random_graph_ranks(r),
                                 .threads = 1 + (int)(seed % 3),
                                 .hooks = &hooks};
    peal_plan *plan = NULL;
    peal_status status = peal_graph_compile(random_graph_builder(r), session, &options, &plan);
    if (!status)
        status = peal_plan_start(plan, PEAL_STEPS_ALL, NULL);
    if (!status)
        status = peal_plan_wait(plan);
    if (!status)
        status = peal_plan_finish(plan);
    if (!status)
        status = peal_plan_digest(plan, NULL, digest);
    peal_plan_destroy(plan);
    return status;
}

/* On so few ranks a message of a random graph may go where nobody is. */
static bool is_nobody_there(const peal_session *session, int from)
{
    const peal_diagnostics *list = session->diagnostics;
    for (int i = from; i < peal_diagnostics_count(list); i++)
        if (peal_diagnostics_at(list, i)->code == PEAL_E_DIRECTION_OF_NOBODY || /* of process 0 */
            strstr(peal_diagnostics_at(list, i)->message, "has a neighbour in its direction"))
            return true;
    return false;
}

/* All modes of one seed; graphs of fewer ranks than processes are passed over. */
static bool agrees(peal_session *session, uint64_t seed, int *graphs)
{
    uint64_t expected, found;
    random_graph *r = random_graph_create(seed);
    bool enough = random_graph_ranks(r) >= peal_session_processes(session), good = true;
    int from = peal_diagnostics_count(session->diagnostics);
    peal_status status = enough ? run(session, r, "serial", seed, &expected) : PEAL_STATUS_OK;
    random_graph_destroy(r);
    if (status == PEAL_STATUS_SPEC && is_nobody_there(session, from))
        return true;
    for (int m = 0; enough && good && !status && m < 3; m++) {
        r = random_graph_create(seed);
        status = run(session, r, modes[m], seed, &found);
        good = !status && found == expected;
        if (!good)
            fprintf(stderr, "seed %llu, %s, process %d: status %d%s\n%s", (unsigned long long)seed,
                    modes[m], peal_session_process(session), status,
                    status ? "" : ", differs from serial", random_graph_text(r));
        random_graph_destroy(r);
    }
    if (status)
        peal_session_print_diagnostics(session, stderr, 10);
    *graphs += enough;
    return good && !status;
}

static int be_member(void)
{
    peal_session *session;
    peal_session_desc desc = {.size_bytes = sizeof(desc),
                              .deadline_s = 20,
                              .log_level = PEAL_LOG_ERROR,
                              .log = stderr};
    peal_status status = peal_session_create(&desc, &session);
    if (status)
        return (int)status;
    const test_share share = share_of(COMMITS);
    const uint64_t first = 1000 + share.first * 2 * GRAPHS / COMMITS; /* some are passed over */
    int graphs = 0, wanted = GRAPHS / (int)share.every;
    bool good = true;
    for (uint64_t seed = first; good && graphs < wanted; seed++)
        good = agrees(session, seed, &graphs);
    if (peal_session_process(session) == 0)
        printf("%d graphs over %d processes (%s)%s\n", graphs, peal_session_processes(session),
               peal_session_bootstrap(session), good ? "" : ": FAILED");
    peal_session_destroy(session);
    return good ? 0 : 1;
}

static int launch_members(int processes)
{
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (length < 0)
        return 1;
    program[length] = 0;
    char *words[] = {program, (char *)"member", NULL};
    peal_diagnostics *list = peal_diagnostics_create();
    peal_launch_desc desc = {.processes = processes, .program = program, .argv = words};
    int code = 0;
    peal_status status = peal_launch(&desc, list, &code);
    peal_diagnostics_print(list, stderr, 0);
    peal_diagnostics_destroy(list);
    return status ? (int)status : code;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "no-launcher")) {
        puts("skipped: there is no mpirun");
        return SKIP;
    }
    if (argc > 1 && !strcmp(argv[1], "member"))
        return be_member();
    return launch_members(argc > 1 ? atoi(argv[1]) : 2);
}

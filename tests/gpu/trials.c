/* Runs trials, one a line of a file, and prints a line of JSON for each: one process start for many
 * of them, because a process needs about a second until it can use a GPU.
 *
 * gpu_trials PROCESSES FOLDER FILE      starts itself as PROCESSES processes, or runs alone
 * gpu_trials member FOLDER FILE         one of several processes that a launcher has started
 * gpu_trials seeds FIRST COUNT          a line a seed: ranks of its graph, whether it is exact,
 * whether it decides at run time
 *
 * After a trial that ended the job the rest is not run; the exit code is the trial's status.
 * Kernels of random graphs are written to FOLDER. */
#define _GNU_SOURCE
#include "base/diagnostic.h"
#include "runtime/launch/launch.h"
#include "tests/gpu/trial.h"
#include "tests/property/random_graph.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static peal_status run_lines(peal_session *session, const char *folder, FILE *list)
{
    peal_status first = PEAL_STATUS_OK;
    char *line = NULL;
    size_t bytes = 0;

    while (getline(&line, &bytes, list) > 0) {
        trial one;
        if (!trial_parse(line, &one)) {
            fprintf(stderr, "not a trial: %s\n", line);
            first = PEAL_STATUS_USAGE;
            break;
        }
        trial_run(&one, session, folder, stdout);
        first = peal_session_status(session);
        if (first)
            break;
    }
    free(line);
    return first;
}

static int be_member(const char *folder, const char *path)
{
    peal_session *session;
    peal_session_desc desc = {.size_bytes = sizeof(desc),
                              .deadline_s = 20,
                              .log_level = PEAL_LOG_ERROR,
                              .log = stderr};
    FILE *list = fopen(path, "r");
    if (!list)
        return (int)PEAL_STATUS_USAGE;
    peal_status status = peal_session_create(&desc, &session);
    if (!status) {
        fprintf(stderr, "process %d of %d is %d\n", peal_session_process(session),
                peal_session_processes(session), (int)getpid());
        status = run_lines(session, folder, list);
        if (status)
            peal_session_print_diagnostics(session, stderr, 20);
        peal_session_destroy(session);
    }
    fclose(list);
    return (int)status;
}

static int launch_members(int processes, char *folder, char *path)
{
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (length < 0)
        return 1;
    program[length] = 0;
    char *words[] = {program, (char *)"member", folder, path, NULL};
    peal_diagnostics *list = peal_diagnostics_create();
    peal_launch_desc desc = {.processes = processes, .program = program, .argv = words};
    int code = 0;
    peal_status status = peal_launch(&desc, list, &code);
    peal_diagnostics_print(list, stderr, 0);
    peal_diagnostics_destroy(list);
    return status ? (int)status : code;
}

/* Whether the host needs what a kernel computes to go on. */
static bool decides(const random_graph *graph)
{
    bool found = false;
    for (int f = 0; f < random_feature_count; f++)
        if (strstr(random_feature_names[f], "until") || strstr(random_feature_names[f], "run-time"))
            found |= (random_graph_features(graph) >> f & 1) != 0;
    return found;
}

static int print_seeds(uint64_t first, uint64_t count)
{
    for (uint64_t seed = first; seed < first + count; seed++) {
        random_graph *graph = random_graph_create(seed);
        printf("%llu %d %d %d\n", (unsigned long long)seed, random_graph_ranks(graph),
               random_graph_is_exact(graph), decides(graph));
        random_graph_destroy(graph);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("gpu_trials PROCESSES|member FOLDER FILE, or gpu_trials seeds FIRST COUNT\n", stderr);
        return (int)PEAL_STATUS_USAGE;
    }
    if (!strcmp(argv[1], "seeds"))
        return print_seeds(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
    if (!strcmp(argv[1], "member") || atoi(argv[1]) == 1)
        return be_member(argv[2], argv[3]);
    return launch_members(atoi(argv[1]), argv[2], argv[3]);
}

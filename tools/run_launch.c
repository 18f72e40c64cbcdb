/* Starts the processes of a job: this command again in each. Of several, the spec is checked first,
 * so that its mistakes are told once. */
#define _GNU_SOURCE
#include "tools/run.h"

#include "base/phase.h"
#include "runtime/launch/launch.h"

#include "base/memory_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_TEXT = (1 << 20) + 1 }; /* one byte more than the reader takes */

static const peal_source nowhere;

/* Reads the spec and makes all checks for all ranks. What it warns of, the job will tell. */
static peal_status check_spec(const peal_options *options, int processes)
{
    peal_diagnostics *list = peal_diagnostics_create();
    peal_compilation *compilation = NULL;
    peal_options with = *options;
    peal_machine machine;
    peal_spec spec = {0};
    with.processes = processes;
    peal_status status = machine_of(&with, list, &machine);
    if (status == PEAL_STATUS_OK)
        status = spec_open(options, list, &spec);
    if (status == PEAL_STATUS_OK)
        status = peal_compilation_create(spec.data, &machine, PEAL_MODE_SYNC, list, &compilation);
    if (status == PEAL_STATUS_OK) {
        peal_compilation_limit(compilation, options->deadline_ns);
        status = peal_compilation_check(compilation);
    }
    if (status != PEAL_STATUS_OK)
        peal_diagnostics_print(list, stderr, SHOWN_MESSAGES);
    peal_compilation_destroy(compilation);
    spec_close(&spec);
    peal_diagnostics_destroy(list);
    return status;
}

/* Standard input, kept where all processes can read it; -1: failed. */
static int keep_standard_input(void)
{
    char buffer[65536];
    size_t all = 0;
    int descriptor = peal_memory_file("peal-spec", 0);
    for (ssize_t n; descriptor >= 0 && all < MOST_TEXT; all += (size_t)n) {
        n = read(STDIN_FILENO, buffer, sizeof(buffer));
        if (n == 0)
            break;
        if (n < 0 || write(descriptor, buffer, (size_t)n) != n) {
            close(descriptor);
            return -1;
        }
    }
    return descriptor;
}

/* Where processes write what they can't know better than this one: that another was lost. Empty, if
 * nothing was written. */
static int open_words(void)
{
    char text[16];
    int descriptor = memfd_create("peal-words", 0);
    snprintf(text, sizeof(text), "%d", descriptor);
    if (descriptor >= 0 && fchmod(descriptor, 0600) == 0)
        setenv("PEAL_LAUNCH_CHILD", text, 1);
    else
        setenv("PEAL_LAUNCH_CHILD", "1", 1);
    return descriptor;
}

static void print_words(int descriptor)
{
    char buffer[4096];
    ssize_t n;
    for (off_t at = 0; (n = pread(descriptor, buffer, sizeof(buffer), at)) > 0; at += n)
        fwrite(buffer, 1, (size_t)n, stderr);
}

static peal_status no_memory(int processes, peal_diagnostics *diagnostics)
{
    return peal_report(diagnostics, PEAL_E_SYSTEM_CALL_FAILED, nowhere, NULL,
                       "out of memory for the launcher of %d processes", processes);
}

static peal_status launch(int processes, const job_hosts *hosts, char **words, int64_t deadline_ns,
                          peal_diagnostics *diagnostics)
{
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    int code = 0;
    if (length < 0)
        return peal_report(diagnostics, PEAL_E_INTERNAL, nowhere, NULL,
                           "cannot find this program: %s", strerror(errno));
    program[length] = 0;
    peal_diagnostics *list = peal_diagnostics_create();
    if (!list)
        return no_memory(processes, diagnostics);
    int words_descriptor = open_words();
    peal_launch_desc desc = {.processes = processes,
                             .program = program,
                             .argv = words,
                             .host = hosts->host,
                             .host_count = hosts->count,
                             .agent = hosts->agent,
                             .mark = "--launched-by-agent",
                             .deadline_ns = deadline_ns};
    peal_status status = peal_launch(&desc, list, &code);
    /* A process that leaves with a code has said why: only what no process could say is printed. */
    if (peal_diagnostics_errors(list) > 0)
        peal_diagnostics_print(list, stderr, 0);
    else if (code == PEAL_STATUS_PEER_LOST)
        print_words(words_descriptor);
    if (words_descriptor >= 0)
        close(words_descriptor);
    peal_diagnostics_destroy(list);
    return status == PEAL_STATUS_OK ? (peal_status)code : status;
}

static peal_status launch_on(int processes, const job_hosts *hosts, char *const *words, int count,
                             int64_t deadline_ns, peal_diagnostics *diagnostics)
{
    char **argv = calloc((size_t)count + 1, sizeof(*argv));
    if (!argv)
        return no_memory(processes, diagnostics);
    memcpy(argv, words, (size_t)count * sizeof(*argv));
    peal_status status = launch(processes, hosts, argv, deadline_ns, diagnostics);
    free(argv);
    return status;
}

peal_status launch_command(int processes, char *const *words, int count, int64_t deadline_ns,
                           peal_diagnostics *diagnostics)
{
    return launch_on(processes, &(job_hosts){.count = 0}, words, count, deadline_ns, diagnostics);
}

peal_status run_launch(const peal_options *options, int processes, const job_hosts *hosts,
                       peal_diagnostics *diagnostics)
{
    peal_options kept = *options;
    if (hosts->count && !kept.ranks) /* as the job will count them */
        kept.ranks = hosts->processes;
    char option[48];
    int count = 0;
    char *words[MAX_WORDS + 2];
    if (options->word_count > MAX_WORDS)
        return peal_report(diagnostics, PEAL_E_WRONG_ARGUMENTS, nowhere, NULL, "more than %d words",
                           MAX_WORDS);
    words[count++] = options->words[0];
    words[count++] = options->words[1];
    bool several = processes > 1;
    if (several && options->subject && !strcmp(options->subject, "-")) {
        peal_phase before = peal_phase_enter(1, "the spec on standard input");
        kept.spec_descriptor = keep_standard_input();
        peal_phase_leave(&before);
        if (kept.spec_descriptor < 0)
            return peal_report(diagnostics, PEAL_E_SPEC_NOT_FOUND, nowhere, NULL,
                               "cannot read standard input: %s", strerror(errno));
        snprintf(option, sizeof(option), "--launched-spec-descriptor=%d", kept.spec_descriptor);
        words[count++] = option;
    }
    for (int i = 2; i < options->word_count; i++)
        words[count++] = options->words[i];
    peal_status status = several ? check_spec(&kept, processes) : PEAL_STATUS_OK;
    if (status == PEAL_STATUS_OK)
        status = launch_on(processes, hosts, words, count, options->deadline_ns, diagnostics);
    if (kept.spec_descriptor >= 0)
        close(kept.spec_descriptor);
    return status;
}

/* Fuzzes the scheduler: whatever the reader has accepted gets through all checks on some number of
 * ranks, and what they accept has a schedule on every rank in every mode. No crash, no internal
 * error, nothing refused without a word, and the same answer twice. */
#include "dsl/dsl.h"
#include "scheduler/scheduler.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_STATEMENTS = 60 };

static void require(bool holds, const peal_diagnostics *list)
{
    if (holds)
        return;
    peal_diagnostics_print(list, stderr, 0);
    abort();
}

/* A refusal that users can do something about. */
static void check_refusal(peal_status status, const peal_diagnostics *list)
{
    require(status == PEAL_STATUS_SPEC || status == PEAL_STATUS_ENVIRONMENT, list);
    require(peal_diagnostics_errors(list) > 0, list);
}

static peal_status compile(const peal_graph_data *graph, const peal_machine *machine,
                           peal_mode mode, peal_diagnostics *list)
{
    peal_compilation *compilation = NULL;
    peal_status status = peal_compilation_create(graph, machine, mode, list, &compilation);
    if (!status)
        status = peal_compilation_check(compilation);
    for (int rank = 0; !status && rank < machine->ranks; rank++) {
        const peal_schedule *schedule = NULL;
        /* What was accepted for all ranks has a schedule on each. */
        require(!peal_compilation_schedule(compilation, rank, &schedule), list);
        FILE *nowhere = fopen("/dev/null", "w");
        if (nowhere) {
            peal_schedule_print_text(schedule, nowhere);
            fclose(nowhere);
        }
    }
    peal_compilation_destroy(compilation);
    return status;
}

/* The number of messages in all modes together. */
static int compile_all(peal_graph *builder, const peal_graph_data *graph, int ranks)
{
    int messages = 0;
    for (int m = 0; m < PEAL_MODE_COUNT; m++) {
        const peal_machine machine = {.ranks = ranks,
                                      .processes = m % 2 ? ranks : 1,
                                      .workers = 1 + m % 3,
                                      .cache_bytes = 1 << 20};
        peal_diagnostics *list = peal_diagnostics_create();
        peal_graph_report_to(builder, list); /* files of buffers are read when they are needed */
        if (peal_graph_refuses(graph, (peal_mode)m, false) == NULL) {
            peal_status status = compile(graph, &machine, (peal_mode)m, list);
            if (status)
                check_refusal(status, list);
            else
                require(peal_diagnostics_errors(list) == 0, list);
        }
        messages += peal_diagnostics_count(list);
        peal_graph_report_to(builder, NULL);
        peal_diagnostics_destroy(list);
    }
    return messages;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    peal_diagnostics *list = peal_diagnostics_create();
    peal_graph *graph = NULL;
    const peal_graph_data *resolved = NULL;
    int ranks = 1 + (int)(size % 6);
    if (!peal_graph_read_memory("fuzz.yaml", (const char *)data, size, NULL, 0, list, &graph) &&
        !peal_graph_resolve(graph, list, &resolved) && resolved->statement_count < MOST_STATEMENTS)
        require(compile_all(graph, resolved, ranks) == compile_all(graph, resolved, ranks), list);
    peal_graph_destroy(graph);
    peal_diagnostics_destroy(list);
    return 0;
}

/* One trial: its graph, the op that is left out, its starts, and what came of it. */
#define _GNU_SOURCE
#include "tests/gpu/trial.h"

#include "base/diagnostic.h"
#include "dsl/dsl.h"
#include "runtime/plan/plan.h"
#include "runtime/select/rehearsal.h"
#include "runtime/session/device.h"
#include "tests/property/random_graph.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- reading ---- */

static void parse_starts(char *text, trial *out)
{
    for (char *word = strtok(text, ","); word && out->start_count < TRIAL_STARTS;
         word = strtok(NULL, ","))
        out->start[out->start_count++] = strtoll(word, NULL, 10);
}

static bool parse_word(const char *key, char *value, trial *out)
{
    const struct {
        const char *key;
        const char **text;
    } texts[] = {{"name", &out->name},       {"spec", &out->spec},   {"mode", &out->mode},
                 {"backend", &out->backend}, {"lower", &out->lower}, {"transport", &out->transport},
                 {"drop", &out->drop}};
    const struct {
        const char *key;
        bool *flag;
    } flags[] = {{"rows", &out->rows},
                 {"verify", &out->verify},
                 {"announces", &out->announces},
                 {"leaves", &out->leaves},
                 {"rehearses", &out->rehearses},
                 {"no_deferral", &out->hooks.no_deferral},
                 {"no_early_launch", &out->hooks.no_early_launch}};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (!strcmp(key, texts[i].key)) {
            *texts[i].text = value;
            return true;
        }
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (!strcmp(key, flags[i].key)) {
            *flags[i].flag = atoi(value) != 0;
            return true;
        }
    if (!strcmp(key, "set") && out->set_count < TRIAL_SETS)
        out->set[out->set_count++] = value;
    else if (!strcmp(key, "seed"))
        out->seed = strtoull(value, NULL, 10);
    else if (!strcmp(key, "ranks"))
        out->ranks = atoi(value);
    else if (!strcmp(key, "deadline"))
        out->deadline_s = atof(value);
    else if (!strcmp(key, "first"))
        out->hooks.first_message = strtoull(value, NULL, 10);
    else if (!strcmp(key, "jitter"))
        out->hooks.jitter_ns = atoi(value);
    else if (!strcmp(key, "starts"))
        parse_starts(value, out);
    else
        return false;
    return true;
}

bool trial_parse(char *line, trial *out)
{
    char *rest = line, *word;

    *out = (trial){.name = "?", .ranks = 1};
    line[strcspn(line, "\n")] = 0;
    while ((word = strsep(&rest, "\t"))) {
        char *equals = strchr(word, '=');
        if (!equals)
            return false;
        *equals = 0;
        if (!parse_word(word, equals + 1, out))
            return false;
    }
    return true;
}

/* ---- printing ---- */

static void print_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; text && *text; text++)
        if ((unsigned char)*text < ' ' || *text == '"' || *text == '\\')
            fprintf(out, "\\u%04x", *text);
        else
            fputc(*text, out);
    fputc('"', out);
}

/* What was reported since, and the numbers of the errors among it. */
static void print_diagnostics(FILE *out, const peal_diagnostics *list, int from)
{
    const char *separator = "";

    fprintf(out, ", \"messages\": [");
    for (int i = from; i < peal_diagnostics_count(list); i++) {
        fputs(i > from ? ", " : "", out);
        print_text(out, peal_diagnostics_at(list, i)->message);
    }
    fprintf(out, "], \"errors\": [");
    for (int i = from; i < peal_diagnostics_count(list); i++)
        if (peal_diagnostics_at(list, i)->severity == PEAL_ERROR) {
            fprintf(out, "%s\"%s\"", separator,
                    peal_code_number(peal_diagnostics_at(list, i)->code));
            separator = ", ";
        }
    fputc(']', out);
}

typedef struct row_list {
    FILE *out;
    int count;
} row_list;

static void add_row(void *user, int64_t step, int count, const char *const *names,
                    const peal_value *values)
{
    row_list *rows = user;

    fprintf(rows->out, "%s{\"step\": %" PRId64, rows->count++ ? ", " : "", step);
    for (int i = 0; i < count; i++) {
        double value = values[i].kind == PEAL_REAL ? values[i].u.real : (double)values[i].u.integer;
        fprintf(rows->out, ", \"%s\": %.17g", names[i], value);
    }
    fputc('}', rows->out);
}

/* ---- the graph ---- */

typedef struct trial_graph {
    peal_graph *graph;
    random_graph *random;
} trial_graph;

static peal_status graph_open(const trial *t, peal_session *session, const char *folder,
                              trial_graph *out)
{
    *out = (trial_graph){0};
    if (t->spec)
        return peal_graph_read(t->spec, t->set, t->set_count, peal_session_diagnostics(session),
                               &out->graph);
    out->random = random_graph_create_in(t->seed, folder);
    out->graph = random_graph_builder(out->random);
    return PEAL_STATUS_OK;
}

static void graph_close(const trial_graph *graph)
{
    if (graph->random)
        random_graph_destroy(graph->random);
    else
        peal_graph_destroy(graph->graph);
}

static int ranks_of(const trial *t, const trial_graph *graph)
{
    return graph->random ? random_graph_ranks(graph->random) : t->ranks;
}

/* The op that `drop` names: its index plus one, 0: there is none. */
static int op_to_drop(const trial *t, const peal_plan *plan, int *rank)
{
    const peal_schedule *schedule;
    char kind[16] = "";
    int number = 0, seen = 0;

    if (sscanf(t->drop, "%15[a-z].%d@%d", kind, &number, rank) != 3 ||
        peal_compilation_schedule(plan->compilation, *rank, &schedule))
        return 0;
    bool credit = !strcmp(kind, "give") || !strcmp(kind, "await");
    peal_op_kind wanted =
        !strcmp(kind, "write") || !strcmp(kind, "give") ? PEAL_OP_WRITE : PEAL_OP_WAIT;
    for (int i = schedule->step.first; i < schedule->step.end; i++)
        if (schedule->op[i].kind == wanted && schedule->op[i].credit == credit && seen++ == number)
            return i + 1;
    return 0;
}

/* ---- running ---- */

typedef struct outcome {
    peal_status status;
    uint64_t digest;
    bool has_digest, no_op;
    peal_plan_statistics statistics;
    int64_t replayed;
    char backend[16], mode[16], transport[16];
    char rehearsed[256];
} outcome;

/* The machine is the one that the plan will have where each process has a GPU. */
static void rehearse(const trial *t, const peal_session *session, const trial_graph *graph,
                     outcome *result)
{
    const peal_backend_ops *backend = peal_backend_named("cuda");
    peal_diagnostics *list = peal_diagnostics_create();
    peal_machine machine = {.ranks = ranks_of(t, graph),
                            .processes = peal_session_processes(session),
                            .workers = 1,
                            .accelerator = true,
                            .path = PEAL_PATH_VMM,
                            .traits = backend->traits};
    const peal_graph_data *data = NULL;
    peal_rehearsal found = {.refused = false};
    const char *refusal = NULL;
    int mode = 0;

    while (mode + 1 < PEAL_MODE_COUNT && strcmp(peal_mode_name((peal_mode)mode), t->mode))
        mode++;
    peal_status status = peal_graph_resolve(graph->graph, list, &data);
    const peal_rehearsal_desc desc = {.size = sizeof(desc),
                                      .backend = backend,
                                      .graph = data,
                                      .machine = &machine,
                                      .mode = (peal_mode)mode,
                                      .lowering = t->lower,
                                      .diagnostics = list};

    if (!status)
        refusal = peal_graph_refuses(data, (peal_mode)mode, true);
    if (!status && !refusal)
        status = peal_rehearse(&desc, &found);
    snprintf(result->rehearsed, sizeof(result->rehearsed), "%s",
             status    ? peal_status_name(status)
             : refusal ? refusal
                       : found.text);
    peal_diagnostics_destroy(list);
}

static void announce(const trial *t, peal_plan *plan, FILE *out)
{
    while (peal_plan_progress(plan) == 0 && !peal_session_status(plan->session)) {
        struct timespec nap = {0, 5000000};
        nanosleep(&nap, NULL);
    }
    if (peal_session_process(plan->session) == 0) {
        fprintf(out, "{\"name\": \"%s\", \"running\": true}\n", t->name);
        fflush(out);
    }
}

static peal_status run_plan(const trial *t, peal_plan *plan, outcome *result, FILE *out)
{
    static const int64_t all[] = {PEAL_STEPS_ALL};
    const int64_t *steps = t->start_count ? t->start : all;
    int count = t->start_count ? t->start_count : 1;
    peal_status status = PEAL_STATUS_OK;

    for (int i = 0; i < count && !status; i++) {
        status = peal_plan_start(plan, steps[i], NULL);
        if (!status && t->announces)
            announce(t, plan, out);
        if (!status && t->leaves)
            return status;
        if (!status)
            status = peal_plan_wait(plan);
    }
    if (!status)
        status = peal_plan_finish(plan);
    if (!status && t->verify)
        status = peal_plan_verify(plan);
    if (!status)
        status = peal_plan_digest(plan, NULL, &result->digest);
    result->has_digest = !status;
    peal_plan_statistics_get(plan, &result->statistics);
    result->replayed = peal_plan_replayed(plan);
    return status;
}

static void try(const trial *t, peal_session *session, const char *folder, row_list *rows,
                outcome *result, FILE *out)
{
    peal_backend_hooks hooks = t->hooks;
    peal_plan_options options = {.size_bytes = sizeof(options),
                                 .mode = t->mode,
                                 .backend = t->backend,
                                 .lowering = t->lower,
                                 .transport = t->transport,
                                 .deadline_s = t->deadline_s,
                                 .verify = t->verify,
                                 .row = t->rows ? add_row : NULL,
                                 .row_user = rows,
                                 .hooks = &hooks};
    trial_graph graph;
    peal_plan *plan = NULL;

    result->status = graph_open(t, session, folder, &graph);
    if (result->status)
        return;
    options.ranks = ranks_of(t, &graph);
    if (t->rehearses)
        rehearse(t, session, &graph, result);
    result->status = peal_graph_compile(graph.graph, session, &options, &plan);
    if (!result->status && t->drop) {
        hooks.drop_op = op_to_drop(t, plan, &hooks.drop_rank);
        result->no_op = hooks.drop_op == 0;
        peal_plan_destroy(plan);
        plan = NULL;
        if (!result->no_op)
            result->status = peal_graph_compile(graph.graph, session, &options, &plan);
    }
    if (plan && !result->status && !t->rehearses) {
        snprintf(result->backend, sizeof(result->backend), "%s", peal_plan_backend(plan));
        snprintf(result->mode, sizeof(result->mode), "%s", peal_mode_name(peal_plan_mode(plan)));
        snprintf(result->transport, sizeof(result->transport), "%s", peal_plan_transport(plan));
        result->status = run_plan(t, plan, result, out);
    }
    peal_plan_destroy(plan);
    graph_close(&graph);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

peal_status trial_run(const trial *t, peal_session *session, const char *folder, FILE *out)
{
    char *text = NULL;
    size_t bytes = 0;
    row_list rows = {.out = open_memstream(&text, &bytes)};
    const peal_diagnostics *list = peal_session_diagnostics(session);
    int from = peal_diagnostics_count(list);
    outcome result = {0};
    double begin = seconds();

    try(t, session, folder, &rows, &result, out);
    fclose(rows.out);
    if (peal_session_process(session) == 0) {
        fprintf(out,
                "{\"name\": \"%s\", \"status\": \"%s\", \"backend\": \"%s\", \"mode\": \"%s\", "
                "\"transport\": \"%s\"",
                t->name, result.no_op ? "no such op" : peal_status_name(result.status),
                result.backend, result.mode, result.transport);
        if (t->rehearses)
            fprintf(out, ", \"rehearsed\": \"%s\"", result.rehearsed);
        if (result.has_digest)
            fprintf(out, ", \"digest\": \"%016" PRIx64 "\"", result.digest);
        fprintf(out,
                ", \"steps\": %" PRId64 ", \"replayed\": %" PRId64
                ", \"seconds\": %.6f, \"wall\": %.3f, \"rows\": [%s]",
                result.statistics.steps_done, result.replayed, result.statistics.seconds,
                seconds() - begin, text);
        print_diagnostics(out, list, from);
        fprintf(out, "}\n");
        fflush(out);
    }
    free(text);
    return result.status;
}

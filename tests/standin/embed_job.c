/* An application with streams and memory of its own on the stand-in of the driver: what peal puts
 * onto its streams, and what it leaves alone. Its calls are marked in the record by calls of
 * cuCtxGetStreamPriorityRange, which peal makes only while it prepares a plan.
 *
 *   embed_job exchange [lent|two|peal] | plan [MODE] | memory | misuse | own [TRIAL] */
#define _GNU_SOURCE
#include "base/cuda_driver.h"
#include "base/diagnostic.h"
#include "runtime/session/session.h"

#include <peal/exchange.h>
#include <peal/graph.h>
#include <peal/plan.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POINTS = 64, BYTES = (POINTS + 2) * 8 };

static const peal_cuda_driver *driver;
static CUcontext own; /* the application's context, which is not peal's */

static void *stream_number(uintptr_t number)
{
    return (void *)number;
}

static void mark(void)
{
    int least, greatest;
    driver->cuCtxGetStreamPriorityRange_(&least, &greatest);
}

static peal_status told(const char *what, peal_status status)
{
    CUcontext now = NULL;
    driver->cuCtxGetCurrent_(&now);
    printf("%s: %s%s\n", what, peal_status_name(status), now == own ? "" : ", context changed");
    return status;
}

static CUdeviceptr device_memory(void)
{
    CUcontext primary;
    CUdeviceptr out = 0;
    driver->cuDevicePrimaryCtxRetain_(&primary, 0);
    driver->cuCtxSetCurrent_(primary);
    bool has_it = driver->cuMemAlloc_(&out, BYTES) == CUDA_SUCCESS;
    driver->cuCtxSetCurrent_(own);
    if (!has_it)
        driver->cuDevicePrimaryCtxRelease_(0);
    return has_it ? out : 0;
}

static void free_device_memory(CUdeviceptr memory)
{
    CUcontext primary;
    driver->cuDevicePrimaryCtxRetain_(&primary, 0);
    driver->cuCtxSetCurrent_(primary);
    driver->cuMemFree_(memory);
    driver->cuCtxSetCurrent_(own);
    driver->cuDevicePrimaryCtxRelease_(0);
    driver->cuDevicePrimaryCtxRelease_(0);
}

static peal_status make_exchange(peal_session *session, void *data, void *second,
                                 const char *backend, peal_exchange **out)
{
    int part = POINTS / peal_session_processes(session), process = peal_session_process(session);
    return peal_exchange_create(session, out, .axis_count = 1, .lo = {part * process},
                                .hi = {part * (process + 1)}, .periodic = {true},
                                .backend = backend,
                                .field = {{PEAL_I64, .data = {data, second}, .width = {{1, 1}}}});
}

/* Lent memory ("lent", "two" buffers) or peal's ("peal"): three rounds on stream 1, one on stream
 * 3. */
static void exchange_job(peal_session *session, const char *whose)
{
    peal_exchange *exchange = NULL;
    bool lent = strcmp(whose, "peal") != 0, two = !strcmp(whose, "two");
    CUdeviceptr memory = lent ? device_memory() : 0, second = two ? device_memory() : 0;
    char line[400];
    if (!told("create", make_exchange(session, (void *)(uintptr_t)memory, (void *)(uintptr_t)second,
                                      lent ? NULL : "cuda", &exchange))) {
        peal_exchange_describe(exchange, line, sizeof(line));
        printf("%s\n", line);
        mark();
        for (int i = 0; i < 4; i++) {
            void *stream = stream_number(i < 3 ? 1 : 3);
            if (told("start", peal_exchange_start(exchange, two && i % 2, stream)) ||
                told("wait", peal_exchange_wait(exchange)))
                break;
        }
        mark();
    }
    told("destroy", peal_exchange_destroy(exchange));
    if (memory)
        free_device_memory(memory);
    if (second)
        free_device_memory(second);
}

static void memory_job(peal_session *session)
{
    peal_exchange *exchange = NULL;
    int64_t *ordinary = calloc(1, BYTES);
    char line[400];
    if (!told("ordinary", make_exchange(session, ordinary, NULL, NULL, &exchange))) {
        peal_exchange_describe(exchange, line, sizeof(line));
        printf("%s\n", line);
        told("stream on the host", peal_exchange_start(exchange, 0, stream_number(1)));
        peal_exchange_destroy(exchange);
    }
    told("forced", make_exchange(session, ordinary, NULL, "cuda", &exchange));
    told("unknown", make_exchange(session, NULL, NULL, "gpu", &exchange));
    free(ordinary);
}

static void misuse_job(peal_session *session)
{
    peal_exchange *exchange = NULL;
    if (told("create", make_exchange(session, NULL, NULL, "cuda", &exchange)))
        return;
    told("captured", peal_exchange_start(exchange, 0, stream_number(2)));
    told("start", peal_exchange_start(exchange, 0, stream_number(1)));
    told("again", peal_exchange_start(exchange, 0, stream_number(1)));
    told("wait", peal_exchange_wait(exchange));
    told("destroy", peal_exchange_destroy(exchange));
}

static peal_graph *make_graph(void)
{
    peal_graph *graph;
    if (peal_graph_create("embedded", &graph))
        abort();
    peal_graph_set_topology(graph, .dims = "[auto]", .periodic = "true");
    peal_graph_add_field(graph, .name = "u", .type = "i64", .size = "[64]", .halo = "1");
    peal_graph_add_buffer(graph, .name = "n", .type = "i64", .keep = true);
    peal_graph_set_loop(graph, .repeat = "8");
    peal_graph_begin(graph, PEAL_STEP);
    peal_graph_add_exchange(graph, .exchange = {{.name = "u"}});
    peal_graph_add_set(graph, .set = "n", .value = "n + 1");
    peal_graph_end(graph);
    return graph;
}

static void plan_job(peal_session *session, const char *mode)
{
    peal_graph *graph = make_graph();
    peal_plan *plan = NULL;
    void *event = NULL;
    const peal_plan_options options = {.size_bytes = sizeof(options),
                                       .mode = mode,
                                       .backend = "cuda",
                                       .lowering = "steps=4"};
    const peal_start start = {.size_bytes = sizeof(start),
                              .stream = stream_number(1),
                              .event = stream_number(5)};
    if (!told("compile", peal_graph_compile(graph, session, &options, &plan))) {
        told("event too early", peal_plan_event(plan, &event));
        mark();
        for (int i = 0; i < 2; i++)
            if (!told("start", peal_plan_start(plan, 4, &start))) {
                told("event", peal_plan_event(plan, &event));
                told("wait", peal_plan_wait(plan));
            }
        mark();
    }
    peal_plan_destroy(plan);
    told("destroy", PEAL_STATUS_OK);
    peal_graph_destroy(graph);
}

/* ---- the application's own work ---- */

static int calls, wrong, threads;
static pid_t last_thread;
static bool refuses, ends;

/* Whether the thread has blocked SIGTERM. */
static bool is_deaf(pid_t thread)
{
    char path[64], line[256];
    unsigned long long blocked = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)thread);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        sscanf(line, "SigBlk: %llx", &blocked);
    if (file)
        fclose(file);
    return blocked >> (SIGTERM - 1) & 1;
}

/* Launches with nothing to run: the stand-in notes them. */
static peal_status put(void *stream, const peal_call *call)
{
    const peal_view *u = &call->view[0];
    calls++;
    threads += last_thread != gettid();
    last_thread = gettid();
    wrong += call->user != (void *)&calls || call->view_count != 1 || !u->base ||
             u->stride[0] != 1 || call->argument_count != 1 || call->argument[0].integer != 7 ||
             call->tile.lo[0] != 0 || call->tile.hi[0] != POINTS;
    wrong += is_deaf(last_thread);
    driver->cuEventRecord_(stream_number(6), stream);
    if (ends && calls == 2)
        pthread_exit(NULL);
    return refuses && calls == 2 ? PEAL_STATUS_WRONG_RESULT : PEAL_STATUS_OK;
}

static void on_host(const peal_call *call)
{
    (void)call;
}

typedef struct own_trial {
    const char *name, *backend, *mode;
    int threads;
    bool host_too;
    const char *argument;
    const char *until;
    bool refuses;
    bool ends;  /* the thread that drives the device */
    int starts; /* 0: one */
} own_trial;

static peal_graph *make_own_graph(const own_trial *t)
{
    static char function;
    peal_graph *graph;
    if (peal_graph_create("own", &graph))
        abort();
    peal_graph_set_topology(graph, .dims = "[auto]", .periodic = "true");
    peal_graph_add_field(graph, .name = "u", .type = "i64", .size = "[64]", .halo = "1");
    peal_graph_add_buffer(graph, .name = "n", .type = "i64", .keep = true);
    peal_graph_set_loop(graph, .repeat = "8", .until = t->until);
    peal_graph_begin(graph, PEAL_STEP);
    peal_graph_add_exchange(graph, .exchange = {{.name = "u"}});
    peal_graph_add_task(graph, .name = "put", .enqueue = put, .user = &calls, .tile = "whole",
                        .box = {.name = "u"}, .update = {{.name = "u"}}, .args = {t->argument});
    peal_graph_add_task(graph, .name = "own", .cuda_function = &function,
                        .cuda_threads = t->threads, .box = {.name = "u"},
                        .update = {{.name = "u"}});
    if (t->host_too)
        peal_graph_add_task(graph, .name = "host", .function = on_host, .box = {.name = "u"},
                            .update = {{.name = "u"}});
    peal_graph_end(graph);
    return graph;
}

static void own_trial_run(peal_session *session, const own_trial *t)
{
    peal_graph *graph = make_own_graph(t);
    peal_plan *plan = NULL;
    char line[400];
    const peal_plan_options options = {.size_bytes = sizeof(options),
                                       .mode = t->mode,
                                       .backend = t->backend,
                                       .lowering = "steps=4"};
    calls = wrong = threads = 0;
    last_thread = 0;
    refuses = t->refuses;
    ends = t->ends;
    peal_status status = peal_graph_compile(graph, session, &options, &plan);
    int before = calls;
    if (!status)
        peal_plan_describe(plan, line, sizeof(line));
    for (int i = 0; !status && i < (t->starts ? t->starts : 1); i++) {
        status = peal_plan_start(plan, t->starts ? 2 : PEAL_STEPS_ALL, NULL);
        status = status ? status : peal_plan_wait(plan);
    }
    printf("%s: %s, %s, calls %d and %d, wrong %d", t->name,
           plan ? peal_plan_backend(plan) : "none", peal_status_name(status), before,
           calls - before, wrong);
    if (t->starts)
        printf(", threads %d, deaf %d", threads, is_deaf(last_thread));
    puts("");
    peal_plan_destroy(plan);
    peal_graph_destroy(graph);
}

/* only: a trial; NULL: all but those that a session does not survive. */
static void own_job(peal_session *session, const char *only)
{
    static const own_trial trials[] = {
        {"auto", .threads = 32, .argument = "7"},
        {"stream", .mode = "stream", .threads = 32, .argument = "7"},
        {"graph", .mode = "graph", .threads = 32, .argument = "7"},
        {"sync", .mode = "sync", .threads = 32, .argument = "7"},
        {"serial", .mode = "serial", .threads = 32, .argument = "7"},
        {"counts", .mode = "graph", .threads = 32, .argument = "7 + 0 * step"},
        {"auto counts", .threads = 32, .argument = "7 + 0 * step"},
        {"until", .mode = "graph", .threads = 32, .argument = "7", .until = "n > 3"},
        {"fused", .mode = "fused", .threads = 32, .argument = "7"},
        {"host", .backend = "host", .threads = 32, .argument = "7"},
        {"both", .threads = 32, .argument = "7", .host_too = true},
        {"blocks", .argument = "7"},
        {"reads", .threads = 32, .argument = "n"},
        {"threads", .threads = 2000, .argument = "7"},
        {"starts", .mode = "stream", .threads = 32, .argument = "7", .starts = 3},
        {"refused", .mode = "stream", .threads = 32, .argument = "7", .refuses = true},
        {"ended", .mode = "stream", .threads = 32, .argument = "7", .ends = true},
    };
    for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++)
        if (only ? !strcmp(only, trials[i].name) : !trials[i].ends)
            own_trial_run(session, &trials[i]);
}

int main(int count, char **words)
{
    static char somewhere;
    const char *job = count > 1 ? words[1] : "exchange";
    peal_session *session;
    if (peal_session_create(NULL, &session))
        return PEAL_STATUS_ENVIRONMENT;
    driver = peal_cuda_open(NULL);
    if (!driver)
        return PEAL_STATUS_ENVIRONMENT;
    own = (CUcontext)(void *)&somewhere;
    driver->cuCtxSetCurrent_(own);
    if (!strcmp(job, "exchange"))
        exchange_job(session, count > 2 ? words[2] : "lent");
    else if (!strcmp(job, "memory"))
        memory_job(session);
    else if (!strcmp(job, "own"))
        own_job(session, count > 2 ? words[2] : NULL);
    else if (!strcmp(job, "misuse"))
        misuse_job(session);
    else
        plan_job(session, count > 2 ? words[2] : NULL);
    peal_session_print_diagnostics(session, stdout, 0);
    peal_session_destroy(session);
    return 0;
}

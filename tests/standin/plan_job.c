/* Plans through the public interface, on the stand-in of the driver: what an application's
 * functions and memory have to do with the choice of a backend. Prints what came of each case. */
#include "base/diagnostic.h"
#include "runtime/session/session.h"

#include <peal/graph.h>
#include <peal/plan.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 64 };

static void add_one(const peal_call *call)
{
    int64_t *u = call->view[0].base;
    for (int x = call->tile.lo[0]; x < call->tile.hi[0]; x++)
        u[x] += x;
}

typedef struct trial {
    const char *name, *backend, *mode, *transport;
    bool function; /* a task that is a function of the host */
    bool lent;     /* memory of the host */
    bool verify;
} trial;

static peal_graph *make_graph(const trial *t, int64_t *memory)
{
    peal_graph *graph;
    if (peal_graph_create("trial", &graph))
        abort();
    peal_graph_set_topology(graph, .dims = "[auto]", .periodic = "true");
    peal_graph_add_field(graph, .name = "u", .type = "i64", .size = "[64]", .halo = "1",
                         .data = t->lent ? memory : NULL);
    peal_graph_add_buffer(graph, .name = "n", .type = "i64", .keep = true);
    peal_graph_set_loop(graph, .repeat = "3");
    peal_graph_begin(graph, PEAL_STEP);
    peal_graph_add_exchange(graph, .exchange = {{.name = "u"}});
    peal_graph_add_set(graph, .set = "n", .value = "n + 1");
    if (t->function)
        peal_graph_add_task(graph, .name = "add", .function = add_one, .box = {.name = "u"},
                            .update = {{.name = "u"}});
    peal_graph_end(graph);
    return graph;
}

static void print_messages(peal_session *session, int from)
{
    const peal_diagnostics *list = peal_session_diagnostics(session);
    for (int i = from; i < peal_diagnostics_count(list); i++)
        printf("  %s [%s]\n", peal_diagnostics_at(list, i)->message,
               peal_code_number(peal_diagnostics_at(list, i)->code));
}

static peal_status run(peal_plan *plan, bool verify, uint64_t *digest)
{
    peal_status status = peal_plan_start(plan, PEAL_STEPS_ALL, NULL);
    if (!status)
        status = peal_plan_wait(plan);
    if (!status)
        status = peal_plan_finish(plan);
    if (!status)
        status = peal_plan_digest(plan, NULL, digest);
    return !status && verify ? peal_plan_verify(plan) : status;
}

static void try_one(peal_session *session, const trial *t)
{
    int64_t *memory = calloc(POINTS + 2, sizeof(*memory));
    peal_graph *graph = make_graph(t, memory);
    peal_plan *plan = NULL;
    uint64_t digest = 0;
    int from = peal_diagnostics_count(peal_session_diagnostics(session));
    const peal_plan_options options = {.size_bytes = sizeof(options),
                                       .mode = t->mode,
                                       .backend = t->backend,
                                       .transport = t->transport,
                                       .verify = t->verify};
    peal_status status = peal_graph_compile(graph, session, &options, &plan);
    const char *backend = plan ? peal_plan_backend(plan) : "none";
    if (!status)
        status = run(plan, t->verify, &digest);
    printf("%s: %s, %s, %016" PRIx64 "\n", t->name, backend, peal_status_name(status), digest);
    print_messages(session, from);
    peal_plan_destroy(plan);
    peal_graph_destroy(graph);
    free(memory);
}

int main(void)
{
    static const trial trials[] = {
        {"host", .backend = "host", .function = true},
        {"auto function", .function = true},
        {"auto lent", .lent = true},
        {"auto plain", .mode = "serial"},
        {"forced serial function", .backend = "cuda", .mode = "serial", .function = true},
        {"forced sync function", .backend = "cuda", .mode = "sync", .function = true},
        {"forced lent", .backend = "cuda", .mode = "serial", .lent = true},
        {"unknown", .backend = "gpu"},
        {"unknown transport", .transport = "ipc"},
        {"fused", .backend = "cuda", .mode = "fused"},
        {"verify lent", .function = true, .lent = true, .verify = true},
    };
    peal_session *session;
    peal_status status = peal_session_create(NULL, &session);
    if (status)
        return (int)status;
    for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++)
        try_one(session, &trials[i]);
    peal_session_destroy(session);
    return 0;
}

/* The plan's story: resolve, choose, compare, check and schedule, allocate and publish, attach,
 * arm; then it runs (run.c). Each step of compiling is local; where it may fail, all processes
 * agree before the next. */
#include "runtime/plan/plan.h"
#include "base/expression.h"
#include "base/handle.h"
#include "dsl/dsl.h"
#include "runtime/bind/puts.h"
#include "runtime/footprints/footprints.h"
#include "runtime/select/select.h"
#include "runtime/verify/verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the processes tell each other once all are bound. */
typedef struct bound {
    uint64_t hash, puts_sent, puts_taken;
    uint32_t transports;
    uint8_t has_rank, rings, posts; /* rings, posts: who sends its messages to other hosts */
    uint8_t unused;                 /* all bytes that are sent are set */
} bound;

static int mark(const peal_plan *plan)
{
    return peal_diagnostics_count(plan->session->diagnostics);
}

static peal_status check_options(peal_session *session, const peal_plan_options *options)
{
    if (options && options->size_bytes == sizeof(*options) && options->watch &&
        !peal_watched_named(options->watch))
        return peal_report(session->diagnostics, PEAL_E_INVALID_DESCRIPTOR, PEAL_NO_SOURCE,
                           "\"nan\", \"inf\", or NULL", "peal_plan_options.watch is '%s'",
                           options->watch);
    if (options && options->size_bytes == sizeof(*options) && options->verify_ranks < 0)
        return peal_report(session->diagnostics, PEAL_E_INVALID_DESCRIPTOR, PEAL_NO_SOURCE,
                           "a number of ranks, or 0", "peal_plan_options.verify_ranks is %d",
                           options->verify_ranks);
    if (options && options->size_bytes != sizeof(*options))
        return peal_report(
            session->diagnostics, PEAL_E_INVALID_DESCRIPTOR, PEAL_NO_SOURCE,
            "set .size_bytes = sizeof(peal_plan_options) and build against this version",
            "peal_plan_options has %zu bytes here, the caller's has %zu", sizeof(*options),
            options->size_bytes);
    return PEAL_STATUS_OK;
}

static peal_status resolve(peal_plan *plan)
{
    peal_graph_report_to(plan->graph, plan->session->diagnostics);
    peal_status status = peal_graph_resolve(plan->graph, plan->session->diagnostics, &plan->data);
    if (!status)
        status = peal_plan_choose(plan);
    bool writes = plan->machine.processes > 1 ? peal_session_is_first(plan->session)
                                              : plan->session->identity.process == 0;
    if (!status && writes)
        status = peal_plan_check_outputs(plan);
    return status;
}

/* Refuses what is too big before anything is allocated. */
static peal_status create_oracles(peal_plan *plan)
{
    peal_status status = PEAL_STATUS_OK;
    if (plan->options.verify)
        status = peal_oracle_create(plan, 0, &plan->oracle[PEAL_SAME_RANKS]);
    if (!status && plan->options.verify_ranks)
        status =
            peal_oracle_create(plan, plan->options.verify_ranks, &plan->oracle[PEAL_OTHER_RANKS]);
    return status;
}

/* Process 0 checks the job as a whole; the others what their own schedules need. */
static peal_status schedule(peal_plan *plan)
{
    peal_session *session = plan->session;
    peal_status status = peal_plan_open_saves(plan);
    if (!status)
        status = peal_compilation_create(plan->data, &plan->machine, plan->mode,
                                         session->diagnostics, &plan->compilation);
    if (!status)
        peal_compilation_limit(plan->compilation, peal_plan_deadline_ns(plan));
    if (!status && session->identity.process == 0)
        status = peal_compilation_check(plan->compilation);
    if (!status) {
        plan->within_repeat = peal_compilation_is_within_repeat(plan->compilation);
        plan->ends_at_repeat = peal_compilation_ends_at_repeat(plan->compilation);
    }
    return status ? status : create_oracles(plan);
}

static peal_status allocate(peal_plan *plan)
{
    return peal_binding_allocate(&plan->binding, plan->session, plan->compilation, &plan->machine,
                                 plan->session->identity.process);
}

/* Iterations of the outermost loop; process 0 knows, since it hosts rank 0. */
static peal_status evaluate_repeat(peal_plan *plan)
{
    plan->repeat = 1;
    if (!plan->binding.count)
        return PEAL_STATUS_OK;
    const peal_schedule *first = plan->binding.rank[0].schedule;
    peal_layout *layout = calloc((size_t)first->array_count + 1, sizeof(*layout));
    if (!layout)
        return peal_report(plan->session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                           "no memory for %d layouts", first->array_count);
    for (int a = 0; a < first->array_count; a++)
        layout[a] = first->array[a].layout;
    peal_scope scope = {.graph = plan->data,
                        .rank = first->rank,
                        .ranks = plan->machine.ranks,
                        .layout = layout};
    memcpy(scope.position, first->rank_position, sizeof(scope.position));
    memcpy(scope.dims, first->rank_dims, sizeof(scope.dims));
    peal_status status = peal_expr_integer(first->outer.repeat, &scope, 1, &plan->repeat,
                                           plan->session->diagnostics);
    free(layout);
    if (!status && plan->repeat < 0)
        status = peal_report(plan->session->diagnostics, PEAL_E_VALUE_OUT_OF_RANGE,
                             first->outer.repeat->source, NULL, "`repeat` is %lld on %d ranks",
                             (long long)plan->repeat, plan->machine.ranks);
    return status;
}

/* Collective: equal hashes, the transports of all, the number of steps. */
static peal_status join_bound(peal_plan *plan)
{
    peal_session *session = plan->session;
    int processes = session->identity.processes, from = mark(plan);
    bool rings = peal_bound_puts_are_rung_for(plan->binding.puts);
    bound own = {.transports = plan->binding.transports,
                 .has_rank = plan->binding.count > 0,
                 .rings = rings,
                 .posts = plan->binding.puts && !rings};
    plan->hash = own.has_rank ? plan->binding.rank[0].schedule->hash ^ plan->kernel_hash : 0;
    own.hash = plan->hash;
    peal_bound_puts_sum(plan->binding.puts, session->identity.process, &own.puts_sent,
                        &own.puts_taken);
    plan->transports = own.transports;
    if (processes == 1)
        return PEAL_STATUS_OK;
    bound *all = calloc((size_t)processes, sizeof(*all));
    peal_status status = all ? peal_control_allgather(session->control, &own, sizeof(own), all)
                             : peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY,
                                           PEAL_NO_SOURCE, NULL, "no memory");
    uint64_t unmatched = 0;
    for (int p = 0; !status && p < processes; p++) {
        plan->transports |= all[p].transports;
        plan->rings |= all[p].rings;
        plan->posts |= all[p].posts;
        unmatched ^= all[p].puts_sent ^ all[p].puts_taken;
        if (all[p].has_rank && all[p].hash != all[0].hash)
            status = peal_report(session->diagnostics, PEAL_E_GRAPHS_DIFFER, PEAL_NO_SOURCE,
                                 "this is a bug of peal unless the data files differ",
                                 "process %d has scheduled plan %016llx, process 0 %016llx", p,
                                 (unsigned long long)all[p].hash, (unsigned long long)all[0].hash);
    }
    if (!status && unmatched)
        status = peal_report(session->diagnostics, PEAL_E_PEAL_VERSIONS_DIFFER, PEAL_NO_SOURCE,
                             "install the same peal on all hosts",
                             "the processes do not agree on what goes between them: what is sent "
                             "is not what is awaited");
    if (!status)
        plan->hash = all[0].hash;
    else if (all && !peal_session_status(session))
        session->fails_alike = peal_session_spans_hosts(session);
    free(all);
    if (!status)
        status = peal_control_broadcast(session->control, 0, &plan->repeat, sizeof(plan->repeat));
    if (!status)
        status = peal_control_broadcast(session->control, 0, &plan->within_repeat,
                                        sizeof(plan->within_repeat));
    if (!status)
        status = peal_control_broadcast(session->control, 0, &plan->ends_at_repeat,
                                        sizeof(plan->ends_at_repeat));
    return status ? peal_session_fail(session, status, from) : PEAL_STATUS_OK;
}

peal_status peal_plan_arm(peal_plan *plan, const peal_binding *binding, peal_mode mode,
                          peal_saves *saves, peal_backend_plan **out)
{
    bool own = binding == &plan->binding;
    const peal_backend_desc desc = {
        .size = sizeof(desc),
        .mode = mode,
        .rank_count = binding->count,
        .rank = binding->backend_rank,
        .workers = plan->machine.workers,
        .cores = plan->session->cores,
        .abort_word = &plan->session->abort_word,
        .deadline_ns = peal_plan_deadline_ns(plan),
        .allow_outside = plan->options.allow_outside,
        .saves = own ? plan->saves : saves,
        .cache_folder = plan->options.cache_folder,
        .lowering = plan->options.lowering,
        .row = own ? peal_plan_take_row : peal_row_log_compare,
        .row_user = own ? (void *)plan : plan->row_log,
        .device = plan->machine.accelerator ? plan->session->device : NULL,
        .network = peal_bound_puts_hook(binding->puts),
        .hooks = own ? plan->hooks : (peal_backend_hooks){0},
        .diagnostics = plan->session->diagnostics,
    };
    return plan->backend->create(&desc, out);
}

/* A second backend plan, which looks at every tile. The first one holds the kernels. */
static peal_status arm_checks(peal_plan *plan)
{
    peal_status status = peal_footprints_create(plan);
    if (!status && plan->run)
        status = peal_plan_arm(plan, &plan->binding, PEAL_MODE_SERIAL, NULL, &plan->checking);
    return status;
}

static peal_status attach(peal_plan *plan)
{
    return peal_binding_attach(&plan->binding);
}

static bool is_of_several_hosts(const peal_plan *plan)
{
    return peal_machine_hosts(&plan->machine) > 1;
}

static int64_t tiles_of(const peal_op *op)
{
    int64_t sum = 0;
    for (int i = 0; op->kind == PEAL_OP_LAUNCH && i < op->range_count; i++) {
        int64_t tiles = 1;
        for (int k = 0; k < PEAL_AXES; k++) {
            int64_t along = op->range[i].hi[k] - op->range[i].lo[k];
            tiles *= along > 0 ? along : 0;
        }
        sum += tiles;
    }
    return sum;
}

/* In mode sync workers share the tiles of one launch, and idle ones, which keep looking for work,
 * slow the others down: no more of them than the largest launch has tiles. Between hosts the second
 * looks after the network. A number that was asked for stays. */
static int useful_workers(const peal_plan *plan)
{
    int64_t most = is_of_several_hosts(plan) ? 2 : 1;
    if (plan->mode != PEAL_MODE_SYNC || plan->machine.accelerator || plan->options.threads)
        return plan->machine.workers;
    for (int r = 0; r < plan->binding.count; r++) {
        const peal_schedule *schedule = plan->binding.rank[r].schedule;
        for (int i = 0; i < schedule->op_count; i++) {
            int64_t tiles = tiles_of(&schedule->op[i]);
            most = tiles > most ? tiles : most;
        }
    }
    return most < plan->machine.workers ? (int)most : plan->machine.workers;
}

/* Everything that can block or allocate. */
static peal_status arm(peal_plan *plan)
{
    plan->binding.first_message = plan->hooks.first_message;
    peal_status status = is_of_several_hosts(plan) ? PEAL_STATUS_OK : attach(plan);
    if (!status)
        status = peal_binding_connect(&plan->binding);
    if (!status)
        status = peal_plan_attach_saves(plan);
    plan->machine.workers = useful_workers(plan);
    if (!status && plan->binding.count > 0)
        status = peal_plan_arm(plan, &plan->binding, plan->mode, NULL, &plan->run);
    if (!status)
        status = evaluate_repeat(plan);
    bool watches = plan->watch.what && plan->mode == PEAL_MODE_SERIAL;
    if (!status && (plan->options.check_footprints || watches))
        status = arm_checks(plan);
    return status;
}

/* Compiling kernels may take longer than the deadline: the others wait for it. */
static peal_status take_time(peal_plan *plan, peal_status (*step)(peal_plan *plan))
{
    peal_session_running(plan->session, true);
    peal_status status = step(plan);
    peal_session_running(plan->session, false);
    return status;
}

/* Once the mode is known. */
static peal_status prepare(peal_plan *plan)
{
    int from = mark(plan);
    peal_status status = peal_session_agree(plan->session, take_time(plan, schedule), from);
    if (!status)
        status = peal_binding_check_memory(plan->session, plan->compilation, &plan->machine);
    if (status)
        return status;
    from = mark(plan);
    status = peal_session_agree(plan->session, take_time(plan, allocate), from);
    if (status)
        return status;
    if (is_of_several_hosts(plan)) { /* nobody waits for one that has no memory to connect */
        from = mark(plan);
        status = peal_session_agree(plan->session, take_time(plan, attach), from);
    }
    if (status)
        return status;
    from = mark(plan);
    status = peal_session_agree(plan->session, take_time(plan, arm), from);
    if (!status && is_of_several_hosts(plan)) {
        from = mark(plan);
        status =
            peal_session_agree(plan->session, peal_bound_puts_begin_try(plan->binding.puts), from);
    }
    if (!status && is_of_several_hosts(plan)) {
        from = mark(plan);
        status =
            peal_session_agree(plan->session,
                               peal_bound_puts_try(plan->binding.puts, peal_plan_deadline_ns(plan)),
                               from);
        peal_bound_puts_end_try(plan->binding.puts);
    }
    if (!status)
        status = join_bound(plan);
    return status ? status : peal_plan_check_required(plan);
}

/* What prepare has made. */
static void release(peal_plan *plan)
{
    if (plan->checking)
        plan->backend->destroy(plan->checking);
    if (plan->run)
        plan->backend->destroy(plan->run);
    peal_footprints_destroy(plan->footprints);
    for (int i = 0; i < PEAL_ORACLES; i++)
        peal_oracle_destroy(plan->oracle[i]);
    peal_row_log_destroy(plan->row_log);
    peal_plan_close_saves(plan);
    peal_binding_release(&plan->binding);
    peal_compilation_destroy(plan->compilation);
    plan->checking = plan->run = NULL;
    plan->footprints = NULL;
    memset(plan->oracle, 0, sizeof(plan->oracle));
    plan->row_log = NULL;
    plan->binding = (peal_binding){0};
    plan->compilation = NULL;
}

static peal_status outline(peal_plan *plan)
{
    int from = mark(plan);
    peal_status status = resolve(plan);
    status = peal_plan_compare(plan, status, from);
    return status ? status : peal_plan_check_folders(plan);
}

static void log_choice(const peal_plan *plan)
{
    FILE *log = plan->session->log;
    char line[512];
    if (!log || plan->session->log_level < PEAL_LOG_INFO)
        return;
    peal_plan_describe(plan, line, sizeof(line));
    fprintf(log, "peal: %s\n", line);
    if (plan->choice[0])
        fprintf(log, "peal: auto: %s\n", plan->choice);
}

static peal_status compile(peal_plan *plan)
{
    int from;
    peal_status status = outline(plan);
    if (status)
        return status;
    do {
        release(plan);
        from = mark(plan);
        status = peal_plan_decide(plan);
        if (!status)
            status = prepare(plan);
    } while (status && peal_plan_pass_over(plan, status, from));
    if (!status)
        log_choice(plan);
    return status;
}

/* make: how far. */
static peal_status create(peal_graph *graph, peal_session *session,
                          const peal_plan_options *options, peal_status (*make)(peal_plan *plan),
                          peal_plan **out)
{
    if (peal_session_status(session))
        return peal_session_cause(session);
    peal_status status = check_options(session, options);
    if (status)
        return status;
    int from = peal_diagnostics_count(session->diagnostics);
    peal_plan *plan = calloc(1, sizeof(*plan));
    if (!plan || !peal_handle_open(plan, PEAL_HANDLE_PLAN, session)) {
        free(plan);
        status = peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                             "no memory for a plan");
        return peal_session_fail(session, status, from);
    }
    peal_graph_keep(graph);
    plan->session = session;
    plan->graph = graph;
    if (options)
        plan->options = *options;
    plan->watch.what = peal_watched_named(plan->options.watch);
    if (plan->options.hooks)
        plan->hooks = *plan->options.hooks;
    status = make(plan);
    if (status) {
        peal_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return PEAL_STATUS_OK;
}

peal_status peal_graph_compile(peal_graph *graph, peal_session *session,
                               const peal_plan_options *options, peal_plan **out)
{
    if (!peal_handle_check(graph, PEAL_HANDLE_GRAPH, __func__) ||
        !peal_handle_check(session, PEAL_HANDLE_SESSION, __func__) ||
        !peal_argument_check(out, "where the plan goes", __func__))
        return PEAL_STATUS_USAGE;
    return peal_session_outcome(session, create(graph, session, options, compile, out));
}

peal_status peal_plan_outline(peal_graph *graph, peal_session *session,
                              const peal_plan_options *options, peal_plan **out)
{
    return peal_session_outcome(session, create(graph, session, options, outline, out));
}

void peal_plan_destroy(peal_plan *plan)
{
    if (!plan || !peal_handle_check(plan, PEAL_HANDLE_PLAN, __func__))
        return;
    if (plan->state == PEAL_PLAN_RUNNING) {
        peal_session_abort(plan->session, PEAL_STATUS_USAGE, "a running plan was destroyed");
        peal_plan_complete(plan);
    }
    release(plan);
    peal_graph_report_to(plan->graph, NULL);
    peal_graph_drop(plan->graph);
    peal_handle_close(plan);
    peal_handle_free(plan);
}

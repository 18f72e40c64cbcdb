/* `peal simulate`: the schedules of any number of ranks, in virtual time on a machine that a file
 * describes. */
#include "tools/simulate.h"
#include "tools/command.h"
#include "tools/memory.h"

#include "runtime/memory/available.h"
#include "runtime/select/predict.h"

#include <stdlib.h>
#include <string.h>

static const peal_source nowhere;

/* What is simulated where --steps doesn't say: some ten seconds of a core. */
enum { MOST_OPS = 40000000, PATH_BYTES = 512 << 20 };

/* ---- a point ---- */

static peal_status run_both(sim_desc *desc, simulated_point *point)
{
    sim_result free_of_messages;
    desc->path = true;
    peal_status status = sim_run(desc, &point->sent);
    if (status)
        return status;
    desc->path = false;
    desc->free_messages = true;
    desc->steps = point->sent.steps;
    status = sim_run(desc, &free_of_messages);
    if (!status) {
        point->free_step_s = free_of_messages.step_s;
        sim_result_release(&free_of_messages);
        simulate_tell_path(point, desc->schedule, desc->number);
    }
    return status;
}

static peal_status simulate_ranks(const simulation *s, peal_compilation *compilation,
                                  simulated_point *point, peal_diagnostics *diagnostics)
{
    char reason[120];
    int64_t most_bytes = peal_memory_available("", reason, sizeof(reason)) / 2;
    peal_schedule_set set;
    peal_status status =
        peal_schedule_set_create(compilation, point->ranks, most_bytes, diagnostics, &set);
    point->schedule_count = set.count;
    point->compiled_bytes = peal_compilation_bytes(compilation);
    sim_desc desc = {.size = sizeof(desc),
                     .ranks = point->ranks,
                     .number = set.number,
                     .schedule = set.schedule,
                     .schedule_count = set.count,
                     .times = &s->times,
                     .steps = s->options->steps,
                     .most_ops = MOST_OPS,
                     .jitter = s->options->jitter,
                     .seed = (uint64_t)s->options->seed,
                     .most_bytes = most_bytes,
                     .path_bytes = PATH_BYTES,
                     .diagnostics = diagnostics};
    if (!status)
        status = run_both(&desc, point);
    peal_schedule_set_release(&set);
    return status;
}

/* ---- all points ---- */

static const char *refusal(const simulation *s, peal_mode mode)
{
    const char *reason = s->times.accelerator ? NULL : peal_backend_host.refuses(mode);
    return reason ? reason : peal_graph_refuses(s->graph, mode, s->times.accelerator);
}

/* Whether a mode is simulated: those that can run and that the file has times for. */
static bool can(const simulation *s, peal_mode mode)
{
    return s->times.mode[mode].given && !refusal(s, mode);
}

/* As `run --mode auto` takes them (job.c), of those that the file has times for. */
static int choose_mode(const simulation *s)
{
    static const peal_mode order[] = {PEAL_MODE_FUSED, PEAL_MODE_GRAPH, PEAL_MODE_STREAM,
                                      PEAL_MODE_SYNC, PEAL_MODE_FUSED};
    if (s->options->mode != MODE_AUTO)
        return s->options->mode;
    for (int i = s->times.accelerator ? 1 : 0; i < 5; i++)
        if (can(s, order[i]))
            return (int)order[i];
    return PEAL_MODE_SYNC;
}

static peal_status simulate_point(simulation *s, int mode, int ranks, peal_diagnostics *diagnostics)
{
    peal_options options = *s->options;
    peal_machine machine;
    peal_compilation *compilation = NULL;
    simulated_point *point = &s->point[s->point_count];
    const char *reason = refusal(s, (peal_mode)mode);
    if (reason)
        return peal_report(diagnostics, PEAL_E_MODE_CANNOT_RUN_HERE, nowhere,
                           "`peal explain SPEC` shows which modes can run it", "mode %s: %s",
                           peal_mode_name((peal_mode)mode), reason);
    options.ranks = ranks;
    options.backend = s->times.accelerator ? "cuda" : "host";
    peal_status status = machine_of(&options, diagnostics, &machine);
    *point = (simulated_point){.mode = (peal_mode)mode, .ranks = ranks};
    if (!status)
        status =
            peal_compilation_create(s->graph, &machine, point->mode, diagnostics, &compilation);
    if (!status)
        status = peal_compilation_check(compilation);
    if (!status) {
        peal_compilation_dims(compilation, point->dims);
        status = simulate_ranks(s, compilation, point, diagnostics);
        s->point_count++;
    }
    peal_compilation_destroy(compilation);
    return status;
}

static peal_status simulate_all(simulation *s, peal_diagnostics *diagnostics)
{
    const peal_options *options = s->options;
    int counts = options->rank_counts, chosen = choose_mode(s);
    peal_status status = PEAL_STATUS_OK;
    s->point = calloc((size_t)(counts ? counts : 1) * PEAL_MODE_COUNT, sizeof(*s->point));
    if (!s->point)
        command_end_without_memory(sizeof(*s->point) * PEAL_MODE_COUNT);
    for (int mode = 0; mode < PEAL_MODE_COUNT && !status; mode++) {
        if (chosen == MODE_ALL ? !can(s, (peal_mode)mode) : mode != chosen)
            continue;
        for (int i = 0; i < (counts ? counts : 1) && !status; i++)
            status = simulate_point(s, mode, counts ? options->rank_count[i] : 1, diagnostics);
    }
    if (!status && !s->point_count)
        status = peal_report(diagnostics, PEAL_E_MACHINE_TIME_MISSING, nowhere,
                             "add them to the file's `modes`",
                             "%s has no times for a mode that can run this spec", options->machine);
    return status;
}

static void release(simulation *s)
{
    for (int i = 0; i < s->point_count; i++) {
        sim_result_release(&s->point[i].sent);
        free(s->point[i].share);
        free(s->point[i].stop);
    }
    free(s->point);
}

/* The times, and a number of ranks if only the file says it. */
static peal_status read_machine(peal_options *options, simulation *s, peal_diagnostics *diagnostics)
{
    peal_machine machine;
    const char *hint = "for example --machine h200x4.yaml, one of peal's own; "
                       "`peal schema machine` lists the keys";
    if (!options->machine)
        return peal_report(diagnostics, PEAL_E_MACHINE_TIME_MISSING, nowhere, hint,
                           "a simulation needs a machine file with times");
    peal_status status = machine_and_times_of(options, diagnostics, &machine, &s->times);
    if (!status && !s->times.given)
        return peal_report(diagnostics, PEAL_E_MACHINE_TIME_MISSING, nowhere, hint,
                           "%s has no times", options->machine);
    if (!status && !options->rank_counts)
        options->rank_count[options->rank_counts++] = machine.ranks;
    return status;
}

static peal_status run(const peal_options *given, peal_diagnostics *diagnostics)
{
    peal_options options = *given;
    simulation s = {.options = &options};
    peal_spec spec = {0};
    peal_status status = read_machine(&options, &s, diagnostics);
    if (!status)
        status = spec_open(&options, diagnostics, &spec);
    s.graph = spec.data;
    if (!status)
        status = simulate_all(&s, diagnostics);
    if (!status && options.format == FORMAT_JSON)
        simulate_print_json(&s);
    else if (!status)
        simulate_print_text(&s);
    if (!status && options.svg)
        status = simulate_draw(&s, options.svg, diagnostics);
    release(&s);
    spec_close(&spec);
    return status;
}

const peal_command simulate_command = {
    "simulate", VERB_SIMULATE,
    "usage: peal simulate SPEC --machine FILE.yaml [options]\n"
    "\n"
    "Runs the schedules of N ranks in virtual time, on the machine that the file describes,\n"
    "and prints what a step takes, how much of it messages add, messages and bytes, and the\n"
    "critical path. Nothing is computed; the same input gives the same output.\n"
    "\n"
    "      --machine FILE.yaml  what takes how long (`peal schema machine`)\n"
    "  -n, --ranks N[,N...]     this many ranks; several, ascending: one after the other\n"
    "      --mode M       serial, sync, stream, graph, fused, auto (default) or all\n"
    "      --steps N      at most so many steps (default: those of the spec; where that is\n"
    "                     more than 40 million operations, fewer, of which the later half\n"
    "                     is timed)\n"
    "      --jitter F     each operation and link takes up to this fraction longer\n"
    "      --seed S       ... by chance, of this seed (default 0)\n"
    "      --svg FILE     the time of a step over the numbers of ranks, as a picture\n"
    "      --set K=V      override a param\n"
    "      --processes P  ranks live in this many processes (default: one each)\n"
    "      --threads T    workers a process (default: those of the file, else one a rank)\n"
    "      --transport T  between processes: tcp, ucx; on GPUs p2p (default), p2p:ipc or shm\n"
    "      --json         as JSON (schema peal.simulate/1)\n"
    "  -h, --help         this text\n"
    "\n"
    "example: peal simulate samples/heat3d --machine machines/h200x4.yaml -n 1,2,4 --mode all\n",
    run};

/* `peal plan`: the schedules of a spec, as text, JSON or a Graphviz digraph. */
#include "tools/command.h"
#include "tools/job.h"
#include "tools/memory.h"
#include "tools/mode_lines.h"
#include "tools/output.h"
#include "tools/plan_emit.h"
#include "tools/plan_json.h"
#include "tools/plan_resources.h"

#include "base/arena.h"
#include "base/places.h"

#include <stdlib.h>
#include <string.h>

static const peal_source nowhere;

static peal_status print_rank(peal_compilation *compilation, int rank, output_format format,
                              json_t *list)
{
    const peal_schedule *schedule;
    peal_status status = peal_compilation_schedule(compilation, rank, &schedule);
    if (status != PEAL_STATUS_OK)
        return status;
    if (format == FORMAT_JSON)
        json_array_append_new(list, json_schedule(schedule));
    else if (format == FORMAT_DOT)
        peal_schedule_print_dot(schedule, stdout);
    else
        peal_schedule_print_text(schedule, stdout);
    return PEAL_STATUS_OK;
}

static peal_status print_kernels(const peal_options *options, peal_compilation *compilation,
                                 peal_mode mode, int first, int end, json_t *list,
                                 peal_diagnostics *diagnostics)
{
    peal_backend_rank *rank = calloc((size_t)(end - first), sizeof(*rank));
    peal_status status = PEAL_STATUS_OK;
    if (!rank)
        command_end_without_memory((size_t)(end - first) * sizeof(*rank));
    for (int r = first; r < end && status == PEAL_STATUS_OK; r++)
        status = peal_compilation_schedule(compilation, r, &rank[r - first].schedule);
    const peal_backend_desc desc = {.size = sizeof(desc),
                                    .mode = mode,
                                    .rank_count = end - first,
                                    .rank = rank,
                                    .workers = 1,
                                    .allow_outside = options->allow_outside,
                                    .lowering = options->lowering,
                                    .diagnostics = diagnostics};
    if (status == PEAL_STATUS_OK)
        status =
            options->resources ? plan_resources(options, &desc, list) : plan_emit(options, &desc);
    free(rank);
    return status;
}

/* *line: whether the mode can run the spec. If not, nothing is printed. */
static peal_status print_mode(const peal_options *options, const peal_backend_ops *backend,
                              const peal_graph_data *graph, const peal_machine *machine,
                              peal_mode mode, json_t *list, peal_diagnostics *diagnostics,
                              mode_line *line)
{
    peal_compilation *compilation = NULL;
    bool of_kernels = options->emit != EMIT_NONE || options->resources;
    int first = options->rank < 0 ? 0 : options->rank;
    int end = options->rank < 0 ? machine->ranks : options->rank + 1;
    peal_status status = peal_compilation_create(graph, machine, mode, diagnostics, &compilation);
    if (status == PEAL_STATUS_OK)
        status = peal_compilation_check(compilation);
    *line = (mode_line){.can = true};
    if (of_kernels && status == PEAL_STATUS_OK) {
        status = print_kernels(options, compilation, mode, first, end, list, diagnostics);
    } else {
        if (status == PEAL_STATUS_OK)
            status = mode_line_find(options, backend, graph, machine, mode, diagnostics, line);
        for (int rank = first; rank < end && status == PEAL_STATUS_OK && line->can; rank++)
            status = print_rank(compilation, rank, options->format, list);
    }
    peal_compilation_destroy(compilation);
    return status;
}

/* Every applicable mode for `all`, else one: for `auto` the first in turn that can run it. */
static peal_status print_modes(const peal_options *options, const peal_graph_data *graph,
                               const peal_machine *machine, json_t *list,
                               peal_diagnostics *diagnostics)
{
    const peal_backend_ops *backend = backend_described(options, diagnostics);
    bool automatic = options->mode == MODE_AUTO, one = !automatic && options->mode != MODE_ALL;
    if (!backend)
        return PEAL_STATUS_ENVIRONMENT;
    for (int i = 0; i < PEAL_MODE_COUNT; i++) {
        peal_mode mode = automatic ? mode_in_turn(backend, i) : (peal_mode)i;
        if (mode == PEAL_MODE_COUNT || (one && mode != (peal_mode)options->mode))
            continue;
        mode_line line;
        const char *reason = mode_refusal(backend, graph, mode);
        if (reason && one)
            return peal_report(diagnostics, PEAL_E_MODE_CANNOT_RUN_HERE, nowhere,
                               "`peal explain SPEC` shows which modes can run it", "mode %s: %s",
                               peal_mode_name(mode), reason);
        if (reason)
            continue;
        peal_status status =
            print_mode(options, backend, graph, machine, mode, list, diagnostics, &line);
        if (!status && !line.can && one)
            status = mode_line_report(&line, mode, diagnostics);
        if (status || (automatic && line.can))
            return status;
    }
    return PEAL_STATUS_OK;
}

/* What kernels take of a GPU is asked of the backend for GPUs. */
static peal_status run(const peal_options *given, peal_diagnostics *diagnostics)
{
    peal_options on_gpus = *given, *options = &on_gpus;
    peal_spec spec = {0};
    peal_machine machine;
    if (options->resources && options->backend && !strcmp(options->backend, "host"))
        return peal_report(diagnostics, PEAL_E_INVALID_OPTION_VALUE, nowhere, NULL,
                           "--resources is about GPUs: not with --backend host");
    if (options->resources)
        options->backend = "cuda";
    peal_status status = machine_of(options, diagnostics, &machine);
    if (status != PEAL_STATUS_OK)
        return status;
    if (options->rank >= machine.ranks)
        return peal_report(diagnostics, PEAL_E_CONFLICTING_OPTIONS, nowhere, "ranks count from 0",
                           "--rank %d: the job has %d rank%s", options->rank, machine.ranks,
                           machine.ranks == 1 ? "" : "s");
    status = spec_open(options, diagnostics, &spec);
    if (status == PEAL_STATUS_OK)
        status = peal_places_check(spec.data, machine.ranks, options->allow_outside, diagnostics);
    if (status == PEAL_STATUS_OK) {
        json_t *list = options->format == FORMAT_JSON ? json_array() : NULL;
        status = print_modes(options, spec.data, &machine, list, diagnostics);
        if (list && status == PEAL_STATUS_OK) {
            json_t *object = json_begin(options->resources ? "peal.resources/1" : "peal.plan/1");
            json_object_set_new(object, "name", json_string(spec.data->name));
            json_object_set(object, options->resources ? "modes" : "schedules", list);
            json_print(object);
        }
        json_decref(list);
    }
    spec_close(&spec);
    return status;
}

const peal_command plan_command = {
    "plan", VERB_PLAN,
    "usage: peal plan SPEC [options]\n"
    "\n"
    "Prints the schedule that each rank would run: operations, tiles, dependences,\n"
    "channels. The same input gives the same bytes.\n"
    "\n"
    "  -n, --ranks N      for this many ranks (default 1)\n"
    "      --rank R       only this rank's (default: all)\n"
    "      --mode M       serial, sync, stream, graph, fused, auto (default) or all\n"
    "      --backend B    for the host (default) or cuda, whether there are GPUs or not\n"
    "      --transport T  between processes: tcp, ucx; on GPUs p2p (default), p2p:ipc or shm\n"
    "      --set K=V      override a param\n"
    "      --processes P  ranks live in this many processes (default: one each), of --threads\n"
    "                     T workers; or on --hosts a:2,b:2\n"
    "      --machine M    all of that at once: \"process:4 core:2 cache:1MiB\" or FILE.yaml\n"
    "      --emit B       the source compiled for the kernels instead: host or cuda\n"
    "      --resources    what its kernels take of a GPU instead: registers, spills,\n"
    "                     memory, blocks an SM (needs NVRTC, no GPU)\n"
    "      --arch A       of this architecture: sm_90 (default: that of the GPU here)\n"
    "      --lower K=V    with these words of `peal run --lower` (--emit, --resources)\n"
    "      --allow-outside  kernels and data may lie outside the spec's folder\n"
    "      --format F     text (default), json (short: --json; schema peal.plan/1), dot\n"
    "  -h, --help         this text\n"
    "\n"
    "example: peal plan samples/jacobi2d -n 4 --rank 1 --format dot | dot -Tsvg > plan.svg\n",
    run};

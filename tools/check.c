/* `peal check`: every problem of a spec, over all ranks, without running anything. */
#include "tools/command.h"
#include "tools/mode_lines.h"
#include "tools/output.h"

#include "backends/host/kernels.h"
#include "base/places.h"

/* The kernel files are there and within the folder, and name all kernels. They are read, not
 * compiled: loading what a compiler made could run it. */
static peal_status check_kernels(const peal_options *options, peal_compilation *compilation,
                                 peal_diagnostics *diagnostics)
{
    const peal_schedule *schedule;
    peal_status status = peal_compilation_tasks(compilation, 0, &schedule);
    if (status != PEAL_STATUS_OK)
        return status;
    peal_backend_rank rank = {.schedule = schedule};
    peal_backend_desc desc = {.size = sizeof(desc),
                              .mode = PEAL_MODE_SYNC,
                              .rank_count = 1,
                              .rank = &rank,
                              .workers = 1,
                              .allow_outside = options->allow_outside,
                              .diagnostics = diagnostics};
    return host_kernels_check(&desc);
}

/* --mode: whether it, or each mode, can run the spec. */
static peal_status check_modes(const peal_options *options, const peal_spec *spec,
                               const peal_machine *machine, peal_diagnostics *diagnostics)
{
    const peal_backend_ops *backend = backend_described(options, diagnostics);
    peal_status status = backend ? PEAL_STATUS_OK : PEAL_STATUS_ENVIRONMENT;
    for (int mode = 0; mode < PEAL_MODE_COUNT && backend; mode++) {
        mode_line line = {.can = true};
        if (options->mode != MODE_ALL && options->mode != mode)
            continue;
        peal_status found = mode_line_find(options, backend, spec->data, machine, (peal_mode)mode,
                                           diagnostics, &line);
        if (!found && !line.can)
            found = mode_line_report(&line, (peal_mode)mode, diagnostics);
        status = status ? status : found;
    }
    return status;
}

/* Reads, resolves, and makes all checks for every rank. */
static peal_status check_all(const peal_options *options, peal_spec *spec, peal_machine *machine,
                             int dims[PEAL_RANK_AXES], peal_diagnostics *diagnostics)
{
    peal_compilation *compilation = NULL;
    peal_status status = machine_of(options, diagnostics, machine);
    if (status == PEAL_STATUS_OK)
        status = spec_open(options, diagnostics, spec);
    peal_status places =
        status ? status
               : peal_places_check(spec->data, machine->ranks, options->allow_outside, diagnostics);
    if (status == PEAL_STATUS_OK)
        status =
            peal_compilation_create(spec->data, machine, PEAL_MODE_SYNC, diagnostics, &compilation);
    if (status == PEAL_STATUS_OK) {
        peal_compilation_dims(compilation, dims);
        status = peal_compilation_check(compilation);
    }
    if (status == PEAL_STATUS_OK)
        status = check_kernels(options, compilation, diagnostics);
    peal_compilation_destroy(compilation);
    if (status == PEAL_STATUS_OK && options->mode_given)
        status = check_modes(options, spec, machine, diagnostics);
    return status ? status : places;
}

static void print_result(const peal_options *options, peal_status status, const peal_spec *spec,
                         const peal_machine *machine, const int dims[PEAL_RANK_AXES],
                         peal_diagnostics *diagnostics)
{
    int errors = peal_diagnostics_errors(diagnostics);
    int warnings = peal_diagnostics_count(diagnostics) - errors;
    if (options->format == FORMAT_JSON) {
        json_t *object = json_begin("peal.check/1");
        json_object_set_new(object, "status", json_string(peal_status_name(status)));
        json_object_set_new(object, "ranks", json_integer(machine->ranks));
        json_object_set_new(object, "errors", json_integer(errors));
        json_object_set_new(object, "warnings", json_integer(warnings));
        json_object_set_new(object, "messages", json_diagnostics(diagnostics));
        if (spec->data)
            json_object_set_new(object, "hash", json_string(text_hash(spec->data->hash).s));
        json_print(object);
    } else if (options->format == FORMAT_DOT)
        peal_diagnostics_print_dot(diagnostics, stdout);
    else if (status == PEAL_STATUS_OK && !options->quiet) {
        printf("%s: fine on %d rank%s (%d x %d x %d), %d statement%s, %d warning%s\n",
               spec->data->name, machine->ranks, machine->ranks == 1 ? "" : "s", dims[0], dims[1],
               dims[2], spec->data->statement_count, spec->data->statement_count == 1 ? "" : "s",
               warnings, warnings == 1 ? "" : "s");
    } else if (errors == 0 && options->strict && !options->quiet)
        printf("%s: refused by --strict: %d warning%s\n", spec->data->name, warnings,
               warnings == 1 ? "" : "s");
}

static peal_status run(const peal_options *options, peal_diagnostics *diagnostics)
{
    peal_spec spec = {0};
    peal_machine machine = {0};
    int dims[PEAL_RANK_AXES] = {1, 1, 1};
    if (options->print_json && options->subject)
        return peal_document_print_json(options->subject, stdout, diagnostics);
    peal_status status = check_all(options, &spec, &machine, dims, diagnostics);
    if (status == PEAL_STATUS_OK) /* checks go on without the contents of a file */
        status = peal_diagnostics_status(diagnostics);
    if (status == PEAL_STATUS_OK && options->strict && peal_diagnostics_count(diagnostics) > 0)
        status = PEAL_STATUS_SPEC;
    print_result(options, status, &spec, &machine, dims, diagnostics);
    spec_close(&spec);
    return status;
}

const peal_command check_command = {
    "check", VERB_CHECK,
    "usage: peal check SPEC [options]\n"
    "\n"
    "Reports every problem of a spec, over all ranks, without running it. SPEC is a YAML\n"
    "file, a folder that holds one, or - for standard input. Exit code 3: errors found.\n"
    "What concerns several statements or ranks is told as a counterexample, event by event.\n"
    "\n"
    "  -n, --ranks N      check for this many ranks (default 1), --processes P processes\n"
    "      --hosts a:2,b:2  its processes are on these hosts\n"
    "      --set K=V      override a param\n"
    "      --steps S      as a run of S steps\n"
    "      --mode M       and that mode M can run it (all: that each can)\n"
    "      --backend B    for the host (default) or cuda, whether there are GPUs or not\n"
    "      --machine M    for this machine, such as \"process:4 core:2\", or FILE.yaml\n"
    "      --allow-outside  kernels and data may lie outside the spec's folder\n"
    "      --json         messages as JSON (schema peal.check/1), with their counterexamples\n"
    "      --format dot   the counterexamples as a Graphviz digraph: ranks, events, lines\n"
    "      --print-json   only print the document as peal reads it, as JSON\n"
    "  -q, --quiet        say nothing if all is fine; --strict: warnings are errors\n"
    "  -h, --help         this text\n"
    "\n"
    "example: peal check samples/heat3d -n 7 --set nx=100\n",
    run};

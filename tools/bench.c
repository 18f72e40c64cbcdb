/* `peal bench`: measures what a machine file contains, and what the kernels of a spec take. */
#define _GNU_SOURCE
#include "tools/bench.h"
#include "tools/command.h"
#include "tools/output.h"
#include "tools/run.h"

#include "base/new_file.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/measure/calibrate.h"
#include "runtime/measure/measure.h"
#include "runtime/session/device.h"
#include "runtime/session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* On GPUs a round takes longer, and rounds differ less. */
enum { ROUNDS = 100, DEVICE_ROUNDS = 20 };

static const peal_source nowhere;

/* What was measured of the machine and of the spec, as it was. */
static void print_json(const peal_measure_table *table, const double step_s[PEAL_MODE_COUNT])
{
    static const char *const names[PEAL_MEASURE_CASES] = {"task",    "tasks", "local",
                                                          "message", "wide",  "wide_message",
                                                          "small",   "large", "unawaited"};
    json_t *object = json_begin("peal.bench/1"), *modes = json_object();
    for (int mode = 0; mode < PEAL_MODE_COUNT; mode++) {
        json_t *cases = json_object();
        if (step_s[mode] > 0)
            json_object_set_new(cases, "spec", json_real(step_s[mode]));
        for (int i = 0; table->given[mode] && i < PEAL_MEASURE_CASES; i++)
            if (table->step_s[mode][i] > 0)
                json_object_set_new(cases, names[i], json_real(table->step_s[mode][i]));
        if (json_object_size(cases))
            json_object_set_new(modes, peal_mode_name((peal_mode)mode), cases);
        else
            json_decref(cases);
    }
    json_object_set_new(object, "seconds_per_step", modes);
    if (table->line_s > 0)
        json_object_set_new(object, "line_seconds", json_real(table->line_s));
    json_print(object);
}

static peal_status save(const peal_machine_times *times, const bench_origin *origin,
                        peal_diagnostics *diagnostics)
{
    const char *path = origin->options->save_machine;
    bool is_object = origin->options->format == FORMAT_JSON;
    if (!path && is_object)
        return PEAL_STATUS_OK;
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = path ? open_memstream(&text, &bytes) : stdout;
    if (file)
        bench_print_machine(file, times, origin);
    bool written = file && !ferror(file) && (!path || !fclose(file));
    if (path && written)
        written = (errno = peal_file_replace(text, bytes, path, 0)) == 0;
    free(text);
    if (!written)
        return peal_report(diagnostics, PEAL_E_OUTPUT_NOT_WRITTEN, nowhere, NULL,
                           "cannot write %s: %s", path ? path : "the machine file",
                           strerror(errno));
    if (path && !origin->options->quiet && !is_object)
        printf("written to %s\n", path);
    return PEAL_STATUS_OK;
}

/* The times of --machine, else measured ones. */
static peal_status take_times(const peal_options *options, peal_session *session,
                              const peal_backend_ops *backend, bench_origin *origin,
                              peal_measure_table *table, peal_machine_times *times)
{
    peal_diagnostics *diagnostics = peal_session_diagnostics(session);
    peal_machine machine;
    if (options->machine) {
        peal_status status = machine_and_times_of(options, diagnostics, &machine, times);
        if (status)
            return status;
        if (times->given && times->accelerator == (backend->open != NULL))
            return PEAL_STATUS_OK;
        return peal_report(diagnostics, PEAL_E_MACHINE_TIME_MISSING, nowhere,
                           "name a machine file of what is measured, or --backend",
                           "%s has no times of %s", options->machine,
                           backend->open ? "GPUs" : "cores");
    }
    origin->rounds = options->rounds ? options->rounds : backend->open ? DEVICE_ROUNDS : ROUNDS;
    peal_status status = peal_measure(session, backend->name, origin->rounds, table);
    if (status)
        return status;
    peal_measure_fit(table, times);
    int from = peal_diagnostics_count(diagnostics);
    bool is_file = options->save_machine || options->format != FORMAT_JSON;
    if (is_file && peal_session_process(session) == 0)
        status = peal_measure_judge(table, times, diagnostics);
    status = peal_session_agree(session, status, from);
    if (status)
        return status;
    const char *reason;
    times->devices = backend->count ? peal_device_count(&reason) : machine_cores();
    return PEAL_STATUS_OK;
}

/* One process of the measurement, mostly the only one. */
static peal_status measure(const peal_options *options, const peal_backend_ops *backend,
                           peal_session *session)
{
    peal_diagnostics *diagnostics = peal_session_diagnostics(session);
    bench_origin origin = {.options = options};
    peal_machine_times times = {0};
    peal_measure_table table = {0};
    double step_s[PEAL_MODE_COUNT] = {0};
    peal_spec spec = {0};
    char device[200] = "";
    int ranks = options->ranks ? options->ranks : 1;
    bool leads = peal_session_process(session) == 0, is_object = options->format == FORMAT_JSON;
    peal_status status = take_times(options, session, backend, &origin, &table, &times);
    if (!status && options->subject)
        status = spec_open(options, diagnostics, &spec);
    if (!status && options->subject)
        status = backend == &peal_backend_host
                     ? peal_calibrate(session, spec.graph, ranks, &times)
                     : peal_calibrate_device(session, spec.graph, backend->name, ranks, &times);
    if (!status && options->subject && (options->save_machine || !is_object))
        status = peal_measure_judge_kernels(&times, diagnostics);
    if (!status && is_object && backend == &peal_backend_host && table.line_s <= 0)
        table.line_s = peal_measure_line();
    if (!status && options->subject && is_object)
        status = peal_measure_graph(session, spec.graph, backend->name, ranks, step_s);
    if (backend->describe && peal_session_device(session, NULL))
        backend->describe(peal_session_device(session, NULL), device, sizeof(device));
    origin.device = device;
    if (!status && leads && is_object)
        print_json(&table, step_s);
    if (!status && leads)
        status = save(&times, &origin, diagnostics);
    spec_close(&spec);
    return status;
}

static peal_status choose_backend(const peal_options *options, peal_diagnostics *diagnostics,
                                  const peal_backend_ops **out)
{
    const char *reason;
    bool cuda = options->backend && !strcmp(options->backend, "cuda");
    *out = backend_expected(options);
    if (cuda && (*out == &peal_backend_host || peal_device_count(&reason) == 0))
        return peal_report(diagnostics, PEAL_E_NO_GPU, nowhere, NULL,
                           "--backend cuda: there is no GPU");
    return PEAL_STATUS_OK;
}

/* A process a GPU, as many as there are ranks; of a machine two show what is between them. */
static int count_processes(const peal_options *options, const peal_backend_ops *backend)
{
    const char *reason;
    int devices = backend->count ? peal_device_count(&reason) : 1;
    int ranks = !options->subject ? 2 : options->ranks ? options->ranks : 1;
    return ranks < devices ? ranks : devices;
}

static peal_status run(const peal_options *options, peal_diagnostics *diagnostics)
{
    const peal_backend_ops *backend;
    peal_status status = choose_backend(options, diagnostics, &backend);
    if (status)
        return status;
    int processes = count_processes(options, backend);
    status = descriptors_check(processes > 1 ? FILES_OF_A_MEMBER + FILES_A_PROCESS * processes
                                             : FILES_ALONE,
                               diagnostics);
    if (status)
        return status;
    int number;
    if (processes > 1 && !peal_bootstrap_is_launched(&number))
        return launch_command(processes, options->words, options->word_count, options->deadline_ns,
                              diagnostics);
    peal_session *session = NULL;
    peal_session_desc desc = {.size_bytes = sizeof(desc),
                              .log_level = environment_log_level(),
                              .log = stderr};
    status = peal_session_create(&desc, &session);
    if (status)
        return status;
    status = measure(options, backend, session);
    if (status && peal_session_tells(session))
        peal_session_print_diagnostics(session, stderr, 20);
    peal_session_destroy(session);
    return status;
}

const peal_command bench_command = {
    "bench", VERB_BENCH,
    "usage: peal bench [SPEC] [--save-machine FILE.yaml] [options]\n"
    "\n"
    "Measures what launches, copies, flags, messages and memory take here, by small specs\n"
    "of its own, and prints a machine file: for `simulate` and `explain --machine FILE`.\n"
    "With a SPEC it also times that spec's kernels, at the sizes that they have on N\n"
    "ranks. Other work on the machine disturbs it: the fastest of many rounds counts.\n"
    "\n"
    "      --save-machine FILE.yaml  write it there\n"
    "      --machine FILE.yaml  take all but the kernels of SPEC from this file\n"
    "  -n, --ranks N      for the kernels of SPEC (default 1)\n"
    "      --set K=V      override a param of SPEC\n"
    "      --rounds N     of which the fastest counts (default 100; on GPUs 20)\n"
    "      --backend B    host, cuda, or auto (default): GPUs if there are any\n"
    "      --json         what was measured, as JSON (schema peal.bench/1); with a SPEC also\n"
    "                     what a step takes in each mode, one worker a rank\n"
    "  -q, --quiet        don't say where it was written\n"
    "  -h, --help         this text\n"
    "\n"
    "example: peal bench samples/jacobi2d -n 2 --save-machine here.yaml\n",
    run};

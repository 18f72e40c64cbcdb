/* Verbs that run in all processes of a job: starts the processes, or, as one of them, opens the
 * session, reads the spec, does the verb's work and tells how it has ended. */
#define _POSIX_C_SOURCE 200809L
#include "tools/guard.h"
#include "tools/run.h"
#include "tools/signals.h"
#include "tools/watchdog.h"

#include "base/phase.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/session/session.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const peal_source nowhere;

static int environment_count(const char *name)
{
    const char *text = getenv(name);
    return text ? atoi(text) : 0;
}

/* Launchers that serve no PMIx: they say what they do by these names. */
static void warn_of_copies(peal_diagnostics *diagnostics)
{
    static const struct {
        const char *count, *rank, *hint;
    } launchers[] = {{"SLURM_STEP_NUM_TASKS", "SLURM_PROCID",
                      "say srun --mpi=pmix, or let `peal run -n` start"},
                     {"PMI_SIZE", "PMI_RANK",
                      "use a launcher that serves PMIx, or let `peal run -n` start"}};
    for (int i = 0; i < 2; i++) {
        int copies = environment_count(launchers[i].count);
        if (copies < 2)
            continue;
        if (!environment_count(launchers[i].rank)) /* once is enough */
            peal_warn(diagnostics, PEAL_E_STARTED_WITHOUT_PMIX, nowhere, launchers[i].hint,
                      "a launcher has started %d processes, but serves no PMIx: each runs all of "
                      "it alone",
                      copies);
        return;
    }
}

/* Under `peal run` a process that was lost is told by the launcher, which knows how it ended; this
 * is for where it knows nothing: the word stays with it until the end. */
static FILE *open_launcher(void)
{
    const char *text = watchdog_sees_orphan() ? NULL : getenv("PEAL_LAUNCH_CHILD");
    int descriptor = text ? atoi(text) : -1, copy = descriptor > 2 ? dup(descriptor) : -1;
    FILE *file = copy >= 0 ? fdopen(copy, "a") : NULL;
    if (!file && copy >= 0)
        close(copy);
    return file;
}

/* What went wrong in joining a job the library prints itself; that another process was lost is for
 * the launcher. */
static peal_status create_session(const peal_options *options, peal_session **out)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *log = open_memstream(&text, &bytes);
    peal_session_desc desc = {.size_bytes = sizeof(desc),
                              .deadline_s = (double)options->deadline_ns * 1e-9,
                              .log_level = environment_log_level(),
                              .log = log ? log : stderr,
                              .network_interface = options->network_interface,
                              .network_ports = {options->network_ports[0],
                                                options->network_ports[1]}};
    peal_status status = peal_session_create(&desc, out);
    if (!status)
        (*out)->log = stderr;
    if (log)
        fclose(log);
    FILE *launcher = status == PEAL_STATUS_PEER_LOST ? open_launcher() : NULL;
    fputs(text ? text : "", launcher ? launcher : stderr);
    if (launcher)
        fclose(launcher);
    free(text);
    return status;
}

static peal_status open_session(const peal_options *options, peal_diagnostics *diagnostics,
                                peal_run *run)
{
    peal_phase before = peal_phase_enter(10, "the other processes of the job");
    peal_status status = create_session(options, &run->session);
    peal_phase_leave(&before);
    if (status != PEAL_STATUS_OK)
        return status;
    signals_watch(run->session);
    watchdog_session(run->session);
    run->processes = peal_session_processes(run->session);
    run->leads = peal_session_process(run->session) == 0;
    output_set_follower(!run->leads);
    if (options->hosts && strcmp(peal_session_bootstrap(run->session), "peal") != 0)
        return peal_report(diagnostics, PEAL_E_CONFLICTING_OPTIONS, nowhere, "drop --hosts",
                           "--hosts %s, but another launcher has started the processes",
                           options->hosts);
    if (options->processes && options->processes != run->processes)
        return peal_report(diagnostics, PEAL_E_CONFLICTING_OPTIONS, nowhere,
                           "the launcher decides: drop --processes",
                           "--processes %d, but the launcher has started %d", options->processes,
                           run->processes);
    if (options->ranks && options->ranks < run->processes)
        return peal_report(diagnostics, PEAL_E_CONFLICTING_OPTIONS, nowhere,
                           "a process hosts one or more ranks",
                           "-n %d, but the launcher has started %d processes", options->ranks,
                           run->processes);
    return PEAL_STATUS_OK;
}

/* All processes read the spec; they agree on whether that went well. */
static peal_status read_spec(const peal_options *options, peal_run *run)
{
    peal_diagnostics *list = peal_session_diagnostics(run->session);
    int from = peal_diagnostics_count(list);
    peal_status status = spec_open(options, list, &run->spec);
    return peal_session_agree(run->session, status, from);
}

/* Process 0 prints its warnings where another process tells why the job has ended. */
static void print_warnings(const peal_diagnostics *all)
{
    peal_diagnostics *own = peal_diagnostics_create();
    for (int i = 0; own && i < peal_diagnostics_count(all); i++) {
        const peal_diagnostic *d = peal_diagnostics_at(all, i);
        if (d->severity != PEAL_ERROR && d->code != PEAL_E_JOB_ENDED_BY_PEER)
            peal_warn(own, d->code, d->source, d->hint, "%s", d->message);
    }
    if (own)
        peal_diagnostics_print(own, stderr, SHOWN_MESSAGES);
    peal_diagnostics_destroy(own);
}

/* One process of the job prints why it has ended. */
static void print_messages(const peal_run *run, peal_status status)
{
    if (!run->session)
        return;
    bool is_lost = status == PEAL_STATUS_PEER_LOST;
    FILE *launcher = is_lost ? open_launcher() : NULL;
    if (status == PEAL_STATUS_OK ? run->leads : peal_session_tells(run->session))
        peal_session_print_diagnostics(run->session, launcher ? launcher : stderr,
                                       run->options->check_footprints ? 0 : SHOWN_MESSAGES);
    else if (run->leads)
        print_warnings(peal_session_diagnostics(run->session));
    if (launcher)
        fclose(launcher);
    fflush(stderr);
}

/* What a signal has cut off. */
static void report_signal(const peal_run *run, peal_status status)
{
    if (!run->leads || (status != PEAL_STATUS_INTERRUPT && status != PEAL_STATUS_TERMINATED))
        return;
    bool by_user = status == PEAL_STATUS_INTERRUPT;
    const mode_result *last = run->result_count ? &run->result[run->result_count - 1] : NULL;
    peal_report(peal_session_diagnostics(run->session),
                by_user ? PEAL_E_INTERRUPTED : PEAL_E_TERMINATED, nowhere, NULL,
                "%s%s%s; all processes have left", by_user ? "interrupted" : "terminated",
                last ? " in mode " : "", last ? peal_mode_name(last->mode) : "");
}

/* The first cause's code, everywhere. */
static peal_status status_of(const peal_run *run, peal_status status)
{
    peal_status cause = run->session ? peal_session_status(run->session) : PEAL_STATUS_OK;
    return cause ? cause : status;
}

void run_tell(peal_run *run, peal_status status)
{
    if (run->has_told)
        return;
    run->has_told = true;
    status = status_of(run, status);
    report_signal(run, status);
    print_messages(run, status);
}

/* `peal run ... | head -1`: the job ends as programs do that write to a closed pipe. */
static void end_for_reader(void *session)
{
    peal_session_abort(session, PEAL_STATUS_CLOSED_OUTPUT, "nobody reads the output any more");
}

/* One process of the job (maybe the only one). */
static peal_status run_member(const peal_options *options, const job_body *body,
                              peal_diagnostics *diagnostics)
{
    peal_run run = {.options = options,
                    .rows = {.quiet = options->quiet},
                    .backend = backend_expected(options)};
    if (options->format == FORMAT_JSON)
        run.rows.rows = json_array();
    signals_catch();
    peal_status status = open_session(options, diagnostics, &run);
    if (status == PEAL_STATUS_OK)
        status = read_spec(options, &run);
    if (status == PEAL_STATUS_OK) {
        run.rows.closed = end_for_reader;
        run.rows.user = run.session;
        guard_begin(run.session);
        status = body->run(&run);
        guard_end();
    }
    status = status_of(&run, status);
    run_tell(&run, status);
    if (run.leads)
        body->report(&run, status);
    spec_close(&run.spec);
    signals_watch(NULL);
    watchdog_session(NULL);
    peal_phase before = peal_phase_enter(6, "the other processes of the job, at its end");
    peal_session_destroy(run.session);
    peal_phase_leave(&before);
    json_decref(run.rows.rows);
    free(run.tuning);
    return status;
}

/* A process a rank; on GPUs at most a process a GPU. */
static int default_processes(const peal_options *options, int ranks)
{
    const peal_backend_ops *backend = backend_expected(options);
    const char *reason;
    int devices = backend->count ? backend->count(&reason) : 0;
    return devices > 0 && devices < ranks ? devices : ranks;
}

peal_status run_job(const peal_options *options, const job_body *body,
                    peal_diagnostics *diagnostics)
{
    int number;
    bool launched = peal_bootstrap_is_launched(&number); /* by ours, mpirun, srun, prun */
    peal_status status = descriptors_check(launched ? FILES_OF_A_MEMBER : FILES_ALONE, diagnostics);
    if (status != PEAL_STATUS_OK)
        return status;
    if (launched)
        return run_member(options, body, diagnostics);
    if (options->by_agent)
        return peal_report(diagnostics, PEAL_E_BOOTSTRAP_FAILED, nowhere,
                           "an agent becomes the command, with the descriptors that it was given: "
                           "`ip netns exec` does, ssh does not (mpirun starts processes by ssh)",
                           "the agent of --agent has not passed on the line to the launcher");
    warn_of_copies(diagnostics);
    job_hosts hosts;
    status = hosts_open(options, diagnostics, &hosts);
    int ranks = options->ranks ? options->ranks : 1;
    int processes = hosts.count          ? hosts.processes
                    : options->processes ? options->processes
                                         : default_processes(options, ranks);
    /* One process, too: only another one can tell that it has left in the middle. */
    if (status == PEAL_STATUS_OK)
        status = descriptors_check(FILES_OF_A_MEMBER + FILES_A_PROCESS * processes, diagnostics);
    if (status == PEAL_STATUS_OK)
        status = run_launch(options, processes, &hosts, diagnostics);
    hosts_close(&hosts);
    return status;
}

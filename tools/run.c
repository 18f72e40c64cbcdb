/* `peal run`: runs a spec in one mode or in all. */
#include "tools/run.h"
#include "tools/command.h"

static bool status_ends(peal_status status)
{
    return status != PEAL_STATUS_OK && status != PEAL_STATUS_WRONG_RESULT;
}

static peal_status run_modes(peal_run *run)
{
    const peal_options *options = run->options;
    peal_status status = PEAL_STATUS_OK;
    if (options->check_footprints)
        return run_mode(run, PEAL_MODE_SERIAL);
    if (options->mode != MODE_ALL)
        return run_mode(run, options->mode);
    int ranks = options->ranks ? options->ranks : peal_session_processes(run->session);
    status = peal_session_keep_files(run->session, run->spec.data, ranks, options->allow_outside);
    for (int mode = 0; mode < PEAL_MODE_COUNT && !status_ends(status); mode++) {
        peal_status one = run_mode(run, mode);
        if (status == PEAL_STATUS_OK)
            status = one;
        if (status_ends(one) || (one && run->result[run->result_count - 1].not_a_number))
            break; /* the other modes would find it, too */
    }
    return status;
}

static void report(const peal_run *run, peal_status status)
{
    if (run->options->format == FORMAT_JSON)
        report_json(run, status);
    else
        report_text(run, status);
    fflush(stdout);
}

static peal_status run_verb(const peal_options *options, peal_diagnostics *diagnostics)
{
    static const job_body body = {run_modes, report};
    if (options->format == FORMAT_DOT)
        return peal_report(diagnostics, PEAL_E_INVALID_OPTION_VALUE, (peal_source){0},
                           "`peal plan --format dot` draws schedules",
                           "`peal run` prints text or json");
    return run_job(options, &body, diagnostics);
}

const peal_command run_command = {
    "run", VERB_RUN,
    "usage: peal run SPEC [options]\n"
    "\n"
    "Runs a spec: a YAML file, a folder that holds one, or - for standard input. Running a\n"
    "spec runs its kernels. Under mpirun, srun or prun each process takes part.\n"
    "\n"
    "  -n, --ranks N         ranks (default 1; under a launcher its processes)\n"
    "      --mode M          serial, sync, stream, graph, fused, all, or auto (default)\n"
    "      --backend B       host, cuda, or auto (default): GPUs if each process has one\n"
    "      --transport T     shm, tcp, ucx, auto+ucx (between hosts); GPUs: p2p:vmm, p2p:ipc\n"
    "      --verify          compare with serial, bit for bit; --verify-ranks N: on N ranks\n"
    "      --set K=V         override a param\n"
    "      --steps S         stop after S steps; --exposed: measure what messages add\n"
    "      --processes P     processes (default: one a rank, at most one a GPU)\n"
    "      --hosts a:2,b:2   on these, by --agent 'ip netns exec'; --network-interface, -ports\n"
    "      --threads T       workers a process (default: its share of the cores)\n"
    "      --deadline D      longest wait without progress (default 30s), not of kernels\n"
    "      --lower K=V,...   on GPUs: force how work is launched (the guide has the words)\n"
    "      --check-footprints  find what kernels touch beyond their declared accesses\n"
    "      --allow-outside   kernels and data may lie outside the spec's folder\n"
    "      --watch nan=N     look for NaN after every N steps (default 100; `inf`, too)\n"
    "      --machine F.yaml  times that mode auto predicts with; --no-tuning: no tuned answer\n"
    "      --json, -q, -h    JSON (schema peal.run/1), only verdict and errors, this text\n"
    "\n"
    "example: peal run samples/heat3d -n 4 --mode all --verify --set steps=50\n",
    run_verb};

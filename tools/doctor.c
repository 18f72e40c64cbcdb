/* `peal doctor`: what this machine offers, what is off and why, and a verified transfer over every
 * path. */
#define _GNU_SOURCE
#include "tools/doctor.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/network/network.h"
#include "tools/command.h"
#include "tools/job.h"
#include "tools/output.h"
#include "tools/run.h"

#include "peal_config.h"

#include "base/memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

void findings_add(peal_findings *findings, const char *name, int state, const char *format, ...)
{
    if (findings->count == MAX_FINDINGS)
        return;
    peal_finding *item = &findings->item[findings->count++];
    va_list arguments;
    va_start(arguments, format);
    snprintf(item->name, sizeof(item->name), "%s", name);
    item->state = state;
    vsnprintf(item->text, sizeof(item->text), format, arguments);
    va_end(arguments);
}

/* The number behind "KEY:" in /proc/meminfo, in bytes; -1: unknown. */
static int64_t meminfo(const char *key)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[128];
    int64_t kib = -1;
    while (file && fgets(line, sizeof(line), file))
        if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':')
            kib = strtoll(line + strlen(key) + 1, NULL, 10);
    if (file)
        fclose(file);
    return kib < 0 ? -1 : kib * 1024;
}

static void look_at_machine(peal_findings *out)
{
    findings_add(out, "cores", FINDING_ON, "%d for this process, %ld online", machine_cores(),
                 sysconf(_SC_NPROCESSORS_ONLN));
    findings_add(out, "caches", FINDING_ON, "L1 %s, L2 %s, L3 %s",
                 text_bytes(sysconf(_SC_LEVEL1_DCACHE_SIZE)).s,
                 text_bytes(sysconf(_SC_LEVEL2_CACHE_SIZE)).s,
                 text_bytes(sysconf(_SC_LEVEL3_CACHE_SIZE)).s);
    findings_add(out, "memory", FINDING_ON, "%s available of %s",
                 text_bytes(meminfo("MemAvailable")).s, text_bytes(meminfo("MemTotal")).s);
}

/* Ranks of different processes meet in sealed memfds. */
static void look_at_shared_memory(peal_findings *out)
{
    int descriptor = peal_memory_file("peal-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const char *failed = descriptor < 0 ? "memfd_create" : NULL;
    if (!failed && posix_fallocate(descriptor, 0, 1 << 20))
        failed = "posix_fallocate";
    if (!failed && fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
        failed = "sealing";
    if (failed)
        findings_add(out, "shared memory", FINDING_FAILED, "%s: %s", failed, strerror(errno));
    else
        findings_add(out, "shared memory", FINDING_ON, "sealed memfd");
    if (descriptor >= 0)
        close(descriptor);
}

static void look_at_compiler(peal_findings *out)
{
    const char *name = getenv("CC");
    char command[300], line[160] = "";
    name = name && *name ? name : "cc";
    snprintf(command, sizeof(command), "%s --version 2>/dev/null", name);
    FILE *pipe = popen(command, "r");
    if (pipe && !fgets(line, sizeof(line), pipe))
        line[0] = 0;
    int code = pipe ? pclose(pipe) : -1;
    line[strcspn(line, "\n")] = 0;
    if (code == 0 && line[0])
        findings_add(out, "compiler", FINDING_ON, "%s: %s", name, line);
    else
        findings_add(out, "compiler", FINDING_OFF,
                     "'%s' doesn't run: specs with kernels cannot run; install gcc or set CC",
                     name);
}

/* What carries messages between hosts. */
static void look_at_networks(peal_findings *out)
{
    char text[200];
    for (peal_transport_kind kind = PEAL_TRANSPORT_TCP; kind < PEAL_TRANSPORT_COUNT; kind++) {
        bool usable = peal_network_describe(kind, text, sizeof(text));
        char title[40];
        snprintf(title, sizeof(title), "network %s", peal_transport_name(kind));
        findings_add(out, title, usable ? FINDING_ON : FINDING_OFF, "%s", text);
    }
}

static void look_at_parts(peal_findings *out)
{
    int number;
    findings_add(out, "yaml", PEAL_HAVE_YAML ? FINDING_ON : FINDING_OFF,
                 PEAL_HAVE_YAML ? "specs in YAML" : "built without libyaml: only the C builder");
    if (!PEAL_HAVE_PMIX)
        findings_add(out, "pmix", FINDING_OFF,
                     "built without libpmix: `peal run -n N` starts processes, mpirun can't");
    else
        findings_add(out, "pmix", FINDING_ON, "%s",
                     peal_bootstrap_is_launched(&number)
                         ? "this process was started by a launcher"
                         : "`peal run -n N` starts processes; mpirun, srun, prun can too");
    findings_add(out, "hwloc", PEAL_HAVE_HWLOC ? FINDING_ON : FINDING_OFF,
                 PEAL_HAVE_HWLOC ? "thread placement" : "built without it: threads aren't placed");
    look_at_gpus(out);
    look_at_networks(out);
}

/* Starts this command again in two processes, which only transfer. */
static peal_status transfer_between_processes(peal_diagnostics *diagnostics)
{
    char *const words[] = {"peal", "doctor", "--quiet"};
    return launch_command(2, words, 3, INT64_C(30000000000), diagnostics);
}

static peal_status open_session(const peal_options *options, peal_session **out)
{
    const peal_session_desc desc = {.size_bytes = sizeof(desc),
                                    .deadline_s = (double)options->deadline_ns * 1e-9,
                                    .log_level = PEAL_LOG_ERROR,
                                    .log = stderr,
                                    .network_interface = options->network_interface,
                                    .network_ports = {options->network_ports[0],
                                                      options->network_ports[1]}};
    return peal_session_create(&desc, out);
}

/* Within this process. */
static peal_status transfer_alone(const peal_options *options, peal_diagnostics *diagnostics)
{
    peal_session *session = NULL;
    peal_status status = open_session(options, &session);
    if (status == PEAL_STATUS_OK)
        status = transfer_verify(session, 2, options, diagnostics);
    peal_session_destroy(session);
    return status;
}

static peal_status look_at_paths(const peal_options *options, peal_findings *out,
                                 peal_diagnostics *diagnostics)
{
    peal_status self = transfer_alone(options, diagnostics), shm = PEAL_STATUS_OK;
    findings_add(out, "path self", self == PEAL_STATUS_OK ? FINDING_ON : FINDING_FAILED, "%s",
                 self == PEAL_STATUS_OK ? "verified: 2 ranks of one process, sync, stream, fused"
                                        : peal_status_name(self));
    shm = transfer_between_processes(diagnostics);
    findings_add(out, "path shm", shm == PEAL_STATUS_OK ? FINDING_ON : FINDING_FAILED, "%s",
                 shm == PEAL_STATUS_OK ? "verified: 2 processes of this host, sync, stream, fused"
                                       : peal_status_name(shm));
    if (options->network)
        findings_add(out, "hosts", FINDING_OFF,
                     "start it by mpirun, srun or prun on several to measure between them");
    return self != PEAL_STATUS_OK ? self : shm;
}

/* Between the processes that a launcher has started, which all come here. */
static peal_status look_at_launcher(const peal_options *options, peal_findings *out,
                                    peal_diagnostics *diagnostics)
{
    peal_session *session = NULL;
    peal_status status = open_session(options, &session);
    if (status == PEAL_STATUS_OK)
        status = transfer_verify(session, 0, options, diagnostics);
    findings_add(out, "launcher", status == PEAL_STATUS_OK ? FINDING_ON : FINDING_FAILED, "%s",
                 status == PEAL_STATUS_OK
                     ? "verified: between all processes of this job, sync, stream, fused"
                     : peal_status_name(status));
    if (options->network && status == PEAL_STATUS_OK)
        status = look_at_hosts(session, out);
    peal_session_destroy(session);
    return status;
}

static void print_text(const peal_findings *findings)
{
    static const char *const states[] = {"ok", "off", "FAILED"};
    const char *name, *use;
    for (int i = 0; i < findings->count; i++)
        printf("%-14s %-7s %s\n", findings->item[i].name, states[findings->item[i].state],
               findings->item[i].text);
    puts("\nEnvironment variables:");
    for (int i = 0; environment_describe(i, &name, &use); i++)
        printf("  %-12s %s%s\n", name, use, getenv(name) ? " (set)" : "");
}

static void print_json(const peal_findings *findings)
{
    static const char *const states[] = {"ok", "off", "failed"};
    json_t *object = json_begin("peal.doctor/1"), *list = json_array();
    for (int i = 0; i < findings->count; i++)
        json_array_append_new(list, json_pack("{s:s,s:s,s:s}", "name", findings->item[i].name,
                                              "state", states[findings->item[i].state], "text",
                                              findings->item[i].text));
    json_object_set_new(object, "version", json_string(PEAL_VERSION));
    json_object_set_new(object, "cores", json_integer(machine_cores()));
    json_object_set_new(object, "cache_bytes", json_integer(machine_cache_bytes()));
    json_object_set_new(object, "findings", list);
    json_print(object);
}

static peal_status run(const peal_options *options, peal_diagnostics *diagnostics)
{
    if (options->subject)
        return peal_report(diagnostics, PEAL_E_WRONG_ARGUMENTS, PEAL_NO_SOURCE, NULL,
                           "`peal doctor` takes no argument, not '%s'", options->subject);
    peal_findings findings = {.count = 0};
    int number = 0; /* asked now: libpmix changes the environment */
    bool is_launched = peal_bootstrap_is_launched(&number);
    bool leads = !is_launched || number <= 0;
    peal_status enough = descriptors_check(FILES_OF_A_MEMBER + 2 * FILES_A_PROCESS, diagnostics);
    if (enough != PEAL_STATUS_OK)
        return enough;
    look_at_machine(&findings);
    look_at_shared_memory(&findings);
    look_at_compiler(&findings);
    look_at_parts(&findings);
    if (options->network)
        look_at_network(&findings);
    peal_status status = is_launched ? look_at_launcher(options, &findings, diagnostics)
                                     : look_at_paths(options, &findings, diagnostics);
    if (!leads || (options->quiet && !status))
        return status;
    if (options->format == FORMAT_JSON)
        print_json(&findings);
    else
        print_text(&findings);
    return status;
}

const peal_command doctor_command = {
    "doctor", VERB_DOCTOR,
    "usage: peal doctor [--network] [--json | --quiet]\n"
    "\n"
    "Shows what this machine offers and why something is off, and sends a pattern over\n"
    "every path between ranks (within a process, between processes) in every mode,\n"
    "comparing each element. Exit code 0: everything that is on works. Under a launcher\n"
    "(mpirun, srun, prun) it does so between the processes of the job.\n"
    "\n"
    "  --network   interfaces, adapters and ports, too; under a launcher what messages\n"
    "              between each two hosts take (--network-interface, --network-ports as in run)\n"
    "  --json      as JSON (schema peal.doctor/1)\n"
    "  -q, --quiet say nothing if all is fine\n"
    "  -h, --help  this text\n"
    "\n"
    "example: mpirun --host a,b -n 2 peal doctor --network\n",
    run};

/* The command `peal`: finds the verb, reads its options, runs it, and turns its status into the
 * exit code. A new verb is one file and one line in `commands`. */
#define _POSIX_C_SOURCE 200809L
#include "tools/command.h"
#include "tools/output.h"
#include "tools/watchdog.h"

#include "base/phase.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static const peal_command *const commands[] = {&run_command,      &check_command,   &plan_command,
                                               &simulate_command, &tune_command,    &doctor_command,
                                               &schema_command,   &explain_command, &bench_command,
                                               &version_command};
enum { COMMAND_COUNT = sizeof(commands) / sizeof(*commands) };

static const char usage[] =
    "usage: peal VERB [options] [SPEC]\n"
    "\n"
    "peal compiles declared halo exchanges and tasks into schedules, and runs them.\n"
    "\n"
    "  run      run a spec, in one mode or in all\n"
    "  check    report every problem of a spec\n"
    "  plan     print the schedule: text, JSON or Graphviz\n"
    "  simulate run the schedules of many ranks in virtual time\n"
    "  tune     measure which mode is the fastest, for --mode auto\n"
    "  explain  a diagnostic (E009), or which modes can run a spec and why\n"
    "  bench    measure this machine, for simulate and explain\n"
    "  doctor   what this machine offers, and a verified transfer over every path\n"
    "  schema   the JSON Schema of the spec format\n"
    "  version  version and parts of this build\n"
    "\n"
    "`peal help VERB` or `peal VERB --help` shows a verb's options.\n"
    "\n"
    "Exit codes: 0 ok, 1 wrong result, 2 usage, 3 spec, 4 environment, 5 peer lost,\n"
    "6 deadline, 7 device, 8 internal, 130 interrupted, 141 output closed,\n"
    "143 terminated.\n"
    "\n"
    "  peal run samples/jacobi2d -n 4 --mode all --verify\n";

static const peal_command *find_command(const char *name)
{
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

static peal_status report_unknown_verb(const char *name, peal_diagnostics *diagnostics)
{
    static const peal_source nowhere;
    const char *names[COMMAND_COUNT];
    char hint[80];
    for (int i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i]->name;
    const char *nearest = peal_nearest_word(name, names, COMMAND_COUNT);
    snprintf(hint, sizeof(hint),
             nearest ? "did you mean `peal %s`?" : "`peal --help` lists the verbs", nearest);
    return peal_report(diagnostics, PEAL_E_UNKNOWN_VERB, nowhere, hint, "there is no verb '%s'",
                       name);
}

static peal_status run_verb(const peal_command *command, int argc, char **argv,
                            peal_diagnostics *diagnostics)
{
    peal_options options;
    peal_status status = options_parse(&options, command->verb, argc, argv, diagnostics);
    if (options.help) {
        fputs(command->help, stdout);
        return PEAL_STATUS_OK;
    }
    if (status != PEAL_STATUS_OK)
        return status;
    watchdog_deadline(options.deadline_ns);
    peal_phase_enter(0, "the verb %s", command->name);
    options.words = argv - 2;
    options.word_count = argc + 2;
    if (!output_is_follower() && !getenv("PEAL_LAUNCH_CHILD"))
        environment_check(diagnostics);
    return command->run(&options, diagnostics);
}

/* `peal schema | head`: the reader has seen enough. */
static bool reader_has_gone(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&output, 1, 0) == 1 && (output.revents & POLLERR);
}

/* A full disk must not look like success. */
static peal_status flush_output(peal_status status, peal_diagnostics *diagnostics)
{
    static const peal_source nowhere;
    if ((fflush(stdout) == 0 && !ferror(stdout)) || reader_has_gone())
        return status;
    peal_report(diagnostics, PEAL_E_OUTPUT_NOT_WRITTEN, nowhere, NULL,
                "writing to standard output failed");
    return status == PEAL_STATUS_OK ? PEAL_STATUS_ENVIRONMENT : status;
}

/* The next file that is opened would take the number of a stream that is closed, and what is
 * printed would land in it. On these, reading and writing fail as before. */
static void occupy_closed_streams(void)
{
    for (int stream = 0; stream <= 2; stream++)
        if (fcntl(stream, F_GETFD) < 0 &&
            open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return;
}

/* The launcher's death continues a process that is stopped (runtime/launch/child.c). LeakSanitizer
 * stops this one in its exit handlers, and would wait for ever for a stop that was taken back. */
static void forget_launcher(void)
{
    int number = 0;
    if (prctl(PR_GET_PDEATHSIG, &number) == 0 && number == SIGCONT)
        prctl(PR_SET_PDEATHSIG, 0);
}

/* Before anything takes more: so little would end in a segmentation fault. */
static bool has_stack(void)
{
    enum { LEAST_KIB = 128 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur >= LEAST_KIB * 1024)
        return true;
    fprintf(stderr,
            "peal: error: the stack is limited to %llu KiB, and peal needs %d [%s]\n"
            "    raise the limit: ulimit -s 8192\n",
            (unsigned long long)limit.rlim_cur / 1024, LEAST_KIB,
            peal_code_number(PEAL_E_STACK_TOO_SMALL));
    return false;
}

int main(int argc, char **argv)
{
    occupy_closed_streams();
    if (!has_stack())
        return PEAL_STATUS_ENVIRONMENT;
    signal(SIGCHLD, SIG_DFL); /* who ignores it hands that on, and learns nothing of its children */
    watchdog_start();
    peal_diagnostics *diagnostics = peal_diagnostics_create();
    if (!diagnostics) {
        fputs("peal: error: out of memory [E367]\n", stderr);
        return PEAL_STATUS_ENVIRONMENT;
    }
    signal(SIGPIPE, SIG_IGN);
    peal_status status = PEAL_STATUS_OK;
    const char *name = argc > 1 ? argv[1] : "--help";
    if (!strcmp(name, "help") && argc > 2) {
        const peal_command *command = find_command(argv[2]);
        if (command)
            fputs(command->help, stdout);
        else
            status = report_unknown_verb(argv[2], diagnostics);
    } else if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        fputs(usage, argc > 1 ? stdout : stderr);
        status = argc > 1 ? PEAL_STATUS_OK : PEAL_STATUS_USAGE;
    } else {
        const peal_command *command = find_command(strcmp(name, "--version") ? name : "version");
        status = command ? run_verb(command, argc - 2, argv + 2, diagnostics)
                         : report_unknown_verb(name, diagnostics);
    }
    status = flush_output(status, diagnostics);
    if (!output_is_follower() || status != PEAL_STATUS_SPEC)
        peal_diagnostics_print(diagnostics, stderr, strcmp(name, "check") ? 20 : 0);
    peal_diagnostics_destroy(diagnostics);
    peal_phase_enter(1, "the end of the process");
    forget_launcher();
    return (int)status;
}

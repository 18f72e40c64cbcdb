/* Jobs under peal's own launcher: how they end, and that nothing is left.
 *
 * The launcher runs in a forked process, as the command would; results come by shared memory. */
#define _GNU_SOURCE
#include "runtime/launch/launch.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char *job;
static bool ignores_children; /* the launcher */

typedef struct outcome {
    int status, exit_code, children_left;
    char text[512]; /* all diagnostics */
} outcome;

static void print_diagnostics(const peal_diagnostics *list, char *text, size_t bytes)
{
    size_t at = 0;
    for (int i = 0; i < peal_diagnostics_count(list) && at < bytes; i++)
        at += (size_t)snprintf(text + at, bytes - at, "%s %s\n",
                               peal_code_number(peal_diagnostics_at(list, i)->code),
                               peal_diagnostics_at(list, i)->message);
}

static int count_entries(const char *folder)
{
    int count = 0;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        count += entry->d_name[0] != '.';
    if (entries)
        closedir(entries);
    return count;
}

static void launch_in_child(int processes, const char *program, char *const *argv, outcome *result)
{
    peal_diagnostics *list = peal_diagnostics_create();
    peal_launch_desc desc = {.processes = processes, .program = program, .argv = argv};
    char number[16];
    snprintf(number, sizeof(number), "%d", processes);
    setenv("TEST_PROCESSES", number, 1);
    /* What an outer launcher would have left: must not be believed. */
    setenv("PMIX_NAMESPACE", "outer@1", 1);
    setenv("PMIX_RANK", "7", 1);
    setenv("PMIX_SERVER_URI4", "outer.0;tcp4://127.0.0.1:1", 1);
    alarm(100);
    if (ignores_children)
        signal(SIGCHLD, SIG_IGN);
    result->status = (int)peal_launch(&desc, list, &result->exit_code);
    result->children_left = waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD;
    print_diagnostics(list, result->text, sizeof(result->text));
    peal_diagnostics_destroy(list);
    _exit(0);
}

static outcome launch(int processes, const char *program, const char *action, const char *victim,
                      const char *code)
{
    char folder[] = "/tmp/peal-test-XXXXXX";
    const char *const argv[] = {"job", action, victim, code, NULL};
    outcome *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    assert_non_null(mkdtemp(folder));
    shared->status = shared->exit_code = -1;
    fflush(NULL);
    pid_t pid = fork();
    if (!pid) {
        setenv("TMPDIR", folder, 1);
        launch_in_child(processes, program, (char *const *)argv, shared);
    }
    int wait_status = 0;
    assert_int_equal(waitpid(pid, &wait_status, 0), pid);
    assert_true(WIFEXITED(wait_status));
    outcome result = *shared;
    munmap(shared, sizeof(*shared));
    assert_int_equal(count_entries(folder), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(result.children_left, 0);
    return result;
}

static void check_good(void **state)
{
    const int sizes[] = {1, 2, 5};
    (void)state;
    for (int i = 0; i < 3; i++) {
        outcome result = launch(sizes[i], job, "ok", NULL, NULL);
        assert_int_equal(result.status, PEAL_STATUS_OK);
        assert_int_equal(result.exit_code, 0);
        assert_string_equal(result.text, "");
    }
}

/* The process that failed first decides; those that ended because of it don't hide it. */
static void check_exit_code(void **state)
{
    (void)state;
    outcome result = launch(5, job, "exit", "3", "7");
    assert_int_equal(result.status, PEAL_STATUS_OK);
    assert_int_equal(result.exit_code, 7);
    result = launch(2, job, "plain", "3", NULL);
    assert_int_equal(result.exit_code, 3);
    assert_non_null(strstr(result.text, "E334"));
    result = launch(2, job, "plain", "5", NULL);
    assert_int_equal(result.exit_code, 5);
}

static void check_killed(void **state)
{
    (void)state;
    for (int victim = 0; victim < 3; victim++) {
        char number[8], expected[64];
        snprintf(number, sizeof(number), "%d", victim);
        snprintf(expected, sizeof(expected), "E333 process %d (pid ", victim);
        outcome result = launch(3, job, "kill", number, "9");
        assert_int_equal(result.exit_code, PEAL_STATUS_PEER_LOST);
        assert_non_null(strstr(result.text, expected));
        assert_non_null(strstr(result.text, "was killed by signal 9 (Killed)"));
    }
}

/* Processes that take no notice are ended too. */
static void check_stubborn(void **state)
{
    (void)state;
    outcome result = launch(3, job, "stubborn", "1", NULL);
    assert_int_equal(result.exit_code, PEAL_STATUS_PEER_LOST);
    assert_non_null(strstr(result.text, "E333 process 1 (pid "));
}

static void check_abort(void **state)
{
    (void)state;
    outcome result = launch(3, job, "abort", "1", "4");
    assert_int_equal(result.exit_code, 4);
    assert_non_null(strstr(result.text, "E335 process 1 aborted the job with code 4: told"));
}

static void check_signals(void **state)
{
    (void)state;
    outcome result = launch(3, job, "signal", "0", "2");
    assert_int_equal(result.exit_code, PEAL_STATUS_INTERRUPT);
    result = launch(3, job, "signal", "0", "15");
    assert_int_equal(result.exit_code, PEAL_STATUS_TERMINATED);
}

/* Started, but never joins: the others name it and give up, which ends it. */
static void check_absent(void **state)
{
    (void)state;
    outcome result = launch(3, job, "absent", "2", NULL);
    assert_int_equal(result.exit_code, PEAL_STATUS_DEADLINE);
}

/* A launcher that is killed takes its processes with it. */
static void check_launcher_killed(void **state)
{
    char folder[] = "/tmp/peal-test-XXXXXX", byte;
    const char *const argv[] = {"job", "signal", "0", "9", NULL};
    outcome unused;
    int alive[2], wait_status = 0;
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(pipe(alive), 0); /* open for as long as a process of the job lives */
    fflush(NULL);
    pid_t pid = fork();
    if (!pid) {
        close(alive[0]);
        setenv("TMPDIR", folder, 1);
        launch_in_child(3, job, (char *const *)argv, &unused);
    }
    close(alive[1]);
    assert_int_equal(waitpid(pid, &wait_status, 0), pid);
    assert_true(WIFSIGNALED(wait_status));
    assert_int_equal(read(alive[0], &byte, 1), 0);
    close(alive[0]);
    assert_int_equal(count_entries(folder), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void check_refused(void **state)
{
    (void)state;
    outcome result = launch(2, "/nonexistent/program", "ok", NULL, NULL);
    assert_int_equal(result.status, PEAL_STATUS_ENVIRONMENT);
    assert_int_equal(result.exit_code, -1);
    assert_non_null(strstr(result.text, "E332 cannot find the program /nonexistent/program"));
    result = launch(0, job, "ok", NULL, NULL);
    assert_int_equal(result.status, PEAL_STATUS_ENVIRONMENT);
    /* Executable, but not a program. */
    char path[] = "/tmp/peal-test-program-XXXXXX";
    int file = mkstemp(path);
    assert_int_equal(fchmod(file, 0700), 0);
    assert_int_equal(write(file, "\177ELFnothing", 11), 11);
    close(file);
    result = launch(2, path, "ok", NULL, NULL);
    unlink(path);
    assert_int_equal(result.status, PEAL_STATUS_ENVIRONMENT);
    assert_non_null(strstr(result.text, "E332 process 0: cannot start"));
}

/* PEAL_E_NO_SOCKET_TO_PROCESS: without descriptors for the lines to the processes. */
static void check_few_descriptors(void **state)
{
    (void)state;
    struct rlimit before, few;
    bool seen = false;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (rlim_t limit = 4; limit < 20; limit++) {
        few = before;
        few.rlim_cur = limit;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        outcome result = launch(32, job, "ok", NULL, NULL);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(result.status, PEAL_STATUS_ENVIRONMENT);
        assert_int_equal(result.exit_code, -1);
        const char *refusal = "E331 no line to process ";
        seen = seen || strstr(result.text, refusal);
    }
    assert_true(seen); /* else it was always another descriptor that was one too many */
}

/* Exit code 0 is no success of a process that was in the middle of the job. */
static void check_silent(void **state)
{
    (void)state;
    outcome result = launch(1, job, "silent", "0", NULL);
    assert_int_equal(result.exit_code, PEAL_STATUS_PEER_LOST);
    assert_non_null(strstr(result.text, "E317 process 0 (pid "));
    result = launch(3, job, "silent", "-1", NULL); /* all of them */
    assert_int_equal(result.exit_code, PEAL_STATUS_PEER_LOST);
    assert_non_null(strstr(result.text, "E317 process "));
}

/* What a process has started ends with the job, though its parent is gone. */
static void check_orphans(void **state)
{
    (void)state;
    outcome result = launch(2, job, "orphan", "1", NULL);
    assert_int_equal(result.exit_code, PEAL_STATUS_PEER_LOST);
    assert_int_equal(result.children_left, 0);
}

/* Found in PATH; exit codes of any program. */
/* The job ends, and nobody takes it for a success: how its processes have ended is lost. */
static void check_ignored(void **state)
{
    (void)state;
    ignores_children = true;
    outcome result = launch(2, job, "ok", NULL, NULL);
    ignores_children = false;
    assert_int_equal(result.exit_code, 5);
    assert_non_null(strstr(result.text, "E317 process "));
    assert_non_null(strstr(result.text, "how is not known"));
}

static void check_path(void **state)
{
    (void)state;
    outcome result = launch(2, "true", "ok", NULL, NULL);
    assert_int_equal(result.exit_code, 0);
    result = launch(2, "false", "ok", NULL, NULL);
    assert_int_equal(result.exit_code, 1);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    job = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_good),    cmocka_unit_test(check_exit_code),
        cmocka_unit_test(check_killed),  cmocka_unit_test(check_stubborn),
        cmocka_unit_test(check_abort),   cmocka_unit_test(check_signals),
        cmocka_unit_test(check_absent),  cmocka_unit_test(check_launcher_killed),
        cmocka_unit_test(check_refused), cmocka_unit_test(check_ignored),
        cmocka_unit_test(check_path),    cmocka_unit_test(check_few_descriptors),
        cmocka_unit_test(check_silent),  cmocka_unit_test(check_orphans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Programs that are run to their end: how they have ended is known, whatever the application does
 * about its children. */
#define _GNU_SOURCE
#include "base/program.h"
#include "tests/backends/check.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

extern char **environ;

static peal_program_end run(const char *script, int *code)
{
    const char *const words[] = {"sh", "-c", script, NULL};
    const peal_program program = {.argv = words, .environment = environ};
    return peal_program_run(&program, code);
}

static void check_ends(void)
{
    int code = -1;
    assert_int_equal(run("exit 0", &code), PEAL_PROGRAM_EXITED);
    assert_int_equal(code, 0);
    assert_int_equal(run("exit 3", &code), PEAL_PROGRAM_EXITED);
    assert_int_equal(code, 3);
    assert_int_equal(run("kill -TERM $$", &code), PEAL_PROGRAM_SIGNALED);
    assert_int_equal(code, SIGTERM);
    assert_int_equal(run("kill -KILL $PPID", &code), PEAL_PROGRAM_SIGNALED);
    assert_int_equal(code, SIGKILL);
    assert_int_equal(run("[ ! -e /proc/self/fd/3 ] || exit 4", &code), PEAL_PROGRAM_EXITED);
    assert_int_equal(code, 0);
}

static void by_default(void **state)
{
    (void)state;
    check_ends();
}

static void children_are_ignored(void **state)
{
    (void)state;
    signal(SIGCHLD, SIG_IGN);
    check_ends();
    signal(SIGCHLD, SIG_DFL);
}

static void take_all(int number)
{
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

static void a_handler_waits_for_all(void **state)
{
    (void)state;
    signal(SIGCHLD, take_all);
    check_ends();
    signal(SIGCHLD, SIG_DFL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_default),
                                       cmocka_unit_test(children_are_ignored),
                                       cmocka_unit_test(a_handler_waits_for_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

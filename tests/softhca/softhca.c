/* Runs a program, and the processes that it starts, with a software adapter under libibverbs.
 *
 *   softhca [FORM ...] LIBRARY PROGRAM [WORD ...]
 *
 * LIBRARY is the preloaded half. The data half is this process; with --threads, a thread of each
 * process that opens the device. Forms: --steps, each store to a register is seen before the next
 * instruction; --slow, the adapter rests between entries; --late, entries are acknowledged late,
 * and fetched again; --shuffle, packets of a message arrive in any order, some twice; --fail=N,
 * entry N ends its queue with an error; --die=N, the adapter does nothing behind entry N; --down=N,
 * nor does it then, and its port says so; --lose=N, of N entries one is lost once; --refuse=N, this
 * registration of memory is; --most-bytes=N, of a message. Ends with the program's exit code, or 99
 * if the adapter saw what it must not see. SOFTHCA_SAY=1: it says what was done. */
#define _GNU_SOURCE
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IDLE_TURNS = 200, SWEPT = 20000, WRONG = 99, FAILED = 98 };

/* What libibverbs reads of a device. */
static const char *const sys[][2] = {{"class/infiniband_verbs/abi_version", "6\n"},
                                     {"class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n"},
                                     {"class/infiniband_verbs/uverbs0/abi_version", "1\n"},
                                     {"class/infiniband_verbs/uverbs0/dev", "231:192\n"},
                                     {"class/infiniband/mlx5_0/node_type", "1: CA\n"},
                                     {"class/infiniband/mlx5_0/node_guid", "0002:c903:0000:0001\n"},
                                     {"class/infiniband/mlx5_0/fw_ver", "22.0.0\n"},
                                     {"class/infiniband/mlx5_0/device/modalias",
                                      "pci:v000015B3d00001021sv000015B3sd00000001bc02sc07i00\n"},
                                     {"class/infiniband/mlx5_0/ports/1/gids/0",
                                      "fe80:0000:0000:0000:0002:c903:0000:0001\n"},
                                     {"class/infiniband/mlx5_0/ports/1/gid_attrs/types/0",
                                      "IB/RoCE v1\n"},
                                     {"class/infiniband/mlx5_0/ports/1/pkeys/0", "0xffff\n"}};

static char folder[100];

hca_world *hca_open_world(const char *in)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/world", in);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof(hca_world)))
        return NULL;
    void *at = mmap(NULL, sizeof(hca_world), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return at == MAP_FAILED ? NULL : at;
}

static bool write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/sys/%s", folder, name);
    for (char *c = path + strlen(folder) + 1; *c; c++) {
        if (*c != '/')
            continue;
        *c = 0;
        if (mkdir(path, 0700) && errno != EEXIST)
            return false;
        *c = '/';
    }
    FILE *out = fopen(path, "we");
    bool done = out && fputs(text, out) >= 0;
    return out && !fclose(out) && done;
}

static int forget(const char *path, const struct stat *of, int kind, struct FTW *where)
{
    (void)of;
    (void)kind;
    (void)where;
    return remove(path);
}

static int fail(const char *what)
{
    fprintf(stderr, "softhca: %s: %s\n", what, strerror(errno));
    return FAILED;
}

static pid_t start(char **words)
{
    pid_t child = fork();
    if (child)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setenv(HCA_FOLDER, folder, 1);
    setenv("LD_PRELOAD", words[0], 1);
    execvp(words[1], words + 1);
    _exit(fail(words[1]));
}

/* Until the program has ended; what it has started may still be at work then, and is not waited
 * for. */
static int serve(hca_world *world, pid_t child)
{
    int status = 0, idle = 0;
    if (world->form.by_threads) {
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        return status;
    }
    while (true) {
        idle = hca_turn(world, 0) ? 0 : idle + 1;
        if (idle <= IDLE_TURNS)
            continue;
        if (idle % IDLE_TURNS == 0 && waitpid(child, &status, WNOHANG) == child)
            return status;
        if (idle % SWEPT == 0)
            hca_sweep(world);
        sched_yield();
    }
}

static bool read_form(const char *word, hca_form *form)
{
    const char *number = strchr(word, '=');
    if (!strcmp(word, "--threads"))
        form->by_threads = true;
    else if (!strcmp(word, "--steps"))
        form->by_steps = true;
    else if (!strcmp(word, "--slow"))
        form->is_slow = true;
    else if (!strcmp(word, "--late"))
        form->is_late = true;
    else if (!strcmp(word, "--shuffle"))
        form->shuffles = true;
    else if (!strncmp(word, "--fail=", 7))
        form->fails_at = strtoull(number + 1, NULL, 10);
    else if (!strncmp(word, "--die=", 6))
        form->dies_at = strtoull(number + 1, NULL, 10);
    else if (!strncmp(word, "--down=", 7))
        form->downs_at = strtoull(number + 1, NULL, 10);
    else if (!strncmp(word, "--refuse=", 9))
        form->refuses = strtoull(number + 1, NULL, 10);
    else if (!strncmp(word, "--lose=", 7))
        form->loses = strtoull(number + 1, NULL, 10);
    else if (!strncmp(word, "--most-bytes=", 13))
        form->most_bytes = strtoull(number + 1, NULL, 10);
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    hca_form form = {0};
    char **words = argv + (argc > 0);
    while (*words && read_form(*words, &form))
        words++;
    if (!words[0] || !words[1] || !strncmp(words[0], "--", 2)) {
        fputs("usage: softhca [--threads] [--steps] [--slow] [--late] [--shuffle] [--fail=N] "
              "[--die=N] [--down=N] [--lose=N] [--refuse=N] [--most-bytes=N] "
              "LIBRARY PROGRAM [WORD ...]\n",
              stderr);
        return FAILED;
    }
    const char *at = getenv("TMPDIR");
    snprintf(folder, sizeof(folder), "%s/softhca-XXXXXX", at && *at ? at : "/tmp");
    if (!mkdtemp(folder))
        return fail(folder);
    hca_world *world = hca_open_world(folder);
    bool made = world;
    for (size_t i = 0; made && i < sizeof(sys) / sizeof(sys[0]); i++)
        made = write_file(sys[i][0], sys[i][1]);
    int code = made ? 0 : fail(folder);
    pid_t child = -1;
    if (made) {
        world->form = form;
        child = start(words);
        code = child < 0 ? fail("fork") : 0;
    }
    if (child > 0) {
        int status = serve(world, child);
        hca_counts *n = &world->counts;
        code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (getenv("SOFTHCA_SAY"))
            fprintf(stderr, "softhca: %lu doorbells, %lu entries, %lu bytes, %lu completions\n",
                    n->doorbells, n->entries, n->bytes, n->completions);
        if (n->wrong) {
            fprintf(stderr, "softhca: %lu times what an adapter must not see\n", n->wrong);
            code = WRONG;
        }
    }
    nftw(folder, forget, 16, FTW_DEPTH | FTW_PHYS);
    return code;
}

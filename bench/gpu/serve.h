/* How a GPU benchmark program is asked. With cases on its command line, an argument each, it does
 * these once. Without, it stays and takes one case a line from stdin ("ring 4096 20"): start,
 * set-up and checks are paid once, and several programs can take turns round by round. While it
 * waits for a line it does nothing.
 *
 * It answers with lines of JSON: {"trying": "case|variant"} before a row is set up and checked, a
 * line a row with its time, {"failed": ..., "why": ...}, and {"done": true} at the end. */
#ifndef PEAL_BENCH_GPU_SERVE_H
#define PEAL_BENCH_GPU_SERVE_H

#include "../measure.h"

#include <unistd.h>

enum { SERVE_LINE = 160, SERVE_WORDS = 8, SERVE_BATCHES = 3, SERVE_NAME = 160 };

/* The next case, or nothing at the end. cases: of the command line, *at of them done; or none. */
static inline void serve_next(char *const *cases, int *at, char line[SERVE_LINE])
{
    int length = 0;
    line[0] = '\0';
    if (cases[0]) {
        snprintf(line, SERVE_LINE, "%s", cases[*at] ? cases[*at] : "");
        *at += cases[*at] != NULL;
        return;
    }
    for (char c; read(STDIN_FILENO, &c, 1) == 1 && c != '\n';) {
        if (length < SERVE_LINE - 1) {
            line[length++] = c;
            line[length] = '\0';
        }
    }
}

/* Splits a line in place; how many words there are. */
static inline int serve_split(char *line, char *word[SERVE_WORDS])
{
    char *rest = NULL;
    int count = 0;
    for (char *one = strtok_r(line, " ", &rest); one; one = strtok_r(NULL, " ", &rest)) {
        if (count < SERVE_WORDS) {
            word[count++] = one;
        }
    }
    return count;
}

static inline void serve_done(void)
{
    printf("{\"done\": true}\n");
    fflush(stdout);
}

static inline void serve_trying(const char *test, const char *variant)
{
    printf("{\"trying\": \"%s|%s\"}\n", test, variant);
    fflush(stdout);
}

/* Whether "case|variant" is in a list separated by ';'. */
static inline bool serve_lists(const char *list, const char *test, const char *variant)
{
    char name[SERVE_NAME];
    const size_t length = (size_t)snprintf(name, sizeof(name), "%s|%s", test, variant);
    for (const char *at = list; at && (at = strstr(at, name)); at += length) {
        if ((at == list || at[-1] == ';') && (at[length] == ';' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* PEAL_BENCH_SKIP: "case|variant;...", what has failed before. */
static inline bool serve_skips(const char *test, const char *variant)
{
    return serve_lists(getenv("PEAL_BENCH_SKIP"), test, variant);
}

/* Of one batch: PEAL_BENCH_BATCH_MS, 8 by default: a start costs peal some 50 us, which count. */
static inline double serve_budget_ns(void)
{
    return getenv("PEAL_BENCH_BATCH_MS") ? bench_budget_ns() : 8e6;
}

/* A row, with the CPU's time of a repetition and `more` keys. */
static inline void serve_print(const bench_result *r, double cpu_ns, const char *more)
{
    printf("{\"bench\": \"%s\", \"case\": \"%s\", \"peer\": \"%s\", \"variant\": \"%s\", "
           "\"kind\": \"%s\", \"ns\": %.1f, \"cpu_ns\": %.1f, "
           "\"digest\": \"%016llx\", \"verified\": %s%s}\n",
           r->bench, r->test, r->peer, r->variant, r->kind, bench_median(r->ns, r->batch_count),
           cpu_ns, (unsigned long long)r->digest, r->verified ? "true" : "false", more);
    fflush(stdout);
}

#endif

/* The record: a line a call into the file that STANDIN_RECORD names, and at exit a line
 * "left KIND COUNT" for each kind of thing that was not given back.
 *
 * STANDIN_FAIL=NAME:N makes the N-th call (from 1) of NAME fail. */
#define _GNU_SOURCE
#include "tests/standin/record.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *record;
static int alive[STANDIN_KINDS];
static char fail_name[64];
static int fail_at, fail_seen;

static const char *const kind_names[STANDIN_KINDS] = {"context", "memory",  "pinned",    "handle",
                                                      "range",   "mapping", "stream",    "event",
                                                      "module",  "graph",   "executable"};

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("STANDIN_RECORD"), *fail = getenv("STANDIN_FAIL");
    if (path)
        record = fopen(path, "ae");
    if (record)
        setvbuf(record, NULL, _IOLBF, 0);
    if (fail)
        sscanf(fail, "%63[^:]:%d", fail_name, &fail_at);
}

__attribute__((destructor)) static void end(void)
{
    for (int i = 0; record && i < STANDIN_KINDS; i++)
        if (alive[i])
            fprintf(record, "left %s %d\n", kind_names[i], alive[i]);
    if (record)
        fclose(record);
}

int standin_call(const char *call)
{
    int fails = 0;
    char name[64];
    snprintf(name, sizeof(name), "%s", call);
    char *version = strstr(name, "_v"); /* cuda.h maps names to the later ones of the functions */
    if (version)
        *version = 0;
    pthread_mutex_lock(&lock);
    if (fail_at && !strcmp(name, fail_name))
        fails = ++fail_seen == fail_at;
    if (record)
        fprintf(record, "%s%s\n", name, fails ? " fails" : "");
    pthread_mutex_unlock(&lock);
    return fails;
}

void standin_bad(const char *name, const char *what)
{
    pthread_mutex_lock(&lock);
    if (record)
        fprintf(record, "bad %s %s\n", name, what);
    pthread_mutex_unlock(&lock);
}

void standin_made(standin_kind kind)
{
    pthread_mutex_lock(&lock);
    alive[kind]++;
    pthread_mutex_unlock(&lock);
}

void standin_gone(standin_kind kind)
{
    pthread_mutex_lock(&lock);
    alive[kind]--;
    pthread_mutex_unlock(&lock);
}

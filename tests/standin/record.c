/* The record: a line a call into the file that STANDIN_RECORD names, and at exit a line
 * "left KIND COUNT" for each kind of thing that was not given back.
 *
 * STANDIN_FAIL=NAME:N makes the N-th call (from 1; -1: each) of NAME fail, in every process;
 * NAME:N@P only in process P of a job;
 * NAME:N+ those after it, too. */
#define _GNU_SOURCE
#include "tests/standin/record.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *record;
static int alive[STANDIN_KINDS];
enum { KNOWN = 256 };
static struct {
    unsigned long long address, bytes;
    unsigned type;
} known[KNOWN];
static char fail_name[64];
static int fail_at, fail_seen;
static char fail_more; /* '+': not only that call */

static const char *const kind_names[STANDIN_KINDS] = {"context",   "memory",     "pinned",
                                                      "handle",    "range",      "mapping",
                                                      "stream",    "event",      "module",
                                                      "graph",     "executable", "opened",
                                                      "registered"};

static void read_failure(const char *text)
{
    const char *mine = getenv("PEAL_LAUNCH_PROCESS"); /* "process/processes" */
    if (!mine)
        mine = getenv("PMIX_RANK");
    int process = -1;
    if (sscanf(text, "%63[^:]:%d%c%d", fail_name, &fail_at, &fail_more, &process) < 4 ||
        fail_more != '@')
        process = -1;
    if (process >= 0 && (!mine || atoi(mine) != process))
        fail_at = 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("STANDIN_RECORD"), *fail = getenv("STANDIN_FAIL");
    if (path)
        record = fopen(path, "ae");
    if (record)
        setvbuf(record, NULL, _IOLBF, 0);
    if (fail)
        read_failure(fail);
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
        fails = ++fail_seen == fail_at || fail_at < 0 || (fail_more == '+' && fail_seen > fail_at);
    if (record)
        fprintf(record, "%s%s\n", name, fails ? " fails" : "");
    pthread_mutex_unlock(&lock);
    return fails;
}

void standin_note(const char *line)
{
    pthread_mutex_lock(&lock);
    if (record)
        fprintf(record, "%s\n", line);
    pthread_mutex_unlock(&lock);
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

void standin_on(const void *stream, const char *name)
{
    uintptr_t number = (uintptr_t)stream;
    pthread_mutex_lock(&lock);
    if (record && number > 0 && number < 4096)
        fprintf(record, "app%u %s\n", (unsigned)number, name);
    pthread_mutex_unlock(&lock);
}

void standin_memory(unsigned long long address, unsigned long long bytes, unsigned type)
{
    pthread_mutex_lock(&lock);
    int place = -1;
    for (int i = 0; i < KNOWN && place < 0; i++)
        if (known[i].bytes == 0 || known[i].address == address)
            place = i;
    if (!bytes) /* what takes its place in the list is found by its address */
        for (int i = 0; i < KNOWN; i++)
            if (known[i].address == address)
                known[i].bytes = 0;
    if (bytes && place >= 0) {
        known[place].address = address;
        known[place].bytes = bytes;
        known[place].type = type;
    }
    pthread_mutex_unlock(&lock);
}

unsigned standin_memory_type(unsigned long long address)
{
    unsigned type = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < KNOWN; i++)
        if (known[i].bytes > 0 && address >= known[i].address &&
            address < known[i].address + known[i].bytes)
            type = known[i].type;
    pthread_mutex_unlock(&lock);
    return type;
}

/* The list of diagnostics, and the table of their numbers. Printing: diagnostic_print.c. */
#define _POSIX_C_SOURCE 200809L
#include "base/diagnostic.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The first FIRST items, then twice as many, and so on: none ever moves, since any thread reads
 * what others have reported. */
enum { FIRST = 16, CHUNKS = 6, MOST = 1000 }; /* there is room for 1008 */

struct peal_diagnostics {
    pthread_mutex_t lock; /* of changes */
    peal_diagnostic *chunk[CHUNKS];
    _Atomic int count; /* store: release, once the item is there; load: acquire */
};

typedef struct code_info {
    const char *number, *name, *title, *explanation;
    peal_status status;
} code_info;

static const code_info codes[PEAL_CODE_COUNT] = {
#define PEAL_DIAGNOSTIC(code_number, code_name, code_status, code_title, code_explanation)         \
    {#code_number, #code_name, code_title, code_explanation, PEAL_STATUS_##code_status},
#include "base/diagnostics.def"
#undef PEAL_DIAGNOSTIC
};

static int chunk_of(int index)
{
    return 31 - __builtin_clz((unsigned)(index / FIRST + 1));
}

static peal_diagnostic *item_of(const peal_diagnostics *list, int index)
{
    int chunk = chunk_of(index);
    return &list->chunk[chunk][index - FIRST * ((1 << chunk) - 1)];
}

peal_diagnostics *peal_diagnostics_create(void)
{
    peal_diagnostics *list = calloc(1, sizeof(*list));
    /* One at least can be told where there is no memory later. */
    peal_diagnostic *item = calloc(FIRST, sizeof(*item));
    if (!list || !item) {
        free(list);
        free(item);
        return NULL;
    }
    list->chunk[0] = item;
    pthread_mutex_init(&list->lock, NULL);
    return list;
}

void peal_diagnostics_take_back(peal_diagnostics *list, int count)
{
    pthread_mutex_lock(&list->lock);
    while (list->count > count) {
        peal_diagnostic *item = item_of(list, --list->count);
        free((char *)(uintptr_t)item->source.file);
        free(item->message);
        free(item->hint);
        peal_story_destroy(item->story);
    }
    pthread_mutex_unlock(&list->lock);
}

void peal_diagnostics_destroy(peal_diagnostics *list)
{
    if (!list)
        return;
    peal_diagnostics_take_back(list, 0);
    for (int i = 0; i < CHUNKS; i++)
        free(list->chunk[i]);
    pthread_mutex_destroy(&list->lock);
    free(list);
}

static char *print_text(const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = malloc((size_t)(length < 0 ? 0 : length) + 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, arguments);
    return text;
}

static bool same_place(const peal_source *a, const peal_source *b)
{
    return a->line == b->line && a->column == b->column &&
           (a->file == b->file || (a->file && b->file && !strcmp(a->file, b->file)));
}

/* What the scheduler says of one place for many ranks is said once, and counted. */
static bool is_said_per_rank(peal_code code)
{
    switch (code) {
#define PEAL_DIAGNOSTIC(number, name, status, title, explanation) case PEAL_E_##name:
#include "base/diagnostics/scheduler.def"
#undef PEAL_DIAGNOSTIC
        return true;
    default:
        return false;
    }
}

static bool is_known(peal_diagnostics *list, const peal_diagnostic *d)
{
    for (int i = 0; i < list->count; i++) {
        peal_diagnostic *other = item_of(list, i);
        if (other->code != d->code || !same_place(&other->source, &d->source) || !other->message ||
            !d->message)
            continue;
        if (!strcmp(other->message, d->message))
            return true;
        if (is_said_per_rank(d->code) && d->source.line > 0) {
            other->repeats++;
            return true;
        }
    }
    return false;
}

static void add(peal_diagnostics *list, peal_diagnostic d)
{
    pthread_mutex_lock(&list->lock);
    int count = list->count;
    bool keep = count < MOST && !is_known(list, &d);
    peal_diagnostic **chunk = keep ? &list->chunk[chunk_of(count)] : NULL;
    if (keep && !*chunk)
        *chunk = calloc((size_t)FIRST << chunk_of(count), sizeof(**chunk));
    keep = keep && *chunk;
    if (keep) {
        /* The list is often printed when the graph that named the file is gone. */
        d.source.file = d.source.file ? strdup(d.source.file) : NULL;
        d.order = count;
        *item_of(list, count) = d;
        atomic_store_explicit(&list->count, count + 1, memory_order_release);
    }
    pthread_mutex_unlock(&list->lock);
    if (!keep) {
        free(d.message);
        free(d.hint);
        peal_story_destroy(d.story);
    }
}

bool peal_diagnostics_want(peal_diagnostics *list, peal_code code, peal_source source)
{
    bool known = !list;
    if (list)
        pthread_mutex_lock(&list->lock);
    for (int i = 0; list && !known && i < list->count; i++)
        known = item_of(list, i)->code == code && same_place(&item_of(list, i)->source, &source);
    if (list)
        pthread_mutex_unlock(&list->lock);
    return !known;
}

static void report(peal_diagnostics *list, peal_diagnostic d, const char *hint,
                   const peal_story *story, const char *format, va_list arguments)
{
    d.message = print_text(format, arguments);
    d.hint = hint ? strdup(hint) : NULL;
    d.story = story && story->event_count ? peal_story_copy(story) : NULL;
    add(list, d);
}

#define REPORT(how, story)                                                                         \
    do                                                                                             \
        if (list) {                                                                                \
            va_list arguments;                                                                     \
            va_start(arguments, format);                                                           \
            report(list, (peal_diagnostic){.code = code, .severity = (how), .source = source},     \
                   hint, (story), format, arguments);                                              \
            va_end(arguments);                                                                     \
        }                                                                                          \
    while (0)

peal_status peal_report(peal_diagnostics *list, peal_code code, peal_source source,
                        const char *hint, const char *format, ...)
{
    REPORT(PEAL_ERROR, NULL);
    return codes[code].status;
}

void peal_warn(peal_diagnostics *list, peal_code code, peal_source source, const char *hint,
               const char *format, ...)
{
    REPORT(PEAL_WARNING, NULL);
}

peal_status peal_report_story(peal_diagnostics *list, peal_code code, peal_source source,
                              const char *hint, const peal_story *story, const char *format, ...)
{
    REPORT(PEAL_ERROR, story);
    return codes[code].status;
}

void peal_warn_story(peal_diagnostics *list, peal_code code, peal_source source, const char *hint,
                     const peal_story *story, const char *format, ...)
{
    REPORT(PEAL_WARNING, story);
}

int peal_diagnostics_count(const peal_diagnostics *list)
{
    return list->count;
}

int peal_diagnostics_errors(const peal_diagnostics *list)
{
    int errors = 0;
    for (int i = 0; i < list->count; i++)
        errors += item_of(list, i)->severity == PEAL_ERROR;
    return errors;
}

const peal_diagnostic *peal_diagnostics_at(const peal_diagnostics *list, int index)
{
    return item_of(list, index);
}

peal_status peal_diagnostics_status(const peal_diagnostics *list)
{
    for (int i = 0; i < list->count; i++)
        if (item_of(list, i)->severity == PEAL_ERROR)
            return codes[item_of(list, i)->code].status;
    return PEAL_STATUS_OK;
}

const char *peal_code_number(peal_code code)
{
    return codes[code].number;
}

const char *peal_code_name(peal_code code)
{
    return codes[code].name;
}

const char *peal_code_title(peal_code code)
{
    return codes[code].title;
}

const char *peal_code_explanation(peal_code code)
{
    return codes[code].explanation;
}

bool peal_code_is_warning(peal_code code)
{
    static const peal_code warnings[] = {PEAL_E_PRINT_DIFFERS_BY_RANK,
                                         PEAL_E_PRINT_NEVER_HAPPENS,
                                         PEAL_E_UNREAD_EXCHANGE,
                                         PEAL_E_SAME_AGAIN,
                                         PEAL_E_NEVER_READ,
                                         PEAL_E_OVERWRITTEN_UNREAD,
                                         PEAL_E_KERNELS_NOT_CACHED,
                                         PEAL_E_JOB_ENDED_BY_PEER,
                                         PEAL_E_UNKNOWN_ENVIRONMENT_VARIABLE,
                                         PEAL_E_STARTED_WITHOUT_PMIX,
                                         PEAL_E_TUNING_NOT_SAVED,
                                         PEAL_E_NO_WHILE_NODE,
                                         PEAL_E_NO_BUNDLES};
    for (size_t i = 0; i < sizeof(warnings) / sizeof(warnings[0]); i++)
        if (warnings[i] == code)
            return true;
    return false;
}

peal_status peal_code_status(peal_code code)
{
    return codes[code].status;
}

bool peal_code_parse(const char *text, peal_code *out)
{
    static const char prefix[] = "PEAL_E_";
    const char *name = text;
    if (!strncasecmp(text, prefix, sizeof(prefix) - 1))
        name += sizeof(prefix) - 1;
    for (int i = 0; i < PEAL_CODE_COUNT; i++)
        if (!strcasecmp(codes[i].number, text) || !strcasecmp(codes[i].name, name)) {
            *out = (peal_code)i;
            return true;
        }
    return false;
}

/* Letters that are missing, too many, wrong, or swapped with their neighbour count 1 each. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t m = strlen(a), n = strlen(b), before[65] = {0}, last[65], row[65] = {0};
    if (m > 64 || n > 64)
        return 64;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; i <= m; i++) {
        memcpy(last, row, sizeof(row));
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
        memcpy(before, last, sizeof(last));
    }
    return row[n];
}

const char *peal_nearest_word(const char *word, const char *const *candidates, size_t count)
{
    size_t length = strlen(word), limit = length / 3 > 0 ? length / 3 : 1, best = limit + 1;
    const char *nearest = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t distance = edit_distance(word, candidates[i]), all = strlen(candidates[i]);
        if (!strcasecmp(word, candidates[i]))
            distance = distance > 0;
        else if (distance >= (all > length ? all : length))
            continue;
        if (distance && distance < best) {
            best = distance;
            nearest = candidates[i];
        }
    }
    return nearest;
}

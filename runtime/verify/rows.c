/* Rows of `print`, on their way to the caller: a sum of all of them, by which modes are compared,
 * and, for a verification, each of them as it was. */
#include "runtime/verify/other_ranks.h"
#include "runtime/verify/verify.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A row that the run has made; its values stand one after the other in `value`. */
typedef struct row {
    int64_t step;
    int first, count;
} row;

struct peal_row_log {
    row *row;
    peal_value *value;
    int row_count, row_room, value_count, value_room;
    bool lost;               /* there was no memory for one */
    int next;                /* of serial's rows: how many have come */
    int wrong;               /* the first that differs; -1: none */
    int column;              /* where; -1: another number of columns, or another step */
    int64_t step;            /* of serial's */
    char name[40];           /* of the column */
    peal_value got;          /* serial's value there */
    peal_likeness *likeness; /* serial runs on other ranks; NULL: on as many */
};

peal_row_log *peal_row_log_create(void)
{
    peal_row_log *log = calloc(1, sizeof(*log));

    if (log)
        log->wrong = -1;
    return log;
}

void peal_row_log_destroy(peal_row_log *log)
{
    if (!log)
        return;
    free(log->row);
    free(log->value);
    free(log);
}

static uint64_t bits_of(const peal_value *value)
{
    uint64_t bits = 0;

    if (value->kind == PEAL_TEXT) {
        for (const char *at = value->u.text; at && *at; at++)
            bits = bits * 31 + (unsigned char)*at;
        return bits;
    }
    if (value->kind == PEAL_BOOLEAN)
        return value->u.boolean;
    if (value->kind == PEAL_INTEGER)
        return (uint64_t)value->u.integer;
    memcpy(&bits, &value->u.real, sizeof(bits));
    return bits;
}

static bool is_same(const peal_value *a, const peal_value *b)
{
    return a->kind == b->kind && bits_of(a) == bits_of(b);
}

/* splitmix64's step: every bit of what came before changes half of the others. */
static uint64_t mix(uint64_t state, uint64_t value)
{
    uint64_t z = state + value + 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static bool has_room(void **list, int *room, int need, size_t bytes)
{
    if (need <= *room)
        return true;
    int wanted = 2 * *room > need ? 2 * *room : need + 16;
    void *grown = realloc(*list, (size_t)wanted * bytes);
    if (!grown)
        return false;
    *list = grown;
    *room = wanted;
    return true;
}

static void keep(peal_row_log *log, int64_t step, int count, const peal_value *values)
{
    void *rows = log->row, *all = log->value;
    bool fits = has_room(&rows, &log->row_room, log->row_count + 1, sizeof(*log->row)) &&
                has_room(&all, &log->value_room, log->value_count + count, sizeof(*log->value));

    log->row = rows;
    log->value = all;
    log->lost |= !fits;
    if (!fits)
        return;
    log->row[log->row_count++] = (row){step, log->value_count, count};
    memcpy(log->value + log->value_count, values, (size_t)count * sizeof(*values));
    log->value_count += count;
}

void peal_plan_take_row(void *user, int64_t step, int count, const char *const *names,
                        const peal_value *values)
{
    peal_plan *plan = user;
    uint64_t hash = mix((uint64_t)step, (uint64_t)count);

    for (int i = 0; i < count; i++)
        hash = mix(mix(hash, values[i].kind), bits_of(&values[i]));
    plan->row_hash = mix(plan->row_hash, hash);
    plan->row_count++;
    peal_watch_row(&plan->watch, step, count, names, values);
    if (plan->row_log)
        keep(plan->row_log, step, count, values);
    if (plan->options.row)
        plan->options.row(plan->options.row_user, step, count, names, values);
}

void peal_row_log_rewind(peal_row_log *log, peal_likeness *likeness)
{
    log->likeness = likeness;
    for (int i = 0; likeness && i < likeness->column_count; i++) {
        peal_alike_column *column = &likeness->column[i];
        column->largest = column->difference = 0;
    }
    log->next = 0;
    log->wrong = -1;
}

static void note_wrong(peal_row_log *log, int column, int64_t step, const char *name,
                       const peal_value *got)
{
    log->wrong = log->next;
    log->column = column;
    log->step = step;
    snprintf(log->name, sizeof(log->name), "%s", name ? name : "");
    if (got)
        log->got = *got;
}

/* Reals of a column that is rounded otherwise on other ranks: judged once all are known. */
static bool take_rounded(peal_alike_column *column, int64_t step, const peal_value *run,
                         const peal_value *serial)
{
    double a = run->u.real, b = serial->u.real;
    if (run->kind != PEAL_REAL || serial->kind != PEAL_REAL || (isnan(a) && isnan(b)))
        return run->kind == PEAL_REAL && serial->kind == PEAL_REAL;
    double difference = a == b ? 0 : isfinite(a) && isfinite(b) ? fabs(a - b) : INFINITY;
    if (isfinite(b) && fabs(b) > column->largest)
        column->largest = fabs(b);
    if (!(difference > column->difference))
        return true;
    column->difference = difference;
    column->step = step;
    column->run = a;
    column->serial = b;
    return true;
}

/* Whether two values of a column may both be. */
static bool is_alike(const peal_row_log *log, int64_t step, const char *name, const peal_value *run,
                     const peal_value *serial)
{
    peal_alike_column *column = log->likeness ? peal_likeness_column(log->likeness, name) : NULL;
    if (column && column->alike == PEAL_OWN_OF_RANK)
        return true;
    if (column && column->alike == PEAL_SAME_BUT_ROUNDING &&
        take_rounded(column, step, run, serial))
        return true;
    return is_same(run, serial);
}

void peal_row_log_compare(void *user, int64_t step, int count, const char *const *names,
                          const peal_value *values)
{
    peal_row_log *log = user;
    const row *mine = log->next < log->row_count ? &log->row[log->next] : NULL;

    if (log->wrong < 0 && mine && (mine->step != step || mine->count != count))
        note_wrong(log, -1, step, NULL, NULL);
    for (int i = 0; log->wrong < 0 && mine && i < count; i++)
        if (!is_alike(log, step, names[i], &log->value[mine->first + i], &values[i]))
            note_wrong(log, i, step, names[i], &values[i]);
    log->next++;
}

static void print_value(const peal_value *value, char *text, size_t bytes)
{
    if (value->kind == PEAL_INTEGER)
        snprintf(text, bytes, "%" PRId64, value->u.integer);
    else if (value->kind == PEAL_BOOLEAN)
        snprintf(text, bytes, "%s", value->u.boolean ? "true" : "false");
    else if (value->kind == PEAL_TEXT)
        snprintf(text, bytes, "'%s'", value->u.text);
    else
        snprintf(text, bytes, "%.17g", value->u.real);
}

static peal_status judge_column(const peal_alike_column *column, peal_diagnostics *diagnostics)
{
    if (column->difference <= peal_rounding_of(column->type) * column->largest)
        return PEAL_STATUS_OK;
    return peal_report(diagnostics, PEAL_E_RANKS_DIFFER, PEAL_NO_SOURCE,
                       "try --check-footprints: a kernel may touch more than it declares",
                       "column '%s' of `print` depends on the number of ranks: at step %" PRId64
                       " it is %.17g, on other ranks %.17g; the difference is %.2g of the largest "
                       "value, rounding of sums explains %.2g",
                       column->name, column->step, column->run, column->serial,
                       column->difference / column->largest, peal_rounding_of(column->type));
}

peal_status peal_row_log_judge(const peal_row_log *log, peal_diagnostics *diagnostics)
{
    const peal_likeness *likeness = log->likeness;
    peal_code code = likeness ? PEAL_E_RANKS_DIFFER : PEAL_E_VERIFICATION_FAILED;
    const char *other = likeness ? " on other ranks" : "";
    peal_status status = PEAL_STATUS_OK;
    const row *mine = log->wrong >= 0 ? &log->row[log->wrong] : NULL;
    char here[48], there[48];

    if (log->lost)
        return peal_report(diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, "verify fewer steps",
                           "no memory for %d rows of `print` to compare", log->row_count);
    if (log->wrong >= 0 && log->column < 0)
        return peal_report(diagnostics, code, PEAL_NO_SOURCE, NULL,
                           "row %d of `print` is of step %" PRId64 ", serial's%s of step %" PRId64,
                           log->wrong + 1, mine->step, other, log->step);
    if (log->wrong >= 0) {
        print_value(&log->value[mine->first + log->column], here, sizeof(here));
        print_value(&log->got, there, sizeof(there));
        return peal_report(diagnostics, code, PEAL_NO_SOURCE, NULL,
                           "row %d of `print`, step %" PRId64 ": '%s' is %s, serial%s has %s",
                           log->wrong + 1, log->step, log->name, here, other, there);
    }
    if (log->next != log->row_count)
        return peal_report(diagnostics, code, PEAL_NO_SOURCE, NULL,
                           "`print` has made %d rows, serial%s %d", log->row_count, other,
                           log->next);
    for (int i = 0; likeness && !status && i < likeness->column_count; i++)
        status = judge_column(&likeness->column[i], diagnostics);
    return status;
}

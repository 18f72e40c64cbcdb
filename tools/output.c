/* Numbers for people, the table of a run's rows, the progress bar. */
#define _POSIX_C_SOURCE 200809L
#include "tools/output.h"

#include "runtime/bootstrap/bootstrap.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

number_text text_seconds(double seconds)
{
    static const struct {
        double least, factor;
        const char *unit;
    } units[] = {{1, 1, "s"}, {1e-3, 1e3, "ms"}, {1e-6, 1e6, "us"}, {0, 1e9, "ns"}};
    number_text out;
    for (size_t i = 0; i < 4; i++) {
        if (seconds < units[i].least)
            continue;
        snprintf(out.s, sizeof(out.s), "%.3g %s", seconds * units[i].factor, units[i].unit);
        return out;
    }
    snprintf(out.s, sizeof(out.s), "-");
    return out;
}

number_text text_bytes(int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    int unit = 0;
    number_text out;
    while (value >= 1024 && unit < 6) {
        value /= 1024;
        unit++;
    }
    snprintf(out.s, sizeof(out.s), unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return out;
}

number_text text_value(const peal_value *value)
{
    number_text out;
    switch (value->kind) {
    case PEAL_INTEGER:
        snprintf(out.s, sizeof(out.s), "%" PRId64, value->u.integer);
        break;
    case PEAL_REAL:
        snprintf(out.s, sizeof(out.s), "%.8g", isnan(value->u.real) ? (double)NAN : value->u.real);
        break;
    case PEAL_BOOLEAN:
        snprintf(out.s, sizeof(out.s), "%s", value->u.boolean ? "true" : "false");
        break;
    case PEAL_TEXT:
        snprintf(out.s, sizeof(out.s), "%s", value->u.text);
        break;
    }
    return out;
}

number_text text_hash(uint64_t hash)
{
    number_text out;
    snprintf(out.s, sizeof(out.s), "%016" PRIx64, hash);
    return out;
}

static int follower = -1; /* unknown until asked for or set */

bool output_is_follower(void)
{
    int number = 0;
    if (follower < 0 && peal_bootstrap_is_launched(&number))
        return number > 0;
    return follower > 0;
}

void output_set_follower(bool is_follower)
{
    follower = is_follower;
}

enum { COLUMN = 16 };

void row_table_add(void *user, int64_t step, int count, const char *const *names,
                   const peal_value *values)
{
    row_table *table = user;
    if (table->rows) {
        json_t *row = json_object();
        json_object_set_new(row, "step", json_integer(step));
        for (int i = 0; i < count; i++)
            json_object_set_new(row, names[i], json_value(&values[i]));
        json_array_append_new(table->rows, row);
        return;
    }
    if (table->quiet)
        return;
    char header[sizeof(table->header)];
    int used = snprintf(header, sizeof(header), "%10s", "step");
    for (int i = 0; i < count && used < (int)sizeof(header) - 2 * COLUMN; i++)
        used += snprintf(header + used, sizeof(header) - (size_t)used, " %*.*s", COLUMN, 2 * COLUMN,
                         names[i]);
    progress_clear();
    if (strcmp(header, table->header)) {
        strcpy(table->header, header);
        puts(header);
    }
    printf("%10" PRId64, step);
    for (int i = 0; i < count; i++)
        printf(" %*s", COLUMN, text_value(&values[i]).s);
    putchar('\n');
    if (fflush(stdout) != 0 && errno == EPIPE && table->closed) {
        table->closed(table->user);
        table->closed = NULL;
    }
}

enum { BAR = 32 };

static bool bar_is_drawn;

void progress_draw(const char *what, int64_t done, int64_t all, const char *unit)
{
    char bar[BAR + 1];
    if (!isatty(STDERR_FILENO) || all <= 0)
        return;
    int filled = (int)(BAR * (done < all ? (double)done / (double)all : 1.0));
    memset(bar, ' ', BAR);
    memset(bar, '#', (size_t)filled);
    bar[BAR] = 0;
    fprintf(stderr, "\r%-7s [%s] %" PRId64 " of %" PRId64 " %s", what, bar, done, all, unit);
    fflush(stderr);
    bar_is_drawn = true;
}

void progress_clear(void)
{
    if (bar_is_drawn)
        fprintf(stderr, "\r%79s\r", "");
    bar_is_drawn = false;
}

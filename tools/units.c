/* Numbers with units, as options take them: 30s, 10us, 4KiB. */
#define _POSIX_C_SOURCE 200809L
#include "tools/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct unit {
    const char *name;
    double factor;
} unit;

static const unit times[] = {{"", 1e9},   {"s", 1e9},    {"ms", 1e6},  {"us", 1e3},
                             {"ns", 1.0}, {"min", 60e9}, {"h", 3600e9}};
static const unit sizes[] = {{"", 1},       {"B", 1},         {"kB", 1e3},
                             {"KB", 1e3},   {"MB", 1e6},      {"GB", 1e9},
                             {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824},
                             {"K", 1024},   {"M", 1048576},   {"G", 1073741824}};

/* The number is decimal, not negative, without signs, hexadecimal, inf or nan. */
static bool parse_unit(const char *text, const unit *units, size_t count, int64_t *out)
{
    if (text[0] < '0' || text[0] > '9' || text[1] == 'x' || text[1] == 'X')
        return false;
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (errno || end == text)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(end, units[i].name))
            continue;
        value *= units[i].factor;
        if (!(value <= 9e18))
            return false;
        *out = (int64_t)llround(value);
        return true;
    }
    return false;
}

bool parse_time(const char *text, int64_t *nanoseconds)
{
    return parse_unit(text, times, sizeof(times) / sizeof(*times), nanoseconds);
}

bool parse_size(const char *text, int64_t *bytes)
{
    return parse_unit(text, sizes, sizeof(sizes) / sizeof(*sizes), bytes);
}

bool parse_count(const char *text, int64_t low, int64_t high, int64_t *out)
{
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || *end || value < low || value > high)
        return false;
    *out = value;
    return true;
}

/* Numbers in texts: the calls that know the locale are made here alone (tests/lint/numbers.py). The
 * locale is that of the calling thread for as long as a call takes. */
#define _GNU_SOURCE /* newlocale, uselocale */
#include "base/number.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

/* Where there is no memory for a locale, the application's stays. */
static locale_t begin_plain(locale_t *before)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    *before = plain ? uselocale(plain) : (locale_t)0;
    return plain;
}

static void end_plain(locale_t plain, locale_t before)
{
    if (!plain)
        return;
    uselocale(before);
    freelocale(plain);
}

double peal_number_read(const char *text, char **end)
{
    locale_t before, plain = begin_plain(&before);
    double value = strtod(text, end);
    end_plain(plain, before);
    return value;
}

const char *peal_number_print(char text[PEAL_NUMBER_TEXT], int digits, double value)
{
    locale_t before, plain = begin_plain(&before);
    if (digits == PEAL_NUMBER_HEX)
        snprintf(text, PEAL_NUMBER_TEXT, "%a", value);
    else
        snprintf(text, PEAL_NUMBER_TEXT, "%.*g", digits, value);
    end_plain(plain, before);
    return text;
}

/* Quotes what a terminal would act on. */
#include "base/quote.h"

#include <stdint.h>
#include <string.h>

/* The character of UTF-8 at text, and how many bytes it has; 0 bytes: it is none. */
static uint32_t decode(const unsigned char *text, int *bytes)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int count = *text < 0x80 ? 1 : *text >= 0xf0 ? 4 : *text >= 0xe0 ? 3 : *text >= 0xc2 ? 2 : 0;
    uint32_t value = count == 1 ? *text : *text & (0x7fu >> count);

    for (int i = 1; i < count; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            *bytes = 0;
            return 0;
        }
        value = value << 6 | (text[i] & 0x3fu);
    }
    *bytes =
        count && value >= least[count] && value <= 0x10ffff && (value < 0xd800 || value > 0xdfff)
            ? count
            : 0;
    return value;
}

/* C0 and C1 controls, marks and overrides of the direction, line and paragraph separators. */
static int acts(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

void peal_print_quoted(FILE *stream, const char *text, const char *indent)
{
    const unsigned char *at = (const unsigned char *)text;

    while (*at) {
        int bytes;
        uint32_t c = decode(at, &bytes);
        if (*at == '\n' && indent)
            fprintf(stream, "\n%s", indent);
        else if (*at == '\n')
            fputs("\\n", stream);
        else if (*at == '\t')
            fputc(' ', stream);
        else if (!bytes || (acts(c) && c < 0x80))
            fprintf(stream, "\\x%02x", *at);
        else if (acts(c))
            fprintf(stream, "\\u%04x", (unsigned)c);
        else
            fwrite(at, 1, (size_t)bytes, stream);
        at += bytes ? bytes : 1;
    }
}

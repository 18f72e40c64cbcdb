/* What is checked of a spec's bytes before libyaml sees them: it is quadratic in nested brackets
 * and lets NULs pass. */
#include "dsl/document.h"

#include "base/cache.h"
#include "base/phase.h"

#include <errno.h>
#include <string.h>

static peal_status report_unread(peal_source place, const char *what, int error,
                                 peal_diagnostics *diagnostics)
{
    return peal_report(diagnostics,
                       peal_is_lack_of_means(error) ? PEAL_E_SYSTEM_CALL_FAILED
                                                    : PEAL_E_SPEC_UNREADABLE,
                       place, NULL, "cannot %s the file: %s", what, strerror(error));
}

peal_status peal_document_load(const char *path, peal_arena *arena, peal_diagnostics *diagnostics,
                               const char **bytes, size_t *count)
{
    bool is_input = !strcmp(path, "-");
    peal_source place = {is_input ? "<stdin>" : path, 0, 0};
    peal_phase before =
        peal_phase_enter(1, is_input ? "the spec on standard input" : "the file %s", path);
    FILE *stream = is_input ? stdin : fopen(path, "rb");
    int error = errno;
    if (!stream) {
        peal_phase_leave(&before);
        return report_unread(place, "open", error, diagnostics);
    }
    char *text = peal_arena_allocate(arena, PEAL_DOCUMENT_BYTES + 2);
    errno = 0;
    *count = fread(text, 1, PEAL_DOCUMENT_BYTES + 1, stream);
    bool failed = ferror(stream);
    error = errno;
    if (!is_input)
        fclose(stream);
    peal_phase_leave(&before);
    if (failed)
        return report_unread(place, "read", error, diagnostics);
    *bytes = text;
    return PEAL_STATUS_OK;
}

/* Bytes of the UTF-8 character at p; 0: not one. */
static int character_bytes(const unsigned char *p, const unsigned char *end)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    int length = *p < 0x80 ? 1 : *p >= 0xc2 && *p < 0xe0 ? 2 : *p >= 0xe0 && *p < 0xf0 ? 3 : 4;
    if (length == 1)
        return 1;
    if (*p < 0xc2 || *p > 0xf4 || end - p < length)
        return 0;
    unsigned value = *p & (0x7fu >> length);
    for (int i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (p[i] & 0x3f);
    }
    return value >= least[length] && value <= 0x10ffff && (value < 0xd800 || value > 0xdfff)
               ? length
               : 0;
}

/* Control characters, and what YAML takes for ends of lines but editors don't: NEL, LS, PS. A byte
 * order mark inside the text, too. */
static bool is_odd(const unsigned char *p, int length)
{
    if (length == 1)
        return (*p < 0x20 && *p != '\t' && *p != '\n' && *p != '\r') || *p == 0x7f;
    return (length == 2 && p[0] == 0xc2 && p[1] < 0xa0) ||
           (length == 3 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9)) ||
           (length == 3 && p[0] == 0xef &&
            ((p[1] == 0xbb && p[2] == 0xbf) || (p[1] == 0xbf && p[2] > 0xbd)));
}

static peal_status check_character(const unsigned char *p, int length, peal_source place,
                                   peal_diagnostics *diagnostics)
{
    if (*p == 0)
        return peal_report(diagnostics, PEAL_E_NUL_IN_SPEC, place, NULL, "a NUL byte");
    if (length == 0)
        return peal_report(diagnostics, PEAL_E_NOT_UTF8, place, "save the spec as UTF-8",
                           "byte 0x%02x is not UTF-8", *p);
    if (is_odd(p, length))
        return peal_report(diagnostics, PEAL_E_NOT_UTF8, place, NULL,
                           "a control character or odd end of line (0x%02x ...)", *p);
    return PEAL_STATUS_OK;
}

/* Where brackets are counted: not in comments and quotes. A quote opens only where a value may
 * begin, so that "don't" doesn't. */
typedef struct bracket_scan {
    int depth;
    unsigned char quote, before;
    bool comment;
} bracket_scan;

static void count_bracket(bracket_scan *s, unsigned char c)
{
    bool starts = strchr(" \t\n\r[{,:", s->before) != NULL;
    if (c == '\n' || c == '\r')
        s->comment = false;
    else if (s->comment)
        return;
    else if (s->quote) {
        bool escaped = s->quote == '"' && s->before == '\\';
        if (c == s->quote && !escaped)
            s->quote = 0;
        if (escaped)
            c = ' '; /* a backslash escapes one character, perhaps another backslash */
    } else if (c == '#' && strchr(" \t\n\r", s->before))
        s->comment = true;
    else if ((c == '"' || c == '\'') && starts)
        s->quote = c;
    else if (c == '[' || c == '{')
        s->depth++;
    else if ((c == ']' || c == '}') && s->depth > 0)
        s->depth--;
    s->before = c;
}

static peal_status scan_characters(const char *file, const char *bytes, size_t count,
                                   peal_diagnostics *diagnostics)
{
    const unsigned char *p = (const unsigned char *)bytes, *end = p + count;
    peal_source place = {file, 1, 1};
    bracket_scan scan = {.before = '\n'};
    while (p < end) {
        int length = character_bytes(p, end);
        peal_status status = check_character(p, length, place, diagnostics);
        if (status)
            return status;
        count_bracket(&scan, *p);
        if (scan.depth > PEAL_DOCUMENT_DEPTH)
            return peal_report(diagnostics, PEAL_E_NESTED_TOO_DEEP, place, NULL,
                               "lists and maps are nested more than %d deep", PEAL_DOCUMENT_DEPTH);
        bool ends = *p == '\n' || (*p == '\r' && (p + 1 == end || p[1] != '\n'));
        place.line += ends;
        place.column = ends ? 1 : place.column + 1;
        p += length;
    }
    return PEAL_STATUS_OK;
}

peal_status peal_document_scan(const char *file, const char **bytes, size_t *count,
                               peal_diagnostics *diagnostics)
{
    const unsigned char *p = (const unsigned char *)*bytes;
    peal_source place = {file, 1, 1};
    if (*count > PEAL_DOCUMENT_BYTES)
        return peal_report(diagnostics, PEAL_E_SPEC_TOO_LARGE, (peal_source){file, 0, 0},
                           "large tables belong in .npy files", "the spec has more than %d bytes",
                           PEAL_DOCUMENT_BYTES);
    if (*count >= 2 && ((p[0] == 0xff && p[1] == 0xfe) || (p[0] == 0xfe && p[1] == 0xff) ||
                        (p[0] && !p[1]) || (!p[0] && p[1])))
        return peal_report(diagnostics, PEAL_E_NOT_UTF8, place, "save the spec as UTF-8",
                           "the spec is UTF-16");
    if (*count >= 3 && p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf) {
        *bytes += 3;
        *count -= 3;
    }
    return scan_characters(file, *bytes, *count, diagnostics);
}

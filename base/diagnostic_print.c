/* Prints diagnostics in the order of places: as text of stable form, and on a terminal with the
 * line that they are about, a caret and colours (none with NO_COLOR, or where TERM is dumb). */
#define _POSIX_C_SOURCE 200809L
#include "base/diagnostic.h"
#include "base/excerpt.h"
#include "base/quote.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct style {
    bool is_terminal, has_color;
} style;

static style style_of(FILE *stream)
{
    const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
    style s = {.is_terminal = fileno(stream) >= 0 && isatty(fileno(stream))};
    s.has_color = s.is_terminal && !(none && *none) && !(terminal && !strcmp(terminal, "dumb"));
    return s;
}

static int by_place(const void *left, const void *right)
{
    const peal_diagnostic *a = *(const peal_diagnostic *const *)left,
                          *b = *(const peal_diagnostic *const *)right;
    if (a->source.line != b->source.line)
        return a->source.line < b->source.line ? -1 : 1;
    if (a->source.column != b->source.column)
        return a->source.column < b->source.column ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static void print_place(const peal_diagnostic *d, FILE *out)
{
    peal_print_quoted(out, d->source.file ? d->source.file : "peal", NULL);
    fputc(':', out);
    if (d->source.line > 0)
        fprintf(out, "%d:", d->source.line);
    if (d->source.line > 0 && d->source.column > 0)
        fprintf(out, "%d:", d->source.column);
}

static void print_text(const peal_diagnostic *d, style how, FILE *out)
{
    static const char *const severities[] = {"note", "warning", "error"};
    static const char *const colors[] = {"\033[1;36m", "\033[1;35m", "\033[1;31m"};
    const char *end = how.has_color ? "\033[0m" : "";

    fputs(how.has_color ? "\033[1m" : "", out);
    print_place(d, out);
    fprintf(out, "%s %s%s:%s ", end, how.has_color ? colors[d->severity] : "",
            severities[d->severity], end);
    peal_print_quoted(out, d->message ? d->message : "there is no memory for the message", "    ");
    if (d->repeats > 0)
        fprintf(out, " (and %d more like this)", d->repeats);
    fprintf(out, " [%s]\n", peal_code_number(d->code));
    if (how.is_terminal)
        peal_excerpt_print(out, d->source, how.has_color);
    if (d->hint) {
        fputs("    ", out);
        peal_print_quoted(out, d->hint, "    ");
        fputc('\n', out);
    }
}

/* One write a message: those of several processes are not mixed within a line. */
static void print_one(const peal_diagnostic *d, style how, FILE *stream)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return;
    print_text(d, how, out);
    if (d->story)
        peal_story_print(d->story, out);
    fclose(out);
    fwrite(text, 1, bytes, stream);
    free(text);
}

void peal_diagnostics_print(const peal_diagnostics *list, FILE *stream, int limit)
{
    int count = peal_diagnostics_count(list);
    const peal_diagnostic **order = malloc((size_t)(count + 1) * sizeof(*order));
    style how = style_of(stream);
    if (!order)
        return;
    for (int i = 0; i < count; i++)
        order[i] = peal_diagnostics_at(list, i);
    qsort(order, (size_t)count, sizeof(*order), by_place);
    int shown = limit > 0 && limit < count ? limit : count;
    for (int i = 0; i < shown; i++)
        print_one(order[i], how, stream);
    if (shown < count)
        fprintf(stream, "peal: %d of %d messages shown; `peal check` shows all\n", shown, count);
    free(order);
}

void peal_diagnostics_print_dot(const peal_diagnostics *list, FILE *stream)
{
    fputs("digraph check {\n  rankdir=TB; compound=true;\n"
          "  node [shape=box, fontname=\"sans\", fontsize=10]; edge [fontname=\"sans\", "
          "fontsize=9];\n",
          stream);
    for (int i = 0; i < peal_diagnostics_count(list); i++) {
        const peal_diagnostic *d = peal_diagnostics_at(list, i);
        fprintf(stream, "  subgraph cluster_e%d {\n    label=\"%s: %s\";\n    labeljust=l;\n", i,
                peal_code_number(d->code), peal_code_title(d->code));
        if (d->story)
            peal_story_print_dot(d->story, i, stream);
        else
            fprintf(stream, "    e%d [label=\"line %d\"];\n", i, d->source.line);
        fputs("  }\n", stream);
    }
    fputs("}\n", stream);
}

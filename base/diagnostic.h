/* Diagnostics: numbered messages with a place and a way out, collected by whoever runs a check.
 *
 * The first place that knows a cause reports it, once; callers pass the status on. The messages'
 * numbers, titles and explanations are the list in base/diagnostics.def. */
#ifndef PEAL_BASE_DIAGNOSTIC_H
#define PEAL_BASE_DIAGNOSTIC_H

#include "base/story.h"

#include <peal/status.h>
#include <peal/types.h>

#include <stdarg.h>
#include <stdio.h>

typedef enum peal_code {
#define PEAL_DIAGNOSTIC(number, name, status, title, explanation) PEAL_E_##name,
#include "base/diagnostics.def"
#undef PEAL_DIAGNOSTIC
    PEAL_CODE_COUNT
} peal_code;

typedef enum peal_severity { PEAL_NOTE, PEAL_WARNING, PEAL_ERROR } peal_severity;

typedef struct peal_diagnostic {
    peal_code code;
    peal_severity severity;
    peal_source source; /* file NULL: no place */
    char *message;      /* what is wrong */
    char *hint;         /* what to do; NULL: none */
    int repeats;        /* how many more there were of the scheduler's at this place */
    peal_story *story;  /* of a counterexample; NULL: none */
    int order;          /* in which they were reported */
} peal_diagnostic;

typedef struct peal_diagnostics peal_diagnostics;

peal_diagnostics *peal_diagnostics_create(void);
void peal_diagnostics_destroy(peal_diagnostics *list);

/* Adds an error (or a warning) and returns the status that its code stands for, so that
 * `return peal_report(d, PEAL_E_DUPLICATE_KEY, source, "hint or NULL", "format", ...)` reads well.
 * May be called by several threads. `list` may be NULL: then nothing is kept. The same code at the
 * same place with the same text is kept once. */
peal_status peal_report(peal_diagnostics *list, peal_code code, peal_source source,
                        const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void peal_warn(peal_diagnostics *list, peal_code code, peal_source source, const char *hint,
               const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The same with the story of a counterexample, which is copied. */
peal_status peal_report_story(peal_diagnostics *list, peal_code code, peal_source source,
                              const char *hint, const peal_story *story, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
void peal_warn_story(peal_diagnostics *list, peal_code code, peal_source source, const char *hint,
                     const peal_story *story, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
/* Whether somebody would read a story: there is a list, and this code has not been reported at this
 * place, where it would only be counted. */
bool peal_diagnostics_want(peal_diagnostics *list, peal_code code, peal_source source);

/* Takes back all but the first `count`: of an attempt that may fail. */
void peal_diagnostics_take_back(peal_diagnostics *list, int count);

int peal_diagnostics_count(const peal_diagnostics *list);
int peal_diagnostics_errors(const peal_diagnostics *list);
const peal_diagnostic *peal_diagnostics_at(const peal_diagnostics *list, int index);
/* Status of the first error; PEAL_STATUS_OK without one. */
peal_status peal_diagnostics_status(const peal_diagnostics *list);
/* "file:line:column: error: message [E021]", "    hint" and the story, in the order of places, the
 * first `limit` (0: all), then how many there are in all if more. */
void peal_diagnostics_print(const peal_diagnostics *list, FILE *stream, int limit);
/* A Graphviz digraph: a box a message, in it one a rank with the events of its story. */
void peal_diagnostics_print_dot(const peal_diagnostics *list, FILE *stream);

/* "E009", which users see; "DUPLICATE_KEY", the name that C has after PEAL_E_; its title; its page
 * for `peal explain`; the status it stands for. */
const char *peal_code_number(peal_code code);
const char *peal_code_name(peal_code code);
const char *peal_code_title(peal_code code);
const char *peal_code_explanation(peal_code code);
peal_status peal_code_status(peal_code code);
bool peal_code_is_warning(peal_code code); /* never reported as an error */
/* True and *out set if text is a code's number ("E009", "e009") or its name, in capitals or not,
 * with or without PEAL_E_. */
bool peal_code_parse(const char *text, peal_code *out);

/* The candidate nearest to word (edit distance at most a third of its length, not all of it, or
 * other capitals), or NULL: "did you mean". Never the word itself. */
const char *peal_nearest_word(const char *word, const char *const *candidates, size_t count);

#endif

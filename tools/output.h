/* What the verbs print: numbers for people, JSON for programs, a progress bar on a terminal. */
#ifndef PEAL_TOOLS_OUTPUT_H
#define PEAL_TOOLS_OUTPUT_H

#include <peal/plugin/backend.h>

#include <jansson.h>

/* Texts of printed numbers. */
typedef struct number_text {
    char s[48];
} number_text;

number_text text_seconds(double seconds); /* "1.23 us", "45.6 ms", "2.1 s" */
number_text text_bytes(int64_t bytes);    /* "512 B", "1.5 MiB" */
number_text text_value(const peal_value *value);
number_text text_hash(uint64_t hash);

/* This process was started by a launcher and is not process 0: it prints nothing that process 0
 * prints too. A guess by the environment, until the session knows better. */
bool output_is_follower(void);
void output_set_follower(bool follower);

/* An object that begins with "schema": "peal.VERB/1"; prints with a newline and releases. */
json_t *json_begin(const char *schema);
void json_print(json_t *object);
json_t *json_value(const peal_value *value);
json_t *json_box(const peal_box *box);
/* Messages as {"code", "severity", "file", "line", "column", "message", "hint", "story"}; a story
 * as
 * {"events", "links", "left_out"}. */
json_t *json_diagnostics(const peal_diagnostics *diagnostics);

/* The table of a spec's `print` rows: a header when the columns change. */
typedef struct row_table {
    json_t *rows; /* NULL: print as number_text */
    char header[512];
    bool quiet;
    void (*closed)(void *user); /* told once that nobody reads the output any more; NULL: nobody */
    void *user;
} row_table;

/* A peal_row_function; user is a row_table. */
void row_table_add(void *user, int64_t step, int count, const char *const *names,
                   const peal_value *values);

/* "\r[####    ] 1200 of 5000 steps" on stderr, if that is a terminal. */
void progress_draw(const char *what, int64_t done, int64_t all, const char *unit);
void progress_clear(void);

#endif

/* Options, shared by all verbs: one table says which verb has which. */
#ifndef PEAL_TOOLS_OPTIONS_H
#define PEAL_TOOLS_OPTIONS_H

#include "base/diagnostic.h"

#include <peal/session.h>

enum {
    VERB_RUN = 1,
    VERB_CHECK = 2,
    VERB_PLAN = 4,
    VERB_DOCTOR = 8,
    VERB_SCHEMA = 16,
    VERB_EXPLAIN = 32,
    VERB_VERSION = 64,
    VERB_SIMULATE = 128,
    VERB_BENCH = 256,
    VERB_TUNE = 512
};

typedef enum output_format { FORMAT_TEXT, FORMAT_JSON, FORMAT_DOT } output_format;

/* --emit: whose source of the kernels is printed. */
typedef enum emit_backend { EMIT_NONE, EMIT_HOST, EMIT_CUDA } emit_backend;

/* --mode: a mode of peal_mode, or one of these. */
enum { MODE_AUTO = PEAL_MODE_COUNT, MODE_ALL };

enum { MAX_SETTINGS = 64, MAX_WORDS = 256, MAX_RANK_COUNTS = 32 };

typedef struct peal_options {
    char *const *words; /* of the whole command, set by main */
    int word_count;
    const char *subject;               /* the spec, or what to explain; NULL: none */
    const char *setting[MAX_SETTINGS]; /* of --set: NAME=VALUE */
    int setting_count;
    int ranks;                       /* 0: not given */
    int rank_count[MAX_RANK_COUNTS]; /* simulate: of --ranks 1,8,64, ascending; `ranks` is the first
                                      */
    int rank_counts;
    int processes;                 /* 0: not given */
    const char *hosts;             /* where they are started: see tools/hosts.h; NULL: here */
    const char *agent;             /* by which command */
    bool by_agent;                 /* this process was */
    bool network;                  /* doctor looks at networks */
    const char *network_interface; /* by which processes of other hosts reach this one; NULL: any */
    int network_ports[2];          /* 0: any */
    int threads;                   /* 0: not given */
    int rank;                      /* -1: all */
    int64_t steps;                 /* -1: what the spec says */
    bool checks_steps;             /* the spec is checked for so many */
    int64_t deadline_ns;
    int mode; /* a peal_mode, MODE_AUTO or MODE_ALL */
    bool mode_given;
    const char *lowering;  /* forced choices of a device's backend */
    const char *transport; /* NULL, or a name that peal_plan_options takes */
    const char *backend;   /* NULL, "auto", "host" or "cuda" */
    output_format format;
    emit_backend emit;
    bool resources;
    int architecture;    /* of --arch: 90 for sm_90; 0: not given */
    int verify_ranks;    /* 0: not given */
    const char *watch;   /* "nan", "inf"; NULL: not given */
    int64_t watch_steps; /* between two looks */
    bool verify, check_footprints, exposed, allow_outside, print_json, strict, quiet, help;
    bool forget;         /* tune */
    bool no_tuning;      /* mode auto leaves out what tune has found */
    const char *machine; /* NULL: this one */
    double jitter;       /* simulate */
    int64_t seed;
    const char *svg;          /* file to draw into; NULL: none */
    const char *save_machine; /* bench: file to write; NULL: standard output */
    int rounds;               /* bench, tune; 0: not given */
    int spec_descriptor;      /* -1; else where a launched process reads the spec's number_text */
} peal_options;

/* Reads the words after the verb. Reports all mistakes; PEAL_STATUS_USAGE if there were any. The
 * texts point into argv. */
peal_status options_parse(peal_options *options, unsigned verb, int argc, char **argv,
                          peal_diagnostics *diagnostics);

/* "auto", "all", or the name of a mode. */
const char *options_mode_name(int mode);

/* A time ("30s", "10us", "2min"; no suffix: seconds), a size ("4KiB", "2MB"; no suffix: bytes), a
 * count within [low, high]. False: not one, or out of range. */
bool parse_time(const char *text, int64_t *nanoseconds);
bool parse_size(const char *text, int64_t *bytes);
bool parse_count(const char *text, int64_t low, int64_t high, int64_t *out);

/* The level that PEAL_LOG names; PEAL_LOG_ERROR without it. */
peal_log_level environment_log_level(void);
/* Warns of variables that begin with PEAL_ and that nobody reads, and of a PEAL_LOG that is no
 * level. */
void environment_check(peal_diagnostics *diagnostics);
/* Name and use of the variables that exist; false: no more. */
bool environment_describe(int index, const char **name, const char **use);

#endif

/* The option table and the parser that reads a verb's words by it. */
#define _POSIX_C_SOURCE 200809L
#include "tools/hosts.h"

#include "base/lowering.h"

#include <peal/plugin/backend.h>
#include <peal/plugin/machine.h>

#include <stdlib.h>
#include <string.h>

typedef enum option_id {
    OPTION_SET,
    OPTION_RANKS,
    OPTION_PROCESSES,
    OPTION_HOSTS,
    OPTION_AGENT,
    OPTION_NETWORK,
    OPTION_NETWORK_INTERFACE,
    OPTION_NETWORK_PORTS,
    OPTION_THREADS,
    OPTION_STEPS,
    OPTION_DEADLINE,
    OPTION_MODE,
    OPTION_BACKEND,
    OPTION_LOWER,
    OPTION_TRANSPORT,
    OPTION_VERIFY,
    OPTION_VERIFY_RANKS,
    OPTION_WATCH,
    OPTION_CHECK_FOOTPRINTS,
    OPTION_EXPOSED,
    OPTION_ALLOW_OUTSIDE,
    OPTION_MACHINE,
    OPTION_SAVE_MACHINE,
    OPTION_JITTER,
    OPTION_SEED,
    OPTION_SVG,
    OPTION_RANK,
    OPTION_EMIT,
    OPTION_RESOURCES,
    OPTION_ARCH,
    OPTION_FORMAT,
    OPTION_JSON,
    OPTION_PRINT_JSON,
    OPTION_STRICT,
    OPTION_QUIET,
    OPTION_HELP,
    OPTION_SPEC_DESCRIPTOR,
    OPTION_BY_AGENT,
    OPTION_ROUNDS,
    OPTION_FORGET,
    OPTION_NO_TUNING
} option_id;

typedef struct option_info {
    const char *name;
    char letter; /* 0: none */
    bool has_value;
    unsigned verbs;
    option_id id;
    const char *value; /* what the value must be, for messages */
} option_info;

enum { STEPS_BETWEEN_LOOKS = 100 };

enum {
    DESCRIBED = VERB_CHECK | VERB_PLAN | VERB_EXPLAIN | VERB_SIMULATE,
    ON_A_SPEC = VERB_RUN | VERB_TUNE | DESCRIBED,
    ANYWHERE = 1023
};

static const option_info table[] = {
    {"set", 0, true, ON_A_SPEC | VERB_BENCH, OPTION_SET, "NAME=VALUE"},
    {"ranks", 'n', true, ON_A_SPEC | VERB_BENCH, OPTION_RANKS, "a number of ranks, 1 to 1048576"},
    {"processes", 0, true, ON_A_SPEC, OPTION_PROCESSES, "a number of processes, 1 to 65536"},
    {"hosts", 0, true, VERB_RUN | VERB_TUNE | VERB_CHECK | VERB_PLAN | VERB_EXPLAIN, OPTION_HOSTS,
     "a list such as a:2,b:2"},
    {"agent", 0, true, VERB_RUN | VERB_TUNE, OPTION_AGENT, "words such as 'ip netns exec'"},
    {"network", 0, false, VERB_DOCTOR, OPTION_NETWORK, NULL},
    {"network-interface", 0, true, VERB_RUN | VERB_TUNE | VERB_DOCTOR, OPTION_NETWORK_INTERFACE,
     "an interface's name, or a network such as 10.1.0.0/16"},
    {"network-ports", 0, true, VERB_RUN | VERB_TUNE | VERB_DOCTOR, OPTION_NETWORK_PORTS,
     "ports such as 20000-20100"},
    {"threads", 0, true, VERB_RUN | VERB_TUNE | VERB_PLAN | VERB_SIMULATE, OPTION_THREADS,
     "a number of threads, 1 to 4096"},
    {"steps", 0, true, VERB_RUN | VERB_TUNE | VERB_SIMULATE | VERB_CHECK, OPTION_STEPS,
     "a number of steps"},
    {"deadline", 0, true, VERB_RUN | VERB_TUNE, OPTION_DEADLINE, "a time such as 30s or 500ms"},
    {"mode", 0, true, VERB_RUN | VERB_TUNE | VERB_PLAN | VERB_SIMULATE | VERB_CHECK, OPTION_MODE,
     "serial, sync, stream, graph, fused, auto or all"},
    {"backend", 0, true, ON_A_SPEC | VERB_BENCH, OPTION_BACKEND, "auto, host or cuda"},
    {"lower", 0, true, VERB_RUN | VERB_TUNE | VERB_PLAN, OPTION_LOWER, PEAL_LOWERING_WORDS},
    {"transport", 0, true, ON_A_SPEC, OPTION_TRANSPORT,
     "auto, p2p, p2p:vmm, p2p:ipc or shm, perhaps with +tcp, +ucx, +verbs or +mlx5, "
     "or tcp, ucx, verbs or mlx5 alone"},
    {"verify", 0, false, VERB_RUN, OPTION_VERIFY, NULL},
    {"verify-ranks", 0, true, VERB_RUN, OPTION_VERIFY_RANKS, "a number of ranks, 1 to 1048576"},
    {"watch", 0, true, VERB_RUN, OPTION_WATCH, "nan or inf, with =STEPS between two looks"},
    {"check-footprints", 0, false, VERB_RUN, OPTION_CHECK_FOOTPRINTS, NULL},
    {"exposed", 0, false, VERB_RUN, OPTION_EXPOSED, NULL},
    {"allow-outside", 0, false, VERB_RUN | VERB_TUNE | VERB_CHECK | VERB_PLAN | VERB_EXPLAIN,
     OPTION_ALLOW_OUTSIDE, NULL},
    {"machine", 0, true, ON_A_SPEC | VERB_BENCH, OPTION_MACHINE,
     "a description such as \"node:1 core:2\", or FILE.yaml"},
    {"save-machine", 0, true, VERB_BENCH, OPTION_SAVE_MACHINE, "the name of a file"},
    {"rounds", 0, true, VERB_BENCH | VERB_TUNE, OPTION_ROUNDS, "a number of rounds, 1 to 100000"},
    {"jitter", 0, true, VERB_SIMULATE, OPTION_JITTER, "a fraction such as 0.1"},
    {"seed", 0, true, VERB_SIMULATE, OPTION_SEED, "a whole number"},
    {"svg", 0, true, VERB_SIMULATE, OPTION_SVG, "a file's name"},
    {"rank", 0, true, VERB_PLAN, OPTION_RANK, "the number of a rank"},
    {"emit", 0, true, VERB_PLAN, OPTION_EMIT, "host or cuda"},
    {"resources", 0, false, VERB_PLAN, OPTION_RESOURCES, NULL},
    {"arch", 0, true, VERB_PLAN, OPTION_ARCH, "an architecture such as sm_90"},
    {"format", 0, true, ANYWHERE, OPTION_FORMAT, "text, json or dot"},
    {"json", 0, false, ANYWHERE, OPTION_JSON, NULL},
    {"print-json", 0, false, VERB_CHECK, OPTION_PRINT_JSON, NULL},
    {"strict", 0, false, VERB_CHECK, OPTION_STRICT, NULL},
    {"quiet", 'q', false, VERB_RUN | VERB_TUNE | VERB_CHECK | VERB_DOCTOR | VERB_BENCH,
     OPTION_QUIET, NULL},
    {"help", 'h', false, ANYWHERE, OPTION_HELP, NULL},
    {"forget", 0, false, VERB_TUNE, OPTION_FORGET, NULL},
    {"no-tuning", 0, false, VERB_RUN, OPTION_NO_TUNING, NULL},
    {"launched-spec-descriptor", 0, true, VERB_RUN | VERB_TUNE, OPTION_SPEC_DESCRIPTOR,
     "a file descriptor"},
    {"launched-by-agent", 0, false, VERB_RUN | VERB_TUNE, OPTION_BY_AGENT, NULL},
};
enum { OPTION_COUNT = sizeof(table) / sizeof(*table) };

static const peal_source nowhere;

const char *options_mode_name(int mode)
{
    return mode == MODE_AUTO ? "auto" : mode == MODE_ALL ? "all" : peal_mode_name((peal_mode)mode);
}

static bool parse_mode(const char *text, int *mode)
{
    for (int i = 0; i <= MODE_ALL; i++)
        if (!strcmp(text, options_mode_name(i))) {
            *mode = i;
            return true;
        }
    return false;
}

static bool parse_format(const char *text, output_format *format)
{
    static const char *const names[] = {"text", "json", "dot"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(text, names[i])) {
            *format = (output_format)i;
            return true;
        }
    return false;
}

static bool parse_int(const char *text, int64_t low, int64_t high, int *out)
{
    int64_t value;
    if (!parse_count(text, low, high, &value))
        return false;
    *out = (int)value;
    return true;
}

/* Numbers of ranks, ascending, between commas. */
static bool parse_rank_counts(const char *text, peal_options *options)
{
    char word[16];
    options->rank_counts = 0;
    for (;; text++) {
        size_t length = strcspn(text, ",");
        int count;
        snprintf(word, sizeof(word), "%.*s", (int)length, text);
        if (length >= sizeof(word) || !parse_int(word, 1, 1 << 20, &count) ||
            options->rank_counts == MAX_RANK_COUNTS ||
            (options->rank_counts && count <= options->rank_count[options->rank_counts - 1]))
            return false;
        options->rank_count[options->rank_counts++] = count;
        text += length;
        if (!*text)
            break;
    }
    options->ranks = options->rank_count[0];
    return true;
}

static bool parse_fraction(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end && *out >= 0 && *out <= 1e6;
}

/* "nan", or "inf=10". */
static bool parse_watch(const char *text, peal_options *options)
{
    static const char *const names[] = {"nan", "inf"};
    size_t length = strcspn(text, "=");
    options->watch = NULL;
    options->watch_steps = STEPS_BETWEEN_LOOKS;
    for (int i = 0; i < 2; i++)
        if (strlen(names[i]) == length && !strncmp(names[i], text, length))
            options->watch = names[i];
    return options->watch &&
           (!text[length] || parse_count(text + length + 1, 1, INT64_MAX, &options->watch_steps));
}

static bool add_setting(peal_options *options, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || options->setting_count == MAX_SETTINGS)
        return false;
    options->setting[options->setting_count++] = text;
    return true;
}

static bool apply_flag(peal_options *options, option_id id)
{
    switch (id) {
    case OPTION_RESOURCES:
        return options->resources = true;
    case OPTION_VERIFY:
        return options->verify = true;
    case OPTION_CHECK_FOOTPRINTS:
        return options->check_footprints = true;
    case OPTION_EXPOSED:
        return options->exposed = true;
    case OPTION_ALLOW_OUTSIDE:
        return options->allow_outside = true;
    case OPTION_PRINT_JSON:
        return options->print_json = true;
    case OPTION_STRICT:
        return options->strict = true;
    case OPTION_QUIET:
        return options->quiet = true;
    case OPTION_HELP:
        return options->help = true;
    case OPTION_FORGET:
        return options->forget = true;
    case OPTION_NO_TUNING:
        return options->no_tuning = true;
    case OPTION_BY_AGENT:
        return options->by_agent = true;
    case OPTION_JSON:
        options->format = FORMAT_JSON;
        return true;
    default:
        return false;
    }
}

/* False: the value is not what the option takes. */
static bool apply(peal_options *options, option_id id, const char *value)
{
    switch (id) {
    case OPTION_SET:
        return add_setting(options, value);
    case OPTION_RANKS:
        return parse_rank_counts(value, options);
    case OPTION_VERIFY_RANKS:
        return parse_int(value, 1, 1 << 20, &options->verify_ranks);
    case OPTION_WATCH:
        return parse_watch(value, options);
    case OPTION_PROCESSES:
        return parse_int(value, 1, 1 << 16, &options->processes);
    case OPTION_HOSTS:
        options->hosts = value;
        return *value;
    case OPTION_AGENT:
        options->agent = value;
        return *value;
    case OPTION_NETWORK:
        options->network = true;
        return true;
    case OPTION_NETWORK_INTERFACE:
        return hosts_parse_interface(value, options);
    case OPTION_NETWORK_PORTS:
        return hosts_parse_ports(value, options);
    case OPTION_THREADS:
        return parse_int(value, 1, 4096, &options->threads);
    case OPTION_STEPS:
        return parse_count(value, 0, INT64_MAX, &options->steps);
    case OPTION_DEADLINE:
        return parse_time(value, &options->deadline_ns) && options->deadline_ns > 0;
    case OPTION_MODE:
        options->mode_given = true;
        return parse_mode(value, &options->mode);
    case OPTION_BACKEND:
        options->backend = value;
        return !strcmp(value, "auto") || !strcmp(value, "host") || !strcmp(value, "cuda");
    case OPTION_LOWER:
        options->lowering = value;
        return true;
    case OPTION_TRANSPORT:
        options->transport = value;
        return peal_transport_is_known(value);
    case OPTION_RANK:
        return parse_int(value, 0, (1 << 20) - 1, &options->rank);
    case OPTION_EMIT:
        options->emit = !strcmp(value, "cuda")   ? EMIT_CUDA
                        : !strcmp(value, "host") ? EMIT_HOST
                                                 : EMIT_NONE;
        return options->emit != EMIT_NONE;
    case OPTION_ARCH:
        return !strncmp(value, "sm_", 3) && parse_int(value + 3, 50, 999, &options->architecture);
    case OPTION_FORMAT:
        return parse_format(value, &options->format);
    case OPTION_SPEC_DESCRIPTOR:
        return parse_int(value, 3, 1 << 20, &options->spec_descriptor);
    case OPTION_MACHINE:
        options->machine = value;
        return true;
    case OPTION_SAVE_MACHINE:
        options->save_machine = value;
        return *value;
    case OPTION_ROUNDS:
        return parse_int(value, 1, 100000, &options->rounds);
    case OPTION_JITTER:
        return parse_fraction(value, &options->jitter);
    case OPTION_SEED:
        return parse_count(value, 0, INT64_MAX, &options->seed);
    case OPTION_SVG:
        options->svg = value;
        return *value;
    default:
        return apply_flag(options, id);
    }
}

static const option_info *find_long(const char *name, size_t length)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        if (strlen(table[i].name) == length && !strncmp(table[i].name, name, length))
            return &table[i];
    return NULL;
}

static const option_info *find_letter(char letter)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        if (table[i].letter && table[i].letter == letter)
            return &table[i];
    return NULL;
}

static const char *verb_of(unsigned verbs)
{
    static const char *const names[] = {"run",     "check",   "plan",     "doctor", "schema",
                                        "explain", "version", "simulate", "bench",  "tune"};
    for (int i = 0; i < 10; i++)
        if (verbs & (1u << i))
            return names[i];
    return "run";
}

/* Of "serial, sync or stream", the word nearest to value; text has room for it. NULL: none. */
static const char *nearest_of(const char *value, const char *wanted, char text[160])
{
    const char *words[32];
    size_t count = 0;
    char *rest = NULL;
    snprintf(text, 160, "%s", wanted);
    for (char *word = strtok_r(text, ", ", &rest); word && count < 32;
         word = strtok_r(NULL, ", ", &rest))
        if (strlen(word) > 2)
            words[count++] = word;
    return peal_nearest_word(value, words, count);
}

static void report_value(const option_info *info, const char *value, peal_diagnostics *diagnostics)
{
    char text[160], hint[200];
    bool listed = strstr(info->value, " or ") && strncmp(info->value, "a ", 2) != 0;
    const char *nearest = listed ? nearest_of(value, info->value, text) : NULL;
    snprintf(hint, sizeof(hint), "did you mean %s?", nearest ? nearest : "");
    peal_report(diagnostics, PEAL_E_INVALID_OPTION_VALUE, nowhere, nearest ? hint : NULL,
                "--%s needs %s, not '%s'", info->name, info->value, value);
}

static const option_info *nearest_option(unsigned verb, const char *name)
{
    const char *names[OPTION_COUNT];
    size_t count = 0;
    for (int i = 0; i < OPTION_COUNT; i++)
        if ((table[i].verbs & verb) && table[i].id != OPTION_SPEC_DESCRIPTOR &&
            table[i].id != OPTION_BY_AGENT)
            names[count++] = table[i].name;
    const char *nearest = peal_nearest_word(name, names, count);
    return nearest ? find_long(nearest, strlen(nearest)) : NULL;
}

/* Returns the option that was meant, or NULL. */
static const option_info *report_unknown(unsigned verb, const char *word, size_t length,
                                         const option_info *known, peal_diagnostics *diagnostics)
{
    char hint[160] = "", name[64];
    snprintf(name, sizeof(name), "%.*s", (int)length, word);
    const option_info *nearest = known ? known : nearest_option(verb, name);
    if (known)
        snprintf(hint, sizeof(hint), "it is an option of `peal %s`", verb_of(known->verbs));
    else if (nearest)
        snprintf(hint, sizeof(hint), "did you mean --%s?", nearest->name);
    else
        snprintf(hint, sizeof(hint), "`peal %s --help` lists the options", verb_of(verb));
    peal_report(diagnostics, PEAL_E_UNKNOWN_OPTION, nowhere, hint, "`peal %s` has no option %s%s",
                verb_of(verb), length > 1 ? "--" : "-", name);
    return nearest;
}

/* Reads the option at argv[i]; returns how many words it took. */
static int parse_option(peal_options *options, unsigned verb, int i, int argc, char **argv,
                        peal_diagnostics *diagnostics)
{
    const char *word = argv[i], *value = NULL;
    bool is_long = word[1] == '-';
    const char *name = word + (is_long ? 2 : 1);
    size_t length = is_long ? strcspn(name, "=") : 1;
    const option_info *info = is_long ? find_long(name, length) : find_letter(*name);
    int words = 1;
    if (is_long && name[length] == '=')
        value = name + length + 1;
    else if (!is_long && name[1])
        value = name + 1; /* -n4 */
    if (!info || !(info->verbs & verb)) {
        info = report_unknown(verb, name, length, info, diagnostics);
        return info && info->has_value && !value && i + 1 < argc ? 2 : 1; /* with its value */
    }
    if (!info->has_value && value) {
        peal_report(diagnostics, PEAL_E_INVALID_OPTION_VALUE, nowhere, NULL, "--%s takes no value",
                    info->name);
        return 1;
    }
    if (info->has_value && !value && i + 1 < argc) {
        value = argv[i + 1];
        words = 2;
    }
    if (info->has_value && !value)
        peal_report(diagnostics, PEAL_E_INVALID_OPTION_VALUE, nowhere, NULL, "--%s needs %s",
                    info->name, info->value);
    else if (!apply(options, info->id, value))
        report_value(info, value, diagnostics);
    return words;
}

peal_status options_parse(peal_options *out, unsigned verb, int argc, char **argv,
                          peal_diagnostics *diagnostics)
{
    int before = peal_diagnostics_errors(diagnostics);
    *out = (peal_options){.rank = -1,
                          .steps = -1,
                          .checks_steps = verb == VERB_RUN || verb == VERB_CHECK,
                          .deadline_ns = INT64_C(30000000000),
                          .mode = MODE_AUTO,
                          .spec_descriptor = -1};
    bool only_names = false;
    for (int i = 0; i < argc;) {
        const char *word = argv[i];
        if (!only_names && !strcmp(word, "--")) {
            only_names = true;
            i++;
        } else if (!only_names && word[0] == '-' && word[1]) {
            i += parse_option(out, verb, i, argc, argv, diagnostics);
        } else {
            if (out->subject)
                peal_report(diagnostics, PEAL_E_WRONG_ARGUMENTS, nowhere, NULL,
                            "'%s' is one argument too many, after '%s'", word, out->subject);
            out->subject = word;
            i++;
        }
    }
    peal_lowering_check(out->lowering, diagnostics);
    if (out->rank_counts > 1 && verb != VERB_SIMULATE)
        peal_report(diagnostics, PEAL_E_INVALID_OPTION_VALUE, nowhere,
                    "`peal simulate` takes several, between commas", "--ranks needs %s",
                    table[1].value);
    if (out->ranks && out->processes > out->ranks)
        peal_report(diagnostics, PEAL_E_CONFLICTING_OPTIONS, nowhere,
                    "a process hosts one or more ranks", "--processes %d is more than --ranks %d",
                    out->processes, out->ranks);
    if (out->watch && out->check_footprints)
        peal_report(diagnostics, PEAL_E_CONFLICTING_OPTIONS, nowhere,
                    "run twice, each time with one of them",
                    "--check-footprints runs with other contents, in which --watch would find what "
                    "it looks for");
    if ((out->verify || out->verify_ranks) && out->check_footprints)
        peal_report(diagnostics, PEAL_E_CONFLICTING_OPTIONS, nowhere,
                    "run twice, each time with one of them",
                    "--check-footprints runs serial with other contents, --verify compares with "
                    "serial");
    return peal_diagnostics_errors(diagnostics) > before ? PEAL_STATUS_USAGE : PEAL_STATUS_OK;
}

/* Finding and reading the spec of a verb; the machine that its options describe. */
#define _GNU_SOURCE
#include "tools/job.h"
#include "tools/hosts.h"
#include "tools/output.h"

#include "runtime/select/known_times.h"
#include "runtime/session/device.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const peal_source nowhere;

/* What a run assumes, too: the second level of today's cores, within a factor of two. */
enum { MIB = 1 << 20, DEVICE_LANES = 2 };

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* FOLDER/NAME followed by the ending, where NAME is the folder's; NULL: there is no such file. */
static char *namesake(const char *folder, const char *ending)
{
    char *real = realpath(folder, NULL), *path = NULL;
    struct stat info;
    if (!real)
        return NULL;
    if (asprintf(&path, "%s/%s%s", folder, strrchr(real, '/') + 1, ending) < 0)
        path = NULL;
    free(real);
    if (path && !stat(path, &info))
        return path;
    free(path);
    return NULL;
}

/* The spec of a folder: NAME/NAME.yaml, else its only *.yaml or *.yml. NULL: none, or several:
 * *count says how many. */
static char *spec_of_folder(const char *folder, int *count)
{
    char *path = namesake(folder, ".yaml");
    if (!path)
        path = namesake(folder, ".yml");
    if (path)
        return path;
    DIR *entries = opendir(folder);
    int found = 0;
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        if ((!ends_in(entry->d_name, ".yaml") && !ends_in(entry->d_name, ".yml")) || found++)
            continue;
        if (asprintf(&path, "%s/%s", folder, entry->d_name) < 0)
            path = NULL;
    }
    if (entries)
        closedir(entries);
    if (found > 1) {
        free(path);
        path = NULL;
    }
    *count = found;
    return path;
}

/* "did you mean ...?", of the files and folders beside one that isn't there; "": nothing is near.
 */
static void hint_of_files(const char *path, char *hint, size_t bytes)
{
    enum { MOST = 256 };
    const char *slash = strrchr(path, '/'), *names[MOST], *nearest = NULL;
    size_t count = 0, folder = slash ? (size_t)(slash - path) + 1 : 0;
    char *parent = folder ? strndup(path, folder) : strdup(".");
    DIR *entries = parent ? opendir(parent) : NULL;
    for (struct dirent *e; entries && count < MOST && (e = readdir(entries));)
        if (e->d_name[0] != '.' && (names[count] = strdup(e->d_name)))
            count++;
    nearest = peal_nearest_word(path + folder, names, count);
    hint[0] = 0;
    if (nearest)
        snprintf(hint, bytes, "did you mean %.*s%s?", (int)folder, path, nearest);
    while (count > 0)
        free((char *)names[--count]);
    if (entries)
        closedir(entries);
    free(parent);
}

static peal_status find_spec(const peal_options *options, peal_diagnostics *diagnostics,
                             char **path)
{
    struct stat info;
    const char *subject = options->subject;
    char hint[400];
    if (!subject)
        return peal_report(
            diagnostics, PEAL_E_WRONG_ARGUMENTS, nowhere, "for example: peal run samples/jacobi2d",
            "which spec? a YAML file, a folder that holds one, or - for standard input");
    if (!strcmp(subject, "-")) {
        *path = strdup("-");
        return PEAL_STATUS_OK;
    }
    if (stat(subject, &info)) {
        int error = errno;
        hint_of_files(subject, hint, sizeof(hint));
        return peal_report(diagnostics, PEAL_E_SPEC_NOT_FOUND, nowhere, *hint ? hint : NULL,
                           "cannot read '%s': %s", subject, strerror(error));
    }
    int count = 0;
    *path = S_ISDIR(info.st_mode) ? spec_of_folder(subject, &count) : strdup(subject);
    if (!*path)
        return peal_report(diagnostics, PEAL_E_SPEC_NOT_FOUND, nowhere, "name the file itself",
                           "the folder '%s' doesn't hold exactly one spec, but %d (.yaml or .yml)",
                           subject, count);
    return PEAL_STATUS_OK;
}

/* The text that the launching process has read from standard input. */
static peal_status read_descriptor(const peal_options *options, peal_diagnostics *diagnostics,
                                   peal_graph **graph)
{
    struct stat info;
    char *text = NULL;
    peal_status status = PEAL_STATUS_ENVIRONMENT;
    if (!fstat(options->spec_descriptor, &info) && (text = malloc((size_t)info.st_size + 1)) &&
        pread(options->spec_descriptor, text, (size_t)info.st_size, 0) == info.st_size)
        status = peal_graph_read_memory("-", text, (size_t)info.st_size, options->setting,
                                        options->setting_count, diagnostics, graph);
    else
        status = peal_report(diagnostics, PEAL_E_SPEC_NOT_FOUND, nowhere, NULL,
                             "the launched process cannot read the spec");
    free(text);
    return status;
}

peal_status spec_open(const peal_options *options, peal_diagnostics *diagnostics, peal_spec *out)
{
    *out = (peal_spec){0};
    peal_status status = find_spec(options, diagnostics, &out->path);
    if (status != PEAL_STATUS_OK)
        return status;
    if (options->spec_descriptor >= 0)
        status = read_descriptor(options, diagnostics, &out->graph);
    else
        status = peal_graph_read(out->path, options->setting, options->setting_count, diagnostics,
                                 &out->graph);
    if (status == PEAL_STATUS_OK)
        peal_graph_set_alone(out->graph);
    if (status == PEAL_STATUS_OK && options->steps >= 0 && options->checks_steps)
        peal_graph_set_steps(out->graph, options->steps);
    if (status == PEAL_STATUS_OK)
        status = peal_graph_resolve(out->graph, diagnostics, &out->data);
    return status;
}

void spec_close(peal_spec *spec)
{
    peal_graph_destroy(spec->graph);
    free(spec->path);
    *spec = (peal_spec){0};
}

int64_t machine_cache_bytes(void)
{
    long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return bytes > 0 ? bytes : 1 << 20;
}

int machine_cores(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    return 1;
}

/* What --machine says in words; 0: nothing. */
typedef struct machine_words {
    int64_t node, process, core, cache;
} machine_words;

/* The same by a file, which has the workers of a rank instead of the cores of a process. */
typedef struct machine_given {
    machine_words words;
    peal_machine file;
    peal_machine_times times;
} machine_given;

static peal_status read_word(const char *word, machine_words *description,
                             peal_diagnostics *diagnostics)
{
    static const char *const kinds[] = {"node", "process", "core", "cache"};
    int64_t *const targets[] = {&description->node, &description->process, &description->core,
                                &description->cache};
    size_t length = strcspn(word, ":");
    char kind[16], hint[80];
    snprintf(kind, sizeof(kind), "%.*s", (int)length, word);
    for (int i = 0; i < 4; i++) {
        if (strcmp(kind, kinds[i]))
            continue;
        const char *value = word[length] ? word + length + 1 : "";
        bool fine = i == 3 ? parse_size(value, targets[i])
                           : parse_count(value, 1, i == 0 ? 1 : 1 << 16, targets[i]);
        if (fine)
            return PEAL_STATUS_OK;
        return peal_report(diagnostics, PEAL_E_INVALID_MACHINE, nowhere,
                           i == 0 ? "a cluster is described in a machine file, for `peal simulate`"
                                  : "for example: \"process:4 core:2 cache:1MiB\"",
                           "--machine: '%s' is no %s", value, i == 3 ? "size" : "count here");
    }
    const char *nearest = peal_nearest_word(kind, kinds, 4);
    snprintf(hint, sizeof(hint), nearest ? "did you mean %s?" : "known: node process core cache",
             nearest);
    return peal_report(diagnostics, PEAL_E_INVALID_MACHINE, nowhere, hint,
                       "--machine: unknown word '%s'", kind);
}

static peal_status read_description(const char *text, machine_given *out,
                                    peal_diagnostics *diagnostics)
{
    peal_status status = PEAL_STATUS_OK;
    if (ends_in(text, ".yaml")) {
        status = peal_times_read(text, diagnostics, &out->file, &out->times);
        out->words.process = out->file.processes;
        out->words.cache = out->file.cache_bytes;
        return status;
    }
    char *words = strdup(text), *rest = NULL;
    for (char *word = strtok_r(words, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        peal_status one = read_word(word, &out->words, diagnostics);
        if (one != PEAL_STATUS_OK)
            status = one;
    }
    free(words);
    return status;
}

/* Without a machine to ask: the best that the options allow. */
static peal_path path_described(const peal_options *options, bool matters)
{
    for (int path = PEAL_PATH_VMM; matters && path < PEAL_PATH_COUNT; path++)
        if (peal_transport_allows(options->transport, (peal_path)path))
            return (peal_path)path;
    return PEAL_PATH_NONE;
}

peal_status machine_of(const peal_options *options, peal_diagnostics *diagnostics,
                       peal_machine *out)
{
    peal_machine_times times;
    return machine_and_times_of(options, diagnostics, out, &times);
}

peal_status machine_and_times_of(const peal_options *options, peal_diagnostics *diagnostics,
                                 peal_machine *out, peal_machine_times *times)
{
    machine_given machine = {0};
    peal_status status = PEAL_STATUS_OK;
    if (options->machine)
        status = read_description(options->machine, &machine, diagnostics);
    const machine_words given = machine.words;
    const peal_machine *file = &machine.file;
    if (status != PEAL_STATUS_OK)
        return status;
    int placed;
    const int *node;
    status = hosts_described(options, diagnostics, &placed, &node);
    if (status != PEAL_STATUS_OK)
        return status;
    int asked = placed ? placed : options->processes;
    int ranks = options->ranks  ? options->ranks
                : asked         ? asked
                : file->ranks   ? file->ranks
                : given.process ? (int)given.process
                                : 1;
    int processes = asked ? asked : given.process ? (int)given.process : ranks;
    if (processes > ranks)
        processes = ranks;
    int threads = options->threads ? options->threads
                  : given.core     ? (int)given.core
                                   : machine_cores() / processes;
    int hosted = (ranks + processes - 1) / processes;
    if (machine.times.given && !options->threads)
        threads = hosted; /* a machine of its own: nothing of this one counts */
    int workers = threads / hosted > 1 ? threads / hosted : 1;
    bool accelerator = options->backend && !strcmp(options->backend, "cuda");
    const peal_backend_ops *backend =
        accelerator ? peal_backend_named("cuda") : &peal_backend_host; /* NULL: not built */
    if (accelerator)
        workers = DEVICE_LANES;
    *out = (peal_machine){.ranks = ranks,
                          .processes = processes,
                          .workers = file->workers && !options->threads ? file->workers : workers,
                          .accelerator = accelerator,
                          .node = node,
                          .apart = peal_transport_sets_apart(options->transport),
                          .network = peal_transport_between_hosts(options->transport),
                          .traits = backend ? backend->traits : NULL,
                          .path = path_described(options, accelerator && processes > 1),
                          .tile_points = peal_lowering_tile(options->lowering),
                          .cache_bytes = given.cache ? given.cache : MIB};
    *times = machine.times;
    return PEAL_STATUS_OK;
}

const peal_backend_ops *backend_described(const peal_options *options,
                                          peal_diagnostics *diagnostics)
{
    bool cuda = options->backend && !strcmp(options->backend, "cuda");
    const peal_backend_ops *backend = cuda ? peal_backend_named("cuda") : &peal_backend_host;
    const char *reason = NULL;
    if (backend)
        return backend;
    peal_device_count(&reason);
    peal_report(diagnostics, PEAL_E_NO_GPU, nowhere, NULL, "--backend cuda: %s", reason);
    return NULL;
}

const peal_backend_ops *backend_expected(const peal_options *options)
{
    const char *reason, *name = options->backend ? options->backend : "auto";
    const peal_backend_ops *backend = peal_backend_accelerated();
    if (!strcmp(name, "host") || !backend)
        return &peal_backend_host;
    return !strcmp(name, "cuda") || backend->count(&reason) > 0 ? backend : &peal_backend_host;
}

const char *mode_refusal(const peal_backend_ops *backend, const peal_graph_data *graph,
                         peal_mode mode)
{
    const char *reason = backend->refuses(mode);
    return reason ? reason : peal_graph_refuses(graph, mode, backend->open != NULL);
}

peal_mode mode_in_turn(const peal_backend_ops *backend, int turn)
{
    static const peal_mode order[] = {PEAL_MODE_FUSED, PEAL_MODE_GRAPH, PEAL_MODE_STREAM,
                                      PEAL_MODE_SYNC};
    int count = sizeof(order) / sizeof(*order);
    int at = backend->open ? turn + 1 : turn;
    return at < count ? order[at] : PEAL_MODE_COUNT;
}

peal_mode mode_automatic(const peal_backend_ops *backend, const peal_graph_data *graph)
{
    int turn = 0;
    while (mode_refusal(backend, graph, mode_in_turn(backend, turn)))
        turn++; /* sync runs everything */
    return mode_in_turn(backend, turn);
}

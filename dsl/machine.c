/* Machine files: the machine of a schedule and what takes how long there, as maps of keys: `peal
 * plan SPEC --machine FILE.yaml`. Read like specs, from the same table of keys. */
#include "dsl/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PROCESSORS = 1 << 16, MOST_RANKS = 1 << 20 };

/* A whole number from 1 to `most`; 0: not given, or reported. */
static int64_t read_count(peal_reader *r, const peal_node *root, const char *key, int64_t most)
{
    const peal_node *node = peal_node_find(root, key);
    if (!node)
        return 0;
    bool digits = node->kind == PEAL_NODE_SCALAR && !node->quoted && *node->text &&
                  strspn(node->text, "0123456789") == strlen(node->text);
    if (!digits) {
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at, NULL, "`%s` is a whole number",
                           key);
        return 0;
    }
    errno = 0;
    int64_t value = strtoll(node->text, NULL, 10);
    if (!errno && value >= 1 && value <= most)
        return value;
    peal_reader_report(r, PEAL_E_VALUE_OUT_OF_RANGE, node->at, NULL,
                       "`%s` is %s, not from 1 to %" PRId64, key, node->text, most);
    return 0;
}

/* A time or a rate, within bounds that keep all sums finite. */
static double read_number(peal_reader *r, const peal_node *map, const char *key, double least,
                          double most)
{
    const peal_node *node = peal_node_find(map, key);
    char *end = NULL;
    if (!node)
        return 0;
    bool number = node->kind == PEAL_NODE_SCALAR && !node->quoted && *node->text &&
                  strspn(node->text, "0123456789.eE+-") == strlen(node->text);
    double value = number ? strtod(node->text, &end) : 0;
    if (!number || *end) {
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at,
                           "seconds and bytes without a unit, such as 1.5e-6", "`%s` is a number",
                           key);
        return 0;
    }
    if (value >= least && value <= most)
        return value;
    peal_reader_report(r, PEAL_E_VALUE_OUT_OF_RANGE, node->at, NULL,
                       "`%s` is %s, not from %g to %g", key, node->text, least, most);
    return 0;
}

static double read_seconds(peal_reader *r, const peal_node *map, const char *key)
{
    return read_number(r, map, key, 0, 1e9);
}

/* The map that a key has; NULL: not given, or reported. */
static const peal_node *read_map(peal_reader *r, const peal_node *root, const char *key)
{
    const peal_node *node = peal_node_find(root, key);
    if (!node || node->kind == PEAL_NODE_MAP)
        return node;
    peal_reader_report(
        r, PEAL_E_WRONG_VALUE_SHAPE, node->at, NULL, "`%s` is %s", key,
        peal_key_kind_of(peal_context_find(peal_context_at(PEAL_CONTEXT_MACHINE), key))->name);
    return NULL;
}

/* What a pair of such a map holds; NULL after a diagnostic. */
static const peal_node *read_times(peal_reader *r, const peal_pair *pair, peal_context_id context)
{
    if (pair->value->kind != PEAL_NODE_MAP) {
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, pair->value->at,
                           peal_context_at(context)->example, "`%s` is a map of times",
                           pair->key->text);
        return NULL;
    }
    return peal_reader_check_keys(r, pair->value, context) ? pair->value : NULL;
}

/* The number of a word among names; -1 after a diagnostic. */
static int find_word(peal_reader *r, const peal_node *key, const char *const *names, int count,
                     const char *what)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(key->text, names[i]))
            return i;
    const char *nearest = peal_nearest_word(key->text, names, (size_t)count);
    peal_reader_report(r, PEAL_E_UNKNOWN_WORD, key->at,
                       nearest ? peal_arena_print(r->arena, "did you mean `%s`?", nearest) : NULL,
                       "`%s` is no %s", key->text, what);
    return -1;
}

static bool read_boolean(peal_reader *r, const peal_node *root, const char *key)
{
    peal_node *node = peal_node_find(root, key);
    return node && peal_reader_boolean(r, node);
}

/* What costs nothing would be preferred everywhere: a file written by hand, or measured badly. */
static void refuse_zeros(peal_reader *r, const peal_pair *pair, const char *what, double sum)
{
    if (sum <= 0)
        peal_reader_report(r, PEAL_E_MACHINE_TIMES_ZERO, pair->key->at,
                           "leave it out, or measure it: `peal bench --save-machine FILE.yaml`",
                           "%s `%s` has no time above 0", what, pair->key->text);
}

/* mode: those of a mode; NULL: of all. */
static void read_kernels(peal_reader *r, const peal_node *map, const peal_mode *mode,
                         peal_machine_times *out)
{
    for (int i = 0; map && i < map->count; i++) {
        const peal_pair *pair = &map->pair[i];
        const peal_node *times = read_times(r, pair, PEAL_CONTEXT_KERNEL_TIMES);
        if (out->kernel_count >= PEAL_KERNEL_TIMES ||
            strlen(pair->key->text) >= PEAL_TASK_NAME_BYTES) {
            peal_reader_report(r, PEAL_E_TOO_MANY_ITEMS, pair->key->at,
                               "`default` is for the tasks that are not listed",
                               "`kernels` has at most %d tasks, with names of less than %d bytes",
                               PEAL_KERNEL_TIMES, PEAL_TASK_NAME_BYTES);
            return;
        }
        if (!times)
            continue;
        peal_kernel_times *kernel = &out->kernel[out->kernel_count++];
        strcpy(kernel->task, pair->key->text);
        kernel->of_mode = mode != NULL;
        kernel->mode = mode ? *mode : PEAL_MODE_SERIAL;
        kernel->fixed_s = read_seconds(r, times, "fixed_s");
        kernel->per_point_s = read_seconds(r, times, "per_point_s");
        kernel->per_byte_s = read_seconds(r, times, "per_byte_s");
        kernel->launch_s = read_seconds(r, times, "launch_s");
        if (times->count > 0) /* {}: said to take no time */
            refuse_zeros(r, pair, "the kernel",
                         kernel->fixed_s + kernel->per_point_s + kernel->per_byte_s +
                             kernel->launch_s);
    }
}

static void read_modes(peal_reader *r, const peal_node *map, peal_machine_times *out)
{
    const char *names[PEAL_MODE_COUNT];
    for (int i = 0; i < PEAL_MODE_COUNT; i++)
        names[i] = peal_mode_name((peal_mode)i);
    for (int i = 0; map && i < map->count; i++) {
        int mode = find_word(r, map->pair[i].key, names, PEAL_MODE_COUNT, "mode");
        const peal_node *times = read_times(r, &map->pair[i], PEAL_CONTEXT_MODE_TIMES);
        if (mode < 0 || !times)
            continue;
        peal_mode of = (peal_mode)mode;
        read_kernels(r, read_map(r, times, "kernels"), &of, out);
        out->mode[mode] =
            (peal_mode_times){.given = true,
                              .launch_s = read_seconds(r, times, "launch_s"),
                              .post_s = read_seconds(r, times, "post_s"),
                              .kernel_s = read_seconds(r, times, "kernel_s"),
                              .copy_s = read_seconds(r, times, "copy_s"),
                              .write_s = read_seconds(r, times, "write_s"),
                              .wait_s = read_seconds(r, times, "wait_s"),
                              .synchronize_s = read_seconds(r, times, "synchronize_s"),
                              .stretch = read_number(r, times, "stretch", 1, 1e6),
                              .apart = read_boolean(r, times, "apart")};
        const peal_mode_times *t = &out->mode[mode];
        if (!peal_node_find(times, "kernels"))
            refuse_zeros(r, &map->pair[i], "the mode",
                         t->launch_s + t->post_s + t->kernel_s + t->copy_s + t->write_s +
                             t->wait_s + t->synchronize_s + t->stretch);
    }
    if (!out->mode[PEAL_MODE_SERIAL].given)
        out->mode[PEAL_MODE_SERIAL] = out->mode[PEAL_MODE_SYNC];
}

static peal_link_share read_share(peal_reader *r, const peal_node *node)
{
    static const char *const names[] = {"none", "device", "node"};
    int share = 0;
    if (node && node->kind != PEAL_NODE_SCALAR)
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at, NULL,
                           "`shared` is none, device or node");
    else if (node)
        share = find_word(r, node, names, 3, "way to share a link: none, device, node");
    return share < 0 ? PEAL_SHARE_NONE : (peal_link_share)share;
}

static void read_links(peal_reader *r, const peal_node *map, peal_machine_times *out)
{
    const char *names[PEAL_LINK_COUNT];
    for (int i = 0; i < PEAL_LINK_COUNT; i++)
        names[i] = peal_link_name((peal_link_class)i);
    for (int i = 0; map && i < map->count; i++) {
        int link = find_word(r, map->pair[i].key, names, PEAL_LINK_COUNT, "kind of link");
        const peal_node *times = read_times(r, &map->pair[i], PEAL_CONTEXT_LINK_TIMES);
        if (link < 0 || !times)
            continue;
        out->link[link] =
            (peal_link_times){.given = true,
                              .latency_s = read_seconds(r, times, "latency_s"),
                              .bytes_per_s = read_number(r, times, "bytes_per_s", 1, 1e18),
                              .shared = read_share(r, peal_node_find(times, "shared"))};
    }
}

static void read_machine(peal_reader *r, const peal_node *root, peal_machine *out,
                         peal_machine_times *times)
{
    if (root->kind != PEAL_NODE_MAP) {
        peal_reader_report(r, PEAL_E_NOT_A_SPEC, root->at,
                           "a machine file begins with `machine: 1`",
                           "a machine file is a map of keys");
        return;
    }
    peal_reader_check_keys(r, root, PEAL_CONTEXT_MACHINE);
    const peal_node *version = peal_node_find(root, "machine");
    if (version && (version->kind != PEAL_NODE_SCALAR || strcmp(version->text, "1")))
        peal_reader_report(r, PEAL_E_WRONG_VERSION, version->at, "write `machine: 1`",
                           "this peal reads version 1 of machine files");
    out->ranks = (int)read_count(r, root, "ranks", MOST_RANKS);
    out->processes = (int)read_count(r, root, "processes", MOST_PROCESSORS);
    out->workers = (int)read_count(r, root, "workers", MOST_PROCESSORS);
    out->cache_bytes = read_count(r, root, "cache_bytes", INT64_C(1) << 40);
    const peal_node *processes = peal_node_find(root, "processes");
    if (out->ranks && out->processes > out->ranks)
        peal_reader_report(r, PEAL_E_VALUE_OUT_OF_RANGE, processes->at,
                           "each process hosts at least one rank", "%d processes for %d ranks",
                           out->processes, out->ranks);
    times->accelerator = read_boolean(r, root, "accelerator");
    times->devices = (int)read_count(r, root, "devices", MOST_PROCESSORS);
    times->devices += times->devices == 0;
    times->nodes = (int)read_count(r, root, "nodes", MOST_RANKS);
    const peal_node *modes = read_map(r, root, "modes"), *links = read_map(r, root, "links");
    times->given = modes || links;
    read_modes(r, modes, times);
    read_kernels(r, read_map(r, root, "kernels"), NULL, times);
    read_links(r, links, times);
}

static peal_status try_to_read(const char *name, const char *bytes, size_t count, peal_reader *r,
                               peal_machine *machine, peal_machine_times *times)
{
    peal_node *root;
    int node_count;
    PEAL_ARENA_GUARD(r->arena, return peal_document_no_memory(name, r->arena, r->diagnostics));
    peal_status status =
        peal_document_parse(name, bytes, count, r->arena, r->diagnostics, &root, &node_count);
    if (status)
        return status;
    read_machine(r, root, machine, times);
    return r->failures ? PEAL_STATUS_SPEC : PEAL_STATUS_OK;
}

static peal_status no_arena(const char *path, peal_diagnostics *diagnostics)
{
    return peal_report(diagnostics, PEAL_E_COMPILE_OUT_OF_MEMORY, (peal_source){path, 0, 0}, NULL,
                       "no memory to read it");
}

peal_status peal_machine_read_memory(const char *name, const char *bytes, size_t count,
                                     peal_diagnostics *diagnostics, peal_machine *out,
                                     peal_machine_times *times)
{
    peal_arena *arena = peal_arena_create();
    peal_machine machine = {0};
    peal_machine_times read = {0};
    if (!arena)
        return no_arena(name, diagnostics);
    peal_reader r = {.arena = arena, .diagnostics = diagnostics};
    peal_status status = try_to_read(name, bytes, count, &r, &machine, &read);
    if (!status) {
        *out = machine;
        *times = read;
    }
    peal_arena_destroy(arena);
    return status;
}

static peal_status try_to_load(const char *path, peal_arena *arena, peal_diagnostics *diagnostics,
                               const char **bytes, size_t *count)
{
    PEAL_ARENA_GUARD(arena, return peal_document_no_memory(path, arena, diagnostics));
    return peal_document_load(path, arena, diagnostics, bytes, count);
}

peal_status peal_machine_read(const char *path, peal_diagnostics *diagnostics, peal_machine *out,
                              peal_machine_times *times)
{
    peal_arena *arena = peal_arena_create();
    const char *bytes;
    size_t count;
    if (!arena)
        return no_arena(path, diagnostics);
    peal_status status = try_to_load(path, arena, diagnostics, &bytes, &count);
    if (!status)
        status = peal_machine_read_memory(path, bytes, count, diagnostics, out, times);
    peal_arena_destroy(arena);
    return status;
}

/* Machine files: the machine of a schedule and what takes how long there, as maps of keys: `peal
 * plan SPEC --machine FILE.yaml`. Read like specs, from the same table of keys. */
#include "dsl/reader.h"

#include <string.h>

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

/* What costs nothing would be preferred everywhere: a file written by hand, or measured badly. */
static void refuse_zeros(peal_reader *r, const peal_pair *pair, peal_context_id id,
                         const char *what, const void *times)
{
    const peal_context *context = peal_context_at(id);
    double sum = 0;
    for (int i = 0; i < context->key_count; i++)
        if (context->key[i].type == PEAL_KEY_SECONDS || context->key[i].type == PEAL_KEY_RATE)
            sum += *(const double *)peal_key_member(&context->key[i], times);
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
        peal_reader_fill(r, times, PEAL_CONTEXT_KERNEL_TIMES, kernel);
        if (times->count > 0) /* {}: said to take no time */
            refuse_zeros(r, pair, PEAL_CONTEXT_KERNEL_TIMES, "the kernel", kernel);
    }
}

static void read_modes(peal_reader *r, const peal_node *map, peal_machine_times *out)
{
    const char *names[PEAL_MODE_COUNT];
    for (int i = 0; i < PEAL_MODE_COUNT; i++)
        names[i] = peal_mode_name((peal_mode)i);
    for (int i = 0; map && i < map->count; i++) {
        int mode = peal_reader_word(r, map->pair[i].key, names, PEAL_MODE_COUNT, "mode");
        const peal_node *times = read_times(r, &map->pair[i], PEAL_CONTEXT_MODE_TIMES);
        if (mode < 0 || !times)
            continue;
        peal_mode of = (peal_mode)mode;
        read_kernels(r, read_map(r, times, "kernels"), &of, out);
        out->mode[mode].given = true;
        peal_reader_fill(r, times, PEAL_CONTEXT_MODE_TIMES, &out->mode[mode]);
        if (!peal_node_find(times, "kernels"))
            refuse_zeros(r, &map->pair[i], PEAL_CONTEXT_MODE_TIMES, "the mode", &out->mode[mode]);
    }
    if (!out->mode[PEAL_MODE_SERIAL].given)
        out->mode[PEAL_MODE_SERIAL] = out->mode[PEAL_MODE_SYNC];
}

static void read_links(peal_reader *r, const peal_node *map, peal_machine_times *out)
{
    const char *names[PEAL_LINK_COUNT];
    for (int i = 0; i < PEAL_LINK_COUNT; i++)
        names[i] = peal_link_name((peal_link_class)i);
    for (int i = 0; map && i < map->count; i++) {
        int link = peal_reader_word(r, map->pair[i].key, names, PEAL_LINK_COUNT, "kind of link");
        const peal_node *times = read_times(r, &map->pair[i], PEAL_CONTEXT_LINK_TIMES);
        if (link < 0 || !times)
            continue;
        out->link[link].given = true;
        peal_reader_fill(r, times, PEAL_CONTEXT_LINK_TIMES, &out->link[link]);
    }
}

static void read_machine(peal_reader *r, const peal_node *root, peal_machine_file *out)
{
    const peal_machine *machine = &out->machine;
    peal_machine_times *times = &out->times;
    if (root->kind != PEAL_NODE_MAP) {
        peal_reader_report(r, PEAL_E_NOT_A_SPEC, root->at,
                           "a machine file begins with `machine: 1`",
                           "a machine file is a map of keys");
        return;
    }
    peal_reader_keys(r, root, PEAL_CONTEXT_MACHINE, out);
    if (machine->ranks && machine->processes > machine->ranks)
        peal_reader_report(r, PEAL_E_VALUE_OUT_OF_RANGE, peal_node_find(root, "processes")->at,
                           "each process hosts at least one rank", "%d processes for %d ranks",
                           machine->processes, machine->ranks);
    times->devices += times->devices == 0;
    const peal_node *modes = read_map(r, root, "modes"), *links = read_map(r, root, "links");
    times->given = modes || links;
    read_modes(r, modes, times);
    read_kernels(r, read_map(r, root, "kernels"), NULL, times);
    read_links(r, links, times);
}

static peal_status try_to_read(const char *name, const char *bytes, size_t count, peal_reader *r,
                               peal_machine_file *out)
{
    peal_node *root;
    int node_count;
    PEAL_ARENA_GUARD(r->arena, return peal_document_no_memory(name, r->arena, r->diagnostics));
    peal_status status =
        peal_document_parse(name, bytes, count, r->arena, r->diagnostics, &root, &node_count);
    if (status)
        return status;
    read_machine(r, root, out);
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
    peal_machine_file file = {0};
    if (!arena)
        return no_arena(name, diagnostics);
    peal_reader r = {.arena = arena, .diagnostics = diagnostics};
    peal_status status = try_to_read(name, bytes, count, &r, &file);
    if (!status) {
        *out = file.machine;
        *times = file.times;
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

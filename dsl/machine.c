/* Machine files: the machine of a schedule as a map of keys, `peal plan SPEC --machine FILE.yaml`.
 * Read like specs, from the same table of keys. */
#include "dsl/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PROCESSORS = 1 << 16 };

/* A whole number from 1 to `most`; 0: not given, or reported. */
static int64_t read_count(peal_reader *r, const peal_node *root, const char *key, int64_t most)
{
    const peal_node *node = peal_node_find(root, key);
    if (!node)
        return 0;
    bool digits = node->kind == PEAL_NODE_SCALAR && !node->quoted && *node->text &&
                  strspn(node->text, "0123456789") == strlen(node->text);
    if (!digits) {
        peal_reader_report(r, PEAL_E013, node->at, NULL, "`%s` is a whole number", key);
        return 0;
    }
    errno = 0;
    int64_t value = strtoll(node->text, NULL, 10);
    if (!errno && value >= 1 && value <= most)
        return value;
    peal_reader_report(r, PEAL_E047, node->at, NULL, "`%s` is %s, not from 1 to %" PRId64, key,
                       node->text, most);
    return 0;
}

static void read_machine(peal_reader *r, const peal_node *root, peal_machine *out)
{
    if (root->kind != PEAL_NODE_MAP) {
        peal_reader_report(r, PEAL_E011, root->at, "a machine file begins with `machine: 1`",
                           "a machine file is a map of keys");
        return;
    }
    peal_reader_check_keys(r, root, PEAL_CONTEXT_MACHINE);
    const peal_node *version = peal_node_find(root, "machine");
    if (version && (version->kind != PEAL_NODE_SCALAR || strcmp(version->text, "1")))
        peal_reader_report(r, PEAL_E015, version->at, "write `machine: 1`",
                           "this peal reads version 1 of machine files");
    out->ranks = (int)read_count(r, root, "ranks", MOST_PROCESSORS);
    out->processes = (int)read_count(r, root, "processes", MOST_PROCESSORS);
    out->workers = (int)read_count(r, root, "workers", MOST_PROCESSORS);
    out->cache_bytes = read_count(r, root, "cache_bytes", INT64_C(1) << 40);
    const peal_node *processes = peal_node_find(root, "processes");
    if (out->ranks && out->processes > out->ranks)
        peal_reader_report(r, PEAL_E047, processes->at, "each process hosts at least one rank",
                           "%d processes for %d ranks", out->processes, out->ranks);
}

peal_status peal_machine_read(const char *path, peal_diagnostics *diagnostics, peal_machine *out)
{
    peal_arena *arena = peal_arena_create();
    peal_machine machine = {0};
    const char *bytes;
    size_t count;
    peal_node *root;
    int node_count;
    if (!arena)
        return PEAL_STATUS_ENVIRONMENT;
    peal_reader r = {.arena = arena, .diagnostics = diagnostics};
    peal_status status = peal_document_load(path, arena, diagnostics, &bytes, &count);
    if (!status)
        status = peal_document_parse(path, bytes, count, arena, diagnostics, &root, &node_count);
    if (!status) {
        read_machine(&r, root, &machine);
        status = r.failures ? PEAL_STATUS_SPEC : PEAL_STATUS_OK;
    }
    if (!status)
        *out = machine;
    peal_arena_destroy(arena);
    return status;
}

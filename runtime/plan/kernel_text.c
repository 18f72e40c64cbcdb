/* What a process's kernels are made of, for the comparison with the others: contents of kernel
 * files, of what they include, of precompiled code, and the command of the C compiler with its
 * flags. Folders may differ between processes. */
#define _GNU_SOURCE
#include "base/kernel_source.h"
#include "base/sha256.h"
#include "runtime/plan/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* As the spec's folder has it; what lies elsewhere: its last name. */
static const char *name_of(const peal_graph_data *graph, const char *path)
{
    const char *folder = graph->folder && *graph->folder ? graph->folder : ".";
    size_t length = strlen(folder);

    if (strncmp(path, folder, length) == 0 && path[length] == '/')
        return path + length + 1;
    const char *slash = *path == '/' || strncmp(path, "..", 2) == 0 ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}

static uint64_t hash_of(const char *data, size_t bytes)
{
    unsigned char digest[PEAL_SHA256_BYTES];
    uint64_t first;
    peal_sha256 hash;

    peal_sha256_init(&hash);
    peal_sha256_add(&hash, data, bytes);
    peal_sha256_finish(&hash, digest);
    memcpy(&first, digest, sizeof(first));
    return first;
}

static void print_file(FILE *out, const char *what, const char *name, const char *data,
                       size_t bytes)
{
    fprintf(out, "%s %s, contents %016" PRIx64 "\n", what, name, hash_of(data, bytes));
}

/* The compiler's command, and where it looks for more headers. */
static void print_compiler(FILE *out)
{
    static const char *const folders[] = {"CPATH", "C_INCLUDE_PATH"};
    const char *compiler = getenv("CC");

    fprintf(out, "compiler %s\n", compiler && *compiler ? compiler : "cc");
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        if (getenv(folders[i]))
            fprintf(out, "%s %s\n", folders[i], getenv(folders[i]));
}

static peal_status no_memory(peal_diagnostics *diagnostics)
{
    return peal_report(diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                       "no memory to compare the kernels of the processes");
}

/* A line a file; malloc'ed. */
static peal_status print_files(const peal_plan *plan, peal_arena *arena,
                               peal_diagnostics *diagnostics, char **text)
{
    peal_kernel_files files = {0};
    const peal_kernel_file *included;
    size_t bytes = 0;
    bool known;

    PEAL_ARENA_GUARD(arena, return no_memory(diagnostics));
    peal_status status =
        peal_kernel_files_read(plan->data, plan->options.allow_outside, arena, diagnostics, &files);
    if (status)
        return status;
    int count = peal_kernel_files_find(&files, arena, &included, &known);
    if (count < 0)
        return peal_report(diagnostics, PEAL_E_SYSTEM_CALL_FAILED, files.source, NULL,
                           "cannot read a file that the kernel files include: %s", strerror(errno));
    FILE *out = open_memstream(text, &bytes);
    if (!out)
        return no_memory(diagnostics);
    for (int i = 0; i < files.count; i++)
        print_file(out, "kernels", name_of(plan->data, files.file[i].path), files.file[i].text,
                   strlen(files.file[i].text));
    for (int i = 0; i < files.code_count; i++)
        print_file(out, "kernels", name_of(plan->data, files.code[i].path), files.code[i].data,
                   files.code[i].bytes);
    for (int i = 0; i < count; i++)
        print_file(out, "included", name_of(plan->data, included[i].path), included[i].text,
                   strlen(included[i].text));
    print_compiler(out);
    return fclose(out) == 0 ? PEAL_STATUS_OK : no_memory(diagnostics);
}

/* NULL: no kernels. */
static peal_status describe(const peal_plan *plan, peal_diagnostics *diagnostics, char **text)
{
    *text = NULL;
    if (plan->data->kernel_count == 0)
        return PEAL_STATUS_OK;
    peal_arena *arena = peal_arena_create();
    peal_status status =
        arena ? print_files(plan, arena, diagnostics, text) : no_memory(diagnostics);
    peal_arena_destroy(arena);
    return status;
}

peal_status peal_plan_hash_kernels(peal_plan *plan)
{
    char *text;
    peal_status status = describe(plan, plan->session->diagnostics, &text);

    plan->kernel_hash = text ? hash_of(text, strlen(text)) : 0;
    free(text);
    return status;
}

size_t peal_plan_kernel_text(const peal_plan *plan, char *text, size_t bytes)
{
    char *all;
    describe(plan, NULL, &all);
    int length = snprintf(text, bytes, "%s", all ? all : "");

    free(all);
    return length > 0 ? (size_t)length : 0;
}

/* Compiles a unit of a source, and says what is wrong with it in the terms of who wrote the spec.
 */
#define _GNU_SOURCE
#include "backends/cuda/jit/source_compile.h"

#include <stdio.h>
#include <string.h>

/* ---- errors ---- */

/* Whether a message about a task's pseudo file says that the kernel is not defined. */
static bool is_missing(const char *message)
{
    return strstr(message, "\"peal_kernel_") && strstr(message, "is undefined");
}

static peal_status report_task(const peal_cuda_source *source, peal_cuda_entry *entry,
                               const peal_compile_error *error)
{
    peal_diagnostics *diagnostics = source->desc.diagnostics;

    if (entry->is_reported)
        return PEAL_STATUS_SPEC;
    entry->is_reported = true;
    if (!entry->is_users)
        return peal_report(diagnostics, PEAL_E_INTERNAL, entry->task->source, NULL,
                           "the code of `%s` does not compile: %s", entry->task->name,
                           error->message);
    if (!is_missing(error->message))
        return peal_kernel_report_misfit(diagnostics, source->arena, &source->files, entry->task,
                                         entry->signature, error->message);
    const char *included = peal_kernel_files_included(&source->files, source->arena);
    size_t count = 0;
    const char **names =
        peal_cuda_kernel_names(peal_arena_print(source->arena, "%s%s", source->text,
                                                included ? included : ""),
                               source->arena, &count);
    return peal_kernel_report_missing(diagnostics, source->arena, &source->files, entry->task,
                                      entry->signature, names, count);
}

/* Whether the message is the compiler's about what no GPU has. */
static bool is_beyond_device(const char *message)
{
    static const char *const words[] = {"cannot open source file", "__host__", "in device code",
                                        "dynamic initialization"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(message, words[i]))
            return true;
    return false;
}

/* Neither a C file has the kernel, nor the device code a function of its name. */
static peal_status report_unlinked(const peal_cuda_source *source, const char *kernel)
{
    for (int i = 0; i < source->entry_count; i++) {
        const peal_cuda_entry *entry = &source->entry[i];
        if (!entry->is_linked || strcmp(entry->task->kernel, kernel) != 0)
            continue;
        return peal_report(source->desc.diagnostics, PEAL_E_NO_SUCH_KERNEL, entry->task->source,
                           peal_arena_print(source->arena,
                                            "is it extern \"C\" __device__ void %s(...), as "
                                            "<peal/block.h> says? `peal plan --emit cuda` prints "
                                            "its declaration",
                                            kernel),
                           "task `%s`: neither a kernel file defines PEAL_KERNEL(%s), nor the "
                           "device code a function `%s`",
                           entry->task->name, kernel, kernel);
    }
    return peal_report(source->desc.diagnostics, PEAL_E_DEVICE_LINK_ERROR,
                       source->graph->kernels_source,
                       "name the file that has it in `kernels:`, too",
                       "the device code calls `%s`, which is nowhere", kernel);
}

/* Whether the message is about a file that the user's text includes by name, and that is missing.
 */
static bool is_users_include(const peal_cuda_source *source, const peal_compile_error *error)
{
    const char *name = strstr(error->message, "cannot open source file ");
    for (int i = 0; i < source->files.count && name && error->file; i++)
        if (!strcmp(source->files.file[i].path, error->file) &&
            strstr(source->files.file[i].text, strchr(name, '"')))
            return true;
    return false;
}

static peal_status report_errors(const peal_cuda_source *source,
                                 const peal_cuda_compile_result *result)
{
    peal_status status = peal_compile_errors_unclosed(result->error, result->error_count,
                                                      &source->files, source->desc.diagnostics);
    int count = status ? 0 : peal_compile_errors_sift(result->error, result->error_count);

    for (int i = 0; i < count; i++) {
        const peal_compile_error *error = &result->error[i];
        peal_source where = {.file = error->file, .line = error->line, .column = error->column};
        int index = -1;
        char kernel[128];
        if (error->file && sscanf(error->file, "<link %127[^>]", kernel) == 1)
            status = report_unlinked(source, kernel);
        else if (error->file && sscanf(error->file, "<task %d", &index) == 1 && index >= 0 &&
                 index < source->entry_count)
            status = report_task(source, &source->entry[index], error);
        else if (is_users_include(source, error))
            status =
                peal_report(source->desc.diagnostics, PEAL_E_KERNEL_COMPILE_ERROR, where,
                            "it is looked for beside the file that names it", "%s", error->message);
        else if (is_beyond_device(error->message))
            status = peal_report(source->desc.diagnostics, PEAL_E_KERNEL_NOT_FOR_GPU, where,
                                 "kernels use no library but math", "%s", error->message);
        else
            status = peal_report(source->desc.diagnostics, PEAL_E_KERNEL_COMPILE_ERROR, where,
                                 peal_compile_error_hint(error->message, source->files.count), "%s",
                                 error->message);
    }
    return status;
}

/* ---- compiling ---- */

peal_cuda_compile_request peal_cuda_source_request(const peal_cuda_source *source, const char *text,
                                                   int architecture)
{
    return (peal_cuda_compile_request){.source = text,
                                       .files = &source->files,
                                       .architecture = architecture,
                                       .fma = source->graph->fma,
                                       .links = source->needs.linked,
                                       .spec_source = source->graph->kernels_source,
                                       .cache_folder = source->desc.cache_folder,
                                       .deadline_ns = source->desc.deadline_ns,
                                       .abort_word = source->desc.abort_word,
                                       .diagnostics = source->desc.diagnostics,
                                       .arena = source->arena};
}

peal_status peal_cuda_source_compile(const peal_cuda_source *source,
                                     const peal_cuda_compile_request *request,
                                     peal_cuda_compile_result *out)
{
    peal_status status = peal_cuda_compile(request, out);

    return status || out->error_count == 0 ? status : report_errors(source, out);
}

/* Generates one C source from the spec's kernel files and the tasks that call them, and has it
 * compiled.
 *
 * Each distinct call of a kernel becomes a trampoline that takes a peal_call, in two variants: with
 * partials, and without. A trampoline is at a line of a pseudo file of its own, so that the
 * compiler's messages about it can be distinguished from those about the user's lines. */
#define _GNU_SOURCE
#include "backends/host/kernels.h"

#include "backends/host/compile.h"
#include "base/kernel_source.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct kernel_call {
    const char *kernel;
    const char *text;      /* of the call's arguments: equal calls share a trampoline */
    const char *signature; /* as the user should have written it */
    const peal_schedule_task *task;
    peal_function full, no_reduction;
    bool is_reported;
} kernel_call;

struct host_kernels {
    peal_arena *arena;
    const peal_backend_desc *desc;
    const peal_graph_data *graph;
    kernel_call *call;
    int call_count;
    peal_kernel_files files;
    void *library;
    int memory; /* the descriptor of the library's file, if that is in memory; else -1 */
};

/* Calls. */

static const char *type_of(const peal_schedule *schedule, int array)
{
    return peal_type_c_name(schedule->array[array].type);
}

static void print_call(const peal_schedule *schedule, const peal_schedule_task *task, FILE *call)
{
    fprintf(call, "peal_kernel_%s(call->tile", task->kernel);
    for (int i = 0; i < task->access_count; i++) {
        const peal_task_access *access = &task->access[i];
        const char *type = type_of(schedule, access->array);
        fprintf(call, ", (%s%s *)call->view[%d].base, peal_%s_of_(&call->view[%d])",
                access->mode == PEAL_READ_ACCESS ? "const " : "", type, i,
                schedule->array[access->array].has_components ? "component_strides" : "strides", i);
    }
    for (int i = 0; i < task->reduction_count; i++) {
        const char *type = type_of(schedule, task->reduction[i].array);
        fprintf(call, ", (%s *)PARTIAL(%d)", type, i);
    }
    for (int i = 0; i < task->argument_count; i++) {
        bool real = task->argument_is_real[i];
        fprintf(call, ", (%s)call->argument[%d].%s", real ? "double" : "long", i,
                real ? "real" : "integer");
    }
    fprintf(call, ")");
}

static void describe_call(peal_arena *arena, const peal_schedule *schedule,
                          const peal_schedule_task *task, kernel_call *out)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *call = open_memstream(&text, &bytes);

    if (!call)
        peal_arena_fail(arena, BUFSIZ);
    print_call(schedule, task, call);
    fclose(call);
    *out = (kernel_call){.kernel = task->kernel,
                         .text = peal_arena_copy_text(arena, text),
                         .signature = peal_kernel_signature(arena, schedule, task),
                         .task = task};
    free(text);
}

static void collect_calls(host_kernels *kernels)
{
    const peal_backend_desc *desc = kernels->desc;
    int most = 0;

    for (int r = 0; r < desc->rank_count; r++)
        most += desc->rank[r].schedule->task_count;
    kernels->call = PEAL_ARENA_ARRAY(kernels->arena, kernel_call, most + 1);
    for (int r = 0; r < desc->rank_count; r++) {
        const peal_schedule *schedule = desc->rank[r].schedule;
        for (int t = 0; t < schedule->task_count; t++) {
            kernel_call *call = &kernels->call[kernels->call_count];
            int same = 0;
            if (!peal_kernel_is_needed(&schedule->task[t]))
                continue;
            describe_call(kernels->arena, schedule, &schedule->task[t], call);
            while (same < kernels->call_count && strcmp(kernels->call[same].text, call->text) != 0)
                same++;
            kernels->call_count += same == kernels->call_count;
        }
    }
}

/* The source. */

static void print_trampolines(const host_kernels *kernels, FILE *out)
{
    fprintf(out, "\n#line 1 \"generated\"\n"
                 "static inline __attribute__((always_inline, unused)) peal_strides_\n"
                 "peal_strides_of_(const peal_view *view)\n"
                 "{\n    return (peal_strides_){view->stride[1], view->stride[2], "
                 "view->stride[3]};\n}\n"
                 "static inline __attribute__((always_inline, unused)) peal_component_strides_\n"
                 "peal_component_strides_of_(const peal_view *view)\n"
                 "{\n    return (peal_component_strides_){view->stride[1], view->stride[2], "
                 "view->stride[3]};\n}\n");
    for (int i = 0; i < kernels->call_count; i++) {
        const char *text = kernels->call[i].text;
        fprintf(out, "#define PARTIAL(index) call->partial[index]\n");
        /* The call alone would silently convert an integer to a double, or truncate a real number.
         * The tile has an unusual name here, because a buffer may be called t. */
        const char *parameters = peal_kernel_parameters(kernels->call[i].signature);
        fprintf(out,
                "#line 1 \"<task %d>\"\nvoid peal_run_%d(const peal_call *call)\n{\n"
                "    void (*const fits)(peal_tile peal_tile_%s = peal_kernel_%s;\n"
                "    (void)fits;\n    %s;\n}\n",
                i, i, parameters, kernels->call[i].kernel, text);
        fprintf(out, "#undef PARTIAL\n#define PARTIAL(index) 0\n");
        fprintf(out,
                "#line 1 \"<task %d>\"\nvoid peal_run_bare_%d(const peal_call *call)\n{\n    "
                "%s;\n}\n#undef PARTIAL\n",
                i, i, text);
    }
}

static char *print_source(const host_kernels *kernels)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    if (!out)
        peal_arena_fail(kernels->arena, BUFSIZ);
    fprintf(out, "#include <peal/kernel.h>\n");
    for (int i = 0; i < kernels->files.count; i++)
        peal_kernel_file_print(&kernels->files.file[i], out);
    print_trampolines(kernels, out);
    fclose(out);
    return text;
}

/* The compiler's messages. */

/* The names that follow `prefix` wherever it is in a text. */
static const char **kernel_names(peal_arena *arena, const char *text, const char *prefix,
                                 size_t *count)
{
    size_t most = 0;

    for (const char *at = strstr(text, prefix); at; at = strstr(at + 1, prefix))
        most++;
    const char **names = PEAL_ARENA_ARRAY(arena, const char *, most + 1);
    *count = 0;
    for (const char *at = strstr(text, prefix); at; at = strstr(at + 1, prefix)) {
        const char *name = at + strlen(prefix);
        size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                                     "0123456789");
        if (length > 0)
            names[(*count)++] = peal_arena_copy_bytes(arena, name, length);
    }
    return names;
}

static peal_status report_missing(const host_kernels *kernels, const char *preprocessed)
{
    peal_status status = PEAL_STATUS_OK;
    size_t count = 0;
    const char **names = kernel_names(kernels->arena, preprocessed, "void peal_kernel_", &count);

    for (int i = 0; i < kernels->call_count; i++) {
        const kernel_call *call = &kernels->call[i];
        bool found = false;
        for (size_t k = 0; k < count; k++)
            found = found || strcmp(names[k], call->kernel) == 0;
        if (found)
            continue;
        status =
            peal_kernel_report_missing(kernels->desc->diagnostics, kernels->arena, &kernels->files,
                                       call->task, call->signature, names, count);
    }
    return status;
}

/* A kernel that does not fit its task is reported once, however many messages the compiler has. */
static peal_status report_misfit(const host_kernels *kernels, kernel_call *call,
                                 const peal_compile_error *error)
{
    if (call->is_reported)
        return PEAL_STATUS_SPEC;
    call->is_reported = true;
    return peal_kernel_report_misfit(kernels->desc->diagnostics, kernels->arena, &kernels->files,
                                     call->task, call->signature, error->message);
}

static peal_status report_errors(const host_kernels *kernels, const host_compile_result *result)
{
    peal_status status = peal_compile_errors_unclosed(result->error, result->error_count,
                                                      &kernels->files, kernels->desc->diagnostics);

    int count = status ? 0 : peal_compile_errors_sift(result->error, result->error_count);

    for (int i = 0; i < count; i++) {
        const peal_compile_error *error = &result->error[i];
        peal_source source = {.file = error->file, .line = error->line, .column = error->column};
        int index = -1;
        if (error->file && sscanf(error->file, "<task %d", &index) == 1 && index >= 0 &&
            index < kernels->call_count)
            status = report_misfit(kernels, &kernels->call[index], error);
        else
            status = peal_report(kernels->desc->diagnostics, PEAL_E_KERNEL_COMPILE_ERROR, source,
                                 peal_compile_error_hint(error->message, kernels->files.count),
                                 "%s", error->message);
    }
    return status;
}

/* Building. */

static peal_status find_functions(host_kernels *kernels)
{
    peal_source nowhere = {0};

    for (int i = 0; i < kernels->call_count; i++) {
        kernel_call *call = &kernels->call[i];
        void *full = dlsym(kernels->library, peal_arena_print(kernels->arena, "peal_run_%d", i));
        void *no_reduction =
            dlsym(kernels->library, peal_arena_print(kernels->arena, "peal_run_bare_%d", i));
        if (!full || !no_reduction)
            return peal_report(kernels->desc->diagnostics, PEAL_E_INTERNAL, nowhere, NULL,
                               "the compiled kernels lack `%s`", call->kernel);
        /* POSIX: a pointer from dlsym converts to a function's. */
        memcpy(&call->full, &full, sizeof(full));
        memcpy(&call->no_reduction, &no_reduction, sizeof(no_reduction));
    }
    return PEAL_STATUS_OK;
}

static peal_status build(host_kernels *kernels)
{
    char *source = print_source(kernels);
    host_compile_result result;
    host_compile_request request = {.source = source,
                                    .files = &kernels->files,
                                    .fma = kernels->graph->fma,
                                    .cache_folder = kernels->desc->cache_folder,
                                    .deadline_ns = kernels->desc->deadline_ns,
                                    .abort_word = kernels->desc->abort_word,
                                    .diagnostics = kernels->desc->diagnostics,
                                    .arena = kernels->arena};
    peal_status status = host_compile(&request, &result);

    kernels->library = result.library;
    kernels->memory = result.memory;
    if (!status && result.error_count > 0) {
        if (result.preprocessed)
            status = report_missing(kernels, result.preprocessed);
        if (!status)
            status = report_errors(kernels, &result);
    }
    free(result.preprocessed);
    free(source);
    return status ? status : find_functions(kernels);
}

static peal_status prepare(host_kernels *kernels)
{
    collect_calls(kernels);
    if (kernels->call_count == 0)
        return PEAL_STATUS_OK;
    if (kernels->graph->kernel_count == 0)
        return peal_kernel_report_no_files(kernels->desc->diagnostics, kernels->call[0].task);
    return peal_kernel_files_read(kernels->graph, kernels->desc->allow_outside, kernels->arena,
                                  kernels->desc->diagnostics, &kernels->files);
}

static peal_status no_memory(const peal_backend_desc *desc)
{
    return peal_report(desc->diagnostics, PEAL_E_OUT_OF_MEMORY, (peal_source){0}, NULL,
                       "no memory for the tables of kernels");
}

/* NULL: no memory. */
static host_kernels *open_kernels(const peal_backend_desc *desc)
{
    host_kernels *kernels = calloc(1, sizeof(*kernels));
    peal_arena *arena = peal_arena_create();

    if (!kernels || !arena) {
        free(kernels);
        peal_arena_destroy(arena);
        return NULL;
    }
    kernels->arena = arena;
    kernels->memory = -1;
    kernels->desc = desc;
    kernels->graph = desc->rank[0].schedule->graph;
    return kernels;
}

static peal_status try_to_build(host_kernels *kernels)
{
    PEAL_ARENA_GUARD(kernels->arena, return no_memory(kernels->desc));
    peal_status status = prepare(kernels);
    return status || kernels->call_count == 0 ? status : build(kernels);
}

peal_status host_kernels_create(const peal_backend_desc *desc, host_kernels **out)
{
    *out = NULL;
    if (desc->kernels) /* another backend has compiled them */
        return PEAL_STATUS_OK;
    *out = open_kernels(desc);
    return *out ? try_to_build(*out) : no_memory(desc);
}

static char *try_to_emit(host_kernels *kernels)
{
    PEAL_ARENA_GUARD(kernels->arena, no_memory(kernels->desc); return NULL);
    bool is_good = prepare(kernels) == PEAL_STATUS_OK && kernels->call_count > 0;
    return is_good ? print_source(kernels) : NULL;
}

static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_')) &&
            !isalnum((unsigned char)at[length]) && at[length] != '_')
            return true;
    return false;
}

/* Reports kernels whose name is nowhere in the files. Without a compiler nothing else is certain.
 */
static peal_status report_unnamed(const host_kernels *kernels)
{
    const char *included = peal_kernel_files_included(&kernels->files, kernels->arena);
    const char *text = included ? included : "##";
    peal_status status = PEAL_STATUS_OK;
    size_t count = 0;

    for (int i = 0; i < kernels->files.count; i++)
        text = peal_arena_print(kernels->arena, "%s\n%s", text, kernels->files.file[i].text);
    if (strstr(text, "##") || kernels->files.code_count > 0) /* macros may paste names */
        return PEAL_STATUS_OK;
    const char **names = kernel_names(kernels->arena, text, "PEAL_KERNEL(", &count);
    for (int i = 0; i < kernels->call_count; i++) {
        const kernel_call *call = &kernels->call[i];
        if (!has_word(text, call->kernel))
            status = peal_kernel_report_missing(kernels->desc->diagnostics, kernels->arena,
                                                &kernels->files, call->task, call->signature, names,
                                                count);
    }
    return status;
}

static peal_status try_to_check(host_kernels *kernels)
{
    PEAL_ARENA_GUARD(kernels->arena, return no_memory(kernels->desc));
    peal_status status = prepare(kernels);
    return status || kernels->call_count == 0 ? status : report_unnamed(kernels);
}

peal_status host_kernels_check(const peal_backend_desc *desc)
{
    host_kernels *kernels = open_kernels(desc);
    peal_status status = kernels ? try_to_check(kernels) : no_memory(desc);

    host_kernels_destroy(kernels);
    return status;
}

char *host_kernels_emit(const peal_backend_desc *desc)
{
    host_kernels *kernels = open_kernels(desc);
    char *text = kernels ? try_to_emit(kernels) : NULL;

    if (!kernels)
        no_memory(desc);
    host_kernels_destroy(kernels);
    return text;
}

void host_kernels_destroy(host_kernels *kernels)
{
    if (!kernels)
        return;
    if (kernels->library)
        dlclose(kernels->library);
    if (kernels->memory >= 0)
        close(kernels->memory);
    peal_arena_destroy(kernels->arena);
    free(kernels);
}

bool host_kernels_bind(const host_kernels *kernels, peal_arena *arena,
                       const peal_schedule *schedule, const peal_schedule_task *task,
                       peal_function *full, peal_function *no_reduction)
{
    *full = *no_reduction = task->function;
    if (task->function)
        return true;
    if (!peal_kernel_is_needed(task))
        return false;
    kernel_call wanted;
    describe_call(arena, schedule, task, &wanted);
    for (int i = 0; i < kernels->call_count; i++) {
        if (strcmp(kernels->call[i].text, wanted.text) != 0)
            continue;
        *full = kernels->call[i].full;
        *no_reduction = kernels->call[i].no_reduction;
        return true;
    }
    return false;
}

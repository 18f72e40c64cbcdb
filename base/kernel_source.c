/* Reads the kernel files of a spec and tells where and how they do not fit its tasks. */
#define _GNU_SOURCE
#include "base/kernel_source.h"

#include "base/cache.h"
#include "base/trust.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool peal_kernel_is_needed(const peal_schedule_task *task)
{
    return task->kind == PEAL_TASK_KERNEL && !task->function && task->kernel;
}

/* An array's name, without the index of a member. */
static void word_of(const peal_schedule *schedule, int array, char name[PEAL_PARAMETER_BYTES])
{
    snprintf(name, PEAL_PARAMETER_BYTES, "%.*s", (int)strcspn(schedule->array[array].name, "("),
             schedule->array[array].name);
}

/* Whether another array of the task, or what it reduces, has this name. */
static bool is_an_array(const peal_schedule *schedule, const peal_schedule_task *task, int view,
                        const char *name)
{
    char other[PEAL_PARAMETER_BYTES];
    bool found = false;
    for (int i = 0; i < task->access_count && !found; i++) {
        word_of(schedule, task->access[i].array, other);
        found = i != view && !strcmp(other, name);
    }
    for (int i = 0; i < task->reduction_count && !found; i++) {
        word_of(schedule, task->reduction[i].array, other);
        found = !strcmp(other, name);
    }
    return found;
}

void peal_kernel_parameter(const peal_schedule *schedule, const peal_schedule_task *task, int view,
                           char name[PEAL_PARAMETER_BYTES])
{
    char names[PEAL_CALL_VIEWS][PEAL_PARAMETER_BYTES];
    for (int k = 0; k <= view; k++) {
        bool taken = false;
        word_of(schedule, task->access[k].array, names[k]);
        for (int i = 0; i < k; i++)
            taken |= !strcmp(names[i], names[k]);
        for (size_t used = strlen(names[k]); taken && used + 5 < PEAL_PARAMETER_BYTES; used += 4) {
            memcpy(names[k] + used, "_out", 5);
            taken = is_an_array(schedule, task, k, names[k]);
            for (int i = 0; i < k; i++)
                taken |= !strcmp(names[i], names[k]);
        }
    }
    memcpy(name, names[view], PEAL_PARAMETER_BYTES);
}

const char *peal_kernel_signature(peal_arena *arena, const peal_schedule *schedule,
                                  const peal_schedule_task *task)
{
    static const char *const modes[] = {"READ", "UPDATE", "WRITE"};
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    if (!out)
        peal_arena_fail(arena, BUFSIZ);
    fprintf(out, "PEAL_KERNEL(%s)(peal_tile t", task->kernel);
    for (int i = 0; i < task->access_count; i++) {
        const peal_schedule_array *array = &schedule->array[task->access[i].array];
        char name[PEAL_PARAMETER_BYTES];
        peal_kernel_parameter(schedule, task, i, name);
        fprintf(out, ", PEAL_%s%s(%s, %s)", modes[task->access[i].mode],
                array->has_components ? "_C" : "", peal_type_c_name(array->type), name);
    }
    for (int i = 0; i < task->reduction_count; i++) {
        char name[PEAL_PARAMETER_BYTES];
        word_of(schedule, task->reduction[i].array, name);
        fprintf(out, ", PEAL_REDUCE(%s, %s)",
                peal_type_c_name(schedule->array[task->reduction[i].array].type), name);
    }
    for (int i = 0; i < task->argument_count; i++)
        fprintf(out, ", %s argument_%d", task->argument_is_real[i] ? "double" : "long", i + 1);
    fprintf(out, ")");
    fclose(out);
    const char *signature = peal_arena_copy_text(arena, text);
    free(text);
    return signature;
}

const char *peal_kernel_parameters(const char *signature)
{
    return strchr(signature, ')') + sizeof(")(peal_tile t") - 1;
}

/* What is wrong with running a file, which lies at `real` and of which this is known. */
static peal_status judge(const char *root, const char *path, const char *real,
                         const struct stat *info, const char *from, peal_source source,
                         peal_diagnostics *diagnostics)
{
    char words[PATH_MAX + 128];
    const char *reason = peal_distrust_file(real, info, words, sizeof(words));

    if (root && !peal_path_is_inside(root, real))
        return from ? peal_report(diagnostics, PEAL_E_INCLUDED_FILE_OUTSIDE, source,
                                  "move it there, or allow it with --allow-outside",
                                  "`%s`, which `%s` includes, is outside the spec's folder `%s`",
                                  path, from, root)
                    : peal_report(diagnostics, PEAL_E_KERNEL_FILE_OUTSIDE, source,
                                  "move it there, or allow it with --allow-outside",
                                  "kernel file `%s` is outside the spec's folder `%s`", path, root);
    if (reason)
        return peal_report(diagnostics, PEAL_E_KERNEL_FILE_NOT_TRUSTED, source,
                           "make it yours alone: chown, chmod o-w; or copy it",
                           "`%s` is not run: %s", path, reason);
    return PEAL_STATUS_OK;
}

peal_status peal_kernel_file_check(const char *root, const char *path, const char *from,
                                   peal_source source, peal_diagnostics *diagnostics)
{
    char real[PATH_MAX];
    struct stat info;

    if (realpath(path, real) && stat(real, &info) == 0)
        return judge(root, path, real, &info, from, source, diagnostics);
    return peal_report(diagnostics, PEAL_E_KERNEL_FILE_NOT_TRUSTED, source, NULL,
                       "`%s` is not run: it was there when `%s` included it, and is no longer: %s",
                       path, from, strerror(errno));
}

static const char *folder_of(peal_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? peal_arena_copy_bytes(arena, path, (size_t)(slash - path) + 1) : ".";
}

static bool is_device_code(const char *path)
{
    static const char *const endings[] = {".fatbin", ".ltoir", ".cubin", ".o"};
    const char *ending = strrchr(path, '.');

    for (size_t i = 0; ending && i < sizeof(endings) / sizeof(endings[0]); i++)
        if (strcmp(ending, endings[i]) == 0)
            return true;
    return false;
}

static void add_file(peal_kernel_files *files, const char *path, const char *data, size_t bytes,
                     peal_arena *arena)
{
    if (is_device_code(path)) {
        files->code[files->code_count++] = (peal_device_code){path, data, bytes};
        return;
    }
    files->folder[files->count] = folder_of(arena, path);
    files->file[files->count++] = (peal_kernel_file){path, data};
}

static peal_status report_unread(const char *path, int error, peal_source source,
                                 peal_diagnostics *diagnostics)
{
    bool is_ours = peal_is_lack_of_means(error);
    return peal_report(diagnostics,
                       is_ours ? PEAL_E_SYSTEM_CALL_FAILED : PEAL_E_KERNEL_FILE_UNREADABLE, source,
                       is_ours ? NULL : "names of kernel files are relative to the spec's folder",
                       "cannot read the kernel file `%s`: %s", path,
                       error ? strerror(error) : "it is not a file");
}

/* The file is opened before it is judged: under its name there may be another one a moment later,
 * where others may make files, too. */
static peal_status read_file(const char *root, const char *path, peal_source source,
                             peal_diagnostics *diagnostics, char **text, size_t *bytes)
{
    char real[PATH_MAX];
    struct stat info;
    bool is_there = realpath(path, real) != NULL;
    int file =
        is_there ? open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW) : -1;
    int error = errno;
    bool is_known = file >= 0 ? fstat(file, &info) == 0 : is_there && stat(real, &info) == 0;
    peal_status status =
        is_known ? judge(root, path, real, &info, NULL, source, diagnostics) : PEAL_STATUS_OK;

    if (file >= 0 && is_known && !status) {
        *text = peal_descriptor_read(file, bytes);
        return *text ? PEAL_STATUS_OK : report_unread(path, errno, source, diagnostics);
    }
    if (file >= 0)
        close(file);
    return status ? status : report_unread(path, error, source, diagnostics);
}

peal_status peal_kernel_files_read(const peal_graph_data *graph, bool allow_outside,
                                   peal_arena *arena, peal_diagnostics *diagnostics,
                                   peal_kernel_files *out)
{
    const char *folder = graph->folder && *graph->folder ? graph->folder : ".";
    peal_status status = PEAL_STATUS_OK;

    out->root = allow_outside ? NULL : folder;
    out->source = graph->kernels_source;
    out->code = PEAL_ARENA_ARRAY(arena, peal_device_code, graph->kernel_count + 1);
    out->file = PEAL_ARENA_ARRAY(arena, peal_kernel_file, graph->kernel_count + 1);
    out->folder = PEAL_ARENA_ARRAY(arena, const char *, graph->kernel_count + 1);
    for (int i = 0; i < graph->kernel_count; i++) {
        const char *name = graph->kernels[i], *path = name;
        size_t bytes = 0;
        if (*name != '/' && strcmp(folder, ".") != 0)
            path = peal_arena_print(arena, "%s/%s", folder, name);
        char *text = NULL;
        peal_status one =
            read_file(out->root, path, graph->kernels_source, diagnostics, &text, &bytes);
        if (one) {
            status = one;
            continue;
        }
        add_file(out, path, peal_arena_copy_bytes(arena, text, bytes), bytes, arena);
        free(text);
    }
    return status;
}

void peal_kernel_file_print(const peal_kernel_file *file, FILE *out)
{
    fprintf(out, "\n#line 1 \"");
    for (const char *path = file->path; *path; path++) {
        if (*path == '"' || *path == '\\')
            fputc('\\', out);
        fputc(*path, out);
    }
    fprintf(out, "\"\n");
    fputs(file->text, out);
}

peal_source peal_kernel_place(const peal_kernel_files *files, const char *kernel,
                              peal_source otherwise)
{
    size_t length = strlen(kernel);

    for (int i = 0; i < files->count; i++) {
        const char *text = files->file[i].text;
        for (const char *at = strstr(text, "PEAL_KERNEL("); at;
             at = strstr(at + 1, "PEAL_KERNEL(")) {
            const char *name = at + strlen("PEAL_KERNEL(");
            while (isspace((unsigned char)*name))
                name++;
            if (strncmp(name, kernel, length) != 0 ||
                (name[length] != ')' && !isspace((unsigned char)name[length])))
                continue;
            peal_source source = {.file = files->file[i].path, .line = 1, .column = 1};
            for (const char *c = text; c < at; c++)
                source.line += *c == '\n';
            return source;
        }
    }
    return otherwise;
}

peal_status peal_kernel_report_missing(peal_diagnostics *diagnostics, peal_arena *arena,
                                       const peal_kernel_files *files,
                                       const peal_schedule_task *task, const char *signature,
                                       const char *const *names, size_t count)
{
    const char *near = peal_nearest_word(task->kernel, names, count);
    const char *hint = near ? peal_arena_print(arena, "did you mean `%s`?", near)
                            : peal_arena_print(arena, "write %s { ... }", signature);

    if (!near && files->code_count > 0)
        hint = peal_arena_print(arena, "functions of `%s` run on GPUs only; %s",
                                files->code[0].path, hint);

    return peal_report(diagnostics, PEAL_E_NO_SUCH_KERNEL, task->source, hint,
                       "no kernel file defines PEAL_KERNEL(%s)", task->kernel);
}

peal_status peal_kernel_report_no_files(peal_diagnostics *diagnostics,
                                        const peal_schedule_task *task)
{
    return peal_report(diagnostics, PEAL_E_NO_SUCH_KERNEL, task->source,
                       "name the C file that has it: `kernels: file.c`",
                       "no kernel file defines PEAL_KERNEL(%s): the graph names none",
                       task->kernel);
}

peal_status peal_kernel_report_misfit(peal_diagnostics *diagnostics, peal_arena *arena,
                                      const peal_kernel_files *files,
                                      const peal_schedule_task *task, const char *signature,
                                      const char *message)
{
    bool types = strstr(message, "incompatible") || strstr(message, "type conversion");
    return peal_report(diagnostics, PEAL_E_KERNEL_SIGNATURE_MISMATCH,
                       peal_kernel_place(files, task->kernel, task->source),
                       peal_arena_print(arena, "the task needs %s", signature),
                       "kernel `%s` does not fit task `%s`: %s", task->kernel, task->name,
                       types ? "its parameters are others" : message);
}

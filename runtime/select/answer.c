/* Answers of `peal tune`: their keys and their files. */
#define _POSIX_C_SOURCE 200809L
#include "runtime/select/answer.h"
#include "base/cache.h"
#include "base/expression.h"
#include "base/kernel_source.h"
#include "base/new_file.h"
#include "base/number.h"
#include "base/processor.h"
#include "peal_config.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION = 1, NAME_DIGITS = 32 };

static const char prefix[] = "tune-", ending[] = ".yaml", sum_key[] = "sum: ";

/* ---- the key ---- */

static void add_text(peal_sha256 *hash, const char *text)
{
    peal_sha256_add(hash, text, strlen(text) + 1);
}

static void add_number(peal_sha256 *hash, uint64_t number)
{
    peal_sha256_add(hash, &number, sizeof(number));
}

static bool add_kernels(peal_sha256 *hash, const peal_plan *plan, peal_arena *arena)
{
    peal_kernel_files files = {0};
    if (peal_kernel_files_read(plan->data, plan->options.allow_outside, arena, NULL, &files))
        return false;
    const char *included = peal_kernel_files_included(&files, arena);
    for (int i = 0; i < files.count; i++)
        add_text(hash, files.file[i].text);
    for (int i = 0; i < files.code_count; i++)
        peal_sha256_add(hash, files.code[i].data, files.code[i].bytes);
    if (included)
        add_text(hash, included);
    return included != NULL;
}

/* Contents of a buffer on a rank. Not what is in the file, which may be long, but its size and when
 * it was changed. */
static void add_file(peal_sha256 *hash, const peal_graph_data *graph, const peal_array *array,
                     const peal_scope *scope, peal_arena *arena)
{
    const char *name;
    struct stat about = {0};
    if (peal_template_expand(array->file, scope, NULL, array->source, arena, &name, NULL))
        return;
    if (stat(*name == '/' ? name : peal_arena_print(arena, "%s/%s", graph->folder, name), &about))
        return; /* its reader will say so */
    add_number(hash, (uint64_t)about.st_size);
    add_number(hash, (uint64_t)about.st_mtim.tv_sec);
    add_number(hash, (uint64_t)about.st_mtim.tv_nsec);
}

static void add_files(peal_sha256 *hash, const peal_plan *plan, peal_arena *arena)
{
    const peal_graph_data *graph = plan->data;
    peal_scope scope = {.graph = graph, .ranks = plan->machine.ranks};
    for (int a = 0; a < graph->array_count; a++)
        for (scope.rank = 0; scope.rank < scope.ranks && graph->arrays[a].file; scope.rank++)
            add_file(hash, graph, &graph->arrays[a], &scope, arena);
}

static void add_machine(peal_sha256 *hash, const peal_plan *plan)
{
    const peal_machine *machine = &plan->machine;
    add_text(hash, plan->backend->name);
    add_number(hash, (uint64_t)machine->ranks);
    add_number(hash, (uint64_t)machine->processes);
    add_number(hash, (uint64_t)machine->workers);
    add_number(hash, (uint64_t)plan->options.threads);
    add_number(hash, (uint64_t)machine->path);
    add_number(hash, machine->apart);
    add_number(hash, machine->network);
    for (int p = 0; machine->node && p < machine->processes; p++)
        add_number(hash, (uint64_t)machine->node[p]);
    add_number(hash, machine->shares_device);
    if (machine->accelerator) {
        peal_device_identity device;
        plan->backend->identify(plan->session->device, &device);
        add_text(hash, device.model);
        add_text(hash, device.driver);
    } else {
        peal_processor_add(hash);
        add_number(hash, (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
    }
}

/* False: nobody can tell what the kernels are, or there is no memory. */
static bool add_all(peal_sha256 *hash, const peal_plan *plan, peal_arena *arena)
{
    PEAL_ARENA_GUARD(arena, return false);
    add_number(hash, VERSION);
    add_text(hash, PEAL_VERSION);
    add_number(hash, plan->data->hash);
    add_machine(hash, plan);
    add_files(hash, plan, arena);
    return add_kernels(hash, plan, arena);
}

bool peal_answer_key(const peal_plan *plan, char key[PEAL_SHA256_TEXT])
{
    unsigned char digest[PEAL_SHA256_BYTES];
    peal_arena *arena = peal_arena_create();
    peal_sha256 hash;
    if (!arena)
        return false;
    peal_sha256_init(&hash);
    bool known = add_all(&hash, plan, arena);
    peal_arena_destroy(arena);
    peal_sha256_finish(&hash, digest);
    peal_sha256_text(digest, key);
    return known;
}

/* ---- the file ---- */

const char *peal_answer_path(const char *given, const char *key, peal_arena *arena,
                             peal_diagnostics *diagnostics)
{
    PEAL_ARENA_GUARD(arena, return NULL);
    const char *folder = peal_cache_open(given, arena, diagnostics);
    return folder ? peal_arena_print(arena, "%s/%s%.*s%s", folder, prefix, NAME_DIGITS, key, ending)
                  : NULL;
}

static void sum_of(const char *text, size_t bytes, char sum[PEAL_SHA256_TEXT])
{
    unsigned char digest[PEAL_SHA256_BYTES];
    peal_sha256 hash;
    peal_sha256_init(&hash);
    peal_sha256_add(&hash, text, bytes);
    peal_sha256_finish(&hash, digest);
    peal_sha256_text(digest, sum);
}

/* The value of `key: value` at the beginning of a line; false: there is no such line. */
static bool find_value(const char *text, const char *key, char *value, size_t bytes)
{
    size_t length = strlen(key);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) != 0 || strncmp(line + length, ": ", 2) != 0)
            continue;
        const char *begin = line + length + 2;
        size_t count = strcspn(begin, "\n");
        if (count >= 2 && *begin == '"' && begin[count - 1] == '"') {
            begin++;
            count -= 2;
        }
        snprintf(value, bytes, "%.*s", (int)count, begin);
        return true;
    }
    return false;
}

static bool find_mode(const char *name, peal_mode *out)
{
    for (int m = 0; m < PEAL_MODE_COUNT; m++)
        if (!strcmp(name, peal_mode_name((peal_mode)m))) {
            *out = (peal_mode)m;
            return true;
        }
    return false;
}

/* A number from 0 on that an int holds; without the line it stays what it is. */
static bool read_count(const char *text, const char *key, int *out)
{
    char value[32], *end;
    if (!find_value(text, key, value, sizeof(value)))
        return true;
    errno = 0;
    long count = strtol(value, &end, 10);
    if (errno || *end || end == value || count < 0 || count > INT_MAX)
        return false;
    *out = (int)count;
    return true;
}

/* What is wrong with the text of a file, in words; NULL: nothing. */
static const char *read_answer(const char *text, const char *key, peal_answer *out)
{
    char value[128], sum[PEAL_SHA256_TEXT];
    const char *last = strstr(text, sum_key);
    if (!find_value(text, "tune", value, sizeof(value)) || atoi(value) != VERSION)
        return "it is no answer of this version";
    if (!last || !find_value(last, "sum", value, sizeof(value)))
        return "its end is missing";
    sum_of(text, (size_t)(last - text), sum);
    if (strcmp(sum, value) != 0 || strlen(last) != sizeof(sum_key) - 1 + strlen(sum) + 1)
        return "it has been changed";
    if (!find_value(text, "key", value, sizeof(value)) || strcmp(value, key) != 0)
        return "it answers another question";
    if (!find_value(text, "mode", value, sizeof(value)) || !find_mode(value, &out->mode))
        return "it names no mode";
    find_value(text, "lowering", out->lowering, sizeof(out->lowering));
    if (!read_count(text, "threads", &out->threads) || !read_count(text, "rounds", &out->rounds))
        return "a count of it is none";
    if (find_value(text, "seconds_per_step", value, sizeof(value)))
        out->step_s = peal_number_read(value, NULL);
    if (!isfinite(out->step_s) || out->step_s < 0)
        return "its time is none";
    find_value(text, "date", out->date, sizeof(out->date));
    find_value(text, "name", out->name, sizeof(out->name));
    find_value(text, "machine", out->machine, sizeof(out->machine));
    return NULL;
}

bool peal_answer_load(const char *path, const char *key, peal_answer *out, char *reason,
                      size_t reason_bytes)
{
    char *text = peal_file_read(path, NULL);
    const char *wrong = NULL;
    *out = (peal_answer){.threads = 0};
    if (text)
        wrong = read_answer(text, key, out);
    snprintf(reason, reason_bytes, "%s", wrong ? wrong : "");
    free(text);
    return text && !wrong;
}

/* As a quoted scalar; what would need escapes is left out. */
static void print_quoted(FILE *out, const char *key, const char *text)
{
    fprintf(out, "%s: \"", key);
    for (; *text; text++)
        if (*text != '"' && *text != '\\' && (unsigned char)*text >= ' ')
            putc(*text, out);
    fprintf(out, "\"\n");
}

bool peal_answer_keep(const char *path, const char *key, const peal_answer *answer,
                      const char *comment)
{
    char *text = NULL, sum[PEAL_SHA256_TEXT];
    size_t bytes = 0;
    char number[PEAL_NUMBER_TEXT];
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return false;
    fprintf(out,
            "# What `peal tune` has measured, for `peal run --mode auto`. `peal tune --forget` "
            "removes it.\n%s"
            "tune: %d\nkey: %s\n",
            comment, VERSION, key);
    print_quoted(out, "name", answer->name);
    print_quoted(out, "machine", answer->machine);
    fprintf(out,
            "date: %s\nmode: %s\nthreads: %d\nlowering: \"%s\"\n"
            "seconds_per_step: %s\nrounds: %d\n",
            answer->date, peal_mode_name(answer->mode), answer->threads, answer->lowering,
            peal_number_print(number, 6, answer->step_s), answer->rounds);
    fflush(out);
    sum_of(text, bytes, sum);
    fprintf(out, "%s%s\n", sum_key, sum);
    bool written = fclose(out) == 0 && peal_file_replace(text, bytes, path, 0600) == 0;
    free(text);
    return written;
}

bool peal_answer_forget(const char *path)
{
    return unlink(path) == 0;
}

static DIR *open_folder(const char *given, peal_diagnostics *diagnostics, peal_arena *arena)
{
    PEAL_ARENA_GUARD(arena, return NULL);
    const char *folder = peal_cache_open(given, arena, diagnostics);
    return folder ? opendir(folder) : NULL;
}

int peal_answer_forget_all(const char *given, peal_diagnostics *diagnostics)
{
    peal_arena *arena = peal_arena_create();
    DIR *entries = arena ? open_folder(given, diagnostics, arena) : NULL;
    int count = 0;
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        size_t length = strlen(entry->d_name);
        size_t expected = sizeof(prefix) - 1 + NAME_DIGITS + sizeof(ending) - 1;
        if (length == expected && !strncmp(entry->d_name, prefix, sizeof(prefix) - 1) &&
            !strcmp(entry->d_name + length - (sizeof(ending) - 1), ending))
            count += unlinkat(dirfd(entries), entry->d_name, 0) == 0;
    }
    if (entries)
        closedir(entries);
    peal_arena_destroy(arena);
    return count;
}

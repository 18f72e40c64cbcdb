/* Compiles a generated source into a shared object: preprocess, look into the cache, compile, load.
 *
 * The preprocessed text is what names a cache entry: it has the contents of every included file. To
 * it come the compiler's version, the processor that -march=native means here, the flags and peal's
 * version. */
#define _GNU_SOURCE
#include "backends/host/compile.h"

#include "base/cache.h"
#include "base/phase.h"
#include "base/processor.h"
#include "base/program.h"
#include "base/sha256.h"
#include "peal_config.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

enum { MOST_WORDS = 96, MOST_ERRORS = 50 };

static const char *const flags[] = {"-std=gnu11",
                                    "-O3",
                                    "-march=native",
                                    "-fPIC",
                                    "-fdiagnostics-color=never",
                                    "-x",
                                    "c",
                                    "-Werror=implicit-function-declaration",
                                    "-Werror=incompatible-pointer-types",
                                    "-Werror=int-conversion",
                                    "-Wno-unknown-warning-option",
                                    "-Werror=discarded-qualifiers",
                                    NULL};

typedef struct compile_job {
    const host_compile_request *request;
    const char *folder; /* temporary, this process's own */
    const char *compiler[16];
    int compiler_words;
    bool is_gcc;
} compile_job;

static const char *in_folder(const compile_job *job, const char *name)
{
    return peal_arena_print(job->request->arena, "%s/%s", job->folder, name);
}

static bool write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    bool written = file && fputs(text, file) >= 0;
    return file && fclose(file) == 0 && written;
}

/* The temporary folder: in the cache, so that rename stays within one file system. */
static bool make_folder(compile_job *job, const char *cache)
{
    const char *base = cache ? cache : getenv("TMPDIR");
    char *path =
        peal_arena_print(job->request->arena, "%s/new-XXXXXX", base && *base ? base : "/tmp");

    job->folder = mkdtemp(path);
    if (!job->folder || mkdir(in_folder(job, "peal"), 0700) != 0)
        return false;
    for (const peal_text_file *h = peal_kernel_headers; h->name; h++)
        if (!write_file(in_folder(job, peal_arena_print(job->request->arena, "peal/%s", h->name)),
                        h->text))
            return false;
    return write_file(in_folder(job, "kernels.c"), job->request->source);
}

static void remove_folder(const compile_job *job)
{
    static const char *const names[] = {"kernels.c", "kernels.i", "kernels.so", "version",
                                        "errors"};
    if (!job->folder)
        return;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(in_folder(job, names[i]));
    for (const peal_text_file *h = peal_kernel_headers; h->name; h++)
        unlink(in_folder(job, peal_arena_print(job->request->arena, "peal/%s", h->name)));
    rmdir(in_folder(job, "peal"));
    rmdir(job->folder);
}

/* $CC may have arguments of its own. */
static void find_compiler(compile_job *job)
{
    const char *given = getenv("CC");
    char *copy = peal_arena_copy_text(job->request->arena, given && *given ? given : "cc");
    char *rest = NULL;

    for (char *word = strtok_r(copy, " \t", &rest); word && job->compiler_words < 15;
         word = strtok_r(NULL, " \t", &rest))
        job->compiler[job->compiler_words++] = word;
    if (job->compiler_words == 0)
        job->compiler[job->compiler_words++] = "cc";
}

/* The environment with messages in English: they are parsed. */
static char **english(peal_arena *arena)
{
    int count = 0;
    while (environ[count])
        count++;
    char **copy = PEAL_ARENA_ARRAY(arena, char *, count + 2);
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (strncmp(environ[i], "LC_ALL=", 7) != 0)
            copy[kept++] = environ[i];
    copy[kept] = peal_arena_copy_text(arena, "LC_ALL=C");
    return copy;
}

/* Runs the compiler with more words; its output goes to files. *exit_code is its own. */
static peal_status spawn(const compile_job *job, const char *const *words, int count,
                         const char *output, int *exit_code)
{
    const char *argument[MOST_WORDS + 17];
    const host_compile_request *request = job->request;
    peal_source nowhere = {0};
    int used = 0;

    for (int i = 0; i < job->compiler_words; i++)
        argument[used++] = job->compiler[i];
    for (int i = 0; i < count && i < MOST_WORDS; i++)
        argument[used++] = words[i];
    argument[used] = NULL;
    const peal_program program = {.argv = argument,
                                  .environment = english(request->arena),
                                  .output = output,
                                  .errors = in_folder(job, "errors"),
                                  .deadline_ns = request->deadline_ns,
                                  .abort_word = request->abort_word};
    switch (peal_program_run(&program, exit_code)) {
    case PEAL_PROGRAM_EXITED:
        return PEAL_STATUS_OK;
    case PEAL_PROGRAM_SIGNALED:
        return peal_report(request->diagnostics, PEAL_E208, nowhere, "is there enough memory?",
                           "the compiler was ended by signal %d", *exit_code);
    case PEAL_PROGRAM_STUCK:
        return peal_report(request->diagnostics, PEAL_E303, nowhere,
                           "does it wait for a license, a file system, another host? --deadline "
                           "sets the limit",
                           "the C compiler `%s` has made no progress for %.3g s: it was killed",
                           argument[0], (double)request->deadline_ns * 1e-9);
    case PEAL_PROGRAM_ABORTED: /* who set the word says why */
        return (peal_status)atomic_load(request->abort_word);
    case PEAL_PROGRAM_REFUSED:
        break;
    }
    return peal_report(request->diagnostics, PEAL_E203, nowhere,
                       "install a C compiler (package gcc), or set CC to one",
                       "cannot run the C compiler `%s`: %s", argument[0], strerror(*exit_code));
}

static int add_flags(const compile_job *job, const char **words)
{
    const host_compile_request *request = job->request;
    int count = 0;

    for (int i = 0; flags[i]; i++)
        words[count++] = flags[i];
    words[count++] = request->fma ? "-ffp-contract=fast" : "-ffp-contract=off";
    if (job->is_gcc) /* a mistake at a macro of ours is told where it is used, as clang does */
        words[count++] = "-ftrack-macro-expansion=0";
    words[count++] = "-I";
    words[count++] = job->folder;
    for (int i = 0; i < request->folder_count && count < MOST_WORDS - 16; i++) {
        words[count++] = "-iquote";
        words[count++] = request->folder[i];
    }
    return count;
}

/* "file:line:column: error: text" lines. */
static void read_errors(const compile_job *job, host_compile_result *out)
{
    peal_arena *arena = job->request->arena;
    host_compile_error *list = PEAL_ARENA_ARRAY(arena, host_compile_error, MOST_ERRORS);
    char *text = peal_file_read(in_folder(job, "errors"), NULL);
    char *rest = NULL;

    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL;
         line && out->error_count < MOST_ERRORS; line = strtok_r(NULL, "\n", &rest)) {
        char *error = strstr(line, "error: ");
        host_compile_error *e = &list[out->error_count];
        if (!error)
            continue;
        *e = (host_compile_error){.message = peal_arena_copy_text(arena, error + 7)};
        char *place = peal_arena_copy_bytes(arena, line, (size_t)(error - line));
        for (char *at = strchr(place, ':'); at; at = strchr(at + 1, ':'))
            if (sscanf(at, ":%d:%d:", &e->line, &e->column) == 2) {
                *at = '\0';
                e->file = place;
                break;
            }
        out->error_count++;
    }
    if (out->error_count == 0) {
        const char *first = text && *text ? text : "the compiler failed without a message";
        list[out->error_count++].message = peal_arena_copy_text(arena, first);
    }
    free(text);
    out->error = list;
}

static void make_key(const compile_job *job, const char *preprocessed, const char *version,
                     char key[PEAL_SHA256_TEXT])
{
    unsigned char digest[PEAL_SHA256_BYTES];
    peal_sha256 hash;

    peal_sha256_init(&hash);
    peal_sha256_add(&hash, PEAL_VERSION, sizeof(PEAL_VERSION));
    peal_sha256_add(&hash, version, strlen(version) + 1);
    for (int i = 0; i < job->compiler_words; i++)
        peal_sha256_add(&hash, job->compiler[i], strlen(job->compiler[i]) + 1);
    for (int i = 0; flags[i]; i++)
        peal_sha256_add(&hash, flags[i], strlen(flags[i]) + 1);
    peal_sha256_add(&hash, job->request->fma ? "f" : "n", 1);
    peal_processor_add(&hash); /* -march=native means it */
    peal_sha256_add(&hash, preprocessed, strlen(preprocessed));
    peal_sha256_finish(&hash, digest);
    peal_sha256_text(digest, key);
}

static peal_status load(const compile_job *job, const char *path, host_compile_result *out)
{
    peal_source nowhere = {0};

    peal_phase before = peal_phase_enter(1, "the dynamic linker, with the compiled kernels");
    out->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    peal_phase_leave(&before);
    if (!out->library)
        return peal_report(job->request->diagnostics, PEAL_E208, nowhere,
                           "is the folder mounted noexec? set PEAL_CACHE to another one",
                           "cannot load the compiled kernels: %s", dlerror());
    return PEAL_STATUS_OK;
}

/* The compiled file is loaded before it is moved into the cache: whoever moved one there first,
 * this process runs its own. */
static peal_status build(const compile_job *job, const char *entry, host_compile_result *out)
{
    const char *words[MOST_WORDS];
    int count = add_flags(job, words), code = 0;
    const char *object = in_folder(job, "kernels.so");

    words[count++] = "-shared";
    words[count++] = "-o";
    words[count++] = object;
    words[count++] = in_folder(job, "kernels.c");
    words[count++] = "-lm";
    peal_status status = spawn(job, words, count, NULL, &code);
    if (status)
        return status;
    if (code != 0) {
        read_errors(job, out);
        return PEAL_STATUS_OK;
    }
    status = load(job, object, out);
    if (!status && entry)
        peal_cache_store(object, entry);
    return status;
}

static peal_status compile_in(compile_job *job, const char *cache, host_compile_result *out)
{
    const char *words[MOST_WORDS];
    int count = 0, code = 0;
    char key[PEAL_SHA256_TEXT];

    words[count++] = "--version";
    peal_status status = spawn(job, words, count, in_folder(job, "version"), &code);
    if (status)
        return status;
    char *version = peal_file_read(in_folder(job, "version"), NULL);
    job->is_gcc = version && strstr(version, "Free Software Foundation");
    count = add_flags(job, words);
    words[count++] = "-E";
    words[count++] = "-P";
    words[count++] = in_folder(job, "kernels.c");
    status = spawn(job, words, count, in_folder(job, "kernels.i"), &code);
    if (!status && code != 0)
        read_errors(job, out);
    if (status || code != 0) {
        free(version);
        return status;
    }
    out->preprocessed = peal_file_read(in_folder(job, "kernels.i"), NULL);
    make_key(job, out->preprocessed ? out->preprocessed : "", version ? version : "", key);
    free(version);
    const char *entry =
        cache ? peal_arena_print(job->request->arena, "%s/%s.so", cache, key) : NULL;
    int claim = entry ? peal_cache_claim(entry, job->request->deadline_ns) : -1;
    if (entry && peal_cache_check(entry)) {
        out->was_cached = true;
        status = load(job, entry, out);
    } else {
        status = build(job, entry, out);
    }
    peal_cache_release(claim);
    return status;
}

peal_status host_compile(const host_compile_request *request, host_compile_result *out)
{
    compile_job job = {.request = request};
    peal_source nowhere = {0};
    const char *cache =
        peal_cache_open(request->cache_folder, request->arena, request->diagnostics);
    peal_status status = PEAL_STATUS_OK;

    *out = (host_compile_result){0};
    find_compiler(&job);
    if (!make_folder(&job, cache)) {
        remove_folder(&job);
        job.folder = NULL;
        if (!cache || !make_folder(&job, NULL))
            status = peal_report(request->diagnostics, PEAL_E209, nowhere,
                                 "make room, or set TMPDIR to a folder that can be written",
                                 "cannot write the generated source: %s", strerror(errno));
    }
    if (!status)
        status = compile_in(&job, cache, out);
    remove_folder(&job);
    return status;
}

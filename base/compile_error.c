/* Sifts the errors of gcc, clang and NVRTC. */
#define _POSIX_C_SOURCE 200809L
#include "base/compile_error.h"

#include <stdio.h>
#include <string.h>

int peal_compile_errors_read(const char *text, peal_arena *arena, peal_compile_error **out)
{
    peal_compile_error *list =
        PEAL_ARENA_ARRAY(arena, peal_compile_error, PEAL_MOST_COMPILE_ERRORS);
    char *copy = peal_arena_copy_text(arena, text), *rest = NULL;
    int count = 0;

    for (char *line = strtok_r(copy, "\n", &rest); line && count < PEAL_MOST_COMPILE_ERRORS;
         line = strtok_r(NULL, "\n", &rest)) {
        char *error = strstr(line, "error: ");
        peal_compile_error *e = &list[count];
        if (!error)
            continue;
        *e = (peal_compile_error){.message = error + 7};
        char *place = peal_arena_copy_bytes(arena, line, (size_t)(error - line));
        for (char *at = strchr(place, ':'); at; at = strchr(at + 1, ':'))
            if (sscanf(at, ":%d:%d:", &e->line, &e->column) == 2) {
                *at = '\0';
                e->file = place;
                break;
            }
        count++;
    }
    if (count == 0)
        list[count++].message =
            *text ? peal_arena_copy_text(arena, text) : "the compiler failed without a message";
    *out = list;
    return count;
}

static bool has_any(const char *message, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(message, words[i]))
            return true;
    return false;
}
#define HAS_ANY(message, ...)                                                                      \
    has_any(message, (const char *const[]){__VA_ARGS__},                                           \
            sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static bool is_undefined(const peal_compile_error *e)
{
    return HAS_ANY(e->message, "is undefined", "undeclared");
}

/* Of a name that the compiler does not know follow the strides of an array of that name, and what a
 * macro of ours wants of it. */
static bool is_echo(const peal_compile_error *error, int count, int i)
{
    const peal_compile_error *e = &error[i];
    if (is_undefined(e))
        return strstr(e->message, "_strides_") != NULL;
    for (int k = 0; k < count; k++)
        if (HAS_ANY(e->message, "peal_", "PEAL_") && is_undefined(&error[k]) && e->file &&
            error[k].file && !strcmp(e->file, error[k].file) && e->line == error[k].line)
            return true;
    return false;
}

/* In a file of the user's, or where a task or a function stands for it. */
static bool has_place(const peal_compile_error *e)
{
    return e->file && strcmp(e->file, "generated") != 0 &&
           (*e->file != '<' || !strncmp(e->file, "<task ", 6) || !strncmp(e->file, "<link ", 6));
}

/* What follows a mistake of syntax is mostly an echo of it: "'y' undeclared" for a missing `;`. */
static bool is_syntax(const char *message)
{
    return strncmp(message, "expected ", 9) == 0 || strstr(message, "before") != NULL;
}

int peal_compile_errors_sift(peal_compile_error *error, int count)
{
    bool keep[PEAL_MOST_COMPILE_ERRORS];
    int places = 0, kept = 0;
    for (int i = 0; i < count; i++)
        places += has_place(&error[i]) && !is_echo(error, count, i);
    for (int i = 0; i < count; i++)
        keep[i] = places ? has_place(&error[i]) && !is_echo(error, count, i) : i == 0;
    for (int i = 0; i < count; i++) {
        if (!keep[i])
            continue;
        error[kept++] = error[i];
        if (is_syntax(error[kept - 1].message))
            break;
    }
    return kept;
}

const char *peal_compile_error_hint(const char *message, int files)
{
    const char *semicolon = strstr(message, "';'"), *before = strstr(message, "before");
    if (strstr(message, "expected a \";\"") || (semicolon && (!before || semicolon < before)))
        return "is a `;` missing here, or at the end of the line before?";
    if (HAS_ANY(message, "No such file", "file not found"))
        return "it is looked for beside the file that names it, and among the system's headers";
    if (HAS_ANY(message, "PEAL_C_4_"))
        return "a field with `components` has one to three coordinates: PEAL_C(f, c, x, y, z)";
    if (HAS_ANY(message, "implicit declaration", "implicitly declaring"))
        return "include the header that declares it";
    if (HAS_ANY(message, "no member") && HAS_ANY(message, "peal_component_strides_"))
        return "a value of a field with `components` is PEAL_C(f, c, x, y), not PEAL_AT";
    if (HAS_ANY(message, "no member") && HAS_ANY(message, "peal_strides_"))
        return "PEAL_C and PEAL_READ_C are of fields with `components`; of others say PEAL_AT";
    if (files > 1 && HAS_ANY(message, "redefinition of", "has already been defined", "redeclared",
                             "conflicting types"))
        return "all files of `kernels` are compiled as one text, also their `static` functions: "
               "give each a name of "
               "its own, or have a common header with #pragma once";
    return NULL;
}

/* Behind the comment, text or letter that begins at text; text itself: none does. */
static const char *skip(const char *text)
{
    const char *end;
    if (text[0] == '/' && text[1] == '/')
        return text + strcspn(text, "\n");
    if (text[0] == '/' && text[1] == '*')
        return (end = strstr(text + 2, "*/")) ? end + 2 : text + strlen(text);
    if (*text != '"' && *text != '\'')
        return text;
    for (end = text + 1; *end && *end != *text && *end != '\n'; end++)
        end += *end == '\\' && end[1];
    return *end == *text ? end + 1 : end;
}

/* The outermost `{` that is not closed; NULL: all are. */
static const char *find_unclosed(const char *text)
{
    const char *open = NULL;
    int depth = 0;
    while (*text) {
        const char *behind = skip(text);
        if (behind == text) {
            if (*text == '{' && depth++ == 0)
                open = text;
            depth -= *text == '}';
            behind++;
        }
        text = behind;
    }
    return depth > 0 ? open : NULL;
}

peal_status peal_compile_errors_unclosed(const peal_compile_error *error, int count,
                                         const peal_kernel_files *files,
                                         peal_diagnostics *diagnostics)
{
    bool says = false;
    for (int i = 0; i < count; i++)
        says |= HAS_ANY(error[i].message, "end of input", "end of file", "expected '}'", "\"}\"",
                        "not allowed", "storage class", "nested function");
    for (int i = 0; i < files->count && says; i++) {
        const char *text = files->file[i].text, *open = find_unclosed(text);
        peal_source place = {.file = files->file[i].path, .line = 1, .column = 1};
        for (const char *c = text; open && c < open; c++) {
            place.column = *c == '\n' ? 1 : place.column + 1;
            place.line += *c == '\n';
        }
        if (open)
            return peal_report(diagnostics, PEAL_E_KERNEL_COMPILE_ERROR, place,
                               "is a `}` missing before the next kernel, or at the end?",
                               "this `{` is never closed");
    }
    return PEAL_STATUS_OK;
}

/* Words, brackets and definitions in the text of kernels. */
#include "backends/cuda/codegen/kernel_text.h"

#include <ctype.h>
#include <string.h>

/* ---- words ---- */

bool peal_cuda_is_of_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

bool peal_cuda_word_is(const peal_cuda_word *w, const char *text)
{
    return w->length == strlen(text) && !strncmp(w->at, text, w->length);
}

bool peal_cuda_word_is_one_of(const peal_cuda_word *w, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (peal_cuda_word_is(w, words[i]))
            return true;
    return false;
}

bool peal_cuda_word_is_same(const peal_cuda_word *a, const peal_cuda_word *b)
{
    return a->length == b->length && !strncmp(a->at, b->at, a->length);
}

bool peal_cuda_word_find(const char *at, const char *end, peal_cuda_word *out)
{
    while (at < end) {
        size_t length = 0;
        while (peal_cuda_is_of_word(at[length]))
            length++;
        *out = (peal_cuda_word){at, length};
        if (length > 0 && !isdigit((unsigned char)*at))
            return true;
        at += length > 0 ? length : 1;
    }
    return false;
}

/* ---- what is around a place ---- */

const char *peal_cuda_last_before(const char *begin, const char *at)
{
    while (at > begin && isspace((unsigned char)at[-1]))
        at--;
    return at > begin ? at - 1 : NULL;
}

peal_cuda_word peal_cuda_word_before(const char *begin, const char *at)
{
    const char *last = peal_cuda_last_before(begin, at);
    peal_cuda_word w = {last ? last + 1 : begin, 0};

    while (w.at > begin && peal_cuda_is_of_word(w.at[-1])) {
        w.at--;
        w.length++;
    }
    return w;
}

const char *peal_cuda_skip_blanks(const char *at)
{
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

const char *peal_cuda_skip_brackets(const char *at, char open, char close)
{
    int depth = 0;

    for (; *at; at++) {
        depth += *at == open ? 1 : *at == close ? -1 : 0;
        if (depth == 0)
            return at + 1;
    }
    return NULL;
}

const char *peal_cuda_enclosing(const char *begin, const char *at)
{
    int depth = 0;

    while (at > begin) {
        at--;
        depth += *at == ')' || *at == '}' ? 1 : 0;
        if (*at == '(' || *at == '{') {
            if (depth == 0)
                return at;
            depth--;
        }
    }
    return NULL;
}

const char *peal_cuda_end_of_line(const char *at)
{
    for (;;) {
        const char *end = at + strcspn(at, "\n");
        if (!*end || end == at || end[-1] != '\\')
            return end;
        at = end + 1;
    }
}

peal_cuda_word peal_cuda_loop_before(const char *begin, const char *at)
{
    const char *close = peal_cuda_last_before(begin, at);
    const char *open = close && *close == ')' ? peal_cuda_enclosing(begin, close) : NULL;
    peal_cuda_word head = {begin, 0};

    if (open && *open == '(')
        head = peal_cuda_word_before(begin, open);
    if (head.length < strlen("PEAL_FOR") || strncmp(head.at, "PEAL_FOR", strlen("PEAL_FOR")) != 0)
        head.length = 0;
    return head;
}

/* ---- kernels ---- */

/* A copy whose comments and texts in quotes are blanks. */
static const char *without_comments(const char *text, peal_arena *arena)
{
    char *copy = peal_arena_copy_text(arena, text), *at = copy;

    while (*at) {
        size_t length = 0;
        if (at[0] == '/' && at[1] == '/') {
            length = strcspn(at, "\n");
        } else if (at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at + 2, "*/");
            length = end ? (size_t)(end + 2 - at) : strlen(at);
        } else if (*at == '"' || *at == '\'') {
            for (length = 1; at[length] && at[length] != *at; length++)
                length += at[length] == '\\' && at[length + 1];
            length += at[length] != 0;
        }
        for (size_t i = 0; i < length; i++)
            at[i] = at[i] == '\n' ? '\n' : ' ';
        at += length ? length : 1;
    }
    return copy;
}

/* Where the parameters of a kernel begin, with their bracket, from `text` on; NULL: it is not
 * defined there. */
static const char *find_kernel(const char *text, const char *kernel)
{
    for (const char *at = strstr(text, "PEAL_KERNEL"); at; at = strstr(at + 1, "PEAL_KERNEL")) {
        const char *open = at + strcspn(at, "(\n"), *close = strchr(open, ')');
        peal_cuda_word name;
        if (!close || !peal_cuda_word_find(open, close, &name) || !peal_cuda_word_is(&name, kernel))
            continue;
        return peal_cuda_skip_blanks(close + 1);
    }
    return NULL;
}

/* The last word of the first parameter. */
static bool find_tile(const char *parameters, peal_cuda_word *out)
{
    const char *end = parameters + strcspn(parameters, ",)");
    peal_cuda_word w;
    bool found = false;

    for (const char *at = parameters; peal_cuda_word_find(at, end, &w); at = w.at + w.length) {
        *out = w;
        found = true;
    }
    return found;
}

bool peal_cuda_kernel_text_find(const peal_kernel_files *files, const char *kernel,
                                peal_arena *arena, peal_cuda_kernel_text *out)
{
    const char *included = peal_kernel_files_included(files, arena);
    int definitions = 0;

    *out = (peal_cuda_kernel_text){.count = files->count + 1};
    out->text = PEAL_ARENA_ARRAY(arena, const char *, out->count);
    for (int i = 0; i < out->count && included; i++) {
        out->text[i] = without_comments(i == 0 ? included : files->file[i - 1].text, arena);
        for (const char *at = find_kernel(out->text[i], kernel); at; at = find_kernel(at, kernel)) {
            out->begin = out->text[i];
            out->parameters = at;
            definitions++;
        }
    }
    if (definitions != 1 || !find_tile(out->parameters, &out->tile))
        return false;
    const char *body = peal_cuda_skip_brackets(out->parameters, '(', ')');
    out->body = body ? peal_cuda_skip_blanks(body) : NULL;
    out->end = out->body && *out->body == '{' ? peal_cuda_skip_brackets(out->body, '{', '}') : NULL;
    return true;
}

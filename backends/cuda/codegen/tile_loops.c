/* Whether a kernel writes each point of its tile in a loop over the tile's points, and does nothing
 * else with either, as its text says. In a deep round (device/deep.h) each thread has a tile of its
 * own, of one point: what is done once a tile, or counts on the tile's extents, would be done
 * otherwise there; and a point that is left out would have any value, where plain steps let it have
 * its old one. Only what is plain to see is accepted. */
#include "backends/cuda/codegen/tile_loops.h"

#include <ctype.h>
#include <string.h>

typedef struct word {
    const char *at;
    size_t length;
} word;

static bool is_of_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool is_word(const word *w, const char *text)
{
    return w->length == strlen(text) && !strncmp(w->at, text, w->length);
}

static bool is_one_of(const word *w, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_word(w, words[i]))
            return true;
    return false;
}

static bool is_same(const word *a, const word *b)
{
    return a->length == b->length && !strncmp(a->at, b->at, a->length);
}

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

/* The next word from `at` on and before `end`. False: there is none. */
static bool find_word(const char *at, const char *end, word *out)
{
    while (at < end) {
        size_t length = 0;
        while (is_of_word(at[length]))
            length++;
        *out = (word){at, length};
        if (length > 0 && !isdigit((unsigned char)*at))
            return true;
        at += length > 0 ? length : 1;
    }
    return false;
}

/* The last character before `at` that is no blank, in front of `begin` none; and the word that ends
 * there. */
static const char *before(const char *begin, const char *at)
{
    while (at > begin && isspace((unsigned char)at[-1]))
        at--;
    return at > begin ? at - 1 : NULL;
}

static word word_before(const char *begin, const char *at)
{
    const char *last = before(begin, at);
    word w = {last ? last + 1 : begin, 0};

    while (w.at > begin && is_of_word(w.at[-1])) {
        w.at--;
        w.length++;
    }
    return w;
}

/* Behind the bracket that closes the one at `at`; NULL: none does. */
static const char *skip_brackets(const char *at, char open, char close)
{
    int depth = 0;

    for (; *at; at++) {
        depth += *at == open ? 1 : *at == close ? -1 : 0;
        if (depth == 0)
            return at + 1;
    }
    return NULL;
}

/* The bracket of either sort that `at` stands in; NULL: none. */
static const char *enclosing(const char *begin, const char *at)
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

/* Whether what stands before `at` is the head of a loop over a tile's points. */
static bool follows_loop(const char *begin, const char *at)
{
    static const char *const loops[] = {"PEAL_FOR_2D", "PEAL_FOR_3D", "PEAL_FOR_2D_INSIDE",
                                        "PEAL_FOR_3D_INSIDE"};
    const char *close = before(begin, at);
    const char *open = close && *close == ')' ? enclosing(begin, close) : NULL;

    if (!open || *open != '(')
        return false;
    word head = word_before(begin, open);
    return is_one_of(&head, loops, sizeof(loops) / sizeof(loops[0]));
}

/* Whether the tile's name at `at` is the first argument of such a loop. */
static bool is_looped_over(const char *begin, const word *tile)
{
    const char *open = before(begin, tile->at);
    const char *close = open && *open == '(' ? skip_brackets(open, '(', ')') : NULL;

    return close && follows_loop(begin, close);
}

/* Whether the written array's name at `at` is in a statement PEAL_AT(name, ...) = ... of such a
 * loop's own. */
static bool is_stored_to(const char *begin, const word *name)
{
    const char *open = before(begin, name->at);
    if (!open || *open != '(')
        return false;
    word head = word_before(begin, open);
    const char *close = skip_brackets(open, '(', ')');
    if (!is_word(&head, "PEAL_AT") || !close)
        return false;
    close += strspn(close, " \t\n");
    if (close[0] != '=' || close[1] == '=')
        return false;
    const char *last = before(begin, head.at);
    if (last && *last == ')')
        return follows_loop(begin, head.at);
    const char *block = enclosing(begin, head.at);
    return last && strchr("{;}", *last) && block && *block == '{' && follows_loop(begin, block);
}

static bool branches(const word *w)
{
    static const char *const words[] = {"if",   "else",  "switch", "case",     "while", "do",
                                        "goto", "break", "return", "continue", "asm"};

    return is_one_of(w, words, sizeof(words) / sizeof(words[0]));
}

/* Where the parameters of a kernel begin, with their bracket, from `text` on; NULL: it is not
 * defined there. */
static const char *find_kernel(const char *text, const char *kernel)
{
    for (const char *at = strstr(text, "PEAL_KERNEL"); at; at = strstr(at + 1, "PEAL_KERNEL")) {
        const char *open = at + strcspn(at, "(\n"), *close = strchr(open, ')');
        word name;
        if (!close || !find_word(open, close, &name) || !is_word(&name, kernel))
            continue;
        close++;
        return close + strspn(close, " \t\n");
    }
    return NULL;
}

/* The last word of the first parameter. */
static bool find_tile(const char *parameters, word *out)
{
    const char *end = parameters + strcspn(parameters, ",)");
    word w;
    bool found = false;

    for (const char *at = parameters; find_word(at, end, &w); at = w.at + w.length) {
        *out = w;
        found = true;
    }
    return found;
}

/* The name of the one array that is written: PEAL_WRITE(type, name). */
static bool find_written(const char *parameters, word *out)
{
    const char *end = skip_brackets(parameters, '(', ')');
    word w;
    int found = 0;

    for (const char *at = parameters; end && find_word(at, end, &w); at = w.at + w.length)
        if (is_word(&w, "PEAL_WRITE")) {
            const char *close = strchr(w.at, ')');
            *out = word_before(w.at, close ? close : w.at);
            found += out->length > 0;
        }
    return found == 1;
}

static bool loops_alone(const char *text, const char *parameters, const word *tile,
                        const word *written)
{
    const char *body = skip_brackets(parameters, '(', ')');
    body = body ? body + strspn(body, " \t\n") : NULL;
    const char *end = body && *body == '{' ? skip_brackets(body, '{', '}') : NULL;
    bool stores = false;
    word w;

    if (!end || memchr(body, '#', (size_t)(end - body)))
        return false;
    for (const char *at = body; find_word(at, end, &w); at = w.at + w.length) {
        if (branches(&w) || (is_same(&w, tile) && !is_looped_over(text, &w)))
            return false;
        if (!is_same(&w, written))
            continue;
        if (!is_stored_to(text, &w))
            return false;
        stores = true;
    }
    return stores;
}

/* The end of the line that `at` is in, with those that continue it. */
static const char *end_of_line(const char *at)
{
    for (;;) {
        const char *end = at + strcspn(at, "\n");
        if (!*end || end == at || end[-1] != '\\')
            return end;
        at = end + 1;
    }
}

/* Whether a macro of the text names the tile or what is written, branches, or does something once a
 * tile. */
static bool has_macros(const char *text, const word *tile, const word *written)
{
    static const char *const heads[] = {"PEAL_FOR", "PEAL_ONE", "PEAL_SYNC", "PEAL_KERNEL"};

    for (const char *at = strstr(text, "define"); at; at = strstr(at + 1, "define")) {
        const char *end = end_of_line(at);
        word w;
        for (const char *from = at; find_word(from, end, &w); from = w.at + w.length) {
            if (is_same(&w, tile) || is_same(&w, written) || branches(&w))
                return true;
            for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
                if (!strncmp(w.at, heads[i], strlen(heads[i])))
                    return true;
        }
    }
    return false;
}

bool peal_cuda_kernel_loops_alone(const peal_kernel_files *files, const char *kernel,
                                  peal_arena *arena)
{
    const char *included = peal_kernel_files_included(files, arena), *parameters = NULL;
    const char *text = NULL;
    int definitions = 0;
    word tile = {NULL, 0}, written = {NULL, 0};

    if (!included)
        return false;
    for (int i = -1; i < files->count; i++) {
        const char *one = without_comments(i < 0 ? included : files->file[i].text, arena);
        for (const char *at = find_kernel(one, kernel); at; at = find_kernel(at, kernel)) {
            parameters = at;
            text = one;
            definitions++;
        }
    }
    if (definitions != 1 || !find_tile(parameters, &tile) || !find_written(parameters, &written) ||
        !loops_alone(text, parameters, &tile, &written))
        return false;
    for (int i = -1; i < files->count; i++)
        if (has_macros(without_comments(i < 0 ? included : files->file[i].text, arena), &tile,
                       &written))
            return false;
    return true;
}

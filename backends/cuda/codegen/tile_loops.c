/* Whether a kernel does nothing with its tile but loop over all of the tile's points, as its text
 * says. In a deep round (device/deep.h) each thread has a tile of its own, of one point: what is
 * done once a tile, or counts on the tile's extents, would be done otherwise there; and a point
 * that is left out would have any value, where plain steps let it have its old one. */
#include "backends/cuda/codegen/tile_loops.h"

#include <ctype.h>
#include <string.h>

static bool is_of_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Behind a comment or a text in quotes that begins at `at`; `at` if none does. */
static const char *skip_apart(const char *at)
{
    char quote = *at;

    if (at[0] == '/' && at[1] == '/')
        return at + strcspn(at, "\n");
    if (at[0] == '/' && at[1] == '*') {
        const char *end = strstr(at + 2, "*/");
        return end ? end + 2 : at + strlen(at);
    }
    if (quote != '"' && quote != '\'')
        return at;
    for (at++; *at && *at != quote; at++)
        at += *at == '\\' && at[1];
    return *at ? at + 1 : at;
}

/* The next word from `at` on, outside of comments and texts, before `end`; NULL: there is none. */
static const char *find_word(const char *at, const char *end, size_t *length)
{
    while (at < end) {
        const char *behind = skip_apart(at);
        if (behind == at && is_of_word(*at)) {
            for (*length = 0; is_of_word(at[*length]);)
                (*length)++;
            if (!isdigit((unsigned char)*at))
                return at;
            behind = at + *length;
        }
        at = behind == at ? at + 1 : behind;
    }
    return NULL;
}

/* Behind the bracket that closes the one at `at`; NULL: none does. */
static const char *skip_brackets(const char *at, char open, char close)
{
    int depth = 0;

    while (*at) {
        const char *behind = skip_apart(at);
        if (behind != at) {
            at = behind;
            continue;
        }
        depth += *at == open ? 1 : *at == close ? -1 : 0;
        at++;
        if (depth == 0)
            return at;
    }
    return NULL;
}

/* Where the parameters of a kernel begin, with their bracket; NULL: the text does not define it. */
static const char *find_kernel(const char *text, const char *kernel)
{
    static const char word[] = "PEAL_KERNEL(";

    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
        const char *name = at + sizeof(word) - 1;
        name += strspn(name, " \t\n");
        size_t length = strlen(kernel);
        const char *behind = name + length;
        if (strncmp(name, kernel, length) || is_of_word(*behind))
            continue;
        behind += strspn(behind, " \t\n");
        if (*behind != ')')
            continue;
        behind++;
        return behind + strspn(behind, " \t\n");
    }
    return NULL;
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

/* Whether a macro of the text names the tile, or does something once a tile. */
static bool has_macros(const char *text, const char *tile, size_t tile_length)
{
    static const char *const words[] = {"PEAL_FOR", "PEAL_ONE", "PEAL_SYNC", "PEAL_KERNEL"};

    for (const char *at = strstr(text, "define"); at; at = strstr(at + 1, "define")) {
        const char *end = end_of_line(at), *word = at;
        size_t length = 0;
        while ((word = find_word(word + length, end, &length))) {
            if (length == tile_length && !strncmp(word, tile, length))
                return true;
            for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                if (!strncmp(word, words[i], strlen(words[i])))
                    return true;
        }
    }
    return false;
}

/* Whether the word at `at`, a tile's name, is the first argument of a loop over its points. */
static bool is_in_loop(const char *text, const char *at)
{
    static const char *const loops[] = {"PEAL_FOR_2D", "PEAL_FOR_3D", "PEAL_FOR_2D_INSIDE",
                                        "PEAL_FOR_3D_INSIDE"};

    while (at > text && isspace((unsigned char)at[-1]))
        at--;
    if (at == text || *--at != '(')
        return false;
    while (at > text && isspace((unsigned char)at[-1]))
        at--;
    const char *end = at;
    while (at > text && is_of_word(at[-1]))
        at--;
    for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++)
        if (strlen(loops[i]) == (size_t)(end - at) && !strncmp(loops[i], at, strlen(loops[i])))
            return true;
    return false;
}

/* Whether a word may leave out points, of those that a kernel has to write. */
static bool branches(const char *word, size_t length)
{
    static const char *const words[] = {"if",    "switch", "while",   "goto",
                                        "break", "return", "continue"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i]) == length && !strncmp(word, words[i], length))
            return true;
    return false;
}

/* The name of the tile, the last word of the first parameter; NULL: there is none. */
static const char *find_tile(const char *parameters, size_t *tile_length)
{
    const char *tile = NULL, *end = parameters + strcspn(parameters, ",)");
    size_t length = 0;

    for (const char *word = find_word(parameters, end, &length); word;
         word = find_word(word + length, end, &length)) {
        tile = word;
        *tile_length = length;
    }
    return tile;
}

static bool loops_alone(const char *text, const char *parameters, const char *tile,
                        size_t tile_length)
{
    size_t length = 0;
    const char *body = skip_brackets(parameters, '(', ')');
    body = body ? body + strspn(body, " \t\n") : NULL;
    const char *end = body && *body == '{' ? skip_brackets(body, '{', '}') : NULL;

    if (!end)
        return false;
    for (const char *word = find_word(body, end, &length); word;
         word = find_word(word + length, end, &length))
        if (branches(word, length) ||
            (length == tile_length && !strncmp(word, tile, length) && !is_in_loop(text, word)))
            return false;
    return !memchr(body, '#', (size_t)(end - body));
}

bool peal_cuda_kernel_loops_alone(const peal_kernel_files *files, const char *kernel,
                                  peal_arena *arena)
{
    const char *included = peal_kernel_files_included(files, arena), *tile = NULL;
    size_t length = 0;

    if (!included)
        return false;
    for (int i = 0; i < files->count; i++) {
        const char *text = files->file[i].text, *parameters = find_kernel(text, kernel);
        if (!parameters)
            continue;
        tile = find_tile(parameters, &length);
        if (!tile || !loops_alone(text, parameters, tile, length))
            return false;
    }
    if (!tile || has_macros(included, tile, length))
        return false;
    for (int i = 0; i < files->count; i++)
        if (has_macros(files->file[i].text, tile, length))
            return false;
    return true;
}

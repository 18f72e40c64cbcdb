/* Whether a kernel writes each point of its tile in a loop over the tile's points, and does nothing
 * else with either, as its text says. In a deep round (device/deep.h) each thread has a tile of its
 * own, of one point: what is done once a tile, or counts on the tile's extents, would be done
 * otherwise there; and a point that is left out would have any value, where plain steps let it have
 * its old one. Only what is plain to see is accepted. */
#include "backends/cuda/codegen/tile_loops.h"

#include "backends/cuda/codegen/kernel_text.h"

#include <string.h>

/* Whether what stands before `at` is the head of a loop over a tile's points. */
static bool follows_loop(const char *begin, const char *at)
{
    static const char *const loops[] = {"PEAL_FOR_2D", "PEAL_FOR_3D", "PEAL_FOR_2D_INSIDE",
                                        "PEAL_FOR_3D_INSIDE"};
    peal_cuda_word head = peal_cuda_loop_before(begin, at);

    return peal_cuda_word_is_one_of(&head, loops, sizeof(loops) / sizeof(loops[0]));
}

/* Whether the tile's name at `at` is the first argument of such a loop. */
static bool is_looped_over(const char *begin, const peal_cuda_word *tile)
{
    const char *open = peal_cuda_last_before(begin, tile->at);
    const char *close = open && *open == '(' ? peal_cuda_skip_brackets(open, '(', ')') : NULL;

    return close && follows_loop(begin, close);
}

/* Whether the written array's name at `at` is in a statement PEAL_AT(name, ...) = ... of such a
 * loop's own. */
static bool is_stored_to(const char *begin, const peal_cuda_word *name)
{
    const char *open = peal_cuda_last_before(begin, name->at);
    if (!open || *open != '(')
        return false;
    peal_cuda_word head = peal_cuda_word_before(begin, open);
    const char *close = peal_cuda_skip_brackets(open, '(', ')');
    if (!peal_cuda_word_is(&head, "PEAL_AT") || !close)
        return false;
    close = peal_cuda_skip_blanks(close);
    if (close[0] != '=' || close[1] == '=')
        return false;
    const char *last = peal_cuda_last_before(begin, head.at);
    if (last && *last == ')')
        return follows_loop(begin, head.at);
    const char *block = peal_cuda_enclosing(begin, head.at);
    return last && strchr("{;}", *last) && block && *block == '{' && follows_loop(begin, block);
}

static bool branches(const peal_cuda_word *w)
{
    static const char *const words[] = {"if",   "else",  "switch", "case",     "while", "do",
                                        "goto", "break", "return", "continue", "asm"};

    return peal_cuda_word_is_one_of(w, words, sizeof(words) / sizeof(words[0]));
}

/* The name of the one array that is written: PEAL_WRITE(type, name). */
static bool find_written(const char *parameters, peal_cuda_word *out)
{
    const char *end = peal_cuda_skip_brackets(parameters, '(', ')');
    peal_cuda_word w;
    int found = 0;

    for (const char *at = parameters; end && peal_cuda_word_find(at, end, &w); at = w.at + w.length)
        if (peal_cuda_word_is(&w, "PEAL_WRITE")) {
            const char *close = strchr(w.at, ')');
            *out = peal_cuda_word_before(w.at, close ? close : w.at);
            found += out->length > 0;
        }
    return found == 1;
}

static bool loops_alone(const peal_cuda_kernel_text *kernel, const peal_cuda_word *written)
{
    bool stores = false;
    peal_cuda_word w;

    if (!kernel->end || memchr(kernel->body, '#', (size_t)(kernel->end - kernel->body)))
        return false;
    for (const char *at = kernel->body; peal_cuda_word_find(at, kernel->end, &w);
         at = w.at + w.length) {
        if (branches(&w) ||
            (peal_cuda_word_is_same(&w, &kernel->tile) && !is_looped_over(kernel->begin, &w)))
            return false;
        if (!peal_cuda_word_is_same(&w, written))
            continue;
        if (!is_stored_to(kernel->begin, &w))
            return false;
        stores = true;
    }
    return stores;
}

/* Whether a macro of the text names the tile or what is written, branches, or does something once a
 * tile. */
static bool has_macros(const char *text, const peal_cuda_word *tile, const peal_cuda_word *written)
{
    static const char *const heads[] = {"PEAL_FOR", "PEAL_ONE", "PEAL_SYNC", "PEAL_KERNEL"};

    for (const char *at = strstr(text, "define"); at; at = strstr(at + 1, "define")) {
        const char *end = peal_cuda_end_of_line(at);
        peal_cuda_word w;
        for (const char *from = at; peal_cuda_word_find(from, end, &w); from = w.at + w.length) {
            if (peal_cuda_word_is_same(&w, tile) || peal_cuda_word_is_same(&w, written) ||
                branches(&w))
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
    peal_cuda_kernel_text found;
    peal_cuda_word written = {NULL, 0};

    if (!peal_cuda_kernel_text_find(files, kernel, arena, &found) ||
        !find_written(found.parameters, &written) || !loops_alone(&found, &written))
        return false;
    for (int i = 0; i < found.count; i++)
        if (has_macros(found.text[i], &found.tile, &written))
            return false;
    return true;
}

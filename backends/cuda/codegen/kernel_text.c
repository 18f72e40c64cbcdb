/* What a kernel's text declares: its parameters, and the loops over its tile's points. */
#include "backends/cuda/codegen/kernel_text.h"

#include <string.h>

#define IS_ONE_OF(token, words)                                                                    \
    peal_cuda_token_is_one_of(token, words, sizeof(words) / sizeof((words)[0]))

int peal_cuda_text_bracket(const peal_cuda_token *t, int at)
{
    for (at--; at >= 0 && (t[at].match < 0 || t[at].match < at);)
        at = t[at].match >= 0 ? t[at].match - 1 : at - 1;
    return at;
}

int peal_cuda_text_argument_end(const peal_cuda_token *t, int at, int close)
{
    while (at < close && !peal_cuda_token_is(&t[at], ","))
        at = t[at].match > at ? t[at].match + 1 : at + 1;
    return at;
}

/* ---- the head ---- */

/* Finds PEAL_KERNEL(name)(parameters) { } in all texts. False: it is not there once. */
static bool find_kernel(const peal_cuda_tokens *all, const char *name, int *begin, int *end)
{
    const peal_cuda_token *t = all->token;
    int found = 0;

    for (int i = 0; i + 5 < all->count; i++) {
        if (!peal_cuda_token_is(&t[i], "PEAL_KERNEL") || !peal_cuda_token_is(&t[i + 1], "(") ||
            !peal_cuda_token_is(&t[i + 2], name))
            continue;
        int close = peal_cuda_token_is(&t[i + 4], "(") ? t[i + 4].match : -1;
        if (peal_cuda_text_bracket(t, i) >= 0 || close < 0 || close + 1 >= all->count ||
            !peal_cuda_token_is(&t[close + 1], "{"))
            return false;
        found++;
        *begin = i;
        *end = t[close + 1].match + 1;
    }
    return found == 1;
}

/* The name of the array that a parameter at token `at` declares, PEAL_READ(type, name) or the like;
 * NULL: it declares another thing. */
static const peal_cuda_token *declared_array(const peal_cuda_token *t, int at)
{
    static const char *const arrays[] = {"PEAL_READ", "PEAL_UPDATE", "PEAL_WRITE"};

    return IS_ONE_OF(&t[at], arrays) && peal_cuda_token_is(&t[at + 1], "(") &&
                   t[t[at + 1].match - 1].is_word
               ? &t[t[at + 1].match - 1]
               : NULL;
}

/* Notes the name of a reduction, whose brackets begin at token `open`. */
static bool take_partial(peal_cuda_kernel_text *k, int open)
{
    const peal_cuda_token *t = k->token;

    if (!peal_cuda_token_is(&t[open], "(") || !t[t[open].match - 1].is_word ||
        k->partial_count == PEAL_CUDA_TEXT_PARTIALS)
        return false;
    k->partial[k->partial_count++] = &t[t[open].match - 1];
    return true;
}

bool peal_cuda_text_is_partial(const peal_cuda_kernel_text *k, const peal_cuda_token *word)
{
    for (int i = 0; i < k->partial_count; i++)
        if (peal_cuda_tokens_equal(k->partial[i], word))
            return true;
    return false;
}

/* Finds the tile and the array among the parameters, which have to have so many arrays. */
static bool find_names(peal_cuda_kernel_text *k, int open, int arrays, int index,
                       const char *access)
{
    const peal_cuda_token *t = k->token;
    int close = t[open].match, at = open + 1, found = 0;

    at += peal_cuda_token_is(&t[at], "const");
    if (!peal_cuda_token_is(&t[at], "peal_tile") || !t[at + 1].is_word ||
        peal_cuda_text_argument_end(t, at, close) != at + 2)
        return false;
    k->tile = &t[at + 1];
    for (at += 2; at < close; at = peal_cuda_text_argument_end(t, at + 1, close)) {
        const peal_cuda_token *name = declared_array(t, at + 1);
        bool is_other = peal_cuda_token_begins(&t[at + 1], "PEAL_") &&
                        !peal_cuda_token_is(&t[at + 1], "PEAL_REDUCE");
        if (!name && is_other)
            return false;
        if (peal_cuda_token_is(&t[at + 1], "PEAL_REDUCE") && !take_partial(k, at + 2))
            return false;
        if (name && found++ == index) {
            k->array = name;
            if (!peal_cuda_token_is(&t[at + 1], access))
                return false;
        }
    }
    return found == arrays && k->array;
}

/* ---- loops ---- */

/* A word that loops over a tile's points: its axes; the arguments behind its names; whether the
 * first of these is declared by it. */
typedef struct loop_word {
    const char *name;
    int axes, further;
    bool has_flag, is_even;
} loop_word;

/* NULL: it is none. */
static const loop_word *find_loop(const peal_cuda_token *word)
{
    static const loop_word words[] = {
        {"PEAL_FOR_2D", 2, 0, false, false},       {"PEAL_FOR_3D", 3, 0, false, false},
        {"PEAL_FOR_2D_EVEN", 2, 1, false, true},   {"PEAL_FOR_3D_EVEN", 3, 1, false, true},
        {"PEAL_FOR_2D_INSIDE", 2, 5, true, false}, {"PEAL_FOR_3D_INSIDE", 3, 7, true, false},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (peal_cuda_token_is(word, words[i].name))
            return &words[i];
    return NULL;
}

bool peal_cuda_text_is_loop(const peal_cuda_token *word)
{
    return find_loop(word) != NULL;
}

bool peal_cuda_text_is_index(const peal_cuda_kernel_text *k, const peal_cuda_token *word)
{
    for (int i = 0; i < k->loop_count; i++)
        for (int a = 0; a < k->loop[i].axes; a++)
            if (peal_cuda_tokens_equal(k->loop[i].index[a], word))
                return true;
    return false;
}

/* Whether the word is the name of another axis, of this loop or one before. */
static bool is_of_other_axis(const peal_cuda_kernel_text *k, const peal_cuda_token *word, int axis)
{
    for (int i = 0; i <= k->loop_count; i++)
        for (int a = 0; a < k->loop[i].axes; a++)
            if (a != axis && peal_cuda_tokens_equal(k->loop[i].index[a], word))
                return true;
    return false;
}

/* Takes the loop whose head begins at token `at`. *flag: a name that it declares beside its
 * indexes; or NULL. False: its tile is not the kernel's, or its names are not plain. */
static bool take_loop(peal_cuda_kernel_text *k, int at, const loop_word *word,
                      const peal_cuda_token **flag)
{
    const peal_cuda_token *t = k->token;
    int open = at + 1, axes = word->axes;

    *flag = NULL;
    if (!peal_cuda_token_is(&t[open], "(") || k->loop_count + 1 >= PEAL_CUDA_TEXT_LOOPS ||
        !peal_cuda_tokens_equal(&t[open + 1], k->tile))
        return false;
    peal_cuda_tile_loop *l = &k->loop[k->loop_count];
    *l = (peal_cuda_tile_loop){.open = open, .is_even = word->is_even};
    int comma = open + 2, close = t[open].match, count = 1;
    for (; comma < close; comma = peal_cuda_text_argument_end(t, comma + 1, close), count++) {
        const peal_cuda_token *name = &t[comma + 1];
        if (!peal_cuda_token_is(&t[comma], ","))
            return false;
        if (count > axes + (word->has_flag ? 1 : 0))
            continue;
        if (!name->is_word || peal_cuda_text_argument_end(t, comma + 1, close) != comma + 2 ||
            peal_cuda_tokens_equal(name, k->tile) || peal_cuda_tokens_equal(name, k->array))
            return false;
        if (count > axes) {
            *flag = name;
            continue;
        }
        if (is_of_other_axis(k, name, count - 1))
            return false;
        l->index[l->axes++] = name;
    }
    k->loop_count++;
    return count == axes + 1 + word->further;
}

static bool find_loops(peal_cuda_kernel_text *k)
{
    const peal_cuda_token *flag[PEAL_CUDA_TEXT_LOOPS];

    for (int i = k->begin; i < k->end; i++) {
        const loop_word *word = find_loop(&k->token[i]);
        if (word && !take_loop(k, i, word, &flag[k->loop_count]))
            return false;
    }
    for (int i = 0; i < k->loop_count; i++)
        if (flag[i] && peal_cuda_text_is_index(k, flag[i]))
            return false;
    return true;
}

const peal_cuda_tile_loop *peal_cuda_text_loop_around(const peal_cuda_kernel_text *k, int at)
{
    const peal_cuda_token *t = k->token;

    for (int i = at, first = 1; i > k->begin; first = 0) {
        bool heads = peal_cuda_token_is(&t[i - 1], ")") && find_loop(&t[t[i - 1].match - 1]);
        for (int n = 0; heads && n < k->loop_count; n++)
            if (k->loop[n].open == t[i - 1].match && (first || peal_cuda_token_is(&t[i], "{")))
                return &k->loop[n];
        for (i--; i > k->begin && (t[i].match < 0 || t[i].match < i);)
            i = t[i].match >= 0 ? t[i].match - 1 : i - 1;
        if (!peal_cuda_token_is(&t[i], "{"))
            return NULL;
    }
    return NULL;
}

bool peal_cuda_text_find(peal_cuda_kernel_text *k, const peal_cuda_tokens *tokens, const char *name,
                         int arrays, int index, const char *access, peal_arena *arena)
{
    peal_cuda_tokens expanded;
    int begin = 0, end = 0;

    if (!find_kernel(tokens, name, &begin, &end) ||
        !peal_cuda_tokens_expand(tokens, begin, end, arena, &expanded))
        return false;
    k->token = expanded.token;
    if (expanded.count < 6 || !peal_cuda_token_is(&k->token[2], name) ||
        !peal_cuda_token_is(&k->token[4], "("))
        return false;
    k->begin = k->token[4].match + 1;
    k->end = expanded.count - 1;
    return peal_cuda_token_is(&k->token[k->begin], "{") &&
           find_names(k, 4, arrays, index, access) && find_loops(k);
}

/* Expands the macros of kernels' texts as a preprocessor does, so that what is looked for in a
 * kernel is looked for in what the compiler gets. Texts are plain (kernel_tokens.h): macros have
 * all brackets that they open, and something in them, paste nothing and have a fixed number of
 * parameters. */
#include "backends/cuda/codegen/kernel_tokens.h"

enum { MOST_DEPTH = 16, MOST_TOKENS = 20000, MOST_PARAMETERS = 32, LOOK_AHEAD = 4 };

typedef struct expansion {
    const peal_cuda_tokens *all;
    peal_arena *arena;
    int before; /* macros have to be defined in front of this token */
    int left;   /* so many more tokens are taken */
} expansion;

static bool add(expansion *e, const peal_cuda_token *token, peal_cuda_tokens *out)
{
    if (e->left-- == 0 || peal_cuda_token_is(token, "#"))
        return false;
    PEAL_ARENA_ROOM(e->arena, out->token, out->count, out->room);
    out->token[out->count] = *token;
    out->token[out->count++].match = -1;
    return true;
}

static bool expand(expansion *e, const peal_cuda_token *t, int count, int depth,
                   peal_cuda_tokens *out);

/* Expands the arguments of a macro, whose bracket is token `open`; between brackets of other sorts
 * commas end them, too. Returns the bracket that closes them; -1: they are not as many as the
 * macro's parameters, or not plain. */
static int expand_arguments(expansion *e, const peal_cuda_token *t, int count, int open, int depth,
                            int parameters, peal_cuda_tokens argument[MOST_PARAMETERS])
{
    int brackets = 0, found = 0;

    for (int i = open, begin = open + 1; i < count; i++) {
        brackets += peal_cuda_token_is(&t[i], "(") ? 1 : peal_cuda_token_is(&t[i], ")") ? -1 : 0;
        bool ends = brackets == 0, more = brackets == 1 && peal_cuda_token_is(&t[i], ",");
        if (!ends && !more)
            continue;
        if (ends && parameters == 0)
            return i == open + 1 ? i : -1;
        if (found == parameters || !expand(e, t + begin, i - begin, depth + 1, &argument[found]))
            return -1;
        found++;
        begin = i + 1;
        if (ends)
            return found == parameters ? i : -1;
    }
    return -1;
}

/* How many parameters a macro has; -1: they are not plain. */
static int count_parameters(const peal_cuda_macro *m)
{
    int close = m->token[0].match, count = close / 2;

    for (int i = 1; i < close; i++)
        if (i % 2 == 1 ? !m->token[i].is_word || peal_cuda_token_begins(&m->token[i], "PEAL_")
                       : !peal_cuda_token_is(&m->token[i], ","))
            return -1;
    return count <= MOST_PARAMETERS && (close == 1 || close % 2 == 0) ? count : -1;
}

/* The value of a macro with parameters, whose name is token `at`. Returns where its call ends; -1:
 * it is none, or not plain. */
static int substitute(expansion *e, const peal_cuda_macro *m, const peal_cuda_token *t, int count,
                      int at, int depth, peal_cuda_tokens *value)
{
    peal_cuda_tokens argument[MOST_PARAMETERS] = {{.count = 0}};
    int parameters = count_parameters(m);

    if (parameters < 0 || at + 1 >= count || !peal_cuda_token_is(&t[at + 1], "("))
        return -1;
    int close = expand_arguments(e, t, count, at + 1, depth, parameters, argument);
    for (int i = m->value; i < m->count && close >= 0; i++) {
        int p = 0;
        while (p < parameters && !peal_cuda_tokens_equal(&m->token[1 + 2 * p], &m->token[i]))
            p++;
        bool ok = p < parameters || add(e, &m->token[i], value);
        for (int k = 0; p < parameters && k < argument[p].count && ok; k++)
            ok = add(e, &argument[p].token[k], value);
        close = ok ? close : -1;
    }
    return close;
}

static bool expand(expansion *e, const peal_cuda_token *t, int count, int depth,
                   peal_cuda_tokens *out)
{
    for (int i = 0; i < count; i++) {
        bool several = false;
        const peal_cuda_macro *m =
            t[i].is_word ? peal_cuda_tokens_macro(e->all, &t[i], &several) : NULL;
        peal_cuda_tokens value = {.count = 0};
        if (several || (m && (depth == MOST_DEPTH || m->at > e->before)))
            return false;
        if (!m && !add(e, &t[i], out))
            return false;
        if (m && m->has_parameters)
            i = substitute(e, m, t, count, i, depth, &value);
        for (int k = 0; m && !m->has_parameters && k < m->count; k++)
            if (!add(e, &m->token[k], &value))
                return false;
        if (i < 0 || (m && !expand(e, value.token, value.count, depth + 1, out)))
            return false;
    }
    return true;
}

bool peal_cuda_tokens_expand(const peal_cuda_tokens *all, int begin, int end, peal_arena *arena,
                             peal_cuda_tokens *out)
{
    static const peal_cuda_token stop = {";", 1, false, -1};
    expansion e = {all, arena, begin, MOST_TOKENS};

    *out = (peal_cuda_tokens){.count = 0};
    if (!expand(&e, all->token + begin, end - begin, 0, out) ||
        !peal_cuda_tokens_match(out->token, out->count, arena))
        return false;
    for (int i = 0; i < LOOK_AHEAD; i++)
        if (!add(&e, &stop, out))
            return false;
    out->count -= LOOK_AHEAD;
    return true;
}

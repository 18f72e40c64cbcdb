/* Whether a kernel stores into an array at the points of its tile alone, as its text says. Then a
 * block may store what its tile has of a message into the receiver's memory (lower/remote_store.c),
 * although the task reads beside the tile what it updates.
 *
 * Only what is plain to see is accepted. The tile's name stands in loops over it alone; the array's
 * in PEAL_AT, or as an argument of a macro that does no more than read; the loops' names are
 * declared by them alone; and each operator that stores has a name, an element or a PEAL_AT to its
 * left. No address is taken anywhere, so neither pointers nor references lead to the array, and
 * functions get values. */
#include "backends/cuda/codegen/own_points.h"

#include <string.h>

enum { MOST_DEPTH = 8, MOST_LOOPS = 64, MOST_AXES = 3, MOST_MACROS = 10000 };

/* A loop over the tile's points, whose head's bracket is token `open`; index: its names. */
typedef struct loop {
    int open, axes;
    const peal_cuda_token *index[MOST_AXES];
} loop;

typedef struct kernel {
    const peal_cuda_tokens *all;
    const peal_cuda_token *token;        /* all of the text */
    int begin, end;                      /* its body's brackets */
    const peal_cuda_token *tile, *array; /* their names */
    int axes;                            /* of the array */
    int *patience;                       /* so many more macros are looked into */
    loop loop[MOST_LOOPS];
    int loop_count;
} kernel;

#define IS_ONE_OF(token, words)                                                                    \
    peal_cuda_token_is_one_of(token, words, sizeof(words) / sizeof((words)[0]))

static bool is_macro(const kernel *k, const peal_cuda_token *name)
{
    bool several;

    return peal_cuda_tokens_macro(k->all, name, &several) || several;
}

/* Operators that store. (No text has one that takes an address.) */
static bool stores(const peal_cuda_token *token)
{
    static const char *const operators[] = {"=",  "+=", "-=",  "*=",  "/=", "%=", "&=",
                                            "|=", "^=", "<<=", ">>=", "++", "--"};

    return IS_ONE_OF(token, operators);
}

/* A word that a plain kernel does not have, beside those that no text has: it may declare names,
 * jump, or say what is not in the text. */
static bool is_strange(const peal_cuda_token *token)
{
    static const char *const words[] = {"asm",      "goto",    "do",     "switch",   "case",
                                        "default",  "enum",    "struct", "union",    "class",
                                        "static",   "typedef", "extern", "typeof",   "or",
                                        "not",      "xor",     "compl",  "bitor",    "not_eq",
                                        "throw",    "delete",  "new",    "co_await", "co_yield",
                                        "co_return"};

    return token->is_word &&
           (IS_ONE_OF(token, words) || *token->at == '_' || token->at[token->length - 1] == '_' ||
            peal_cuda_token_begins(token, "peal_"));
}

/* The bracket that token `at` stands in; -1: none. */
static int bracket_around(const peal_cuda_token *t, int at)
{
    for (at--; at >= 0 && (t[at].match < 0 || t[at].match < at);)
        at = t[at].match >= 0 ? t[at].match - 1 : at - 1;
    return at;
}

/* ---- the head ---- */

/* Finds PEAL_KERNEL(name)(parameters) { }; *parameters: their bracket. False: it is not there
 * once. */
static bool find_kernel(kernel *k, const char *name, int *parameters)
{
    const peal_cuda_token *t = k->token;
    int found = 0;

    for (int i = 0; i + 5 < k->all->count; i++) {
        if (!peal_cuda_token_is(&t[i], "PEAL_KERNEL") || !peal_cuda_token_is(&t[i + 1], "(") ||
            !peal_cuda_token_is(&t[i + 2], name))
            continue;
        if (bracket_around(t, i) >= 0)
            return false;
        found++;
        *parameters = i + 4;
        int close = peal_cuda_token_is(&t[i + 4], "(") ? t[i + 4].match : -1;
        k->begin = close + 1;
        if (close < 0 || k->begin >= k->all->count || !peal_cuda_token_is(&t[k->begin], "{"))
            return false;
        k->end = t[k->begin].match;
    }
    return found == 1;
}

/* Behind the argument that begins at token `at`: the comma, or the bracket that ends the list. */
static int argument_end(const peal_cuda_token *t, int at, int close)
{
    while (at < close && !peal_cuda_token_is(&t[at], ","))
        at = t[at].match > at ? t[at].match + 1 : at + 1;
    return at;
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

/* Finds the tile and the array among the parameters, which have to have so many arrays. */
static bool find_names(kernel *k, int open, int arrays, int index)
{
    const peal_cuda_token *t = k->token;
    int close = t[open].match, at = open + 1, found = 0;

    at += peal_cuda_token_is(&t[at], "const");
    if (!peal_cuda_token_is(&t[at], "peal_tile") || !t[at + 1].is_word ||
        argument_end(t, at, close) != at + 2)
        return false;
    k->tile = &t[at + 1];
    for (int i = open + 1; i < close; i++)
        if (is_macro(k, &t[i]))
            return false;
    for (at += 2; at < close; at = argument_end(t, at + 1, close)) {
        const peal_cuda_token *name = declared_array(t, at + 1);
        bool is_other = peal_cuda_token_begins(&t[at + 1], "PEAL_") &&
                        !peal_cuda_token_is(&t[at + 1], "PEAL_REDUCE");
        if (!name && is_other)
            return false;
        if (name && found++ == index) {
            k->array = name;
            if (!peal_cuda_token_is(&t[at + 1], "PEAL_UPDATE"))
                return false;
        }
    }
    return found == arrays && k->array;
}

/* ---- loops ---- */

/* How many axes a loop over a tile's points has; 0: it is none. *further: arguments behind its
 * names; *has_flag: the first of them is declared by it. */
static int loop_axes(const peal_cuda_token *word, int *further, bool *has_flag)
{
    static const char *const loops[] = {"PEAL_FOR_2D",        "PEAL_FOR_3D",
                                        "PEAL_FOR_2D_EVEN",   "PEAL_FOR_3D_EVEN",
                                        "PEAL_FOR_2D_INSIDE", "PEAL_FOR_3D_INSIDE"};
    static const int axes[] = {2, 3, 2, 3, 2, 3}, more[] = {0, 0, 1, 1, 5, 7};

    for (int i = 0; i < 6; i++)
        if (peal_cuda_token_is(word, loops[i])) {
            *further = more[i];
            *has_flag = i >= 4;
            return axes[i];
        }
    return 0;
}

static bool is_index(const kernel *k, const peal_cuda_token *word)
{
    for (int i = 0; i < k->loop_count; i++)
        for (int a = 0; a < k->loop[i].axes; a++)
            if (peal_cuda_tokens_equal(k->loop[i].index[a], word))
                return true;
    return false;
}

/* Whether the word is the name of another axis, of this loop or one before. */
static bool is_of_other_axis(const kernel *k, const peal_cuda_token *word, int axis)
{
    for (int i = 0; i <= k->loop_count; i++)
        for (int a = 0; a < k->loop[i].axes; a++)
            if (a != axis && peal_cuda_tokens_equal(k->loop[i].index[a], word))
                return true;
    return false;
}

/* Takes the loop whose head begins at token `at`. *flag: a name that it declares beside its
 * indexes; or NULL. False: its tile is not the kernel's, or its names are not plain. */
static bool take_loop(kernel *k, int at, int axes, int further, bool has_flag,
                      const peal_cuda_token **flag)
{
    const peal_cuda_token *t = k->token;
    int open = at + 1;

    *flag = NULL;
    if (!peal_cuda_token_is(&t[open], "(") || k->loop_count + 1 >= MOST_LOOPS ||
        !peal_cuda_tokens_equal(&t[open + 1], k->tile))
        return false;
    loop *l = &k->loop[k->loop_count];
    *l = (loop){.open = open};
    int comma = open + 2, close = t[open].match, count = 1;
    for (; comma < close; comma = argument_end(t, comma + 1, close), count++) {
        const peal_cuda_token *name = &t[comma + 1];
        if (!peal_cuda_token_is(&t[comma], ","))
            return false;
        if (count > axes + (has_flag ? 1 : 0))
            continue;
        if (!name->is_word || argument_end(t, comma + 1, close) != comma + 2 || is_macro(k, name) ||
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
    return count == axes + 1 + further;
}

static bool find_loops(kernel *k)
{
    const peal_cuda_token *flag[MOST_LOOPS];

    for (int i = k->begin; i < k->end; i++) {
        int further, axes;
        bool has_flag;
        axes = loop_axes(&k->token[i], &further, &has_flag);
        if (axes > 0 && !take_loop(k, i, axes, further, has_flag,
                                   &flag[k->loop_count < MOST_LOOPS ? k->loop_count : 0]))
            return false;
    }
    for (int i = 0; i < k->loop_count; i++)
        if (flag[i] && is_index(k, flag[i]))
            return false;
    return true;
}

/* The loop that a PEAL_AT at token `at` is in, whatever other blocks lie between; NULL: it is in
 * none, or amid an expression. */
static const loop *loop_around(const kernel *k, int at)
{
    const peal_cuda_token *t = k->token;

    for (int i = at, first = 1; i > k->begin; first = 0) {
        int further;
        bool has_flag, heads = peal_cuda_token_is(&t[i - 1], ")") &&
                               loop_axes(&t[t[i - 1].match - 1], &further, &has_flag) > 0;
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

/* ---- macros ---- */

/* What the array is called: by the kernel; and by the parameter of a macro, or NULL. */
typedef struct names {
    const peal_cuda_token *of[2];
} names;

static bool is_named(const names *array, const peal_cuda_token *word)
{
    return (array->of[0] && peal_cuda_tokens_equal(word, array->of[0])) ||
           (array->of[1] && peal_cuda_tokens_equal(word, array->of[1]));
}

static int count_arguments(const peal_cuda_token *t, int open)
{
    int count = 0;

    for (int at = open; at < t[open].match; count++)
        at = argument_end(t, at + 1, t[open].match);
    return count;
}

/* Whether the array's name at token `at` stands in PEAL_AT(name, ...), or alone as an argument of a
 * macro. */
static bool is_used_well(const kernel *k, const peal_cuda_token *t, int at)
{
    int open = bracket_around(t, at);
    bool several;

    if (open < 1 || !peal_cuda_token_is(&t[open], "("))
        return false;
    if (peal_cuda_token_is(&t[open - 1], "PEAL_AT"))
        return at == open + 1 && count_arguments(t, open) == k->axes + 1;
    const peal_cuda_macro *m = peal_cuda_tokens_macro(k->all, &t[open - 1], &several);
    return m && m->has_parameters && (at == open + 1 || peal_cuda_token_is(&t[at - 1], ",")) &&
           (peal_cuda_token_is(&t[at + 1], ",") || at + 1 == t[open].match);
}

static bool is_call_reading(const kernel *k, const peal_cuda_token *t, int count, int at,
                            const names *array, int depth);

/* Whether a macro's value does no more than read, with the array called so. */
static bool reads(const kernel *k, const peal_cuda_macro *m, const names *array, int depth)
{
    static const char *const never[] = {"{", "}", ";", "#", "..."};
    const peal_cuda_token *t = m->token;

    if (argument_end(t, m->value, m->count) < m->count)
        return false;
    for (int i = m->value; i < m->count; i++) {
        if (stores(&t[i]) || IS_ONE_OF(&t[i], never) || is_strange(&t[i]) ||
            peal_cuda_tokens_equal(&t[i], k->tile) ||
            (peal_cuda_token_begins(&t[i], "PEAL_") && !peal_cuda_token_is(&t[i], "PEAL_AT")))
            return false;
        if (t[i].is_word &&
            (is_named(array, &t[i]) ? !is_used_well(k, t, i)
                                    : !is_call_reading(k, t, m->count, i, array, depth)))
            return false;
    }
    return true;
}

/* Whether the word at token `at` is no macro, or one that does no more than read with its
 * arguments. */
static bool is_call_reading(const kernel *k, const peal_cuda_token *t, int count, int at,
                            const names *array, int depth)
{
    bool several;
    const peal_cuda_macro *m = peal_cuda_tokens_macro(k->all, &t[at], &several);
    names inner = {{k->array, NULL}}; /* its parameters hide names in its value alone */

    if (!m)
        return !several;
    if (depth == MOST_DEPTH || m->at > k->begin || --*k->patience < 0)
        return false;
    if (!m->has_parameters)
        return reads(k, m, &inner, depth + 1);
    if (at + 1 >= count || !peal_cuda_token_is(&t[at + 1], "("))
        return false;
    int parameter = 1, last = m->token[0].match;
    bool hides = false;
    for (int i = at + 2, close = t[at + 1].match; i <= close; parameter += 2) {
        int end = argument_end(t, i, close);
        if (parameter >= last || !m->token[parameter].is_word ||
            peal_cuda_token_begins(&m->token[parameter], "PEAL_") ||
            is_macro(k, &m->token[parameter]))
            return false;
        hides |= peal_cuda_tokens_equal(&m->token[parameter], k->array);
        if (end == i + 1 && is_named(array, &t[i])) {
            if (inner.of[1])
                return false;
            inner.of[1] = &m->token[parameter];
        }
        i = end + 1;
    }
    if (parameter != last + 1)
        return false;
    if (hides)
        inner.of[0] = NULL;
    return reads(k, m, &inner, depth + 1);
}

/* ---- the body ---- */

/* Whether a PEAL_AT, whose bracket is token `open`, is at the point of the loop that it is in. */
static bool is_at_own(const kernel *k, int open)
{
    const loop *l = loop_around(k, open - 1);
    const peal_cuda_token *t = k->token;

    if (!l || l->axes != k->axes || t[open].match != open + 2 * k->axes + 2)
        return false;
    for (int a = 0; a < k->axes; a++)
        if (!peal_cuda_token_is(&t[open + 2 * a + 2], ",") ||
            !peal_cuda_tokens_equal(&t[open + 2 * a + 3], l->index[a]))
            return false;
    return true;
}

/* Whether a store may go to what ends with token `at`: a name that is neither a loop's nor a
 * macro's, an element, or a PEAL_AT. */
static bool may_store_to(const kernel *k, int at)
{
    const peal_cuda_token *t = k->token;
    bool is_element = false;

    for (; peal_cuda_token_is(&t[at], "]"); at = t[at].match - 1)
        is_element = true;
    if (t[at].is_word)
        return !is_index(k, &t[at]) && !is_macro(k, &t[at]);
    if (!peal_cuda_token_is(&t[at], ")") || is_element)
        return false;
    int open = t[at].match;
    return peal_cuda_token_is(&t[open - 1], "PEAL_AT") &&
           (!peal_cuda_tokens_equal(&t[open + 1], k->array) || is_at_own(k, open));
}

/* Whether what the operator at token `at` stores to may be. */
static bool is_store_fine(const kernel *k, int at)
{
    const peal_cuda_token *t = k->token;
    bool is_step = peal_cuda_token_is(&t[at], "++") || peal_cuda_token_is(&t[at], "--");
    static const char *const before[] = {"else", "return"};
    bool is_behind = (t[at - 1].is_word && !IS_ONE_OF(&t[at - 1], before)) ||
                     peal_cuda_token_is(&t[at - 1], ")") || peal_cuda_token_is(&t[at - 1], "]");

    if (!is_step || is_behind)
        return may_store_to(k, at - 1);
    static const char *const goes_on[] = {"(", "[", ".", "->"};
    return t[at + 1].is_word && !IS_ONE_OF(&t[at + 2], goes_on) && may_store_to(k, at + 1);
}

/* Whether a loop's name at token `at` may be declared once more: a type stands in front of it, or
 * what it would be set to behind, whatever brackets are around it. */
static bool is_declared(const kernel *k, int at)
{
    static const char *const others[] = {"return", "else"}, *const opens[] = {"(", "[", "{"};
    const peal_cuda_token *t = k->token;
    int from = at, to = at;

    while (peal_cuda_token_is(&t[from - 1], "(") && peal_cuda_token_is(&t[to + 1], ")")) {
        from--;
        to++;
    }
    return (t[at - 1].is_word && !IS_ONE_OF(&t[at - 1], others)) || IS_ONE_OF(&t[to + 1], opens) ||
           (peal_cuda_token_is(&t[at - 1], "*") && peal_cuda_token_is(&t[at - 2], "("));
}

/* Whether the `for` at token `at` has three parts: one over a range declares names in other ways.
 */
static bool has_parts(const kernel *k, int at)
{
    const peal_cuda_token *t = k->token;
    int parts = 1;

    if (!peal_cuda_token_is(&t[at + 1], "("))
        return false;
    for (int i = at + 2; i<t[at + 1].match; i = t[i].match> i ? t[i].match + 1 : i + 1)
        parts += peal_cuda_token_is(&t[i], ";");
    return parts == 3;
}

static bool stores_at_own(const kernel *k)
{
    const names own = {{k->array, NULL}};
    const peal_cuda_token *t = k->token;

    for (int i = k->begin + 1; i < k->end; i++) {
        int further;
        bool has_flag, is_loop = loop_axes(&t[i], &further, &has_flag) > 0;
        if (is_strange(&t[i]) || (stores(&t[i]) && !is_store_fine(k, i)) ||
            (peal_cuda_token_is(&t[i], "for") && !has_parts(k, i)))
            return false;
        if (!t[i].is_word)
            continue;
        if (peal_cuda_token_begins(&t[i], "PEAL_") && !is_loop &&
            !peal_cuda_token_is(&t[i], "PEAL_AT"))
            return false;
        if (peal_cuda_tokens_equal(&t[i], k->tile) &&
            (!peal_cuda_token_is(&t[i - 1], "(") || loop_axes(&t[i - 2], &further, &has_flag) == 0))
            return false;
        if (is_index(k, &t[i]) && is_declared(k, i))
            return false;
        if (peal_cuda_tokens_equal(&t[i], k->array) ? !is_used_well(k, t, i)
                                                    : !is_call_reading(k, t, k->end, i, &own, 0))
            return false;
    }
    return true;
}

bool peal_cuda_kernel_stores_at_own(const peal_cuda_tokens *tokens, const char *name, int arrays,
                                    int index, int axes)
{
    int parameters = 0, patience = MOST_MACROS;
    kernel k = {.all = tokens, .token = tokens->token, .axes = axes, .patience = &patience};

    return axes >= 2 && axes <= MOST_AXES && find_kernel(&k, name, &parameters) &&
           find_names(&k, parameters, arrays, index) && find_loops(&k) && stores_at_own(&k);
}

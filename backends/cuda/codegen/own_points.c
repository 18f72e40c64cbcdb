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

#include "backends/cuda/codegen/kernel_text.h"

enum { MOST_DEPTH = 8, MOST_MACROS = 10000 };

#define IS_ONE_OF(token, words)                                                                    \
    peal_cuda_token_is_one_of(token, words, sizeof(words) / sizeof((words)[0]))

/* Operators that store. (No text has one that takes an address.) */
static bool stores(const peal_cuda_token *token)
{
    static const char *const operators[] = {"=",  "+=", "-=",  "*=",  "/=", "%=", "&=",
                                            "|=", "^=", "<<=", ">>=", "++", "--"};

    return IS_ONE_OF(token, operators);
}

/* A word that a plain kernel does not have, beside those that no text has: it may declare names,
 * jump, or say what is not in the text. */
static bool is_strange(const peal_cuda_kernel_text *k, const peal_cuda_token *token)
{
    static const char *const branches[] = {"if", "else", "while", "break", "return", "continue"};
    static const char *const words[] = {"asm",      "goto",    "do",     "switch",   "case",
                                        "default",  "enum",    "struct", "union",    "class",
                                        "static",   "typedef", "extern", "typeof",   "or",
                                        "not",      "xor",     "compl",  "bitor",    "not_eq",
                                        "throw",    "delete",  "new",    "co_await", "co_yield",
                                        "co_return"};

    return token->is_word &&
           (IS_ONE_OF(token, words) || (k->is_straight && IS_ONE_OF(token, branches)) ||
            *token->at == '_' || token->at[token->length - 1] == '_' ||
            peal_cuda_token_begins(token, "peal_"));
}

/* Whether a word is none of peal's but those that have a value. */
static bool is_value(const peal_cuda_token *word)
{
    return !peal_cuda_token_begins(word, "PEAL_") || peal_cuda_token_is(word, "PEAL_AT") ||
           peal_cuda_token_is(word, "PEAL_FMA");
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
        at = peal_cuda_text_argument_end(t, at + 1, t[open].match);
    return count;
}

/* Whether the array's name at token `at` stands in PEAL_AT(name, ...), or alone as an argument of a
 * macro. */
static bool is_used_well(const peal_cuda_kernel_text *k, const peal_cuda_token *t, int at)
{
    int open = peal_cuda_text_bracket(t, at);
    bool several;

    if (open < 1 || !peal_cuda_token_is(&t[open], "("))
        return false;
    if (peal_cuda_token_is(&t[open - 1], "PEAL_AT"))
        return at == open + 1 && count_arguments(t, open) == k->axes + 1;
    const peal_cuda_macro *m = peal_cuda_tokens_macro(k->all, &t[open - 1], &several);
    return m && m->has_parameters && (at == open + 1 || peal_cuda_token_is(&t[at - 1], ",")) &&
           (peal_cuda_token_is(&t[at + 1], ",") || at + 1 == t[open].match);
}

static bool is_call_reading(const peal_cuda_kernel_text *k, const peal_cuda_token *t, int count,
                            int at, const names *array, int depth, int *patience);

/* Whether a macro's value does no more than read, with the array called so. */
static bool reads(const peal_cuda_kernel_text *k, const peal_cuda_macro *m, const names *array,
                  int depth, int *patience)
{
    static const char *const never[] = {"{", "}", ";", "#", "..."};
    const peal_cuda_token *t = m->token;

    if (peal_cuda_text_argument_end(t, m->value, m->count) < m->count)
        return false;
    for (int i = m->value; i < m->count; i++) {
        if (stores(&t[i]) || IS_ONE_OF(&t[i], never) || is_strange(k, &t[i]) ||
            peal_cuda_tokens_equal(&t[i], k->tile) || !is_value(&t[i]))
            return false;
        if (t[i].is_word &&
            (is_named(array, &t[i]) ? k->is_unread || !is_used_well(k, t, i)
                                    : !is_call_reading(k, t, m->count, i, array, depth, patience)))
            return false;
    }
    return true;
}

/* Whether the word at token `at` is no macro, or one that does no more than read with its
 * arguments. */
static bool is_call_reading(const peal_cuda_kernel_text *k, const peal_cuda_token *t, int count,
                            int at, const names *array, int depth, int *patience)
{
    bool several;
    const peal_cuda_macro *m = peal_cuda_tokens_macro(k->all, &t[at], &several);
    names inner = {{k->array, NULL}}; /* its parameters hide names in its value alone */

    if (!m)
        return !several;
    if (depth == MOST_DEPTH || m->at > k->begin || --*patience < 0)
        return false;
    if (!m->has_parameters)
        return reads(k, m, &inner, depth + 1, patience);
    if (at + 1 >= count || !peal_cuda_token_is(&t[at + 1], "("))
        return false;
    int parameter = 1, last = m->token[0].match;
    bool hides = false;
    for (int i = at + 2, close = t[at + 1].match; i <= close; parameter += 2) {
        int end = peal_cuda_text_argument_end(t, i, close);
        if (parameter >= last || !m->token[parameter].is_word ||
            peal_cuda_token_begins(&m->token[parameter], "PEAL_") ||
            peal_cuda_text_is_macro(k, &m->token[parameter]))
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
    return reads(k, m, &inner, depth + 1, patience);
}

/* ---- the body ---- */

/* Whether a PEAL_AT, whose bracket is token `open`, is at the point of the loop that it is in. */
static bool is_at_own(const peal_cuda_kernel_text *k, int open)
{
    const peal_cuda_tile_loop *l = peal_cuda_text_loop_around(k, open - 1);
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
static bool may_store_to(const peal_cuda_kernel_text *k, int at)
{
    const peal_cuda_token *t = k->token;
    bool is_element = false;

    for (; peal_cuda_token_is(&t[at], "]"); at = t[at].match - 1)
        is_element = true;
    if (t[at].is_word)
        return !peal_cuda_text_is_index(k, &t[at]) && !peal_cuda_text_is_macro(k, &t[at]);
    if (!peal_cuda_token_is(&t[at], ")") || is_element)
        return false;
    int open = t[at].match;
    return peal_cuda_token_is(&t[open - 1], "PEAL_AT") &&
           (!peal_cuda_tokens_equal(&t[open + 1], k->array) || is_at_own(k, open));
}

/* Whether what the operator at token `at` stores to may be. */
static bool is_store_fine(const peal_cuda_kernel_text *k, int at)
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
static bool is_declared(const peal_cuda_kernel_text *k, int at)
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
static bool has_parts(const peal_cuda_kernel_text *k, int at)
{
    const peal_cuda_token *t = k->token;
    int parts = 1;

    if (!peal_cuda_token_is(&t[at + 1], "("))
        return false;
    for (int i = at + 2; i<t[at + 1].match; i = t[i].match> i ? t[i].match + 1 : i + 1)
        parts += peal_cuda_token_is(&t[i], ";");
    return parts == 3;
}

bool peal_cuda_text_stores_at_own(const peal_cuda_kernel_text *k)
{
    int patience = MOST_MACROS;
    const names own = {{k->array, NULL}};
    const peal_cuda_token *t = k->token;

    for (int i = k->begin + 1; i < k->end; i++) {
        if (is_strange(k, &t[i]) || (stores(&t[i]) && !is_store_fine(k, i)) ||
            (peal_cuda_token_is(&t[i], "for") && !has_parts(k, i)))
            return false;
        if (!t[i].is_word)
            continue;
        if (!is_value(&t[i]) && !peal_cuda_text_is_loop(&t[i]) &&
            !peal_cuda_token_is(&t[i], "PEAL_PARTIAL"))
            return false;
        if (peal_cuda_tokens_equal(&t[i], k->tile) &&
            (!peal_cuda_token_is(&t[i - 1], "(") || !peal_cuda_text_is_loop(&t[i - 2])))
            return false;
        if (peal_cuda_text_is_index(k, &t[i]) && is_declared(k, i))
            return false;
        if (peal_cuda_tokens_equal(&t[i], k->array)
                ? !is_used_well(k, t, i)
                : !is_call_reading(k, t, k->end, i, &own, 0, &patience))
            return false;
    }
    return true;
}

bool peal_cuda_kernel_stores_at_own(const peal_cuda_tokens *tokens, const char *name, int arrays,
                                    int index, int axes)
{
    peal_cuda_kernel_text k = {.all = tokens, .token = tokens->token, .axes = axes};

    return axes >= 2 && axes <= PEAL_CUDA_TEXT_AXES &&
           peal_cuda_text_find(&k, name, arrays, index, "PEAL_UPDATE") &&
           peal_cuda_text_stores_at_own(&k);
}

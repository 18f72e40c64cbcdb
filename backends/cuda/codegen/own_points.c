/* Whether a kernel stores into an array at the points of its tile alone, as its text says. Then a
 * block may store what its tile has of a message into the receiver's memory (lower/remote_store.c),
 * although the task reads beside the tile what it updates.
 *
 * Only what is plain to see is accepted, once macros are expanded. The tile's name stands in loops
 * over it alone; the array's in PEAL_AT; the loops' names are declared by them alone; and each
 * operator that stores has a name, an element or a PEAL_AT to its left. No address is taken
 * anywhere, so neither pointers nor references lead to the array, and functions get values. */
#include "backends/cuda/codegen/own_points.h"

#include "backends/cuda/codegen/kernel_text.h"

#include <string.h>

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
    static const char *const words[] = {"goto",    "do",     "switch",   "case",     "default",
                                        "enum",    "struct", "union",    "class",    "static",
                                        "typedef", "extern", "typeof",   "or",       "not",
                                        "xor",     "compl",  "bitor",    "not_eq",   "throw",
                                        "delete",  "new",    "co_await", "co_yield", "co_return"};

    return token->is_word &&
           (IS_ONE_OF(token, words) || (k->is_straight && IS_ONE_OF(token, branches)) ||
            *token->at == '_' || peal_cuda_token_begins(token, "peal_"));
}

/* Whether a word is none of peal's but those that have a value. */
static bool is_value(const peal_cuda_token *word)
{
    return !peal_cuda_token_begins(word, "PEAL_") || peal_cuda_token_is(word, "PEAL_AT") ||
           peal_cuda_token_is(word, "PEAL_FMA");
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

/* Whether a store may go to what ends with token `at`: a name that is no loop's, an element,
 * or a PEAL_AT. */
static bool may_store_to(const peal_cuda_kernel_text *k, int at)
{
    const peal_cuda_token *t = k->token;
    bool is_element = false;

    for (; peal_cuda_token_is(&t[at], "]"); at = t[at].match - 1)
        is_element = true;
    if (t[at].is_word)
        return !peal_cuda_text_is_index(k, &t[at]);
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

/* Whether a word may be of a type, by its name alone. */
static bool is_type(const peal_cuda_token *word)
{
    static const char *const types[] = {"int",    "long",     "short",    "char",   "float",
                                        "double", "bool",     "unsigned", "signed", "void",
                                        "const",  "volatile", "constexpr"};

    return IS_ONE_OF(word, types) ||
           (word->length > 2 && !strncmp(word->at + word->length - 2, "_t", 2));
}

/* Whether token `at` is the first of a statement, or of what stands in the head of a `for`. */
static bool is_first(const peal_cuda_token *t, int at)
{
    static const char *const ends[] = {"{", "}", ";"};

    return IS_ONE_OF(&t[at - 1], ends) ||
           (peal_cuda_token_is(&t[at - 1], "(") && peal_cuda_token_is(&t[at - 2], "for"));
}

/* Whether a loop's name at token `at` may be declared once more: a type stands in front of it, or
 * what it would be set to behind, whatever brackets and stars are around it. */
static bool is_declared(const peal_cuda_kernel_text *k, int at)
{
    static const char *const others[] = {"return", "else"}, *const opens[] = {"(", "[", "{"};
    const peal_cuda_token *t = k->token;
    int from = at, to = at;

    for (bool more = true; more;) {
        more = peal_cuda_token_is(&t[from - 1], "*");
        if (!more && peal_cuda_token_is(&t[from - 1], "(") && t[from - 1].match == to + 1) {
            more = true;
            to++;
        }
        from -= more;
    }
    const peal_cuda_token *word = &t[from - 1];
    if (IS_ONE_OF(&t[to + 1], opens) || (t[at - 1].is_word && !IS_ONE_OF(&t[at - 1], others)))
        return true;
    if (peal_cuda_token_is(word, ",")) { /* one of several that are declared */
        int open = peal_cuda_text_bracket(t, from - 1);
        return peal_cuda_token_is(&t[open], "{") || peal_cuda_token_is(&t[open - 1], "for");
    }
    return from < at && word->is_word && !IS_ONE_OF(word, others) &&
           (is_type(word) || is_first(t, from - 1));
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

/* Whether the array's name at token `at` is the first argument of PEAL_AT, all of it. */
static bool is_used_well(const peal_cuda_kernel_text *k, int at)
{
    const peal_cuda_token *t = k->token;
    int open = at - 1, count = 0;

    if (!peal_cuda_token_is(&t[open], "(") || !peal_cuda_token_is(&t[open - 1], "PEAL_AT") ||
        !peal_cuda_token_is(&t[at + 1], ","))
        return false;
    for (int i = open; i < t[open].match; count++)
        i = peal_cuda_text_argument_end(t, i + 1, t[open].match);
    return count == k->axes + 1;
}

/* Whether token `at` may stand where it does, whatever it is: no function is made of what an array
 * is, no lambda begins, and nothing is made a pointer of. */
static bool has_good_place(const peal_cuda_kernel_text *k, int at)
{
    static const char *const others[] = {"return", "else"};
    const peal_cuda_token *t = k->token, *before = &t[at - 1];
    bool follows_word = before->is_word && !IS_ONE_OF(before, others);

    if (peal_cuda_token_is(&t[at], ",")) { /* PEAL_AT would take it for one of its own */
        int open = peal_cuda_text_bracket(t, at), around = peal_cuda_text_bracket(t, open);
        return !peal_cuda_token_is(&t[open], "[") &&
               (!peal_cuda_token_is(&t[open], "{") || around < 0 ||
                peal_cuda_token_is(&t[around], "{"));
    }
    if (peal_cuda_token_is(&t[at], "PEAL_AT"))
        return !follows_word && !peal_cuda_token_is(before, "]");
    if (peal_cuda_token_is(&t[at], "["))
        return follows_word || peal_cuda_token_is(before, ")") || peal_cuda_token_is(before, "]");
    return !peal_cuda_token_is(&t[at], "*") || !peal_cuda_token_is(&t[at + 1], ")");
}

bool peal_cuda_text_stores_at_own(const peal_cuda_kernel_text *k)
{
    const peal_cuda_token *t = k->token;

    for (int i = k->begin + 1; i < k->end; i++) {
        if (is_strange(k, &t[i]) || (stores(&t[i]) && !is_store_fine(k, i)) ||
            !has_good_place(k, i) || (peal_cuda_token_is(&t[i], "for") && !has_parts(k, i)))
            return false;
        if (!t[i].is_word)
            continue;
        if (!is_value(&t[i]) && !peal_cuda_text_is_loop(&t[i]) &&
            !peal_cuda_token_is(&t[i], "PEAL_PARTIAL"))
            return false;
        if (peal_cuda_tokens_equal(&t[i], k->tile) &&
            (!peal_cuda_token_is(&t[i - 1], "(") || !peal_cuda_text_is_loop(&t[i - 2])))
            return false;
        if (peal_cuda_text_is_partial(k, &t[i]) &&
            (!peal_cuda_token_is(&t[i - 1], "(") ||
             !peal_cuda_token_is(&t[i - 2], "PEAL_PARTIAL") || !peal_cuda_token_is(&t[i + 1], ",")))
            return false;
        if ((peal_cuda_text_is_index(k, &t[i]) && is_declared(k, i)) ||
            (peal_cuda_tokens_equal(&t[i], k->array) && !is_used_well(k, i)))
            return false;
    }
    return true;
}

bool peal_cuda_kernel_stores_at_own(const peal_cuda_tokens *tokens, const char *name, int arrays,
                                    int index, int axes, peal_arena *arena)
{
    peal_cuda_kernel_text k = {.axes = axes};

    return axes >= 2 && axes <= PEAL_CUDA_TEXT_AXES &&
           peal_cuda_text_find(&k, tokens, name, arrays, index, "PEAL_UPDATE", arena) &&
           peal_cuda_text_stores_at_own(&k);
}

/* Whether a kernel stores into an array at the points of its tile alone, as its text says. Then a
 * block may store what its tile has of a message into the receiver's memory (lower/remote_store.c),
 * although the task reads beside the tile what it updates. Only what is plain to see is accepted.
 */
#include "backends/cuda/codegen/own_points.h"

#include "backends/cuda/codegen/kernel_text.h"

#include <string.h>

/* The head of a loop over a tile's points that stands before `at`; of length 0: none does. */
static peal_cuda_word loop_before(const char *begin, const char *at)
{
    static const char *const loops[] = {"PEAL_FOR_2D",        "PEAL_FOR_3D",
                                        "PEAL_FOR_2D_INSIDE", "PEAL_FOR_3D_INSIDE",
                                        "PEAL_FOR_2D_EVEN",   "PEAL_FOR_3D_EVEN"};
    peal_cuda_word head = peal_cuda_loop_before(begin, at);

    if (!peal_cuda_word_is_one_of(&head, loops, sizeof(loops) / sizeof(loops[0])))
        head.length = 0;
    return head;
}

static bool is_looped_over(const char *begin, const peal_cuda_word *tile)
{
    const char *open = peal_cuda_last_before(begin, tile->at);
    const char *close = open && *open == '(' ? peal_cuda_skip_brackets(open, '(', ')') : NULL;

    return close && loop_before(begin, close).length > 0;
}

/* ---- what is changed ---- */

/* Leaves out brackets around [from, to) that are no function's. */
static void unwrap(const char *begin, const char **from, const char **to)
{
    for (;;) {
        const char *open = peal_cuda_last_before(begin, *from);
        const char *close = peal_cuda_skip_blanks(*to);
        if (!open || *open != '(' || *close != ')' || peal_cuda_word_before(begin, open).length > 0)
            return;
        *from = open;
        *to = close + 1;
    }
}

/* Whether what stands in [from, to) is stored to, or may be, for its address is taken. */
static bool is_changed(const char *begin, const char *from, const char *to)
{
    static const char *const operators[] = {"+=", "-=", "*=",  "/=",  "%=", "&=",
                                            "|=", "^=", "<<=", ">>=", "++", "--"};

    unwrap(begin, &from, &to);
    const char *last = peal_cuda_last_before(begin, from), *next = peal_cuda_skip_blanks(to);
    bool is_doubled = last && last > begin && last[-1] == *last;
    if (last && ((*last == '&' && !is_doubled) || (strchr("+-", *last) && is_doubled)))
        return true;
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
        if (!strncmp(next, operators[i], strlen(operators[i])))
            return true;
    return next[0] == '=' && next[1] != '=';
}

/* Whether nothing in the kernel changes or declares that name, but loops over the tile. */
static bool keeps(const peal_cuda_kernel_text *kernel, const peal_cuda_word *name)
{
    static const char *const others[] = {"return", "else", "do", "case"};
    peal_cuda_word w;

    for (const char *at = kernel->body; peal_cuda_word_find(at, kernel->end, &w);
         at = w.at + w.length) {
        peal_cuda_word type = peal_cuda_word_before(kernel->begin, w.at);
        if (peal_cuda_word_is_same(&w, name) &&
            (is_changed(kernel->begin, w.at, w.at + w.length) ||
             (type.length > 0 &&
              !peal_cuda_word_is_one_of(&type, others, sizeof(others) / sizeof(others[0])))))
            return false;
    }
    return true;
}

/* ---- where it is stored ---- */

/* The head of the loop over the tile's points that a statement at `at` is in, whatever other blocks
 * lie between; of length 0: it is in none, or amid an expression. */
static peal_cuda_word loop_of(const char *begin, const char *at)
{
    peal_cuda_word head = loop_before(begin, at);
    const char *block = peal_cuda_enclosing(begin, at);

    while (head.length == 0 && block && *block == '{') {
        head = loop_before(begin, block);
        block = peal_cuda_enclosing(begin, block);
    }
    return head;
}

/* Whether no argument follows the one that `at` is in, of those in front of `close`. */
static bool ends_list(const char *at, const char *close)
{
    for (int depth = 0; at < close - 1; at++) {
        depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
        if (*at == ',' && depth == 0)
            return false;
    }
    return true;
}

/* Argument `index` in the brackets from `open` on, if it is one word; *out: that which it begins
 * with. *is_last: there is none behind it. */
static bool find_argument(const char *open, int index, peal_cuda_word *out, bool *is_last)
{
    const char *close = peal_cuda_skip_brackets(open, '(', ')');
    const char *at = open + 1;

    for (int depth = 0; close && at < close && index > 0; at++) {
        depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
        index -= *at == ',' && depth == 0;
    }
    *out = (peal_cuda_word){at, 0};
    *is_last = true;
    if (!close || index > 0)
        return false;
    *out = (peal_cuda_word){peal_cuda_skip_blanks(at), 0};
    while (peal_cuda_is_of_word(out->at[out->length]))
        out->length++;
    const char *next = peal_cuda_skip_blanks(out->at + out->length);
    *is_last = ends_list(next, close);
    return out->length > 0 && (*next == ',' || next == close - 1);
}

/* Whether a PEAL_AT, whose bracket is at `open`, is at the point of the loop that it is in. */
static bool is_at_own(const peal_cuda_kernel_text *kernel, const peal_cuda_word *head,
                      const char *open)
{
    const char *begin = kernel->begin;
    const char *last = peal_cuda_last_before(begin, head->at);
    peal_cuda_word loop = loop_of(begin, head->at);
    bool ends = false, ends_loop;

    /* A statement begins with it. */
    if (loop.length == 0 || !last || !strchr("{;})", *last))
        return false;
    int axes = strncmp(loop.at, "PEAL_FOR_3D", strlen("PEAL_FOR_3D")) ? 2 : 3;
    for (int k = 1; k <= axes; k++) {
        peal_cuda_word own, name;
        if (!find_argument(open, k, &own, &ends) ||
            !find_argument(loop.at + loop.length + strspn(loop.at + loop.length, " \t\n"), k, &name,
                           &ends_loop) ||
            !peal_cuda_word_is_same(&own, &name) || !keeps(kernel, &name))
            return false;
    }
    return ends;
}

/* ---- macros ---- */

typedef struct macro {
    const char *begin;      /* of the text */
    const char *parameters; /* with their bracket; NULL: there are none */
    const char *value, *end;
    int definitions;
} macro;

/* A macro of the texts; definitions 0: it is none, or one of peal's. */
static macro find_macro(const peal_cuda_kernel_text *kernel, const peal_cuda_word *name)
{
    macro m = {.definitions = 0};
    peal_cuda_word w;

    for (int i = 0; i < kernel->count; i++)
        for (const char *at = strstr(kernel->text[i], "define"); at;
             at = strstr(at + 1, "define")) {
            const char *end = peal_cuda_end_of_line(at);
            const char *mark = peal_cuda_last_before(kernel->text[i], at);
            if (!mark || *mark != '#' || !peal_cuda_word_find(at + strlen("define"), end, &w) ||
                !peal_cuda_word_is_same(&w, name))
                continue;
            m = (macro){kernel->text[i], NULL, w.at + w.length, end, m.definitions + 1};
            if (*m.value != '(')
                continue;
            m.parameters = m.value;
            const char *close = peal_cuda_skip_brackets(m.parameters, '(', ')');
            m.value = close && close < end ? close : end;
        }
    return m;
}

/* Whether [from, end) has an operator that stores or takes an address. */
static bool has_changes(const char *from, const char *end)
{
    for (const char *at = from; at < end; at++) {
        bool is_doubled = at + 1 < end && at[1] == *at;
        if (*at == '#' || (strchr("+-", *at) && is_doubled) || (*at == '&' && !is_doubled))
            return true;
        bool compares = is_doubled || (at > from && strchr("<>!", at[-1]) &&
                                       (at - 1 == from || at[-2] != at[-1]));
        if (*at == '=' && !compares)
            return true;
        at += (*at == '=' || *at == '&') && is_doubled;
    }
    return false;
}

/* What an array is called: by the kernel; and by the parameter of a macro. */
typedef struct names {
    peal_cuda_word of[2];
} names;

static bool is_named(const names *array, const peal_cuda_word *w)
{
    return peal_cuda_word_is_same(w, &array->of[0]) || peal_cuda_word_is_same(w, &array->of[1]);
}

static bool is_macro_reading(const peal_cuda_kernel_text *kernel, const peal_cuda_word *name,
                             const char *arguments, const names *array, int depth);

/* Which argument the word is, alone, in the brackets around it; -1: it is not alone. */
static int argument_at(const char *open, const peal_cuda_word *w)
{
    peal_cuda_word own;
    bool is_last = false;

    for (int k = 0; !is_last; k++) {
        bool is_alone = find_argument(open, k, &own, &is_last);
        if (own.at == w->at)
            return is_alone ? k : -1;
        if (own.at > w->at)
            return -1;
    }
    return -1;
}

/* Whether the array's name stands in PEAL_AT(name, ...) or alone in an argument of a macro. Sets
 * *call to where that begins, *end to behind it. */
static bool is_used_well(const peal_cuda_kernel_text *kernel, const char *begin,
                         const peal_cuda_word *w, peal_cuda_word *call, const char **end)
{
    const char *open = peal_cuda_enclosing(begin, w->at);

    if (!open || *open != '(')
        return false;
    *call = peal_cuda_word_before(begin, open);
    *end = peal_cuda_skip_brackets(open, '(', ')');
    int index = *end ? argument_at(open, w) : -1;
    return peal_cuda_word_is(call, "PEAL_AT") ? index == 0
                                              : index >= 0 && find_macro(kernel, call).parameters;
}

/* Whether a part of a macro does no more than read. */
static bool reads(const peal_cuda_kernel_text *kernel, const macro *m, const names *array,
                  int depth)
{
    static const char *const never[] = {"asm", "__asm", "__asm__", "goto"};
    peal_cuda_word w, call;
    const char *end;

    if (has_changes(m->value, m->end))
        return false;
    for (const char *at = m->value; peal_cuda_word_find(at, m->end, &w); at = w.at + w.length) {
        bool is_at = peal_cuda_word_is(&w, "PEAL_AT");
        if (peal_cuda_word_is_one_of(&w, never, sizeof(never) / sizeof(never[0])) ||
            (!is_at && w.length > 5 && !strncmp(w.at, "PEAL_", 5)))
            return false;
        if (is_named(array, &w) ? !is_used_well(kernel, m->begin, &w, &call, &end)
                                : !is_macro_reading(kernel, &w, w.at + w.length, array, depth))
            return false;
    }
    return true;
}

/* Whether a word is no macro, or one that, called with these arguments, does no more than read. */
static bool is_macro_reading(const peal_cuda_kernel_text *kernel, const peal_cuda_word *name,
                             const char *arguments, const names *array, int depth)
{
    enum { MOST_DEPTH = 8 };
    macro m = find_macro(kernel, name);
    const char *open = peal_cuda_skip_blanks(arguments);
    peal_cuda_word w;
    bool is_last = !m.parameters || *open != '(';
    bool is_hidden = false;

    if (m.definitions == 0)
        return true;
    if (m.definitions > 1 || depth == MOST_DEPTH)
        return false;
    names inner = {.of = {array->of[0], {"", 0}}};
    for (int k = 0; !is_last; k++) {
        peal_cuda_word parameter;
        bool ends, is_word = find_argument(open, k, &w, &is_last);
        if (!find_argument(m.parameters, k, &parameter, &ends) || ends != is_last)
            return false;
        is_hidden |= peal_cuda_word_is_same(&parameter, &array->of[0]);
        if (!is_word || !is_named(array, &w))
            continue;
        if (inner.of[1].length > 0)
            return false;
        inner.of[1] = parameter;
    }
    if (is_hidden)
        inner.of[0] = inner.of[1];
    return reads(kernel, &m, &inner, depth + 1);
}

/* ---- the body ---- */

/* Whether a word of the body is a macro that stores, or that is stored to. */
static bool is_macro_storing(const peal_cuda_kernel_text *kernel, const peal_cuda_word *w,
                             const names *array)
{
    const char *end = w->at + w->length, *open = peal_cuda_skip_blanks(end);
    macro m = find_macro(kernel, w);

    if (m.definitions == 0)
        return false;
    const char *close =
        m.parameters && *open == '(' ? peal_cuda_skip_brackets(open, '(', ')') : end;
    return !close || is_changed(kernel->begin, w->at, close) ||
           !is_macro_reading(kernel, w, end, array, 0);
}

static bool stores_at_own(const peal_cuda_kernel_text *kernel, const peal_cuda_word *array)
{
    static const char *const never[] = {"asm", "__asm", "__asm__", "goto"};
    const names own = {.of = {*array, {"", 0}}};
    peal_cuda_word w, call;
    const char *end;

    for (const char *at = kernel->body; peal_cuda_word_find(at, kernel->end, &w);
         at = w.at + w.length) {
        if (peal_cuda_word_is_one_of(&w, never, sizeof(never) / sizeof(never[0])) ||
            (peal_cuda_word_is_same(&w, &kernel->tile) && !is_looped_over(kernel->begin, &w)) ||
            is_macro_storing(kernel, &w, &own))
            return false;
        if (!peal_cuda_word_is_same(&w, array))
            continue;
        if (!is_used_well(kernel, kernel->begin, &w, &call, &end))
            return false;
        if (is_changed(kernel->begin, call.at, end) &&
            (!peal_cuda_word_is(&call, "PEAL_AT") ||
             !is_at_own(kernel, &call, call.at + strcspn(call.at, "("))))
            return false;
    }
    return true;
}

/* ---- the kernel ---- */

/* The name of array `index`, which has to be updated: PEAL_UPDATE(type, name). */
static bool find_updated(const char *parameters, int index, peal_cuda_word *out)
{
    static const char *const arrays[] = {"PEAL_READ", "PEAL_UPDATE", "PEAL_WRITE"};
    const char *end = peal_cuda_skip_brackets(parameters, '(', ')');
    peal_cuda_word w;

    for (const char *at = parameters; end && peal_cuda_word_find(at, end, &w); at = w.at + w.length)
        if (peal_cuda_word_is_one_of(&w, arrays, sizeof(arrays) / sizeof(arrays[0])) &&
            index-- == 0) {
            const char *close = strchr(w.at, ')');
            *out = peal_cuda_word_before(w.at, close ? close : w.at);
            return peal_cuda_word_is(&w, "PEAL_UPDATE") && out->length > 0;
        }
    return false;
}

bool peal_cuda_kernel_stores_at_own(const peal_kernel_files *files, const char *kernel, int index,
                                    peal_arena *arena)
{
    peal_cuda_kernel_text found;
    peal_cuda_word array = {NULL, 0};

    if (!peal_cuda_kernel_text_find(files, kernel, arena, &found) || !found.end ||
        memchr(found.body, '#', (size_t)(found.end - found.body)) ||
        !find_updated(found.parameters, index, &array))
        return false;
    return stores_at_own(&found, &array);
}

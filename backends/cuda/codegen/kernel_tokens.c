/* The text of kernels as tokens. */
#include "backends/cuda/codegen/kernel_tokens.h"

#include <ctype.h>
#include <string.h>

enum { MOST_MACROS = 1000 };

#define IS_ONE_OF(token, words)                                                                    \
    peal_cuda_token_is_one_of(token, words, sizeof(words) / sizeof((words)[0]))

/* ---- plain text ---- */

/* Lines that continue are one. */
static char *join_lines(const char *text, peal_arena *arena)
{
    char *copy = peal_arena_copy_text(arena, text), *to = copy;

    for (const char *at = copy; *at;) {
        size_t end = at[0] == '\\' ? 1 + (at[1] == '\r') : 0;
        if (end > 0 && at[end] == '\n')
            at += end + 1;
        else
            *to++ = *at++;
    }
    *to = '\0';
    return copy;
}

/* Whether a line may continue for one compiler and not for another. */
static bool has_blank_continuation(const char *text)
{
    for (const char *at = strchr(text, '\\'); at; at = strchr(at + 1, '\\')) {
        size_t blanks = strspn(at + 1, " \t\r\v\f");
        if (blanks > 0 && at[1 + blanks] == '\n')
            return true;
    }
    return false;
}

/* Makes blanks of comments, and of what is in quotes. False: a quote or a comment has no end, or a
 * quote is part of a word. */
static bool blank(char *text)
{
    for (char *at = text; *at;) {
        size_t length = 1;
        if (at[0] == '/' && at[1] == '/') {
            length = strcspn(at, "\n");
        } else if (at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at + 2, "*/");
            if (!end)
                return false;
            length = (size_t)(end + 2 - at);
        } else if (*at == '"' || *at == '\'') {
            if (at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_'))
                return false;
            while (at[length] != *at) {
                if (!at[length] || at[length] == '\n')
                    return false;
                length += at[length] == '\\' && at[length + 1] ? 2 : 1;
            }
            length++;
        } else {
            at++;
            continue;
        }
        memset(at, ' ', length); /* a comment does not end a directive */
        at += length;
    }
    return true;
}

/* Characters that stand for others, and those of names that C does not have. */
static bool is_odd(const char *text)
{
    static const char *const odd[] = {"%:", "<%", "%>", "<:", ":>", "?\?", "\\", "$", "@", "`"};

    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
        if (strstr(text, odd[i]))
            return true;
    for (; *text; text++)
        if ((unsigned char)*text >= 0x80)
            return true;
    return false;
}

/* ---- tokens ---- */

static int length_of(const char *at)
{
    static const char *const operators[] = {"<<=", ">>=", "...", "++", "--", "&&", "||", "==",
                                            "!=",  "<=",  ">=",  "+=", "-=", "*=", "/=", "%=",
                                            "&=",  "|=",  "^=",  "<<", ">>", "->", "##", "::"};
    int length = 0;

    while (isalnum((unsigned char)at[length]) || at[length] == '_' ||
           (length > 0 && isdigit((unsigned char)at[0]) && at[length] == '.'))
        length++;
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]) && length == 0; i++)
        if (!strncmp(at, operators[i], strlen(operators[i])))
            length = (int)strlen(operators[i]);
    return length > 0 ? length : 1;
}

static void add_tokens(const char *at, const char *end, peal_arena *arena, peal_cuda_tokens *out)
{
    while (at < end) {
        if (isspace((unsigned char)*at)) {
            at++;
            continue;
        }
        int length = length_of(at);
        PEAL_ARENA_ROOM(arena, out->token, out->count, out->room);
        out->token[out->count++] =
            (peal_cuda_token){at, length, isalpha((unsigned char)*at) || *at == '_', -1};
        at += length;
    }
}

bool peal_cuda_tokens_match(peal_cuda_token *token, int count, peal_arena *arena)
{
    static const char open[] = "({[", close[] = ")}]";
    int *stack = PEAL_ARENA_ARRAY(arena, int, count + 1), depth = 0;

    for (int i = 0; i < count; i++) {
        const char *at = token[i].length == 1 ? token[i].at : "";
        const char *closes = *at ? strchr(close, *at) : NULL;
        if (*at && strchr(open, *at))
            stack[depth++] = i;
        if (!closes)
            continue;
        if (depth == 0 || *token[stack[depth - 1]].at != open[closes - close])
            return false;
        token[i].match = stack[--depth];
        token[stack[depth]].match = i;
    }
    return depth == 0;
}

/* ---- directives ---- */

/* Takes [at, end), a line behind its #. */
static bool take_directive(const char *at, const char *end, peal_arena *arena,
                           peal_cuda_tokens *out)
{
    static const char *const headers[] = {"math", "stdint", "stdbool", "stddef", "float", "limits"};
    peal_cuda_tokens line = {.count = 0};

    add_tokens(at, end, arena, &line);
    if (line.count == 6 && peal_cuda_token_is(&line.token[0], "include") &&
        peal_cuda_token_is(&line.token[1], "<") && IS_ONE_OF(&line.token[2], headers) &&
        peal_cuda_token_is(&line.token[3], ".") && peal_cuda_token_is(&line.token[4], "h"))
        return true;
    if (line.count > 1 && peal_cuda_token_is(&line.token[0], "pragma") &&
        peal_cuda_token_is(&line.token[1], "unroll"))
        return true;
    if (line.count < 2 || !peal_cuda_token_is(&line.token[0], "define") || !line.token[1].is_word)
        return false;
    peal_cuda_macro macro = {.name = &line.token[1],
                             .token = line.token + 2,
                             .count = line.count - 2,
                             .at = out->count};
    if (!peal_cuda_tokens_match(line.token + 2, macro.count, arena))
        return false;
    macro.has_parameters = macro.count > 0 && *macro.token[0].at == '(' &&
                           macro.token[0].at == macro.name->at + macro.name->length;
    macro.value = macro.has_parameters ? macro.token[0].match + 1 : 0;
    if (out->macro_count == MOST_MACROS)
        return false;
    PEAL_ARENA_ROOM(arena, out->macro, out->macro_count, out->macro_room);
    out->macro[out->macro_count++] = macro;
    return true;
}

static bool take_text(const char *text, peal_arena *arena, peal_cuda_tokens *out)
{
    char *plain = join_lines(text, arena);

    if (has_blank_continuation(plain) || !blank(plain) || is_odd(plain))
        return false;
    for (const char *at = plain; *at;) {
        const char *end = at + strcspn(at, "\n"), *first = at + strspn(at, " \t\r\v\f");
        if (*first != '#')
            add_tokens(at, end, arena, out);
        else if (!take_directive(first + 1, end, arena, out))
            return false;
        at = *end ? end + 1 : end;
    }
    return true;
}

/* ---- what is plain ---- */

/* Whether a word is of one thread or block of a device, or of peal's own. */
static bool is_of_device(const peal_cuda_token *token)
{
    static const char *const fine[] = {"__device__", "__host__", "__forceinline__", "__inline__",
                                       "__restrict__"};
    static const char *const words[] = {"asm",     "threadIdx", "blockIdx", "blockDim",
                                        "gridDim", "warpSize",  "clock",    "clock64"};
    static const char *const begins[] = {"atomic", "peal_", "__", "_P"};

    if (!token->is_word || IS_ONE_OF(token, fine) || peal_cuda_token_is(token, "peal_tile"))
        return false;
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
        if (peal_cuda_token_begins(token, begins[i]))
            return true;
    return IS_ONE_OF(token, words);
}

/* Whether an operand may begin so; else `&&` is of a type. */
static bool may_be_operand(const peal_cuda_token *token)
{
    static const char *const begins[] = {"(", "!", "-", "+", "~", "*"};

    return token->is_word || isdigit((unsigned char)*token->at) || IS_ONE_OF(token, begins);
}

/* Whether a word ends so. */
static bool ends_with(const peal_cuda_token *token, const char *text)
{
    int behind = token->length - (int)strlen(text);

    return token->is_word && behind >= 0 && !strncmp(token->at + behind, text, strlen(text));
}

/* Whether a word is of those macros of stdint.h that make a word of what they are given. */
static bool is_pasting(const peal_cuda_token *token)
{
    return ends_with(token, "_C") &&
           (peal_cuda_token_begins(token, "INT") || peal_cuda_token_begins(token, "UINT"));
}

/* Whether a token lets something store into what it is given, or changes what names mean. */
static bool is_tricky(const peal_cuda_token *token, const peal_cuda_token *next)
{
    static const char *const words[] = {"&",        "::",       "##",     "auto",     "template",
                                        "operator", "decltype", "bitand", "and",      "and_eq",
                                        "or_eq",    "xor_eq",   "using",  "namespace"};

    if (peal_cuda_token_is(token, "&") && next && isdigit((unsigned char)*next->at))
        return false; /* a number has no address */
    return IS_ONE_OF(token, words) || is_of_device(token) || ends_with(token, "_") ||
           is_pasting(token) ||
           (peal_cuda_token_is(token, "&&") && (!next || !may_be_operand(next)));
}

/* Names of macros are written in capitals: others may be words that peal's own headers use. */
static bool is_plain_macro(const peal_cuda_macro *macro)
{
    for (int i = 0; i < macro->name->length; i++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", macro->name->at[i]))
            return false;
    if (macro->value == macro->count)
        return false;
    for (int i = 0; i < macro->count; i++)
        if (is_tricky(&macro->token[i], i + 1 < macro->count ? &macro->token[i + 1] : NULL) ||
            peal_cuda_token_begins(&macro->token[i], "PEAL_KERNEL"))
            return false;
    return *macro->name->at != '_' && !peal_cuda_token_begins(macro->name, "PEAL_");
}

static bool are_plain(const peal_cuda_token *t, int count)
{
    for (int i = 0; i < count; i++) {
        const peal_cuda_token *next = i + 1 < count ? &t[i + 1] : NULL;
        if (is_tricky(&t[i], next) ||
            (next && peal_cuda_token_is(&t[i], "[") && peal_cuda_token_is(next, "[")) ||
            (peal_cuda_token_begins(&t[i], "PEAL_KERNEL") &&
             (i + 3 >= count || !peal_cuda_token_is(next, "(") || !t[i + 2].is_word ||
              !peal_cuda_token_is(&t[i + 3], ")"))))
            return false;
    }
    return true;
}

/* Whether tokens [from, to), in front of a semicolon outside of all brackets, declare no variable,
 * or a constant: a variable of the file could lead to an array, or keep something. */
static bool declares_no_variable(const peal_cuda_tokens *all, int from, int to)
{
    static const char *const types[] = {"struct", "union", "enum", "class"};
    const peal_cuda_token *t = all->token;
    bool is_constant = false, several;

    if (peal_cuda_token_is(&t[from], "typedef")) {
        for (int i = from; i < to; i++)
            if (peal_cuda_token_is(&t[i], "&&") || peal_cuda_token_is(&t[i], "*"))
                return false;
        return true;
    }
    for (int i = from; i<to; i = t[i].match> i ? t[i].match + 1 : i + 1) {
        if (peal_cuda_tokens_macro(all, &t[i], &several) || several ||
            (peal_cuda_token_is(&t[i], "(") && peal_cuda_token_is(&t[i + 1], "*")))
            return false;
        is_constant |= peal_cuda_token_is(&t[i], "const") || peal_cuda_token_is(&t[i], "constexpr");
    }
    return from == to || is_constant || peal_cuda_token_is(&t[to - 1], ")") ||
           (IS_ONE_OF(&t[from], types) && peal_cuda_token_is(&t[to - 1], "}"));
}

/* Whether the rules hold that kernel_tokens.h has for the words of a text. A pointer that is the
 * file's could lead to an array. */
static bool is_plain(const peal_cuda_tokens *all)
{
    const peal_cuda_token *t = all->token;
    int from = 0;

    for (int i = 0; i<all->count; i = t[i].match> i ? t[i].match + 1 : i + 1) {
        bool ends = peal_cuda_token_is(&t[i], ";");
        if (peal_cuda_token_is(&t[i], "*") || (ends && !declares_no_variable(all, from, i)))
            return false;
        bool is_body =
            i > 0 && peal_cuda_token_is(&t[i], "{") && peal_cuda_token_is(&t[i - 1], ")");
        from = ends ? i + 1 : is_body ? t[i].match + 1 : from;
    }
    for (int m = 0; m < all->macro_count; m++)
        if (!is_plain_macro(&all->macro[m]))
            return false;
    return are_plain(t, all->count);
}

bool peal_cuda_tokens_read(const peal_kernel_files *files, peal_arena *arena, peal_cuda_tokens *out)
{
    const char *included = peal_kernel_files_included(files, arena);

    *out = (peal_cuda_tokens){.count = 0};
    /* What is included begins with its path. */
    if (!included || *included)
        return false;
    for (int i = 0; i < files->count; i++)
        if (!take_text(files->file[i].text, arena, out))
            return false;
    return peal_cuda_tokens_match(out->token, out->count, arena) && is_plain(out);
}

bool peal_cuda_token_is(const peal_cuda_token *token, const char *text)
{
    return token->length == (int)strlen(text) && !strncmp(token->at, text, (size_t)token->length);
}

bool peal_cuda_token_is_one_of(const peal_cuda_token *token, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (peal_cuda_token_is(token, words[i]))
            return true;
    return false;
}

bool peal_cuda_token_begins(const peal_cuda_token *token, const char *text)
{
    return token->length >= (int)strlen(text) && !strncmp(token->at, text, strlen(text));
}

bool peal_cuda_tokens_equal(const peal_cuda_token *a, const peal_cuda_token *b)
{
    return a->length == b->length && !strncmp(a->at, b->at, (size_t)a->length);
}

const peal_cuda_macro *peal_cuda_tokens_macro(const peal_cuda_tokens *tokens,
                                              const peal_cuda_token *name, bool *several)
{
    const peal_cuda_macro *found = NULL;

    *several = false;
    for (int i = 0; i < tokens->macro_count; i++)
        if (peal_cuda_tokens_equal(tokens->macro[i].name, name)) {
            *several = found != NULL;
            found = &tokens->macro[i];
        }
    return *several ? NULL : found;
}

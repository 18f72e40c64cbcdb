/* The text of kernels as tokens. */
#include "backends/cuda/codegen/kernel_tokens.h"

#include <ctype.h>
#include <string.h>

/* ---- plain text ---- */

/* Lines that continue are one. */
static char *join_lines(const char *text, peal_arena *arena)
{
    char *copy = peal_arena_copy_text(arena, text), *to = copy;

    for (const char *at = copy; *at;) {
        size_t end = at[0] == '\\' ? strspn(at + 1, " \t\r") + 1 : 0;
        if (end > 0 && at[end] == '\n')
            at += end + 1;
        else
            *to++ = *at++;
    }
    *to = '\0';
    return copy;
}

/* Makes blanks of comments, and of what is in quotes. False: a quote or a comment has no end. */
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
        for (size_t i = 0; i < length; i++)
            at[i] = at[i] == '\n' ? '\n' : ' ';
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

/* False: some bracket has no other. */
static bool match_brackets(peal_cuda_token *token, int count, peal_arena *arena)
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
    peal_cuda_tokens line = {.count = 0};

    add_tokens(at, end, arena, &line);
    if (line.count > 1 && peal_cuda_token_is(&line.token[0], "include") &&
        peal_cuda_token_is(&line.token[1], "<"))
        return true;
    if (line.count > 1 && peal_cuda_token_is(&line.token[0], "pragma") &&
        peal_cuda_token_is(&line.token[1], "unroll"))
        return true;
    if (line.count < 2 || !peal_cuda_token_is(&line.token[0], "define") || !line.token[1].is_word)
        return false;
    peal_cuda_macro macro = {.name = &line.token[1],
                             .token = line.token + 2,
                             .count = line.count - 2};
    if (!match_brackets(line.token + 2, macro.count, arena))
        return false;
    macro.has_parameters = macro.count > 0 && *macro.token[0].at == '(' &&
                           macro.token[0].at == macro.name->at + macro.name->length;
    macro.value = macro.has_parameters ? macro.token[0].match + 1 : 0;
    PEAL_ARENA_ROOM(arena, out->macro, out->macro_count, out->macro_room);
    out->macro[out->macro_count++] = macro;
    return true;
}

static bool take_text(const char *text, peal_arena *arena, peal_cuda_tokens *out)
{
    char *plain = join_lines(text, arena);

    if (!blank(plain) || is_odd(plain))
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
    return match_brackets(out->token, out->count, arena);
}

bool peal_cuda_token_is(const peal_cuda_token *token, const char *text)
{
    return token->length == (int)strlen(text) && !strncmp(token->at, text, (size_t)token->length);
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

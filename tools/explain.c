/* `peal explain E009`: a diagnostic's page. `peal explain SPEC`: which modes can run it, why not
 * the others, which paths its messages take, and what a step takes. */
#include "tools/command.h"
#include "tools/job.h"
#include "tools/output.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 80, INDENT = 2 };

static const peal_source nowhere;

/* Prints text in lines of at most LINE characters. */
static void print_wrapped(const char *text)
{
    int column = 0;
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (column && column + 1 + length > LINE) {
            putchar('\n');
            column = 0;
        }
        column += printf("%*s%.*s", column ? 1 : INDENT, "", length, text);
        text += length;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static peal_status explain_code(peal_code code, const peal_options *options)
{
    peal_status status = peal_code_status(code);
    if (options->format == FORMAT_JSON) {
        json_t *object = json_begin("peal.explain/1");
        json_object_set_new(object, "code", json_string(peal_code_number(code)));
        json_object_set_new(object, "name", json_string(peal_code_name(code)));
        json_object_set_new(object, "title", json_string(peal_code_title(code)));
        json_object_set_new(object, "explanation", json_string(peal_code_explanation(code)));
        json_object_set_new(object, "status", json_string(peal_status_name(status)));
        json_object_set_new(object, "exit", json_integer(status));
        json_print(object);
        return PEAL_STATUS_OK;
    }
    if (peal_code_is_warning(code))
        printf("%s %s: %s (a warning; the exit code stays)\n\n", peal_code_number(code),
               peal_code_name(code), peal_code_title(code));
    else
        printf("%s %s: %s (%s; exit code %d)\n\n", peal_code_number(code), peal_code_name(code),
               peal_code_title(code), peal_status_name(status), (int)status);
    print_wrapped(peal_code_explanation(code));
    return PEAL_STATUS_OK;
}

/* "E009" and the like, known or not. */
static bool looks_like_number(const char *word)
{
    if ((word[0] != 'E' && word[0] != 'e') || !word[1])
        return false;
    for (const char *c = word + 1; *c; c++)
        if (!isdigit((unsigned char)*c))
            return false;
    return true;
}

static peal_status run(const peal_options *options, peal_diagnostics *diagnostics)
{
    peal_code code;
    if (!options->subject)
        return peal_report(diagnostics, PEAL_E_WRONG_ARGUMENTS, nowhere,
                           "for example: peal explain E009",
                           "`peal explain` needs a diagnostic's number or name, or a spec");
    bool is_number = looks_like_number(options->subject);
    /* a spec's folder may have the name of a diagnostic, such as deadlock */
    bool is_code = is_number || access(options->subject, F_OK);
    if (is_code && peal_code_parse(options->subject, &code))
        return explain_code(code, options);
    if (is_number)
        return peal_report(diagnostics, PEAL_E_UNKNOWN_DIAGNOSTIC, nowhere,
                           "the number stands in brackets at the end of a message",
                           "no diagnostic has the number %s", options->subject);
    return explain_spec(options, diagnostics);
}

const peal_command explain_command = {
    "explain", VERB_EXPLAIN,
    "usage: peal explain NUMBER | NAME\n"
    "       peal explain SPEC [options]\n"
    "\n"
    "Explains the diagnostic with this number (E140) or name (DUPLICATE_TAG); or which\n"
    "modes can run a spec, why the others cannot, and which paths its messages take. With\n"
    "a machine file that has times it predicts what a step takes in each mode, from what,\n"
    "and why the others lose.\n"
    "\n"
    "  -n, --ranks N      for this many ranks (default 1), --processes P processes\n"
    "      --hosts a:2,b:2  its processes are on these hosts\n"
    "      --transport T  messages go that way, as of peal run\n"
    "      --set K=V      override a param\n"
    "      --backend B    for the host (default) or cuda, whether there are GPUs or not\n"
    "      --machine M    for this machine, such as \"process:4 core:2\", or FILE.yaml\n"
    "      --allow-outside  data may lie outside the spec's folder\n"
    "      --json         as JSON (schema peal.explain/1)\n"
    "  -h, --help         this text\n"
    "\n"
    "example: peal explain samples/jacobi2d -n 4 --machine machines/h200x4.yaml\n",
    run};

/* `peal schema`: the JSON Schema of the spec format, made from the reader's own key table. */
#include "tools/command.h"

#include "dsl/dsl.h"

#include <string.h>

static peal_status run(const peal_options *options, peal_diagnostics *diagnostics)
{
    bool machine = options->subject && !strcmp(options->subject, "machine");
    if (options->subject && !machine)
        return peal_report(diagnostics, PEAL_E_WRONG_ARGUMENTS, (peal_source){0}, NULL,
                           "`peal schema` takes no argument or `machine`, not '%s'",
                           options->subject);
    peal_status status = machine ? peal_schema_print_machine(stdout) : peal_schema_print(stdout);
    return ferror(stdout) ? PEAL_STATUS_OK : status; /* main judges what became of the output */
}

const peal_command schema_command = {
    "schema", VERB_SCHEMA,
    "usage: peal schema [machine]\n"
    "\n"
    "Prints the JSON Schema (draft 7) of the spec format, for editors and checkers.\n"
    "A spec whose first line is\n"
    "  # yaml-language-server: $schema=peal.schema.json\n"
    "gets completion and checks in editors that have a YAML language server. With the word\n"
    "machine: the schema of the files that --machine reads.\n"
    "\n"
    "  -h, --help  this text\n"
    "\n"
    "example: peal schema > peal.schema.json\n",
    run};

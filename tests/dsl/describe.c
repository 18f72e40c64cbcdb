/* Prints what the language says of itself, for tests and for the files that are generated:
 *
 *     describe schema | describe reference | describe diagnostics | describe json SPEC |
 *     describe read SPEC [name=value ...] */
#include "dsl/dsl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int read_spec(int count, char **argument, peal_diagnostics *diagnostics)
{
    peal_graph *graph = NULL;
    const peal_graph_data *data = NULL;
    peal_status status = peal_graph_read(argument[0], (const char *const *)argument + 1, count - 1,
                                         diagnostics, &graph);
    if (!status)
        status = peal_graph_resolve(graph, diagnostics, &data);
    if (!status)
        printf("%s: %d fields and buffers, %d statements, hash %016" PRIx64 "\n", data->name,
               data->array_count, data->statement_count, data->hash);
    peal_graph_destroy(graph);
    return (int)status;
}

/* The pages of `peal explain`, in the order of numbers. */
static void print_diagnostics(void)
{
    puts("# Diagnostics\n\n"
         "What `peal explain E0nn` prints, of every number. Messages end with the number; peal's\n"
         "C code has the name beside it, as `PEAL_E_NAME`. This page is generated from\n"
         "`base/diagnostics/*.def`; numbers and names are permanent.");
    for (int code = 0; code < PEAL_CODE_COUNT; code++) {
        peal_status status = peal_code_status((peal_code)code);
        printf("\n## %s %s: %s\n\n%s\n\n", peal_code_number((peal_code)code),
               peal_code_name((peal_code)code), peal_code_title((peal_code)code),
               peal_code_explanation((peal_code)code));
        if (peal_code_is_warning((peal_code)code))
            puts("It is a warning: the exit code stays.");
        else
            printf("Its status is `%s`, exit code %d.\n", peal_status_name(status), (int)status);
    }
}

int main(int count, char **argument)
{
    peal_diagnostics *diagnostics = peal_diagnostics_create();
    int status = PEAL_STATUS_USAGE;
    if (count == 2 && !strcmp(argument[1], "schema"))
        status = (int)peal_schema_print(stdout);
    else if (count == 2 && !strcmp(argument[1], "reference")) {
        peal_reference_print(stdout);
        status = 0;
    } else if (count == 2 && !strcmp(argument[1], "diagnostics")) {
        print_diagnostics();
        status = 0;
    } else if (count == 3 && !strcmp(argument[1], "json"))
        status = (int)peal_document_print_json(argument[2], stdout, diagnostics);
    else if (count >= 3 && !strcmp(argument[1], "read"))
        status = read_spec(count - 2, argument + 2, diagnostics);
    else
        fprintf(stderr, "usage: describe schema | reference | diagnostics | json SPEC | "
                        "read SPEC [name=value ...]\n");
    peal_diagnostics_print(diagnostics, stderr, 0);
    peal_diagnostics_destroy(diagnostics);
    return status;
}

/* The reader's calls in a build without libyaml: graphs are made in C only. */
#include "dsl/dsl.h"

static peal_status refuse(const char *name, peal_diagnostics *diagnostics)
{
    return peal_report(diagnostics, PEAL_E_BUILT_WITHOUT_YAML, (peal_source){name, 0, 0},
                       "install libyaml's headers and build again, or use the C builder",
                       "this peal was built without libyaml");
}

peal_status peal_graph_read(const char *path, const char *const *overrides, int override_count,
                            peal_diagnostics *diagnostics, peal_graph **out)
{
    (void)overrides;
    (void)override_count;
    (void)out;
    return refuse(path, diagnostics);
}

peal_status peal_graph_read_memory(const char *name, const char *bytes, size_t count,
                                   const char *const *overrides, int override_count,
                                   peal_diagnostics *diagnostics, peal_graph **out)
{
    (void)bytes;
    (void)count;
    (void)overrides;
    (void)override_count;
    (void)out;
    return refuse(name, diagnostics);
}

peal_status peal_machine_read(const char *path, peal_diagnostics *diagnostics, peal_machine *out,
                              peal_machine_times *times)
{
    (void)out;
    (void)times;
    return refuse(path, diagnostics);
}

peal_status peal_machine_read_memory(const char *name, const char *bytes, size_t count,
                                     peal_diagnostics *diagnostics, peal_machine *out,
                                     peal_machine_times *times)
{
    (void)bytes;
    (void)count;
    (void)out;
    (void)times;
    return refuse(name, diagnostics);
}

peal_status peal_document_print_json(const char *path, FILE *stream, peal_diagnostics *diagnostics)
{
    (void)stream;
    return refuse(path, diagnostics);
}

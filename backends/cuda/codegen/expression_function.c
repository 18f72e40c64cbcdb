/* The functions of a plan that compute expressions on the device: equal texts are one. */
#include "backends/cuda/codegen/device/launch.h"
#include "backends/cuda/codegen/task_printer.h"
#include "backends/cuda/codegen/text.h"

#include <string.h>

static const char *const value_types[] = {[PEAL_INTEGER] = "long long",
                                          [PEAL_REAL] = "double",
                                          [PEAL_BOOLEAN] = "int",
                                          [PEAL_TEXT] = "int"};

peal_status peal_cuda_expression_add(const peal_cuda_task_printer *p, const peal_expr *expr,
                                     int *number, peal_value_kind *kind)
{
    peal_cuda_source *source = p->source;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = peal_cuda_text_open(source->arena, &text, &bytes);
    peal_status status = peal_cuda_expression_print(expr, p->scope, p->entry->elements, out, kind,
                                                    source->desc.diagnostics);
    const char *body = peal_cuda_text_close(source->arena, out, &text);

    if (status)
        return status;
    const char *function =
        peal_arena_print(source->arena, "%s|%s", value_types[*kind], body); /* type and body */
    for (*number = 0; *number < source->expression_count; (*number)++)
        if (strcmp(source->expression[*number], function) == 0)
            return PEAL_STATUS_OK;
    if (*number == PEAL_CUDA_EXPRESSIONS || p->entry->elements->overflows)
        return peal_report(source->desc.diagnostics, PEAL_E_STATEMENT_TOO_LARGE, p->task->source,
                           "set buffers to parts of the values in statements before",
                           "the expressions of `%s` read more than %d buffers while running",
                           p->task->name, PEAL_LAUNCH_ELEMENTS);
    source->expression[source->expression_count++] = function;
    return PEAL_STATUS_OK;
}

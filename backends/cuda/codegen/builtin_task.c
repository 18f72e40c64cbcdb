/* The kernels of tasks that peal runs itself: expressions that thread 0 evaluates, and folds. */
#include "backends/cuda/codegen/task_printer.h"
#include "backends/cuda/codegen/text.h"

static const char *type_of(const peal_cuda_task_printer *p, int array)
{
    return peal_type_c_name(p->schedule->array[array].type);
}

/* What is done with `value`. */
static void print_value(int number, const char *statement, FILE *out)
{
    fprintf(out,
            "        {\n            auto value = peal_expression_%d_(&launch, &bad);\n"
            "            if (!bad)\n                %s;\n        }\n",
            number, statement);
}

static peal_status print_item(const peal_cuda_task_printer *p, int index, FILE *out)
{
    const peal_expr *expr = p->task->item[index].value;
    peal_value_kind kind = peal_expr_kind_of(expr, p->schedule->graph);
    int number = 0;

    if (kind != PEAL_TEXT) {
        peal_status status = peal_cuda_expression_add(p, expr, &number, &kind);
        if (status)
            return status;
        char statement[64];
        snprintf(statement, sizeof(statement), "item[%d].value.%s)value", index,
                 kind == PEAL_REAL ? "real = (double" : "integer = (long long");
        print_value(number, statement, out);
    }
    fprintf(out, "        item[%d].kind = %d;\n", index, (int)kind);
    return PEAL_STATUS_OK;
}

/* What SET does with `value`, of this kind. */
static const char *store_of(const peal_cuda_task_printer *p, peal_value_kind kind)
{
    const char *c_type = type_of(p, p->task->array);
    peal_type type = p->schedule->array[p->task->array].type;
    const char *store =
        peal_arena_print(p->source->arena, "*(%s *)launch.view[0] = (%s)%s", c_type, c_type,
                         type == PEAL_F32 ? "(double)value" : "value"); /* as on the host */

    if (type == PEAL_F64 || type == PEAL_F32)
        return store;
    if (kind == PEAL_REAL) /* by way of 64 bits */
        return peal_arena_print(p->source->arena, "*(%s *)launch.view[0] = (%s)(long long)value",
                                c_type, c_type);
    return peal_arena_print(p->source->arena,
                            "if (peal_misfits_<%s>(launch, value))\n"
                            "                bad = 1;\n            else\n                %s",
                            c_type, store);
}

/* SET, DECIDE, PRINT: thread 0 evaluates and stores. */
static peal_status print_evaluator(const peal_cuda_task_printer *p, FILE *out)
{
    const peal_schedule_task *task = p->task;
    peal_status status = PEAL_STATUS_OK;
    peal_value_kind kind;
    bool decides = task->kind == PEAL_TASK_DECIDE;
    int number = 0;

    /* Once the verdict is there no thread may look at the word by which the kernel is skipped: it
     * may be the same. */
    peal_cuda_body_open(out, "(PEAL_LAUNCH_ launch)");
    fprintf(out,
            "    int bad = 0;\n"
            "    if (!peal_enter_(launch))\n        return;\n%s",
            decides ? "    __syncthreads();\n" : "");
    peal_cuda_block_open(out, "if (peal_thread_() == 0%s)",
                         decides ? " && !peal_is_decided_(launch)" : "");
    if (task->kind == PEAL_TASK_PRINT) {
        fprintf(out, "        peal_device_item *item = (peal_device_item *)launch.view[0];\n");
        for (int i = 0; i < task->item_count && !status; i++)
            status = print_item(p, i, out);
    } else {
        status = peal_cuda_expression_add(p, task->value, &number, &kind);
        print_value(number, decides ? "peal_decide_(launch, value)" : store_of(p, kind), out);
    }
    peal_cuda_block_close(out);
    fprintf(out, "    if (peal_went_wrong_(launch, __syncthreads_or(bad)))\n        return;\n");
    peal_cuda_body_close(out);
    return status;
}

static void print_fold(const peal_cuda_task_printer *p, FILE *out)
{
    const peal_schedule_task *task = p->task;

    peal_cuda_body_open(out, "(PEAL_LAUNCH_ launch)");
    fprintf(out, "    peal_%s_<%s, %d>(launch);\n",
            task->kind == PEAL_TASK_FOLD ? "fold" : "combine", type_of(p, task->array),
            (int)task->combine);
    peal_cuda_body_close(out);
}

peal_status peal_cuda_builtin_task_print(const peal_cuda_task_printer *p, const char **out_text)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = peal_cuda_text_open(p->source->arena, &text, &bytes);
    peal_status status = PEAL_STATUS_OK;

    if (p->task->kind == PEAL_TASK_FOLD || p->task->kind == PEAL_TASK_COMBINE)
        print_fold(p, out);
    else
        status = print_evaluator(p, out);
    *out_text = peal_cuda_text_close(p->source->arena, out, &text);
    return status;
}

/* The step of a schedule as a Graphviz digraph: ops in walk order, dependences as edges. */
#include "scheduler/scheduler.h"

static const char *shape_of(const peal_op *op)
{
    switch (op->kind) {
    case PEAL_OP_LAUNCH:
        return "box";
    case PEAL_OP_COPY:
        return "parallelogram";
    case PEAL_OP_WRITE:
        return "cds";
    case PEAL_OP_WAIT:
        return "octagon";
    default:
        return "plaintext";
    }
}

static const char *verb_of(const peal_op *op)
{
    static const char *const verbs[] = {"LAUNCH", "COPY", "WRITE", "WAIT", "FENCE",
                                        "SWAP",   "LOOP", "IF",    "END"};
    return verbs[op->kind];
}

void peal_schedule_print_dot(const peal_schedule *s, FILE *f)
{
    fprintf(f, "digraph \"%s rank %d\" {\n  rankdir=TB; node [fontname=\"sans\", fontsize=10];\n",
            s->graph->name, s->rank);
    for (int i = s->step.first; i < s->step.end; i++) {
        const peal_op *op = &s->op[i];
        const char *what = op->channel >= 0 ? s->channel[op->channel].edge : op->label;
        fprintf(f, "  op%d [shape=%s, label=\"%d %s\\n%s%s\"];\n", i, shape_of(op), i, verb_of(op),
                what ? what : "", op->credit ? " (credit)" : "");
        if (i > s->step.first)
            fprintf(f, "  op%d -> op%d [style=dotted, color=gray, weight=10];\n", i - 1, i);
        for (int k = 0; k < op->dependence_count; k++) {
            const peal_dependence *d = &op->dependence[k];
            if (d->op >= s->step.first && d->op < s->step.end)
                fprintf(f, "  op%d -> op%d%s;\n", d->op, i,
                        d->op >= i || d->lag ? " [style=dashed]" : "");
        }
    }
    fprintf(f, "}\n");
}

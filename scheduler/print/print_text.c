/* The schedule as text: stable, for people and for golden tests. */
#include "base/checked.h"
#include "base/expression.h"
#include "scheduler/scheduler.h"

#include <inttypes.h>

static void print_box(FILE *f, const peal_box *box)
{
    fputc('[', f);
    for (int k = 0; k < (box->axis_count > 0 ? box->axis_count : 1); k++)
        fprintf(f, "%s%" PRId64 ":%" PRId64, k ? ", " : "", box->lo[k], box->hi[k]);
    fputc(']', f);
}

static void print_arrays(const peal_schedule *s, FILE *f)
{
    fprintf(f, "arrays:\n");
    for (int i = 0; i < s->array_count; i++) {
        const peal_schedule_array *a = &s->array[i];
        fprintf(f, "  %-3d %-14s %s stored ", i, a->name, peal_type_name(a->type));
        print_box(f, &a->layout.stored);
        fprintf(f, " part ");
        print_box(f, &a->layout.part);
        if (a->layout.offset < 0)
            fprintf(f, " lent");
        else
            fprintf(f, " at %" PRId64, a->layout.offset);
        if (a->swap_group >= 0)
            fprintf(f, " swaps with group %d", a->swap_group);
        fputc('\n', f);
    }
}

static const char *kind_of(const peal_schedule_task *t)
{
    static const char *const kinds[] = {"kernel", "fold", "combine", "set",
                                        "print",  "load", "save",    "decide"};
    return t->cuda_function ? "CUDA function" : t->enqueue ? "enqueued" : kinds[t->kind];
}

static void print_tasks(const peal_schedule *s, FILE *f)
{
    fprintf(f, "tasks:\n");
    for (int i = 0; i < s->task_count; i++) {
        const peal_schedule_task *t = &s->task[i];
        fprintf(f, "  %-3d %-14s %s, %" PRId64 " tile%s", i, t->name, kind_of(t), t->tile_count,
                t->tile_count == 1 ? "" : "s");
        for (int k = 0; t->kind == PEAL_TASK_KERNEL && k < t->tiling_count; k++) {
            const peal_tiling *g = &t->tiling[k];
            fprintf(f, "%s ", k ? "," : " of");
            print_box(f, &g->box);
            fprintf(f, " by");
            for (int a = 0; a < (g->box.axis_count ? g->box.axis_count : 1); a++)
                fprintf(f, "%s%" PRId64, a ? "x" : " ", g->extent[a]);
        }
        if (t->count)
            fprintf(f, ", of which a run visits the first `%s`",
                    t->count->text ? t->count->text : "count");
        for (int k = 0; k < t->access_count; k++)
            if (t->access[k].stale_is_meant)
                fprintf(f, ", reads stale halo of %s: ok", s->array[t->access[k].array].name);
        fputc('\n', f);
    }
}

/* Whether a run says how many elements the message has. */
static bool is_counted(const peal_channel *c)
{
    bool counted = false;
    for (int i = 0; i < c->piece_count; i++)
        counted |= c->piece[i].counted;
    return counted;
}

static void print_channels(const peal_schedule *s, FILE *f)
{
    fprintf(f, "channels:\n");
    for (int i = 0; i < s->channel_count; i++) {
        const peal_channel *c = &s->channel[i];
        fprintf(f, "  %-3d %s %-28s %s, %" PRId64 " bytes%s in %d piece%s (%d staged)", i,
                c->outgoing ? "out" : "in ", c->edge, peal_channel_transport(s->machine, c),
                c->message_bytes, is_counted(c) ? " at most" : "", c->piece_count,
                c->piece_count == 1 ? "" : "s", c->staged_count);
        if (c->staged_count)
            fprintf(f, ", %d slots", c->slots);
        fprintf(f, ", %s", c->credit_offset >= 0 ? "credit" : "no credit");
        fprintf(f, c->credit_why ? ": %s\n" : "\n", c->credit_why);
    }
}

static void print_dependence(const peal_dependence *d, FILE *f)
{
    fprintf(f, " %d%s", d->op, d->lag ? "'" : "");
    if (d->all) {
        fprintf(f, "(all)");
        return;
    }
    for (int k = 0; k < PEAL_AXES; k++) {
        const peal_map_axis *m = &d->map[k];
        long long low = peal_floor_divide(m->low, m->divisor),
                  high = peal_floor_divide(m->high, m->divisor);
        long long first = m->first, last = m->last, step = m->step, divisor = m->divisor;
        if (first == 0 && last == 0)
            continue;
        if (m->b_axis < 0)
            fprintf(f, "(%c %lld..%lld)", "xyzw"[k], low > first ? low : first,
                    high < last ? high : last);
        else if (divisor == 1)
            fprintf(f, "(%c%+lld..%+lld)", "xyzw"[k], low, high);
        else
            fprintf(f, "(%c (%lldj%+lld..%+lld)/%lld)", "xyzw"[k], step, (long long)m -> low,
                    (long long)m -> high, divisor);
    }
}

static void print_ranges(const peal_op *op, FILE *f)
{
    for (int i = 0; i < op->range_count; i++) {
        const peal_tile_range *r = &op->range[i];
        fprintf(f, " [");
        for (int k = 0; k < PEAL_AXES; k++)
            if (k == 0 || r->hi[k] > 1)
                fprintf(f, "%s%" PRId64 ":%" PRId64, k ? ", " : "", r->lo[k], r->hi[k]);
        fprintf(f, "]");
    }
}

static void print_what(const peal_schedule *s, const peal_op *op, FILE *f)
{
    static const char *const copies[] = {"send", "unpack", "local"};
    const char *edge = op->channel >= 0 ? s->channel[op->channel].edge : op->label;
    switch (op->kind) {
    case PEAL_OP_LAUNCH:
        fprintf(f, "LAUNCH %s tiles", op->label);
        print_ranges(op, f);
        break;
    case PEAL_OP_COPY:
        fprintf(f, "COPY   %s %s", copies[op->copy], edge);
        break;
    case PEAL_OP_WRITE:
        fprintf(f, "WRITE  %s of %s", op->credit ? "credit" : "flag", edge);
        break;
    case PEAL_OP_WAIT:
        fprintf(f, "WAIT   %s of %s", op->credit ? "credit" : "flag", edge);
        break;
    case PEAL_OP_FENCE:
        fprintf(f, "FENCE");
        break;
    case PEAL_OP_SWAP:
        fprintf(f, "SWAP   %s %s", s->array[op->first].name, s->array[op->second].name);
        break;
    case PEAL_OP_LOOP:
        fprintf(f, "LOOP   %s", s->loop[op->loop].counter);
        break;
    case PEAL_OP_IF:
        fprintf(f, "IF     %s",
                op->decision >= 0     ? "decided at run time"
                : op->condition->text ? op->condition->text
                                      : "needed");
        break;
    case PEAL_OP_END:
        fprintf(f, "END");
        break;
    }
}

static void print_section(const peal_schedule *s, const char *name, peal_section section, FILE *f)
{
    int depth = 1;
    fprintf(f, "%s:\n", name);
    for (int i = section.first; i < section.end; i++) {
        const peal_op *op = &s->op[i];
        if (op->kind == PEAL_OP_END)
            depth--;
        fprintf(f, "  %-4d%*s", i, 2 * (depth - 1), "");
        print_what(s, op, f);
        if (op->kind != PEAL_OP_LOOP && op->kind != PEAL_OP_IF && op->kind != PEAL_OP_END &&
            op->lane)
            fprintf(f, " lane %d", op->lane);
        if (op->dependence_count)
            fprintf(f, " after");
        for (int k = 0; k < op->dependence_count; k++)
            print_dependence(&op->dependence[k], f);
        fputc('\n', f);
        if (op->kind == PEAL_OP_LOOP || op->kind == PEAL_OP_IF)
            depth++;
    }
}

void peal_schedule_print_text(const peal_schedule *s, FILE *f)
{
    fprintf(f,
            "schedule of %s: mode %s, rank %d of %d (%d x %d x %d), %d worker%s, %" PRId64 " bytes",
            s->graph->name, peal_mode_name(s->mode), s->rank, s->machine->ranks, s->rank_dims[0],
            s->rank_dims[1], s->rank_dims[2], s->workers, s->workers == 1 ? "" : "s",
            s->used_bytes);
    if (s->segment_bytes > s->used_bytes)
        fprintf(f, " (and room for %" PRId64 " that are not touched)",
                s->segment_bytes - s->used_bytes);
    fputc('\n', f);
    print_arrays(s, f);
    print_tasks(s, f);
    print_channels(s, f);
    peal_schedule_print_puts(s, f);
    print_section(s, "setup", s->setup, f);
    print_section(s, "step", s->step, f);
    print_section(s, "finish", s->finish, f);
}

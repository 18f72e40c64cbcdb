/* Enumerates ways to run a graph, prunes them by predictions, combines what gained alone. */
#include "scheduler/modes/candidates.h"
#include "scheduler/tasks/tasks.h"

#include <stdio.h>
#include <string.h>

/* By simplicity. */
static const peal_mode modes[] = {PEAL_MODE_SYNC, PEAL_MODE_STREAM, PEAL_MODE_GRAPH,
                                  PEAL_MODE_FUSED};
enum { MODES = sizeof(modes) / sizeof(modes[0]) };

static bool has_free_tiles(const peal_task_statement *task)
{
    return !task->tile_given && !task->tile_whole && tiles_are_free(task);
}

static unsigned found_in(const peal_body *body)
{
    unsigned found = 0;
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        switch (s->kind) {
        case PEAL_STATEMENT_TASK:
            found |= has_free_tiles(&s->u.task) ? PEAL_NEEDS_FREE_TILES : 0;
            break;
        case PEAL_STATEMENT_REDUCE:
        case PEAL_STATEMENT_EXCHANGE:
        case PEAL_STATEMENT_SEND:
        case PEAL_STATEMENT_RECV:
            found |= PEAL_NEEDS_MESSAGES;
            break;
        case PEAL_STATEMENT_REPEAT:
            found |= found_in(&s->u.loop.body);
            break;
        default:
            break;
        }
    }
    return found;
}

/* Of all that a variant may need, what there is. */
static unsigned facts_of(const peal_candidates_desc *desc)
{
    const peal_machine *machine = desc->machine;
    unsigned facts = found_in(&desc->graph->step.body);
    if (machine->ranks == 1)
        facts &= ~(unsigned)PEAL_NEEDS_MESSAGES;
    if (machine->ranks == machine->processes)
        facts |= PEAL_NEEDS_OWN_PROCESS;
    if (!machine->shares_device)
        facts |= PEAL_NEEDS_OWN_DEVICE;
    if (machine->network == PEAL_TRANSPORT_MLX5 && peal_machine_hosts(machine) > 1)
        facts |= PEAL_NEEDS_RINGS;
    return facts | (desc->graph->step.until ? PEAL_NEEDS_UNTIL : PEAL_NEEDS_NO_UNTIL);
}

/* Whether `words` already say something about the key of `word`, which is "key=value". */
static bool is_settled(const char *words, const char *word)
{
    size_t key = strcspn(word, "=") + 1;
    for (const char *at = words; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (!strncmp(at, word, key))
            return true;
    return false;
}

static peal_candidate *add(peal_candidates *set, peal_mode mode, const char *base,
                           const char *words)
{
    if (set->count == PEAL_MOST_CANDIDATES)
        return NULL;
    peal_candidate *candidate = &set->item[set->count++];
    *candidate = (peal_candidate){.mode = mode};
    snprintf(candidate->lowering, sizeof(candidate->lowering), "%s%s%s", base ? base : "",
             base && *base && *words ? "," : "", words);
    return candidate;
}

/* Fewer threads a process, half of them and one a rank: more are slower where a step is short. */
static void add_threads(const peal_candidates_desc *desc, peal_mode mode, peal_candidates *out)
{
    const peal_machine *machine = desc->machine;
    int ranks = (machine->ranks + machine->processes - 1) / machine->processes;
    const int fewer[] = {machine->workers / 2, 1};
    for (int i = 0; i < 2 && !machine->accelerator && !desc->threads_given; i++) {
        if (fewer[i] < 1 || fewer[i] >= machine->workers || (i == 1 && fewer[0] == 1))
            continue;
        peal_candidate *candidate = add(out, mode, desc->lowering, "");
        if (candidate)
            candidate->threads = fewer[i] * ranks;
    }
}

void peal_candidates_list(const peal_candidates_desc *desc, peal_candidates *out)
{
    const peal_machine_traits *traits = peal_machine_traits_of(desc->machine);
    unsigned facts = facts_of(desc);
    out->count = 0;
    for (int m = 0; m < MODES; m++) {
        if (!desc->applicable[modes[m]])
            continue;
        add(out, modes[m], desc->lowering, "");
        if (desc->modes_only)
            continue;
        add_threads(desc, modes[m], out);
        for (int i = 0; i < traits->variant_count; i++) {
            const peal_variant *variant = &traits->variants[i];
            if ((variant->modes >> modes[m] & 1) && (variant->needs & ~facts) == 0 &&
                !is_settled(desc->lowering, variant->words))
                add(out, modes[m], desc->lowering, variant->words);
        }
    }
}

static double shortest(const peal_candidates *set)
{
    double best = 0;
    for (int i = 0; i < set->count; i++) {
        const peal_candidate *c = &set->item[i];
        if (!c->dropped[0] && c->predicted_s > 0 && (best <= 0 || c->predicted_s < best))
            best = c->predicted_s;
    }
    return best;
}

int peal_candidates_prune(peal_candidates *set, double factor)
{
    double best = shortest(set);
    int dropped = 0;
    for (int i = 0; i < set->count; i++) {
        peal_candidate *c = &set->item[i];
        if (best <= 0 || c->dropped[0] || c->predicted_s <= factor * best)
            continue;
        snprintf(c->dropped, sizeof(c->dropped), "predicted %.3g us a step, %.1f times the best",
                 c->predicted_s * 1e6, c->predicted_s / best);
        dropped++;
    }
    return dropped;
}

/* The item that forces nothing beside what all have; -1: there is none. */
static int plain_of(const peal_candidates *set, peal_mode mode)
{
    for (int i = 0; i < set->count; i++)
        if (set->item[i].mode == mode)
            return i; /* it comes first */
    return -1;
}

/* What an item forces that `plain` doesn't. */
static const char *own_words(const peal_candidate *candidate, const peal_candidate *plain)
{
    size_t skipped = strlen(plain->lowering);
    return candidate->lowering + skipped + (candidate->lowering[skipped] == ',');
}

/* The fastest item of a mode before `end` that takes at most `limit` and forces what neither words
 * nor threads settle; -1: there is none. */
static int find_gain(const peal_candidates *set, const double *seconds, int plain, int end,
                     double limit, const peal_candidate *joined)
{
    int best = -1;
    for (int i = plain + 1; i < end && set->item[i].mode == set->item[plain].mode; i++) {
        const char *own = own_words(&set->item[i], &set->item[plain]);
        bool settled = *own ? is_settled(joined->lowering, own) : joined->threads != 0;
        if (!settled && seconds[i] > 0 && seconds[i] <= limit &&
            (best < 0 || seconds[i] < seconds[best]))
            best = i;
    }
    return best;
}

static void join(const peal_candidate *item, const char *own, peal_candidate *joined)
{
    size_t used = strlen(joined->lowering);
    if (*own)
        snprintf(joined->lowering + used, sizeof(joined->lowering) - used, "%s%s", used ? "," : "",
                 own);
    else
        joined->threads = item->threads;
}

int peal_candidates_combine(peal_candidates *set, const double *seconds, double gain)
{
    int before = set->count;
    for (int m = 0; m < MODES; m++) {
        int plain = plain_of(set, modes[m]), count = 0, best;
        if (plain < 0 || seconds[plain] <= 0)
            continue;
        double limit = seconds[plain] * (1 - gain);
        peal_candidate joined = set->item[plain];
        while ((best = find_gain(set, seconds, plain, before, limit, &joined)) >= 0) {
            join(&set->item[best], own_words(&set->item[best], &set->item[plain]), &joined);
            count++;
        }
        if (count > 1 && set->count < PEAL_MOST_CANDIDATES)
            set->item[set->count++] = joined;
    }
    return set->count - before;
}

int peal_candidates_drop_idle(peal_candidates *set, const double *seconds, double gain)
{
    int dropped = 0;
    for (int i = 0; i < set->count; i++) {
        peal_candidate *c = &set->item[i];
        int plain = plain_of(set, c->mode);
        bool compared = i != plain && seconds[i] > 0 && seconds[plain] > 0;
        if (!compared || seconds[i] <= (1 - gain) * seconds[plain])
            continue;
        snprintf(c->dropped, sizeof(c->dropped), "not faster than %s at first sight",
                 peal_mode_name(c->mode));
        dropped++;
    }
    return dropped;
}

static int simplicity(const peal_candidate *candidate)
{
    int forced = candidate->threads != 0, m = 0;
    for (const char *at = candidate->lowering; *at; at += strcspn(at, ","), at += *at == ',')
        forced++;
    while (m < MODES - 1 && modes[m] != candidate->mode)
        m++;
    return m * PEAL_LOWERING_BYTES + forced;
}

bool peal_candidate_is_simpler(const peal_candidate *a, const peal_candidate *b)
{
    return simplicity(a) < simplicity(b);
}

void peal_candidate_label(const peal_candidate *candidate, char *text, size_t bytes)
{
    int used = snprintf(text, bytes, "%s", peal_mode_name(candidate->mode));
    if (candidate->threads)
        used += snprintf(text + used, bytes - (size_t)used, " threads=%d", candidate->threads);
    if (candidate->lowering[0])
        snprintf(text + used, bytes - (size_t)used, " %s", candidate->lowering);
}

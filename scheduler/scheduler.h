/* The scheduler: graph and machine in, schedules out. Pure: no thread, clock, socket; same input,
 * same bytes.
 *
 * A compilation holds what the ranks share: ranks that look alike are analysed once. */
#ifndef PEAL_SCHEDULER_SCHEDULER_H
#define PEAL_SCHEDULER_SCHEDULER_H

#include "base/arena.h"
#include "base/diagnostic.h"

#include <peal/plugin/network.h>
#include <peal/plugin/schedule.h>

#include <stdio.h>

typedef struct peal_compilation peal_compilation;

/* Prepares to compile graph for machine in mode. graph and machine are used until destroy. Topology
 * and parts are decided here: PEAL_STATUS_SPEC when the ranks don't fit the topology. */
peal_status peal_compilation_create(const peal_graph_data *graph, const peal_machine *machine,
                                    peal_mode mode, peal_diagnostics *diagnostics,
                                    peal_compilation **out);
void peal_compilation_destroy(peal_compilation *compilation);

/* Each of the calls below may use PEAL_COMPILE_DEADLINES times the deadline of processor time; else
 * it ends with PEAL_STATUS_DEADLINE, and so do later ones. 0, as at first: any time. */
enum { PEAL_COMPILE_DEADLINES = 10 };
void peal_compilation_limit(peal_compilation *compilation, int64_t deadline_ns);

/* All checks of SPEC §9 over all ranks; reports everything it finds. */
peal_status peal_compilation_check(peal_compilation *compilation);

/* After a check: whether what it says holds in the steps of the outermost `repeat` alone, and no
 * more than these may be started. */
bool peal_compilation_is_within_repeat(const peal_compilation *compilation);

/* After a check: whether `finish` is sound behind `repeat` steps alone (or where `until` ends
 * them). */
bool peal_compilation_ends_at_repeat(const peal_compilation *compilation);

/* The schedule of one rank, owned by the compilation. It checks that rank and those it exchanges
 * messages with. */
peal_status peal_compilation_schedule(peal_compilation *compilation, int rank,
                                      const peal_schedule **out);

/* What a rank computes, without what it exchanges: a schedule that has its arrays, which have no
 * offsets yet, and its tasks. No other rank is looked at. */
peal_status peal_compilation_tasks(peal_compilation *compilation, int rank,
                                   const peal_schedule **out);

/* By rank: the first rank whose schedule is like its own, but that whom it exchanges messages with
 * is counted from the rank itself. False: ranks differ in more than their positions; then each is
 * like itself only. */
bool peal_compilation_alike(peal_compilation *compilation, int *like);

/* What the ranks of a process, whose schedules are given, and those of another one put into each
 * other's memory by a network. */
bool peal_has_puts(const peal_schedule *schedule);
void peal_list_puts(const peal_schedule *const *schedule, int count, int process, peal_arena *arena,
                    peal_pair *out);

/* How the graph's ranks are laid out: dims along x, y, z. */
void peal_compilation_dims(const peal_compilation *compilation, int dims[PEAL_RANK_AXES]);

/* What bears on whether a graph can run in a mode, by one rule of the applicability table. */
typedef struct peal_reason {
    peal_code code; /* the rule: PEAL_E_ITERATIONS_NOT_FIXED to PEAL_E_TOO_MANY_RANKS_FOR_KERNEL */
    bool refuses;   /* it cannot; else it can, with a bound or at a cost */
    bool drains;    /* the host waits for the device in the loop */
    peal_source source; /* the first statement that it is about; {0}: none */
    char text[240];
    const char *change; /* what would help; NULL: nothing need be done */
} peal_reason;

enum { PEAL_REASONS = 8 };

/* The reasons of a mode, in the order of the rules, at most one of each kind; what refuses it comes
 * before what binds it. Returns how many. machine NULL: not known yet. */
int peal_graph_reasons(const peal_graph_data *graph, const peal_machine *machine, peal_mode mode,
                       bool accelerated, peal_reason out[PEAL_REASONS]);

/* Whether the graph can run in a mode, on accelerators or the host: NULL, or the first reason why
 * not, in words and with its number, good until this thread asks again. */
const char *peal_graph_refuses(const peal_graph_data *graph, peal_mode mode, bool accelerated);

/* Bytes that a compilation has used so far. */
size_t peal_compilation_bytes(const peal_compilation *compilation);

/* The schedule as stable text (golden tests) and as a Graphviz digraph. */
void peal_schedule_print_text(const peal_schedule *schedule, FILE *stream);
/* Of it: what goes by a network; nothing where nothing does. */
void peal_schedule_print_puts(const peal_schedule *schedule, FILE *stream);
void peal_schedule_print_dot(const peal_schedule *schedule, FILE *stream);

#endif

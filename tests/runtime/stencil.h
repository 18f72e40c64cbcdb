/* A periodic five-point relaxation of NX x NY points with host functions, for tests of plans: two
 * fields `a` and `an`, 10 steps, the exact result by two loops to compare with. */
#ifndef PEAL_TESTS_RUNTIME_STENCIL_H
#define PEAL_TESTS_RUNTIME_STENCIL_H

#include <peal/graph.h>
#include <peal/plan.h>
#include <peal/session.h>

enum { NX = 37, NY = 23 };

double *stencil_at(const peal_view *view, int x, int y);
void stencil_relax(const peal_call *call);

/* The graph with `function` for its task `relax` and `ny` for the param of that name (NY as text is
 * right); lent: the caller's memory for `a`, or NULL. */
peal_graph *stencil_graph(const char *ny, peal_function function, double *lent);

/* Whether the ranks here hold what the loops give after `steps`. */
bool stencil_is_right(const peal_plan *plan, int steps);

/* 3 steps, a look, the other 7, finish: ends the member or the test if something is wrong. Returns
 * the digest, which is that of all modes. */
uint64_t stencil_run_in_parts(peal_session *session, const peal_plan_options *options);

#endif

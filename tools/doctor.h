/* What the files of `peal doctor` share. */
#ifndef PEAL_TOOLS_DOCTOR_H
#define PEAL_TOOLS_DOCTOR_H

#include "tools/options.h"

/* A finding: what, whether it can be used, and how much or why not. */
typedef struct peal_finding {
    char name[24];
    enum { FINDING_ON, FINDING_OFF, FINDING_FAILED } state;
    char text[240];
} peal_finding;

enum { MAX_FINDINGS = 256 };

typedef struct peal_findings {
    peal_finding item[MAX_FINDINGS];
    int count;
} peal_findings;

void findings_add(peal_findings *findings, const char *name, int state, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The GPUs of this machine: what they can do, how they are linked, which transports they have. */
void look_at_gpus(peal_findings *out);

/* doctor_network.c: by what other hosts can be reached; and what messages between the hosts of this
 * job take (collective). */
void look_at_network(peal_findings *out);
peal_status look_at_hosts(peal_session *session, peal_findings *out);

/* Sends a pattern round the ring of `ranks` ranks of this job, in every mode that can, and compares
 * what arrives, every element of every step. Collective. */
peal_status transfer_verify(peal_session *session, int ranks, const peal_options *options,
                            peal_diagnostics *diagnostics);

#endif

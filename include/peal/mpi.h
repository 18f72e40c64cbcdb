/* A session for an MPI program, by its own communicator. Header only: libpeal knows no MPI, and
 * this works with the one that the program is compiled for.
 *
 *     MPI_Init(&argc, &argv);
 *     peal_session *session = peal_session_from_mpi(MPI_COMM_WORLD);
 *     ...
 *     peal_session_destroy(session);
 *     MPI_Finalize();
 *
 * Process p of the session is rank p of the communicator, which is used while the session is made
 * and must be valid until it is destroyed. As MPI's errors do by default, a failed call of peal's
 * ends the job (peal_session_desc.fatal): one process prints why, with the place in the program,
 * and calls MPI_Abort with the peal_status; only a handle that is none (NULL, or destroyed) returns
 * PEAL_STATUS_USAGE, since nobody knows whose it is. A program that wants statuses makes the
 * session by hand, with peal_mpi_bootstrap(). */
#ifndef PEAL_MPI_H
#define PEAL_MPI_H

#include <peal/bootstrap.h>
#include <peal/session.h>

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static inline MPI_Comm peal_mpi_comm(void *user)
{
    return MPI_Comm_f2c((MPI_Fint)(intptr_t)user);
}

static inline int peal_mpi_allgather(void *user, const void *mine, size_t bytes, void *all)
{
    return MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE,
                         peal_mpi_comm(user));
}

static inline int peal_mpi_barrier(void *user)
{
    return MPI_Barrier(peal_mpi_comm(user));
}

static inline void peal_mpi_abort(void *user, int code, const char *message)
{
    (void)message; /* peal has printed more */
    MPI_Abort(peal_mpi_comm(user), code);
}

/* How the processes of a communicator find each other, for peal_session_desc.bootstrap. */
static inline peal_bootstrap_callbacks peal_mpi_bootstrap(MPI_Comm comm)
{
    peal_bootstrap_callbacks callbacks;
    memset(&callbacks, 0, sizeof(callbacks));
    callbacks.size_bytes = sizeof(callbacks);
    MPI_Comm_rank(comm, &callbacks.process);
    MPI_Comm_size(comm, &callbacks.processes);
    callbacks.allgather = peal_mpi_allgather;
    callbacks.barrier = peal_mpi_barrier;
    callbacks.abort = peal_mpi_abort;
    callbacks.user = (void *)(intptr_t)MPI_Comm_c2f(comm);
    return callbacks;
}

/* Collective over comm. Never NULL: what fails ends the job. */
static inline peal_session *peal_session_from_mpi(MPI_Comm comm)
{
    peal_bootstrap_callbacks callbacks = peal_mpi_bootstrap(comm);
    peal_session *session = NULL;
    peal_session_desc desc;
    memset(&desc, 0, sizeof(desc));
    desc.size_bytes = sizeof(desc);
    desc.bootstrap = &callbacks;
    desc.log_level = PEAL_LOG_ERROR;
    desc.log = stderr;
    desc.fatal = true;
    peal_session_create(&desc, &session);
    return session;
}

#endif

/* Kernels of a spec: the source that is generated around the user's C files, and its functions. */
#ifndef PEAL_HOST_KERNELS_H
#define PEAL_HOST_KERNELS_H

#include "backends/host/host.h"

/* The source that is compiled for these schedules (`peal plan --emit`), malloc'ed. NULL: no task
 * names a kernel, or a file could not be read (which has been reported). */
char *host_kernels_emit(const peal_backend_desc *desc);
/* Whether the kernel files can be read, lie where they may and name every kernel
 * (PEAL_E_KERNEL_FILE_UNREADABLE, PEAL_E_NO_SUCH_KERNEL, PEAL_E_KERNEL_FILE_OUTSIDE,
 * PEAL_E_KERNEL_FILE_NOT_TRUSTED); nothing is compiled. */
peal_status host_kernels_check(const peal_backend_desc *desc);

#endif

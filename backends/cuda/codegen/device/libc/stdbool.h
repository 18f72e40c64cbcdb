/* <stdbool.h> of kernels: C++ has bool. */
#ifndef PEAL_LIBC_STDBOOL_H
#define PEAL_LIBC_STDBOOL_H
#define _Bool bool
#endif

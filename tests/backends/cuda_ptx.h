/* Searches PTX for loads that may return what was there before a wait. */
#ifndef PEAL_TESTS_CUDA_PTX_H
#define PEAL_TESTS_CUDA_PTX_H

/* The first load that does not go through the coherent caches (ld.global.nc, textures, surfaces),
 * or NULL. Loads of the constant tables that CUDA's own functions bring along (__cudart_*) are
 * none: nobody writes these. */
const char *ptx_non_coherent(const char *ptx);

#endif

/* What processor this is: what is made for it, or measured on it, is no other's. */
#ifndef PEAL_BASE_PROCESSOR_H
#define PEAL_BASE_PROCESSOR_H

#include "base/sha256.h"

/* Adds all that tells processors apart: maker, model, stepping, what it can do. */
void peal_processor_add(peal_sha256 *hash);
/* Its name as people know it; "unknown processor" where the system doesn't say. */
void peal_processor_name(char *text, size_t bytes);

#endif

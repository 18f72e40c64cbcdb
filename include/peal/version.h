/* The version of these headers; peal_version() in <peal/peal.h> is that of the library. */
#ifndef PEAL_VERSION_H
#define PEAL_VERSION_H

#define PEAL_VERSION_STRING "0.1.0"
#define PEAL_VERSION_MAJOR  0
#define PEAL_VERSION_MINOR  1
#define PEAL_VERSION_PATCH  0
/* Grows with every release: compare with PEAL_VERSION_NUMBER_OF(0, 1, 0). */
#define PEAL_VERSION_NUMBER_OF(major, minor, patch) ((major)*1000000 + (minor)*1000 + (patch))
#define PEAL_VERSION_NUMBER                                                                        \
    PEAL_VERSION_NUMBER_OF(PEAL_VERSION_MAJOR, PEAL_VERSION_MINOR, PEAL_VERSION_PATCH)

#endif

/* Words that several threads share, for headers that C and C++ read. */
#ifndef PEAL_PLUGIN_ATOMIC_H
#define PEAL_PLUGIN_ATOMIC_H

#ifdef __cplusplus
#include <atomic>
#define PEAL_ATOMIC(type) std::atomic<type>
#else
#include <stdatomic.h>
#define PEAL_ATOMIC(type) _Atomic(type)
#endif

#endif

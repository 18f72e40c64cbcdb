/* The keys of machine files, context by context. */
#include "dsl/key_rows.h"

enum { MOST_PROCESSORS = 1 << 16, MOST_RANKS = 1 << 20 };
#define MOST_CACHE_BYTES 1099511627776.0 /* 2^40 */

static const peal_key machine_keys[] = {
    {"machine", PEAL_KEY_VERSION, true, NULL, "version of machine files: 1"},
    {"ranks", PEAL_KEY_COUNT, false, NULL, "ranks of the job; default: one a process",
     AT(peal_machine_file, machine.ranks), .most = MOST_RANKS},
    {"processes", PEAL_KEY_COUNT, false, NULL,
     "processes that host the ranks in blocks; default: one a rank",
     AT(peal_machine_file, machine.processes), .most = MOST_PROCESSORS},
    {"workers", PEAL_KEY_COUNT, false, NULL,
     "threads that execute one rank's tiles; default: this machine's cores, shared",
     AT(peal_machine_file, machine.workers), .most = MOST_PROCESSORS},
    {"cache_bytes", PEAL_KEY_BYTES, false, NULL,
     "of one core: what a tile's data should fit in; default 1048576",
     AT(peal_machine_file, machine.cache_bytes), .most = MOST_CACHE_BYTES},
    {"accelerator", PEAL_KEY_BOOLEAN, false, NULL,
     "true: devices are GPUs, of which a rank has one; default false: cores, of which a rank has "
     "one a worker",
     AT(peal_machine_file, times.accelerator)},
    {"devices", PEAL_KEY_COUNT, false, NULL, "devices of a node; default 1",
     AT(peal_machine_file, times.devices), .most = MOST_PROCESSORS},
    {"nodes", PEAL_KEY_COUNT, false, NULL,
     "nodes, whose devices the ranks share if they are more; default: as many as the ranks need",
     AT(peal_machine_file, times.nodes), .most = MOST_RANKS},
    {"modes", PEAL_KEY_MODES, false, NULL,
     "what operations take, by mode: `sync`, `stream`, `graph`, `fused`, and `serial`, which else "
     "has the times of `sync`"},
    {"kernels", PEAL_KEY_KERNELS, false, NULL,
     "what kernels take, by name of the task or of its kernel; `default`: those of the other "
     "tasks"},
    {"links", PEAL_KEY_LINKS, false, NULL,
     "what messages take, by what lies between two ranks: `device` (they share one), `p2p` "
     "(devices "
     "of a node), `host` (a node's memory), `network` (nodes). One without `device` uses `p2p`, "
     "without `p2p` `host`"}};

static const peal_key mode_times_keys[] = {
    {"launch_s", PEAL_KEY_SECONDS, false, NULL,
     "the CPU launches a kernel; graph: a whole step; fused: the whole run; default 0",
     AT(peal_mode_times, launch_s)},
    {"post_s", PEAL_KEY_SECONDS, false, NULL,
     "stream: the CPU puts a copy, write or wait onto a lane; default 0",
     AT(peal_mode_times, post_s)},
    {"kernel_s", PEAL_KEY_SECONDS, false, NULL,
     "a kernel begins and ends, beside what it computes; default 0", AT(peal_mode_times, kernel_s)},
    {"copy_s", PEAL_KEY_SECONDS, false, NULL, "a copy begins and ends, beside its bytes; default 0",
     AT(peal_mode_times, copy_s)},
    {"write_s", PEAL_KEY_SECONDS, false, NULL,
     "a lane is through with the write of a flag; default 0", AT(peal_mode_times, write_s)},
    {"wait_s", PEAL_KEY_SECONDS, false, NULL,
     "a lane goes on after a wait, once the flag has come; default 0", AT(peal_mode_times, wait_s)},
    {"synchronize_s", PEAL_KEY_SECONDS, false, NULL,
     "sync and serial: the CPU knows that a kernel has ended; default 0",
     AT(peal_mode_times, synchronize_s)},
    {"stretch", PEAL_KEY_RATE, false, NULL,
     "what kernels do with points and bytes takes so many times as long as `kernels` say; default "
     "1",
     AT(peal_mode_times, stretch), .most = 1e6},
    {"apart", PEAL_KEY_BOOLEAN, false, NULL,
     "stream, graph and fused: true: messages are sent and received side by side, as by blocks of "
     "a "
     "kernel; default false: on the schedule's lanes, one after the other",
     AT(peal_mode_times, apart)},
    {"kernels", PEAL_KEY_KERNELS, false, NULL,
     "what launches take in this mode, by name of the task or of its kernel, all in all: nothing "
     "is added; before those of the machine file's own `kernels`"}};

static const peal_key kernel_times_keys[] = {
    {"fixed_s", PEAL_KEY_SECONDS, false, NULL, "a launch, however small; default 0",
     AT(peal_kernel_times, fixed_s)},
    {"per_point_s", PEAL_KEY_SECONDS, false, NULL, "a point of the task's box; default 0",
     AT(peal_kernel_times, per_point_s)},
    {"per_byte_s", PEAL_KEY_SECONDS, false, NULL,
     "a byte of the elements that the accesses touch (twice for `update`); default 0",
     AT(peal_kernel_times, per_byte_s)},
    {"launch_s", PEAL_KEY_SECONDS, false, NULL,
     "among the kernels of mode stream: the CPU puts it onto a lane; default 0",
     AT(peal_kernel_times, launch_s)}};

static const peal_key link_times_keys[] = {
    {"latency_s", PEAL_KEY_SECONDS, false, NULL,
     "from the end of a flag's write to its arrival; default 0", AT(peal_link_times, latency_s)},
    {"bytes_per_s", PEAL_KEY_RATE, true, NULL, "bytes a second in one direction",
     AT(peal_link_times, bytes_per_s), .most = 1e18},
    {"shared", PEAL_KEY_SHARE, false, "none device node",
     "which messages pass one after the other, in each direction: none (default), those of a "
     "`device`, those of a `node`",
     AT(peal_link_times, shared)}};

const peal_context peal_machine_contexts[PEAL_CONTEXT_SPEC] = {
    {"machine", "a machine file",
     "A file of its own, for `--machine FILE.yaml` of plan, check, explain and simulate: whose "
     "schedules they look at, and (modes, kernels, links) what takes how long there.",
     "{machine: 1, processes: 2, workers: 4, cache_bytes: 2097152}", KEYS(machine_keys),
     sizeof(peal_machine_file)},
    {"mode_times", "times of a mode", "Seconds, of a machine file's `modes`.",
     "{launch_s: 2e-6, kernel_s: 1e-6}", KEYS(mode_times_keys), sizeof(peal_mode_times)},
    {"kernel_times", "times of a kernel",
     "fixed_s + points * per_point_s + bytes * per_byte_s with all of a GPU, or with one core; of "
     "a machine file's `kernels`, or of a mode's. A mode can also have times of copies, with the "
     "flags beside them: `send exchange u`, `unpack ...`, `local ...`; in sync, where waits are "
     "launched, also `wait ...`.",
     "{fixed_s: 1e-6, per_byte_s: 2.5e-13}", KEYS(kernel_times_keys), sizeof(peal_kernel_times)},
    {"link_times", "a link", "What lies between two ranks, of a machine file's `links`.",
     "{latency_s: 1.4e-6, bytes_per_s: 360e9}", KEYS(link_times_keys), sizeof(peal_link_times)}};

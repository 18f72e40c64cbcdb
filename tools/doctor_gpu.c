/* What `peal doctor` says of GPUs: devices, what each can do, links, and for each transport between
 * them whether it can be used or why not. */
#include "tools/doctor.h"

#include "base/cuda_driver.h"
#include "runtime/bind/peer_path.h"
#include "runtime/session/device.h"
#include "tools/output.h"

#if PEAL_HAVE_CUDA

enum { MOST_DEVICES = 16, BLOCK = 256, CONDITIONAL_NODES = 12040 };

/* A device, and its attributes where they matter. */
typedef struct gpu {
    const peal_cuda_driver *driver;
    CUdevice device;
    int number;
} gpu;

static int attribute(const gpu *g, CUdevice_attribute which)
{
    int value = 0;
    return g->driver->cuDeviceGetAttribute_(&value, which, g->device) ? 0 : value;
}

static const char *yes(int value)
{
    return value ? "yes" : "no";
}

static void look_at_device(const gpu *g, peal_findings *out)
{
    char title[24], name[96] = "?", bus[32] = "?";
    size_t bytes = 0;
    g->driver->cuDeviceGetName_(name, sizeof(name), g->device);
    g->driver->cuDeviceGetPCIBusId_(bus, sizeof(bus), g->device);
    g->driver->cuDeviceTotalMem_(&bytes, g->device);
    snprintf(title, sizeof(title), "gpu %d", g->number);
    findings_add(out, title, FINDING_ON, "%s %s, sm_%d%d, %d SMs, %s", name, bus,
                 attribute(g, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                 attribute(g, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
                 attribute(g, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
                 text_bytes((int64_t)bytes).s);
}

static void look_at_streams(const gpu *g, peal_findings *out)
{
    int memops = attribute(g, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
    char title[24];
    snprintf(title, sizeof(title), "gpu %d streams", g->number);
    findings_add(out, title, memops ? FINDING_ON : FINDING_OFF,
                 "64-bit memory operations %s, wait NOR %s, flush of remote writes %s; graphs yes, "
                 "conditional nodes %s",
                 yes(memops), yes(attribute(g, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR)),
                 yes(attribute(g, CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES)),
                 g->driver->version >= CONDITIONAL_NODES ? "yes" : "no (driver before 12.4)");
}

static void look_at_memory(const gpu *g, peal_findings *out)
{
    int vmm = attribute(g, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
    char title[24];
    snprintf(title, sizeof(title), "gpu %d memory", g->number);
    findings_add(out, title, vmm ? FINDING_ON : FINDING_OFF,
                 "virtual memory management %s, handles as file descriptors %s, fabric handles %s; "
                 "IPC handles %s; host memory registered %s",
                 yes(vmm),
                 yes(attribute(g, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED)),
                 yes(attribute(g, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED)),
                 yes(attribute(g, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING)),
                 yes(attribute(g, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED)));
}

/* Numbers for a kernel that uses few registers: each kernel's own are known once it is compiled. */
static void look_at_launches(const gpu *g, peal_findings *out)
{
    int cooperative = attribute(g, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
    int threads = attribute(g, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    int blocks = attribute(g, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    int resident = threads / BLOCK < blocks ? threads / BLOCK : blocks;
    char title[24];
    snprintf(title, sizeof(title), "gpu %d launches", g->number);
    findings_add(out, title, cooperative ? FINDING_ON : FINDING_OFF,
                 "cooperative %s; co-resident: %d blocks of %d threads (%d an SM) at most",
                 yes(cooperative),
                 resident * attribute(g, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), BLOCK,
                 resident);
}

/* How two devices are linked. */
static void look_at_link(const gpu *a, const gpu *b, peal_findings *out)
{
    int access = 0, rank = -1, atomics = 0;
    char title[24];
    const peal_cuda_driver *driver = a->driver;
    driver->cuDeviceCanAccessPeer_(&access, a->device, b->device);
    driver->cuDeviceGetP2PAttribute_(&rank, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, a->device,
                                     b->device);
    driver->cuDeviceGetP2PAttribute_(&atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED,
                                     a->device, b->device);
    snprintf(title, sizeof(title), "link %d-%d", a->number, b->number);
    if (access)
        findings_add(out, title, FINDING_ON,
                     "peer access, %s (native atomics %s), performance rank %d",
                     atomics ? "NVLink" : "PCIe", yes(atomics), rank);
    else
        findings_add(out, title, FINDING_OFF,
                     "no peer access: the driver or the topology forbids it");
}

/* A path between processes, tried on every device; reason: why some device or pair cannot use it.
 */
static bool try_path(peal_path path, peal_device *const *device, int count,
                     char reason[PEAL_REASON_BYTES])
{
    const peal_backend_ops *backend = peal_backend_accelerated();
    for (int i = 0; i < count; i++)
        for (int k = 0; k < count; k++) {
            peal_device_identity peer;
            backend->identify(device[k], &peer);
            const char *why = backend->memory->refuses_path(device[i], path, &peer);
            if (!why)
                continue;
            if (i == k)
                snprintf(reason, PEAL_REASON_BYTES, "GPU %d: %s", i, why);
            else
                snprintf(reason, PEAL_REASON_BYTES, "GPU %d and GPU %d: %s", i, k, why);
            return false;
        }
    for (int i = 0; i < count; i++) {
        const peal_memory_space space = {.memory = backend->memory,
                                         .device = device[i],
                                         .mode = PEAL_MODE_STREAM,
                                         .path = path};
        if (peal_path_try(&space, reason))
            return false;
    }
    return true;
}

static void look_at_paths(peal_device *const *device, int count, peal_findings *out)
{
    static const struct {
        peal_path path;
        const char *title, *how;
    } paths[] = {{PEAL_PATH_VMM, "path p2p by VMM", ""},
                 {PEAL_PATH_IPC, "path p2p by IPC",
                  "; a job tries whether its handles can be opened"},
                 {PEAL_PATH_STAGED, "path shm staging", ", by host memory that each has mapped"}};
    const char *reach = count == 1 ? "processes that share the GPU" : "all pairs of GPUs";
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        char reason[PEAL_REASON_BYTES] = "";
        if (try_path(paths[i].path, device, count, reason))
            findings_add(out, paths[i].title, FINDING_ON, "usable between %s%s (--transport %s)",
                         reach, paths[i].how, peal_path_name(paths[i].path));
        else
            findings_add(out, paths[i].title, FINDING_OFF, "%s", reason);
    }
}

/* Opens every device as a process of its own would. */
static void look_at_transports(int count, int all, peal_findings *out)
{
    const peal_backend_ops *backend = peal_backend_accelerated();
    peal_device *device[MOST_DEVICES] = {NULL};
    const char *reason = NULL;
    int opened = 0;
    peal_device_request request = {.size = sizeof(request), .local_processes = all};
    for (; opened < count && !reason; opened += !reason) {
        request.local_process = opened;
        reason = backend->open(&request, &device[opened]);
    }
    if (reason)
        findings_add(out, "paths", FINDING_OFF, "GPU %d cannot be opened: %s", opened, reason);
    else if (count > 0)
        look_at_paths(device, count, out);
    while (opened > 0)
        backend->close(device[--opened]);
}

static void look_at_nvrtc(peal_findings *out)
{
    const char *reason = NULL;
    const peal_nvrtc *nvrtc = peal_nvrtc_open(&reason);
    if (nvrtc)
        findings_add(out, "nvrtc", FINDING_ON, "%d.%d", nvrtc->major, nvrtc->minor);
    else
        findings_add(out, "nvrtc", FINDING_OFF, "%s", reason);
}

void look_at_gpus(peal_findings *out)
{
    const char *reason = NULL;
    const peal_cuda_driver *driver = peal_cuda_open(&reason);
    if (!driver) {
        findings_add(out, "gpu", FINDING_OFF, "%s", reason);
        return;
    }
    gpu list[MOST_DEVICES];
    int count = 0;
    findings_add(out, "gpu", FINDING_ON, "%d device%s, driver for CUDA %d.%d", driver->device_count,
                 driver->device_count == 1 ? "" : "s", driver->version / 1000,
                 driver->version % 1000 / 10);
    look_at_nvrtc(out);
    for (int i = 0; i < driver->device_count && i < MOST_DEVICES; i++) {
        gpu *g = &list[count];
        *g = (gpu){.driver = driver, .number = i};
        if (driver->cuDeviceGet_(&g->device, i))
            continue;
        count++;
        look_at_device(g, out);
        look_at_streams(g, out);
        look_at_memory(g, out);
        look_at_launches(g, out);
    }
    for (int i = 0; i < count; i++)
        for (int k = i + 1; k < count; k++)
            look_at_link(&list[i], &list[k], out);
    look_at_transports(count, driver->device_count, out);
}

#else

void look_at_gpus(peal_findings *out)
{
    findings_add(out, "gpu", FINDING_OFF, "built without CUDA's headers: only the host backend");
}

#endif

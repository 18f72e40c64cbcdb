/* Finds the times of the machine at hand. The files of machines/ are in the library as text. */
#include "runtime/select/known_times.h"
#include "base/text_file.h"
#include "dsl/dsl.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const peal_text_file peal_machine_files[]; /* of machines/, see meson.build */

/* The file for GPUs whose name has the word; the last one is for all others. */
static const struct {
    const char *word, *file;
} gpus[] = {{"H200", "h200x4.yaml"}, {"H100", "h100x4.yaml"}, {"", "h200x4.yaml"}};
enum { GPUS = sizeof(gpus) / sizeof(gpus[0]) };

static const char host_file[] = "host2.yaml";

static const peal_text_file *own_file(const char *name)
{
    for (const peal_text_file *f = peal_machine_files; f->name; f++)
        if (!strcmp(f->name, name))
            return f;
    return NULL;
}

peal_status peal_times_read(const char *file, peal_diagnostics *diagnostics, peal_machine *machine,
                            peal_machine_times *times)
{
    static const char folder[] = "machines/";
    bool in_folder = !strncmp(file, folder, sizeof(folder) - 1);
    const peal_text_file *own = own_file(in_folder ? file + sizeof(folder) - 1 : file);
    if (!own || access(file, F_OK) == 0)
        return peal_machine_read(file, diagnostics, machine, times);
    return peal_machine_read_memory(file, own->text, strlen(own->text), diagnostics, machine,
                                    times);
}

/* A build that reads no YAML knows nothing: that is no error. */
static void read_own(const char *device, int devices, peal_known_times *out)
{
    peal_machine machine;
    int k = 0;
    while (device && k < GPUS - 1 && !strstr(device, gpus[k].word))
        k++;
    const peal_text_file *file = own_file(device ? gpus[k].file : host_file);
    if (!file || peal_machine_read_memory(file->name, file->text, strlen(file->text), NULL,
                                          &machine, &out->times))
        return;
    out->times.nodes = 1;
    out->times.devices = devices;
    snprintf(out->from, sizeof(out->from), "machines/%s%s", file->name,
             device && k == GPUS - 1 ? ", another GPU's" : "");
}

peal_status peal_times_known(const char *file, const char *device, int devices,
                             peal_diagnostics *diagnostics, peal_known_times *out)
{
    const char *variable = getenv("PEAL_MACHINE");
    peal_machine machine;
    *out = (peal_known_times){.times = {.given = false}};
    if (!file && variable && *variable)
        file = variable;
    if (file) {
        peal_status status = peal_times_read(file, diagnostics, &machine, &out->times);
        if (status)
            return status;
        snprintf(out->from, sizeof(out->from), "%s", file);
    }
    if (!file || !out->times.given || out->times.accelerator != (device != NULL))
        read_own(device, devices, out);
    return PEAL_STATUS_OK;
}

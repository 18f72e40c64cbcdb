/* `peal version`: version, and which parts this build has. */
#include "tools/command.h"
#include "tools/output.h"

#include "runtime/session/device.h"

#include "peal_config.h"

static const struct {
    const char *name, *what;
    bool found;
} parts[] = {
    {"yaml", "specs in YAML (libyaml)", PEAL_HAVE_YAML},
    {"pmix", "several processes, launchers (libpmix)", PEAL_HAVE_PMIX},
    {"hwloc", "thread placement (hwloc)", PEAL_HAVE_HWLOC},
};
enum { PART_COUNT = sizeof(parts) / sizeof(*parts) };

static peal_status run(const peal_options *options, peal_diagnostics *diagnostics)
{
    const peal_backend_ops *accelerated = peal_backend_accelerated();
    (void)diagnostics;
    if (options->format == FORMAT_JSON) {
        json_t *object = json_begin("peal.version/1");
        json_object_set_new(object, "version", json_string(PEAL_VERSION));
        json_object_set_new(object, "compiler", json_string(__VERSION__));
        json_t *backends = json_pack("[s]", peal_backend_host.name);
        if (accelerated)
            json_array_append_new(backends, json_string(accelerated->name));
        json_object_set_new(object, "backends", backends);
        for (int i = 0; i < PART_COUNT; i++)
            json_object_set_new(object, parts[i].name, json_boolean(parts[i].found));
        json_print(object);
        return PEAL_STATUS_OK;
    }
    printf("peal %s\n", PEAL_VERSION);
    printf("  %-9s %s%s%s\n", "backends", peal_backend_host.name, accelerated ? " " : "",
           accelerated ? accelerated->name : "");
    for (int i = 0; i < PART_COUNT; i++)
        printf("  %-9s %-4s %s\n", parts[i].name, parts[i].found ? "yes" : "no", parts[i].what);
    printf("  %-9s %s\n", "compiler", __VERSION__);
    return PEAL_STATUS_OK;
}

const peal_command version_command = {
    "version", VERB_VERSION,
    "usage: peal version [--json]\n"
    "\n"
    "Prints peal's version and which parts this build has. `peal --version` is the same.\n"
    "\n"
    "  --json      as JSON (schema peal.version/1)\n"
    "  -h, --help  this text\n"
    "\n"
    "example: peal version --json\n",
    run};

/* Processes whose kernels are made of different text: refused before anything is allocated, with
 * what differs; folders may differ. */
#define _GNU_SOURCE
#include "tests/runtime/job.h"

#include <peal/graph.h>
#include <peal/plan.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char kernel_text[] = "#include \"value.h\"\n"
                                  "PEAL_KERNEL(fill)(peal_tile t, PEAL_WRITE(double, u))\n{\n"
                                  "    PEAL_FOR_1D(t, x)\n        PEAL_AT(u, x) = VALUE;\n}\n";

/* One file of a process, and what the others have there. */
typedef struct variant {
    const char *file, *here, *there;
    const char *said; /* NULL: no difference */
} variant;

static const variant variants[] = {
    {"k.c",
     "PEAL_KERNEL(fill)(peal_tile t, PEAL_WRITE(double, u))\n{ PEAL_FOR_1D(t, x) PEAL_AT(u, x) = "
     "2; }\n",
     kernel_text, "kernels k.c"},
    {"value.h", "#include \"deep/deeper.h\"\n#define VALUE 2\n",
     "#include \"deep/deeper.h\"\n#define VALUE 1\n", "included value.h"},
    {"deep/deeper.h", "#define OTHER 2\n", "#define OTHER 1\n", "included deep/deeper.h"},
    {"code.cubin", "second\n", "first\n", "kernels code.cubin"},
    {"value.h", "#include \"deep/deeper.h\"\n#define VALUE 1\n",
     "#include \"deep/deeper.h\"\n#define VALUE 1\n", NULL},
};
enum { VARIANTS = sizeof(variants) / sizeof(variants[0]), CC_DIFFERS = VARIANTS };

static char scratch[] = "/tmp/peal-kernel-text-XXXXXX";

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    TEAM_CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* A folder of this process with all files, one of them as the variant says. */
static const char *make_folder(int process, const variant *v, char *folder, size_t bytes)
{
    static const variant common[] = {{"k.c", NULL, kernel_text, NULL},
                                     {"value.h", NULL,
                                      "#include \"deep/deeper.h\"\n#define VALUE 1\n", NULL},
                                     {"deep/deeper.h", NULL, "#define OTHER 1\n", NULL},
                                     {"code.cubin", NULL, "first\n", NULL}};
    char deep[160];
    snprintf(folder, bytes, "%s/%d", scratch, process);
    snprintf(deep, sizeof(deep), "%s/deep", folder);
    mkdir(folder, 0700);
    mkdir(deep, 0700);
    for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
        write_text(folder, common[i].file, common[i].there);
    if (v && process == 1)
        write_text(folder, v->file, v->here);
    return folder;
}

static peal_graph *filling(const char *folder)
{
    peal_graph *g;
    TEAM_CHECK(peal_graph_create("filling", &g) == PEAL_STATUS_OK);
    peal_graph_set_folder(g, folder);
    peal_graph_add_kernels(g, "k.c", PEAL_HERE);
    peal_graph_add_kernels(g, "code.cubin", PEAL_HERE);
    peal_graph_add_field(g, .name = "u", .size = "12");
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_task(g, .name = "fill", .box = {.name = "u"}, .write = {{.name = "u"}});
    peal_graph_end(g);
    return g;
}

/* All variants in a row: the session stays good. */
static int member_has_other_kernels(test_team *team, int process)
{
    peal_session *session;
    char folder[120];
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    for (int i = 0; i <= CC_DIFFERS; i++) {
        const variant *v = i < VARIANTS ? &variants[i] : NULL;
        const char *said = v ? v->said : "compiler cc -DMORE";
        peal_plan *plan = NULL;
        peal_graph *g = filling(make_folder(process, v, folder, sizeof(folder)));
        if (i == CC_DIFFERS && process == 1)
            setenv("CC", "cc -DMORE", 1);
        peal_status status = peal_graph_compile(g, session, NULL, &plan);
        TEAM_CHECK(status == (said ? PEAL_STATUS_SPEC : PEAL_STATUS_OK));
        TEAM_CHECK(!said ||
                   job_reported(session,
                                process == 1 ? PEAL_E_GRAPHS_DIFFER : PEAL_E_PEER_CALL_FAILED,
                                said));
        TEAM_CHECK(!said ||
                   job_reported(session,
                                process == 1 ? PEAL_E_GRAPHS_DIFFER : PEAL_E_PEER_CALL_FAILED,
                                "process 1 differ"));
        peal_plan_destroy(plan);
        peal_graph_destroy(g);
    }
    peal_session_destroy(session);
    return 0;
}

static void kernels_are_compared(void **state)
{
    (void)state;
    unsetenv("CC");
    assert_non_null(mkdtemp(scratch));
    job_run_all(3, member_has_other_kernels);
    char command[80];
    snprintf(command, sizeof(command), "rm -r %s", scratch);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_are_compared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

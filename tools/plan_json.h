/* A schedule as JSON (schema peal.plan/1). */
#ifndef PEAL_TOOLS_PLAN_JSON_H
#define PEAL_TOOLS_PLAN_JSON_H

#include <peal/plugin/schedule.h>

#include <jansson.h>

json_t *json_schedule(const peal_schedule *schedule);

#endif

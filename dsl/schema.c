/* The JSON Schema of the language (draft 7), from the key table. What JSON cannot say, such as
 * which names exist, is left to the reader. */
#include "dsl/dsl.h"
#include "dsl/keys.h"

#include <jansson.h>
#include <string.h>

/* Definitions that key types refer to, in JSON. */
static const struct {
    const char *name, *json;
} definitions[] = {
    {"scalar", "{'type': ['integer', 'number', 'string', 'boolean']}"},
    {"text", "{'type': ['string', 'integer', 'number']}"},
    {"texts", "{'anyOf': [{'$ref': '#/definitions/text'}, {'type': 'array', 'items': "
              "{'$ref': '#/definitions/text'}}]}"},
    {"identifier", "{'type': 'string', 'minLength': 1}"},
    {"names", "{'anyOf': [{'$ref': '#/definitions/identifier'}, {'type': 'array', 'items': "
              "{'$ref': '#/definitions/identifier'}}]}"},
    {"pair", "{'type': 'array', 'items': {'$ref': '#/definitions/identifier'}, 'minItems': 2, "
             "'maxItems': 2}"},
    {"expression", "{'type': ['integer', 'number', 'string']}"},
    {"condition", "{'type': ['boolean', 'string']}"},
    {"axes", "{'anyOf': [{'$ref': '#/definitions/expression'}, {'type': 'array', 'minItems': 1, "
             "'maxItems': 4, 'items': {'$ref': '#/definitions/expression'}}]}"},
    {"booleans", "{'anyOf': [{'type': 'boolean'}, {'type': 'array', 'maxItems': 3, 'items': "
                 "{'type': ['boolean', 'string']}}]}"},
    {"list", "{'anyOf': [{'$ref': '#/definitions/expression'}, {'type': 'array', 'items': "
             "{'$ref': '#/definitions/expression'}}]}"},
    {"ends", "{'type': 'array', 'minItems': 2, 'maxItems': 2, 'items': "
             "{'$ref': '#/definitions/expression'}}"},
    {"amount", "{'anyOf': [{'$ref': '#/definitions/expression'}, {'type': 'array', 'maxItems': 4, "
               "'items': {'anyOf': [{'$ref': '#/definitions/expression'}, "
               "{'$ref': '#/definitions/ends'}]}}]}"},
    {"ranges", "{'type': 'array', 'minItems': 1, 'maxItems': 4, 'items': "
               "{'$ref': '#/definitions/ends'}}"},
    {"cuts", "{'anyOf': [{'enum': ['auto']}, {'type': 'array', 'minItems': 1, 'maxItems': 3, "
             "'items': {'anyOf': [{'enum': ['auto']}, {'type': 'array', 'minItems': 2, 'items': "
             "{'$ref': '#/definitions/expression'}}]}}]}"},
    {"direction", "{'type': 'array', 'minItems': 1, 'maxItems': 3, 'items': "
                  "{'$ref': '#/definitions/expression'}}"},
    {"peer", "{'anyOf': [{'$ref': '#/definitions/expression'}, "
             "{'$ref': '#/definitions/direction'}, {'$ref': '#/definitions/peers'}]}"},
    {"params", "{'type': 'object', 'additionalProperties': {'anyOf': "
               "[{'$ref': '#/definitions/scalar'}, {'$ref': '#/definitions/param'}]}}"},
    {"defines", "{'type': 'object', 'additionalProperties': {'$ref': '#/definitions/expression'}}"},
    {"fields", "{'type': 'object', 'additionalProperties': {'$ref': '#/definitions/field'}}"},
    {"buffers", "{'type': 'object', 'additionalProperties': {'$ref': '#/definitions/buffer'}}"},
    {"points", "{'anyOf': [{'$ref': '#/definitions/identifier'}, {'$ref': '#/definitions/ranges'}, "
               "{'$ref': '#/definitions/counted'}, {'type': 'object', 'minProperties': 1, "
               "'maxProperties': 1, 'additionalProperties': {'anyOf': "
               "[{'$ref': '#/definitions/ranges'}, {'$ref': '#/definitions/box'}]}}]}"},
    {"message", "{'anyOf': [{'$ref': '#/definitions/identifier'}, {'type': 'object', "
                "'minProperties': 1, 'maxProperties': 1, 'additionalProperties': {'anyOf': "
                "[{'$ref': '#/definitions/ranges'}, {'$ref': '#/definitions/piece'}]}}]}"},
    {"access_item", "{'anyOf': [{'$ref': '#/definitions/identifier'}, {'type': 'object', "
                    "'additionalProperties': {'anyOf': [{'enum': ['tile', 'whole', 'inside']}, "
                    "{'$ref': '#/definitions/ranges'}, {'$ref': '#/definitions/access'}]}}]}"},
    {"accesses", "{'anyOf': [{'$ref': '#/definitions/access_item'}, {'type': 'array', "
                 "'maxItems': 16, 'items': {'$ref': '#/definitions/access_item'}}]}"},
    {"exchange_field", "{'anyOf': [{'$ref': '#/definitions/identifier'}, {'type': 'object', "
                       "'additionalProperties': {'$ref': '#/definitions/exchange_item'}}]}"},
    {"exchange_fields", "{'anyOf': [{'$ref': '#/definitions/exchange_field'}, {'type': 'array', "
                        "'minItems': 1, 'maxItems': 16, 'items': "
                        "{'$ref': '#/definitions/exchange_field'}}]}"},
    {"reductions", "{'type': 'object', 'minProperties': 1, 'maxProperties': 8, "
                   "'additionalProperties': {'enum': ['sum', 'min', 'max']}}"},
    {"columns", "{'type': 'object', 'minProperties': 1, 'maxProperties': 16, "
                "'additionalProperties': {'$ref': '#/definitions/expression'}}"},
    {"part", "{'anyOf': [{'enum': ['interior', 'boundary']}, {'$ref': '#/definitions/amount'}]}"}};

/* The same of machine files. */
static const struct {
    const char *name, *json;
} machine_definitions[] = {
    {"modes", "{'type': 'object', 'propertyNames': {'enum': "
              "['serial', 'sync', 'stream', 'graph', 'fused']}, "
              "'additionalProperties': {'$ref': '#/definitions/mode_times'}}"},
    {"kernels",
     "{'type': 'object', 'additionalProperties': {'$ref': '#/definitions/kernel_times'}}"},
    {"links", "{'type': 'object', 'propertyNames': {'enum': "
              "['device', 'p2p', 'host', 'network']}, "
              "'additionalProperties': {'$ref': '#/definitions/link_times'}}"}};

static json_t *reference(const char *name)
{
    return json_pack("{s:o}", "$ref", json_sprintf("#/definitions/%s", name));
}

static json_t *parse_json(const char *text)
{
    char buffer[1024];
    size_t length = strlen(text);
    if (length >= sizeof(buffer))
        return NULL;
    for (size_t i = 0; i <= length; i++)
        buffer[i] = text[i] == '\'' ? '"' : text[i];
    return json_loads(buffer, 0, NULL);
}

static json_t *word_schema(const char *words)
{
    json_t *list = json_array();
    while (*words) {
        size_t length = strcspn(words, " ");
        json_array_append_new(list, json_stringn(words, length));
        words += length + (words[length] == ' ');
    }
    return json_pack("{s:o}", "enum", list);
}

static json_t *key_schema(const peal_key *key)
{
    const char *definition = peal_key_kind_of(key)->definition;
    if (!definition)
        return word_schema(key->words);
    return *definition == '{' ? parse_json(definition) : reference(definition);
}

/* draft 7 ignores what stands beside a $ref: the description goes around it. */
static json_t *described(json_t *schema, const char *doc)
{
    return json_pack("{s:s, s:[o]}", "description", doc, "allOf", schema);
}

static json_t *context_schema(const peal_context *context)
{
    json_t *properties = json_object(), *required = json_array();
    for (int i = 0; i < context->key_count; i++) {
        const peal_key *key = &context->key[i];
        json_object_set_new(properties, key->name, described(key_schema(key), key->doc));
        if (key->required)
            json_array_append_new(required, json_string(key->name));
    }
    json_t *schema =
        json_pack("{s:s, s:s, s:s, s:b, s:o}", "title", context->title, "description", context->doc,
                  "type", "object", "additionalProperties", 0, "properties", properties);
    if (json_array_size(required) > 0)
        json_object_set_new(schema, "required", required);
    else
        json_decref(required);
    return schema;
}

static json_t *body_schema(void)
{
    json_t *list = json_array();
    for (int id = PEAL_CONTEXT_TASK; id < PEAL_CONTEXT_COUNT; id++)
        json_array_append_new(list, reference(peal_context_at((peal_context_id)id)->name));
    json_t *statement = json_pack("{s:o}", "anyOf", list);
    return json_pack("{s:[O, {s:s, s:o}]}", "anyOf", statement, "type", "array", "items",
                     statement);
}

static peal_status print_root(json_t *root, FILE *stream)
{
    json_object_set_new(root, "$schema", json_string("http://json-schema.org/draft-07/schema#"));
    bool written = root && !json_dumpf(root, stream, JSON_INDENT(2) | JSON_SORT_KEYS) &&
                   fputc('\n', stream) != EOF;
    json_decref(root);
    return written ? PEAL_STATUS_OK : PEAL_STATUS_ENVIRONMENT;
}

peal_status peal_schema_print_machine(FILE *stream)
{
    json_t *all = json_object();
    for (size_t i = 0; i < sizeof(machine_definitions) / sizeof(machine_definitions[0]); i++)
        json_object_set_new(all, machine_definitions[i].name,
                            parse_json(machine_definitions[i].json));
    for (int id = PEAL_CONTEXT_MACHINE + 1; id < PEAL_CONTEXT_SPEC; id++) {
        const peal_context *context = peal_context_at((peal_context_id)id);
        json_object_set_new(all, context->name, context_schema(context));
    }
    json_t *root = context_schema(peal_context_at(PEAL_CONTEXT_MACHINE));
    json_object_set_new(root, "definitions", all);
    return print_root(root, stream);
}

peal_status peal_schema_print(FILE *stream)
{
    json_t *all = json_object();
    for (size_t i = 0; i < sizeof(definitions) / sizeof(definitions[0]); i++)
        json_object_set_new(all, definitions[i].name, parse_json(definitions[i].json));
    for (int id = PEAL_CONTEXT_PARAM; id < PEAL_CONTEXT_COUNT; id++) {
        const peal_context *context = peal_context_at((peal_context_id)id);
        json_object_set_new(all, context->name, context_schema(context));
    }
    json_object_set_new(all, "body", body_schema());
    json_t *root = context_schema(peal_context_at(PEAL_CONTEXT_SPEC));
    json_object_set_new(root, "definitions", all);
    return print_root(root, stream);
}

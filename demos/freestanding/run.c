/* Run a freestanding module with wasmtime's C API: ./run model.wasm. The module has one float32 input, "input" of
   1x1x28x28, and one output, 10 logits. Build with: cc run.c -lwasmtime -o run */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wasmtime.h>

static wasmtime_context_t *context;
static wasmtime_instance_t instance;

static void fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static wasmtime_extern_t export(const char *name) {
  wasmtime_extern_t found;
  if (!wasmtime_instance_export_get(context, &instance, name, strlen(name), &found)) fail(name);
  return found;
}

/* A function of the module, with its argument if it takes one. */
static uint32_t call(const char *name, size_t count, int32_t argument) {
  wasmtime_extern_t function = export(name);
  wasmtime_val_t given = {.kind = WASMTIME_I32, .of.i32 = argument}, result;
  wasm_trap_t *trap = NULL;
  if (wasmtime_func_call(context, &function.of.func, &given, count, &result, 1, &trap) || trap) fail(name);
  return (uint32_t)result.of.i32;
}

int main(int count, char **arguments) {
  FILE *file = count == 2 ? fopen(arguments[1], "rb") : NULL;
  if (!file) fail("usage: run model.wasm");
  fseek(file, 0, SEEK_END);
  size_t length = (size_t)ftell(file);
  uint8_t *bytes = malloc(length);
  rewind(file);
  if (!bytes || fread(bytes, 1, length, file) != length) fail("the file cannot be read");

  wasm_engine_t *engine = wasm_engine_new();
  wasmtime_module_t *module = NULL;
  wasm_trap_t *trap = NULL;
  context = wasmtime_store_context(wasmtime_store_new(engine, NULL, NULL));
  if (wasmtime_module_new(engine, bytes, length, &module)) fail("not a module");
  if (wasmtime_instance_new(context, module, NULL, 0, &instance, &trap) || trap) fail("no instance");

  wasmtime_extern_t memory = export("memory");
  uint8_t *data = wasmtime_memory_data(context, &memory.of.memory); /* it never moves */
  float *input = (float *)(data + call("input", 1, 0));
  for (int i = 0; i < 28 * 28; i++) input[i] = 0.5f;
  if (call("run", 0, 0)) fail("the run failed");
  float *logits = (float *)(data + call("output", 1, 0));
  printf("logits");
  for (int i = 0; i < 10; i++) printf(" %.9g", logits[i]);
  printf("\n");
  return 0;
}

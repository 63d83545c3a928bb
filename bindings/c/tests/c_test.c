/* A program in C99 against the C interface: what each function promises, on the host and on an OpenCL device. */
#include <dnnopt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define CHECK(condition)                                                                   \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      fprintf(stderr, "line %d: %s (last error: %s)\n", __LINE__, #condition, dnnopt_last_error()); \
      ++failures;                                                                          \
    }                                                                                      \
  } while (0)

static const char* const small = DNNOPT_SOURCE_DIR "/bindings/c/tests/small.onnx";

static void count_log(void* user, const char* code, const char* text) {
  if (code[0] != '\0' && text[0] != '\0') ++*(int*)user;
}

/* A file's content; the caller frees it. */
static unsigned char* content_of(const char* path, size_t* size) {
  FILE* const file = fopen(path, "rb");
  unsigned char* bytes = NULL;
  if (file == NULL) return NULL;
  if (fseek(file, 0, SEEK_END) == 0) {
    *size = (size_t)ftell(file);
    rewind(file);
    bytes = malloc(*size + 1);
    if (bytes != NULL && fread(bytes, 1, *size, file) != *size) *size = 0;
  }
  fclose(file);
  return bytes;
}

static void test_errors(void) {
  dnnopt_model* model = NULL;
  dnnopt_options* options = NULL;
  CHECK(strcmp(dnnopt_version(), "0.") > 0);
  CHECK(dnnopt_model_load("nowhere.onnx", NULL, &model) == DNNOPT_FILE_NOT_FOUND);
  CHECK(strstr(dnnopt_last_error(), "nowhere.onnx") != NULL);
  CHECK(model == NULL);
  CHECK(dnnopt_model_load(NULL, NULL, &model) == DNNOPT_INVALID_ARGUMENT);
  CHECK(dnnopt_model_load_bytes("\xff\xff", 2, NULL, NULL, &model) == DNNOPT_MALFORMED_PROTOBUF);
  CHECK(dnnopt_options_create(&options) == DNNOPT_OK);
  CHECK(dnnopt_options_set(options, "devise", "opencl") == DNNOPT_INVALID_ARGUMENT);
  CHECK(strstr(dnnopt_last_error(), "require_device") != NULL);
  CHECK(dnnopt_options_set(options, "precision", "fp7") == DNNOPT_INVALID_ARGUMENT);
  CHECK(dnnopt_options_set(options, "dim:batch", "-2") == DNNOPT_INVALID_ARGUMENT);
  CHECK(dnnopt_options_set(options, "dim:", "2") == DNNOPT_INVALID_ARGUMENT);
  CHECK(dnnopt_options_set(options, "range:batch", "1") == DNNOPT_INVALID_ARGUMENT);
  CHECK(dnnopt_options_set(options, "shape:x", "1x2") == DNNOPT_OK);
  CHECK(dnnopt_options_set(options, "device", "opencl:no such device") == DNNOPT_OK);
  CHECK(dnnopt_model_load(small, options, &model) == DNNOPT_OK);
  {
    dnnopt_session* session = NULL;
    const dnnopt_status status = dnnopt_session_create(model, options, &session);
    CHECK(status == DNNOPT_UNKNOWN_DEVICE || status == DNNOPT_OPENCL_UNAVAILABLE);
    CHECK(session == NULL);
  }
  dnnopt_model_release(model);
  dnnopt_options_release(options);
  /* NULL is nothing to release, and nothing to count. */
  dnnopt_model_release(NULL);
  dnnopt_session_release(NULL);
  dnnopt_outputs_release(NULL);
  dnnopt_options_release(NULL);
  dnnopt_text_release(NULL);
  CHECK(dnnopt_session_count(NULL, DNNOPT_INPUTS) == 0);
  CHECK(dnnopt_session_name(NULL, DNNOPT_INPUTS, 0) == NULL);
  CHECK(dnnopt_outputs_count(NULL) == 0);
}

static void test_ports(const dnnopt_session* session) {
  CHECK(dnnopt_session_count(session, DNNOPT_INPUTS) == 2);
  CHECK(dnnopt_session_count(session, DNNOPT_OUTPUTS) == 3);
  CHECK(dnnopt_session_count(session, 7) == 0);
  CHECK(strcmp(dnnopt_session_name(session, DNNOPT_INPUTS, 0), "x") == 0);
  CHECK(strcmp(dnnopt_session_name(session, DNNOPT_OUTPUTS, 2), "t") == 0);
  CHECK(dnnopt_session_name(session, DNNOPT_OUTPUTS, 3) == NULL);
  CHECK(dnnopt_session_type(session, DNNOPT_INPUTS, 0) == DNNOPT_FLOAT32);
  CHECK(dnnopt_session_type(session, DNNOPT_INPUTS, 1) == DNNOPT_STRING);
  CHECK(dnnopt_session_rank(session, DNNOPT_INPUTS, 0) == 2);
  CHECK(dnnopt_session_rank(session, DNNOPT_INPUTS, 2) == -1);
  CHECK(dnnopt_session_dim(session, DNNOPT_INPUTS, 0, 0) == -1);
  CHECK(dnnopt_session_dim(session, DNNOPT_INPUTS, 0, 1) == 2);
  CHECK(dnnopt_session_dim(session, DNNOPT_INPUTS, 0, 2) == -1);
  CHECK(strcmp(dnnopt_session_dim_name(session, DNNOPT_INPUTS, 0, 0), "batch") == 0);
  CHECK(dnnopt_session_dim_name(session, DNNOPT_INPUTS, 0, 1) == NULL);
}

/* x stays in one buffer, and y goes to another: what the second run reads is what the first one gave. */
static void test_buffers(dnnopt_session* session, int on_device) {
  const float x[4] = {1, 2, 3, 4};
  float y[4] = {0, 0, 0, 0};
  const int64_t dims[2] = {2, 2};
  const int64_t wrong[2] = {2, 3};
  const char* words[1] = {"one"};
  const int64_t count[1] = {1};
  const char* const rest[1] = {"t"};
  dnnopt_tensor text;
  dnnopt_buffer* state[2] = {NULL, NULL};
  dnnopt_outputs* outputs = NULL;
  int run = 0;
  text.name = "s";
  text.type = DNNOPT_STRING;
  text.rank = 1;
  text.dims = count;
  text.data = words;
  text.bytes = sizeof words;
  if (!on_device) {
    CHECK(dnnopt_buffer_copy(session, &state[0], x, NULL, sizeof x) == DNNOPT_UNSUPPORTED);
    CHECK(state[0] == NULL);
    return;
  }
  CHECK(dnnopt_buffer_copy(session, NULL, x, NULL, sizeof x) == DNNOPT_INVALID_ARGUMENT);
  CHECK(dnnopt_buffer_copy(session, &state[0], x, NULL, 0) == DNNOPT_INVALID_ARGUMENT);
  CHECK(dnnopt_buffer_copy(session, &state[0], x, NULL, sizeof x) == DNNOPT_OK);
  CHECK(dnnopt_buffer_copy(session, &state[1], NULL, NULL, sizeof x) == DNNOPT_OK);
  CHECK(dnnopt_buffer_copy(session, &state[0], NULL, y, sizeof x + 1) == DNNOPT_INVALID_ARGUMENT);
  CHECK(dnnopt_session_bind(session, "nothing", state[0], dims, 2) == DNNOPT_MISSING_INPUT);
  CHECK(dnnopt_session_bind(session, "x", state[0], wrong, 2) == DNNOPT_SHAPE_MISMATCH);
  for (run = 0; run < 2; ++run) {
    CHECK(dnnopt_session_bind(session, "x", state[run % 2], dims, 2) == DNNOPT_OK);
    CHECK(dnnopt_session_bind(session, "y", state[1 - run % 2], NULL, 0) == DNNOPT_OK);
    CHECK(dnnopt_session_run(session, &text, 1, rest, 1, &outputs) == DNNOPT_OK);
    CHECK(dnnopt_outputs_count(outputs) == 1);
    dnnopt_outputs_release(outputs);
    outputs = NULL;
  }
  CHECK(dnnopt_buffer_copy(session, &state[0], NULL, y, sizeof y) == DNNOPT_OK);
  CHECK(y[0] == 3 && y[1] == 6 && y[2] == 5 && y[3] == 8);
  /* All that is not bound. */
  CHECK(dnnopt_session_run(session, &text, 1, NULL, 0, &outputs) == DNNOPT_OK);
  CHECK(dnnopt_outputs_count(outputs) == 2);
  dnnopt_outputs_release(outputs);
  CHECK(dnnopt_session_bind(session, "x", NULL, NULL, 0) == DNNOPT_OK);
  CHECK(dnnopt_session_bind(session, "y", NULL, NULL, 0) == DNNOPT_OK);
  dnnopt_buffer_release(state[0]);
  dnnopt_buffer_release(state[1]);
  dnnopt_buffer_release(NULL);
}

static void test_run(dnnopt_session* session) {
  float x[4] = {1, 2, 3, 4};
  const int64_t dims[2] = {2, 2};
  const char* words[3] = {"one", "", "three"};
  const int64_t count[1] = {3};
  const char* const wanted[2] = {"t", "y"};
  const char* const unknown[1] = {"nothing"};
  dnnopt_tensor inputs[2];
  dnnopt_tensor got;
  dnnopt_outputs* outputs = NULL;
  inputs[0].name = "x";
  inputs[0].type = DNNOPT_FLOAT32;
  inputs[0].rank = 2;
  inputs[0].dims = dims;
  inputs[0].data = x;
  inputs[0].bytes = sizeof x;
  inputs[1].name = "s";
  inputs[1].type = DNNOPT_STRING;
  inputs[1].rank = 1;
  inputs[1].dims = count;
  inputs[1].data = words;
  inputs[1].bytes = sizeof words;

  CHECK(dnnopt_session_run(session, inputs, 2, NULL, 0, &outputs) == DNNOPT_OK);
  CHECK(dnnopt_outputs_count(outputs) == 3);
  /* An output that is an input has memory of its own. */
  x[0] = 99;
  CHECK(dnnopt_outputs_get(outputs, 1, &got) == DNNOPT_OK);
  CHECK(strcmp(got.name, "z") == 0 && got.bytes == sizeof x && got.data != x && ((const float*)got.data)[0] == 1);
  x[0] = 1;
  CHECK(dnnopt_outputs_get(outputs, 0, &got) == DNNOPT_OK);
  CHECK(got.type == DNNOPT_FLOAT32 && got.rank == 2 && got.dims[0] == 2 && got.dims[1] == 2);
  CHECK(((const float*)got.data)[0] == 2 && ((const float*)got.data)[3] == 6);
  CHECK(dnnopt_outputs_get(outputs, 3, &got) == DNNOPT_INVALID_ARGUMENT);
  dnnopt_outputs_release(outputs);
  outputs = NULL;

  /* Some outputs, in the order in which they are asked for. */
  CHECK(dnnopt_session_run(session, inputs, 2, wanted, 2, &outputs) == DNNOPT_OK);
  CHECK(dnnopt_outputs_count(outputs) == 2);
  CHECK(dnnopt_outputs_get(outputs, 0, &got) == DNNOPT_OK);
  CHECK(got.type == DNNOPT_STRING && got.bytes == sizeof words);
  CHECK(strcmp(((const char* const*)got.data)[2], "three") == 0);
  CHECK(((const char* const*)got.data)[1][0] == '\0');
  dnnopt_outputs_release(outputs);
  outputs = NULL;

  CHECK(dnnopt_session_run(session, inputs, 2, unknown, 1, &outputs) == DNNOPT_INVALID_ARGUMENT);
  CHECK(strstr(dnnopt_last_error(), "nothing") != NULL);
  CHECK(dnnopt_session_run(session, inputs, 1, NULL, 0, &outputs) == DNNOPT_MISSING_INPUT);
  inputs[0].bytes = sizeof x - 4;
  CHECK(dnnopt_session_run(session, inputs, 2, NULL, 0, &outputs) == DNNOPT_INVALID_ARGUMENT);
  inputs[0].bytes = sizeof x;
  inputs[0].type = DNNOPT_INT32;
  CHECK(dnnopt_session_run(session, inputs, 2, NULL, 0, &outputs) == DNNOPT_TYPE_MISMATCH);
  inputs[0].type = 99;
  CHECK(dnnopt_session_run(session, inputs, 2, NULL, 0, &outputs) == DNNOPT_INVALID_ARGUMENT);
  inputs[0].type = DNNOPT_FLOAT32;
  inputs[0].rank = 1;
  {
    const int64_t flat[1] = {4};
    inputs[0].dims = flat;
    CHECK(dnnopt_session_run(session, inputs, 2, NULL, 0, &outputs) == DNNOPT_SHAPE_MISMATCH);
  }
  inputs[0].rank = 2;
  inputs[0].dims = dims;
  inputs[1].name = "x";
  CHECK(dnnopt_session_run(session, inputs, 2, NULL, 0, &outputs) == DNNOPT_INVALID_ARGUMENT);
  CHECK(outputs == NULL);
}

/* A clone has the ports, and runs when what it was made of is gone. */
static void test_clone(dnnopt_session* session) {
  dnnopt_session* clone = NULL;
  dnnopt_session* second = NULL;
  CHECK(dnnopt_session_clone(NULL, &clone) == DNNOPT_INVALID_ARGUMENT);
  CHECK(dnnopt_session_clone(session, NULL) == DNNOPT_INVALID_ARGUMENT);
  CHECK(dnnopt_session_clone(session, &clone) == DNNOPT_OK);
  CHECK(dnnopt_session_clone(clone, &second) == DNNOPT_OK);
  dnnopt_session_release(clone);
  test_ports(second);
  test_run(second);
  dnnopt_session_release(second);
}

static void test_device(const char* device, int has_kernels) {
  dnnopt_options* options = NULL;
  dnnopt_model* model = NULL;
  dnnopt_session* session = NULL;
  char* text = NULL;
  size_t size = 0;
  unsigned char* const bytes = content_of(small, &size);
  CHECK(bytes != NULL);
  CHECK(dnnopt_options_create(&options) == DNNOPT_OK);
  CHECK(dnnopt_options_set(options, "device", device) == DNNOPT_OK);
  CHECK(dnnopt_options_set(options, "program_folder", "") == DNNOPT_OK);
  CHECK(dnnopt_model_load_bytes(bytes, size, NULL, options, &model) == DNNOPT_OK);
  /* The bytes were copied, and the session outlives its model. */
  memset(bytes, 0, size);
  free(bytes);
  CHECK(dnnopt_session_create(model, options, &session) == DNNOPT_OK);
  dnnopt_options_release(options);
  dnnopt_model_release(model);
  if (session == NULL) return;
  test_ports(session);
  test_run(session);
  test_buffers(session, has_kernels);
  test_clone(session);
  CHECK(dnnopt_session_report(session, &text) == DNNOPT_OK);
  CHECK(text != NULL && strstr(text, "\"placements\"") != NULL);
  dnnopt_text_release(text);
  text = NULL;
  {
    const float x[2] = {1, 2};
    const int64_t dims[2] = {1, 2};
    const int64_t none[1] = {0};
    const dnnopt_tensor inputs[2] = {{"x", DNNOPT_FLOAT32, 2, dims, x, sizeof x},
                                     {"s", DNNOPT_STRING, 1, none, NULL, 0}};
    const dnnopt_status status = dnnopt_session_profile(session, inputs, 2, 3, &text);
    CHECK(status == (has_kernels ? DNNOPT_OK : DNNOPT_UNSUPPORTED));
    CHECK(!has_kernels || strstr(text, "\"kernel_events\"") != NULL);
    dnnopt_text_release(text);
  }
  dnnopt_session_release(session);
}

static void test_optimize(void) {
  const char* const path = "dnnopt_c_test.onnx";
  dnnopt_options* options = NULL;
  dnnopt_model* model = NULL;
  int told = 0;
  CHECK(dnnopt_options_create(&options) == DNNOPT_OK);
  CHECK(dnnopt_options_set_log(options, count_log, &told) == DNNOPT_OK);
  CHECK(dnnopt_model_load(small, options, &model) == DNNOPT_OK);
  CHECK(dnnopt_model_optimize(model, NULL, path) == DNNOPT_OK);
  dnnopt_model_release(model);
  model = NULL;
  CHECK(dnnopt_model_load(path, options, &model) == DNNOPT_OK);
  CHECK(told == 0);
  dnnopt_model_release(model);
  model = NULL;
  remove(path);
  /* A file of IR version 2 without an opset, which is read with a warning: x -> Relu -> y. */
  {
    static const char old[] =
        "\x08\x02\x3a\x24\x0a\x0c\x0a\x01x\x12\x01y\x22\x04Relu\x12\x02go\x5a\x09\x0a\x01x\x12\x04\x0a\x02\x08\x01"
        "\x62\x05\x0a\x01y\x12\x00";
    CHECK(dnnopt_model_load_bytes(old, sizeof old - 1, NULL, options, &model) == DNNOPT_OK);
    CHECK(told == 1);
    dnnopt_model_release(model);
  }
  dnnopt_options_release(options);
}

int main(void) {
  char* devices = NULL;
  test_errors();
  test_device("reference", 0);
  test_optimize();
  CHECK(dnnopt_devices(&devices) == DNNOPT_OK);
  if (devices != NULL && strstr(devices, "\"devices\":[]") == NULL) test_device("opencl", 1);
  dnnopt_text_release(devices);
  printf("%d failed\n", failures);
  return failures == 0 ? 0 : 1;
}

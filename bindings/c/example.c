#include <dnnopt.h>
#include <stdio.h>

int main(void) {
  dnnopt_model* model = NULL;
  dnnopt_session* session = NULL;
  dnnopt_outputs* outputs = NULL;
  static float image[3 * 224 * 224];
  const int64_t dims[4] = {1, 3, 224, 224};
  const dnnopt_tensor input = {"data_0", DNNOPT_FLOAT32, 4, dims, image, sizeof image};
  dnnopt_tensor result;
  if (dnnopt_model_load("light_squeezenet.onnx", NULL, &model) != DNNOPT_OK ||
      dnnopt_session_create(model, NULL, &session) != DNNOPT_OK ||
      dnnopt_session_run(session, &input, 1, NULL, 0, &outputs) != DNNOPT_OK ||
      dnnopt_outputs_get(outputs, 0, &result) != DNNOPT_OK) {
    fprintf(stderr, "%s\n", dnnopt_last_error());
    return 1;
  }
  printf("%s, first %.4f\n", result.name, ((const float*)result.data)[0]);
  dnnopt_outputs_release(outputs);
  dnnopt_session_release(session);
  dnnopt_model_release(model);
  return 0;
}

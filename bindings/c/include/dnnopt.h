/* The C interface of dnnopt: optimize ONNX models and run them through OpenCL or on the host.
 *
 * Conventions. Functions that can fail return a dnnopt_status: DNNOPT_OK is 0, everything else is an error, whose text
 * dnnopt_last_error() gives. No exception crosses this interface. Handles are released by the function of their name,
 * which accepts NULL. Texts are UTF-8 and end with NUL; those given as `const char*` belong to the object that gave
 * them and live as long as it does. No pointer argument may be NULL unless it says so. There is no global state:
 * different handles may be used from different threads at once, clones of a session too, one handle by one thread at a
 * time. A model may be shared by sessions that are created one after the other, and may be released before them.
 *
 * The interface grows by addition only: what a program calls today, a later library of the same SONAME has too. Check
 * dnnopt_version() where it matters. docs/how_to/c.md has a whole program.
 */
#ifndef DNNOPT_H
#define DNNOPT_H

#include <stddef.h>
#include <stdint.h>

#if defined(DNNOPT_STATIC)
#define DNNOPT_API
#elif defined(_WIN32)
#if defined(DNNOPT_BUILDING)
#define DNNOPT_API __declspec(dllexport)
#else
#define DNNOPT_API __declspec(dllimport)
#endif
#else
#define DNNOPT_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* 0, or the number of an error as docs/reference/errors.md lists and explains them. */
typedef int32_t dnnopt_status;
enum {
  DNNOPT_OK = 0,
  DNNOPT_OUT_OF_MEMORY = 1, /* the host has no memory left */
  DNNOPT_INTERNAL = 2,      /* an error of the C++ library or of a library below dnnopt */
  DNNOPT_INVALID_ARGUMENT = 101,
  DNNOPT_TYPE_MISMATCH = 103,
  DNNOPT_SHAPE_MISMATCH = 104,
  DNNOPT_FILE_NOT_FOUND = 201,
  DNNOPT_MALFORMED_PROTOBUF = 203,
  DNNOPT_MALFORMED_MODEL = 204,
  DNNOPT_UNKNOWN_OPERATOR = 209,
  DNNOPT_OPENCL_UNAVAILABLE = 401,
  DNNOPT_UNKNOWN_DEVICE = 402,
  DNNOPT_OUT_OF_DEVICE_MEMORY = 405,
  DNNOPT_NO_KERNEL = 406,
  DNNOPT_UNSUPPORTED = 407,
  DNNOPT_MISSING_INPUT = 408,
  DNNOPT_MEMORY_LIMIT = 409
};

/* "0.1.0": the version of the library that is loaded. */
DNNOPT_API const char* dnnopt_version(void);
/* The text of the last error in this thread, "" where there was none. It lives until the next failing call of the
 * thread. */
DNNOPT_API const char* dnnopt_last_error(void);

/* Releases a text that a function gave as `char**`. NULL is allowed. */
DNNOPT_API void dnnopt_text_release(char* text);

/* The OpenCL devices as JSON: {"devices": [{"spec", "name", "vendor", "platform", ...}], "why_none": text or null}. No
 * OpenCL on the machine is no error: the list is empty and "why_none" says why. */
DNNOPT_API dnnopt_status dnnopt_devices(char** json);

/* ---- options ----------------------------------------------------------------------------------------------------- */

typedef struct dnnopt_options dnnopt_options;

/* What the library has to tell beside errors: warnings about the model and what was found while compiling. Called in
 * the thread that loads a model or creates a session, before that call returns. The text lives during the call. */
typedef void (*dnnopt_log_callback)(void* user, const char* code, const char* text);

DNNOPT_API dnnopt_status dnnopt_options_create(dnnopt_options** options);
/* NULL is allowed. */
DNNOPT_API void dnnopt_options_release(dnnopt_options* options);
/* Sets one option by name, as texts:
 *   device            "opencl" (the first one; the default), "opencl:N", "opencl:part of a name" or "reference"
 *   require_device    "0" or "1": an operator that would run on the host is an error naming it
 *   precision         "fp32", "fp16" or "fp16-arithmetic"
 *   form              "native", "vectors" or "groups": which kernels the device gets
 *   wait              "blocking" or "spinning": how a run waits for the device
 *   first_start       "optimized" or "quick": what kernels that are in no cache are compiled as; quick ones serve until
 *                     optimized ones, which a thread compiles, take over between two runs
 *   passes            "default", "none", "epilogue", or names separated by commas
 *   memory_objects    "automatic", "buffers", "packed" or "images": what holds weights
 *   memory_strategy   "default", or what places intermediate tensors: a planner's name, as `dnnopt plan-memory`
 *                     knows it
 *   io_types          "model" or "float16": whether float32 inputs and outputs are given and returned as float16
 *   memory_limit      bytes of device memory; 0 is no limit
 *   program_folder    where compiled programs are kept; "" keeps them in memory alone
 *   dim:NAME          the value of a symbolic dim
 *   shape:NAME        the shape of an input, "1x3x224x224"
 *   value:NAME        the value of an input that is known now, "16000" or "1,2,3": it is no input any more
 *   range:NAME        what a symbolic dim may be, "LOW:HIGH" or "LOW:HIGH:MULTIPLE"
 *   overridden_input  the name of an input with a default value that runs will give; counts for models loaded with
 *                     these options, and may be set several times
 * Errors: DNNOPT_INVALID_ARGUMENT for an unknown name, listing the names, and for a value that the option does not
 * take. */
DNNOPT_API dnnopt_status dnnopt_options_set(dnnopt_options* options, const char* name, const char* value);
/* Sends what the library has to tell to a function; `log` NULL to nobody, as at first. `user` is handed through. */
DNNOPT_API dnnopt_status dnnopt_options_set_log(dnnopt_options* options, dnnopt_log_callback log, void* user);

/* ---- models ------------------------------------------------------------------------------------------------------ */

typedef struct dnnopt_model dnnopt_model;

/* Reads an .onnx file; data files that it names are looked for beside it. `options` may be NULL. */
DNNOPT_API dnnopt_status dnnopt_model_load(const char* path, const dnnopt_options* options, dnnopt_model** model);
/* The same for a file's content in memory, which is copied. Data files that it names are looked for in `folder`; NULL
 * is the current one. */
DNNOPT_API dnnopt_status dnnopt_model_load_bytes(const void* bytes, size_t size, const char* folder,
                                                 const dnnopt_options* options, dnnopt_model** model);
/* NULL is allowed. */
DNNOPT_API void dnnopt_model_release(dnnopt_model* model);
/* Runs the passes that the options name and writes the optimized graph as an .onnx file. `options` may be NULL. */
DNNOPT_API dnnopt_status dnnopt_model_optimize(const dnnopt_model* model, const dnnopt_options* options,
                                               const char* path);

/* ---- sessions ---------------------------------------------------------------------------------------------------- */

typedef struct dnnopt_session dnnopt_session;

/* A model compiled for the device that the options name. `options` may be NULL: the first OpenCL device. */
DNNOPT_API dnnopt_status dnnopt_session_create(const dnnopt_model* model, const dnnopt_options* options,
                                               dnnopt_session** session);
/* Another session of the same model on the same device, for another thread: one copy of the weights and of the compiled
 * programs serves both, and nothing is compiled or uploaded. Each is released for itself, in any order. `session` must
 * not run meanwhile. */
DNNOPT_API dnnopt_status dnnopt_session_clone(dnnopt_session* session, dnnopt_session** clone);
/* Keeps compiled programs for the next start, which may take a while. NULL is allowed. */
DNNOPT_API void dnnopt_session_release(dnnopt_session* session);

/* The two sides of a model. */
typedef int32_t dnnopt_side;
enum { DNNOPT_INPUTS = 0, DNNOPT_OUTPUTS = 1 };

/* Element types, with ONNX's numbers (TensorProto.DataType). Types narrower than a byte take one byte an element. */
typedef int32_t dnnopt_type;
enum {
  DNNOPT_UNDEFINED = 0,
  DNNOPT_FLOAT32 = 1,
  DNNOPT_UINT8 = 2,
  DNNOPT_INT8 = 3,
  DNNOPT_UINT16 = 4,
  DNNOPT_INT16 = 5,
  DNNOPT_INT32 = 6,
  DNNOPT_INT64 = 7,
  DNNOPT_STRING = 8,
  DNNOPT_BOOL = 9,
  DNNOPT_FLOAT16 = 10,
  DNNOPT_FLOAT64 = 11,
  DNNOPT_UINT32 = 12,
  DNNOPT_UINT64 = 13,
  DNNOPT_BFLOAT16 = 16
};

/* How many inputs or outputs; 0 for an unknown side. */
DNNOPT_API size_t dnnopt_session_count(const dnnopt_session* session, dnnopt_side side);
/* The name of an input or output; NULL where there is none of that number. */
DNNOPT_API const char* dnnopt_session_name(const dnnopt_session* session, dnnopt_side side, size_t index);
/* Its element type; DNNOPT_UNDEFINED where there is none of that number, or it is no tensor. */
DNNOPT_API dnnopt_type dnnopt_session_type(const dnnopt_session* session, dnnopt_side side, size_t index);
/* Its rank; -1 where it is not known, or there is none of that number. */
DNNOPT_API int32_t dnnopt_session_rank(const dnnopt_session* session, dnnopt_side side, size_t index);
/* One of its dims; -1 where a run tells it. */
DNNOPT_API int64_t dnnopt_session_dim(const dnnopt_session* session, dnnopt_side side, size_t index, size_t axis);
/* The name of a dim that a run tells, or an expression over such names ("height/2"); NULL where the dim is a number.
 * Symbols of the model have the model's names. */
DNNOPT_API const char* dnnopt_session_dim_name(const dnnopt_session* session, dnnopt_side side, size_t index,
                                               size_t axis);

/* A dense row-major tensor in memory of somebody else. `data` holds `bytes` bytes: the elements, or for DNNOPT_STRING
 * as many `const char*`. For rank 0 `dims` may be NULL, without elements `data` may be. */
typedef struct dnnopt_tensor {
  const char* name;
  dnnopt_type type;
  int32_t rank;
  const int64_t* dims;
  const void* data;
  size_t bytes;
} dnnopt_tensor;

typedef struct dnnopt_outputs dnnopt_outputs;

/* One inference. Every input that is not bound must be given, by name, in any order; they are read in place and not
 * kept. `names` are the outputs that are wanted, in the order in which `outputs` has them; NULL with 0 names is all of
 * them in the model's order. Errors: those of compiling where inputs decide the structure; DNNOPT_MISSING_INPUT,
 * DNNOPT_TYPE_MISMATCH, DNNOPT_SHAPE_MISMATCH; DNNOPT_INVALID_ARGUMENT for an unknown output or bytes that do not fit
 * the dims. */
DNNOPT_API dnnopt_status dnnopt_session_run(dnnopt_session* session, const dnnopt_tensor* inputs, size_t input_count,
                                            const char* const* names, size_t name_count, dnnopt_outputs** outputs);
DNNOPT_API size_t dnnopt_outputs_count(const dnnopt_outputs* outputs);
/* Fills `tensor` with an output; its pointers live as long as `outputs`, whatever becomes of the session. */
DNNOPT_API dnnopt_status dnnopt_outputs_get(const dnnopt_outputs* outputs, size_t index, dnnopt_tensor* tensor);
/* NULL is allowed. */
DNNOPT_API void dnnopt_outputs_release(dnnopt_outputs* outputs);

/* ---- memory on the device ---------------------------------------------------------------------------------------- */

/* Memory of the device that a session and its clones run on, which may be bound to their inputs and outputs, so that
 * what one run gives the next one takes without passing through the host. */
typedef struct dnnopt_buffer dnnopt_buffer;

/* Copies `bytes` bytes from `from` to the buffer, then from the buffer to `to`, each from its beginning; NULL for
 * either leaves that copy out. Where *buffer is NULL one of `bytes` bytes is made first, in the context of `session`;
 * what is in it is undefined until something is written. Errors: DNNOPT_UNSUPPORTED where the session runs on the
 * reference backend; DNNOPT_INVALID_ARGUMENT for more bytes than the buffer has, or for none; what OpenCL says. */
DNNOPT_API dnnopt_status dnnopt_buffer_copy(dnnopt_session* session, dnnopt_buffer** buffer, const void* from, void* to,
                                            size_t bytes);
/* What it is bound to keeps the memory. NULL is allowed. */
DNNOPT_API void dnnopt_buffer_release(dnnopt_buffer* buffer);
/* From the next run on the input or output `name` is this buffer, dense and row-major in the model's own type: a bound
 * input is not given to dnnopt_session_run, and a bound output is not among what it gives. `dims` are the `rank` dims
 * that an input with dims which a run tells has in it; NULL for other inputs and for outputs. The same buffer must not
 * be bound to an output and to anything else. `buffer` NULL gives `name` the session's own memory again. Errors:
 * DNNOPT_MISSING_INPUT, there is no such input or output; DNNOPT_INVALID_ARGUMENT, the buffer is too small or one of
 * another context; DNNOPT_SHAPE_MISMATCH; DNNOPT_UNSUPPORTED on the reference backend. */
DNNOPT_API dnnopt_status dnnopt_session_bind(dnnopt_session* session, const char* name, dnnopt_buffer* buffer,
                                             const int64_t* dims, int32_t rank);

/* ---- reports ----------------------------------------------------------------------------------------------------- */

/* What compiling did, and where each node of the last run's program runs, as JSON: device, kernels, host_ops, builds,
 * pass_seconds, build_seconds, warnings[{code,node,text}], placements[{node,op,where,reason}]. */
DNNOPT_API dnnopt_status dnnopt_session_report(const dnnopt_session* session, char** json);
/* Times `runs` inferences on an OpenCL device, after one that is not timed, and gives what `dnnopt profile --json` does
 * (docs/reference/command_line.md). Errors: DNNOPT_UNSUPPORTED on the reference backend, and those of a run. */
DNNOPT_API dnnopt_status dnnopt_session_profile(dnnopt_session* session, const dnnopt_tensor* inputs,
                                                size_t input_count, size_t runs, char** json);

#ifdef __cplusplus
}
#endif

#endif /* DNNOPT_H */

/* A compiled model for NVIDIA GPUs, run from C or C++: all of it is in this header, plain C11 and C++ on POSIX, compilers GCC and
 * Clang. Nothing to link but the model's library, which is data: cubins and the table of their launches. Needs neither CUDA headers
 * nor a CUDA runtime: the driver (libcuda.so.1, or what TUNER_LIBCUDA names) is loaded when a model is opened.
 * NAME.h of a library has the same by names and types.
 *
 *   extern const tuner_gpu_model tuner_NAME_model;                        the library's only symbol
 *   tuner_gpu_model_open(&tuner_NAME_model, "NAME.weights", 0, &shared);  once per device: uploads the weights
 *   tuner_gpu_context_create(shared, &context);                           one for each run at a time
 *   tuner_gpu_context_run(context, inputs, outputs);                      host pointers; returns when outputs are there
 *   tuner_gpu_context_run_on(context, stream, inputs, outputs);           device pointers; queues the run and returns
 *   tuner_gpu_context_destroy(context);
 *   tuner_gpu_model_close(shared);
 *
 * A model is a list of steps, each one or more launches on one stream. Values between steps lie in the context's arena, on the
 * device. When the same pointers come a second time, the launches are recorded as a CUDA graph, and a run is one launch from then on.
 *
 * The device's primary context is used, as the CUDA runtime does. Each call makes it current, and the one that was current again.
 * A context belongs to one thread at a time. Its runs must follow one another: on one stream, or after waiting for the one before.
 * Functions return 0, or a code below zero that tuner_gpu_error() explains; nothing is left behind then. After a fault of a kernel
 * or of the device every later call of the process fails.
 */
#ifndef TUNER_GPU_MODEL_H_
#define TUNER_GPU_MODEL_H_

#include <dlfcn.h>

#include "tuner_model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TUNER_GPU_MODEL_VERSION \
  1001 /* in place of TUNER_MODEL_VERSION: programs for CPU models refuse the table */

/* Codes, besides those of tuner_model.h. */
#define TUNER_GPU_NO_DRIVER (-40)
#define TUNER_GPU_NO_DEVICE (-41)
#define TUNER_GPU_OTHER_GPU (-42)
#define TUNER_GPU_OLD_DRIVER (-43)
#define TUNER_GPU_NO_MEMORY (-44)
#define TUNER_GPU_LOST (-45)
#define TUNER_GPU_FAULT (-46)
#define TUNER_GPU_DRIVER_ERROR (-47)

/* One kernel launch. */
typedef struct tuner_gpu_launch {
  const char* symbol;
  uint32_t grid[3], block[3];
  uint32_t shared_bytes; /* dynamic shared memory of a block */
  int32_t num_params;
  const int32_t*
      params; /* i < num_args of the step: its argument i; else workspace i - num_args of the kernel */
} tuner_gpu_launch;

/* What computes a workload on one architecture. */
typedef struct tuner_gpu_kernel {
  const void* image; /* a cubin */
  int64_t image_bytes;
  const tuner_gpu_launch* launches; /* in order, on one stream */
  const int64_t* workspaces;        /* where each begins, in the context's workspace; multiples of 256 */
  int32_t num_launches, num_workspaces;
  int32_t num_args; /* of each step that it computes */
  int32_t unused;
} tuner_gpu_kernel;

/* Where the arguments of a step lie; the rest of it stands in tuner_model. */
typedef struct tuner_gpu_step {
  const tuner_place* args;
  int32_t num_args, kernel;
} tuner_gpu_step;

/* The model for one architecture. */
typedef struct tuner_gpu_variant {
  const char* arch;  /* "sm_90a" */
  int32_t sm;        /* 90 */
  int32_t only_this; /* 1: uses features of this architecture alone */
  int32_t toolkit;   /* major version of the CUDA toolkit that made the cubins; older drivers refuse them */
  int32_t num_kernels;
  const tuner_gpu_kernel* kernels;
  const tuner_gpu_step* steps; /* as many as the model has */
  int64_t workspace_bytes;     /* enough for every step */
} tuner_gpu_variant;

/* The table. Everything it points to lives as long as the library is loaded. */
typedef struct tuner_gpu_model {
  tuner_model model; /* its steps have names and workloads, neither entries nor arguments */
  const tuner_gpu_variant* variants;
  int32_t num_variants, unused;
} tuner_gpu_model;

/* What a code means, in one line. */
static inline const char* tuner_gpu_error(int32_t code) {
  switch (code) {
    case TUNER_MODEL_OTHER_ABI:
      return "the library's table is of another version than tuner_gpu_model.h; take the header that lies "
             "beside the library";
    case TUNER_GPU_NO_DRIVER:
      return "there is no CUDA driver: libcuda.so.1 cannot be loaded, or is older than CUDA 12";
    case TUNER_GPU_NO_DEVICE:
      return "the driver has no such GPU";
    case TUNER_GPU_OTHER_GPU:
      return "the model is compiled for other GPUs; compile it with --target for this one too";
    case TUNER_GPU_OLD_DRIVER:
      return "the driver is older than the CUDA toolkit that made the kernels, and refuses them; update the "
             "driver, or compile the model with an older libnvrtc.so (TUNER_NVRTC)";
    case TUNER_GPU_NO_MEMORY:
      return "the GPU is out of memory";
    case TUNER_GPU_LOST:
      return "the GPU is lost: it reports an error of its own; the process must end, and the GPU be checked";
    case TUNER_GPU_FAULT:
      return "a kernel faulted; later calls of this process fail, too. Report it with the model";
    case TUNER_GPU_DRIVER_ERROR:
      return "the driver refused a call";
    default:
      return tuner_model_error(code);
  }
}

/* ---- the driver ---- */

typedef uint64_t tuner_gpu_pointer; /* CUdeviceptr */

/* Functions of libcuda, after the documented ABI of the driver. All return a CUresult; handles are opaque. */
typedef struct tuner_gpu_driver {
  void* library;
  int (*init)(unsigned);
  int (*version)(int*);
  int (*device_get)(int*, int);
  int (*device_attribute)(int*, int, int);
  int (*context_retain)(void**, int);
  int (*context_release)(int);
  int (*context_get)(void**);
  int (*context_set)(void*);
  int (*module_load)(void**, const void*);
  int (*module_unload)(void*);
  int (*module_function)(void**, void*, const char*);
  int (*function_set)(void*, int, int);
  int (*allocate)(tuner_gpu_pointer*, size_t);
  int (*release)(tuner_gpu_pointer);
  int (*to_device)(tuner_gpu_pointer, const void*, size_t);
  int (*to_device_async)(tuner_gpu_pointer, const void*, size_t, void*);
  int (*to_host)(void*, tuner_gpu_pointer, size_t);
  int (*to_host_async)(void*, tuner_gpu_pointer, size_t, void*);
  int (*fill)(tuner_gpu_pointer, unsigned char, size_t, void*);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                void**);
  int (*stream_create)(void**, unsigned);
  int (*stream_destroy)(void*);
  int (*stream_wait)(void*);
  int (*event_create)(void**, unsigned);
  int (*event_destroy)(void*);
  int (*event_record)(void*, void*);
  int (*event_wait)(void*);
  int (*event_elapsed)(float*, void*, void*);
  int (*capture_begin)(void*, int);
  int (*capture_end)(void*, void**);
  int (*graph_instantiate)(void**, void*, unsigned long long);
  int (*graph_launch)(void*, void*);
  int (*graph_exec_destroy)(void*);
  int (*graph_destroy)(void*);
} tuner_gpu_driver;

/* What a CUresult means for a caller. */
static inline int32_t tuner_gpu_code_of(int result) {
  switch (result) {
    case 0:
      return 0;
    case 2: /* CUDA_ERROR_OUT_OF_MEMORY */
      return TUNER_GPU_NO_MEMORY;
    case 100: /* NO_DEVICE, INVALID_DEVICE */
    case 101:
      return TUNER_GPU_NO_DEVICE;
    case 209: /* NO_BINARY_FOR_GPU */
      return TUNER_GPU_OTHER_GPU;
    case 200: /* INVALID_IMAGE, INVALID_PTX, UNSUPPORTED_PTX_VERSION */
    case 218:
    case 222:
      return TUNER_GPU_OLD_DRIVER;
    case 46: /* DEVICE_UNAVAILABLE, ECC_UNCORRECTABLE, NVLINK_UNCORRECTABLE, SYSTEM_NOT_READY, UNKNOWN */
    case 214:
    case 220:
    case 802:
    case 999:
      return TUNER_GPU_LOST;
    case 700: /* ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, HARDWARE_STACK_ERROR to LAUNCH_FAILED */
    case 702:
    case 714:
    case 715:
    case 716:
    case 717:
    case 718:
    case 719:
      return TUNER_GPU_FAULT;
    default:
      return TUNER_GPU_DRIVER_ERROR;
  }
}

static inline int32_t tuner_gpu_driver_open(tuner_gpu_driver* driver) {
  static const char* const names[] = {"cuInit",
                                      "cuDriverGetVersion",
                                      "cuDeviceGet",
                                      "cuDeviceGetAttribute",
                                      "cuDevicePrimaryCtxRetain",
                                      "cuDevicePrimaryCtxRelease_v2",
                                      "cuCtxGetCurrent",
                                      "cuCtxSetCurrent",
                                      "cuModuleLoadData",
                                      "cuModuleUnload",
                                      "cuModuleGetFunction",
                                      "cuFuncSetAttribute",
                                      "cuMemAlloc_v2",
                                      "cuMemFree_v2",
                                      "cuMemcpyHtoD_v2",
                                      "cuMemcpyHtoDAsync_v2",
                                      "cuMemcpyDtoH_v2",
                                      "cuMemcpyDtoHAsync_v2",
                                      "cuMemsetD8Async",
                                      "cuLaunchKernel",
                                      "cuStreamCreate",
                                      "cuStreamDestroy_v2",
                                      "cuStreamSynchronize",
                                      "cuEventCreate",
                                      "cuEventDestroy_v2",
                                      "cuEventRecord",
                                      "cuEventSynchronize",
                                      "cuEventElapsedTime",
                                      "cuStreamBeginCapture_v2",
                                      "cuStreamEndCapture",
                                      "cuGraphInstantiateWithFlags",
                                      "cuGraphLaunch",
                                      "cuGraphExecDestroy",
                                      "cuGraphDestroy"};
  const char* const named = getenv("TUNER_LIBCUDA");
  void** const members = (void**)driver; /* the library, then the functions in this order */
  size_t i;
  memset(driver, 0, sizeof *driver);
  driver->library = dlopen(named && *named ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver->library) return TUNER_GPU_NO_DRIVER;
  for (i = 0; i < sizeof names / sizeof names[0]; ++i) {
    void* const function = dlsym(driver->library, names[i]);
    if (!function) {
      dlclose(driver->library);
      return TUNER_GPU_NO_DRIVER;
    }
    memcpy(&members[i + 1], &function, sizeof function);
  }
  return tuner_gpu_code_of(driver->init(0));
}

/* ---- a model on a device ---- */

/* Modules and weights in a device's memory, which all contexts share. */
typedef struct tuner_gpu_shared {
  const tuner_gpu_model* model;
  const tuner_gpu_variant* variant; /* that this device runs */
  tuner_gpu_driver driver;
  int device;
  void* context;    /* the device's primary one */
  void** modules;   /* one per kernel */
  void** functions; /* of all launches of all kernels, one after the other */
  tuner_gpu_pointer weights;
  int32_t users; /* who opened it, and its contexts */
} tuner_gpu_shared;

/* Makes the device's context current; `before` takes what was. */
static inline int32_t tuner_gpu_enter(const tuner_gpu_shared* shared, void** before) {
  *before = NULL;
  shared->driver.context_get(before);
  if (*before == shared->context) return 0;
  return tuner_gpu_code_of(shared->driver.context_set(shared->context));
}
static inline void tuner_gpu_leave(const tuner_gpu_shared* shared, void* before) {
  if (before != shared->context) shared->driver.context_set(before);
}

/* 1 if code for the architecture runs on a GPU of compute capability `sm`. */
static inline int32_t tuner_gpu_fits(const tuner_gpu_variant* variant, int sm) {
  if (variant->only_this) return variant->sm == sm;
  return variant->sm / 10 == sm / 10 && variant->sm <= sm;
}

/* The variant that was made for the nearest architecture, and only for it if there is one. */
static inline int32_t tuner_gpu_choose(tuner_gpu_shared* shared) {
  int major = 0, minor = 0, version = 0;
  int32_t v, code;
  code = tuner_gpu_code_of(shared->driver.device_attribute(&major, 75, shared->device));
  if (code == 0) code = tuner_gpu_code_of(shared->driver.device_attribute(&minor, 76, shared->device));
  if (code == 0) code = tuner_gpu_code_of(shared->driver.version(&version));
  if (code != 0) return code;
  for (v = 0; v < shared->model->num_variants; ++v) {
    const tuner_gpu_variant* const each = &shared->model->variants[v];
    const tuner_gpu_variant* const best = shared->variant;
    if (!tuner_gpu_fits(each, 10 * major + minor)) continue;
    if (!best || each->sm > best->sm || (each->sm == best->sm && each->only_this)) shared->variant = each;
  }
  if (!shared->variant) return TUNER_GPU_OTHER_GPU;
  return shared->variant->toolkit > version / 1000 ? TUNER_GPU_OLD_DRIVER : 0;
}

static inline int32_t tuner_gpu_load(tuner_gpu_shared* shared) {
  const tuner_gpu_driver* const driver = &shared->driver;
  const tuner_gpu_variant* const variant = shared->variant;
  void** function = shared->functions;
  int32_t k, l;
  for (k = 0; k < variant->num_kernels; ++k) {
    const tuner_gpu_kernel* const kernel = &variant->kernels[k];
    int result = driver->module_load(&shared->modules[k], kernel->image);
    for (l = 0; result == 0 && l < kernel->num_launches; ++l, ++function) {
      const tuner_gpu_launch* const launch = &kernel->launches[l];
      result = driver->module_function(function, shared->modules[k], launch->symbol);
      /* Above 48 KB shared memory must be asked for. */
      if (result == 0 && launch->shared_bytes > 48u << 10)
        result = driver->function_set(*function, 8, (int)launch->shared_bytes);
    }
    if (result != 0) return tuner_gpu_code_of(result);
  }
  return 0;
}

/* Reads the file, checks it, and uploads it: offsets in it are offsets on the device. */
static inline int32_t tuner_gpu_upload(tuner_gpu_shared* shared, const char* path) {
  tuner_model plain = shared->model->model;
  tuner_weights* weights;
  int32_t code;
  plain.version = TUNER_MODEL_VERSION;
  code = tuner_weights_open(&plain, path, &weights);
  if (code != 0) return code;
  code = tuner_gpu_code_of(shared->driver.allocate(&shared->weights, (size_t)weights->size));
  if (code == 0)
    code =
        tuner_gpu_code_of(shared->driver.to_device(shared->weights, weights->bytes, (size_t)weights->size));
  tuner_weights_close(weights);
  return code;
}

/* NULL is allowed. The last one of its users releases all. */
static inline void tuner_gpu_model_close(tuner_gpu_shared* shared) {
  void* before;
  int32_t k;
  if (!shared || __atomic_sub_fetch(&shared->users, 1, __ATOMIC_ACQ_REL) != 0) return;
  if (shared->context) {
    tuner_gpu_enter(shared, &before);
    if (shared->weights) shared->driver.release(shared->weights);
    for (k = 0; shared->modules && k < shared->variant->num_kernels; ++k)
      if (shared->modules[k]) shared->driver.module_unload(shared->modules[k]);
    tuner_gpu_leave(shared, before == shared->context ? NULL : before);
    shared->driver.context_release(shared->device);
  }
  if (shared->driver.library) dlclose(shared->driver.library);
  free(shared->modules);
  free(shared->functions);
  free(shared);
}

static inline int32_t tuner_gpu_prepare(tuner_gpu_shared* shared, const char* weights_path, int32_t device) {
  size_t launches = 1;
  int32_t k, code;
  void* before;
  code = tuner_gpu_code_of(shared->driver.device_get(&shared->device, device));
  if (code == 0) code = tuner_gpu_choose(shared);
  if (code != 0) return code;
  for (k = 0; k < shared->variant->num_kernels; ++k)
    launches += (size_t)shared->variant->kernels[k].num_launches;
  shared->modules = (void**)calloc((size_t)shared->variant->num_kernels + 1, sizeof *shared->modules);
  shared->functions = (void**)calloc(launches, sizeof *shared->functions);
  if (!shared->modules || !shared->functions) return TUNER_MODEL_NO_MEMORY;
  code = tuner_gpu_code_of(shared->driver.context_retain(&shared->context, shared->device));
  if (code != 0) {
    shared->context = NULL;
    return code;
  }
  code = tuner_gpu_enter(shared, &before);
  if (code == 0) code = tuner_gpu_upload(shared, weights_path);
  if (code == 0) code = tuner_gpu_load(shared);
  tuner_gpu_leave(shared, before);
  return code;
}

/* Loads the driver, the kernels for this GPU (`device`: its number for the driver, which CUDA_VISIBLE_DEVICES decides), and the
 * weights. */
static inline int32_t tuner_gpu_model_open(const tuner_gpu_model* model, const char* weights_path,
                                           int32_t device, tuner_gpu_shared** shared) {
  tuner_gpu_shared* made;
  int32_t code;
  *shared = NULL;
  if (model->model.version != TUNER_GPU_MODEL_VERSION) return TUNER_MODEL_OTHER_ABI;
  made = (tuner_gpu_shared*)calloc(1, sizeof *made);
  if (!made) return TUNER_MODEL_NO_MEMORY;
  made->model = model;
  made->users = 1;
  code = tuner_gpu_driver_open(&made->driver);
  if (code == TUNER_GPU_NO_DRIVER) {
    free(made);
    return code;
  }
  if (code == 0) code = tuner_gpu_prepare(made, weights_path, device);
  if (code != 0) {
    tuner_gpu_model_close(made);
    return code;
  }
  *shared = made;
  return 0;
}

/* 1 if GPU number `device` and its driver run the model; 0 also where there is no driver. */
static inline int32_t tuner_gpu_model_runs_here(const tuner_gpu_model* model, int32_t device) {
  tuner_gpu_shared asked;
  int32_t code;
  memset(&asked, 0, sizeof asked);
  asked.model = model;
  if (model->model.version != TUNER_GPU_MODEL_VERSION) return 0;
  code = tuner_gpu_driver_open(&asked.driver);
  if (code == TUNER_GPU_NO_DRIVER) return 0;
  if (code == 0) code = tuner_gpu_code_of(asked.driver.device_get(&asked.device, device));
  if (code == 0) code = tuner_gpu_choose(&asked);
  dlclose(asked.driver.library);
  return code == 0;
}

/* ---- contexts ---- */

typedef struct tuner_gpu_context {
  tuner_gpu_shared* shared;
  void* stream; /* of runs with host pointers, and where graphs are recorded */
  tuner_gpu_pointer arena, workspace;
  tuner_gpu_pointer staging;  /* inputs and outputs of runs with host pointers; 0: there was none */
  tuner_gpu_pointer* args;    /* of all steps, one after the other */
  tuner_gpu_pointer* rooms;   /* workspaces of all kernels */
  void** params;              /* of all launches of all steps */
  const tuner_place** places; /* one per argument: NULL where it stays */
  tuner_gpu_pointer*
      bound; /* inputs and outputs that the arguments are set to; those of runs with host pointers */
  tuner_gpu_pointer* own;
  size_t num_args;
  void* graph;
  int32_t
      recorded; /* 0: these pointers are new; 1: they came once; 2: graph has them; -1: the driver records nothing */
  int32_t failed_step; /* of the last run; -1: none */
  double step_ns;      /* of the step that the hook is told of, on the device's clock */
  void *begin, *end;   /* events around it */
  tuner_step_hook hook;
  void* hook_data;
} tuner_gpu_context;

static inline size_t tuner_gpu_tensors(const tuner_gpu_context* context) {
  const tuner_model* const model = &context->shared->model->model;
  return (size_t)model->num_inputs + (size_t)model->num_outputs;
}
static inline int64_t tuner_gpu_rounded(int64_t bytes) { return (bytes + 255) / 256 * 256; }

/* NULL is allowed. Waits for what the context's own stream has to do; runs on other streams must be over. */
static inline void tuner_gpu_context_destroy(tuner_gpu_context* context) {
  void* before;
  const tuner_gpu_driver* driver;
  if (!context) return;
  driver = &context->shared->driver;
  tuner_gpu_enter(context->shared, &before);
  if (context->stream) driver->stream_wait(context->stream);
  if (context->graph) driver->graph_exec_destroy(context->graph);
  if (context->begin) driver->event_destroy(context->begin);
  if (context->end) driver->event_destroy(context->end);
  if (context->stream) driver->stream_destroy(context->stream);
  if (context->staging) driver->release(context->staging);
  if (context->workspace) driver->release(context->workspace);
  if (context->arena) driver->release(context->arena);
  tuner_gpu_leave(context->shared, before);
  tuner_gpu_model_close(context->shared);
  free(context->args);
  free(context->rooms);
  free(context->params);
  free((void*)context->places);
  free(context->bound);
  free(context->own);
  free(context);
}

/* Points the arguments of all steps to the arena and the weights, and the parameters of launches to the arguments. */
static inline void tuner_gpu_context_place(tuner_gpu_context* context) {
  const tuner_gpu_variant* const variant = context->shared->variant;
  tuner_gpu_pointer *arg = context->args, *room = context->rooms;
  const tuner_place** late = context->places;
  void** param = context->params;
  int32_t s, a, k, l, p;
  for (k = 0; k < variant->num_kernels; ++k)
    for (p = 0; p < variant->kernels[k].num_workspaces; ++p)
      *room++ = context->workspace + (tuner_gpu_pointer)variant->kernels[k].workspaces[p];
  for (s = 0; s < context->shared->model->model.num_steps; ++s) {
    const tuner_gpu_step* const step = &variant->steps[s];
    const tuner_gpu_kernel* const kernel = &variant->kernels[step->kernel];
    tuner_gpu_pointer* rooms = context->rooms;
    for (k = 0; k < step->kernel; ++k) rooms += variant->kernels[k].num_workspaces;
    for (l = 0; l < kernel->num_launches; ++l)
      for (p = 0; p < kernel->launches[l].num_params; ++p) {
        const int32_t i = kernel->launches[l].params[p];
        *param++ = i < step->num_args ? &arg[i] : &rooms[i - step->num_args];
      }
    for (a = 0; a < step->num_args; ++a, ++arg, ++late) {
      const tuner_place* const place = &step->args[a];
      *late = NULL;
      if (place->kind == TUNER_ARENA)
        *arg = context->arena + (tuner_gpu_pointer)place->offset;
      else if (place->kind == TUNER_WEIGHTS)
        *arg = context->shared->weights + (tuner_gpu_pointer)place->offset;
      else
        *late = place;
    }
  }
}

static inline int32_t tuner_gpu_context_allocate(tuner_gpu_context* context) {
  const tuner_gpu_shared* const shared = context->shared;
  const tuner_gpu_variant* const variant = shared->variant;
  const tuner_gpu_driver* const driver = &shared->driver;
  const int64_t arena = shared->model->model.arena_bytes;
  size_t params = 1, rooms = 1;
  int32_t s, k, l;
  int result = 0;
  for (k = 0; k < variant->num_kernels; ++k) rooms += (size_t)variant->kernels[k].num_workspaces;
  for (s = 0; s < shared->model->model.num_steps; ++s) {
    const tuner_gpu_kernel* const kernel = &variant->kernels[variant->steps[s].kernel];
    context->num_args += (size_t)variant->steps[s].num_args;
    for (l = 0; l < kernel->num_launches; ++l) params += (size_t)kernel->launches[l].num_params;
  }
  context->args = (tuner_gpu_pointer*)calloc(context->num_args + 1, sizeof *context->args);
  context->rooms = (tuner_gpu_pointer*)calloc(rooms, sizeof *context->rooms);
  context->params = (void**)calloc(params, sizeof *context->params);
  context->places = (const tuner_place**)calloc(context->num_args + 1, sizeof(void*));
  context->bound = (tuner_gpu_pointer*)calloc(tuner_gpu_tensors(context) + 1, sizeof *context->bound);
  context->own = (tuner_gpu_pointer*)calloc(tuner_gpu_tensors(context) + 1, sizeof *context->own);
  if (!context->args || !context->rooms || !context->params || !context->places || !context->bound ||
      !context->own)
    return TUNER_MODEL_NO_MEMORY;
  result = driver->stream_create(&context->stream, 0);
  if (result == 0) result = driver->event_create(&context->begin, 0);
  if (result == 0) result = driver->event_create(&context->end, 0);
  if (result == 0 && arena > 0) result = driver->allocate(&context->arena, (size_t)arena);
  if (result == 0 && variant->workspace_bytes > 0)
    result = driver->allocate(&context->workspace, (size_t)variant->workspace_bytes);
  return tuner_gpu_code_of(result);
}

/* A context with its own arena. It keeps the weights on the device. */
static inline int32_t tuner_gpu_context_create(tuner_gpu_shared* shared, tuner_gpu_context** context) {
  tuner_gpu_context* made;
  int32_t code;
  void* before;
  *context = NULL;
  made = (tuner_gpu_context*)calloc(1, sizeof *made);
  if (!made) return TUNER_MODEL_NO_MEMORY;
  made->shared = shared;
  made->failed_step = -1;
  __atomic_fetch_add(&shared->users, 1, __ATOMIC_RELAXED);
  code = tuner_gpu_enter(shared, &before);
  if (code == 0) code = tuner_gpu_context_allocate(made);
  tuner_gpu_leave(shared, before);
  if (code != 0) {
    tuner_gpu_context_destroy(made);
    return code;
  }
  tuner_gpu_context_place(made);
  *context = made;
  return 0;
}

/* Both at once: a context that has the weights to itself until others share them. */
static inline int32_t tuner_gpu_model_create(const tuner_gpu_model* model, const char* weights_path,
                                             int32_t device, tuner_gpu_context** context) {
  tuner_gpu_shared* shared;
  int32_t code;
  *context = NULL;
  code = tuner_gpu_model_open(model, weights_path, device, &shared);
  if (code != 0) return code;
  code = tuner_gpu_context_create(shared, context);
  tuner_gpu_model_close(shared); /* the context keeps it */
  return code;
}

/* Calls `hook` before and after each step of later runs, which then wait for each step; NULL: no more. */
static inline void tuner_gpu_context_watch(tuner_gpu_context* context, tuner_step_hook hook, void* data) {
  context->hook = hook;
  context->hook_data = data;
}

/* Queues step `s`, whose parameters begin at `params` and its kernel's functions at `functions`. */
static inline int tuner_gpu_queue_step(const tuner_gpu_context* context, int32_t s, void** params,
                                       void* stream) {
  const tuner_gpu_variant* const variant = context->shared->variant;
  const int32_t number = variant->steps[s].kernel;
  const tuner_gpu_kernel* const kernel = &variant->kernels[number];
  void** functions = context->shared->functions;
  int32_t k, l;
  for (k = 0; k < number; ++k) functions += variant->kernels[k].num_launches;
  for (l = 0; l < kernel->num_launches; ++l) {
    const tuner_gpu_launch* const launch = &kernel->launches[l];
    const int result = context->shared->driver.launch(
        functions[l], launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0], launch->block[1],
        launch->block[2], launch->shared_bytes, stream, params, NULL);
    if (result != 0) return result;
    params += launch->num_params;
  }
  return 0;
}

/* Queues the step between two events, and waits for it. */
static inline int tuner_gpu_watch_step(tuner_gpu_context* context, int32_t s, void** params, void* stream) {
  const tuner_gpu_driver* const driver = &context->shared->driver;
  float milliseconds = 0;
  int result = driver->event_record(context->begin, stream);
  if (result == 0) result = tuner_gpu_queue_step(context, s, params, stream);
  if (result == 0) result = driver->event_record(context->end, stream);
  if (result == 0) result = driver->event_wait(context->end);
  if (result == 0) result = driver->event_elapsed(&milliseconds, context->begin, context->end);
  context->step_ns = 1e6 * (double)milliseconds;
  return result;
}

/* Queues all steps, one by one. */
static inline int tuner_gpu_queue_steps(tuner_gpu_context* context, void* stream) {
  const tuner_gpu_variant* const variant = context->shared->variant;
  void** params = context->params;
  int32_t s, l;
  for (s = 0; s < context->shared->model->model.num_steps; ++s) {
    const tuner_gpu_kernel* const kernel = &variant->kernels[variant->steps[s].kernel];
    int result;
    if (context->hook) context->hook(context->hook_data, s, 0);
    result = context->hook ? tuner_gpu_watch_step(context, s, params, stream)
                           : tuner_gpu_queue_step(context, s, params, stream);
    if (result != 0) {
      context->failed_step = s;
      return result;
    }
    if (context->hook) context->hook(context->hook_data, s, 1);
    for (l = 0; l < kernel->num_launches; ++l) params += kernel->launches[l].num_params;
  }
  return 0;
}

/* Records all steps as a graph. Not 0: the driver records nothing, and nothing is left behind. */
static inline int tuner_gpu_record(tuner_gpu_context* context) {
  const tuner_gpu_driver* const driver = &context->shared->driver;
  void* graph = NULL;
  int queued, result = driver->capture_begin(context->stream, 2); /* other threads may go on */
  if (result != 0) return result;
  queued = tuner_gpu_queue_steps(context, context->stream);
  result = driver->capture_end(context->stream, &graph);
  if (result == 0) result = queued;
  if (result == 0) result = driver->graph_instantiate(&context->graph, graph, 0);
  if (graph) driver->graph_destroy(graph);
  if (result != 0) context->graph = NULL;
  return result;
}

/* Sets the arguments that lie in inputs and outputs; `tensors`: of all inputs, then of all outputs. */
static inline void tuner_gpu_bind(tuner_gpu_context* context, const tuner_gpu_pointer* tensors) {
  const size_t count = tuner_gpu_tensors(context);
  const size_t inputs = (size_t)context->shared->model->model.num_inputs;
  size_t a;
  if (context->recorded != 0 && memcmp(context->bound, tensors, count * sizeof *tensors) == 0) return;
  memcpy(context->bound, tensors, count * sizeof *tensors);
  for (a = 0; a < context->num_args; ++a) {
    const tuner_place* const place = context->places[a];
    if (!place) continue;
    context->args[a] = tensors[(place->kind == TUNER_INPUT ? 0 : inputs) + (size_t)place->index] +
                       (tuner_gpu_pointer)place->offset;
  }
  if (context->graph) context->shared->driver.graph_exec_destroy(context->graph);
  context->graph = NULL;
  if (context->recorded > 0) context->recorded = 0;
}

/* Queues a run on the stream. */
static inline int32_t tuner_gpu_start(tuner_gpu_context* context, void* stream,
                                      const tuner_gpu_pointer* tensors) {
  const tuner_gpu_driver* const driver = &context->shared->driver;
  const int32_t again = context->recorded;
  int result;
  context->failed_step = -1;
  tuner_gpu_bind(context, tensors);
  if (!context->hook && again == 1 && context->recorded == 1)
    context->recorded = tuner_gpu_record(context) == 0 ? 2 : -1;
  context->failed_step = -1;
  if (!context->hook && context->recorded == 2) {
    result = driver->graph_launch(context->graph, stream);
  } else {
    result = tuner_gpu_queue_steps(context, stream);
    if (context->recorded == 0) context->recorded = 1;
  }
  return tuner_gpu_code_of(result);
}

/* Queues a run on `stream` (a CUstream or cudaStream_t of this device; NULL: the default one) and returns. Pointers are the device's,
 * aligned to 64 bytes; outputs overlap nothing. May stand in a capture of the caller's. */
static inline int32_t tuner_gpu_context_run_on(tuner_gpu_context* context, void* stream,
                                               const void* const* inputs, void* const* outputs) {
  const tuner_model* const model = &context->shared->model->model;
  tuner_gpu_pointer* tensors;
  int32_t i, code = 0;
  void* before;
  tensors = (tuner_gpu_pointer*)malloc((tuner_gpu_tensors(context) + 1) * sizeof *tensors);
  if (!tensors) return TUNER_MODEL_NO_MEMORY;
  for (i = 0; i < model->num_inputs; ++i) tensors[i] = (tuner_gpu_pointer)(uintptr_t)inputs[i];
  for (i = 0; i < model->num_outputs; ++i)
    tensors[model->num_inputs + i] = (tuner_gpu_pointer)(uintptr_t)outputs[i];
  for (i = 0; i < model->num_inputs + model->num_outputs; ++i)
    if (tensors[i] % 64 != 0) code = TUNER_MODEL_UNALIGNED;
  if (code == 0) code = tuner_gpu_enter(context->shared, &before);
  if (code == 0) {
    code = tuner_gpu_start(context, stream, tensors);
    tuner_gpu_leave(context->shared, before);
  }
  free(tensors);
  return code;
}

/* Memory on the device for inputs and outputs, once. */
static inline int32_t tuner_gpu_stage(tuner_gpu_context* context) {
  const tuner_model* const model = &context->shared->model->model;
  const int32_t count = model->num_inputs + model->num_outputs;
  int64_t bytes = 0;
  int32_t i, code;
  if (context->staging) return 0;
  for (i = 0; i < count; ++i) {
    const tuner_arg* const tensor =
        i < model->num_inputs ? &model->inputs[i] : &model->outputs[i - model->num_inputs];
    context->own[i] = (tuner_gpu_pointer)bytes;
    bytes += tuner_gpu_rounded(tensor->bytes);
  }
  code =
      tuner_gpu_code_of(context->shared->driver.allocate(&context->staging, bytes > 0 ? (size_t)bytes : 256));
  if (code != 0) {
    context->staging = 0;
    return code;
  }
  for (i = 0; i < count; ++i) context->own[i] += context->staging;
  return 0;
}

/* Copies what the last run, or its steps so far, made to the host: the arena, unless it is NULL, and outputs. */
static inline int32_t tuner_gpu_context_fetch(tuner_gpu_context* context, void* arena, void* const* outputs) {
  const tuner_model* const model = &context->shared->model->model;
  const tuner_gpu_driver* const driver = &context->shared->driver;
  int32_t o, code;
  void* before;
  code = tuner_gpu_enter(context->shared, &before);
  if (code != 0) return code;
  if (arena && model->arena_bytes > 0)
    code = tuner_gpu_code_of(driver->to_host(arena, context->arena, (size_t)model->arena_bytes));
  for (o = 0; code == 0 && o < model->num_outputs; ++o)
    if (model->outputs[o].bytes > 0)
      code = tuner_gpu_code_of(
          driver->to_host(outputs[o], context->own[model->num_inputs + o], (size_t)model->outputs[o].bytes));
  tuner_gpu_leave(context->shared, before);
  return code;
}

static inline int tuner_gpu_run_staged(tuner_gpu_context* context, const void* const* inputs,
                                       void* const* outputs, int32_t* code) {
  const tuner_model* const model = &context->shared->model->model;
  const tuner_gpu_driver* const driver = &context->shared->driver;
  int result = 0;
  int32_t i;
  for (i = 0; result == 0 && i < model->num_inputs; ++i)
    if (model->inputs[i].bytes > 0)
      result = driver->to_device_async(context->own[i], inputs[i], (size_t)model->inputs[i].bytes,
                                       context->stream);
  if (result == 0) *code = tuner_gpu_start(context, context->stream, context->own);
  for (i = 0; result == 0 && *code == 0 && i < model->num_outputs; ++i)
    if (model->outputs[i].bytes > 0)
      result = driver->to_host_async(outputs[i], context->own[model->num_inputs + i],
                                     (size_t)model->outputs[i].bytes, context->stream);
  return result != 0 || *code != 0 ? result : driver->stream_wait(context->stream);
}

/* Runs the model on tensors in the host's memory: copies inputs to the device and outputs back. The first run allocates memory for
 * them on the device. Pointers need no alignment. */
static inline int32_t tuner_gpu_context_run(tuner_gpu_context* context, const void* const* inputs,
                                            void* const* outputs) {
  int32_t code;
  void* before;
  code = tuner_gpu_enter(context->shared, &before);
  if (code != 0) return code;
  code = tuner_gpu_stage(context);
  if (code == 0) {
    const int result = tuner_gpu_run_staged(context, inputs, outputs, &code);
    if (result != 0) code = tuner_gpu_code_of(result);
  }
  tuner_gpu_leave(context->shared, before);
  return code;
}

/* For checks: what no step writes holds this then. */
static inline int32_t tuner_gpu_context_fill_arena(tuner_gpu_context* context, unsigned char byte) {
  const int64_t bytes = context->shared->model->model.arena_bytes;
  int32_t code = 0;
  void* before;
  if (bytes == 0) return 0;
  code = tuner_gpu_enter(context->shared, &before);
  if (code == 0)
    code =
        tuner_gpu_code_of(context->shared->driver.fill(context->arena, byte, (size_t)bytes, context->stream));
  tuner_gpu_leave(context->shared, before);
  return code;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TUNER_GPU_MODEL_H_ */

// Measures calls of the C API, in microseconds. tests/interop/c_api_times.py compiles it, and runs
// it with the library of gradflow and with TensorFlow's.
//
//   c_api_times FOLDER      FOLDER is the SavedModel half_plus_two
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/c_api_experimental.h"

enum { kBatches = 200, kCalls = 1000 };

static TF_Status* status;

static void Check(void) {
  if (TF_GetCode(status) == TF_OK) return;
  fprintf(stderr, "error: %s\n", TF_Message(status));
  exit(1);
}

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

// Prints the time per call of the fastest batch.
static void Measure(const char* name, void (*call)(void)) {
  double best = 1e30;
  for (int batch = 0; batch < kBatches; ++batch) {
    const double start = Now();
    for (int i = 0; i < kCalls; ++i) call();
    const double time = (Now() - start) / kCalls;
    if (time < best) best = time;
  }
  Check();
  printf("%s\t%.3f\n", name, best);
}

static TF_Session* session;
static TF_Output x;
static TF_Output y;
static TF_Tensor* value;

static void RunSession(void) {
  TF_Tensor* result = NULL;
  TF_SessionRun(session, NULL, &x, &value, 1, &y, &result, 1, NULL, 0, NULL, status);
  TF_DeleteTensor(result);
}

static TFE_Context* context;
static TFE_Op* kept;
static TFE_TensorHandle* handle;

static void ExecuteOp(TFE_Op* op) {
  TFE_OpAddInput(op, handle, status);
  TFE_OpAddInput(op, handle, status);
  TFE_TensorHandle* result = NULL;
  int count = 1;
  TFE_Execute(op, &result, &count, status);
  TFE_DeleteTensorHandle(result);
}
static void ExecuteNewOp(void) {
  TFE_Op* op = TFE_NewOp(context, "AddV2", status);
  ExecuteOp(op);
  TFE_DeleteOp(op);
}
static void ExecuteResetOp(void) {
  TFE_OpReset(kept, "AddV2", NULL, status);
  ExecuteOp(kept);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  status = TF_NewStatus();
  // A ConfigProto with intra_op_parallelism_threads and inter_op_parallelism_threads of 1.
  const char one_thread[] = "\x10\x01\x28\x01";
  TF_Graph* graph = TF_NewGraph();
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetConfig(options, one_thread, 4, status);
  const char* tags[] = {"serve"};
  session = TF_LoadSessionFromSavedModel(options, NULL, argv[1], tags, 1, graph, NULL, status);
  Check();
  x.oper = TF_GraphOperationByName(graph, "x");
  y.oper = TF_GraphOperationByName(graph, "y");
  const int64_t dims[] = {1, 1};
  value = TF_AllocateTensor(TF_FLOAT, dims, 2, sizeof(float));
  *(float*)TF_TensorData(value) = 3;
  TF_Tensor* result = NULL;
  TF_SessionRun(session, NULL, &x, &value, 1, &y, &result, 1, NULL, 0, NULL, status);
  Check();
  if (*(float*)TF_TensorData(result) != 3.5f) return 1;
  TF_DeleteTensor(result);
  Measure("TF_SessionRun", &RunSession);

  TFE_ContextOptions* context_options = TFE_NewContextOptions();
  TFE_ContextOptionsSetConfig(context_options, one_thread, 4, status);
  context = TFE_NewContext(context_options, status);
  Check();
  handle = TFE_NewTensorHandle(value, status);
  kept = TFE_NewOp(context, "AddV2", status);
  Measure("TFE_NewOp, TFE_Execute", &ExecuteNewOp);
  Measure("TFE_OpReset, TFE_Execute", &ExecuteResetOp);
  return 0;
}

// Loads a SavedModel, feeds a vector of floats, and prints the result.
//
//   c_api half_plus_two x:0 y:0 1 2 3
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"

static void Check(TF_Status* status) {
  if (TF_GetCode(status) == TF_OK) return;
  fprintf(stderr, "error: %s\n", TF_Message(status));
  exit(1);
}

// Returns the output that "node:1" or "node" names.
static TF_Output Find(TF_Graph* graph, char* name) {
  char* colon = strchr(name, ':');
  TF_Output output = {NULL, colon == NULL ? 0 : atoi(colon + 1)};
  if (colon != NULL) *colon = '\0';
  output.oper = TF_GraphOperationByName(graph, name);
  if (output.oper == NULL) {
    fprintf(stderr, "error: the graph has no operation %s\n", name);
    exit(1);
  }
  return output;
}

int main(int argc, char** argv) {
  if (argc < 5) {
    fprintf(stderr, "usage: %s FOLDER INPUT OUTPUT VALUE...\n", argv[0]);
    return 2;
  }
  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  TF_SessionOptions* options = TF_NewSessionOptions();
  const char* tags[] = {"serve"};
  TF_Session* session =
      TF_LoadSessionFromSavedModel(options, NULL, argv[1], tags, 1, graph, NULL, status);
  Check(status);
  TF_DeleteSessionOptions(options);

  const int64_t dims[] = {argc - 4};
  TF_Tensor* x = TF_AllocateTensor(TF_FLOAT, dims, 1, dims[0] * sizeof(float));
  for (int i = 0; i < dims[0]; ++i) ((float*)TF_TensorData(x))[i] = atof(argv[i + 4]);

  TF_Output input = Find(graph, argv[2]);
  TF_Output output = Find(graph, argv[3]);
  TF_Tensor* y = NULL;
  TF_SessionRun(session, NULL, &input, &x, 1, &output, &y, 1, NULL, 0, NULL, status);
  Check(status);
  for (int64_t i = 0; i < TF_TensorElementCount(y); ++i) {
    printf("%g\n", ((float*)TF_TensorData(y))[i]);
  }

  TF_DeleteTensor(x);
  TF_DeleteTensor(y);
  TF_DeleteSession(session, status);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return 0;
}

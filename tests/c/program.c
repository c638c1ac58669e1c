/* Compiled as C: every header, the library, and what a program in C does. */
#include <stdio.h>
#include <string.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/c_api_experimental.h"
#include "tensorflow/c/env.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/logging.h"
#include "tensorflow/c/ops.h"
#include "tensorflow/c/tf_shape.h"

int main(void) {
  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  TF_OperationDescription* desc = TF_NewOperation(graph, "Placeholder", "x");
  TF_Operation* x;
  TF_Operation* y;
  TF_Session* session;
  TF_Tensor* in = TF_AllocateTensor(TF_FLOAT, NULL, 0, sizeof(float));
  TF_Tensor* out = NULL;
  TF_Output inputs[1];
  TF_Output outputs[1];
  const float three = 3;
  float result = 0;
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  x = TF_FinishOperation(desc, status);
  desc = TF_NewOperation(graph, "Square", "y");
  inputs[0].oper = x;
  inputs[0].index = 0;
  TF_AddInput(desc, inputs[0]);
  y = TF_FinishOperation(desc, status);
  outputs[0].oper = y;
  outputs[0].index = 0;
  session = TF_NewSession(graph, NULL, status);
  memcpy(TF_TensorData(in), &three, sizeof(three));
  TF_SessionRun(session, NULL, inputs, &in, 1, outputs, &out, 1, NULL, 0, NULL, status);
  if (TF_GetCode(status) == TF_OK) result = *(float*)TF_TensorData(out);
  printf("%s: %g %s\n", TF_Version(), result, TF_Message(status));
  TF_DeleteTensor(in);
  TF_DeleteTensor(out);
  TF_DeleteSession(session, status);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return result == 9 ? 0 : 1;
}

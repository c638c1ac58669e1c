// TF_Status: the result of a call, a code and a message.
#ifndef GRADFLOW_C_TF_STATUS_H_
#define GRADFLOW_C_TF_STATUS_H_

#include "tensorflow/c/c_api_macros.h"

typedef struct TSL_Status TSL_Status;
typedef TSL_Status TF_Status;

// The codes of google.rpc.Code.
typedef enum TSL_Code {
  TSL_OK = 0,
  TSL_CANCELLED = 1,
  TSL_UNKNOWN = 2,
  TSL_INVALID_ARGUMENT = 3,
  TSL_DEADLINE_EXCEEDED = 4,
  TSL_NOT_FOUND = 5,
  TSL_ALREADY_EXISTS = 6,
  TSL_PERMISSION_DENIED = 7,
  TSL_UNAUTHENTICATED = 16,
  TSL_RESOURCE_EXHAUSTED = 8,
  TSL_FAILED_PRECONDITION = 9,
  TSL_ABORTED = 10,
  TSL_OUT_OF_RANGE = 11,
  TSL_UNIMPLEMENTED = 12,
  TSL_INTERNAL = 13,
  TSL_UNAVAILABLE = 14,
  TSL_DATA_LOSS = 15,
} TSL_Code;
typedef TSL_Code TF_Code;
#define TF_OK TSL_OK
#define TF_CANCELLED TSL_CANCELLED
#define TF_UNKNOWN TSL_UNKNOWN
#define TF_INVALID_ARGUMENT TSL_INVALID_ARGUMENT
#define TF_DEADLINE_EXCEEDED TSL_DEADLINE_EXCEEDED
#define TF_NOT_FOUND TSL_NOT_FOUND
#define TF_ALREADY_EXISTS TSL_ALREADY_EXISTS
#define TF_PERMISSION_DENIED TSL_PERMISSION_DENIED
#define TF_UNAUTHENTICATED TSL_UNAUTHENTICATED
#define TF_RESOURCE_EXHAUSTED TSL_RESOURCE_EXHAUSTED
#define TF_FAILED_PRECONDITION TSL_FAILED_PRECONDITION
#define TF_ABORTED TSL_ABORTED
#define TF_OUT_OF_RANGE TSL_OUT_OF_RANGE
#define TF_UNIMPLEMENTED TSL_UNIMPLEMENTED
#define TF_INTERNAL TSL_INTERNAL
#define TF_UNAVAILABLE TSL_UNAVAILABLE
#define TF_DATA_LOSS TSL_DATA_LOSS

// Receives a payload of TF_ForEachPayload().
typedef void (*TSL_PayloadVisitor)(const char* key, const char* value, void* capture);
#define TF_PayloadVisitor TSL_PayloadVisitor

#ifdef __cplusplus
extern "C" {
#endif

// Returns a status that is TF_OK.
TF_CAPI_EXPORT TF_Status* TF_NewStatus(void);

// Frees the status. Null has no effect.
TF_CAPI_EXPORT void TF_DeleteStatus(TF_Status*);

// Replaces code and message, and drops the payloads. A null message is empty.
TF_CAPI_EXPORT void TF_SetStatus(TF_Status* s, TF_Code code, const char* msg);

// Attaches a value to an error. Has no effect on TF_OK.
TF_CAPI_EXPORT void TF_SetPayload(TF_Status* s, const char* key, const char* value);

// Calls `visitor(key, value, capture)` for each payload.
TF_CAPI_EXPORT void TF_ForEachPayload(const TF_Status* s, TF_PayloadVisitor visitor, void* capture);

// Sets the status to the error of a system call: `error_code` is an errno.
TF_CAPI_EXPORT void TF_SetStatusFromIOError(TF_Status* s, int error_code, const char* context);

// Returns the code.
TF_CAPI_EXPORT TF_Code TF_GetCode(const TF_Status* s);

// Returns the message, which is empty for TF_OK. It is valid until the status changes.
TF_CAPI_EXPORT const char* TF_Message(const TF_Status* s);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GRADFLOW_C_TF_STATUS_H_

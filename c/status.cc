#include "gradflow/c/status.h"

#include <cstring>
#include <new>
#include <string>
#include <system_error>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

using gradflow::capi::CallQuietly;
using gradflow::capi::OrEmpty;
using gradflow::capi::SetStatus;

TF_Status* TF_NewStatus(void) { return new (std::nothrow) TF_Status; }

void TF_DeleteStatus(TF_Status* s) { delete s; }

void TF_SetStatus(TF_Status* s, TF_Code code, const char* msg) {
  CallQuietly(
      [&] { SetStatus(s, absl::Status(static_cast<absl::StatusCode>(code), OrEmpty(msg))); });
}

void TF_SetPayload(TF_Status* s, const char* key, const char* value) {
  CallQuietly([&] { s->status.SetPayload(OrEmpty(key), absl::Cord(OrEmpty(value))); });
}

void TF_ForEachPayload(const TF_Status* s, TF_PayloadVisitor visitor, void* capture) {
  CallQuietly([&] {
    s->status.ForEachPayload([&](absl::string_view key, const absl::Cord& value) {
      visitor(std::string(key).c_str(), std::string(value).c_str(), capture);
    });
  });
}

void TF_SetStatusFromIOError(TF_Status* s, int error_code, const char* context) {
  CallQuietly([&] { SetStatus(s, absl::ErrnoToStatus(error_code, OrEmpty(context))); });
}

TF_Code TF_GetCode(const TF_Status* s) { return static_cast<TF_Code>(s->status.raw_code()); }

const char* TF_Message(const TF_Status* s) { return s->message.c_str(); }

// TF_TString: the element of TF_STRING tensors, a string of 24 bytes.
//
// The two lowest bits of the first byte are the type. In all types, the size is stored times four,
// so that it shares its first byte with the type.
//
//   TF_TSTR_SMALL   a byte with the size, then up to 22 characters and a terminating zero
//   TF_TSTR_LARGE   the size, the capacity, and a pointer to zero-terminated malloc() memory
//   TF_TSTR_OFFSET  a size and an offset of 32 bits; the characters follow the string in memory
//   TF_TSTR_VIEW    the size, and a pointer to characters of somebody else
//
// Offsets and views become small or large when they are written. 24 zero bytes are an empty string.
//
//   TF_TString s;
//   TF_TString_Init(&s);
//   TF_TString_Copy(&s, "text", 4);
//   TF_TString_Dealloc(&s);
//
// Memory: if memory runs out, a function does not change the string; functions that return a
// pointer to characters return null.
#ifndef GRADFLOW_C_TF_TSTRING_H_
#define GRADFLOW_C_TF_TSTRING_H_
// Programs test this name.
#define TENSORFLOW_C_TF_TSTRING_H_

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api_macros.h"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the layout of TF_TString is defined here for little-endian processors only"
#endif

#ifdef __cplusplus
extern "C" {
#endif

// The type of a string, in its two lowest bits.
typedef enum TF_TString_Type {
  TF_TSTR_SMALL = 0,
  TF_TSTR_LARGE = 1,
  TF_TSTR_OFFSET = 2,
  TF_TSTR_VIEW = 3,
  TF_TSTR_TYPE_MASK = 3
} TF_TString_Type;

// The fields of the types.
typedef struct TF_TString_Large {
  size_t size;
  size_t cap;
  char* ptr;
} TF_TString_Large;
typedef struct TF_TString_Offset {
  uint32_t size;
  uint32_t offset;
  uint32_t count;
} TF_TString_Offset;
typedef struct TF_TString_View {
  size_t size;
  const char* ptr;
} TF_TString_View;
typedef struct TF_TString_Raw {
  uint8_t raw[24];
} TF_TString_Raw;
enum { TF_TString_SmallCapacity = 22 };
typedef struct TF_TString_Small {
  uint8_t size;
  char str[TF_TString_SmallCapacity + 1];
} TF_TString_Small;

// A string.
typedef struct TF_TString {
  union {
    TF_TString_Small smll;
    TF_TString_Large large;
    TF_TString_Offset offset;
    TF_TString_View view;
    TF_TString_Raw raw;
  } u;
} TF_TString;

// Converts a number of 32 bits from little-endian order.
#define TF_le32toh(x) (x)

// ---- Reading ----

// Returns the type.
static inline TF_TString_Type TF_TString_GetType(const TF_TString* s) {
  return (TF_TString_Type)(s->u.raw.raw[0] & TF_TSTR_TYPE_MASK);
}

// Returns the number of characters.
static inline size_t TF_TString_GetSize(const TF_TString* s) {
  const TF_TString_Type type = TF_TString_GetType(s);
  if (type == TF_TSTR_SMALL) return s->u.smll.size >> 2;
  if (type == TF_TSTR_OFFSET) return s->u.offset.size >> 2;
  return s->u.large.size >> 2;
}

// Returns the number of characters that fit without an allocation; 0 for offsets and views.
static inline size_t TF_TString_GetCapacity(const TF_TString* s) {
  const TF_TString_Type type = TF_TString_GetType(s);
  if (type == TF_TSTR_SMALL) return TF_TString_SmallCapacity;
  return type == TF_TSTR_LARGE ? s->u.large.cap : 0;
}

// Returns the characters. Offsets and views need not end with zero.
static inline const char* TF_TString_GetDataPointer(const TF_TString* s) {
  const TF_TString_Type type = TF_TString_GetType(s);
  if (type == TF_TSTR_SMALL) return s->u.smll.str;
  if (type == TF_TSTR_OFFSET) return (const char*)s + s->u.offset.offset;
  return type == TF_TSTR_LARGE ? s->u.large.ptr : s->u.view.ptr;
}

// ---- Writing ----

// Makes uninitialized memory an empty string.
static inline void TF_TString_Init(TF_TString* s) { memset(s, 0, sizeof(*s)); }

// Frees the characters. A large string becomes empty; other types need no memory.
static inline void TF_TString_Dealloc(TF_TString* s) {
  if (TF_TString_GetType(s) != TF_TSTR_LARGE) return;
  free(s->u.large.ptr);
  TF_TString_Init(s);
}

// Makes the string large, with room for `capacity` characters and its first `kept` characters, of
// which there must be so many. Sets the size to `kept`. Returns 0 if memory runs out.
static inline int TF_TString_MakeLarge(TF_TString* s, size_t kept, size_t capacity) {
  // With the terminating zero, blocks have a multiple of 16 bytes.
  const size_t bytes = (capacity + 16) & ~(size_t)15;
  const int is_large = TF_TString_GetType(s) == TF_TSTR_LARGE;
  char* block;
  if (bytes <= capacity) return 0;
  block = (char*)realloc(is_large ? s->u.large.ptr : NULL, bytes);
  if (block == NULL) return 0;
  if (!is_large && kept > 0) memcpy(block, TF_TString_GetDataPointer(s), kept);
  block[kept] = 0;
  s->u.large.size = kept << 2 | TF_TSTR_LARGE;
  s->u.large.cap = bytes - 1;
  s->u.large.ptr = block;
  return 1;
}

// Makes room for `capacity` characters. Does nothing if a small string could hold as many.
static inline void TF_TString_Reserve(TF_TString* s, size_t capacity) {
  const size_t size = TF_TString_GetSize(s);
  if (capacity <= TF_TString_SmallCapacity) return;
  if (capacity <= TF_TString_GetCapacity(s)) return;
  TF_TString_MakeLarge(s, size, capacity > size ? capacity : size);
}

// Like TF_TString_Reserve(), but at least doubles the capacity if it must grow.
static inline void TF_TString_ReserveAmortized(TF_TString* s, size_t capacity) {
  const size_t old = TF_TString_GetCapacity(s);
  if (capacity > old) TF_TString_Reserve(s, capacity > 2 * old ? capacity : 2 * old);
}

// Sets the size and returns the characters for writing. New characters are undefined. A large
// string gives back memory if it becomes less than half full.
static inline char* TF_TString_ResizeUninitialized(TF_TString* s, size_t size) {
  const size_t old = TF_TString_GetSize(s);
  const size_t kept = old < size ? old : size;
  const TF_TString_Type type = TF_TString_GetType(s);
  if (size <= TF_TString_SmallCapacity) {
    if (type != TF_TSTR_SMALL) {
      TF_TString small;
      TF_TString_Init(&small);
      if (kept > 0) memcpy(small.u.smll.str, TF_TString_GetDataPointer(s), kept);
      TF_TString_Dealloc(s);
      *s = small;
    }
    s->u.smll.size = (uint8_t)(size << 2 | TF_TSTR_SMALL);
    s->u.smll.str[size] = 0;
    return s->u.smll.str;
  }
  if (type != TF_TSTR_LARGE || size > s->u.large.cap || size < s->u.large.cap / 2) {
    if (!TF_TString_MakeLarge(s, kept, size)) return NULL;
  }
  s->u.large.size = size << 2 | TF_TSTR_LARGE;
  s->u.large.ptr[size] = 0;
  return s->u.large.ptr;
}

// Sets the size and returns the characters. New characters are `fill`.
static inline char* TF_TString_Resize(TF_TString* s, size_t size, char fill) {
  const size_t old = TF_TString_GetSize(s);
  char* chars = TF_TString_ResizeUninitialized(s, size);
  if (chars != NULL && size > old) memset(chars + old, fill, size - old);
  return chars;
}

// Returns the characters for writing.
static inline char* TF_TString_GetMutableDataPointer(TF_TString* s) {
  const TF_TString_Type type = TF_TString_GetType(s);
  if (type == TF_TSTR_SMALL) return s->u.smll.str;
  if (type == TF_TSTR_LARGE) return s->u.large.ptr;
  return TF_TString_ResizeUninitialized(s, TF_TString_GetSize(s));
}

// Makes `dst` a view of characters, which must outlive it.
static inline void TF_TString_AssignView(TF_TString* dst, const char* src, size_t size) {
  TF_TString_Dealloc(dst);
  dst->u.view.size = size << 2 | TF_TSTR_VIEW;
  dst->u.view.ptr = src;
}

// Replaces the string by a copy of characters, which must not be its own.
static inline void TF_TString_Copy(TF_TString* dst, const char* src, size_t size) {
  char* chars = TF_TString_ResizeUninitialized(dst, size);
  if (chars != NULL && size > 0) memcpy(chars, src, size);
}

// Append characters, which must not belong to `dst`.
static inline void TF_TString_AppendN(TF_TString* dst, const char* src, size_t size) {
  const size_t old = TF_TString_GetSize(dst);
  char* chars;
  if (size == 0) return;
  TF_TString_ReserveAmortized(dst, old + size);
  chars = TF_TString_ResizeUninitialized(dst, old + size);
  if (chars != NULL) memcpy(chars + old, src, size);
}
static inline void TF_TString_Append(TF_TString* dst, const TF_TString* src) {
  TF_TString_AppendN(dst, TF_TString_GetDataPointer(src), TF_TString_GetSize(src));
}

// Makes `dst` equal to `src`: a copy of a small or large string, otherwise a view of the same
// characters.
static inline void TF_TString_Assign(TF_TString* dst, const TF_TString* src) {
  const TF_TString_Type type = TF_TString_GetType(src);
  if (dst == src) return;
  if (type == TF_TSTR_SMALL || type == TF_TSTR_LARGE) {
    TF_TString_Copy(dst, TF_TString_GetDataPointer(src), TF_TString_GetSize(src));
  } else {
    TF_TString_AssignView(dst, TF_TString_GetDataPointer(src), TF_TString_GetSize(src));
  }
}

// Moves `src` to `dst`. An offset becomes a view; a large `src` becomes empty.
static inline void TF_TString_Move(TF_TString* dst, TF_TString* src) {
  if (dst == src) return;
  if (TF_TString_GetType(src) == TF_TSTR_OFFSET) {
    TF_TString_Assign(dst, src);
    return;
  }
  TF_TString_Dealloc(dst);
  *dst = *src;
  if (TF_TString_GetType(src) == TF_TSTR_LARGE) TF_TString_Init(src);
}

// ---- Functions for languages that cannot call inline functions ----

TF_CAPI_EXPORT void TF_StringInit(TF_TString* t);
TF_CAPI_EXPORT void TF_StringCopy(TF_TString* dst, const char* src, size_t size);
TF_CAPI_EXPORT void TF_StringAssignView(TF_TString* dst, const char* src, size_t size);
TF_CAPI_EXPORT const char* TF_StringGetDataPointer(const TF_TString* tstr);
TF_CAPI_EXPORT TF_TString_Type TF_StringGetType(const TF_TString* str);
TF_CAPI_EXPORT size_t TF_StringGetSize(const TF_TString* tstr);
TF_CAPI_EXPORT size_t TF_StringGetCapacity(const TF_TString* str);
TF_CAPI_EXPORT void TF_StringDealloc(TF_TString* tstr);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GRADFLOW_C_TF_TSTRING_H_

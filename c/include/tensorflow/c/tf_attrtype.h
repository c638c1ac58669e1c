// TF_AttrType: the kinds of attributes.
#ifndef GRADFLOW_C_TF_ATTRTYPE_H_
#define GRADFLOW_C_TF_ATTRTYPE_H_

#ifdef __cplusplus
extern "C" {
#endif

// The kind of an attribute, or of the elements of an attribute that is a list.
typedef enum TF_AttrType {
  TF_ATTR_STRING = 0,
  TF_ATTR_INT = 1,
  TF_ATTR_FLOAT = 2,
  TF_ATTR_BOOL = 3,
  TF_ATTR_TYPE = 4,
  TF_ATTR_SHAPE = 5,
  TF_ATTR_TENSOR = 6,
  TF_ATTR_PLACEHOLDER = 7,
  TF_ATTR_FUNC = 8,
} TF_AttrType;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GRADFLOW_C_TF_ATTRTYPE_H_

// The tags of the graphs of a SavedModel.
#ifndef GRADFLOW_COMPAT_CC_SAVED_MODEL_TAG_CONSTANTS_H_
#define GRADFLOW_COMPAT_CC_SAVED_MODEL_TAG_CONSTANTS_H_

namespace tensorflow {

inline constexpr char kSavedModelTagServe[] = "serve";
inline constexpr char kSavedModelTagTrain[] = "train";
inline constexpr char kSavedModelTagGpu[] = "gpu";
inline constexpr char kSavedModelTagTpu[] = "tpu";

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_SAVED_MODEL_TAG_CONSTANTS_H_

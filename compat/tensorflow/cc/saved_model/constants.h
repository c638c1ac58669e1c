// The names of the files and collections of a SavedModel.
#ifndef GRADFLOW_COMPAT_CC_SAVED_MODEL_CONSTANTS_H_
#define GRADFLOW_COMPAT_CC_SAVED_MODEL_CONSTANTS_H_

namespace tensorflow {

// The folders and files inside the model's folder.
inline constexpr char kSavedModelAssetsDirectory[] = "assets";
inline constexpr char kSavedModelAssetsExtraDirectory[] = "assets.extra";
// The collections of assets and of the op that initialises the graph.
inline constexpr char kSavedModelAssetsKey[] = "saved_model_assets";
inline constexpr char kSavedModelFilenamePb[] = "saved_model.pb";
inline constexpr char kSavedModelFilenamePbTxt[] = "saved_model.pbtxt";
inline constexpr char kSavedModelDebugDirectory[] = "debug";
inline constexpr char kSavedModelVariablesDirectory[] = "variables";
inline constexpr char kSavedModelVariablesFilename[] = "variables";
inline constexpr char kSavedModelMainOpKey[] = "saved_model_main_op";
inline constexpr char kSavedModelLegacyInitOpKey[] = "legacy_init_op";
// The signatures of the ops that initialise and train.
inline constexpr char kSavedModelInitOpSignatureKey[] = "__saved_model_init_op";
inline constexpr char kSavedModelTrainOpKey[] = "saved_model_train_op";
inline constexpr char kSavedModelTrainOpSignatureKey[] = "__saved_model_train_op";

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_SAVED_MODEL_CONSTANTS_H_

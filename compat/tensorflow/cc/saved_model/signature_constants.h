// The names of signatures, and of their inputs and outputs.
#ifndef GRADFLOW_COMPAT_CC_SAVED_MODEL_SIGNATURE_CONSTANTS_H_
#define GRADFLOW_COMPAT_CC_SAVED_MODEL_SIGNATURE_CONSTANTS_H_

namespace tensorflow {

inline constexpr char kDefaultServingSignatureDefKey[] = "serving_default";
// Classification: its inputs, its outputs, and its method name.
inline constexpr char kClassifyInputs[] = "inputs";
inline constexpr char kClassifyMethodName[] = "tensorflow/serving/classify";
inline constexpr char kClassifyOutputClasses[] = "classes";
inline constexpr char kClassifyOutputScores[] = "scores";
// Prediction.
inline constexpr char kPredictInputs[] = "inputs";
inline constexpr char kPredictMethodName[] = "tensorflow/serving/predict";
inline constexpr char kPredictOutputs[] = "outputs";
// Regression.
inline constexpr char kRegressInputs[] = "inputs";
inline constexpr char kRegressMethodName[] = "tensorflow/serving/regress";
inline constexpr char kRegressOutputs[] = "outputs";

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_SAVED_MODEL_SIGNATURE_CONSTANTS_H_

// DenseUpdate: assigns, adds or subtracts two views of the same size, evaluated by Eigen on a
// device. For custom kernels that use it.
#ifndef GRADFLOW_COMPAT_CORE_KERNELS_DENSE_UPDATE_FUNCTOR_H_
#define GRADFLOW_COMPAT_CORE_KERNELS_DENSE_UPDATE_FUNCTOR_H_

#include "tensorflow/core/framework/eigen_device.h"
#include "tensorflow/core/framework/tensor_types.h"

namespace tensorflow {

enum DenseUpdateType { ADD, SUB, ASSIGN };

namespace functor {

// REQUIRES: the views have the same number of elements.
template <typename Device, typename T, DenseUpdateType kUpdate>
struct DenseUpdate {
  void operator()(const Device& device, typename TTypes<T>::Flat params,
                  typename TTypes<T>::ConstFlat update) const {
    if constexpr (kUpdate == ADD) {
      params.device(device) += update;
    } else if constexpr (kUpdate == SUB) {
      params.device(device) -= update;
    } else {
      params.device(device) = update;
    }
  }
};

}  // namespace functor
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_KERNELS_DENSE_UPDATE_FUNCTOR_H_

// ResourceOpKernel: a kernel that creates a resource, and returns a handle to it.
//
//   class TableOp : public ResourceOpKernel<Table> {
//    public:
//     using ResourceOpKernel::ResourceOpKernel;
//    private:
//     Status CreateResource(Table** table) override { ... }
//   };
//
// The op has the attributes `container` and `shared_name`.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_RESOURCE_OP_KERNEL_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_RESOURCE_OP_KERNEL_H_

#include <string>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {

template <typename T>
class ResourceOpKernel : public OpKernel {
 public:
  explicit ResourceOpKernel(OpKernelConstruction* context) : OpKernel(context) {
    has_resource_type_ = num_outputs() > 0 && output_type(0) == DT_RESOURCE;
    if (has_resource_type_) return;
    // A vector with the container and the name, as in TensorFlow 1.x.
    OP_REQUIRES_OK(context, context->allocate_temp(DT_STRING, TensorShape({2}), &tensor_));
  }
  // Removes the resource if no other kernel can have it.
  ~ResourceOpKernel() override {
    if (!cinfo_.resource_is_private_to_kernel() || cinfo_.resource_manager() == nullptr) return;
    cinfo_.resource_manager()->template Delete<T>(cinfo_.container(), cinfo_.name()).IgnoreError();
  }

  void Compute(OpKernelContext* context) override {
    const mutex_lock lock(mu_);
    ResourceMgr* const manager = context->resource_manager();
    OP_REQUIRES(context, manager != nullptr, errors::Internal("there is no resource manager"));
    if (resource_.GetNewRef() == nullptr || cinfo_.resource_manager() != manager) {
      OP_REQUIRES_OK(context, cinfo_.Init(manager, def(), false));
      T* resource;
      OP_REQUIRES_OK(context, manager->template LookupOrCreate<T>(
                                  cinfo_.container(), cinfo_.name(), &resource,
                                  [this](T** made) { return CreateResource(made); }));
      const core::ScopedUnref unref(resource);
      OP_REQUIRES_OK(context, VerifyResource(resource));
      resource_ = core::WeakPtr<T>(resource);
    }
    if (has_resource_type_) {
      OP_REQUIRES_OK(context, MakeResourceHandleToOutput(context, 0, cinfo_.container(),
                                                         cinfo_.name(), TypeIndex::Make<T>()));
    } else {
      tensor_.template flat<tstring>()(0) = cinfo_.container();
      tensor_.template flat<tstring>()(1) = cinfo_.name();
      context->set_output_ref(0, &tensor_mu_, &tensor_);
    }
  }

 protected:
  ContainerInfo* cinfo() { return &cinfo_; }
  // Returns the resource, or null before the first run.
  core::RefCountPtr<T> get_resource() {
    const mutex_lock lock(mu_);
    return resource_.GetNewRef();
  }

 private:
  // Creates the resource. The manager takes over the reference.
  virtual Status CreateResource(T** resource) = 0;
  // Checks a resource that another kernel may have created.
  virtual Status VerifyResource(T* /*resource*/) { return absl::OkStatus(); }

  mutex mu_;
  ContainerInfo cinfo_;
  core::WeakPtr<T> resource_;
  bool has_resource_type_ = false;
  mutex tensor_mu_;
  Tensor tensor_;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_RESOURCE_OP_KERNEL_H_

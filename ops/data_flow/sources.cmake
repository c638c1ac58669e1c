# Data flow.
gradflow_op_family(dynamic_stitch)
gradflow_op_family(optional)
gradflow_op_family(queue USES tensor_queue)
gradflow_op_family(stack USES common/tensor_holder)
gradflow_op_family(stage USES tensor_queue)
gradflow_op_family(tensor_array USES common/tensor_holder list/list_inputs)

gradflow_op_helper(tensor_queue USES random/philox_simd)

# Variables.
gradflow_op_family(assign)
gradflow_op_family(count_up_to)
gradflow_op_family(scatter USES array/nd_indices)
gradflow_op_family(strided_slice_assign USES array/strided_slice)
gradflow_op_family(variable)

# Lists of tensors.
gradflow_op_helper(list_inputs)
gradflow_op_family(tensor_list USES list_inputs)
gradflow_op_family(tensor_list_stack USES list_inputs)

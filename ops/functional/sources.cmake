# Ops that call functions of the graph, and ops for a function's arguments and results.
gradflow_op_family(argument)
gradflow_op_family(branch)
gradflow_op_family(call)
gradflow_op_family(device_index)
gradflow_op_family(fake_param)
gradflow_op_family(loop)
gradflow_op_family(to_bool)

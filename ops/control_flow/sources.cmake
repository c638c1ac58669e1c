# Control flow.
gradflow_op_family(control_switch)
gradflow_op_family(loop_frame)
gradflow_op_family(no_op)

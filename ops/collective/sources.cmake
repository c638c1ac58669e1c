# Collectives: exchanges of tensors between ranks.
gradflow_op_family(collective USES collective_call)
gradflow_op_family(communicator USES collective_call)

gradflow_op_helper(collective_call)

# Tables of keys and values.
gradflow_op_family(hash_table USES table)
gradflow_op_family(initialize_table USES table)
gradflow_op_family(lookup_table USES table)

gradflow_op_helper(key_index PACKAGES HASHES)
gradflow_op_helper(table USES common/tensor_holder key_index)

# Parsing of texts and messages.
gradflow_op_family(decode_csv)
gradflow_op_family(decode_raw)
gradflow_op_family(decompress PACKAGES ZLIB)
gradflow_op_family(parse_example USES feature_columns)
gradflow_op_family(parse_sequence_example USES feature_columns)
gradflow_op_family(parse_tensor USES common/tensor_message)

gradflow_op_helper(feature_columns)
